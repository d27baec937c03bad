// SPDX-License-Identifier: BSD-3-Clause
#include "arena.h"

#include <assert.h>

bool arena_init(struct arena *a, size_t object, uint64_t size) {
	*a = (struct arena){.object = object, .size = size};
	a->base = mem_map(size * object);
	a->free = mem_map(size * sizeof(*a->free));
	if (a->base == NULL || a->free == NULL)
		return false;
	memset(a->base, 0, size * object);
	memset(a->free, 0, size * sizeof(*a->free));
	return true;
}

void arena_more(struct arena *a, uint64_t n) {
	uint64_t more = n - a->frees;

	assert(more <= a->size - a->used);
	memmove(a->free + more, a->free, a->frees * sizeof(*a->free));
	for (uint64_t i = 0; i < more; i++)
		a->free[i] = (struct pkt *)(void *)(a->base + a->used++ * a->object);
	a->frees = n;
}

void arena_fini(struct arena *a) {
	mem_unmap(a->base, a->size * a->object);
	mem_unmap(a->free, a->size * sizeof(*a->free));
	*a = (struct arena){0};
}
