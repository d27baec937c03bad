// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/topology.h"

#include "common/base/likely.h"
#include "tools/sim/pool.h"

#include <assert.h>

static uint64_t path_event_ns(struct node *n, uint64_t limit_ns) {
	return path_next_ns(((struct topology_path *)(void *)n)->path);
}

static uint32_t path_take(struct node *n, uint64_t last_ns, struct pkt **pkts, uint32_t max) {
	return path_pop(((struct topology_path *)(void *)n)->path, last_ns, pkts, max);
}

static void path_give(struct node *n, struct pkt *const *pkts, uint32_t count) {
	path_push(((struct topology_path *)(void *)n)->path, pkts, count);
}

static const struct node_ops path_ops = {
	.next_event_ns = path_event_ns,
	.take = path_take,
	.give = path_give,
};

// What has come to a node by way of lists by last_ns.
__attribute__((noinline)) static uint32_t merge(
	struct topology *n, uint32_t node, uint64_t last_ns, struct pkt **pkts, uint32_t max) {
	struct pkt_list *lists = n->list[node];
	uint32_t sources = n->graph.from[node], count = 0;

	for (; count < max; count++) {
		struct pkt_list *first = NULL;

		for (uint32_t left = sources; left != 0; left &= left - 1) {
			struct pkt_list *l = &lists[__builtin_ctz(left)];

			if (l->head != NULL
				&& (first == NULL || l->head->arrival_ns < first->head->arrival_ns))
				first = l;
		}
		if (first == NULL || first->head->arrival_ns > last_ns)
			break;
		pkts[count] = pkt_list_pop(first);
	}
	return count;
}

static uint32_t lists_take(struct node *n, uint64_t last_ns, struct pkt **pkts, uint32_t max) {
	struct topology_lists *l = (struct topology_lists *)(void *)n;

	return merge(l->topology, l->host, last_ns, pkts, max);
}

static void lists_give(struct node *node, struct pkt *const *pkts, uint32_t count) {
	struct topology_lists *l = (struct topology_lists *)(void *)node;
	enum flows_direction d = l->host == NODE_SENDER ? FLOWS_FORWARD : FLOWS_REVERSE;
	struct topology *n = l->topology;

	for (uint32_t i = 0; i < count; i++)
		pkt_list_push(&n->list[n->first[d][pkts[i]->delay_class]][l->host], pkts[i]);
}

static const struct node_ops lists_ops = {.take = lists_take, .give = lists_give};

// The nodes that packets of a group come to.
static void add_route(
	struct topology *n, uint32_t group, enum flows_direction d, const struct route *r) {
	uint8_t *next = &n->first[d][group];

	for (uint32_t i = 0; i < r->count; i++) {
		*next = (uint8_t)route_node(r->path[i]);
		next = &n->next[d][group][r->path[i]->index];
	}
	*next = d == FLOWS_FORWARD ? NODE_RECEIVER : NODE_SENDER;
}

void topology_init(struct topology *n, struct paths *paths) {
	n->paths = paths;
	n->nodes = NODE_PATHS + paths->count;
	for (uint32_t i = 0; i < paths->count; i++) {
		n->path[i] = (struct topology_path){{&path_ops}, &paths->path[i]};
		n->node[NODE_PATHS + i] = &n->path[i].node;
	}
	for (uint8_t host = 0; host < NODE_PATHS; host++)
		n->lists[host] = (struct topology_lists){{&lists_ops}, n, host};
	routes_graph(paths, &n->graph);
	for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
		for (uint32_t g = 0; g < paths->groups; g++)
			add_route(n, g, d, &paths->route[g][d]);
	}
}

// The nodes to which one sends packets, as bits.
static uint32_t receivers(const struct route_graph *g, uint32_t node) {
	uint32_t to = 0;

	for (uint32_t i = 0; i < NODES_MAX; i++)
		to |= (g->from[i] >> node & 1) << i;
	return to;
}

// The path that takes all of a host's packets and none of others; 0: there is none.
static uint32_t path_behind(const struct topology *n, uint32_t host) {
	for (uint32_t i = NODE_PATHS; i < n->nodes; i++) {
		if (n->graph.from[i] == 1u << host && receivers(&n->graph, host) == 1u << i)
			return i;
	}
	return 0;
}

// The path that gives all of its packets to a host, which gets none of others; 0: there is none.
static uint32_t path_before(const struct topology *n, uint32_t host) {
	for (uint32_t i = NODE_PATHS; i < n->nodes; i++) {
		if (n->graph.from[host] == 1u << i && receivers(&n->graph, i) == 1u << host)
			return i;
	}
	return 0;
}

struct node *topology_to(struct topology *n, uint32_t host) {
	uint32_t path = path_behind(n, host);

