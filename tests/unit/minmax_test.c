// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/minmax.h"

#include "common/base/rng.h"
#include "test.h"

#include <stdbool.h>

#define SAMPLES 3000

static struct minmax_sample samples[SAMPLES];

// The best sample with t in [now - window, now]; of equals the latest.
static const struct minmax_sample *best_of(uint32_t newest, uint64_t window, bool max) {
	const struct minmax_sample *best = &samples[newest];

	for (uint32_t i = newest; i-- > 0 && samples[newest].t - samples[i].t <= window;) {
		if (max ? samples[i].v > best->v : samples[i].v < best->v)
			best = &samples[i];
	}
	return best;
}

static bool sampled_within(uint32_t newest, uint64_t window, uint64_t v) {
	for (uint32_t i = newest + 1; i-- > 0 && samples[newest].t - samples[i].t <= window;) {
		if (samples[i].v == v)
			return true;
	}
	return false;
}

static void compare(uint64_t seed, uint64_t window, uint64_t step, bool max) {
	struct minmax m;
	struct rng r;
	uint64_t t = 1000;
	uint64_t walk = 1000000;
	uint64_t reigning = 0; // the filter's value when it last equalled the true best
	bool exact = true;
	uint32_t wrong = 0;

	rng_init(&r, seed, "minmax");
	for (uint32_t i = 0; i < SAMPLES; i++) {
		t += rng_u64(&r) % (step + 1);
		walk += rng_u64(&r) % 2001 - 1000;
		samples[i] = (struct minmax_sample){t, seed % 2 ? walk : rng_u64(&r) % 1000};
		uint64_t got = i == 0 ? minmax_reset(&m, t, samples[i].v)
			: max	      ? minmax_running_max(&m, window, t, samples[i].v)
				      : minmax_running_min(&m, window, t, samples[i].v);
		const struct minmax_sample *best = best_of(i, window, max);

		wrong += got != minmax_get(&m);
		// It is a sample of the window, so never beyond the true best and never expired.
		wrong += !sampled_within(i, window, got);
		// A new best is taken at once, and kept while it is in the window.
		if (best == &samples[i])
			exact = true;
		else if (exact && best->v != reigning)
			exact = false; // it has left; a successor reigns, perhaps not the best one
		if (exact) {
			wrong += got != best->v;
			reigning = best->v;
		}
	}
	ck_assert_uint_eq(wrong, 0);
}

TEST(agrees_with_brute_force) {
	for (uint64_t seed = 0; seed < 8; seed++) {
		for (int max = 0; max < 2; max++) {
			compare(seed, 1000, 0, max);
			compare(seed, 1000, 10, max);
			compare(seed, 1000, 400, max);
			compare(seed, 1000, 5000, max);
			compare(seed, 0, 3, max);
		}
	}
}

// RTT falls, then rises for good: the old minimum goes exactly when it is older than the window.
TEST(expires_after_the_window) {
	struct minmax m;

	minmax_reset(&m, 0, 50);
	ck_assert_uint_eq(minmax_running_min(&m, 100, 10, 20), 20);
	for (uint64_t t = 11; t <= 110; t++)
		ck_assert_uint_eq(minmax_running_min(&m, 100, t, 30), 20);
	ck_assert_uint_eq(minmax_running_min(&m, 100, 111, 30), 30);
}

// A rising stream: the successors are spread, so the estimate is at most half a window stale.
TEST(successors_are_spread) {
	struct minmax m;

	minmax_reset(&m, 0, 1000);
	for (uint64_t t = 1; t < 2000; t++) {
		uint64_t v = minmax_running_min(&m, 100, t, 1000 + t);
		uint64_t exact = 1000 + (t > 100 ? t - 100 : 0);
		ck_assert_uint_ge(v, exact);
		ck_assert_uint_le(v, exact + 50);
		// When the first sample expires, that of just over a quarter of a window takes
		// over.
		if (t == 101)
			ck_assert_uint_eq(v, 1026);
	}
}

TEST(silence_longer_than_the_window_starts_anew) {
	struct minmax m;

	minmax_reset(&m, 0, 5);
	minmax_running_max(&m, 100, 40, 4);
	minmax_running_max(&m, 100, 80, 3);
	ck_assert_uint_eq(minmax_running_max(&m, 100, 100, 1), 5);
	ck_assert_uint_eq(minmax_running_max(&m, 100, 1000, 2), 2);
	ck_assert_uint_eq(m.s[2].t, 1000);
}

TEST(reset_forgets) {
	struct minmax m;

	minmax_reset(&m, 0, 5);
	minmax_running_min(&m, 100, 1, 3);
	ck_assert_uint_eq(minmax_reset(&m, 2, 9), 9);
	ck_assert_uint_eq(minmax_running_min(&m, 100, 3, 10), 9);
}

// A second best that makes the third obsolete stands for both: it is in the window when the next
// one comes.
TEST(second_best_replaces_the_third) {
	struct minmax m;

	minmax_reset(&m, 0, 10);
	ck_assert_uint_eq(minmax_running_max(&m, 100, 30, 5), 10);
	ck_assert_uint_eq(minmax_running_max(&m, 100, 60, 3), 10);
	ck_assert_uint_eq(minmax_running_max(&m, 100, 70, 6), 10);
	ck_assert_uint_eq(minmax_running_max(&m, 100, 165, 1), 6);
}
