// SPDX-License-Identifier: BSD-3-Clause
// How a host's flows are doing, per group, for people who watch a run.
//
// A look at 100 000 flows would hold packets up for milliseconds, so a group scan takes a few of
// them at a time: its sums are of moments that lie as far apart as the scan takes.
#pragma once
#include "sender/host/host.h"

// Flows by state (open: from the SYN on); totals of all flows since the start; sums over the open
// flows that have measured a round trip, `measured` of them (a flow that is not paced adds 0).
#define GROUP_SCAN_SUMS(V)                                                                         \
	V(uint64_t, waiting, COUNT_ALWAYS)                                                         \
	V(uint64_t, open, COUNT_ALWAYS)                                                            \
	V(uint64_t, done, COUNT_ALWAYS)                                                            \
	V(uint64_t, failed, COUNT_ALWAYS)                                                          \
	V(uint64_t, acked_bytes, COUNT_ALWAYS)                                                     \
	V(uint64_t, sent_segs, COUNT_ALWAYS)                                                       \
	V(uint64_t, retransmits, COUNT_ALWAYS)                                                     \
	V(uint64_t, timeouts, COUNT_ALWAYS)                                                        \
	V(uint64_t, measured, COUNT_ALWAYS)                                                        \
	V(uint64_t, srtt_ns, COUNT_INNER)                                                          \
	V(double, cwnd_segs, COUNT_INNER)                                                          \
	V(double, pacing_bps, COUNT_INNER)
struct group_scan_sum {
	GROUP_SCAN_SUMS(COUNTERS_MEMBER)
};

struct group_scan {
	const struct host *host;
	uint32_t next; // flow
	struct group_scan_sum group[GROUPS_MAX];
};

// Adds what the scan of another host found of the same group.
void group_scan_add(struct group_scan_sum *sum, const struct group_scan_sum *to);
void group_scan_begin(struct group_scan *s, const struct host *h);
// Looks at `n` more flows, or at as many as are left; false: all have been seen.
bool group_scan_step(struct group_scan *s, uint32_t n);
