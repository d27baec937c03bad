// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/ticks.h"

#include <math.h>

uint64_t ticks_at(const struct ticks_line *l, uint64_t ns) {
	__extension__ typedef __int128 i128;

	return l->tick
		+ (uint64_t)((i128)(int64_t)(ns - l->ns) * ((i128)1 << TICKS_SHIFT)
			/ (i128)l->rate);
}

struct ticks_line ticks_inverse(const struct ticks_line *l) {
	__extension__ typedef unsigned __int128 u128;

	return (struct ticks_line){
		.tick = l->ns,
		.ns = l->tick,
		.rate = (uint64_t)(((u128)1 << 2 * TICKS_SHIFT) / l->rate),
	};
}

void ticks_fit_add(struct ticks_fit *f, uint64_t tick, uint64_t ns) {
	uint32_t at = f->count++ % TICKS_ANCHORS;

	f->anchor[at].tick = tick;
	f->anchor[at].ns = ns;
}

bool ticks_fit_line(const struct ticks_fit *f, struct ticks_line *line) {
	uint32_t n = f->count < TICKS_ANCHORS ? f->count : TICKS_ANCHORS;
	double x_mean = 0, y_mean = 0, xx = 0, xy = 0;

	if (n < 2)
		return false;
	// Relative to the newest anchor, for small sums, and then to the mean.
	uint32_t last = (f->count - 1) % TICKS_ANCHORS;
	uint64_t tick = f->anchor[last].tick, ns = f->anchor[last].ns;
	for (uint32_t i = 0; i < n; i++) {
		x_mean += (double)(int64_t)(f->anchor[i].tick - tick) / n;
		y_mean += (double)(int64_t)(f->anchor[i].ns - ns) / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(int64_t)(f->anchor[i].tick - tick) - x_mean;
		double y = (double)(int64_t)(f->anchor[i].ns - ns) - y_mean;

		xx += x * x;
		xy += x * y;
	}
	double rate = xx > 0 ? ldexp(xy / xx, TICKS_SHIFT) : 0;
	if (!(rate >= 1 && rate < TICKS_RATE_MAX))
		return false;
	*line = (struct ticks_line){
		.tick = tick,
		.ns = ns + (uint64_t)llround(y_mean - x_mean * xy / xx),
		.rate = (uint64_t)llround(rate),
	};
	return true;
}

uint64_t ticks_steer(
	const struct ticks_line *line, const struct ticks_line *fit, uint64_t first_rate) {
	double offset_ns = (double)(int64_t)(fit->ns - ticks_ns(line, fit->tick));
	double rate = (double)fit->rate * (1 + offset_ns / (double)NS_PER_S);
	double room = (double)first_rate * TICKS_PPM_MAX * 1e-6;

	return (uint64_t)llround(
		fmin(fmax(rate, (double)first_rate - room), (double)first_rate + room));
}

double ticks_ppm(uint64_t rate, uint64_t base) {
	return (double)(int64_t)(rate - base) / (double)base * 1e6;
}
