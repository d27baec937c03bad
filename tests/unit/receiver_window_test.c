// SPDX-License-Identifier: BSD-3-Clause
// The receive window of a buffer with a reader, at exact times, and Linux's tcp_rcv_space_adjust by
// its formula.
#include "receiver_test.h"

#define FIRST (100 * MS)

static uint32_t window(struct link *l) {
	return (uint32_t)last_ack(l)->window << rcv(l)->wscale;
}

// A reader of one segment per millisecond, and ten segments at once into room for ten.
TEST(a_window_closes_and_opens) {
	static const uint64_t opens_ms[] = {1, 2, 4, 8}, segs[] = {1, 2, 4, 8};
	struct link *l = RCV("rwnd: 14480B, read_rate: 11.584Mbit, ack_every: 1");
	uint64_t acks;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	acks = l->acks_count;
	for (uint64_t i = 0; i < 10; i++) {
		feed_seg(l, i, FIRST);
		expect(l, &acks, 1, (i + 1) * LEN);
		ck_assert_uint_eq(window(l), (9 - i) * LEN);
	}
	for (int i = 0; i < 4; i++) { // whenever it can be twice as large
		link_run(l, FIRST + opens_ms[i] * MS - 1);
		expect(l, &acks, 0, 0);
		link_run(l, FIRST + opens_ms[i] * MS + 20 * US); // whole bytes
		expect(l, &acks, 1, 10 * LEN);
		ck_assert_uint_ge(window(l), segs[i] * LEN);
		ck_assert_uint_le(window(l), segs[i] * LEN + 20);
	}
	link_run(l, FIRST + S); // more than half is open: no more ACKs
	expect(l, &acks, 0, 0);
}

// 1158 bytes are free, more than 1/16 of the buffer, but not a segment.
TEST(less_than_a_segment_is_no_window) {
	struct link *l = RCV("rwnd: 14480B, read_rate: 11.584Mbit, ack_every: 1");
	uint64_t acks;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 10; i++)
		feed_seg(l, i, FIRST);
	acks = l->acks_count;
	feed_seg(l, 9, FIRST + 800 * US); // again, so that it is answered
	expect(l, &acks, 1, 10 * LEN);
	ck_assert_uint_eq(window(l), 0);
}

// Zero-window probes bring what a lost window update would have: each ACK of the receiver is lost
// but for those.
TEST(a_closed_window_is_probed) {
	struct link *l = LINK(.group = "{cc: newreno, rwnd: 5792B, read_rate: 100kbit, "
				       "source: {size: {bytes: 40000B}}}",
		.lose_ack = 0x1f0);

	link_finish(l, 100 * S);
	link_complete(l);
	ck_assert_uint_ge(l->now_ns, 2 * S); // 40000 B at 100 kbit/s, less what the window holds
}

static void feed_timed(struct link *l, uint64_t i, uint64_t now_ns) {
	struct seg s = data(l, i * LEN, LEN, now_ns);

	s.tsecr = flow_tsval(now_ns - 100 * MS); // a round trip of 100 ms
	feed(l, &s, ECN_NOT_ECT, now_ns);
}

// 11 and 20 segments in two round trips: 2 * 28960 + 16 * 1460 = 81280, and 2 * 81280 * (20 - 11) /
// 11.
TEST(the_buffer_grows_by_linuxs_formula) {
	struct link *l = RCV("rmem: 6MiB, ack_every: 1");
	const struct receiver_window *w = &rcv(l)->acks->window;
	uint64_t i = 0;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	ck_assert_uint_eq(w->space, 87552); // 128 KB * 171 / 256
	while (i < 10)
		feed_timed(l, i++, FIRST);
	while (i < 30)
		feed_timed(l, i++, FIRST + 100 * MS);
	ck_assert_uint_eq(w->space, 87552);
	ck_assert_uint_eq(
		w->advertise, 87552 - LEN); // each segment is in the buffer until it is read
	feed_timed(l, i++, FIRST + 200 * MS);
	ck_assert_uint_eq(w->space, 81280 + 2 * (81280 * 9 / 11));
	ck_assert_uint_eq(w->before, 20 * LEN);
	ck_assert_uint_eq(
		w->advertise, 87552 - LEN); // read after it was taken: from the next one on
	feed_timed(l, i++, FIRST + 200 * MS);
	// What is advertised follows by two segments each, in units of the window scale.
	ck_assert_uint_eq(window(l) >> rcv(l)->wscale, (87552 + LEN) >> rcv(l)->wscale);
}

