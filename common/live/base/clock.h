// SPDX-License-Identifier: BSD-3-Clause
// The clock of a live program: the invariant TSC in nanoseconds since the start of the run,
// disciplined to CLOCK_MONOTONIC. On arm64 the TSC is the generic timer's counter, cntvct_el0.
//
//	ns = ns0 + (tsc - tsc0) * rate        see ticks.h; one multiplication
//
// The rate is first measured between two anchors, one taken before the EAL starts and one after,
// some tenths of a second later. An anchor is the tightest of several (TSC, clock, TSC) readings,
// good to about 50 ns; two anchors 200 ms apart give 0.5 ppm. From then on the control thread takes
// an anchor every 100 ms (clock_watch) and requests a rate. The lcore adopts it (clock_follow)
// between iterations, so that its time is continuous.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/err.h"
#include "common/base/ticks.h"

#include <stdatomic.h>
#include <stdint.h>

// The same moment on the TSC and on the kernel's clocks.
struct clock_anchor {
	uint64_t tsc;
	uint64_t mono_ns; // CLOCK_MONOTONIC
	uint64_t utc_ns; // CLOCK_REALTIME
	uint64_t width_ticks; // TSC ticks within which the clocks were read
};

struct clock {
	struct ticks_line line; // written by the lcore; other threads read it through clock_line
	_Atomic uint32_t version; // odd: the line is being written
	_Atomic uint64_t wanted_rate; // set by the control thread
	uint64_t tsc_start; // TSC at 0 ns
	uint64_t tsc_hz, first_rate; // as first measured
	struct clock_anchor first; // calibration began here
	struct clock_anchor start; // the run's 0 ns
	uint64_t started_ns; // this clock's time at clock_start; above 0 with an epoch
	// Used by the control thread only.
	struct ticks_fit fit; // CLOCK_MONOTONIC over the TSC
	int64_t offset_ns, offset_max_ns; // ours - the kernel's: the last, and the largest
	uint64_t width_max_ticks; // the widest anchor that was used
	uint64_t anchors, refused; // anchors taken, and those that were too wide to use
};

uint64_t clock_mono_ns(void); // CLOCK_MONOTONIC
// For tests: this program then reads the kernel's clocks as those of another host, UTC ahead by
// offset_ns and both fast by drift_ppm. Before clock_init's first anchor. The offset is that of the
// last whole CLOCK_PLANT_NS of UTC, from which the drift counts: so it is known at any time.
#define CLOCK_PLANT_NS (1000 * NS_PER_S)
void clock_plant(uint64_t offset_ns, double drift_ppm);
struct clock_anchor clock_anchor(void);
// Measures the TSC's rate from `first` to now (waits until 200 ms have passed). Refuses a TSC that
// is not invariant, unless any will do.
int clock_init(struct clock *c, const struct clock_anchor *first, bool any_tsc, struct err *err);
// Starts the run: now is 0 ns.
void clock_start(struct clock *c);
// Moves 0 ns to the time utc_ns in UTC, so that several programs on one host, which share the TSC,
// have the same times. -ERANGE: utc_ns is not within the last two days.
int clock_set_epoch(struct clock *c, uint64_t utc_ns, struct err *err);
// Control thread, every 100 ms: compares with the kernel's clock and requests a better rate.
void clock_watch(struct clock *c);
// Lcore, in housekeeping: the first lcore's clock adopts the requested rate; other lcores' clocks
// copy the first one's line and stay within a nanosecond of it.
void clock_follow(struct clock *c, const struct clock *first);
// How far a time of the run, in UTC, may be from the kernel's: the largest offset that was seen,
// and what is not known of the moments at which the clocks were read. Means nothing without an
// anchor.
uint64_t clock_error_max_ns(const struct clock *c);
// Mean difference of the clock's rate from the kernel's since clock_start, in ppm; NaN
// without an anchor.
double clock_error_ppm(const struct clock *c);
// Mean difference of the TSC at its first measured rate from CLOCK_MONOTONIC, in ppm: the error
// that a single calibration would have left; NaN without an anchor.
double clock_drift_ppm(const struct clock *c);

static inline uint64_t clock_now(const struct clock *c) {
	return ticks_ns(&c->line, rte_rdtsc());
}
