// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/rng.h"

#include "test.h"

#include <math.h>

// State {1, 2, 3, 4}: the first outputs of xoshiro256**, worked out by hand from its definition
// (rotl(s1 * 5, 7) * 9 of s1 = 2, then 0, then 262149).
TEST(is_xoshiro256starstar) {
	struct rng r = {{1, 2, 3, 4}};

	ck_assert_uint_eq(rng_u64(&r), 11520);
	ck_assert_uint_eq(rng_u64(&r), 0);
	ck_assert_uint_eq(rng_u64(&r), 1509978240);
}

// splitmix64 seeded with 0 and with 1234567: the outputs that its authors' program prints.
TEST(mix_is_splitmix64s) {
	ck_assert_uint_eq(rng_mix(RNG_GOLDEN), UINT64_C(0xe220a8397b1dcdaf));
	ck_assert_uint_eq(rng_mix(2 * RNG_GOLDEN), UINT64_C(0x6e789e6aa1b965f4));
	ck_assert_uint_eq(rng_mix(1234567 + RNG_GOLDEN), UINT64_C(6457827717110365317));
	ck_assert_uint_eq(rng_mix(1234567 + 2 * RNG_GOLDEN), UINT64_C(3203168211198807973));
}

// Recorded runs depend on these.
TEST(seeding_is_frozen) {
	struct rng r;

	rng_init(&r, 1, "forward.loss");
	ck_assert_uint_eq(rng_u64(&r), UINT64_C(8936105093514885292));
	rng_init(&r, 0, "");
	ck_assert_uint_eq(rng_u64(&r), UINT64_C(6123053674984190307));
}

TEST(seed_and_name_both_matter) {
	struct rng a, b, c, d;

	rng_init(&a, 7, "forward.loss");
	rng_init(&b, 7, "forward.loss");
	rng_init(&c, 8, "forward.loss");
	rng_init(&d, 7, "reverse.loss");
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rng_u64(&a);
		ck_assert_uint_eq(x, rng_u64(&b));
		ck_assert_uint_ne(x, rng_u64(&c));
		ck_assert_uint_ne(x, rng_u64(&d));
	}
}

// Chi-square of 256 cells: mean 255, deviation sqrt(2 * 255) = 22.6; five deviations allowed.
static void check_chi_square(const uint32_t cells[256], uint32_t samples) {
	double expected = samples / 256.0;
	double chi2 = 0;

	for (int i = 0; i < 256; i++)
		chi2 += (cells[i] - expected) * (cells[i] - expected) / expected;
	ck_assert_double_ge(chi2, 255 - 5 * 22.6);
	ck_assert_double_le(chi2, 255 + 5 * 22.6);
}

TEST(uniform) {
	for (uint64_t seed = 0; seed < 4; seed++) {
		uint32_t low[256] = {0}, high[256] = {0}, unit[256] = {0};
		struct rng r;
		double sum = 0, least = 1, most = 0;

		rng_init(&r, seed, "uniform");
		for (int i = 0; i < 1 << 18; i++) {
			uint64_t x = rng_u64(&r);
			double u = rng_unit(&r);
			low[x & 255]++;
			high[x >> 56]++;
			unit[(int)(u * 256) & 255]++;
			sum += u;
			least = fmin(least, u);
			most = fmax(most, u);
		}
		check_chi_square(low, 1 << 18);
		check_chi_square(high, 1 << 18);
		check_chi_square(unit, 1 << 18);
		ck_assert(least >= 0.0 && most < 1.0);
		// Standard error of the mean: sqrt(1/12 / n).
		ck_assert_double_le(fabs(sum / (1 << 18) - 0.5), 5 * sqrt(1.0 / 12 / (1 << 18)));
	}
}

// First outputs under neighbouring seeds are independent too: a run per seed is a fair sample.
TEST(uniform_across_seeds) {
	uint32_t cells[256] = {0};
	struct rng r;

	for (uint64_t seed = 0; seed < 1 << 18; seed++) {
		rng_init(&r, seed, "forward.loss");
		cells[rng_u64(&r) >> 56]++;
	}
	check_chi_square(cells, 1 << 18);
}

TEST(below_is_exact_at_the_ends) {
	struct rng r;

	rng_init(&r, 1, "below");
	int never = 0, always = 0;
	for (int i = 0; i < 100000; i++) {
		never += rng_below(&r, rng_threshold(0.0));
		always += rng_below(&r, rng_threshold(1.0));
	}
	ck_assert_int_eq(never, 0);
	ck_assert_int_eq(always, 100000);
	// The largest double below 1 and the smallest useful probability are not rounded to the
	// ends.
	ck_assert_uint_eq(rng_threshold(1.0 - 0x1.0p-53), UINT64_MAX - 2047);
	ck_assert_uint_eq(rng_threshold(0x1.0p-64), 1);
	ck_assert_uint_eq(rng_threshold(0.5), UINT64_C(1) << 63);
}

TEST(below_has_its_probability) {
	static const double ps[] = {0.0001, 0.01, 0.3, 0.5, 0.999};
	const int n = 1 << 20;
	struct rng r;

	rng_init(&r, 2, "below");
	for (size_t k = 0; k < sizeof(ps) / sizeof(ps[0]); k++) {
		uint64_t threshold = rng_threshold(ps[k]);
		int hits = 0;
		for (int i = 0; i < n; i++)
			hits += rng_below(&r, threshold);
		ck_assert_double_le(fabs(hits - n * ps[k]), 5 * sqrt(n * ps[k] * (1 - ps[k])));
	}
}
