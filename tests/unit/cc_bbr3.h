// SPDX-License-Identifier: BSD-3-Clause
// A path by hand for BBR version 3: one flight per step.
#pragma once
#include "cc_test.h"

enum { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT };
enum { BW, MIN_RTT, LONG, SHORT };

#define RTT (10 * MS)
#define BW_BPS 80e6 // 100 segments of 1000 bytes per round trip
#define BDP 100

// A flight of `acked` segments has arrived, a round trip after the last; `lost` more did not.
static inline void flight(struct cc_bench *b, uint32_t acked, uint32_t lost) {
	b->next.lost_segs = lost;
	cc_step(b, RTT, acked, b->delivered);
	b->next.lost_segs = 0;
}

static inline void open_bbr3(struct cc_bench *b, const char *const *set) {
	cc_open(b, "bbr3", set);
	b->now_ns = 1000 * MS;
	b->next = (struct cc_ack){.delivery_bps = BW_BPS, .rtt_ns = RTT, .inflight_segs = BDP + 1};
}

// Out of Startup at 80 Mbit/s; Drain waits for one segment to leave.
static inline void fill(struct cc_bench *b, const char *const *set) {
	open_bbr3(b, set);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(cc_mode(b), STARTUP);
		flight(b, BDP, 0);
	}
	ck_assert_int_eq(cc_mode(b), DRAIN);
}

static inline void cruise(struct cc_bench *b, const char *const *set) {
	fill(b, set);
	b->next.inflight_segs = BDP;
	flight(b, BDP, 0); // Drain, DOWN and CRUISE share one condition while nothing was lost
	ck_assert_int_eq(cc_mode(b), CRUISE);
}

static inline void up(struct cc_bench *b, const char *const *set) {
	cruise(b, set);
	for (int i = 0; cc_mode(b) == CRUISE; i++)
		flight(b, BDP, 0);
	ck_assert_int_eq(cc_mode(b), REFILL);
	flight(b, BDP, 0);
	ck_assert_int_eq(cc_mode(b), UP);
}

// Up again, after a probe that lost too much.
static inline void up_after_loss(struct cc_bench *b) {
	up(b, NULL);
	b->next.inflight_segs = 2 * BDP;
	flight(b, BDP, 3);
	b->next.inflight_segs = 40;
	while (cc_mode(b) != UP)
		flight(b, 20, 0);
}
