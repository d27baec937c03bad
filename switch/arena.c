// SPDX-License-Identifier: BSD-3-Clause
#include "arena.h"

bool arena_init(struct arena *a, size_t object, uint64_t size) {
	uint64_t slots = 64;

	while (slots < size)
		slots *= 2;
	*a = (struct arena){.object = object, .size = size, .slots = slots, .mask = slots - 1};
	a->base = mem_map(size * object);
	a->free = mem_map((slots + ARENA_AHEAD) * sizeof(*a->free));
	if (a->base == NULL || a->free == NULL)
		return false;
	memset(a->base, 0, size * object);
	memset(a->free, 0, (slots + ARENA_AHEAD) * sizeof(*a->free));
	return true;
}

void arena_more(struct arena *a, uint64_t n) {
	for (; a->used < a->size && a->tail - a->head < n; a->used++)
		a->free[a->tail++ & a->mask] =
			(struct pkt *)(void *)(a->base + a->used * a->object);
}

void arena_fini(struct arena *a) {
	mem_unmap(a->base, a->size * a->object);
	mem_unmap(a->free, (a->slots + ARENA_AHEAD) * sizeof(*a->free));
	*a = (struct arena){0};
}
