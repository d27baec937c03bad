// SPDX-License-Identifier: BSD-3-Clause
// Reads two captures in the order of time and matches their packets. Their clocks must differ by less than the least
// delay between them.
#pragma once
#include "common/base/json.h"
#include "tools/pcap/analysis.h"
#include "tools/pcap/match.h"

struct compare_side {
	struct reader reader;
	struct packet packet[READER_BATCH]; // the TCP packets of the last batch
	uint32_t at, count;
	uint64_t decoded[DECODE_COUNT];
};

struct compare {
	struct match match;
	struct compare_side side[2];
};

// Both readers are open and stay the caller's. 0, or -errno with a sentence.
int compare_read(struct compare *c, bool (*more)(void *of), void *of, struct err *err);
bool compare_balanced(const struct compare *c);
// The sections of the summary: ledger, links, flows.
void compare_summary(const struct compare *c, struct json *j);
