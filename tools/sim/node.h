// SPDX-License-Identifier: BSD-3-Clause
// A node of virtual time: a path, a host, a host with guests. Packets pass between nodes in take
// and give and nowhere else. A node has memory of its own and knows neither what its neighbours are
// nor which thread runs it.
//
// There are two kinds. One that acts (a host) is run to a time: until then it takes packets from
// the node before it and gives others to the node behind it. One that is passed (a path, the lists
// between nodes) only takes and gives.
#pragma once
#include "common/base/err.h"
#include "common/base/pkt.h"

#define NODE_PASS_MAX 64 // packets that pass between two nodes at a time

struct node;

struct node_ops {
	// When it next does something by itself or has a packet to be taken; later than limit_ns:
	// any such time. NEVER_NS: only a packet can change that.
	uint64_t (*next_event_ns)(struct node *n, uint64_t limit_ns);

	// Of a node that acts. What happens up to last_ns, inclusive. A negative errno with a
	// sentence ends the run.
	int (*run_until)(struct node *n, uint64_t last_ns, struct err *err);
	// Takes what comes by last_ns, for run_until with the same time: what several nodes have
	// taken is then worked on at once, on threads of theirs. NULL: nothing is gained by that.
	void (*begin)(struct node *n, uint64_t last_ns);
	uint64_t window_max_ns; // how far it is run at a time, at most

	// Of a node that is passed. At most `max` packets that leave it by last_ns, in the order of
	// their arrival_ns; fewer: there are no more.
	uint32_t (*take)(struct node *n, uint64_t last_ns, struct pkt **pkts, uint32_t max);
	// Packets that come to it, in the order of their arrival_ns.
	void (*give)(struct node *n, struct pkt *const *pkts, uint32_t count);
};

struct node {
	const struct node_ops *ops; // it is the first member of a larger struct
};
