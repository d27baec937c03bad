// SPDX-License-Identifier: BSD-3-Clause
// The argument is brought near 0 by steps that are exact or nearly so, as in fdlibm (Sun
// Microsystems, 1993), and a series does the rest: Taylor's, whose next term is below 2^-55, and
// for the normal distribution one that was fitted.
#include "common/base/portable_math.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXPONENT_BIAS 1023
#define EXPONENT_BITS 11
#define MANTISSA_BITS 52

// log 2 in two parts: products of the first with exponents are exact (fdlibm's e_log.c).
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

// c[0] + c[1] x + ... + c[n - 1] x^(n - 1), n a multiple of 4: four sums that do not wait for each
// other.
static inline double series(double x, const double *c, int n) {
	double x2 = x * x, x4 = x2 * x2;
	double s0 = c[n - 4], s1 = c[n - 3], s2 = c[n - 2], s3 = c[n - 1];

	for (int i = n - 8; i >= 0; i -= 4) {
		s0 = s0 * x4 + c[i];
		s1 = s1 * x4 + c[i + 1];
		s2 = s2 * x4 + c[i + 2];
		s3 = s3 * x4 + c[i + 3];
	}
	return s0 + s1 * x + (s2 + s3 * x) * x2;
}

// log(1 + f) for sqrt(1/2) <= 1 + f < sqrt(2): with s = f / (2 + f), at most 0.172, it is
// 2 (s + s^3 / 3 + s^5 / 5 + ...), and 2 s is f - s f.
static inline double log_near_1(double f) {
	static const double c[12] = {2 / 3.0, 2 / 5.0, 2 / 7.0, 2 / 9.0, 2 / 11.0, 2 / 13.0,
		2 / 15.0, 2 / 17.0, 2 / 19.0, 2 / 21.0, 2 / 23.0, 2 / 25.0};
	double s = f / (2 + f), z = s * s;

	return f - s * (f - z * series(z, c, 12));
}

double portable_log(double x) {
	uint64_t bits, below;
	int64_t e;
	double m;

	memcpy(&bits, &x, sizeof(bits));
	// From sqrt(1/2) on a number belongs to the next power of two.
	below = bits - UINT64_C(0x3fe6a09e667f3bcd);
	e = (int64_t)below >> MANTISSA_BITS;
	bits -= (uint64_t)e << MANTISSA_BITS;
	memcpy(&m, &bits, sizeof(m));
	return (double)e * LN2_HIGH + (log_near_1(m - 1) + (double)e * LN2_LOW);
}

double portable_log1p(double x) {
	return x > -0.29 && x < 0.41 ? log_near_1(x) : portable_log(1 + x);
}

double portable_exp(double x) {
	static const double c[12] = {1 / 2.0, 1 / 6.0, 1 / 24.0, 1 / 120.0, 1 / 720.0, 1 / 5040.0,
		1 / 40320.0, 1 / 362880.0, 1 / 3628800.0, 1 / 39916800.0, 1 / 479001600.0,
		1 / 6227020800.0};
	double r, power;
	uint64_t bits;
	int64_t e;

	if (!(x >= -708))
		return 0;
	if (x > 709)
		return HUGE_VAL;
	e = (int64_t)(x * M_LOG2E + copysign(0.5, x));
	r = x - (double)e * LN2_HIGH - (double)e * LN2_LOW;
	bits = (uint64_t)(e + EXPONENT_BIAS) << MANTISSA_BITS;
	memcpy(&power, &bits, sizeof(power));
	return power * (1 + (r + r * r * series(r, c, 12)));
}

double portable_pow(double x, double y) {
	return x > 0 ? portable_exp(y * portable_log(x)) : 0;
}

// By Newton's method, from above: falls until rounding stops it.
double portable_cbrt(double x) {
	double y = x > 1 ? x : 1, next = y;

	if (x <= 0)
		return 0;
	do {
		y = next;
		next = (2 * y + x / (y * y)) / 3;
	} while (next < y);
	return y;
}

// cos(2 pi v) = sin(2 pi (|v - 1/2| - 1/4)), of at most a right angle.
double portable_cos_2pi(double v) {
	static const double c[12] = {-1 / 6.0, 1 / 120.0, -1 / 5040.0, 1 / 362880.0,
		-1 / 39916800.0, 1 / 6227020800.0, -1 / 1307674368000.0, 1 / 355687428096000.0,
		-1 / 121645100408832000.0, 1 / 51090942171709440000.0,
		-1 / 25852016738884976640000.0, 1 / 15511210043330985984000000.0};
	double x = 2 * M_PI * (fabs(v - 0.5) - 0.25), z = x * x;

	return x + x * z * series(z, c, 12);
}

// The chance of a number beyond x >= 0, over e^(-x^2 / 2) and over t = 5 / (5 + x), is a smooth
// function of u = 2 t - 1: its Chebyshev interpolant at 60 points, cut at u^22, differs by less
// than 2^-53. It was computed with 60 digits (mpmath) from the definition, erfc(x / sqrt(2)) / 2.
static double normal_tail(double x) {
	static const double c[24] = {0.15383860995001258, 0.13307650057801151, 0.0990611231939961,
		0.06270663133424344, 0.03300407323403903, 0.013823727741748365,
		0.004159013360646807, 0.0005986753477871946, -0.00015957388554950594,
		-0.00010897976695137192, -1.1875117666755534e-05, 9.952356748037579e-06,
		3.336170543985079e-06, -7.955876524686853e-07, -5.537757567344183e-07,
		6.622057088663622e-08, 8.669532857027513e-08, -7.16890931217432e-09,
		-1.3483378103647207e-08, 1.0054463861933964e-09, 1.8550164483074685e-09,
		-1.0118594975933391e-10, -1.5708917166495314e-10, 0};
	double t = 5 / (5 + x);

	return portable_exp(-x * x / 2) * t * series(2 * t - 1, c, 24);
}

double portable_normal_cdf(double x) {
	return x < 0 ? normal_tail(-x) : 1 - normal_tail(x);
}
