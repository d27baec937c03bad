// SPDX-License-Identifier: BSD-3-Clause
// When real hosts acknowledge: GRO and Linux's quick-ACK, ATO and compressed SACKs, at exact times.
// The numbers are those of tcp_input.c, tcp_output.c and tcp_timer.c of Linux 6.12.
#include "receiver_test.h"

#define FIRST (100 * MS) // of data: the RTT of the handshake, so that the RTO is 300 ms

// Sixteen segments a millisecond apart, each acknowledged at once.
static uint64_t quick(struct link *l, uint64_t *acks) {
	syn(l, 0, ALL_OPTIONS, 0, 0);
	*acks = l->acks_count;
	for (uint64_t i = 0; i < 16; i++) {
		feed_seg(l, i, FIRST + i * MS);
		expect(l, acks, 1, (i + 1) * LEN);
	}
	return FIRST + 15 * MS;
}

TEST(sixteen_at_once_then_every_second) {
	struct link *l = RCV("acks: linux");
	uint64_t acks, t_ns = quick(l, &acks);

	for (uint64_t i = 16; i < 40; i++) {
		feed_seg(l, i, t_ns += MS);
		expect(l, &acks, i % 2, (i + 1) * LEN);
	}
}

// rwnd / (2 * 1448 B)
TEST(a_small_window_has_fewer_quick_acks) {
	struct link *l = RCV("acks: linux, rwnd: 14480B");
	uint64_t acks;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	acks = l->acks_count;
	for (uint64_t i = 0; i < 11; i++) {
		feed_seg(l, i, FIRST + i * MS);
		expect(l, &acks, i < 5 || i % 2 == 0, (i + 1) * LEN);
	}
}

TEST(the_delay_adapts) {
	struct link *l = RCV("acks: linux");
	uint64_t acks, t_ns = quick(l, &acks) + MS;

	feed_seg(l, 16, t_ns);
	link_run(l, t_ns + 40 * MS - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 40 * MS);
	expect(l, &acks, 1, 17 * LEN); // the timer fired: 80 ms next

	feed_seg(l, 17, t_ns += 124 * MS);
	link_run(l, t_ns + 80 * MS - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 80 * MS);
	expect(l, &acks, 1, 18 * LEN); // 160 ms next, but not above the RTT

	feed_seg(l, 18, t_ns += 260 * MS);
	link_run(l, t_ns + 100 * MS - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 100 * MS);
	expect(l, &acks, 1, 19 * LEN);

	feed_seg(l, 19, t_ns += 301 * MS); // longer than the RTO: quick-ACK again
	expect(l, &acks, 1, 20 * LEN);
}

// 40 ms / 2 + 30 ms, a second segment 30 ms after the first.
TEST(data_further_apart_is_waited_for_longer) {
	struct link *l = RCV("acks: linux");
	uint64_t acks, t_ns = quick(l, &acks) + 30 * MS;

	feed_seg(l, 16, t_ns);
	link_run(l, t_ns + 50 * MS - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 50 * MS);
	expect(l, &acks, 1, 17 * LEN);
}

TEST(what_was_received_before_is_answered_quickly) {
	struct link *l = RCV("acks: linux");
	uint64_t acks, t_ns = quick(l, &acks);

	feed_seg(l, 3, t_ns += MS);
	expect(l, &acks, 1, 16 * LEN);
	for (uint64_t i = 16; i < 31; i++) { // the duplicate's ACK is the first of 16
		feed_seg(l, i, t_ns += MS);
		expect(l, &acks, 1, (i + 1) * LEN);
	}
	feed_seg(l, 31, t_ns += MS);
	expect(l, &acks, 0, 0);
}

// Three at once; the others at most 1 ms later, with the timer's slack of 0.1 ms, and after 44 of
// them at once.
TEST(sacks_are_compressed) {
	struct link *l = RCV("acks: linux");
	uint64_t acks, t_ns = quick(l, &acks) + MS;

	for (uint64_t i = 17; i < 27; i++) {
		feed_seg(l, i, t_ns);
		expect(l, &acks, i < 20, 16 * LEN);
	}
	link_run(l, t_ns + 1100 * US - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 1100 * US);
	expect(l, &acks, 1, 16 * LEN);
	t_ns += 2 * MS;
	for (uint64_t i = 27; i < 72; i++) {
		feed_seg(l, i, t_ns);
		expect(l, &acks, i == 71, 16 * LEN);
	}
	feed_seg(l, 16, t_ns); // fills the hole
	expect(l, &acks, 1, 72 * LEN);
}

// 1/20 of an RTT of 10 ms, and the slack.
TEST(compressed_sacks_wait_a_twentieth_of_the_rtt) {
	struct link *l = RCV("acks: linux");
	uint64_t acks;

	syn(l, 0, ALL_OPTIONS, 0, 90 * MS);
	for (uint64_t i = 0; i < 16; i++)
		feed_seg(l, i, FIRST + i * MS);
	acks = l->acks_count;
	for (uint64_t i = 17; i < 21; i++)
		feed_seg(l, i, FIRST + 20 * MS);
	expect(l, &acks, 3, 16 * LEN);
	link_run(l, FIRST + 20 * MS + 600 * US - 1);
	expect(l, &acks, 0, 0);
	link_run(l, FIRST + 20 * MS + 600 * US);
	expect(l, &acks, 1, 16 * LEN);
}

