// SPDX-License-Identifier: BSD-3-Clause
// The receiving side, fed by hand: what it acknowledges, when, and with which blocks.
#include "link.h"

#define LEN 1448u
#define TS0 1000u

// A receiver alone: its flow would start in a thousand seconds, its ACKs go nowhere.
#define RCV(options) LINK(.group = "{cc: newreno, start: 1000s, " options "}", .ack_loss = 1)

static struct receiver *rcv(struct link *l) {
	l->oracle = false;
	return &l->rx.receiver[0];
}

static void feed(struct link *l, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	while (link_step(l, now_ns))
		;
	l->now_ns = now_ns;
	host_rx_receiver(&l->rx, 0, s, ecn, now_ns);
	link_check(l);
}

static void syn(struct link *l, uint32_t isn, uint8_t options, uint8_t flags, uint64_t now_ns) {
	struct seg s = {.seq = isn, .flags = SEG_SYN | flags, .options = options, .tsval = TS0};

	rcv(l);
	feed(l, &s, ECN_NOT_ECT, now_ns);
}

#define ALL_OPTIONS (SEG_OPT_TS | SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK)

// Data [start, start + len) by offset, with a timestamp that moves with time.
static struct seg data(struct link *l, uint64_t start, uint32_t len, uint64_t now_ns) {
	const struct receiver *r = rcv(l);
	struct seg s = {
		.seq = r->irs + 1 + (uint32_t)start,
		.ack = r->iss + 1,
		.len = (uint16_t)len,
		.flags = SEG_ACK,
	};

	if (r->ts_ok) {
		s.options = SEG_OPT_TS;
		s.tsval = TS0 + (uint32_t)(now_ns / MS);
	}
	return s;
}

static void feed_data(struct link *l, uint64_t start, uint32_t len, uint64_t now_ns) {
	struct seg s = data(l, start, len, now_ns);

	feed(l, &s, ECN_NOT_ECT, now_ns);
}

// Segment number i of LEN bytes.
static void feed_seg(struct link *l, uint64_t i, uint64_t now_ns) {
	feed_data(l, i * LEN, LEN, now_ns);
}

static void feed_fin(struct link *l, uint64_t offset, uint64_t now_ns) {
	struct seg s = data(l, offset, 0, now_ns);

	s.flags |= SEG_FIN;
	feed(l, &s, ECN_NOT_ECT, now_ns);
}

static const struct seg *last_ack(const struct link *l) {
	return &l->acks[(l->acks_count - 1) % LINK_LOG].seg;
}

// How many ACKs left since; the last one acknowledges `offset`.
static void expect(struct link *l, uint64_t *acks, uint64_t more, uint64_t offset) {
	ck_assert_uint_eq(l->acks_count, *acks + more);
	*acks = l->acks_count;
	if (more > 0)
		ck_assert_uint_eq(last_ack(l)->ack, rcv(l)->irs + 1 + (uint32_t)offset);
}

static void block(struct link *l, int i, uint64_t from, uint64_t to) {
	const struct receiver *r = rcv(l);

	ck_assert_int_gt(last_ack(l)->sack_count, i);
	ck_assert_uint_eq(last_ack(l)->sack[i].start, r->irs + 1 + (uint32_t)(from * LEN));
	ck_assert_uint_eq(last_ack(l)->sack[i].end, r->irs + 1 + (uint32_t)(to * LEN));
}

START_TEST(syn_ack_offers_what_both_sides_want) {
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
	link_close(l);
}
END_TEST

