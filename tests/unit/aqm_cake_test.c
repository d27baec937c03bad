// SPDX-License-Identifier: BSD-3-Clause
// CAKE: shares of hosts and flows, the set-associative hash, COBALT in each queue, the limit.
#include "switch/aqm/flow_queues.h"
#include "switch_test.h"

#include <math.h>

#define PATIENT "target: 1000s, interval: 1000s" // COBALT does nothing

enum { NEW, BULK, HOSTS, COLLIDED }; // as observed

// The flow's hosts are in its number: source, destination, and the flow between them, 8 bits each.
#define FLOW(source, destination, n) ((uint32_t)((source) << 16 | (destination) << 8 | (n)))

static uint32_t hosts_in_flow_id(void *ctx, const struct pkt *p) {
	return p->flow_id >> 16 << 16 | (p->flow_id >> 8 & 0xff);
}

static const struct pkt_owner owner = {.hosts = hosts_in_flow_id};

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 100 * MS,
	.mtu_bytes = MTU,
	.seed = 1,
	.owner = &owner,
};

static void open_cake(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "cake", params, &env) == 0, "%s", b->err.msg);
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

// Without hosts, and with an AQM that does nothing, it serves as fq_codel does (RFC 8290), packet
// by packet.
TEST(flows_are_served_as_by_fq_codel) {
	enum { PKTS = 50000 };
	static const char *const names[2] = {"cake", "fq_codel"};
	static const char *const params[2] = {
		"{limit: 1000000pkt, buckets: 65536, quantum: 1000B, isolation: flows, " PATIENT
		"}",
		"{limit: 1000000pkt, quantum: 1000B, " PATIENT "}"};
	struct pkt *pkts[2] = {pkts_new(PKTS, 0), pkts_new(PKTS, 0)};
	struct aqm_bench b[2];
	uint64_t t_ns = 0, most = 0;
	uint32_t in = 0;
	struct rng rng;

	rng_init(&rng, 1, "arrivals");
	for (int k = 0; k < 2; k++)
		ck_assert_int_eq(aqm_open(&b[k], names[k], params[k], &env), 0);
	while (in < PKTS) {
		uint64_t draw = rng_u64(&rng);

		t_ns += US;
		if (draw % 100 < (in / 5000 % 2 > 0 ? 45 : 55)) {
			for (int k = 0; k < 2; k++) {
				struct pkt *p = &pkts[k][in];

				// Few flows with a backlog, many without.
				p->flow_id = draw >> 8 & 1 ? draw >> 16 & 7 : draw >> 16 & 255;
				p->size_bytes = (uint16_t)(64 + (draw >> 32) % 1455);
				aqm_put(&b[k], p, t_ns);
			}
			in++;
			continue;
		}
		struct pkt *x = aqm_take(&b[0], t_ns), *y = aqm_take(&b[1], t_ns);

		NEED((x == NULL) == (y == NULL));
		NEED(x == NULL || x->id == y->id);
		most = time_max(most, b[0].ops->backlog(b[0].q).pkts);
	}
	ck_assert_uint_gt(most, 300);
	for (int k = 0; k < 2; k++) {
		aqm_close(&b[k]);
		test_close(pkts[k]);
	}
}

// One flow alone has the discipline cobalt, packet by packet.
TEST(one_flow_has_cobalt) {
	enum { PKTS = 20000 };
	static const char *const params[] = {"ecn: no", "ecn: yes"};

	for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		struct pkt *pkts[2] = {pkts_new(PKTS, 1000), pkts_new(PKTS, 1000)};
		struct aqm_bench b[2];
		uint64_t t_ns = 0;
		uint32_t in = 0;
		char text[128];
		struct rng rng;

		rng_init(&rng, i, "cobalt");
		snprintf(text, sizeof(text), "{limit: 100000pkt, target: 1ms, interval: 10ms, %s}",
			params[i]);
		ck_assert_int_eq(aqm_open(&b[0], "cobalt", text, &env), 0);
		open_cake(&b[1], text);
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
			NEED(x == NULL
				|| (x->id == y->id && x->ecn == y->ecn && x->flags == y->flags));
		}
		ck_assert_uint_gt(b[0].drops.count, 100);
		for (int k = 0; k < 2; k++) {
			aqm_close(&b[k]);
			test_close(pkts[k]);
		}
	}
}

