// SPDX-License-Identifier: BSD-3-Clause
// A path by hand for BBR version 3: one flight per step.
#pragma once
#include "cc_test.h"

enum { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT };
enum { BW, MIN_RTT, LONG, SHORT };

#define RTT (10 * MS)
#define BW_BPS 80e6 // 100 segments of 1000 bytes per round trip
#define BDP 100

struct wire {
	struct cc_bench b;
	uint64_t now_ns, delivered;
	struct cc_ack next; // what the next ACKs say
};

// One ACK a round trip after the last: a flight of `acked` segments has arrived, of which `lost`
// more did not.
static inline void flight(struct wire *w, uint32_t acked, uint32_t lost) {
	struct cc_ack ack = w->next;

	w->now_ns += RTT;
	ack.now_ns = w->now_ns;
	ack.srtt_ns = ack.rtt_min_ns = ack.rtt_ns;
	ack.sent_ns = w->now_ns - RTT;
	ack.interval_ns = RTT;
	ack.prior_delivered_segs = w->delivered;
	w->delivered += acked;
	ack.delivered_segs = w->delivered;
	ack.acked_segs = acked;
	ack.lost_segs = lost;
	ack.prior_inflight_segs = ack.inflight_segs + acked;
	ack.cwnd_limited = true;
	cc_ack(&w->b, &ack);
}

static inline int mode(const struct wire *w) {
	return cc_mode(&w->b);
}

static inline double obs(const struct wire *w, int i) {
	return cc_observed(&w->b, i);
}

static inline void wire_open(struct wire *w, const char *const *set) {
	memset(w, 0, sizeof(*w));
	cc_open(&w->b, "bbr3", set);
	w->now_ns = 1000 * MS;
	w->next = (struct cc_ack){.delivery_bps = BW_BPS, .rtt_ns = RTT, .inflight_segs = BDP + 1};
}

// Out of Startup at 80 Mbit/s; Drain waits for one segment to leave.
static inline void fill(struct wire *w, const char *const *set) {
	wire_open(w, set);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(mode(w), STARTUP);
		flight(w, BDP, 0);
	}
	ck_assert_int_eq(mode(w), DRAIN);
}

static inline void cruise(struct wire *w, const char *const *set) {
	fill(w, set);
	w->next.inflight_segs = BDP;
	flight(w, BDP, 0); // Drain, DOWN and CRUISE share one condition while nothing was lost
	ck_assert_int_eq(mode(w), CRUISE);
}

static inline void up(struct wire *w, const char *const *set) {
	cruise(w, set);
	for (int i = 0; mode(w) == CRUISE; i++)
		flight(w, BDP, 0);
	ck_assert_int_eq(mode(w), REFILL);
	flight(w, BDP, 0);
	ck_assert_int_eq(mode(w), UP);
}

// An ACK within a round trip, of segments that left when `sent_at` had been delivered.
static inline void within(struct wire *w, uint64_t after_ns, uint32_t acked, uint64_t sent_at) {
	struct cc_ack ack = w->next;

	ack.now_ns = w->now_ns += after_ns;
	ack.srtt_ns = ack.rtt_min_ns = ack.rtt_ns;
	ack.sent_ns = ack.now_ns - ack.rtt_ns;
	ack.interval_ns = ack.rtt_ns;
	ack.prior_delivered_segs = sent_at;
	ack.delivered_segs = w->delivered += acked;
	ack.acked_segs = acked;
	ack.prior_inflight_segs = ack.inflight_segs + acked;
	ack.cwnd_limited = true;
	cc_ack(&w->b, &ack);
}

static inline void spurious(struct wire *w) {
	w->b.ops->on_spurious(w->b.state, w->b.config, w->now_ns, &w->b.out);
}