START_TEST(syn_ack_offers_no_option_that_was_not_asked_for) {
	struct link *l = RCV("ecn: ect0");

	syn(l, 7, SEG_OPT_MSS, 0, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_SYN | SEG_ACK);
	ck_assert_uint_eq(last_ack(l)->options, SEG_OPT_MSS);
	feed_seg(l, 1, MS);
	ck_assert_uint_eq(last_ack(l)->options, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	ck_assert_uint_eq(last_ack(l)->window, 65535);
	link_close(l);
}
END_TEST

START_TEST(syn_again_gets_the_same_answer_another_syn_none) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	syn(l, 7, ALL_OPTIONS, 0, S);
	ck_assert_uint_eq(l->acks_count, 2);
	ck_assert_uint_eq(l->acks[1].seg.seq, l->acks[0].seg.seq);
	ck_assert_uint_eq(l->acks[1].seg.flags, SEG_SYN | SEG_ACK);
	syn(l, 8, ALL_OPTIONS, 0, 2 * S);
	ck_assert_uint_eq(l->acks_count, 2);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
	link_close(l);
}
END_TEST

START_TEST(data_before_a_syn_is_refused) {
	struct link *l = RCV("");

	feed_seg(l, 0, 0);
	ck_assert_uint_eq(l->acks_count, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 1);
	link_close(l);
}
END_TEST

// RFC 5681 section 4.2: at least every second full segment.
START_TEST(every_nth_full_segment_is_acknowledged_at_once) {
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
END_TEST

START_TEST(lone_segment_is_acknowledged_when_the_delay_ends) {
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
	link_close(l);
}
END_TEST

START_TEST(without_a_delay_every_segment_is_acknowledged) {
	struct link *l = RCV("ack_delay: 0ms");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 5; i++) {
		feed_data(l, 100 * i, 100, i);
		expect(l, &acks, 1, 100 * (i + 1));
	}
	link_close(l);
}
END_TEST

START_TEST(short_segments_wait_for_the_timer) {
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
	link_close(l);
}
END_TEST

START_TEST(hole_is_reported_at_once_until_it_is_filled) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 1, 0);
	expect(l, &acks, 1, 0);
	block(l, 0, 1, 2);
	feed_seg(l, 2, 0);
	expect(l, &acks, 1, 0);
	block(l, 0, 1, 3);
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	feed_seg(l, 0, 0);
	expect(l, &acks, 1, 3 * LEN); // fills it: at once
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	feed_seg(l, 3, 0);
	expect(l, &acks, 0, 0); // as usual again
	ck_assert_uint_eq(rcv(l)->count.out_of_order_segs, 2);
	link_close(l);
}
END_TEST

// RFC 2018 section 4: the newest first, then the most recently reported ones.
START_TEST(blocks_are_reported_newest_first) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 1; i <= 9; i += 2)
		feed_seg(l, i, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 3); // the timestamps leave room for three
	block(l, 0, 9, 10);
	block(l, 1, 7, 8);
	block(l, 2, 5, 6);
	feed_seg(l, 6, 0); // joins 5, 6 and 7
	block(l, 0, 5, 8);
	block(l, 1, 9, 10);
	block(l, 2, 3, 4);
	feed_seg(l, 2, 0);
	block(l, 0, 1, 4);
	block(l, 1, 5, 8);
	block(l, 2, 9, 10);
	ck_assert_uint_eq(rcv(l)->ranges, 3);
	feed_seg(l, 0, 0);
	block(l, 0, 5, 8);
	block(l, 1, 9, 10);
	ck_assert_uint_eq(last_ack(l)->sack_count, 2);
	link_close(l);
}
END_TEST

START_TEST(four_blocks_without_timestamps) {
	struct link *l = RCV("timestamps: no");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	ck_assert_uint_eq(last_ack(l)->options, ALL_OPTIONS & ~SEG_OPT_TS);
	for (uint64_t i = 1; i <= 9; i += 2)
		feed_seg(l, i, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 4);
	block(l, 3, 3, 4);
	link_close(l);
}
END_TEST

