// SPDX-License-Identifier: BSD-3-Clause
// Recovery: how the window moves (PRR, RFC 9937), how often (one reduction per window), peers
// without SACK (RFC 6582), and ECN (RFC 3168).
#include "link.h"

#define T0 (40 * MS)

static uint64_t sent_since(struct link *l, uint64_t *before) {
	uint64_t n = l->data_count - *before;

	*before = l->data_count;
	return n;
}

#define RTO ", rto_min: 180ms" // 200 ms in all

// Slow start grows with every segment that SACK reports; a figure of the RFC wants the window
// still.
static void past_slow_start(struct link *l) {
	struct flow *f = link_flow(l);
	struct cc_loss loss = {.now_ns = l->now_ns};
	double cwnd = f->out.cwnd_segs;

	cc_find("newreno")->on_loss(f->cc_state, l->groups.group[0].cc_config, &loss, &f->out);
	f->out.cwnd_segs = cwnd;
}

// ---- Proportional rate reduction ----

// RFC 6937 section 3.1: 20 segments, the first is lost, ssthresh 10; the ACKs of 1 and 2 send new
// data (limited transmit), that of 3 the retransmission, then every other ACK one segment. (The
// RFC's figure has its last two at 18 and 19 by the reduction bound, since its pipe does not count
// the retransmission.) At the end exactly ssthresh is in flight.
TEST(one_loss_of_twenty_as_in_the_rfc) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}}");
	const struct flow *f = link_flow(l);
	uint64_t before = 20;

	past_slow_start(l);
	for (uint64_t k = 1; k < 20; k++) {
		hand_sack_at(l, 0, 1, k + 1, T0 + k);
		ck_assert_uint_eq(sent_since(l, &before), k < 3 || (k % 2 == 1 && k < 19) ? 1 : 0);
		if (k == 3)
			ck_assert_uint_eq(l->data[l->data_count - 1].index, 0);
	}
	ck_assert_double_eq_tol(f->out.cwnd_segs, 10, 0.1);
	ck_assert_uint_eq(flow_inflight(f), 10);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
}

// The first 15 of 20 are lost: pipe falls to 4. One segment for each that arrives until a repair
// does, then two, while no repair is found lost (RFC 9937). With two from the start, as the
// reduction bound of RFC 6937 has it, repairs kept the queue full that dropped them.
TEST(fifteen_losses_of_twenty) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}}");
	const struct flow *f = link_flow(l);
	static const uint64_t pipe[] = {20, 20, 4 + 1, 4 + 1, 4 + 1};
	uint64_t before = 20;

	past_slow_start(l);
	for (uint64_t k = 0; k < 5; k++) {
		hand_sack_at(l, 0, 15, 16 + k, T0 + k);
		ck_assert_uint_eq(sent_since(l, &before), 1);
		ck_assert_uint_eq(flow_inflight(f), pipe[k]);
	}
	ck_assert_uint_eq(f->count.retransmits, 3);
	hand_sack_at(l, 1, 15, 20, T0 + 20 * MS);
	ck_assert_uint_eq(sent_since(l, &before), 2);
	ck_assert_uint_eq(flow_inflight(f), 4 + 2);
}

// The ACK of a repair that finds another repair lost lets out what it delivered and no more.
// Without SACK each duplicate ACK stands for one of the segments that are in proportion to
// ssthresh, also the one that begins the recovery.
TEST(one_loss_of_twenty_without_sack) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}, sack: no}");
	const struct flow *f = link_flow(l);
	uint64_t before = 20;

	past_slow_start(l);
	hand_ack_at(l, 0, T0); // opens the window
	for (uint64_t k = 1; k < 20; k++) {
		hand_ack_at(l, 0, T0 + k);
		ck_assert_uint_eq(sent_since(l, &before), k < 3 || (k % 2 == 1 && k < 19) ? 1 : 0);
		if (k == 3) {
			ck_assert_uint_eq(l->data[l->data_count - 1].index, 0);
			ck_assert_uint_eq(f->prr_flight, 20);
		}
	}
	ck_assert_uint_eq(flow_inflight(f), 10);
}

