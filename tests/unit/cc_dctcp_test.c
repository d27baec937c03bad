// SPDX-License-Identifier: BSD-3-Clause
// DCTCP through the transport: each number is that of RFC 8257 section 3.3.
#include "cc_transport.h"

enum { SSTHRESH, ALPHA, MARKED };

#define DCTCP(options)                                                                             \
	"{cc: {dctcp: {initial: 10" options "}}, ack_every: 1, ecn: ect0, rto_min: 10s, tlp: no}"

// Alpha starts at 1. The first ACK ends the first observation window; the next ends with segment
// 10, the first that was sent after that ACK.
TEST(alpha_follows_the_share_of_marks) {
	struct link *l = HAND(.group = DCTCP(""));
	uint64_t t_ns = 40 * MS;
	double alpha = 1;

	ck_assert_double_eq(cc_observed(l, ALPHA), 1);
	ack_to(l, 1, false, t_ns);
	alpha *= 15.0 / 16;
	OBSERVED_EQ(l, ALPHA, alpha);
	CWND_EQ(l, 11);
	for (uint64_t i = 2; i <= 10; i++) {
		ack_to(l, i, i >= 5 && i <= 7, t_ns + i);
		OBSERVED_EQ(l, ALPHA, alpha);
	}
	// 14 after ACK 4, reduced once by the three echoes of one window, which was cut by alpha /
	// 2.
	CWND_EQ(l, 14 * (1 - alpha / 2));
	OBSERVED_EQ(l, SSTHRESH, 14 * (1 - alpha / 2));
	ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, 1);
	ack_to(l, 11, false, t_ns + 20 * MS);
	alpha += (0.3 - alpha) / 16;
	OBSERVED_EQ(l, ALPHA, alpha);
	OBSERVED_EQ(l, MARKED, 0.3);
}

// An ACK that says CE acknowledges marked segments only: two of the ten here (RFC 8257 section
// 3.2).
TEST(an_ack_counts_each_of_its_segments) {
	struct link *l = HAND(.group = DCTCP(", g: 1"));

	ack_to(l, 1, false, 40 * MS);
	ack_to(l, 3, true, 41 * MS);
	for (uint64_t i = 4; i <= 10; i++)
		ack_to(l, i, false, 41 * MS + i);
	ack_to(l, 11, false, 60 * MS);
	OBSERVED_EQ(l, MARKED, 0.2);
	OBSERVED_EQ(l, ALPHA, 0.2);
}

TEST(alpha_reaches_zero_and_a_mark_then_costs_little) {
	struct link *l = HAND(.group = DCTCP(", g: 1, abc_limit: 1"));
	double before;

	ack_to(l, 1, false, 40 * MS);
	OBSERVED_EQ(l, ALPHA, 0);
	before = cwnd(l);
	ack_to(l, 2, true, 40 * MS + 1);
	CWND_EQ(l, before);
}

// Section 3.5: a loss is answered as Reno does, also in the round trip of a mark, which cost
// little. Linux:
// dctcp_react_to_loss.
TEST(a_loss_halves_after_a_mark) {
	struct link *l = HAND(.group = DCTCP(", g: 1, abc_limit: 1"));

	ack_to(l, 1, false, 40 * MS);
	CWND_EQ(l, 11);
	ack_to(l, 2, true, 40 * MS + 1); // alpha is 0
	CWND_EQ(l, 11);
	for (uint64_t to = 4; to <= 6; to++)
		hand_sack_at(l, 2, 3, to, 40 * MS + to);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	CWND_EQ(l, 5.5);
	hand_sack_at(l, 2, 5, 9, 40 * MS + 9); // once
	CWND_EQ(l, 5.5);
	hand_sack_at(l, 2, 10, 12, 41 * MS); // also by a further loss
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 2);
	CWND_EQ(l, 5.5);
	ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, 1);
	ck_assert_uint_eq(link_flow(l)->count.ecn_echoes, 0);
}

// The window of that moment, of which what is in flight is the measure (RFC 5681, equation 4). It
// was the target of the mark's reduction: one of half a window and a loss left a quarter.
TEST(a_loss_after_a_mark_halves_what_is_in_flight) {
	struct link *l = HAND(.group = DCTCP(", abc_limit: 1"));
	double target, flight = 0;

	ack_to(l, 1, false, 40 * MS);
	ack_to(l, 2, true, 40 * MS + 1); // alpha is 15 / 16
	target = 11 * (1 - 15.0 / 32);
	CWND_EQ(l, target);
	for (uint64_t to = 4; link_flow(l)->count.lost_segs == 0; to++) {
		flight = flow_inflight(link_flow(l));
		hand_sack_at(l, 2, 3, to, 40 * MS + to);
	}
	ck_assert_double_gt(flight, target + 1);
	CWND_EQ(l, flight / 2);
}