// RFC 2883 section 4: a duplicate is reported once, in the first block.
START_TEST(duplicate_below_is_reported_once) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 4; i++)
		feed_seg(l, i, 0);
	feed_seg(l, 5, 0);
	expect(l, &acks, 3, 4 * LEN);
	feed_seg(l, 1, 0);
	expect(l, &acks, 1, 4 * LEN);
	block(l, 0, 1, 2);
	block(l, 1, 5, 6);
	feed_seg(l, 6, 0);
	block(l, 0, 5, 7);
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	ck_assert_uint_eq(rcv(l)->count.duplicate_segs, 1);
	link_close(l);
}
END_TEST

// RFC 2883 section 4.1.3: the second block is the one that holds the duplicate, so that the sender
// can tell. It was the most recently changed one, and the sender took the duplicate for news.
START_TEST(duplicate_above_comes_with_the_block_around_it) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 2; i < 6; i++)
		feed_seg(l, i, 0);
	feed_seg(l, 8, 0);
	feed_seg(l, 3, 0);
	block(l, 0, 3, 4);
	block(l, 1, 2, 6);
	block(l, 2, 8, 9);
	ck_assert_uint_eq(rcv(l)->count.duplicate_segs, 1);
	link_close(l);
}
END_TEST

START_TEST(full_report_makes_room_for_a_duplicate) {
	struct link *l = RCV("timestamps: no");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	for (uint64_t i = 2; i <= 10; i += 2)
		feed_seg(l, i, 0);
	feed_seg(l, 0, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 4);
	block(l, 0, 0, 1);
	block(l, 1, 10, 11);
	block(l, 3, 6, 7);
	link_close(l);
}
END_TEST

START_TEST(fin_is_acknowledged_at_once_with_ours) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_fin(l, LEN, 0);
	expect(l, &acks, 1, LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(rcv(l)->count.bytes, LEN);
	feed_fin(l, LEN, MS); // our ACK was lost
	expect(l, &acks, 1, LEN + 1);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	link_close(l);
}
END_TEST

START_TEST(fin_may_come_with_the_last_bytes) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	s = data(l, 0, 100, 0);
	s.flags |= SEG_FIN;
	feed(l, &s, ECN_NOT_ECT, 0);
	ck_assert_uint_eq(last_ack(l)->ack, 7 + 1 + 100 + 1);
	ck_assert_uint_eq(rcv(l)->count.bytes, 100);
	link_close(l);
}
END_TEST

// It went into the ranges as [x, x): an empty block on the wire, and once data ended at x a
// duplicate that never was. Now its number is reported like a byte's.
START_TEST(fin_beyond_a_hole_is_reported) {
	struct link *l = RCV("");
	uint64_t acks = 1;
	uint32_t fin;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	fin = 7 + 1 + 3 * LEN;
	feed_fin(l, 3 * LEN, 0);
	expect(l, &acks, 1, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	ck_assert_uint_eq(last_ack(l)->sack[0].start, fin);
	ck_assert_uint_eq(last_ack(l)->sack[0].end, fin + 1);
	feed_seg(l, 1, 0);
	ck_assert_uint_eq(last_ack(l)->sack[0].start, fin);
	block(l, 1, 1, 2);
	feed_seg(l, 2, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	ck_assert_uint_eq(last_ack(l)->sack[0].start, 7 + 1 + LEN);
	ck_assert_uint_eq(last_ack(l)->sack[0].end, fin + 1);
	feed_fin(l, 3 * LEN, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	feed_seg(l, 0, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK | SEG_FIN);
	expect(l, &acks, 4, 3 * LEN + 1);
	ck_assert_uint_eq(rcv(l)->count.bytes, 3 * LEN);
	link_close(l);
}
END_TEST

// RFC 3168 section 6.1.3.
START_TEST(ce_is_echoed_until_cwr) {
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
	ck_assert_uint_eq(rcv(l)->count.ce_segs, 2);
	link_close(l);
}
END_TEST

START_TEST(ce_is_not_echoed_unless_agreed) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, SEG_ECE | SEG_CWR, 0);
	s = data(l, LEN, LEN, 0);
	feed(l, &s, ECN_CE, 0);
	ck_assert_uint_eq(last_ack(l)->flags, SEG_ACK);
	link_close(l);
}
END_TEST

// RFC 7323: TS.Recent from segments at or below the last ACK sent, and PAWS (section 5.3).
START_TEST(timestamps_are_echoed_as_the_rfc_says) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 10 * MS);
	feed_seg(l, 1, 20 * MS);
	ck_assert_uint_eq(last_ack(l)->tsecr, TS0 + 10); // the earliest of those it acknowledges
	feed_seg(l, 3, 30 * MS);
	ck_assert_uint_eq(last_ack(l)->tsecr, TS0 + 10); // beyond a hole: not taken
	feed_seg(l, 2, 40 * MS);
	ck_assert_uint_eq(last_ack(l)->tsecr, TS0 + 40);
	link_close(l);
}
END_TEST

