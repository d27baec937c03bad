// SPDX-License-Identifier: BSD-3-Clause
// FQ-CoDel: the rules of RFC 8290 for new and old queues, and CoDel in each queue.
#include "switch_test.h"

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 100 * MS,
	.mtu_bytes = MTU,
	.seed = 1,
};

enum { NEW, OLD, DROPPING, COLLIDED }; // as observed

static void lists(const struct aqm_bench *b, uint32_t new_queues, uint32_t old_queues) {
	ck_assert_uint_eq((uint32_t)aqm_observed(b, NEW), new_queues);
	ck_assert_uint_eq((uint32_t)aqm_observed(b, OLD), old_queues);
}

static struct pkt *put(struct aqm_bench *b, struct pkt **next, uint32_t flow, uint16_t size) {
	struct pkt *p = (*next)++;

	p->flow_id = flow;
	p->size_bytes = size;
	aqm_put(b, p, 0);
	return p;
}

static void next_is(struct aqm_bench *b, const struct pkt *p) {
	ck_assert_ptr_eq(aqm_take(b, MS), p);
}

// Section 4.2, step by step, with a quantum of 1000: credits are what remains of it; a queue that
// has none left gets a quantum and goes to the end of the old ones.
TEST(credits_and_lists) {
	struct pkt *pkts = pkts_new(20, 0), *next = pkts, *a[4], *b[4], *c[2];
	struct aqm_bench f;

	ck_assert_int_eq(aqm_open(&f, "fq_codel", "{quantum: 1000B}", &env), 0);
	for (int i = 0; i < 4; i++)
		a[i] = put(&f, &next, 1, 600);
	for (int i = 0; i < 4; i++)
		b[i] = put(&f, &next, 2, 1000);
	lists(&f, 2, 0);
	next_is(&f, a[0]); // 400 left
	next_is(&f, a[1]); // -200: more than a quantum is allowed once
	lists(&f, 2, 0);
	next_is(&f, b[0]); // a becomes old with 800; b has 0 left
	lists(&f, 1, 1);
	next_is(&f, a[2]); // b becomes old with 1000; 200 left
	lists(&f, 0, 2);
	c[0] = put(&f, &next, 3, 100); // a new queue comes first
	c[1] = put(&f, &next, 3, 100);
	lists(&f, 1, 2);
	next_is(&f, c[0]);
	next_is(&f, c[1]);
	next_is(&f, a[3]); // c, empty, becomes old, the last of them; a has -400
	lists(&f, 0, 3);
	next_is(&f, b[1]); // a, with 600, is the last
	next_is(&f, b[2]); // c, empty and old, left the list, and so did a
	lists(&f, 0, 1);
	next_is(&f, b[3]);
	ck_assert_ptr_null(aqm_take(&f, MS));
	lists(&f, 0, 0);
}

// A flow whose packets come one by one, each when the one before has left, is old after its first:
// the old queue is not starved. It is new again only once it has been found empty as an old one.
TEST(an_empty_new_queue_becomes_old) {
	struct pkt *pkts = pkts_new(20, 0), *next = pkts, *b[9], *a;
	struct aqm_bench f;

	ck_assert_int_eq(aqm_open(&f, "fq_codel", "{quantum: 1500B}", &env), 0);
	for (int i = 0; i < 9; i++)
		b[i] = put(&f, &next, 2, 500);
	for (int i = 0; i < 3; i++)
		next_is(&f, b[i]);
	a = put(&f, &next, 1, 100);
	next_is(&f, a); // b is old, a is new
	lists(&f, 1, 1);
	next_is(&f, b[3]); // a, empty, is behind b
	lists(&f, 0, 2);
	a = put(&f, &next, 1, 100); // old: no priority
	lists(&f, 0, 2);
	next_is(&f, b[4]);
	next_is(&f, b[5]);
	next_is(&f, a);
	next_is(&f, b[6]); // a, empty and old, leaves the list
	lists(&f, 0, 1);
	a = put(&f, &next, 1, 100); // new again
	lists(&f, 1, 1);
	next_is(&f, a);
}

