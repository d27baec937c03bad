// SPDX-License-Identifier: BSD-3-Clause
// A connection's life: handshake, options, resets, windows, its end. RFC 9293, 7323, 5961.
#include "link.h"

#define PAYLOAD 1448u

TEST(syn_offers_what_the_group_wants) {
	struct link *l = HAND(.group = "{cc: newreno, mss: 1400B, ecn: ect0, start: 5ms}");
	const struct link_log *syn = &l->ctl[0];
	struct link *plain = LINK(.group = "{cc: newreno, sack: no, timestamps: no}");

	ck_assert_uint_eq(syn->seg.flags, SEG_SYN | SEG_ECE | SEG_CWR);
	ck_assert_uint_eq(syn->seg.seq, link_flow(l)->iss);
	ck_assert_uint_eq(syn->seg.ack, 0);
	ck_assert_uint_eq(syn->seg.mss, 1400);
	ck_assert_uint_eq(
		syn->seg.options, SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK | SEG_OPT_TS);
	ck_assert_uint_eq(syn->ecn, ECN_NOT_ECT);
	link_run(plain, 0);
	ck_assert_uint_eq(plain->ctl[0].seg.flags, SEG_SYN);
	ck_assert_uint_eq(plain->ctl[0].seg.options, SEG_OPT_MSS | SEG_OPT_WSCALE);
}

TEST(handshake_takes_one_round_trip_and_measures_it) {
	struct link *l = LINK(.group = "{cc: newreno, start: 3ms}");
	const struct flow *f = link_flow(l);

	link_run(l, 23 * MS - 1);
	ck_assert_int_eq(f->state, FLOW_SYN_SENT);
	link_run(l, 23 * MS);
	ck_assert_int_eq(f->state, FLOW_OPEN);
	ck_assert_uint_eq(f->start_ns, 3 * MS);
	ck_assert_uint_eq(f->rtt.srtt_ns, 20 * MS);
	ck_assert_uint_eq(f->rtt.rttvar_ns, 10 * MS);
	ck_assert_uint_eq(f->rtt.rto_ns, f->rtt.srtt_ns + 200 * MS); // the floor above srtt
	ck_assert_uint_eq(l->ctl[1].seg.flags, SEG_ACK);
	ck_assert_uint_eq(l->data_count, 10); // the initial window, at once
	SENT(l, 9, 9, 23 * MS);
	ck_assert_uint_eq(l->data[0].seg.len, PAYLOAD);
	ck_assert_uint_eq(l->data[0].seg.seq, f->iss + 1);
	ck_assert_uint_eq(l->data[0].seg.ack, receiver_iss(&l->rx.receiver[0]) + 1);
}

static struct link *half_open(const char *group) {
	struct link *l = LINK(.group = group, .hand = true);

	link_run(l, 0);
	return l;
}

// RFC 9293 section 3.7.1: without the option 536 bytes of payload and options, never more than
// ours.
TEST(payload_is_what_both_sides_take) {
	static const struct {
		uint16_t mss;
		bool present, ts;
		uint32_t payload;
	} cases[] = {{1460, true, true, 1448}, {9000, true, true, 1448}, {1000, true, true, 988},
		{1000, true, false, 1000}, {0, false, true, 524}, {20, true, true, 76}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = half_open("{cc: newreno, source: {size: {bytes: 5000B}}}");
		struct seg s = hand_syn_ack(l, HAND_RTT);

		s.mss = cases[i].mss;
		s.options = (uint8_t)(SEG_OPT_WSCALE | (cases[i].present ? SEG_OPT_MSS : 0)
			| (cases[i].ts ? SEG_OPT_TS : 0));
		hand_feed(l, &s, HAND_RTT);
		ck_assert_uint_eq(link_flow(l)->payload, cases[i].payload);
		ck_assert_uint_eq(l->data[0].seg.len, cases[i].payload);
		ck_assert_uint_eq(
			link_flow(l)->data_segs, (5000 + cases[i].payload - 1) / cases[i].payload);
		link_close(l);
	}
}

TEST(window_is_scaled_but_in_the_syn) {
	struct link *l = half_open("{cc: {fixed: {cwnd: 100}}}");
	struct seg s = hand_syn_ack(l, HAND_RTT);

	s.wscale = 7;
	s.window = 3 * PAYLOAD - 1;
	hand_feed(l, &s, HAND_RTT);
	ck_assert_uint_eq(l->data_count, 2); // whole segments only
	s = hand_ack(l, 0, 2 * HAND_RTT);
	s.window = 100; // 12800 bytes: eight segments
	hand_feed(l, &s, 2 * HAND_RTT);
	ck_assert_uint_eq(l->data_count, 8);
}

TEST(window_without_the_option_is_not_scaled) {
	struct link *l = half_open("{cc: {fixed: {cwnd: 100}}}");
	struct seg s = hand_syn_ack(l, HAND_RTT);

	s.options = SEG_OPT_MSS;
	hand_feed(l, &s, HAND_RTT);
	hand_ack_at(l, 0, 2 * HAND_RTT);
	ck_assert_uint_eq(l->data_count, 65535 / 1460);
}

