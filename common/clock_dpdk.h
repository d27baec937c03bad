// SPDX-License-Identifier: BSD-3-Clause
// The one clock of a live program: the invariant TSC, in nanoseconds since the start of the run.
//
//	ns = (tsc - tsc_start) * ns_per_tick        64.64 fixed point, no division
//
// The rate is measured against CLOCK_MONOTONIC between two anchors: one taken before the EAL
// starts, one after, which are some tenths of a second apart anyway. An anchor is the tightest of
// several (TSC, clock, TSC) readings, good to about 50 ns, so 200 ms apart give 0.5 ppm.
#pragma once
#include "base_dpdk.h"

#include "err.h"

#include <stdint.h>

// A moment on both clocks.
struct clock_anchor {
	uint64_t tsc;
	uint64_t mono_ns; // CLOCK_MONOTONIC
	uint64_t utc_ns; // CLOCK_REALTIME
};

struct clock {
	uint64_t tsc_start; // TSC at 0 ns
	uint64_t tick_ns; // integer part of ns per tick
	uint64_t tick_frac; // and its fraction, in 2^-64
	uint64_t tsc_hz;
	struct clock_anchor first; // calibration began here
	struct clock_anchor start; // the run's 0 ns
};

// Takes an anchor.
struct clock_anchor clock_anchor(void);
// Measures the TSC's rate from `first` to now (waits until 200 ms have passed) and refuses a TSC
// that is not invariant.
int clock_init(struct clock *c, const struct clock_anchor *first, struct err *err);
// The run starts: now is 0 ns.
void clock_start(struct clock *c);
// Moves 0 ns to a moment in UTC, in the past, that several programs agree on: they share the TSC.
void clock_set_epoch(struct clock *c, uint64_t utc_ns);
// How far the clock has gone from CLOCK_MONOTONIC since the start, in parts per million.
double clock_drift_ppm(const struct clock *c);

static inline uint64_t clock_ns(const struct clock *c, uint64_t tsc) {
	__extension__ typedef unsigned __int128 u128;
	uint64_t ticks = tsc - c->tsc_start;

	return ticks * c->tick_ns + (uint64_t)(((u128)ticks * c->tick_frac) >> 64);
}

static inline uint64_t clock_now(const struct clock *c) {
	return clock_ns(c, rte_rdtsc());
}
