// SPDX-License-Identifier: BSD-3-Clause
#include "switch/stage/stepped.h"

// Packets that were sent since there were `before` leave after the delay, none before another.
static void stepped_delay(struct stepped *s, uint32_t before) {
	struct pkt_ring *out = &s->link.serialiser.out;

	for (uint32_t i = before; i < out->count; i++) {
		struct pkt *p = out->slot[(out->head + i) & (out->slots - 1)];

		p->arrival_ns = time_max(p->arrival_ns + s->delay_ns, s->released_ns);
		s->released_ns = p->arrival_ns;
	}
}

static void stepped_serve_wire(struct stepped *s, uint64_t now_ns, struct pkt_list *drops) {
	uint32_t before = s->link.serialiser.out.count;

	link_serve(&s->link, now_ns, drops);
	stepped_delay(s, before);
}

static bool stepped_idle(const struct stepped *s) {
	const struct serialiser *serialiser = &s->link.serialiser;

	return serialiser->sending == NULL && serialiser->halted == NULL
		&& serialiser->stats.queue_pkts == 0;
}

int stepped_begin(
	struct stepped *s, const struct stage_env *env, uint64_t limit_bps, struct err *err) {
	s->step(s, 0);
	s->link.serialiser.stats.varies = true;
	return link_begin(&s->link, env, s->rate_bps, limit_bps, err);
}

void stepped_follow(struct stepped *s, uint64_t now_ns, struct pkt_list *drops) {
	while (s->change_ns <= now_ns) {
		if (s->skip != NULL && stepped_idle(s))
			s->skip(s, now_ns);

		uint64_t t_ns = s->change_ns;

		stepped_serve_wire(s, t_ns, drops);
		s->step(s, t_ns);
		serialiser_rate(&s->link.serialiser, t_ns, s->rate_bps);
		stepped_serve_wire(s, t_ns, drops); // a wire that is up again begins
	}
}

void stepped_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	stepped_follow(self, now_ns, drops);
	stepped_serve_wire(self, now_ns, drops);
}

void stepped_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct stepped *s = self;

	for (uint32_t i = 0, end; i < n; i = end) {
		uint32_t before;

		stepped_follow(s, pkts[i]->arrival_ns, drops);
		for (end = i + 1; end < n && pkts[end]->arrival_ns < s->change_ns; end++)
			;
		before = s->link.serialiser.out.count;
		link_push(&s->link, pkts + i, end - i, drops);
		stepped_delay(s, before);
	}
}

uint32_t stepped_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct stepped *s = self;

	stepped_serve(s, time_since(now_ns, s->min_delay_ns), drops);
	return serialiser_pop_out(&s->link.serialiser, now_ns, pkts, max);
}

uint64_t stepped_next_ns(const void *self) {
	const struct stepped *s = self;
	const struct serialiser *serialiser = &s->link.serialiser;

	if (serialiser->out.count > 0)
		return pkt_ring_head(&serialiser->out)->arrival_ns;
	if (serialiser->sending != NULL && serial_ns(serialiser->free) <= s->change_ns)
		return time_max(serial_ns(serialiser->free) + s->delay_ns, s->released_ns);
	return stepped_idle(s) ? NEVER_NS : s->change_ns;
}
