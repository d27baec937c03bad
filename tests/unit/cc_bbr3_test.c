// SPDX-License-Identifier: BSD-3-Clause
// draft-ietf-ccwg-bbr: the model's numbers and states after exact rounds.
#include "cc_bbr3.h"

TEST(startup_and_drain) {
	struct wire w;

	wire_open(&w, NULL);
	// 2.77 initial windows per millisecond, before there is an RTT.
	NEAR(w.b.out.pacing_bps, 2.77 * 10 * 8000 / 1e-3);
	fill(&w, NULL);
	NEAR(obs(&w, BW), BW_BPS);
	NEAR(obs(&w, MIN_RTT), 10e6);
	NEAR(w.b.out.pacing_bps, 0.5 * 0.99 * BW_BPS);
	w.next.inflight_segs = BDP;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), CRUISE);
	NEAR(w.b.out.pacing_bps, 0.99 * BW_BPS);
}

// 5.3.2: Drain ends after three round trips even if more than a BDP is in flight. Beside a flow
// that keeps a queue of a BDP, half of bw fills the BDP, and Drain went on for as long as that flow
// did.
TEST(drain_ends_after_three_rounds) {
	struct wire w;

	fill(&w, NULL);
	for (int i = 0; i < 3; i++) {
		flight(&w, BDP, 0);
		ck_assert_int_eq(mode(&w), DRAIN);
	}
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), DOWN);
}

// BBROnInit: min_rtt is the smoothed RTT that the handshake has measured.
TEST(the_round_trip_of_the_handshake_is_the_first_min_rtt) {
	struct wire w;

	wire_open(&w, NULL);
	w.b.ops->init(w.b.state, w.b.config, MSS, 9 * MS, w.now_ns, &w.b.out);
	flight(&w, 1, 0);
	NEAR(obs(&w, MIN_RTT), 9e6);
}

// A path that grows by a quarter each round is not full.
TEST(startup_goes_on_while_the_rate_grows) {
	struct wire w;

	wire_open(&w, NULL);
	for (int i = 0; i < 10; i++) {
		flight(&w, BDP, 0);
		w.next.delivery_bps *= 1.25;
		ck_assert_int_eq(mode(&w), STARTUP);
	}
}

// Six losses in a round that lost more than 2 % of its flight; five do not suffice, nor 2 %.
TEST(losses_end_startup) {
	static const struct {
		int events;
		uint32_t each, acked;
		int then;
	} cases[] = {{6, 1, 200, DRAIN}, {5, 2, 200, STARTUP}, {6, 1, 300, STARTUP}};

	for (int c = 0; c < 3; c++) {
		struct wire w;

		wire_open(&w, NULL);
		flight(&w, 10, 0);
		cc_loss(&w.b, w.now_ns, 10, false);
		w.next.in_recovery = true;
		for (int i = 0; i < cases[c].events; i++) {
			struct cc_ack ack = {.now_ns = w.now_ns,
				.lost_segs = cases[c].each,
				.in_recovery = true};

			cc_ack(&w.b, &ack);
		}
		w.next.delivery_bps *= 2;
		w.next.inflight_segs = 4 * BDP;
		flight(&w, cases[c].acked, 0);
		ck_assert_int_eq(mode(&w), cases[c].then);
		if (cases[c].then == DRAIN) // what the round has delivered, the BDP being 200
			NEAR(obs(&w, LONG), 200);
	}
}

// 63 rounds at most, and a BDP of rounds if that is less (5.3.3.5), or 2 to 3 s.
TEST(probes_at_reno_s_pace) {
	struct wire w;
	int rounds = 0;

	cruise(&w, NULL);
	while (mode(&w) == CRUISE) {
		flight(&w, BDP, 0);
		rounds++;
	}
	ck_assert_int_ge(rounds, 61);
	ck_assert_int_le(rounds, 63);
	cruise(&w, (const char *const[]){"reno_rounds", "10000", "probe_wait", "300ms", NULL});
	rounds = 0;
	while (mode(&w) == CRUISE) { // 300 to 450 ms
		flight(&w, 20000, 0);
		rounds++;
	}
	ck_assert_int_ge(rounds, 30);
	ck_assert_int_le(rounds, 46);
}

