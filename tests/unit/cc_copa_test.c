// SPDX-License-Identifier: BSD-3-Clause
#include "cc_test.h"

#include <math.h>

enum { SLOW_START, DEFAULT, COMPETITIVE };
enum { VELOCITY, DELTA, DQ_NS, RTT_MIN_NS };

// Out of slow start by a loss, with RTTmin = RTTstanding = rtt and the initial window.
static void open_default(struct cc_bench *b, uint64_t rtt_ns, const char *const *set) {
	struct cc_ack ack;

	cc_open(b, "copa", set);
	ck_assert_int_eq(cc_set(b, "loss_exit", "yes"), 0);
	ack = cc_ack_of(b, 1000 * MS, rtt_ns);
	ack.cwnd_limited = false;
	cc_ack(b, &ack);
	cc_loss(b, 1000 * MS, 10, false);
	ck_assert_int_ne(cc_mode(b), SLOW_START);
}
#define OPEN_DEFAULT(b, rtt_ns, ...)                                                               \
	open_default(b, rtt_ns, (const char *const[]){__VA_ARGS__, NULL})

// One ACK per round trip, which was sent with the window that the last one left.
static void next_round(struct cc_bench *b, uint64_t *now_ns, uint64_t rtt_ns) {
	*now_ns += rtt_ns;
	cc_ack_n(b, 1, *now_ns, rtt_ns);
}

TEST(slow_start_doubles_per_round_trip) {
	struct cc_bench b;
	struct cc_ack ack;

	cc_open(&b, "copa", NULL);
	CWND_EQ(&b, 10);
	ck_assert_double_eq(b.out.pacing_bps, 0); // no RTT yet
	cc_ack_n(&b, 10, 50 * MS, 50 * MS);
	CWND_EQ(&b, 20);
	// 2 cwnd / RTTstanding = 2 * 20 * 8000 bit / 50 ms
	ck_assert_double_eq_tol(b.out.pacing_bps, 6.4e6, 1e-3);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	ack = cc_ack_of(&b, 60 * MS, 50 * MS);
	ack.acked_segs = 3;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 23);
	ack.cwnd_limited = false;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 23);
}

// mvfst's vector, adapted: RTTmin 50 ms, then 150 ms ends slow start and 10 segments become 9.8.
TEST(slow_start_ends_with_the_window_that_was_measured) {
	struct cc_bench b;
	struct cc_ack ack;

	CC_OPEN(&b, "copa", "slow_start_exit", "sent", "exit_gain", "1");
	cc_ack_n(&b, 10, 50 * MS, 50 * MS);
	ack = cc_ack_of(&b, 500 * MS, 150 * MS);
	ack.cwnd_at_send = 10;
	cc_ack(&b, &ack);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
	CWND_EQ(&b, 10 - 1 / (0.5 * 10));
	ck_assert_double_eq(cc_observed(&b, DQ_NS), 100e6);
	ck_assert_double_eq(cc_observed(&b, RTT_MIN_NS), 50e6);
	// For two round trips at 1.1 cwnd / RTTstanding, then at 2.
	ck_assert_double_eq_tol(b.out.pacing_bps, 1.1 * 9.8 * 8000 / 0.15, 1e-3);
	cc_ack_n(&b, 1, 650 * MS, 150 * MS);
	ck_assert_double_eq_tol(b.out.pacing_bps, 1.1 * b.out.cwnd_segs * 8000 / 0.15, 1e-3);
	cc_ack_n(&b, 1, 800 * MS, 150 * MS);
	ck_assert_double_eq_tol(b.out.pacing_bps, 2 * b.out.cwnd_segs * 8000 / 0.15, 1e-3);

	CC_OPEN(&b, "copa", "pacing_gain", "1.25", "spread", "2");
	cc_ack_n(&b, 10, 50 * MS, 50 * MS);
	ck_assert_double_eq_tol(b.out.pacing_bps, 2 * b.out.cwnd_segs * 8000 / 0.05, 1e-3);
	cc_ack(&b, &ack);
	cc_ack_n(&b, 1, 650 * MS, 150 * MS);
	cc_ack_n(&b, 1, 800 * MS, 150 * MS);
	ck_assert_double_eq_tol(b.out.pacing_bps, 1.25 * b.out.cwnd_segs * 8000 / 0.15, 1e-3);

	cc_open(&b, "copa", NULL);
	cc_ack_n(&b, 10, 50 * MS, 50 * MS);
	cc_ack(&b, &ack);
	// Of the window that was sent a third needs no queue, and 0.95 of that is taken.
	NEAR(b.out.cwnd_segs, 9.5 / 3 - 3 / (0.5 * 9.5));

	CC_OPEN(&b, "copa", "slow_start_exit", "keep");
	cc_ack_n(&b, 10, 50 * MS, 50 * MS);
	ack.cwnd_at_send = 10;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 20 - 1 / (0.5 * 20));

	// It never raises the window: that may have been cut since the segment was sent.
	cc_open(&b, "copa", NULL);
	cc_ack_n(&b, 10, 50 * MS, 50 * MS);
	ack.cwnd_at_send = 40;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 20 - 1 / (0.5 * 20));
}