// Flows with a backlog, and what they got. Their weights are what theory says.
#define SHARES_MAX 32
struct served_bytes {
	uint32_t flows;
	uint32_t flow[SHARES_MAX];
	double weight[SHARES_MAX];
	uint64_t sent[SHARES_MAX];
};

static void flow_with(struct served_bytes *s, uint32_t flow, double weight) {
	s->flow[s->flows] = flow;
	s->weight[s->flows++] = weight;
}

static uint32_t number_of(const struct served_bytes *s, uint32_t flow) {
	for (uint32_t i = 0; i < s->flows; i++)
		if (s->flow[i] == flow)
			return i;
	ck_abort_msg("unknown flow");
	return 0;
}

// Sends `packets` of sizes of their own while all flows have a backlog. `allowed_bytes`: by which
// what a flow got may differ, at any time, from its share of all.
static void serve(
	struct served_bytes *s, const char *params, uint32_t packets, double allowed_bytes) {
	struct pkt *pkts = pkts_new(packets + 100 * SHARES_MAX, 0), *next = pkts;
	double weights = 0, all = 0;
	struct aqm_bench b;
	char text[256];
	struct rng rng;

	snprintf(text, sizeof(text), "{limit: 1000000pkt, %s, " PATIENT "}", params);
	open_cake(&b, text);
	rng_init(&rng, 1, "sizes");
	for (uint32_t i = 0; i < s->flows; i++) {
		weights += s->weight[i];
		s->sent[i] = 0;
		for (int k = 0; k < 100; k++)
			put(&b, &next, s->flow[i], (uint16_t)(64 + rng_u64(&rng) % (MTU - 63)));
	}
	for (uint32_t n = 0; n < packets + 5 * s->flows; n++) {
		struct pkt *p = b.ops->dequeue(b.q, MS, &b.drops);
		uint32_t i = number_of(s, p->flow_id);
		uint64_t bytes = p->size_bytes;

		b.out_pkts++;
		b.out_bytes += bytes;
		p->size_bytes = (uint16_t)(i == 0 ? 64 : 64 + rng_u64(&rng) % (MTU - 63));
		aqm_put(&b, p, MS);
		if (n < 5 * s->flows) // new queues become bulk queues
			continue;
		s->sent[i] += bytes;
		all += (double)bytes;
		for (uint32_t k = 0; k < s->flows; k++) {
			double off = (double)s->sent[k] - all * s->weight[k] / weights;

			if (fabs(off) > allowed_bytes)
				ck_abort_msg("%s: flow %x is off by %g bytes after %u packets",
					params, s->flow[k], off, n);
		}
	}
	ck_assert_double_gt(all / s->flows, 50 * MTU);
	aqm_close(&b);
	test_close(pkts);
}

// Deficit round robin: within a quantum and a packet of each other, so of the mean too. The quantum
// need not be that of a packet.
TEST(flows_are_fair_to_one_quantum) {
	struct served_bytes s = {0};

	for (uint32_t i = 0; i < 11; i++)
		flow_with(&s, i == 0 ? FLOW(1, 1, 0) : FLOW(2, 2, i), 1);
	serve(&s, "isolation: flows", 20000, 2 * MTU);
	serve(&s, "isolation: flows, quantum: 300B", 20000, 2 * MTU);
	for (uint32_t i = 0; i < 11; i++)
		s.flow[i] = FLOW(1, 1, i);
	serve(&s, "isolation: triple", 20000, 2 * MTU);
	serve(&s, "isolation: dual-srchost, quantum: 300B", 20000, 2 * MTU);
}

