// SPDX-License-Identifier: BSD-3-Clause
// DualPI2 against tests/vectors/dualpi2.csv and dualpi2_gains.csv (RFC 9332's formulas), and the
// RFC's rules by name.
#include "switch/aqm/dualpi2_law.h"
#include "switch_test.h"
#include "vectors.h"

#define S (1000 * MS)
#define BASE 0
#define CLASSIC 1
#define L4S 2
#define CREDIT 3

static const struct aqm_env env = {
	.rate_bps = 50000000,
	.base_rtt_ns = 50 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
	.seed = 1,
};

static void open_dualpi2(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "dualpi2", params, &env) == 0, "%s", b->err.msg);
}

// Differences of numbers near 1 may remain where the exact result is 0.
static bool same(double a, double b) {
	return vectors_same(a, b) || (a < 1e-12 && b < 1e-12);
}

static void put(struct aqm_bench *b, struct pkt *p, enum ecn ecn, uint64_t now_ns) {
	p->ecn = (uint8_t)ecn;
	aqm_put(b, p, now_ns);
}

TEST(probabilities_are_those_of_the_rfc) {
	struct pkt *p = pkts_new(1, 1000);
	struct aqm_bench b = {0};
	struct vectors v;
	uint64_t now_ns = 0;

	vectors_open(&v, "dualpi2");
	while (vectors_next(&v)) {
		uint64_t delay_ns = (uint64_t)v.column[4];

		if (v.begins) {
			char params[256];

			if (b.q != NULL)
				aqm_close(&b);
			snprintf(params, sizeof(params),
				"{update: 10ms, alpha: %.17g, beta: %.17g, target: %.0fms}",
				v.column[1], v.column[2], v.column[3] / MS);
			open_dualpi2(&b, params);
			now_ns = 1000 * MS;
			ck_assert_ptr_null(aqm_take(&b, now_ns)); // long idle
		}
		// The queue is empty but for one packet that is so old at the update.
		now_ns += 10 * MS;
		b.drops = (struct pkt_list){0};
		if (delay_ns > 0)
			b.ops->enqueue(b.q, p, now_ns - delay_ns, &b.drops);
		b.ops->dequeue(b.q, now_ns, &b.drops);
		for (int i = BASE; i <= L4S; i++)
			if (!same(aqm_observed(&b, i), v.column[5 + i]))
				ck_abort_msg("%s, update %g: %d: %.17g is not %.17g", v.scenario,
					v.column[0], i, aqm_observed(&b, i), v.column[5 + i]);
	}
	ck_assert_uint_gt(v.rows, 1500);
}

TEST(gains_follow_from_the_largest_rtt) {
	struct vectors v;

	vectors_open(&v, "dualpi2_gains");
	while (vectors_next(&v)) {
		struct dualpi2_law l = {
			.max_rtt_ns = (uint64_t)v.column[0], .target_ns = (uint64_t)v.column[1]};

		dualpi2_law_init(&l);
		ck_assert_double_eq((double)l.update_ns, v.column[2]);
		ck_assert(vectors_same(l.alpha, v.column[3]));
		ck_assert(vectors_same(l.beta, v.column[4]));
	}
	ck_assert_uint_eq(v.rows, 5);
}

// The update takes the larger of the two ages, whichever queue it is in.
TEST(the_longer_delay_of_both_queues_counts) {
	static const enum ecn older[] = {ECN_ECT1, ECN_NOT_ECT};

	for (int i = 0; i < 2; i++) {
		struct pkt *pkts = pkts_new(2, 1000);
		struct aqm_bench b;

		open_dualpi2(&b, "{update: 100ms, alpha: 0.000001, beta: 1}");
		put(&b, &pkts[0], older[i], 20 * MS);
		put(&b, &pkts[1], older[1 - i], 60 * MS);
		ck_assert_ptr_nonnull(aqm_take(&b, 100 * MS));
		ck_assert_double_eq_tol(aqm_observed(&b, BASE), 0.080, 1e-6);
		aqm_close(&b);
		test_close(pkts);
	}
}

