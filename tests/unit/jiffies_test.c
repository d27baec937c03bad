// SPDX-License-Identifier: BSD-3-Clause
// Timers of a host that counts in ticks (`hz`). The times are those that kernel/time/timer.c of
// Linux 6.12 gives: a timer fires at a tick, never early, and a long one at a slot of several
// ticks.
#include "common/base/jiffies.h"

#include "receiver_test.h"

#define TICK (4 * MS) // hz: 250
#define TICKS "rto_min: 180ms, hz: 250"
#define T0 (40 * MS) // of the first ACKs

TEST(timers_fire_at_ticks) {
	static const struct {
		uint64_t tick_ns, from_ns, delay_ns, fires_ns;
	} cases[] = {
		{0, 5, 7, 12}, // no ticks
		{TICK, 0, 1, 2 * TICK}, // a part of the present tick is over
		{TICK, TICK - 1, TICK, 2 * TICK}, {TICK, TICK, TICK, 3 * TICK},
		{TICK, 0, 200 * MS, 204 * MS}, {10 * MS, 0, 200 * MS, 210 * MS},
		{TICK, 0, 62 * TICK, 63 * TICK},
		{TICK, 0, 63 * TICK, 64 * TICK}, // slots of 8 ticks
		{TICK, 0, 64 * TICK, 72 * TICK}, {TICK, 0, 503 * TICK, 504 * TICK},
		{TICK, 0, 504 * TICK, 512 * TICK}, // of 64
		{TICK, 0, 600 * TICK, 640 * TICK}, {TICK, 0, 4032 * TICK, 4096 * TICK}, // of 512
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(
			jiffies_timer_ns(cases[i].tick_ns, cases[i].from_ns, cases[i].delay_ns),
			cases[i].fires_ns);
}

// 2 srtt are 40 ms, and 2 ms more in a kernel: 11 ticks after the fifth.
TEST(a_tail_loss_probe_is_sent_at_a_tick) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 4}}, " TICKS "}");

	link_run(l, 17 * TICK - 1);
	ck_assert_uint_eq(l->data_count, 4);
	link_run(l, 17 * TICK);
	SENT(l, 4, 4, 17 * TICK);
}

// 200 ms after 20 ms, and the rest of a tick.
TEST(a_timeout_fires_at_a_tick) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 4}}, tlp: no, " TICKS "}");

	link_run(l, 224 * MS - 1);
	ck_assert_uint_eq(l->data_count, 4);
	link_run(l, 224 * MS);
	SENT(l, 4, 0, 224 * MS);
}

// A quarter of the RTT is 5 ms, and 2 ms more: two ticks after the tenth. An exact timer would have
// fired at 45 ms.
TEST(a_hole_that_closes_within_two_ticks_is_no_loss) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 10}}, " TICKS "}");

	hand_sack_at(l, 0, 1, 2, T0);
	ck_assert_int_eq(link_flow(l)->rtx_kind, RTX_REO);
	ck_assert_uint_eq(link_flow(l)->rtx_deadline_ns, 13 * TICK);
	hand_ack_at(l, 2, 13 * TICK - 1);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 0);
}

// The 17th segment waits for another one, or for 10 ticks of 4 ms.
TEST(a_delayed_ack_is_sent_at_a_tick) {
	struct link *l = RCV("acks: linux, hz: 250");
	uint64_t acks, t_ns = 100 * MS;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 17; i++)
		feed_seg(l, i, t_ns += MS);
	acks = l->acks_count;
	link_run(l, 160 * MS - 1); // the last one arrived in the 29th tick
	expect(l, &acks, 0, 0);
	link_run(l, 160 * MS);
	expect(l, &acks, 1, 17 * LEN);
}

// Segment 5 overtakes five others, and what arrives beyond a hole lets the window of a kernel grow
// from then on (tcp_may_raise_cwnd); without ticks it never does (RFC 5681 section 3.1).
TEST(sacks_raise_the_window_of_a_kernel_that_has_seen_reordering) {
	static const struct {
		const char *group;
		double more;
	} cases[] = {{"{cc: {newreno: {initial: 10}}, tlp: no, hz: 250}", 1},
		{"{cc: {newreno: {initial: 10}}, tlp: no}", 0}};

	for (size_t i = 0; i < 2; i++) {
		struct link *l = HAND(.group = cases[i].group);
		double before;

		hand_sack_at(l, 0, 5, 6, T0);
		hand_ack_at(l, 1, T0 + MS);
		before = link_flow(l)->out.cwnd_segs;
		hand_sack_at(l, 1, 5, 7, T0 + 2 * MS);
		ck_assert_double_eq_tol(link_flow(l)->out.cwnd_segs, before + cases[i].more, 1e-9);
		ck_assert_uint_eq(link_flow(l)->count.lost_segs, 0);
		link_close(l);
	}
}

// tcp_ack_update_rtt: of what was sent again a kernel's control learns the RTT that the timestamp
// tells, in whole milliseconds: 14 for 14.6, which are four ticks. Karn's rule leaves the 20 ms of
// the first round trip.
TEST(a_control_of_a_kernel_learns_from_timestamps) {
	static const struct {
		const char *group;
		uint64_t rtt_min_ns;
	} cases[] = {{"{cc: {westwood: {initial: 10}}, tlp: no, hz: 250}", 4 * TICK},
		{"{cc: {westwood: {initial: 10}}, tlp: no}", 20 * MS}};

	for (size_t i = 0; i < 2; i++) {
		struct link *l = HAND(.group = cases[i].group);
		const struct cc_ops *cc = l->groups.group[0].cc;
		float observed[CC_OBSERVED] = {0};
		struct seg s;

		hand_sack_at(l, 0, 1, 4, T0);
		SENT(l, 10, 0, T0);
		s = hand_ack(l, 4, T0 + 14600 * US);
		s.tsecr = flow_tsval(T0);
		hand_feed(l, &s, T0 + 14600 * US);
		cc->observe(link_flow(l)->cc_state, NULL, observed);
		ck_assert_double_eq((double)observed[2], (double)cases[i].rtt_min_ns);
		link_close(l);
	}
}
