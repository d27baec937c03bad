// SPDX-License-Identifier: BSD-3-Clause
// The initial state of a receiver, also when a source or another peer uses it again.
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/receiver.h"

#include <string.h>

void receiver_init(struct receiver *r, uint32_t id, const struct groups *gs, uint16_t group) {
	const struct group *g = &gs->group[group];
	struct receiver_acks *acks = r->acks;

	memset(r, 0, sizeof(*r));
	r->acks = acks;
	r->delack.kind = TIMER_DELACK;
	r->id = id;
	r->group_index = group;
	r->fin = UINT64_MAX;
	r->delack_ns = NEVER_NS;
	r->modes = g->receiver_modes;
	if ((r->modes & RECEIVER_HOST) != 0)
		receiver_acks_reset(r);
	if ((r->modes & RECEIVER_WINDOW) != 0)
		receiver_window_init(r, g, g->payload);
	r->ack_every = (uint8_t)g->ack_every;
	r->ack_delay_ns = (uint32_t)g->ack_delay_ns;
	r->flags_mask = (uint8_t) ~(g->keeps ? 0 : SEG_PSH);
	while (r->wscale < 14 && (receiver_window_max(g) >> r->wscale) > 65535)
		r->wscale++;
	r->window = (uint16_t)min_u64(receiver_window_max(g) >> r->wscale, 65535);
}

bool receiver_over(const struct receiver *r) {
	return r->state == RECEIVER_CLOSED || receiver_done(r);
}

bool receiver_renewed_by(const struct receiver *r, const struct seg *s) {
	if (!seg_opens(s) || s->seq == r->irs || !receiver_over(r))
		return false;
	return r->state == RECEIVER_CLOSED || seq_diff(s->seq, receiver_seq(r, r->rcv_nxt)) > 0
		|| (r->ts_ok && (s->options & SEG_OPT_TS) != 0
			&& seq_diff(s->tsval, r->ts_recent) > 0);
}

void receiver_renew(struct endpoint *e, struct receiver *r, uint16_t group) {
	e->renewed_done += receiver_done(r);
	endpoint_cancel(e, &r->delack);
	receiver_drop_ranges(e, r);
	receiver_init(r, r->id, e->groups, group);
}

uint64_t receivers_done(const struct endpoint *e) {
	uint64_t done = e->renewed_done;

	for (uint32_t i = 0; i < e->receivers; i++)
		done += receiver_done(&e->receiver[i]);
	return done;
}
