// SPDX-License-Identifier: BSD-3-Clause
// PIE against tests/vectors/pie.csv (RFC 8033's formulas), and the RFC's edge cases by name.
#include "switch/aqm/pie_law.h"
#include "switch_test.h"
#include "vectors.h"

#define S (1000 * MS)
#define UPDATE (15 * MS)
#define PROBABILITY 0
#define DELAY 1
#define ALLOWANCE 2
#define ACCUMULATED 3

static const struct aqm_env env = {
	.rate_bps = 50000000,
	.base_rtt_ns = 50 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
	.seed = 1,
};

static void open_pie(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "pie", params, &env) == 0, "%s", b->err.msg);
}

// The queue is empty but for one packet that is `delay_ns` old at the update at now_ns; 0: there is
// none.
static void one_update(struct aqm_bench *b, struct pkt *p, uint64_t delay_ns, uint64_t now_ns) {
	p->ecn = ECN_NOT_ECT;
	if (delay_ns > 0)
		b->ops->enqueue(b->q, p, now_ns - delay_ns, &b->drops);
	NEED(b->drops.count == 0); // a single packet never is
	NEED(b->ops->dequeue(b->q, now_ns, &b->drops) == (delay_ns > 0 ? p : NULL));
}

TEST(probability_is_that_of_the_rfc) {
	struct pkt *p = pkts_new(1, 1000);
	struct aqm_bench b = {0};
	struct vectors v;
	uint64_t now_ns = 0;

	vectors_open(&v, "pie");
	while (vectors_next(&v)) {
		if (v.begins) {
			if (b.q != NULL)
				aqm_close(&b);
			open_pie(&b, "{limit: 100pkt}");
			now_ns = 1000 * UPDATE;
			one_update(&b, p, 0, now_ns); // long idle
			ck_assert_double_eq(aqm_observed(&b, ALLOWANCE), 0);
		}
		now_ns += UPDATE;
		one_update(&b, p, (uint64_t)v.column[1], now_ns);
		NEED(aqm_observed(&b, DELAY) == v.column[1]);
		if (!vectors_same(aqm_observed(&b, PROBABILITY), v.column[2]))
			ck_abort_msg("%s, update %g: %.17g is not %.17g", v.scenario, v.column[0],
				aqm_observed(&b, PROBABILITY), v.column[2]);
		NEED(aqm_observed(&b, ALLOWANCE) == v.column[3]);
	}
	ck_assert_uint_gt(v.rows, 2000);
}

// Section 4.4: a queue that was quiet takes a burst of max_burst without a drop.
TEST(nothing_is_dropped_within_the_burst_allowance) {
	struct pkt *pkts = pkts_new(4000, 1000);
	struct aqm_bench b;
	uint64_t t_ns = 1005 * MS; // at an update
	uint32_t n = 0;

	// With derandomise, an emptied queue's probability would be 0.
	open_pie(&b, "{limit: 4000pkt, beta: 0, alpha: 10, derandomise: no}");
	for (; n < 100; n++)
		aqm_put(&b, &pkts[n], t_ns);
	// Nothing leaves: the oldest packet's age grows, and each update takes 15 ms off the
	// allowance.
	for (; t_ns < 1155 * MS; t_ns += MS / 4)
		aqm_put(&b, &pkts[n++], t_ns);
	ck_assert_uint_eq(b.drops.count, 0);
	ck_assert_double_gt(aqm_observed(&b, PROBABILITY), 0);
	ck_assert_double_eq(aqm_observed(&b, ALLOWANCE), (double)UPDATE);
	for (; t_ns < 1400 * MS; t_ns += MS / 4)
		aqm_put(&b, &pkts[n++], t_ns);
	ck_assert_uint_gt(b.drops.count, 10);
	ck_assert_uint_eq(b.drops.head->drop_reason, DROP_AQM);
	ck_assert_double_eq(aqm_observed(&b, ALLOWANCE), 0);

	// It comes back only when the probability is 0 again.
	t_ns = 6 * S;
	aqm_take(&b, t_ns);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 1);
	while (aqm_take(&b, t_ns) != NULL)
		;
	aqm_put(&b, &pkts[n++], t_ns + 30 * MS);
	ck_assert_double_gt(aqm_observed(&b, PROBABILITY), 0);
	ck_assert_double_eq(aqm_observed(&b, ALLOWANCE), 0);
	aqm_take(&b, t_ns + 30 * MS);
	aqm_put(&b, &pkts[n++], t_ns + 20 * S);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 0);
	ck_assert_double_eq(aqm_observed(&b, ALLOWANCE), 150.0 * MS);
}

