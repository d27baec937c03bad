// SPDX-License-Identifier: BSD-3-Clause
// The queues of flow-queueing disciplines against lists and searches: which queue loses packets
// above the limit and which packets, order in each queue, the ledger, the hash.
#include "switch/aqm/flow_queues.h"
#include "switch_test.h"

#define PKTS 60000u
#define QUEUES 64u

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 20 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
	.seed = 4711,
};

// Packets waiting in each queue, by number, oldest first.
struct model {
	uint32_t *waiting[QUEUES];
	uint32_t first[QUEUES], end[QUEUES];
	uint64_t bytes[QUEUES];
	struct backlog all;
};

static const struct flow_queues *queues_of(const struct aqm_bench *b) {
	return b->q; // each discipline's first member
}

static void model_add(struct model *m, uint32_t q, const struct pkt *p) {
	m->waiting[q][m->end[q]++] = p->id;
	m->bytes[q] += p->size_bytes;
	m->all.pkts++;
	m->all.bytes += p->size_bytes;
}

// p left its queue: it was the oldest there.
static void model_remove(struct model *m, uint32_t q, const struct pkt *p) {
	NEED(m->first[q] < m->end[q] && m->waiting[q][m->first[q]] == p->id);
	m->first[q]++;
	m->bytes[q] -= p->size_bytes;
	m->all.pkts--;
	m->all.bytes -= p->size_bytes;
}

static uint64_t model_most(const struct model *m) {
	uint64_t most = 0;

	for (uint32_t q = 0; q < QUEUES; q++)
		most = m->bytes[q] > most ? m->bytes[q] : most;
	return most;
}

static bool model_fits(const struct model *m, const struct aqm_limit *max) {
	return m->all.pkts <= max->pkts
		&& m->all.bytes + m->all.pkts * max->overhead_bytes <= max->bytes;
}

static uint32_t queue_of(const struct aqm_bench *b, const struct pkt *p) {
	return flow_queues_index(queues_of(b), p->flow_id);
}

// After an arrival: the drops are half of the fattest queue from its head, `batch` at most, until
// the limit holds.
static void model_sheds(
	struct model *m, const struct aqm_bench *b, const struct pkt *drop, uint32_t batch) {
	struct aqm_limit max = b->ops->limit(b->q);

	while (!model_fits(m, &max)) {
		NEED(drop != NULL);
		uint32_t q = queue_of(b, drop), n = m->end[q] - m->first[q];

		NEED(m->bytes[q] == model_most(m));
		n = (n + 1) / 2 < batch ? (n + 1) / 2 : batch;
		for (; n > 0; n--, drop = drop->next) {
			NEED(drop != NULL && drop->drop_reason == DROP_QUEUE_FULL);
			model_remove(m, q, drop);
		}
	}
	NEED(drop == NULL);
}

// What was dropped since the list had this tail.
static const struct pkt *dropped_since(const struct aqm_bench *b, const struct pkt *tail) {
	return tail == NULL ? b->drops.head : tail->next;
}

static void play(const char *name, const char *params, uint32_t flows, uint32_t batch) {
	struct pkt *pkts = pkts_new(PKTS, 0), *p;
	struct model m = {0};
	struct aqm_bench b;
	uint64_t t_ns = 0;
	uint32_t in = 0;
	struct rng rng;

	ck_assert_msg(aqm_open(&b, name, params, &env) == 0, "%s", b.err.msg);
	ck_assert_uint_le(queues_of(&b)->buckets, QUEUES);
	for (uint32_t q = 0; q < QUEUES; q++)
		m.waiting[q] = calloc(PKTS, sizeof(*m.waiting[q]));
	rng_init(&rng, 1, params);
	while (in < PKTS || m.all.pkts > 0) {
		const struct pkt *tail = b.drops.tail, *drop;
		// More arrivals than departures for a while, then fewer.
		bool arrival = in < PKTS && rng_u64(&rng) % 100 < (in / 1000 % 2 > 0 ? 40 : 70);

		t_ns += rng_u64(&rng) % (200 * US);
		if (arrival) {
			p = &pkts[in++];
			// A few flows have most of the packets.
			p->flow_id = (uint32_t)(rng_u64(&rng) % (1 + rng_u64(&rng) % flows));
			p->size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
			p->ecn = rng_u64(&rng) & 3;
			model_add(&m, queue_of(&b, p), p);
			aqm_put(&b, p, t_ns);
			model_sheds(&m, &b, dropped_since(&b, tail), batch);
		} else {
			p = aqm_take(&b, t_ns);
			for (drop = dropped_since(&b, tail); drop != NULL; drop = drop->next) {
				NEED(drop->drop_reason == DROP_AQM);
				model_remove(&m, queue_of(&b, drop), drop);
			}
			NEED((p == NULL) == (m.all.pkts == 0));
			if (p != NULL)
				model_remove(&m, queue_of(&b, p), p);
		}
		NEED(m.all.pkts == b.ops->backlog(b.q).pkts);
		NEED(m.all.bytes == b.ops->backlog(b.q).bytes);
	}
	ck_assert_uint_gt(b.drops.count, 1000);
	for (uint32_t q = 0; q < QUEUES; q++)
		free(m.waiting[q]);
	aqm_close(&b);
	test_close(pkts);
}

