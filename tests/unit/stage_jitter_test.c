// SPDX-License-Identifier: BSD-3-Clause
// Jitter against theory: distributions and correlations of a million delays, and departures against
// a sorted list.
#include "statistics.h"
#include "switch_test.h"

#define PKTS 1000000

static double delay[PKTS]; // of packet after packet, in spreads of 1 ms from a mean of 5 ms

// One packet after the other, gap_ns apart.
static void draw(const char *text, uint64_t gap_ns) {
	struct stage_bench b = {.env = {.name = "forward.jitter", .run_seed = 1}};

	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	for (uint32_t i = 0; i < PKTS; i++) {
		struct pkt one = {.size_bytes = 1000, .arrival_ns = i * gap_ns}, *p = &one;

		b.ops->push(b.st, &p, 1, &b.drops);
		NEED(b.ops->pop(b.st, i * gap_ns + 1000 * MS, &p, 1, &b.drops) == 1);
		delay[i] = ((double)(one.arrival_ns - i * gap_ns) - 5e6) / 1e6;
	}
	ck_assert_uint_eq(b.drops.count, 0);
	stage_close(&b);
}

static double uniform_cdf(double x, const void *ctx) {
	return x < -1 ? 0 : x > 1 ? 1 : (x + 1) / 2;
}

static double normal_cdf(double x, const void *ctx) {
	return erfc(-x * M_SQRT1_2) / 2;
}

// Of shape *ctx, with mean 0 and standard deviation 1: E[P] = s / (s - 1), Var[P] = s / ((s - 1)^2
// (s - 2)).
static double pareto_cdf(double x, const void *ctx) {
	double s = *(const double *)ctx;
	double p = s / (s - 1) + x * sqrt(s / (s - 2)) / (s - 1);

	return p < 1 ? 0 : 1 - pow(p, -s);
}

// Cut at 20 spreads above the mean: all that is beyond lies there.
static double pareto_cut(double x, const void *ctx) {
	return x >= 20 ? 1 : pareto_cdf(x, ctx);
}

static double normal_cut(double x, const void *ctx) {
	return x < -1 ? 0 : x >= 1.5 ? 1 : normal_cdf(x, ctx);
}

static double normal_cut_below(double x, const void *ctx) {
	return x <= -1 ? 0 : normal_cdf(x, ctx);
}

static void delays_are(const char *text, uint64_t gap_ns, double (*cdf)(double, const void *),
	double (*below)(double, const void *), const void *ctx) {
	draw(text, gap_ns);
	double p = ks_test(delay, PKTS, cdf, below, ctx);
	ck_assert_msg(p > P_LEAST, "%s: p = %g", text, p);
}

TEST(independent_delays_have_their_distribution) {
	double three = 3, four = 4.5;

	delays_are("{jitter: {mean: 5ms, spread: 1ms, distribution: uniform}}", 1, uniform_cdf,
		uniform_cdf, NULL);
	delays_are("{jitter: {mean: 5ms, spread: 1ms}}", 1, normal_cdf, normal_cdf, NULL);
	delays_are("{jitter: {mean: 5ms, spread: 1ms, distribution: pareto}}", 1, pareto_cut,
		pareto_cdf, &three);
	delays_are("{jitter: {mean: 5ms, spread: 1ms, distribution: pareto, shape: 4.5}}", 1,
		pareto_cut, pareto_cdf, &four);
}

// At times 20 half-lives apart the correlation is 1e-6: the delays are as good as independent.
TEST(correlated_delays_have_it_too) {
	double three = 3;

	delays_are("{jitter: {mean: 5ms, spread: 1ms, distribution: uniform, half_life: 1us}}",
		20000, uniform_cdf, uniform_cdf, NULL);
	delays_are("{jitter: {mean: 5ms, spread: 1ms, half_life: 1us}}", 20000, normal_cdf,
		normal_cdf, NULL);
	delays_are("{jitter: {mean: 5ms, spread: 1ms, distribution: pareto, half_life: 1us}}",
		20000, pareto_cut, pareto_cdf, &three);
}