// A host with one flow gets as much as a host with ten, whose flows get the same. A flow's turn
// comes once in ten of its host's, so a host's quantum and packet are added to the flow's.
TEST(hosts_have_equal_shares) {
	struct served_bytes s = {0};

	for (uint32_t i = 0; i < 10; i++)
		flow_with(&s, FLOW(1, 7, i), 0.1);
	flow_with(&s, FLOW(2, 7, 0), 1);
	serve(&s, "isolation: dual-srchost", 20000, 4 * MTU);
	for (uint32_t i = 0; i < 11; i++)
		s.weight[i] = 1; // of one destination
	serve(&s, "isolation: dual-dsthost", 20000, 2 * MTU);
	serve(&s, "isolation: triple", 20000, 4 * MTU); // so the busier host is the destination

	s = (struct served_bytes){0};
	for (uint32_t i = 0; i < 10; i++)
		flow_with(&s, FLOW(7, 1, i), 0.1);
	flow_with(&s, FLOW(7, 2, 0), 1);
	serve(&s, "isolation: dual-dsthost", 20000, 4 * MTU);
}

// A flow's weight is 1 / max(load of its source, load of its destination), wherever it comes from.
TEST(triple_counts_the_busier_host) {
	struct served_bytes s = {0};

	for (uint32_t i = 0; i < 10; i++)
		flow_with(&s, FLOW(1, 1, i), 0.1);
	flow_with(&s, FLOW(2, 2, 0), 1);
	serve(&s, "isolation: triple", 20000, 4 * MTU);

	// Loads of sources: 4, 4, 1; of destinations: 3, 5, 1.
	s = (struct served_bytes){0};
	for (uint32_t i = 0; i < 3; i++)
		flow_with(&s, FLOW(0, 0, i), 1 / 4.0);
	flow_with(&s, FLOW(0, 1, 0), 1 / 5.0);
	for (uint32_t i = 0; i < 4; i++)
		flow_with(&s, FLOW(1, 1, i), 1 / 5.0);
	flow_with(&s, FLOW(2, 2, 0), 1);
	serve(&s, "isolation: triple", 20000, 6 * MTU);

	// Four sources with four flows each, all to other destinations of four: all loads are 4.
	s = (struct served_bytes){0};
	for (uint32_t i = 0; i < 16; i++)
		flow_with(&s, FLOW(i / 4, i % 4, 0), 1 / 4.0);
	serve(&s, "isolation: triple", 20000, 6 * MTU);
}

