// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/pkt_ring.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 1024u // smaller ones are from the heap
#define SLOTS_SMALL 8u

static struct pkt **slots_make(uint32_t n) {
	return n < SLOTS_MIN ? calloc(n, sizeof(struct pkt *))
			     : mem_map((uint64_t)n * sizeof(struct pkt *));
}

static void slots_free(struct pkt_ring *r) {
	if (r->slots < SLOTS_MIN)
		free(r->slot);
	else
		mem_unmap(r->slot, r->slots * sizeof(struct pkt *));
}

// Moves the packets to `size` slots.
static bool ring_move(struct pkt_ring *r, uint32_t size) {
	struct pkt **slot = size == 0 ? NULL : slots_make(size);

	if (slot == NULL)
		return false;
	for (uint32_t i = 0; i < r->count; i++)
		slot[i] = r->slot[(r->head + i) & (r->slots - 1)];
	slots_free(r);
	r->slot = slot;
	r->slots = size;
	r->head = 0;
	return true;
}

bool pkt_ring_grow(struct pkt_ring *r) {
	return ring_move(r, r->slots < SLOTS_MIN ? SLOTS_MIN : 2 * r->slots);
}

bool pkt_ring_grow_small(struct pkt_ring *r) {
	return ring_move(r, r->slots == 0 ? SLOTS_SMALL : 2 * r->slots);
}

void pkt_ring_fini(struct pkt_ring *r) {
	slots_free(r);
	memset(r, 0, sizeof(*r));
}
