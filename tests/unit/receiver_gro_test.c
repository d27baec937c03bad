// SPDX-License-Identifier: BSD-3-Clause
// What a card's GRO joins, of which flows, and when it hands it over. The numbers are those of
// net/core/gro.c of Linux 6.12.
#include "receiver_test.h"

#define FIRST (100 * MS)
#define FLOWS 20

// Twenty receivers on cards of the given kind, fed by hand; their ACKs go nowhere.
static struct link *cards_open(const char *receiving) {
	char hosts[128];

	snprintf(hosts, sizeof(hosts), "{receiving: %s}", receiving);
	return LINK(.group = "{count: 20, cc: newreno, start: 1000s, ack_every: 1}", .hosts = hosts,
		.ack_loss = 1);
}

// Segment number i of a flow; number 0 is a SYN.
static void arrive(struct link *l, uint32_t flow, uint64_t i, uint64_t now_ns) {
	const struct receiver *r = &l->rx.receiver[flow];
	struct seg s = {.flags = SEG_SYN, .options = ALL_OPTIONS, .tsval = TS0, .mss = LEN + 12};

	l->oracle = false;
	if (i > 0)
		s = (struct seg){.seq = r->irs + 1 + (uint32_t)(i - 1) * LEN,
			.ack = receiver_iss(r) + 1,
			.len = LEN,
			.flags = SEG_ACK,
			.options = SEG_OPT_TS,
			.tsval = TS0};
	l->now_ns = now_ns;
	host_rx_receiver(&l->rx, flow, &s, ECN_NOT_ECT, now_ns);
	link_check(l);
}

static void connect(struct link *l) {
	for (uint32_t i = 0; i < FLOWS; i++)
		arrive(l, i, 0, 0);
}

static uint64_t more_acks(const struct link *l, uint64_t *acks) {
	uint64_t more = l->acks_count - *acks;

	*acks = l->acks_count;
	return more;
}

TEST(a_poll_ends_what_its_card_holds) {
	struct link *l = cards_open("{count: 2}");
	uint64_t acks;

	connect(l);
	acks = l->acks_count;
	for (uint32_t flow = 0; flow < 4; flow++) {
		for (uint64_t i = 1; i <= 3; i++)
			arrive(l, flow, i, FIRST);
	}
	ck_assert_uint_eq(more_acks(l, &acks), 0);
	receivers_gro_poll_end(&l->rx.endpoint, 0, 7, FIRST); // of the second card: flows 1 and 3
	ck_assert_uint_eq(more_acks(l, &acks), 2);
	receivers_gro_poll_end(&l->rx.endpoint, 0, 7, FIRST);
	ck_assert_uint_eq(more_acks(l, &acks), 0);
	receivers_gro_poll_end(&l->rx.endpoint, 0, 0, FIRST);
	ck_assert_uint_eq(more_acks(l, &acks), 2);
}

// Two segments of each flow, in turns: of the first eight flows both are held and answered once.
// A ninth makes its list hand over the oldest, whose second segment makes it hand over the next,
// and so on: with nine flows in one list no two segments meet.
TEST(a_list_that_is_full_hands_over_its_oldest) {
	for (uint32_t flows = 8; flows <= 9; flows++) {
		struct link *l = cards_open("{gro_flows: 8}");
		uint64_t acks;

		connect(l);
		acks = l->acks_count;
		for (uint64_t i = 1; i <= 2; i++) {
			for (uint32_t flow = 0; flow < flows; flow++)
				arrive(l, flow, i, FIRST);
		}
		ck_assert_uint_eq(more_acks(l, &acks), flows == 8 ? 0 : 10);
		receivers_gro_poll_end(&l->rx.endpoint, 0, 0, FIRST);
		ck_assert_uint_eq(more_acks(l, &acks), 8);
		link_close(l);
	}
}

// As Linux does with fewer than 1000 ticks per second: a poll of 64 packets hands over all.
TEST(sixty_four_packets_end_a_poll) {
	struct link *l = cards_open("{}");
	uint64_t acks;

	connect(l);
	acks = l->acks_count;
	for (uint64_t i = 1; i <= 32; i++) {
		for (uint32_t flow = 0; flow < 2; flow++) {
			ck_assert_uint_eq(more_acks(l, &acks), 0);
			arrive(l, flow, i, FIRST);
		}
	}
	ck_assert_uint_eq(more_acks(l, &acks), 2);
	receivers_gro_poll_end(&l->rx.endpoint, 0, 0, FIRST);
	ck_assert_uint_eq(more_acks(l, &acks), 0);
}

// It waited for the poll's end, and what came meanwhile took it off its list: the ACK counted 0 - 1
// = 255 blocks, whose move wrote beyond the receiver.
TEST(a_repeated_part_is_reported_before_more_comes) {
	struct link *l = cards_open("{}");
	uint64_t acks;

	connect(l);
	for (uint64_t i = 1; i <= 2; i++)
		arrive(l, 0, i, FIRST);
	receivers_gro_poll_end(&l->rx.endpoint, 0, 0, FIRST);
	acks = l->acks_count;
	feed_data(l, 3 * LEN / 2, LEN, FIRST);
	expect(l, &acks, 1, 5 * LEN / 2);
	ck_assert_uint_eq(last_ack(l)->sack_count, 1);
	feed_data(l, 5 * LEN / 2, LEN, FIRST);
	receivers_gro_poll_end(&l->rx.endpoint, 0, 0, FIRST);
	expect(l, &acks, 1, 7 * LEN / 2);
	ck_assert_uint_eq(last_ack(l)->sack_count, 0);
}

TEST(a_card_without_gro_joins_nothing) {
	struct link *l = cards_open("{gro: no}");
	uint64_t acks;

	connect(l);
	acks = l->acks_count;
	for (uint64_t i = 1; i <= 8; i++)
		arrive(l, 0, i, FIRST);
	ck_assert_uint_eq(more_acks(l, &acks), 8);
}
