// SPDX-License-Identifier: BSD-3-Clause
// Log-linear histogram of nanoseconds: 32 linear buckets per power of two, so a percentile is
// within 1/32 (3.2 %) of the exact value; range 0 to 2^40 ns (18 minutes), larger values saturate.
#pragma once
#include "common/base/likely.h"

#include <stdint.h>

#define HIST_SUB_BITS 5
#define HIST_MAX_BITS 40
#define HIST_BUCKETS ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t total;
	uint64_t sum;
	uint64_t max;
	uint64_t count[HIST_BUCKETS]; // 32 bits would wrap after minutes at line rate
};

static inline uint32_t hist_bucket(uint64_t v) {
	uint32_t top = 63u ^ (uint32_t)__builtin_clzll(v | 1u << HIST_SUB_BITS); // one instruction
	uint32_t shift = top - HIST_SUB_BITS; // the shifted value keeps its top bit

	if (unlikely(top >= HIST_MAX_BITS))
		return HIST_BUCKETS - 1;
	return (shift << HIST_SUB_BITS) + (uint32_t)(v >> shift);
}

static inline void hist_add(struct hist *h, uint64_t v) {
	h->count[hist_bucket(v)]++;
	h->total++;
	h->sum += v;
	if (v > h->max)
		h->max = v;
}

// To add many samples cheaply: the first counts only the bucket, the second updates the totals for
// all of them.
static inline void hist_count(struct hist *h, uint64_t v) {
	h->count[hist_bucket(v)]++;
}

static inline void hist_counted(struct hist *h, uint64_t n, uint64_t sum, uint64_t max) {
	h->total += n;
	h->sum += sum;
	if (max > h->max)
		h->max = max;
}

void hist_reset(struct hist *h);
// Adds the samples of h.
void hist_merge(struct hist *all, const struct hist *h);
// The smallest sample with at least a fraction q (0..1) of all samples at or below it, as the
// middle of its bucket, at most the largest sample; 0 if empty.
uint64_t hist_quantile(const struct hist *h, double q);
double hist_mean(const struct hist *h);
// Smallest value of a bucket.
uint64_t hist_bucket_low(uint32_t bucket);
