// SPDX-License-Identifier: BSD-3-Clause
// Errors at WEIR_POINTS points against libm in long double, whose mantissa has 64 bits or more; and
// that every machine has the same bits.
#include "common/base/portable_math.h"

#include "common/base/rng.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define PI 3.14159265358979323846264338327950288L

static uint64_t points(void) {
	const char *given = getenv("WEIR_POINTS");

	return given != NULL ? strtoull(given, NULL, 10) : 20000;
}

// In units of 2^-53 of what is right.
static double error(double found, long double right) {
	return (double)(fabsl((long double)found - right) / fabsl(right) * 0x1p53L);
}

static double between(struct rng *rng, double low, double high) {
	return low + (high - low) * rng_unit(rng);
}

// A number of any size between 2^low and 2^high.
static double of_any_size(struct rng *rng, int low, int high) {
	int e = low + (int)(rng_u64(rng) % (uint64_t)(high - low));

	return ldexp(1 + rng_unit(rng), e);
}

TEST(log_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double x = of_any_size(&rng, -1022, 1023), u = 1 - rng_unit(&rng);
		double near = between(&rng, 0.7, 1.42);

		ck_assert_double_le(error(portable_log(x), logl(x)), 2);
		ck_assert_double_le(error(portable_log(near), logl(near)), 2);
		if (u < 1)
			ck_assert_double_le(error(portable_log(u), logl(u)), 2);
	}
	ck_assert_double_eq(portable_log(1), 0);
	ck_assert_double_le(portable_log(0), -708);
}

TEST(log1p_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double small = -of_any_size(&rng, -60, -1), x = between(&rng, -1, 3);

		ck_assert_double_le(error(portable_log1p(small), log1pl(small)), 4);
		ck_assert_double_le(error(portable_log1p(x), log1pl(x)), 4);
	}
}

TEST(exp_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double x = between(&rng, -708, 709), small = between(&rng, -1, 1);

		ck_assert_double_le(error(portable_exp(x), expl(x)), 2);
		ck_assert_double_le(error(portable_exp(small), expl(small)), 2);
	}
	ck_assert_double_eq(portable_exp(0), 1);
	ck_assert_double_eq(portable_exp(-708.1), 0);
	ck_assert_double_eq(portable_exp(-HUGE_VAL), 0);
	ck_assert(isinf(portable_exp(709.1)));
}

TEST(pow_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double x = of_any_size(&rng, -50, 50), y = between(&rng, -14, 14);

		ck_assert_double_le(
			error(portable_pow(x, y), powl(x, y)), 3 + 3 * fabs(y * log(x)));
	}
	ck_assert_double_eq(portable_pow(0, 0.9), 0);
}

TEST(cbrt_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double x = of_any_size(&rng, -50, 50);

		ck_assert_double_le(error(portable_cbrt(x), cbrtl(x)), 3);
	}
	ck_assert_double_eq(portable_cbrt(0), 0);
	ck_assert_double_eq(portable_cbrt(-8), 0);
	ck_assert_double_eq(portable_cbrt(8), 2);
}

TEST(cos_2pi_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double v = rng_unit(&rng);
		// cosl(2 PI v) would have the error of PI near a quarter.
		long double right = sinl(2 * PI * (fabsl(v - 0.5L) - 0.25L));

		ck_assert_double_le(error(portable_cos_2pi(v), right), 4);
	}
	ck_assert_double_eq(portable_cos_2pi(0), 1);
	ck_assert_double_eq(portable_cos_2pi(0.25), 0);
	ck_assert_double_eq(portable_cos_2pi(0.5), -1);
	ck_assert_double_eq(portable_cos_2pi(0.75), 0);
	ck_assert_double_eq(portable_cos_2pi(1), 1);
}

TEST(normal_cdf_is_right) {
	struct rng rng = {{1, 2, 3, 4}};

	for (uint64_t i = 0; i < points(); i++) {
		double x = between(&rng, -37, 0), near = between(&rng, -8, 8);

		ck_assert_double_le(
			error(portable_normal_cdf(x), erfcl(-x / sqrtl(2)) / 2), 8 + 2 * x * x);
		ck_assert_double_le(error(portable_normal_cdf(near), erfcl(-near / sqrtl(2)) / 2),
			near < 0 ? 8 + 2 * near * near : 8);
	}
	ck_assert_double_eq(portable_normal_cdf(-1e300), 0);
	ck_assert_double_eq(portable_normal_cdf(1e300), 1);
}

static double pow_of_one(double u) {
	return portable_pow(u, -1 / 1.5);
}

static double exp_of_one(double u) {
	return portable_exp(-u * 700);
}

static double log1p_of_one(double u) {
	return portable_log1p(-u);
}

static double cbrt_of_one(double u) {
	return portable_cbrt(u * 1e6);
}

static double normal_of_one(double u) {
	return portable_normal_cdf(16 * u - 8);
}

// XXH64 of the results at 2000 points between 0 and 1: written by this test, and the same on every
// machine, compiler and level of optimisation.
TEST(every_machine_has_the_same_bits) {
	static const struct {
		double (*f)(double u);
		uint64_t digest;
	} functions[] = {
		{portable_log, UINT64_C(0x63cf2e8c58ac2a86)},
		{log1p_of_one, UINT64_C(0x7eb591a1ff27b76a)},
		{exp_of_one, UINT64_C(0x80bb6c31ddd190cf)},
		{pow_of_one, UINT64_C(0x5b8a3245e2ee0af8)},
		{cbrt_of_one, UINT64_C(0x4c1f6d2a0dc9ec0b)},
		{portable_cos_2pi, UINT64_C(0x685a2982399d770b)},
		{normal_of_one, UINT64_C(0x1f16548aa800c70a)},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct rng rng = {{1, 2, 3, 4}};
		double result[2000];

		for (size_t k = 0; k < 2000; k++)
			result[k] = functions[i].f(rng_unit(&rng));
		ck_assert_uint_eq(XXH64(result, sizeof(result), 0), functions[i].digest);
	}
}