TEST(progress_that_finds_a_loss_is_not_rewarded) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}}");
	const struct flow *f = link_flow(l);
	uint64_t before;
	struct seg s;

	past_slow_start(l);
	for (uint64_t k = 0; k < 5; k++)
		hand_sack_at(l, 0, 15, 16 + k, T0 + k);
	ck_assert_uint_eq(f->count.retransmits, 3); // of 0, 1 and 2
	before = l->data_count;
	s = hand_ack(l, 1, T0 + 21 * MS);
	hand_sack(l, &s, 2, 3); // sent after the repair of 1
	hand_feed(l, &s, T0 + 21 * MS);
	ck_assert_uint_eq(f->count.lost_segs, 15 + 3); // it, and the two new ones
	ck_assert_uint_eq(sent_since(l, &before), 2);
}

TEST(window_after_recovery_is_ssthresh) {
	struct link *l = LINK(.group = "{cc: {newreno: {initial: 20}}, ack_every: 1}", .lose = 0x5);
	const struct flow *f = link_flow(l);

	link_run(l, 39 * MS);
	past_slow_start(l);
	link_run(l, 59 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
	link_run(l, 60 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_double_eq_tol(f->cwnd_segs, 10, 1);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
}

// An ACK that delivers nothing lets nothing out: each D-SACK sent a segment.
TEST(duplicates_that_deliver_nothing_send_nothing) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}}");

	past_slow_start(l);
	hand_sack_at(l, 0, 1, 15, T0);
	uint64_t before = l->data_count;

	for (uint64_t i = 0; i < 10; i++)
		hand_sack_at(l, 0, 1, 15, T0 + i);
	ck_assert_uint_eq(l->data_count, before);
}

// Found by RACK's timer, where no ACK delivers anything: PRR's share is nothing, the repair leaves
// all the same (section 3: "force a fast retransmit upon entering recovery").
TEST(repair_leaves_though_nothing_was_delivered) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 10}}}");

	hand_sack_at(l, 0, 1, 2, T0);
	link_run(l, T0 + 5 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	ck_assert_uint_eq(l->data[l->data_count - 1].index, 0);
	ck_assert_uint_eq(l->data[l->data_count - 1].t_ns, T0 + 5 * MS);
	ck_assert_uint_eq(link_flow(l)->prr_out, 1);
}

// The same below ssthresh, where the slow start reduction bound allows one segment more than was
// delivered.
TEST(duplicates_send_nothing_below_ssthresh_either) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}}");

	past_slow_start(l);
	hand_sack_at(l, 0, 15, 18, T0);
	ck_assert_uint_lt(flow_inflight(link_flow(l)), 10);
	uint64_t before = l->data_count;

	for (uint64_t i = 1; i < 5; i++)
		hand_sack_at(l, 0, 15, 18, T0 + i);
	ck_assert_uint_eq(l->data_count, before);
}

// The second recovery counts what it delivers from nothing, like the first.
TEST(next_recovery_is_reduced_in_proportion_too) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 40}}}");
	const struct flow *f = link_flow(l);
	uint64_t before;

	past_slow_start(l);
	for (uint64_t k = 1; k < 40; k++)
		hand_sack_at(l, 0, 1, k + 1, T0 + k);
	hand_ack_at(l, f->nxt, T0 + 20 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	before = l->data_count;
	uint64_t una = f->una, first = before;

	ck_assert_uint_eq(f->nxt - una, 21);
	for (uint64_t k = 1; k < 20; k++) {
		hand_sack_at(l, una, una + 1, una + k + 1, T0 + 40 * MS + k);
		ck_assert_uint_le(sent_since(l, &before), 1);
	}
	ck_assert_uint_eq(l->data_count - first, 11); // limited transmit, then every other
}

TEST(duplicates_count_anew_after_progress) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, sack: no}");

	hand_ack_at(l, 1, T0);
	hand_ack_at(l, 1, T0 + 1);
	hand_ack_at(l, 1, T0 + 2);
	hand_ack_at(l, 2, T0 + 3);
	hand_ack_at(l, 2, T0 + 4);
	hand_ack_at(l, 2, T0 + 5);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 0);
	hand_ack_at(l, 2, T0 + 6);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 1);
}

// The segment that is asked for has not arrived, however many duplicates there are.
TEST(duplicates_stand_for_all_but_the_hole) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, sack: no, source: {"
				       "size: {bytes: 5792B}}}");
	const struct flow *f = link_flow(l);

	ck_assert_uint_eq(f->nxt, 5); // with the FIN
	hand_ack_at(l, 0, T0); // opens the window
	for (uint64_t i = 1; i < 9; i++)
		hand_ack_at(l, 0, T0 + i);
	ck_assert_uint_eq(f->sacked, 4);
	ck_assert_uint_eq(flow_inflight(f), 1); // the repair
}

