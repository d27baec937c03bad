// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/ticks.h"

#include "common/base/ns.h"
#include "common/base/rng.h"
#include "test.h"

#include <math.h>

#define STEP_NS (100 * NS_PER_MS)

// A counter of 2.5 GHz that starts anywhere, and a reference that runs `ppm` faster than its label.
struct world {
	struct rng rng;
	uint64_t tick0;
	double ppm, noise_ns;
};

static uint64_t nominal(void) {
	return (uint64_t)llround(ldexp(0.4, TICKS_SHIFT));
}

static uint64_t tick_at(const struct world *w, uint64_t ns) {
	return w->tick0 + (uint64_t)llround((double)ns * 2.5 / (1 + w->ppm * 1e-6));
}

static void add(struct world *w, struct ticks_fit *f, uint64_t ns) {
	double noise = w->noise_ns * (2 * rng_unit(&w->rng) - 1);

	ticks_fit_add(f, tick_at(w, ns), ns + (uint64_t)llround(noise));
}

TEST(a_line_is_exact_both_ways) {
	struct ticks_line l = {.tick = UINT64_MAX - 5, .ns = 1000, .rate = UINT64_C(1) << 55};

	// Half a nanosecond per tick, across the counter's end and before the point.
	ck_assert_uint_eq(ticks_ns(&l, UINT64_MAX - 5), 1000);
	ck_assert_uint_eq(ticks_ns(&l, 4), 1005);
	ck_assert_uint_eq(ticks_ns(&l, UINT64_MAX - 5 - 20), 990);
	ck_assert_uint_eq(ticks_at(&l, 1005), 4);
	ck_assert_uint_eq(ticks_at(&l, 990), UINT64_MAX - 5 - 20);
	// A day at 2.5 GHz: what a rate of 56 bits loses stays far below a nanosecond.
	l = (struct ticks_line){.rate = nominal()};
	ck_assert_uint_le(86400 * NS_PER_S - ticks_ns(&l, 86400 * UINT64_C(2500000000)), 1);
}

TEST(a_fit_needs_two_anchors) {
	struct ticks_line l;
	struct ticks_fit f = {0};

	ck_assert(!ticks_fit_line(&f, &l));
	ticks_fit_add(&f, 10, 100);
	ck_assert(!ticks_fit_line(&f, &l));
	ticks_fit_add(&f, 10, 100);
	ck_assert(!ticks_fit_line(&f, &l)); // the same moment
	ticks_fit_add(&f, 30, 200);
	ck_assert(ticks_fit_line(&f, &l));
	ck_assert_uint_eq(l.tick, 30);
	ck_assert_uint_eq(l.ns, 200);
	ck_assert_uint_eq(l.rate, UINT64_C(5) << TICKS_SHIFT);
}

// Only the last 16 count: a counter that changed its rate is known after 1.6 s.
TEST(a_fit_forgets) {
	struct world w = {.tick0 = 77, .ppm = 40};
	struct ticks_fit f = {0};
	struct ticks_line l;

	for (uint64_t k = 0; k < 100; k++)
		ticks_fit_add(&f, k * 1000, k * k * k * 1000);
	for (uint64_t k = 1000; k < 1000 + TICKS_ANCHORS; k++)
		add(&w, &f, k * STEP_NS);
	ck_assert(ticks_fit_line(&f, &l));
	ck_assert_double_eq_tol(ticks_ppm(l.rate, nominal()), 40, 1e-3);
}

// A clock calibrated 100 ppm wrong and 300 us off is steered onto the reference and stays there; on
// the way it is continuous, never stands still, and is never more than 500 ppm from its first rate.
TEST(a_wrong_clock_converges) {
	for (int sign = -1; sign <= 1; sign += 2) {
		struct world w = {.tick0 = UINT64_MAX / 3, .ppm = sign * 100.0, .noise_ns = 50};
		struct ticks_line clock = {.ns = 300 * NS_PER_US, .rate = nominal()}, fit;
		struct ticks_fit f = {0};
		double offset_ns = 0;

		rng_init(&w.rng, 1, "ticks");
		clock.tick = tick_at(&w, 0);
		for (uint64_t k = 0; k < 300; k++) {
			uint64_t ns = k * STEP_NS, tick = tick_at(&w, ns);
			uint64_t before = ticks_ns(&clock, tick);

			add(&w, &f, ns);
			offset_ns = fabs((double)(int64_t)(before - ns));
			if (k > 150)
				ck_assert_double_le(offset_ns, 60);
			if (!ticks_fit_line(&f, &fit))
				continue;
			clock = (struct ticks_line){
				tick, before, ticks_steer(&clock, &fit, nominal())};
			ck_assert_uint_eq(ticks_ns(&clock, tick), before);
			ck_assert_double_le(fabs(ticks_ppm(clock.rate, nominal())), 500.001);
		}
		ck_assert_double_eq_tol(ticks_ppm(clock.rate, nominal()), w.ppm, 0.2);
	}
}

