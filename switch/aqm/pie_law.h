// SPDX-License-Identifier: BSD-3-Clause
// PIE's control law (Proportional Integral controller Enhanced, RFC 8033) without a queue, shared
// by disciplines of one queue and of many.
//
//	every update      p = alpha (delay - target) + beta (delay - delay of the last update),
//	                  divided by 2048, 512, 128, 32, 8, 2 or 1: the smaller the probability, the
//	                  smaller the step (section 4.2); at most 0.02 from a probability of 0.1 on
//	                  (5.5)
//	                  probability += p; if both delays are 0, probability *= 0.98;
//	                  kept within [0, 1]; allowance = max(0, allowance - update)
//	every arrival     without congestion (probability 0, both delays below target / 2)
//	                  allowance = max_burst; dropped with the probability, unless there is an
//	                  allowance (4.4), the last delay is below target / 2 with a probability
//	                  below 0.2, or no more bytes wait than in two full-sized frames (4.1)
//	derandomised      the probabilities of arrivals add up since the last drop: below 0.85 none
//	                  is dropped, from 8.5 on each one (5.4)
//	ECN               marked instead, while the probability is below ecn_max (5.1)
//
// Where we differ from the RFC, and why:
// - The delay is the age of the oldest packet when the probability is updated, and 0 when there is
//   none. With the delay of the last packet that left (appendix A) an idle queue would keep the
//   delay of its last busy period, and a link that stands still would seem to be without delay.
//   Nothing is estimated (5.2).
// - Updates happen at multiples of `update`, whenever the first packet comes. They are computed
//   when the next packet comes or leaves; in between the queue does not change, so that the result
//   is the same.
// - Of the two conditions for the decay it is that of 4.2, appendix A and Linux, 0, not that of
//   appendix B, target / 2: this one lowers a large probability whenever the queue swings below
//   half the target, so that at twice the rate, of senders that do not react, the queue settles at
//   25 ms in place of 15.
// - PIE is always active (5.3 is optional): where a third of the limit is, says little about a
//   queue in an emulator.
// - While there is an allowance, the sum of 5.4 stands still, as in 4.4; appendix B adds to it.
// - A mark clears that sum like a drop; appendix B leaves open whether it does.
// - After PIE_UPDATES_MAX updates without a packet the rest are left out.
#pragma once
#include "common/base/likely.h"
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "common/base/rng.h"

#define PIE_UPDATES_MAX 4096
#define PIE_ACCU_LOW 0.85
#define PIE_ACCU_HIGH 8.5

struct pie_law {
	uint64_t target_ns;
	uint64_t update_ns;
	uint64_t max_burst_ns;
	double alpha, beta; // 1/s
	bool ecn;
	double ecn_max;
	bool derandomise;

	uint64_t few_bytes; // that wait without a drop
	// Up to this delay no update raises the probability, if delays grow as time passes at most.
	uint64_t rest_ns;
};

struct pie_state {
	double prob;
	double accu; // sum of probabilities since the last drop
	uint64_t delay_ns; // at the last update
	uint64_t burst_ns; // what is left of the allowance
	uint64_t next_ns; // of updates
};

// For all queues of a discipline.
struct pie_draws {
	struct rng rng;
	bool drew; // a packet was subject to a draw
};

enum pie_verdict { PIE_PASS, PIE_MARK, PIE_DROP };

