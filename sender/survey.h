// SPDX-License-Identifier: BSD-3-Clause
// How a host's flows are doing, per group, for people who watch a run.
//
// A look at 100 000 flows would hold packets up for milliseconds, so a survey takes a few of them at
// a time: its sums are of moments that lie as far apart as the survey takes.
#pragma once
#include "sender/host.h"

struct survey_group {
	uint64_t waiting, open, done, failed; // flows; open: from the SYN on
	// Of all flows, since the start.
	uint64_t acked_bytes, sent_segs, retransmits, timeouts;
	// Sums over the open flows that have measured a round trip: `measured` of them.
	uint64_t measured, srtt_ns;
	double cwnd_segs, pacing_bps; // a flow that is not paced adds 0
};

struct survey {
	const struct host *host;
	uint32_t next; // flow
	struct survey_group group[GROUPS_MAX];
};

// Adds what another host's survey found of the same group.
void survey_add(struct survey_group *sum, const struct survey_group *g);
void survey_begin(struct survey *s, const struct host *h);
// Looks at `n` more flows, or at as many as are left; false: all have been seen.
bool survey_step(struct survey *s, uint32_t n);
