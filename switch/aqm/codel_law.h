// SPDX-License-Identifier: BSD-3-Clause
// CoDel's control law (Controlled Delay, RFC 8289) without a queue, shared by disciplines of one
// queue and of many.
//
//	sojourn   time the packet spent in the queue
//	above     sojourn >= target for at least one interval, and more than one MTU is left
//	entering  drop the head; count continues where it was if we were dropping less than 16
//	          intervals ago, else it starts at 1; drop_next = now + interval / sqrt(count)
//	dropping  while above and now >= drop_next: count += 1, drop the head,
//	          drop_next += interval / sqrt(count)
//
// With `ecn: yes` a packet that is ECN capable is marked instead of dropped; a mark ends the loop,
// so one dequeue marks at most one packet (section 5.6 has no ECN; this is what Linux and FreeBSD
// do). `ce_threshold` marks every packet whose sojourn exceeds it, independent of the law.
//
// Two control laws. `exact` computes 1/sqrt(count) as the RFC writes it. `linux` works as the
// Linux queue discipline does, so that live kernels can be compared: a 32-bit clock of 1024 ns,
// and one Newton step per drop on a 16-bit 1/sqrt(count), x' = x (3 - count x^2) / 2. From 1 that
// step goes to 1/2, not 0.707: the second drop comes after 50.0 ms instead of 70.7.
//
// Where we differ from the RFC, and why:
// - After CODEL_DROPS_MAX drops in one dequeue the schedule restarts from now. When a link is so
//   slow that many drop times pass within one packet, the RFC's loop has no bound.
// - maxpacket is the MTU of the run, not the largest packet seen: the result of a run must not
//   depend on the order of packets.
// - now - drop_next of section 5.6 is computed without wrapping (exact) or as a signed 32-bit
//   difference (linux): a re-entry before drop_next counts as recent.
// Packets dropped for the limit do not touch the state (section 5.4 of the RFC).
//
// A discipline has one struct codel_law, filled by CODEL_LAW_PARAMS and codel_law_init, and one
// struct codel_state, zeroed, for each of its queues.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "switch/aqm.h"
#include "switch/aqm/mark.h"

#include <math.h>

#define CODEL_DROPS_MAX 256
#define CODEL_RECENT_INTERVALS 16
#define CODEL_TICK_SHIFT 10 // linux: 1024 ns

enum { CODEL_EXACT, CODEL_LINUX };

struct codel_law {
	uint64_t target_ns;
	uint64_t interval_ns;
	uint64_t ce_threshold_ns; // 0: off
	int law;
	bool ecn;

	uint32_t mtu_bytes;
	uint64_t target, interval; // in units of the law: ns (exact) or ticks modulo 2^32 (linux)
};

struct codel_state {
	bool dropping;
	bool above_set; // first_above is valid
	uint16_t inv_sqrt; // linux: 2^16 / sqrt(count)
	uint32_t count;
	uint32_t count_last; // when dropping was entered last
	uint64_t first_above; // in units of the law, as is
	uint64_t drop_next;
};

static const char *const codel_law_names[] = {"exact", "linux", NULL};

// The lines of a discipline's table for its `struct codel_law law`.
#define CODEL_LAW_PARAMS(type, ecn_default)                                                        \
	{"target", "5ms", "acceptable standing delay", UNIT_TIME_NS,                               \
		PARAM_U64(type, law.target_ns), 1, 1e12, .live = true},                            \
		{"interval", "100ms", "about the longest round trip", UNIT_TIME_NS,                \
			PARAM_U64(type, law.interval_ns), 1e4, 1e12, .live = true},                \
		{"ecn", ecn_default, "mark ECN capable packets instead of dropping them",          \
			UNIT_NONE, PARAM_BOOL(type, law.ecn), .live = true},                       \
		{"ce_threshold", "0", "mark every packet that waited longer; 0: off",              \
			UNIT_TIME_NS, PARAM_U64(type, law.ce_threshold_ns), 0, 1e12,               \
			.live = true},                                                             \
	{                                                                                          \
		"law", "exact", "square root: RFC 8289, or the Linux kernel's approximation",      \
			UNIT_NONE, PARAM_ENUM(type, law.law, codel_law_names)                      \
	}

static inline void codel_law_update(struct codel_law *l) {
	uint32_t shift = l->law == CODEL_LINUX ? CODEL_TICK_SHIFT : 0;

	l->target = l->target_ns >> shift;
	l->interval = l->interval_ns >> shift;
}

static inline void codel_law_init(struct codel_law *l, uint32_t mtu_bytes) {
	codel_law_update(l);
	l->mtu_bytes = mtu_bytes;
}

static inline uint64_t codel_clock(const struct codel_law *l, uint64_t t_ns) {
	return l->law == CODEL_LINUX ? (uint32_t)(t_ns >> CODEL_TICK_SHIFT) : t_ns;
}

// a - b in the law's clock.
static inline int64_t codel_diff(const struct codel_law *l, uint64_t a, uint64_t b) {
	return l->law == CODEL_LINUX ? (int32_t)((uint32_t)a - (uint32_t)b) : (int64_t)(a - b);
}

// Linux: one step towards 2^16 / sqrt(count).
static inline uint16_t codel_newton(uint16_t inv_sqrt, uint32_t count) {
	uint64_t x = (uint64_t)inv_sqrt << 16; // 2^-32
	uint64_t x2 = (x * x) >> 32;
	uint64_t three = (UINT64_C(3) << 32) - (uint64_t)count * x2;

	return (uint16_t)((((three >> 2) * x) >> 31) >> 16);
}