// The lines of a discipline's table for its `struct pie_law law`. Defaults: RFC 8033, appendix B.
#define PIE_LAW_PARAMS(type)                                                                       \
	{"target", "15ms", "queueing delay that it aims at", UNIT_TIME_NS,                         \
		PARAM_U64(type, law.target_ns), 1e3, 1e10, .live = true},                          \
		{"update", "15ms", "time between updates of the probability", UNIT_TIME_NS,        \
			PARAM_U64(type, law.update_ns), 1e3, 1e10},                                \
		{"max_burst", "150ms", "nothing is dropped for so long after a quiet queue",       \
			UNIT_TIME_NS, PARAM_U64(type, law.max_burst_ns), 0, 1e12},                 \
		{"alpha", "0.125", "gain of the delay above the target, in 1/s", UNIT_NONE,        \
			PARAM_F64(type, law.alpha), 1e-6, 1e6, .live = true},                      \
		{"beta", "1.25", "gain of the delay since the last update, in 1/s", UNIT_NONE,     \
			PARAM_F64(type, law.beta), 0, 1e6, .live = true},                          \
		{"ecn", "no", "mark ECN capable packets instead of dropping them", UNIT_NONE,      \
			PARAM_BOOL(type, law.ecn), .live = true},                                  \
		{"ecn_max", "10%", "probability from which they are dropped too", UNIT_RATIO,      \
			PARAM_F64(type, law.ecn_max), 0, 1, .live = true},                         \
	{                                                                                          \
		"derandomise", "yes", "space drops evenly (section 5.4)", UNIT_NONE,               \
			PARAM_BOOL(type, law.derandomise), .live = true                            \
	}

static inline void pie_draws_init(struct pie_draws *d, uint64_t seed) {
	rng_init(&d->rng, seed, "pie");
}

static inline void pie_state_init(const struct pie_law *l, struct pie_state *s) {
	s->burst_ns = l->max_burst_ns;
	s->next_ns = l->update_ns;
}

// Section 4.2: divisor of the step.
static inline double pie_scale(double prob) {
	static const struct {
		double below, divisor;
	} scale[] = {{1e-6, 2048}, {1e-5, 512}, {1e-4, 128}, {1e-3, 32}, {1e-2, 8}, {1e-1, 2}};

	for (size_t i = 0; i < sizeof(scale) / sizeof(scale[0]); i++)
		if (prob < scale[i].below)
			return scale[i].divisor;
	return 1;
}

static inline double pie_diff_s(uint64_t a_ns, uint64_t b_ns) {
	return (double)(int64_t)(a_ns - b_ns) / 1e9;
}

// How far an update moves the probability, before the scale.
static inline double pie_step(const struct pie_law *l, uint64_t delay_ns, uint64_t last_ns) {
	return l->alpha * pie_diff_s(delay_ns, l->target_ns)
		+ l->beta * pie_diff_s(delay_ns, last_ns);
}

static inline void pie_law_update(struct pie_law *l) {
	double rest_ns = (double)l->target_ns - l->beta / l->alpha * (double)l->update_ns;

	l->rest_ns = rest_ns > 0 ? (uint64_t)rest_ns : 0;
	// Rounding must not make it too long. Of an empty queue the delay does not grow.
	if (pie_step(l, l->rest_ns, l->rest_ns - l->update_ns) > 0)
		l->rest_ns = 0;
}

static inline void pie_law_init(struct pie_law *l, uint32_t mtu_bytes) {
	l->few_bytes = 2 * (uint64_t)mtu_bytes;
	pie_law_update(l);
}

// One update, with the present delay.
static inline void pie_update(const struct pie_law *l, struct pie_state *s, uint64_t delay_ns) {
	double p = pie_step(l, delay_ns, s->delay_ns);

	p /= pie_scale(s->prob);
	if (s->prob >= 0.1 && p > 0.02)
		p = 0.02;
	s->prob += p;
	if (delay_ns == 0 && s->delay_ns == 0)
		s->prob *= 0.98;
	s->prob = s->prob < 0 ? 0 : s->prob > 1 ? 1 : s->prob;
	s->delay_ns = delay_ns;
	s->burst_ns = time_since(s->burst_ns, l->update_ns);
}

static inline uint64_t pie_delay_ns(const struct pkt *oldest, uint64_t now_ns) {
	return oldest == NULL ? 0 : time_since(now_ns, oldest->arrival_ns);
}

