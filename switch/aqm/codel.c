// SPDX-License-Identifier: BSD-3-Clause
// CoDel: Controlled Delay (RFC 8289).
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
//   depend on which packet came first.
// - now - drop_next of section 5.6 is computed without wrapping (exact) or as a signed 32-bit
//   difference (linux): a re-entry before drop_next counts as recent.
// Packets dropped for the limit do not touch the state (section 5.4 of the RFC).
#include "switch/aqm/aqm.h"

#include <math.h>

#define CODEL_DROPS_MAX 256
#define RECENT_INTERVALS 16
#define TICK_SHIFT 10 // linux: 1024 ns

enum { LAW_EXACT, LAW_LINUX };

struct codel {
	struct limit limit;
	uint64_t target_ns;
	uint64_t interval_ns;
	uint64_t ce_threshold_ns; // 0: off
	int law;
	bool ecn;

	bool dropping;
	bool above_set; // first_above is valid
	uint16_t inv_sqrt; // linux: 2^16 / sqrt(count)
	uint32_t count;
	uint32_t count_last; // when dropping was entered last
	// In units of the law: ns (exact) or ticks modulo 2^32 (linux).
	uint64_t first_above;
	uint64_t drop_next;
	uint64_t target;
	uint64_t interval;
	uint32_t mtu_bytes;
	struct aqm_limit max;
	struct pkt_ring q;
};

static const char *const law_names[] = {"exact", "linux", NULL};

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct codel, limit), 1e-6, 1e15},
	{"target", "5ms", "acceptable standing delay", UNIT_TIME_NS,
		PARAM_U64(struct codel, target_ns), 1, 1e12},
	{"interval", "100ms", "about the longest round trip", UNIT_TIME_NS,
		PARAM_U64(struct codel, interval_ns), 1e4, 1e12},
	{"ecn", "no", "mark ECN capable packets instead of dropping them", UNIT_NONE,
		PARAM_BOOL(struct codel, ecn)},
	{"ce_threshold", "0", "mark every packet that waited longer; 0: off", UNIT_TIME_NS,
		PARAM_U64(struct codel, ce_threshold_ns), 0, 1e12},
	{"law", "exact", "square root: RFC 8289, or the Linux kernel's approximation", UNIT_NONE,
		PARAM_ENUM(struct codel, law, law_names)},
	PARAM_END,
};

static int codel_init(void *self, const struct aqm_env *env, struct err *err) {
	struct codel *c = self;
	uint32_t shift = c->law == LAW_LINUX ? TICK_SHIFT : 0;

	c->target = c->target_ns >> shift;
	c->interval = c->interval_ns >> shift;
	c->mtu_bytes = env->mtu_bytes;
	return aqm_limit_init(&c->max, &c->limit, env, err);
}

static void codel_fini(void *self) {
	struct codel *c = self;

	pkt_ring_fini(&c->q);
}

static void codel_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct codel *c = self;

	p->arrival_ns = now_ns;
	aqm_ring_put(&c->q, &c->max, p, drops);
}

static uint64_t codel_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct codel *c = self;

	return aqm_ring_all(&c->q, &c->max, pkts, n, drops);
}

static uint64_t codel_clock(const struct codel *c, uint64_t t_ns) {
	return c->law == LAW_LINUX ? (uint32_t)(t_ns >> TICK_SHIFT) : t_ns;
}

// a - b in the law's clock.
static int64_t codel_diff(const struct codel *c, uint64_t a, uint64_t b) {
	return c->law == LAW_LINUX ? (int32_t)((uint32_t)a - (uint32_t)b) : (int64_t)(a - b);
}

// Sets count; 1/sqrt follows by one Newton step from its last value, as Linux does.
static void codel_set_count(struct codel *c, uint32_t count) {
	c->count = count;
	if (c->law != LAW_LINUX)
		return;
	if (count == 1) {
		c->inv_sqrt = UINT16_MAX;
		return;
	}
	uint64_t x = (uint64_t)c->inv_sqrt << 16; // 2^-32
	uint64_t x2 = (x * x) >> 32;
	uint64_t three = (UINT64_C(3) << 32) - (uint64_t)count * x2;
	c->inv_sqrt = (uint16_t)((((three >> 2) * x) >> 31) >> 16);
}

// Section 5.3: control_law.
static uint64_t codel_next(const struct codel *c, uint64_t t) {
	if (c->law == LAW_LINUX)
		return (uint32_t)(t + ((c->interval * ((uint64_t)c->inv_sqrt << 16)) >> 32));
	return t + (uint64_t)((double)c->interval / sqrt((double)c->count));
}

