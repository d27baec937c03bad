// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/sent.h"

#include "common/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define UNIT 64u

static_assert(sizeof(struct sent) == 24, "a block is whole cache lines");

int sent_pool_init(struct sent_pool *p, size_t bytes) {
	assert(bytes / UNIT < 1u << SENT_BLOCK_BITS);
	memset(p, 0, sizeof(*p));
	p->base = mem_map(bytes);
	p->size = bytes;
	p->used = UNIT; // block 0 is none
	return p->base != NULL ? 0 : -ENOMEM;
}

void sent_pool_fini(struct sent_pool *p) {
	mem_unmap(p->base, p->size);
	p->base = NULL;
}

static size_t block_bytes(uint32_t log2) {
	return sizeof(struct sent) << log2;
}

static uint32_t take(struct sent_pool *p, uint32_t log2) {
	uint32_t block = p->free[log2];

	if (block != 0) {
		memcpy(&p->free[log2], p->base + (size_t)block * UNIT, sizeof(block));
		return block;
	}
	if (p->size - p->used < block_bytes(log2))
		return 0;
	block = (uint32_t)(p->used / UNIT);
	p->used += block_bytes(log2);
	return block;
}

static void give(struct sent_pool *p, uint32_t block, uint32_t log2) {
	memcpy(p->base + (size_t)block * UNIT, &p->free[log2], sizeof(block));
	p->free[log2] = block;
}

bool sent_grow(struct sent_pool *p, struct sent_ring *r) {
	uint32_t log2 = r->block == 0 ? SENT_LOG2_MIN : r->log2 + 1u;
	uint32_t block = log2 <= SENT_LOG2_MAX ? take(p, log2) : 0;
	struct sent_ring larger = {
		.block = block & ((1u << SENT_BLOCK_BITS) - 1), .log2 = log2 & 31};

	if (larger.block == 0) {
		p->refused++;
		return false;
	}
	for (; r->block != 0 && larger.tail < sent_count(r); larger.tail++)
		*sent_at(p, &larger, larger.tail) = *sent_at(p, r, r->head + larger.tail);
	if (r->block != 0)
		give(p, r->block, r->log2);
	*r = larger;
	return true;
}

bool sent_insert(struct sent_pool *p, struct sent_ring *r, uint32_t *i) {
	uint32_t before = *i - r->head, behind = r->tail - *i;

	if (sent_push(p, r) == NULL)
		return false;
	*i = r->head + before; // the ring may have been renumbered
	if (behind <= before) {
		for (uint32_t k = r->tail - 1; k != *i; k--)
			*sent_at(p, r, k) = *sent_at(p, r, k - 1);
		return true;
	}
	// The new place goes before the head instead.
	r->tail--;
	r->head--;
	*i = *i - 1;
	for (uint32_t k = r->head; k != *i; k++)
		*sent_at(p, r, k) = *sent_at(p, r, k + 1);
	return true;
}

uint32_t sent_find(const struct sent_pool *p, const struct sent_ring *r, uint32_t seq) {
	uint32_t low = 0, high = sent_count(r);

	if (high > 0 && (int32_t)(sent_at(p, r, r->head)->end - seq) > 0)
		return r->head; // most often
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((int32_t)(sent_at(p, r, r->head + middle)->end - seq) > 0)
			high = middle;
		else
			low = middle + 1;
	}
	return r->head + low;
}

void sent_release(struct sent_pool *p, struct sent_ring *r) {
	if (r->block != 0)
		give(p, r->block, r->log2);
	*r = (struct sent_ring){0};
}
