// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/base/clock.h"

#include "common/base/u64.h"

#include <errno.h>
#include <math.h>
#include <rte_cpuflags.h>
#include <stdlib.h>
#include <time.h>

#define ANCHOR_TRIES 32
#define CALIBRATE_NS (200 * NS_PER_MS)
#define WIDTH_NS_MAX 1000 // a wider anchor is not used
#define EPOCH_NS_MAX (48 * 3600 * NS_PER_S) // then the times of a run of one day fit into 48 bits

static struct {
	uint64_t mono_ns, utc_ns; // from when on the clocks drift
	uint64_t offset_ns; // of UTC
	double drift;
} planted;

static uint64_t kernel_ns(clockid_t id) {
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t drifted_ns(uint64_t ns, uint64_t since_ns) {
	return planted.drift == 0
		? ns
		: ns + (uint64_t)(int64_t)((double)(int64_t)(ns - since_ns) * planted.drift);
}

uint64_t clock_mono_ns(void) {
	return drifted_ns(kernel_ns(CLOCK_MONOTONIC), planted.mono_ns);
}

static uint64_t clock_utc_ns(void) {
	return drifted_ns(kernel_ns(CLOCK_REALTIME), planted.utc_ns) + planted.offset_ns;
}

void clock_plant(uint64_t offset_ns, double drift_ppm) {
	uint64_t utc_ns = kernel_ns(CLOCK_REALTIME), since_ns = utc_ns % CLOCK_PLANT_NS;

	planted.mono_ns = kernel_ns(CLOCK_MONOTONIC) - since_ns;
	planted.utc_ns = utc_ns - since_ns;
	planted.offset_ns = offset_ns;
	planted.drift = drift_ppm / 1e6;
}

struct clock_anchor clock_anchor(void) {
	struct clock_anchor best = {.width_ticks = UINT64_MAX};

	for (int i = 0; i < ANCHOR_TRIES; i++) {
		uint64_t before = rte_rdtsc();
		uint64_t utc_ns = clock_utc_ns();
		uint64_t mono_ns = clock_mono_ns();
		uint64_t after = rte_rdtsc();

		if (after - before >= best.width_ticks)
			continue;
		best = (struct clock_anchor){
			.tsc = before + (after - before) / 2,
			.mono_ns = mono_ns,
			.utc_ns = utc_ns,
			.width_ticks = after - before,
		};
	}
	return best;
}

// The TSC is invariant on processors that say so. arm64's generic timer, whose counter rte_rdtsc
// reads there, always is: the architecture has it count at one frequency on all cores.
static bool is_invariant(void) {
#ifdef RTE_ARCH_X86
	return rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) == 1;
#else
	return true;
#endif
}

int clock_init(struct clock *c, const struct clock_anchor *first, bool any_tsc, struct err *err) {
	struct clock_anchor now;
	struct ticks_line line;

	if (!any_tsc && !is_invariant())
		return err_set(err, -ENOTSUP,
			"this CPU's TSC is not invariant: it cannot time packets (a test that asks "
			"for no times may set live.test_any_tsc: yes)");
	while (clock_mono_ns() < first->mono_ns + CALIBRATE_NS) {
		const struct timespec ms = {.tv_nsec = 1000000};

		nanosleep(&ms, NULL);
	}
	now = clock_anchor();
	ticks_fit_add(&c->fit, first->tsc, first->mono_ns);
	ticks_fit_add(&c->fit, now.tsc, now.mono_ns);
	if (!ticks_fit_line(&c->fit, &line))
		return err_set(
			err, -ENOTSUP, "this CPU's TSC stands still: it cannot time packets");
	c->first_rate = line.rate;
	c->tsc_hz = ticks_at(&line, line.ns + NS_PER_S) - line.tick;
	c->first = *first;
	clock_start(c);
	return 0;
}

void clock_start(struct clock *c) {
	c->start = clock_anchor();
	c->tsc_start = c->start.tsc;
	c->line = (struct ticks_line){.tick = c->start.tsc, .rate = c->first_rate};
	atomic_store(&c->wanted_rate, c->first_rate);
}

int clock_set_epoch(struct clock *c, uint64_t utc_ns, struct err *err) {
	uint64_t back_ns = c->start.utc_ns - utc_ns;
	uint64_t tsc;

	if (utc_ns > c->start.utc_ns || back_ns > EPOCH_NS_MAX)
		return err_set(err, -ERANGE,
			"live.epoch: %llu is not of the last two days, in nanoseconds: now is %llu",
			(unsigned long long)utc_ns, (unsigned long long)c->start.utc_ns);
	tsc = ticks_at(&c->line, c->line.ns - back_ns);
	c->line.ns += back_ns;
	c->started_ns = c->line.ns;
	c->tsc_start = c->start.tsc = tsc;
	c->start.mono_ns -= back_ns;
	c->start.utc_ns -= back_ns;
	return 0;
}

