// SPDX-License-Identifier: BSD-3-Clause
// The scoreboard and RACK-TLP. RFC 2018, 2883, 8985: which segments are lost, and at which
// nanosecond.
#include "link.h"

#define PAYLOAD 1448u
#define REO_NS (HAND_RTT / 4)

// Ten segments leave at 20 ms; the first answer comes at 40 ms.
#define TEN(more) HAND(.group = "{cc: {fixed: {cwnd: 10}}, " more "}")
#define T0 (40 * MS)

static bool sacked(struct link *l, uint64_t i) {
	return (flow_seg(link_flow(l), i)->flags & SENT_SACKED) != 0;
}

static bool lost(struct link *l, uint64_t i) {
	return (flow_seg(link_flow(l), i)->flags & SENT_LOST) != 0;
}

// Picoquic's mask: whichever of ten packets die, each is sent again once, and nothing else is.
TEST(every_loss_of_ten_is_repaired_once) {
	for (uint64_t mask = 0; mask < 1024; mask++) {
		struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 10}}}", .lose = mask);
		const struct flow *f = link_flow(l);
		uint32_t sent[10] = {0};

		link_run(l, 200 * MS);
		NEED(f->una >= 20);
		NEED(f->count.retransmits == (uint32_t)__builtin_popcountll(mask));
		NEED(f->count.lost_segs == f->count.retransmits && f->count.timeouts == 0);
		for (uint64_t i = 0; i < l->data_count; i++)
			if (l->data[i].index < 10)
				sent[l->data[i].index]++;
		for (uint64_t i = 0; i < 10; i++)
			NEED(sent[i] == (bit(mask, i) ? 2 : 1));
		link_close(l);
	}
}

TEST(every_loss_of_ten_is_repaired_without_sack) {
	for (uint64_t mask = 0; mask < 1024; mask++) {
		struct link *l =
			LINK(.group = "{cc: newreno, sack: no, source: {size: {bytes: 30000B}}}",
				.lose = mask);

		link_finish(l, 60 * S);
		link_complete(l);
		link_close(l);
	}
}

TEST(every_loss_of_ten_acks_is_survived) {
	for (uint64_t mask = 0; mask < 1024; mask++) {
		struct link *l = LINK(.group = "{cc: newreno, ack_every: 1, source: {"
					       "size: {bytes: 20000B}}}",
			.lose_ack = mask << 1);

		link_finish(l, 60 * S);
		link_complete(l);
		link_close(l);
	}
}

// ---- The scoreboard ----

TEST(blocks_mark_whole_segments) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 0, T0);

	s.sack_count = 1;
	s.sack[0] = (struct seg_sack){flow_seq(f, 2) + 1, flow_seq(f, 5) - 1};
	hand_feed(l, &s, T0);
	for (uint64_t i = 0; i < 10; i++)
		ck_assert_int_eq(sacked(l, i), i == 3);
	ck_assert_uint_eq(f->delivered, 1);
}

TEST(short_last_segment_and_fin_are_reported) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 10}}, source: {size: {bytes: 3000B}}}");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 0, T0);

	ck_assert_uint_eq(f->nxt, 4); // 1448, 1448, 104, FIN
	s.sack_count = 1;
	s.sack[0] = (struct seg_sack){flow_seq(f, 2), f->iss + 1 + 3000};
	hand_feed(l, &s, T0);
	ck_assert(sacked(l, 2) && !sacked(l, 3));
	s.sack[0].end++; // as Linux reports a FIN
	hand_feed(l, &s, T0);
	ck_assert(sacked(l, 3));
	hand_ack_at(l, 4, T0 + MS);
	ck_assert_int_eq(f->state, FLOW_DONE);
}

// A block of data that was not yet sent is nonsense; the cache of the last ACK's blocks took it for
// marked, and when it came true nothing was.
TEST(block_from_the_future_is_not_remembered) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 0, T0);

	s.sack_count = 1;
	s.sack[0] = (struct seg_sack){flow_seq(f, 10), flow_seq(f, 12)};
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->sacked, 0);
	hand_sack_at(l, 9, 10, 12, T0);
	hand_sack_at(l, 9, 10, 13, T0 + 20 * MS);
	for (uint64_t i = 10; i < 13; i++)
		ck_assert(sacked(l, i));
}