// A flow that sends less than its share waits for one packet at most, however many others have a
// backlog.
TEST(a_sparse_flow_has_priority) {
	struct pkt *pkts = pkts_new(5000, 0), *next = pkts, *p;
	struct aqm_bench f;

	ck_assert_int_eq(aqm_open(&f, "fq_codel", "{target: 1s, interval: 10s}", &env), 0);
	for (uint32_t i = 0; i < 4000; i++)
		put(&f, &next, 1 + i % 100, 1518);
	for (uint32_t i = 0; i < 100; i++) // all become old
		aqm_take(&f, MS);
	for (uint32_t i = 0; i < 300; i++) {
		if (i % 150 > 0) {
			aqm_take(&f, MS);
			continue;
		}
		p = put(&f, &next, 1000, 200);
		next_is(&f, p);
	}
	ck_assert_uint_eq(f.drops.count, 0);
	ck_assert_uint_eq((uint32_t)aqm_observed(&f, COLLIDED), 0);
}

// Fairness of backlogged queues, with sizes of their own: within a quantum and a packet at any
// moment.
TEST(fair_to_one_quantum) {
	enum { FLOWS = 10, EACH = 3000 };
	struct pkt *pkts = pkts_new(FLOWS * EACH, 0);
	uint64_t sent[FLOWS] = {0};
	uint32_t taken[FLOWS] = {0};
	struct aqm_bench f;
	struct rng rng;

	rng_init(&rng, 1, "fair");
	ck_assert_int_eq(aqm_open(&f, "fq_codel",
				 "{limit: 1000000pkt, target: 1000s, interval: 1000s}", &env),
		0);
	for (uint32_t i = 0; i < FLOWS * EACH; i++) {
		struct pkt *p = &pkts[i];

		p->flow_id = i % FLOWS;
		p->size_bytes = (uint16_t)(p->flow_id < 3 ? 64 + 700 * p->flow_id
							  : 64 + rng_u64(&rng) % (MTU - 63));
		f.ops->enqueue(f.q, p, 0, &f.drops);
	}
	for (uint32_t flow = 0; taken[flow] < EACH; taken[flow]++) {
		struct pkt *p = f.ops->dequeue(f.q, MS, &f.drops);

		NEED(p != NULL);
		flow = p->flow_id;
		sent[flow] += p->size_bytes;
		for (uint32_t k = 0; k < FLOWS; k++)
			NEED(sent[k] < sent[flow] + 2 * MTU && sent[flow] < sent[k] + 2 * MTU);
	}
	ck_assert_uint_gt(sent[0], 100 * (uint64_t)MTU);
}

// One flow alone has the discipline codel, packet by packet.
TEST(one_flow_has_codel) {
	static const char *const params[] = {
		"target: 1ms, interval: 10ms, ecn: no",
		"target: 1ms, interval: 10ms, law: linux, ecn: no",
		"target: 1ms, interval: 10ms, ecn: yes, ce_threshold: 3ms",
		"target: 1ms, interval: 10ms, ecn: yes, law: linux",
	};
	enum { PKTS = 20000 };

	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		static const char *const names[2] = {"codel", "fq_codel"};
		struct pkt *pkts[2] = {pkts_new(PKTS, 1000), pkts_new(PKTS, 1000)};
		struct aqm_bench b[2];
		uint64_t t_ns = 0, queued = 0;
		uint32_t in = 0;
		char text[128];
		struct rng rng;

		rng_init(&rng, i, "codel");
		snprintf(text, sizeof(text), "{limit: 100000pkt, %s}", params[i]);
		for (int k = 0; k < 2; k++)
			ck_assert_int_eq(aqm_open(&b[k], names[k], text, &env), 0);
		while (in < PKTS) {
			uint8_t ecn = rng_u64(&rng) & 3;
			bool arrival = rng_u64(&rng) % 100 < (in / 2000 % 2 > 0 ? 45 : 55);

			t_ns += rng_u64(&rng) % (100 * US);
			for (int k = 0; k < 2 && arrival; k++) {
				pkts[k][in].ecn = ecn;
				aqm_put(&b[k], &pkts[k][in], t_ns);
			}
			in += arrival;
			if (arrival)
				continue;
			struct pkt *x = aqm_take(&b[0], t_ns), *y = aqm_take(&b[1], t_ns);

			NEED((x == NULL) == (y == NULL) && b[0].drops.count == b[1].drops.count);
			if (x == NULL)
				continue;
			NEED(x->id == y->id && x->ecn == y->ecn && x->flags == y->flags);
			queued += b[1].ops->backlog(b[1].q).pkts;
			NEED(aqm_observed(&b[1], DROPPING) == aqm_observed(&b[0], 1));
		}
		ck_assert_uint_gt(b[0].drops.count, 100);
		ck_assert_uint_gt(queued, 10 * PKTS);
		for (int k = 0; k < 2; k++) {
			aqm_close(&b[k]);
			test_close(pkts[k]);
		}
	}
}

