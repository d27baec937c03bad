// SPDX-License-Identifier: BSD-3-Clause
// How many segments leave at once (bursts.c).
#pragma once
#include "sender/tcp/flow.h"

#define BURST_BYTES_MAX 65215 // sk_gso_max_size: 64 KB less the headers of all layers

// Segments of a burst of the largest size: what one socket buffer holds.
static inline uint32_t burst_segs_max(const struct flow *f) {
	return BURST_BYTES_MAX / f->payload;
}

// Segments of a full burst, of a group with `bursts`.
uint32_t burst_segs(const struct group *g, const struct flow *f);
// How many of them may leave now; 0: none, they wait for the ACK that makes room for more. `room`:
// what the congestion window has.
uint32_t burst_part(
	const struct flow *f, uint32_t size, int64_t room, bool retransmit, uint64_t now_ns);
// Whether no segment may follow `index` in its burst but for the end of the data, which has PSH of
// its own.
bool burst_ends(const struct flow *f, uint64_t index, bool retransmit);
