// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/stop.h"

#include "test_config.h"

#include <math.h>
#include <string.h>

static struct stop stop;
static struct err err;

static int open_stop(const char *text, uint64_t warmup_ns) {
	err.msg[0] = '\0';
	return stop_init(&stop, config_root(test_config("test", text, &err)), warmup_ns, &err);
}

TEST(without_a_rule_there_is_no_tick) {
	ck_assert_int_eq(open_stop("{seed: 1}", 0), 0);
	ck_assert_uint_eq(stop.next_ns, NEVER_NS);
	ck_assert_int_eq(open_stop("{stop: {metric: none, over: 1s}}", 0), 0);
	ck_assert_uint_eq(stop.next_ns, NEVER_NS);
}

TEST(the_papers_rule_is_the_default) {
	ck_assert_int_eq(open_stop("{stop: {}}", 300 * NS_PER_S), 0);
	ck_assert_uint_eq(stop.metrics, 1 << STOP_GOODPUT);
	ck_assert_str_eq(stop.names, "goodput");
	ck_assert(stop.change == 0.01);
	ck_assert_uint_eq(stop.over_ns, 1200 * NS_PER_S);
	ck_assert_uint_eq(stop.next_ns, 360 * NS_PER_S);
	ck_assert(isnan(stop.moved));
}

// Gives every metric the value m over a time of 1.
static bool put(double m) {
	struct stop_sum sum[STOP_METRICS_COUNT];

	for (int i = 0; i < STOP_METRICS_COUNT; i++)
		sum[i] = (struct stop_sum){m, 1};
	return stop_put(&stop, sum);
}

TEST(ticks_are_exact_where_over_is_no_multiple) {
	uint64_t at_ns[3 * STOP_TICKS + 1] = {5};

	ck_assert_int_eq(open_stop("{stop: {over: 1000007ns}}", 5), 0);
	for (int k = 1; k <= 3 * STOP_TICKS; k++) {
		at_ns[k] = stop.next_ns;
		ck_assert_uint_eq(at_ns[k], 5 + (uint64_t)k * 1000007 / 20);
		if (k >= STOP_TICKS) // what it is compared with is `over` ago to the nanosecond
			ck_assert_uint_eq(at_ns[k] - at_ns[k - STOP_TICKS], 1000007);
		ck_assert(!put(ldexp(1, k)));
		if (k <= STOP_TICKS)
			ck_assert(isnan(stop.moved));
		else
			ck_assert(stop.moved == 1048575); // 2^20 times what it was
	}
}

// Gives M(k) until the rule ends the run or k is 1000; returns k.
static int settles_at(const char *text, double (*m)(int k)) {
	int k = 0;

	ck_assert_msg(open_stop(text, 0) == 0, "%s", err.msg);
	while (++k < 1000 && !put(m(k)))
		ck_assert_uint_ne(stop.next_ns, NEVER_NS);
	ck_assert(stop.settled == (k < 1000));
	ck_assert(stop.settled == (stop.next_ns == NEVER_NS));
	return k;
}

static double constant(int k) {
	return 7;
}

static double nothing(int k) {
	return 0;
}

static double approach(int k) { // 1 - 1/(k + 1): moves by less than 20/k^2
	return 1 - 1.0 / (k + 1);
}

static double fall(int k) { // as 1/k: moves by 20/k
	return 1.0 / k;
}

static double late(int k) {
	return k < 30 ? 0 : 3;
}

TEST(settled_by_hand) {
	// The first value with another `over` before it.
	ck_assert_int_eq(settles_at("{stop: {}}", constant), 21);
	// M(k)/M(k-20) - 1 = 20/((k + 1)(k - 20)) < 0.01 from k = 56: 20/(57 * 36) = 0.0097.
	ck_assert_int_eq(settles_at("{stop: {}}", approach), 56);
	// 1 - (k - 20)/k = 20/k < 10 % from k = 201.
	ck_assert_int_eq(settles_at("{stop: {change: 10%}}", fall), 201);
	// 0 has not settled; the first 3 with a 3 before it is at 50.
	ck_assert_int_eq(settles_at("{stop: {}}", nothing), 1000);
	ck_assert_int_eq(settles_at("{stop: {}}", late), 50);
}