// Half the packets or so are cut at either end: the distribution jumps there.
TEST(delays_are_cut_at_zero_and_max) {
	struct stage_bench b = {0};

	draw("{jitter: {mean: 1ms, spread: 1ms, max: 2500us}}", 1);
	for (uint32_t i = 0; i < PKTS; i++)
		delay[i] += 4; // from a mean of 1 ms
	ck_assert_double_gt(ks_test(delay, PKTS, normal_cut, normal_cut_below, NULL), P_LEAST);
	ck_assert_double_eq(delay[0], -1);
	ck_assert_double_eq(delay[PKTS - 1], 1.5);
	ck_assert_int_eq(stage_open(&b, "{jitter: {mean: 1ms, spread: 1ms, max: 2500us}}"), 0);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 2500 * US);
}

static void table_file(const char *content, char name[64]) {
	strcpy(name, "/tmp/weir-jitter-XXXXXX");
	FILE *f = fdopen(mkstemp(name), "w");
	ck_assert_ptr_nonnull(f);
	fputs(content, f);
	fclose(f);
}

TEST(a_table_gives_each_of_its_numbers_as_often) {
	static const double value[] = {-8192, -4096, 0, 8192, 12288};
	static const double chance[] = {0.2, 0.2, 0.2, 0.3, 0.1};
	static const char *const half_life[] = {"0ns", "1us"};
	char name[64], text[256];

	table_file("# ten numbers, in any order\n8192 -8192 12288 -4096\n0 8192\n-8192 -4096 0 "
		   "8.192e3\n",
		name);
	for (int k = 0; k < 2; k++) {
		uint64_t count[5] = {0};

		snprintf(text, sizeof(text),
			"{jitter: {mean: 5ms, spread: 1ms, distribution: table, file: %s, "
			"half_life: %s}}",
			name, half_life[k]);
		draw(text, 20000);
		for (uint32_t i = 0; i < PKTS; i++) {
			uint32_t which = 0;

			while (which < 4 && delay[i] * 8192 > value[which] + 1)
				which++;
			NEED(fabs(delay[i] * 8192 - value[which]) < 1e-3);
			count[which]++;
		}
		ck_assert_double_gt(bins_p(count, chance, 5), P_LEAST);
	}
	remove(name);
}

// A file of delays in us, as the head of jitter.c writes it: the largest is a thousand spreads.
TEST(a_table_is_not_cut_at_a_number_of_spreads) {
	char name[64], text[256];
	uint64_t least_ns = NEVER_NS, most_ns = 0;
	struct stage_bench b = {.env = {.run_seed = 1}};

	table_file("10 1000", name);
	snprintf(text, sizeof(text),
		"{jitter: {mean: 0ms, spread: 1us, distribution: table, file: %s, scale: 1}}",
		name);
	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	remove(name);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), MS);
	for (uint64_t i = 0; i < 100; i++) {
		struct pkt one = {.size_bytes = 100};

		stage_put(&b, &one, i * MS);
		ck_assert_ptr_eq(stage_take(&b, i * MS + MS), &one);
		least_ns = time_min(least_ns, one.arrival_ns - i * MS);
		most_ns = time_max(most_ns, one.arrival_ns - i * MS);
	}
	ck_assert_uint_eq(least_ns, 10 * US);
	ck_assert_uint_eq(most_ns, MS);
}

// Of the three numbers of a table, in any order in the file, delays that are correlated move to the
// next larger or smaller one.
TEST(a_table_is_in_order_for_correlated_delays) {
	char name[64], text[256];

	table_file("0 8192 -8192", name);
	snprintf(text, sizeof(text),
		"{jitter: {mean: 5ms, spread: 1ms, distribution: table, file: %s, "
		"half_life: 10ms}}",
		name);
	draw(text, US);
	for (uint32_t i = 1; i < PKTS; i++)
		NEED(fabs(delay[i] - delay[i - 1]) < 1.5);
	remove(name);
}

// With many seeds, at a time much shorter than a half-life.
TEST(the_first_correlated_delay_has_the_distribution) {
	const char *text = "{jitter: {mean: 5ms, spread: 1ms, half_life: 1s}}";
	uint32_t n = 2000;

	for (uint32_t i = 0; i < n; i++) {
		struct stage_bench b = {.env = {.run_seed = i}};
		struct pkt one = {.size_bytes = 100};

		ck_assert_int_eq(stage_open(&b, text), 0);
		stage_put(&b, &one, 1000);
		NEED(stage_take(&b, 1000 * MS) == &one);
		delay[i] = ((double)(one.arrival_ns - 1000) - 5e6) / 1e6;
		stage_close(&b);
	}
	ck_assert_double_gt(ks_test(delay, n, normal_cdf, normal_cdf, NULL), P_LEAST);
}