TEST(lost_syns_are_sent_again_ever_more_slowly) {
	struct link *l = LINK(.group = "{cc: newreno}", .lose_syn = 0x7);
	const struct flow *f = link_flow(l);

	while (f->state != FLOW_OPEN)
		NEED(link_step(l, 10 * S));
	ck_assert_uint_eq(l->syn_count, 4);
	for (uint32_t i = 1; i < 4; i++) { // after 1, 2, 4 s and up to a quarter more
		uint64_t gap_ns = l->ctl[i].t_ns - l->ctl[i - 1].t_ns, least_ns = S << (i - 1);

		ck_assert_uint_ge(gap_ns, least_ns);
		ck_assert_uint_le(gap_ns, least_ns + least_ns / 4);
	}
	ck_assert_int_eq(f->state, FLOW_OPEN);
	ck_assert_uint_eq(f->backoff, 0);
	// The timestamp tells which SYN was answered.
	ck_assert_uint_eq(f->rtt.srtt_ns, 20 * MS);
}

// RFC 5681 section 3.1 and RFC 6928 section 2: after two lost SYNs the first window is one segment.
// After one it is not, nor where the first SYN was only late.
TEST(two_lost_syns_leave_one_segment) {
	static const struct {
		uint64_t lose_syn, delay_ns;
		double cwnd_segs;
	} cases[] = {{0x1, 0, 10}, {0x3, 0, 1}, {0x7, 0, 1}, {0, 2 * S, 10}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = LINK(.group = "{cc: newreno}", .lose_syn = cases[i].lose_syn,
			.delay_ns = cases[i].delay_ns);
		const struct flow *f = link_flow(l);

		while (f->state != FLOW_OPEN)
			NEED(link_step(l, 20 * S));
		ck_assert_double_eq(f->out.cwnd_segs, cases[i].cwnd_segs);
		ck_assert_uint_eq(f->nxt, (uint64_t)cases[i].cwnd_segs);
		link_close(l);
	}
}

// Fifty flows that started together and lost their SYNs together came again together, for ever.
TEST(lost_syns_do_not_come_again_together) {
	struct link *l = LINK(.group = "{cc: newreno, count: 50, source: {size: {bytes: 1000B}}}",
		.lose_syn = (UINT64_C(1) << 50) - 1);
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	link_run(l, S + S / 4);
	ck_assert_uint_eq(l->syn_count, 100);
	for (uint64_t i = 50; i < l->ctl_count; i++) {
		if ((l->ctl[i].seg.flags & SEG_SYN) == 0)
			continue;
		NEED(l->ctl[i].t_ns >= S && l->ctl[i].t_ns > last_ns);
		first_ns = time_min(first_ns, l->ctl[i].t_ns);
		last_ns = l->ctl[i].t_ns;
	}
	ck_assert_uint_ge(last_ns - first_ns, S / 5); // of the quarter there is
}

// A path longer than the first timeout, whose SYN is always sent twice: without a measurement a
// control that paces from the start would take it for one of 10 ms.
TEST(a_path_longer_than_the_timeout_is_measured) {
	struct link *l = LINK(.group = "{cc: newreno}", .delay_ns = 2 * S);
	const struct flow *f = link_flow(l);

	while (f->state != FLOW_OPEN)
		NEED(link_step(l, 10 * S));
	ck_assert_uint_eq(l->syn_count, 3);
	ck_assert_uint_ge(f->rtt.srtt_ns, 4 * S);
	ck_assert_uint_le(f->rtt.srtt_ns, 4 * S + 2 * MS);
}

// RFC 6298 section 5.7: an ambiguous handshake measures nothing, and data starts with 3 s.
TEST(lost_syn_without_timestamps_starts_with_three_seconds) {
	struct link *l = LINK(.group = "{cc: newreno, timestamps: no}", .lose_syn = 0x1);
	const struct flow *f = link_flow(l);

	while (f->state != FLOW_OPEN)
		NEED(link_step(l, 2 * S));
	ck_assert_uint_eq(f->rtt.srtt_ns, 0);
	ck_assert_uint_eq(f->rtt.rto_ns, 3 * S);
	ck_assert_uint_eq(f->rtx_deadline_ns, l->now_ns + 3 * S);
	link_run(l, l->now_ns + 20 * MS);
	ck_assert_uint_eq(f->rtt.srtt_ns, 20 * MS);
}

TEST(lost_syn_ack_is_asked_for_again) {
	struct link *l =
		LINK(.group = "{cc: newreno, source: {size: {bytes: 10000B}}}", .lose_ack = 0x3);

	link_finish(l, 10 * S);
	ck_assert_uint_eq(l->syn_count, 3);
	ck_assert_uint_eq(l->data[0].t_ns, l->ctl[2].t_ns + 20 * MS);
	link_complete(l);
}

