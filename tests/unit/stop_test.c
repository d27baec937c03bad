// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/stop.h"

#include "test.h"

#include <math.h>
#include <string.h>

static struct config *config;
static struct stop stop;
static struct err err;

static int open_stop(const char *text, uint64_t warmup_ns) {
	err.msg[0] = '\0';
	config = config_parse("test", text, strlen(text), &err);
	ck_assert_msg(config != NULL, "%s", err.msg);
	return stop_init(&stop, config_root(config), warmup_ns, &err);
}

TEST(without_a_rule_there_is_no_tick) {
	ck_assert_int_eq(open_stop("{seed: 1}", 0), 0);
	ck_assert_uint_eq(stop.next_ns, NEVER_NS);
	config_free(config);
	ck_assert_int_eq(open_stop("{stop: {metric: none, over: 1s}}", 0), 0);
	ck_assert_uint_eq(stop.next_ns, NEVER_NS);
	config_free(config);
}

TEST(the_papers_rule_is_the_default) {
	ck_assert_int_eq(open_stop("{stop: {}}", 300 * NS_PER_S), 0);
	ck_assert_int_eq(stop.metric, STOP_GOODPUT);
	ck_assert(stop.change == 0.01);
	ck_assert_uint_eq(stop.over_ns, 1200 * NS_PER_S);
	ck_assert_uint_eq(stop.next_ns, 360 * NS_PER_S);
	ck_assert(isnan(stop.moved));
	config_free(config);
}

TEST(ticks_are_exact_where_over_is_no_multiple) {
	uint64_t at_ns[3 * STOP_TICKS + 1] = {5};

	ck_assert_int_eq(open_stop("{stop: {over: 1000007ns}}", 5), 0);
	for (int k = 1; k <= 3 * STOP_TICKS; k++) {
		at_ns[k] = stop.next_ns;
		ck_assert_uint_eq(at_ns[k], 5 + (uint64_t)k * 1000007 / 20);
		if (k >= STOP_TICKS) // what it is compared with is `over` ago to the nanosecond
			ck_assert_uint_eq(at_ns[k] - at_ns[k - STOP_TICKS], 1000007);
		ck_assert(!stop_put(&stop, ldexp(1, k)));
		if (k <= STOP_TICKS)
			ck_assert(isnan(stop.moved));
		else
			ck_assert(stop.moved == 1048575); // 2^20 times what it was
	}
	config_free(config);
}

// Gives M(k) until the rule ends the run or k is 1000; returns k.
static int settles_at(const char *text, double (*m)(int k)) {
	int k = 0;

	ck_assert_msg(open_stop(text, 0) == 0, "%s", err.msg);
	while (++k < 1000 && !stop_put(&stop, m(k)))
		ck_assert_uint_ne(stop.next_ns, NEVER_NS);
	ck_assert(stop.settled == (k < 1000));
	ck_assert(stop.settled == (stop.next_ns == NEVER_NS));
	config_free(config);
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

TEST(bad_rules_are_one_sentence) {
	static const struct {
		const char *text, *sentence;
	} bad[] = {
		{"{stop: {metric: rtt}}",
			"test:1:17: metric: 'rtt' is not one of none, goodput, "
			"jfi, cwnd_reductions, drops"},
		{"{stop: {change: 0}}", "test:1:17: change: 0 is not in [1e-9, 1]"},
		{"{stop: {over: 20}}", "test:1:15: over: '20' is not a time such as 20ms"},
		{"{stop: {over: 25h}}", "test:1:15: over: 25h is not in [1ms, 24h]"},
		{"{stop: {chnge: 1%}}",
			"test:1:9: stop: unknown key 'chnge'; did you mean 'change'?"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_int_lt(open_stop(bad[i].text, 0), 0);
		ck_assert_str_eq(err.msg, bad[i].sentence);
		config_free(config);
	}
}
