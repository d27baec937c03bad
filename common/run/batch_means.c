// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/batch_means.h"

#include "common/base/portable_math.h"

#include <math.h>

void batch_means_add(struct batch_means *b, double num, double den) {
	struct batch *last;

	if (b->length == 0)
		b->length = 1;
	if (b->complete == 2 * BATCHES_MIN) {
		b->complete = BATCHES_MIN;
		b->length *= 2;
		for (uint32_t i = 0; i < BATCHES_MIN; i++) {
			const struct batch *pair = &b->batch[2 * i];

			b->batch[i] = (struct batch){
				pair[0].num + pair[1].num, pair[0].den + pair[1].den};
		}
	}
	last = &b->batch[b->complete];
	if (b->filled == 0)
		*last = (struct batch){0};
	last->num += num;
	last->den += den;
	if (++b->filled == b->length) {
		b->filled = 0;
		b->complete++;
	}
}

// The z that a normal number is below with probability p, .5 < p < 1, by Newton's steps.
static double normal_quantile(double p) {
	double z = 0;

	for (int i = 0; i < 50; i++)
		z += (p - portable_normal_cdf(z)) * sqrt(2 * M_PI) * portable_exp(z * z / 2);
	return z;
}

// Student's quantile with n degrees of freedom: Cornish and Fisher's expansion (Abramowitz and
// Stegun, 26.7.5), which from n = 19 on is right to 1e-4 up to p = .9995.
static double student_quantile(double p, double n) {
	double z = normal_quantile(p), z2 = z * z;
	double g1 = z * (z2 + 1) / 4, g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
	double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
	double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;

	return z + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n;
}

double batch_means_half_width(const struct batch_means *b, double confidence) {
	double num = 0, den = 0, squares = 0, products = 0, before = 0, n = b->complete;

	if (b->complete < BATCHES_MIN)
		return (double)NAN;
	for (uint32_t i = 0; i < b->complete; i++) {
		num += b->batch[i].num;
		den += b->batch[i].den;
	}
	if (!(num > 0 && den > 0))
		return (double)NAN;
	for (uint32_t i = 0; i < b->complete; i++) {
		double e = b->batch[i].num - num / den * b->batch[i].den;

		squares += e * e;
		products += e * before;
		before = e;
	}
	double r = squares > 0 ? fmax(products / squares, 0) : 0;
	double t = student_quantile(0.5 + confidence / 2, n - 1);

	return t * sqrt(n * squares / (n - 1) * (1 + r) / (1 - r)) / num;
}