// One update at 10 s sets the probability; none follows for 10 s. Ten packets wait, the oldest
// since 115 ms:
// probability = alpha * 100 ms / 2048.
static uint64_t fixed_probability(
	struct aqm_bench *b, const char *more, double probability, struct pkt *pkts) {
	char params[256];

	snprintf(params, sizeof(params),
		"{limit: 20pkt, update: 10s, max_burst: 0, beta: 0, alpha: %.17g, %s}",
		probability * 20480, more);
	open_pie(b, params);
	for (uint32_t i = 0; i < 11; i++)
		b->ops->enqueue(b->q, &pkts[i], 10 * S - 115 * MS, &b->drops);
	ck_assert_ptr_eq(b->ops->dequeue(b->q, 10 * S, &b->drops), &pkts[0]);
	ck_assert_double_eq_tol(aqm_observed(b, PROBABILITY), probability, 1e-12);
	return 10 * S;
}

// Arrivals, each after a departure, until `drops` were dropped; the least, the largest and the mean
// number of arrivals from one drop to the next.
struct gaps {
	uint32_t min, max;
	double mean;
};

static struct gaps gaps_of(const char *more, double probability, uint32_t drops) {
	struct pkt *pkts = pkts_new(11, 1000);
	struct gaps g = {.min = UINT32_MAX};
	uint64_t total = 0;
	struct aqm_bench b;
	uint64_t t_ns = fixed_probability(&b, more, probability, pkts);

	for (uint32_t seen = 0, gap = 1; seen < drops; t_ns++, gap++) {
		struct pkt *p = pkt_list_pop(&b.drops); // a dropped packet arrives again

		if (p == NULL)
			p = b.ops->dequeue(b.q, t_ns, &b.drops);
		b.ops->enqueue(b.q, p, t_ns, &b.drops);
		total++;
		if (b.drops.head == NULL)
			continue;
		g.min = gap < g.min && seen > 0 ? gap : g.min;
		g.max = gap > g.max ? gap : g.max;
		gap = 0;
		seen++;
	}
	g.mean = (double)total / drops;
	aqm_close(&b);
	test_close(pkts);
	return g;
}

// Section 5.4 at a probability of 1/64: no drop before 0.85 * 64 = 54.4 arrivals after a drop, one
// at the latest with arrival 8.5 * 64 = 544.
TEST(derandomised_drops_are_spaced) {
	struct gaps g = gaps_of("derandomise: yes", 1.0 / 64, 20000);

	// 54 arrivals and then a geometric number with mean 64.
	ck_assert_uint_eq(g.min, 55);
	ck_assert_uint_le(g.max, 544);
	ck_assert_double_eq_tol(g.mean, 118, 1.5);
}

TEST(random_drops_have_the_probability) {
	struct gaps g = gaps_of("derandomise: no", 0.002, 5000);

	ck_assert_uint_lt(g.min, 20);
	ck_assert_uint_gt(g.max, 2500);
	// 5000 geometric gaps: a standard deviation of 1.4 % of their mean.
	ck_assert_double_eq_tol(g.mean, 500, 500 * 0.05);
}

TEST(the_largest_gap_is_bounded) {
	// Of 100000 geometric gaps some would be longer than 8.5 times their mean, and end there.
	struct gaps g = gaps_of("derandomise: yes", 1.0 / 64, 100000);

	ck_assert_uint_eq(g.max, 544);
}

