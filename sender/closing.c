// SPDX-License-Identifier: BSD-3-Clause
#include "sender/closing.h"

#include "sender/host.h"

// A time of the config, on the host's clock; 0 is never.
static uint64_t on_clock(const struct host *h, uint64_t at_ns) {
	return at_ns == 0 ? NEVER_NS : h->env.start_ns + at_ns;
}

static void arm(struct host *h) {
	uint64_t next_ns = NEVER_NS;

	for (uint32_t i = 0; i < h->groups->count; i++) {
		const struct group *g = &h->groups->group[i];
		const uint64_t times[] = {g->stack.reset_ns, g->peer.reset_ns, g->peer.close_ns};

		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
			uint64_t t_ns = on_clock(h, times[k]);

			if (t_ns > h->closed_ns)
				next_ns = time_min(next_ns, t_ns);
		}
	}
	if (next_ns != NEVER_NS)
		host_arm(h, &h->closing, next_ns);
}

void closing_init(struct host *h) {
	h->closing.kind = TIMER_CLOSING;
	h->closed_ns = h->env.start_ns;
	arm(h);
}

static void reset_flow(struct host *h, struct flow *f, uint64_t now_ns) {
	if (f->state != FLOW_OPEN)
		return;
	flow_reset(h, f, now_ns);
	flow_end(h, f, FLOW_FAILED, TEL_RESET, now_ns);
}

void closing_timer(struct host *h, uint64_t now_ns) {
	uint64_t before_ns = h->closed_ns;

	for (uint32_t i = 0; i < h->flows; i++) {
		struct flow *f = &h->flow[i];
		uint64_t reset_ns = on_clock(h, h->groups->group[f->group].stack.reset_ns);

		if (reset_ns > before_ns && reset_ns <= now_ns)
			reset_flow(h, f, now_ns);
	}
	for (uint32_t i = 0; i < h->receivers; i++) {
		struct receiver *r = &h->receiver[i];
		const struct stack *st = &h->groups->group[r->group_index].peer;
		uint64_t reset_ns = on_clock(h, st->reset_ns), close_ns = on_clock(h, st->close_ns);

		if (close_ns > before_ns && close_ns <= now_ns)
			receiver_close(h, r, now_ns);
		if (reset_ns > before_ns && reset_ns <= now_ns && r->state == RECEIVER_OPEN) {
			receiver_reset(h, r, now_ns);
			r->state = RECEIVER_CLOSED;
		}
	}
	h->closed_ns = now_ns;
	arm(h);
}