TEST(the_fattest_queue_is_that_of_a_search) {
	static const char *const limits[] = {
		"limit: 300pkt, buckets: 64",
		"limit: 50kB, buckets: 64, quantum: 300B",
		"limit: 5ms, buckets: 40",
		"limit: 3pkt, buckets: 64",
		"limit: 1pkt, buckets: 64",
		"limit: 200pkt, buckets: 7, quantum: 9018B",
		"limit: 500pkt, buckets: 1",
	};
	char params[128];

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		snprintf(params, sizeof(params), "{%s}", limits[i]);
		play("drr", params, 200, 1);
		play("fq_codel", params, 200, 64);
		snprintf(params, sizeof(params), "{%s, target: 1us, interval: 100us}", limits[i]);
		play("fq_codel", params, 20, 64);
	}
}

// The heap's order and places hold, and a bound is never below its queue's bytes.
TEST(the_heap_is_one) {
	struct flow_queues fq = {
		.limit = {LIMIT_PACKETS, 1e6}, .quantum_bytes = MTU, .buckets = 500};
	struct pkt *pkts = pkts_new(PKTS, 0);
	struct rng rng;
	struct err err;

	ck_assert_int_eq(flow_queues_init(&fq, 0, &env, &err), 0);
	rng_init(&rng, 1, "heap");
	for (uint32_t i = 0; i < PKTS; i++) {
		pkts[i].flow_id = (uint32_t)(rng_u64(&rng) % 700);
		pkts[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
		flow_queues_put(&fq, &pkts[i], FLOW_NEW);
		for (uint64_t n = rng_u64(&rng) % 3; n > 0; n--) {
			struct flow_queue *q = &fq.queue[rng_u64(&rng) % fq.buckets];
			struct backlog before = flow_queue_backlog(q);

			if (pkt_list_pop(&q->pkts) != NULL)
				flow_queues_left(&fq, q, before);
		}
		uint64_t most = 0;
		for (uint32_t k = 0; i % 16 == 0 && k < fq.buckets; k++)
			most = fq.queue[k].pkts.bytes > most ? fq.queue[k].pkts.bytes : most;
		if (i % 16 == 0 && fq.all.pkts > 0)
			NEED(flow_queues_fattest(&fq)->pkts.bytes == most);
	}
	for (uint32_t i = 1; i <= fq.heaped; i++) {
		const struct flow_queue *q = &fq.queue[fq.heap[i] & 0xffff];

		ck_assert_uint_eq(fq.place[fq.heap[i] & 0xffff], i);
		ck_assert_uint_eq(q->bound_bytes, fq.heap[i] >> 16);
		ck_assert_uint_ge(q->bound_bytes, q->pkts.bytes);
		ck_assert_uint_ge(fq.heap[i / 2 > 0 ? i / 2 : 1], fq.heap[i]);
	}
	flow_queues_fini(&fq);
}

static uint32_t queues_used(const struct flow_queues *fq, uint32_t first, uint32_t flows) {
	uint8_t *used = calloc(fq->buckets, 1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < flows; i++) {
		uint32_t index = flow_queues_index(fq, first + i);

		NEED(index < fq->buckets);
		n += used[index] == 0;
		used[index] = 1;
	}
	free(used);
	return n;
}

// As many queues are used as balls thrown at random hit: buckets (1 - exp(-flows / buckets)), give
// or take four standard deviations, which are below sqrt(flows^2 / 2 buckets). Both for
// weir-sender's flows, which have successive numbers, and for others, whose top bit is set.
TEST(the_hash_spreads_flows_as_chance_does) {
	static const uint32_t first[] = {0, 0x80000000u};
	struct flow_queues fq = {.seed = env.seed, .buckets = 65536};

	for (int i = 0; i < 2; i++) {
		ck_assert_int_le(abs((int)queues_used(&fq, first[i], 5000) - 4813), 4 * 14);
		ck_assert_int_le(abs((int)queues_used(&fq, first[i], 65536) - 41427), 4 * 182);
	}
	fq.buckets = 1024; // of 5000 flows all share
	ck_assert_uint_ge(queues_used(&fq, 0, 5000), 1005);
	fq.buckets = 1000;
	ck_assert_uint_eq(queues_used(&fq, 0, 20000), 1000);
}

TEST(another_seed_lets_others_share) {
	struct flow_queues a = {.seed = 1, .buckets = 1024}, b = {.seed = 2, .buckets = 1024};
	uint32_t both = 0, one = 0;

	for (uint32_t i = 1; i < 20000; i++) {
		bool shared = flow_queues_index(&a, 0) == flow_queues_index(&a, i);

		one += shared;
		both += shared && flow_queues_index(&b, 0) == flow_queues_index(&b, i);
	}
	ck_assert_uint_gt(one, 5);
	ck_assert_uint_lt(both, 3);
}

// The seed has decided something once two flows met in a queue, or the limit was exceeded.
TEST(collisions_are_counted) {
	struct pkt *pkts = pkts_new(4, 100);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "drr", "{buckets: 1, limit: 3pkt}", &env), 0);
	for (uint32_t i = 0; i < 4; i++)
		pkts[i].flow_id = i / 2;
	for (uint32_t i = 0; i < 4; i++) {
		aqm_put(&b, &pkts[i], 0);
		ck_assert_uint_eq(queues_of(&b)->collided, i >= 2);
		ck_assert(b.ops->random(b.q) == (i >= 2));
	}
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_ptr_eq(b.drops.head, &pkts[0]);
	aqm_close(&b);

	ck_assert_int_eq(aqm_open(&b, "drr", "{limit: 1pkt}", &env), 0);
	aqm_put(&b, &pkts[0], 0);
	ck_assert(!b.ops->random(b.q));
	aqm_put(&b, &pkts[2], 0);
	ck_assert(b.ops->random(b.q));
}

