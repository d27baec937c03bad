// SPDX-License-Identifier: BSD-3-Clause
// draft-ietf-ccwg-bbr: careful probes after a lossy one, where DOWN ends, and the state that a
// spurious recovery restores.
#include "cc_bbr3.h"

// HandleSpuriousLossDetection: the losses that ended UP were none, so what they bounded is free
// again and the probe begins anew, a round of REFILL first. Further losses of the same recovery do
// not forget that.
TEST(an_undo_begins_the_probe_anew) {
	for (int more = 0; more < 3; more++) {
		struct wire w;

		up(&w, NULL);
		cc_loss(&w.b, w.now_ns, BDP, false);
		w.next.inflight_segs = 2 * BDP;
		flight(&w, BDP, 3);
		NEAR(obs(&w, LONG), 103);
		for (int i = 0; i < more; i++)
			flight(&w, BDP, 2);
		ck_assert_int_eq(mode(&w), DOWN);
		spurious(&w);
		NEAR(obs(&w, LONG), 0);
		NEAR(obs(&w, SHORT), 0);
		ck_assert_int_eq(mode(&w), REFILL);
		flight(&w, BDP, 0);
		ck_assert_int_eq(mode(&w), UP);
		spurious(&w); // there is nothing to go back to twice
		ck_assert_int_eq(mode(&w), UP);
	}
}

// And those that ended Startup: it goes on.
TEST(an_undo_goes_on_with_startup) {
	struct wire w;

	wire_open(&w, NULL);
	flight(&w, 10, 0);
	cc_loss(&w.b, w.now_ns, 10, false);
	w.next.in_recovery = true;
	for (int i = 0; i < 6; i++) {
		struct cc_ack ack = {.now_ns = w.now_ns, .lost_segs = 1, .in_recovery = true};

		ack.delivered_segs = w.delivered;
		cc_ack(&w.b, &ack);
	}
	w.next.delivery_bps *= 2;
	w.next.inflight_segs = 4 * BDP;
	flight(&w, 200, 0);
	ck_assert_int_eq(mode(&w), DRAIN);
	spurious(&w);
	ck_assert_int_eq(mode(&w), STARTUP);
	w.next.in_recovery = false;
	flight(&w, 200, 0);
	ck_assert_int_eq(mode(&w), STARTUP);
	NEAR(w.b.out.pacing_bps, 2.77 * 0.99 * 2 * BW_BPS);
}

// 5.3.3.4: after a probe that lost too much, the next one ends as soon as inflight_longterm is in
// flight; a round later, with no further loss, comes another, which does not.
TEST(the_probe_after_a_lossy_one_is_careful) {
	struct wire w;

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, BDP, 3);
	NEAR(obs(&w, LONG), 103);
	w.next.inflight_segs = 40;
	while (mode(&w) != UP)
		flight(&w, 20, 0);
	w.next.inflight_segs = 2;
	flight(&w, 50, 0); // 52 before the ACK
	ck_assert_int_eq(mode(&w), UP);
	w.next.inflight_segs = 10;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), DOWN);
	w.next.inflight_segs = BDP;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), REFILL);
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), UP);
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), UP);
}

// If it has lost too much as well, the next probe waits for its time.
TEST(a_careful_probe_that_loses_is_not_repeated) {
	struct wire w;

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	flight(&w, BDP, 3);
	w.next.inflight_segs = 40;
	while (mode(&w) != UP)
		flight(&w, 20, 0);
	w.next.inflight_segs = 3;
	flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), DOWN);
	flight(&w, BDP, 4);
	ck_assert_int_eq(mode(&w), CRUISE);
}

// IsTimeToCruise: DOWN ends at Inflight(max_bw, 1.0), whatever bw_shortterm is.
TEST(down_ends_at_the_bdp_of_max_bw) {
	struct wire w;

	up(&w, NULL);
	w.next.inflight_segs = 2 * BDP;
	for (int i = 0; i < 3; i++)
		flight(&w, BDP, 0);
	ck_assert_int_eq(mode(&w), DOWN);
	w.next.delivery_bps = 0.5 * BW_BPS;
	for (int i = 0; i < 5; i++)
		flight(&w, 50, 1);
	ck_assert_double_lt(obs(&w, BW), 0.8 * BW_BPS);
	w.next.inflight_segs = BDP;
	flight(&w, 50, 0);
	ck_assert_int_eq(mode(&w), CRUISE);
}

// The losses of a timeout are judged as others: they end the probe, and an undo begins it anew.
TEST(a_timeout_ends_the_probe) {
	struct wire w;
	struct cc_loss loss = {.inflight_segs = 120, .lost_segs = 100};

	up(&w, NULL);
	loss.now_ns = w.now_ns;
	w.b.ops->on_rto(w.b.state, w.b.config, &loss, &w.b.out);
	ck_assert_int_eq(mode(&w), DOWN);
	NEAR(obs(&w, LONG), 120);
	CWND_EQ(&w.b, 21);
	spurious(&w);
	ck_assert_int_eq(mode(&w), REFILL);
	NEAR(obs(&w, LONG), 0);
}
