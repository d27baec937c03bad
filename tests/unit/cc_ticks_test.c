// SPDX-License-Identifier: BSD-3-Clause
// Controls in a kernel that counts in ticks, of 4 ms here: Linux's arithmetic. Windows are whole
// segments, CUBIC computes anew each HZ/32 ticks, and Westwood+ knows RTTs in ticks.
#include "cc_test.h"

#include <math.h>

enum { SSTHRESH, BWE_BPS, RTT_MIN };
enum { DCTCP_ALPHA = 1 };
enum { CUBIC_W_MAX = 1, CUBIC_K, CUBIC_W_EST };
enum { CUBIC_SLOW_START, CUBIC_CONCAVE = 3 };
#define TICK (4 * MS)

static void ack_in_ticks(
	struct cc_bench *b, uint64_t now_ns, uint64_t rtt_ns, uint32_t segs, bool recovery) {
	struct cc_ack ack = cc_ack_of(b, now_ns, rtt_ns);

	ack.tick_ns = TICK;
	ack.acked_segs = ack.passed_segs = segs;
	ack.in_recovery = recovery;
	cc_ack(b, &ack);
}

// A control with a window of so many segments, which has seen that its host has ticks.
static void open_at(struct cc_bench *b, const char *name, double cwnd) {
	CC_OPEN(b, name, "initial", "10");
	ack_in_ticks(b, MS, MS, 1, false);
	b->out.cwnd_segs = cwnd;
}

// 40 segments fall to 28; then an ACK each 71 us, the RTT being 2 ms. W_est grows by one per 52
// segments, which the window learns 8 ticks later: times and windows are those of bictcp_update and
// tcp_cong_avoid_ai (6.12), computed by themselves.
TEST(cubic_overshoots_reno_by_what_it_did_not_look_at) {
	static const struct {
		uint64_t us;
		double cwnd;
	} steps[] = {{100000, 28}, {101917, 29}, {103905, 30}, {136068, 31}, {136281, 32},
		{137417, 36}, {139973, 45}, {204015, 46}, {205009, 47}, {207139, 49}, {240012, 50}};
	struct cc_bench b;
	uint64_t us = 100000;

	open_at(&b, "cubic", 40);
	cc_loss(&b, 50 * MS, 40, false);
	CWND_EQ(&b, 28);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (; us < steps[i].us; us += 71)
			ack_in_ticks(&b, us * NS_PER_US, 2 * MS, 1, false);
		ck_assert_double_le(b.out.cwnd_segs, steps[i].cwnd);
		ack_in_ticks(&b, us * NS_PER_US, 2 * MS, 1, false);
		us += 71;
		CWND_EQ(&b, steps[i].cwnd);
	}
}

// K, W_est and the part of the curve are shown as without ticks; Linux forgets W_max at a timeout.
TEST(cubic_shows_its_curve) {
	struct cc_bench b;

	open_at(&b, "cubic", 100.5);
	cc_loss(&b, 50 * MS, 100, false);
	ck_assert_double_eq(cc_observed(&b, CUBIC_W_MAX), 100);
	ack_in_ticks(&b, 1000 * MS, 100 * MS, 1, false);
	ck_assert_double_eq_tol(cc_observed(&b, CUBIC_K), cbrt(30 / 0.4), 0.02);
	ck_assert_double_eq(cc_observed(&b, CUBIC_W_EST), 70);
	ck_assert_int_eq(cc_mode(&b), CUBIC_CONCAVE);
	cc_rto(&b, 2000 * MS, 70);
	ck_assert_double_eq(cc_observed(&b, CUBIC_W_MAX), 0);
	ck_assert_int_eq(cc_mode(&b), CUBIC_SLOW_START);
}