TEST(timeout_forgets_the_larger_reordering_window) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, tlp: no" RTO "}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, T0);

	hand_resent(l, 0, 1);
	hand_sack(l, &s, 0, 1);
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->reo_wnd_mult, 2);
	link_run(l, T0 + 200 * MS);
	ck_assert_uint_eq(f->count.timeouts, 1);
	ck_assert_uint_eq(f->reo_wnd_mult, 1);
}

// ---- Growth ----

// RFC 5681 section 3.1: only ACKs of new data in sequence let the window grow. It grew by three
// SACKs before the loss was declared, and a lone flow lost two segments for each halving, not one.
TEST(window_does_not_grow_on_what_is_sacked_only) {
	static const char *const groups[] = {
		"{cc: {newreno: {initial: 10}}}", "{cc: {cubic: {initial: 10}}}"};

	for (size_t i = 0; i < 2; i++) {
		struct link *l = HAND(.group = groups[i]);
		const struct flow *f = link_flow(l);

		hand_sack_at(l, 0, 1, 2, T0);
		hand_sack_at(l, 0, 1, 3, T0);
		ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
		ck_assert_double_eq(f->out.cwnd_segs, 10);
		hand_ack_at(l, 3, T0); // it was reordered
		ck_assert_double_eq(f->out.cwnd_segs, 11);
		link_close(l);
	}
}

// ---- Episodes ----

TEST(losses_of_one_window_are_one_reduction) {
	for (uint64_t mask = 1; mask < 1024; mask += 2) {
		struct link *l =
			LINK(.group = "{cc: {newreno: {initial: 14}}, ack_every: 1}", .lose = mask);

		link_run(l, 150 * MS);
		NEED(link_flow(l)->count.cwnd_reductions == 1);
		NEED(link_flow(l)->count.timeouts == 0);
		NEED(link_flow(l)->una > 14);
		link_close(l);
	}
}

// A segment sent in recovery is lost, and that is known before recovery ends: it belongs to the
// next window, which was never reduced for it.
TEST(loss_of_the_next_window_is_its_own_reduction) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 10}}}");
	const struct flow *f = link_flow(l);
	struct seg s;

	hand_sack_at(l, 0, 1, 4, T0);
	hand_sack_at(l, 0, 1, 10, T0 + 1); // sends 10 to 13
	ck_assert_uint_eq(f->nxt, 14);
	ck_assert_uint_eq(f->recover, 10);
	s = hand_ack(l, 0, T0 + 20 * MS);
	hand_sack(l, &s, 11, 14);
	hand_sack(l, &s, 1, 10);
	hand_feed(l, &s, T0 + 20 * MS + 1);
	ck_assert_uint_eq(f->count.lost_segs, 3); // 10, and 0 once more
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	hand_sack_at(l, 10, 11, 14, T0 + 21 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
	ck_assert_uint_eq(f->count.cwnd_reductions, 2);
	ck_assert_uint_ge(f->recover, 14);
}

// ---- Without SACK ----

