// SPDX-License-Identifier: BSD-3-Clause
// How well one run knows the long-run mean of a quantity: a confidence interval by batch means.
//
// Observations are gathered into batches of equal length, in order. Means of long batches hardly
// depend on each other, so that their variance gives that of the mean of all. There are from
// BATCHES_MIN to 2 * BATCHES_MIN batches: before one more, neighbours are joined, and each batch
// from then on has twice as many observations. So the memory is constant, and batches are never
// shorter than 1 / (2 * BATCHES_MIN) of the run.
//
// The quantity is a ratio of two sums, N / D: bytes over time, time in the queue over packets. With
// R = sum N / sum D, e_i = N_i - R * D_i and n batches:
//
//	half-width / R = t(n - 1) * sqrt(n * sum e_i^2 / (n - 1)) / sum N * sqrt((1 + r) / (1 - r))
//
// t is Student's quantile. r is the correlation of neighbouring e_i where it is positive, else 0.
//
// Sources: A. M. Law, Simulation Modeling and Analysis, 5th ed. 2015, section 9.5.3, for batch
// means; A. M. Law, J. S. Carson, Operations Research 27(5), 1979, for batches that are joined as
// the run grows; B. Schmeiser, Operations Research 30(3), 1982, for 10 to 30 batches, beyond which
// more of them gain little; E. K. Lada et al., SBatch (Journal of Simulation 2(3), 2008), for the
// correction of what correlation is left.
#pragma once
#include <stdint.h>

#define BATCHES_MIN 20

struct batch {
	double num, den; // N and D
};

struct batch_means {
	struct batch batch[2 * BATCHES_MIN]; // the last may be incomplete
	uint32_t complete; // batches
	uint64_t length, filled; // observations of a batch; of the incomplete one
};

// Adds an observation.
void batch_means_add(struct batch_means *b, double num, double den);
// Half the width of the interval of N / D, as a part of N / D. NaN: fewer than BATCHES_MIN batches,
// or an N / D that is not above 0.
double batch_means_half_width(const struct batch_means *b, double confidence);
