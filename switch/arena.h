// SPDX-License-Identifier: BSD-3-Clause
// Packets of one size, handed out round and round through one table. What comes in order and leaves in
// order is then read and written in the order of memory, which the processor fetches ahead by itself.
// No more of the table is used than the most that ever were out at once, so that what fits a cache stays
// in it.
#pragma once
#include "mem.h"
#include "pkt.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARENA_AHEAD 12 // packets, fetched before they are asked for

struct arena {
	char *base;
	struct pkt **free; // a ring; the oldest at `head`
	uint64_t head, tail; // counted up
	uint64_t mask, slots; // of the ring
	uint64_t size, used; // packets; how many of them were ever free
	size_t object; // bytes: a struct pkt and what follows it
};

// False: no memory. Every page is touched, so that there are no page faults later.
bool arena_init(struct arena *a, size_t object, uint64_t size);
void arena_fini(struct arena *a);
// Frees some that never were, if there are any.
void arena_more(struct arena *a);

// One must be left.
static inline struct pkt *arena_get(struct arena *a) {
	if (__builtin_expect(a->tail - a->head <= ARENA_AHEAD, 0))
		arena_more(a);
	struct pkt *next = a->free[(a->head + ARENA_AHEAD) & a->mask];

	__builtin_prefetch(next, 1);
	__builtin_prefetch((char *)next + 64, 1);
	return a->free[a->head++ & a->mask];
}

static inline void arena_put(struct arena *a, struct pkt *p) {
	a->free[a->tail++ & a->mask] = p;
}
