// SPDX-License-Identifier: BSD-3-Clause
// FQ-PIE: in each queue PIE as one queue has it (aqm_pie_test.c proves that one), and the rules of
// RFC 8290 for queues.
#include "switch_test.h"

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 100 * MS,
	.mtu_bytes = MTU,
	.seed = 1,
};

enum { NEW, OLD, PROBABILITY, COLLIDED }; // as observed

static void open_aqm(struct aqm_bench *b, const char *name, const char *params) {
	ck_assert_msg(aqm_open(b, name, params, &env) == 0, "%s", b->err.msg);
}

// Random arrivals of one flow at 1.3 times the rate of departures, then less: the same packets
// leave, marked or not.
TEST(a_single_flow_meets_pie) {
	static const char *const params[] = {
		"limit: 10000pkt",
		"limit: 10000pkt, ecn: yes, ecn_max: 100%, max_burst: 0",
		"limit: 10000pkt, derandomise: no, target: 5ms",
	};
	static const uint32_t n = 40000;

	for (int k = 0; k < 3; k++) {
		struct pkt *pkts[2] = {pkts_new(n, 1000), pkts_new(n, 1000)};
		struct aqm_bench b[2];
		uint64_t t_ns = 0, free_ns = 0;
		char text[160];
		struct rng rng;
		uint32_t signals = 0;

		snprintf(text, sizeof(text), "{%s}", params[k]);
		open_aqm(&b[0], "pie", text);
		open_aqm(&b[1], "fq_pie", text);
		rng_init(&rng, 1, "arrivals");
		for (uint32_t i = 0; i < n; i++) {
			t_ns += rng_u64(&rng) % (i / 10000 % 2 > 0 ? 300 * US : 154 * US);
			for (; free_ns < t_ns; free_ns += 100 * US) {
				struct pkt *p = aqm_take(&b[0], free_ns);
				struct pkt *q = aqm_take(&b[1], free_ns);

				NEED((p == NULL) == (q == NULL));
				NEED(p == NULL || (p->id == q->id && p->ecn == q->ecn));
				signals += p != NULL && p->ecn == ECN_CE;
			}
			for (int side = 0; side < 2; side++) {
				pkts[side][i].ecn = i % 2 > 0 ? ECN_ECT0 : ECN_NOT_ECT;
				aqm_put(&b[side], &pkts[side][i], t_ns);
			}
			ck_assert(aqm_observed(&b[0], 0) == aqm_observed(&b[1], PROBABILITY));
			NEED(b[0].drops.count == b[1].drops.count);
		}
		ck_assert_uint_gt(b[0].drops.count, 20);
		ck_assert((signals > 20) == (k == 1));
		ck_assert(b[1].ops->random(b[1].q));
		for (int side = 0; side < 2; side++) {
			aqm_close(&b[side]);
			test_close(pkts[side]);
		}
	}
}

// Two flows: one sends all the time and has a queue, the other a packet every 5 ms and has none.
TEST(only_the_flow_with_a_queue_is_dropped) {
	struct pkt *pkts = pkts_new(60000, 1000);
	struct aqm_bench b;
	uint32_t n = 0, sent[2] = {0}, got[2] = {0};

	open_aqm(&b, "fq_pie", "{limit: 100000pkt, max_burst: 0}");
	for (uint64_t t_ns = 0; t_ns < 3000 * MS; t_ns += 100 * US) {
		struct pkt *p = aqm_take(&b, t_ns);

		if (p != NULL)
			got[p->flow_id]++;
		if (t_ns % (5 * MS) == 0) {
			pkts[n].flow_id = 1;
			sent[1]++;
			aqm_put(&b, &pkts[n++], t_ns);
		}
		for (int i = 0; i < (t_ns / US % 400 == 0 ? 2 : 1); i++) {
			sent[0]++;
			aqm_put(&b, &pkts[n++], t_ns);
		}
	}
	ck_assert_uint_gt(b.drops.count, 1000);
	for (const struct pkt *p = b.drops.head; p != NULL; p = p->next) {
		NEED(p->flow_id == 0 && p->drop_reason == DROP_AQM);
		got[0]++;
	}
	ck_assert_uint_le(sent[1] - got[1], 1);
	ck_assert_uint_eq(n, b.out_pkts + b.drops.count + b.ops->backlog(b.q).pkts);
}

