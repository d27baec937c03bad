// SPDX-License-Identifier: BSD-3-Clause
// DualPI2's control law (RFC 9332, appendix A) without queues: the probabilities of both queues.
//
//	every update      p' += alpha (delay - target) + beta (delay - delay of the last update),
//	                  within [0, 1]; delay: the larger age of the two queues' oldest packets
//	                  classic     p_C  = p'^2, because the rate of a Classic control falls with
//	                              the root of its probability
//	                  coupled     p_CL = k p', because that of a Scalable one falls with the
//	                              probability itself
//	every L4S packet  p_L = max(p'_L, p_CL), at most 1; p'_L is 0 up to `threshold`, rises to 1
//	                  over `range`
//	gains             update = min(target, max_rtt / 3), alpha = 0.1 update / max_rtt^2,
//	                  beta = 0.3 / max_rtt
//	overload          of the L4S queue from p_CL = 1 on, of the classic one from
//	                  p_C = min(1 / k^2, 1) on: all L4S packets are marked, and more marks would
//	                  say nothing, so that drops begin (A.2)
//	signals           the probabilities of packets add up, and each time their sum exceeds 1, a
//	                  packet is marked or dropped (function recur); or each packet is decided by
//	                  a draw
//
// The defaults are the RFC's: target 15 ms, max_rtt 100 ms, k 2, threshold 800 us, range 400 us.
// Linux has a step of 1 ms (`range: 0`), update 16 ms, alpha 0.16, beta 3.2, and draws
// (`derandomise: no`).
//
// Where we differ from the RFC, and why:
// - A probability of 1 signals always. The RFC's sum would miss the first packet and, as p_CL may
//   be k, grow without bound in overload and mark for long afterwards.
// - Updates happen at multiples of `update` and are computed when the next packet comes or leaves;
//   in between the queue does not change, so that the result is the same.
// - After DUALPI2_UPDATES_MAX updates without a packet the rest are left out.
#pragma once
#include "common/base/likely.h"
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "common/base/rng.h"

#define DUALPI2_UPDATES_MAX 4096

enum dualpi2_overload { DUALPI2_DROP, DUALPI2_OVERFLOW };

struct dualpi2_law {
	uint64_t target_ns;
	uint64_t max_rtt_ns;
	uint64_t update_ns; // 0 until dualpi2_law_init: from the two above
	double alpha, beta; // 1/s; likewise
	double coupling; // k
	int overload; // enum dualpi2_overload
	bool derandomise;

	double prob_max; // of p'
	double overload_prob; // p' from which the classic queue drops what it would mark
};

struct dualpi2_state {
	double prob; // p'
	double classic; // p_C
	double coupled; // p_CL
	bool classic_overload, l4s_overload;
	bool drew; // a packet was subject to a draw
	uint64_t delay_ns; // at the last update
	uint64_t next_ns; // of updates
	struct rng rng;
};

// The lines of a discipline's table for its `struct dualpi2_law law`. Defaults: appendix A.1 of the
// RFC.
#define DUALPI2_LAW_PARAMS(type, overload_names)                                                   \
	{"target", "15ms", "queueing delay that it aims at; the RTT of typical flows",             \
		UNIT_TIME_NS, PARAM_U64(type, law.target_ns), 1e3, 1e10, .live = true},            \
		{"max_rtt", "100ms", "largest RTT for which it is stable; decides alpha and beta", \
			UNIT_TIME_NS, PARAM_U64(type, law.max_rtt_ns), 3e3, 1e11},                 \
		{"update", "0", "time between updates of p'; 0: min(target, max_rtt / 3)",         \
			UNIT_TIME_NS, PARAM_U64(type, law.update_ns), 0, 1e10},                    \
		{"alpha", "0", "gain of the delay above the target, in 1/s; 0: from max_rtt",      \
			UNIT_NONE, PARAM_F64(type, law.alpha), 0, 1e6},                            \
		{"beta", "0", "gain of the delay since the last update, in 1/s; 0: from max_rtt",  \
			UNIT_NONE, PARAM_F64(type, law.beta), 0, 1e6},                             \
		{"coupling", "2", "k: p_CL = k p'", UNIT_NONE, PARAM_F64(type, law.coupling), 0,   \
			100, .live = true},                                                        \
		{"overload", "drop",                                                               \
			"when marking all L4S packets is not enough: drop, or let the queue "      \
			"overflow",                                                                \
			UNIT_NONE, PARAM_ENUM(type, law.overload, overload_names)},                \
	{                                                                                          \
		"derandomise", "yes", "space marks and drops evenly; no: draw each (Linux)",       \
			UNIT_NONE, PARAM_BOOL(type, law.derandomise), .live = true                 \
	}

