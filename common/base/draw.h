// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of some distributions, in their standard forms. Quantiles are of u in [0, 1), as
// rng_unit gives it.
#pragma once
#include "common/base/portable_math.h"
#include "common/base/rng.h"

#include <math.h>

// Of mean 1: P(X > x) = e^-x.
static inline double quantile_exponential(double u) {
	return -portable_log(1 - u);
}

// Of least value 1: P(X > x) = x^-shape.
static inline double quantile_pareto(double u, double shape) {
	return portable_exp(quantile_exponential(u) / shape);
}

// Of mean 0 and standard deviation 1 (Box and Muller 1958); two numbers of the generator.
static inline double draw_normal(struct rng *rng) {
	double u = 1 - rng_unit(rng), v = rng_unit(rng);

	return sqrt(-2 * portable_log(u)) * portable_cos_2pi(v);
}

// Of mean `mean`, at most 500: P(N = n) = mean^n e^-mean / n!. By adding up, so in steps of about
// the mean.
static inline uint32_t quantile_poisson(double u, double mean) {
	double p = portable_exp(-mean), reached = p;
	uint32_t n = 0;

	// Beyond all that double precision can tell from 1 nothing is added.
	while (u >= reached && (p > 0x1.0p-60 || n < mean)) {
		p *= mean / ++n;
		reached += p;
	}
	return n;
}
