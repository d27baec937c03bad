// SPDX-License-Identifier: BSD-3-Clause
// Draws of base RTTs against the distributions that are written, by Kolmogorov and Smirnov's test.
#include "common/config/base_rtt.h"
#include "statistics.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define FLOWS 100000

struct world {
	struct config *config;
	struct flows flows;
	struct base_rtts rtts;
	struct err err;
};

static int try_draw(struct world *w, const char *groups, uint64_t seed, uint64_t duration_ns) {
	struct config_node *list;
	char text[1024];
	int rc;

	*w = (struct world){.config = NULL};
	snprintf(text, sizeof(text), "flows: [%s]\n", groups);
	w->config = config_parse("x.yaml", text, strlen(text), &w->err);
	ck_assert_msg(w->config != NULL, "%s", w->err.msg);
	list = config_get(config_root(w->config), "flows");
	if ((rc = flows_read(&w->flows, list, &w->err)) < 0)
		return rc;
	return base_rtts_init(&w->rtts, &w->flows, list, seed, duration_ns, &w->err);
}

static struct world drawn(const char *groups, uint64_t seed) {
	struct world w;

	ck_assert_msg(try_draw(&w, groups, seed, 0) == 0, "%s", w.err.msg);
	return w;
}

static void close_world(struct world *w) {
	base_rtts_free(&w->rtts);
	config_free(w->config);
}

// Distribution functions in ms, with min 10 and max as ctx says.
static double uniform_cdf(double x, const void *ctx) {
	return (x - 10) / 90;
}

static double log_uniform_cdf(double x, const void *ctx) {
	return log(x / 4) / log(50);
}

static double phi(double x) {
	return erfc(-x * M_SQRT1_2) / 2;
}

// Of mean 50 and standard deviation 30, between 10 and 100.
static double normal_cdf(double x, const void *ctx) {
	double low = phi(-40.0 / 30), high = phi(50.0 / 30);

	return (phi((x - 50) / 30) - low) / (high - low);
}

// 10 and an exponential number of mean 40, up to 200.
static double exponential_cdf(double x, const void *ctx) {
	return (1 - exp(-(x - 10) / 40)) / (1 - exp(-190.0 / 40));
}

// Of shape 1.5 from 10 on, up to 1000.
static double pareto_cdf(double x, const void *ctx) {
	return (1 - pow(10 / x, 1.5)) / (1 - pow(0.01, 1.5));
}

TEST(draws_have_their_distribution) {
	static const struct {
		const char *written;
		double (*cdf)(double x, const void *ctx);
	} laws[] = {
		{"{uniform: {min: 10ms, max: 100ms}}", uniform_cdf},
		{"{log_uniform: {min: 4ms, max: 200ms}}", log_uniform_cdf},
		{"{normal: {mean: 50ms, sd: 30ms, min: 10ms, max: 100ms}}", normal_cdf},
		{"{exponential: {mean: 50ms, min: 10ms, max: 200ms}}", exponential_cdf},
		{"{pareto: {min: 10ms, shape: 1.5, max: 1s}}", pareto_cdf},
	};
	static double ms[FLOWS];

	for (size_t i = 0; i < sizeof(laws) / sizeof(laws[0]); i++) {
		char groups[200];

		snprintf(groups, sizeof(groups), "{count: %d, base_rtt: %s}", FLOWS,
			laws[i].written);
		struct world w = drawn(groups, 7);
		for (uint32_t k = 0; k < FLOWS; k++)
			ms[k] = (double)w.rtts.flow_ns[k] / 1e6;
		double p = ks_test(ms, FLOWS, laws[i].cdf, laws[i].cdf, NULL);
		ck_assert_msg(p > P_LEAST, "%s: p = %g", laws[i].written, p);
		// ks_test has sorted them.
		const struct base_rtt_group *g = &w.rtts.group[0];
		ck_assert_double_eq_tol((double)g->min_ns / 1e6, ms[0], 1e-9);
		ck_assert_double_eq_tol((double)g->median_ns / 1e6, ms[(FLOWS - 1) / 2], 1e-9);
		ck_assert_double_eq_tol((double)g->max_ns / 1e6, ms[FLOWS - 1], 1e-9);
		close_world(&w);
	}
}

// Whatever else there is: more flows in the group, other groups before and after it, another place
// with the same name.
TEST(a_draw_depends_on_no_other_flow) {
#define MANY "{count: %u, name: far, base_rtt: {uniform: {min: 10ms, max: 100ms}}}"
	struct world few, many;
	char text[300];

	snprintf(text, sizeof(text), MANY, 10);
	few = drawn(text, 3);
	snprintf(text, sizeof(text), "{count: 5}, " MANY ", {count: 7, base_rtt: 30ms}", 1000);
	many = drawn(text, 3);
	for (uint32_t i = 0; i < 10; i++)
		ck_assert_uint_eq(many.rtts.flow_ns[5 + i], few.rtts.flow_ns[i]);
	ck_assert_uint_eq(many.rtts.group[1].first, 5);
	ck_assert_uint_eq(many.rtts.flow_ns[4], 0);
	ck_assert_uint_eq(many.rtts.flow_ns[1005], 30 * MS);
	ck_assert_ptr_null(many.rtts.group[2].law);
	ck_assert_uint_eq(many.rtts.group[2].max_ns, 30 * MS);
	close_world(&many);

	// Without names the place counts; and the seed always does.
	snprintf(text, sizeof(text), "%s, %s",
		"{count: 10, base_rtt: {uniform: {min: 10ms, max: 100ms}}}",
		"{count: 10, base_rtt: {uniform: {min: 10ms, max: 100ms}}}");
	many = drawn(text, 3);
	for (uint32_t i = 0; i < 10; i++) {
		ck_assert_uint_ne(many.rtts.flow_ns[i], many.rtts.flow_ns[10 + i]);
		ck_assert_uint_ne(many.rtts.flow_ns[i], few.rtts.flow_ns[i]);
	}
	close_world(&few);
	few = drawn(text, 4);
	for (uint32_t i = 0; i < 20; i++)
		ck_assert_uint_ne(many.rtts.flow_ns[i], few.rtts.flow_ns[i]);
	close_world(&many);
	close_world(&few);
}