START_TEST(old_timestamp_is_refused_and_answered) {
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
	link_close(l);
}
END_TEST

// A retransmission arrives, then the late original with its older timestamp: without the DSACK the
// sender would never learn that it sent again for nothing.
START_TEST(late_original_is_reported_though_paws_refuses_it) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 50 * MS);
	s = data(l, 0, LEN, 10 * MS);
	feed(l, &s, ECN_NOT_ECT, 51 * MS);
	ck_assert_uint_eq(last_ack(l)->ack, 7 + 1 + LEN);
	block(l, 0, 0, 1);
	ck_assert_uint_eq(rcv(l)->count.bytes, LEN);
	link_close(l);
}
END_TEST

START_TEST(data_outside_the_window_is_refused_and_answered) {
	struct link *l = RCV("rwnd: 100000B");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_data(l, 100001, LEN, 0);
	expect(l, &acks, 1, 0);
	feed_data(l, 0u - 10u, 5, 0); // before the first byte
	expect(l, &acks, 1, 0);
	ck_assert_uint_eq(l->rx.count.rx_bad, 2);
	ck_assert_uint_eq(rcv(l)->ranges, 0);
	link_close(l);
}
END_TEST

START_TEST(probe_below_the_window_is_answered_a_bare_ack_not) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_data(l, LEN, 0, 0);
	expect(l, &acks, 0, 0);
	feed_data(l, LEN - 1, 0, 0);
	expect(l, &acks, 1, LEN);
	link_close(l);
}
END_TEST

// RFC 5961 section 3.2. Any RST closed the connection.
START_TEST(rst_closes_only_at_the_next_byte) {
	struct link *l = RCV("rwnd: 100000B");
	struct seg s;
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	s = data(l, 1, 0, 0);
	s.flags = SEG_RST;
	feed(l, &s, ECN_NOT_ECT, 0);
	expect(l, &acks, 1, 0); // inside the window: challenged
	s.seq = rcv(l)->irs; // outside: ignored
	feed(l, &s, ECN_NOT_ECT, 0);
	expect(l, &acks, 0, 0);
	ck_assert_int_eq(rcv(l)->state, RECEIVER_OPEN);
	s.seq = rcv(l)->irs + 1;
	feed(l, &s, ECN_NOT_ECT, 0);
	expect(l, &acks, 0, 0);
	ck_assert_int_eq(rcv(l)->state, RECEIVER_CLOSED);
	link_close(l);
}
END_TEST

// Random pieces against a bitmap of bytes.
#define SPACE 600u

static void oracle_check(struct link *l, const bool *got) {
	const struct receiver *r = rcv(l);
	const struct range *g = r->head;
	uint64_t nxt = 0;

	while (nxt < SPACE && got[nxt])
		nxt++;
	NEED(r->rcv_nxt == nxt);
	for (uint64_t i = nxt; i < SPACE; i++) {
		bool start = got[i] && (i == nxt || !got[i - 1]);

		if (!start)
			continue;
		uint64_t end = i;

		while (end < SPACE && got[end])
			end++;
		NEED(g != NULL && g->start == i && g->end == end);
		g = g->next;
	}
	NEED(g == NULL);
}