// It grows on both sides of what was reported, across its edges inside segments.
// start < end, una < start and end < nxt, each by itself: 1.2 million segments were marked, far
// beyond the ring.
TEST(block_around_half_the_circle_is_nonsense) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 0, T0);

	s.sack_count = 1;
	s.sack[0] = (struct seg_sack){flow_seq(f, 0) + 0x60000000u, flow_seq(f, 0) + 0xb0000000u};
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->sacked, 0);
}

TEST(block_that_grows_marks_the_segments_at_its_old_edges) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 0, T0);

	s.sack_count = 1;
	s.sack[0] = (struct seg_sack){flow_seq(f, 2) + 700, flow_seq(f, 5) + 700};
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->sacked, 2);
	s.sack[0] = (struct seg_sack){flow_seq(f, 2), flow_seq(f, 6)};
	hand_feed(l, &s, T0);
	for (uint64_t i = 2; i < 6; i++)
		ck_assert(sacked(l, i));
}

// Random blocks, sensible and not, against the rule applied one segment at a time.
struct oracle {
	bool sacked[LINK_SEGS];
	uint64_t una;
};

static void oracle_ack(struct oracle *o, const struct flow *f, uint64_t nxt, const struct seg *s) {
	uint32_t una_seq = s->ack, base = f->iss + 1;

	while (o->una < nxt && seq_diff(base + (uint32_t)((o->una + 1) * PAYLOAD), s->ack) <= 0)
		o->una++;
	for (uint32_t i = 0; i < s->sack_count; i++) {
		const struct seg_sack *b = &s->sack[i], *c = &s->sack[1];

		// In the order of the circle as seen from the ACK: una < start < end <= nxt.
		if (b->start - una_seq >= b->end - una_seq
			|| b->end - una_seq > base + (uint32_t)(nxt * PAYLOAD) - una_seq)
			continue;
		if (i == 0 && s->sack_count > 1 && seq_diff(b->start, c->start) >= 0
			&& seq_diff(b->end, c->end) <= 0)
			continue; // a DSACK tells nothing new
		for (uint64_t k = o->una; k < nxt; k++)
			if (seq_diff(base + (uint32_t)(k * PAYLOAD), b->start) >= 0
				&& seq_diff(base + (uint32_t)((k + 1) * PAYLOAD), b->end) <= 0)
				o->sacked[k] = true;
	}
}

TEST(random_blocks_mark_what_a_naive_reader_would) {
	struct oracle *o = calloc(1, sizeof(*o));
	struct rng rng;

	rng_init(&rng, 7, "blocks");
	for (int round = 0; round < 40; round++) {
		struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 30}}, tlp: no}",
			.iss_offset = round % 2 == 0 ? 0 : 0u - 0x9e3779b1u - 20000u);
		struct flow *f = link_flow(l);
		uint64_t now_ns = T0;

		memset(o, 0, sizeof(*o));
		for (int n = 0; n < 300; n++) {
			struct seg s = hand_ack(l, f->una, now_ns);
			uint64_t nxt = f->nxt;

			if (rng_u64(&rng) % 4 == 0 && f->una < nxt) { // the hole moves
				uint64_t k = f->una + 1 + rng_u64(&rng) % (nxt - f->una);

				while (k < nxt && o->sacked[k])
					k++;
				s.ack = flow_seq(f, k);
			}
			s.sack_count = (uint8_t)(rng_u64(&rng) % 5);
			for (uint32_t i = 0; i < s.sack_count; i++) {
				uint64_t from = f->una + rng_u64(&rng) % 34;
				uint32_t off = rng_u64(&rng) % 3 == 0
					? (uint32_t)(rng_u64(&rng) % PAYLOAD)
					: 0;

				s.sack[i].start = flow_seq(f, from) - PAYLOAD + off;
				s.sack[i].end = s.sack[i].start
					+ PAYLOAD * (uint32_t)(rng_u64(&rng) % 8) - off;
				if (rng_u64(&rng) % 50 == 0)
					s.sack[i].end = (uint32_t)rng_u64(&rng);
				if (rng_u64(&rng) % 50 == 0)
					s.sack[i].start = (uint32_t)rng_u64(&rng);
				if (seq_diff(s.sack[i].start, s.ack) == 0)
					s.sack[i].start += 1; // no reneging here
			}
			while (link_step(l, now_ns))
				;
			nxt = f->nxt;
			oracle_ack(o, f, nxt, &s);
			hand_feed(l, &s, now_ns);
			NEED(f->una == o->una);
			for (uint64_t k = f->una; k < nxt; k++)
				NEED(sacked(l, k) == o->sacked[k]);
			now_ns += rng_u64(&rng) % (5 * MS);
			if (rng_u64(&rng) % 20 == 0)
				now_ns = time_max(now_ns, time_min(f->rtx_deadline_ns, now_ns + S));
		}
		link_close(l);
	}
	free(o);
}

