// SPDX-License-Identifier: BSD-3-Clause
// Records of the segments of TCP flows at their sender (telemetry.segments), as weir-pcap makes
// them of a capture: for time-sequence graphs. A group of guests has none, as their kernels send.
#pragma once
#include "common/net/seg.h"
#include "common/telemetry/telemetry.h"
#include "sender/group/group.h"

struct flow;
struct segments_flow;

struct segments {
	struct tel *tel;
	const struct tel_run *run;
	const struct groups *groups;
	struct segments_flow *flow; // NULL: they are not recorded
};

// -ENOMEM: there is no memory for so many flows.
int segments_init(struct segments *x, struct tel *tel, const struct tel_run *run,
	const struct groups *groups, struct err *err);
void segments_fini(struct segments *x);
// `n` segments of one length leave the flow, `first` the first.
void segments_sent(struct segments *x, const struct flow *f, const struct seg *first, uint32_t n,
	uint8_t ecn, uint64_t now_ns);
// One comes to the flow, which has not processed it yet.
void segments_received(struct segments *x, const struct flow *f, const struct seg *s, uint8_t ecn,
	uint64_t now_ns);