// A consistent copy of the line that the lcore writes, for other threads.
static struct ticks_line clock_line(const struct clock *c) {
	struct ticks_line l;
	uint32_t version;

	do {
		version = atomic_load_explicit(&c->version, memory_order_acquire);
		l.tick = __atomic_load_n(&c->line.tick, __ATOMIC_RELAXED);
		l.ns = __atomic_load_n(&c->line.ns, __ATOMIC_RELAXED);
		l.rate = __atomic_load_n(&c->line.rate, __ATOMIC_RELAXED);
		atomic_thread_fence(memory_order_acquire);
	} while (version % 2 == 1
		|| version != atomic_load_explicit(&c->version, memory_order_relaxed));
	return l;
}

void clock_watch(struct clock *c) {
	struct clock_anchor now = clock_anchor();
	struct ticks_line line = clock_line(c), fit;

	// The thread was preempted during each of the readings: wait for the next anchor.
	if (now.width_ticks * NS_PER_S / c->tsc_hz > WIDTH_NS_MAX) {
		c->refused++;
		return;
	}
	c->anchors++;
	c->width_max_ticks = max_u64(c->width_max_ticks, now.width_ticks);
	ticks_fit_add(&c->fit, now.tsc, now.mono_ns);
	if (!ticks_fit_line(&c->fit, &fit))
		return;
	fit.ns -= c->start.mono_ns;
	c->offset_ns = (int64_t)(ticks_ns(&line, now.tsc) - (now.mono_ns - c->start.mono_ns));
	if (llabs(c->offset_ns) > llabs(c->offset_max_ns))
		c->offset_max_ns = c->offset_ns;
	atomic_store_explicit(
		&c->wanted_rate, ticks_steer(&line, &fit, c->first_rate), memory_order_relaxed);
}

static void follow_kernel(struct clock *c) {
	uint64_t rate = atomic_load_explicit(&c->wanted_rate, memory_order_relaxed), tsc, ns;
	uint32_t version = atomic_load_explicit(&c->version, memory_order_relaxed);

	if (rate == c->line.rate)
		return;
	tsc = rte_rdtsc();
	ns = ticks_ns(&c->line, tsc);
	atomic_store_explicit(&c->version, version + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	__atomic_store_n(&c->line.tick, tsc, __ATOMIC_RELAXED);
	__atomic_store_n(&c->line.ns, ns, __ATOMIC_RELAXED);
	__atomic_store_n(&c->line.rate, rate, __ATOMIC_RELAXED);
	atomic_store_explicit(&c->version, version + 2, memory_order_release);
}

static void follow_other(struct clock *c, const struct clock *other) {
	uint32_t version = atomic_load_explicit(&other->version, memory_order_relaxed);

	if (version == atomic_load_explicit(&c->version, memory_order_relaxed))
		return;
	c->line = clock_line(other);
	atomic_store_explicit(&c->version, version, memory_order_relaxed);
}

void clock_follow(struct clock *c, const struct clock *first) {
	if (c == first)
		follow_kernel(c);
	else
		follow_other(c, first);
}

uint64_t clock_error_max_ns(const struct clock *c) {
	uint64_t unsure_ticks = c->width_max_ticks / 2 + c->start.width_ticks;

	return (uint64_t)llabs(c->offset_max_ns) + unsure_ticks * NS_PER_S / c->tsc_hz;
}

double clock_error_ppm(const struct clock *c) {
	uint64_t run_ns = time_since(clock_now(c), c->started_ns);

	return c->anchors > 0 && run_ns > 0 ? (double)c->offset_ns / (double)run_ns * 1e6
					    : (double)NAN;
}

double clock_drift_ppm(const struct clock *c) {
	struct clock_anchor now = clock_anchor();
	struct ticks_line once = {c->first.tsc, c->first.mono_ns, c->first_rate};
	double kernel = (double)(now.mono_ns - c->first.mono_ns);
	double ours = (double)(ticks_ns(&once, now.tsc) - c->first.mono_ns);

	return c->anchors > 0 && kernel > 0 ? (ours - kernel) / kernel * 1e6 : (double)NAN;
}
