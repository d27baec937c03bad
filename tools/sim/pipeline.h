// SPDX-License-Identifier: BSD-3-Clause
// Two hosts and the two paths between them on two threads.
//
//	caller's thread              thread of its own
//	sender  --- data pipe ----> forward path, receiver, reverse path
//	   ^------- ACK pipe ------------------------------------'
//
// Each publishes how far it is. What was sent before a time leaves the forward path no earlier than
// the path's delay after it, so the receiver may be as far ahead of the sender; what the receiver
// has sent before a time leaves the reverse path no earlier than that path's delay later, so the
// sender may be as far ahead of the receiver. Neither waits for the other as long as the delay of
// both is more than what one is late by. The sender is further stopped by a full pipe, which holds
// less than the caches; the other thread always empties it. It is never stopped itself: where the
// pipe of ACKs is full, they stay in their path.
//
// The order of what happens at each node is that of one thread, and so is every byte that is
// recorded. Both rest at boundaries, where the caller's thread does what concerns all nodes.
#pragma once
#include "tools/sim/side.h"
#include "tools/sim/topology.h"

struct pipeline;

struct pipeline_env {
	struct side *sender, *receiver;
	struct path *forward, *reverse;
	struct pools *pools; // of the paths and the receiver from then on
	// Data is lost for want of memory.
	void (*refused)(void *ctx, const struct pkt *p);
	void *ctx;
};

// The shortest round trip of the paths at which two threads pay.
#define PIPELINE_DELAY_MIN_NS (NS_PER_S / 1000)

// Begins the thread, before anything has been sent. To be ended after an error, too.
int pipeline_begin(struct pipeline **pipeline, const struct pipeline_env *env, struct err *err);
// Runs all nodes up to boundary_ns, which itself is not reached. Then both threads are at rest;
// returns that time.
uint64_t pipeline_run(struct pipeline *p, uint64_t boundary_ns);
// Ends the thread, which is at rest. After pools_fini of the environment's pools. NULL: there is
// nothing to do.
void pipeline_end(struct pipeline *p);
