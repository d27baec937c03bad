// SPDX-License-Identifier: BSD-3-Clause
// Packets between hosts and paths, and between paths: which component comes next, and in which
// order components run.
#include "tools/sim/sim.h"

#include <assert.h>
#include <string.h>

static uint32_t host_of(enum flows_direction d) {
	return d == FLOWS_FORWARD ? NODE_SENDER : NODE_RECEIVER;
}

// The components that packets of a group come to.
static void add_route(
	struct sim_network *n, uint32_t group, enum flows_direction d, const struct route *r) {
	uint8_t *next = &n->first[d][group];

	for (uint32_t i = 0; i < r->count; i++) {
		*next = (uint8_t)route_node(r->path[i]);
		next = &n->next[d][group][r->path[i]->index];
	}
	*next = (uint8_t)host_of(d == FLOWS_FORWARD ? FLOWS_REVERSE : FLOWS_FORWARD);
}

// The components to which one sends packets.
static uint32_t receivers(const struct route_graph *g, uint32_t node) {
	uint32_t to = 0;

	for (uint32_t i = 0; i < NODES_MAX; i++)
		to |= (g->from[i] >> node & 1) << i;
	return to;
}

// Where there is nothing between a host and a path.
static void find_neighbours(struct sim *s, enum flows_direction d) {
	const struct route_graph *g = &s->network.graph;
	uint32_t host = host_of(d);

	for (uint32_t i = 0; i < s->paths.count; i++) {
		uint32_t node = NODE_PATHS + i;

		if (g->from[node] == 1u << host && receivers(g, host) == 1u << node)
			s->side[d].to = &s->paths.path[i];
		if (g->from[host] == 1u << node && receivers(g, node) == 1u << host)
			s->side[d].from = &s->paths.path[i];
	}
}

void sim_network_init(struct sim *s) {
	routes_graph(&s->paths, &s->network.graph);
	for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
		for (uint32_t g = 0; g < s->paths.groups; g++)
			add_route(&s->network, g, d, &s->paths.route[g][d]);
		find_neighbours(s, d);
	}
	sim_network_order(s);
}

static void add_step(struct sim *s, enum sim_step_kind kind, uint32_t node) {
	const struct sim_side *forward = &s->side[FLOWS_FORWARD],
			      *reverse = &s->side[FLOWS_REVERSE];
	const struct path *p = kind != STEP_HOST ? &s->paths.path[node - NODE_PATHS] : NULL;
	struct sim_network *n = &s->network;

	if (kind == STEP_ENTER && (p == forward->to || p == reverse->to))
		return; // the host does it
	if (kind == STEP_LEAVE && (p == forward->from || p == reverse->from))
		return;
	n->step[n->steps++] = (struct sim_step){(uint8_t)kind, (uint8_t)node};
}

void sim_network_order(struct sim *s) {
	struct sim_network *n = &s->network;
	struct route_order *o = &n->order;

	routes_order(&s->paths, &n->graph, o);
	assert(o->ahead_ns > 0); // network and schedule were checked
	n->steps = 0;
	for (uint32_t i = NODE_PATHS; i < NODE_PATHS + s->paths.count; i++) {
		if ((o->ahead >> i & 1) != 0)
			add_step(s, STEP_LEAVE, i);
	}
	for (uint32_t i = 0; i < o->nodes; i++) {
		uint32_t node = o->node[i];

		if (node < NODE_PATHS) {
			add_step(s, STEP_HOST, node);
		} else {
			add_step(s, STEP_ENTER, node);
			add_step(s, STEP_LEAVE, node);
		}
	}
	for (uint32_t i = NODE_PATHS; i < NODE_PATHS + s->paths.count; i++) {
		if ((o->ahead >> i & 1) != 0)
			add_step(s, STEP_ENTER, i);
	}
}

__attribute__((noinline)) void sim_network_send(struct sim *s, enum flows_direction d) {
	struct sim_network *n = &s->network;
	struct sim_side *side = &s->side[d];

	for (uint32_t i = 0; i < side->burst.count; i++) {
		struct pkt *p = side->burst.pkt[i];

		pkt_list_push(&n->list[n->first[d][p->delay_class]][host_of(d)], p);
	}
	side->listed += side->burst.count;
	side->burst.count = 0;
}

__attribute__((noinline)) uint32_t sim_network_take(
	struct sim *s, uint32_t node, struct pkt **pkts, uint32_t max) {
	struct pkt_list *lists = s->network.list[node];
	uint32_t sources = s->network.graph.from[node], n = 0;

	for (; n < max; n++) {
		struct pkt_list *first = NULL;

		for (uint32_t left = sources; left != 0; left &= left - 1) {
			struct pkt_list *l = &lists[__builtin_ctz(left)];

			if (l->head != NULL
				&& (first == NULL || l->head->arrival_ns < first->head->arrival_ns))
				first = l;
		}
		if (first == NULL)
			break;
		pkts[n] = pkt_list_pop(first);
	}
	if (node < NODE_PATHS)
		s->side[node == NODE_SENDER ? FLOWS_FORWARD : FLOWS_REVERSE].taken += n;
	return n;
}

__attribute__((noinline)) void sim_network_enter(struct sim *s, struct path *p) {
	struct pkt *pkts[SIM_BURST];
	uint32_t n;

	do {
		n = sim_network_take(s, route_node(p), pkts, SIM_BURST);
		path_push(p, pkts, n);
	} while (n == SIM_BURST);
}

__attribute__((noinline)) void sim_network_leave(struct sim *s, struct path *p, uint64_t last_ns) {
	struct sim_network *network = &s->network;
	struct pkt *pkts[SIM_BURST];
	uint32_t n;

	do {
		n = path_pop(p, last_ns, pkts, SIM_BURST);
		for (uint32_t i = 0; i < n; i++) {
			enum flows_direction d = sim_direction(pkts[i]);
			uint32_t to = network->next[d][pkts[i]->delay_class][p->index];

			pkt_list_push(&network->list[to][route_node(p)], pkts[i]);
			network->passed += to >= NODE_PATHS;
		}
	} while (n == SIM_BURST);
}
