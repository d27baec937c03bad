// SPDX-License-Identifier: BSD-3-Clause
// Drops every n-th packet that comes: the smallest discipline there can be.
#include "switch/aqm/ring.h"

struct every {
	struct limit limit;
	uint64_t n;

	uint64_t count;
	struct aqm_ring q;
};

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct every, limit), 1e-6, 1e15},
	{"n", "100", "one of so many is dropped", UNIT_NONE, PARAM_U64(struct every, n), 1, 1e9},
	PARAM_END,
};

static int every_init(void *self, const struct aqm_env *env, struct err *err) {
	struct every *e = self;

	return aqm_ring_init(&e->q, &e->limit, env, err);
}

static void every_fini(void *self) {
	struct every *e = self;

	aqm_ring_fini(&e->q);
}

static void every_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct every *e = self;

	if (++e->count % e->n == 0)
		pkt_drop(drops, p, DROP_AQM);
	else
		aqm_ring_put(&e->q, p, drops);
}

static struct pkt *every_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct every *e = self;

	return aqm_ring_get(&e->q);
}

static struct backlog every_backlog(const void *self) {
	const struct every *e = self;

	return aqm_ring_backlog(&e->q);
}

static struct aqm_limit every_limit(const void *self) {
	const struct every *e = self;

	return e->q.max;
}

const struct aqm_ops aqm_every = {
	.name = "every",
	.summary = "first in, first out, without every n-th",
	.params = params,
	.state_size = sizeof(struct every),
	.init = every_init,
	.fini = every_fini,
	.enqueue = every_enqueue,
	.dequeue = every_dequeue,
	.backlog = every_backlog,
	.limit = every_limit,
};
