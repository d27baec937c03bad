// SPDX-License-Identifier: BSD-3-Clause
// Waits for the medium: their two counts, their mean, and what leaves together.
#include "common/base/draw.h"
#include "switch_test.h"

#define WAITS 200000

// Sums of Poisson's probabilities: e^-1 = 0.36788, 0.73576; of mean 12, 0.46160 below 12 and
// 0.57597 up to it.
START_TEST(quantiles_of_poissons_distribution) {
	ck_assert_uint_eq(quantile_poisson(0, 1), 0);
	ck_assert_uint_eq(quantile_poisson(0.3678, 1), 0);
	ck_assert_uint_eq(quantile_poisson(0.3679, 1), 1);
	ck_assert_uint_eq(quantile_poisson(0.7357, 1), 1);
	ck_assert_uint_eq(quantile_poisson(0.7358, 1), 2);
	ck_assert_uint_eq(quantile_poisson(0.4615, 12), 11);
	ck_assert_uint_eq(quantile_poisson(0.4617, 12), 12);
	ck_assert_uint_eq(quantile_poisson(0.5760, 12), 13);
	ck_assert_uint_eq(quantile_poisson(0.5, 0), 0);
	ck_assert_uint_eq(quantile_poisson(0.5, 500), 500);
	ck_assert_uint_lt(quantile_poisson(1 - 0x1.0p-53, 500), 800);
}
END_TEST

// The wait of a packet that comes when none is inside.
static uint64_t wait_ns(struct stage_bench *b, uint64_t t_ns) {
	struct pkt one = {.size_bytes = 1000};

	stage_put(b, &one, t_ns);
	NEED(stage_take(b, t_ns + NS_PER_S) == &one);
	return one.arrival_ns - t_ns;
}

// S = 1 ms, L = 90 ms: 6/89 of the waits are long. Five standard deviations of 23.3 ms over the
// root of their number are 0.26 ms; of the share without a wait, 0.0053.
START_TEST(waits_have_their_mean_and_are_of_two_kinds) {
	struct stage_bench b = {.env = {.name = "forward.wifi_jitter", .run_seed = 1}};
	uint64_t sum_ns = 0, none = 0;

	ck_assert_int_eq(stage_open(&b, "{wifi_jitter: {}}"), 0);
	for (uint64_t i = 0; i < WAITS; i++) {
		uint64_t ns = wait_ns(&b, i * 2 * NS_PER_S);

		NEED(ns % MS == 0 || ns % (7500 * US) == 0);
		sum_ns += ns;
		none += ns == 0;
	}
	ck_assert_double_eq_tol((double)sum_ns / WAITS / 1e6, 7, 0.26);
	ck_assert_double_eq_tol((double)none / WAITS, 83.0 / 89 * exp(-1), 0.0053);
	stage_close(&b);
}
END_TEST

// Below S there are no long ones: a count of mean 0.5.
START_TEST(a_small_mean_has_short_waits_alone) {
	struct stage_bench b = {.env = {.name = "forward.wifi_jitter", .run_seed = 1}};
	uint64_t sum_ns = 0, longest_ns = 0;

	ck_assert_int_eq(stage_open(&b, "{wifi_jitter: {mean: 500us}}"), 0);
	for (uint64_t i = 0; i < WAITS; i++) {
		uint64_t ns = wait_ns(&b, i * 2 * NS_PER_S);

		sum_ns += ns;
		longest_ns = time_max(longest_ns, ns);
	}
	ck_assert_double_eq_tol((double)sum_ns / WAITS / 1e6, 0.5, 5 * sqrt(0.5 / WAITS));
	ck_assert_uint_le(longest_ns, 12 * MS);
	stage_live(&b, "mean", "0ms", 0);
	for (uint64_t i = WAITS; i < WAITS + 100; i++)
		NEED(wait_ns(&b, i * 2 * NS_PER_S) == 0);
	stage_close(&b);
}
END_TEST

// What comes during a wait leaves at its end; what comes at its end has a wait of its own.
START_TEST(those_that_wait_leave_together) {
	struct stage_bench b = {.env = {.name = "forward.wifi_jitter", .run_seed = 1}};
	struct pkt *pkts = pkts_new(4, 1000);
	uint64_t t_ns = 0, ns;

	ck_assert_int_eq(stage_open(&b, "{wifi_jitter: {mean: 90ms, max: 80ms}}"), 0);
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 0);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 80 * MS);
	while ((ns = wait_ns(&b, t_ns)) != 80 * MS)
		t_ns += NS_PER_S;
	t_ns += NS_PER_S;
	stage_put(&b, &pkts[0], t_ns);
	uint64_t end_ns = b.ops->next_ns(b.st);
	ck_assert_uint_gt(end_ns, t_ns + MS);
	stage_put(&b, &pkts[1], t_ns + MS);
	stage_put(&b, &pkts[2], end_ns - 1);
	ck_assert_ptr_null(stage_take(&b, end_ns - 1));
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(stage_take(&b, end_ns), &pkts[i]);
	stage_put(&b, &pkts[3], end_ns);
	ck_assert_uint_gt(b.ops->next_ns(b.st), end_ns);
	stage_close(&b);
	free(pkts);
}
END_TEST

START_TEST(long_waits_are_longer) {
	struct stage_bench b = {0};

	ck_assert_int_lt(stage_open(&b, "{wifi_jitter: {long_count: 0.1}}"), 0);
	ck_assert_str_eq(b.err.msg, "long_interval, long_count: no longer than short waits");
	stage_close(&b);
}
END_TEST

TEST_MAIN(quantiles_of_poissons_distribution, waits_have_their_mean_and_are_of_two_kinds,
	a_small_mean_has_short_waits_alone, those_that_wait_leave_together, long_waits_are_longer)
