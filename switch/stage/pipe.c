// SPDX-License-Identifier: BSD-3-Clause
// A wire of constant rate behind one FIFO of its own.
#include "switch/aqm/ring.h"
#include "switch/stage/wire.h"

struct pipe {
	uint64_t rate_bps;
	struct limit limit;

	struct aqm_ring q;
	struct wire wire;
};

static const struct param params[] = {
	{"rate", NULL, "bits per second on the wire", UNIT_RATE_BPS,
		PARAM_U64(struct pipe, rate_bps), 1e3, 1e12, .live = true},
	{"limit", "1000pkt", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct pipe, limit), 1e-6, 1e15},
	PARAM_END,
};

static void pipe_enqueue(void *q, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	aqm_ring_put(q, p, drops);
}

static struct pkt *pipe_dequeue(void *q, uint64_t now_ns, struct pkt_list *drops) {
	return aqm_ring_get(q);
}

static struct wire_queue pipe_queue(struct pipe *s) {
	return (struct wire_queue){&s->q, pipe_enqueue, pipe_dequeue, .traced = true};
}

static void pipe_update(void *self, uint64_t now_ns) {
	struct pipe *s = self;

	wire_rate(&s->wire, now_ns, s->rate_bps);
}

static int pipe_init(void *self, const struct stage_env *env, struct err *err) {
	struct pipe *s = self;
	struct aqm_env queue = {.rate_bps = s->rate_bps,
		.base_rtt_ns = env->base_rtt_ns,
		.mtu_bytes = env->mtu_bytes};

	s->wire.env = env;
	pipe_update(s, 0);
	return aqm_ring_init(&s->q, &s->limit, &queue, err);
}

static void pipe_fini(void *self) {
	struct pipe *s = self;

	aqm_ring_fini(&s->q);
	pkt_ring_fini(&s->wire.out);
}

static void pipe_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct pipe *s = self;

	wire_push(&s->wire, pipe_queue(s), pkts, n, drops);
}

static void pipe_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct pipe *s = self;

	wire_serve(&s->wire, pipe_queue(s), now_ns, drops);
}

static uint32_t pipe_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct pipe *s = self;

	pipe_serve(s, now_ns, drops);
	return wire_pop_out(&s->wire, now_ns, pkts, max);
}

static uint64_t pipe_next_ns(const void *self) {
	const struct wire *w = &((const struct pipe *)self)->wire;

	if (w->out.count > 0)
		return pkt_ring_head(&w->out)->arrival_ns;
	return w->sending != NULL ? serial_ns(w->free) : NEVER_NS;
}

static struct backlog pipe_backlog(const void *self) {
	const struct pipe *s = self;
	struct backlog b = aqm_ring_backlog(&s->q);

	b.pkts += s->wire.out.count + (s->wire.sending != NULL);
	b.bytes += s->wire.out.bytes;
	b.bytes += s->wire.sending != NULL ? s->wire.sending->size_bytes : 0;
	return b;
}

static struct stage_stats *pipe_figures(void *self, uint64_t now_ns) {
	return wire_figures(&((struct pipe *)self)->wire, now_ns);
}

static struct aqm_limit pipe_limit(const void *self) {
	return ((const struct pipe *)self)->q.max;
}

static uint64_t pipe_rate_bps(const void *self) {
	return ((const struct pipe *)self)->rate_bps;
}

const struct stage_ops stage_pipe = {
	.name = "pipe",
	.summary = "a wire of constant rate behind one FIFO",
	.params = params,
	.state_size = sizeof(struct pipe),
	.init = pipe_init,
	.fini = pipe_fini,
	.push = pipe_push,
	.pop = pipe_pop,
	.next_ns = pipe_next_ns,
	.backlog = pipe_backlog,
	.serve = pipe_serve,
	.figures = pipe_figures,
	.update = pipe_update,
	.limit = pipe_limit,
	.rate_bps = pipe_rate_bps,
};