TEST(groups_of_one_name_have_draws_of_their_own) {
	struct world alone, both;
	char text[300];

	snprintf(text, sizeof(text), MANY, 10);
	alone = drawn(text, 3);
	snprintf(text, sizeof(text), MANY ", " MANY, 10, 10);
	both = drawn(text, 3);
	for (uint32_t i = 0; i < 10; i++) {
		ck_assert_uint_eq(both.rtts.flow_ns[i], alone.rtts.flow_ns[i]);
		ck_assert_uint_ne(both.rtts.flow_ns[10 + i], both.rtts.flow_ns[i]);
	}
	close_world(&alone);
	close_world(&both);
}

// Two of three numbers are 20: a third of the flows has 5.5 ms. 1 means 1 ms, unless `unit` says
// otherwise.
TEST(a_table_is_drawn_from) {
	char path[] = "/tmp/base_rtt_XXXXXX", text[200];
	uint64_t low = 0, count = FLOWS;
	int fd = mkstemp(path);
	FILE *out = fdopen(fd, "w");

	fputs("# measured\n20 5.5\n20\n", out);
	fclose(out);
	snprintf(text, sizeof(text), "{count: %d, base_rtt: {table: {file: %s}}}", FLOWS, path);
	struct world w = drawn(text, 1);
	for (uint32_t i = 0; i < count; i++) {
		ck_assert(w.rtts.flow_ns[i] == 20 * MS || w.rtts.flow_ns[i] == 5500000);
		low += w.rtts.flow_ns[i] == 5500000;
	}
	ck_assert(normal_p(((double)low - FLOWS / 3.0) / sqrt(FLOWS * 2.0 / 9)) > P_LEAST);
	ck_assert_uint_eq(w.rtts.group[0].least_ns, 5500000);
	close_world(&w);

	snprintf(text, sizeof(text), "{base_rtt: {table: {file: %s, unit: 1us}}}", path);
	w = drawn(text, 1);
	ck_assert_uint_le(w.rtts.flow_ns[0], 20000);
	close_world(&w);

	out = fopen(path, "w");
	fputs("20 -3\n", out);
	fclose(out);
	snprintf(text, sizeof(text), "{base_rtt: {table: {file: %s}}}", path);
	ck_assert_int_lt(try_draw(&w, text, 1, 0), 0);
	ck_assert_msg(
		strstr(w.err.msg, "base RTTs of -3 to 20 ms are not in") != NULL, "%s", w.err.msg);
	close_world(&w);
	remove(path);
}

TEST(what_is_no_distribution_is_refused) {
	static const struct {
		const char *written, *sentence;
	} bad[] = {
		{"{uniform: {min: 20ms, max: 10ms}}",
			"x.yaml:1:57: uniform: max: 10 ms is less than min, 20 ms"},
		{"{uniform: {min: 20ms}}", "uniform: max is required"},
		{"{uniform: {min: -5ms, max: 10ms}}", "x.yaml:1:46: min: "},
		{"{normal: {mean: 50ms, sd: 1ms, min: 60ms}}",
			"normal: less than 1 % of the draws would lie between min, 60 ms"},
		{"{exponential: {mean: 50ms, min: 60ms}}",
			"exponential: mean: 50 ms is not more than min, 60 ms"},
		{"{pareto: {min: 10ms, shape: 0}}", "shape: 0 is not in"},
		{"{cauchy: {}}", "base_rtt: 'cauchy' is not a distribution; there is uniform, "},
		{"{uniform: {min: 1ms, max: 2ms}, normal: {}}", "one name is wanted"},
		{"uniform", "base_rtt: 'uniform' is not a time"},
		{"[1ms]", "base_rtt: a single value is wanted, not a list"},
		{"{table: {}}", "file is required"},
		{"{uniform: {min: 10ms, max: 90s}}", "max: 90s is not in [1ns, 60s]"},
		{"{uniform: {min: 5s, max: 6s}}",
			"x.yaml:1:30: base_rtt: 5"}, // and some ms: longer than the run
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct world w;
		char text[200];

		snprintf(text, sizeof(text), "{count: 3, base_rtt: %s}", bad[i].written);
		ck_assert_msg(try_draw(&w, text, 1, UINT64_C(5000000000)) < 0, "%s", text);
		ck_assert_msg(
			strstr(w.err.msg, bad[i].sentence) != NULL, "%s: %s", text, w.err.msg);
		close_world(&w);
	}
}
