// SPDX-License-Identifier: BSD-3-Clause
// CAKE's set-associative hash: which of its queues a packet joins. cake.c has the rules; nothing
// here depends on the order of service or on COBALT.
#pragma once
#include "switch/aqm/cake_hosts.h"

// What packets have in common that join one queue.
static inline uint32_t key_of(const struct cake *c, const struct pkt *p) {
	uint32_t hosts;

	if (likely(c->isolation == ISOLATE_FLOWS || cake_two_levels(c)))
		return p->flow_id;
	hosts = pkt_hosts(c->owner, p);
	if (c->isolation == ISOLATE_SRC)
		return hosts >> 16;
	return c->isolation == ISOLATE_DST ? hosts & 0xffff : hosts;
}

#define EACH_WAY UINT64_C(0x0101010101010101) // times a byte: that byte for each

// Bit 7 of each way's byte whose tag is the key's, and perhaps of some ways after such a one.
static inline uint64_t tagged_ways(const struct cake_set *set, uint32_t key) {
	uint64_t differ = set->tags ^ (uint8_t)key * EACH_WAY;

	return (differ - EACH_WAY) & ~differ & EACH_WAY << 7;
}

static inline uint32_t first_way(uint64_t tagged) {
	return (uint32_t)__builtin_ctzll(tagged) / 8;
}

// A queue for a key that none in the set is used for.
__attribute__((noinline)) static uint32_t new_way(struct cake *c, uint32_t direct, uint32_t key) {
	struct cake_set *set = &c->set[direct / CAKE_WAYS];
	uint8_t bit = (uint8_t)(1u << direct % CAKE_WAYS);
	uint32_t way = direct % CAKE_WAYS;

	if ((set->shared & bit) != 0 || set->used == UINT8_MAX) {
		set->shared |= bit;
		c->fq.collided++;
		return direct;
	}
	if ((set->used & bit) != 0)
		way = (uint32_t)__builtin_ctz((uint8_t)~set->used);
	set->tags &= ~(UINT64_C(0xff) << 8 * way);
	set->tags |= (uint64_t)(uint8_t)key << 8 * way;
	c->fq.queue[direct - direct % CAKE_WAYS + way].flow_id = key;
	return direct - direct % CAKE_WAYS + way;
}

// The queue in the set of `direct`, at its hash, that is or was used for a key. UINT32_MAX: none.
static inline uint32_t way_of(const struct cake *c, uint32_t direct, uint32_t key) {
	uint32_t first = direct - direct % CAKE_WAYS;
	uint64_t ways;

	if (likely(c->fq.queue[direct].flow_id == key))
		return direct;
	for (ways = tagged_ways(&c->set[direct / CAKE_WAYS], key); ways != 0; ways &= ways - 1) {
		uint32_t index = first + first_way(ways);

		if (c->fq.queue[index].flow_id == key)
			return index;
	}
	return UINT32_MAX;
}

// The queue that a key's packet joins, which is then in use.
static inline uint32_t find_way(struct cake *c, uint32_t key) {
	uint32_t direct = flow_queues_index(&c->fq, key), index = way_of(c, direct, key);

	if (unlikely(index == UINT32_MAX))
		index = new_way(c, direct, key);
	if (c->fq.queue[index].list == FLOW_NONE)
		c->set[index / CAKE_WAYS].used |= (uint8_t)(1u << index % CAKE_WAYS);
	return index;
}