static inline void dualpi2_law_update(struct dualpi2_law *l) {
	l->overload_prob = l->coupling > 1 ? 1 / l->coupling : 1;
	l->prob_max = l->overload == DUALPI2_OVERFLOW ? l->overload_prob : 1;
}

static inline void dualpi2_law_init(struct dualpi2_law *l) {
	double max_rtt_s = (double)l->max_rtt_ns / 1e9;
	uint64_t third_ns = l->max_rtt_ns / 3;

	if (l->update_ns == 0)
		l->update_ns = l->target_ns < third_ns ? l->target_ns : third_ns;
	if (l->alpha <= 0)
		l->alpha = 0.1 * ((double)l->update_ns / 1e9) / (max_rtt_s * max_rtt_s);
	if (l->beta <= 0)
		l->beta = 0.3 / max_rtt_s;
	dualpi2_law_update(l);
}

static inline void dualpi2_state_init(
	const struct dualpi2_law *l, struct dualpi2_state *s, uint64_t seed) {
	rng_init(&s->rng, seed, "dualpi2");
	s->next_ns = l->update_ns;
}

static inline double dualpi2_diff_s(uint64_t a_ns, uint64_t b_ns) {
	return (double)(int64_t)(a_ns - b_ns) / 1e9;
}

// One update, with the present delay.
static inline void dualpi2_update(
	const struct dualpi2_law *l, struct dualpi2_state *s, uint64_t delay_ns) {
	double p = s->prob + l->alpha * dualpi2_diff_s(delay_ns, l->target_ns)
		+ l->beta * dualpi2_diff_s(delay_ns, s->delay_ns);
	bool drops = l->overload == DUALPI2_DROP;

	s->prob = p < 0 ? 0 : p > l->prob_max ? l->prob_max : p;
	s->classic = s->prob * s->prob;
	s->coupled = l->coupling * s->prob;
	s->classic_overload = drops && s->prob >= l->overload_prob;
	s->l4s_overload = drops && s->coupled >= 1;
	s->delay_ns = delay_ns;
}

static inline uint64_t dualpi2_age_ns(const struct pkt *oldest, uint64_t now_ns) {
	return oldest == NULL ? 0 : time_since(now_ns, oldest->arrival_ns);
}

__attribute__((noinline)) static void dualpi2_catch_up(const struct dualpi2_law *l,
	struct dualpi2_state *s, const struct pkt *l4s, const struct pkt *classic,
	uint64_t now_ns) {
	for (uint32_t n = 0; s->next_ns <= now_ns; n++) {
		bool rests = l4s == NULL && classic == NULL && s->prob <= 0 && s->delay_ns == 0;

		if (rests || n == DUALPI2_UPDATES_MAX)
			s->next_ns += (now_ns - s->next_ns) / l->update_ns * l->update_ns;
		else
			dualpi2_update(l, s,
				time_max(dualpi2_age_ns(l4s, s->next_ns),
					dualpi2_age_ns(classic, s->next_ns)));
		s->next_ns += l->update_ns;
	}
}

// The updates up to now_ns, before a queue changes, with the oldest packet of each queue; NULL: it
// is empty.
static inline void dualpi2_advance(const struct dualpi2_law *l, struct dualpi2_state *s,
	const struct pkt *l4s, const struct pkt *classic, uint64_t now_ns) {
	if (unlikely(s->next_ns <= now_ns))
		dualpi2_catch_up(l, s, l4s, classic, now_ns);
}

// Whether a packet is signalled with this probability; `sum` is that of its queue.
static inline bool dualpi2_signals(
	const struct dualpi2_law *l, struct dualpi2_state *s, double *sum, double prob) {
	if (prob <= 0)
		return false;
	if (prob >= 1)
		return true;
	if (!l->derandomise) {
		s->drew = true;
		return rng_unit(&s->rng) < prob;
	}
	*sum += prob;
	if (*sum <= 1)
		return false;
	*sum -= 1;
	return true;
}
