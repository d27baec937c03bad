// SPDX-License-Identifier: BSD-3-Clause
// FIFO of packets for long queues: an array of pointers that doubles when it is full.
//
// A packet that waited 300 ms has left every cache. In a linked list each one's address stands in
// the one before, so the misses come one after the other; here the next ones can be fetched ahead.
#pragma once
#include "common/base/likely.h"
#include "common/base/pkt.h"

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

// How many more it takes without growing.
static inline uint32_t pkt_ring_room(const struct pkt_ring *r) {
	return r->slots - r->count;
}

// p comes behind the newest and i others that pkt_ring_add does not count yet. There must be room.
static inline void pkt_ring_put(const struct pkt_ring *r, uint32_t i, struct pkt *p) {
	r->slot[(r->head + r->count + i) & (r->slots - 1)] = p;
}

// Counts n that were put, which are `bytes`.
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

// Fetches the packet that comes PKT_RING_AHEAD after the i-th oldest, with the line behind it, where its
// owner goes on. Behind the newest stand old addresses and none: fetching those is harmless, but only a
// number may be added to.
static inline void pkt_ring_fetch(const struct pkt_ring *r, uint32_t i) {
	uintptr_t next = (uintptr_t)r->slot[(r->head + i + PKT_RING_AHEAD) & (r->slots - 1)];
	prefetch((const void *)next);
	prefetch((const void *)(next + 64));
}

// The i-th oldest of a ring that has more than i, to be taken by pkt_ring_skip.
static inline struct pkt *pkt_ring_at(const struct pkt_ring *r, uint32_t i) {
	pkt_ring_fetch(r, i);
	return r->slot[(r->head + i) & (r->slots - 1)];
}

// The oldest packets one behind the other, *n at most; *n becomes how many. The ring is not empty.
static inline struct pkt *const *pkt_ring_oldest(const struct pkt_ring *r, uint32_t *n) {
	uint32_t at = r->head & (r->slots - 1);
	uint32_t most = r->count < r->slots - at ? r->count : r->slots - at;

	*n = *n < most ? *n : most;
	return r->slot + at;
}

// Takes the n oldest, which are `bytes`.
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