TEST(lost_ack_of_the_handshake_does_not_matter) {
	struct link *l = LINK(.group = "{cc: newreno, source: {size: {bytes: 10000B}}}");

	link_run(l, 20 * MS);
	struct link_pkt *ack = l->head; // the first in the pipe

	ck_assert_uint_eq(ack->seg.len, 0);
	l->head = ack->next;
	free(ack);
	link_finish(l, S);
	link_complete(l);
	ck_assert_uint_eq(link_flow(l)->count.retransmits, 0);
}

TEST(peer_that_never_answers_is_given_up) {
	struct link *l = LINK(.group = "{cc: newreno, retries: 3, rto_max: 3s}", .hand = true);

	link_run(l, 9 * S - 1); // 1 + 2 + 3 + 3 s, each up to a quarter longer
	ck_assert_int_eq(link_flow(l)->state, FLOW_SYN_SENT);
	ck_assert_uint_eq(l->tx.open, 1);
	link_run(l, 9 * S + 9 * S / 4);
	ck_assert_uint_eq(l->syn_count, 4);
	ck_assert_int_eq(link_flow(l)->state, FLOW_FAILED);
	ck_assert_uint_eq(l->tx.failed, 1);
	ck_assert(!link_step(l, 1000 * S)); // and nothing more
}

TEST(syn_is_refused_only_by_who_saw_it) {
	struct link *l = half_open("{cc: newreno}");
	struct seg s = {.ack = link_flow(l)->iss + 1, .flags = SEG_RST};

	hand_feed(l, &s, MS); // no ACK: anybody could have sent it
	s.flags = SEG_RST | SEG_ACK;
	s.ack++;
	hand_feed(l, &s, MS);
	s = hand_syn_ack(l, MS);
	s.ack++;
	hand_feed(l, &s, MS);
	ck_assert_int_eq(link_flow(l)->state, FLOW_SYN_SENT);
	ck_assert_uint_eq(l->tx.count.rx_bad, 3);
	s.flags = SEG_RST | SEG_ACK;
	s.ack--;
	hand_feed(l, &s, MS);
	ck_assert_int_eq(link_flow(l)->state, FLOW_FAILED);
}

// RFC 9293 section 3.10.7.3: what does not acknowledge the SYN is of an old connection, whose host
// thereby learns that it is over.
TEST(wrong_syn_ack_is_reset) {
	struct link *l = LINK(.group = "{cc: newreno}", .hand = true);
	struct seg s;
	uint64_t sent;

	link_run(l, 0);
	sent = l->ctl_count;
	s = hand_syn_ack(l, 20 * MS);
	s.ack += 7;
	hand_feed(l, &s, 20 * MS);
	ck_assert_uint_eq(l->ctl_count, sent + 1);
	ck_assert_uint_eq(l->ctl[sent].seg.flags, SEG_RST);
	ck_assert_uint_eq(l->ctl[sent].seg.seq, s.ack);
	s.flags = SEG_RST | SEG_ACK; // a reset is answered by nothing
	hand_feed(l, &s, 20 * MS);
	ck_assert_uint_eq(l->ctl_count, sent + 1);
	s = hand_syn_ack(l, 20 * MS);
	hand_feed(l, &s, 20 * MS);
	ck_assert_int_eq(link_flow(l)->state, FLOW_OPEN);
}

// RFC 7323 section 3.2 would have it dropped; Linux takes it, and so do we.
TEST(an_ack_without_its_timestamp_counts) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	struct seg s = hand_ack(l, 5, 40 * MS);

	s.options = 0;
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(link_flow(l)->una, 5);
}

// RFC 6928 has 14600 bytes, but at least two segments, where segments are large; Linux has ten.
TEST(the_first_window_is_ten_segments_of_any_size) {
	struct link *l = LINK(.group = "{cc: newreno, mss: 8960B}");

	link_run(l, 25 * MS);
	ck_assert_uint_eq(link_flow(l)->payload, 8948);
	ck_assert_double_eq(link_flow(l)->out.cwnd_segs, 10);
}

// RFC 5961 section 3.2.
TEST(rst_closes_only_at_the_next_byte) {
	struct link *l = HAND(.group = "{cc: newreno}");
	struct flow *f = link_flow(l);
	struct seg s = {.seq = f->rcv_nxt - 1, .flags = SEG_RST};
	uint64_t sent = l->ctl_count;

	hand_feed(l, &s, 30 * MS); // outside the window: ignored
	s.seq = f->rcv_nxt + 65536;
	hand_feed(l, &s, 30 * MS);
	ck_assert_uint_eq(l->ctl_count, sent);
	s.seq = f->rcv_nxt + 1; // inside: challenged
	hand_feed(l, &s, 30 * MS);
	ck_assert_uint_eq(l->ctl_count, sent + 1);
	ck_assert_int_eq(f->state, FLOW_OPEN);
	ck_assert_uint_eq(l->tx.count.rx_bad, 3);
	s.seq = f->rcv_nxt;
	hand_feed(l, &s, 30 * MS);
	ck_assert_int_eq(f->state, FLOW_FAILED);
	ck_assert_uint_eq(l->tx.arena.used, 0);
}

