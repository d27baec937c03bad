// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/hist.h"

#include <math.h>
#include <string.h>

void hist_reset(struct hist *h) {
	memset(h, 0, sizeof(*h));
}

void hist_merge(struct hist *all, const struct hist *h) {
	for (uint32_t b = 0; b < HIST_BUCKETS; b++)
		all->count[b] += h->count[b];
	all->total += h->total;
	all->sum += h->sum;
	all->max = h->max > all->max ? h->max : all->max;
}

uint64_t hist_bucket_low(uint32_t bucket) {
	uint32_t sub = bucket & ((1u << HIST_SUB_BITS) - 1);

	if (bucket < (1u << HIST_SUB_BITS))
		return bucket;
	return (uint64_t)(sub + (1u << HIST_SUB_BITS)) << ((bucket >> HIST_SUB_BITS) - 1);
}

uint64_t hist_quantile(const struct hist *h, double q) {
	double rank = ceil(q * (double)h->total); // rank of the wanted sample, from 1
	uint64_t seen = 0;

	if (h->total == 0)
		return 0;
	for (uint32_t i = 0; i < HIST_BUCKETS - 1; i++) {
		seen += h->count[i];
		if (seen > 0 && (double)seen >= rank) {
			uint64_t low = hist_bucket_low(i);
			uint64_t mid = low + (hist_bucket_low(i + 1) - low) / 2;
			return mid < h->max ? mid : h->max;
		}
	}
	// The last bucket also holds values beyond the range.
	return h->max;
}

double hist_mean(const struct hist *h) {
	return h->total == 0 ? 0.0 : (double)h->sum / (double)h->total;
}
