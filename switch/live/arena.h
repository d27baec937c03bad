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

// Takes `n` packets; so many must be free.
static inline void arena_take(struct arena *a, struct pkt **pkts, uint32_t n) {
	while (n > 0) {
		if (a->left == 0)
			arena_next_page(a);
		char *page = a->base + (uint64_t)a->current * ARENA_PAGE_BYTES;
		uint32_t left = a->left;

		for (; n > 0 && left != 0; n--, left &= left - 1)
			*pkts++ = (struct pkt *)(void *)(page
				+ (uint32_t)__builtin_ctz(left) * ARENA_PKT_BYTES);
		a->left = left;
	}
}

static inline uint32_t arena_slot(const struct arena *a, const struct pkt *p) {
	return (uint32_t)((uint64_t)((const char *)p - a->base) / ARENA_PKT_BYTES);
}

// Gives `n` packets back. Successive ones are mostly of one page.
static inline void arena_put(struct arena *a, struct pkt *const *pkts, uint32_t n) {
	for (uint32_t i = 0; i < n;) {
		uint32_t page = arena_slot(a, pkts[i]) / 32, freed = 0;

		do
			freed |= 1u << arena_slot(a, pkts[i]) % 32;
		while (++i < n && arena_slot(a, pkts[i]) / 32 == page);
		a->free[page] |= freed;
		if (a->free[page] == ARENA_PAGE_FREE && page != a->current)
			a->stack[a->stacked++] = page;
	}
}