TEST(syn_into_a_connection_is_challenged) {
	struct link *l = HAND(.group = "{cc: newreno}");
	struct seg s = hand_syn_ack(l, 25 * MS);
	uint64_t sent = l->ctl_count;

	hand_feed(l, &s, 25 * MS);
	ck_assert_uint_eq(l->ctl_count, sent + 1);
	ck_assert_uint_eq(l->ctl[sent].seg.flags, SEG_ACK);
	ck_assert_uint_eq(l->ctl[sent].seg.ack, 1001);
	ck_assert_int_eq(link_flow(l)->state, FLOW_OPEN);
}

TEST(acks_of_the_past_and_of_the_future_are_ignored) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);

	hand_ack_at(l, 5, 40 * MS);
	ck_assert_uint_eq(f->una, 5);
	hand_ack_at(l, 4, 41 * MS); // another overtook it
	hand_ack_at(l, 16, 41 * MS); // 15 are out
	ck_assert_uint_eq(f->una, 5);
	ck_assert_uint_eq(l->tx.count.rx_bad, 1);
	hand_ack_at(l, 15, 41 * MS);
	ck_assert_uint_eq(f->una, 15);
}

// A report that another ACK overtook is news all the same. It was thrown away with its ACK, and by
// its timestamp too.
TEST(sack_blocks_of_an_overtaken_ack_count) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, 41 * MS);

	hand_sack(l, &s, 4, 6);
	hand_ack_at(l, 3, 43 * MS); // left later, with a block less
	hand_feed(l, &s, 43 * MS);
	ck_assert_uint_eq(f->una, 3);
	ck_assert_uint_eq(f->sacked, 2);
	ck_assert_uint_eq(l->tx.count.rx_bad, 0);
	ck_assert_uint_eq(
		f->count.spurious, 0); // below una, but no duplicate: not below its own ACK
}

// RFC 5961 section 5.2 bounds how old an ACK may be by the largest window, not by the present one:
// when the peer's window was closed, each overtaken ACK was refused, its reports were lost, and it
// was challenged.
TEST(overtaken_acks_count_when_the_window_is_closed) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 5, 41 * MS), old = hand_ack(l, 2, 41 * MS);

	s.window = 0;
	hand_feed(l, &s, 41 * MS);
	ck_assert_uint_eq(f->wnd_bytes, f->una_bytes);
	hand_sack(l, &old, 7, 9);
	hand_feed(l, &old, 42 * MS);
	ck_assert_uint_eq(f->sacked, 2);
	ck_assert_uint_eq(l->tx.count.rx_bad, 0);
	old = hand_ack(l, 0, 43 * MS);
	old.ack--; // of the SYN itself
	hand_feed(l, &old, 43 * MS);
	ck_assert_uint_eq(l->tx.count.rx_bad, 1);
}

TEST(an_overtaken_ack_does_not_move_the_window_back) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, 40 * MS);

	hand_feed(l, &s, 40 * MS);
	uint64_t edge = f->wnd_bytes;

	s.window -= 2;
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(f->wnd_bytes, edge);
	s.window = 0; // but it closes at once
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(f->wnd_bytes, f->una_bytes);
}

// Ten of ten flows stood still after blind segments with a timestamp of the future: it was taken
// before sequence and ACK numbers were looked at, and then no honest segment was new enough.
TEST(forged_timestamp_stalls_no_sender) {
	static const struct {
		int32_t seq, ack; // beside the right ones
		uint8_t flags;
	} forged[] = {{-1, 0, SEG_ACK}, {-100000, 0, SEG_ACK}, {0, -2000000, SEG_ACK},
		{0, 2000000, SEG_ACK}, {70000, 0, SEG_ACK}, {-1, 0, SEG_ACK | SEG_FIN}};

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
		const struct flow *f = link_flow(l);
		uint32_t ts_recent = f->ts_recent;
		struct seg s = hand_ack(l, 0, 40 * MS);

		s.tsval += 1u << 29;
		s.seq += (uint32_t)forged[i].seq;
		s.ack += (uint32_t)forged[i].ack;
		s.flags = forged[i].flags;
		hand_feed(l, &s, 40 * MS);
		ck_assert_uint_eq(f->ts_recent, ts_recent);
		hand_ack_at(l, 5, 41 * MS);
		ck_assert_uint_eq(f->una, 5);
		link_close(l);
	}
}

// RFC 5961 section 7: what is not acceptable is answered, but floods are not.
TEST(unacceptable_segments_are_answered_twice_a_second) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	uint64_t sent = l->ctl_count;

	for (uint64_t i = 0; i < 1000; i++) {
		struct seg s = hand_ack(l, 0, 40 * MS + i * MS);

		s.seq -= 5;
		hand_feed(l, &s, 40 * MS + i * MS);
	}
	ck_assert_uint_eq(l->ctl_count, sent + 2);
	ck_assert_uint_eq(l->tx.count.rx_bad, 1000);
}

