// SPDX-License-Identifier: BSD-3-Clause
// FQ-PIE: flow queues served in turn (RFC 8290), each with PIE (RFC 8033).
//
//	enqueue   PIE of the packet's flow queue drops it, marks it or lets it join. A queue that
//	          was in no list joins the new ones with a quantum of credits. Above the limit, the
//	          queue with the most bytes loses half of its packets from its head, 64 at most.
//	dequeue   as in fq_codel.c, without a drop: new queues before old ones, a quantum each per
//	          round
//
// flow_queues.h has the queues, pie_law.h PIE: probability, burst allowance and delay are those of
// one queue, whose updates are computed when a packet joins or leaves it. So a packet costs one
// queue's update, whatever their number.
//
// Where we differ from Linux's fq_pie, and why:
// - 65536 queues instead of 1024, so that thousands of flows have one each.
// - Above the limit the fattest queue drops, as in RFC 8290, section 4.1; Linux drops the packet
//   that arrives, which may be that of a flow without a backlog.
// - A queue's delay is the age of its oldest packet when the probability is updated (pie_law.h has
//   the reason).
#include "switch/aqm/bursts.h"
#include "switch/aqm/flow_queues.h"
#include "switch/aqm/mark.h"
#include "switch/aqm/pie_law.h"

#define BATCH 64 // packets dropped from the fattest queue at once

struct fq_pie_state {
	struct pie_state pie;
} __attribute__((aligned(64)));
static_assert(sizeof(struct fq_pie_state) == 64, "one cache line");

struct fq_pie {
	struct flow_queues fq;
	struct pie_law law;

	struct pie_draws draws;
	double prob; // of the queue that changed last
};

static const struct param params[] = {
	FLOW_QUEUES_PARAMS(struct fq_pie),
	PIE_LAW_PARAMS(struct fq_pie),
	PARAM_END,
};

static int fq_pie_init(void *self, const struct aqm_env *env, struct err *err) {
	struct fq_pie *f = self;
	int rc = flow_queues_init(&f->fq, sizeof(struct fq_pie_state), env, err);

	if (rc < 0)
		return rc;
	pie_law_init(&f->law, env->mtu_bytes);
	pie_draws_init(&f->draws, env->seed);
	for (uint64_t i = 0; i < f->fq.buckets; i++)
		pie_state_init(&f->law, flow_queue_state(&f->fq, &f->fq.queue[i]));
	return 0;
}

// PIE of the queue; true: the packet joined it.
static inline bool fq_pie_join(
	struct fq_pie *f, uint32_t index, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct flow_queue *q = &f->fq.queue[index];
	struct pie_state *s = flow_queue_state(&f->fq, q);
	enum pie_verdict verdict;

	pie_advance(&f->law, s, q->pkts.head, now_ns);
	verdict = pie_arrival(&f->law, s, &f->draws, p, q->pkts.head, q->pkts.bytes, now_ns);
	f->prob = s->prob;
	if (unlikely(verdict == PIE_DROP)) {
		pkt_drop(drops, p, DROP_AQM);
		return false;
	}
	if (verdict == PIE_MARK)
		aqm_mark(p);
	p->arrival_ns = now_ns;
	flow_queues_join(&f->fq, index, p, FLOW_NEW);
	return true;
}

static void fq_pie_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct fq_pie *f = self;

	if (fq_pie_join(f, flow_queues_index(&f->fq, p->flow_id), p, now_ns, drops)
		&& unlikely(!flow_queues_fit(&f->fq, 0, 0)))
		flow_queues_shed(&f->fq, BATCH, drops);
}

static struct pkt *fq_pie_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct fq_pie *f = self;
	struct flow_queue *q;

	while ((q = flow_queues_next(&f->fq)) != NULL) {
		struct pie_state *s = flow_queue_state(&f->fq, q);
		struct backlog before = flow_queue_backlog(q);
		struct pkt *p;

		pie_advance(&f->law, s, q->pkts.head, now_ns);
		p = flow_queue_pop(q);
		if (likely(p != NULL)) {
			f->prob = s->prob;
			flow_queues_left(&f->fq, q, before);
			q->credits -= p->size_bytes;
			return p;
		}
		flow_queues_empty(&f->fq, q);
	}
	return NULL;
}

