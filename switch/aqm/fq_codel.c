// SPDX-License-Identifier: BSD-3-Clause
// FQ-CoDel: flow queues served in turn, each with CoDel (RFC 8290).
//
//	enqueue   the packet joins its flow's queue; a queue that was in no list joins the new ones
//	          with a quantum of credits. Above the limit, the queue with the most bytes loses
//	          half of its packets from its head, 64 at most.
//	dequeue   the first new queue is served, or the first old one if there is none. Without
//	          credits left it gets a quantum and goes to the end of the old ones. Else CoDel
//	          takes a packet off it, and its size is subtracted from the credits. If CoDel finds
//	          none, a new queue goes to the end of the old ones, and an old queue leaves the
//	          list.
//
// So a flow that sends less than a quantum per round passes those with a backlog.
//
// flow_queues.h has the queues, codel_law.h CoDel. ECN is on by default, as section 5.2 of the RFC
// has it.
//
// Where we differ from the RFC, and why:
// - 65536 queues instead of 1024, so that thousands of flows have one each.
// - Sizes count the FCS, as in all limits here; so the quantum of one full-sized frame is 1518 B
//   instead of 1514.
// - The fattest queue drops until the limit holds: with a limit in bytes one small packet is not
//   always enough.
// CoDel judges the bytes of the packet's own queue (RFC 8289), where Linux takes those of all
// queues.
#include "switch/aqm/bursts.h"
#include "switch/aqm/codel_law.h"
#include "switch/aqm/flow_queues.h"

#define BATCH 64 // packets dropped from the fattest queue at once

struct fq_codel {
	struct flow_queues fq;
	struct codel_law law;

	uint64_t dropping; // queues in the dropping state
};

static const struct param params[] = {
	FLOW_QUEUES_PARAMS(struct fq_codel),
	CODEL_LAW_PARAMS(struct fq_codel, "yes"),
	PARAM_END,
};

static int fq_codel_init(void *self, const struct aqm_env *env, struct err *err) {
	struct fq_codel *f = self;

	codel_law_init(&f->law, env->mtu_bytes);
	return flow_queues_init(&f->fq, sizeof(struct codel_state), env, err);
}

static void fq_codel_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct fq_codel *f = self;

	p->arrival_ns = now_ns;
	flow_queues_put(&f->fq, p, FLOW_NEW);
	if (unlikely(!flow_queues_fit(&f->fq, 0, 0)))
		flow_queues_shed(&f->fq, BATCH, drops);
}

static inline struct pkt *fq_codel_oldest(void *queue, uint64_t *left_bytes) {
	struct flow_queue *q = queue;
	struct pkt *p = flow_queue_pop(q);

	*left_bytes = q->pkts.bytes;
	return p;
}

static struct pkt *fq_codel_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct fq_codel *f = self;
	struct flow_queue *q;

	while ((q = flow_queues_next(&f->fq)) != NULL) {
		struct codel_state *s = flow_queue_state(&f->fq, q);
		struct backlog before = flow_queue_backlog(q);
		uint64_t dropped = s->dropping;
		struct pkt *p = codel_law_dequeue(&f->law, s, fq_codel_oldest, q, now_ns, drops);

		f->dropping += (uint64_t)s->dropping - dropped;
		flow_queues_left(&f->fq, q, before);
		if (likely(p != NULL)) {
			q->credits -= p->size_bytes;
			return p;
		}
		flow_queues_empty(&f->fq, q);
	}
	return NULL;
}

static uint64_t fq_codel_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct fq_codel *f = self;

	return flow_queues_put_all(&f->fq, pkts, n, FLOW_NEW);
}

static inline struct serialiser_queue fq_codel_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = fq_codel_enqueue,
		.dequeue = fq_codel_dequeue,
		.enqueue_all = fq_codel_enqueue_all,
		.joins = flow_queues_joins,
		.follows = flow_queues_follows};
}
AQM_BURSTS(fq_codel)

static void fq_codel_changed(void *self) {
	struct fq_codel *f = self;

	codel_law_update(&f->law);
}

static void fq_codel_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct fq_codel *f = self;

	out[0] = f->fq.list[FLOW_NEW].count;
	out[1] = f->fq.list[FLOW_OLD].count;
	out[2] = (double)f->dropping;
	out[3] = (double)f->fq.collided;
}

const struct aqm_ops aqm_fq_codel = {
	.name = "fq_codel",
	.summary = "a queue per flow, served in turn, each with CoDel (RFC 8290)",
	.reference = "RFC 8290 (FQ-CoDel)",
	.params = params,
	.state_size = sizeof(struct fq_codel),
	.observed = {"new_queues", "old_queues", "dropping_queues", "collided_pkts"},
	.flows = true,
	.init = fq_codel_init,
	.fini = flow_queues_fini,
	.enqueue = fq_codel_enqueue,
	.dequeue = fq_codel_dequeue,
	.enqueue_burst = fq_codel_enqueue_burst,
	.dequeue_burst = fq_codel_dequeue_burst,
	.update = fq_codel_changed,
	.backlog = flow_queues_backlog,
	.limit = flow_queues_limit,
	.random = flow_queues_random,
	.observe = fq_codel_observe,
};
