// SPDX-License-Identifier: BSD-3-Clause
// How a host's flows are doing, per group, for people who watch a run.
//
// A look at 100 000 flows would hold packets up for milliseconds, so a group scan takes a few of
// them at a time: its sums are of moments that lie as far apart as the scan takes.
#pragma once
#include "sender/host/host.h"

struct group_scan_sum {
	uint64_t waiting, open, done, failed; // flows; open: from the SYN on
	// Of all flows, since the start.
	uint64_t acked_bytes, sent_segs, retransmits, timeouts;
	// Sums over the open flows that have measured a round trip: `measured` of them.
	uint64_t measured, srtt_ns;
	double cwnd_segs, pacing_bps; // a flow that is not paced adds 0
};

struct group_scan {
	const struct host *host;
	uint32_t next; // flow
	struct group_scan_sum group[GROUPS_MAX];
};

// Adds what the scan of another host found of the same group.
void group_scan_add(struct group_scan_sum *sum, const struct group_scan_sum *g);
void group_scan_begin(struct group_scan *s, const struct host *h);
// Looks at `n` more flows, or at as many as are left; false: all have been seen.
bool group_scan_step(struct group_scan *s, uint32_t n);
