// SPDX-License-Identifier: BSD-3-Clause
// The tail loss probe: when, with what, and what its answer costs. RFC 8985 section 7.
#include "cc_transport.h"

// The timeout is 180 ms above srtt: 200 ms.
#define RTO "rto_min: 180ms"
#define FOUR(...) HAND(.group = "{cc: {newreno: {initial: 4}}, " RTO "}", __VA_ARGS__)

TEST(fires_two_srtt_after_the_last_new_data) {
	struct link *l = FOUR();
	const struct flow *f = link_flow(l);

	ck_assert_int_eq(f->rtx_kind, RTX_TLP);
	link_run(l, 60 * MS - 1);
	ck_assert_uint_eq(l->data_count, 4);
	link_run(l, 60 * MS);
	SENT(l, 4, 4, 60 * MS); // new data, above the window
	ck_assert_double_eq(f->cwnd_segs, 4);
}

TEST(progress_moves_it) {
	struct link *l = FOUR();

	hand_ack_at(l, 1, 40 * MS); // sends two more
	link_run(l, 80 * MS - 1);
	ck_assert_uint_eq(l->data_count, 6);
	link_run(l, 80 * MS);
	ck_assert_uint_eq(l->data_count, 7);
}

TEST(sends_the_last_segment_again_where_nothing_new_may_go) {
	struct link *l = FOUR(.window = 4 * 1448);
	const struct flow *f = link_flow(l);

	link_run(l, 60 * MS);
	SENT(l, 4, 3, 60 * MS);
	ck_assert_uint_eq(flow_inflight(f), 4); // a probe adds none: the original still counts
	ck_assert_uint_eq(f->count.retransmits, 1);
}

// Section 7.3: one probe, then the timeout, counted from the probe.
TEST(timeout_follows_one_unanswered_probe) {
	struct link *l = FOUR();

	link_run(l, 260 * MS - 1);
	ck_assert_uint_eq(l->data_count, 5);
	link_run(l, 260 * MS);
	SENT(l, 5, 0, 260 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
}

// Section 7.2: a lone segment allows for a delayed ACK, but the probe never comes later than the
// timeout would. It was dropped in favour of the timeout: every loss of a lone last segment cost
// the whole window.
TEST(probe_of_a_lone_segment_comes_no_later_than_the_timeout) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 1}}, " RTO "}");
	struct flow *f = link_flow(l);

	f->wnd_bytes = f->payload; // no room for a new one
	ck_assert_uint_eq(f->rtx_deadline_ns, 220 * MS);
	link_run(l, 220 * MS);
	SENT(l, 1, 0, 220 * MS);
	ck_assert_uint_eq(f->count.timeouts, 0);
	link_run(l, 420 * MS);
	ck_assert_uint_eq(f->count.timeouts, 1);
}

TEST(lone_segment_allows_for_a_delayed_ack) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 1}}, rto_min: 1s}");

	link_run(l, 20 * MS + 40 * MS + 200 * MS - 1);
	ck_assert_uint_eq(l->data_count, 1);
	link_run(l, 260 * MS);
	ck_assert_uint_eq(l->data_count, 2);
}

TEST(no_probe_while_something_is_sacked) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 4}}, " RTO "}");

	hand_sack_at(l, 0, 2, 3, 40 * MS);
	ck_assert_int_eq(link_flow(l)->rtx_kind, RTX_REO);
	link_run(l, 60 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	ck_assert_int_eq(link_flow(l)->rtx_kind, RTX_RTO);
}

TEST(no_probe_where_it_is_off_or_without_sack) {
	static const char *const groups[] = {"{cc: {newreno: {initial: 4}}, tlp: no, " RTO "}",
		"{cc: {newreno: {initial: 4}}, sack: no, " RTO "}"};

	for (int i = 0; i < 2; i++) {
		struct link *l = HAND(.group = groups[i]);

		link_run(l, 220 * MS - 1);
		ck_assert_uint_eq(l->data_count, 4);
		link_close(l);
	}
}

// A gap of 50 ms, longer than the probe's 40: what the pacer holds back is no tail. Each gap had a
// probe in it, and the flow sent twice its rate.
TEST(no_probe_before_the_pacers_next_turn) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 9, rate: 231.68kbit}}, rto_min: 1s}");

	link_run(l, 199 * MS);
	ck_assert_uint_eq(l->data_count, 4);
	for (uint64_t i = 0; i < 4; i++)
		SENT(l, i, i, 20 * MS + i * 50 * MS);
}

