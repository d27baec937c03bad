// SPDX-License-Identifier: BSD-3-Clause
// Elementary functions with the same bits on every machine: of +, -, *, /, comparisons and integers
// alone, in one order. Virtual time calls these and not those of libm, whose last bit depends on
// the machine. Functions that IEEE 754 defines to the bit are libm's: sqrt, floor, fmin and the
// like.
//
// Errors are at most so many times 2^-53 of the result (tests/unit/portable_math_test.c).
#pragma once

// The natural logarithm of a normal x > 0; error 2. Of 0 and subnormal numbers about -709.
double portable_log(double x);

// log(1 + x) for x > -1; error 4.
double portable_log1p(double x);

// e^x; error 2. 0 below -708, infinite above 709.
double portable_exp(double x);

// x^y for x >= 0, and 0 for x = 0; error 3 + 3 |y log x|.
double portable_pow(double x, double y);

// The cube root of x, and 0 below 0; error 3.
double portable_cbrt(double x);

// cos(2 pi v) for 0 <= v <= 1; error 4.
double portable_cos_2pi(double v);

// The chance that a standard normal number is below x; error 8, and 2 x^2 more for x < 0.
double portable_normal_cdf(double x);