// Section 4.1: two packets may always wait; and below half the target nothing is dropped up to 20
// %.
TEST(it_is_work_conserving) {
	struct pkt *pkts = pkts_new(5000, 1000);
	struct aqm_bench b;
	uint64_t t_ns = 1005 * MS;
	uint32_t n = 0;

	open_pie(&b, "{limit: 5000pkt, max_burst: 0, derandomise: no, alpha: 2, beta: 0}");
	for (; n < 1000; n++)
		aqm_put(&b, &pkts[n], t_ns);
	ck_assert_uint_eq(b.drops.count, 0);
	t_ns += 3 * S;
	while (b.ops->backlog(b.q).bytes > 2 * MTU)
		ck_assert_ptr_nonnull(aqm_take(&b, t_ns));
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 1);
	for (; n < 2000; n++) { // at most 3036 B wait
		aqm_take(&b, t_ns);
		aqm_put(&b, &pkts[n], t_ns);
	}
	ck_assert_uint_eq(b.drops.count, 0);
	aqm_put(&b, &pkts[n++], t_ns); // 3000 B wait
	ck_assert_uint_eq(b.drops.count, 0);
	aqm_put(&b, &pkts[n++], t_ns); // 4000 B
	ck_assert_uint_eq(b.drops.count, 1);

	// The delay is below half the target. Above 20 % that does not help.
	uint32_t before = 0, after = 0;
	for (; n < 4900; t_ns += UPDATE / 5) {
		double p = aqm_observed(&b, PROBABILITY);
		uint32_t drops = b.drops.count;

		while (aqm_take(&b, t_ns) != NULL)
			;
		for (int i = 0; i < 6; i++)
			aqm_put(&b, &pkts[n++], t_ns);
		before += p >= 0.2 && aqm_observed(&b, DELAY) < 7 * MS ? b.drops.count - drops : 0;
		after += p < 0.2 ? b.drops.count - drops : 0;
	}
	ck_assert_uint_gt(before, 20);
	ck_assert_uint_eq(after, 0);
	ck_assert_double_lt(aqm_observed(&b, PROBABILITY), 0.2);
}

// Section 5.1: below mark_ecnth packets that are ECN capable are marked, from there on dropped.
TEST(ecn_marks_up_to_its_threshold) {
	static const struct {
		double probability;
		uint8_t ecn;
		bool marks;
	} cases[] = {{0.0999, ECN_ECT0, true}, {0.0999, ECN_ECT1, true}, {0.0999, ECN_CE, false},
		{0.0999, ECN_NOT_ECT, false}, {0.1, ECN_ECT0, false}, {0.5, ECN_CE, false}};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct pkt *pkts = pkts_new(111, 1000);
		struct aqm_bench b;
		uint32_t marks = 0;
		uint64_t t_ns = fixed_probability(
			&b, "derandomise: no, ecn: yes", cases[k].probability, pkts);

		for (int i = 11; i < 111; i++) {
			struct pkt *p = &pkts[i];

			b.ops->dequeue(b.q, t_ns, &b.drops);
			p->ecn = cases[k].ecn;
			b.ops->enqueue(b.q, p, t_ns, &b.drops);
			marks += (p->flags & PKT_MARKED) != 0;
			ck_assert_uint_eq(
				p->ecn, (p->flags & PKT_MARKED) != 0 ? ECN_CE : cases[k].ecn);
			for (; b.ops->backlog(b.q).pkts < 10; t_ns++) // a drop
				b.ops->enqueue(b.q, pkt_list_pop(&b.drops), t_ns, &b.drops);
		}
		ck_assert_uint_eq(marks > 0, cases[k].marks);
		aqm_close(&b);
		test_close(pkts);
	}
}