// Two flows with a standing queue, one of them ECN capable, which is marked by default; a third
// whose packets come one by one is neither marked nor dropped.
TEST(codel_is_each_queues_own) {
	struct pkt *pkts = pkts_new(100000, 1000), *next = pkts, *p;
	uint64_t marks[3] = {0}, drops[3] = {0}, waiting[3] = {0};
	struct aqm_bench f;

	ck_assert_int_eq(aqm_open(&f, "fq_codel", "{}", &env), 0);
	for (uint64_t t_ns = 0; t_ns < 2000 * MS; t_ns += 100 * US) {
		for (uint32_t flow = 0; flow < 2; flow++) {
			for (; waiting[flow] < 100; waiting[flow]++, next++) {
				next->flow_id = flow;
				next->ecn = flow == 0 ? ECN_ECT0 : ECN_NOT_ECT;
				aqm_put(&f, next, t_ns);
			}
		}
		if (t_ns % (400 * US) == 0) {
			next->flow_id = 2;
			waiting[2]++;
			aqm_put(&f, next++, t_ns);
		}
		for (int k = 0; k < 2 && (p = aqm_take(&f, t_ns)) != NULL; k++) {
			marks[p->flow_id] += (p->flags & PKT_MARKED) != 0;
			waiting[p->flow_id]--;
		}
		while ((p = pkt_list_pop(&f.drops)) != NULL) {
			NEED(p->drop_reason == DROP_AQM);
			drops[p->flow_id]++;
			waiting[p->flow_id]--;
			f.in_pkts--; // aqm_conserved counts what is on the list
			f.in_bytes -= p->size_bytes;
		}
	}
	ck_assert_uint_gt(marks[0], 10);
	ck_assert_uint_eq(drops[0], 0);
	ck_assert_uint_gt(drops[1], 10);
	ck_assert_uint_eq(marks[1], 0);
	ck_assert_uint_eq(marks[2] + drops[2], 0);
	ck_assert_double_eq(aqm_observed(&f, DROPPING), 2);
}

// The limit takes from the queue with the most bytes, not the most packets, and leaves a flow with
// one packet alone.
TEST(the_fattest_queue_loses_half) {
	struct pkt *pkts = pkts_new(500, 0), *next = pkts, *fat, *p;
	struct aqm_bench f;

	ck_assert_int_eq(aqm_open(&f, "fq_codel", "{limit: 400pkt}", &env), 0);
	for (int i = 0; i < 300; i++)
		put(&f, &next, 1, 64);
	fat = next;
	for (int i = 0; i < 99; i++)
		put(&f, &next, 2, 1500);
	put(&f, &next, 3, 1518);
	ck_assert_uint_eq(f.drops.count, 0);
	put(&f, &next, 4, 64); // 64 at most
	ck_assert_uint_eq(f.drops.count, 50); // half of 99
	for (p = f.drops.head; p != NULL; p = p->next)
		ck_assert_ptr_eq(p, fat++);
	for (int i = 0; i < 50; i++)
		put(&f, &next, 1, 1518);
	ck_assert_uint_eq(f.drops.count, 50 + 64); // of 349, of 64 B and 1518 B, 64
	ck_assert_uint_eq(f.drops.tail->flow_id, 1);
}
