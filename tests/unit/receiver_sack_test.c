// SPDX-License-Identifier: BSD-3-Clause
// The receiving side: what it keeps out of order, and how it reports it. RFC 2018, 2883.
#include "receiver_test.h"

TEST(hole_is_reported_at_once_until_it_is_filled) {
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
	ck_assert_uint_eq(l->rx.received.out_of_order_segs, 2);
}

// RFC 2018 section 4: the newest first, then the most recently reported ones.
TEST(blocks_are_reported_newest_first) {
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
	ck_assert_uint_eq(held_ranges(rcv(l)), 3);
	feed_seg(l, 0, 0);
	block(l, 0, 5, 8);
	block(l, 1, 9, 10);
	ck_assert_uint_eq(last_ack(l)->sack_count, 2);
}

TEST(four_blocks_without_timestamps) {
	struct link *l = RCV("timestamps: no");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	ck_assert_uint_eq(last_ack(l)->options, ALL_OPTIONS & ~SEG_OPT_TS);
	for (uint64_t i = 1; i <= 9; i += 2)
		feed_seg(l, i, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 4);
	block(l, 3, 3, 4);
}

// RFC 2883 section 4: a duplicate is reported once, in the first block.
TEST(duplicate_below_is_reported_once) {
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
	ck_assert_uint_eq(l->rx.received.duplicate_segs, 1);
}

// RFC 2883 section 4: of a segment that is partly new the other part is reported, as Linux does.
TEST(the_repeated_part_of_a_new_segment_is_reported) {
	struct link *l = RCV("");
	uint64_t acks = 1;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 0);
	feed_seg(l, 1, 0);
	feed_seg(l, 5, 0);
	expect(l, &acks, 2, 2 * LEN);
	feed_data(l, LEN, 2 * LEN, 0);
	expect(l, &acks, 1, 3 * LEN);
	block(l, 0, 1, 2);
	block(l, 1, 5, 6);
	ck_assert_uint_eq(l->rx.received.duplicate_segs, 0);
	feed_seg(l, 6, 0);
	block(l, 0, 5, 7);
}

// RFC 2883 section 4.1.3: the second block is the one that holds the duplicate, so that the sender
// can tell. It was the most recently changed one, and the sender took the duplicate for news.
TEST(duplicate_above_comes_with_the_block_around_it) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 2; i < 6; i++)
		feed_seg(l, i, 0);
	feed_seg(l, 8, 0);
	feed_seg(l, 3, 0);
	block(l, 0, 3, 4);
	block(l, 1, 2, 6);
	block(l, 2, 8, 9);
	ck_assert_uint_eq(l->rx.received.duplicate_segs, 1);
}

TEST(full_report_makes_room_for_a_duplicate) {
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
}

// It went into the ranges as [x, x): an empty block on the wire, and once data ended at x a
// duplicate that never was. Now its number is reported like a byte's.
TEST(fin_beyond_a_hole_is_reported) {
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
	ck_assert_uint_eq(l->rx.received.bytes, 3 * LEN);
}

// RFC 2883: the duplicate comes first and is what came twice, though it may end where the FIN is.
TEST(a_duplicate_comes_before_the_fin) {
	struct link *l = RCV("");
	uint32_t fin;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	fin = 7 + 1 + 4 * LEN;
	feed_seg(l, 0, 0);
	feed_fin(l, 4 * LEN, 0);
	feed_seg(l, 0, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 2);
	block(l, 0, 0, 1);
	ck_assert_uint_eq(last_ack(l)->sack[1].start, fin);
	ck_assert_uint_eq(last_ack(l)->sack[1].end, fin + 1);
	feed_seg(l, 2, 0);
	feed_seg(l, 3, 0);
	feed_seg(l, 3, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 2);
	block(l, 0, 3, 4);
	ck_assert_uint_eq(last_ack(l)->sack[1].start, 7 + 1 + 2 * LEN);
	ck_assert_uint_eq(last_ack(l)->sack[1].end, fin + 1);
}

// With more holes than blocks the block that ends with the FIN was reported before newer ones. The
// FIN alone does not push one of these out.
TEST(a_fin_that_was_reported_makes_room_for_newer_blocks) {
	struct link *l = RCV("");

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_fin(l, 10 * LEN, 0);
	feed_seg(l, 9, 0);
	ck_assert_uint_eq(last_ack(l)->sack[0].start, 7 + 1 + 9 * LEN);
	ck_assert_uint_eq(last_ack(l)->sack[0].end, 7 + 1 + 10 * LEN + 1);
	for (uint64_t i = 7; i >= 3; i -= 2)
		feed_seg(l, i, 0);
	ck_assert_uint_eq(last_ack(l)->sack_count, 3);
	block(l, 0, 3, 4);
	block(l, 1, 5, 6);
	block(l, 2, 7, 8);
}

