// SPDX-License-Identifier: BSD-3-Clause
// Vivace: its arithmetic, and its steps through the transport, over a path without a bottleneck:
// the RTT is constant where a test does not move it, so that the utility is that of rate and loss.
#include "cc_transport.h"
#include "sender/cc/monitor.h"

#include <math.h>

enum { RATE, UTILITY, TAU, K };
enum { STARTING, PROBING };

// A queue that grows by 5 % of the time: segments sent each ms, RTT 30 ms and 50 us more each.
TEST(the_slope_is_that_of_the_rtt) {
	struct monitors q = {0};
	struct monitor done = {0};

	monitors_start(&q, 10, 0, 0);
	monitors_start(&q, 10, 0, 30 * MS);
	for (uint64_t i = 0; i <= 30; i++) {
		struct cc_ack ack = {.now_ns = i * MS + 30 * MS + i * 50 * US,
			.sent_ns = i * MS,
			.rtt_ns = 30 * MS + i * 50 * US,
			.acked_segs = 1,
			.lost_segs = i == 7};

		monitors_ack(&q, &ack);
		ck_assert(monitors_done(&q, &ack, &done) == (i == 30));
	}
	ck_assert_double_eq_tol(monitor_slope(&done), 0.05, 1e-5);
	ck_assert_uint_eq(done.acked, 30);
	ck_assert_double_eq(monitor_loss(&done), 1.0 / 31);
	ck_assert_uint_eq(q.count, 1);
	ck_assert_uint_eq(q.m[0].acked, 1);
}

// 10 Mbit/s are 12.5 segments of 1000 bytes in 10 ms: less than half of them say nothing of the
// rate. 50 segments take 40 ms. Two round trips of 30 ms are 75 segments.
TEST(intervals_are_measured_against_their_rate) {
	struct monitors q = {0};
	struct cc_out out;
	struct monitor m = {.start_ns = 5 * MS, .rate_mbps = 10, .acked = 6};

	ck_assert(!monitor_used(&m, 15 * MS, 1000));
	m.lost = 1;
	ck_assert(monitor_used(&m, 15 * MS, 1000));
	ck_assert(!monitor_overloads(&m));
	m.lost = 6;
	ck_assert(!monitor_overloads(&m));
	m.lost = 7;
	ck_assert(monitor_overloads(&m));
	monitors_start(&q, 10, 0, 0);
	ck_assert_double_eq_tol(monitors_least_ns(&q, 1000), 40e6, 1);
	ck_assert_double_eq_tol((double)monitor_bounded(0.05, 100e3), 0.1, 1e-6);
	ck_assert_double_eq_tol((double)monitor_bounded(2e6, 100e3), 1e6, 1);
	monitor_set_out(10, 1000, 30 * MS, 4, &out);
	ck_assert_double_eq_tol(out.cwnd_segs, 75, 1e-9);
	ck_assert_double_eq_tol(out.pacing_bps, 10e6, 1e-3);
	monitor_set_out(10, 1000, 1 * MS, 4, &out);
	ck_assert_double_eq(out.cwnd_segs, 4);
}

// The rates that the flow decides on, one after the other.
static int rates_of(struct link *l, double *rate, int max) {
	int n = 0;

	for (uint64_t t_ns = 21 * MS; n < max && t_ns < 20 * S; t_ns += MS) {
		link_run(l, t_ns);
		if (n == 0 || cc_observed(l, RATE) != rate[n - 1])
			rate[n++] = cc_observed(l, RATE);
	}
	return n;
}

