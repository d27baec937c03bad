// SPDX-License-Identifier: BSD-3-Clause
// Conversion of a counter's ticks to nanoseconds of another clock, and the steering of the rate.
//
//	ns(tick) = ns0 + (tick - tick0) * rate        rate in 2^-56 ns per tick, no division
//
// An anchor is a simultaneous reading of both clocks. A least-squares line through the last 16
// anchors gives the counter's rate: to 0.03 ppm with anchors good to 50 ns, 100 ms apart. A clock
// in use is steered towards this line by its rate only,
//
//	rate = slope of the fit + offset / 1 s        within 500 ppm of its first rate
//
// so that it never jumps and never runs backwards, and an offset decays to 1/e in a second.
#pragma once
#include "common/base/ns.h"

#include <stdbool.h>
#include <stdint.h>

#define TICKS_ANCHORS 16
#define TICKS_SHIFT 56
#define TICKS_RATE_MAX 0x1p63 // 128 ns per tick
#define TICKS_PPM_MAX 500.0

struct ticks_line {
	uint64_t tick, ns; // a point of it
	uint64_t rate; // 2^-56 ns per tick
};

struct ticks_fit {
	struct {
		uint64_t tick, ns;
	} anchor[TICKS_ANCHORS]; // a ring
	uint32_t count; // of all anchors so far
};

// Nanoseconds at a tick, which may lie before the line's point.
static inline uint64_t ticks_ns(const struct ticks_line *l, uint64_t tick) {
	__extension__ typedef __int128 i128;

	return l->ns + (uint64_t)(((i128)(int64_t)(tick - l->tick) * (i128)l->rate) >> TICKS_SHIFT);
}

// The time of a tick, clamped to [last_ns, now_ns].
static inline uint64_t ticks_moment(
	const struct ticks_line *l, uint64_t tick, uint64_t last_ns, uint64_t now_ns) {
	uint64_t ns = ticks_ns(l, tick);

	return (int64_t)(ns - last_ns) < 0 ? last_ns : time_min(ns, now_ns);
}

// The tick at a time: the inverse of ticks_ns.
uint64_t ticks_at(const struct ticks_line *l, uint64_t ns);
// The inverse line, from nanoseconds to ticks: its ns are ticks, its ticks ns.
struct ticks_line ticks_inverse(const struct ticks_line *l);
// Adds an anchor, later than those before it.
void ticks_fit_add(struct ticks_fit *f, uint64_t tick, uint64_t ns);
// The line through the anchors. False: there are fewer than two, or the counter has stopped, or a
// tick is longer than TICKS_RATE_MAX.
bool ticks_fit_line(const struct ticks_fit *f, struct ticks_line *line);
// The rate that steers a clock from `line` towards `fit`, within TICKS_PPM_MAX of first_rate.
uint64_t ticks_steer(
	const struct ticks_line *line, const struct ticks_line *fit, uint64_t first_rate);
// How much faster rate is than base, in parts per million.
double ticks_ppm(uint64_t rate, uint64_t base);