// The echo's episode ends with a timeout: a retransmission that is lost after it was sent in the
// window that the timeout has reduced already.
TEST(a_loss_after_a_timeout_reduces_nothing) {
	struct link *l = HAND(.group = "{cc: {dctcp: {initial: 10, g: 1, alpha: 0}}, ack_every: 1, "
				       "ecn: ect0, rto_min: 200ms, tlp: no}");
	uint64_t t_ns;

	ack_to(l, 1, true, 40 * MS);
	CWND_EQ(l, 10);
	while (link_flow(l)->count.timeouts == 0)
		NEED(link_step(l, S));
	CWND_EQ(l, 1);
	t_ns = l->now_ns + 20 * MS;
	hand_ack_at(l, 2, t_ns);
	CWND_EQ(l, 2);
	hand_sack_at(l, 2, 3, 4, t_ns + 20 * MS);
	uint64_t lost = link_flow(l)->count.lost_segs;

	hand_sack_at(l, 2, 3, 5, t_ns + 40 * MS);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, lost + 1);
	CWND_EQ(l, 2);
	OBSERVED_EQ(l, SSTHRESH, 10);
}

// A loss is no mark, and alpha is that of the parameter.
TEST(a_loss_halves) {
	struct link *l = HAND(.group = DCTCP(", alpha: 0"));

	ck_assert_double_eq(cc_observed(l, ALPHA), 0);
	for (uint64_t to = 2; to <= 5; to++)
		hand_sack_at(l, 0, 1, to, 40 * MS + to);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	OBSERVED_EQ(l, SSTHRESH, 5);
	hand_sack_at(l, 0, 6, 9, 41 * MS); // once, though it goes on
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 2);
	OBSERVED_EQ(l, SSTHRESH, 5);
}

// Section 3.2 at work: the receiver delays ACKs and yet every marked segment is counted.
TEST(the_receiver_reports_every_mark) {
	struct link *l = LINK(.group = "{cc: {dctcp: {initial: 32, g: 1, alpha: 0}}, "
				       "ack_every: 4, ecn: ect0}",
		.mark = 0x1234567);
	uint64_t marked = 0;

	// Initial window: 32 segments, and the observation window that its second ACK starts.
	link_run(l, 55 * MS);
	for (uint64_t i = 0; i < l->acks_count; i++) {
		uint32_t from = i == 0 ? link_flow(l)->iss + 1 : l->acks[i - 1].seg.ack;

		if ((l->acks[i].seg.flags & (SEG_SYN | SEG_ECE)) == SEG_ECE)
			marked += (l->acks[i].seg.ack - from) / 1448;
	}
	ck_assert_uint_eq(marked, (uint64_t)__builtin_popcount(0x1234567));
	ck_assert_uint_eq(l->rx.received.ce_segs, marked);
}

TEST(a_group_may_choose_the_echo) {
	struct link *cc = LINK(.group = "{cc: dctcp, ecn: ect1}");
	struct link *dctcp = LINK(.group = "{cc: newreno, ecn: ect0, ecn_feedback: dctcp}");
	struct link *classic = LINK(.group = "{cc: dctcp, ecn: ect0, ecn_feedback: classic}");
	struct link *reno = LINK(.group = "{cc: newreno, ecn: ect0}");

	ck_assert(cc->groups.group[0].dctcp_echo);
	ck_assert(dctcp->groups.group[0].dctcp_echo);
	ck_assert(!classic->groups.group[0].dctcp_echo);
	ck_assert(!reno->groups.group[0].dctcp_echo);
	link_run(cc, 30 * MS);
	ck_assert_uint_eq(cc->data[0].ecn, ECN_ECT1);
}

// A group that says nothing has the codepoint its control lives on: ECT(0) (RFC 8257 section 3.1),
// and none with Reno.
TEST(ecn_is_on_by_default) {
	struct link *dctcp = LINK(.group = "{cc: dctcp}");
	struct link *off = LINK(.group = "{cc: dctcp, ecn: off}");
	struct link *reno = LINK(.group = "{cc: newreno}");

	link_run(dctcp, 30 * MS);
	link_run(off, 30 * MS);
	link_run(reno, 30 * MS);
	ck_assert_uint_eq(dctcp->data[0].ecn, ECN_ECT0);
	ck_assert_uint_eq(off->data[0].ecn, ECN_NOT_ECT);
	ck_assert_uint_eq(reno->data[0].ecn, ECN_NOT_ECT);
}

// BBR does not answer marks: every packet is, and nothing is reduced.
TEST(a_deaf_control_ignores_echoes_where_that_is_allowed) {
	struct link *l =
		LINK(.group = "{cc: bbr, ecn: ect0, ecn_unheard: allow}", .mark = UINT64_MAX);

	link_run(l, 200 * MS);
	ck_assert_uint_eq(l->data[0].ecn, ECN_ECT0);
	ck_assert_uint_ge(l->rx.received.ce_segs, 50);
	ck_assert_uint_eq(link_flow(l)->ca, FLOW_CA_OPEN);
	ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, 0);
	ck_assert_uint_eq(link_flow(l)->count.ecn_echoes, 0);
}

// Otherwise it is Reno: one segment per round trip, ssthresh halved by a timeout, once.
TEST(is_reno_without_marks) {
	cc_check_reno_without_marks(
		"{cc: {dctcp: {initial: 4}}, ack_every: 1, rto_min: 200ms}", SSTHRESH);
}
