// SPDX-License-Identifier: BSD-3-Clause
#include "cc_test.h"

enum { SLOW_START, AVOIDANCE, RECOVERY, TIMEOUT };

static void ack_segs(struct cc_bench *b, uint32_t segs, bool recovery) {
	struct cc_ack ack = cc_ack_of(b, 100 * MS, 10 * MS);

	ack.acked_segs = segs;
	ack.in_recovery = recovery;
	cc_ack(b, &ack);
}

static void check(const struct cc_bench *b, double cwnd, double ssthresh, int mode) {
	CWND_EQ(b, cwnd);
	ck_assert_double_eq_tol(cc_observed(b, 0), ssthresh, 1e-6 * ssthresh);
	ck_assert_int_eq(cc_mode(b), mode);
}

TEST(starts_with_ten_and_doubles_per_round_trip) {
	struct cc_bench b;

	cc_open(&b, "newreno", NULL);
	check(&b, 10, 1e9, SLOW_START);
	ck_assert_double_eq(b.out.pacing_bps, 0);
	ck_assert(b.ops->prr);
	for (int i = 0; i < 10; i++)
		ack_segs(&b, 1, false);
	CWND_EQ(&b, 20);
	for (int i = 0; i < 10; i++)
		ack_segs(&b, 2, false);
	CWND_EQ(&b, 40);
}

TEST(counts_bytes_up_to_the_limit) {
	static const struct {
		const char *limit;
		double cwnd; // after one ACK of 8 segments
	} cases[] = {{"1", 11}, {"2", 12}, {"4", 14}, {"0", 18}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cc_bench b;

		CC_OPEN(&b, "newreno", "abc_limit", cases[i].limit);
		ack_segs(&b, 8, false);
		CWND_EQ(&b, cases[i].cwnd);
	}
}

TEST(halves_then_grows_by_one_per_window) {
	struct cc_bench b;
	double window;

	CC_OPEN(&b, "newreno", "initial", "100");
	cc_loss(&b, 0, 97, false);
	check(&b, 50, 50, RECOVERY);
	ack_segs(&b, 10, true);
	check(&b, 50, 50, RECOVERY);
	ack_segs(&b, 1, false);
	check(&b, 50.02, 50, AVOIDANCE);
	ack_segs(&b, 2, false); // both count, the step is 2 / cwnd
	window = 50.02 + 2 / 50.02;
	check(&b, window, 50, AVOIDANCE);
	// A window of single ACKs adds just under one segment: the sum of 1 / (w + i / w).
	for (int i = 0; i < 50; i++)
		ack_segs(&b, 1, false);
	ck_assert_double_gt(b.out.cwnd_segs, window + 0.98);
	ck_assert_double_lt(b.out.cwnd_segs, window + 1.0);
}

TEST(an_echo_of_congestion_halves_too) {
	struct cc_bench b;

	CC_OPEN(&b, "newreno", "initial", "30");
	cc_loss(&b, 0, 30, true);
	check(&b, 15, 15, RECOVERY);
}

TEST(halves_flight_where_asked) {
	struct cc_bench b;

	CC_OPEN(&b, "newreno", "initial", "100", "halve", "flight");
	cc_loss(&b, 0, 60, false);
	check(&b, 30, 30, RECOVERY);
}

TEST(never_below_two) {
	struct cc_bench b;

	CC_OPEN(&b, "newreno", "initial", "3");
	cc_loss(&b, 0, 3, false);
	check(&b, 2, 2, RECOVERY);
	ack_segs(&b, 1, false);
	cc_loss(&b, 0, 2, false);
	check(&b, 2, 2, RECOVERY);
}

TEST(a_timeout_starts_again_from_one) {
	struct cc_bench b;

	CC_OPEN(&b, "newreno", "initial", "16");
	cc_rto(&b, 0, 16);
	check(&b, 1, 8, TIMEOUT);
	cc_rto_repeated(&b, 0, 1); // ssthresh stays
	check(&b, 1, 8, TIMEOUT);
	// Slow start, one segment per ACK whatever it covers (RFC 3465 2.3).
	ack_segs(&b, 5, false);
	check(&b, 2, 8, TIMEOUT);
	for (int i = 0; i < 6; i++)
		ack_segs(&b, 2, false);
	check(&b, 8, 8, TIMEOUT);
	ack_segs(&b, 2, false);
	check(&b, 8.25, 8, AVOIDANCE);
}

TEST(a_timeout_in_recovery_halves_once) {
	struct cc_bench b;

	CC_OPEN(&b, "newreno", "initial", "64");
	cc_loss(&b, 0, 64, false);
	cc_rto(&b, 0, 40);
	check(&b, 1, 32, TIMEOUT);
	ack_segs(&b, 1, false);
	cc_rto(&b, 0, 2); // a new episode
	check(&b, 1, 2, TIMEOUT);
}

TEST(grows_only_where_the_window_was_the_limit) {
	struct cc_bench b;
	struct cc_ack ack;

	cc_open(&b, "newreno", NULL);
	ack = cc_ack_of(&b, 100 * MS, 10 * MS);
	ack.cwnd_limited = false;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 10);
	ack_segs(&b, 0, false); // only a loss was reported
	CWND_EQ(&b, 10);
}

TEST(idling_restarts) {
	struct cc_bench b;

	cc_open(&b, "newreno", NULL);
	for (int i = 0; i < 40; i++)
		ack_segs(&b, 1, false);
	b.ops->on_idle(b.state, b.config, 1000 * MS, 500 * MS, &b.out);
	CWND_EQ(&b, 10);
	CC_OPEN(&b, "newreno", "idle_restart", "no");
	ack_segs(&b, 2, false);
	b.ops->on_idle(b.state, b.config, 1000 * MS, 500 * MS, &b.out);
	CWND_EQ(&b, 12);
}

TEST(refuses_what_cannot_be) {
	struct cc_bench b;

	cc_open(&b, "newreno", NULL);
	ck_assert_int_eq(cc_set(&b, "initial", "0"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "abc_limit", "1001"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "halve", "pipe"), -EINVAL);
}

TEST(a_repeated_timeout_reduces_no_further) {
	cc_check_repeated_timeout("newreno", 50);
}

// ssthresh is met inside an ACK: what slow start needs, and the rest as avoidance takes it.
TEST(slow_start_ends_at_ssthresh_exactly) {
	struct cc_bench b;

	CC_OPEN(&b, "newreno", "initial", "20");
	cc_loss(&b, 0, 20, false);
	b.out.cwnd_segs = 9.5;
	cc_ack_n(&b, 1, 1000 * MS, 100 * MS);
	CWND_EQ(&b, 10.05);
}
