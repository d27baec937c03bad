// SPDX-License-Identifier: BSD-3-Clause
// Prague through the transport: each number is that of the formulas at the head of prague.c.
#include "cc_transport.h"

enum { SSTHRESH, ALPHA, MARKED, RTT_VIRT };

#define PRAGUE(options)                                                                            \
	"{cc: {prague: {initial: 10" options                                                       \
	"}}, ack_every: 1, ecn_feedback: dctcp, rto_min: 10s, tlp: no, "                           \
	"pacing: off}"

// The first ACK ends the first observation window; the next ends with segment 10, the first that
// was sent after that ACK. Only unmarked segments let the window grow, by one segment per round
// trip, also while it is reduced.
TEST(alpha_and_the_window_follow_the_marks) {
	struct link *l = HAND(.group = PRAGUE(", rtt_virt: 0"));
	uint64_t t_ns = 40 * MS;
	double alpha = 1, window; // held, until a window with a mark has ended

	ck_assert_double_eq(cc_observed(l, ALPHA), 1);
	ack_to(l, 1, false, t_ns);
	OBSERVED_EQ(l, ALPHA, alpha);
	CWND_EQ(l, 11);
	for (uint64_t i = 2; i <= 7; i++)
		ack_to(l, i, i >= 5, t_ns + i);
	window = 14 * (1 - alpha / 2); // reduced once by the three echoes
	CWND_EQ(l, window);
	OBSERVED_EQ(l, SSTHRESH, window);
	ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, 1);
	for (uint64_t i = 8; i <= 10; i++) {
		ack_to(l, i, false, t_ns + i);
		window += 1 / window;
		OBSERVED_EQ(l, ALPHA, alpha);
	}
	ck_assert_double_eq_tol(cwnd(l), window, 1e-5);
	ack_to(l, 11, false, t_ns + 21 * MS);
	alpha += (0.3 - alpha) / 16;
	OBSERVED_EQ(l, ALPHA, alpha);
	OBSERVED_EQ(l, MARKED, 0.3);
}

// A flow of 20 ms grows as one of 40 ms in equal time: by a quarter of a segment per round trip.
TEST(a_short_flow_grows_as_one_of_rtt_virt) {
	struct link *l = HAND(.group = PRAGUE(", rtt_virt: 40ms, alpha: 0"));
	double window = 10;

	ack_to(l, 1, true, 40 * MS); // ends slow start, and with alpha 0 costs nothing
	CWND_EQ(l, 10);
	ck_assert_double_eq(cc_observed(l, RTT_VIRT), 40e6);
	for (uint64_t i = 2; i <= 9; i++) {
		ack_to(l, i, false, 40 * MS + i);
		window += 0.25 / window;
	}
	ck_assert_double_eq_tol(cwnd(l), window, 1e-5);
}

// It reduces once per RTT_virt, though each of its own round trips has a mark.
TEST(a_short_flow_reduces_as_one_of_rtt_virt) {
	static const uint32_t reductions[] = {1, 1, 1, 2, 2, 2, 3};
	struct link *l = HAND(.group = PRAGUE(", rtt_virt: 60ms"));
	uint64_t una = 0;

	for (int i = 0; i < 7; i++) {
		uint64_t t_ns = (40 + 20 * (uint64_t)i) * MS, end = link_flow(l)->nxt;

		for (una++; una < end; una++)
			ack_to(l, una, una % 10 == 1, t_ns + una);
		ack_to(l, end, false, t_ns + una); // a round trip without a queue
		ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, reductions[i]);
	}
}

// RFC 9331, section 4.3: a loss is answered as Reno does, also in the round trip of a mark.
TEST(a_loss_halves) {
	for (int marked = 0; marked < 2; marked++) {
		struct link *l = HAND(.group = PRAGUE(", alpha: 0"));
		double before;

		ack_to(l, 1, marked > 0, 40 * MS);
		before = cwnd(l);
		for (uint64_t to = 3; to <= 6; to++)
			hand_sack_at(l, 1, 2, to, 40 * MS + to);
		ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
		OBSERVED_EQ(l, SSTHRESH, before / 2);
		CWND_EQ(l, before / 2);
		ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, 1);
		ck_assert_uint_eq(link_flow(l)->count.ecn_echoes, 0);
		link_close(l);
	}
}

// A loss, unlike a mark, stops growth until it is repaired: a partial ACK adds nothing, the one
// that ends recovery does.
TEST(a_loss_stops_growth_until_it_is_repaired) {
	struct link *l = HAND(.group = PRAGUE(", rtt_virt: 0, alpha: 0"));

	ack_to(l, 1, false, 40 * MS);
	CWND_EQ(l, 11);
	hand_sack_at(l, 1, 2, 5, 41 * MS);
	hand_sack_at(l, 1, 6, 9, 41 * MS);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 2);
	CWND_EQ(l, 5.5);
	hand_sack_at(l, 5, 6, 9, 60 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	CWND_EQ(l, 5.5);
	hand_ack_at(l, 12, 61 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_OPEN);
	CWND_EQ(l, 5.5 + 4 / 5.5);
}

