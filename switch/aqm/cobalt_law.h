// SPDX-License-Identifier: BSD-3-Clause
// COBALT's control law (CoDel and BLUE Alternate) without a queue, shared by disciplines of one
// queue and of many. CoDel signals to flows that respond, BLUE drops what does not respond.
//
//	above     sojourn > target, and sojourn > the time of four full-sized frames at the link's
//	          first rate
//	due       count > 0 and now >= drop_next
//	CoDel     a packet above while not dropping: dropping; count is 1 at least;
//	          drop_next = now + interval / sqrt(count)
//	          a packet above, due: signal; count += 1; drop_next += interval / sqrt(count)
//	          a packet not above: no longer dropping; while due: count -= 1,
//	          drop_next += interval / sqrt(max(count, 1))
//	BLUE      p += 1/256 when a packet is dropped for the limit, p -= 1/4096 when the queue is
//	          empty; one such step per target. Each packet is dropped with probability p
//	overflow  besides: dropping, drop_next = now, count is 1 at least
//
// A signal is a mark if the packet is ECN capable and `ecn` is on, else a drop. A mark also ends
// the packets that are due: drop_next is not left in the past. BLUE always drops: its p is above 0
// only if signals did not help. The last packet of a queue is not dropped.
//
// The differences from CoDel (codel_law.h): there is no separate state between the first packet
// above target and the first signal, as both wait for `interval`. When the delay is below target
// again, count is not kept for the next time but decreases, as slowly as it has grown; so a flow
// whose delay returns at once meets nearly the old rate of signals, and one that returns late
// starts again. The second signal follows the first after interval / sqrt(2), in CoDel after
// interval.
//
// Source: Palmei, Gupta, Imputato, Morton, Tahiliani, Avallone, Taht: Design and Evaluation of
// COBALT Queue Discipline, LANMAN 2019; Hoiland-Jorgensen, Taht, Morton: Piece of CAKE, LANMAN
// 2018, section III; for the constants Linux 4.19 and later. BLUE: Feng, Shin, Kandlur, Saha: The
// BLUE Active Queue Management Algorithms, IEEE/ACM Transactions on Networking 10(4), 2002.
//
// Where we differ from Linux, and why:
// - 1 / sqrt(count) is exact. Linux computes it in fixed point, from 16 exact values and one Newton
//   step above them, with errors of less than a thousandth.
// - The decay for the time without packets is computed when the next packet leaves, not step by
//   step while a scheduler finds the queue empty: a link does not ask an empty queue, and the
//   result must not depend on other queues.
// - A queue is empty from the departure of its last packet on, and its first packet above target
//   waits for `interval` also after a pause. (Linux forgets it after a pause of more than an
//   interval.)
// - Linux raises the target to 1.5 frames' time; four frames' time is more.
//
// A discipline has one struct cobalt_law, filled by COBALT_LAW_PARAMS and cobalt_law_init, and one
// struct cobalt_state, zeroed, for each of its queues.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "common/base/rng.h"
#include "switch/aqm.h"
#include "switch/aqm/mark.h"

#include <math.h>

#define COBALT_ONE 4096u // BLUE's probability is in units of 1/4096
#define COBALT_INCREMENT 16u
#define COBALT_DECREMENT 1u
#define COBALT_FRAMES 4 // a queue of fewer full-sized frames is not above target

struct cobalt_law {
	uint64_t target_ns;
	uint64_t interval_ns;
	bool ecn;

	uint64_t above_ns; // the larger of the target and four frames' time
	struct rng rng;
	bool drew;
};

struct cobalt_state {
	uint32_t count;
	uint16_t blue; // probability, in 1/4096
	bool dropping;
	// At emptied_ns the last packet left; what this means for count and blue is to be computed.
	bool emptied;
	uint64_t drop_next_ns;
	uint64_t blue_next_ns; // before it BLUE makes no step
	uint64_t emptied_ns;
};

// The lines of a discipline's table for its `struct cobalt_law law`.
#define COBALT_LAW_PARAMS(type)                                                                    \
	{"target", "5ms", "acceptable standing delay; the time between steps of BLUE",             \
		UNIT_TIME_NS, PARAM_U64(type, law.target_ns), 1, 1e12},                            \
		{"interval", "100ms", "about the longest round trip", UNIT_TIME_NS,                \
			PARAM_U64(type, law.interval_ns), 1e4, 1e12},                              \
	{                                                                                          \
		"ecn", "yes", "CoDel's part marks ECN capable packets instead of dropping them",   \
			UNIT_NONE, PARAM_BOOL(type, law.ecn)                                       \
	}

static inline void cobalt_law_init(
	struct cobalt_law *l, const struct aqm_env *env, const char *name) {
	double frame_bits = 8.0 * (env->mtu_bytes + env->overhead_bytes);
	double frames_ns =
		env->rate_bps > 0 ? COBALT_FRAMES * frame_bits * 1e9 / (double)env->rate_bps : 0;

	l->above_ns = time_max(l->target_ns, (uint64_t)frames_ns);
	rng_init(&l->rng, env->seed, name);
}

