// SPDX-License-Identifier: BSD-3-Clause
// Packets from one thread to another, as a node that is passed: a ring with one producer and one
// consumer. The producer makes its packets in the ring's slots and gives them there; they are
// copied when they are taken, so that each thread has memory of packets of its own.
#pragma once
#include "tools/sim/node.h"
#include "tools/sim/pool.h"

#include <stdatomic.h>

#define PIPE_SLOTS 2048u // a power of two; they stay in the cache
#define PIPE_SLOT 128
#define PIPE_BURST 64 // packets that may be made before they are given

struct pipe {
	struct node node;
	// The producer waits for room, and may do something else.
	void (*waits)(void *ctx);
	// The consumer has no memory for a packet, which is lost.
	void (*refused)(void *ctx, const struct pkt *p);
	void *waits_ctx, *refused_ctx;
	_Alignas(64) struct pool made; // the producer's: packets in slots, in order
	_Alignas(64) struct pools *taker; // the consumer's memory
	uint64_t got, head_seen;
	_Alignas(64) _Atomic uint64_t head; // slots that the consumer may read
	_Alignas(64) _Atomic uint64_t tail; // slots that it has read
	_Alignas(64) char slot[PIPE_SLOTS][PIPE_SLOT];
};

// Gives all packets made since the last time, then waits until there is room for PIPE_BURST more;
// takes do not wait.
extern const struct node_ops pipe_ops;

// An empty one; the struct was zero.
void pipe_init(struct pipe *p);
// When the first packet in it arrives; NEVER_NS: it is empty.
uint64_t pipe_next_ns(struct pipe *p);

// One more time that a thread has found nothing to do: it spins shortly, then it sleeps.
void pipe_wait(uint32_t *times);
