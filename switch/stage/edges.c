// SPDX-License-Identifier: BSD-3-Clause
// The edge links of a dumbbell: `count` parallel wires; a flow uses the one with its number modulo
// `count`. They are usually faster than the bottleneck and only space packets. Each has its own
// queue with a limit, not counting the frame on the wire; packets that find it full are dropped
// (queue_full).
//
//	start     = max(arrival, end of the edge's frame before)
//	departure = start + (size - FCS + overhead) * 8 / rate
//
// with the link's exact arithmetic (serial.h). Packets leave in the order of their departures from
// all edges; ties leave in order of arrival.
//
// A packet's departure is known on its arrival: each edge is a FIFO, with a heap over their heads
// as in the delay stage. Packets that have departed by the next arrival move to a list, so that the
// heap holds only edges that are busy at the same time: mostly one.
//
// A new rate applies at once: to the unsent part of the frame on each wire and to the packets
// behind it.
#include "switch/stage.h"

#include "switch/serialiser/serial.h"
#include "switch/stage/heads.h"

#include <errno.h>
#include <stdlib.h>

struct edge {
	struct fifo fifo; // its head is on the wire
	serial_u128 free; // end of the last frame
	uint64_t idle_ns; // up to the start of the last busy period
};

struct edges {
	struct fifos fifos;
	uint64_t count;
	uint64_t rate_bps;
	uint64_t overhead_bytes;
	struct limit limit;

	const struct stage_env *env;
	struct aqm_limit max; // queue limit of each
	uint64_t byte_ns; // time per byte in 2^-40 ns
	struct edge *edge;
};

static const struct param params[] = {
	{"count", NULL, "of parallel links; a flow's is its number modulo this", UNIT_NONE,
		PARAM_U64(struct edges, count), 1, 1024},
	{"rate", NULL, "of each, bits per second on the wire", UNIT_RATE_BPS,
		PARAM_U64(struct edges, rate_bps), 1e3, 1e12, .live = true},
	{"overhead", "24B", "per frame, on top of the frame without FCS", UNIT_BYTES,
		PARAM_U64(struct edges, overhead_bytes), 0, 1000},
	// The limit of Linux's fq: far more packets than wait if edges only space them.
	{"limit", "10000pkt", "queue size of each, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct edges, limit), 1e-6, 1e15},
	PARAM_END,
};

static inline uint64_t edges_wire_bytes(const struct edges *e, const struct pkt *p) {
	return p->size_bytes + e->overhead_bytes - SERIAL_FCS_BYTES;
}

// Recomputes the departures of an edge that is busy at now_ns, at another rate. All packets behind
// the head have arrived before its end, so they are sent back to back.
static void edge_change(struct edges *e, struct edge *edge, uint64_t now_ns, uint64_t byte_ns) {
	serial_u128 end = edge->free;

	for (const struct pkt *p = edge->fifo.head->next; p != NULL; p = p->next)
		end -= serial_end(0, edges_wire_bytes(e, p), e->byte_ns);
	end = serial_changed_end(
		end, now_ns, edges_wire_bytes(e, edge->fifo.head), e->byte_ns, byte_ns);
	edge->fifo.head->release_ns = serial_ns(end);
	for (struct pkt *p = edge->fifo.head->next; p != NULL; p = p->next) {
		end = serial_end(end, edges_wire_bytes(e, p), byte_ns);
		p->release_ns = serial_ns(end);
	}
	edge->free = end;
}

static void edges_update(void *self, uint64_t now_ns) {
	struct edges *e = self;
	uint64_t byte_ns = serial_byte_ns(e->rate_bps);

	fifos_depart(&e->fifos, now_ns);
	e->fifos.heads = 0;
	for (uint64_t i = 0; i < e->count; i++) {
		struct edge *edge = &e->edge[i];

		if (edge->fifo.head == NULL)
			continue;
		edge_change(e, edge, now_ns, byte_ns);
		heads_rise(e->fifos.heap, e->fifos.heads++,
			(struct head){edge->fifo.head->release_ns, edge->fifo.head, &edge->fifo});
	}
	e->byte_ns = byte_ns;
}

static int edges_init(void *self, const struct stage_env *env, struct err *err) {
	struct edges *e = self;
	struct aqm_env queue = {
		.rate_bps = e->rate_bps,
		.base_rtt_ns = env->base_rtt_ns,
		.overhead_bytes = e->overhead_bytes > SERIAL_FCS_BYTES
			? (uint32_t)e->overhead_bytes - SERIAL_FCS_BYTES
			: 0,
		.mtu_bytes = env->mtu_bytes,
	};

	e->env = env;
	e->fifos.heap = calloc(e->count, sizeof(*e->fifos.heap));
	e->edge = calloc(e->count, sizeof(*e->edge));
	if (e->fifos.heap == NULL || e->edge == NULL)
		return err_set(err, -ENOMEM, "no memory for %u edges", (uint32_t)e->count);
	edges_update(self, 0);
	return aqm_limit_init(&e->max, &e->limit, &queue, err);
}

static void edges_fini(void *self) {
	struct edges *e = self;

	free(e->fifos.heap);
	free(e->edge);
}

static inline void edges_take(struct edges *e, struct pkt *p, struct pkt_list *drops) {
	struct edge *edge = &e->edge[p->flow_id % (uint32_t)e->count];
	uint64_t t_ns = p->arrival_ns;

	fifos_depart(&e->fifos, t_ns);
	if (edge->fifo.head != NULL
		&& !aqm_limit_fits(&e->max, edge->fifo.pkts - 1,
			edge->fifo.bytes - edge->fifo.head->size_bytes, p->size_bytes)) {
		stage_drop(e->env, drops, p, DROP_QUEUE_FULL);
		return;
	}
	if (t_ns > serial_ns(edge->free)) {
		edge->idle_ns += t_ns - serial_ns(edge->free);
		edge->free = serial_at(t_ns);
	}
	edge->free = serial_end(edge->free, edges_wire_bytes(e, p), e->byte_ns);
	p->release_ns = serial_ns(edge->free);
	fifos_push(&e->fifos, &edge->fifo, p);
}

static void edges_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	for (uint32_t i = 0; i < n; i++)
		edges_take(self, pkts[i], drops);
}