// Events that change nothing do not change the probability either: updates happen at their own
// times.
TEST(updates_do_not_depend_on_polling) {
	struct pkt *pkts[2] = {pkts_new(200, 1000), pkts_new(200, 1000)};
	struct aqm_bench b[2];
	double busy[2];

	for (int k = 0; k < 2; k++) {
		open_pie(&b[k], "{limit: 200pkt}");
		for (int i = 0; i < 200; i++)
			aqm_put(&b[k], &pkts[k][i], 1 * S);
		for (uint64_t t = 1 * S; k == 1 && t < 2 * S; t += MS) {
			struct pkt extra = {.size_bytes = 1000};

			b[k].ops->enqueue(b[k].q, &extra, t, &b[k].drops);
			ck_assert_ptr_eq(pkt_list_pop(&b[k].drops), &extra); // it is full
		}
		aqm_take(&b[k], 2 * S);
		busy[k] = aqm_observed(&b[k], PROBABILITY);
		while (aqm_take(&b[k], 2 * S) != NULL)
			;
		for (uint64_t t = 2 * S; k == 1 && t < 4 * S; t += MS)
			ck_assert_ptr_null(aqm_take(&b[k], t));
		aqm_take(&b[k], 4 * S);
	}
	ck_assert_double_gt(busy[0], 0.1);
	ck_assert_double_eq(busy[0], busy[1]);
	for (int i = 0; i < 4; i++)
		ck_assert_double_eq(aqm_observed(&b[0], i), aqm_observed(&b[1], i));
	for (int k = 0; k < 2; k++) {
		aqm_close(&b[k]);
		test_close(pkts[k]);
	}
}

static void update_one_by_one(
	const struct pie_law *l, struct pie_state *s, const struct pkt *oldest, uint64_t now_ns) {
	for (; s->next_ns <= now_ns; s->next_ns += l->update_ns)
		pie_update(l, s, pie_delay_ns(oldest, s->next_ns));
}

// Those that leave the probability at 0 are computed at once; short, long and no queues, targets
// from 1 ms to 8 s.
TEST(updates_at_once_are_those_one_by_one) {
	uint32_t at_rest = 0, active = 0;
	struct rng rng;

	rng_init(&rng, 1, "updates");
	for (uint32_t run = 0; run < 400; run++) {
		struct pie_law l = {.target_ns = MS << run % 14,
			.update_ns = UPDATE,
			.max_burst_ns = 150 * MS,
			.alpha = 0.125,
			.beta = run % 3 * 0.625};
		struct pkt first = {.size_bytes = 1000}, *oldest = NULL;
		struct pie_state at_once = {0}, each;
		uint64_t t_ns = 0;

		pie_law_init(&l, MTU);
		pie_state_init(&l, &at_once);
		each = at_once;
		for (uint32_t i = 0; i < 300; i++) {
			t_ns += rng_u64(&rng) % (UPDATE * (1 + rng_u64(&rng) % 60));
			pie_advance(&l, &at_once, oldest, t_ns);
			update_one_by_one(&l, &each, oldest, t_ns);
			NEED(each.prob <= at_once.prob && each.prob >= at_once.prob);
			NEED(each.delay_ns == at_once.delay_ns
				&& each.burst_ns == at_once.burst_ns);
			NEED(each.next_ns == at_once.next_ns);
			at_rest += each.prob <= 0;
			active += each.prob > 0;
			// The oldest packet leaves, or stays.
			if (rng_u64(&rng) % 2 == 0)
				first.arrival_ns += rng_u64(&rng) % (t_ns - first.arrival_ns + 1);
			oldest = rng_u64(&rng) % 8 == 0 ? NULL : &first;
		}
	}
	ck_assert_uint_gt(at_rest, 10000);
	ck_assert_uint_gt(active, 10000);
}

// A packet that does not fit clears the sum of section 5.4 (appendix B).
TEST(a_drop_for_the_limit_clears_the_sum) {
	struct pkt *pkts = pkts_new(40, 1000);
	struct aqm_bench b;
	uint64_t t_ns = fixed_probability(&b, "derandomise: yes", 0.01, pkts);
	uint32_t n = 11;

	for (; n < 21; n++)
		b.ops->enqueue(b.q, &pkts[n], t_ns, &b.drops);
	ck_assert_double_eq_tol(aqm_observed(&b, ACCUMULATED), 0.1, 0.011);
	b.ops->enqueue(b.q, &pkts[n], t_ns, &b.drops);
	ck_assert_uint_eq(pkts[n].drop_reason, DROP_QUEUE_FULL);
	ck_assert_double_eq(aqm_observed(&b, ACCUMULATED), 0);
}