	return path > 0 ? n->node[path] : &n->lists[host].node;
}

struct node *topology_from(struct topology *n, uint32_t host) {
	uint32_t path = path_before(n, host);

	return path > 0 ? n->node[path] : &n->lists[host].node;
}

void topology_hosts(struct topology *n, struct node *sender, struct node *receiver) {
	n->node[NODE_SENDER] = sender;
	n->node[NODE_RECEIVER] = receiver;
	topology_order(n);
}

static void add_step(struct topology *n, enum topology_step_kind kind, uint32_t node) {
	if (kind == STEP_ENTER
		&& (node == path_behind(n, NODE_SENDER) || node == path_behind(n, NODE_RECEIVER)))
		return; // the host does it
	if (kind == STEP_LEAVE
		&& (node == path_before(n, NODE_SENDER) || node == path_before(n, NODE_RECEIVER)))
		return;
	n->step[n->steps++] = (struct topology_step){(uint8_t)kind, (uint8_t)node};
}

// Steps in which all is known ahead that leaves the paths ahead.
static void order_nodes(struct topology *n) {
	const struct route_order *o = &n->order;

	n->window_ns = o->ahead_ns;
	for (uint32_t i = NODE_PATHS; i < n->nodes; i++) {
		if ((o->ahead >> i & 1) != 0)
			add_step(n, STEP_LEAVE, i);
	}
	for (uint32_t i = 0; i < o->nodes; i++) {
		uint32_t node = o->node[i];

		if (node < NODE_PATHS) {
			add_step(n, STEP_RUN, node);
		} else {
			add_step(n, STEP_ENTER, node);
			add_step(n, STEP_LEAVE, node);
		}
	}
	for (uint32_t i = NODE_PATHS; i < n->nodes; i++) {
		if ((o->ahead >> i & 1) != 0)
			add_step(n, STEP_ENTER, i);
	}
}

// Whether there are two hosts and one path from each to the other, and nothing else.
static bool plain(struct topology *n, struct path **forward, struct path **reverse) {
	uint32_t there = path_behind(n, NODE_SENDER), back = path_behind(n, NODE_RECEIVER);

	if (there == 0 || back == 0 || path_before(n, NODE_RECEIVER) != there
		|| path_before(n, NODE_SENDER) != back)
		return false;
	*forward = n->path[there - NODE_PATHS].path;
	*reverse = n->path[back - NODE_PATHS].path;
	return true;
}

// The window in which neither host gets what the other one sends in it, where each path between
// them has a delay and there is nothing else; 0: there is none.
static uint64_t apart_ns(struct topology *n) {
	struct path *forward, *reverse;

	return plain(n, &forward, &reverse)
		? time_min(path_min_delay_ns(forward), path_min_delay_ns(reverse))
		: 0;
}

void topology_order(struct topology *n) {
	const struct node_ops *sender = n->node[NODE_SENDER]->ops;
	const struct node_ops *receiver = n->node[NODE_RECEIVER]->ops;
	bool begins = sender->begin != NULL || receiver->begin != NULL;

	routes_order(n->paths, &n->graph, &n->order);
	assert(n->order.ahead_ns > 0); // network and schedule were checked
	n->steps = 0;
	n->window_ns = begins ? apart_ns(n) : 0;
	if (n->window_ns == 0) {
		order_nodes(n);
	} else { // both hosts at once
		for (uint32_t host = 0; host < NODE_PATHS; host++) {
			if (n->node[host]->ops->begin != NULL)
				add_step(n, STEP_BEGIN, host);
		}
		add_step(n, STEP_RUN, NODE_SENDER);
		add_step(n, STEP_RUN, NODE_RECEIVER);
	}
	n->window_ns =
		time_min(n->window_ns, time_max(sender->window_max_ns, receiver->window_max_ns));
}

uint64_t topology_next_ns(struct topology *n, uint64_t limit_ns) {
	uint64_t t_ns = limit_ns;

	for (uint32_t i = n->nodes; i-- > 0;) // the hosts last: they look no further than limit_ns
		t_ns = time_min(t_ns, n->node[i]->ops->next_event_ns(n->node[i], t_ns));
	return t_ns;
}

// Gives to a path what has come to it by last_ns.
__attribute__((noinline)) static void enter(struct topology *n, uint32_t node, uint64_t last_ns) {
	struct pkt *pkts[NODE_PASS_MAX];
	uint32_t count;

	do {
		count = merge(n, node, last_ns, pkts, NODE_PASS_MAX);
		n->node[node]->ops->give(n->node[node], pkts, count);
	} while (count == NODE_PASS_MAX);
}

