// SPDX-License-Identifier: BSD-3-Clause
// LoLa through the transport: a round from slow start to the decrease, by the paper's equations.
// Base RTT 50 ms.
#include "cc_transport.h"

#include <math.h>

enum { QDELAY, QDATA, X, K };
enum { SLOW_START, CUBIC, FAIR, HOLD };

#define T0 (20 * MS)
#define RTT (50 * MS)
#define PAYLOAD 1448.0

static struct link *opened(const char *options) {
	char group[200];

	snprintf(group, sizeof(group),
		"{cc: {lola: {initial: 40%s}}, ack_every: 1, tlp: no, pacing: off, rto_min: 60s}",
		options);
	return HAND(.group = group);
}

// Acknowledges all that is in flight, in one ACK whose newest segment took rtt_ns. All of a flight
// leaves at once.
static uint64_t round_of(struct link *l, uint64_t sent_ns, uint64_t rtt_ns) {
	hand_ack_at(l, link_flow(l)->nxt, sent_ns + rtt_ns);
	return sent_ns + rtt_ns;
}

TEST(a_round_follows_the_equations) {
	const double gamma = 973.0 / 1024;
	struct link *l = opened("");
	uint64_t t_ns = round_of(l, T0, RTT), start_ns;
	double before, x, qdata;

	CWND_EQ(l, 80);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	t_ns = round_of(l, t_ns, RTT + 2 * MS); // 2 Qlow: not more than it
	CWND_EQ(l, 160);
	t_ns = round_of(l, t_ns, RTT + 3 * MS);
	// RTT - RTTmin > 2 Qlow ends it; RTTnow > Qlow starts balancing: the last 40 ms have no
	// other sample.
	ck_assert_int_eq(cc_mode(l), FAIR);
	OBSERVED_EQ(l, QDELAY, 3e6);
	OBSERVED_EQ(l, QDATA, 3.0 / 53 * 160);
	CWND_EQ(l, 160); // X = 0
	start_ns = t_ns;
	for (int i = 0; i < 14;
		i++) { // X, 8 segments after 0.8 s, stays below Qdata: nothing is added
		t_ns = round_of(l, t_ns, RTT + 3 * MS);
		CWND_EQ(l, 160);
	}
	t_ns = round_of(l, t_ns, RTT + 2 * MS);
	x = (double)(t_ns - start_ns) * 1e-6 / 35;
	x = x * x * x / PAYLOAD;
	qdata = 2.0 / 52 * 160;
	OBSERVED_EQ(l, X, x);
	ck_assert_double_eq_tol(cwnd(l), 160 + x - qdata, 1e-4);
	before = cwnd(l);
	t_ns = round_of(l, t_ns, RTT + 2 * MS); // sooner than srtt + 40 ms: not added again
	CWND_EQ(l, before);
	t_ns = round_of(l, t_ns, RTT + 6 * MS); // 5 ms are the limit
	ck_assert_int_eq(cc_mode(l), HOLD);
	CWND_EQ(l, before);
	start_ns = t_ns;
	while (t_ns - start_ns + RTT + 6 * MS < 250 * MS) {
		t_ns = round_of(l, t_ns, RTT + 6 * MS);
		ck_assert_int_eq(cc_mode(l), HOLD);
		CWND_EQ(l, before);
	}
	t_ns = round_of(l, t_ns, RTT + 6 * MS);
	// (3): what is left is gamma RTTmin cwnd / RTTnow, and (1) is there at t = 0.
	ck_assert_int_eq(cc_mode(l), CUBIC);
	ck_assert_double_eq_tol(cwnd(l), gamma * 50.0 / 56 * before, 1e-4);
	double k = cc_observed(l, K);

	ck_assert_double_eq_tol(before - 0.4 * k * k * k, cwnd(l), 1e-3);
	// t later it is on the curve. No queue of the next 250 ms counts, nor one up to Qlow.
	t_ns = round_of(l, t_ns, RTT);
	x = 0.05 - k;
	ck_assert_double_eq_tol(cwnd(l), 0.4 * x * x * x + before, 1e-3);
	for (int i = 0; i < 3; i++) { // others may still have a queue
		t_ns = round_of(l, t_ns, RTT + 2 * MS);
		ck_assert_int_eq(cc_mode(l), CUBIC);
	}
	t_ns = round_of(l, t_ns, RTT + 1 * MS);
	ck_assert_int_eq(cc_mode(l), CUBIC);
	round_of(l, t_ns, RTT + 2 * MS); // 305 ms later
	ck_assert_int_eq(cc_mode(l), FAIR);
}

