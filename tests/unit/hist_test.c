// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/hist.h"

#include "common/base/rng.h"
#include "test.h"

#include <math.h>

#define SAMPLES 20000

static struct hist hist;
static uint64_t samples[SAMPLES];

static int by_value(const void *a, const void *b) {
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

TEST(buckets_tile_the_range) {
	ck_assert_uint_eq(hist_bucket_low(0), 0);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_bucket_low(i);
		uint64_t next = i + 1 < HIST_BUCKETS ? hist_bucket_low(i + 1)
						     : UINT64_C(1) << HIST_MAX_BITS;
		ck_assert_uint_lt(low, next);
		ck_assert_uint_eq(hist_bucket(low), i);
		ck_assert_uint_eq(hist_bucket(next - 1), i);
		ck_assert_uint_le((next - low - 1) * 32, low);
	}
	ck_assert_uint_eq(hist_bucket(UINT64_C(1) << HIST_MAX_BITS), HIST_BUCKETS - 1);
	ck_assert_uint_eq(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
}

static void check_quantiles(uint32_t n) {
	static const double qs[] = {0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0};

	qsort(samples, n, sizeof(samples[0]), by_value);
	for (size_t k = 0; k < sizeof(qs) / sizeof(qs[0]); k++) {
		uint64_t rank = (uint64_t)ceil(qs[k] * n);
		uint64_t exact = samples[rank == 0 ? 0 : rank - 1];
		uint64_t got = hist_quantile(&hist, qs[k]);
		uint64_t error = got > exact ? got - exact : exact - got;

		ck_assert_uint_le(error * 32, exact);
		ck_assert_uint_le(got, samples[n - 1]);
	}
}

// Values of every order of magnitude, of one only, and all alike.
TEST(quantiles_agree_with_a_sorted_array) {
	struct rng r;

	for (uint64_t seed = 0; seed < 30; seed++) {
		uint32_t n = 1 + (uint32_t)(seed * seed * seed) % SAMPLES;
		uint64_t sum = 0;

		rng_init(&r, seed, "hist");
		hist_reset(&hist);
		uint64_t bits = rng_u64(&r) % HIST_MAX_BITS;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t v = rng_u64(&r) >> (64 - HIST_MAX_BITS);
			samples[i] = seed % 3 == 0 ? v >> (rng_u64(&r) % HIST_MAX_BITS)
				: seed % 3 == 1	   ? v >> bits
						   : UINT64_C(1) << bits;
			hist_add(&hist, samples[i]);
			sum += samples[i];
		}
		check_quantiles(n);
		ck_assert_uint_eq(hist.total, n);
		ck_assert_double_eq(hist_mean(&hist), (double)sum / n);
	}
}

TEST(small_values_are_exact) {
	hist_reset(&hist);
	for (uint64_t v = 0; v < 64; v++)
		hist_add(&hist, v);
	for (uint32_t v = 0; v < 64; v++)
		ck_assert_uint_eq(hist_quantile(&hist, (v + 1) / 64.0), v);
}

TEST(empty_is_zero) {
	hist_reset(&hist);
	ck_assert_uint_eq(hist_quantile(&hist, 0.5), 0);
	ck_assert_double_eq(hist_mean(&hist), 0.0);
}

TEST(merged_is_as_if_all_were_added) {
	static struct hist a, b, both;

	hist_reset(&a);
	hist_reset(&b);
	hist_reset(&both);
	for (uint64_t v = 1; v < UINT64_C(1) << 41; v = v * 3 + 1) {
		hist_add(v % 2 == 0 ? &a : &b, v);
		hist_add(&both, v);
	}
	hist_merge(&a, &b);
	ck_assert_mem_eq(&a, &both, sizeof(both));
}

TEST(beyond_the_range_saturates) {
	uint64_t huge = UINT64_C(1) << 50;

	hist_reset(&hist);
	hist_add(&hist, 100);
	hist_add(&hist, huge);
	ck_assert_uint_eq(hist.max, huge);
	ck_assert_uint_eq(hist_quantile(&hist, 1.0), huge);
	ck_assert_uint_eq(hist_quantile(&hist, 0.5), 101);
}

TEST(largest_of_what_was_counted_at_once) {
	struct hist h = {0};

	hist_counted(&h, 2, 30, 20);
	hist_counted(&h, 1, 5, 5);
	ck_assert_uint_eq(h.max, 20);
	ck_assert_uint_eq(h.total, 3);
	ck_assert_uint_eq(h.sum, 35);
}
