// SPDX-License-Identifier: BSD-3-Clause
// Connections that one side ends at a time of the config: RFC 9293 sections 3.6 (a FIN ends one
// direction) and 3.10.7.1 (what comes for a connection that is no more is answered by a reset).
#include "receiver_test.h"

START_TEST(our_fin_is_sent_until_it_is_acknowledged_and_data_goes_on) {
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
	ck_assert_uint_eq(rcv(l)->count.bytes, 3 * LEN);
	ck_assert(receiver_done(rcv(l)));
	link_close(l);
}
END_TEST

START_TEST(an_acknowledgement_of_a_fin_that_was_not_sent_is_refused) {
	struct link *l = RCV("peer: {weir: {close_at: 1s}}");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	s = data(l, 0, LEN, MS);
	s.ack++;
	feed(l, &s, ECN_NOT_ECT, MS);
	ck_assert_uint_eq(rcv(l)->count.bytes, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
	link_close(l);
}
END_TEST

// The last segment of a connection that both sides close: it has the number behind the peer's FIN.
START_TEST(the_acknowledgement_of_our_fin_may_follow_the_peers) {
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
	link_close(l);
}
END_TEST

START_TEST(a_receiver_that_resets_answers_what_still_comes) {
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
	ck_assert_uint_eq(rcv(l)->count.bytes, LEN);
	acks = l->acks_count;
	s.flags = SEG_RST | SEG_ACK; // a reset is not answered by another
	feed(l, &s, ECN_NOT_ECT, S + 2 * MS);
	ck_assert_uint_eq(l->acks_count, acks);
	link_close(l);
}
END_TEST

TEST_MAIN(our_fin_is_sent_until_it_is_acknowledged_and_data_goes_on,
	an_acknowledgement_of_a_fin_that_was_not_sent_is_refused,
	the_acknowledgement_of_our_fin_may_follow_the_peers,
	a_receiver_that_resets_answers_what_still_comes)
