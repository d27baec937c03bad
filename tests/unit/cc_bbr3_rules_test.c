// SPDX-License-Identifier: BSD-3-Clause
// draft-ietf-ccwg-bbr: the conditions under which its model is not changed, and what takes a
// change back.
#include "cc_bbr3.h"

// BBRCheckFullBWReached: a quarter more in the third round begins the count again.
TEST(a_quarter_of_growth_is_enough) {
	struct wire w;

	wire_open(&w, NULL);
	for (int i = 0; i < 3; i++)
		flight(&w, BDP, 0);
	w.next.delivery_bps *= 1.25;
	for (int i = 0; i < 3; i++) {
		flight(&w, BDP, 0);
		ck_assert_int_eq(mode(&w), STARTUP);
	}
	flight(&w, BDP, 0);
	ck_assert_int_ne(mode(&w), STARTUP);
}

// An application that sends little does not show that the pipe is full.
TEST(limited_samples_do_not_end_startup) {
	struct wire w;

	wire_open(&w, NULL);
	flight(&w, BDP, 0);
	w.next.app_limited = true;
	for (int i = 0; i < 10; i++)
		flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), STARTUP);
}

// BBRUpdateMaxBw: they only count if they are the largest. Of the last two cycles none had more
// than a quarter of the rate where it was not the application that limited it.
TEST(limited_samples_do_not_lower_the_rate) {
	struct wire w;
	int before = UP;

	up(&w, NULL);
	for (int refills = 0; refills < 2; before = mode(&w)) {
		w.next.app_limited = before == CRUISE || before == REFILL;
		w.next.delivery_bps = w.next.app_limited ? 0.75 * BW_BPS : 0.25 * BW_BPS;
		flight(&w, BDP / 4, 0);
		refills += mode(&w) == REFILL && before != REFILL;
	}
	NEAR(obs(&w, BW), 0.25 * BW_BPS);
	w.next.app_limited = true;
	w.next.delivery_bps = 0.3 * BW_BPS;
	flight(&w, BDP / 4, 0);
	NEAR(obs(&w, BW), 0.3 * BW_BPS);
}

// BBRHandleInflightTooHigh: the flight of a lost segment that the application limited was no probe,
// but the probe ends all the same. What the ACK's own segment was does not matter.
TEST(a_limited_probe_sets_no_bound) {
	for (int limited = 0; limited < 2; limited++) {
		struct wire w;

		up(&w, NULL);
		w.next.inflight_segs = 2 * BDP;
		w.next.app_limited = limited == 0;
		w.next.lost_app_limited = limited == 1;
		flight(&w, BDP, 3);
		ck_assert_int_eq(mode(&w), DOWN);
		NEAR(obs(&w, LONG), limited == 1 ? 0 : 103);
	}
}

// The first window of a flow without an RTT of the handshake is paced as if that were a
// millisecond; the first RTT corrects it. With one it is right from the start, and Startup never
// paces more slowly because a sample is small.
TEST(startup_is_paced_by_the_first_round_trip) {
	struct wire w;

	wire_open(&w, NULL);
	w.next.delivery_bps = 0;
	flight(&w, 1, 0);
	NEAR(w.b.out.pacing_bps, 2.77 * 10 * 8000 / 10e-3);

	wire_open(&w, NULL);
	w.b.ops->init(w.b.state, w.b.config, MSS, RTT, w.now_ns, &w.b.out);
	NEAR(w.b.out.pacing_bps, 2.77 * 10 * 8000 / 10e-3);
	w.next.delivery_bps = 0.8e6;
	flight(&w, 1, 0);
	NEAR(w.b.out.pacing_bps, 2.77 * 10 * 8000 / 10e-3);
}

// BBRSetCwnd: in Startup the first window's ACKs add to the window whatever the rate, later ones
// only up to its target.
TEST(startup_grows_by_the_first_window_at_least) {
	struct wire w;

	wire_open(&w, NULL);
	w.next.delivery_bps = 0.8e6; // one segment per round trip
	flight(&w, 2, 0);
	CWND_EQ(&w.b, 12);
	flight(&w, 8, 0);
	CWND_EQ(&w.b, 12);
}