// As in Linux's captures: 45 whole segments, eight segments let it grow to what 128 KB hold, and
// the 16 after them are acknowledged at once, then every second one.
TEST(the_window_grows_from_the_first_segment_on) {
	struct link *l = RCV("rmem: 6MiB, acks: linux");
	const struct receiver_window *w = &rcv(l)->acks->window;
	uint64_t i = 0, acks;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	ck_assert_uint_eq(w->advertise, 45 * LEN);
	acks = l->acks_count;
	for (; i < 8; i++) {
		ck_assert_uint_eq(w->advertise, (45 + 2 * i) * LEN);
		feed_timed(l, i, FIRST + i * MS);
		expect(l, &acks, 1, (i + 1) * LEN);
	}
	ck_assert_uint_eq(w->advertise, 87552 - LEN);
	for (; i < 24; i++) {
		feed_timed(l, i, FIRST + i * MS);
		expect(l, &acks, 1, (i + 1) * LEN);
	}
	for (; i < 30; i++) {
		feed_timed(l, i, FIRST + i * MS);
		expect(l, &acks, i % 2, (i + 1) * LEN);
	}
}

TEST(a_shorter_round_trip_counts_at_once) {
	struct link *l = RCV("rmem: 6MiB, ack_every: 1");
	static const uint64_t rtts_ms[] = {80, 160, 50};
	static const uint64_t expected_ns[] = {80 * MS, 90 * MS, 50 * MS};

	syn(l, 0, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 3; i++) {
		struct seg s = data(l, i * LEN, LEN, FIRST + i * 200 * MS);

		s.tsecr = flow_tsval(FIRST + i * 200 * MS - rtts_ms[i] * MS);
		feed(l, &s, ECN_NOT_ECT, FIRST + i * 200 * MS);
		ck_assert_uint_eq(rcv(l)->acks->window.rtt_ns, expected_ns[i]);
	}
}

// As before, then (214282 - 87552) / 2896 = 43.8 segments let what is advertised grow, from the
// second of the round trip on: 44 are acknowledged at once.
TEST(a_growing_window_is_told_at_once) {
	struct link *l = RCV("rmem: 6MiB, acks: linux");
	uint64_t i = 0, acks;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	while (i < 10)
		feed_timed(l, i++, FIRST);
	while (i < 30)
		feed_timed(l, i++, FIRST + 100 * MS);
	feed_timed(l, i++, FIRST + 200 * MS);
	acks = l->acks_count;
	for (; i < 31 + 44; i++) {
		feed_timed(l, i, FIRST + 170 * MS + i * MS);
		expect(l, &acks, 1, (i + 1) * LEN);
	}
	for (; i < 81; i++) {
		feed_timed(l, i, FIRST + 170 * MS + i * MS);
		expect(l, &acks, (i + 1) % 2, (i + 1) * LEN);
	}
}

// What waits behind a hole takes room in the buffer, so that filling a part of the hole opens
// nothing; the right edge that the peer knows never moves back. When the hole is filled, all of the
// buffer is free again.
TEST(segments_behind_a_hole_use_the_buffer) {
	struct link *l = RCV("rmem: 6MiB, ack_every: 1");
	struct receiver *r = rcv(l);
	uint32_t edge;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	feed_timed(l, 0, FIRST);
	edge = window(l);
	rcv(l)->acks->window.space = rcv(l)->acks->window.advertise; // it grows no more
	for (uint64_t i = 3; i < 13; i += 2) // apart, then joined, then one twice
		feed_timed(l, i, FIRST);
	ck_assert_uint_eq(r->range_bytes, 5 * LEN);
	for (uint64_t i = 4; i < 12; i += 2)
		feed_timed(l, i, FIRST);
	feed_timed(l, 5, FIRST);
	ck_assert_uint_eq(r->range_bytes, 9 * LEN);
	ck_assert_uint_eq(window(l), edge); // rcv_nxt has not moved, and neither has the edge
	feed_timed(l, 1, FIRST);
	ck_assert_uint_eq(r->range_bytes, 9 * LEN);
	ck_assert_uint_lt(window(l), edge); // one segment read, none of it given to the peer
	feed_timed(l, 2, FIRST);
	ck_assert_uint_eq(r->range_bytes, 0);
	ck_assert_uint_ge(window(l), edge);
}

