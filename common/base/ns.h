// SPDX-License-Identifier: BSD-3-Clause
// Time is uint64_t nanoseconds, always an argument: nothing below main reads a clock.
#pragma once
#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NEVER_NS UINT64_MAX

static inline uint64_t time_min(uint64_t a_ns, uint64_t b_ns) {
	return a_ns < b_ns ? a_ns : b_ns;
}

static inline uint64_t time_max(uint64_t a_ns, uint64_t b_ns) {
	return a_ns > b_ns ? a_ns : b_ns;
}

// a - b, or 0 where b is later.
static inline uint64_t time_since(uint64_t a_ns, uint64_t b_ns) {
	return a_ns > b_ns ? a_ns - b_ns : 0;
}

// The next due time after due_ns of a periodic event; periods that have passed completely are
// skipped.
static inline uint64_t time_next(uint64_t due_ns, uint64_t step_ns, uint64_t now_ns) {
	return due_ns + step_ns > now_ns ? due_ns + step_ns : now_ns + step_ns;
}