// We send whole segments only, so a peer with room for less than two gets smaller ones (Linux:
// tcp_bound_to_half_wnd). It got nothing at all.
TEST(peer_with_a_tiny_window_gets_its_data) {
	static const struct {
		uint16_t window;
		uint32_t payload;
	} cases[] = {{65535, 1448}, {2896, 1448}, {1448, 724}, {600, 300}, {500, 500}, {20, 48}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = HAND(.group = "{cc: newreno}", .window = cases[i].window);

		ck_assert_uint_eq(link_flow(l)->payload, cases[i].payload);
		ck_assert_uint_eq(l->data_count > 0, cases[i].window >= 48);
		link_close(l);
	}
}

TEST(ack_inside_a_segment_does_not_acknowledge_it) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, 40 * MS);

	s.ack += 700;
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(f->una, 2);
	ck_assert_uint_eq(f->una_bytes, 2 * PAYLOAD + 700);
	ck_assert_uint_eq(f->count.acked_bytes, 2 * PAYLOAD + 700);
	hand_ack_at(l, 3, 41 * MS);
	ck_assert_uint_eq(f->una, 3);
	ck_assert_uint_eq(f->una_bytes, 3 * PAYLOAD);
}

// RFC 7323 section 5.3; the timestamps' clock ticks in milliseconds.
TEST(old_timestamps_are_refused_through_the_wrap) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 1, 40 * MS);

	s.tsval = f->ts_recent + 0x7fffffffu;
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(f->una, 1);
	s = hand_ack(l, 2, 40 * MS); // half the circle behind that
	s.tsval = f->ts_recent - (uint32_t)(f->rtt.rto_ns / MS) - 1;
	hand_feed(l, &s, 40 * MS);
	s.tsval = f->ts_recent + 0x80000000u;
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(f->una, 1);
	ck_assert_uint_eq(l->tx.count.rx_bad, 2);
	s.tsval = f->ts_recent + 5;
	hand_feed(l, &s, 40 * MS);
	ck_assert_uint_eq(f->una, 2);
	ck_assert_uint_eq(l->data[l->data_count - 1].seg.tsecr, f->ts_recent);
	ck_assert_uint_eq(l->data[l->data_count - 1].seg.tsval, 41);
}

TEST(data_and_fin_of_the_peer_are_acknowledged) {
	struct link *l = HAND(.group = "{cc: newreno, source: {size: {bytes: 100B}}}");
	struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 0, 30 * MS);
	uint64_t sent = l->ctl_count;

	s.len = 500;
	hand_feed(l, &s, 30 * MS);
	hand_feed(l, &s, 30 * MS); // again: acknowledged again
	ck_assert_uint_eq(l->ctl_count, sent + 2);
	ck_assert_uint_eq(l->ctl[sent + 1].seg.ack, 1001 + 500);
	s = hand_ack(l, 2, 40 * MS);
	s.flags |= SEG_FIN;
	hand_feed(l, &s, 40 * MS);
	ck_assert_int_eq(f->state, FLOW_DONE);
	ck_assert_uint_eq(l->ctl[l->ctl_count - 1].seg.ack, 1001 + 501);
	hand_feed(l, &s, 50 * MS); // our ACK was lost
	ck_assert_uint_eq(l->ctl_count, sent + 4);
}

TEST(file_ends_with_a_short_segment_and_a_fin) {
	struct link *l = LINK(.group = "{cc: newreno, source: {size: {bytes: 10001B}}}");
	const struct flow *f = link_flow(l);

	link_finish(l, S);
	link_complete(l);
	ck_assert_uint_eq(l->data_count, 8); // 6 * 1448 + 1313, and the FIN
	ck_assert_uint_eq(l->data[5].seg.len, PAYLOAD);
	ck_assert_uint_eq(l->data[5].seg.flags, SEG_ACK);
	ck_assert_uint_eq(l->data[6].seg.len, 10001 - 6 * PAYLOAD);
	ck_assert_uint_eq(l->data[6].seg.flags, SEG_ACK | SEG_PSH);
	ck_assert_uint_eq(l->data[7].seg.len, 0);
	ck_assert_uint_eq(l->data[7].seg.flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(l->data[7].seg.seq, f->iss + 1 + 10001);
	ck_assert_uint_eq(f->una_bytes, 10002);
	ck_assert_uint_eq(f->count.acked_bytes, 10001);
	ck_assert_int_eq(f->state, FLOW_DONE);
}

TEST(files_of_every_length_around_a_segment_arrive) {
	static const uint64_t bytes[] = {1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 10 * PAYLOAD};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		for (int lost = -1; lost < 12; lost++) {
			char group[100];

			snprintf(group, sizeof(group),
				"{cc: newreno, source: {size: {bytes: %uB}}}", (unsigned)bytes[i]);
			struct link *l =
				LINK(.group = group, .lose = lost < 0 ? 0 : UINT64_C(1) << lost);

			link_finish(l, 5 * S);
			link_complete(l);
			link_close(l);
		}
	}
}