// The smallest of 40 ms decides: one late packet says nothing of the queue.
TEST(one_late_packet_is_not_a_queue) {
	struct link *l = opened("");

	hand_ack_at(l, 10, T0 + RTT);
	hand_ack_at(l, 20, T0 + RTT + 1);
	for (int i = 0; i < 3; i++)
		hand_ack_at(l, 21 + (uint64_t)i, T0 + RTT + 1800000);
	OBSERVED_EQ(l, QDELAY, 0);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
}

// A timeout that turns out to be spurious: the state comes back with the window. It stayed in slow
// start, and doubled a window that had filled the path.
TEST(spurious_timeout_changes_nothing) {
	struct link *l = opened("");
	const struct group *g = &l->groups.group[0];
	struct flow *f = link_flow(l);
	struct cc_loss loss = {0};
	uint64_t t_ns = round_of(l, T0, RTT);
	double before;

	t_ns = round_of(l, t_ns, RTT + 3 * MS);
	ck_assert_int_eq(cc_mode(l), FAIR);
	before = cwnd(l);
	loss.now_ns = t_ns;
	g->cc->on_rto(f->cc_state, g->cc_config, &loss, &f->out);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	g->cc->on_spurious(f->cc_state, g->cc_config, t_ns, &f->out);
	CWND_EQ(l, before);
	ck_assert_int_eq(cc_mode(l), FAIR);
	g->cc->on_loss(f->cc_state, g->cc_config, &loss, &f->out);
	ck_assert_int_eq(cc_mode(l), CUBIC);
	g->cc->on_spurious(f->cc_state, g->cc_config, t_ns, &f->out);
	CWND_EQ(l, before);
	ck_assert_int_eq(cc_mode(l), FAIR);
}

TEST(rtt_min_is_measured_again_if_the_queue_never_empties) {
	struct link *l = opened(", decreases: 2, hold: 0s");
	uint64_t t_ns = round_of(l, T0, RTT);
	int resets = 0;

	// From now on the path takes 60 ms: what looks like 10 ms of queue cannot be drained.
	for (int i = 0; i < 12; i++) {
		t_ns = round_of(l, t_ns, RTT + 10 * MS);
		resets += cc_observed(l, QDELAY) == 0;
		ck_assert_double_ge(cwnd(l), 2);
	}
	ck_assert_int_gt(resets, 0);
}

TEST(a_loss_leaves_seven_tenths) {
	struct link *l = opened("");

	for (uint64_t to = 2; to <= 5; to++)
		hand_sack_at(l, 0, 1, to, T0 + RTT + to);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	ck_assert_int_eq(cc_mode(l), CUBIC);
	CWND_EQ(l, 0.7 * 42); // two ACKs before it, of one segment each
	OBSERVED_EQ(l, K, cbrt(0.3 * 42 / 0.4));
}

// C = 1000 segments per s^3. Time in recovery is not part of t, and an ACK lets the window grow by
// half at most.
TEST(the_cubic_increase_is_bounded) {
	struct link *l = opened(", c: 1000, hold: 100s");
	uint64_t t_ns = T0 + RTT;
	double k, x, before;

	hand_ack_at(l, 1, t_ns);
	for (uint64_t to = 3; to <= 5; to++)
		hand_sack_at(l, 1, 2, to, t_ns);
	CWND_EQ(l, 0.7 * 43);
	k = cbrt(0.3 * 43 / 1000);
	hand_sack_at(l, 1, 2, 6, t_ns + 30 * MS);
	CWND_EQ(l, 0.7 * 43);
	hand_ack_at(l, link_flow(l)->nxt, t_ns + 50 * MS); // ends it
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_OPEN);
	x = 0.020 - k;
	before = 43 + 1000 * x * x * x;
	ck_assert_double_eq_tol(cwnd(l), before, 1e-3);
	hand_ack_at(l, link_flow(l)->nxt, t_ns + 1050 * MS); // (1) has 43 + 1000 x 0.78^3 here
	ck_assert_int_eq(cc_mode(l), CUBIC);
	ck_assert_double_eq_tol(cwnd(l), 1.5 * before, 1e-3);
}