#define NO_SACK(initial)                                                                           \
	HAND(.group = "{cc: {newreno: {initial: " #initial "}}, sack: no, timestamps: no" RTO "}")

static void dup(struct link *l, uint64_t una, uint64_t n, uint64_t now_ns) {
	for (uint64_t i = 0; i < n; i++)
		hand_ack_at(l, una, now_ns);
}

// RFC 3042 and 6582: two new segments, then the hole, then one hole per partial ACK.
TEST(third_duplicate_ack_sends_the_hole) {
	struct link *l = NO_SACK(10);
	const struct flow *f = link_flow(l);

	hand_ack_at(l, 0, T0 - 1); // opens the window: none
	dup(l, 0, 2, T0);
	SENT(l, 10, 10, T0);
	SENT(l, 11, 11, T0);
	dup(l, 0, 1, T0);
	SENT(l, 12, 0, T0);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	dup(l, 0, 7, T0);
	ck_assert_uint_eq(f->count.retransmits, 1);
	hand_ack_at(l, 4, T0 + 20 * MS); // 4 is lost too
	ck_assert_uint_eq(f->count.retransmits, 2);
	for (uint64_t i = 13, n = 0; i <= l->data_count; i++) {
		if (i == l->data_count)
			ck_assert_uint_eq(n, 1);
		else
			n += l->data[i].index == 4;
	}
	hand_ack_at(l, 12, T0 + 40 * MS); // all that was out at its start
	ck_assert_uint_eq(f->recover, 12);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert_int_eq(f->ca, f->nxt > 12 ? FLOW_CA_RECOVERY : FLOW_CA_OPEN);
	hand_ack_at(l, 13, T0 + 41 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
}

// RFC 5681 section 2 (e): an ACK that moves the window is no duplicate.
TEST(window_updates_are_no_duplicates) {
	struct link *l = NO_SACK(10);

	for (int i = 0; i < 6; i++) {
		struct seg s = hand_ack(l, 0, T0);

		s.window = (uint16_t)(60000 - i);
		hand_feed(l, &s, T0);
	}
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 0);
}

// Duplicates in the repair after a timeout answer its own superfluous segments. They were counted
// as segments that had arrived, though all were taken for lost: in flight fell below 0.
TEST(duplicates_after_a_timeout_are_not_arrivals) {
	struct link *l = NO_SACK(10);
	const struct flow *f = link_flow(l);

	link_run(l, 220 * MS);
	ck_assert_uint_eq(f->lost, 10);
	hand_ack_at(l, 1, 240 * MS); // 1 and 2 go out
	ck_assert_uint_eq(f->retrans, 2);
	dup(l, 1, 2, 241 * MS);
	hand_ack_at(l, 2, 242 * MS);
	ck_assert_uint_eq(f->sacked, 0);
	dup(l, 2, 5, 243 * MS);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
	for (uint64_t i = 3; i <= 12; i++)
		hand_ack_at(l, i <= f->nxt ? i : f->nxt, (240 + i) * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
}

// RFC 6582 section 3.2 step 1 and section 4: until the ACK covers more than recover, duplicates say
// nothing new.
TEST(no_fast_retransmit_of_what_the_timeout_repaired) {
	struct link *l = NO_SACK(4);
	const struct flow *f = link_flow(l);

	link_run(l, 220 * MS);
	hand_ack_at(l, 1, 240 * MS);
	hand_ack_at(l, 3, 260 * MS);
	hand_ack_at(l, 4, 280 * MS); // recover; new data is out
	ck_assert_uint_gt(f->nxt, 4);
	dup(l, 4, 3, 281 * MS);
	ck_assert_uint_eq(f->count.retransmits, 4);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
}

// ---- ECN ----

#define ECT "{cc: {newreno: {initial: 10}}, ack_every: 1, ecn: ect0" RTO "}"

static void echo_at(struct link *l, uint64_t una, uint64_t now_ns) {
	struct seg s = hand_ack(l, una, now_ns);

	s.flags |= SEG_ECE;
	hand_feed(l, &s, now_ns);
}

TEST(echo_halves_once_per_window_and_cwr_is_told_once) {
	struct link *l = HAND(.group = ECT);
	const struct flow *f = link_flow(l);
	uint64_t cwr = 0, first = 0;

	for (uint64_t i = 1; i <= 10; i++)
		echo_at(l, i, T0 + i);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert_uint_eq(f->count.ecn_echoes, 1);
	ck_assert_double_eq(f->out.cwnd_segs, 5);
	for (uint64_t i = 0; i < l->data_count; i++) {
		if ((l->data[i].seg.flags & SEG_CWR) != 0 && cwr++ == 0)
			first = l->data[i].index;
		ck_assert_uint_eq(l->data[i].ecn, ECN_ECT0);
	}
	ck_assert_uint_eq(cwr, 1);
	ck_assert_uint_eq(first, 10); // the first new segment
	hand_ack_at(l, 11, T0 + 20 * MS); // CWR arrived, the echo has stopped
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	echo_at(l, 12, T0 + 21 * MS);
	ck_assert_uint_eq(f->count.cwnd_reductions, 2);
}

// All of the window was acknowledged before anything new could carry CWR: the echo goes on, and was
// answered again.
TEST(echo_before_cwr_was_sent_is_the_same_one) {
	struct link *l = HAND(.group = ECT);
	const struct flow *f = link_flow(l);

	echo_at(l, 10, T0);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert_uint_ge(f->nxt, 11);
	ck_assert_uint_ne(l->data[10].seg.flags & SEG_CWR, 0);
	struct link *w = HAND(.group = ECT, .window = 2 * 1448);
	struct seg s = hand_ack(w, 1, T0);

	s.flags |= SEG_ECE;
	s.window = 0; // nothing new may leave
	hand_feed(w, &s, T0);
	s.ack = flow_seq(link_flow(w), 2);
	hand_feed(w, &s, T0 + 1);
	hand_feed(w, &s, T0 + 2);
	ck_assert_uint_eq(link_flow(w)->count.cwnd_reductions, 1);
}

// RFC 3168 section 6.1.2: once per window for losses and echoes together, and CWR after any
// reduction.
TEST(loss_and_echo_in_one_window_are_one_reduction) {
	struct link *l = LINK(.group = ECT, .lose = 0x1, .mark = 0x200);
	const struct flow *f = link_flow(l);

	link_run(l, 150 * MS);
	ck_assert_uint_eq(f->count.lost_segs, 1);
	ck_assert_uint_eq(l->rx.received.ce_segs, 1);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert(!l->rx.receiver[0].ecn_echo);
}

TEST(timeout_is_told_by_cwr) {
	struct link *l = LINK(.group = ECT, .lose = 0x7ff, .mark = UINT64_C(1) << 12);
	const struct flow *f = link_flow(l);
	uint64_t cwr = 0;

	l->o.mark = 0;
	link_run(l, S);
	ck_assert_uint_eq(f->count.timeouts, 1);
	for (uint64_t i = 0; i < l->data_count; i++)
		cwr += (l->data[i].seg.flags & SEG_CWR) != 0;
	ck_assert_uint_eq(cwr, 1);
}

// RFC 3168 section 6.1.5.
TEST(retransmissions_are_not_ecn_capable) {
	struct link *l = LINK(.group = ECT, .lose = 0x21);

	link_run(l, 150 * MS);
	for (uint64_t i = 0; i < l->data_count; i++)
		ck_assert_uint_eq(
			l->data[i].ecn, i >= 10 && l->data[i].index < 10 ? ECN_NOT_ECT : ECN_ECT0);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 2);
}

// RFC 3168 section 6.1.2 would wait for the timeout then; Linux goes on with two segments, and so
// do we.
TEST(echo_at_one_segment_leaves_two) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 1}}, ecn: ect0}");

	ck_assert_double_eq(link_flow(l)->out.cwnd_segs, 1);
	echo_at(l, 1, T0);
	ck_assert_double_eq(link_flow(l)->out.cwnd_segs, 2);
}