// It takes the gap of any other segment.
TEST(probe_is_paced) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 2, rate: 231.68kbit}}, rto_min: 1s}");

	link_run(l, 160 * MS);
	ck_assert_uint_eq(l->data_count, 3);
	SENT(l, 1, 1, 70 * MS);
	SENT(l, 2, 2, 160 * MS); // 40 ms after the turn that the window held up
	hand_ack_at(l, 3, 170 * MS);
	link_run(l, 230 * MS);
	ck_assert_uint_eq(l->data_count, 4);
	SENT(l, 3, 3, 210 * MS);
}

// The timer fires when it was first armed for, and looks whether the deadline has moved. After a
// stall both it and the pacer's next turn had passed: each flow probed, and all went on in step.
TEST(no_probe_before_the_pacers_late_turn) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 40Mbit}}, rto_min: 1s}",
		.live = true);
	const struct flow *f = link_flow(l);
	uint64_t due_ns, n;

	hand_ack_at(l, 0, 20 * MS); // opens the window
	while (l->now_ns < 40 * MS || f->rtx.t.expires_ns >= f->pace.t.expires_ns) {
		l->now_ns += 10 * US;
		host_run(&l->tx, l->now_ns);
	}
	n = l->data_count;
	due_ns = f->pace.t.expires_ns;
	l->now_ns += 60 * MS;
	host_run(&l->tx, l->now_ns);
	ck_assert_uint_eq(f->tlp_end, 0);
	ck_assert_uint_eq(l->data_count, n + 4); // the last millisecond's
	SENT(l, n, n, due_ns);
}

// The probe repaired the loss of the last segment: nobody else noticed, the window pays once.
TEST(repaired_loss_costs_one_reduction) {
	struct link *l = FOUR(.window = 4 * 1448);
	const struct flow *f = link_flow(l);

	link_run(l, 60 * MS);
	hand_ack_at(l, 3, 61 * MS); // of the originals; new ones go
	hand_ack_at(l, 4, 80 * MS); // of the probe, or of the late original?
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
	hand_ack_at(l, 5, 81 * MS); // no DSACK: the probe filled the hole
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert_uint_eq(f->tlp_end, 0);
	hand_ack_at(l, f->nxt, 100 * MS);
	ck_assert_uint_eq(f->count.cwnd_reductions, 1);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
}

// The probe has repaired the loss before the episode begins, so that the episode sends nothing
// again. Its end was taken for one in which nothing had been lost, and the window came back.
TEST(reduction_for_a_repaired_loss_stays) {
	struct link *l = FOUR(.window = 4 * 1448);
	const struct flow *f = link_flow(l);
	double before;

	link_run(l, 60 * MS);
	hand_ack_at(l, 3, 61 * MS);
	hand_ack_at(l, 4, 80 * MS);
	before = f->out.cwnd_segs;
	hand_ack_at(l, 5, 81 * MS);
	ck_assert_double_eq(f->out.cwnd_segs, before / 2);
	hand_ack_at(l, f->nxt, 100 * MS);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	ck_assert_uint_eq(f->count.spurious_recoveries, 0);
	ck_assert_double_eq(cc_find("newreno")->ssthresh(f->cc_state, NULL), before / 2);
	ck_assert_double_lt(f->out.cwnd_segs, before);
}

// What comes between the probe's ACK and the next one: an ACK from before it that was overtaken on
// the way, or an update of the window. Neither says that the original arrived, as a duplicate ACK
// would.
TEST(only_a_duplicate_ack_clears_the_probe) {
	for (int update = 0; update < 2; update++) {
		struct link *l = FOUR(.window = 4 * 1448);
		const struct flow *f = link_flow(l);
		struct seg s;

		link_run(l, 60 * MS);
		hand_ack_at(l, 3, 61 * MS);
		hand_ack_at(l, 4, 80 * MS);
		s = hand_ack(l, update ? 4 : 2, 80 * MS + 1);
		s.window = (uint16_t)(update ? s.window - 1 : s.window);
		hand_feed(l, &s, 80 * MS + 1);
		hand_ack_at(l, 5, 81 * MS);
		ck_assert_uint_eq(f->count.cwnd_reductions, 1);
		link_close(l);
	}
}

TEST(superfluous_probe_costs_nothing) {
	struct link *l = FOUR(.window = 4 * 1448);
	const struct flow *f = link_flow(l);
	struct seg s;

	link_run(l, 60 * MS);
	hand_ack_at(l, 4, 61 * MS); // the originals were late
	s = hand_ack(l, 4, 80 * MS);
	hand_sack(l, &s, 3, 4);
	hand_feed(l, &s, 80 * MS);
	ck_assert_uint_eq(f->tlp_end, 0);
	hand_ack_at(l, f->nxt, 82 * MS);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
	ck_assert_uint_eq(f->count.spurious, 1);
}

