// SPDX-License-Identifier: BSD-3-Clause
// A network card's clock and ours: when a frame arrived by its stamp, and the stamp at which one is to
// leave.
//
// A card counts its own ticks, and they may drift, wrap, or be set by somebody else. Anchors, moments
// read on both clocks, give a line (ticks.h) that is used both ways:
//
//	came:   ticks -> our nanoseconds     never before the frame before it, never after now
//	leave:  our nanoseconds -> ticks     never before the frame before it
//
// An anchor that lies more than a millisecond from the line says that the card's clock was set: all of
// it begins anew, and until the second anchor the card's time is unknown.
#pragma once
#include "common/base/ticks.h"

#define CARD_CLOCK_SET_NS NS_PER_MS

struct card_clock {
	struct ticks_fit fit; // our clock over the card's
	struct ticks_line line, back; // ours over the card's; the card's over ours
	bool known; // the lines
	uint64_t came_ns, left_tick; // last arrival and departure
};

// A moment on both clocks, later than those before it.
void card_clock_anchor(struct card_clock *c, uint64_t tick, uint64_t ns);

// When a frame with this stamp came, if it is known: what has come by now_ns.
static inline uint64_t card_clock_came(struct card_clock *c, uint64_t tick, uint64_t now_ns) {
	if (!c->known)
		return now_ns;
	c->came_ns = ticks_moment(&c->line, tick, c->came_ns, now_ns);
	return c->came_ns;
}

// The stamp of a frame that is to leave at due_ns; only while the clock is known.
static inline uint64_t card_clock_leave(struct card_clock *c, uint64_t due_ns) {
	uint64_t tick = ticks_ns(&c->back, due_ns);

	if ((int64_t)(tick - c->left_tick) > 0)
		c->left_tick = tick;
	return c->left_tick;
}
