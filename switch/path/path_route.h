// SPDX-License-Identifier: BSD-3-Clause
// Routes: the paths that a flow group's packets pass, several in order where there is more than one
// bottleneck.
//
//	paths: {hop1: [...], hop2: [...], back: [...]}
//	flows:
//	  - {name: long, cc: copa, path: {forward: [hop1, hop2], reverse: back}}
//	  - {name: cross, cc: copa, path: {forward: hop1, reverse: back}}
//
// A path that several groups name is shared: one queue, one owner, one entry in the ledger and in
// the summary. A packet enters the next path of its route at the time at which it leaves the one
// before. A group without `path` takes "forward" and "reverse".
//
// Virtual time computes one component, a path or a host, after another, each up to the end of a
// window. What a path delays by at least the length of the window does not matter before its end.
// So the window is the largest time for which every circle of components has a path that delays by
// as much, and the order of computation is a topological one of what is left without these paths. A
// host is one component, although its flows do not wait for one another:
// paths that are in a circle only by way of different flows need a delay, too.
#pragma once
#include "switch/path/path.h"

// Components: the sending host, the receiving host, the paths in the order of the config.
enum { NODE_SENDER, NODE_RECEIVER, NODE_PATHS, NODES_MAX = NODE_PATHS + PATHS_MAX };

static inline uint32_t route_node(const struct path *p) {
	return NODE_PATHS + p->index;
}

// Finds the paths of all groups' routes, what a BDP means in each path, and which delay stage
// carries a group's base RTT. After the paths' parameters are read. `node`: the config's `paths`.
int routes_init(
	struct paths *ps, struct config_node *node, const struct paths_env *env, struct err *err);
// What a BDP means in a path: the longest round trip of a group through it.
void routes_round_trip(struct paths *ps, struct path *p);
// path_hosts.c: adds the cards of hosts, which may be NULL, at the ends of paths whose routes are
// known.
int path_hosts_add(struct paths *ps, const struct hosts *hosts, struct err *err);
// For virtual time: every circle of paths has a delay.
int routes_check(const struct paths *ps, struct config_node *node, struct err *err);

// Which components send packets to each one, as bits 1 << component.
struct route_graph {
	uint32_t from[NODES_MAX];
};
void routes_graph(const struct paths *ps, struct route_graph *g);

// The order of computation.
struct route_order {
	uint64_t ahead_ns; // longest window; 0: there is a circle without delay
	uint32_t ahead; // the paths that delay by that or more, as bits 1 << component
	uint8_t node[NODES_MAX]; // the other components
	uint32_t nodes;
};
// A topological order of all components without o->ahead, hosts first where there is a choice.
// False: there is a circle, and o->node has what is before it.
bool routes_sort(const struct paths *ps, const struct route_graph *g, struct route_order *o);
void routes_order(const struct paths *ps, const struct route_graph *g, struct route_order *o);
// The longest window, with the delays as they are.
uint64_t routes_ahead_ns(const struct paths *ps);