TEST(gro_answers_a_burst_once) {
	struct link *l = RCV("gro: 20us");
	uint64_t acks, t_ns = FIRST;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	acks = l->acks_count;
	for (uint64_t i = 0; i < 8; i++)
		feed_seg(l, i, t_ns + i * US);
	link_run(l, t_ns + 20 * US - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 20 * US);
	expect(l, &acks, 1, 8 * LEN);
	feed_seg(l, 8, t_ns += MS); // alone: a delayed ACK
	link_run(l, t_ns + 20 * US + 40 * MS - 1);
	expect(l, &acks, 0, 0);
	link_run(l, t_ns + 20 * US + 40 * MS);
	expect(l, &acks, 1, 9 * LEN);
}

// 45 segments of 1448 B are 65160 B.
TEST(gro_holds_64_kb) {
	struct link *l = RCV("gro: 20us");
	uint64_t acks;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	acks = l->acks_count;
	for (uint64_t i = 0; i < 45; i++)
		feed_seg(l, i, FIRST);
	expect(l, &acks, 0, 0);
	feed_seg(l, 45, FIRST);
	expect(l, &acks, 1, 45 * LEN);
}

TEST(what_does_not_continue_ends_what_gro_holds) {
	struct link *l = RCV("gro: 20us");
	uint64_t acks, t_ns = FIRST;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	acks = l->acks_count;
	feed_seg(l, 0, t_ns);
	feed_seg(l, 1, t_ns);
	feed_seg(l, 3, t_ns); // a gap: the two are acknowledged
	expect(l, &acks, 1, 2 * LEN);
	feed_seg(l, 4, t_ns);
	feed_seg(l, 5, t_ns);
	link_run(l, t_ns + 20 * US);
	expect(l, &acks, 1, 2 * LEN); // one for the three beyond it
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	ck_assert_uint_eq(last_ack(l)->sack[0].end - last_ack(l)->sack[0].start, 3 * LEN);
	feed_seg(l, 2, t_ns += MS);
	link_run(l, t_ns + 20 * US);
	expect(l, &acks, 1, 6 * LEN);
	feed_seg(l, 6, t_ns += 999 * US);
	feed_seg(l, 7, t_ns);
	feed_seg(l, 8, t_ns += US); // another timestamp
	expect(l, &acks, 1, 8 * LEN);
}

TEST(a_mark_ends_what_gro_holds) {
	struct link *l = RCV("gro: 20us, ecn: ect0");
	struct seg s;
	uint64_t acks;

	syn(l, 0, ALL_OPTIONS, SEG_ECE | SEG_CWR, 0);
	acks = l->acks_count;
	for (uint64_t i = 0; i < 4; i++) {
		s = data(l, i * LEN, LEN, FIRST);
		feed(l, &s, i < 2 ? ECN_ECT0 : ECN_CE, FIRST);
	}
	expect(l, &acks, 1, 2 * LEN);
	ck_assert_uint_eq(last_ack(l)->flags & SEG_ECE, 0);
	link_run(l, FIRST + 20 * US);
	expect(l, &acks, 1, 4 * LEN);
	ck_assert_uint_ne(last_ack(l)->flags & SEG_ECE, 0);
}

// The last segment of a burst has PSH: where the application has read all, its ACK waits for no
// second one; that of a short one neither (tcp_measure_rcv_mss, tcp_cleanup_rbuf).
TEST(what_is_pushed_does_not_wait) {
	const struct {
		uint8_t flags;
		uint32_t len;
		struct link *l;
		uint64_t acks;
	} cases[] = {
		{SEG_ACK, LEN, RCV("acks: linux"), 0},
		{SEG_ACK | SEG_PSH, LEN, RCV("acks: linux"), 1},
		{SEG_ACK, LEN / 2, RCV("acks: linux"), 1},
		{SEG_ACK | SEG_PSH, LEN, RCV("acks: linux, gro: 20us"), 1},
		{SEG_ACK | SEG_PSH, LEN, RCV("acks: linux, read_rate: 1Mbit"), 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = cases[i].l;
		uint64_t acks, t_ns = FIRST;
		struct seg s;

		syn(l, 0, ALL_OPTIONS, 0, 0);
		for (uint64_t at = 0; at < 16; at++)
			feed_seg(l, at, t_ns += MS);
		link_run(l, t_ns += MS);
		acks = l->acks_count;
		s = data(l, 16 * LEN, cases[i].len, t_ns);
		s.flags = cases[i].flags;
		feed(l, &s, ECN_NOT_ECT, t_ns);
		expect(l, &acks, cases[i].acks, 16 * LEN + cases[i].len);
		link_close(l);
	}
}

// More than one full segment at once is acknowledged at once, however they arrived
// (__tcp_ack_snd_check).
TEST(gro_and_delayed_acks) {
	struct link *l = RCV("gro: 20us, acks: linux");
	uint64_t acks, t_ns = FIRST, at = 0;

	syn(l, 0, ALL_OPTIONS, 0, 0);
	for (; at < 16; at++)
		feed_seg(l, at, t_ns += MS);
	link_run(l, t_ns += MS);
	acks = l->acks_count;
	for (uint64_t n = 2; n < 10; n++) {
		for (uint64_t i = 0; i < n; i++)
			feed_seg(l, at++, t_ns);
		link_run(l, t_ns + 20 * US);
		expect(l, &acks, 1, at * LEN);
		t_ns += MS;
	}
}