// The correlation of normal delays that are `lag` packets apart, each a quarter of a half-life:
// 2^(-lag/4). The variance of its estimate is Bartlett's for a first-order autoregression (JRSS
// Suppl. 8, 1946).
TEST(correlation_halves_once_per_half_life) {
	static const int lags[] = {1, 2, 4, 8, 16, 60};
	double a = exp2(-0.25), mean = 0, var = 0;

	draw("{jitter: {mean: 5ms, spread: 1ms, half_life: 4us}}", 1000);
	for (uint32_t i = 0; i < PKTS; i++)
		mean += delay[i] / PKTS;
	for (uint32_t i = 0; i < PKTS; i++)
		var += (delay[i] - mean) * (delay[i] - mean) / PKTS;
	for (size_t k = 0; k < sizeof(lags) / sizeof(lags[0]); k++) {
		int lag = lags[k];
		double both = 0, rho = pow(a, lag), sq = rho * rho;
		double bartlett = (1 + a * a) * (1 - sq) / (1 - a * a) - 2 * lag * sq;

		for (uint32_t i = 0; i + (uint32_t)lag < PKTS; i++)
			both += (delay[i] - mean) * (delay[i + (uint32_t)lag] - mean) / PKTS;
		double z = (both / var - rho) / sqrt(bartlett / PKTS);
		ck_assert_msg(normal_p(z) > P_LEAST, "lag %d: %g, not %g: %.1f standard deviations",
			lag, both / var, rho, z);
	}
}

// Two uniform numbers made of normal ones of correlation r have 6/pi asin(r/2) (Pearson 1907).
// Pairs are taken 25 half-lives apart.
TEST(correlation_of_uniform_delays_is_pearsons) {
	double want = 6 / M_PI * asin(exp2(-0.5) / 2), n = 0, sum = 0, squares = 0;

	draw("{jitter: {mean: 5ms, spread: 1ms, distribution: uniform, half_life: 4us}}", 1000);
	for (uint32_t i = 0; i + 2 < PKTS; i += 100, n++) {
		double both = 3 * delay[i] * delay[i + 2]; // the variance is 1/3

		sum += both;
		squares += both * both;
	}
	double mean = sum / n;
	double z = (mean - want) / sqrt((squares / n - mean * mean) / n);
	ck_assert_msg(normal_p(z) > P_LEAST, "%g, not %g", mean, want);
}

// Packets 100 us apart with a spread of 1 ms: one is overtaken by the next if its delay is 100 us
// longer; the difference of two delays has the standard deviation sqrt(2 (1 - a)) spreads.
TEST(order_mostly_survives_correlation) {
	static const double half_lives_us[] = {0, 100, 10000, 1e6};
	double overtaken[4];

	for (int k = 0; k < 4; k++) {
		double h = half_lives_us[k], a = h > 0 ? exp2(-100 / h) : 0;
		double want = normal_cdf(-0.1 / sqrt(2 * (1 - a)), NULL), n = 0, count = 0;
		uint32_t apart = h > 0 ? (uint32_t)(h / 100 * 20) + 2 : 2;
		char text[128];

		snprintf(text, sizeof(text), "{jitter: {mean: 5ms, spread: 1ms, half_life: %gus}}",
			h);
		draw(text, 100 * US);
		for (uint32_t i = 0; i + 1 < PKTS; i += apart, n++)
			count += delay[i] > delay[i + 1] + 0.1;
		double z = (count - n * want) / sqrt(n * want * (1 - want) + 1e-9);
		ck_assert_msg(
			normal_p(z) > P_LEAST, "half-life %g us: %g, not %g", h, count / n, want);
		overtaken[k] = want;
	}
	ck_assert_double_gt(overtaken[0], 0.47); // half of all
	ck_assert_double_lt(overtaken[2], 0.2);
	ck_assert_double_lt(overtaken[3], 1e-15); // none
}

