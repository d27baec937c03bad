// SPDX-License-Identifier: BSD-3-Clause
// A link: one queue discipline and a serialiser.
//
// The serialiser is a virtual finish time (as in GCRA, ITU-T I.371), not a token bucket: no burst,
// and an exact rate in the long run.
//
//	start     = max(arrival, end of the frame before)
//	departure = start + (size - FCS + overhead) * 8 / rate
//
// serial.h has the arithmetic: a busy link's rate is off by less than 1e-10 up to 1 Tbit/s.
//
// `overhead` counts per frame on top of the frame without FCS: with the default of 24 B (FCS,
// preamble, start delimiter, gap) a rate of 10 Gbit/s is 10GbE on the wire, where a frame of
// 1514 B takes 1538 B. 0 makes the rate one of frames without FCS.
//
// Logical time: a packet is dequeued at the moment the wire becomes free, and the discipline gets that time,
// however late the loop runs. A departure precedes an arrival at the same time. The frame on the wire is not in
// the queue. Limits in BDP or time stay as resolved at the start.
//
// A new rate applies at once, to the unsent part of the frame on the wire. Departures already taken stay correct:
// pop returns a frame no earlier than its end, so the frame on the wire is the only one with an end in the future
// that was computed with the old rate. (A path serves its links up to the time of a change before it.)
#include "common/base/likely.h"
#include "common/base/rng.h"
#include "switch/stage/wire.h"

#include <errno.h>
#include <stdlib.h>

struct link {
	uint64_t rate_bps;
	uint64_t overhead_bytes;
	const struct aqm_ops *aqm;
	void *q;
	struct wire wire;
};

static const struct param params[] = {
	{"rate", NULL, "bits per second on the wire", UNIT_RATE_BPS,
		PARAM_U64(struct link, rate_bps), 1e3, 1e12, .live = true},
	{"overhead", "24B", "per frame, on top of the frame without FCS", UNIT_BYTES,
		PARAM_U64(struct link, overhead_bytes), 0, 1000},
	PARAM_END,
};

static const struct param also[] = {
	{"queue", "fifo", "discipline of the queue before it", UNIT_NONE, PARAM_PLUGIN("aqm")},
	PARAM_END,
};

static int link_configure(void *self, struct config_node *node, struct err *err) {
	struct link *l = self;
	struct config_node *queue = config_get(node, "queue");
	struct config_node *queue_params;
	const char *name = "fifo";

	if (queue == NULL) {
		queue = config_section(node, "queue");
		queue_params = config_section(queue, name);
	} else {
		int rc = config_plugin(queue, "queue", &name, &queue_params, err);
		if (rc < 0)
			return rc;
	}
	l->aqm = aqm_find(name);
	if (l->aqm == NULL) {
		char known[CONFIG_NAMES_SIZE] = "";

		for (const struct aqm_ops *const *o = aqm_all; *o != NULL; o++)
			config_name_add(known, (*o)->name);
		return config_err(queue, -EINVAL, err,
			"queue: '%s' is not a queue discipline; there is %s", name, known);
	}
	l->q = calloc(1, l->aqm->state_size);
	if (l->q == NULL)
		return err_set(err, -ENOMEM, "no memory for a queue");
	return config_params(queue_params, name, l->aqm->params, NULL, l->q, err);
}

static void link_update(void *self, uint64_t now_ns) {
	struct link *l = self;

	wire_rate(&l->wire, now_ns, l->rate_bps);
}

static int link_init(void *self, const struct stage_env *env, struct err *err) {
	struct link *l = self;
	struct rng seed;

	rng_init(&seed, env->run_seed, env->name);
	struct aqm_env aqm_env = {
		.rate_bps = l->rate_bps,
		.base_rtt_ns = env->base_rtt_ns,
		.overhead_bytes = l->overhead_bytes > SERIAL_FCS_BYTES
			? (uint32_t)l->overhead_bytes - SERIAL_FCS_BYTES
			: 0,
		.mtu_bytes = env->mtu_bytes,
		.seed = rng_u64(&seed),
	};
	l->wire.env = env;
	l->wire.extra_bytes = l->overhead_bytes - SERIAL_FCS_BYTES;
	link_update(self, 0);
	return l->aqm->init(l->q, &aqm_env, err);
}

static void link_fini(void *self) {
	struct link *l = self;

	if (l->q != NULL && l->aqm->fini != NULL)
		l->aqm->fini(l->q);
	free(l->q);
	pkt_ring_fini(&l->wire.out);
}

