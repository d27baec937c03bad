// SPDX-License-Identifier: BSD-3-Clause
// A step: every ECN capable packet is marked while the queue is longer than a threshold, as a
// switch does for DCTCP (Alizadeh and others: Data Center TCP, SIGCOMM 2010, section 3.1; RFC
// 8257).
//
//	threshold: 65pkt, 100kB or 0.2BDP   marked on arrival, if more waits than this, the packet
//	                                    itself included
//	threshold: 1ms                      marked on departure, if it waited longer
//	others: keep | drop                 packets that are not ECN capable stay, or are dropped
//	                                    instead: switches that make the step with RED do that
//	                                    (RFC 8257, section 5)
//
// The length decides as it is, without an average. DCTCP needs more than 1/7 of a BDP (section 3.4
// of the paper).
#include "switch/aqm/bursts.h"
#include "switch/aqm/mark.h"
#include "switch/aqm/ring.h"

#include <errno.h>

enum { STEP_KEEP, STEP_DROP };

struct step {
	struct aqm_ring q;
	struct limit limit, threshold;
	int others;

	bool sojourn; // the threshold is a time
	uint64_t threshold_ns;
	struct aqm_limit length; // what may wait without a mark
	bool above; // the last packet was
};
AQM_RING_FIRST(struct step);

static const char *const others_names[] = {"keep", "drop", NULL};

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct step, limit), 1e-6, 1e15},
	{"threshold", "0.17BDP", "length that is not marked; a time: of waiting", UNIT_NONE,
		PARAM_LIMIT(struct step, threshold), 1e-6, 1e15},
	{"others", "keep", "what happens to packets that are not ECN capable", UNIT_NONE,
		PARAM_ENUM(struct step, others, others_names)},
	PARAM_END,
};

static int step_init(void *self, const struct aqm_env *env, struct err *err) {
	struct step *s = self;

	s->sojourn = s->threshold.kind == LIMIT_TIME;
	s->threshold_ns = (uint64_t)s->threshold.value;
	if (!s->sojourn) {
		int rc = aqm_limit_known("threshold", &s->threshold, env,
			"a threshold such as 65pkt, 100kB or 1ms", err);

		if (rc < 0)
			return rc;
	}
	s->length = aqm_limit_resolve(&s->threshold, env);
	return aqm_ring_init(&s->q, &s->limit, env, err);
}

// False: the packet is to be dropped.
static inline bool step_mark(const struct step *s, struct pkt *p) {
	return aqm_mark(p) || s->others == STEP_KEEP;
}

static void step_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct step *s = self;
	const struct pkt_ring *q = &s->q.q;

	if (!s->sojourn)
		s->above = !aqm_limit_fits(&s->length, q->count, q->bytes, p->size_bytes);
	p->arrival_ns = now_ns;
	if (unlikely(!aqm_ring_fits(&s->q, p)))
		pkt_drop(drops, p, DROP_QUEUE_FULL);
	else if (!s->sojourn && s->above && !step_mark(s, p))
		pkt_drop(drops, p, DROP_AQM);
	else
		aqm_ring_put(&s->q, p, drops);
}

static struct pkt *step_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct step *s = self;
	struct pkt *p = aqm_ring_get(&s->q);

	if (!s->sojourn)
		return p;
	while (p != NULL) {
		s->above = time_since(now_ns, p->arrival_ns) > s->threshold_ns;
		if (!s->above || step_mark(s, p))
			break;
		pkt_drop(drops, p, DROP_AQM);
		p = aqm_ring_get(&s->q);
	}
	return p;
}

static inline struct serialiser_queue step_queue(void *self) {
	return (struct serialiser_queue){
		.q = self, .enqueue = step_enqueue, .dequeue = step_dequeue};
}
AQM_BURSTS(step)

static void step_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct step *s = self;

	out[0] = s->above;
}

const struct aqm_ops aqm_step = {
	.name = "step",
	.summary = "DCTCP's threshold: marks all packets above it",
	.reference = "Alizadeh and others: Data Center TCP (DCTCP), SIGCOMM 2010; RFC 8257",
	.params = params,
	.state_size = sizeof(struct step),
	.observed = {"above"},
	.init = step_init,
	.fini = aqm_ring_fini,
	.enqueue = step_enqueue,
	.dequeue = step_dequeue,
	.enqueue_burst = step_enqueue_burst,
	.dequeue_burst = step_dequeue_burst,
	.backlog = aqm_ring_backlog,
	.limit = aqm_ring_limit,
	.observe = step_observe,
};
