// SPDX-License-Identifier: BSD-3-Clause
// exp, log and x^y in additions, multiplications and divisions: the same bits with any libm, to
// about 1e-15. frexp and ldexp are exact.
#pragma once
#include <math.h>

#define POWER_LN2 0.69314718055994530942

// Of x > 0: twice the series of atanh at (m - 1) / (m + 1), which is 0.172 at most, 1/sqrt 2 <= m <
// sqrt 2.
static inline double power_log(double x) {
	int e;
	double m = frexp(x, &e), z, zz, sum = 0;

	if (m < 0.70710678118654752) {
		m *= 2;
		e--;
	}
	z = (m - 1) / (m + 1);
	zz = z * z;
	for (int i = 21; i >= 1; i -= 2)
		sum = sum * zz + 1.0 / i;
	return e * POWER_LN2 + 2 * z * sum;
}

// For |x| < 700.
static inline double power_exp(double x) {
	int e = (int)(x / POWER_LN2 + (x < 0 ? -0.5 : 0.5));
	double r = x - e * POWER_LN2, sum = 1;

	for (int i = 16; i >= 1; i--)
		sum = 1 + r / i * sum;
	return ldexp(sum, e);
}

// x^y for x >= 0.
static inline double power_of(double x, double y) {
	return x > 0 ? power_exp(y * power_log(x)) : 0;
}
