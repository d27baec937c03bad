// SPDX-License-Identifier: BSD-3-Clause
// Several files as one capture, in the order of time: the parts of one (`tcpdump -C` names them so
// that the shell puts cap10 before cap2) one behind the other by their first packets, those of
// several places at the same time side by side.
#pragma once
#include "common/pcap/reader.h"

#define PARTS_OPEN_MAX 64u // at the same time

struct parts_open {
	struct reader reader;
	struct frame frames[READER_BATCH];
	uint32_t at, count; // those that were not given out yet
	const char *path; // NULL: free
};

struct part {
	const char *path;
	uint32_t given; // its place on the command line
	uint64_t first_ns; // NEVER_NS: it has no packet
	uint32_t open; // of a pipe, which cannot be opened again; else PARTS_OPEN_MAX
};

struct parts {
	struct part *part; // by first packet
	uint32_t count, next; // next to open
	struct parts_open *open[PARTS_OPEN_MAX]; // NULL: never used
	struct reader_count read; // of files that have ended
	uint64_t bytes; // likewise, of the files themselves
	void (*note)(void *of, const char *sentence); // of a file that is cut off
	void *of;
};

// Frames of one file.
struct parts_batch {
	struct frame *frames;
	const struct reader *reader;
	const char *path;
	uint32_t slot; // of the file among those that are open
	bool first; // of this file
};

// Looks at the first packet of each file. 0 or -errno with a sentence: one cannot be read.
int parts_init(struct parts *p, const char *const *files, uint32_t count, struct err *err);
// The same for the bytes of one file, which stay the caller's: fuzzing.
int parts_init_memory(
	struct parts *p, const char *name, const void *bytes, size_t size, struct err *err);
void parts_fini(struct parts *p);
// Some of the next packets, at most READER_BATCH; they lie in the reader's buffer until the next
// call. 0: the end. -errno with a sentence.
int parts_read(struct parts *p, struct parts_batch *batch, struct err *err);
// Of all files so far: packets, and bytes of the files themselves.
uint64_t parts_packets(const struct parts *p);
uint64_t parts_bytes(const struct parts *p);