// A card of 1 GHz, 30 ppm fast, whose clock began long before ours: stamps become our time.
TEST(stamps_of_a_card_become_our_time) {
	struct ticks_fit f = {0};
	struct ticks_line l;
	uint64_t begin = UINT64_C(1) << 60;

	for (uint64_t k = 0; k < 50; k++) {
		uint64_t ns = k * STEP_NS + 3 * NS_PER_S, tick = begin + ns + ns * 30 / 1000000;

		ticks_fit_add(&f, tick, ns + k % 3 * 100); // read 0 to 200 ns late
		if (!ticks_fit_line(&f, &l) || k < TICKS_ANCHORS)
			continue;
		// What arrives until the next anchor: each at its time, within the anchors' error.
		for (uint64_t after_ns = 0; after_ns <= STEP_NS; after_ns += 7 * NS_PER_MS) {
			uint64_t at_ns = ns + after_ns, now_ns = at_ns + 2 * NS_PER_US;
			uint64_t got_ns =
				ticks_moment(&l, begin + at_ns + at_ns * 30 / 1000000, 0, now_ns);

			ck_assert_double_le(fabs((double)got_ns - (double)at_ns), 250);
		}
	}
	// Bounded by what came before and by now, also where the line goes below 0.
	ck_assert_uint_eq(ticks_moment(&l, l.tick, l.ns + 5, l.ns + 9), l.ns + 5);
	ck_assert_uint_eq(ticks_moment(&l, l.tick, 0, l.ns - 9), l.ns - 9);
	ck_assert_uint_eq(ticks_moment(&l, begin - 9 * NS_PER_S, 17, l.ns), 17);
}

// A counter that stands still, goes back or is too slow for the fraction gives no line.
TEST(no_line_without_a_rate) {
	static const struct {
		uint64_t tick, ns;
	} second[] = {{1000, 2 * NS_PER_S}, {2000, NS_PER_S}, {900, 2 * NS_PER_S},
		{1000 + NS_PER_S / 128, 2 * NS_PER_S}};

	for (size_t i = 0; i < sizeof(second) / sizeof(second[0]); i++) {
		struct ticks_fit fit = {0};
		struct ticks_line l;

		ticks_fit_add(&fit, 1000, NS_PER_S);
		ticks_fit_add(&fit, second[i].tick, second[i].ns);
		ck_assert(!ticks_fit_line(&fit, &l));
		ticks_fit_add(&fit, 1000 + 100 * NS_PER_S, 101 * NS_PER_S);
		ck_assert(ticks_fit_line(&fit, &l));
	}
}

// A reference that is set by a second does not take the clock with it at once.
TEST(a_jump_is_slewed) {
	struct ticks_line clock = {.rate = nominal()}, fit = {.ns = NS_PER_S, .rate = nominal()};

	ck_assert_double_eq_tol(
		ticks_ppm(ticks_steer(&clock, &fit, nominal()), nominal()), 500, 1e-3);
	fit.ns = (uint64_t)-1000000000LL;
	ck_assert_double_eq_tol(
		ticks_ppm(ticks_steer(&clock, &fit, nominal()), nominal()), -500, 1e-3);
}

// One anchor that is 1600 ns late moves the line of least squares by 1 / 16 + 7.5^2 / 340 of that
// at its end.
TEST(a_fit_is_not_its_last_anchor) {
	struct ticks_fit f = {0};
	struct ticks_line l;

	for (uint64_t k = 0; k < TICKS_ANCHORS; k++)
		ticks_fit_add(&f, k * 100000, k * 100000 + (k == TICKS_ANCHORS - 1 ? 1600 : 0));
	ck_assert(ticks_fit_line(&f, &l));
	ck_assert_uint_eq(ticks_ns(&l, 1500000), 1500365);
}

TEST(a_tick_before_the_lines_point_is_found) {
	const struct ticks_line l = {.tick = 1000000, .ns = 1000000, .rate = nominal()};

	// 2.5 GHz, rounded to a tick.
	ck_assert_uint_le(ticks_at(&l, 1000000 + 400) - (1000000 + 999), 2);
	ck_assert_uint_le(ticks_at(&l, 1000000 - 400) - (1000000 - 1001), 2);
}