// Sets count; 1/sqrt follows by one Newton step from its last value, as Linux does.
static inline void codel_set_count(
	const struct codel_law *l, struct codel_state *s, uint32_t count) {
	s->count = count;
	if (l->law != CODEL_LINUX)
		return;
	s->inv_sqrt = count == 1 ? UINT16_MAX : codel_newton(s->inv_sqrt, count);
}

// Section 5.3: control_law.
static inline uint64_t codel_next(
	const struct codel_law *l, const struct codel_state *s, uint64_t t) {
	if (l->law == CODEL_LINUX)
		return (uint32_t)(t + ((l->interval * ((uint64_t)s->inv_sqrt << 16)) >> 32));
	return t + (uint64_t)((double)l->interval / sqrt((double)s->count));
}

// Observed values of the law: while it drops, its count and the spacing of drops; and the count
// when dropping was entered last.
#define CODEL_OBSERVED "count", "dropping", "drop_spacing_ns", "count_last"
static inline void codel_law_observe(
	const struct codel_law *l, const struct codel_state *s, double out[4]) {
	out[3] = s->count_last;
	if (!s->dropping)
		return;
	out[0] = s->count;
	out[1] = 1;
	out[2] = (double)(codel_next(l, s, 0) << (l->law == CODEL_LINUX ? CODEL_TICK_SHIFT : 0));
}

// Whether a packet that leaves the queue at `now`, with left_bytes behind it, is below target.
static inline bool codel_below(
	const struct codel_law *l, const struct pkt *p, uint64_t left_bytes, uint64_t now) {
	return codel_diff(l, now, codel_clock(l, p->arrival_ns)) < (int64_t)l->target
		|| left_bytes <= l->mtu_bytes;
}

// Section 5.5: dodequeue.
static inline __attribute__((always_inline)) struct pkt *codel_take(const struct codel_law *l,
	struct codel_state *s, aqm_get_fn *get, void *queue, uint64_t now, bool *ok_to_drop) {
	uint64_t left_bytes;
	struct pkt *p = get(queue, &left_bytes);

	*ok_to_drop = false;
	if (p == NULL || codel_below(l, p, left_bytes, now)) {
		s->above_set = false;
	} else if (!s->above_set) {
		s->above_set = true;
		s->first_above = now + l->interval;
	} else {
		// The RFC allows a drop at first_above, Linux only after it.
		int64_t late = codel_diff(l, now, s->first_above);
		*ok_to_drop = l->law == CODEL_LINUX ? late > 0 : late >= 0;
	}
	return p;
}

// Whether the packet waited longer than the threshold.
static inline bool codel_waited_long(
	const struct codel_law *l, const struct pkt *p, uint64_t now_ns) {
	return l->ce_threshold_ns > 0 && time_since(now_ns, p->arrival_ns) > l->ce_threshold_ns;
}

// Drops in the dropping state, when drop_next has passed. (Not inline, so that other packets cost
// less.)
__attribute__((noinline)) static struct pkt *codel_drop_due(const struct codel_law *l,
	struct codel_state *s, aqm_get_fn *get, void *queue, struct pkt *p, uint64_t now,
	struct pkt_list *drops) {
	bool ok_to_drop;

	for (uint32_t n = 0; codel_diff(l, now, s->drop_next) >= 0; n++) {
		if (n == CODEL_DROPS_MAX) {
			s->drop_next = codel_next(l, s, now);
			break;
		}
		codel_set_count(l, s, s->count + 1);
		if (l->ecn && aqm_mark(p)) {
			s->drop_next = codel_next(l, s, s->drop_next);
			break;
		}
		pkt_drop(drops, p, DROP_AQM);
		p = codel_take(l, s, get, queue, now, &ok_to_drop);
		if (!ok_to_drop) {
			s->dropping = false;
			break;
		}
		s->drop_next = codel_next(l, s, s->drop_next);
	}
	return p;
}

__attribute__((noinline)) static struct pkt *codel_enter(const struct codel_law *l,
	struct codel_state *s, aqm_get_fn *get, void *queue, struct pkt *p, uint64_t now,
	struct pkt_list *drops) {
	uint32_t delta = s->count - s->count_last;
	int64_t since = codel_diff(l, now, s->drop_next);
	bool recent = since < (int64_t)(CODEL_RECENT_INTERVALS * l->interval);
	bool ok_to_drop;

	if (!(l->ecn && aqm_mark(p))) {
		pkt_drop(drops, p, DROP_AQM);
		p = codel_take(l, s, get, queue, now, &ok_to_drop);
	}
	s->dropping = true;
	codel_set_count(l, s, recent && delta > 1 ? delta : 1);
	s->count_last = s->count;
	s->drop_next = codel_next(l, s, now);
	return p;
}

// Section 5.6: dequeue. Packets that the law drops are pushed on `drops`.
static inline __attribute__((always_inline)) struct pkt *codel_law_dequeue(
	const struct codel_law *l, struct codel_state *s, aqm_get_fn *get, void *queue,
	uint64_t now_ns, struct pkt_list *drops) {
	uint64_t now = codel_clock(l, now_ns);
	bool ok_to_drop;
	struct pkt *p = codel_take(l, s, get, queue, now, &ok_to_drop);

	if (!ok_to_drop)
		s->dropping = false;
	else if (s->dropping)
		p = codel_drop_due(l, s, get, queue, p, now, drops);
	else
		p = codel_enter(l, s, get, queue, p, now, drops);

	if (p != NULL && codel_waited_long(l, p, now_ns))
		aqm_mark(p);
	return p;
}
