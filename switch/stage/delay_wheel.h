// SPDX-License-Identifier: BSD-3-Clause
// What stages share that give each packet a delay of its own. Packets wait in a timing wheel, in
// exact order of departure; ties leave in order of arrival.
//
// `in_order`: a packet leaves no earlier than the one before it, as behind a link layer that
// delivers in order; delays are longer then. Where the stage also adds what the base RTTs of flow
// groups exceed the delays of the paths by, it adds that afterwards: a group with a short base RTT
// does not wait for one with a long base RTT.
//
// `struct delay_wheel` is the first member of such a stage's state, so that delay_wheel_pop,
// delay_wheel_next_ns and delay_wheel_backlog are its operations.
#pragma once
#include "common/base/likely.h"
#include "common/base/wheel.h"
#include "switch/stage/flow_delays.h"

struct delay_wheel {
	const struct stage_env *env;
	bool in_order;
	uint64_t release_ns; // the last packet's departure, before a base RTT's part is added
	uint64_t pkts, bytes; // in the wheel
	struct pkt_list out; // departed while the stage was full, not yet taken
	struct wheel wheel;
};

static inline void delay_wheel_init(struct delay_wheel *d, const struct stage_env *env) {
	d->env = env;
	wheel_init(&d->wheel, 0);
}

static inline struct pkt *delay_wheel_release(struct delay_wheel *d, uint64_t now_ns) {
	struct timer *t = wheel_pop(&d->wheel, now_ns);
	struct pkt *p = (struct pkt *)(void *)t;

	static_assert(offsetof(struct pkt, timer) == 0, "a packet is its timer");
	if (p == NULL)
		return NULL;
	p->arrival_ns = p->release_ns;
	d->pkts--;
	d->bytes -= p->size_bytes;
	return p;
}

// Whether there is no room for a packet that arrives at t_ns. Packets due by then do not count,
// even if pop has not taken them yet.
__attribute__((cold)) static inline bool delay_wheel_full(struct delay_wheel *d, uint64_t t_ns) {
	struct pkt *p;

	while ((p = delay_wheel_release(d, t_ns)) != NULL)
		pkt_list_push(&d->out, p);
	return d->pkts >= d->env->max_pkts;
}

static inline void delay_wheel_push(
	struct delay_wheel *d, struct pkt *p, uint64_t delay_ns, struct pkt_list *drops) {
	uint64_t t_ns = p->arrival_ns, release_ns = t_ns + delay_ns;

	if (unlikely(d->pkts >= d->env->max_pkts) && delay_wheel_full(d, t_ns)) {
		stage_drop(d->env, drops, p, DROP_DELAY_FULL);
		return;
	}
	if (d->in_order)
		release_ns = time_max(release_ns, d->release_ns);
	d->release_ns = release_ns;
	if (stage_extras(d->env) > 0)
		release_ns += stage_extra_ns(d->env, stage_extra_of(d->env, p));
	d->pkts++;
	d->bytes += p->size_bytes;
	wheel_arm(&d->wheel, &p->timer, release_ns);
}

static inline uint32_t delay_wheel_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct delay_wheel *d = self;
	uint32_t n = 0;

	while (n < max && unlikely(d->out.head != NULL) && d->out.head->arrival_ns <= now_ns)
		pkts[n++] = pkt_list_pop(&d->out);
	while (n < max && (pkts[n] = delay_wheel_release(d, now_ns)) != NULL)
		n++;
	return n;
}

static inline uint64_t delay_wheel_next_ns(const void *self) {
	const struct delay_wheel *d = self;

	return d->out.head != NULL ? d->out.head->arrival_ns : wheel_first_ns(&d->wheel);
}

static inline struct backlog delay_wheel_backlog(const void *self) {
	const struct delay_wheel *d = self;

	return (struct backlog){.pkts = d->pkts + d->out.count, .bytes = d->bytes + d->out.bytes};
}

// The longest of the delays that base RTTs add.
static inline uint64_t delay_wheel_extra_ns(const struct delay_wheel *d) {
	uint64_t extra_ns = 0;

	for (uint32_t i = 0; i < stage_extras(d->env); i++)
		extra_ns = time_max(extra_ns, stage_extra_ns(d->env, i));
	return extra_ns;
}