// A retransmission arrives, then the late original with its older timestamp: without the DSACK the
// sender would never learn that it sent again for nothing.
TEST(late_original_is_reported_though_paws_refuses_it) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 50 * MS);
	s = data(l, 0, LEN, 10 * MS);
	feed(l, &s, ECN_NOT_ECT, 51 * MS);
	ck_assert_uint_eq(last_ack(l)->ack, 7 + 1 + LEN);
	block(l, 0, 0, 1);
	ck_assert_uint_eq(l->rx.received.bytes, LEN);
}

// PAWS refuses the segment, so its new bytes are not kept: a DSACK would tell the sender that they
// came twice.
TEST(late_segment_that_paws_refuses_is_no_duplicate_where_it_is_new) {
	struct link *l = RCV("");
	struct seg s;

	syn(l, 7, ALL_OPTIONS, 0, 0);
	feed_seg(l, 0, 50 * MS);
	s = data(l, LEN - 100, LEN, 10 * MS); // 100 bytes old, the rest new
	feed(l, &s, ECN_NOT_ECT, 51 * MS);
	ck_assert_uint_eq(last_ack(l)->ack, 7 + 1 + LEN);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
	ck_assert_uint_eq(l->rx.received.duplicate_segs, 0);
}

// Random pieces against a map of bytes.
#define SPACE 600u

struct model {
	bool got[SPACE];
	uint64_t nxt;
	uint64_t recent[SEG_SACK_MAX]; // one byte of each block to report, the newest first
	uint8_t count;
};

static struct seg_sack block_around(const struct model *m, uint64_t at) {
	uint64_t start = at, end = at;

	while (start > 0 && m->got[start - 1])
		start--;
	while (end < SPACE && m->got[end])
		end++;
	return (struct seg_sack){(uint32_t)start, (uint32_t)end};
}

// A byte to report before the others; those that are delivered or in the same block go.
static void model_report(struct model *m, uint64_t first) {
	uint64_t old[SEG_SACK_MAX + 1] = {first};
	uint8_t n = m->count;

	memcpy(&old[1], m->recent, sizeof(m->recent));
	m->count = 0;
	for (uint8_t i = 0; i <= n && m->count < SEG_SACK_MAX; i++) {
		bool known = old[i] < m->nxt;

		for (uint8_t k = 0; k < m->count; k++)
			known |= block_around(m, m->recent[k]).start
				== block_around(m, old[i]).start;
		if (!known)
			m->recent[m->count++] = old[i];
	}
}

// [start, end) comes. Returns the blocks of its ACK (RFC 2018 section 4, RFC 2883 section 4).
static uint8_t model_take(
	struct model *m, uint64_t start, uint64_t end, struct seg_sack sack[SEG_SACK_MAX]) {
	bool beyond = start > m->nxt, news = false;
	uint64_t before = m->nxt;
	uint8_t n = 0;

	for (uint64_t i = start; i < end; i++) {
		news |= !m->got[i];
		m->got[i] = true;
	}
	while (m->nxt < SPACE && m->got[m->nxt])
		m->nxt++;
	model_report(m, beyond ? start : 0);
	if (!news || start < before) {
		m->count -= m->count == SEG_SACK_MAX;
		sack[n++] = (struct seg_sack){(uint32_t)start, (uint32_t)(news ? before : end)};
	}
	for (uint8_t i = 0; i < m->count; i++)
		sack[n++] = block_around(m, m->recent[i]);
	return n;
}

static void model_check(const struct link *l, const struct model *m) {
	const struct receiver *r = &l->rx.receiver[0];
	const struct range *g = r->head;

	NEED(r->rcv_nxt == m->nxt);
	for (uint64_t i = m->nxt; i < SPACE; i++) {
		if (!m->got[i])
			continue;
		struct seg_sack b = block_around(m, i);

		NEED(g != NULL && g->start == b.start && g->end == b.end);
		g = g->next;
		i = b.end;
	}
	NEED(g == NULL);
}

// Checks the treap of a receiver's ranges against its list: the same ranges, in order, none below
// one of a lower rank.
static uint32_t check_tree(const struct link *l, uint32_t id, const struct range **next) {
	const struct range *g = &l->rx.ranges.base[id - 1];
	const uint32_t side[2] = {g->below, g->above};
	uint32_t nodes = 1;

	for (int i = 0; i < 2; i++) {
		NEED(side[i] == RANGE_NONE || rng_mix(side[i]) < rng_mix(id));
		if (side[i] != RANGE_NONE)
			nodes += check_tree(l, side[i], next);
		if (i == 0) {
			NEED(*next == g);
			*next = g->next;
		}
	}
	return nodes;
}

static void tree_is_the_list(struct link *l) {
	const struct range *next = rcv(l)->head;
	uint32_t nodes = 0;

	if (rcv(l)->root != RANGE_NONE)
		nodes = check_tree(l, rcv(l)->root, &next);
	NEED(next == NULL && nodes == held_ranges(rcv(l)));
}