TEST(packets_of_one_moment_have_one_delay) {
	draw("{jitter: {mean: 5ms, spread: 1ms, half_life: 1ms}}", 0);
	for (uint32_t i = 1; i < PKTS; i++)
		NEED(delay[i] == delay[0]);
}

#define MANY 200000

// Departures of packets with random arrivals, taken now and then, against what the first run saw
// after each push.
static void play(const char *text, struct want *want, struct pkt *pkts, bool check) {
	struct stage_bench b = {.env = {.run_seed = 3}};
	struct rng rng;
	uint64_t t = 0;
	uint32_t next = 0;

	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	rng_init(&rng, 1, "arrivals");
	for (uint32_t i = 0; i < MANY; i++) {
		t += rng_u64(&rng) % 4 * 700;
		stage_put(&b, &pkts[i], t);
		if (!check)
			want[i] = (struct want){pkts[i].release_ns, t, i};
		if (!check || i % 5000 < 2500)
			continue;
		for (struct pkt *p; (p = stage_take(&b, t)) != NULL; next++)
			NEED(p->id == want[next].id && p->arrival_ns == want[next].out_ns);
		if (next <= i && want[next].id <= i)
			NEED(b.ops->next_ns(b.st) == want[next].out_ns);
		else
			NEED(b.ops->next_ns(b.st) > t);
	}
	for (struct pkt *p; (p = stage_take(&b, NEVER_NS - 1)) != NULL; next++)
		NEED(!check || (p->id == want[next].id && p->arrival_ns == want[next].out_ns));
	ck_assert_uint_eq(next, MANY);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	stage_close(&b);
}

TEST(packets_leave_in_the_order_of_a_sorted_list) {
	static const char *const texts[] = {
		"{jitter: {mean: 1ms, spread: 300us}}",
		"{jitter: {mean: 1us, spread: 700ns, distribution: uniform}}",
		"{jitter: {mean: 50ms, spread: 50ms, distribution: pareto, ahead: 10%, gap: 3}}",
		"{jitter: {mean: 2ms, spread: 1ms, half_life: 50us}}",
		"{jitter: {mean: 3ms, spread: 0ms}}",
	};
	static struct want want[MANY];
	struct pkt *pkts = pkts_new(MANY, 100);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		play(texts[i], want, pkts, false);
		qsort(want, MANY, sizeof(want[0]), want_order);
		play(texts[i], want, pkts, true);
	}
}

// The same draws with reordering and without: no packet leaves before one that came before it.
TEST(without_reordering_packets_wait_for_those_before) {
	static struct want want[MANY];
	struct pkt *pkts = pkts_new(MANY, 100);
	uint64_t last_ns = 0;

	play("{jitter: {mean: 1ms, spread: 300us, ahead: 5%}}", want, pkts, false);
	for (uint32_t i = 0; i < MANY; i++)
		last_ns = want[i].out_ns = want[i].out_ns > last_ns ? want[i].out_ns : last_ns;
	play("{jitter: {mean: 1ms, spread: 300us, ahead: 5%, reordering: forbidden}}", want, pkts,
		true);
}

// The group with a base RTT of 50 ms more does not hold up the other; each group's packets are in
// order.
TEST(without_reordering_a_group_does_not_wait_for_a_longer_base_rtt) {
	static const uint64_t extra[] = {50 * MS, 0};
	static const uint32_t order[] = {1, 3, 0, 2};
	struct stage_bench b = {.env = {.class_extra_ns = extra, .class_count = 2}};
	struct pkt *pkts = pkts_new(4, 100);

	ck_assert_int_eq(
		stage_open(&b, "{jitter: {mean: 2ms, spread: 0ms, reordering: forbidden}}"), 0);
	for (uint32_t i = 0; i < 4; i++) {
		pkts[i].delay_class = i % 2;
		stage_put(&b, &pkts[i], i * US);
	}
	for (uint32_t i = 0; i < 4; i++) {
		struct pkt *p = stage_take(&b, 100 * MS);

		ck_assert_uint_eq(p->id, order[i]);
		ck_assert_uint_eq(p->arrival_ns, p->id * US + 2 * MS + extra[p->delay_class]);
	}
}

