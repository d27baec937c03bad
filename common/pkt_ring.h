// SPDX-License-Identifier: BSD-3-Clause
// FIFO of packets for long queues: an array of pointers that doubles when it is full.
//
// A packet that waited 300 ms has left every cache. In a linked list each one's address stands in
// the one before, so the misses come one after the other; here the next ones can be fetched ahead.
#pragma once
#include "pkt.h"

#define PKT_RING_AHEAD 24 // packets: longer than a miss takes, even when a burst is taken at once

struct pkt_ring {
	struct pkt **slot;
	uint32_t slots; // a power of two, or none yet
	uint32_t head; // position of the oldest, counted modulo 2^32
	uint32_t count;
	uint64_t bytes;
};

// Room for at least 2^10 packets. False: no memory.
bool pkt_ring_grow(struct pkt_ring *r);
void pkt_ring_fini(struct pkt_ring *r);

// Room for n more packets. False: no memory for it.
static inline bool pkt_ring_room(struct pkt_ring *r, uint32_t n) {
	while (__builtin_expect(r->slots - r->count < n, 0)) {
		if (!pkt_ring_grow(r))
			return false;
	}
	return true;
}

// Where there is room.
static inline void pkt_ring_add(struct pkt_ring *r, struct pkt *p) {
	r->slot[(r->head + r->count) & (r->slots - 1)] = p;
	r->count++;
	r->bytes += p->size_bytes;
}

// False: no room and no memory for more.
static inline bool pkt_ring_push(struct pkt_ring *r, struct pkt *p) {
	if (!pkt_ring_room(r, 1))
		return false;
	pkt_ring_add(r, p);
	return true;
}

// The oldest packet of a ring that is not empty.
static inline struct pkt *pkt_ring_head(const struct pkt_ring *r) {
	return r->slot[r->head & (r->slots - 1)];
}

// NULL: empty.
static inline struct pkt *pkt_ring_pop(struct pkt_ring *r) {
	struct pkt *p;

	if (r->count == 0)
		return NULL;
	p = pkt_ring_head(r);
	// With the line behind it, where its owner goes on. Behind the newest stand old addresses: fetching
	// those is harmless. To be used once: what a long queue holds shall not drive the flows out of the
	// cache.
	const char *next = (const char *)r->slot[(r->head + PKT_RING_AHEAD) & (r->slots - 1)];
	__builtin_prefetch(next, 0, 0);
	__builtin_prefetch(next + 64, 0, 0);
	r->head++;
	r->count--;
	r->bytes -= p->size_bytes;
	return p;
}
