// SPDX-License-Identifier: BSD-3-Clause
// Disciplines with a queue per flow against tests/vectors: the order of departures and its
// fairness, and which queue loses packets above the limit.
#include "switch_test.h"
#include "vectors.h"

#define FLOWS 16
#define PKTS 10000

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 20 * MS,
	.mtu_bytes = MTU,
	.seed = 1, // with which these few flows have a queue each
};

static struct pkt *arrive(struct aqm_bench *b, struct pkt *p, double flow, double size) {
	p->flow_id = (uint32_t)flow;
	p->size_bytes = (uint16_t)size;
	aqm_put(b, p, 0);
	return p + 1;
}

enum { DISCIPLINE, QUANTUM, TAKEN, FLOW, SIZE, WORST };

TEST(order_of_departures_and_fairness) {
	static const char *const names[] = {"drr", "fq_codel"};
	static const char *const more[] = {"", ", target: 1000s, interval: 1000s"};
	struct pkt *pkts = pkts_new(PKTS, 0), *next = pkts;
	struct aqm_bench b = {0};
	uint64_t sent[FLOWS], left[FLOWS], worst = 0;
	struct vectors v;

	vectors_open(&v, "fair_queueing");
	while (vectors_next(&v)) {
		const double *c = v.column;
		uint32_t flow = (uint32_t)c[FLOW], kind = (uint32_t)c[DISCIPLINE];
		uint64_t most = 0, least = UINT64_MAX;
		bool backlog = true;
		char params[96];

		if (v.begins) {
			if (b.ops != NULL)
				aqm_close(&b);
			snprintf(params, sizeof(params), "{quantum: %.0fB%s}", c[QUANTUM],
				more[kind]);
			ck_assert_int_eq(aqm_open(&b, names[kind], params, &env), 0);
			memset(sent, 0, sizeof(sent));
			memset(left, 0, sizeof(left));
			worst = 0;
		}
		ck_assert_uint_lt(flow, FLOWS);
		if (c[TAKEN] == 0) {
			next = arrive(&b, next, flow, c[SIZE]);
			left[flow]++;
			continue;
		}
		const struct pkt *p = aqm_take(&b, 0);
		ck_assert_msg(p != NULL && p->flow_id == flow && p->size_bytes == (uint16_t)c[SIZE],
			"row %u, %s", v.rows, v.scenario);
		sent[flow] += p->size_bytes;
		left[flow]--;
		for (int i = 0; i < FLOWS; i++) {
			if (sent[i] == 0 && left[i] == 0)
				continue; // no such flow
			backlog &= left[i] > 0;
			most = sent[i] > most ? sent[i] : most;
			least = sent[i] < least ? sent[i] : least;
		}
		if (backlog && most - least > worst)
			worst = most - least;
		ck_assert_uint_eq(worst, (uint64_t)c[WORST]);
		ck_assert_uint_lt(worst, (uint64_t)c[QUANTUM] + MTU);
	}
	ck_assert_ptr_null(aqm_take(&b, 0));
}

TEST(the_fattest_queue_loses_packets) {
	enum { LIMIT, NEXT_FLOW, NEXT_SIZE, VICTIM, DROPPED_PKTS, DROPPED_BYTES };
	struct pkt *pkts = pkts_new(PKTS, 0), *next = pkts;
	struct aqm_bench b = {0};
	struct vectors v;

	vectors_open(&v, "fattest_queue");
	while (vectors_next(&v)) {
		const double *c = v.column;
		struct pkt_list before;
		const struct pkt *drop;
		char params[64];

		if (v.begins) {
			if (b.ops != NULL)
				aqm_close(&b);
			snprintf(params, sizeof(params), "{limit: %.0fpkt}", c[LIMIT]);
			ck_assert_int_eq(aqm_open(&b, "fq_codel", params, &env), 0);
		}
		before = b.drops;
		next = arrive(&b, next, c[NEXT_FLOW], c[NEXT_SIZE]);
		ck_assert_msg(b.drops.count - before.count == (uint32_t)c[DROPPED_PKTS]
				&& b.drops.bytes - before.bytes == (uint64_t)c[DROPPED_BYTES],
			"row %u, %s: %u packets", v.rows, v.scenario, b.drops.count - before.count);
		drop = before.tail != NULL ? before.tail->next : b.drops.head;
		for (; drop != NULL; drop = drop->next)
			ck_assert_uint_eq(drop->flow_id, (uint32_t)c[VICTIM]);
	}
}