// UP ends when the rate has not grown for three rounds, and DOWN at once where nothing is queued.
TEST(a_cycle) {
	struct wire w;

	up(&w, NULL);
	NEAR(w.b.out.pacing_bps, 1.25 * 0.99 * BW_BPS);
	w.next.inflight_segs = 2 * BDP;
	for (int i = 0; i < 2; i++)
		flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), UP);
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), DOWN);
	NEAR(w.b.out.pacing_bps, 0.9 * 0.99 * BW_BPS);
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), DOWN);
	w.next.inflight_segs = BDP;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), CRUISE);
}

// max_bw is that of two cycles: a rate that halves is known after the second UP.
TEST(max_bw_is_of_two_cycles) {
	struct wire w;

	up(&w, NULL);
	w.next.delivery_bps = BW_BPS / 2;
	while (mode(&w) != REFILL)
		flight(&w, BDP, 0);
	NEAR(obs(&w, BW), BW_BPS);
	for (int i = 0; i < 2 || mode(&w) != REFILL; i++)
		flight(&w, BDP, 0);
	NEAR(obs(&w, BW), BW_BPS / 2);
}

// While it probes, 2 % of a flight may be lost: 2 of 102 are less, 3 of 103 are more, and 103 was
// too much.
TEST(a_lossy_probe_bounds_the_flight) {
	struct wire w;

	up(&w, NULL);
	flight(&w, BDP, 2);
	ck_assert_int_eq(mode(&w), UP);
	flight(&w, BDP, 0);
	NEAR(obs(&w, LONG), 0);
	NEAR(obs(&w, SHORT), 0); // and no bound for the time being either
	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, BDP, 3);
	ck_assert_int_eq(mode(&w), DOWN);
	NEAR(obs(&w, LONG), 103);
	// Cruising leaves 15 % of it to others.
	w.next.inflight_segs = 80;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), CRUISE);
	CWND_EQ(&w.b, 0.85 * 103);
	// The probe has been answered: the same losses again change nothing.
	flight(&w, BDP, 4);
	NEAR(obs(&w, LONG), 103);
}

// At the limit the bound grows by 1 segment in the round that probes first, then by 2, 4, 8 ...,
// spread over its ACKs.
TEST(the_bound_grows_exponentially) {
	struct wire w;

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, 50, 3); // 53 was too much, but 0.7 of the target is what Beta leaves
	NEAR(obs(&w, LONG), 0.7 * BDP);
	w.next.inflight_segs = 40;
	while (mode(&w) != UP)
		flight(&w, 20, 0);
	for (int grow = 2; grow <= 16; grow *= 2) {
		double before = obs(&w, LONG);
		uint32_t segs = (uint32_t)w.b.out.cwnd_segs;
		uint64_t sent_at = w.delivered;

		for (uint32_t i = 0; i < segs; i++) {
			struct cc_ack ack = w.next;

			ack.now_ns = w.now_ns += RTT / segs;
			ack.sent_ns = ack.now_ns - RTT;
			ack.srtt_ns = RTT;
			ack.prior_delivered_segs = sent_at;
			ack.delivered_segs = ++w.delivered;
			ack.acked_segs = 1;
			ack.cwnd_limited = true;
			cc_ack(&w.b, &ack);
		}
		ck_assert_double_eq_tol(obs(&w, LONG) - before, grow, 1.5);
		ck_assert_int_eq(mode(&w), UP); // at the bound the pipe is not known to be full
	}
}