START_TEST(ranges_are_those_of_a_bitmap) {
	struct rng rng;

	rng_init(&rng, 1, "ranges");
	for (int round = 0; round < 200; round++) {
		struct link *l = RCV("rwnd: 2000B");
		bool got[SPACE] = {false};

		syn(l, (uint32_t)rng_u64(&rng), ALL_OPTIONS, 0, 0);
		while (rcv(l)->rcv_nxt < SPACE) {
			uint64_t start = rng_u64(&rng) % SPACE, max = SPACE - start;
			uint64_t len = 1 + rng_u64(&rng) % (round % 2 == 0 ? 5 : 60);

			len = len > max ? max : len;
			if (rng_u64(&rng) % 8 == 0)
				start = rcv(l)->rcv_nxt, len = time_min(len, SPACE - start);
			feed_data(l, start, (uint32_t)len, 0);
			for (uint64_t i = start; i < start + len; i++)
				got[i] = true;
			oracle_check(l, got);
		}
		ck_assert_uint_eq(rcv(l)->count.bytes, SPACE);
		link_close(l);
	}
}
END_TEST

START_TEST(empty_range_pool_refuses_and_recovers) {
	struct link *l = RCV("");
	struct range *rest;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	rest = l->rx.ranges.free->next->next; // leave two
	l->rx.ranges.free->next->next = NULL;
	l->rx.ranges.size = 2;
	feed_seg(l, 2, 0);
	feed_seg(l, 4, 0);
	feed_seg(l, 6, 0); // no room: as if it never came
	ck_assert_uint_eq(l->rx.ranges.refused, 1);
	ck_assert_uint_eq(last_ack(l)->sack_count, 2);
	block(l, 0, 4, 5);
	feed_seg(l, 5, 0); // what joins a range needs none
	feed_seg(l, 3, 0);
	block(l, 0, 2, 6);
	feed_seg(l, 8, 0);
	feed_seg(l, 0, 0);
	feed_seg(l, 1, 0);
	ck_assert_uint_eq(rcv(l)->rcv_nxt, 6 * LEN);
	feed_seg(l, 6, 0);
	feed_seg(l, 7, 0);
	ck_assert_uint_eq(rcv(l)->rcv_nxt, 9 * LEN);
	ck_assert_uint_eq(l->rx.ranges.refused, 1);
	l->rx.ranges.free = rest;
	link_close(l);
}
END_TEST

START_TEST(sequence_numbers_wrap_twice) {
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
	link_close(l);
}
END_TEST

TEST_MAIN(syn_ack_offers_what_both_sides_want, syn_ack_offers_no_option_that_was_not_asked_for,
	syn_again_gets_the_same_answer_another_syn_none, data_before_a_syn_is_refused,
	every_nth_full_segment_is_acknowledged_at_once,
	lone_segment_is_acknowledged_when_the_delay_ends,
	without_a_delay_every_segment_is_acknowledged, short_segments_wait_for_the_timer,
	hole_is_reported_at_once_until_it_is_filled, blocks_are_reported_newest_first,
	four_blocks_without_timestamps, duplicate_below_is_reported_once,
	duplicate_above_comes_with_the_block_around_it, full_report_makes_room_for_a_duplicate,
	fin_is_acknowledged_at_once_with_ours, fin_may_come_with_the_last_bytes,
	fin_beyond_a_hole_is_reported, ce_is_echoed_until_cwr, ce_is_not_echoed_unless_agreed,
	timestamps_are_echoed_as_the_rfc_says, old_timestamp_is_refused_and_answered,
	late_original_is_reported_though_paws_refuses_it,
	data_outside_the_window_is_refused_and_answered,
	probe_below_the_window_is_answered_a_bare_ack_not, rst_closes_only_at_the_next_byte,
	ranges_are_those_of_a_bitmap, empty_range_pool_refuses_and_recovers,
	sequence_numbers_wrap_twice)
