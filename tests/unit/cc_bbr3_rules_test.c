// SPDX-License-Identifier: BSD-3-Clause
// draft-ietf-ccwg-bbr: the conditions under which its model is not changed, and what takes a
// change back.
#include "cc_bbr3.h"

// BBRCheckFullBWReached: a quarter more in the third round begins the count again.
TEST(a_quarter_of_growth_is_enough) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	for (int i = 0; i < 3; i++)
		flight(&b, BDP, 0);
	b.next.delivery_bps *= 1.25;
	for (int i = 0; i < 3; i++) {
		flight(&b, BDP, 0);
		ck_assert_int_eq(cc_mode(&b), STARTUP);
	}
	flight(&b, BDP, 0);
	ck_assert_int_ne(cc_mode(&b), STARTUP);
}

// An application that sends little does not show that the pipe is full.
TEST(limited_samples_do_not_end_startup) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	flight(&b, BDP, 0);
	b.next.app_limited = true;
	for (int i = 0; i < 10; i++)
		flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), STARTUP);
}

// BBRUpdateMaxBw: they only count if they are the largest. Of the last two cycles none had more
// than a quarter of the rate where it was not the application that limited it.
TEST(limited_samples_do_not_lower_the_rate) {
	struct cc_bench b;
	int before = UP;

	up(&b, NULL);
	for (int refills = 0; refills < 2; before = cc_mode(&b)) {
		b.next.app_limited = before == CRUISE || before == REFILL;
		b.next.delivery_bps = b.next.app_limited ? 0.75 * BW_BPS : 0.25 * BW_BPS;
		flight(&b, BDP / 4, 0);
		refills += cc_mode(&b) == REFILL && before != REFILL;
	}
	NEAR(cc_observed(&b, BW), 0.25 * BW_BPS);
	b.next.app_limited = true;
	b.next.delivery_bps = 0.3 * BW_BPS;
	flight(&b, BDP / 4, 0);
	NEAR(cc_observed(&b, BW), 0.3 * BW_BPS);
}

// BBRHandleInflightTooHigh: the flight of a lost segment that the application limited was no probe,
// but the probe ends all the same. What the ACK's own segment was does not matter.
TEST(a_limited_probe_sets_no_bound) {
	for (int limited = 0; limited < 2; limited++) {
		struct cc_bench b;

		up(&b, NULL);
		b.next.inflight_segs = 2 * BDP;
		b.next.app_limited = limited == 0;
		b.next.lost_app_limited = limited == 1;
		flight(&b, BDP, 3);
		ck_assert_int_eq(cc_mode(&b), DOWN);
		NEAR(cc_observed(&b, LONG), limited == 1 ? 0 : 103);
	}
}

// The first window of a flow without an RTT of the handshake is paced as if that were a
// millisecond; the first RTT corrects it. With one it is right from the start, and Startup never
// paces more slowly because a sample is small.
TEST(startup_is_paced_by_the_first_round_trip) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	b.next.delivery_bps = 0;
	flight(&b, 1, 0);
	NEAR(b.out.pacing_bps, 2.77 * 10 * 8000 / 10e-3);

	open_bbr3(&b, NULL);
	b.ops->init(b.state, b.config, MSS, RTT, b.now_ns, &b.out);
	NEAR(b.out.pacing_bps, 2.77 * 10 * 8000 / 10e-3);
	b.next.delivery_bps = 0.8e6;
	flight(&b, 1, 0);
	NEAR(b.out.pacing_bps, 2.77 * 10 * 8000 / 10e-3);
}

// BBRSetCwnd: in Startup the first window's ACKs add to the window whatever the rate, later ones
// only up to its target.
TEST(startup_grows_by_the_first_window_at_least) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	b.next.delivery_bps = 0.8e6; // one segment per round trip
	flight(&b, 2, 0);
	CWND_EQ(&b, 12);
	flight(&b, 8, 0);
	CWND_EQ(&b, 12);
}

// Three losses in each of two rounds are not six in one.
TEST(losses_of_two_rounds_do_not_end_startup) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	flight(&b, 10, 0);
	cc_loss(&b, b.now_ns, 10, false);
	b.next.in_recovery = true;
	b.next.inflight_segs = 4 * BDP;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 3; i++) {
			struct cc_ack ack = {
				.now_ns = b.now_ns, .lost_segs = 2, .in_recovery = true};

			cc_ack(&b, &ack);
		}
		b.next.delivery_bps *= 2;
		flight(&b, 100, 0);
		ck_assert_int_eq(cc_mode(&b), STARTUP);
	}
}

