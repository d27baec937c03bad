// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

#include <math.h>

#define TIMES 500000 // in each state

struct times {
	double good[TIMES], bad[TIMES]; // ns
};

// The times in both states: a frame of 12 s and more is always on the wire, so that the next event
// is a change.
static void observe(const char *params, struct times *t) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2000, 1518);
	uint64_t now_ns = 0, since_ns = 0;
	uint32_t good = 0, bad = 0;
	char text[256];

	snprintf(text, sizeof(text),
		"{markov_link: {good: 1.001kbit, bad: 1kbit, queue: {fifo: {limit: 2000pkt}}, %s}}",
		params);
	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	for (int i = 0; i < 2000; i++)
		stage_put(&b, &pkts[i], 0);
	while (good < TIMES || bad < TIMES) {
		const struct stage_stats *s = b.ops->figures->read(b.st, now_ns);
		bool was_bad = s->rate_bps == 1000;

		now_ns = b.ops->next_ns(b.st);
		while (stage_take(&b, now_ns) != NULL)
			;
		if (s->rate_since_ns == since_ns)
			continue;
		double ns = (double)(s->rate_since_ns - since_ns);

		since_ns = s->rate_since_ns;
		if (was_bad && bad < TIMES)
			t->bad[bad++] = ns;
		if (!was_bad && good < TIMES)
			t->good[good++] = ns;
	}
	stage_close(&b);
	test_close(pkts);
}

static int order(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

// Kolmogorov and Smirnov's distance to the exponential distribution, times sqrt(n): 1.95 is p =
// 0.001.
static double ks(double *ns, double mean_ns) {
	double far = 0;

	qsort(ns, TIMES, sizeof(*ns), order);
	for (int i = 0; i < TIMES; i++) {
		double cdf = 1 - exp(-ns[i] / mean_ns);

		far = fmax(far, fmax(cdf - (double)i / TIMES, (double)(i + 1) / TIMES - cdf));
	}
	return far * sqrt(TIMES);
}

TEST(times_are_exponential) {
	struct times *t = malloc(sizeof(*t));

	observe("good_mean: 5ms, bad_mean: 2ms", t);
	ck_assert_double_lt(ks(t->good, 5e6), 1.95);
	ck_assert_double_lt(ks(t->bad, 2e6), 1.95);
	free(t);
}

// Pearson's statistic over the numbers of slots 1 to 30 and above; 59.7 is p = 0.001 for 30 degrees
// of freedom.
static double chi_square(const double *ns, double slot_ns, double mean_ns) {
	double p = slot_ns / mean_ns, left = 1, sum = 0;
	uint32_t count[32] = {0};

	for (int i = 0; i < TIMES; i++) {
		double slots = ns[i] / slot_ns;

		NEED(slots >= 1 && !(floor(slots) < slots));
		count[slots > 30 ? 31 : (int)slots]++;
	}
	for (int k = 1; k <= 31; k++) {
		double part = k <= 30 ? left * p : left, want = part * TIMES;

		sum += ((double)count[k] - want) * ((double)count[k] - want) / want;
		left -= part;
	}
	return sum;
}

TEST(times_are_geometric) {
	struct times *t = malloc(sizeof(*t));

	observe("distribution: geometric, slot: 1ms, good_mean: 8ms, bad_mean: 5ms", t);
	ck_assert_double_lt(chi_square(t->good, 1e6, 8e6), 59.7);
	ck_assert_double_lt(chi_square(t->bad, 1e6, 5e6), 59.7);
	observe("distribution: geometric, slot: 5ms, good_mean: 5ms, bad_mean: 5ms", t);
	for (int i = 0; i < TIMES; i++)
		NEED(!(t->good[i] < 5e6 || t->good[i] > 5e6));
	free(t);
}

// 9 of 10 at 100 Mbit/s, and no more when it is down: 2000 cycles of 100 ms, whose share has a
// deviation of 0.2 %.
TEST(outages_are_counted) {
	struct stage_bench b = {.env = {.base_rtt_ns = MS}};
	uint64_t end_ns = 200 * NS_PER_S;

	ck_assert_int_eq(
		stage_open(&b,
			"{markov_link: {good: 100Mbit, bad: 0, good_mean: 90ms, bad_mean: 10ms}}"),
		0);
	b.ops->figures->serve(b.st, end_ns, &b.drops);
	struct stats_totals t = stats_totals(b.ops->figures->read(b.st, end_ns), end_ns);
	ck_assert_double_eq_tol((double)t.down_ns / (double)end_ns, 0.1, 0.01);
	ck_assert(t.capacity == (stats_u128)(end_ns - t.down_ns) * 100000000);
	stage_close(&b);
	ck_assert_int_lt(stage_open(&b,
				 "{markov_link: {good: 1Mbit, bad: 0, slot: 200ms, "
				 "distribution: geometric}}"),
		0);
	ck_assert_str_eq(b.err.msg, "slot: longer than the mean time in a state");
}