// tcp_cong_avoid_ai: the part of a segment that was acknowledged is forgotten at a loss, and half
// of 25 is 12.
TEST(reno_has_whole_segments) {
	struct cc_bench b;

	open_at(&b, "newreno", 24);
	cc_loss(&b, 50 * MS, 24, false);
	CWND_EQ(&b, 12);
	for (int i = 0; i < 12 + 13 + 14; i++) {
		CWND_EQ(&b,
			i < 12		 ? 12 + i / 12.0
				: i < 25 ? 13 + (i - 12) / 13.0
					 : 14 + (i - 25) / 14.0);
		ack_in_ticks(&b, 100 * MS, 10 * MS, 1, false);
	}
	CWND_EQ(&b, 15);
	b.out.cwnd_segs = 25 + 24.0 / 25;
	cc_loss(&b, 200 * MS, 25, false);
	CWND_EQ(&b, 12);
	for (int i = 0; i < 11; i++)
		ack_in_ticks(&b, 300 * MS, 10 * MS, 1, false);
	ck_assert_double_lt(b.out.cwnd_segs, 13);
	ack_in_ticks(&b, 300 * MS, 10 * MS, 1, false);
	CWND_EQ(&b, 13);
}

// Westwood+: 20 ms and a nanosecond are six ticks; the window of the episode is half, the estimate
// follows at its end. 30 segments in the 56 ms up to the ACK: 13 ticks are the first more than 50
// ms (12 ticks).
TEST(westwood_goes_up_to_its_estimate_when_the_episode_is_over) {
	struct cc_bench b;

	CC_OPEN(&b, "westwood", "initial", "20", "dialect", "linux");
	ack_in_ticks(&b, 51 * MS, 20 * MS + 1, 30, false); // the 12th tick
	ck_assert_double_eq(cc_observed(&b, RTT_MIN), 6 * TICK);
	ck_assert_double_eq(cc_observed(&b, BWE_BPS), 0);
	ack_in_ticks(&b, 13 * TICK, 20 * MS + 1, 1, false);
	NEAR(cc_observed(&b, BWE_BPS), 30 / 0.052 * MSS * 8);
	b.out.cwnd_segs = 20;
	cc_loss(&b, 60 * MS, 20, false);
	CWND_EQ(&b, 10);
	ack_in_ticks(&b, 70 * MS, 20 * MS, 1, true);
	CWND_EQ(&b, 10);
	ack_in_ticks(&b, 80 * MS, 20 * MS, 0, false); // 30 / 52 ms * 20 ms = 11.5
	CWND_EQ(&b, 11);
}

// tcp_illinois_cong_avoid: alpha 10 adds a segment for each tenth of a window, and forgets what is
// over.
TEST(illinois_forgets_what_is_over) {
	struct cc_bench b;

	open_at(&b, "illinois", 40);
	cc_loss(&b, 50 * MS, 40, false);
	CWND_EQ(&b, 20); // beta is 1/2 before the first round trip
	ack_in_ticks(&b, 100 * MS, MS, 1, false);
	CWND_EQ(&b, 20); // 10 of 20
	ack_in_ticks(&b, 100 * MS, MS, 2, false);
	CWND_EQ(&b, 21); // 30 of 20: one, and 10 are forgotten
	ack_in_ticks(&b, 100 * MS, MS, 2, false);
	CWND_EQ(&b, 21); // 20 of 21
}

// dctcp_update_alpha: alpha is a number of 1024ths, in integers here, and one mark of 100 segments
// is none; below 16 it falls to 0 at once.
TEST(dctcp_counts_alpha_in_1024ths) {
	static const uint32_t marks[] = {0, 40, 0, 0, 1, 2, 3, 100};
	uint32_t alpha = 1024;
	uint64_t now_ns = MS;
	struct cc_bench b;

	CC_OPEN(&b, "dctcp", "initial", "10");
	for (int i = 0; i < 200; i++) {
		uint32_t marked = i < 80 ? 0 : marks[i % 8];
		struct cc_ack ack = cc_ack_of(&b, now_ns, MS);

		ack.tick_ns = TICK;
		ack.acked_segs = 100;
		ack.ce_segs = marked;
		cc_ack(&b, &ack);
		alpha -= (alpha >> 4) > 0 ? alpha >> 4 : alpha;
		alpha += (marked << 6) / 100;
		ck_assert_double_eq(cc_observed(&b, DCTCP_ALPHA), alpha / 1024.0);
		ck_assert(i != 79 || alpha == 0);
		now_ns += MS;
	}
	ck_assert_uint_gt(alpha, 100);
}
