// SPDX-License-Identifier: BSD-3-Clause
// CUBIC's avoidance in a kernel that counts time in ticks and windows in whole segments
// (bictcp_update and tcp_cong_avoid_ai of Linux 6.12). It computes anew when the window has changed
// or HZ/32 ticks are over, and the target at most once per tick; in between the window grows as it
// did:
//
//	t     = ticks since the stage began + RTTmin, rounded up to ticks
//	cnt   = cwnd / (W_cubic(t) - cwnd), 100 cwnd if W_cubic(t) <= cwnd
//	        segments to be acknowledged for one more; at most 20 until the first reduction
//	W_est + 1  for each 15/8 cwnd segments acknowledged
//	cnt   = cwnd / (W_est - cwnd), if that is less, and at least 2
//
// So a short round trip sees W_est grow by several segments at once, and the window overtakes a
// queue that would have lost one segment by two or three.
#pragma once
#include "common/base/portable_math.h"

#include <stdbool.h>
#include <stdint.h>

#define CUBIC_UPDATES 32 // per second
#define CUBIC_TIME_UNITS 1024.0 // of a second: BICTCP_HZ
#define CUBIC_C_UNITS 1024
#define CUBIC_CNT_EARLY 20
#define CUBIC_CNT_MIN 2

struct cubic_ticks {
	uint64_t epoch, last; // in ticks
	uint32_t last_cwnd, origin, w_est; // segments
	uint32_t cnt, acked, grown; // grown: acknowledged towards the next segment of the window
	uint32_t k; // of 1/1024 s
};

// C in the kernel's units: 0.4 is 410 / 1024.
static inline double whole_c(double c) {
	return (double)(uint64_t)(c * CUBIC_C_UNITS + 0.5) / CUBIC_C_UNITS;
}

static inline void cubic_ticks_start(
	struct cubic_ticks *t, double c, double w_max, uint32_t cwnd, uint32_t acked) {
	double below = w_max > cwnd ? w_max - cwnd : 0;

	t->epoch = t->last;
	t->acked = acked;
	t->w_est = cwnd;
	t->origin = cwnd + (uint32_t)below;
	t->k = (uint32_t)(CUBIC_TIME_UNITS * portable_cbrt(below / whole_c(c)));
}

static inline uint32_t cubic_ticks_count(const struct cubic_ticks *t, double c, uint64_t tick_ns,
	uint64_t rtt_min_ns, uint32_t cwnd) {
	uint64_t ticks = t->last - t->epoch + (rtt_min_ns + tick_ns - 1) / tick_ns;
	double units = (double)(ticks * tick_ns) * 1e-9 * CUBIC_TIME_UNITS;
	double from_k = ((double)(uint64_t)(units + 1e-6) - t->k) / CUBIC_TIME_UNITS;
	int64_t target = t->origin + (int64_t)(whole_c(c) * from_k * from_k * from_k);

	return target > cwnd ? (uint32_t)(cwnd / (target - cwnd)) : 100 * cwnd;
}

// `stage`: it has begun; `early`: nothing was ever lost. Sets cnt.
static inline void cubic_ticks_update(struct cubic_ticks *t, double c, double beta, double w_max,
	bool stage, bool early, uint64_t now_ns, uint64_t tick_ns, uint64_t rtt_min_ns,
	uint32_t cwnd, uint32_t acked) {
	uint64_t now = now_ns / tick_ns, period = 1000000000 / tick_ns / CUBIC_UPDATES;
	uint32_t per_segment;

	t->acked += acked;
	if (t->last_cwnd == cwnd && now - t->last <= period)
		return;
	if (!stage || now != t->last) {
		t->last_cwnd = cwnd;
		t->last = now;
		if (!stage)
			cubic_ticks_start(t, c, w_max, cwnd, acked);
		t->cnt = cubic_ticks_count(t, c, tick_ns, rtt_min_ns, cwnd);
		if (early && t->cnt > CUBIC_CNT_EARLY)
			t->cnt = CUBIC_CNT_EARLY;
	}
	per_segment = cwnd * (uint32_t)(8 * (1 + beta) / (3 * (1 - beta))) / 8;
	if (per_segment == 0) // two segments and a low beta, at which a kernel's loop has no end
		per_segment = 1;
	while (t->acked > per_segment) {
		t->acked -= per_segment;
		t->w_est++;
	}
	if (t->w_est > cwnd && cwnd / (t->w_est - cwnd) < t->cnt)
		t->cnt = cwnd / (t->w_est - cwnd);
	if (t->cnt < CUBIC_CNT_MIN)
		t->cnt = CUBIC_CNT_MIN;
}

// The window after `acked` segments.
static inline uint32_t cubic_ticks_grow(struct cubic_ticks *t, uint32_t cwnd, uint32_t acked) {
	uint32_t more;

	if (t->grown >= t->cnt) {
		t->grown = 0;
		cwnd++;
	}
	t->grown += acked;
	more = t->grown / t->cnt;
	t->grown -= more * t->cnt;
	return cwnd + more;
}