// Section 2.3: ECT(1) and CE are L4S. With any_ect ECT(0) is too.
TEST(ect1_and_ce_pass_the_others) {
	static const enum ecn fields[] = {ECN_NOT_ECT, ECN_ECT0, ECN_ECT1, ECN_CE};
	static const struct {
		const char *params;
		uint32_t order[4];
	} cases[] = {
		{"{classic_share: 0%}", {2, 3, 0, 1}},
		{"{classic_share: 0%, classify: any_ect}", {1, 2, 3, 0}},
		{"{classic_share: 100%}",
			{2, 0, 1, 3}}, // the first credits come from an L4S packet
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct pkt *pkts = pkts_new(4, 1000);
		struct aqm_bench b;

		open_dualpi2(&b, cases[k].params);
		for (int i = 0; i < 4; i++)
			put(&b, &pkts[i], fields[i], 1);
		for (int i = 0; i < 4; i++) {
			struct pkt *p = aqm_take(&b, 1);

			ck_assert_uint_eq(p->id, cases[k].order[i]);
			ck_assert_uint_eq(p->ecn, fields[p->id]);
			ck_assert_uint_eq(p->flags & PKT_MARKED, 0);
		}
		aqm_close(&b);
		test_close(pkts);
	}
}

// While both queues have packets, the classic one gets its share of the bytes, to one packet.
TEST(the_round_robin_divides_the_bytes) {
	struct pkt *pkts = pkts_new(20000, 0);
	struct aqm_bench b;
	struct rng rng;
	double classic = 0, all = 0;

	open_dualpi2(&b, "{limit: 20000pkt, classic_share: 10%, threshold: 1GB, update: 10s}");
	put(&b, &pkts[0], ECN_ECT1, 1);
	put(&b, &pkts[1], ECN_ECT1, 1);
	while (aqm_take(&b, 1) != NULL)
		ck_assert_double_eq(aqm_observed(&b, CREDIT), 0); // the classic queue is empty
	rng_init(&rng, 1, "sizes");
	for (uint32_t i = 0; i < 20000; i++) {
		pkts[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
		put(&b, &pkts[i], i % 2 > 0 ? ECN_ECT1 : ECN_ECT0, 1);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		struct pkt *p = aqm_take(&b, 2);

		all += p->size_bytes;
		classic += p->ecn == ECN_ECT0 ? p->size_bytes : 0;
		NEED(classic >= 0.1 * all - MTU && classic <= 0.1 * all + MTU);
		ck_assert_double_eq_tol(aqm_observed(&b, CREDIT), 0.1 * all - classic, 1e-6);
	}
}

TEST(a_time_shifted_fifo_serves_the_longest_wait) {
	struct pkt *pkts = pkts_new(3, 1000);
	struct aqm_bench b;

	open_dualpi2(&b, "{scheduler: ts_fifo, shift: 5ms}");
	put(&b, &pkts[0], ECN_NOT_ECT, 10 * MS);
	put(&b, &pkts[1], ECN_ECT1, 15 * MS); // as long, with the shift
	put(&b, &pkts[2], ECN_ECT1, 15 * MS + 1);
	ck_assert_uint_eq(aqm_take(&b, 16 * MS)->id, 1);
	ck_assert_uint_eq(aqm_take(&b, 16 * MS)->id, 0);
	ck_assert_uint_eq(aqm_take(&b, 16 * MS)->id, 2);
}

// Function laqm: nothing up to 800 us, all from 1200 us on, in between the part of the range; with
// `range: 0` a step.
TEST(the_ramp_marks_by_the_time_waited) {
	static const struct {
		const char *params;
		uint64_t waited_ns;
		double prob;
	} cases[] = {
		{"{}", 800 * US, 0},
		{"{}", 900 * US, 0.25},
		{"{}", 1100 * US, 0.75},
		{"{}", 1200 * US, 1},
		{"{}", 5 * MS, 1},
		{"{range: 0}", 800 * US, 0},
		{"{range: 0}", 800 * US + 1, 1},
		{"{threshold: 5ms, range: 10ms}", 7 * MS, 0.2},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct pkt *pkts = pkts_new(1001, 1000);
		struct aqm_bench b;
		uint32_t marks = 0;

		open_dualpi2(&b, cases[k].params);
		for (uint32_t i = 0; i < 1001; i++)
			put(&b, &pkts[i], ECN_ECT1, 1);
		for (uint32_t i = 0; i < 1000; i++)
			marks += aqm_take(&b, 1 + cases[k].waited_ns)->ecn == ECN_CE;
		ck_assert_double_eq(aqm_observed(&b, L4S), cases[k].prob);
		ck_assert_double_eq_tol(marks, 1000 * cases[k].prob, 1.5);
		// A lone packet is not marked: on a slow link it cannot wait less.
		ck_assert_uint_eq(aqm_take(&b, 1 + cases[k].waited_ns)->ecn, ECN_ECT1);
		ck_assert_uint_eq(b.drops.count, 0);
		aqm_close(&b);
		test_close(pkts);
	}
}

TEST(a_threshold_in_packets_or_bytes_is_a_step) {
	static const char *const params[] = {"{threshold: 4pkt}", "{threshold: 4000B}"};

	for (int k = 0; k < 2; k++) {
		struct pkt *pkts = pkts_new(10, 1000);
		struct aqm_bench b;

		open_dualpi2(&b, params[k]);
		for (uint32_t i = 0; i < 10; i++)
			put(&b, &pkts[i], ECN_ECT1, 1);
		for (uint32_t i = 0; i < 10; i++) // finds 10 - i, itself included
			ck_assert_uint_eq(aqm_take(&b, 2)->ecn, i < 6 ? ECN_CE : ECN_ECT1);
		aqm_close(&b);
		test_close(pkts);
	}
}

// p' of the first update is `base` if a packet is 10 ms old.
static void at_probability(struct aqm_bench *b, const char *params, double base) {
	char text[256];

	snprintf(text, sizeof(text),
		"{limit: 100000pkt, update: 10ms, alpha: 0.000001, beta: %.17g%s}", base * 100,
		params);
	open_dualpi2(b, text);
}

struct signals {
	double marked, dropped, sent;
};

// Of n packets that are 10 ms old at the first update, taken at that moment.
static struct signals sent_of(struct aqm_bench *b, enum ecn ecn, uint32_t n) {
	struct pkt *pkts = pkts_new(n, 1000), *p;
	struct signals s = {0};

	for (uint32_t i = 0; i < n; i++)
		put(b, &pkts[i], ecn, 0);
	while ((p = aqm_take(b, 10 * MS)) != NULL) {
		s.sent++;
		s.marked += (p->flags & PKT_MARKED) != 0;
	}
	s.dropped = b->drops.count;
	ck_assert_double_eq(s.sent + s.dropped, n);
	for (p = b->drops.head; p != NULL; p = p->next)
		NEED(p->drop_reason == DROP_AQM);
	test_close(pkts);
	return s;
}

// Equation (1): p_C = (p_CL / k)^2. With sums exactly, with draws as binomial distributions have
// it.
TEST(marks_and_drops_are_coupled) {
	static const char *const signals[] = {", derandomise: yes", ", derandomise: no"};
	static const uint32_t n = 50000;

	for (int k = 0; k < 2; k++)
		for (enum ecn ecn = ECN_NOT_ECT; ecn <= ECN_ECT0; ecn++) {
			double prob = ecn == ECN_ECT1 ? 2 * 0.2 : 0.2 * 0.2;
			double sd = k == 0 ? 1.5 : 5 * 0.5 * 224 /* sqrt(n) */;
			char params[128];
			struct aqm_bench b;
			struct signals s;

			snprintf(params, sizeof(params), "%s, threshold: 1s", signals[k]);
			at_probability(&b, params, 0.2);
			s = sent_of(&b, ecn, n);
			ck_assert_double_eq_tol(aqm_observed(&b, BASE), 0.2, 1e-6);
			ck_assert_double_eq_tol(
				(ecn == ECN_NOT_ECT ? s.dropped : s.marked), prob * n, sd);
			ck_assert_double_eq((ecn == ECN_NOT_ECT ? s.marked : s.dropped), 0);
			ck_assert(b.ops->random(b.q) == (k == 1));
			aqm_close(&b);
		}
}

// Appendix A.2: from p_CL = 1 on, L4S packets are dropped as classic ones are, and the rest of them
// marked; ECN saves no classic packet.
TEST(overload_drops) {
	static const uint32_t n = 10000;
	static const double base[] = {0.49, 0.51, 0.8};

	for (size_t k = 0; k < 3; k++)
		for (enum ecn ecn = ECN_NOT_ECT; ecn <= ECN_ECT0; ecn++) {
			bool drops = ecn == ECN_NOT_ECT || base[k] > 0.5;
			double classic = base[k] * base[k] * n;
			struct aqm_bench b;
			struct signals s;

			at_probability(&b, ", threshold: 1s", base[k]);
			s = sent_of(&b, ecn, n);
			ck_assert_double_eq_tol(s.dropped, (drops ? classic : 0), 2);
			if (ecn == ECN_ECT1)
				ck_assert_double_eq_tol(
					s.marked, (drops ? s.sent : 2 * base[k] * n), 2);
			else if (ecn == ECN_ECT0)
				ck_assert_double_eq_tol(s.marked, (drops ? 0 : classic), 2);
			aqm_close(&b);
		}
}

// Linux's other answer to overload: p' ends at 1 / k, and the queue fills up to its limit.
TEST(overflow_keeps_ecn) {
	struct aqm_bench b;
	struct signals s;

	at_probability(&b, ", overload: overflow, coupling: 4", 0.8);
	s = sent_of(&b, ECN_ECT0, 1600);
	ck_assert_double_eq(aqm_observed(&b, BASE), 0.25);
	ck_assert_double_eq(s.dropped, 0);
	ck_assert_double_eq_tol(s.marked, 1600 / 16, 1.5);
}

// After an overload the L4S queue is marked as rarely as before it.
TEST(overload_leaves_nothing_behind) {
	struct pkt *pkts = pkts_new(20000, 1000);
	struct aqm_bench b;
	uint64_t t_ns = 0;
	uint32_t n = 0, marks = 0;

	open_dualpi2(
		&b, "{limit: 100000pkt, update: 10ms, alpha: 0.000001, beta: 10, threshold: 1s}");
	for (; n < 10000; n++)
		put(&b, &pkts[n], ECN_ECT1, t_ns);
	t_ns = 100 * MS;
	while (aqm_take(&b, t_ns) != NULL)
		;
	ck_assert_uint_gt(b.drops.count, 9000);
	t_ns += 20 * MS; // p' is 0 again
	for (; n < 20000; n++) {
		put(&b, &pkts[n], ECN_ECT1, t_ns);
		marks += aqm_take(&b, t_ns)->ecn == ECN_CE;
	}
	ck_assert_double_le(aqm_observed(&b, BASE), 0);
	ck_assert_uint_eq(marks, 0);
}

// Whether a packet comes or not, updates happen at their times.
TEST(updates_do_not_depend_on_packets) {
	struct pkt *pkts = pkts_new(1002, 1000);
	struct aqm_bench often, once;

	open_dualpi2(&often, "{}");
	open_dualpi2(&once, "{}");
	put(&often, &pkts[0], ECN_ECT0, 7);
	put(&once, &pkts[1], ECN_ECT0, 7);
	for (uint32_t i = 0; i < 1000; i++)
		put(&often, &pkts[2 + i], ECN_ECT0, 7 + i * 100 * US);
	aqm_take(&often, 100 * MS);
	aqm_take(&once, 100 * MS);
	ck_assert_double_gt(aqm_observed(&once, BASE), 0.2);
	ck_assert_double_eq(aqm_observed(&often, BASE), aqm_observed(&once, BASE));
}

// The DSCP of a packet is the lower part of its flow's number here.
static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	return (struct pkt_headers){.dscp = (uint8_t)p->flow_id};
}
static const struct pkt_owner owner = {.headers = headers};

