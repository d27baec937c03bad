// SPDX-License-Identifier: BSD-3-Clause
// Deficit round robin: its paper's example, fairness to one quantum whatever the packets' sizes.
#include "switch_test.h"

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 20 * MS,
	.mtu_bytes = MTU,
	.seed = 1,
};

// Four queues as in figure 1 of the paper, a quantum of 500: what each queue leaves unused counts
// in its next turn.
TEST(order_of_the_paper) {
	static const uint16_t sizes[4][3] = {
		{200, 750, 20}, {500, 500, 0}, {600, 100, 400}, {50, 700, 180}};
	static const struct {
		uint32_t flow;
		uint16_t size;
	} order[] = {{0, 200}, {1, 500}, {3, 50}, {0, 750}, {0, 20}, {1, 500}, {2, 600}, {2, 100},
		{3, 700}, {3, 180}, {2, 400}};
	struct pkt *pkts = pkts_new(12, 0), *p;
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "drr", "{quantum: 500B}", &env), 0);
	for (uint32_t f = 0; f < 4; f++) {
		for (uint32_t k = 0; k < 3 && sizes[f][k] > 0; k++) {
			p = &pkts[3 * f + k];
			p->flow_id = f;
			p->size_bytes = sizes[f][k];
			aqm_put(&b, p, 0);
		}
	}
	ck_assert_double_eq(aqm_observed(&b, 0), 4);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		p = aqm_take(&b, 0);
		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq(p->flow_id, order[i].flow);
		ck_assert_uint_eq(p->size_bytes, order[i].size);
	}
	ck_assert_ptr_null(aqm_take(&b, 0));
	ck_assert_double_eq(aqm_observed(&b, 0), 0);
}

#define FLOWS 10u
#define EACH 4000u

// Ten queues with a backlog and sizes of their own. After the same number of turns two queues
// differ by less than one packet (lemma 2 of the paper), at any moment by less than a quantum and a
// packet.
static void fair(uint32_t quantum) {
	struct pkt *pkts = pkts_new(FLOWS * EACH, 0), *p;
	uint64_t sent[FLOWS] = {0};
	uint32_t taken[FLOWS] = {0}, last = UINT32_MAX;
	char params[64];
	struct aqm_bench b;
	struct rng rng;

	rng_init(&rng, quantum, "fair");
	snprintf(params, sizeof(params), "{limit: 1000000pkt, quantum: %uB}", quantum);
	ck_assert_int_eq(aqm_open(&b, "drr", params, &env), 0);
	for (uint32_t i = 0; i < FLOWS * EACH; i++) {
		p = &pkts[i];
		p->flow_id = i % FLOWS;
		p->size_bytes = (uint16_t)(p->flow_id < 3 ? 64 + 700 * p->flow_id
							  : 64 + rng_u64(&rng) % (MTU - 63));
		b.ops->enqueue(b.q, p, 0, &b.drops);
	}
	ck_assert_double_eq(aqm_observed(&b, 1), 0); // one queue each
	for (;;) {
		p = b.ops->dequeue(b.q, 0, &b.drops);
		NEED(p != NULL);
		if (p->flow_id == 0 && last != 0 && quantum >= MTU) {
			for (uint32_t f = 1; f < FLOWS; f++)
				NEED(sent[f] < sent[0] + MTU && sent[0] < sent[f] + MTU);
		}
		last = p->flow_id;
		sent[last] += p->size_bytes;
		for (uint32_t f = 0; f < FLOWS; f++)
			NEED(sent[f] < sent[last] + quantum + MTU
				&& sent[last] < sent[f] + quantum + MTU);
		if (++taken[last] == EACH)
			break;
	}
	ck_assert_uint_gt(sent[0], 100 * (uint64_t)MTU);
	aqm_close(&b);
	test_close(pkts);
}

TEST(fair_to_one_quantum) {
	fair(MTU);
	fair(300);
	fair(64);
	fair(4000);
	fair(20000);
}

// A queue that has emptied begins anew: it cannot save credits.
TEST(an_empty_queue_loses_its_credits) {
	static const uint32_t order[] = {0, 1, 1, 1, 0, 1, 1, 1, 0};
	struct pkt *pkts = pkts_new(12, 500);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "drr", "{quantum: 1500B}", &env), 0);
	for (uint32_t i = 0; i < 12; i++)
		pkts[i].flow_id = i >= 3;
	aqm_put(&b, &pkts[0], 0);
	for (uint32_t i = 3; i < 12; i++)
		aqm_put(&b, &pkts[i], 0);
	for (size_t i = 0, next = 1; i < sizeof(order) / sizeof(order[0]); i++) {
		struct pkt *p = aqm_take(&b, 0);

		ck_assert_uint_eq(p->flow_id, order[i]);
		if (p->flow_id == 0 && next < 3) // its next packet comes when it has just emptied
			aqm_put(&b, &pkts[next++], 0);
	}
}