// Packets and bytes on all edges together, including those on the wires.
static const char *edges_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct edges *e = self;

	out[0] = (double)e->fifos.pkts;
	out[1] = (double)e->fifos.bytes;
	return "edges";
}

static uint64_t times(uint64_t n, uint64_t count) {
	return n > UINT64_MAX / count ? UINT64_MAX : n * count;
}

static struct aqm_limit edges_limit(const void *self) {
	const struct edges *e = self;

	return (struct aqm_limit){
		.bytes = times(e->max.bytes, e->count),
		.pkts = times(e->max.pkts, e->count),
		.overhead_bytes = e->max.overhead_bytes,
	};
}

static uint64_t edges_rate_bps(const void *self) {
	const struct edges *e = self;

	return e->count * e->rate_bps;
}

static double edges_busy(const void *self, uint64_t now_ns) {
	const struct edges *e = self;
	uint64_t least_ns = now_ns;

	for (uint64_t i = 0; i < e->count; i++) {
		const struct edge *edge = &e->edge[i];

		least_ns = time_min(
			least_ns, edge->idle_ns + time_since(now_ns, serial_ns(edge->free)));
	}
	return now_ns == 0 ? 0 : (double)(now_ns - least_ns) / (double)now_ns;
}

const struct stage_ops stage_edges = {
	.name = "edges",
	.summary = "parallel links of constant rate, each with its own flows and queue",
	.params = params,
	.state_size = sizeof(struct edges),
	.init = edges_init,
	.fini = edges_fini,
	.push = edges_push,
	.pop = fifos_pop,
	.next_ns = fifos_next_ns,
	.backlog = fifos_backlog,
	.config = &(const struct stage_config){.update = edges_update},
	.capacity =
		&(const struct stage_capacity){
			.limit = edges_limit, .rate_bps = edges_rate_bps, .busy = edges_busy},
	.observer = &(const struct stage_observer){.names = {"queue_pkts", "queue_bytes"},
		.observe = edges_observe},
	.needs = &(const struct stage_needs){.flows = stage_always},
};
