// SPDX-License-Identifier: BSD-3-Clause
// Reductions that were for nothing: Eifel (RFC 3522), D-SACK (RFC 3708), F-RTO (RFC 5682), and what
// is learnt of reordering. Segments leave at 20 ms, the round trip is 20 ms, the timeout 200 ms.
#include "link.h"

#define RTO "rto_min: 180ms, tlp: no"
#define TEN(more) HAND(.group = "{cc: {newreno: {initial: 10}}, " RTO more "}")

// The timeout of the first segment: it is sent again, and the window is 1.
static struct link *timed_out(struct link *l) {
	link_run(l, 220 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 1);
	return l;
}

// The first segment is missing, the next three are reported: it is sent again.
static struct link *recovering(struct link *l) {
	hand_sack_at(l, 0, 1, 4, 40 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	return l;
}

static double ssthresh(struct link *l) {
	return cc_find("newreno")->ssthresh(link_flow(l)->cc_state, NULL);
}

// An ACK that echoes the timestamp of what was sent then.
static void ack_echoing(struct link *l, uint64_t una, uint64_t sent_ns, uint64_t now_ns) {
	struct seg s = hand_ack(l, una, now_ns);

	s.tsecr = flow_tsval(sent_ns);
	hand_feed(l, &s, now_ns);
}

static void dsack(struct link *l, uint64_t una, uint64_t from, uint64_t to, uint64_t now_ns) {
	hand_sack_at(l, una, from, to, now_ns);
}

// ---- After a timeout ----

TEST(timeout_answered_by_an_original_is_taken_back) {
	struct link *l = timed_out(TEN(""));
	const struct flow *f = link_flow(l);

	ck_assert_uint_eq(f->lost, 10);
	ck_assert_double_eq(f->out.cwnd_segs, 1);
	ack_echoing(l, 1, 20 * MS, 300 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_double_eq(f->out.cwnd_segs, 11); // as before, and this ACK's growth
	ck_assert_double_ge(ssthresh(l), 1e9);
	ck_assert_uint_eq(f->count.spurious_timeouts, 1);
	ck_assert_uint_eq(f->lost, 0);
	ck_assert_uint_eq(f->count.retransmits, 1); // and none of the nine
	link_run(l, 301 * MS);
	ck_assert_uint_eq(f->count.retransmits, 1);
	ck_assert_uint_eq(f->nxt, 12); // new ones instead
}

TEST(timeout_answered_by_the_retransmission_stands) {
	struct link *l = timed_out(TEN(", frto: no"));
	const struct flow *f = link_flow(l);

	ack_echoing(l, 1, 220 * MS, 240 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_LOSS);
	ck_assert_double_eq(f->out.cwnd_segs, 2);
	ck_assert_double_eq(ssthresh(l), 5);
	ck_assert_uint_eq(f->count.spurious_timeouts, 0);
}

// RFC 5682 section 3.1 without timestamps: the first ACK lets two new segments out, the next says
// that segments arrived that were never sent again.
TEST(frto_takes_a_timeout_back) {
	struct link *l = timed_out(TEN(", timestamps: no"));
	const struct flow *f = link_flow(l);

	hand_ack_at(l, 1, 300 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_LOSS);
	ck_assert_uint_eq(f->count.retransmits, 1);
	SENT(l, 11, 10, 300 * MS);
	SENT(l, 12, 11, 300 * MS);
	hand_ack_at(l, 2, 301 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_uint_eq(f->count.spurious_timeouts, 1);
	ck_assert_uint_eq(f->count.retransmits, 1);
	ck_assert_double_ge(f->out.cwnd_segs, 10);
	for (uint64_t una = 3; una <= 10; una++) // nor does RACK take them for lost again
		hand_ack_at(l, una, 301 * MS + una);
	ck_assert_uint_eq(f->count.retransmits, 1);
}

// The new segments arrive and nothing below them does: the loss was real.
TEST(frto_goes_on_repairing_after_a_real_loss) {
	struct link *l = timed_out(TEN(", timestamps: no"));
	const struct flow *f = link_flow(l);

	hand_ack_at(l, 1, 240 * MS);
	hand_sack_at(l, 1, 10, 11, 260 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_LOSS);
	ck_assert_uint_eq(f->count.spurious_timeouts, 0);
	SENT(l, 13, 1, 260 * MS);
}

TEST(timeout_in_fast_recovery_is_not_taken_back) {
	struct link *l = recovering(TEN(""));
	const struct flow *f = link_flow(l);

	link_run(l, 2 * S);
	ck_assert_uint_ge(f->count.timeouts, 1);
	ack_echoing(l, 4, 20 * MS, 2 * S);
	ck_assert_uint_eq(f->count.spurious_timeouts, 0);
}

// ---- After fast retransmit ----

// The original comes after all: the reduction is taken back, and reordering is learnt. It never was
// where each late segment had been sent again, and a path that only delays cost nine tenths of the
// rate.
TEST(late_original_is_no_loss_and_teaches_reordering) {
	struct link *l = recovering(TEN(""));
	const struct flow *f = link_flow(l);

	ck_assert_double_eq(f->out.cwnd_segs, 5);
	ck_assert(!f->reordering_seen);
	ack_echoing(l, 4, 20 * MS, 45 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_double_ge(f->out.cwnd_segs, 10);
	ck_assert_uint_eq(f->count.spurious_recoveries, 1);
	ck_assert(f->reordering_seen);
}

TEST(repair_that_arrives_is_a_loss) {
	struct link *l = recovering(TEN(""));
	const struct flow *f = link_flow(l);

	ack_echoing(l, 4, 40 * MS, 60 * MS);
	ck_assert_double_le(f->out.cwnd_segs, 5.5);
	ck_assert_uint_eq(f->count.spurious_recoveries, 0);
	ck_assert(!f->reordering_seen);
}

// Two segments were sent again: both must be reported.
TEST(duplicates_of_all_repairs_take_a_reduction_back) {
	for (int both = 0; both < 2; both++) {
		struct link *l = TEN(", timestamps: no");
		const struct flow *f = link_flow(l);

		hand_sack_at(l, 0, 2, 8, 40 * MS);
		ck_assert_uint_eq(f->lost, 2);
		link_run(l, 41 * MS);
		hand_sack_at(l, 0, 2, 10, 41 * MS);
		ck_assert_uint_eq(f->count.retransmits, 2);
		hand_ack_at(l, 10, 45 * MS); // the originals
		ck_assert_uint_eq(f->count.spurious_recoveries, 0); // not known yet
		dsack(l, 10, 0, 1, 60 * MS);
		ck_assert(f->reordering_seen);
		ck_assert_uint_eq(f->count.spurious_recoveries, 0);
		if (both)
			dsack(l, 10, 1, 2, 60 * MS);
		ck_assert_uint_eq(f->count.spurious_recoveries, (uint32_t)both);
		ck_assert(both ? f->out.cwnd_segs >= 10 : f->out.cwnd_segs < 8);
		link_close(l);
	}
}

// RFC 3168: the path asked for less, whatever arrives.
TEST(reduction_by_ecn_is_not_taken_back) {
	struct link *l = LINK(.group = "{cc: {newreno: {initial: 10}}, ack_every: 1, ecn: ect0}",
		.mark = 0x4);

	link_run(l, 100 * MS);
	ck_assert_uint_eq(link_flow(l)->count.cwnd_reductions, 1);
	ck_assert_uint_eq(link_flow(l)->count.spurious_recoveries, 0);
}

// Taken for lost, and there before the pacer let its repair out.
TEST(episode_without_a_retransmission_was_none) {
	struct link *l = TEN(", pacing: srtt");
	struct flow *f = link_flow(l);

	link_run(l, 43 * MS);
	ck_assert_uint_eq(f->nxt, 10);
	f->next_send_ns = 60 * MS;
	hand_sack_at(l, 0, 1, 4, 44 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
	ck_assert_double_eq(f->out.cwnd_segs, 5);
	hand_ack_at(l, 10, 50 * MS);
	ck_assert_uint_eq(f->count.retransmits, 0);
	ck_assert_uint_eq(f->count.spurious_recoveries, 1);
	ck_assert_double_ge(f->out.cwnd_segs, 10);
}

// ---- Whole connections ----

// Each late segment is overtaken by hundreds: the window must not pay for it for ever.
TEST(late_segments_cost_nothing_once_reordering_is_known) {
	struct link *l =
		LINK(.group = "{cc: {newreno: {initial: 100}}, ack_every: 1, rwnd: 144800B, "
			      "source: {size: {bytes: 20MB}}}",
			.reorder = 0.002, .late_ns = 7 * MS, .seed = 3);
	const struct flow *f = link_flow(l);

	link_finish(l, 60 * S);
	link_complete(l);
	ck_assert(f->reordering_seen);
	ck_assert_uint_le(f->count.retransmits, 6); // of some 28 late ones
	ck_assert_double_ge(f->out.cwnd_segs, 90);
}

// A route changes from 20 to 500 ms: not one segment is lost, and next to none is sent again.
TEST(slower_path_is_no_loss) {
	static const char *const groups[] = {
		"{cc: newreno, rwnd: 144800B, source: {size: {bytes: 2MB}}}",
		"{cc: cubic, rwnd: 144800B, source: {size: {bytes: 2MB}}}",
		"{cc: newreno, rwnd: 144800B, timestamps: no, source: {size: {bytes: 2MB}}}",
		"{cc: bbr, rwnd: 144800B, source: {size: {bytes: 2MB}}}",
		"{cc: copa, rwnd: 144800B, source: {size: {bytes: 2MB}}}",
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct link *l = LINK(.group = groups[i]);
		const struct flow *f = link_flow(l);
		double cwnd;

		link_run(l, 115 * MS);
		cwnd = f->out.cwnd_segs;
		l->o.delay_ns = 250 * MS;
		link_run(l, 2 * S);
		ck_assert_uint_eq(f->count.spurious_timeouts, f->count.timeouts);
		ck_assert_uint_le(f->count.timeouts, 1); // some have a probe answered in time
		ck_assert_uint_le(f->count.retransmits, 4);
		if (i < 3) // the others answer to delay
			ck_assert_double_ge(f->out.cwnd_segs, 0.95 * cwnd);
		link_finish(l, 60 * S);
		link_complete(l);
		link_close(l);
	}
}

// RFC 6298 section 5.7: the timeout stays doubled until a round trip is measured. That of the
// original is not known, since it was sent again; the next segment's is.
TEST(timeout_is_doubled_until_a_round_trip_is_measured) {
	struct link *l = timed_out(TEN(""));
	const struct flow *f = link_flow(l);

	ack_echoing(l, 1, 20 * MS, 300 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_uint_eq(f->rtx_deadline_ns, 300 * MS + 2 * f->rtt.rto_ns);
	hand_ack_at(l, 2, 301 * MS);
	ck_assert_uint_eq(f->rtx_deadline_ns, 301 * MS + f->rtt.rto_ns);
}

// Two were sent again, by the probe and by RACK: one D-SACK is half of the proof.
TEST(probe_of_before_belongs_to_the_episode) {
	struct link *l =
		HAND(.group = "{cc: {newreno: {initial: 10}}, timestamps: no, rto_min: 1s}");
	struct flow *f = link_flow(l);

	f->wnd_bytes = 10 * f->payload;
	link_run(l, 60 * MS);
	SENT(l, 10, 9, 60 * MS); // the probe
	hand_sack_at(l, 0, 1, 4, 70 * MS);
	SENT(l, 11, 0, 70 * MS);
	dsack(l, 5, 0, 1, 75 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
	ck_assert_uint_eq(f->count.spurious_recoveries, 0);
}

// RFC 5682 section 3.1 step 2a: an ACK of all that was out ends F-RTO; a later loss is repaired
// before new segments are sent.
TEST(frto_ends_with_an_ack_of_everything) {
	struct link *l = timed_out(TEN(""));
	const struct flow *f = link_flow(l);

	ack_echoing(l, 10, 220 * MS, 240 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	for (uint64_t i = 1; i < 4; i++)
		hand_ack_at(l, f->nxt, (240 + 20 * i) * MS);
	uint64_t una = f->una, sent = l->data_count;

	ck_assert_uint_ge(f->nxt - una, 4);
	hand_sack_at(l, una, una + 1, una + 4, 320 * MS);
	ck_assert_uint_gt(l->data_count, sent);
	ck_assert_uint_eq(l->data[sent].index, una);
}

// Duplicates of segments from before the episode, from after it, or of it but sent once, prove
// nothing about its reduction, nor are they spurious retransmissions: the network duplicated a
// packet (RFC 2883 section 4).
TEST(duplicates_of_other_segments_prove_nothing) {
	static const struct {
		uint64_t from, block, end;
	} of[] = {{0, 3, 6}, {12, 12, 14}, {4, 3, 6}};

	for (int i = 0; i < 3; i++) {
		struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, timestamps: no}");
		const struct flow *f = link_flow(l);

		hand_ack_at(l, 2, 40 * MS);
		hand_sack_at(l, 2, 3, 6, 41 * MS); // 2 is sent again
		ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
		ck_assert_uint_eq(f->recover, 12);
		ck_assert_uint_ge(f->nxt, 14);
		struct seg s = hand_ack(l, 2, 61 * MS);

		hand_sack(l, &s, of[i].from, of[i].from + 1);
		hand_sack(l, &s, of[i].block, of[i].end);
		hand_feed(l, &s, 61 * MS);
		ck_assert_uint_eq(f->count.spurious, 0);
		ck_assert(!f->reordering_seen);
		ck_assert_uint_eq(f->count.spurious_recoveries, 0);
		ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
		link_close(l);
	}
}

// One original arrived; of the other segment that was sent again nothing is known yet.
TEST(recovery_is_not_taken_back_while_a_repair_is_out) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);

	hand_sack_at(l, 0, 2, 5, 40 * MS);
	ck_assert_uint_eq(f->retrans, 2);
	ack_echoing(l, 1, 20 * MS, 41 * MS);
	ck_assert_uint_eq(f->retrans, 1);
	ck_assert_uint_eq(f->count.spurious_recoveries, 0);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
}

// A timeout is taken back all the same, but its repairs that are out are waited for in the old
// state.
TEST(undone_timeout_waits_for_its_repairs) {
	struct link *l = timed_out(TEN(", frto: no"));
	const struct flow *f = link_flow(l);

	ack_echoing(l, 1, 220 * MS, 240 * MS); // 1 and 2 are sent again
	ck_assert_uint_eq(f->retrans, 2);
	ack_echoing(l, 2, 20 * MS, 241 * MS);
	ck_assert_uint_eq(f->count.spurious_timeouts, 1);
	ck_assert_uint_eq(f->lost, 1);
	ck_assert_int_eq(f->ca, FLOW_CA_LOSS);
}