TEST(probe_with_new_data_costs_nothing) {
	struct link *l = FOUR();
	const struct flow *f = link_flow(l);

	link_run(l, 60 * MS);
	hand_ack_at(l, 5, 80 * MS);
	hand_ack_at(l, f->nxt, 100 * MS);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
}

// The tail is lost: the probe's SACK lets RACK find the rest, without a timeout.
TEST(lost_tail_is_repaired_without_a_timeout) {
	for (uint32_t tail = 1; tail <= 11; tail++) {
		struct link *l = LINK(.group = "{cc: {newreno: {initial: 20}}, ack_every: 1, " RTO
					       ", source: {size: {bytes: 14480B}}}",
			.lose = (0x7ffu << (11 - tail)) & 0x7ffu); // the FIN is the eleventh

		link_finish(l, 10 * S);
		link_complete(l);
		ck_assert_uint_eq(link_flow(l)->count.timeouts, 0);
		ck_assert_uint_le(link_flow(l)->count.retransmits, tail);
		link_close(l);
	}
}

// Section 7.4.2: a duplicate ACK says that the original arrived too, even without a D-SACK.
TEST(duplicate_ack_after_a_probe_is_no_loss) {
	for (int duplicate = 0; duplicate < 2; duplicate++) {
		struct link *l = HAND(.group = "{cc: {newreno: {initial: 4}}, " RTO "}");
		struct flow *f = link_flow(l);

		f->wnd_bytes = 4 * f->payload; // no room for a new one
		link_run(l, 60 * MS);
		SENT(l, 4, 3, 60 * MS);
		hand_ack_at(l, 4, 61 * MS);
		if (duplicate)
			hand_ack_at(l, 4, 62 * MS);
		hand_ack_at(l, 5, 82 * MS);
		ck_assert_uint_eq(f->count.cwnd_reductions, duplicate ? 0 : 1);
		link_close(l);
	}
}

// The probe's segment in an episode that was taken back: nothing is lost, SACKed or probed for any
// more, and yet its round trip is unknown (Karn).
TEST(probed_segment_has_no_round_trip_after_an_undo) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 10}}, rto_min: 1s}");
	struct flow *f = link_flow(l);

	f->wnd_bytes = 10 * f->payload;
	link_run(l, 60 * MS);
	SENT(l, 10, 9, 60 * MS); // the probe
	hand_sack_at(l, 0, 1, 4, 70 * MS); // 0 is sent again
	struct seg s = hand_ack(l, 4, 71 * MS);

	s.tsecr = flow_tsval(20 * MS); // by its original
	hand_feed(l, &s, 71 * MS);
	ck_assert_uint_eq(f->count.spurious_recoveries, 1);
	ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	uint64_t samples = f->count.rtt_samples;

	hand_ack_at(l, 10, 72 * MS);
	ck_assert_uint_eq(f->una, 10);
	ck_assert_uint_eq(f->count.rtt_samples, samples);
	ck_assert_uint_eq(f->rtt.min_ns, 20 * MS);
}

static struct cc_loss heard;

static void hear_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	heard = *loss;
	cc_find("newreno")->on_loss(state, config, loss, out);
}

// cc_loss.probe: a loss that nothing but the answer to the probe shows, and no other one.
TEST(control_is_told_of_a_loss_that_the_probe_repaired) {
	struct cc_ops ops = *cc_find("newreno");

	ops.on_loss = hear_loss;
	for (int other = 0; other < 3; other++) { // 1: a loss that SACK shows; 2: an echo
		struct link *l = FOUR(.window = 4 * 1448);
		const struct flow *f = link_flow(l);
		struct seg s;

		l->groups.group[0].cc = &ops;
		link_flow(l)->ecn_ok = other == 2;
		link_run(l, 60 * MS);
		SENT(l, 4, 3, 60 * MS);
		hand_ack_at(l, 3, 61 * MS);
		ack_to(l, 4, other == 2, 80 * MS);
		ck_assert_uint_eq(f->count.cwnd_reductions, other == 2);
		s = hand_ack(l, 5, 81 * MS);
		if (other == 1)
			hand_sack(l, &s, 6, f->nxt);
		hand_feed(l, &s, 81 * MS);
		ck_assert_uint_eq(heard.now_ns, other == 2 ? 80 * MS : 81 * MS);
		ck_assert_int_eq(heard.probe, other == 0);
		ck_assert_uint_eq(heard.lost_segs, other == 1);
		ck_assert_int_eq(heard.ecn, other == 2);
		link_close(l);
	}
}