TEST(endless_flow_ends_at_its_stop) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 4}}, stop: 1s}");
	const struct flow *f = link_flow(l);

	link_finish(l, 2 * S);
	link_complete(l);
	// A window per round trip from 20 ms on: the last at 980 ms; at 1 s nothing but the FIN.
	ck_assert_uint_eq(f->data_segs, 49 * 4);
	ck_assert_uint_eq(f->count.acked_bytes, UINT64_C(49) * 4 * PAYLOAD);
	ck_assert_uint_eq(l->data_count, 49 * 4 + 1);
}

// "No new data after this time", but a flow with a size did not look at it.
TEST(file_is_cut_short_at_the_stop) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 4}}, stop: 100ms, "
				       "source: {size: {bytes: 1MB}}}");

	link_finish(l, S);
	ck_assert_uint_eq(link_flow(l)->data_segs, 4 * 4);
	link_complete(l);
}

TEST(flow_that_starts_after_its_stop_sends_a_fin) {
	struct link *l =
		LINK(.group = "{cc: newreno, count: 2, stagger: 20ms, start: 0s, stop: 10ms}");

	link_finish(l, S);
	link_complete(l);
	ck_assert_uint_eq(l->tx.flow[1].data_segs, 0);
	ck_assert_uint_eq(l->tx.flow[1].count.sent_segs, 0); // a FIN is no data
}

static void close_window(struct link *l, uint64_t una, uint64_t now_ns) {
	struct seg s = hand_ack(l, una, now_ns);

	s.window = 0;
	hand_feed(l, &s, now_ns);
}

// RFC 9293 section 3.8.6.1: probes one RTO apart, doubling.
TEST(closed_window_is_probed) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, rto_max: 1s}");
	const struct flow *f = link_flow(l);
	uint64_t sent;

	close_window(l, 10, 40 * MS);
	ck_assert_int_eq(f->rtx_kind, RTX_PERSIST);
	sent = l->ctl_count;
	link_run(l, 10 * S);
	ck_assert_uint_eq(l->ctl[sent].t_ns, 260 * MS);
	ck_assert_uint_eq(l->ctl[sent + 1].t_ns, 700 * MS);
	ck_assert_uint_eq(l->ctl[sent + 2].t_ns, 1580 * MS);
	ck_assert_uint_eq(l->ctl[sent + 3].t_ns, 2580 * MS); // rto_max
	ck_assert_uint_eq(l->ctl[sent].seg.seq, flow_seq(f, 10) - 1); // below the window
	ck_assert_uint_eq(l->ctl[sent].seg.len, 0);
	ck_assert_uint_eq(l->data_count, 10);
	ck_assert_int_eq(f->state, FLOW_OPEN);
}

// RFC 9293 section 3.8.6.1: a connection stays open as long as its probes are answered. A peer that
// is gone answers none; Linux gives up after tcp_retries2 of them.
TEST(peer_that_answers_no_probe_is_given_up) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, retries: 2, rto_max: 1s}");
	const struct flow *f = link_flow(l);

	close_window(l, 10, 40 * MS);
	for (uint64_t t = 1; t < 20; t++) {
		link_run(l, t * S);
		close_window(l, 10, t * S);
	}
	ck_assert_int_eq(f->state, FLOW_OPEN);
	link_run(l, 30 * S);
	ck_assert_int_eq(f->state, FLOW_FAILED);
	ck_assert_uint_eq(l->data_count, 10);
}

// The RTO counted from before the window had closed, and gave up by the count of the probes.
TEST(opened_window_starts_a_fresh_timeout) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, retries: 6, tlp: no}");
	const struct flow *f = link_flow(l);

	close_window(l, 10, 40 * MS);
	link_run(l, 10 * S);
	ck_assert_uint_eq(f->timeouts, 5);
	hand_ack_at(l, 10, 10 * S);
	ck_assert_uint_eq(l->data_count, 20);
	ck_assert_uint_eq(f->rtx_deadline_ns, 10 * S + f->rtt.rto_ns);
	ck_assert_uint_eq(f->timeouts, 0);
	hand_ack_at(l, 20, 10 * S + 20 * MS);
	ck_assert_uint_eq(f->count.timeouts, 0);
	ck_assert_uint_eq(f->count.retransmits, 0);
}

TEST(probe_of_a_closed_window_is_answered_by_our_receiver) {
	struct link *l =
		LINK(.group = "{cc: {fixed: {cwnd: 10}}, source: {size: {bytes: 50000B}}}");
	struct flow *f = link_flow(l);

	link_run(l, 29 * MS);
	l->rx.receiver[0].window = 0;
	link_run(l, 500 * MS);
	ck_assert_uint_eq(f->una, 10);
	ck_assert_int_eq(f->rtx_kind, RTX_PERSIST);
	l->rx.receiver[0].window = 60000;
	link_finish(l, 2 * S);
	link_complete(l);
	ck_assert_uint_eq(f->count.retransmits, 0);
}

// Our receiver's window from now on; parts of segments will come.
static void small_window(struct link *l, uint16_t bytes) {
	l->rx.receiver[0].window = bytes;
	l->oracle = false;
}