TEST(all_metrics_of_a_list_settle) {
	int k = 0;

	ck_assert_int_eq(open_stop("{stop: {metric: [drops, jfi]}}", 0), 0);
	ck_assert_str_eq(stop.names, "drops, jfi");
	for (bool settled = false; !settled; k++) {
		const struct stop_sum sum[STOP_METRICS_COUNT] = {
			[STOP_JFI] = {k < 30 ? 0 : 2, 1}, [STOP_DROPS] = {7, 7}};

		settled = stop_put(&stop, sum);
	}
	ck_assert_int_eq(k, 51); // the first jfi of 2 with a 2 before it
}

// Sums of what is 1 and 3 in turn, over a time of 1 each: the mean is 2, and batches of 1 have a
// correlation of -1, which counts as 0. half-width = t(n - 1) sqrt(n / (n - 1)) / sqrt(n) / 2.
TEST(confidence_by_hand) {
	struct stop_sum sum[STOP_METRICS_COUNT] = {0};
	double t19 = 2.0930, half;
	int k = 0;

	ck_assert_int_eq(open_stop("{stop: {confidence: 95%, change: 10%}}", 0), 0);
	for (bool settled = false; !settled; k++) {
		ck_assert(k <= 20 || !isnan(stop.half_width));
		sum[STOP_GOODPUT].num += k % 2 == 0 ? 1 : 3;
		sum[STOP_GOODPUT].den++;
		settled = stop_put(&stop, sum);
		if (k == 18)
			ck_assert(isnan(stop.half_width));
		half = t19 * sqrt(20.0 / 19) / sqrt(20) / 2;
		if (k == 19)
			ck_assert_double_eq_tol(stop.half_width, half, 1e-5);
	}
	// With 40 the half-width is still 16 %; then batches of 2 have no variance at all.
	ck_assert_int_eq(k, 41);
	ck_assert(stop.half_width == 0);
	ck_assert(isnan(stop.moved));
}

TEST(bad_rules_are_one_sentence) {
	static const struct {
		const char *text, *sentence;
	} bad[] = {
		{"{stop: {metric: rtt}}",
			"test:1:17: metric: 'rtt' is not one of none, goodput, jfi, "
			"cwnd_reductions, "
			"drops, share, delay"},
		{"{stop: {metric: [jfi, rtt]}}",
			"test:1:23: metric: 'rtt' is not one of none, goodput, jfi, "
			"cwnd_reductions, "
			"drops, share, delay"},
		{"{stop: {metric: []}}", "test:1:17: metric: the list is empty"},
		{"{stop: {metric: [[jfi]]}}",
			"test:1:18: metric: a name is wanted, or a list of names"},
		{"{stop: {metric: [none, jfi]}}", "test:1:18: metric: none stands alone"},
		{"{stop: {metric: [jfi, drops, jfi]}}", "test:1:30: metric: jfi is there twice"},
		{"{stop: {confidence: 95}}",
			"test:1:21: confidence: 95 is not 0 or in [50%, 99.9%]"},
		{"{stop: {metric: [drops, jfi], confidence: 95%}}",
			"test:1:17: metric: jfi has no confidence: Jain's index of a part of the "
			"run is not a part of that of the whole; leave out confidence"},
		{"{stop: {change: 0}}", "test:1:17: change: 0 is not in [1e-9, 1]"},
		{"{stop: {over: 20}}", "test:1:15: over: '20' is not a time such as 20ms"},
		{"{stop: {over: 25h}}", "test:1:15: over: 25h is not in [1ms, 24h]"},
		{"{stop: {chnge: 1%}}",
			"test:1:9: stop: unknown key 'chnge'; did you mean 'change'?"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_lt(open_stop(bad[i].text, 0), 0);
		ck_assert_str_eq(err.msg, bad[i].sentence);
	}
}
