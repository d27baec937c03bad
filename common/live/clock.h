// SPDX-License-Identifier: BSD-3-Clause
// The one clock of a live program: the invariant TSC, in nanoseconds since the start of the run, kept
// on CLOCK_MONOTONIC.
//
//	ns = ns0 + (tsc - tsc0) * rate        see ticks.h; one multiplication
//
// The rate is first measured between two anchors: one taken before the EAL starts, one after, which
// are some tenths of a second apart anyway. An anchor is the tightest of several (TSC, clock, TSC)
// readings, good to about 50 ns, so 200 ms apart give 0.5 ppm. From then on the control thread takes
// one every 100 ms (clock_watch) and asks for a rate; the lcore changes to it (clock_follow) at a
// moment of its own, so that its time is continuous.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/err.h"
#include "common/base/ticks.h"

#include <stdatomic.h>
#include <stdint.h>

// A moment on both clocks.
struct clock_anchor {
	uint64_t tsc;
	uint64_t mono_ns; // CLOCK_MONOTONIC
	uint64_t utc_ns; // CLOCK_REALTIME
	uint64_t width_ticks; // within which both were read
};

struct clock {
	struct ticks_line line; // written by the lcore, which alone reads it without clock_line
	_Atomic uint32_t version; // odd: it is being written
	_Atomic uint64_t wanted_rate; // by the control thread
	uint64_t tsc_start; // TSC at 0 ns
	uint64_t tsc_hz, first_rate; // as first measured
	struct clock_anchor first; // calibration began here
	struct clock_anchor start; // the run's 0 ns
	uint64_t started_ns; // of its time: when it was started, later than 0 ns with an epoch
	// The control thread's.
	struct ticks_fit fit; // CLOCK_MONOTONIC over the TSC
	int64_t offset_ns, offset_max_ns; // ours - the kernel's: last, and the largest either way
	uint64_t anchors, refused; // taken, and too wide to use
};

// Takes an anchor.
struct clock_anchor clock_anchor(void);
// Measures the TSC's rate from `first` to now (waits until 200 ms have passed) and refuses a TSC
// that is not invariant.
int clock_init(struct clock *c, const struct clock_anchor *first, struct err *err);
// The run starts: now is 0 ns.
void clock_start(struct clock *c);
// Moves 0 ns to a moment in UTC that several programs agree on: they share the TSC. -ERANGE: it is not
// of the last two days.
int clock_set_epoch(struct clock *c, uint64_t utc_ns, struct err *err);
// Compares with the kernel's clock and asks for a better rate. Control thread, every 100 ms.
void clock_watch(struct clock *c);
// Lcore, now and then: the first lcore's clock changes to the rate asked for, another's takes over its time,
// and is never more than a nanosecond from it.
void clock_follow(struct clock *c, const struct clock *first);
// How far its rate has been from the kernel's since it was started, in ppm.
double clock_error_ppm(const struct clock *c);
// How far the TSC with its first rate has gone from CLOCK_MONOTONIC, in ppm: what calibrating it once
// would have cost.
double clock_drift_ppm(const struct clock *c);

static inline uint64_t clock_now(const struct clock *c) {
	return ticks_ns(&c->line, rte_rdtsc());
}
