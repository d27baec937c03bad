// SPDX-License-Identifier: BSD-3-Clause
// Packets from one thread to another, as a node that is passed: a ring with one producer and one
// consumer. Packets are copied into its slots and out of them, so that each thread has memory of
// packets of its own; a packet of two lines takes two slots.
#pragma once
#include "tools/sim/node.h"
#include "tools/sim/pool.h"

#include <stdatomic.h>

#define PIPE_SLOTS 4096u // 256 KB, which stay in the cache
#define PIPE_SLOT 64

struct pipe {
	struct node node;
	// The consumer has no memory for a packet, which is lost.
	void (*refused)(void *ctx, const struct pkt *p);
	void *ctx;
	_Alignas(64) struct pools *giver; // the producer's: packets that were given go back there
	uint64_t put, tail_seen; // slots filled; those known to be free again
	_Alignas(64) struct pools *taker; // the consumer's
	uint64_t got, head_seen;
	_Alignas(64) _Atomic uint64_t head; // slots that the consumer may read
	_Alignas(64) _Atomic uint64_t tail; // slots that it has read
	_Alignas(64) char slot[PIPE_SLOTS][PIPE_SLOT];
};

// Gives wait for room, takes for nothing.
extern const struct node_ops pipe_ops;

// Packets that may be given without waiting.
uint32_t pipe_room(struct pipe *p);
// When the first packet in it arrives; NEVER_NS: it is empty.
uint64_t pipe_next_ns(struct pipe *p);

// One more time that a thread has found nothing to do: it spins shortly, then it sleeps.
void pipe_wait(uint32_t *times);
