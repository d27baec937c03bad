// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/pkt_ring.h"

#include "common/base/mem.h"

#include <string.h>

#define SLOTS_MIN 1024u

bool pkt_ring_grow(struct pkt_ring *r) {
	uint32_t size = r->slots == 0 ? SLOTS_MIN : 2 * r->slots;
	struct pkt **slot = size == 0 ? NULL : mem_map(size * sizeof(struct pkt *));

	if (slot == NULL)
		return false;
	for (uint32_t i = 0; i < r->count; i++)
		slot[i] = r->slot[(r->head + i) & (r->slots - 1)];
	mem_unmap(r->slot, r->slots * sizeof(struct pkt *));
	r->slot = slot;
	r->slots = size;
	r->head = 0;
	return true;
}

void pkt_ring_fini(struct pkt_ring *r) {
	mem_unmap(r->slot, r->slots * sizeof(struct pkt *));
	memset(r, 0, sizeof(*r));
}
