// SPDX-License-Identifier: BSD-3-Clause
// The congestion controls within Weir. Their interface is public: common/weir/cc.h.
#pragma once
#include "common/base/ns.h"
#include "common/weir/cc.h"

// What the transport can count and time of a control from outside: no flow has as many segments in
// flight, and none is paced more slowly.
#define CC_WINDOW_MAX 1e9
#define CC_PACING_MIN 1
#define CC_PACING_MAX 1e15
static inline void cc_bound(struct cc_out *out) {
	if (out->cwnd_segs > CC_WINDOW_MAX)
		out->cwnd_segs = CC_WINDOW_MAX;
	if (out->pacing_bps > CC_PACING_MAX)
		out->pacing_bps = CC_PACING_MAX;
	if (out->pacing_bps > 0 && out->pacing_bps < CC_PACING_MIN)
		out->pacing_bps = CC_PACING_MIN;
}

extern const struct cc_ops *const cc_all[]; // ends with NULL
const struct cc_ops *cc_find(const char *name);
