// SPDX-License-Identifier: BSD-3-Clause
#include "clock_dpdk.h"

#include <errno.h>
#include <rte_cpuflags.h>
#include <time.h>

#define ANCHOR_TRIES 32
#define CALIBRATE_NS (200 * NS_PER_MS)

static uint64_t kernel_ns(clockid_t id) {
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

struct clock_anchor clock_anchor(void) {
	struct clock_anchor best = {0};
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < ANCHOR_TRIES; i++) {
		uint64_t before = rte_rdtsc();
		uint64_t mono_ns = kernel_ns(CLOCK_MONOTONIC);
		uint64_t after = rte_rdtsc();

		if (after - before >= width)
			continue;
		width = after - before;
		best.tsc = before + width / 2;
		best.mono_ns = mono_ns;
		best.utc_ns = kernel_ns(CLOCK_REALTIME);
	}
	return best;
}

int clock_init(struct clock *c, const struct clock_anchor *first, struct err *err) {
	__extension__ typedef unsigned __int128 u128;
	struct clock_anchor now;

	if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) != 1)
		return err_set(
			err, -ENOTSUP, "this CPU's TSC is not invariant: it cannot time packets");
	while (kernel_ns(CLOCK_MONOTONIC) < first->mono_ns + CALIBRATE_NS) {
		const struct timespec ms = {.tv_nsec = 1000000};

		nanosleep(&ms, NULL);
	}
	now = clock_anchor();
	uint64_t ticks = now.tsc - first->tsc, ns = now.mono_ns - first->mono_ns;
	// ns / ticks in 64.64: the integer part, then the remainder shifted by 64.
	c->tick_ns = ns / ticks;
	c->tick_frac = (uint64_t)(((u128)(ns % ticks) << 64) / ticks);
	c->tsc_hz = (uint64_t)((u128)ticks * NS_PER_S / ns);
	c->first = *first;
	clock_start(c);
	return 0;
}

void clock_start(struct clock *c) {
	c->start = clock_anchor();
	c->tsc_start = c->start.tsc;
}

void clock_set_epoch(struct clock *c, uint64_t utc_ns) {
	__extension__ typedef unsigned __int128 u128;
	uint64_t back_ns = time_since(c->start.utc_ns, utc_ns);
	uint64_t back_ticks = (uint64_t)((u128)back_ns * c->tsc_hz / NS_PER_S);

	c->tsc_start -= back_ticks;
	c->start.tsc -= back_ticks;
	c->start.mono_ns -= back_ns;
	c->start.utc_ns -= back_ns;
}

double clock_drift_ppm(const struct clock *c) {
	struct clock_anchor now = clock_anchor();
	double kernel = (double)(now.mono_ns - c->start.mono_ns);
	double ours = (double)clock_ns(c, now.tsc);

	return kernel > 0 ? (ours - kernel) / kernel * 1e6 : 0;
}
