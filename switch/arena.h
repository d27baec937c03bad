// SPDX-License-Identifier: BSD-3-Clause
// Packets with room for a small frame behind them, 128 bytes in all, in pages of 32. What is received together
// stands together, in the order it will leave in: a page is a page of memory, whose address the processor looks
// up once and whose lines it fetches ahead by itself. The page that came back last is handed out first, while
// it is in the cache; one that has not come back whole only if no other is left.
#pragma once
#include "common/base/pkt.h"

#include <stdint.h>

#define ARENA_PKT_BYTES 128
#define ARENA_PAGE_BYTES 4096 // 32 packets: a bit each
#define ARENA_PAGE_FREE UINT32_MAX

struct arena {
	char *base;
	uint32_t *free; // per page: those that came back
	uint32_t *stack; // pages that are free; the last to come back on top
	uint32_t stacked;
	uint32_t pages, used; // how many of them ever were
	uint32_t current; // the page that is handed out,
	uint32_t left; // and what is left of it, which its `free` does not count
	uint32_t scan; // where the last page was found that had come back in part
};

// Room for at least `pkts`. False: no memory. Every page is touched, so that there are no page faults later.
bool arena_init(struct arena *a, uint64_t pkts);
void arena_fini(struct arena *a);
// Memory of so many packets.
uint64_t arena_bytes(uint64_t pkts);
// The current page is handed out: another one. One must be left.
void arena_turn(struct arena *a);

// Takes `n`, which must be left.
static inline void arena_take(struct arena *a, struct pkt **pkts, uint32_t n) {
	while (n > 0) {
		if (a->left == 0)
			arena_turn(a);
		char *page = a->base + (uint64_t)a->current * ARENA_PAGE_BYTES;
		uint32_t left = a->left;

		for (; n > 0 && left != 0; n--, left &= left - 1)
			*pkts++ = (struct pkt *)(void *)(page
				+ (uint32_t)__builtin_ctz(left) * ARENA_PKT_BYTES);
		a->left = left;
	}
}

// Gives `n` packets back.
static inline void arena_put(struct arena *a, struct pkt *const *pkts, uint32_t n) {
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (uint64_t)((const char *)pkts[i] - a->base);
		uint32_t page = (uint32_t)(at / ARENA_PAGE_BYTES);

		a->free[page] |= 1u << at / ARENA_PKT_BYTES % 32;
		if (a->free[page] == ARENA_PAGE_FREE && page != a->current)
			a->stack[a->stacked++] = page;
	}
}