// lambda = lambda_t exactly at (10 - 0.5) delta dq = RTTstanding: RTTmin 15 ms, RTT 19 ms, delta
// 0.5. RTTs of 19 ms are kept to 2 ns.
TEST(the_target_itself_goes_up) {
	static const struct {
		uint64_t rtt_ns;
		double cwnd;
	} cases[] = {{19 * MS - 2, 10.2}, {19 * MS, 10.2}, {19 * MS + 2, 9.8}, {15 * MS, 10.2}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cc_bench b;

		open_default(&b, 15 * MS, NULL);
		cc_ack_n(&b, 1, 1500 * MS, cases[i].rtt_ns);
		CWND_EQ(&b, cases[i].cwnd);
	}
}

TEST(steps_by_acked_over_delta_cwnd) {
	struct cc_bench b;
	struct cc_ack ack;

	OPEN_DEFAULT(&b, 20 * MS, "delta", "0.1");
	ack = cc_ack_of(&b, 1100 * MS, 20 * MS);
	ack.acked_segs = 2;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 10 + 2 / (0.1 * 10));
}

TEST(lambda_uses_the_window_sent_or_todays) {
	static const struct {
		const char *window;
		double cwnd; // sent with 8 segments: below the target; with 12: above
	} cases[] = {{"sent", 12 + 1 / 6.0}, {"now", 12 - 1 / 6.0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cc_bench b;
		struct cc_ack ack;

		OPEN_DEFAULT(&b, 15 * MS, "initial", "12", "window", cases[i].window);
		ack = cc_ack_of(&b, 1100 * MS, 19 * MS);
		ack.cwnd_at_send = 8;
		cc_ack(&b, &ack);
		CWND_EQ(&b, cases[i].cwnd);
	}
}

TEST(grows_only_at_the_limit_but_shrinks_always) {
	struct cc_bench b;
	struct cc_ack ack;

	open_default(&b, 15 * MS, NULL);
	ack = cc_ack_of(&b, 1100 * MS, 15 * MS);
	ack.cwnd_limited = false;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 10);
	ack = cc_ack_of(&b, 1500 * MS, 30 * MS);
	ack.cwnd_limited = false;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 9.8);
}

TEST(velocity_doubles_after_six_more_round_trips) {
	static const double want[] = {1, 1, 1, 1, 1, 1, 2, 4, 8, 16};
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	next_round(&b, &now_ns, 20 * MS); // the first step up: no direction yet
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		double before = b.out.cwnd_segs, sent = before - 0.5;
		struct cc_ack ack = cc_ack_of(&b, now_ns += 20 * MS, 20 * MS);

		ack.cwnd_at_send = sent;
		cc_ack(&b, &ack);
		ck_assert_double_eq(cc_observed(&b, VELOCITY), want[i]);
		CWND_EQ(&b, before + want[i] / (0.5 * before));
	}
	// Once per window only: a second ACK of the same window does not count.
	struct cc_ack ack = cc_ack_of(&b, now_ns + MS, 20 * MS);

	ack.sent_ns = now_ns - MS;
	ack.cwnd_at_send = 1;
	cc_ack(&b, &ack);
	ck_assert_double_eq(cc_observed(&b, VELOCITY), 16);
}

// A queue is drained sooner than the rate grows: what drains it is bounded by the queue itself.
TEST(velocity_doubles_downward_after_three) {
	static const double want[] = {1, 1, 1, 2, 4, 8};
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "1000", "drain_cap", "0");
	next_round(&b, &now_ns, 60 * MS);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cc_ack ack = cc_ack_of(&b, now_ns += 60 * MS, 60 * MS);

		ack.cwnd_at_send += 0.5;
		cc_ack(&b, &ack);
		ck_assert_double_eq(cc_observed(&b, VELOCITY), want[i]);
	}
}

