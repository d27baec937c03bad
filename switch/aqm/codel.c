// SPDX-License-Identifier: BSD-3-Clause
// CoDel: Controlled Delay (RFC 8289) of one FIFO with a limit. codel_law.h has the algorithm.
#include "switch/aqm/bursts.h"
#include "switch/aqm/codel_law.h"
#include "switch/aqm/ring.h"

struct codel {
	struct aqm_ring q;
	struct limit limit;
	struct codel_law law;

	struct codel_state state;
};
AQM_RING_FIRST(struct codel);

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct codel, limit), 1e-6, 1e15},
	CODEL_LAW_PARAMS(struct codel, "no"),
	PARAM_END,
};

static int codel_init(void *self, const struct aqm_env *env, struct err *err) {
	struct codel *c = self;

	codel_law_init(&c->law, env->mtu_bytes);
	return aqm_ring_init(&c->q, &c->limit, env, err);
}

static void codel_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct codel *c = self;

	p->arrival_ns = now_ns;
	aqm_ring_put(&c->q, p, drops);
}

static struct pkt *codel_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct codel *c = self;

	return codel_law_dequeue(&c->law, &c->state, aqm_ring_take, &c->q, now_ns, drops);
}

static uint64_t codel_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct codel *c = self;

	return aqm_ring_put_all(&c->q, pkts, n, drops);
}

static inline struct serialiser_queue codel_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = codel_enqueue,
		.dequeue = codel_dequeue,
		.enqueue_all = codel_enqueue_all};
}
AQM_BURSTS(codel)

static void codel_changed(void *self) {
	struct codel *c = self;

	codel_law_update(&c->law);
}

static void codel_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct codel *c = self;

	codel_law_observe(&c->law, &c->state, out);
}

const struct aqm_ops aqm_codel = {
	.name = "codel",
	.summary = "Controlled Delay (RFC 8289)",
	.reference = "RFC 8289 (CoDel)",
	.params = params,
	.state_size = sizeof(struct codel),
	.observed = {CODEL_OBSERVED},
	.init = codel_init,
	.fini = aqm_ring_fini,
	.enqueue = codel_enqueue,
	.dequeue = codel_dequeue,
	.enqueue_burst = codel_enqueue_burst,
	.dequeue_burst = codel_dequeue_burst,
	.update = codel_changed,
	.backlog = aqm_ring_backlog,
	.limit = aqm_ring_limit,
	.observe = codel_observe,
};