// One queue for a source, a destination or a pair of them.
TEST(hosts_can_be_what_has_a_queue) {
	static const struct {
		const char *params;
		uint32_t flow[4]; // the first two have one queue, the third another
	} cases[] = {
		{"{isolation: srchost, " PATIENT "}",
			{FLOW(1, 1, 0), FLOW(1, 2, 1), FLOW(2, 1, 0)}},
		{"{isolation: dsthost, " PATIENT "}",
			{FLOW(1, 1, 0), FLOW(2, 1, 1), FLOW(1, 2, 0)}},
		{"{isolation: hosts, " PATIENT "}", {FLOW(1, 1, 0), FLOW(1, 1, 1), FLOW(1, 2, 0)}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pkt *pkts = pkts_new(20, 0), *next = pkts, *p[6];
		const uint32_t *flow = cases[i].flow;
		struct aqm_bench b;

		open_cake(&b, cases[i].params);
		for (int k = 0; k < 4; k++)
			p[k] = put(&b, &next, flow[k % 2], MTU);
		p[4] = put(&b, &next, flow[2], MTU);
		p[5] = put(&b, &next, flow[2], MTU);
		next_is(&b, p[0]);
		next_is(&b, p[4]);
		next_is(&b, p[1]);
		next_is(&b, p[5]);
		next_is(&b, p[2]);
		next_is(&b, p[3]);
		aqm_close(&b);
		test_close(pkts);
	}
}

// A new flow sends a quantum at once; one of a host with ten bulk queues a tenth of that.
TEST(a_busy_hosts_new_flow_has_less_credits) {
	for (int busy = 0; busy < 2; busy++) {
		struct pkt *pkts = pkts_new(500, 0), *next = pkts, *p;
		struct aqm_bench b;
		uint32_t first = 0;

		open_cake(&b, "{isolation: dual-srchost, quantum: 1000B, " PATIENT "}");
		for (uint32_t i = 0; i < 100; i++)
			put(&b, &next, FLOW(1, 1, i % 10), 1000);
		for (int i = 0; i < 15; i++) // all become bulk queues
			aqm_take(&b, MS);
		ck_assert_double_eq(aqm_observed(&b, BULK), 10);
		ck_assert_double_eq(aqm_observed(&b, HOSTS), 1);
		for (int i = 0; i < 30; i++)
			put(&b, &next, FLOW(busy > 0 ? 1 : 2, 1, 77), 64);
		ck_assert_double_eq(aqm_observed(&b, NEW), 1);
		while ((p = aqm_take(&b, MS)) != NULL && (p->flow_id & 0xff) == 77)
			first++;
		ck_assert_uint_eq(first, busy > 0 ? 2 : 16); // 100 B, 1000 B
		while (aqm_take(&b, MS) != NULL)
			;
		ck_assert_double_eq(aqm_observed(&b, BULK), 0);
		ck_assert_double_eq(aqm_observed(&b, HOSTS), 0);
		aqm_close(&b);
		test_close(pkts);
	}
}

// A flow whose packets come one by one, each when the one before has left, is sparse once; then it
// waits for its turn as the others do, and is sparse again when it was found empty.
TEST(an_empty_new_queue_becomes_old) {
	struct pkt *pkts = pkts_new(20, 0), *next = pkts, *b[9], *a;
	struct aqm_bench f;

	open_cake(&f, "{quantum: 1500B, " PATIENT "}");
	for (int i = 0; i < 9; i++)
		b[i] = put(&f, &next, FLOW(1, 1, 2), 500);
	for (int i = 0; i < 3; i++)
		next_is(&f, b[i]);
	a = put(&f, &next, FLOW(1, 1, 1), 100);
	next_is(&f, a);
	next_is(&f, b[3]); // a, empty, is behind b; it is no bulk queue
	ck_assert_double_eq(aqm_observed(&f, BULK), 1);
	a = put(&f, &next, FLOW(1, 1, 1), 100); // no priority: it becomes one
	ck_assert_double_eq(aqm_observed(&f, BULK), 2);
	next_is(&f, b[4]);
	next_is(&f, b[5]);
	next_is(&f, a);
	next_is(&f, b[6]); // a, empty and old, leaves the list
	ck_assert_double_eq(aqm_observed(&f, BULK), 1);
	a = put(&f, &next, FLOW(1, 1, 1), 100); // new again
	next_is(&f, a);
}

// Above the limit the queue with the most bytes loses its oldest packet, one at a time, and BLUE's
// probability rises for that flow only.
TEST(the_fattest_queue_loses_its_oldest) {
	enum { PKTS = 20000 };
	struct pkt *pkts = pkts_new(PKTS, 0);
	struct aqm_bench b;
	struct rng rng;

	rng_init(&rng, 1, "limit");
	open_cake(&b, "{limit: 200pkt, buckets: 64, " PATIENT "}");
	const struct flow_queues *fq = b.q; // its first member

	for (uint32_t i = 0; i < PKTS; i++) {
		struct pkt *oldest[64];
		uint64_t bytes[64], most = 0;

		pkts[i].flow_id = (uint32_t)(rng_u64(&rng) % (1 + rng_u64(&rng) % 50));
		pkts[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
		if (i % 4 == 0)
			aqm_take(&b, i * US);
		bool at_limit = b.ops->backlog(b.q).pkts == 200;
		const struct pkt *tail = b.drops.tail; // BLUE drops too
		for (uint32_t k = 0; k < 64; k++) {
			oldest[k] = fq->queue[k].pkts.head;
			bytes[k] = fq->queue[k].pkts.bytes;
		}
		aqm_put(&b, &pkts[i], i * US);
		if (!at_limit) {
			NEED(b.drops.tail == tail);
			continue;
		}
		const struct pkt *dropped = b.drops.tail;

		NEED(dropped == (tail == NULL ? b.drops.head : tail->next));
		for (uint32_t k = 0; k < 64; k++) {
			// The arrival, which may itself be the oldest, counts.
			bytes[k] = fq->queue[k].pkts.bytes
				+ (dropped == oldest[k] ? dropped->size_bytes : 0);
			most = bytes[k] > most ? bytes[k] : most;
		}
		bool found = false;
		for (uint32_t k = 0; k < 64; k++)
			found |= dropped == oldest[k] && bytes[k] == most;
		NEED(found && dropped->drop_reason == DROP_QUEUE_FULL);
	}
	ck_assert_uint_gt(b.drops.count, 10000);
	ck_assert(b.ops->random(b.q));
}

TEST(blue_is_each_queues_own) {
	struct pkt *pkts = pkts_new(3000, 1000), *next = pkts, *p;
	uint32_t dropped[3] = {0};
	struct aqm_bench b;
	uint64_t t_ns = 0;

	open_cake(&b, "{limit: 100pkt}");
	for (; next < pkts + 500; next++, t_ns += 5 * MS) { // 400 exceed it: BLUE's step is 1/256
		next->flow_id = FLOW(1, 1, 1);
		aqm_put(&b, next, t_ns);
	}
	ck_assert_uint_eq(b.drops.count, 400);
	while ((p = pkt_list_pop(&b.drops)) != NULL) { // aqm_conserved counts what is on the list
		b.in_pkts--;
		b.in_bytes -= p->size_bytes;
	}
	while (next < pkts + 2500) { // no delay: CoDel's part does nothing
		for (uint32_t k = 0; k < 40; k++, next++) {
			next->flow_id = FLOW(1, 1, k % 2 + 1);
			aqm_put(&b, next, t_ns);
		}
		for (int k = 0; k < 40; k++)
			aqm_take(&b, t_ns);
	}
	for (p = b.drops.head; p != NULL; p = p->next)
		dropped[p->flow_id & 0xff] += p->arrival_ns == t_ns;
	ck_assert_uint_gt(dropped[1], 500); // with probability 1, but for those that were the last
	ck_assert_uint_eq(dropped[2], 0);
}

// Packets that met one of another flow, of one packet from each of n flows.
static uint32_t sharing(uint32_t buckets, uint32_t n, uint64_t seed) {
	struct pkt *pkts = pkts_new(n, 100);
	struct aqm_env seeded = env;
	struct aqm_bench b;
	char text[64];
	uint32_t shared;

	seeded.seed = seed;
	snprintf(text, sizeof(text), "{buckets: %u, limit: 100000pkt}", buckets);
	ck_assert_int_eq(aqm_open(&b, "cake", text, &seeded), 0);
	for (uint32_t i = 0; i < n; i++) {
		pkts[i].flow_id = i;
		aqm_put(&b, &pkts[i], 0);
	}
	shared = (uint32_t)aqm_observed(&b, COLLIDED);
	ck_assert(b.ops->random(b.q) == (shared > 0));
	aqm_close(&b);
	test_close(pkts);
	return shared;
}

// n balls in buckets / 8 bins that hold eight: the expected number of those without a place, and
// its variance's bound.
static double overflow_of_sets(uint32_t buckets, uint32_t n) {
	double sets = buckets / 8.0, p = 1 / sets, probability = pow(1 - p, n), mean = 0;

	for (uint32_t k = 0; k <= n; k++) {
		if (k > 8)
			mean += (k - 8) * probability;
		probability *= (n - k) / (k + 1.0) * p / (1 - p);
	}
	return mean * sets;
}

TEST(eight_ways_share_as_seldom_as_chance_allows) {
	uint32_t shared = 0;

	for (uint64_t seed = 0; seed < 100; seed++)
		ck_assert_uint_eq(sharing(1024, 100, seed), 0); // expected in all: 0.02
	for (uint64_t seed = 0; seed < 20; seed++)
		shared += sharing(1024, 1024, seed);
	double mean = 20 * overflow_of_sets(1024, 1024);
	ck_assert_double_le(fabs(shared - mean), 4 * sqrt(mean));
	ck_assert_uint_eq(sharing(65536, 5000, 1), 0);
	ck_assert_uint_eq(sharing(1024, 5000, 1), 5000 - 1024); // all are used
	ck_assert_uint_eq(sharing(8, 9, 1), 1);
}

// One flow after the other: a queue that was left is there for the next flow.
TEST(queues_are_used_again) {
	struct pkt *pkts = pkts_new(1000, 100);
	struct aqm_bench b;

	open_cake(&b, "{buckets: 8}");
	for (uint32_t i = 0; i < 1000; i++) {
		pkts[i].flow_id = i;
		aqm_put(&b, &pkts[i], i * MS);
		while (i % 8 == 7 && aqm_take(&b, i * MS) != NULL)
			;
	}
	ck_assert_double_eq(aqm_observed(&b, COLLIDED), 0);
	ck_assert(!b.ops->random(b.q));
}

// So is one that two flows shared: of nine flows one shares, every time; of eight none does.
TEST(shared_queues_are_used_again) {
	struct pkt *pkts = pkts_new(17 * 100, 100), *next = pkts;
	struct aqm_bench b;

	open_cake(&b, "{buckets: 8}");
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t n = 8; n <= 9; n++) {
			for (uint32_t k = 0; k < n; k++, next++) {
				next->flow_id = next->id;
				aqm_put(&b, next, i * MS);
			}
			while (aqm_take(&b, i * MS) != NULL)
				;
		}
		ck_assert_double_eq(aqm_observed(&b, COLLIDED), i + 1);
	}
}

