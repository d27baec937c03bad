// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/batch_means.h"

#include "test.h"

#include <math.h>

TEST(batches_join_as_the_run_grows) {
	struct batch_means b = {0};
	double sum = 0;

	for (int k = 1; k <= 10000; k++) {
		batch_means_add(&b, k, 1);
		uint64_t in_last = b.filled > 0 ? b.complete + 1 : b.complete;

		ck_assert_uint_le(b.complete, 2 * BATCHES_MIN);
		ck_assert(k < BATCHES_MIN || b.complete >= BATCHES_MIN);
		ck_assert_uint_eq(b.complete * b.length + b.filled, (uint64_t)k);
		sum = 0;
		for (uint64_t i = 0; i < in_last; i++)
			sum += b.batch[i].num;
		ck_assert(sum == (double)k * (k + 1) / 2); // nothing is lost
	}
}

// Quantiles of Student's t from a table (Abramowitz and Stegun, 26.10), two-sided: the half-width
// of n batches that are 1 and 3 in turn is t(n - 1) / sqrt(n - 1) / 2.
TEST(quantiles_are_those_of_the_table) {
	static const struct {
		int n;
		double confidence, t;
	} table[] = {
		{20, .5, .688},
		{20, .9, 1.729},
		{20, .95, 2.093},
		{20, .99, 2.861},
		{20, .999, 3.883},
		{30, .95, 2.045},
		{30, .99, 2.756},
		{40, .95, 2.0227},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct batch_means b = {0};

		for (int k = 0; k < table[i].n; k++)
			batch_means_add(&b, k % 2 == 0 ? 1 : 3, 1);
		double half = batch_means_half_width(&b, table[i].confidence);
		ck_assert_double_eq_tol(half * 2 * sqrt(table[i].n - 1), table[i].t, 6e-4);
	}
}

TEST(what_is_not_known_is_no_number) {
	struct batch_means b = {0};

	for (int k = 0; k < BATCHES_MIN; k++) {
		ck_assert(isnan(batch_means_half_width(&b, .95)));
		batch_means_add(&b, 0, 1);
	}
	ck_assert(isnan(batch_means_half_width(&b, .95))); // of 0 nothing is a part
	b = (struct batch_means){0};
	for (int k = 0; k < BATCHES_MIN; k++)
		batch_means_add(&b, 0, 0); // no packet left
	ck_assert(isnan(batch_means_half_width(&b, .95)));
}

// N and D vary together, and N / D does not: the interval has no width.
TEST(a_ratio_is_known_where_its_parts_are_not) {
	struct batch_means b = {0};

	for (int k = 1; k <= 25; k++)
		batch_means_add(&b, 3 * k, k);
	ck_assert_double_lt(batch_means_half_width(&b, .95), 1e-12);
}
