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
// Frees some that never were until `n` are free, or all ever were.
void arena_more(struct arena *a, uint64_t n);

// The next free ones, at most `n` of them and fewer where the table ends; whoever took some moves `head`.
static inline struct pkt **arena_row(struct arena *a, uint32_t *n) {
	uint64_t at = a->head & a->mask;

	if (__builtin_expect(a->tail - a->head < *n + ARENA_AHEAD, 0))
		arena_more(a, *n + ARENA_AHEAD);
	if (*n > a->slots - at)
		*n = (uint32_t)(a->slots - at);
	return a->free + at;
}

// Fetches one that will be taken soon.
static inline void arena_fetch(struct pkt *const *row) {
	const char *next = (const char *)row[ARENA_AHEAD];

	__builtin_prefetch(next, 1);
	__builtin_prefetch(next + 64, 1);
}

// Gives `n` packets back.
static inline void arena_put(struct arena *a, struct pkt *const *pkts, uint32_t n) {
	uint64_t at = a->tail & a->mask;
	uint64_t fit = a->slots - at < n ? a->slots - at : n;

	memcpy(a->free + at, pkts, fit * sizeof(*pkts));
	memcpy(a->free, pkts + fit, (n - fit) * sizeof(*pkts));
	a->tail += n;
}
