// SPDX-License-Identifier: BSD-3-Clause
// Cards that send: rates, disciplines and limits of each host, to the nanosecond.
#include "switch/stage/card.h"
#include "switch_test.h"

// A frame of 980 B takes 1000 B on the wire: 1 ms at 8 Mbit/s.
#define SIZE 980

static void open_cards(
	struct stage_bench *b, const struct hosts_side *side, const struct aqm_ops *const *aqm) {
	b->env.name = "forward.sending";
	b->env.mtu_bytes = MTU;
	b->ops = &stage_card_out;
	b->st = test_state(b->ops->state_size, b->ops->fini);
	card_out_configure(b->st, side, aqm);
	ck_assert_int_eq(b->ops->init(b->st, &b->env, &b->err), 0);
}

struct visit {
	uint32_t flow;
	uint64_t out_ns; // 0: dropped
};

// All arrive at 0; `order` has them as they leave.
static void check(const struct hosts_side *side, const char *aqm, const uint32_t *group,
	const uint32_t *flow, uint32_t n, const struct visit *order, uint32_t left) {
	const struct aqm_ops *own[HOSTS_KINDS_MAX] = {aqm_find(aqm), aqm_find(aqm)};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(n, SIZE);

	open_cards(&b, side, own);
	for (uint32_t i = 0; i < n; i++) {
		pkts[i].flow_id = flow[i];
		pkts[i].delay_class = (uint16_t)group[i];
		stage_put(&b, &pkts[i], 0);
	}
	ck_assert_uint_eq(b.ops->backlog(b.st).pkts, left);
	for (uint32_t i = 0; i < left; i++) {
		struct pkt *p = stage_take(&b, NEVER_NS);

		ck_assert_uint_eq(p->flow_id, order[i].flow);
		ck_assert_uint_eq(p->arrival_ns, order[i].out_ns);
	}
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
}

#define LIMIT(n)                                                                                   \
	{ LIMIT_PACKETS, n }
static const uint32_t first_group[] = {0, 0, 0, 0, 0};

// Two hosts: of the packets that leave at one time the first host's is the first.
TEST(each_host_has_a_wire) {
	static const struct hosts_side side = {.kinds = 1,
		.count = 2,
		.kind = {{.count = 2, .card_bps = 8000000, .limit = LIMIT(10)}}};
	static const uint32_t flows[] = {1, 0, 2, 3};
	static const struct visit order[] = {
		{0, 1000000}, {1, 1000000}, {2, 2000000}, {3, 2000000}};

	check(&side, "fifo", first_group, flows, 4, order, 4);
}

TEST(each_kind_has_a_rate) {
	static const struct hosts_side side = {.kinds = 2,
		.count = 2,
		.kind = {{.count = 1, .card_bps = 8000000, .limit = LIMIT(10)},
			{.first = 1, .count = 1, .card_bps = 32000000, .limit = LIMIT(10)}},
		.group_kind = {0, 1}};
	static const uint32_t groups[] = {0, 1, 1}, flows[] = {0, 1, 2};
	static const struct visit order[] = {{1, 250000}, {2, 500000}, {0, 1000000}};

	check(&side, "fifo", groups, flows, 3, order, 3);
}

// Flow 0 has come first with three packets; flow 1 does not wait for all of them.
TEST(a_queue_for_each_flow) {
	static const struct hosts_side side = {.kinds = 1,
		.count = 1,
		.kind = {{.count = 1, .card_bps = 8000000, .limit = LIMIT(10)}}};
	static const uint32_t flows[] = {0, 0, 0, 1};
	static const struct visit order[] = {
		{0, 1000000}, {0, 2000000}, {1, 3000000}, {0, 4000000}};

	check(&side, "drr", first_group, flows, 4, order, 4);
}

// The frame on the wire is not in the queue, which holds two.
TEST(each_queue_has_a_limit) {
	static const struct hosts_side side = {.kinds = 1,
		.count = 2,
		.kind = {{.count = 2, .card_bps = 8000000, .limit = LIMIT(2)}}};
	static const uint32_t flows[] = {0, 2, 4, 6, 1};
	static const struct visit order[] = {
		{0, 1000000}, {1, 1000000}, {2, 2000000}, {4, 3000000}};

	check(&side, "fifo", first_group, flows, 5, order, 4);
}

TEST(its_busiest_wire_is_told) {
	static const struct hosts_side side = {.kinds = 1,
		.count = 2,
		.kind = {{.count = 2, .card_bps = 8000000, .limit = LIMIT(2)}}};
	const struct aqm_ops *aqm = aqm_find("fifo");
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(1, SIZE);

	open_cards(&b, &side, &aqm);
	stage_put(&b, &pkts[0], 0);
	ck_assert_ptr_eq(stage_take(&b, 2000000), &pkts[0]);
	ck_assert_double_eq_tol(b.ops->capacity->busy(b.st, 2000000), 0.5, 1e-9);
	ck_assert_uint_eq(b.ops->capacity->rate_bps(b.st), 16000000);
	ck_assert_uint_eq(b.ops->capacity->limit(b.st).pkts, 4);
}
