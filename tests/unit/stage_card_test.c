// SPDX-License-Identifier: BSD-3-Clause
// Interrupts and polls of cards, to the nanosecond.
#include "switch/stage/card.h"
#include "switch_test.h"

// One kind of n hosts.
#define HOSTS(n, ...)                                                                              \
	{                                                                                          \
		.kinds = 1, .count = n, .kind = { {.count = n, __VA_ARGS__} }                      \
	}

static void open_cards(struct stage_bench *b, const struct hosts_side *side) {
	b->env.mtu_bytes = MTU;
	b->ops = &stage_card;
	b->st = test_state(b->ops->state_size, b->ops->fini);
	card_configure(b->st, side);
	ck_assert_int_eq(b->ops->init(b->st, &b->env, &b->err), 0);
}

struct visit {
	uint32_t flow;
	uint64_t in_ns, out_ns; // out_ns 0: dropped
	bool ends; // its poll
};

static void check(const struct hosts_side *side, const struct visit *want, int n) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new((uint32_t)n, 1000);
	uint64_t last_ns = 0;
	int left = 0;

	open_cards(&b, side);
	for (int i = 0; i < n; i++) {
		pkts[i].flow_id = want[i].flow;
		stage_put(&b, &pkts[i], want[i].in_ns);
		left += want[i].out_ns > 0;
		if (want[i].out_ns == 0)
			ck_assert_uint_eq(pkts[i].drop_reason, DROP_RING);
	}
	for (struct pkt *p; (p = stage_take(&b, NEVER_NS)) != NULL; left--) {
		const struct visit *w = &want[p - pkts];

		ck_assert_uint_eq(p->arrival_ns, w->out_ns);
		ck_assert_uint_eq((p->flags & PKT_POLL_END) != 0, w->ends);
		ck_assert_uint_ge(p->arrival_ns, last_ns);
		last_ns = p->arrival_ns;
	}
	ck_assert_int_eq(left, 0);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
}

// The first packet interrupts at once; those of the next 1000 ns come together. What arrives with
// an interrupt comes with the next one.
TEST(interrupts_are_a_least_time_apart) {
	static const struct hosts_side side = HOSTS(1, .coalesce_ns = 1000, .ring = 64);
	static const struct visit want[] = {{0, 100, 100, true}, {0, 200, 1100, false},
		{7, 900, 1100, false}, {0, 1099, 1100, true}, {0, 1100, 2100, true},
		{0, 5000, 5000, true}};

	check(&side, want, 6);
}

TEST(each_host_has_a_card) {
	static const struct hosts_side side = HOSTS(2, .coalesce_ns = 1000, .ring = 64);
	static const struct visit want[] = {{0, 100, 100, true}, {1, 150, 150, true},
		{2, 200, 1100, false}, {3, 300, 1150, true}, {4, 400, 1100, true}};

	check(&side, want, 5);
}

TEST(without_moderation_each_packet_interrupts) {
	static const struct hosts_side side = HOSTS(1, .ring = 64);
	static const struct visit want[] = {{0, 100, 100, true}, {0, 100, 100, true}};

	check(&side, want, 2);
}

// A processor of 100 ns per packet takes what arrives while it works without an interrupt.
TEST(a_poll_goes_on_while_packets_arrive) {
	static const struct hosts_side side =
		HOSTS(1, .coalesce_ns = 1000, .cpu_ns = 100, .ring = 64);
	static const struct visit want[] = {{0, 100, 200, false}, {0, 150, 300, false},
		{0, 299, 400, true}, {0, 400, 1200, false}, {0, 1150, 1300, true}};

	check(&side, want, 5);
}

// Two wait for the interrupt at 1100; the third finds the ring full. After it there is room.
TEST(a_full_ring_drops) {
	static const struct hosts_side side = HOSTS(1, .coalesce_ns = 1000, .ring = 2);
	static const struct visit want[] = {{0, 100, 100, true}, {0, 200, 1100, false},
		{0, 300, 1100, true}, {0, 400, 0, false}, {0, 1100, 2100, true}};

	check(&side, want, 5);
}

TEST(its_processor_is_busy) {
	static const struct hosts_side side = HOSTS(2, .cpu_ns = 100, .ring = 64);
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(4, 1000);

	open_cards(&b, &side);
	for (int i = 0; i < 4; i++) {
		pkts[i].flow_id = i == 3;
		stage_put(&b, &pkts[i], 0);
	}
	ck_assert_double_eq(b.ops->capacity->busy(b.st, 200), 1);
	ck_assert_double_eq(b.ops->capacity->busy(b.st, 600), 0.5);
	ck_assert_uint_eq(b.ops->capacity->rate_bps(b.st), 2 * MTU * 8 * UINT64_C(10000000));
	while (stage_take(&b, NEVER_NS) != NULL)
		;
}

// Of the measured time: the packet at 0 came before. A ring of 2 drops two of the four.
TEST(its_cards_count_since_the_warm_up) {
	static const struct hosts_side side =
		HOSTS(2, .coalesce_ns = 1000, .cpu_ns = 100, .ring = 2);
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(5, 1000);

	open_cards(&b, &side);
	stage_put(&b, &pkts[0], 0);
	card_measure(b.st, 1000);
	for (int i = 1; i < 5; i++)
		stage_put(&b, &pkts[i], 1000);
	struct card_figures f = card_figures(b.st, &side.kind[0], 2000);

	ck_assert_uint_eq(f.count.pkts, 2);
	ck_assert_uint_eq(f.count.interrupts, 1);
	ck_assert_uint_eq(f.count.drops, 2);
	ck_assert_double_eq(f.busy, 0.1);
	ck_assert_double_eq(f.busy_max, 0.2);
	while (stage_take(&b, NEVER_NS) != NULL)
		;
}

TEST(processors_that_take_no_time_are_not_busy) {
	static const struct hosts_side side = HOSTS(1, .ring = 2);
	struct stage_bench b = {0};

	open_cards(&b, &side);
	ck_assert_double_nan(card_figures(b.st, &side.kind[0], 2000).busy);
}

// Group 0 is on the first kind, one host; group 1 on the second, two hosts with moderation.
TEST(each_kind_has_cards_of_its_own) {
	static const struct hosts_side side = {.kinds = 2,
		.count = 3,
		.kind = {{.count = 1, .ring = 9},
			{.first = 1, .count = 2, .ring = 9, .coalesce_ns = 1000}},
		.group_kind = {0, 1}};
	static const uint64_t out_ns[] = {100, 100, 100, 200, 1100, 1100};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(6, 1000);

	open_cards(&b, &side);
	for (uint32_t i = 0; i < 6; i++) {
		pkts[i].flow_id = i;
		pkts[i].delay_class = i % 3 > 0;
		stage_put(&b, &pkts[i], i < 3 ? 100 : 200);
	}
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(stage_take(&b, NEVER_NS)->arrival_ns, out_ns[i]);
	ck_assert_uint_eq(card_figures(b.st, &side.kind[0], 2000).count.pkts, 2);
	ck_assert_uint_eq(card_figures(b.st, &side.kind[1], 2000).count.interrupts, 4);
}
