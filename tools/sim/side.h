// SPDX-License-Identifier: BSD-3-Clause
// One of the two hosts as a node, by the direction in which it sends: it runs on the packets that
// come to it, and puts the segments of its connections into packets.
#pragma once
#include "sender/host/host.h"
#include "switch/path/path.h"
#include "tools/sim/node.h"
#include "tools/sim/pool.h"
#include "tools/sim/segments.h"

// A host's packets leave it in bursts of this size.
#define SIDE_BURST 64

struct side {
	struct node node;
	struct node *to, *from; // what takes its packets, and what it takes packets from
	struct host *host;
	struct pool *pool[2]; // of its segments: those of one line, larger ones
	struct pools *pools;
	struct paths *paths; // one counts the packet for which there was no memory
	struct pkt *burst[SIDE_BURST]; // to be given; none between windows
	uint32_t in_burst;
	uint64_t given, taken; // packets
	uint64_t checksum_errors; // packets discarded, because a stage had flipped a bit
	struct segments *segments; // NULL: they are not recorded
};

// The hosts as nodes, and their output callbacks, which put segments into packets (ctx: the side).
// Of the sender there are two of each: those that record segments, and those that do not ask.
extern const struct node_ops side_sender_ops, side_recorded_ops, side_receiver_ops;
host_output side_sender_output, side_recorded_output, side_receiver_output;
// Gives what is in the burst.
void side_flush(struct side *x);
// Sends a packet that was made elsewhere, in order of time.
void side_send(struct side *x, struct pkt *pkt);
// Takes at most `max` packets that come by last_ns, which are `inside` until the caller has worked
// on them.
static inline uint32_t side_take(
	struct side *x, uint64_t last_ns, struct pkt **pkts, uint32_t max) {
	uint32_t n = x->from->ops->take(x->from, last_ns, pkts, max);

	x->taken += n;
	return n;
}
