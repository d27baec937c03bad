// SPDX-License-Identifier: BSD-3-Clause
#include "arena.h"

#define MORE 64 // packets at a time

bool arena_init(struct arena *a, size_t object, uint64_t size) {
	uint64_t slots = 64;

	while (slots < size)
		slots *= 2;
	*a = (struct arena){.object = object, .size = size, .slots = slots, .mask = slots - 1};
	a->base = mem_map(size * object);
	a->free = mem_map(slots * sizeof(*a->free));
	if (a->base == NULL || a->free == NULL)
		return false;
	memset(a->base, 0, size * object);
	memset(a->free, 0, slots * sizeof(*a->free));
	return true;
}

void arena_more(struct arena *a) {
	uint64_t n = a->size - a->used < MORE ? a->size - a->used : MORE;

	for (uint64_t i = 0; i < n; i++)
		arena_put(a, (struct pkt *)(void *)(a->base + a->used++ * a->object));
}

void arena_fini(struct arena *a) {
	mem_unmap(a->base, a->size * a->object);
	mem_unmap(a->free, a->slots * sizeof(*a->free));
	*a = (struct arena){0};
}