// RFC 8290, section 4.2, with a quantum of 1000: as fq_codel, which has its test of each step.
TEST(queues_are_served_in_turn) {
	static const uint32_t flows[] = {1, 1, 1, 2, 2, 2}, order[] = {0, 1, 3, 2, 4, 5};
	struct pkt *pkts = pkts_new(7, 0);
	struct aqm_bench b;

	open_aqm(&b, "fq_pie", "{quantum: 1000B}");
	for (uint32_t i = 0; i < 6; i++) {
		pkts[i].flow_id = flows[i];
		pkts[i].size_bytes = flows[i] == 1 ? 600 : 1000;
		aqm_put(&b, &pkts[i], 0);
	}
	ck_assert_double_eq(aqm_observed(&b, NEW), 2);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_uint_eq(aqm_take(&b, 1)->id, order[i]);
	ck_assert_double_eq(aqm_observed(&b, NEW), 0);
	ck_assert_double_eq(aqm_observed(&b, OLD), 2);
	pkts[6].flow_id = 3; // a new queue comes first
	pkts[6].size_bytes = 100;
	aqm_put(&b, &pkts[6], 1);
	ck_assert_uint_eq(aqm_take(&b, 1)->id, 6);
	for (uint32_t i = 4; i < 6; i++)
		ck_assert_uint_eq(aqm_take(&b, 1)->id, order[i]);
	ck_assert_ptr_null(aqm_take(&b, 1));
	ck_assert_double_eq(aqm_observed(&b, OLD), 0);
	ck_assert_double_eq(aqm_observed(&b, COLLIDED), 0);
}

// Section 4.1: the limit is that of all queues, and the fattest pays from its head, half of it and
// 64 at most.
TEST(the_fattest_queue_pays_for_an_overflow) {
	struct pkt *pkts = pkts_new(302, 1000);
	struct aqm_bench b;

	open_aqm(&b, "fq_pie", "{limit: 300pkt}");
	for (uint32_t i = 0; i < 300; i++) {
		pkts[i].flow_id = i % 3 > 0 ? 1 : 2; // 200 and 100
		aqm_put(&b, &pkts[i], 0);
	}
	ck_assert_uint_eq(b.drops.count, 0);
	pkts[300].flow_id = 3;
	aqm_put(&b, &pkts[300], 0);
	ck_assert_uint_eq(b.drops.count, 64);
	ck_assert_uint_eq(b.drops.head->id, 1);
	for (const struct pkt *p = b.drops.head; p != NULL; p = p->next)
		NEED(p->flow_id == 1 && p->drop_reason == DROP_QUEUE_FULL);
}

// RFC 8033, section 4.1: two full-sized frames may wait without a drop, whatever is in the other
// queues.
TEST(few_packets_of_a_flow_are_never_dropped) {
	struct pkt *pkts = pkts_new(106, 1000);
	struct aqm_bench b;

	open_aqm(&b, "fq_pie", "{max_burst: 0}");
	for (uint32_t i = 0; i < 106; i++) {
		pkts[i].flow_id = i < 100;
		aqm_put(&b, &pkts[i], i < 101 ? 0 : 10000 * MS);
		ck_assert_double_eq_tol(aqm_observed(&b, PROBABILITY), (i < 101 ? 0 : 1), 1e-9);
	}
	ck_assert_uint_eq(b.drops.count, 2); // both find 4000 B
	ck_assert_uint_eq(b.drops.head->id, 104);
}

// A queue that nobody uses for long starts again with a burst allowance and without a probability.
TEST(a_queue_that_rested_is_as_new) {
	struct pkt *pkts = pkts_new(3000, 1000);
	struct aqm_bench b;
	uint32_t n = 0;
	uint64_t t_ns = 0;

	open_aqm(&b, "fq_pie", "{limit: 10000pkt, max_burst: 30ms}");
	for (; n < 2000; n++, t_ns += 100 * US)
		aqm_put(&b, &pkts[n], t_ns);
	ck_assert_double_gt(aqm_observed(&b, PROBABILITY), 0.01);
	while (aqm_take(&b, t_ns) != NULL)
		;
	b.in_pkts -= b.drops.count;
	b.in_bytes -= b.drops.bytes;
	b.drops = (struct pkt_list){0};
	t_ns += 1000000 * MS;
	for (uint64_t end_ns = t_ns + 30 * MS; t_ns < end_ns; t_ns += 100 * US)
		aqm_put(&b, &pkts[n++], t_ns);
	ck_assert_uint_eq(b.drops.count, 0);
}

TEST(bad_parameters_are_refused_with_their_place) {
	static const char *const params[][2] = {
		{"{buckets: 65537}", "buckets"},
		{"{limit: 100B}", "limit"},
		{"{target: 0}", "target"},
		{"{law: exact}", "law"},
	};

	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		struct aqm_bench b;

		ck_assert_int_lt(aqm_open(&b, "fq_pie", params[i][0], &env), 0);
		ck_assert_msg(strstr(b.err.msg, params[i][1]) != NULL, "%s", b.err.msg);
		aqm_close(&b);
	}
}
