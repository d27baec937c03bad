// SPDX-License-Identifier: BSD-3-Clause
// Reads two captures in the order of time and matches their packets. Their clocks must differ by
// less than the least delay between them. A capture with several interfaces can be both sides, each
// with interfaces of its own.
#pragma once
#include "common/base/json.h"
#include "tools/pcap/analysis.h"
#include "tools/pcap/cut.h"
#include "tools/pcap/match.h"

#define COMPARE_NAMES 512

struct compare_side {
	struct reader reader;
	// The names of those that are read, with commas between them; "": all.
	const char *interfaces;
	bool read[READER_INTERFACES_MAX];
	uint32_t known, replaced; // of the reader's interfaces
	struct packet packet[READER_BATCH]; // the TCP and UDP packets of the last batch
	uint32_t at, count;
	struct decode_count decoded;
	uint64_t skipped; // of other interfaces
	uint64_t apart,
		parts; // packets of several segments, and into how many these were taken apart
	// Time of the last packet; packets with an earlier time than the one before.
	uint64_t last_ns, backwards;
};

struct compare {
	struct match match;
	struct cut cut;
	const char *file[2];
	const char *interfaces[2]; // as those of a side
	char names[2][COMPARE_NAMES]; // if they were found
	struct compare_side side[2];
};

// Two captures, or one of both sides: then `from` and `to`, or the names of its interfaces, say
// which are which. 0, or -EINVAL with a sentence.
int compare_choose(struct compare *c, const char *const *files, uint32_t count, const char *from,
	const char *to, struct err *err);
// Looks at both captures for flows that they cut differently into packets, if both are files, which
// are read again then. 0, or -errno with a sentence; compare_close in any case.
int compare_scan(struct compare *c, struct err *err);
void compare_close(struct compare *c);
// Opens a side's capture and finds its interfaces. 0, or -errno with a sentence.
int compare_open(struct compare *c, uint32_t side, struct err *err);
// `more` is asked now and then whether to go on. 0, or -errno with a sentence.
int compare_read(struct compare *c, bool (*more)(void *of), void *of, struct err *err);
// `rc`, or if that is 0 -EIO with a sentence: a side has nothing to compare, for it cannot be read.
int compare_found(const struct compare *c, int rc, struct err *err);
bool compare_balanced(const struct compare *c);
// The sections of the summary: ledger, links, flows.
void compare_summary(const struct compare *c, struct json *j);
