// SPDX-License-Identifier: BSD-3-Clause
// The queue of a link and its packets' way to the wire and off it.
#include "switch/stage/link.h"

#include "common/base/likely.h"
#include "common/base/rng.h"

#include <errno.h>
#include <stdlib.h>

static struct config_name nth_aqm(size_t i) {
	return (struct config_name){aqm_all[i] != NULL ? aqm_all[i]->name : NULL, NULL};
}

int link_configure(void *self, struct config_node *node, struct err *err) {
	struct link *l = self;
	struct config_node *queue = config_get(node, "queue");
	struct config_node *queue_params;
	const char *name = "fifo";
	size_t which;
	int rc = framing_configure(&l->serialiser.framing, node, err);

	if (rc < 0)
		return rc;
	if (queue == NULL) {
		queue = config_section(node, "queue");
		queue_params = config_section(queue, name);
	} else {
		rc = config_plugin(queue, "queue", &name, &queue_params, err);
		if (rc < 0)
			return rc;
	}
	rc = config_registered(queue, "queue", "a queue discipline", nth_aqm, &which, err);
	if (rc < 0)
		return rc;
	l->aqm = aqm_all[which];
	l->q = calloc(1, l->aqm->state_size);
	if (l->q == NULL)
		return err_set(err, -ENOMEM, "no memory for a queue");
	return config_params(queue_params, l->aqm->name, l->aqm->params, NULL, l->q, err);
}

struct stage_part link_part(void *self) {
	const struct link *l = self;

	return (struct stage_part){l->aqm->params, l->q, l->aqm->update, l->aqm->rng};
}

int link_begin(struct link *l, const struct stage_env *env, uint64_t rate_bps, uint64_t limit_bps,
	struct err *err) {
	struct rng seed;

	rng_init(&seed, env->run_seed, env->name);
	struct aqm_env aqm_env = {
		.rate_bps = limit_bps,
		.base_rtt_ns = env->base_rtt_ns,
		.overhead_bytes = framing_overhead_bytes(&l->serialiser.framing, env->mtu_bytes),
		.mtu_bytes = env->mtu_bytes,
		.seed = rng_u64(&seed),
		.owner = env->owner,
	};
	l->serialiser.env = env;
	l->in_bursts = l->aqm->dequeue_burst != NULL && !l->serialiser.framing.padded;
	serialiser_rate(&l->serialiser, 0, rate_bps);
	return l->aqm->init(l->q, &aqm_env, err);
}

void link_fini(void *self) {
	struct link *l = self;

	if (l->q != NULL && l->aqm->fini != NULL)
		l->aqm->fini(l->q);
	free(l->q);
	pkt_ring_fini(&l->serialiser.out);
}

struct serialiser_queue link_queue(const struct link *l) {
	return (struct serialiser_queue){
		.q = l->q,
		.enqueue = l->aqm->enqueue,
		.dequeue = l->aqm->dequeue,
		.traced = stage_traced(l->serialiser.env),
		.padded = l->serialiser.framing.padded,
	};
}

// Whether the operations for bursts can be used: they record nothing. (The stream may be opened
// after link_begin.)
static inline bool link_in_bursts(const struct link *l) {
	return likely(l->in_bursts && !stage_traced(l->serialiser.env));
}

void link_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct link *l = self;

	serialiser_resume(&l->serialiser, link_queue(l), drops);
	serialiser_serve(&l->serialiser, link_queue(l), now_ns, drops);
}

__attribute__((noinline)) static void link_push_each(
	struct link *l, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	serialiser_push(&l->serialiser, link_queue(l), pkts, n, drops);
}

void link_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct link *l = self;

	if (link_in_bursts(l))
		l->aqm->enqueue_burst(l->q, &l->serialiser, pkts, n, drops);
	else
		link_push_each(l, pkts, n, drops);
}

bool link_defer(void *self, struct pkt *const *pkts, uint32_t n) {
	struct link *l = self;

	return l->aqm->enqueue_whole != NULL && link_in_bursts(l)
		&& serialiser_defer(&l->serialiser, l->q, l->aqm->enqueue_whole, pkts, n);
}

__attribute__((noinline)) static uint32_t link_pop_each(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	return serialiser_send(&l->serialiser, link_queue(l), now_ns, pkts, max, drops);
}

// Pops frames that leave the wire now, after those sent when it was served.
static inline uint32_t link_pop_due(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	if (max == 0 || !serialiser_due(&l->serialiser, now_ns))
		return 0;
	if (link_in_bursts(l))
		return l->aqm->dequeue_burst(l->q, &l->serialiser, now_ns, pkts, max, drops);
	return link_pop_each(l, now_ns, pkts, max, drops);
}

__attribute__((noinline)) static uint32_t link_pop_out(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	uint32_t n = serialiser_pop_out(&l->serialiser, now_ns, pkts, max);

	if (n == max || l->serialiser.out.count > 0)
		return n;
	return n + link_pop_due(l, now_ns, pkts + n, max - n, drops);
}

uint32_t link_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct link *l = self;

	if (unlikely(l->serialiser.out.count > 0))
		return link_pop_out(l, now_ns, pkts, max, drops);
	return link_pop_due(l, now_ns, pkts, max, drops);
}

uint64_t link_next_ns(const void *self) {
	const struct serialiser *s = &((const struct link *)self)->serialiser;

	if (s->out.count > 0)
		return pkt_ring_head(&s->out)->arrival_ns;
	return s->sending != NULL ? serial_ns(s->free) : NEVER_NS;
}

// Asks the discipline, so that the packet balance does not depend on the wire's own counters.
struct backlog link_backlog(const void *self) {
	const struct link *l = self;
	const struct serialiser *s = &l->serialiser;
	const struct pkt *on_wire = s->sending != NULL ? s->sending : s->halted;
	struct backlog b = l->aqm->backlog(l->q);

	b.pkts += s->out.count + (on_wire != NULL);
	b.bytes += s->out.bytes + (on_wire != NULL ? on_wire->size_bytes : 0);
	return b;
}

struct stage_stats *link_figures(void *self, uint64_t now_ns) {
	return serialiser_figures(&((struct link *)self)->serialiser, now_ns);
}

static const char *link_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct link *l = self;

	if (l->aqm->observe == NULL)
		return NULL;
	l->aqm->observe(l->q, out);
	return l->aqm->name;
}

const struct stage_observer link_observer = {.observe = link_observe};

bool link_random(const void *self) {
	const struct link *l = self;

	return l->aqm->random != NULL && l->aqm->random(l->q);
}

bool link_flows(const void *self) {
	const struct link *l = self;

	return l->aqm->flows;
}

bool link_headers(const void *self) {
	const struct link *l = self;

	return l->aqm->headers != NULL && l->aqm->headers(l->q);
}

struct aqm_limit link_limit(const void *self) {
	const struct link *l = self;

	return l->aqm->limit(l->q);
}