// X of a small phi is thousands of segments after a round trip: (2) still adds a window at most.
TEST(balancing_doubles_at_most) {
	struct link *l = opened(", phi: 0.1");
	uint64_t t_ns = round_of(l, T0, RTT);

	t_ns = round_of(l, t_ns, RTT + 3 * MS);
	ck_assert_int_eq(cc_mode(l), FAIR);
	CWND_EQ(l, 80);
	round_of(l, t_ns, RTT + 3 * MS);
	ck_assert_int_eq(cc_mode(l), FAIR);
	ck_assert_double_gt(cc_observed(l, X), 100000);
	CWND_EQ(l, 160);
}

// What (2) adds shows in Qdata after a round trip and in RTTnow 40 ms later: within srtt + 40 ms it
// is not added again.
TEST(balancing_waits_for_its_effect) {
	struct link *l = opened(", phi: 10");
	uint64_t t_ns = round_of(l, T0, RTT), added_ns;
	double before, srtt;

	t_ns = round_of(l, t_ns, RTT + 3 * MS);
	before = cwnd(l);
	while (cwnd(l) <= before)
		t_ns = round_of(l, t_ns, RTT + 3 * MS);
	ck_assert_int_eq(cc_mode(l), FAIR);
	added_ns = t_ns;
	before = cwnd(l);
	srtt = (double)link_flow(l)->rtt.srtt_ns;
	ck_assert_double_lt(srtt, 54e6);
	hand_ack_at(l, link_flow(l)->una + 1, added_ns + RTT + 4 * MS);
	hand_ack_at(l, link_flow(l)->una + 1, added_ns + RTT + 4 * MS + 1);
	CWND_EQ(l, before);
	ck_assert_double_gt(cc_observed(l, X), cc_observed(l, QDATA));
	hand_ack_at(l, link_flow(l)->nxt, added_ns + 2 * (RTT + 4 * MS));
	ck_assert_double_gt(cwnd(l), before);
}

TEST(after_idling_it_starts_again) {
	struct link *l = opened("");
	const struct cc_ops *cc = cc_find("lola");
	const void *config = l->groups.group[0].cc_config;
	uint64_t t_ns = round_of(l, T0, RTT);

	t_ns = round_of(l, t_ns, RTT + 3 * MS);
	ck_assert_int_eq(cc_mode(l), FAIR);
	CWND_EQ(l, 80);
	cc->on_idle(link_flow(l)->cc_state, config, t_ns + 60 * S, 60 * S, &link_flow(l)->out);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	CWND_EQ(l, 40);
}

// Two timeouts, and then the ACK of an original: the window of before the first comes back, and not
// slow start, which would double it. It goes on as after slow start.
TEST(spurious_timeouts_are_taken_back) {
	struct link *l = HAND(.group = "{cc: {lola: {initial: 40}}, ack_every: 1, tlp: no, "
				       "pacing: off, rto_min: 200ms}");
	uint64_t t_ns = round_of(l, T0, RTT), sent_ns;
	struct seg s;

	sent_ns = t_ns = round_of(l, t_ns, RTT + 3 * MS);
	ck_assert_int_eq(cc_mode(l), FAIR);
	CWND_EQ(l, 80);
	while (link_flow(l)->count.timeouts < 2)
		NEED(link_step(l, 100 * S));
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	CWND_EQ(l, 2);
	t_ns = l->now_ns + MS;
	s = hand_ack(l, link_flow(l)->una + 10, t_ns);
	s.tsecr = flow_tsval(sent_ns);
	hand_feed(l, &s, t_ns);
	ck_assert_uint_eq(link_flow(l)->count.spurious_timeouts, 1);
	ck_assert_int_eq(cc_mode(l), FAIR);
	ck_assert_double_ge(cwnd(l), 80);
	ck_assert_double_lt(cwnd(l), 81); // this ACK is also one of balancing
}

TEST(a_timeout_starts_again) {
	struct link *l = HAND(.group = "{cc: lola, ack_every: 1, tlp: no, rto_min: 200ms}");

	hand_ack_at(l, 1, 40 * MS);
	link_run(l, 500 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	CWND_EQ(l, 2);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
}
