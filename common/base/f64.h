// SPDX-License-Identifier: BSD-3-Clause
// The smaller and the larger of two numbers, inline; fmin() and fmax() are calls, because of NaN.
#pragma once

static inline double min_f64(double a, double b) {
	return a < b ? a : b;
}

static inline double max_f64(double a, double b) {
	return a > b ? a : b;
}