// BBRUpdateACKAggregation: what comes beyond the rate within 10 rounds is added to the window,
// but no more than a window.
TEST(aggregation_widens_the_window) {
	struct cc_bench b;
	uint64_t sent_at;

	cruise(&b, NULL);
	for (int i = 0; i < 12; i++)
		flight(&b, BDP, 0);
	CWND_EQ(&b, 2 * BDP + BDP); // each ACK has a BDP at once
	sent_at = b.delivered - 1;
	cc_step(&b, MS, 50, sent_at); // 1 ms is worth 10
	for (int i = 0; i < 3; i++) {
		flight(&b, BDP, 0);
		CWND_EQ(&b, 3 * BDP + 40);
	}
	b.now_ns += 5 * MS; // a gap: the rate has caught up
	for (int i = 0; i < 11; i++)
		flight(&b, BDP, 0);
	CWND_EQ(&b, 3 * BDP);
	cc_step(&b, 1, 1000, b.delivered - 1);
	CWND_EQ(&b, 2 * BDP + 3 * BDP);
}

// BBRProbeInflightLongUpward: the bound is not raised by a flow that did not fill its window.
TEST(the_bound_grows_only_at_the_limit) {
	struct cc_bench b;
	double before;

	up_after_loss(&b);
	before = cc_observed(&b, LONG);
	for (int i = 0; i < 2; i++) {
		struct cc_ack ack = {.now_ns = b.now_ns += RTT,
			.rtt_ns = RTT,
			.srtt_ns = RTT,
			.sent_ns = b.now_ns - RTT,
			.acked_segs = 90,
			.inflight_segs = 40,
			.delivery_bps = BW_BPS,
			.prior_delivered_segs = b.delivered,
			.delivered_segs = b.delivered + 90};

		b.delivered += 90;
		cc_ack(&b, &ack);
		NEAR(cc_observed(&b, LONG), before);
	}
}

// BBRIsTimeToCruise: also at most 0.85 of the bound of 103 may be in flight.
TEST(down_lasts_until_there_is_headroom) {
	struct cc_bench b;

	up(&b, NULL);
	b.next.inflight_segs = 2 * BDP;
	flight(&b, BDP, 3);
	b.next.inflight_segs = 88;
	flight(&b, 80, 0);
	ck_assert_int_eq(cc_mode(&b), DOWN);
	b.next.inflight_segs = 87;
	flight(&b, 80, 0);
	ck_assert_int_eq(cc_mode(&b), CRUISE);
}

// A round that begins with a loss ends though further ones follow; else losses in every round would
// never be answered.
TEST(losses_in_each_round_are_answered) {
	struct cc_bench b;
	double before;

	cruise(&b, NULL);
	flight(&b, 90, 0);
	flight(&b, 90, 1);
	before = b.out.cwnd_segs;
	flight(&b, 90, 1);
	NEAR(cc_observed(&b, SHORT), 0.7 * before);
}

// A spurious recovery gives back all three bounds as they were when the first loss of the last
// round with losses came (SaveStateUponLoss).
TEST(an_undo_takes_the_bounds_back) {
	struct cc_bench b;

	cruise(&b, NULL);
	cc_loss(&b, b.now_ns, BDP, false);
	b.next.delivery_bps = 0.5 * BW_BPS;
	flight(&b, BDP / 2, 0);
	flight(&b, BDP / 2, 1);
	flight(&b, BDP / 2, 0);
	ck_assert_double_gt(cc_observed(&b, SHORT), 0);
	ck_assert_double_lt(cc_observed(&b, BW), BW_BPS);
	cc_spurious(&b);
	NEAR(cc_observed(&b, SHORT), 0);
	NEAR(cc_observed(&b, BW), BW_BPS);
}

// Those of before the first timeout, like the window, whatever a second one finds.
TEST(an_undo_goes_back_beyond_the_second_timeout) {
	struct cc_bench b;
	double before;

	cruise(&b, NULL);
	before = b.out.cwnd_segs;
	cc_rto(&b, b.now_ns, BDP);
	b.next.in_loss = true;
	while (cc_mode(&b) != UP) // with a window this small it probes soon
		flight(&b, 4, 0);
	flight(&b, 4, 3);
	NEAR(cc_observed(&b, LONG), 7);
	cc_rto_repeated(&b, b.now_ns, 4);
	CWND_EQ(&b, 1);
	cc_spurious(&b);
	NEAR(cc_observed(&b, LONG), 0);
	CWND_EQ(&b, before);
}

