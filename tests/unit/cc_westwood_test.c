// SPDX-License-Identifier: BSD-3-Clause
// Westwood+ through the transport: samples and both filters by hand. All ACKs take 100 ms.
#include "cc_transport.h"

enum { SSTHRESH, BWE, RTT_MIN };

#define T0 (20 * MS)
#define RTT (100 * MS)
#define SEG_BITS (1448 * 8.0)

static struct link *opened(void) {
	return HAND(.group = "{cc: {westwood: {initial: 20, abc_limit: 1}}, ack_every: 1, tlp: no, "
			     "rto_min: 10s, frto: no}");
}

static void ack_rounds(struct link *l, uint64_t from, uint64_t to) {
	for (uint64_t i = from; i <= to; i++)
		hand_ack_at(l, link_flow(l)->nxt, T0 + i * RTT);
}

// Flights of 20, 21, 22, 23. A sample has to be longer than the RTT, so each has two flights: 20 in
// the first, as the first ACK comes after one RTT; then 21 + 22.
static struct link *estimated(void) {
	struct link *l = opened();

	ack_rounds(l, 1, 1);
	ck_assert_double_eq(cc_observed(l, BWE), 0); // not longer than one RTT
	ack_rounds(l, 2, 2);
	OBSERVED_EQ(l, BWE, 100 * SEG_BITS); // 20 in 200 ms
	ack_rounds(l, 3, 3);
	OBSERVED_EQ(l, BWE, 100 * SEG_BITS);
	ack_rounds(
		l, 4, 4); // 43 in 200 ms: 215; (7 x 100 + 215) / 8 = 114.375; (7 x 100 + that) / 8
	OBSERVED_EQ(l, BWE, 101.796875 * SEG_BITS);
	ck_assert_double_eq(cc_observed(l, RTT_MIN), 100e6);
	CWND_EQ(l, 24);
	return l;
}

TEST(a_loss_falls_to_the_estimate) {
	struct link *l = estimated();
	uint64_t una = link_flow(l)->una;

	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, una, una + 1, una + to, T0 + 5 * RTT);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	OBSERVED_EQ(l, SSTHRESH, 10.1796875);
	CWND_EQ(l, 10.1796875);
}

// The window may be smaller than the estimate: then ssthresh alone follows it.
TEST(a_loss_never_raises_the_window) {
	struct link *l = estimated();
	struct cc_loss loss = {.inflight_segs = 5, .lost_segs = 1};
	const struct cc_ops *cc = cc_find("westwood");

	link_flow(l)->out.cwnd_segs = 5;
	cc->on_loss(
		link_flow(l)->cc_state, l->groups.group[0].cc_config, &loss, &link_flow(l)->out);
	OBSERVED_EQ(l, SSTHRESH, 10.1796875);
	CWND_EQ(l, 5);
}

TEST(a_timeout_measures_rtt_min_again) {
	struct link *l = estimated();
	struct cc_loss loss = {.inflight_segs = 24, .lost_segs = 24};
	const struct cc_ops *cc = cc_find("westwood");

	cc->on_rto(link_flow(l)->cc_state, NULL, &loss, &link_flow(l)->out);
	OBSERVED_EQ(l, SSTHRESH, 10.1796875);
	ck_assert_double_eq(cc_observed(l, RTT_MIN), 0);
	CWND_EQ(l, 1);
	hand_ack_at(l, link_flow(l)->una + 1, T0 + 4 * RTT + 130 * MS);
	ck_assert_double_eq(cc_observed(l, RTT_MIN), 130e6);
}

// A queue does not raise RTTmin: a flow that took it for the path would never drain it.
TEST(rtt_min_is_the_smallest) {
	struct link *l = opened();

	hand_ack_at(l, 1, T0 + RTT);
	hand_ack_at(l, 2, T0 + 2 * RTT);
	ck_assert_double_eq(cc_observed(l, RTT_MIN), 100e6);
}

// Two timeouts in two episodes, and no ACK of a segment that was sent once: RTTmin of before the
// first no longer counts, so the second halves the window.
TEST(without_rtt_min_it_halves) {
	struct link *l = estimated();
	uint64_t una = link_flow(l)->una, t_ns;

	while (link_flow(l)->count.timeouts == 0)
		NEED(link_step(l, 100 * S));
	OBSERVED_EQ(l, SSTHRESH, 10.1796875);
	t_ns = l->now_ns + RTT;
	for (uint64_t i = 1; i <= 8; i++) // retransmissions
		hand_ack_at(l, una + i, t_ns + i);
	ck_assert_double_eq(cc_observed(l, RTT_MIN), 0);
	CWND_EQ(l, 9);
	while (link_flow(l)->count.timeouts == 1)
		NEED(link_step(l, 200 * S));
	OBSERVED_EQ(l, SSTHRESH, 4.5);
}

TEST(without_an_estimate_it_halves) {
	struct link *l = opened();

	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, 0, 1, to, T0 + RTT);
	CWND_EQ(l, 10);
}

// Shorter RTTs than 50 ms: a sample still takes more than 50 ms. 20 + 21 segments, the ACK of the
// third flight ends it.
TEST(a_sample_is_longer_than_50_ms) {
	struct link *l = opened();

	for (uint64_t i = 1; i <= 2; i++) {
		hand_ack_at(l, link_flow(l)->nxt, T0 + i * 20 * MS);
		ck_assert_double_eq(cc_observed(l, BWE), 0);
	}
	hand_ack_at(l, link_flow(l)->nxt, T0 + 60 * MS);
	OBSERVED_EQ(l, BWE, 41 / 0.060 * SEG_BITS);
}