TEST(a_share_of_packets_is_sent_ahead) {
	double ahead = 0;

	draw("{jitter: {mean: 10ms, spread: 0ms, ahead: 2%}}", US);
	for (uint32_t i = 0; i < PKTS; i++) {
		NEED(delay[i] == -5 || delay[i] == 5);
		ahead += delay[i] < 0;
	}
	ck_assert_double_gt(normal_p((ahead - 0.02 * PKTS) / sqrt(PKTS * 0.02 * 0.98)), P_LEAST);
}

// `reorder 100% gap 5` of tc-netem(8): "every 5th packet is reordered reliably". One packet per
// millisecond, delayed by 2.5 ms: the fifth leaves at its arrival, before the third and the fourth.
TEST(with_a_gap_every_nth_packet_is_ahead) {
	static const uint32_t order[] = {0, 1, 4, 2, 3, 5, 6, 9, 7, 8, 10, 11, 14, 12, 13};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(15, 100);

	ck_assert_int_eq(
		stage_open(&b, "{jitter: {mean: 2500us, spread: 0ms, ahead: 100%, gap: 5}}"), 0);
	ck_assert(!b.ops->needs->random(b.st)); // nothing depends on a draw
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 0);
	for (uint32_t i = 0; i < 15; i++)
		stage_put(&b, &pkts[i], i * MS);
	for (uint32_t i = 0; i < 15; i++) {
		struct pkt *p = stage_take(&b, 100 * MS);

		ck_assert_uint_eq(p->id, order[i]);
		ck_assert_uint_eq(p->arrival_ns, p->id * MS + (p->id % 5 == 4 ? 0 : 2500 * US));
	}
	// A shorter gap holds at once: two packets were delayed since the last.
	stage_put(&b, &pkts[0], 20 * MS);
	stage_put(&b, &pkts[1], 21 * MS);
	stage_live(&b, "gap", "3", 22 * MS);
	stage_put(&b, &pkts[2], 22 * MS);
	ck_assert_ptr_eq(stage_take(&b, 22 * MS), &pkts[2]);
}

// `reorder 25% gap 5`: four packets are delayed, each after them is ahead with a chance of 1/4.
// From one that is ahead to the next it is 5 + k packets with a chance of 0.25 * 0.75^k, 8 on
// average.
TEST(behind_a_gap_each_packet_may_be_ahead) {
	enum { GAPS = 30 };
	double count[GAPS + 1] = {0}, all = 0, chi = 0;
	uint32_t since = 0;

	draw("{jitter: {mean: 10ms, spread: 0ms, ahead: 25%, gap: 5}}", US);
	for (uint32_t i = 0; i < PKTS; i++) {
		since++;
		if (delay[i] > 0)
			continue;
		NEED(since >= 5);
		count[since - 5 < GAPS ? since - 5 : GAPS]++;
		all++;
		since = 0;
	}
	for (int k = 0; k <= GAPS; k++) {
		double want = all * pow(0.75, k) * (k < GAPS ? 0.25 : 1);

		chi += (count[k] - want) * (count[k] - want) / want;
	}
	ck_assert_double_gt(chi_square_p(chi, GAPS), P_LEAST);
	// Their distance has the variance 0.75 / 0.25^2 = 12.
	ck_assert_double_gt(normal_p((PKTS - 8 * all) / sqrt(12 * all)), P_LEAST);
}

TEST(a_full_stage_drops_with_a_reason_of_its_own) {
	struct stage_bench b = {.env = {.max_pkts = 3}};
	struct pkt *pkts = pkts_new(7, 100);

	ck_assert_int_eq(stage_open(&b, "{jitter: {mean: 10ns, spread: 0ms}}"), 0);
	for (uint32_t i = 0; i < 6; i++)
		stage_put(&b, &pkts[i], i * 4); // 0, 4, 8 | 12 (0 left at 10), 16, 20
	ck_assert_uint_eq(b.drops.count, 0);
	stage_put(&b, &pkts[6], 20); // 12, 16 and 20 are inside
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_uint_eq(pkts[6].drop_reason, DROP_DELAY_FULL);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 10);
	ck_assert_ptr_null(stage_take(&b, 9));
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_ptr_eq(stage_take(&b, 1000), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, i * 4 + 10);
	}
}