// ---- Duplicates ----

TEST(dsack_counts_a_spurious_retransmission) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 5, T0);

	hand_resent(l, 3, 4);
	hand_resent(l, 7, 8);
	hand_sack(l, &s, 3, 4); // below the ACK
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->count.spurious, 1);
	s = hand_ack(l, 5, T0);
	hand_sack(l, &s, 7, 8); // inside the second block
	hand_sack(l, &s, 6, 9);
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->count.spurious, 2);
	ck_assert_uint_eq(f->sacked, 3);
	s = hand_ack(l, 5, T0);
	hand_sack(l, &s, 4, 3); // backwards: nothing
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->count.spurious, 2);
}

// ---- RACK ----

TEST(reordering_within_the_window_is_no_loss) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);

	hand_sack_at(l, 0, 1, 2, T0);
	ck_assert_int_eq(f->rtx_kind, RTX_REO);
	ck_assert_uint_eq(f->rtx_deadline_ns, T0 + REO_NS);
	hand_ack_at(l, 2, T0 + REO_NS - 1);
	link_run(l, T0 + 2 * REO_NS);
	ck_assert_uint_eq(f->count.lost_segs, 0);
	ck_assert(f->reordering_seen);
}

// RFC 8985 section 6.2 step 5: sent + RACK.rtt + reo_wnd.
TEST(loss_is_found_at_the_nanosecond) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	uint64_t before;

	hand_sack_at(l, 0, 1, 2, T0);
	before = l->data_count;
	link_run(l, T0 + REO_NS - 1);
	ck_assert(!lost(l, 0));
	link_run(l, T0 + REO_NS);
	ck_assert(lost(l, 0));
	SENT(l, before, 0, T0 + REO_NS);
	ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
}

TEST(three_sacked_segments_are_a_loss_at_once) {
	struct link *l = TEN("");

	hand_sack_at(l, 0, 1, 2, T0);
	hand_sack_at(l, 0, 1, 3, T0 + 1);
	ck_assert(!lost(l, 0));
	hand_sack_at(l, 0, 1, 4, T0 + 2);
	ck_assert(lost(l, 0));
	SENT(l, 12, 0, T0 + 2); // after two new ones
}

TEST(three_are_not_enough_where_reordering_was_seen) {
	struct link *l = TEN("");

	hand_sack_at(l, 0, 1, 2, T0);
	hand_ack_at(l, 2, T0 + MS); // it was only late
	hand_sack_at(l, 2, 3, 7, T0 + 2 * MS);
	ck_assert(!lost(l, 2));
	// RACK.segment is 6, sent at 20 ms, 22 ms ago.
	link_run(l, T0 + 2 * MS + REO_NS - 1);
	ck_assert(!lost(l, 2));
	link_run(l, T0 + 2 * MS + REO_NS);
	ck_assert(lost(l, 2));
}

// The ACKs between were lost, and SACK reports the newest block first: that is not reordering. It
// switched the DupThresh off for the rest of the connection.
TEST(two_new_blocks_in_one_ack_are_not_reordering) {
	struct link *l = TEN("");
	struct seg s = hand_ack(l, 0, T0);

	hand_sack(l, &s, 6, 7);
	hand_sack(l, &s, 2, 3);
	hand_feed(l, &s, T0);
	ck_assert(!link_flow(l)->reordering_seen);
	s = hand_ack(l, 0, T0);
	hand_sack(l, &s, 4, 5); // this one is
	hand_feed(l, &s, T0);
	ck_assert(link_flow(l)->reordering_seen);
}

TEST(retransmission_that_arrives_is_not_reordering) {
	struct link *l = TEN("");

	hand_sack_at(l, 0, 1, 4, T0);
	ck_assert(lost(l, 0));
	hand_ack_at(l, 10, T0 + 20 * MS);
	ck_assert(!link_flow(l)->reordering_seen);
}

