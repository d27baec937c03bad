// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/card_clock.h"

void card_clock_anchor(struct card_clock *c, uint64_t tick, uint64_t ns) {
	int64_t off_ns = c->known ? (int64_t)(ticks_ns(&c->line, tick) - ns) : 0;

	if (off_ns > (int64_t)CARD_CLOCK_SET_NS || off_ns < -(int64_t)CARD_CLOCK_SET_NS)
		c->fit = (struct ticks_fit){0};
	if (c->fit.count == 0)
		c->departure_tick = tick;
	ticks_fit_add(&c->fit, tick, ns);
	c->known = ticks_fit_line(&c->fit, &c->line);
	if (c->known)
		c->back = ticks_inverse(&c->line);
}
