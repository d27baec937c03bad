// SPDX-License-Identifier: BSD-3-Clause
// BBR's measure of ACK aggregation: how many more segments than bandwidth x time were acknowledged
// while ACKs came in batches, at most in the last 5 to 10 round trips (Linux,
// bbr_update_ack_aggregation; draft-ietf-ccwg-bbr, 5.5.9, whose window of rounds is bbr3.c's).
//
//	excess  = acknowledged since the interval began - bandwidth x its length, at most the window
//	          the next interval begins when ACKs have fallen behind the bandwidth, or after
//	          2^20 segments
//	result  = the largest excess; kept in two halves of `rounds` round trips, the older of
//	          which is replaced
#pragma once
#include "common/base/f64.h"
#include "sender/cc/cc.h"

#define EXTRA_ROUNDS 5 // of each half
#define EXTRA_SEGS_MAX (1u << 20)

struct extra_acked {
	uint64_t start_ns; // of the interval
	uint32_t segs; // acknowledged in it
	float half[2]; // largest excess
	uint8_t now, rounds; // the present half, and how many rounds it has lasted
};

static inline void extra_acked_restart(struct extra_acked *e, uint64_t now_ns) {
	e->start_ns = now_ns;
	e->segs = 0;
}

// To be called at the start of a round; `rounds`: how long a half lasts.
static inline void extra_acked_round(struct extra_acked *e, uint8_t rounds) {
	if (++e->rounds < rounds)
		return;
	e->rounds = 0;
	e->now ^= 1;
	e->half[e->now] = 0;
}

// An ACK, at a bandwidth of rate_bps: the excess.
static inline double extra_acked_excess(struct extra_acked *e, const struct cc_ack *ack,
	double rate_bps, uint32_t mss_bits, double cwnd_segs) {
	double expected = rate_bps * f64_of(ack->now_ns - e->start_ns) * 1e-9 / mss_bits;

	if (e->segs <= expected || e->segs + ack->acked_segs >= EXTRA_SEGS_MAX) {
		extra_acked_restart(e, ack->now_ns);
		expected = 0;
	}
	e->segs += ack->acked_segs;
	return min_f64(e->segs - expected, cwnd_segs);
}

static inline void extra_acked_add(struct extra_acked *e, const struct cc_ack *ack, double rate_bps,
	uint32_t mss_bits, double cwnd_segs) {
	double excess = extra_acked_excess(e, ack, rate_bps, mss_bits, cwnd_segs);

	e->half[e->now] = (float)max_f64((double)e->half[e->now], excess);
}

static inline double extra_acked_segs(const struct extra_acked *e) {
	return (double)(e->half[0] > e->half[1] ? e->half[0] : e->half[1]);
}
