// SPDX-License-Identifier: BSD-3-Clause
#include "sender/tcp/service.h"

#include "common/base/rng.h"
#include "sender/tcp/loss.h"

#include <string.h>

#define TIMER_NS_MIN NS_PER_US

// Of a segment, when it was sent last.
struct packet_rec {
	uint64_t delivered_segs, lost_segs;
	uint64_t next; // acknowledged by the same ACK
	uint32_t inflight_segs;
	bool retransmission, probe;
};
static_assert(sizeof(struct packet_rec) <= SEG_BYTES, "a place of a ring");

static struct flow_service *service_of(struct cc_flow *flow) {
	return (struct flow_service *)(void *)flow;
}

static struct flow *flow_of(const struct flow_service *s) {
	return &s->endpoint->flow[endpoint_index(s->endpoint, s->flow.id)];
}

size_t service_bytes(const struct group *g) {
	return g->has_service ? sizeof(struct flow_service) + g->cc->memory_bytes : 0;
}

// ---- Memory that flows share ----

// Whether flow i of one group shares memory with flow i of the other.
static bool coupled(const struct group *a, const struct group *b) {
	return a == b
		|| (a->has_service && b->has_service && a->cc->shared_bytes > 0
			&& a->cc->shared_bytes == b->cc->shared_bytes
			&& strcmp(a->cc->name, b->cc->name) == 0
			&& strcmp(a->cc->shared_name(a->cc_config),
				   b->cc->shared_name(b->cc_config))
				== 0);
}

// Bytes of one flow's, in a place of their own.
static size_t shared_stride(const struct group *g) {
	return g->has_service ? (g->cc->shared_bytes + 63) / 64 * 64 : 0;
}

// What the first group of those that share may need, whichever that is.
static size_t shared_block(const struct groups *gs) {
	size_t stride = 0;
	uint64_t count = 0;

	for (uint32_t i = 0; i < gs->count; i++) {
		stride = max_u64(stride, shared_stride(&gs->group[i]));
		count = max_u64(count, gs->group[i].count);
	}
	return stride * count;
}

size_t service_shared_bytes(const struct groups *gs) {
	return shared_block(gs) * gs->count;
}

static void find_shared(const struct endpoint *e, const struct flow *f, struct cc_flow *flow) {
	const struct groups *gs = e->groups;
	const struct group *own = flow_group(e, f);
	uint32_t place = f->id - own->first, first = f->group;

	for (uint32_t i = gs->count; i-- > 0;) {
		if (!coupled(own, &gs->group[i]))
			continue;
		first = i;
		flow->shared_flows += place < gs->group[i].count;
		flow->shared_place += place < gs->group[i].count && i < f->group;
	}
	flow->shared = e->shared + first * shared_block(gs) + place * shared_stride(own);
}

// ---- A connection's service ----

static void set_timer(struct cc_flow *flow, uint64_t after_ns) {
	struct flow_service *s = service_of(flow);

	if (after_ns == CC_TIMER_OFF)
		endpoint_cancel(s->endpoint, &s->timer);
	else if (flow_of(s)->state == FLOW_OPEN || flow_of(s)->state == FLOW_SYN_SENT)
		endpoint_arm(s->endpoint, &s->timer,
			s->now_ns
				+ time_min(time_max(after_ns, TIMER_NS_MIN), NEVER_NS - s->now_ns));
}

static void note(struct cc_flow *flow, uint32_t which, double before, double value) {
	struct flow_service *s = service_of(flow);

	endpoint_event(s->endpoint, flow_of(s), TEL_EV_NOTE, before, value, which, s->now_ns);
}

void service_open(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	struct flow_service *s = endpoint_connection(e, f->id);

	memset(s, 0, service_bytes(g));
	s->endpoint = e;
	s->now_ns = now_ns;
	s->timer.kind = TIMER_CONTROL;
	s->packets.stride = SEG_BYTES;
	s->flow = (struct cc_flow){.bytes = sizeof(s->flow),
		.id = f->id,
		.random = rng_mix((e->env.seed ^ (uint64_t)f->id << 32 ^ f->iss) * RNG_GOLDEN),
		.memory = s->memory,
		.timer = set_timer,
		.note = note};
	if (g->cc->shared_bytes > 0)
		find_shared(e, f, &s->flow);
	f->service = s;
	f->packets = g->packets;
	if (f->packets)
		f->rtx_end = UINT64_MAX; // no short path for its ACKs
	g->cc->open(f->cc_state, g->cc_config, &s->flow);
}

