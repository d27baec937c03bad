// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pool.h"

#include "common/base/mem.h"
#include "common/base/u64.h"

#include <errno.h>

// Objects of the part that is mapped when the pool has so many.
static uint64_t part_size(const struct pool *p, uint64_t whole) {
	return min_u64(whole == 0 ? POOL_FIRST : whole, p->limit - whole);
}

bool pool_grow(struct pool *p) {
	uint64_t size = p->limit == 0 ? 0 : part_size(p, p->whole);

	if (size == 0 || p->parts == POOL_PARTS)
		return false;
	char *base = mem_map(size * p->object);
	struct pkt **stack = mem_map((p->whole + size) * sizeof(*stack));

	if (base == NULL || stack == NULL) {
		mem_unmap(base, size * p->object);
		mem_unmap(stack, (p->whole + size) * sizeof(*stack));
		return false;
	}
	mem_unmap(p->free, p->whole * sizeof(*p->free)); // which is empty
	p->free = stack;
	p->part[p->parts++] = p->base = base;
	p->whole += size;
	p->size = size;
	p->next = 0;
	return true;
}

int pool_init(struct pools *ps, struct pool *p, uint8_t number, size_t object, uint64_t limit,
	struct err *err) {
	ps->pool[number] = p;
	*p = (struct pool){.limit = limit, .object = object, .mask = UINT64_MAX};
	if (!pool_grow(p))
		return err_set(err, -ENOMEM, "no memory for packets in flight");
	return 0;
}

void pools_join(struct pools *ps, struct pools *others) {
	uint64_t inside = others->inside, unsent = others->unsent;

	others->inside = 0;
	others->unsent = 0;
	ps->inside += inside;
	ps->unsent += unsent;
}

static void pool_fini(struct pool *p) {
	uint64_t whole = 0;

	for (uint32_t i = 0; i < p->parts; i++) {
		uint64_t size = part_size(p, whole);

		mem_unmap(p->part[i], size * p->object);
		whole += size;
	}
	mem_unmap(p->free, p->whole * sizeof(*p->free));
}

void pools_fini(struct pools *ps) {
	for (uint32_t i = 0; i < POOLS_MAX; i++) {
		if (ps->pool[i] != NULL)
			pool_fini(ps->pool[i]);
	}
}
