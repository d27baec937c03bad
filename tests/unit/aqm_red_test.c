// SPDX-License-Identifier: BSD-3-Clause
// RED against tests/vectors/red.csv and ared.csv (the papers' formulas), and its regions one by
// one.
#include "switch_test.h"
#include "vectors.h"

#include <math.h>

#define S (1000 * MS)
#define AVERAGE 0
#define PROBABILITY 1
#define MAX_P 2
#define COUNT 3

// A packet of 1000 B takes 100 us.
static const struct aqm_env env = {
	.rate_bps = 80000000,
	.base_rtt_ns = 50 * MS,
	.mtu_bytes = 1000,
	.seed = 1,
};

static void open_red(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "red", params, &env) == 0, "%s", b->err.msg);
}

TEST(average_is_that_of_the_paper) {
	struct pkt *pkts = pkts_new((1u << 18) + 1000, 1000);
	struct aqm_bench b = {0};
	struct vectors v;
	uint32_t n = 0;

	vectors_open(&v, "red");
	while (vectors_next(&v)) {
		uint64_t now_ns = (uint64_t)v.column[0];

		if (v.begins) {
			if (b.q != NULL)
				aqm_close(&b);
			open_red(&b, "{limit: 1000000pkt, min: 500000pkt, weight: 0.002}");
			n = 0;
		}
		for (int i = 0; i < (int)v.column[1]; i++)
			b.ops->enqueue(b.q, &pkts[n++], now_ns, &b.drops);
		for (int i = 0; i < (int)v.column[2]; i++)
			NEED(b.ops->dequeue(b.q, now_ns, &b.drops) != NULL);
		if (!vectors_same(aqm_observed(&b, AVERAGE), v.column[3]))
			ck_abort_msg("%s, row %u: %.17g is not %.17g", v.scenario, v.rows,
				aqm_observed(&b, AVERAGE), v.column[3]);
	}
	ck_assert_uint_eq(b.drops.count, 0);
	ck_assert_double_gt(
		aqm_observed(&b, AVERAGE), 261000); // the last scenario holds 2^18 packets
}

// With a weight of 1 the average is the queue that an arrival finds: keeps `packets` in the queue
// and lets one arrive.
struct spare {
	struct pkt_list list;
};

static void offer(struct aqm_bench *b, struct spare *s, uint64_t now_ns) {
	b->ops->enqueue(b->q, pkt_list_pop(&s->list), now_ns, &b->drops);
	pkt_list_join(&s->list, &b->drops);
}

static void hold(struct aqm_bench *b, struct spare *s, uint64_t packets, uint64_t now_ns) {
	while (b->ops->backlog(b->q).pkts < packets)
		offer(b, s, now_ns);
	while (b->ops->backlog(b->q).pkts > packets)
		pkt_list_push(&s->list, b->ops->dequeue(b->q, now_ns, &b->drops));
}

static struct pkt *spare_new(struct spare *s, uint32_t n) {
	struct pkt *pkts = pkts_new(n, 1000);

	*s = (struct spare){0};
	for (uint32_t i = 0; i < n; i++)
		pkt_list_push(&s->list, &pkts[i]);
	return pkts;
}

TEST(max_p_adapts_as_in_the_paper) {
	struct spare s;
	struct aqm_bench b = {0};
	struct vectors v;
	uint64_t now_ns = 0;

	spare_new(&s, 100);
	vectors_open(&v, "ared");
	while (vectors_next(&v)) {
		if (v.begins) {
			if (b.q != NULL) {
				hold(&b, &s, 0, now_ns);
				aqm_close(&b);
			}
			open_red(&b,
				"{limit: 100pkt, min: 5pkt, max: 15pkt, weight: 1, "
				"max_p: 0.105, adaptive: yes}");
			now_ns = 1;
		}
		hold(&b, &s, (uint64_t)v.column[1], now_ns);
		offer(&b, &s, now_ns); // it finds them
		NEED(aqm_observed(&b, AVERAGE) == v.column[1]);
		now_ns += 500 * MS;
		offer(&b, &s, now_ns);
		if (!vectors_same(aqm_observed(&b, MAX_P), v.column[2]))
			ck_abort_msg("%s, interval %g: %.17g is not %.17g", v.scenario, v.column[0],
				aqm_observed(&b, MAX_P), v.column[2]);
	}
	hold(&b, &s, 0, now_ns);
}