static inline uint64_t cobalt_spacing(const struct cobalt_law *l, uint32_t count) {
	return (uint64_t)((double)l->interval_ns / sqrt(count > 0 ? (double)count : 1.0));
}

static inline bool cobalt_due(const struct cobalt_state *s, uint64_t now_ns) {
	return s->count > 0 && now_ns >= s->drop_next_ns;
}

static inline void cobalt_decay(
	const struct cobalt_law *l, struct cobalt_state *s, uint64_t now_ns) {
	while (cobalt_due(s, now_ns)) {
		s->count--;
		s->drop_next_ns += cobalt_spacing(l, s->count);
	}
}

// The queue was empty until now_ns.
static inline void cobalt_idle(
	const struct cobalt_law *l, struct cobalt_state *s, uint64_t now_ns) {
	uint64_t step_ns = time_max(s->emptied_ns, s->blue_next_ns), steps;

	s->emptied = false;
	s->dropping = false;
	cobalt_decay(l, s, now_ns);
	if (s->blue == 0 || now_ns < step_ns)
		return;
	steps = 1 + (now_ns - step_ns) / l->target_ns;
	s->blue = (uint16_t)time_since(s->blue, steps * COBALT_DECREMENT);
	s->blue_next_ns = step_ns + steps * l->target_ns;
}

// The limit drops a packet of the queue, of which the oldest one arrived at oldest_ns.
static inline void cobalt_overflow(
	const struct cobalt_law *l, struct cobalt_state *s, uint64_t oldest_ns, uint64_t now_ns) {
	if (s->emptied)
		cobalt_idle(l, s, oldest_ns);
	if (now_ns >= s->blue_next_ns) {
		s->blue = (uint16_t)time_min(s->blue + COBALT_INCREMENT, COBALT_ONE);
		s->blue_next_ns = now_ns + l->target_ns;
	}
	s->dropping = true;
	s->drop_next_ns = now_ns;
	if (s->count == 0)
		s->count = 1;
}

static inline bool cobalt_blue(struct cobalt_law *l, const struct cobalt_state *s) {
	if (s->blue == 0)
		return false;
	l->drew = true;
	return rng_u64(&l->rng) >> 52 < s->blue;
}

// Whether p, which leaves at now_ns, is to be dropped; marks it if that is the signal. (Not inline,
// so that packets in a queue at rest cost less.)
__attribute__((noinline)) static bool cobalt_judge(
	struct cobalt_law *l, struct cobalt_state *s, struct pkt *p, bool above, uint64_t now_ns) {
	bool due, drop;

	if (s->emptied)
		cobalt_idle(l, s, p->arrival_ns);
	due = cobalt_due(s, now_ns);
	drop = cobalt_blue(l, s);
	if (!above) {
		s->dropping = false;
		cobalt_decay(l, s, now_ns);
		return drop;
	}
	if (!s->dropping) {
		s->dropping = true;
		s->count = s->count > 0 ? s->count : 1;
		s->drop_next_ns = now_ns + cobalt_spacing(l, s->count);
	}
	if (!due)
		return drop;
	drop = drop || !(l->ecn && aqm_mark(p));
	if (s->count < UINT32_MAX)
		s->count++;
	s->drop_next_ns += cobalt_spacing(l, s->count);
	if (!drop)
		s->drop_next_ns = time_max(s->drop_next_ns, now_ns);
	return drop;
}

// The next packet that leaves, if any. Packets that the law drops are pushed on `drops`. *signals:
// there is a count or a probability, so that the state is needed; to be set after cobalt_overflow.
// It is apart from the state, which with many queues need not be in the cache then.
static inline __attribute__((always_inline)) struct pkt *cobalt_law_dequeue(struct cobalt_law *l,
	struct cobalt_state *s, bool *signals, aqm_get_fn *get, void *queue, uint64_t now_ns,
	struct pkt_list *drops) {
	uint64_t left_bytes;
	struct pkt *p;

	while ((p = get(queue, &left_bytes)) != NULL) {
		bool above = time_since(now_ns, p->arrival_ns) > l->above_ns, drop = false;

		if (unlikely(above || *signals)) {
			drop = cobalt_judge(l, s, p, above, now_ns);
			*signals = s->count > 0 || s->blue > 0;
		}
		if (left_bytes == 0) {
			if (*signals) {
				s->emptied = true;
				s->emptied_ns = now_ns;
			}
			break;
		}
		if (likely(!drop))
			break;
		pkt_drop(drops, p, DROP_AQM);
	}
	return p;
}

// Observed values of the law: its count; while it drops, 1 and the spacing of signals; BLUE's
// probability.
#define COBALT_OBSERVED "count", "dropping", "drop_spacing_ns", "blue_probability"
static inline void cobalt_law_observe(
	const struct cobalt_law *l, const struct cobalt_state *s, double out[4]) {
	out[0] = s->count;
	out[1] = s->dropping;
	out[2] = s->dropping ? (double)cobalt_spacing(l, s->count) : 0;
	out[3] = (double)s->blue / COBALT_ONE;
}
