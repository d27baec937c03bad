// SPDX-License-Identifier: BSD-3-Clause
// Deficit round robin: a queue per flow, served in turn (Shreedhar and Varghese: Efficient Fair
// Queuing using Deficit Round Robin, SIGCOMM 1995). Flows are equal in bytes, whatever their
// packets' sizes; there is no AQM.
//
//	enqueue   the packet joins its flow's queue; a queue that was in no list joins the end of
//	          the list
//	dequeue   the first queue has credits of a quantum more than it left unused in its last
//	          turn, and is served while they cover its next packet; then the next queue is.
//	          Without packets it leaves the list and loses its credits.
//
// Two queues with a backlog differ by less than a quantum and a packet. A quantum below the largest
// packet is legal:
// several rounds may then pass before a packet.
//
// Where we differ from the paper, and why:
// - The quantum of the next turn is added when the present one ends, which is the same.
// - Above the limit the queue with the most bytes loses packets, from its head instead of one
//   buffer from its end: its sender learns sooner.
#include "switch/aqm/bursts.h"
#include "switch/aqm/flow_queues.h"

struct drr {
	struct flow_queues fq;
};

static const struct param params[] = {
	FLOW_QUEUES_PARAMS(struct drr),
	PARAM_END,
};

static int drr_init(void *self, const struct aqm_env *env, struct err *err) {
	struct drr *d = self;

	return flow_queues_init(&d->fq, 0, env, err);
}

static void drr_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct drr *d = self;

	flow_queues_put(&d->fq, p, FLOW_OLD);
	if (unlikely(!flow_queues_fit(&d->fq, 0, 0)))
		flow_queues_shed(&d->fq, 1, drops);
}

static struct pkt *drr_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct drr *d = self;
	struct flow_queue *q;

	while ((q = flow_queues_first(&d->fq, FLOW_OLD)) != NULL) {
		struct pkt *p = q->pkts.head;

		if (p == NULL) {
			flow_queues_retire(&d->fq, q);
		} else if (q->credits <= 0
			|| q->credits < p->size_bytes) { // without credits p is not read
			q->credits += (int32_t)d->fq.quantum_bytes;
			flow_queues_rotate(&d->fq, q);
		} else {
			struct backlog before = flow_queue_backlog(q);

			flow_queue_pop(q);
			flow_queues_left(&d->fq, q, before);
			q->credits -= p->size_bytes;
			if (q->pkts.head == NULL)
				flow_queues_retire(&d->fq, q);
			return p;
		}
	}
	return NULL;
}

static uint64_t drr_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct drr *d = self;

	return flow_queues_put_all(&d->fq, pkts, n, FLOW_OLD);
}

static inline struct serialiser_queue drr_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = drr_enqueue,
		.dequeue = drr_dequeue,
		.enqueue_all = drr_enqueue_all,
		.joins = flow_queues_joins,
		.follows = flow_queues_follows};
}
AQM_BURSTS(drr)

static void drr_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct drr *d = self;

	out[0] = d->fq.list[FLOW_OLD].count;
	out[1] = (double)d->fq.collided;
}

const struct aqm_ops aqm_drr = {
	.name = "drr",
	.summary = "a queue per flow, served in turn (deficit round robin)",
	.reference = "Shreedhar, Varghese: Efficient Fair Queuing using Deficit Round Robin, "
		     "SIGCOMM 1995",
	.params = params,
	.state_size = sizeof(struct drr),
	.observed = {"queues", "collided_pkts"},
	.flows = true,
	.init = drr_init,
	.fini = flow_queues_fini,
	.enqueue = drr_enqueue,
	.dequeue = drr_dequeue,
	.enqueue_burst = drr_enqueue_burst,
	.dequeue_burst = drr_dequeue_burst,
	.backlog = flow_queues_backlog,
	.limit = flow_queues_limit,
	.random = flow_queues_random,
	.observe = drr_observe,
};
