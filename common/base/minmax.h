// SPDX-License-Identifier: BSD-3-Clause
// Windowed minimum or maximum of a stream of samples (Nichols' three-sample filter, as in Linux
// lib/win_minmax.c's description): the best value of the last window, in constant space.
//
// The estimate is exact while the best sample is in the window; when it expires, the second and
// third best of the later sub-windows take its place.
#pragma once
#include <stdint.h>

struct minmax_sample {
	uint64_t t; // nanoseconds or rounds, never decreasing
	uint64_t v;
};

struct minmax {
	struct minmax_sample s[3];
};

// Forget everything but this sample.
uint64_t minmax_reset(struct minmax *m, uint64_t t, uint64_t v);
// Add a sample; returns the windowed minimum (maximum).
uint64_t minmax_running_min(struct minmax *m, uint64_t window, uint64_t t, uint64_t v);
uint64_t minmax_running_max(struct minmax *m, uint64_t window, uint64_t t, uint64_t v);

static inline uint64_t minmax_get(const struct minmax *m) {
	return m->s[0].v;
}