// RFC 8985 section 6.2 step 4: one quarter of the RTT more for each round with a DSACK.
TEST(window_grows_once_per_round_with_a_dsack) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, T0);

	for (uint32_t i = 0; i < 3; i++)
		hand_resent(l, i == 2 ? 10 : 0, i == 2 ? 11 : 1);
	hand_sack(l, &s, 0, 1);
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->reo_wnd_mult, 2);
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->reo_wnd_mult, 2); // same round
	hand_sack_at(l, 2, 3, 4, T0 + 1);
	// All segments left at 20 ms but those that the ACK let go.
	ck_assert_uint_eq(f->rtx_deadline_ns, T0 + 1 + 2 * REO_NS);
	hand_ack_at(l, 12, T0 + 20 * MS);
	s = hand_ack(l, 12, T0 + 20 * MS);
	hand_sack(l, &s, 10, 11);
	hand_feed(l, &s, T0 + 20 * MS);
	ck_assert_uint_eq(f->reo_wnd_mult, 3);
}

// RFC 2883 section 5.1: the receiver reports what the network duplicated, too.
TEST(dsacks_of_what_was_sent_once_say_nothing_of_retransmissions) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);

	for (uint32_t i = 0; i < 4; i++) {
		struct seg s = hand_ack(l, 2 + i, T0 + i * MS);

		if (i == 3)
			hand_resent(l, 3, 4);
		hand_sack(l, &s, i, i + 1);
		hand_feed(l, &s, T0 + i * MS);
		ck_assert_uint_eq(f->count.spurious, i == 3);
		ck_assert_uint_eq(f->reo_wnd_mult, i == 3 ? 2 : 1);
		ck_assert_uint_eq(f->count.cwnd_reductions, 0);
	}
}

// A flow that a source uses again: retransmissions of its connections before are no reason for this
// one's reports.
TEST(dsacks_say_nothing_of_an_earlier_connection) {
	struct link *l = TEN("");
	struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, T0);

	hand_resent(l, 0, 1);
	f->at_open.retransmits = f->count.retransmits;
	hand_sack(l, &s, 0, 1);
	hand_feed(l, &s, T0);
	ck_assert_uint_eq(f->count.spurious, 0);
	ck_assert_uint_eq(f->reo_wnd_mult, 1);
}

TEST(window_never_exceeds_srtt) {
	struct link *l = TEN("");
	struct flow *f = link_flow(l);

	f->reo_wnd_mult = 100;
	hand_sack_at(l, 0, 1, 2, T0);
	ck_assert_uint_eq(f->rtx_deadline_ns, T0 + f->rtt.srtt_ns);
}

TEST(window_shrinks_after_sixteen_recoveries) {
	struct link *l = TEN("");
	struct flow *f = link_flow(l);
	struct seg s = hand_ack(l, 2, T0);
	uint64_t now_ns = T0;

	hand_resent(l, 0, 1);
	hand_sack(l, &s, 0, 1);
	hand_feed(l, &s, T0);
	for (int i = 0; i < 16; i++) {
		ck_assert_uint_eq(f->reo_wnd_mult, 2);
		now_ns += 20 * MS;
		hand_sack_at(l, f->una, f->una + 1, f->una + 4, now_ns);
		ck_assert_int_eq(f->ca, FLOW_CA_RECOVERY);
		now_ns += 20 * MS;
		hand_ack_at(l, f->nxt, now_ns);
		ck_assert_int_eq(f->ca, FLOW_CA_OPEN);
	}
	ck_assert_uint_eq(f->reo_wnd_mult, 1);
}

// What was sent after a retransmission arrives and it does not: lost again, no timeout.
TEST(lost_retransmission_is_found) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);

	hand_sack_at(l, 0, 1, 4, T0); // 0 again at 40 ms, then 10 to 12
	ck_assert_uint_eq(l->data[10].index, 0);
	ck_assert_uint_eq(l->data[11].index, 10);
	hand_sack_at(l, 0, 1, 5, T0 + 1); // 13 at 40 ms and 1 ns
	hand_sack_at(l, 0, 1, 13, T0 + 20 * MS);
	ck_assert_uint_eq(f->count.lost_segs, 1); // 10 to 12 may have left before
	hand_sack_at(l, 0, 1, 14, T0 + 20 * MS + 1);
	ck_assert_uint_eq(f->count.lost_segs, 2);
	ck_assert_uint_eq(f->count.timeouts, 0);
	for (uint64_t i = 0, n = 0; i < l->data_count; i++) {
		n += l->data[i].index == 0;
		if (i + 1 == l->data_count)
			ck_assert_uint_eq(n, 3);
	}
}

