// SPDX-License-Identifier: BSD-3-Clause
// Tests of samples against distributions: the p-value, which is the chance of a deviation at least
// as large if the sample is what it should be. Seeds are fixed, so a test that holds once holds
// always; p must be above 0.001.
//
// Formulas: Abramowitz and Stegun, Handbook of Mathematical Functions, 1964; M. A. Stephens: EDF
// Statistics for Goodness of Fit and Some Comparisons, JASA 69, 1974.
#pragma once
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define P_LEAST 0.001

// Chance that a chi-square of `df` degrees of freedom is above x: Q(df / 2, x / 2), the incomplete
// gamma function, by its series (6.5.29) or, in the tail, its continued fraction (6.5.31).
static inline double chi_square_p(double x, double df) {
	double a = df / 2, sum = 0, term = 1 / a;

	x /= 2;
	if (x <= 0)
		return 1;
	double front = exp(a * log(x) - x - lgamma(a));
	if (x < a + 1) {
		for (double n = a; term > sum * 1e-15; term *= x / ++n)
			sum += term;
		return 1 - front * sum;
	}
	// x + (1 - a) / (1 + 1 / (x + (2 - a) / (1 + 2 / (x + ...)))), from the far end
	double rest = x;
	for (int n = 2000; n > 0; n--)
		rest = x + (n - a) / (1 + n / rest);
	return front / rest;
}

// Chance that a standard normal number is further than |z| from 0.
static inline double normal_p(double z) {
	return erfc(fabs(z) / sqrt(2));
}

// Chance that the largest difference between the distribution of n numbers and the one they are
// drawn from is above d: Kolmogorov's limit with Stephens's correction for n.
static inline double ks_p(double d, double n) {
	double x = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * d, sum = 0, sign = 1;

	if (x < 0.2)
		return 1; // the series does not converge; the value is above 1 - 1e-12
	for (int j = 1; j <= 100; j++, sign = -sign)
		sum += sign * exp(-2 * x * x * j * j);
	return 2 * sum;
}

static inline int double_order(const void *pa, const void *pb) {
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

// The p-value of n numbers, which it sorts, under the distribution function cdf. Where that jumps,
// as at a limit, `below` is its value just below the jump.
static inline double ks_test(double *x, size_t n, double (*cdf)(double x, const void *ctx),
	double (*below)(double x, const void *ctx), const void *ctx) {
	double d = 0;

	qsort(x, n, sizeof(*x), double_order);
	for (size_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && x[next] == x[i];)
			next++;
		d = fmax(d, fabs((double)next / (double)n - cdf(x[i], ctx)));
		d = fmax(d, fabs((double)i / (double)n - below(x[i], ctx)));
	}
	return ks_p(d, (double)n);
}

// The p-value of counts against their chances. The last bins are put together until each is
// expected 5 times.
static inline double bins_p(const uint64_t *count, const double *chance, size_t bins) {
	double n = 0, x = 0, expected = 0, seen = 0, df = -1;

	for (size_t i = 0; i < bins; i++)
		n += (double)count[i];
	for (size_t i = 0; i < bins; i++) {
		double rest = 0;

		expected += n * chance[i];
		seen += (double)count[i];
		for (size_t k = i + 1; k < bins; k++)
			rest += n * chance[k];
		if (expected < 5 || (rest < 5 && i + 1 < bins))
			continue;
		x += (seen - expected) * (seen - expected) / expected;
		expected = seen = 0;
		df++;
	}
	return df < 1 ? 1 : chi_square_p(x, df);
}
