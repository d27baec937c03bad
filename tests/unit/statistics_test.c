// SPDX-License-Identifier: BSD-3-Clause
// The p-values that other tests rely on, against printed tables.
#include "statistics.h"

// Abramowitz and Stegun, table 26.8: the chi-square above which a share lies.
TEST(chi_square_is_that_of_the_table) {
	static const struct {
		double x, df, p;
	} rows[] = {
		{3.84146, 1, 0.05},
		{10.828, 1, 0.001},
		{0.0039321, 1, 0.95},
		{18.3070, 10, 0.05},
		{29.588, 10, 0.001},
		{3.94030, 10, 0.95},
		{124.342, 100, 0.05},
		{149.449, 100, 0.001},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_double_eq_tol(chi_square_p(rows[i].x, rows[i].df) / rows[i].p, 1, 3e-4);
}

// Stephens 1974, table 1: the modified statistic, with n so large that it is sqrt(n) d.
TEST(kolmogorov_is_that_of_the_table) {
	double n = 1e12;

	ck_assert_double_eq_tol(ks_p(1.224 / sqrt(n), n), 0.10, 2e-4);
	ck_assert_double_eq_tol(ks_p(1.358 / sqrt(n), n), 0.05, 2e-4);
	ck_assert_double_eq_tol(ks_p(1.628 / sqrt(n), n), 0.01, 1e-4);
	ck_assert_double_eq_tol(ks_p(1.9495 / sqrt(n), n), 0.001, 1e-5);
	ck_assert_double_eq_tol(ks_p(0.1, 1), 1, 1e-9);
}

TEST(normal_is_that_of_the_table) {
	ck_assert_double_eq_tol(normal_p(1.959964), 0.05, 1e-6);
	ck_assert_double_eq_tol(normal_p(-3.290527), 0.001, 1e-8);
}