// Only if all of them fit: then those that are dropped are of these packets.
static uint64_t fq_pie_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct fq_pie *f = self;
	uint32_t index[FLOW_QUEUES_BURST];
	uint64_t bytes = 0, joined = 0;

	if (unlikely(n > FLOW_QUEUES_BURST))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct flow_queue *q;

		index[i] = flow_queues_index(&f->fq, pkts[i]->flow_id);
		q = &f->fq.queue[index[i]];
		prefetch_write(q);
		prefetch_write(flow_queue_state(&f->fq, q));
		bytes += pkts[i]->size_bytes;
	}
	if (unlikely(!flow_queues_fit(&f->fq, n, bytes)))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct pkt_list *l = &f->fq.queue[index[i]].pkts;

		if (l->head == NULL)
			continue;
		prefetch_write(l->head);
		prefetch_write(l->tail);
	}
	for (uint32_t i = 0; i < n; i++)
		if (fq_pie_join(f, index[i], pkts[i], pkts[i]->arrival_ns, drops))
			joined += pkts[i]->size_bytes;
	return joined;
}

// The packet's queue; besides, the state of PIE that its arrival updates.
static inline void *fq_pie_joins(const void *self, const struct pkt *p) {
	const struct fq_pie *f = self;
	struct flow_queue *q = &f->fq.queue[flow_queues_index(&f->fq, p->flow_id)];

	prefetch_write(flow_queue_state(&f->fq, q));
	return q;
}

// The packet before it there; besides, the oldest one, whose age is the queue's delay.
static inline void *fq_pie_follows(const void *self, const struct pkt *p) {
	const struct fq_pie *f = self;
	struct flow_queue *q = &f->fq.queue[flow_queues_index(&f->fq, p->flow_id)];

	if (q->pkts.head == NULL)
		return q;
	prefetch_write(q->pkts.head);
	return q->pkts.tail;
}

static inline struct serialiser_queue fq_pie_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = fq_pie_enqueue,
		.dequeue = fq_pie_dequeue,
		.enqueue_all = fq_pie_enqueue_all,
		.joins = fq_pie_joins,
		.follows = fq_pie_follows};
}
AQM_BURSTS(fq_pie)

static void fq_pie_changed(void *self) {
	struct fq_pie *f = self;

	pie_law_update(&f->law);
}

static bool fq_pie_random(const void *self) {
	const struct fq_pie *f = self;

	return flow_queues_random(&f->fq) || f->draws.drew;
}

// The probability of the queue that a packet joined or left last.
static void fq_pie_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct fq_pie *f = self;

	out[0] = f->fq.list[FLOW_NEW].count;
	out[1] = f->fq.list[FLOW_OLD].count;
	out[2] = f->prob;
	out[3] = (double)f->fq.collided;
}

const struct aqm_ops aqm_fq_pie = {
	.name = "fq_pie",
	.summary = "a queue per flow, served in turn, each with PIE (RFC 8033, 8290)",
	.reference = "RFC 8033 (PIE), RFC 8290 (flow queues)",
	.params = params,
	.state_size = sizeof(struct fq_pie),
	.observed = {"new_queues", "old_queues", "drop_probability", "collided_pkts"},
	.flows = true,
	.init = fq_pie_init,
	.fini = flow_queues_fini,
	.enqueue = fq_pie_enqueue,
	.dequeue = fq_pie_dequeue,
	.enqueue_burst = fq_pie_enqueue_burst,
	.dequeue_burst = fq_pie_dequeue_burst,
	.update = fq_pie_changed,
	.backlog = flow_queues_backlog,
	.limit = flow_queues_limit,
	.random = fq_pie_random,
	.rng = offsetof(struct fq_pie, draws.rng),
	.observe = fq_pie_observe,
};
