// SPDX-License-Identifier: BSD-3-Clause
// The receiving side: the handshake, what it acknowledges and when, ECN, timestamps, resets.
#include "receiver_test.h"

TEST(syn_ack_offers_what_both_sides_want) {
	struct link *l = RCV("rwnd: 1MB, mss: 1000B, ecn: ect0");

	syn(l, 7, ALL_OPTIONS, SEG_ECE | SEG_CWR, 5);
	const struct seg *s = last_ack(l);

	ck_assert_uint_eq(l->acks[0].t_ns, 5);
	ck_assert_uint_eq(s->flags, SEG_SYN | SEG_ACK | SEG_ECE);
	ck_assert_uint_eq(s->ack, 8);
	ck_assert_uint_eq(s->options, ALL_OPTIONS);
	ck_assert_uint_eq(s->tsecr, TS0);
	ck_assert_uint_eq(s->mss, 1000);
	ck_assert_uint_eq(s->wscale, 4); // 65535 << 4 >= 1 MB
	ck_assert_uint_eq(s->window, 65535); // never scaled in a SYN
	feed_seg(l, 0, MS);
	feed_seg(l, 1, MS);
	ck_assert_uint_eq(last_ack(l)->window, 1000000 >> 4);
}

// RFC 7323 section 2.3. 65536 is the first window that does not fit in 16 bits: without a shift its
// last byte would never be offered.
TEST(window_is_scaled_from_the_first_that_needs_it) {
	static const struct {
		const char *group;
		uint8_t wscale;
		uint16_t window;
	} want[] = {{"{cc: newreno, start: 1000s, rwnd: 65535B}", 0, 65535},
		{"{cc: newreno, start: 1000s, rwnd: 65536B}", 1, 32768}};

	for (int i = 0; i < 2; i++) {
		struct link *l = LINK(.group = want[i].group, .ack_loss = 1);

		syn(l, 7, ALL_OPTIONS, 0, 0);
		ck_assert_uint_eq(last_ack(l)->wscale, want[i].wscale);
		ck_assert_uint_eq(last_ack(l)->window, 65535); // never scaled in a SYN
		feed_seg(l, 1, MS);
		ck_assert_uint_eq(last_ack(l)->window, want[i].window);
		link_close(l);
	}
}

TEST(syn_ack_offers_no_option_that_was_not_asked_for) {
	struct link *l = RCV("ecn: ect0");

	syn(l, 7, SEG_OPT_MSS, 0, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_SYN | SEG_ACK);
	ck_assert_uint_eq(last_ack(l)->options, SEG_OPT_MSS);
	feed_seg(l, 1, MS);
	ck_assert_uint_eq(last_ack(l)->options, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	ck_assert_uint_eq(last_ack(l)->window, 65535);
}

// RFC 5961 section 4: a SYN with another number is answered by an ACK.
TEST(syn_again_gets_the_same_answer_another_syn_a_challenge) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	syn(l, 7, ALL_OPTIONS, 0, S);
	ck_assert_uint_eq(l->acks_count, 2);
	ck_assert_uint_eq(l->acks[1].seg.seq, l->acks[0].seg.seq);
	ck_assert_uint_eq(l->acks[1].seg.flags, SEG_SYN | SEG_ACK);
	syn(l, 8, ALL_OPTIONS, 0, 2 * S);
	ck_assert_uint_eq(l->acks_count, 3);
	ck_assert_uint_eq(l->acks[2].seg.flags, SEG_ACK);
	ck_assert_uint_eq(l->acks[2].seg.ack, 8);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
}

