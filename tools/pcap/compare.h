// SPDX-License-Identifier: BSD-3-Clause
// Reads two captures in the order of time and matches their packets. Their clocks must differ by less than the least
// delay between them. A capture with several interfaces can be both sides, each with interfaces of its own.
#pragma once
#include "common/base/json.h"
#include "tools/pcap/analysis.h"
#include "tools/pcap/match.h"

struct compare_side {
	struct reader reader;
	// The names of those that are read, with commas between them; "": all.
	const char *interfaces;
	bool read[READER_INTERFACES_MAX];
	uint32_t known; // of the reader's interfaces
	struct packet packet[READER_BATCH]; // the TCP and UDP packets of the last batch
	uint32_t at, count;
	uint64_t decoded[DECODE_COUNT];
	uint64_t skipped; // of other interfaces
	// Time of the last packet; packets with an earlier time than the one before.
	uint64_t last_ns, backwards;
};

struct compare {
	struct match match;
	struct compare_side side[2];
};

// Opens a side's capture and finds its interfaces. 0, or -errno with a sentence; reader_close in any case.
int compare_open(struct compare *c, uint32_t side, const char *file, const char *interfaces,
	struct err *err);
// `more` is asked now and then whether to go on. 0, or -errno with a sentence.
int compare_read(struct compare *c, bool (*more)(void *of), void *of, struct err *err);
bool compare_balanced(const struct compare *c);
// The sections of the summary: ledger, links, flows.
void compare_summary(const struct compare *c, struct json *j);