// A loss ends STARTING, falsely: then the gradient of x^0.9 leads up again, by 5, 15, 25 ... %
// while steps are cut.
TEST(steps_are_those_of_the_gradient) {
	// Ten segments of 1448 bytes in the handshake's 20 ms. At the second rate a fifth is lost,
	// twice.
	const double first = 10 * 1448 * 8e-6 / 0.02;
	struct link *l = LINK(.group = "{cc: {vivace: {initial: 10}}, ack_every: 1, tlp: no}",
		.check_every = 100);
	double rate[12], r;
	uint64_t since_ns;
	int n, tau = 0, k = 0;

	while (cc_observed(l, RATE) < 1.5 * first)
		link_run(l, l->now_ns + MS);
	ck_assert_double_eq_tol(cc_observed(l, RATE), 2 * first, 1e-5 * first);
	OBSERVED_EQ(l, UTILITY, pow(first, 0.9)); // nothing was lost
	l->o.loss = 0.2;
	since_ns = l->now_ns;
	while (cc_mode(l) == STARTING)
		link_run(l, l->now_ns + MS);
	l->o.loss = 0;
	// Two results, not one or three: 50 segments take 50 ms, and what becomes of them a round
	// trip of 20 ms.
	ck_assert_uint_ge(l->now_ns - since_ns, 2 * 70 * MS - 10 * MS);
	ck_assert_uint_lt(l->now_ns - since_ns, 3 * 70 * MS - 10 * MS);
	ck_assert_double_eq_tol(cc_observed(l, RATE), first, 1e-5 * first); // back to it
	// What was sent while losses occurred may still count for the first step.
	for (double before = cc_observed(l, RATE); cc_observed(l, RATE) == before;)
		link_run(l, l->now_ns + MS);
	n = 0;
	for (uint64_t t_ns = l->now_ns; n < 6 && t_ns < 60 * S; t_ns += MS) {
		link_run(l, t_ns);
		if (n == 0 || cc_observed(l, RATE) != rate[n - 1])
			rate[n++] = cc_observed(l, RATE);
	}
	ck_assert_int_eq(n, 6);
	for (int i = 0; i + 1 < n; i++) {
		double up, down, gradient, step, limit;

		r = rate[i];
		up = pow(1.05 * r, 0.9);
		down = pow(0.95 * r, 0.9);
		gradient = (up - down) / (0.1 * r);
		if (i == 0) // one step was made
			tau = k = rate[0] > first;
		tau++;
		step = gradient * (tau <= 3 ? tau : 2 * tau - 3);
		limit = (0.05 + 0.1 * k) * r;
		if (step > limit) {
			step = limit;
			k++;
		} else {
			while (k > 0 && step <= (0.05 + 0.1 * (k - 1)) * r)
				k--;
		}
		ck_assert_double_eq_tol(rate[i + 1], r + step, 2e-3 * r);
	}
	ck_assert_double_eq(cc_observed(l, TAU), tau);
	ck_assert_double_eq(cc_observed(l, K), k);
}

// Section 4.1: u = x^0.9 - 900 x dRTT/dt, here of the first interval. A way that grows by s per
// unit of time is in the RTT twice, the second time for what comes back s later: dRTT/dt = 2 s +
// s^2. Below 0.01 it is noise, a falling RTT is no reward, and `utility: loss` does not look at it.
TEST(the_utility_counts_a_growing_rtt) {
	static const struct {
		const char *group;
		double growth, slope;
	} cases[] = {
		{"{cc: vivace, ack_every: 1, tlp: no}", 0.025, 2 * 0.025 + 0.025 * 0.025},
		{"{cc: vivace, ack_every: 1, tlp: no}", 0.003, 0},
		{"{cc: vivace, ack_every: 1, tlp: no}", -0.003, 0},
		{"{cc: {vivace: {utility: loss}}, ack_every: 1, tlp: no}", 0.025, 0},
	};
	const double first = 10 * 1448 * 8e-6 / 0.02, growing = pow(first, 0.9);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = LINK(.group = cases[i].group, .check_every = 100);
		double u = growing - 900 * first * cases[i].slope;

		while (cc_observed(l, RATE) < 1.5 * first) {
			ck_assert_uint_lt(l->now_ns, 5 * S);
			link_run(l, l->now_ns + MS / 10);
			if (l->now_ns > 20 * MS) // the handshake's RTT is 20 ms
				l->o.delay_ns = (uint64_t)(10e6
					+ cases[i].growth * (double)(l->now_ns - 20 * MS));
		}
		ck_assert_double_eq_tol(
			cc_observed(l, UTILITY), u, 0.03 * fabs(u - growing) + 1e-5);
		link_close(l);
	}
}

TEST(doubles_while_nothing_speaks_against_it) {
	struct link *l = LINK(.group = "{cc: vivace, ack_every: 1}", .check_every = 1000);
	double rate[6];
	int n = rates_of(l, rate, 6);

	ck_assert_int_eq(n, 6);
	for (int i = 0; i + 1 < n; i++)
		ck_assert_double_eq_tol(rate[i + 1], 2 * rate[i], 1e-6 * rate[i]);
	ck_assert_int_eq(cc_mode(l), STARTING);
}

TEST(a_timeout_halves_the_rate) {
	struct link *l = HAND(.group = "{cc: vivace, ack_every: 1, tlp: no}");
	double before = cc_observed(l, RATE);

	hand_ack_at(l, 1, 40 * MS);
	link_run(l, 500 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	ck_assert_double_eq_tol(cc_observed(l, RATE), before / 2, 1e-6);
	ck_assert_int_eq(cc_mode(l), PROBING);
}