// Far more flows than queues, which come and go: each flow's packets leave in order.
TEST(flows_that_share_keep_their_order) {
	enum { PKTS = 100000, FLOWS = 40 };
	struct pkt *pkts = pkts_new(PKTS, 0);
	uint32_t last[FLOWS] = {0}, in = 0;
	struct aqm_bench b;
	uint64_t t_ns = 0;
	struct rng rng;

	rng_init(&rng, 1, "order");
	open_cake(&b, "{buckets: 16, limit: 200pkt, target: 5us, interval: 100us}");
	while (in < PKTS || b.ops->backlog(b.q).pkts > 0) {
		uint64_t draw = rng_u64(&rng);
		struct pkt *p;

		t_ns += US;
		if (in < PKTS && draw % 100 < 47 + 2 * (in / 1000 % 4)) {
			p = &pkts[in++];
			p->flow_id = (uint32_t)((draw >> 8) % (1 + (draw >> 32) % FLOWS));
			p->size_bytes = (uint16_t)(64 + (draw >> 20) % 1455);
			aqm_put(&b, p, t_ns);
		} else if ((p = aqm_take(&b, t_ns)) != NULL) {
			NEED(last[p->flow_id] <= p->id);
			last[p->flow_id] = p->id + 1;
		}
	}
	ck_assert_ptr_null(aqm_take(&b, t_ns)); // the last queue is found empty
	ck_assert_double_gt(aqm_observed(&b, COLLIDED), 1000);
	ck_assert_double_eq(aqm_observed(&b, BULK), 0);
}