// BBRHandleRestartFromIdle: after a silence no time is lost by ProbeRTT, which the silence has
// replaced, and the first packets leave at the rate itself, in the states of ProbeBW only.
TEST(after_idling) {
	struct cc_bench b;

	fill(&b, NULL);
	b.ops->on_idle(b.state, b.config, b.now_ns, 1, &b.out);
	NEAR(b.out.pacing_bps, 0.5 * 0.99 * BW_BPS); // Drain
	up(&b, NULL);
	b.next.rtt_ns = RTT + 1;
	b.now_ns += 6000 * MS;
	b.ops->on_idle(b.state, b.config, b.now_ns, 6000 * MS, &b.out);
	NEAR(b.out.pacing_bps, 0.99 * BW_BPS);
	flight(&b, BDP, 0);
	ck_assert_int_ne(cc_mode(&b), PROBE_RTT);
}

// Samples of what was sent in ProbeRTT are limited: Startup goes on after it, however many rounds
// it had.
TEST(startup_goes_on_after_probe_rtt) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	flight(&b, BDP, 0);
	b.next.rtt_ns = RTT + 1;
	b.next.inflight_segs = 50;
	b.now_ns += 5000 * MS;
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), PROBE_RTT);
	for (int i = 0; cc_mode(&b) == PROBE_RTT; i++) {
		flight(&b, 50, 0);
		ck_assert_int_lt(i, 30);
	}
	ck_assert_int_eq(cc_mode(&b), STARTUP);
}

// ProbeRTT takes a round at least, though its time is over before.
TEST(probe_rtt_lasts_a_round) {
	struct cc_bench b;
	uint64_t sent_at;

	cruise(&b, (const char *const[]){"probe_rtt", "1ms", NULL});
	b.next.rtt_ns = RTT + 1;
	b.next.inflight_segs = 50;
	b.now_ns += 5000 * MS;
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), PROBE_RTT);
	sent_at = b.delivered - 50;
	for (int i = 0; i < 4; i++) {
		cc_step(&b, 2 * MS, 1, sent_at);
		ck_assert_int_eq(cc_mode(&b), PROBE_RTT);
	}
	flight(&b, 46, 0);
	ck_assert_int_eq(cc_mode(&b), CRUISE);
}

// BBRUpdateMinRTT: a path that has become longer is known after 10 s, by what was seen since the
// ProbeRTT in between.
TEST(a_longer_path_is_learned) {
	struct cc_bench b;
	uint64_t end_ns;

	cruise(&b, NULL);
	end_ns = b.now_ns + 9900 * MS;
	b.next.rtt_ns = 2 * RTT;
	b.next.inflight_segs = 40;
	while (b.now_ns < end_ns)
		flight(&b, BDP, 0);
	NEAR(cc_observed(&b, MIN_RTT), 10e6);
	while (b.now_ns < end_ns + 200 * MS)
		flight(&b, BDP, 0);
	NEAR(cc_observed(&b, MIN_RTT), 20e6);
}

// Leaving ProbeRTT forgets what losses have bounded for a while. In it the headroom of the lasting
// bound is kept too: of a flight of 70, where half of the BDP has grown to 100.
TEST(probe_rtt_and_the_bounds) {
	struct cc_bench b;

	cruise(&b, NULL);
	b.next.rtt_ns = RTT + 1;
	b.next.inflight_segs = 50;
	b.now_ns += 5000 * MS;
	flight(&b, 50, 0);
	ck_assert_int_eq(cc_mode(&b), PROBE_RTT);
	flight(&b, 50, 1);
	flight(&b, 50, 0);
	ck_assert_double_gt(cc_observed(&b, SHORT), 0);
	while (cc_mode(&b) == PROBE_RTT)
		flight(&b, 50, 0);
	NEAR(cc_observed(&b, SHORT), 0);

	up(&b, NULL);
	b.next.inflight_segs = 2 * BDP;
	flight(&b, 50, 3);
	NEAR(cc_observed(&b, LONG), 70);
	b.next.inflight_segs = 40;
	b.next.delivery_bps = 2 * BW_BPS;
	flight(&b, 40, 0);
	b.next.rtt_ns = RTT + 1;
	b.now_ns += 5000 * MS;
	flight(&b, 40, 0);
	ck_assert_int_eq(cc_mode(&b), PROBE_RTT);
	CWND_EQ(&b, 0.85 * 70);
}