// Runs velocity up to v.
static uint64_t speed_up(struct cc_bench *b, double v) {
	uint64_t now_ns = 1000 * MS;

	while (cc_observed(b, VELOCITY) < v) {
		struct cc_ack ack = cc_ack_of(b, now_ns += 20 * MS, 20 * MS);

		ack.cwnd_at_send -= 0.5;
		cc_ack(b, &ack);
		ck_assert_uint_lt(now_ns, 2000 * MS);
	}
	return now_ns;
}

TEST(velocity_resets_as_soon_as_the_need_turns) {
	struct cc_bench b;
	struct cc_ack ack;
	uint64_t now_ns;
	double before;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	now_ns = speed_up(&b, 8);
	before = b.out.cwnd_segs;
	// In the middle of a round trip; 13 ms later only the new RTT is in the standing window.
	ack = cc_ack_of(&b, now_ns + 13 * MS, 30 * MS);
	ack.sent_ns = now_ns - 5 * MS;
	cc_ack(&b, &ack);
	ck_assert_double_eq(cc_observed(&b, VELOCITY), 1);
	CWND_EQ(&b, before - 1 / (0.5 * before));

	// Without the rule it goes on until the next check.
	OPEN_DEFAULT(&b, 20 * MS, "initial", "100", "velocity_reset", "no", "drain_cap", "0");
	now_ns = speed_up(&b, 8);
	before = b.out.cwnd_segs;
	cc_ack(&b, &ack);
	ck_assert_double_eq(cc_observed(&b, VELOCITY), 8);
	CWND_EQ(&b, before - 8 / (0.5 * before));
}

TEST(an_unchanged_window_has_no_direction) {
	struct cc_bench b;
	uint64_t now_ns;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	now_ns = speed_up(&b, 4);
	next_round(&b, &now_ns, 20 * MS); // cwnd_at_send == cwnd
	ck_assert_double_eq(cc_observed(&b, VELOCITY), 1);
	// As floats: a difference below their resolution is none either.
	now_ns = speed_up(&b, 4);
	struct cc_ack ack = cc_ack_of(&b, now_ns + 20 * MS, 20 * MS);

	ack.cwnd_at_send -= 1e-9;
	cc_ack(&b, &ack);
	ck_assert_double_eq(cc_observed(&b, VELOCITY), 1);
	// No direction is not a direction that lasts.
	for (int i = 0; i < 8; i++) {
		ack = cc_ack_of(&b, now_ns += 20 * MS, 20 * MS);
		ack.cwnd_limited = false;
		cc_ack(&b, &ack);
		ck_assert_double_eq(cc_observed(&b, VELOCITY), 1);
	}
}

TEST(velocity_is_at_most_delta_cwnd) {
	struct cc_bench b;
	struct cc_ack ack;
	double cwnd, cap;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "12");
	speed_up(&b, 4);
	cwnd = b.out.cwnd_segs;
	ack = cc_ack_of(&b, 3000 * MS, 20 * MS);
	ack.cwnd_at_send -= 0.5;
	cc_ack(&b, &ack); // wants 8
	cap = 0.5 * cwnd < 8 ? 0.5 * cwnd : 8;
	ck_assert_double_lt(cap, 8);
	ck_assert_double_eq_tol(cc_observed(&b, VELOCITY), cap, 1e-5);
	CWND_EQ(&b, cwnd + 1); // v / (delta cwnd) = 1: no faster than slow start
}

TEST(draining_is_at_most_the_own_queue) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	// lambda / lambda_t = (100.5 - 0.5) 0.5 2 / 22 = 4.55: v may reach 3.55 downwards.
	OPEN_DEFAULT(&b, 20 * MS, "initial", "100", "drain_cap", "1");
	for (int i = 0; i < 8; i++) {
		struct cc_ack ack = cc_ack_of(&b, now_ns += 22 * MS, 22 * MS);

		b.out.cwnd_segs = 100;
		ack.cwnd_at_send = 100.5;
		cc_ack(&b, &ack);
	}
	ck_assert_double_eq_tol(cc_observed(&b, VELOCITY), 100.0 * 0.5 * 2 / 22 - 1, 1e-5);
	CWND_EQ(&b, 100 - (100.0 * 0.5 * 2 / 22 - 1) / 50);
}