// A window that never again holds a segment: what fits goes out with a probe, as in Linux
// (tcp_write_wakeup), and the rest of the segment as soon as that fits. Probes carried nothing, and
// the flow waited for ever.
TEST(window_below_a_segment_is_filled_by_probes) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 10}}, rwnd: 60000B, "
				       "source: {size: {bytes: 20000B}}}",
		.lose = UINT64_C(1) << 12);
	struct flow *f = link_flow(l);
	uint64_t rto_ns;

	link_run(l, 29 * MS);
	small_window(l, 1000);
	link_run(l, 259 * MS);
	ck_assert_uint_eq(f->una, 10);
	ck_assert_int_eq(f->rtx_kind, RTX_PERSIST);
	ck_assert_uint_eq(l->data_count, 10);
	link_run(l, 400 * MS);
	ck_assert_uint_eq(l->data_count, 12);
	ck_assert_uint_eq(l->data[10].t_ns, 260 * MS); // an RTO after the last news
	ck_assert_uint_eq(l->data[10].seg.seq, flow_seq(f, 10));
	ck_assert_uint_eq(l->data[10].seg.len, 1000);
	ck_assert_uint_eq(l->data[11].seg.seq, flow_seq(f, 10) + 1000);
	ck_assert_uint_eq(l->data[11].seg.len, 448);
	ck_assert_uint_eq(f->una_bytes, 11 * 1448);
	rto_ns = f->rtt.rto_ns;
	link_run(l, 5 * S); // the next is lost, and comes again two RTOs later
	ck_assert_uint_eq(l->data[12].seg.seq, flow_seq(f, 11));
	ck_assert_uint_eq(l->data[13].seg.seq, flow_seq(f, 11));
	ck_assert_uint_eq(l->data[13].t_ns - l->data[12].t_ns, 2 * rto_ns);
	link_finish(l, 10 * S);
	link_complete(l);
	ck_assert_uint_eq(f->count.timeouts, 0);
	ck_assert_uint_eq(f->count.spurious, 0);
}

// The window opens, or the flow's time is over, in the middle of a segment.
TEST(what_a_probe_began_is_completed) {
	static const char *const groups[] = {
		"{cc: {fixed: {cwnd: 10}}, rwnd: 60000B, source: {size: {bytes: 40000B}}}",
		"{cc: {fixed: {cwnd: 10}}, rwnd: 60000B, stop: 500ms}"};

	for (int stops = 0; stops < 2; stops++) {
		struct link *l = LINK(.group = groups[stops]);
		struct flow *f = link_flow(l);

		link_run(l, 29 * MS);
		small_window(l, 300);
		link_run(l, 400 * MS);
		ck_assert_uint_gt(f->una_bytes, flow_offset(f, f->nxt));
		if (!stops)
			l->rx.receiver[0].window = 60000;
		link_finish(l, 10 * S);
		link_complete(l);
		ck_assert_uint_eq(f->total_bytes, stops ? 11 * 1448 : 40000);
		// What a probe carried was acknowledged: the next does not wait twice as long.
		if (stops)
			ck_assert_uint_lt(l->data[11].t_ns - l->data[10].t_ns, 400 * MS);
		link_close(l);
	}
}

TEST(fin_needs_no_window) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, stop: 30ms}");

	close_window(l, 10, 40 * MS);
	ck_assert_uint_eq(l->data_count, 11);
	ck_assert_uint_eq(l->data[10].seg.flags, SEG_ACK | SEG_FIN);
}

TEST(sequence_numbers_wrap) {
	struct link *l = LINK(.group = "{cc: newreno, mss: 9000B, source: {size: {bytes: 300MB}}}",
		.iss_offset = 0u - 0x9e3779b1u - 100000u, .loss = 0.001, .ack_loss = 0.1,
		.delay_ns = 100 * US);

	link_finish(l, 1000 * S);
	link_complete(l);
}

// More than 2^32 bytes: offsets are 64 bits wide, sequence numbers wrap twice.
TEST(more_than_four_gigabytes_arrive) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 50}}, mss: 9000B, "
				       "source: {size: {bytes: 4500MB}}}",
		.lose = 0xf0f, .delay_ns = 100 * US, .check_every = 100);

	l->oracle = false;
	link_finish(l, 1000 * S);
	link_complete(l);
	ck_assert_uint_ge(link_flow(l)->count.retransmits, 8);
}