// Three losses in each of two rounds are not six in one.
TEST(losses_of_two_rounds_do_not_end_startup) {
	struct wire w;

	wire_open(&w, NULL);
	flight(&w, 10, 0);
	cc_loss(&w.b, w.now_ns, 10, false);
	w.next.in_recovery = true;
	w.next.inflight_segs = 4 * BDP;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 3; i++) {
			struct cc_ack ack = {
				.now_ns = w.now_ns, .lost_segs = 2, .in_recovery = true};

			cc_ack(&w.b, &ack);
		}
		w.next.delivery_bps *= 2;
		flight(&w, 100, 0);
		ck_assert_int_eq(mode(&w), STARTUP);
	}
}

// BBRUpdateACKAggregation: what comes beyond the rate within 10 rounds is added to the window,
// but no more than a window.
TEST(aggregation_widens_the_window) {
	struct wire w;
	uint64_t sent_at;

	cruise(&w, NULL);
	for (int i = 0; i < 12; i++)
		flight(&w, BDP, 0);
	CWND_EQ(&w.b, 2 * BDP + BDP); // each ACK has a BDP at once
	sent_at = w.delivered - 1;
	within(&w, MS, 50, sent_at); // 1 ms is worth 10
	for (int i = 0; i < 3; i++) {
		flight(&w, BDP, 0);
		CWND_EQ(&w.b, 3 * BDP + 40);
	}
	w.now_ns += 5 * MS; // a gap: the rate has caught up
	for (int i = 0; i < 11; i++)
		flight(&w, BDP, 0);
	CWND_EQ(&w.b, 3 * BDP);
	within(&w, 1, 1000, w.delivered - 1);
	CWND_EQ(&w.b, 2 * BDP + 3 * BDP);
}

// BBRProbeInflightLongUpward: the bound is not raised by a flow that did not fill its window.
TEST(the_bound_grows_only_at_the_limit) {
	struct wire w;
	double before;

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, BDP, 3);
	w.next.inflight_segs = 40;
	while (mode(&w) != UP)
		flight(&w, 20, 0);
	before = obs(&w, LONG);
	for (int i = 0; i < 2; i++) {
		struct cc_ack ack = {.now_ns = w.now_ns += RTT,
			.rtt_ns = RTT,
			.srtt_ns = RTT,
			.sent_ns = w.now_ns - RTT,
			.acked_segs = 90,
			.inflight_segs = 40,
			.delivery_bps = BW_BPS,
			.prior_delivered_segs = w.delivered,
			.delivered_segs = w.delivered + 90};

		w.delivered += 90;
		cc_ack(&w.b, &ack);
		NEAR(obs(&w, LONG), before);
	}
}

// BBRIsTimeToCruise: also at most 0.85 of the bound of 103 may be in flight.
TEST(down_lasts_until_there_is_headroom) {
	struct wire w;

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, BDP, 3);
	w.next.inflight_segs = 88;
	flight(&w, 80, 0);
	ck_assert_int_eq(mode(&w), DOWN);
	w.next.inflight_segs = 87;
	flight(&w, 80, 0);
	ck_assert_int_eq(mode(&w), CRUISE);
}

// A round that begins with a loss ends though further ones follow; else losses in every round would
// never be answered.
TEST(losses_in_each_round_are_answered) {
	struct wire w;
	double before;

	cruise(&w, NULL);
	flight(&w, 90, 0);
	flight(&w, 90, 1);
	before = w.b.out.cwnd_segs;
	flight(&w, 90, 1);
	NEAR(obs(&w, SHORT), 0.7 * before);
}

// A spurious recovery gives back all three bounds as they were when the first loss of the last
// round with losses came (SaveStateUponLoss).
TEST(an_undo_takes_the_bounds_back) {
	struct wire w;

	cruise(&w, NULL);
	cc_loss(&w.b, w.now_ns, BDP, false);
	w.next.delivery_bps = 0.5 * BW_BPS;
	flight(&w, BDP / 2, 0);
	flight(&w, BDP / 2, 1);
	flight(&w, BDP / 2, 0);
	ck_assert_double_gt(obs(&w, SHORT), 0);
	ck_assert_double_lt(obs(&w, BW), BW_BPS);
	spurious(&w);
	NEAR(obs(&w, SHORT), 0);
	NEAR(obs(&w, BW), BW_BPS);
}

// Those of before the first timeout, like the window, whatever a second one finds.
TEST(an_undo_goes_back_beyond_the_second_timeout) {
	struct wire w;
	double before;

	cruise(&w, NULL);
	before = w.b.out.cwnd_segs;
	cc_rto(&w.b, w.now_ns, BDP);
	w.next.in_loss = true;
	while (mode(&w) != UP) // with a window this small it probes soon
		flight(&w, 4, 0);
	flight(&w, 4, 3);
	NEAR(obs(&w, LONG), 7);
	cc_rto_repeated(&w.b, w.now_ns, 4);
	CWND_EQ(&w.b, 1);
	spurious(&w);
	NEAR(obs(&w, LONG), 0);
	CWND_EQ(&w.b, before);
}

