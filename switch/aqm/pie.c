// SPDX-License-Identifier: BSD-3-Clause
// PIE: Proportional Integral controller Enhanced (RFC 8033) of one FIFO with a limit. pie_law.h has
// the algorithm.
#include "switch/aqm/bursts.h"
#include "switch/aqm/mark.h"
#include "switch/aqm/pie_law.h"
#include "switch/aqm/ring.h"

struct pie {
	struct aqm_ring q;
	struct limit limit;
	struct pie_law law;

	struct pie_state state;
	struct pie_draws draws;
};
AQM_RING_FIRST(struct pie);

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct pie, limit), 1e-6, 1e15},
	PIE_LAW_PARAMS(struct pie),
	PARAM_END,
};

static int pie_init(void *self, const struct aqm_env *env, struct err *err) {
	struct pie *q = self;

	pie_law_init(&q->law, env->mtu_bytes);
	pie_state_init(&q->law, &q->state);
	pie_draws_init(&q->draws, env->seed);
	return aqm_ring_init(&q->q, &q->limit, env, err);
}

static void pie_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct pie *q = self;
	const struct pkt *oldest = aqm_ring_oldest(&q->q);

	pie_advance(&q->law, &q->state, oldest, now_ns);
	if (unlikely(!aqm_ring_fits(&q->q, p))) {
		q->state.accu = 0;
		pkt_drop(drops, p, DROP_QUEUE_FULL);
		return;
	}
	switch (pie_arrival(&q->law, &q->state, &q->draws, p, oldest, q->q.q.bytes, now_ns)) {
	case PIE_DROP:
		pkt_drop(drops, p, DROP_AQM);
		return;
	case PIE_MARK:
		aqm_mark(p);
		break;
	case PIE_PASS:
		break;
	}
	p->arrival_ns = now_ns;
	aqm_ring_put(&q->q, p, drops);
}

static struct pkt *pie_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct pie *q = self;

	pie_advance(&q->law, &q->state, aqm_ring_oldest(&q->q), now_ns);
	return aqm_ring_get(&q->q);
}

static inline struct serialiser_queue pie_queue(void *self) {
	return (struct serialiser_queue){.q = self, .enqueue = pie_enqueue, .dequeue = pie_dequeue};
}
AQM_BURSTS(pie)

static void pie_changed(void *self) {
	struct pie *q = self;

	pie_law_update(&q->law);
}

static void pie_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct pie *q = self;

	pie_law_observe(&q->state, out);
}

static bool pie_random(const void *self) {
	const struct pie *q = self;

	return q->draws.drew;
}

const struct aqm_ops aqm_pie = {
	.name = "pie",
	.summary = "Proportional Integral controller Enhanced (RFC 8033)",
	.reference = "RFC 8033 (PIE)",
	.params = params,
	.state_size = sizeof(struct pie),
	.observed = {PIE_OBSERVED},
	.init = pie_init,
	.fini = aqm_ring_fini,
	.enqueue = pie_enqueue,
	.dequeue = pie_dequeue,
	.enqueue_burst = pie_enqueue_burst,
	.dequeue_burst = pie_dequeue_burst,
	.update = pie_changed,
	.backlog = aqm_ring_backlog,
	.limit = aqm_ring_limit,
	.observe = pie_observe,
	.random = pie_random,
	.rng = offsetof(struct pie, draws.rng),
};