// A reader has made room for twice the window, but the window may grow with data only: an ACK would
// say nothing new.
TEST(no_update_without_a_larger_window) {
	struct link *l = RCV("rmem: 6MiB, ack_every: 1, read_rate: 1Gbit");
	const struct receiver_window *w = &rcv(l)->acks->window;
	uint64_t i = 0;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	while (i < 10)
		feed_timed(l, i++, FIRST);
	while (i < 30)
		feed_timed(l, i++, FIRST + 100 * MS);
	while (i < 36)
		feed_timed(l, i++, FIRST + 200 * MS);
	ck_assert_uint_gt(w->space, 2 * w->advertise);
	ck_assert_uint_gt(rcv(l)->rcv_nxt, w->read); // the reader is behind
	ck_assert_uint_eq(
		receiver_window_update_ns(&l->rx.endpoint, rcv(l), FIRST + 200 * MS), NEVER_NS);
}

TEST(the_buffer_has_a_bound) {
	struct link *l = RCV("rmem: 200000B, ack_every: 1");
	const struct receiver_window *w = &rcv(l)->acks->window;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	for (uint64_t k = 0; k < 4; k++)
		for (uint64_t i = 0; i < 40; i++)
			feed_timed(l, k * 40 + i, FIRST + k * 100 * MS);
	ck_assert_uint_eq(w->space, 200000 / 256 * 171);
}

// tcp_data_queue_ofo asks whether the window may grow before it charges the segment: the first one
// beyond a hole does not find itself in the buffer, is a reason for a quick ACK, and so four
// duplicate ACKs are sent before SACKs are compressed, as in Linux's captures.
TEST(the_first_segment_beyond_a_hole_lets_the_window_grow) {
	struct link *l = RCV("acks: linux, rmem: 6MiB");
	uint64_t acks, t_ns = FIRST;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	for (uint64_t i = 0; i < 60; i++)
		feed_seg(l, i, t_ns += 100 * US);
	acks = l->acks_count;
	for (uint64_t i = 0; i < 4; i++) {
		feed_seg(l, 61 + i, t_ns += 100 * US);
		expect(l, &acks, 1, 60 * LEN);
	}
	feed_seg(l, 65, t_ns += 100 * US);
	expect(l, &acks, 0, 0);
}

// RFC 9293 section 3.8.6: what the SYN-ACK has offered is not taken back. It offers whole segments
// of the peer, as Linux does:
// 45 of 1448 bytes, 125 of 524; of a window that holds no two, which the peer's segments are cut
// to, all.
TEST(what_the_syn_ack_offers_stays_offered) {
	static const struct {
		const char *group;
		uint16_t mss;
		uint32_t window;
	} cases[] = {
		{"rmem: 6MiB", 1460, 45 * 1448},
		{"rmem: 6MiB", 536, 125 * 524},
		{"rmem: 6MiB, rwnd: 2000B", 1460, 2000},
		{"rmem: 6MiB, rwnd: 3000B", 1460, 2 * 1448},
		{"rwnd: 2000B, read_rate: 1Mbit", 1460, 2000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char group[128];
		struct link *l;

		struct seg s = {.flags = SEG_SYN,
			.options = ALL_OPTIONS,
			.tsval = TS0,
			.mss = cases[i].mss};

		snprintf(group, sizeof(group), "{cc: newreno, start: 1000s, %s}", cases[i].group);
		l = LINK(.group = group, .ack_loss = 1);
		rcv(l);
		feed(l, &s, ECN_NOT_ECT, 0);
		ck_assert_uint_eq(last_ack(l)->window, cases[i].window);
		ck_assert_uint_eq(rcv(l)->acks->window.edge, cases[i].window);
		feed_data(l, 0, 500, FIRST);
		link_run(l, FIRST + S);
		ck_assert_uint_ge(500 + window(l), cases[i].window);
		link_close(l);
	}
}