// RFC 9293 section 3.10.7.4, RFC 7323 section 4.3, of an ACK that is right otherwise: beyond a hole
// in what the peer sent its timestamp is not echoed; outside the window it acknowledges nothing.
TEST(ack_counts_where_its_sequence_number_is_acceptable) {
	static const struct {
		int32_t seq; // beside the next
		bool acks, echoed;
	} cases[] = {{0, true, true}, {1, true, false}, {65535, true, false}, {65536, false, false},
		{-1, false, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
		const struct flow *f = link_flow(l);
		struct seg s = hand_ack(l, 5, 40 * MS);
		uint32_t recent = f->ts_recent;

		s.seq += (uint32_t)cases[i].seq;
		hand_feed(l, &s, 40 * MS);
		ck_assert_uint_eq(f->una, cases[i].acks ? 5 : 0);
		ck_assert_uint_eq(f->ts_recent, cases[i].echoed ? s.tsval : recent);
		ck_assert_uint_eq(l->tx.count.rx_bad, cases[i].acks ? 0 : 1);
		link_close(l);
	}
}

// RFC 5961 section 3.2: the last number inside the window is challenged, the next is not.
TEST(rst_is_challenged_up_to_the_windows_edge) {
	for (uint32_t beyond = 0; beyond < 2; beyond++) {
		struct link *l = HAND(.group = "{cc: newreno}");
		struct seg s = {.seq = link_flow(l)->rcv_nxt + 65535 + beyond, .flags = SEG_RST};
		uint64_t sent = l->ctl_count;

		hand_feed(l, &s, 30 * MS);
		ck_assert_uint_eq(l->ctl_count, sent + 1 - beyond);
		ck_assert_int_eq(link_flow(l)->state, FLOW_OPEN);
		link_close(l);
	}
}

// RFC 3168 section 6.1.1: a SYN/ACK with CWR too is that of a peer that reflects bits it does not
// know.
TEST(reflected_ecn_bits_are_no_consent) {
	for (int reflected = 0; reflected < 2; reflected++) {
		struct link *l = LINK(.group = "{cc: newreno, ecn: ect0}", .hand = true);

		link_run(l, 0);
		struct seg s = hand_syn_ack(l, 20 * MS);

		s.flags |= SEG_ECE | (reflected ? SEG_CWR : 0);
		hand_feed(l, &s, 20 * MS);
		ck_assert_int_eq(link_flow(l)->state, FLOW_OPEN);
		ck_assert_int_eq(l->data[0].ecn, reflected ? ECN_NOT_ECT : ECN_ECT0);
		link_close(l);
	}
}

// Overtaken, and yet of the future: no honest peer sent it so, and its timestamp would make honest
// ones old.
TEST(overtaken_ack_sets_no_timestamp) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 3, 40 * MS);

	hand_ack_at(l, 5, 40 * MS);
	s.tsval += 1000000;
	hand_feed(l, &s, 41 * MS);
	ck_assert_uint_eq(f->ts_recent, flow_tsval(40 * MS));
	hand_ack_at(l, 6, 42 * MS);
	ck_assert_uint_eq(f->una, 6);
}

// The probes of a window that closes again begin anew, an RTO apart.
TEST(probes_begin_anew_once_the_window_was_open) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 10, 40 * MS);

	s.window = 0;
	hand_feed(l, &s, 40 * MS);
	link_run(l, 3 * S);
	ck_assert_uint_ge(f->probes, 2);
	hand_ack_at(l, 10, 3 * S);
	s = hand_ack(l, 20, 3020 * MS);
	s.window = 0;
	hand_feed(l, &s, 3020 * MS);
	ck_assert_int_eq(f->rtx_kind, RTX_PERSIST);
	ck_assert_uint_eq(f->rtx_deadline_ns, 3020 * MS + f->rtt.rto_ns);
}

// Of two segments, a millisecond apart, that one ACK acknowledges srtt learns the first one's RTT,
// as in Linux, which the wait of a delayed ACK is part of; the smallest RTT is the second one's.
// Either path of an ACK.
TEST(srtt_is_of_the_oldest_segment) {
	for (int timestamps = 0; timestamps < 2; timestamps++) {
		struct link *l = HAND(.group = timestamps
				? "{cc: {fixed: {cwnd: 20, rate: 11.584Mbit}}}"
				: "{cc: {fixed: {cwnd: 20, rate: 11.584Mbit}}, timestamps: no}");
		const struct flow *f = link_flow(l);

		hand_ack_at(l, 0, 20 * MS);
		hand_ack_at(l, 2, 48 * MS);
		SENT(l, 0, 0, 20 * MS);
		ck_assert_uint_gt(l->data[1].t_ns, 20 * MS);
		ck_assert_uint_eq(f->rtt.srtt_ns, 20 * MS + 8 * MS / 8);
		ck_assert_uint_eq(f->rtt.min_ns, 20 * MS);
		hand_ack_at(l, 4, 49 * MS);
		ck_assert_uint_eq(f->rack_rtt_ns, 49 * MS - l->data[3].t_ns);
		link_close(l);
	}
}

// What was sent again gives no sample, nor does what lay behind it and may have arrived long before
// (Karn).
TEST(srtt_learns_nothing_from_what_was_sent_again) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 4}}, timestamps: no, tlp: no}");
	const struct flow *f = link_flow(l);

	hand_ack_at(l, 0, 20 * MS);
	hand_sack_at(l, 0, 1, 4, 40 * MS); // 0 is sent again
	ck_assert_uint_eq(f->count.retransmits, 1);
	ck_assert_uint_eq(f->rtt.srtt_ns, 20 * MS);
	hand_ack_at(l, 4, 100 * MS);
	ck_assert_uint_eq(f->rtt.srtt_ns, 20 * MS);
}
