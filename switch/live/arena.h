// SPDX-License-Identifier: BSD-3-Clause
// Packets with room for a small frame behind them, 128 bytes in all, in pages of 32. Packets that
// are received together are adjacent, in the order in which they will leave: a page is a page of
// memory (one TLB entry), and the processor prefetches its lines. The page that was freed last is
// used first, while it is in the cache; a page that is free only in part is used only if no other
// is left.
#pragma once
#include "common/base/pkt.h"

#include <stdint.h>

#define ARENA_PKT_BYTES 128
#define ARENA_PAGE_BYTES 4096 // 32 packets: a bit each
#define ARENA_PAGE_FREE UINT32_MAX

struct arena {
	char *base;
	uint32_t *free; // per page: a bit for each free packet
	uint32_t *stack; // pages that are free; the one freed last on top
	uint32_t stacked;
	uint32_t pages, used; // of these, so many were ever taken from
	uint32_t current; // the page that packets are taken from
	uint32_t left; // its free packets, which are not in its `free`
	uint32_t scan; // the last page found that was free in part
};

// Room for at least `pkts`. False: no memory. Every page is touched, so that there are no page
// faults later.
bool arena_init(struct arena *a, uint64_t pkts);
void arena_fini(struct arena *a);
// Memory of so many packets.
uint64_t arena_bytes(uint64_t pkts);
// Every packet of the current page is taken: makes another page the current one. One must have a
// free packet.
void arena_next_page(struct arena *a);

// The bits of `n` adjacent packets of a page.
static inline uint32_t arena_bits(uint32_t slot, uint32_t n) {
	return (uint32_t)(((UINT64_C(1) << n) - 1) << slot);
}

// Takes `n` packets; so many must be free.
static inline void arena_take(struct arena *a, struct pkt **pkts, uint32_t n) {
	while (n > 0) {
		if (a->left == 0)
			arena_next_page(a);
		// The first that are adjacent.
		uint32_t slot = (uint32_t)__builtin_ctz(a->left);
		uint32_t adjacent = (uint32_t)__builtin_ctzll(~(uint64_t)(a->left >> slot));
		uint32_t run = adjacent < n ? adjacent : n;
		char *p =
			a->base + (uint64_t)a->current * ARENA_PAGE_BYTES + slot * ARENA_PKT_BYTES;

		for (uint32_t i = 0; i < run; i++)
			pkts[i] = (struct pkt *)(void *)(p + i * ARENA_PKT_BYTES);
		a->left &= ~arena_bits(slot, run);
		pkts += run;
		n -= run;
	}
}

// The page that is taken next, which may have left the cache.
static inline const char *arena_ahead(const struct arena *a) {
	uint32_t next = a->stacked > 0 ? a->stack[a->stacked - 1] : a->used;

	return a->base + (uint64_t)next * ARENA_PAGE_BYTES;
}

// Prefetches its packet in the place of p, for writing. (Inlined early, as pkt_ring_fetch.)
static inline __attribute__((always_inline)) void arena_fetch(
	const char *ahead, const struct pkt *p) {
	const char *next = ahead + (uintptr_t)p % ARENA_PAGE_BYTES;

	prefetch_write(next);
	prefetch_write(next + 64);
}

// Gives `n` packets back. Successive ones are mostly adjacent.
static inline void arena_put(struct arena *a, struct pkt *const *pkts, uint32_t n) {
	for (uint32_t i = 0; i < n;) {
		const char *p = (const char *)pkts[i];
		uint64_t at = (uint64_t)(p - a->base) / ARENA_PKT_BYTES, page = at / 32;
		uint32_t slot = at % 32, run = 1, most = n - i < 32 - slot ? n - i : 32 - slot;

		while (run < most && (const char *)pkts[i + run] == p + run * ARENA_PKT_BYTES)
			run++;
		i += run;
		a->free[page] |= arena_bits(slot, run);
		if (a->free[page] == ARENA_PAGE_FREE && page != a->current)
			a->stack[a->stacked++] = (uint32_t)page;
	}
}
