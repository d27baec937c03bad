// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/card_clock.h"

#include "common/base/rng.h"
#include "test.h"

#include <math.h>

#define STEP_NS (100 * NS_PER_MS)

// A card whose clock wraps a few seconds into the test and drifts: it is 30 ppm fast, and by 2 ppm
// more or less every 100 s, as an oscillator is with the temperature.
struct card {
	double mhz;
	uint64_t tick0;
};

static uint64_t card_tick(const struct card *card, uint64_t ns) {
	double s = (double)ns * 1e-9, swing_s = 100 / (2 * M_PI);
	double drifted_s = 30e-6 * s + 2e-6 * swing_s * (1 - cos(s / swing_s));

	// Whole and small parts apart: a double has 53 bits.
	return card->tick0 + (uint64_t)llround((double)ns * card->mhz / 1000)
		+ (uint64_t)llround(drifted_s * card->mhz * 1e6);
}

static struct card wrapping(double mhz) {
	return (struct card){mhz, UINT64_MAX - (uint64_t)(4.05 * mhz * 1e6)};
}

static int64_t apart(uint64_t a, uint64_t b) {
	return (int64_t)(a - b);
}

// Until the next anchor both directions are good to what the anchors are, and a tick.
TEST(both_ways_across_drift_and_wrap) {
	static const double mhz[] = {156.25, 1000, 2500};

	for (size_t k = 0; k < sizeof(mhz) / sizeof(mhz[0]); k++) {
		struct card card = wrapping(mhz[k]);
		struct card_clock c = {0};
		struct rng rng;

		rng_init(&rng, 1, "card");
		for (uint64_t ns = NS_PER_S; ns < 60 * NS_PER_S; ns += STEP_NS) {
			card_clock_anchor(
				&c, card_tick(&card, ns), ns + (uint64_t)(rng_unit(&rng) * 100));
			ck_assert(c.known == (ns > NS_PER_S));
			for (uint64_t at_ns = ns; c.known && at_ns < ns + STEP_NS;
				at_ns += 7 * NS_PER_MS) {
				uint64_t tick = card_tick(&card, at_ns), now_ns = at_ns + 5000;
				uint64_t room = c.fit.count < TICKS_ANCHORS ? 400 : 200;
				uint64_t room_ticks = (uint64_t)((double)room * mhz[k] / 1000) + 1;

				ck_assert_uint_le(
					(uint64_t)llabs(apart(
						card_clock_arrival_ns(&c, tick, now_ns), at_ns)),
					room + (uint64_t)(1000 / mhz[k]));
				ck_assert_uint_le(
					(uint64_t)llabs(
						apart(card_clock_departure_tick(&c, at_ns), tick)),
					room_ticks);
			}
		}
	}
}

// Each anchor moves the lines a little; times go on all the same.
TEST(order_is_kept_when_the_lines_move) {
	struct card card = wrapping(1000);
	struct card_clock c = {0};
	uint64_t arrival_ns = 0, departure_tick = 0;
	bool before = false;
	struct rng rng;

	rng_init(&rng, 2, "card");
	for (uint64_t ns = NS_PER_S; ns < 9 * NS_PER_S; ns += STEP_NS) {
		// Read up to 2 us late: far worse than a card's.
		card_clock_anchor(&c, card_tick(&card, ns), ns + (uint64_t)(rng_unit(&rng) * 2000));
		for (uint64_t i = 0; c.known && i < 1000; i++) {
			uint64_t at_ns = ns + i * (STEP_NS / 1000);
			uint64_t arrived_ns =
				card_clock_arrival_ns(&c, card_tick(&card, at_ns), at_ns + 9000);
			uint64_t left = card_clock_departure_tick(&c, at_ns);

			if (before) {
				ck_assert_uint_ge(arrived_ns, arrival_ns);
				ck_assert_int_ge(apart(left, departure_tick), 0);
			}
			arrival_ns = arrived_ns;
			departure_tick = left;
			before = true;
		}
	}
	// What is due before what has its stamp leaves with it.
	ck_assert_uint_eq(card_clock_departure_tick(&c, 5 * NS_PER_S), departure_tick);
}

// Somebody sets the card's clock back by an hour: its time is unknown until it has two anchors of
// the new one, and no stamp waits for the old one.
TEST(a_clock_that_is_set_begins_anew) {
	struct card card = {1000, UINT64_C(1) << 62};
	struct card_clock c = {0};
	uint64_t ns = NS_PER_S;

	for (; ns < 3 * NS_PER_S; ns += STEP_NS)
		card_clock_anchor(&c, card_tick(&card, ns), ns);
	card_clock_departure_tick(&c, ns);
	card.tick0 -= UINT64_C(3600000000000);
	card_clock_anchor(&c, card_tick(&card, ns), ns);
	ck_assert(!c.known);
	ck_assert_uint_eq(card_clock_arrival_ns(&c, card_tick(&card, ns), ns + 77), ns + 77);
	ns += STEP_NS;
	card_clock_anchor(&c, card_tick(&card, ns), ns);
	ck_assert(c.known);
	ns += NS_PER_MS;
	ck_assert_int_le(llabs(apart(card_clock_departure_tick(&c, ns), card_tick(&card, ns))), 10);
	ck_assert_int_le(
		llabs(apart(card_clock_arrival_ns(&c, card_tick(&card, ns), ns + 9000), ns)), 10);
}

// A reading that is late by less than a millisecond is only a bad anchor.
TEST(a_late_reading_is_no_new_clock) {
	struct card card = {1000, 0};
	struct card_clock c = {0};

	for (uint64_t k = 1; k < 40; k++) {
		uint64_t ns = k * STEP_NS;

		card_clock_anchor(&c, card_tick(&card, ns), ns + (k == 30 ? 900 * NS_PER_US : 0));
		ck_assert(c.known == (k > 1));
	}
}