static void open_by_dscp(struct aqm_bench *b, const char *params) {
	struct aqm_env with = env;

	with.owner = &owner;
	ck_assert_msg(aqm_open(b, "dualpi2", params, &with) == 0, "%s", b->err.msg);
}

TEST(a_dscp_joins_the_l4s_queue) {
	struct pkt *pkts = pkts_new(4, 1000);
	struct aqm_bench b;

	open_by_dscp(&b, "{l4s_dscp: 45}");
	ck_assert(b.ops->headers(b.q));
	pkts[1].flow_id = 46;
	pkts[2].flow_id = 45;
	put(&b, &pkts[0], ECN_ECT0, 0);
	put(&b, &pkts[1], ECN_NOT_ECT, 0);
	put(&b, &pkts[2], ECN_NOT_ECT, 0);
	put(&b, &pkts[3], ECN_ECT1, 0);
	ck_assert_ptr_eq(aqm_take(&b, US), &pkts[2]);
	ck_assert_ptr_ne(aqm_take(&b, US), &pkts[2]);
	aqm_close(&b);

	open_by_dscp(&b, "{}");
	ck_assert(!b.ops->headers(b.q));
	put(&b, &pkts[0], ECN_ECT0, 0);
	put(&b, &pkts[2], ECN_NOT_ECT, 0);
	ck_assert_ptr_eq(aqm_take(&b, US), &pkts[0]);
}