TEST(standing_rtt_is_the_minimum_of_half_an_srtt) {
	struct cc_bench b;
	uint64_t rose_ns = 0;

	// srtt 140 ms, later 150 ms: sub-windows of 10 ms, later 10.7 ms, eight of them.
	open_default(&b, 90 * MS, NULL);
	for (uint64_t t = 2000; t < 2400; t++) {
		struct cc_ack ack = cc_ack_of(&b, t * MS, t < 2203 ? 140 * MS : 150 * MS);

		// The transport's, with the waits of delayed ACKs: not the one that counts.
		ack.srtt_ns = 300 * MS;
		cc_ack(&b, &ack);
		if (t == 2300) { // one low sample counts at once
			ack.rtt_ns = 130 * MS;
			cc_ack(&b, &ack);
			ck_assert_double_eq(cc_observed(&b, DQ_NS), 40e6);
		}
		if (rose_ns == 0 && cc_observed(&b, DQ_NS) > 50e6)
			rose_ns = t * MS;
	}
	// The last 140 ms sample was at 2202: forgotten 1/2 to 4/7 of an srtt later.
	ck_assert_uint_gt(rose_ns, (2202 + 140 / 2) * MS);
	ck_assert_uint_le(rose_ns, (2202 + 150 * 4 / 7 + 1) * MS);
	ck_assert_double_eq(cc_observed(&b, DQ_NS), 60e6);
}

TEST(standing_rtt_forgets_a_silence) {
	struct cc_bench b;

	open_default(&b, 100 * MS, NULL);
	cc_ack_n(&b, 1, 2000 * MS, 150 * MS);
	cc_ack_n(&b, 1, 2020 * MS, 160 * MS);
	ck_assert_double_eq(cc_observed(&b, DQ_NS), 50e6);
	cc_ack_n(&b, 1, 9000 * MS, 170 * MS);
	ck_assert_double_eq(cc_observed(&b, DQ_NS), 70e6);
}

TEST(rtt_min_expires_after_ten_seconds_or_a_hundred_round_trips) {
	static const struct {
		uint64_t rtt_ms, expires_s;
		const char *rtts;
	} cases[] = {{20, 10, "100"}, {800, 80, "100"}, {800, 10, "0"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rtt_ns = cases[i].rtt_ms * MS, t = 1000 * MS;
		struct cc_bench b;

		OPEN_DEFAULT(&b, rtt_ns, "rtt_min_rtts", cases[i].rtts);
		while (cc_observed(&b, RTT_MIN_NS) < (double)rtt_ns * 1.05)
			cc_ack_n(&b, 1, t += 10 * MS, rtt_ns * 11 / 10);
		ck_assert_uint_eq((t - 1000 * MS) / (1000 * MS), cases[i].expires_s);
	}
}

TEST(default_mode_ignores_loss) {
	struct cc_bench b;

	open_default(&b, 20 * MS, NULL);
	for (int i = 0; i < 100; i++)
		cc_loss(&b, (uint64_t)(1000 + 10 * i) * MS, 10, false);
	CWND_EQ(&b, 10);
	ck_assert_double_eq(cc_observed(&b, DELTA), 0.5);
}

// One round trip with `lost` of 10 segments lost.
static void lossy_round(struct cc_bench *b, uint64_t *now_ns, uint32_t lost) {
	struct cc_ack ack = cc_ack_of(b, *now_ns += 20 * MS, 20 * MS);

	ack.acked_segs = 10 - lost;
	ack.lost_segs = lost;
	ack.cwnd_limited = false;
	cc_ack(b, &ack);
}

TEST(heavy_loss_halves_and_turns_down_until_it_ends) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	// Of 20 segments, 6 are within three sigma of 10 %: 2 + 3 sqrt(1.8) = 6.02.
	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	lossy_round(&b, &now_ns, 3);
	lossy_round(&b, &now_ns, 3);
	CWND_EQ(&b, 100);
	lossy_round(&b, &now_ns, 4); // 7 of 20
	CWND_EQ(&b, 50 - 6 / (0.5 * 50));
	cc_ack_n(&b, 1, now_ns + MS, 20 * MS); // down, though nothing is queued
	CWND_EQ(&b, 49.76 - 1 / (0.5 * 49.76));
	lossy_round(&b, &now_ns, 0); // counted from the cut on
	cc_ack_n(&b, 1, now_ns + MS, 20 * MS);
	ck_assert_double_gt(b.out.cwnd_segs, 49.7);

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100", "heavy_loss", "0%");
	for (int i = 0; i < 10; i++)
		lossy_round(&b, &now_ns, 9);
	CWND_EQ(&b, 100);
}