// After a timeout segments that are lost again were sent in the window that it has reduced already.
TEST(a_loss_after_a_timeout_reduces_nothing) {
	struct link *l = HAND(.group = "{cc: {prague: {initial: 10, alpha: 0}}, ack_every: 1, "
				       "ecn_feedback: dctcp, rto_min: 200ms, tlp: no, "
				       "frto: no, pacing: off}");
	uint64_t t_ns, lost;

	ack_to(l, 1, false, 40 * MS);
	while (link_flow(l)->count.timeouts == 0)
		NEED(link_step(l, S));
	OBSERVED_EQ(l, SSTHRESH, 5.5);
	t_ns = l->now_ns + 20 * MS;
	hand_ack_at(l, 2, t_ns);
	CWND_EQ(l, 2);
	hand_sack_at(l, 2, 3, 4, t_ns + 20 * MS);
	lost = link_flow(l)->count.lost_segs;
	hand_sack_at(l, 2, 3, 5, t_ns + 40 * MS);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, lost + 1);
	OBSERVED_EQ(l, SSTHRESH, 5.5);
	CWND_EQ(l, 2);
}

// M is of RTT_virt at least: of two round trips of 20 ms where that is 40 ms. Of the 7 segments 2
// are marked.
TEST(an_observation_lasts_for_rtt_virt) {
	struct link *l = HAND(.group = "{cc: {prague: {initial: 4, rtt_virt: 40ms, g: 1, "
				       "alpha: 0}}, ack_every: 1, ecn_feedback: dctcp, "
				       "rto_min: 10s, tlp: no, pacing: off}");

	ack_to(l, 1, false, 60 * MS); // 40 ms after the handshake
	ck_assert_double_eq(cc_observed(l, ALPHA), 0);
	ck_assert_double_eq(cc_observed(l, RTT_VIRT), 40e6);
	ack_to(l, 2, true, 70 * MS);
	ack_to(l, 5, false, 80 * MS); // the first that left after the observation began
	ck_assert_double_eq(cc_observed(l, ALPHA), 0);
	ack_to(l, 6, true, 99 * MS);
	ck_assert_double_eq(cc_observed(l, ALPHA), 0);
	ack_to(l, 8, false, 100 * MS);
	OBSERVED_EQ(l, MARKED, 2.0 / 7);
}

// A loss that a DSACK shows to be spurious leaves nothing behind: in the episode that the same
// ACK's mark begins, the window grows by unmarked segments as after any mark.
TEST(after_an_undone_loss_it_grows) {
	struct link *l = HAND(.group = PRAGUE(", rtt_virt: 0, alpha: 0"));
	struct seg s;
	double before;

	ack_to(l, 1, false, 40 * MS);
	for (uint64_t to = 3; to <= 11; to++)
		hand_sack_at(l, 1, 2, to, 40 * MS + to);
	CWND_EQ(l, 5.5);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 1);
	s = hand_ack(l, 11, 60 * MS);
	hand_sack(l, &s, 1, 2);
	s.flags |= SEG_ECE;
	hand_feed(l, &s, 60 * MS);
	ck_assert_uint_eq(link_flow(l)->count.spurious_recoveries, 1);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	before = cwnd(l);
	ck_assert_double_gt(before, 10);
	ack_to(l, 12, false, 61 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	CWND_EQ(l, before + 1 / before);
}

TEST(pacing_is_twice_the_rate_in_slow_start) {
	struct link *l = HAND(.group = "{cc: {prague: {initial: 10, alpha: 0}}, ack_every: 1, "
				       "ecn_feedback: dctcp, rto_min: 10s, tlp: no}");
	double rate_bps = 1448 * 8 / 0.020;

	ck_assert_double_eq_tol(link_flow(l)->out.pacing_bps, 2 * 10 * rate_bps, 1);
	ack_to(l, 1, false, 40 * MS);
	ck_assert_double_eq_tol(link_flow(l)->out.pacing_bps, 2 * 11 * rate_bps, 1);
	ack_to(l, 2, true, 41 * MS);
	ck_assert_double_eq_tol(link_flow(l)->out.pacing_bps, 1.2 * 11 * rate_bps, 0.01 * rate_bps);
}

// Before the first mark alpha stays at 1, though windows end without one: the first reduction
// halves. From then on it is the average, down from 1.
TEST(alpha_holds_until_the_first_mark) {
	struct link *l = HAND(.group = PRAGUE(", rtt_virt: 0"));
	uint64_t una = 0;

	for (uint64_t i = 0; i < 3; i++) {
		uint64_t end = link_flow(l)->nxt;

		for (una++; una <= end; una++)
			ack_to(l, una, false, (40 + 20 * i) * MS + una);
		una = end;
		ck_assert_double_eq(cc_observed(l, ALPHA), 1);
		ck_assert_double_eq(cc_observed(l, MARKED), 0);
	}
	CWND_EQ(l, 80);
	ack_to(l, una + 1, true, 100 * MS);
	CWND_EQ(l, 40);
	for (una += 2; cc_observed(l, MARKED) <= 0; una++)
		ack_to(l, una, false, 120 * MS + una);
	ck_assert_double_lt(cc_observed(l, ALPHA), 1);
	ck_assert_double_ge(cc_observed(l, ALPHA), 15.0 / 16);
}

TEST(asks_for_a_count_of_marks) {
	struct link *l = LINK(.group = "{cc: prague}");

	ck_assert(l->groups.group[0].accecn);
	ck_assert(!l->groups.group[0].dctcp_echo);
	link_run(l, 30 * MS);
	ck_assert_uint_eq(l->data[0].ecn, ECN_ECT1);
}

// Otherwise it is Reno: ssthresh halved by a timeout, once.
TEST(is_reno_without_marks) {
	cc_check_reno_without_marks(
		"{cc: {prague: {initial: 4}}, ack_every: 1, rto_min: 200ms, pacing: off}",
		SSTHRESH);
}
