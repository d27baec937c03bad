// SPDX-License-Identifier: BSD-3-Clause
// Which nodes there are, what packets pass from one to the next, and in which order nodes run.
//
//	sender --forward--> receiver --reverse--> sender
//
// Time advances in windows [T, W) that end no later than the first event in them plus the delay of
// certain paths, those "ahead" (switch/path/path_route.h). Packets that leave these within a window
// were sent before it, so they are known, and one node after the other can be run through the whole
// window, each in order of time. The result is that of an event queue, to the nanosecond and for
// any window, at a fraction of the cost: each node's state stays in the cache while it runs, and
// packets are passed in order.
//
// Each flow group has its own route, of one path in each direction or of several. A path that only
// one host sends to, and one whose packets all go to a host that gets none from elsewhere, has
// nothing between itself and the host. Between other nodes there are lists, from which the
// receiving one takes packets in order of time, those of one time in the order of the nodes that
// sent them.
#pragma once
#include "switch/path/path_route.h"
#include "tools/sim/node.h"

static_assert((int)NODE_SENDER == FLOWS_FORWARD && (int)NODE_RECEIVER == FLOWS_REVERSE,
	"a host has the number of the direction in which it sends");

// Which node a step of a window concerns, and what it does.
enum topology_step_kind { STEP_BEGIN, STEP_RUN, STEP_ENTER, STEP_LEAVE };
struct topology_step {
	uint8_t kind, node;
};

// The paths that packets of one direction pass on their way to a host.
struct topology_part {
	uint8_t path[PATHS_MAX]; // nodes, those before others first
	uint32_t paths;
	// By node: the least time after a host has sent a packet at which it comes there, and
	// leaves.
	uint64_t enter_ns[NODES_MAX], leave_ns[NODES_MAX];
};

struct topology_path {
	struct node node;
	struct path *path;
};

// The lists on a host's side: what it gives, by the route of each packet, and what has come to it.
struct topology_lists {
	struct node node;
	struct topology *topology;
	uint8_t host;
};

struct topology {
	struct paths *paths;
	struct node *node[NODES_MAX];
	uint32_t nodes;
	struct topology_path path[PATHS_MAX];
	struct topology_lists lists[NODE_PATHS]; // of the two hosts
	struct route_graph graph;
	struct route_order order;
	struct topology_step step[2 * NODES_MAX]; // of a window
	uint32_t steps;
	struct topology_part part[FLOWS_DIRECTIONS]; // topology_divide
	uint64_t window_ns; // longest
	uint8_t next[FLOWS_DIRECTIONS][GROUPS_MAX][PATHS_MAX]; // node behind a path
	uint8_t first[FLOWS_DIRECTIONS][GROUPS_MAX]; // node behind a host
	// To, from; empty between windows, but in parts.
	struct pkt_list list[NODES_MAX][NODES_MAX];
	uint64_t passed[FLOWS_DIRECTIONS]; // packets that went from one path to another
};

// The nodes of the paths. Then the neighbours of a host are known: what takes its packets, and what
// it takes packets from.
void topology_init(struct topology *n, struct paths *paths);
struct node *topology_to(struct topology *n, uint32_t host);
struct node *topology_from(struct topology *n, uint32_t host);
// The hosts as nodes, and the steps of the windows.
void topology_hosts(struct topology *n, struct node *sender, struct node *receiver);
// Divides the paths into two parts, those that packets of each direction pass on their way to a
// host, so that two threads may run them (pipeline.h). False: some packets of both directions pass
// one path, or packets go round in a circle of paths.
bool topology_divide(struct topology *n);
// The least time from one host to the other in this direction, with the delays as they are; this
// and the following are of a part.
uint64_t topology_delay_ns(struct topology *n, enum flows_direction d);
// When the first packet leaves one of its paths or comes to one; NEVER_NS: there is none.
uint64_t topology_part_next_ns(struct topology *n, enum flows_direction d);
// Takes packets from path to path up to end_ns, which itself is not reached. All are known that the
// host before it sends before known_ns, and no others.
void topology_pass(struct topology *n, enum flows_direction d, uint64_t known_ns, uint64_t end_ns);
// The steps from now on, with the delays as they are.
void topology_order(struct topology *n);

// The time of the next event; limit_ns if there is none before.
uint64_t topology_next_ns(struct topology *n, uint64_t limit_ns);
// Runs all nodes to last_ns, which is in the window. A negative errno with a sentence: of a node.
int topology_run(struct topology *n, uint64_t last_ns, struct err *err);