// Heavy loss ends slow start with half of the window; the exit by delay, the window without the
// queue, is not taken as well.
TEST(heavy_loss_ends_slow_start) {
	struct cc_bench b;
	struct cc_ack ack;

	CC_OPEN(&b, "copa", "initial", "80");
	ack = cc_ack_of(&b, 50 * MS, 50 * MS);
	ack.cwnd_limited = false;
	ack.acked_segs = 20;
	ack.lost_segs = 20;
	ack.cwnd_at_send = 30;
	cc_ack(&b, &ack);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
	CWND_EQ(&b, 40 - 20 / (0.5 * 40));
}

// A flow of few segments per round trip that loses most of them is judged as soon as ten have come
// together, over as many round trips as that takes; nine say nothing yet.
TEST(a_loss_rate_of_nine_segments_says_nothing) {
	static const struct {
		uint32_t acked, lost;
		double cwnd;
	} rounds[] = {{1, 2, 100}, {1, 2, 100}, {1, 1, 100}, {1, 0, 50 - 1 / (0.5 * 50)}};
	struct cc_bench b;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100"); // one is acknowledged
	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		struct cc_ack ack = cc_ack_of(&b, (1020 + 20 * i) * MS, 20 * MS);

		ack.acked_segs = rounds[i].acked;
		ack.lost_segs = rounds[i].lost;
		ack.cwnd_limited = false;
		cc_ack(&b, &ack);
		CWND_EQ(&b, rounds[i].cwnd); // 5 of 10: three sigma are at 1 + 3 sqrt(0.9) = 3.85
	}
}

// Of n segments np are lost on average, with a standard deviation of sqrt(n p (1 - p)). A round
// trip is judged together with the one before, and alone after a cut.
TEST(heavy_loss_is_three_sigma_beyond_the_given_rate) {
	static const struct {
		const char *rate;
		uint32_t lost[3]; // of 50 segments each
		double cwnd[3];
	} cases[] = {
		{"20%", {16, 16, 16}, {100, 100, 100}}, // of 100: 20 + 3 sqrt(16) = 32
		{"20%", {16, 17, 18}, {100, 50, 50}}, // of 50: 10 + 3 sqrt(8) = 18.5
		{"20%", {16, 17, 19}, {100, 50, 25}},
		{"20%", {16, 17, 0}, {100, 50, 50}},
		{"50%", {32, 33, 32}, {100, 100, 100}}, // of 100: 50 + 3 sqrt(25) = 65
		{"50%", {33, 33, 35}, {100, 50, 50}}, // of 50: 25 + 3 sqrt(12.5) = 35.6
		{"50%", {33, 33, 36}, {100, 50, 25}},
		{"100%", {50, 50, 50}, {100, 100, 100}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cc_bench b;

		OPEN_DEFAULT(&b, 20 * MS, "initial", "100", "heavy_loss", cases[i].rate, "delta",
			"100"); // a step is too small to be seen
		for (uint64_t k = 0; k < 3; k++) {
			struct cc_ack ack = cc_ack_of(&b, (1020 + 20 * k) * MS, 20 * MS);

			ack.lost_segs = cases[i].lost[k];
			ack.acked_segs = 50 - ack.lost_segs;
			ack.cwnd_limited = false;
			cc_ack(&b, &ack);
			ck_assert_double_eq_tol(b.out.cwnd_segs, cases[i].cwnd[k], 0.1);
		}
	}
}

TEST(an_echo_of_congestion_halves_and_ends_slow_start) {
	struct cc_bench b;

	CC_OPEN(&b, "copa", "initial", "40");
	cc_ack_n(&b, 1, 20 * MS, 20 * MS);
	cc_loss(&b, 21 * MS, 40, true);
	CWND_EQ(&b, 20.5);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
	// In default mode it ends the acceleration upwards.
	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	cc_loss(&b, speed_up(&b, 8) + 1, 100, true);
	ck_assert_double_eq(cc_observed(&b, VELOCITY), 1);
}

TEST(a_timeout_restarts_from_the_minimum) {
	struct cc_bench b;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "40");
	cc_rto(&b, 1500 * MS, 40);
	CWND_EQ(&b, 2);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	cc_ack_n(&b, 2, 2000 * MS, 20 * MS);
	CWND_EQ(&b, 4);
	cc_loss(&b, 2000 * MS, 4, false); // below half of the old window: no end
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	cc_ack_n(&b, 16, 2010 * MS, 20 * MS);
	CWND_EQ(&b, 20);
	// ACKs of retransmissions give no RTT, but slow start needs them.
	struct cc_ack ack = cc_ack_of(&b, 2015 * MS, 0);

	ack.acked_segs = 3;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 23);
	ack.cwnd_limited = false;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 23);
	cc_loss(&b, 2020 * MS, 20, false);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
}