// A round with a loss while it cruises: the bounds are what it has delivered, or 0.7 of before. The
// next probe forgets.
TEST(losses_while_cruising_are_followed_for_a_while) {
	struct wire w;
	double before;

	cruise(&w, NULL);
	w.next.delivery_bps = 0.9 * BW_BPS;
	flight(&w, 90, 0);
	flight(&w, 90, 1); // in this round: it ends with the next flight
	before = w.b.out.cwnd_segs;
	flight(&w, 90, 0);
	NEAR(obs(&w, BW), 0.9 * BW_BPS);
	NEAR(obs(&w, SHORT),
		0.7 * before); // as 90 were delivered, of twice the BDP that the window allowed
	CWND_EQ(&w.b, (double)(float)(0.7 * before));
	w.next.delivery_bps = 0.1 * BW_BPS;
	flight(&w, 10, 0);
	flight(&w, 10, 1);
	flight(&w, 10, 0);
	NEAR(obs(&w, SHORT), 0.7 * 0.7 * before);
	NEAR(obs(&w, BW), 0.7 * 0.9 * BW_BPS);
	while (mode(&w) != REFILL)
		flight(&w, 60, 0);
	NEAR(obs(&w, SHORT), 0);
	NEAR(obs(&w, BW), BW_BPS);
}

// 5 s without a lower RTT: half of the BDP for 200 ms and a round, then on at the old window.
TEST(probe_rtt) {
	struct wire w;
	uint64_t t_ns;

	cruise(&w, NULL);
	w.next.rtt_ns = RTT + 1;
	w.now_ns += 5000 * MS;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	CWND_EQ(&w.b, 0.5 * BDP);
	NEAR(obs(&w, MIN_RTT), 10e6); // for 10 s
	w.next.inflight_segs = 50;
	t_ns = w.now_ns;
	while (mode(&w) == PROBE_RTT)
		flight(&w, 50, 0);
	ck_assert_uint_gt(w.now_ns - t_ns, 200 * MS + RTT);
	ck_assert_uint_le(w.now_ns - t_ns, 200 * MS + 3 * RTT);
	ck_assert_int_eq(mode(&w), CRUISE);
	ck_assert_double_ge(w.b.out.cwnd_segs, 2 * BDP);
}

// 5.4.1: a flow that pauses in ProbeRTT has ended it when it goes on, and sends its whole window at
// once.
TEST(a_pause_ends_probe_rtt) {
	struct wire w;
	double before;

	cruise(&w, NULL);
	before = w.b.out.cwnd_segs;
	w.next.rtt_ns = RTT + 1;
	w.now_ns += 5000 * MS;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	w.next.inflight_segs = 0;
	flight(&w, 50, 0);
	w.b.ops->on_idle(w.b.state, w.b.config, w.now_ns + 100 * MS, 100 * MS, &w.b.out);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	w.b.ops->on_idle(w.b.state, w.b.config, w.now_ns + 201 * MS, 201 * MS, &w.b.out);
	ck_assert_int_eq(mode(&w), CRUISE);
	CWND_EQ(&w.b, before);
}

TEST(a_timeout_leaves_one_segment_and_an_undo_takes_it_back) {
	struct wire w;
	double before;

	cruise(&w, NULL);
	before = w.b.out.cwnd_segs;
	cc_rto(&w.b, w.now_ns, BDP);
	CWND_EQ(&w.b, 1);
	w.b.ops->on_spurious(w.b.state, w.b.config, w.now_ns, &w.b.out);
	CWND_EQ(&w.b, before);
	cc_rto(&w.b, w.now_ns, BDP);
	w.next.in_loss = true;
	flight(&w, 1, 0);
	CWND_EQ(&w.b, 4); // the least that keeps ACKs coming
	w.next.in_loss = false;
	flight(&w, 1, 0);
	ck_assert_double_ge(w.b.out.cwnd_segs, before); // recovery is over
	before = w.b.out.cwnd_segs;
	cc_loss(&w.b, w.now_ns, BDP, true);
	CWND_EQ(&w.b, before); // an ECN echo
}
