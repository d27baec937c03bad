// SPDX-License-Identifier: BSD-3-Clause
// The smaller and the larger of two numbers, inline; fmin() and fmax() are calls, because of NaN.
#pragma once
#include <stdint.h>

static inline double min_f64(double a, double b) {
	return a < b ? a : b;
}

static inline double max_f64(double a, double b) {
	return a > b ? a : b;
}

// Of numbers below 2^63, which x86 converts with one instruction as signed ones, else with five.
static inline double f64_of(uint64_t x) {
	return (double)(int64_t)x;
}

static inline uint64_t u64_of(double x) {
	return (uint64_t)(int64_t)x;
}