// What the last slow start has left, its spread pacing, and heavy losses of before the timeout are
// over.
TEST(slow_start_after_a_timeout_is_as_the_first) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	for (int i = 0; i < 2; i++)
		lossy_round(&b, &now_ns, 9);
	ck_assert_double_lt(b.out.cwnd_segs, 51);
	cc_rto(&b, 1500 * MS, 40);
	cc_ack_n(&b, 2, 2000 * MS, 20 * MS);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	CWND_EQ(&b, 4);

	CC_OPEN(&b, "copa", "initial", "100");
	cc_ack_n(&b, 1, 50 * MS, 50 * MS);
	cc_loss(&b, 60 * MS, 100, false);
	cc_rto(&b, 500 * MS, 100);
	cc_ack_n(&b, 2, 600 * MS, 50 * MS);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	ck_assert_double_eq_tol(b.out.pacing_bps, 2 * 4 * 8000 / 0.05, 1e-3);
}

// Only late, RFC 4015: a window of 2 was left, and slow start.
TEST(a_spurious_timeout_is_taken_back) {
	struct cc_bench b;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "40");
	cc_rto(&b, 1500 * MS, 40);
	cc_rto_repeated(&b, 3000 * MS, 2);
	CWND_EQ(&b, 2);
	b.ops->on_spurious(b.state, b.config, 3500 * MS, &b.out);
	CWND_EQ(&b, 40);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
}

TEST(idling_restarts_from_the_initial_window) {
	struct cc_bench b;

	open_default(&b, 20 * MS, NULL);
	for (int i = 0; i < 50; i++)
		cc_ack_n(&b, 1, 1100 * MS, 20 * MS);
	ck_assert_double_gt(b.out.cwnd_segs, 15);
	b.ops->on_idle(b.state, b.config, 5000 * MS, 3000 * MS, &b.out);
	CWND_EQ(&b, 10);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	// A smaller window stays.
	cc_rto(&b, 6000 * MS, 10);
	b.ops->on_idle(b.state, b.config, 9000 * MS, 3000 * MS, &b.out);
	CWND_EQ(&b, 2);
}

TEST(never_below_the_minimum) {
	struct cc_bench b;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "3", "delta", "5");
	for (uint64_t i = 0; i < 100; i++)
		cc_ack_n(&b, 1, (1500 + i) * MS, 200 * MS);
	CWND_EQ(&b, 2);
}

TEST(competitive_mode_is_aimd_on_one_over_delta) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "mode", "competitive");
	ck_assert_double_eq(cc_observed(&b, DELTA), 0.5);
	next_round(&b, &now_ns, 20 * MS); // ends the round trip of the loss in slow start
	ck_assert_double_eq_tol(1 / cc_observed(&b, DELTA), 2, 1e-6);
	for (int i = 3; i <= 9; i++) {
		next_round(&b, &now_ns, 20 * MS);
		ck_assert_double_eq_tol(1 / cc_observed(&b, DELTA), i, 1e-5);
	}
	for (int i = 0; i < 5; i++) // at most once per round trip
		cc_loss(&b, now_ns + 1, 10, false);
	ck_assert_double_eq_tol(1 / cc_observed(&b, DELTA), 4.5, 1e-5);
	next_round(&b, &now_ns, 20 * MS); // that one had a loss
	ck_assert_double_eq_tol(1 / cc_observed(&b, DELTA), 4.5, 1e-5);
	for (int i = 0; i < 5; i++) {
		cc_loss(&b, now_ns + 1, 10, false);
		next_round(&b, &now_ns, 20 * MS);
	}
	ck_assert_double_eq_tol(1 / cc_observed(&b, DELTA), 2, 1e-6); // delta <= 0.5
	while (cc_observed(&b, DELTA) > 1 / 5.5)
		next_round(&b, &now_ns, 20 * MS);
	cc_rto(&b, now_ns + 1, 10); // a timeout is a loss
	ck_assert_double_eq_tol(1 / cc_observed(&b, DELTA), 3, 1e-5);
}