TEST(data_before_a_syn_is_refused) {
	struct link *l = RCV("");

	feed_seg(l, 0, 0);
	ck_assert_uint_eq(l->acks_count, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
}

// RFC 5681 section 4.2: at least every second full segment.
TEST(every_nth_full_segment_is_acknowledged_at_once) {
	static const char *const groups[] = {"{cc: newreno, start: 1000s, ack_every: 1}",
		"{cc: newreno, start: 1000s}", "{cc: newreno, start: 1000s, ack_every: 4}"};
	static const uint64_t every[] = {1, 2, 4};

	for (int g = 0; g < 3; g++) {
		struct link *l = LINK(.group = groups[g], .ack_loss = 1);
		uint64_t acks = 1;

		syn(l, 7, ALL_OPTIONS, 0, 0);
		for (uint64_t i = 0; i < 12; i++) {
			feed_seg(l, i, MS);
			expect(l, &acks, (i + 1) % every[g] == 0, (i + 1) * LEN);
		}
		link_close(l);
	}
}

TEST(lone_segment_is_acknowledged_when_the_delay_ends) {
	struct link *l = RCV("ack_delay: 40ms");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, MS); // its timer is overtaken by the next segment
	feed_seg(l, 1, 2 * MS);
	expect(l, &acks, 1, 2 * LEN);
	feed_seg(l, 2, 3 * MS + 1);
	link_run(l, 43 * MS);
	expect(l, &acks, 0, 0);
	link_run(l, 43 * MS + 1);
	expect(l, &acks, 1, 3 * LEN);
	link_run(l, S);
	expect(l, &acks, 0, 0);
}

TEST(without_a_delay_every_segment_is_acknowledged) {
	struct link *l = RCV("ack_delay: 0ms");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 5; i++) {
		feed_data(l, 100 * i, 100, i);
		expect(l, &acks, 1, 100 * (i + 1));
	}
}

TEST(short_segments_wait_for_the_timer) {
	struct link *l = RCV("ack_delay: 40ms");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_data(l, 0, LEN, 0);
	feed_data(l, LEN, LEN, 0);
	expect(l, &acks, 1, 2 * LEN);
	for (uint64_t i = 0; i < 10; i++)
		feed_data(l, 2 * LEN + i, 1, 5 * MS + i * MS);
	expect(l, &acks, 0, 0);
	link_run(l, 45 * MS);
	expect(l, &acks, 1, 2 * LEN + 10);
	ck_assert_uint_eq(l->acks[2].t_ns, 45 * MS);
}

TEST(fin_is_acknowledged_at_once_with_ours) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_fin(l, LEN, 0);
	expect(l, &acks, 1, LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(l->rx.received.bytes, LEN);
	feed_fin(l, LEN, MS); // our ACK was lost
	expect(l, &acks, 1, LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
}

TEST(fin_may_come_with_the_last_bytes) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	s = data(l, 0, 100, 0);
	s.flags |= SEG_FIN;
	feed(l, &s, ECN_NOT_ECT, 0);
	ck_assert_uint_eq(last_ack(l)->ack, 7 + 1 + 100 + 1);
	ck_assert_uint_eq(l->rx.received.bytes, 100);
}

// There is nothing behind a FIN: data there is refused and answered with the ACK of the FIN. Data
// below it that comes again is a duplicate as ever.
TEST(data_behind_a_fin_is_refused) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_fin(l, LEN, 0);
	expect(l, &acks, 1, LEN + 1);
	feed_data(l, LEN, LEN, S); // at the FIN's own number
	expect(l, &acks, 1, LEN + 1);
	feed_data(l, LEN + 1, LEN, 2 * S);
	expect(l, &acks, 1, LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 2);
	ck_assert_uint_eq(l->rx.received.bytes, LEN);
	ck_assert_uint_eq(receivers_done(&l->rx.endpoint), 1);
	feed_data(l, 0, LEN, 3 * S);
	expect(l, &acks, 1, LEN + 1);
	block(l, 0, 0, 1);
	ck_assert_uint_eq(l->rx.count.rx_bad, 2);
}

// Data beyond the FIN's number came before it, so the stream does not end there. Believed, the FIN
// would close the connection and the rest would be refused.
TEST(fin_below_data_that_came_is_no_end) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_seg(l, 3, 0);
	feed_fin(l, 2 * LEN, 0);
	feed_seg(l, 1, 0);
	expect(l, &acks, 3, 2 * LEN);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	block(l, 0, 3, 4);
	feed_seg(l, 2, 0);
	expect(l, &acks, 1, 4 * LEN);
	feed_fin(l, 4 * LEN, 0);
	expect(l, &acks, 1, 4 * LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(l->rx.received.bytes, 4 * LEN);
}

