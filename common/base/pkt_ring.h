// SPDX-License-Identifier: BSD-3-Clause
// FIFO of packets for long queues: an array of pointers that doubles when it is full.
//
// A packet that waited 300 ms has left every cache. In a linked list the address of a packet is in
// the one before, so that cache misses are serialised; here the next packets can be prefetched.
#pragma once
#include "common/base/likely.h"
#include "common/base/pkt.h"

#define PKT_RING_AHEAD 48 // packets: hides a cache miss, even if a burst is taken at once

struct pkt_ring {
	struct pkt **slot;
	uint32_t slots; // a power of two; 0: none yet
	uint32_t head; // position of the oldest, counted modulo 2^32
	uint32_t count;
	uint64_t bytes;
};

// Room for at least 2^10 packets. False: no memory.
bool pkt_ring_grow(struct pkt_ring *r);
// The same for one of very many rings, most of which stay short: at first 8 packets, then twice as
// many.
bool pkt_ring_grow_small(struct pkt_ring *r);
void pkt_ring_fini(struct pkt_ring *r);

// Number of packets that fit without growing.
static inline uint32_t pkt_ring_room(const struct pkt_ring *r) {
	return r->slots - r->count;
}

// Puts p after the newest packet and i others not yet counted by pkt_ring_add. There must be room.
static inline void pkt_ring_put(const struct pkt_ring *r, uint32_t i, struct pkt *p) {
	r->slot[(r->head + r->count + i) & (r->slots - 1)] = p;
}

// Counts n packets that were put, of `bytes` in total.
static inline void pkt_ring_add(struct pkt_ring *r, uint32_t n, uint64_t bytes) {
	r->count += n;
	r->bytes += bytes;
}

// False: no room and no memory for more.
static inline bool pkt_ring_push(struct pkt_ring *r, struct pkt *p) {
	if (unlikely(pkt_ring_room(r) == 0) && !pkt_ring_grow(r))
		return false;
	pkt_ring_put(r, 0, p);
	pkt_ring_add(r, 1, p->size_bytes);
	return true;
}

// The oldest packet of a ring that is not empty.
static inline struct pkt *pkt_ring_head(const struct pkt_ring *r) {
	return r->slot[r->head & (r->slots - 1)];
}

// Prefetches the packet PKT_RING_AHEAD after the i-th oldest, and the next line, where the owner's
// data continues. Not beyond the newest packet: the addresses there are of packets that have left,
// which are cold. (Inlined early: gcc takes a function that only prefetches for one without
// effect.)
static inline __attribute__((always_inline)) void pkt_ring_fetch(
	const struct pkt_ring *r, uint32_t i) {
	if (i + PKT_RING_AHEAD >= r->count)
		return;
	const char *next = (const char *)r->slot[(r->head + i + PKT_RING_AHEAD) & (r->slots - 1)];

	prefetch(next);
	prefetch(next + 64);
}

// The i-th oldest packet of a ring with more than i; pkt_ring_skip removes it.
static inline struct pkt *pkt_ring_at(const struct pkt_ring *r, uint32_t i) {
	pkt_ring_fetch(r, i);
	return r->slot[(r->head + i) & (r->slots - 1)];
}

// Up to *n of the oldest packets, contiguous in memory; sets *n to their number. The ring is not
// empty.
static inline struct pkt *const *pkt_ring_oldest(const struct pkt_ring *r, uint32_t *n) {
	uint32_t at = r->head & (r->slots - 1);
	uint32_t most = r->count < r->slots - at ? r->count : r->slots - at;

	*n = *n < most ? *n : most;
	return r->slot + at;
}

// Removes the n oldest packets, of `bytes` in total.
static inline void pkt_ring_skip(struct pkt_ring *r, uint32_t n, uint64_t bytes) {
	r->head += n;
	r->count -= n;
	r->bytes -= bytes;
}

// NULL: empty.
static inline struct pkt *pkt_ring_pop(struct pkt_ring *r) {
	struct pkt *p;

	if (r->count == 0)
		return NULL;
	p = pkt_ring_at(r, 0);
	pkt_ring_skip(r, 1, p->size_bytes);
	return p;
}