// After a long time without an arrival all the changes of max_p are made, in bounded time.
TEST(max_p_after_an_age) {
	struct spare s;
	struct aqm_bench b;

	spare_new(&s, 10);
	open_red(&b, "{limit: 100pkt, min: 5pkt, weight: 1, adaptive: yes, interval: 1us}");
	offer(&b, &s, UINT64_C(1) << 62);
	ck_assert_double_lt(aqm_observed(&b, MAX_P), 0.01);
	ck_assert_double_ge(aqm_observed(&b, MAX_P), 0.009);
	offer(&b, &s, (UINT64_C(1) << 62) + S);
	ck_assert_double_ge(aqm_observed(&b, MAX_P), 0.009);
}

// Whether each of `n` packets that find `packets` is dropped.
static uint32_t drops_of(struct aqm_bench *b, struct spare *s, uint64_t packets, uint32_t n) {
	uint32_t drops = 0;

	for (uint32_t i = 0; i < n; i++) {
		hold(b, s, packets, 1);
		offer(b, s, 1);
		drops += b->ops->backlog(b->q).pkts == packets;
	}
	return drops;
}

TEST(probability_in_each_region) {
	static const struct {
		const char *more;
		uint64_t packets;
		double probability;
	} cases[] = {
		{"gentle: yes", 4, 0}, {"gentle: yes", 5, 0}, {"gentle: yes", 10, 0.01},
		{"gentle: yes", 15, 0.02}, {"gentle: yes", 24, 0.02 + 0.98 * 9 / 15},
		{"gentle: yes", 30, 1}, {"gentle: no", 14, 0.018}, {"gentle: no", 15, 1},
		{"min: 5kB, max: 15kB", 10, 0.01}, // in bytes
		{"min: 500us, max: 1500us", 10, 0.01}, // in time, at the link's rate
		{"min: 0.01BDP, max: 0.03BDP", 10, 0.01},
		{"max: 15pkt, min: 0pkt", 10, 0.01}, // min = max / 3
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct spare s;
		struct pkt *pkts = spare_new(&s, 100);
		struct aqm_bench b;
		char params[256];

		snprintf(params, sizeof(params), "{limit: 100pkt, max_p: 0.02, weight: 1, %s%s}",
			cases[k].more,
			strstr(cases[k].more, "m") == cases[k].more ? ""
								    : ", min: 5pkt, max: 15pkt");
		open_red(&b, params);
		if (cases[k].probability < 1) {
			hold(&b, &s, cases[k].packets, 0);
			offer(&b, &s, 0);
			ck_assert_double_eq_tol(
				aqm_observed(&b, PROBABILITY), cases[k].probability, 1e-9);
		} else {
			hold(&b, &s, cases[k].packets - 1, 0);
			while (b.ops->backlog(b.q).pkts < cases[k].packets)
				offer(&b, &s, 0);
			ck_assert_uint_eq(drops_of(&b, &s, cases[k].packets, 50), 50);
		}
		aqm_close(&b);
		test_close(pkts);
	}
}

// Section 7 of the paper, method 2: the gap is uniform on 1 ... 1 / p_b.
TEST(gaps_between_drops_are_uniform) {
	struct spare s;
	uint32_t seen[101] = {0}, gap = 0, drops = 0;
	struct aqm_bench b;

	spare_new(&s, 100);
	open_red(&b, "{limit: 100pkt, min: 5pkt, max: 15pkt, max_p: 0.02, weight: 1}");
	hold(&b, &s, 10, 0);
	while (drops < 100 * 400) {
		offer(&b, &s, 0);
		gap++;
		if (b.ops->backlog(b.q).pkts == 10) {
			ck_assert_uint_le(gap, 100);
			seen[gap > 100 ? 100 : gap] += drops > 0;
			drops++;
			gap = 0;
		} else {
			pkt_list_push(&s.list, b.ops->dequeue(b.q, 0, &b.drops));
		}
	}
	double chi2 = 0;
	for (int i = 1; i <= 100; i++)
		chi2 += pow((double)seen[i] - 400, 2) / 400;
	ck_assert_double_lt(chi2, 148.2); // 99 degrees of freedom, p = 0.001
}

// As Linux's red without `harddrop`: nothing that is ECN capable is dropped, however long the
// queue.
TEST(ecn_marks_above_max) {
	struct spare s;
	struct pkt *pkts = spare_new(&s, 100);
	struct aqm_bench b;
	uint32_t marks = 0;

	open_red(&b, "{limit: 100pkt, min: 5pkt, max: 15pkt, max_p: 0.5, weight: 1, ecn: yes}");
	for (int i = 0; i < 100; i++)
		pkts[i].ecn = i % 2 > 0 ? ECN_ECT0 : ECN_ECT1;
	hold(&b, &s, 40, 0);
	ck_assert_uint_eq(drops_of(&b, &s, 40, 50), 0);
	for (int i = 0; i < 100; i++)
		marks += pkts[i].ecn == ECN_CE;
	ck_assert_uint_ge(marks, 50);
	for (int i = 0; i < 100; i++)
		pkts[i].ecn = ECN_NOT_ECT;
	ck_assert_uint_eq(drops_of(&b, &s, 40, 50), 50);
}

