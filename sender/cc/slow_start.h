// SPDX-License-Identifier: BSD-3-Clause
// Slow start for the loss-based algorithms (RFC 5681 section 3.1, RFC 3465): its parameters, the
// growth per ACK, and the restart after idling. It ends at ssthresh; an algorithm may end it
// earlier.
//
//	cwnd < ssthresh:         cwnd += min(acked, L), up to ssthresh; the rest is for congestion
//	                         avoidance
//	after a timeout:         L = 1: one ACK may cover segments of which most left before it
//	                         (RFC 3465 2.3)
//	idle for an RTO or more: cwnd = min(cwnd, initial window)    (RFC 5681 section 4.1)
#pragma once
#include "sender/cc/cc.h"

#define SSTHRESH_MIN_SEGS 2.0
#define SSTHRESH_UNSET_SEGS 1e9 // "arbitrarily high" (RFC 5681 3.1), still exact as a float

struct slow_start {
	double initial_segs;
	double abc_segs; // L; 0: no limit
	bool idle_restart;
};

// Rows of a control's parameter table; `field` is its struct slow_start.
#define SLOW_START_INITIAL(T, field)                                                               \
	{                                                                                          \
		.name = "initial", .def = "10",                                                    \
		.help = "initial and restart window in segments (RFC 6928)", .unit = UNIT_NONE,    \
		PARAM_F64(T, field.initial_segs), .min = 1, .max = 1000                            \
	}
#define SLOW_START_ABC_LIMIT(T, field, limit, rfc)                                                 \
	{                                                                                          \
		.name = "abc_limit", .def = limit,                                                 \
		.help = "most segments one ACK adds in slow start (" rfc " L); 0: no limit",       \
		.unit = UNIT_NONE, PARAM_F64(T, field.abc_segs), .min = 0, .max = 1000             \
	}
#define SLOW_START_IDLE_RESTART(T, field)                                                          \
	{                                                                                          \
		.name = "idle_restart", .def = "yes",                                              \
		.help = "fall back to the initial window after an idle RTO (RFC 5681 4.1)",        \
		PARAM_BOOL(T, field.idle_restart)                                                  \
	}

// The growth by an ACK of `acked` segments, at most, in segments.
static inline double slow_start_step(const struct slow_start *s, double acked, bool after_timeout) {
	double limit = after_timeout ? 1.0 : s->abc_segs;

	return limit > 0 && acked > limit ? limit : acked;
}

// Adds `step` to cwnd, up to ssthresh; returns the unused rest.
static inline double slow_start_grow(double step, double ssthresh_segs, struct cc_out *out) {
	double room = ssthresh_segs - out->cwnd_segs;

	if (out->cwnd_segs + step <= ssthresh_segs) {
		out->cwnd_segs += step;
		return 0;
	}
	out->cwnd_segs = ssthresh_segs;
	return step - room;
}

// Sending restarts after an RTO of idle time: returns whether the window was reduced.
static inline bool slow_start_idle(const struct slow_start *s, struct cc_out *out) {
	if (!s->idle_restart || out->cwnd_segs <= s->initial_segs)
		return false;
	out->cwnd_segs = s->initial_segs;
	return true;
}
