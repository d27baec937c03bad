// SPDX-License-Identifier: BSD-3-Clause
// Where packets were captured: interfaces of pcapng files, files that overlap in time, the
// interfaces and directions of `tcpdump -i any`. A packet that passes several of them is in the
// capture several times.
#pragma once
#include "tools/pcap/parts.h"

#define POINTS_MAX 256u // more are one
#define POINTS_NAME_MAX (READER_NAME_MAX + 24)
#define POINTS_NONE UINT16_MAX

struct point {
	// Its name, or its number in the file or (`-i any`) in the kernel.
	char interface[READER_NAME_MAX];
	const char *way; // `-i any`: " in", " out"; else ""
	uint64_t packets,
		copies; // TCP packets, and those of them that were seen at another point before
	bool read; // is it on the list of those to be read?
	bool dropped; // what a switch of Weir dropped is captured there: seen, but nowhere to go on
};

struct points {
	struct point point[POINTS_MAX];
	uint32_t count;
	const char *only; // the interfaces that are read, with commas; "": all
	// Private: what the frames of the last file have in place of a name, and the point of each.
	struct points_key {
		uint64_t key;
		uint16_t point;
	} key[POINTS_MAX];
	uint32_t keys;
	const void *reader;
};

void points_init(struct points *p, const char *only);
// The frame's point; POINTS_NONE: of an interface that is not read.
uint16_t points_of(struct points *p, const struct parts_batch *batch, const struct frame *f);
// 0, or -EINVAL with a sentence: an interface of the list was not in the capture.
int points_check(const struct points *p, struct err *err);
void points_name(const struct point *p, char *name, size_t size);