// BBRHandleRestartFromIdle: after a silence no time is lost by ProbeRTT, which the silence has
// replaced, and the first packets leave at the rate itself, in the states of ProbeBW only.
TEST(after_idling) {
	struct wire w;

	fill(&w, NULL);
	w.b.ops->on_idle(w.b.state, w.b.config, w.now_ns, 1, &w.b.out);
	NEAR(w.b.out.pacing_bps, 0.5 * 0.99 * BW_BPS); // Drain
	up(&w, NULL);
	w.next.rtt_ns = RTT + 1;
	w.now_ns += 6000 * MS;
	w.b.ops->on_idle(w.b.state, w.b.config, w.now_ns, 6000 * MS, &w.b.out);
	NEAR(w.b.out.pacing_bps, 0.99 * BW_BPS);
	flight(&w, BDP, 0);
	ck_assert_int_ne(mode(&w), PROBE_RTT);
}

// Samples of what was sent in ProbeRTT are limited: Startup goes on after it, however many rounds
// it had.
TEST(startup_goes_on_after_probe_rtt) {
	struct wire w;

	wire_open(&w, NULL);
	flight(&w, BDP, 0);
	w.next.rtt_ns = RTT + 1;
	w.next.inflight_segs = 50;
	w.now_ns += 5000 * MS;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	for (int i = 0; mode(&w) == PROBE_RTT; i++) {
		flight(&w, 50, 0);
		ck_assert_int_lt(i, 30);
	}
	ck_assert_int_eq(mode(&w), STARTUP);
}

// ProbeRTT takes a round at least, though its time is over before.
TEST(probe_rtt_lasts_a_round) {
	struct wire w;
	uint64_t sent_at;

	cruise(&w, (const char *const[]){"probe_rtt", "1ms", NULL});
	w.next.rtt_ns = RTT + 1;
	w.next.inflight_segs = 50;
	w.now_ns += 5000 * MS;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	sent_at = w.delivered - 50;
	for (int i = 0; i < 4; i++) {
		within(&w, 2 * MS, 1, sent_at);
		ck_assert_int_eq(mode(&w), PROBE_RTT);
	}
	flight(&w, 46, 0);
	ck_assert_int_eq(mode(&w), CRUISE);
}

// BBRUpdateMinRTT: a path that has become longer is known after 10 s, by what was seen since the
// ProbeRTT in between.
TEST(a_longer_path_is_learned) {
	struct wire w;
	uint64_t end_ns;

	cruise(&w, NULL);
	end_ns = w.now_ns + 9900 * MS;
	w.next.rtt_ns = 2 * RTT;
	w.next.inflight_segs = 40;
	while (w.now_ns < end_ns)
		flight(&w, BDP, 0);
	NEAR(obs(&w, MIN_RTT), 10e6);
	while (w.now_ns < end_ns + 200 * MS)
		flight(&w, BDP, 0);
	NEAR(obs(&w, MIN_RTT), 20e6);
}

// Leaving ProbeRTT forgets what losses have bounded for a while. In it the headroom of the lasting
// bound is kept too: of a flight of 70, where half of the BDP has grown to 100.
TEST(probe_rtt_and_the_bounds) {
	struct wire w;

	cruise(&w, NULL);
	w.next.rtt_ns = RTT + 1;
	w.next.inflight_segs = 50;
	w.now_ns += 5000 * MS;
	flight(&w, 50, 0);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	flight(&w, 50, 1);
	flight(&w, 50, 0);
	ck_assert_double_gt(obs(&w, SHORT), 0);
	while (mode(&w) == PROBE_RTT)
		flight(&w, 50, 0);
	NEAR(obs(&w, SHORT), 0);

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, 50, 3);
	NEAR(obs(&w, LONG), 70);
	w.next.inflight_segs = 40;
	w.next.delivery_bps = 2 * BW_BPS;
	flight(&w, 40, 0);
	w.next.rtt_ns = RTT + 1;
	w.now_ns += 5000 * MS;
	flight(&w, 40, 0);
	ck_assert_int_eq(mode(&w), PROBE_RTT);
	CWND_EQ(&w.b, 0.85 * 70);
}
