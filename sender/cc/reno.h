// SPDX-License-Identifier: BSD-3-Clause
// The window of Reno (RFC 5681), which several algorithms change in one place only: how much a
// reduction leaves, or how avoidance grows. newreno.c has the formulas and says where they differ
// from the RFCs.
//
//	slow start, cwnd < ssthresh:  cwnd += min(acked, L)
//	avoidance:                    cwnd += acked / cwnd
//	loss or ECN echo:             cwnd = ssthresh = what the algorithm says    once per window
//	timeout:                      ssthresh likewise, cwnd = 1
//	spurious loss:                cwnd and ssthresh as before, if that is more (RFC 4015)
//
// In a kernel that counts in ticks windows are whole segments, too: what a reduction leaves is
// rounded down, and of the segment that avoidance grows by the part that has been acknowledged is
// forgotten then (tcp_cong_avoid_ai of Linux).
#pragma once
#include "sender/cc/slow_start.h"

#include <math.h>

struct reno {
	double ssthresh_segs;
	bool episode; // reduced already; ends with fast recovery
	bool timeout; // until the slow start after it is over
	bool slow_start; // as of the last call, for reno_mode()
	bool whole; // windows are whole segments; a fraction of cwnd is progress to the next
	double prior_cwnd_segs, prior_ssthresh_segs; // before the last reduction
};

#define RENO_MODES(V)                                                                              \
	V(RENO_SLOW_START, "slow_start")                                                           \
	V(RENO_AVOIDANCE, "avoidance")                                                             \
	V(RENO_RECOVERY, "recovery")                                                               \
	V(RENO_TIMEOUT, "timeout")
enum reno_mode { RENO_MODES(CC_MODE_CONSTANT) };

static inline void reno_init(struct reno *r, const struct slow_start *s, struct cc_out *out) {
	*r = (struct reno){.ssthresh_segs = SSTHRESH_UNSET_SEGS, .slow_start = true};
	out->cwnd_segs = s->initial_segs;
	out->pacing_bps = 0;
}

// To be called for each ACK: whether the window may grow by it.
static inline bool reno_may_grow(struct reno *r, const struct cc_ack *ack) {
	r->whole = ack->tick_ns > 0;
	if (!ack->in_recovery)
		r->episode = false;
	return ack->in_sequence && ack->cwnd_limited && !ack->in_recovery;
}

// Slow start for `acked` segments; returns those left for congestion avoidance, 0: none.
static inline double reno_slow_start(
	struct reno *r, const struct slow_start *s, double acked, struct cc_out *out) {
	if (out->cwnd_segs < r->ssthresh_segs) {
		double step = slow_start_step(s, acked, r->timeout);

		acked = slow_start_grow(step, r->ssthresh_segs, out);
		if (acked <= 0)
			return 0;
	}
	r->timeout = false;
	return acked;
}

// Congestion avoidance for `acked` segments in whole windows. Not inlined: it has calls, for which
// the usual case would save registers.
__attribute__((noinline, unused)) static void reno_avoid_whole(double acked, struct cc_out *out) {
	double whole = floor(out->cwnd_segs);
	double grown = round((out->cwnd_segs - whole) * whole) + acked;
	double more = floor(grown / whole);

	out->cwnd_segs = whole + more + (grown - more * whole) / (whole + more);
}

// Congestion avoidance for `acked` segments.
static inline void reno_avoid(const struct reno *r, double acked, struct cc_out *out) {
	if (r->whole)
		reno_avoid_whole(acked, out);
	else
		out->cwnd_segs += acked / out->cwnd_segs;
}

// What a reduction by `part` leaves of the window.
static inline double reno_less(const struct reno *r, double part, const struct cc_out *out) {
	double whole = floor(out->cwnd_segs);

	return r->whole ? whole - floor(whole * part) : out->cwnd_segs * (1 - part);
}

static inline void reno_on_ack(
	struct reno *r, const struct slow_start *s, const struct cc_ack *ack, struct cc_out *out) {
	if (reno_may_grow(r, ack)) {
		double acked = reno_slow_start(r, s, ack->acked_segs, out);

		reno_avoid(r, acked, out);
	}
	r->slow_start = out->cwnd_segs < r->ssthresh_segs;
}

// Sets ssthresh to `segs`, what a reduction leaves of the window.
static inline void reno_lower(struct reno *r, double segs, const struct cc_out *out) {
	r->prior_cwnd_segs = out->cwnd_segs;
	r->prior_ssthresh_segs = r->ssthresh_segs;
	if (r->whole)
		segs = floor(segs);
	r->ssthresh_segs = segs > SSTHRESH_MIN_SEGS ? segs : SSTHRESH_MIN_SEGS;
}

static inline void reno_on_loss(struct reno *r, double segs, struct cc_out *out) {
	reno_lower(r, segs, out);
	r->episode = true;
	r->timeout = false;
	r->slow_start = false;
	out->cwnd_segs = r->ssthresh_segs;
}

static inline void reno_on_rto(
	struct reno *r, double segs, const struct cc_loss *loss, struct cc_out *out) {
	if (!r->episode && !loss->repeated)
		reno_lower(r, segs, out);
	r->episode = true;
	r->timeout = true;
	out->cwnd_segs = 1;
}

// Members of cc_ops for an algorithm whose state begins with `struct reno reno` and its config with
// `struct slow_start slow_start`, which RENO_FIRST checks.
#define RENO_FIRST(state)                                                                          \
	static_assert(offsetof(state, reno) == 0 && offsetof(struct config, slow_start) == 0,      \
		"the functions of reno.h find them there")

static inline double reno_given_window(const void *config) {
	const struct slow_start *s = config;

	return s->initial_segs;
}

static inline void reno_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct reno *r = state;

	if (r->prior_cwnd_segs > out->cwnd_segs)
		out->cwnd_segs = r->prior_cwnd_segs;
	if (r->prior_ssthresh_segs > r->ssthresh_segs)
		r->ssthresh_segs = r->prior_ssthresh_segs;
	r->episode = r->timeout = false;
}

static inline void reno_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	slow_start_idle(config, out);
}

static inline uint8_t reno_mode(const void *state, const void *config) {
	const struct reno *r = state;

	if (r->timeout)
		return RENO_TIMEOUT;
	if (r->episode)
		return RENO_RECOVERY;
	return r->slow_start ? RENO_SLOW_START : RENO_AVOIDANCE;
}

static inline double reno_ssthresh(const void *state, const void *config) {
	const struct reno *r = state;

	return r->ssthresh_segs;
}
