// SPDX-License-Identifier: BSD-3-Clause
// PCC Allegro through the transport, over a path without a bottleneck: every rate is better than a
// lower one until losses say otherwise.
#include "cc_transport.h"

#include <math.h>

enum { RATE, UTILITY, N, EPSILON };
enum { STARTING, DECIDING, ADJUSTING };

static void run_while(struct link *l, int mode) {
	uint64_t limit_ns = l->now_ns + 60 * S;

	while (cc_mode(l) == mode) {
		ck_assert_uint_lt(l->now_ns, limit_ns);
		link_run(l, l->now_ns + MS);
	}
}

static double utility(double x, double loss) {
	return x * (1 - loss) / (1 + exp(100 * (loss - 0.05))) - x * loss;
}

// Without loss u = x / (1 + e^-5). Half of the segments lost for a while end STARTING; then all
// four trials, and every step of ADJUSTING, speak for more: 1 % for the side that won, then 1 %, 2
// %, 3 % ...
TEST(moves_to_where_both_trials_were_better) {
	const double first = 10 * 1448 * 8e-6 / 0.02;
	struct link *l = LINK(.group = "{cc: pcc, ack_every: 1, tlp: no}", .check_every = 100);
	double rate, r;
	uint64_t since_ns;

	while (cc_observed(l, RATE) < 1.5 * first)
		link_run(l, l->now_ns + MS);
	OBSERVED_EQ(l, UTILITY, utility(first, 0));
	l->o.loss = 0.2;
	since_ns = l->now_ns;
	run_while(l, STARTING);
	l->o.loss = 0;
	// Two results, not one: 50 segments take 50 ms, and what becomes of them a round trip of 20
	// ms.
	ck_assert_uint_ge(l->now_ns - since_ns, 2 * 70 * MS - 10 * MS);
	OBSERVED_EQ(l, RATE, first);
	for (int i = 0; i < 3; i++) { // what was lost may decide once or twice
		run_while(l, DECIDING);
		if (cc_observed(l, N) > 0)
			break;
		run_while(l, ADJUSTING);
	}
	ck_assert_int_eq(cc_mode(l), ADJUSTING);
	ck_assert_double_eq(cc_observed(l, N), 1);
	r = cc_observed(l, RATE);
	for (int n = 2; n <= 6; n++) {
		while ((rate = cc_observed(l, RATE)) == r)
			link_run(l, l->now_ns + MS);
		ck_assert_double_eq_tol(rate, r * (1 + 0.01 * n), 1e-5 * r);
		OBSERVED_EQ(l, UTILITY, utility(r, 0));
		ck_assert_double_eq(cc_observed(l, N), n);
		r = rate;
	}
	// The seventh is not better, and taken back.
	l->o.loss = 0.2;
	run_while(l, ADJUSTING);
	ck_assert_double_eq_tol(cc_observed(l, RATE), r / (1 + 0.01 * 6), 0.07 * r);
}

// Section 2.2: beyond 5 % of losses the utility is their cost, -x loss, and what is delivered
// counts for nothing. The first interval has 50 segments or some more, of which some number was
// lost.
TEST(losses_cost_what_they_carry) {
	const double x = 10 * 1448 * 8e-6 / 0.02;
	struct link *l = LINK(.group = "{cc: pcc, ack_every: 1, tlp: no}", .check_every = 100);
	double u, nearest = 1e9;

	link_run(l, 20 * MS); // the handshake is done
	ck_assert_double_lt(cc_observed(l, UTILITY), -1e29);
	l->o.loss = 0.15;
	while ((u = cc_observed(l, UTILITY)) < -1e29)
		link_run(l, l->now_ns + MS);
	ck_assert_double_lt(u, 0);
	for (int n = 50; n <= 70; n++) {
		for (int lost = 1; lost <= n / 2; lost++)
			nearest = fmin(nearest, fabs(u - utility(x, (double)lost / n)));
	}
	ck_assert_double_lt(nearest, 1e-6);
}

TEST(undecided_trials_reach_farther) {
	struct link *l =
		LINK(.group = "{cc: pcc, ack_every: 1, tlp: no}", .check_every = 100, .seed = 3);
	double most = 0;

	l->o.loss = 0.3;
	for (int i = 0; i < 20000 && most < 5; i++) {
		link_run(l, l->now_ns + MS);
		ck_assert_double_le(cc_observed(l, EPSILON), 5);
		most = fmax(most, cc_observed(l, EPSILON));
	}
	ck_assert_double_gt(most, 1);
	l->o.loss = 0;
	run_while(l, DECIDING);
	ck_assert_double_eq(
		cc_observed(l, EPSILON), 1); // decided: the next trials begin near again
}

TEST(a_timeout_halves_the_rate) {
	struct link *l = HAND(.group = "{cc: pcc, ack_every: 1, tlp: no}");
	double before = cc_observed(l, RATE);

	hand_ack_at(l, 1, 40 * MS);
	link_run(l, 500 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	ck_assert_double_eq_tol(cc_observed(l, RATE), before / 2, 1e-6);
	ck_assert_int_eq(cc_mode(l), DECIDING);
}