TEST(harddrop_marks_below_max_and_drops_above) {
	struct spare s;
	struct pkt *pkts = spare_new(&s, 100);
	struct aqm_bench b;
	uint32_t marks = 0;

	open_red(&b,
		"{limit: 100pkt, min: 5pkt, max: 15pkt, max_p: 0.5, weight: 1, ecn: yes, "
		"harddrop: yes}");
	for (int i = 0; i < 100; i++)
		pkts[i].ecn = i % 2 > 0 ? ECN_ECT0 : ECN_ECT1;
	ck_assert_uint_eq(drops_of(&b, &s, 14, 30), 0);
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq((pkts[i].flags & PKT_MARKED) != 0, pkts[i].ecn == ECN_CE);
		marks += pkts[i].ecn == ECN_CE;
	}
	ck_assert_uint_gt(marks, 5);
	hold(&b, &s, 29, 0);
	ck_assert_uint_gt(drops_of(&b, &s, 29, 50), 40);
	// Those that are not ECN capable are dropped below max too.
	for (int i = 0; i < 100; i++)
		pkts[i].ecn = ECN_NOT_ECT;
	ck_assert_uint_gt(drops_of(&b, &s, 14, 50), 10);
}

TEST(below_min_the_count_starts_again) {
	struct spare s;
	struct aqm_bench b;

	spare_new(&s, 100);
	open_red(&b, "{limit: 100pkt, min: 5pkt, max: 15pkt, max_p: 0.001, weight: 1}");
	ck_assert_double_eq(aqm_observed(&b, COUNT), -1);
	hold(&b, &s, 9, 0); // packets that found 5, 6, 7 and 8
	ck_assert_double_eq(aqm_observed(&b, COUNT), 3);
	hold(&b, &s, 4, 0);
	offer(&b, &s, 0);
	ck_assert_double_eq(aqm_observed(&b, COUNT), -1);
}

// ARED, section 5: 80 Mbit/s are 10000 packets/s; 10 ms of delay are 100 packets, between 50 and
// 150.
TEST(parameters_follow_the_rate) {
	struct spare s;
	struct pkt *pkts = spare_new(&s, 200);
	struct aqm_bench b;

	open_red(&b, "{limit: 1000pkt, target: 10ms}");
	offer(&b, &s, 0);
	offer(&b, &s, 0); // finds one packet
	ck_assert_double_eq_tol(aqm_observed(&b, AVERAGE), 1 - exp(-1e-4), 1e-15);
	aqm_close(&b);

	open_red(&b, "{limit: 1000pkt, target: 10ms, weight: 1, max_p: 0.02}");
	hold(&b, &s, 101, 0); // the last one found 100
	ck_assert_double_eq_tol(aqm_observed(&b, PROBABILITY), 0.01, 1e-12);
	aqm_close(&b);

	open_red(&b, "{limit: 1000pkt, target: 1us, weight: 1, max_p: 0.02}"); // at least 5
	for (int i = 0; i < 98; i++)
		pkt_list_push(&s.list, &pkts[i]);
	hold(&b, &s, 11, 0);
	ck_assert_double_eq_tol(aqm_observed(&b, PROBABILITY), 0.01, 1e-12);
}

TEST(thresholds_that_cannot_be_are_refused) {
	static const struct {
		const char *params, *message;
	} cases[] = {
		{"{limit: 100pkt, min: 10pkt, max: 10pkt}", "max: must be above min"},
		{"{limit: 100pkt, min: 10pkt, max: 30kB}", "max: give it in packets if min is"},
		{"{limit: 100pkt, min: 1BDP}", "min: a BDP needs a base RTT"},
		{"{limit: 10B}", "limit: no full-sized frame fits"},
	};
	struct aqm_env no_rtt = env;

	no_rtt.base_rtt_ns = 0;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct aqm_bench b;

		ck_assert_int_lt(aqm_open(&b, "red", cases[k].params, &no_rtt), 0);
		ck_assert_msg(strncmp(b.err.msg, cases[k].message, strlen(cases[k].message)) == 0,
			"%s", b.err.msg);
		aqm_close(&b);
	}
}
