// SPDX-License-Identifier: BSD-3-Clause
// Timers of a kernel that counts time in ticks, `hz` of them per second, as Linux's do
// (kernel/time/timer.c).
//
//	expires = floor(now / tick) + ceil(delay / tick)
//	fires   = (floor(expires / slot) + 1) slot        in ticks
//	slot    = 1 tick; of delays from 63 ticks on 8, from 504 on 64, from 4032 on 512, and so on
//
// A part of the present tick is over, so that a timer never fires early, and up to a slot late. A
// group without `hz` has a tick of 0: its timers are exact.
#pragma once
#include "common/base/ns.h"

#define JIFFIES_SLOTS 63 // of a level of the wheel, but for the one that is being served
#define JIFFIES_LEVEL_BITS 3 // a slot is 8 slots of the level below
#define JIFFIES_SHIFT_MAX 24
// Linux adds it to the waits of RACK and of the tail loss probe, so that ACKs on their way come
// first (TCP_TIMEOUT_MIN_US).
#define JIFFIES_TIMEOUT_MIN_NS (2 * NS_PER_MS)

// When a timer that is armed at from_ns for delay_ns fires.
static inline uint64_t jiffies_timer_ns(uint64_t tick_ns, uint64_t from_ns, uint64_t delay_ns) {
	uint64_t ticks, expires;
	uint32_t shift = 0;

	if (tick_ns == 0)
		return from_ns + delay_ns;
	ticks = (delay_ns + tick_ns - 1) / tick_ns;
	expires = from_ns / tick_ns + ticks;
	while (shift < JIFFIES_SHIFT_MAX && ticks >= (uint64_t)JIFFIES_SLOTS << shift)
		shift += JIFFIES_LEVEL_BITS;
	return (((expires >> shift) + 1) << shift) * tick_ns;
}

// The same for the waits of RACK and of the tail loss probe.
static inline uint64_t jiffies_wait_ns(uint64_t tick_ns, uint64_t from_ns, uint64_t delay_ns) {
	return jiffies_timer_ns(
		tick_ns, from_ns, delay_ns + (tick_ns > 0 ? JIFFIES_TIMEOUT_MIN_NS : 0));
}

// A length in whole ticks, rounded up (usecs_to_jiffies).
static inline uint64_t jiffies_up_ns(uint64_t tick_ns, uint64_t ns) {
	return tick_ns == 0 ? ns : (ns + tick_ns - 1) / tick_ns * tick_ns;
}

// The time as the kernel has it: that of the last tick.
static inline uint64_t jiffies_ns(uint64_t tick_ns, uint64_t now_ns) {
	return tick_ns == 0 ? now_ns : now_ns - now_ns % tick_ns;
}