void service_close(struct endpoint *e, struct flow *f) {
	endpoint_cancel(e, &f->service->timer);
	seg_ring_free(&f->service->packets, &e->arena);
}

void service_timer(struct endpoint *e, struct host_timer *t, uint64_t now_ns) {
	struct flow_service *s = (void *)((char *)t - offsetof(struct flow_service, timer));
	struct flow *f = flow_of(s);
	const struct group *g = flow_group(e, f);
	uint8_t mode = f->cc_mode;

	if (g->cc->on_timer == NULL)
		return;
	sample_now(e, f, now_ns);
	g->cc->on_timer(f->cc_state, g->cc_config, now_ns, &f->out);
	flow_note_mode(e, f);
	if (f->cc_mode != mode)
		endpoint_event(e, f, TEL_EV_CC_MODE, mode, f->cc_mode, 0, now_ns);
	if (f->ca != FLOW_CA_RECOVERY || !g->cc->prr)
		f->cwnd_segs = f->out.cwnd_segs;
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

static void report(struct flow *f, const struct packet_rec *r, uint64_t index,
	enum cc_packet_event event, enum cc_ce ce, uint64_t now_ns) {
	const struct group *g = flow_group(f->service->endpoint, f);
	const struct seg_rec *sent = flow_seg(f, index);
	const struct cc_packet packet = {
		.now_ns = now_ns,
		.number = index,
		.sent_ns = flow_sent_ns(sent, now_ns),
		.delivered_segs = r->delivered_segs,
		.lost_segs = r->lost_segs,
		.inflight_segs = r->inflight_segs,
		.bytes = flow_len(f, index),
		.event = event,
		.retransmission = r->retransmission,
		.probe = r->probe,
		.app_limited = (sent->flags & SENT_APP_LIMITED) != 0,
		.ce = ce,
	};

	f->service->now_ns = now_ns;
	g->cc->on_packet(f->cc_state, g->cc_config, &packet);
}

// The records of what una has passed are still there: nothing has been sent since.
void service_acked(struct flow *f, enum cc_ce ce, uint64_t now_ns) {
	struct flow_service *s = f->service;
	uint64_t index = s->acked_first;

	for (; s->acked > 0; s->acked--) {
		const struct packet_rec *r = (void *)seg_at(&s->packets, index);

		report(f, r, index, CC_PACKET_ACKED, ce, now_ns);
		index = r->next;
	}
}

static void note_acked(struct flow_service *s, uint64_t index) {
	struct packet_rec *last = (void *)seg_at(&s->packets, s->acked_last);

	if (s->acked++ == 0)
		s->acked_first = index;
	else
		last->next = index;
	s->acked_last = index;
}

void service_packet(struct flow *f, uint64_t index, enum cc_packet_event event, uint64_t now_ns) {
	struct flow_service *s = f->service;
	struct endpoint *e = s->endpoint;

	if (!seg_ring_reserve(&s->packets, &e->arena, f->una, index)) {
		e->count.seg_refused++; // the run fails (host_had_memory)
		return;
	}
	struct packet_rec *r = (void *)seg_at(&s->packets, index);

	if (event == CC_PACKET_SENT)
		*r = (struct packet_rec){.delivered_segs = f->delivered,
			.lost_segs = f->count.lost_segs - f->at_open.lost_segs,
			.inflight_segs = flow_inflight(f),
			.retransmission = (flow_seg(f, index)->flags & SENT_EVER_RETRANS) != 0,
			.probe = s->probing};
	if (event == CC_PACKET_ACKED)
		note_acked(s, index);
	else
		report(f, r, index, event, CC_CE_UNKNOWN, now_ns);
}