// Live, the hash of the 5-tuple is computed for these, and not for a fifo.
TEST(disciplines_that_read_flows_say_so) {
	ck_assert(aqm_find("drr")->flows);
	ck_assert(aqm_find("fq_codel")->flows);
	ck_assert(aqm_find("fq_pie")->flows);
	ck_assert(!aqm_find("fifo")->flows);
	ck_assert(!aqm_find("codel")->flows);
}

TEST(bad_parameters_are_refused) {
	static const char *const bad[][2] = {
		{"{buckets: 0}", "test:1:11: buckets: 0 is not in [1, 65536]"},
		{"{buckets: 65537}", "test:1:11: buckets: 65537 is not in [1, 65536]"},
		{"{quantum: 63B}", "test:1:11: quantum: 63B is not in [64B, 1MB]"},
		{"{limit: 1000B}",
			"limit: no full-sized frame fits: it is 1518 B, the limit 1000 B"},
	};
	static const char *const names[] = {"drr", "fq_codel"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (int k = 0; k < 2; k++) {
			struct aqm_bench b;

			ck_assert_int_lt(aqm_open(&b, names[k], bad[i][0], &env), 0);
			ck_assert_str_eq(b.err.msg, bad[i][1]);
			aqm_close(&b);
		}
	}
}