TEST(auto_mode_follows_the_nearly_empty_test) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "mode", "auto");
	for (int i = 0; i < 20; i++) { // an idle link with a constant RTT is empty
		next_round(&b, &now_ns, 20 * MS);
		ck_assert_int_eq(cc_mode(&b), DEFAULT);
	}
	for (int i = 0; i < 12; i++) // somebody keeps 20 ms queued
		next_round(&b, &now_ns, 40 * MS);
	ck_assert_int_eq(cc_mode(&b), COMPETITIVE);
	ck_assert_double_lt(cc_observed(&b, DELTA), 0.5);
	for (int i = 0; i < 3; i++) // one empty moment, dq = 5 % of the spread
		next_round(&b, &now_ns, 21 * MS);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
	ck_assert_double_eq(cc_observed(&b, DELTA), 0.5);
}

TEST(auto_mode_waits_eight_round_trips) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;
	int rounds = 0;

	OPEN_DEFAULT(&b, 20 * MS, "mode", "auto", "initial", "100");
	next_round(&b, &now_ns, 20 * MS);
	while (cc_mode(&b) == DEFAULT && rounds++ < 20)
		next_round(&b, &now_ns, 60 * MS);
	ck_assert_int_eq(rounds, 8);
	ck_assert_double_eq(cc_observed(&b, DELTA), 0.5); // it begins with the configured one
}

// Round trips of slow start do not count: that has a queue of its own, here of 2 ms.
TEST(auto_mode_does_not_count_in_slow_start) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	CC_OPEN(&b, "copa", "mode", "auto", "loss_exit", "yes");
	for (int i = 0; i < 20; i++) {
		struct cc_ack ack = cc_ack_of(&b, now_ns += 22 * MS, i == 0 ? 20 * MS : 22 * MS);

		ack.cwnd_limited = false;
		cc_ack(&b, &ack);
		ck_assert_int_eq(cc_mode(&b), SLOW_START);
	}
	cc_loss(&b, now_ns, 10, false);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
}

// 9.5 segments and 0.4 of 20.4 ms are a queue of 0.19 segments: nearly empty, though the RTT never
// falls.
TEST(auto_mode_takes_a_quarter_of_a_segment_for_empty) {
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "mode", "auto");
	for (int i = 0; i < 20; i++) {
		struct cc_ack ack = cc_ack_of(&b, now_ns += 21 * MS, 20400000);

		ack.cwnd_limited = false;
		cc_ack(&b, &ack);
		ck_assert_int_eq(cc_mode(&b), DEFAULT);
	}
}

// Copa's own swing empties the queue once in 5 round trips; where that moment is missed by a
// packet, it takes a few more. A lone flow must not take its own queue for somebody else's.
TEST(auto_mode_outlasts_its_own_swing) {
	static const uint64_t rtt_ms[] = {20, 24, 28, 32, 32, 28, 24};
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	OPEN_DEFAULT(&b, 20 * MS, "mode", "auto", "initial", "100");
	for (int i = 0; i < 70; i++) {
		next_round(&b, &now_ns, rtt_ms[i % 7] * MS);
		ck_assert_int_eq(cc_mode(&b), DEFAULT);
	}
}

// RTTmin is 20 ms, so that a queue of 9 ms is nearly empty beside an RTTmax of 120 ms, which counts
// in the four round trips after its own, and is not beside one of 29 ms.
TEST(rtt_max_is_of_the_last_four_round_trips) {
	static const uint64_t before_ms[] = {20, 120};
	static const int want[] = {8, 4 + 8};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct cc_bench b;
		uint64_t now_ns = 1000 * MS;
		int rounds = 0;

		OPEN_DEFAULT(&b, 20 * MS, "mode", "auto", "initial", "100");
		next_round(&b, &now_ns, before_ms[i] * MS);
		while (cc_mode(&b) == DEFAULT && rounds++ < 30)
			next_round(&b, &now_ns, 29 * MS);
		ck_assert_int_eq(rounds, want[i]);
	}
}

TEST(no_sample_changes_nothing) {
	struct cc_bench b;
	struct cc_ack ack;

	open_default(&b, 20 * MS, NULL);
	ack = cc_ack_of(&b, 1100 * MS, 0);
	cc_ack(&b, &ack);
	CWND_EQ(&b, 10);
}

