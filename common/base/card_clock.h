// SPDX-License-Identifier: BSD-3-Clause
// Conversion between a network card's clock and ours: a frame's arrival time from its RX timestamp,
// and the TX timestamp for a given time.
//
// A card counts its own ticks, which may drift, wrap, or be set by another program. Anchors
// (simultaneous readings of both clocks) give a line (ticks.h) that is used in both directions:
//
//	arrival:    ticks -> our nanoseconds     never before the previous frame, never after now
//	departure:  our nanoseconds -> ticks     never before the previous frame
//
// An anchor more than a millisecond from the line means that the card's clock was set: the fit
// restarts, and until the second anchor the card's time is unknown.
#pragma once
#include "common/base/ticks.h"

#define CARD_CLOCK_SET_NS NS_PER_MS

struct card_clock {
	struct ticks_fit fit; // our clock over the card's
	struct ticks_line line, back; // ours over the card's; the card's over ours
	bool known; // the lines are valid
	uint64_t arrival_ns, departure_tick; // of the last frame each
};

// Adds an anchor, later than those before it.
void card_clock_anchor(struct card_clock *c, uint64_t tick, uint64_t ns);

// Arrival of a frame with this timestamp that was received by now_ns; now_ns while the card's time
// is unknown.
static inline uint64_t card_clock_arrival_ns(struct card_clock *c, uint64_t tick, uint64_t now_ns) {
	c->arrival_ns = c->known ? ticks_moment(&c->line, tick, c->arrival_ns, now_ns) : now_ns;
	return c->arrival_ns;
}

// The TX timestamp of a frame that is to leave at due_ns; only while the clock is known.
static inline uint64_t card_clock_departure_tick(struct card_clock *c, uint64_t due_ns) {
	uint64_t tick = ticks_ns(&c->back, due_ns);

	if ((int64_t)(tick - c->departure_tick) > 0)
		c->departure_tick = tick;
	return c->departure_tick;
}
