// SPDX-License-Identifier: BSD-3-Clause
// Packets of one size. Those that came back last are handed out first, while they are in the cache, and in
// the order they came back in: what is received together mostly stands together, so that the processor
// fetches it ahead by itself when it leaves. No more of the memory is used than the most that ever were out
// at once.
#pragma once
#include "mem.h"
#include "pkt.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct arena {
	char *base;
	struct pkt **free; // a stack
	uint64_t frees; // on it
	uint64_t size, used; // packets; how many of them were ever free
	size_t object; // bytes: a struct pkt and what follows it
};

// False: no memory. Every page is touched, so that there are no page faults later.
bool arena_init(struct arena *a, size_t object, uint64_t size);
void arena_fini(struct arena *a);
// Frees some that never were until `n` are free.
void arena_more(struct arena *a, uint64_t n);

// Takes `n`, which must be left. They stand where it says until the next call.
static inline struct pkt **arena_take(struct arena *a, uint64_t n) {
	if (__builtin_expect(a->frees < n, 0))
		arena_more(a, n);
	return a->free + (a->frees -= n);
}

// Gives `n` packets back: some that were just taken, or others.
static inline void arena_put(struct arena *a, struct pkt *const *pkts, uint64_t n) {
	memmove(a->free + a->frees, pkts, n * sizeof(*pkts));
	a->frees += n;
}
