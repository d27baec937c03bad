// SPDX-License-Identifier: BSD-3-Clause
// Two hosts and the paths between them on two threads. Each runs a host and the paths before it.
//
//	caller's thread                    thread of its own
//	sender  ---------- pipe of data ---------->  forward paths
//	reverse paths  <-- pipe of ACKs ---------------  receiver
//
// Each publishes how far its host is. What a host has sent before a time leaves the paths behind it
// no earlier than the least delay of a route after it, so the other host may be as far ahead.
// Neither waits for the other as long as the delay there and back is more than what one is late by.
// A thread whose pipe is full waits for the other, which always empties it: into a path, that has
// room for all packets.
//
// The order of what happens at each node is that of one thread, and so is every byte that is
// recorded. Both rest at boundaries, where the caller's thread does what concerns all nodes. It
// also does the other's work where that is faster.
#pragma once
#include "tools/sim/side.h"
#include "tools/sim/topology.h"

struct pipeline;

struct pipeline_env {
	struct side *side; // [FLOWS_DIRECTIONS], by the direction in which a host sends
	struct topology *topology; // divided
	// Of the packets of each direction: where those in its paths are counted.
	struct pools **pools; // [FLOWS_DIRECTIONS]
	// A packet is lost for want of memory.
	void (*refused)(void *ctx, const struct pkt *p);
	void *ctx;
};

// The shortest round trip of the paths at which two threads pay. (A build that looks for races has
// less.)
#ifndef PIPELINE_DELAY_MIN_NS
#define PIPELINE_DELAY_MIN_NS (NS_PER_S / 1000)
#endif
// For how long, on the wall's clock, one thread and two are compared. (Such a build has less.)
#ifndef PIPELINE_TRIAL_NS
#define PIPELINE_TRIAL_NS (2 * NS_PER_MS)
#endif

// Begins the thread, before anything has been sent. To be ended after an error, too.
int pipeline_begin(struct pipeline **pipeline, const struct pipeline_env *env, struct err *err);
// Runs all nodes up to boundary_ns, which itself is not reached. Then both threads are at rest;
// returns that time.
uint64_t pipeline_run(struct pipeline *p, uint64_t boundary_ns);
// For how long there were two threads, on the wall's clock; NULL: 0.
double pipeline_two_s(const struct pipeline *p);
// Ends the thread, which is at rest. NULL: there is nothing to do.
void pipeline_end(struct pipeline *p);