TEST(very_long_rtts_saturate) {
	struct cc_bench b;

	cc_open(&b, "copa", NULL);
	cc_ack_n(&b, 1, 9000 * MS, 8000 * MS);
	CWND_EQ(&b, 11);
	ck_assert(isfinite(b.out.pacing_bps) && b.out.pacing_bps > 0);
}

TEST(parameters_follow_while_running_and_refuse_nonsense) {
	static const struct {
		const char *name, *text;
		int rc;
	} cases[] = {{"delta", "0", -ERANGE}, {"delta", "101", -ERANGE}, {"mode", "fast", -EINVAL},
		{"min_cwnd", "0", -ERANGE}, {"rtt_min_window", "10", -EINVAL},
		{"heavy_loss", "120%", -ERANGE}, {"velocity", "1", -ENOENT}};
	struct cc_bench b;
	uint64_t now_ns = 1000 * MS;

	open_default(&b, 20 * MS, NULL);
	ck_assert_int_eq(cc_set(&b, "delta", "0.25"), 0);
	next_round(&b, &now_ns, 20 * MS);
	ck_assert_double_eq(cc_observed(&b, DELTA), 0.25);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_int_eq(cc_set(&b, cases[i].name, cases[i].text), cases[i].rc);
}

// Half of the window before a timeout is known to be the path's: until there a loss does not end
// slow start. Once it is over the window of then says nothing more.
TEST(slow_start_after_a_timeout_goes_on_to_half_the_window) {
	struct cc_bench b;

	CC_OPEN(&b, "copa", "initial", "100", "loss_exit", "yes");
	cc_rto(&b, 100 * MS, 100);
	b.out.cwnd_segs = 49;
	cc_loss(&b, 200 * MS, 49, false);
	ck_assert_int_eq(cc_mode(&b), 0);
	b.out.cwnd_segs = 50;
	cc_loss(&b, 300 * MS, 50, false);
	ck_assert_int_eq(cc_mode(&b), 1);
	b.ops->on_idle(b.state, b.config, 5000 * MS, 4000 * MS, &b.out);
	ck_assert_int_eq(cc_mode(&b), 0);
	b.out.cwnd_segs = 20;
	cc_loss(&b, 5100 * MS, 20, false);
	ck_assert_int_eq(cc_mode(&b), 1);
	// A second timeout in a row is one of the same window, though 2 segments are left of it:
	// now a quarter.
	CC_OPEN(&b, "copa", "initial", "100", "loss_exit", "yes");
	cc_rto(&b, 100 * MS, 100);
	cc_rto_repeated(&b, 300 * MS, 2);
	b.out.cwnd_segs = 24;
	cc_loss(&b, 400 * MS, 24, false);
	ck_assert_int_eq(cc_mode(&b), 0);
	b.out.cwnd_segs = 25;
	cc_loss(&b, 500 * MS, 25, false);
	ck_assert_int_eq(cc_mode(&b), 1);
}

// Nor does it after a spurious timeout, which ends that slow start.
TEST(a_timeout_that_is_taken_back_proves_nothing) {
	struct cc_bench b;

	OPEN_DEFAULT(&b, 20 * MS, "initial", "100");
	cc_rto(&b, 1500 * MS, 100);
	b.ops->on_spurious(b.state, b.config, 1600 * MS, &b.out);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
	b.ops->on_idle(b.state, b.config, 5000 * MS, 3400 * MS, &b.out);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	b.out.cwnd_segs = 20;
	cc_loss(&b, 5100 * MS, 20, false);
	ck_assert_int_eq(cc_mode(&b), DEFAULT);
}

// The loss rate is of what was sent since: the losses of the timeout would halve the window once
// more.
TEST(loss_rate_counts_anew_after_a_timeout) {
	struct cc_bench b;

	CC_OPEN(&b, "copa", "initial", "100");
	struct cc_ack ack = cc_ack_of(&b, 100 * MS, 0);

	ack.lost_segs = 30;
	cc_ack(&b, &ack);
	cc_rto(&b, 200 * MS, 100);
	CWND_EQ(&b, 2);
	ack = cc_ack_of(&b, 400 * MS, 100 * MS);
	ack.acked_segs = 12;
	cc_ack(&b, &ack);
	ck_assert_int_eq(cc_mode(&b), 0);
	CWND_EQ(&b, 14);
}
