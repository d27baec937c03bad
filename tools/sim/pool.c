// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pool.h"

#include "common/base/mem.h"

#include <errno.h>

int pool_init(struct pools *ps, struct pool *p, uint8_t number, size_t object, uint64_t size,
	struct err *err) {
	ps->pool[number] = p;
	*p = (struct pool){.size = size, .object = object, .mask = UINT64_MAX};
	p->base = mem_map(size * object);
	p->free = mem_map(size * sizeof(struct pkt *));
	if (p->base == NULL || p->free == NULL)
		return err_set(err, -ENOMEM, "no memory for %llu packets in flight",
			(unsigned long long)size);
	return 0;
}

void pools_join(struct pools *ps, struct pools *others) {
	uint64_t inside = others->inside, unsent = others->unsent;

	others->inside = 0;
	others->unsent = 0;
	ps->inside += inside;
	ps->unsent += unsent;
}

void pools_fini(struct pools *ps) {
	for (uint32_t i = 0; i < POOLS_MAX; i++) {
		struct pool *p = ps->pool[i];

		if (p == NULL)
			continue;
		mem_unmap(p->base, p->size * p->object);
		mem_unmap(p->free, p->size * sizeof(struct pkt *));
	}
}