// RFC 3168 section 6.1.3.
TEST(ce_is_echoed_until_cwr) {
	struct link *l = RCV("ecn: ect0, ack_every: 4");
	uint64_t acks = 1;
	struct seg s;

	syn(l, 7, ALL_OPTIONS, SEG_ECE | SEG_CWR, 0);
	feed_seg(l, 0, 0);
	s = data(l, LEN, LEN, 0);
	feed(l, &s, ECN_CE, 0);
	expect(l, &acks, 1, 2 * LEN); // CE changed: at once
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_ECE);
	feed_seg(l, 2, 0);
	expect(l, &acks, 1, 3 * LEN); // and back
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_ECE);
	for (uint64_t i = 3; i < 7; i++)
		feed_seg(l, i, 0);
	expect(l, &acks, 1, 7 * LEN);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_ECE);
	s = data(l, 7 * LEN, LEN, 0);
	s.flags |= SEG_CWR;
	feed(l, &s, ECN_ECT0, 0);
	feed_seg(l, 9, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	s = data(l, 8 * LEN, LEN, 0); // tells of the reduction, and is marked again
	s.flags |= SEG_CWR;
	feed(l, &s, ECN_CE, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_ECE);
	ck_assert_uint_eq(l->rx.received.ce_segs, 2);
}

// RFC 8257 section 3.2: each change of CE is acknowledged at once, ECE is CE of the packets
// acknowledged, and CWR means nothing. Packets that wait for a delayed ACK are acknowledged before
// a change, with the state they had.
TEST(ce_of_every_packet_is_reported_to_dctcp) {
	static const bool ce[] = {0, 0, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0};
	// After packet i: how many ACKs it made leave, what the last one acknowledges and whether
	// it has ECE.
	static const struct {
		uint64_t acks, covers;
		uint8_t ece;
	} expected[] = {{0, 0, 0}, {0, 0, 0}, {2, 3, 1}, {0, 3, 1}, {0, 3, 1}, {0, 3, 1}, {1, 7, 1},
		{1, 8, 0}, {1, 9, 1}, {1, 10, 0}, {0, 10, 0}, {0, 10, 0}};
	struct link *l = RCV("ecn: ect0, ecn_feedback: dctcp, ack_every: 4");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, SEG_ECE | SEG_CWR, 0);
	for (uint64_t i = 0; i < 12; i++) {
		struct seg s = data(l, i * LEN, LEN, 0);

		s.flags |= i == 4 ? SEG_CWR : 0;
		feed(l, &s, ce[i] ? ECN_CE : ECN_ECT0, 0);
		expect(l, &acks, expected[i].acks, expected[i].covers * LEN);
		if (i >= 2)
			ck_assert_uint_eq((last_ack(l)->flags & SEG_ECE) != 0, expected[i].ece);
		if (i == 2) { // the two before it first, without ECE
			ck_assert_uint_eq(l->acks[acks - 2].seg.flags, SEG_ACK);
			ck_assert_uint_eq(l->acks[acks - 2].seg.ack, rcv(l)->irs + 1 + 2 * LEN);
		}
	}
	ck_assert_uint_eq(l->rx.received.ce_segs, 6);
}

TEST(ce_is_not_echoed_unless_agreed) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, SEG_ECE | SEG_CWR, 0);
	s = data(l, LEN, LEN, 0);
	feed(l, &s, ECN_CE, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
}

// RFC 7323: TS.Recent from segments at or below the last ACK sent, and PAWS (section 5.3).
TEST(timestamps_are_echoed_as_the_rfc_says) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 10 * MS);
	feed_seg(l, 1, 20 * MS);
	ck_assert_uint_eq(last_ack(l)->tsecr, TS0 + 10); // the earliest of those it acknowledges
	feed_seg(l, 3, 30 * MS);
	ck_assert_uint_eq(last_ack(l)->tsecr, TS0 + 10); // beyond a hole: not taken
	feed_seg(l, 2, 40 * MS);
	ck_assert_uint_eq(last_ack(l)->tsecr, TS0 + 40);
}

TEST(old_timestamp_is_refused_and_answered) {
	struct link *l = RCV("");
	uint64_t acks = 1;
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 10 * MS);
	feed_seg(l, 1, 10 * MS);
	expect(l, &acks, 1, 2 * LEN);
	s = data(l, 2 * LEN, LEN, 10 * MS);
	s.tsval = TS0 + 9;
	feed(l, &s, ECN_NOT_ECT, 11 * MS);
	expect(l, &acks, 1, 2 * LEN);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
	s.tsval = TS0 + 10 + 0x80000001u; // 2^31 behind, through the wrap
	feed(l, &s, ECN_NOT_ECT, 11 * MS);
	ck_assert_uint_eq(l->rx.count.rx_bad, 2);
	s.tsval = TS0 + 10 + 0x7fffffffu;
	feed(l, &s, ECN_NOT_ECT, 11 * MS);
	ck_assert_uint_eq(l->rx.count.rx_bad, 2);
	ck_assert_uint_eq(rcv(l)->rcv_nxt, 3 * LEN);
}

