// SPDX-License-Identifier: BSD-3-Clause
// Connections that one side ends at a time of the config: RFC 9293 sections 3.6 (a FIN ends one
// direction) and 3.10.7.1 (what comes for a connection that is no more is answered by a reset).
#include "receiver_test.h"

TEST(our_fin_is_sent_until_it_is_acknowledged_and_data_goes_on) {
	struct link *l = RCV("ack_every: 1, peer: {weir: {close_at: 1s}}");
	uint64_t acks = 1;
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, S - MS);
	expect(l, &acks, 1, LEN);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	feed_seg(l, 1, S + MS); // sent before our FIN came
	expect(l, &acks, 2, 2 * LEN);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(last_ack(l)->seq, receiver_iss(rcv(l)) + 1);
	s = data(l, 2 * LEN, LEN, S + 2 * MS);
	s.ack++; // acknowledges it
	feed(l, &s, ECN_NOT_ECT, S + 2 * MS);
	expect(l, &acks, 1, 3 * LEN);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	ck_assert_uint_eq(last_ack(l)->seq, receiver_iss(rcv(l)) + 2);
	s = data(l, 3 * LEN, 0, S + 3 * MS);
	s.ack++;
	s.flags |= SEG_FIN;
	feed(l, &s, ECN_NOT_ECT, S + 3 * MS);
	expect(l, &acks, 1, 3 * LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	ck_assert_uint_eq(l->rx.received.bytes, 3 * LEN);
	ck_assert(receiver_done(rcv(l)));
}

TEST(an_acknowledgement_of_a_fin_that_was_not_sent_is_refused) {
	struct link *l = RCV("peer: {weir: {close_at: 1s}}");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	s = data(l, 0, LEN, MS);
	s.ack++;
	feed(l, &s, ECN_NOT_ECT, MS);
	ck_assert_uint_eq(l->rx.received.bytes, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
}

// The last segment of a connection that both sides close: it has the number behind the peer's FIN.
TEST(the_acknowledgement_of_our_fin_may_follow_the_peers) {
	struct link *l = RCV("ack_every: 1");
	uint64_t acks = 1;
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_fin(l, LEN, MS);
	expect(l, &acks, 2, LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	s = data(l, LEN + 1, 0, 2 * MS);
	s.ack++; // acknowledges it
	feed(l, &s, ECN_NOT_ECT, 2 * MS);
	ck_assert_uint_eq(l->acks_count, acks); // an ACK is not answered
	ck_assert_uint_eq(l->rx.count.rx_bad, 0);
	s.seq++; // there is nothing yet further on
	feed(l, &s, ECN_NOT_ECT, 3 * MS);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
}

// A forged or old SYN renewed a connection that was over, whatever its number and its other flags.
TEST(only_a_syn_beyond_a_connection_that_is_over_begins_the_next) {
	static const struct {
		int32_t beyond; // the FIN's number
		uint8_t flags, options;
		int32_t newer; // than the last timestamp
		bool begins;
	} want[] = {
		{0, 0, SEG_OPT_TS, 0, false},
		{-2, 0, SEG_OPT_TS, 0, false},
		{-1, 0, SEG_OPT_TS, 1, false}, // the old SYN, late
		{INT32_MIN, 0, SEG_OPT_TS, -1, false},
		{-2, 0, 0, 1, false}, // its timestamp is not there
		{1, SEG_FIN, SEG_OPT_TS, 1, false},
		{1, SEG_ACK, SEG_OPT_TS, 1, false},
		{1, 0, 0, 0, true},
		{-2, 0, SEG_OPT_TS, 1, true},
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct link *l = RCV("");
		struct seg s;

		syn(l, 7, ALL_OPTIONS, 0, 0);
		feed_fin(l, 0, MS);
		s = data(l, 0, 0, MS);
		s.seq += (uint32_t)want[i].beyond;
		s.flags = SEG_SYN | want[i].flags;
		s.options = want[i].options;
		s.tsval += (uint32_t)want[i].newer;
		feed(l, &s, ECN_NOT_ECT, 2 * MS);
		ck_assert_uint_eq(rcv(l)->irs, want[i].begins ? s.seq : 7);
		ck_assert_uint_eq(
			last_ack(l)->flags, want[i].begins ? SEG_SYN | SEG_ACK : SEG_ACK | SEG_FIN);
		ck_assert_uint_eq(l->rx.count.rx_bad, !want[i].begins);
		link_close(l);
	}
}

// As in Linux; a SYN/ACK has no connection to be of (RFC 9293 section 3.10.7.2).
TEST(a_receiver_that_waits_takes_no_syn_with_fin_or_ack) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, SEG_FIN, 0);
	syn(l, 7, ALL_OPTIONS, SEG_ACK, 0);
	ck_assert_uint_eq(l->acks_count, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 2);
	ck_assert_int_eq(rcv(l)->state, RECEIVER_LISTEN);
}

TEST(a_receiver_that_resets_answers_what_still_comes) {
	struct link *l = RCV("ack_every: 1, peer: {weir: {reset_at: 1s}}");
	uint64_t acks = 1;
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, S - MS);
	expect(l, &acks, 1, LEN);
	s = data(l, LEN, LEN, S + MS);
	feed(l, &s, ECN_NOT_ECT, S + MS);
	ck_assert_uint_eq(l->acks_count, acks + 2);
	ck_assert_uint_eq(l->acks[acks].t_ns, S);
	ck_assert_uint_eq(l->acks[acks].seg.flags, SEG_RST | SEG_ACK);
	ck_assert_uint_eq(l->acks[acks].seg.seq, receiver_iss(rcv(l)) + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_RST);
	ck_assert_uint_eq(last_ack(l)->seq, s.ack);
	ck_assert_uint_eq(l->rx.received.bytes, LEN);
	acks = l->acks_count;
	s.flags = SEG_RST | SEG_ACK; // a reset is not answered by another
	feed(l, &s, ECN_NOT_ECT, S + 2 * MS);
	ck_assert_uint_eq(l->acks_count, acks);
}
