// SPDX-License-Identifier: BSD-3-Clause
// What stages share that take no time: a packet leaves at the time of its arrival, or is dropped.
//
// `struct instant` is the first member of such a stage's state, so that instant_pop,
// instant_next_ns and instant_backlog are its operations; its own push puts what passes on the list
// `out`.
#pragma once
#include "switch/stage.h"

struct instant {
	const struct stage_env *env;
	struct pkt_list out; // not yet taken
};

static inline void instant_pass(struct instant *s, struct pkt *p) {
	pkt_list_push(&s->out, p);
}

static inline uint32_t instant_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct instant *s = self;
	uint32_t n = 0;

	while (n < max && s->out.head != NULL && s->out.head->arrival_ns <= now_ns)
		pkts[n++] = pkt_list_pop(&s->out);
	return n;
}

static inline uint64_t instant_next_ns(const void *self) {
	const struct instant *s = self;

	return s->out.head == NULL ? NEVER_NS : s->out.head->arrival_ns;
}

static inline struct backlog instant_backlog(const void *self) {
	const struct instant *s = self;

	return (struct backlog){.pkts = s->out.count, .bytes = s->out.bytes};
}