// RFC 9332, section 2.5.1.1: the probability is one for a Classic control at the L4S queue's
// target. With p_L = 1 and k = 2 it is (1 / 2)^2: each fourth, from the fifth on, as the sum of
// appendix A must exceed 1.
TEST(classic_packets_in_the_l4s_queue_get_classic_signals) {
	static const struct {
		const char *params;
		enum ecn ecn;
		uint32_t drops, marks;
	} cases[] = {
		{"{l4s_dscp: 45, threshold: 1us, range: 0, min_pkts: 0}", ECN_NOT_ECT, 10, 0},
		{"{l4s_dscp: 45, threshold: 1us, range: 0, min_pkts: 0}", ECN_ECT0, 0, 10},
		{"{l4s_dscp: 45, threshold: 1us, range: 0, min_pkts: 0}", ECN_ECT1, 0, 41},
		{"{l4s_dscp: 45, threshold: 1us, range: 0, min_pkts: 0, classify: any_ect}",
			ECN_ECT0, 0, 41},
		{"{l4s_dscp: 45, threshold: 1us, range: 0, min_pkts: 0, coupling: 4}", ECN_NOT_ECT,
			2, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pkt *pkts = pkts_new(41, 1000), *p;
		uint32_t marks = 0;
		struct aqm_bench b;

		open_by_dscp(&b, cases[i].params);
		for (uint32_t k = 0; k < 41; k++) {
			pkts[k].flow_id = 45;
			put(&b, &pkts[k], cases[i].ecn, 0);
		}
		while ((p = aqm_take(&b, 2 * MS)) != NULL)
			marks += p->ecn == ECN_CE;
		ck_assert_msg(b.drops.count == cases[i].drops && marks == cases[i].marks,
			"%zu: %u drops, %u marks", i, b.drops.count, marks);
		aqm_close(&b);
		test_close(pkts);
	}
}

TEST(bad_parameters_are_refused_with_their_place) {
	static const struct {
		const char *params, *says;
	} cases[] = {
		{"{update: 500ns}", "update"},
		{"{limit: 100B}", "limit"},
		{"{coupling: -1}", "coupling"},
		{"{scheduler: drr}", "scheduler"},
		{"{threshold: 5}", "threshold"},
		{"{classify: dscp}", "classify"},
		{"{l4s_dscp: 64}", "l4s_dscp"},
		{"{l4s_dscp: 0}", "l4s_dscp"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct aqm_bench b;

		ck_assert_int_lt(aqm_open(&b, "dualpi2", cases[i].params, &env), 0);
		ck_assert_msg(strstr(b.err.msg, cases[i].says) != NULL, "%s", b.err.msg);
		aqm_close(&b);
	}
}

TEST(a_bdp_needs_a_round_trip) {
	struct aqm_env near = env;
	struct aqm_bench b;

	near.base_rtt_ns = 0;
	ck_assert_int_lt(aqm_open(&b, "dualpi2", "{threshold: 0.1BDP}", &near), 0);
	ck_assert_ptr_nonnull(strstr(b.err.msg, "threshold: a BDP needs a base RTT"));
}