TEST(ranges_and_reports_are_those_of_a_byte_map) {
	struct rng rng;

	rng_init(&rng, 1, "ranges");
	for (int round = 0; round < 200; round++) {
		bool ts = round % 4 < 2;
		struct link *l = ts ? RCV("rwnd: 2000B") : RCV("rwnd: 2000B, timestamps: no");
		struct model m = {.count = 0};
		uint32_t first = 0u - (uint32_t)(rng_u64(&rng) % SPACE); // wraps on the way

		syn(l, first - 1, ALL_OPTIONS, 0, 0);
		while (m.nxt < SPACE) {
			uint64_t start = rng_u64(&rng) % SPACE, acks = l->acks_count;
			uint64_t len = 1 + rng_u64(&rng) % (round % 2 == 0 ? 5 : 60);
			bool hole = rcv(l)->head != NULL, in_order = start <= m.nxt;
			struct seg_sack sack[SEG_SACK_MAX + 1];

			if (rng_u64(&rng) % 8 == 0)
				start = m.nxt, in_order = true;
			len = min_u64(len, SPACE - start);
			in_order &= start + len > m.nxt;
			uint8_t n = model_take(&m, start, start + len, sack);

			feed_data(l, start, (uint32_t)len, 0);
			model_check(l, &m);
			tree_is_the_list(l);
			if (in_order && !hole && l->acks_count == acks)
				continue; // it may wait
			NEED(l->acks_count == acks + 1);
			NEED(last_ack(l)->ack == first + (uint32_t)m.nxt);
			NEED(last_ack(l)->sack_count == min_u64(n, ts ? 3 : 4));
			for (uint8_t i = 0; i < last_ack(l)->sack_count; i++) {
				NEED(last_ack(l)->sack[i].start == first + sack[i].start);
				NEED(last_ack(l)->sack[i].end == first + sack[i].end);
			}
		}
		ck_assert_uint_eq(l->rx.received.bytes, SPACE);
		link_close(l);
	}
}

// Of 100 000 segments every other one is lost. The others come in one order, then the lost ones in
// another. A treap of n nodes compares at most 2 H(n) of them on the way to any in the mean (Seidel
// and Aragon, theorem 3.1), 23 here. A segment is searched at most twice: for its place, and for a
// range that is removed.
enum { HOLES = 50000, SEARCH = 23 };

static void few_steps(const uint32_t *first, const uint32_t *then) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 200000}}, rwnd: 10MB, start: 1000s}",
		.ack_loss = 1, .check_every = HOLES);

	syn(l, 7, ALL_OPTIONS, 0, 0);
	for (uint32_t i = 0; i < HOLES; i++)
		feed_data(l, 200 * (uint64_t)first[i] + 100, 100, 0);
	ck_assert_uint_eq(held_ranges(rcv(l)), HOLES);
	ck_assert_uint_le(l->rx.ranges.visits, HOLES * 2 * SEARCH);
	tree_is_the_list(l);
	l->rx.ranges.visits = 0;
	for (uint32_t i = 0; i < HOLES; i++) {
		feed_data(l, 200 * (uint64_t)then[i], 100, 0);
		if (i % (HOLES / 4) == 0)
			tree_is_the_list(l);
	}
	ck_assert_uint_eq(rcv(l)->rcv_nxt, 200 * HOLES);
	ck_assert_uint_eq(held_ranges(rcv(l)), 0);
	ck_assert_uint_le(l->rx.ranges.visits, HOLES * 2 * SEARCH);
	ck_assert_uint_eq(l->rx.ranges.refused, 0);
	link_close(l);
}

TEST(thousands_of_holes_need_few_steps) {
	enum { UP, DOWN, BOTH, RANDOM, ORDERS };
	static const struct {
		int first, then;
	} pair[] = {{UP, UP}, {UP, DOWN}, {UP, BOTH}, {UP, RANDOM}, {DOWN, UP}, {RANDOM, RANDOM}};
	static uint32_t order[ORDERS][HOLES];
	struct rng rng;

	rng_init(&rng, 1, "holes");
	for (uint32_t i = 0; i < HOLES; i++) {
		uint32_t k = (uint32_t)(rng_u64(&rng) % (i + 1));

		order[UP][i] = i;
		order[DOWN][i] = HOLES - 1 - i;
		order[BOTH][i] = i % 2 == 0 ? i / 2 : HOLES - 1 - i / 2;
		order[RANDOM][i] = order[RANDOM][k];
		order[RANDOM][k] = i;
	}
	for (uint32_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
		few_steps(order[pair[i].first], order[pair[i].then]);
}

TEST(empty_range_pool_refuses_and_recovers) {
	struct link *l = RCV("");
	uint32_t size = l->rx.ranges.size;

	syn(l, 7, ALL_OPTIONS, 0, 0);
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
	l->rx.ranges.size = size;
}
