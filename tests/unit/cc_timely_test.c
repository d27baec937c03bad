// SPDX-License-Identifier: BSD-3-Clause
// TIMELY's algorithm 1: minRTT 20 us, T_low at 50 us, T_high at 500 us, a completion per ACK; 80
// Mbit/s at first.
#include "cc_test.h"

enum { RATE, GRADIENT };

#define US UINT64_C(1000)
#define MBIT 1e6

static void open_timely(struct cc_bench *b) {
	CC_OPEN(b, "timely", "base_rtt", "20us", "segment", "1000B");
}

static void completion(struct cc_bench *b, uint64_t rtt_ns) {
	struct cc_ack ack = cc_ack_of(b, 1000 * MS, rtt_ns);

	cc_ack(b, &ack);
}

#define RATE_EQ(b, mbit) ck_assert_double_eq_tol((b)->out.pacing_bps, (mbit)*MBIT, 1)

// 10 segments of 1000 bytes per ms. Below T_low the gradient does not matter.
TEST(grows_below_t_low) {
	struct cc_bench b;

	open_timely(&b);
	RATE_EQ(&b, 80);
	completion(&b, 25 * US);
	RATE_EQ(&b, 90);
	completion(&b, 49 * US);
	RATE_EQ(&b, 100);
}

// 0.8 (1 - 500/1000) = 0.4 less, however the RTT changes.
TEST(falls_above_t_high) {
	struct cc_bench b;

	open_timely(&b);
	completion(&b, 1000 * US);
	RATE_EQ(&b, 80 * 0.6);
	completion(&b, 625 * US);
	RATE_EQ(&b, 80 * 0.6 * 0.84);
}

// 104 - 100 us: rtt_diff 0.875 x 4 = 3.5 us, gradient 0.175, 0.14 less. Back: 0.4375 - 3.5 < 0.
TEST(follows_the_gradient_in_between) {
	struct cc_bench b;

	open_timely(&b);
	completion(&b, 100 * US);
	RATE_EQ(&b, 90); // there is no difference yet
	completion(&b, 104 * US);
	ck_assert_double_eq_tol(cc_observed(&b, GRADIENT), 0.175, 1e-6);
	RATE_EQ(&b, 90 * 0.86);
	completion(&b, 100 * US);
	ck_assert_double_eq_tol(cc_observed(&b, GRADIENT), -3.0625 / 20, 1e-6);
	RATE_EQ(&b, 90 * 0.86 + 10);
}

// From the fifth completion in a row without a rising RTT on: 5 delta.
TEST(hyperactive_increase) {
	struct cc_bench b;

	open_timely(&b);
	for (int i = 1; i <= 4; i++) {
		completion(&b, 100 * US);
		RATE_EQ(&b, 80 + 10 * i);
	}
	completion(&b, 100 * US);
	RATE_EQ(&b, 170);
	completion(&b, 101 * US);
	double rate = b.out.pacing_bps / MBIT;

	RATE_EQ(&b, 170 * (1 - 0.8 * 0.875 / 20));
	for (int i = 1; i <= 3; i++) // the count starts again when the mean difference is 0 or less
		completion(&b, 100 * US);
	RATE_EQ(&b, rate + 30);
}

// 64 KB make a completion; the window is two round trips of the rate.
TEST(a_completion_is_64_kb) {
	struct cc_bench b;

	CC_OPEN(&b, "timely", "base_rtt", "1ms");
	cc_ack_n(&b, 63, 1000 * MS, 1 * MS);
	RATE_EQ(&b, 80);
	cc_ack_n(&b, 1, 1000 * MS, 1 * MS);
	RATE_EQ(&b, 90);
	CWND_EQ(&b, 2 * 90e6 * 1e-3 / 8000);
}

TEST(losses_halve) {
	struct cc_bench b;

	open_timely(&b);
	cc_loss(&b, 1000 * MS, 10, false);
	RATE_EQ(&b, 40);
	cc_rto(&b, 2000 * MS, 10);
	RATE_EQ(&b, 20);
	cc_rto_repeated(&b, 3000 * MS, 10);
	RATE_EQ(&b, 20);
	b.ops->on_spurious(b.state, b.config, 3000 * MS, &b.out);
	RATE_EQ(&b, 40);
}

// 300 - 100 us: the gradient is 0.875 x 200 / 20 = 8.75, and 1 - 0.8 x 8.75 is negative: half is
// left.
TEST(a_completion_leaves_half_at_least) {
	struct cc_bench b;

	open_timely(&b);
	completion(&b, 100 * US);
	completion(&b, 300 * US);
	RATE_EQ(&b, 45);
}

// What the application limits, or what repairs losses, shows no room for more; a fall of the rate
// needs no room.
TEST(does_not_grow_while_limited_or_in_recovery) {
	for (int recovery = 0; recovery < 2; recovery++) {
		struct cc_bench b;
		struct cc_ack ack;

		open_timely(&b);
		ack = cc_ack_of(&b, 1000 * MS, 25 * US);
		ack.app_limited = recovery == 0;
		ack.in_recovery = recovery == 1;
		cc_ack(&b, &ack);
		RATE_EQ(&b, 80);
		ack.rtt_ns = 1000 * US;
		cc_ack(&b, &ack);
		RATE_EQ(&b, 80 * 0.6);
	}
}

// 80 are halved, and grow to 90 before the loss turns out to be none.
TEST(a_spurious_loss_takes_no_growth_back) {
	struct cc_bench b;

	open_timely(&b);
	cc_loss(&b, 1000 * MS, 10, false);
	for (int i = 0; i < 5; i++)
		completion(&b, 25 * US);
	RATE_EQ(&b, 90);
	b.ops->on_spurious(b.state, b.config, 2000 * MS, &b.out);
	RATE_EQ(&b, 90);
}
