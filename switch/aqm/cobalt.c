// SPDX-License-Identifier: BSD-3-Clause
// COBALT, CoDel and BLUE Alternate, of one FIFO with a limit. cobalt_law.h has the algorithm.
//
// A packet that does not fit is dropped on its arrival. (cake, with a queue per flow, drops from
// the head.)
#include "switch/aqm/bursts.h"
#include "switch/aqm/cobalt_law.h"
#include "switch/aqm/ring.h"

struct cobalt {
	struct aqm_ring q;
	struct limit limit;
	struct cobalt_law law;

	struct cobalt_state state;
	bool signals;
};
AQM_RING_FIRST(struct cobalt);

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct cobalt, limit), 1e-6, 1e15},
	COBALT_LAW_PARAMS(struct cobalt),
	PARAM_END,
};

static int cobalt_init(void *self, const struct aqm_env *env, struct err *err) {
	struct cobalt *c = self;

	cobalt_law_init(&c->law, env, "cobalt");
	return aqm_ring_init(&c->q, &c->limit, env, err);
}

static void cobalt_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct cobalt *c = self;

	p->arrival_ns = now_ns;
	if (unlikely(!aqm_ring_fits(&c->q, p))) {
		const struct pkt *oldest = aqm_ring_oldest(&c->q);

		cobalt_overflow(
			&c->law, &c->state, (oldest != NULL ? oldest : p)->arrival_ns, now_ns);
		c->signals = true;
	}
	aqm_ring_put(&c->q, p, drops);
}

static struct pkt *cobalt_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct cobalt *c = self;

	return cobalt_law_dequeue(
		&c->law, &c->state, &c->signals, aqm_ring_take, &c->q, now_ns, drops);
}

static uint64_t cobalt_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct cobalt *c = self;

	return aqm_ring_put_whole(&c->q, pkts, n);
}

static inline struct serialiser_queue cobalt_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = cobalt_enqueue,
		.dequeue = cobalt_dequeue,
		.enqueue_all = cobalt_enqueue_all};
}
AQM_BURSTS(cobalt)

static bool cobalt_random(const void *self) {
	const struct cobalt *c = self;

	return c->law.drew;
}

static void cobalt_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct cobalt *c = self;

	cobalt_law_observe(&c->law, &c->state, out);
}

const struct aqm_ops aqm_cobalt = {
	.name = "cobalt",
	.summary = "CoDel and BLUE Alternate (Palmei and others, LANMAN 2019)",
	.reference =
		"Palmei and others: Design and Evaluation of COBALT Queue Discipline, LANMAN 2019",
	.params = params,
	.state_size = sizeof(struct cobalt),
	.observed = {COBALT_OBSERVED},
	.init = cobalt_init,
	.fini = aqm_ring_fini,
	.enqueue = cobalt_enqueue,
	.dequeue = cobalt_dequeue,
	.enqueue_burst = cobalt_enqueue_burst,
	.dequeue_burst = cobalt_dequeue_burst,
	.backlog = aqm_ring_backlog,
	.limit = aqm_ring_limit,
	.random = cobalt_random,
	.rng = offsetof(struct cobalt, law.rng),
	.observe = cobalt_observe,
};
