// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pool.h"

#include "common/base/mem.h"

#include <errno.h>

int pool_init(struct pools *ps, uint8_t number, size_t object, uint64_t size, struct err *err) {
	struct pool *p = &ps->pool[number];

	*p = (struct pool){.size = size, .object = object};
	p->base = mem_map(size * object);
	p->free = mem_map(size * sizeof(struct pkt *));
	if (p->base == NULL || p->free == NULL)
		return err_set(err, -ENOMEM, "no memory for %llu packets in flight",
			(unsigned long long)size);
	return 0;
}

void pools_fini(struct pools *ps) {
	for (uint32_t i = 0; i < POOLS_MAX; i++) {
		mem_unmap(ps->pool[i].base, ps->pool[i].size * ps->pool[i].object);
		mem_unmap(ps->pool[i].free, ps->pool[i].size * sizeof(struct pkt *));
	}
}
