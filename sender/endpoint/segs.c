// SPDX-License-Identifier: BSD-3-Clause
// Buddy arena of segment records (Knuth, TAOCP vol. 1, 2.5).
#include "sender/endpoint/segs.h"

#include "common/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define SEG_FREE 0x80

// Free blocks are linked through the first words of their own memory.
struct free_block {
	uint32_t next, prev;
};

static struct free_block *free_at(const struct seg_arena *a, uint32_t block) {
	return (struct free_block *)(void *)&a->base[((size_t)block << SEG_ORDER_MIN) * SEG_RECS];
}

static void free_push(struct seg_arena *a, uint32_t block, uint32_t order) {
	struct free_block *f = free_at(a, block);

	f->next = a->free[order];
	f->prev = NONE;
	if (f->next != NONE)
		free_at(a, f->next)->prev = block;
	a->free[order] = block;
	a->order[block] = (uint8_t)(order | SEG_FREE);
}

static void free_unlink(struct seg_arena *a, uint32_t block, uint32_t order) {
	struct free_block *f = free_at(a, block);

	if (f->prev == NONE)
		a->free[order] = f->next;
	else
		free_at(a, f->prev)->next = f->next;
	if (f->next != NONE)
		free_at(a, f->next)->prev = f->prev;
	a->order[block] = (uint8_t)order;
}

static uint32_t arena_order(uint64_t records) {
	uint32_t order = SEG_ORDER_MIN;

	while ((UINT64_C(1) << order) < records && order < SEG_ORDER_MAX)
		order++;
	return order;
}

uint64_t seg_arena_bytes(uint64_t records) {
	uint64_t size = UINT64_C(1) << arena_order(records);

	return size * SEG_BYTES + (size >> SEG_ORDER_MIN);
}

int seg_arena_init(struct seg_arena *a, uint64_t records, struct err *err) {
	uint32_t order = arena_order(records);
	uint64_t size = (uint64_t)SEG_BYTES << order;

	memset(a, 0, sizeof(*a));
	if (records > UINT64_C(1) << SEG_ORDER_MAX)
		return err_set(err, -ERANGE, "%llu segments in flight are more than Weir can track",
			(unsigned long long)records);
	a->blocks = 1u << (order - SEG_ORDER_MIN);
	a->base = mem_map(size);
	a->order = calloc(a->blocks, 1);
	if (a->base == NULL || a->order == NULL) {
		mem_unmap(a->base, size);
		free(a->order);
		a->base = NULL;
		return err_set(err, -ENOMEM, "no memory for %llu MB of segment records",
			(unsigned long long)size >> 20);
	}
	for (uint32_t i = 0; i <= SEG_ORDER_MAX; i++)
		a->free[i] = NONE;
	free_push(a, 0, order);
	return 0;
}

void seg_arena_fini(struct seg_arena *a) {
	if (a->base == NULL)
		return;
	mem_unmap(a->base, ((size_t)SEG_BYTES << SEG_ORDER_MIN) * a->blocks);
	free(a->order);
	a->base = NULL;
}

struct seg_rec *seg_arena_get(struct seg_arena *a, uint32_t order) {
	uint32_t o = order;

	while (o <= SEG_ORDER_MAX && a->free[o] == NONE)
		o++;
	if (o > SEG_ORDER_MAX) {
		a->refused++;
		return NULL;
	}
	uint32_t block = a->free[o];
	free_unlink(a, block, o);
	while (o > order) {
		o--;
		free_push(a, block + (1u << (o - SEG_ORDER_MIN)), o);
	}
	a->order[block] = (uint8_t)order;
	a->used += UINT64_C(1) << order;
	if (a->used > a->used_max)
		a->used_max = a->used;
	return &a->base[((size_t)block << SEG_ORDER_MIN) * SEG_RECS];
}

void seg_arena_put(struct seg_arena *a, struct seg_rec *rec) {
	uint32_t block = (uint32_t)((size_t)(rec - a->base) / SEG_RECS >> SEG_ORDER_MIN);
	uint32_t order = a->order[block];

	a->used -= UINT64_C(1) << order;
	for (;;) {
		uint32_t buddy = block ^ (1u << (order - SEG_ORDER_MIN));

		if (buddy >= a->blocks || a->order[buddy] != (order | SEG_FREE))
			break;
		free_unlink(a, buddy, order);
		block = block < buddy ? block : buddy;
		order++;
	}
	free_push(a, block, order);
}

// Moves the records of [una, next) to a block of 2^order. False: the arena is full; nothing was
// done.
static bool ring_move(
	struct seg_ring *r, struct seg_arena *a, uint32_t order, uint64_t una, uint64_t next) {
	struct seg_ring to = {seg_arena_get(a, order), (1u << order) - 1, r->stride};

	if (to.rec == NULL)
		return false;
	for (uint64_t i = una; i < next; i++)
		seg_copy(&to, i, r, i);
	seg_ring_free(r, a);
	*r = to;
	return true;
}

bool seg_ring_grow(struct seg_ring *r, struct seg_arena *a, uint64_t una, uint64_t next) {
	uint32_t order =
		r->rec == NULL ? SEG_ORDER_MIN : 32u - (uint32_t)__builtin_clz(r->mask) + 1;

	if (order > SEG_ORDER_MAX) {
		a->refused++;
		return false;
	}
	return ring_move(r, a, order, una, next);
}

void seg_ring_fit(struct seg_ring *r, struct seg_arena *a, uint64_t una, uint64_t next) {
	uint32_t order = SEG_ORDER_MIN;

	while (order < SEG_ORDER_MAX && (UINT64_C(1) << order) <= 2 * (next - una))
		order++;
	if ((1u << order) > r->mask / 2)
		return;
	ring_move(r, a, order, una, next);
}

void seg_ring_free(struct seg_ring *r, struct seg_arena *a) {
	if (r->rec != NULL)
		seg_arena_put(a, r->rec);
	r->rec = NULL;
	r->mask = 0;
}