TEST(one_mark_per_window_halves_each_time) {
	struct link *l = LINK(.group = ECT, .mark = UINT64_C(1) << 5 | UINT64_C(1) << 40);
	const struct flow *f = link_flow(l);

	link_run(l, 200 * MS);
	ck_assert_uint_eq(f->count.cwnd_reductions, 2);
	ck_assert_uint_eq(f->count.ecn_echoes, 2);
	ck_assert_uint_eq(f->count.retransmits, 0);
	ck_assert(!l->rx.receiver[0].ecn_echo);
}

// A control that does not answer losses must still hear the echo that came with one.
TEST(echo_during_a_loss_that_cost_nothing_is_answered_after_it) {
	struct link *l =
		LINK(.group = "{cc: copa, ack_every: 1, ecn: ect0}", .lose = 0x1, .mark = 0x200);

	link_run(l, 150 * MS);
	ck_assert_uint_eq(link_flow(l)->count.ecn_echoes, 1);
	ck_assert(!l->rx.receiver[0].ecn_echo);
}

// Copa goes down with the queue on each ACK. Those steps were counted as answers to the echo, which
// is in each ACK of a round trip: a window that was halved once had a dozen reductions, and CWR in
// each new segment.
TEST(steps_down_are_no_answers_to_an_echo) {
	struct link *l = HAND(.group = "{cc: {copa: {initial: 40}}, ecn: ect0, pacing: off}");
	const struct flow *f = link_flow(l);
	uint64_t now_ns = T0;
	double halved;

	hand_ack_at(l, 1, now_ns);
	for (uint64_t una = 2; una <= 30; una++) {
		struct seg s = hand_ack(l, una, now_ns += 2 * MS);

		s.flags |= SEG_ECE;
		hand_feed(l, &s, now_ns);
		if (una == 2)
			halved = f->out.cwnd_segs;
	}
	ck_assert_double_lt(f->out.cwnd_segs, halved);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert_uint_eq(f->count.ecn_echoes, 1);
}
