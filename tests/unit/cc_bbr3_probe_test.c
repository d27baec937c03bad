// SPDX-License-Identifier: BSD-3-Clause
// draft-ietf-ccwg-bbr: careful probes after a lossy one, where DOWN ends, and the state that a
// spurious recovery restores.
#include "cc_bbr3.h"

// HandleSpuriousLossDetection: the losses that ended UP were none, so what they bounded is free
// again and the probe begins anew, a round of REFILL first. Further losses of the same recovery do
// not forget that.
TEST(an_undo_begins_the_probe_anew) {
	for (int more = 0; more < 3; more++) {
		struct cc_bench b;

		up(&b, NULL);
		cc_loss(&b, b.now_ns, BDP, false);
		b.next.inflight_segs = 2 * BDP;
		flight(&b, BDP, 3);
		NEAR(cc_observed(&b, LONG), 103);
		for (int i = 0; i < more; i++)
			flight(&b, BDP, 2);
		ck_assert_int_eq(cc_mode(&b), DOWN);
		cc_spurious(&b);
		NEAR(cc_observed(&b, LONG), 0);
		NEAR(cc_observed(&b, SHORT), 0);
		ck_assert_int_eq(cc_mode(&b), REFILL);
		flight(&b, BDP, 0);
		ck_assert_int_eq(cc_mode(&b), UP);
		cc_spurious(&b); // there is nothing to go back to twice
		ck_assert_int_eq(cc_mode(&b), UP);
	}
}

// And those that ended Startup: it goes on.
TEST(an_undo_goes_on_with_startup) {
	struct cc_bench b;

	open_bbr3(&b, NULL);
	flight(&b, 10, 0);
	cc_loss(&b, b.now_ns, 10, false);
	b.next.in_recovery = true;
	for (int i = 0; i < 6; i++) {
		struct cc_ack ack = {.now_ns = b.now_ns, .lost_segs = 1, .in_recovery = true};

		ack.delivered_segs = b.delivered;
		cc_ack(&b, &ack);
	}
	b.next.delivery_bps *= 2;
	b.next.inflight_segs = 4 * BDP;
	flight(&b, 200, 0);
	ck_assert_int_eq(cc_mode(&b), DRAIN);
	cc_spurious(&b);
	ck_assert_int_eq(cc_mode(&b), STARTUP);
	b.next.in_recovery = false;
	flight(&b, 200, 0);
	ck_assert_int_eq(cc_mode(&b), STARTUP);
	NEAR(b.out.pacing_bps, 2.77 * 0.99 * 2 * BW_BPS);
}

// 5.3.3.4: after a probe that lost too much, the next one ends as soon as inflight_longterm is in
// flight; a round later, with no further loss, comes another, which does not.
TEST(the_probe_after_a_lossy_one_is_careful) {
	struct cc_bench b;

	up(&b, NULL);
	b.next.inflight_segs = 2 * BDP;
	flight(&b, BDP, 3);
	NEAR(cc_observed(&b, LONG), 103);
	b.next.inflight_segs = 40;
	while (cc_mode(&b) != UP)
		flight(&b, 20, 0);
	b.next.inflight_segs = 2;
	flight(&b, 50, 0); // 52 before the ACK
	ck_assert_int_eq(cc_mode(&b), UP);
	b.next.inflight_segs = 10;
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), DOWN);
	b.next.inflight_segs = BDP;
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), REFILL);
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), UP);
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), UP);
}

// If it has lost too much as well, the next probe waits for its time.
TEST(a_careful_probe_that_loses_is_not_repeated) {
	struct cc_bench b;

	up_after_loss(&b);
	b.next.inflight_segs = 3;
	flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), DOWN);
	flight(&b, BDP, 4);
	ck_assert_int_eq(cc_mode(&b), CRUISE);
}

// IsTimeToCruise: DOWN ends at Inflight(max_bw, 1.0), whatever bw_shortterm is.
TEST(down_ends_at_the_bdp_of_max_bw) {
	struct cc_bench b;

	up(&b, NULL);
	b.next.inflight_segs = 2 * BDP;
	for (int i = 0; i < 3; i++)
		flight(&b, BDP, 0);
	ck_assert_int_eq(cc_mode(&b), DOWN);
	b.next.delivery_bps = 0.5 * BW_BPS;
	for (int i = 0; i < 5; i++)
		flight(&b, 50, 1);
	ck_assert_double_lt(cc_observed(&b, BW), 0.8 * BW_BPS);
	b.next.inflight_segs = BDP;
	flight(&b, 50, 0);
	ck_assert_int_eq(cc_mode(&b), CRUISE);
}

// The losses of a timeout are judged as others: they end the probe, and an undo begins it anew.
TEST(a_timeout_ends_the_probe) {
	struct cc_bench b;
	struct cc_loss loss = {.inflight_segs = 120, .lost_segs = 100};

	up(&b, NULL);
	loss.now_ns = b.now_ns;
	b.ops->on_rto(b.state, b.config, &loss, &b.out);
	ck_assert_int_eq(cc_mode(&b), DOWN);
	NEAR(cc_observed(&b, LONG), 120);
	CWND_EQ(&b, 21);
	cc_spurious(&b);
	ck_assert_int_eq(cc_mode(&b), REFILL);
	NEAR(cc_observed(&b, LONG), 0);
}