// Whether n updates from t_ns on leave the probability at 0: while no packet leaves, each delay
// exceeds the last one by the time between updates at most, and the last delay is the longest.
static inline bool pie_rests(const struct pie_law *l, const struct pie_state *s,
	const struct pkt *oldest, uint64_t t_ns, uint64_t n) {
	return s->prob <= 0 && pie_delay_ns(oldest, t_ns) <= s->delay_ns + l->update_ns
		&& pie_delay_ns(oldest, t_ns + (n - 1) * l->update_ns) <= l->rest_ns;
}

__attribute__((noinline)) static void pie_catch_up(
	const struct pie_law *l, struct pie_state *s, const struct pkt *oldest, uint64_t now_ns) {
	uint64_t n = 1 + (now_ns - s->next_ns) / l->update_ns, t_ns = s->next_ns;

	s->next_ns += n * l->update_ns;
	for (n = time_min(n, PIE_UPDATES_MAX); n > 0; n--, t_ns += l->update_ns) {
		if (pie_rests(l, s, oldest, t_ns, n)) {
			s->delay_ns = pie_delay_ns(oldest, t_ns + (n - 1) * l->update_ns);
			s->burst_ns = time_since(s->burst_ns, n * l->update_ns);
			return;
		}
		pie_update(l, s, pie_delay_ns(oldest, t_ns));
	}
}

// The updates up to now_ns, before the queue changes; `oldest` of its packets, NULL: it is empty.
static inline void pie_advance(
	const struct pie_law *l, struct pie_state *s, const struct pkt *oldest, uint64_t now_ns) {
	if (unlikely(s->next_ns <= now_ns))
		pie_catch_up(l, s, oldest, now_ns);
}

// Section 4.4: whether the burst allowance is as at the start.
static inline bool pie_quiet(const struct pie_law *l, const struct pie_state *s,
	const struct pkt *oldest, uint64_t now_ns) {
	return s->prob <= 0 && s->delay_ns < l->target_ns / 2
		&& pie_delay_ns(oldest, now_ns) < l->target_ns / 2;
}

// Sections 4.1 and 5.4: whether a packet that arrives is dropped or marked.
static inline bool pie_hits(
	const struct pie_law *l, struct pie_state *s, struct pie_draws *d, uint64_t queue_bytes) {
	if ((s->delay_ns < l->target_ns / 2 && s->prob < 0.2) || queue_bytes <= l->few_bytes)
		return false;
	s->accu = s->prob <= 0 ? 0 : s->accu + s->prob;
	if (l->derandomise) {
		if (s->accu < PIE_ACCU_LOW)
			return false;
		if (s->accu >= PIE_ACCU_HIGH)
			return true;
	}
	d->drew = true;
	return rng_unit(&d->rng) < s->prob;
}

// A packet arrives that fits, after pie_advance.
static inline enum pie_verdict pie_arrival(const struct pie_law *l, struct pie_state *s,
	struct pie_draws *d, struct pkt *p, const struct pkt *oldest, uint64_t queue_bytes,
	uint64_t now_ns) {
	if (s->burst_ns < l->max_burst_ns && pie_quiet(l, s, oldest, now_ns))
		s->burst_ns = l->max_burst_ns;
	if (s->burst_ns > 0 || !pie_hits(l, s, d, queue_bytes))
		return PIE_PASS;
	s->accu = 0;
	if (l->ecn && s->prob < l->ecn_max && p->ecn != ECN_NOT_ECT)
		return PIE_MARK;
	return PIE_DROP;
}

// Observed values of the law: its state after the last update.
#define PIE_OBSERVED "drop_probability", "delay_ns", "burst_allowance_ns", "accumulated_probability"
static inline void pie_law_observe(const struct pie_state *s, double out[4]) {
	out[0] = s->prob;
	out[1] = (double)s->delay_ns;
	out[2] = (double)s->burst_ns;
	out[3] = s->accu;
}
