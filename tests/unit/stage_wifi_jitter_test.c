// SPDX-License-Identifier: BSD-3-Clause
// Waits for the medium: their two counts, their mean, and what leaves together.
#include "common/base/draw.h"
#include "switch_test.h"

#define WAITS 200000

// Sums of Poisson's probabilities: e^-1 = 0.36788, 0.73576; of mean 12, 0.46160 below 12 and
// 0.57597 up to it.
TEST(quantiles_of_poissons_distribution) {
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

// The wait of a packet that comes when none is inside.
static uint64_t wait_ns(struct stage_bench *b, uint64_t t_ns) {
	struct pkt one = {.size_bytes = 1000};

	stage_put(b, &one, t_ns);
	NEED(stage_take(b, t_ns + NS_PER_S) == &one);
	return one.arrival_ns - t_ns;
}

// By hand: a short wait has a mean of 1 - 0.5 (1 - e^-1) = 0.6839 ms, a long one of 90 - 3.75
// (1 - 13 e^-12) = 86.25 ms, and (7 - 1) / 84 = 1/14 of the packets have both. Five standard
// deviations of 23.4 ms over the root of their number are 0.26 ms; of the share without a wait,
// 0.0053. A whole number of milliseconds is one wait in 1e5, but for those of 0.
TEST(waits_have_their_mean_and_are_of_two_kinds) {
	struct stage_bench b = {.env = {.name = "forward.wifi_jitter", .run_seed = 1}};
	uint64_t sum_ns = 0, none = 0, whole = 0, lengthy = 0;

	ck_assert_int_eq(stage_open(&b, "{wifi_jitter: {}}"), 0);
	for (uint64_t i = 0; i < WAITS; i++) {
		uint64_t ns = wait_ns(&b, i * 2 * NS_PER_S);

		sum_ns += ns;
		none += ns == 0;
		whole += ns > 0 && ns % MS == 0;
		lengthy += ns > 15 * MS; // short ones are not, long ones all but e-4 are
	}
	ck_assert_double_eq_tol((double)sum_ns / WAITS / 1e6, 0.6839 + 86.25 / 14, 0.26);
	ck_assert_double_eq_tol((double)none / WAITS, 13.0 / 14 * exp(-1), 0.0053);
	ck_assert_double_eq_tol((double)lengthy / WAITS, 1.0 / 14, 0.0030);
	ck_assert_uint_lt(whole, 20);
}

TEST(a_small_jitter_has_short_waits_alone) {
	struct stage_bench b = {.env = {.name = "forward.wifi_jitter", .run_seed = 1}};
	uint64_t sum_ns = 0, longest_ns = 0;

	ck_assert_int_eq(stage_open(&b, "{wifi_jitter: {jitter: 1ms}}"), 0);
	for (uint64_t i = 0; i < WAITS; i++) {
		uint64_t ns = wait_ns(&b, i * 2 * NS_PER_S);

		sum_ns += ns;
		longest_ns = time_max(longest_ns, ns);
	}
	ck_assert_double_eq_tol((double)sum_ns / WAITS / 1e6, 0.6839, 5 * sqrt(1.0 / WAITS));
	ck_assert_uint_le(longest_ns, 12 * MS);
	stage_live(&b, "jitter", "0ms", 0);
	for (uint64_t i = WAITS; i < WAITS + 100; i++)
		NEED(wait_ns(&b, i * 2 * NS_PER_S) == 0);
}

// A packet each millisecond: none overtakes, none leaves early, and all behind one that waits long
// leave with it.
TEST(those_behind_a_long_wait_leave_with_it) {
	struct stage_bench b = {.env = {.name = "forward.wifi_jitter", .run_seed = 1}};
	enum { N = 1000 };
	struct pkt *pkts = pkts_new(N, 1000);
	uint64_t last_ns = 0;
	uint32_t together = 0, most = 0;

	ck_assert_int_eq(stage_open(&b, "{wifi_jitter: {max: 80ms}}"), 0);
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 0);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 80 * MS);
	for (uint64_t i = 0; i < N; i++)
		stage_put(&b, &pkts[i], i * MS);
	for (uint64_t i = 0; i < N; i++) {
		NEED(stage_take(&b, 2 * NS_PER_S) == &pkts[i]);
		NEED(pkts[i].arrival_ns >= i * MS && pkts[i].arrival_ns <= i * MS + 80 * MS);
		NEED(pkts[i].arrival_ns >= last_ns);
		together = pkts[i].arrival_ns == last_ns ? together + 1 : 0;
		most = together > most ? together : most;
		last_ns = pkts[i].arrival_ns;
	}
	ck_assert_uint_gt(most, 40);
}