TEST(data_outside_the_window_is_refused_and_answered) {
	struct link *l = RCV("rwnd: 100000B");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_data(l, 100001, LEN, 0);
	expect(l, &acks, 1, 0);
	feed_data(l, 100001, LEN, 499 * MS); // no flood of answers
	expect(l, &acks, 0, 0);
	feed_data(l, 0u - 10u, 5, 500 * MS); // before the first byte
	expect(l, &acks, 1, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 3);
	ck_assert_ptr_null(rcv(l)->head);
}

TEST(probe_below_the_window_is_answered_a_bare_ack_not) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_data(l, LEN, 0, 0);
	expect(l, &acks, 0, 0);
	feed_data(l, LEN - 1, 0, 0);
	expect(l, &acks, 1, LEN);
}

// RFC 5961 section 3.2. Any RST closed the connection.
TEST(rst_closes_only_at_the_next_byte) {
	struct link *l = RCV("rwnd: 100000B");
	struct seg s;
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	s = data(l, 1, 0, 0);
	s.flags = SEG_RST;
	feed(l, &s, ECN_NOT_ECT, 0);
	expect(l, &acks, 1, 0); // inside the window: challenged
	s.seq = rcv(l)->irs; // below or above: ignored, though an answer would be due
	feed(l, &s, ECN_NOT_ECT, S);
	expect(l, &acks, 0, 0);
	s.seq = rcv(l)->irs + 1 + 100001;
	feed(l, &s, ECN_NOT_ECT, S);
	expect(l, &acks, 0, 0);
	ck_assert_int_eq(rcv(l)->state, RECEIVER_OPEN);
	s.seq = rcv(l)->irs + 1;
	feed(l, &s, ECN_NOT_ECT, S);
	expect(l, &acks, 0, 0);
	ck_assert_int_eq(rcv(l)->state, RECEIVER_CLOSED);
}

// A receiver of a dynamic connection serves one after the other: 155 connections ended and 64 were
// said to be done, as many as there are receivers.
TEST(done_connections_are_counted_beyond_their_receivers) {
	struct link *l = RCV("");
	struct seg s;

	for (uint32_t i = 1; i <= 3; i++) {
		syn(l, 1000 * i, ALL_OPTIONS, 0, i * S);
		ck_assert(!receiver_over(rcv(l)));
		ck_assert_uint_eq(receivers_done(&l->rx.endpoint), i - 1);
		feed_fin(l, 0, i * S);
		ck_assert(receiver_over(rcv(l)));
		ck_assert_uint_eq(receivers_done(&l->rx.endpoint), i);
		receiver_renew(&l->rx.endpoint, rcv(l), 0);
		ck_assert_uint_eq(receivers_done(&l->rx.endpoint), i);
	}
	// One that is reset is over and not done.
	syn(l, 7, ALL_OPTIONS, 0, 4 * S);
	s = data(l, 0, 0, 4 * S);
	s.flags = SEG_RST;
	feed(l, &s, ECN_NOT_ECT, 4 * S);
	ck_assert(receiver_over(rcv(l)));
	receiver_renew(&l->rx.endpoint, rcv(l), 0);
	ck_assert_uint_eq(receivers_done(&l->rx.endpoint), 3);
}

TEST(sequence_numbers_wrap_twice) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 0xffffff00u, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 150000; i++) {
		struct seg s =
			data(l, i * 60000 + (i % 2 == 0 ? 60000 : 0) - (i % 2) * 60000, 60000, 0);

		feed(l, &s, ECN_NOT_ECT, 0); // pairs arrive in the wrong order
		NEED(rcv(l)->rcv_nxt == (i + (i % 2)) * 60000);
	}
	acks = l->acks_count - 1;
	expect(l, &acks, 1, 150000 * UINT64_C(60000)); // 9 GB
}