// The discipline with a call per packet; packets are recorded if there is a stream.
static struct wire_queue link_queue(const struct link *l) {
	return (struct wire_queue){
		.q = l->q,
		.enqueue = l->aqm->enqueue,
		.dequeue = l->aqm->dequeue,
		.traced = stage_traced(l->wire.env),
	};
}

// Whether the operations for bursts can be used: they record nothing. (The stream may be opened after link_init.)
static inline bool link_in_bursts(const struct link *l) {
	return likely(l->aqm->dequeue_burst != NULL && !stage_traced(l->wire.env));
}

static void link_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct link *l = self;

	wire_serve(&l->wire, link_queue(l), now_ns, drops);
}

__attribute__((noinline)) static void link_push_each(
	struct link *l, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	wire_push(&l->wire, link_queue(l), pkts, n, drops);
}

static void link_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct link *l = self;

	if (link_in_bursts(l))
		l->aqm->enqueue_burst(l->q, &l->wire, pkts, n, drops);
	else
		link_push_each(l, pkts, n, drops);
}

__attribute__((noinline)) static uint32_t link_pop_each(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	return wire_send(&l->wire, link_queue(l), now_ns, pkts, max, drops);
}

// Pops frames that leave the wire now, after those sent when it was served.
static inline uint32_t link_pop_due(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	if (!wire_due(&l->wire, now_ns))
		return 0;
	if (link_in_bursts(l))
		return l->aqm->dequeue_burst(l->q, &l->wire, now_ns, pkts, max, drops);
	return link_pop_each(l, now_ns, pkts, max, drops);
}

__attribute__((noinline)) static uint32_t link_pop_out(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	uint32_t n = wire_pop_out(&l->wire, now_ns, pkts, max);

	if (n == max || l->wire.out.count > 0)
		return n;
	return n + link_pop_due(l, now_ns, pkts + n, max - n, drops);
}

static uint32_t link_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct link *l = self;

	if (unlikely(l->wire.out.count > 0))
		return link_pop_out(l, now_ns, pkts, max, drops);
	return link_pop_due(l, now_ns, pkts, max, drops);
}

static uint64_t link_next_ns(const void *self) {
	const struct wire *w = &((const struct link *)self)->wire;

	if (w->out.count > 0)
		return pkt_ring_head(&w->out)->arrival_ns;
	return w->sending != NULL ? serial_ns(w->free) : NEVER_NS;
}

// Asks the discipline, so that the packet balance does not depend on the wire's own counters.
static struct backlog link_backlog(const void *self) {
	const struct link *l = self;
	const struct wire *w = &l->wire;
	struct backlog b = l->aqm->backlog(l->q);

	b.pkts += w->out.count + (w->sending != NULL);
	b.bytes += w->out.bytes + (w->sending != NULL ? w->sending->size_bytes : 0);
	return b;
}

static struct stage_stats *link_figures(void *self, uint64_t now_ns) {
	return wire_figures(&((struct link *)self)->wire, now_ns);
}

static const char *link_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct link *l = self;

	if (l->aqm->observe == NULL)
		return NULL;
	l->aqm->observe(l->q, out);
	return l->aqm->name;
}

static bool link_random(const void *self) {
	const struct link *l = self;

	return l->aqm->random != NULL && l->aqm->random(l->q);
}

static bool link_flows(const void *self) {
	const struct link *l = self;

	return l->aqm->flows;
}

static struct aqm_limit link_limit(const void *self) {
	const struct link *l = self;

	return l->aqm->limit(l->q);
}

static uint64_t link_rate_bps(const void *self) {
	const struct link *l = self;

	return l->rate_bps;
}

const struct stage_ops stage_link = {
	.name = "link",
	.summary = "a queue and a serialiser of constant rate",
	.reference = "virtual finish time as in GCRA, ITU-T I.371",
	.params = params,
	.also = also,
	.state_size = sizeof(struct link),
	.configure = link_configure,
	.init = link_init,
	.fini = link_fini,
	.push = link_push,
	.pop = link_pop,
	.next_ns = link_next_ns,
	.backlog = link_backlog,
	.serve = link_serve,
	.figures = link_figures,
	.observe = link_observe,
	.random = link_random,
	.flows = link_flows,
	.update = link_update,
	.limit = link_limit,
	.rate_bps = link_rate_bps,
};