TEST(the_shortest_delay_is_known) {
	static const struct {
		const char *text;
		uint64_t min_ns, max_ns;
		bool random;
	} cases[] = {
		{"{jitter: {mean: 5ms, spread: 1ms}}", 0, 25 * MS, true},
		{"{jitter: {mean: 5ms, spread: 1ms, distribution: uniform}}", 4 * MS, 25 * MS,
			true},
		{"{jitter: {mean: 1ms, spread: 3ms, distribution: uniform}}", 0, 61 * MS, true},
		{"{jitter: {mean: 5ms, spread: 0ms}}", 5 * MS, 5 * MS, false},
		{"{jitter: {mean: 5ms, spread: 0ms, ahead: 1%}}", 0, 5 * MS, true},
		{"{jitter: {mean: 5ms, spread: 0ms, ahead: 100%}}", 0, 5 * MS, false},
		{"{jitter: {mean: 5ms, spread: 1ms, distribution: uniform, max: 2ms}}", 2 * MS,
			2 * MS, true},
		// E[P] = 1.5, sd(P) = sqrt(0.75): the smallest x is -0.5 / 0.8660.
		{"{jitter: {mean: 5ms, spread: 1ms, distribution: pareto}}", 4422649, 25 * MS,
			true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};

		ck_assert_int_eq(stage_open(&b, cases[i].text), 0);
		ck_assert_uint_eq(b.ops->delay->min_ns(b.st), cases[i].min_ns);
		ck_assert_int_eq(b.ops->needs->random(b.st), cases[i].random);
		ck_assert_uint_eq(b.ops->delay->max_ns(b.st), cases[i].max_ns);
		stage_close(&b);
	}
}

TEST(changes_apply_from_the_next_packet_on) {
	static const uint64_t extra[] = {0, 7 * MS};
	struct stage_bench b = {.env = {.class_extra_ns = extra, .class_count = 2}};
	struct pkt *pkts = pkts_new(4, 100);
	static const uint64_t out_ms[] = {10, 3, 10, 6};

	ck_assert_int_eq(stage_open(&b, "{jitter: {mean: 10ms, spread: 0ms}}"), 0);
	ck_assert(!b.ops->needs->random(b.st));
	stage_put(&b, &pkts[0], 0);
	stage_live(&b, "mean", "2ms", MS);
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 2 * MS);
	stage_put(&b, &pkts[1], MS);
	pkts[2].delay_class = 1;
	stage_put(&b, &pkts[2], MS);
	stage_put(&b, &pkts[3], 4 * MS);
	for (int k = 0; k < 4; k++) {
		struct pkt *p = stage_take(&b, 20 * MS);

		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq(p->arrival_ns, out_ms[p->id] * MS);
	}
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 9 * MS);
	stage_live(&b, "spread", "1ms", 30 * MS);
	ck_assert(b.ops->needs->random(b.st));
}

TEST(what_is_not_a_table_is_refused) {
	static const char *const contents[][2] = {
		{"1 2\nx3 4\n", ":2: not a number"},
		{"1 2\n\n3 inf\n", ":3: not a number"},
		{"# nothing\n", ":2: no number in it"},
		{"1111111111111111111111111111111111111111111111111111111111111111111111",
			":1: a word that is too long"},
	};
	struct stage_bench b = {0};

	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		char name[64], text[256], want[256];

		table_file(contents[i][0], name);
		b = (struct stage_bench){0};
		snprintf(text, sizeof(text),
			"{jitter: {mean: 5ms, spread: 1ms, distribution: table, file: %s}}", name);
		ck_assert_int_lt(stage_open(&b, text), 0);
		snprintf(want, sizeof(want), "file: %s%s", name, contents[i][1]);
		ck_assert_msg(strstr(b.err.msg, want) != NULL, "%s", b.err.msg);
		stage_close(&b);
		remove(name);
	}
	b = (struct stage_bench){0};
	ck_assert_int_lt(
		stage_open(&b, "{jitter: {mean: 5ms, spread: 1ms, distribution: table}}"), 0);
	ck_assert_msg(strstr(b.err.msg, "file is required") != NULL, "%s", b.err.msg);
	stage_close(&b);
	b = (struct stage_bench){0};
	ck_assert_int_lt(stage_open(&b, "{jitter: {mean: 5ms, spread: 1ms, file: x}}"), 0);
	ck_assert_msg(
		strstr(b.err.msg, "is for distribution: table alone") != NULL, "%s", b.err.msg);
}
