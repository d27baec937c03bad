// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/arena.h"

#include "common/base/mem.h"

#include <string.h>

static uint64_t pages_of(uint64_t pkts) {
	return (pkts * ARENA_PKT_BYTES + ARENA_PAGE_BYTES - 1) / ARENA_PAGE_BYTES;
}

uint64_t arena_bytes(uint64_t pkts) {
	return pages_of(pkts) * (ARENA_PAGE_BYTES + 2 * sizeof(uint32_t));
}

bool arena_init(struct arena *a, uint64_t pkts) {
	uint64_t pages = pages_of(pkts);

	*a = (struct arena){0};
	if (pages > UINT32_MAX)
		return false;
	a->pages = (uint32_t)pages;
	a->base = mem_map(pages * ARENA_PAGE_BYTES);
	a->free = mem_map(pages * sizeof(*a->free));
	a->stack = mem_map(pages * sizeof(*a->stack));
	if (a->base == NULL || a->free == NULL || a->stack == NULL)
		return false;
	memset(a->base, 0, pages * ARENA_PAGE_BYTES);
	memset(a->free, 0, pages * sizeof(*a->free));
	memset(a->stack, 0, pages * sizeof(*a->stack));
	a->used = 1; // the current one
	a->left = ARENA_PAGE_FREE;
	return true;
}

void arena_next_page(struct arena *a) {
	if (a->free[a->current] != ARENA_PAGE_FREE) {
		if (a->stacked > 0) {
			a->current = a->stack[--a->stacked];
		} else if (a->used < a->pages) {
			a->current = a->used++;
			a->free[a->current] = ARENA_PAGE_FREE;
		} else {
			while (a->free[a->scan] == 0)
				a->scan = a->scan + 1 < a->pages ? a->scan + 1 : 0;
			a->current = a->scan;
		}
	}
	a->left = a->free[a->current];
	a->free[a->current] = 0;
}

void arena_fini(struct arena *a) {
	mem_unmap(a->base, a->pages * (uint64_t)ARENA_PAGE_BYTES);
	mem_unmap(a->free, a->pages * sizeof(*a->free));
	mem_unmap(a->stack, a->pages * sizeof(*a->stack));
	*a = (struct arena){0};
}