// Two of five retransmissions are lost, half of the ACKs too, and the pacer lets them wait.
TEST(lost_retransmissions_wait_in_the_order_of_their_numbers) {
	struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 400, rate: 100Mbit}}}", .loss = 0.4,
		.ack_loss = 0.5, .seed = 2, .check_every = 8);
	struct flow *f = link_flow(l);
	uint32_t most = 0;

	while (link_step(l, 1500 * MS)) {
		uint64_t lowest = f->una;

		if (f->relost == 0)
			continue;
		while ((flow_seg(f, lowest)->flags & (SENT_LOST | SENT_RETRANS)) != SENT_LOST)
			lowest++;
		NEED(flow_next_lost(f) == lowest);
		most = (uint32_t)max_u64(most, check_relost(f, f->relost, f->una, f->rtx_hint));
	}
	ck_assert_uint_gt(most, 5);
}

// Section 6.2 step 2: an ACK that came too early, or echoes an older timestamp, is the original's.
TEST(ack_of_the_original_moves_nothing) {
	for (int stamped = 0; stamped < 2; stamped++) {
		struct link *l = stamped ? TEN("") : TEN("timestamps: no");
		const struct flow *f = link_flow(l);
		uint64_t now_ns = T0 + (stamped ? 25 : 5) * MS;
		struct seg s;

		hand_sack_at(l, 0, 1, 4, T0); // 0 again at 40 ms
		ck_assert_uint_eq(f->rack_seg, 3);
		s = hand_ack(l, 4, now_ns);
		s.tsecr = flow_tsval(20 * MS);
		hand_feed(l, &s, now_ns);
		ck_assert_uint_eq(f->rack_seg, 3);
		ck_assert_uint_eq(f->rack_sent_ns, 20 * MS);
		link_close(l);
	}
}

// Times of sending are kept in 48 bits, 78 hours.
TEST(clock_passes_two_to_the_48) {
	struct link *l = LINK(.group = "{cc: newreno, source: {size: {bytes: 3MB}}}",
		.lose = 0x10842108, .start_ns = (UINT64_C(1) << 48) - 50 * MS);
	const struct flow *f = link_flow(l);

	link_finish(l, (UINT64_C(1) << 48) + 10 * S);
	link_complete(l);
	ck_assert_uint_eq(f->rtt.min_ns, 20 * MS);
	ck_assert_uint_le(f->rtt.srtt_ns, 70 * MS);
	ck_assert_uint_eq(f->count.timeouts, 0);
	ck_assert_uint_eq(f->count.retransmits, 6);
}

// As in Linux, whose multiplier has 8 bits.
TEST(window_grows_to_255_quarters_at_most) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);
	uint64_t now_ns = T0;

	for (uint64_t i = 0; i < 300; i++, now_ns += 20 * MS) {
		uint64_t una = f->nxt;
		struct seg s = hand_ack(l, una, now_ns);

		hand_resent(l, una - 1, una);
		hand_sack(l, &s, una - 1, una);
		hand_feed(l, &s, now_ns);
		ck_assert_uint_eq(f->reo_wnd_mult, i < 254 ? i + 2 : 255);
	}
}

// A repair and new segments leave in one nanosecond: the newest is the one with the highest number,
// which was never sent before, so its round trip is known.
TEST(round_trip_is_of_the_highest_number_of_a_nanosecond) {
	struct link *l = TEN("");
	const struct flow *f = link_flow(l);

	hand_sack_at(l, 0, 1, 4, T0);
	SENT(l, 10, 0, T0);
	SENT(l, 11, 10, T0);
	uint64_t samples = f->count.rtt_samples;

	hand_ack_at(l, 11, T0 + 25 * MS);
	ck_assert_uint_eq(f->count.rtt_samples, samples + 1);
	ck_assert_uint_eq(f->rack_rtt_ns, 25 * MS);
}