// Without the owner's word a flow group is a host.
TEST(a_group_is_a_host) {
	struct aqm_env groups = env;
	struct pkt *pkts = pkts_new(400, 1000);
	uint32_t from[2] = {0};
	struct aqm_bench b;

	groups.owner = NULL;
	ck_assert_int_eq(aqm_open(&b, "cake", "{isolation: triple, " PATIENT "}", &groups), 0);
	for (uint32_t i = 0; i < 400; i++) {
		pkts[i].delay_class = i % 2;
		pkts[i].flow_id = i % 2 > 0 ? 100 : i % 20; // ten flows and one
		aqm_put(&b, &pkts[i], 0);
	}
	for (uint32_t i = 0; i < 200; i++)
		from[aqm_take(&b, MS)->delay_class]++;
	ck_assert_int_eq(from[0] - from[1], 9 * 2); // as new queues, each sends two packets
	ck_assert(aqm_find("cake")->flows);
}

TEST(bad_parameters_are_refused) {
	static const char *const bad[][2] = {
		{"{buckets: 12}", "buckets: 12 is not a multiple of 8"},
		{"{buckets: 7}", "test:1:11: buckets: 7 is not in [8, 65536]"},
		{"{buckets: 65544}", "test:1:11: buckets: 65544 is not in [8, 65536]"},
		{"{isolation: tripel}",
			"test:1:13: isolation: 'tripel' is not one of flows, hosts, srchost, "
			"dsthost, dual-srchost, dual-dsthost, triple"},
		{"{memlimit: 1B}", "test:1:12: memlimit: 1B is not 0 or in [10kB, 1000TB]"},
		{"{limit: 1000B}",
			"limit: no full-sized frame fits: it is 1518 B, the limit 1000 B"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct aqm_bench b;

		ck_assert_int_lt(aqm_open(&b, "cake", bad[i][0], &env), 0);
		ck_assert_str_eq(b.err.msg, bad[i][1]);
		aqm_close(&b);
	}
}

// Linux's limit is of memory: at 100 Mbit/s and an interval of 100 ms 5 MB, of which a frame of
// 1518 bytes takes 2304 and one of 66 takes 768; at 10 Mbit/s 4 MiB; at 10 Gbit/s what 10240 frames
// of 1514 bytes have. A limit in bytes is one of frames, with no other.
TEST(memory_is_limited_as_in_linux) {
	static const struct {
		const char *params;
		uint64_t rate_bps;
		uint16_t size;
		uint32_t fit;
	} cases[] = {
		{"{}", 100000000, 1518, 5000000 / 2304}, {"{}", 100000000, 66, 5000000 / 768},
		{"{}", 10000000, 1518, (4u << 20) / 2304},
		{"{}", 10000000000, 1518, 10240u * 1514 / 2304},
		{"{interval: 200ms}", 100000000, 1518, 10000000 / 2304},
		{"{limit: 1000pkt}", 100000000, 1518, 1000},
		{"{limit: 20000pkt}", 10000000000, 1518, 20000u * 1514 / 2304},
		{"{limit: 10000000B}", 100000000, 1518, 10000000 / 1518},
		{"{memlimit: 100kB}", 100000000, 1518, 43},
		{"{memlimit: 100kB}", 100000000, 1665, 22}, // the block is twice as large
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct aqm_env other = env;
		struct pkt *pkts = pkts_new(cases[i].fit + 3, cases[i].size), *next = pkts;
		struct aqm_bench b;

		other.rate_bps = cases[i].rate_bps;
		other.mtu_bytes = 1518;
		ck_assert_int_eq(aqm_open(&b, "cake", cases[i].params, &other), 0);
		for (uint32_t k = 0; k < cases[i].fit; k++)
			put(&b, &next, FLOW(1, 1, 1), cases[i].size);
		ck_assert_uint_eq(b.drops.count, 0);
		put(&b, &next, FLOW(1, 1, 1), cases[i].size);
		ck_assert_msg(b.drops.count == 1, "case %zu", i);
		// What has left makes room.
		next_is(&b, &pkts[1]);
		put(&b, &next, FLOW(1, 1, 1), cases[i].size);
		ck_assert_uint_eq(b.drops.count, 1);
		put(&b, &next, FLOW(1, 1, 1), cases[i].size);
		ck_assert_uint_eq(b.drops.count, 2);
		aqm_close(&b);
		test_close(pkts);
	}
}