// Takes what leaves a path by last_ns, for the nodes behind it.
__attribute__((noinline)) static void leave(struct topology *n, uint32_t node, uint64_t last_ns) {
	struct pkt *pkts[NODE_PASS_MAX];
	uint32_t count;

	do {
		count = n->node[node]->ops->take(n->node[node], last_ns, pkts, NODE_PASS_MAX);
		for (uint32_t i = 0; i < count; i++) {
			enum flows_direction d = pool_direction(pkts[i]);
			uint32_t to = n->next[d][pkts[i]->delay_class][node - NODE_PATHS];

			pkt_list_push(&n->list[to][node], pkts[i]);
			n->passed[d] += to >= NODE_PATHS;
		}
	} while (count == NODE_PASS_MAX);
}

int topology_run(struct topology *n, uint64_t last_ns, struct err *err) {
	for (uint32_t i = 0; i < n->steps; i++) {
		uint32_t k = n->step[i].node;
		struct node *node = n->node[k];
		int rc = 0;

		switch (n->step[i].kind) {
		case STEP_BEGIN:
			node->ops->begin(node, last_ns);
			break;
		case STEP_RUN:
			rc = node->ops->run_until(node, last_ns, err);
			break;
		case STEP_ENTER:
			enter(n, k, last_ns);
			break;
		default:
			leave(n, k, last_ns);
		}
		if (unlikely(rc < 0))
			return rc;
	}
	return 0;
}

// The paths that packets of a direction pass, as bits.
static uint32_t paths_of(const struct paths *ps, enum flows_direction d) {
	uint32_t bits = 0;

	for (uint32_t g = 0; g < ps->groups; g++) {
		const struct route *r = &ps->route[g][d];

		for (uint32_t i = 0; i < r->count; i++)
			bits |= 1u << route_node(r->path[i]);
	}
	return bits;
}

bool topology_divide(struct topology *n) {
	uint32_t bits[] = {paths_of(n->paths, FLOWS_FORWARD), paths_of(n->paths, FLOWS_REVERSE)};

	for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
		struct topology_part *part = &n->part[d];
		struct route_order o = {.ahead = bits[!d]};

		if ((bits[0] & bits[1]) != 0 || !routes_sort(n->paths, &n->graph, &o))
			return false;
		part->paths = 0;
		for (uint32_t i = 0; i < o.nodes; i++) {
			if (o.node[i] >= NODE_PATHS)
				part->path[part->paths++] = o.node[i];
		}
	}
	return true;
}

static uint64_t least_enter_ns(
	const struct topology *n, const struct topology_part *part, uint32_t node) {
	uint64_t least_ns = NEVER_NS;

	for (uint32_t left = n->graph.from[node]; left != 0; left &= left - 1)
		least_ns = time_min(least_ns, part->leave_ns[__builtin_ctz(left)]);
	return least_ns;
}

uint64_t topology_delay_ns(struct topology *n, enum flows_direction d) {
	struct topology_part *part = &n->part[d];

	for (uint32_t i = 0; i < part->paths; i++) {
		uint32_t k = part->path[i];

		part->enter_ns[k] = least_enter_ns(n, part, k);
		part->leave_ns[k] =
			part->enter_ns[k] + path_min_delay_ns(n->path[k - NODE_PATHS].path);
	}
	return least_enter_ns(n, part, d == FLOWS_FORWARD ? NODE_RECEIVER : NODE_SENDER);
}

uint64_t topology_part_next_ns(struct topology *n, enum flows_direction d) {
	const struct topology_part *part = &n->part[d];
	uint64_t next_ns = NEVER_NS;

	for (uint32_t i = 0; i < part->paths; i++) {
		uint32_t k = part->path[i];

		next_ns = time_min(next_ns, path_next_ns(n->path[k - NODE_PATHS].path));
		for (uint32_t left = n->graph.from[k]; left != 0; left &= left - 1) {
			const struct pkt *first = n->list[k][__builtin_ctz(left)].head;

			next_ns = first != NULL ? time_min(next_ns, first->arrival_ns) : next_ns;
		}
	}
	return next_ns;
}

void topology_pass(struct topology *n, enum flows_direction d, uint64_t known_ns, uint64_t end_ns) {
	const struct topology_part *part = &n->part[d];
	uint32_t last = path_before(n, d == FLOWS_FORWARD ? NODE_RECEIVER : NODE_SENDER);

	for (uint32_t i = 0; i < part->paths; i++) {
		uint32_t k = part->path[i];
		uint64_t enter_ns = time_min(known_ns + part->enter_ns[k], end_ns);
		uint64_t leave_ns = time_min(known_ns + part->leave_ns[k], end_ns);

		if (enter_ns > 0)
			enter(n, k, enter_ns - 1);
		if (leave_ns > 0 && k != last) // of which the host takes them
			leave(n, k, leave_ns - 1);
	}
}