// Section 5.5: dodequeue.
static inline struct pkt *codel_take(struct codel *c, uint64_t now, bool *ok_to_drop) {
	struct pkt *p = pkt_ring_pop(&c->q);

	*ok_to_drop = false;
	if (p == NULL) {
		c->above_set = false;
		return NULL;
	}
	int64_t sojourn = codel_diff(c, now, codel_clock(c, p->arrival_ns));
	if (sojourn < (int64_t)c->target || c->q.bytes <= c->mtu_bytes) {
		c->above_set = false;
	} else if (!c->above_set) {
		c->above_set = true;
		c->first_above = now + c->interval;
	} else {
		// The RFC allows a drop at first_above, Linux only after it.
		int64_t late = codel_diff(c, now, c->first_above);
		*ok_to_drop = c->law == LAW_LINUX ? late > 0 : late >= 0;
	}
	return p;
}

static bool codel_mark(struct pkt *p) {
	if (p->ecn == ECN_NOT_ECT)
		return false;
	if (p->ecn != ECN_CE) {
		p->ecn = ECN_CE;
		p->flags |= PKT_MARKED;
	}
	return true;
}

// In the dropping state, drop_next has passed. (Not inline: packets that only pass cost less.)
__attribute__((noinline)) static struct pkt *codel_drop_due(
	struct codel *c, struct pkt *p, uint64_t now, struct pkt_list *drops) {
	bool ok_to_drop;

	for (uint32_t n = 0; codel_diff(c, now, c->drop_next) >= 0; n++) {
		if (n == CODEL_DROPS_MAX) {
			c->drop_next = codel_next(c, now);
			break;
		}
		codel_set_count(c, c->count + 1);
		if (c->ecn && codel_mark(p)) {
			c->drop_next = codel_next(c, c->drop_next);
			break;
		}
		pkt_drop(drops, p, DROP_AQM);
		p = codel_take(c, now, &ok_to_drop);
		if (!ok_to_drop) {
			c->dropping = false;
			break;
		}
		c->drop_next = codel_next(c, c->drop_next);
	}
	return p;
}

__attribute__((noinline)) static struct pkt *codel_enter(
	struct codel *c, struct pkt *p, uint64_t now, struct pkt_list *drops) {
	uint32_t delta = c->count - c->count_last;
	int64_t since = codel_diff(c, now, c->drop_next);
	bool recent = since < (int64_t)(RECENT_INTERVALS * c->interval);
	bool ok_to_drop;

	if (!(c->ecn && codel_mark(p))) {
		pkt_drop(drops, p, DROP_AQM);
		p = codel_take(c, now, &ok_to_drop);
	}
	c->dropping = true;
	codel_set_count(c, recent && delta > 1 ? delta : 1);
	c->count_last = c->count;
	c->drop_next = codel_next(c, now);
	return p;
}

// Section 5.6: dequeue.
static struct pkt *codel_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct codel *c = self;
	uint64_t now = codel_clock(c, now_ns);
	bool ok_to_drop;
	struct pkt *p = codel_take(c, now, &ok_to_drop);

	if (!ok_to_drop)
		c->dropping = false;
	else if (c->dropping)
		p = codel_drop_due(c, p, now, drops);
	else
		p = codel_enter(c, p, now, drops);

	if (c->ce_threshold_ns > 0 && p != NULL
		&& time_since(now_ns, p->arrival_ns) > c->ce_threshold_ns)
		codel_mark(p);
	return p;
}

static struct backlog codel_backlog(const void *self) {
	const struct codel *c = self;

	return (struct backlog){.pkts = c->q.count, .bytes = c->q.bytes};
}

// While it drops: the count of the control law, and how far drops are apart.
static void codel_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct codel *c = self;

	out[3] = c->count_last;
	if (!c->dropping)
		return;
	out[0] = c->count;
	out[1] = 1;
	out[2] = (double)(codel_next(c, 0) << (c->law == LAW_LINUX ? TICK_SHIFT : 0));
}

static struct aqm_limit codel_limit(const void *self) {
	const struct codel *c = self;

	return c->max;
}

const struct aqm_ops aqm_codel = {
	.name = "codel",
	.summary = "Controlled Delay (RFC 8289)",
	.params = params,
	.state_size = sizeof(struct codel),
	.observed = {"count", "dropping", "drop_spacing_ns", "count_last"},
	.init = codel_init,
	.fini = codel_fini,
	.enqueue = codel_enqueue,
	.enqueue_all = codel_enqueue_all,
	.dequeue = codel_dequeue,
	.backlog = codel_backlog,
	.limit = codel_limit,
	.observe = codel_observe,
};
