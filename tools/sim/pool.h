// SPDX-License-Identifier: BSD-3-Clause
// Memory of packets in virtual time.
//
// A pool has packets of one size and one direction, forward ones in the even pools. Data and ACKs
// have separate pools, so that the few ACKs in flight stay in the cache. A segment with SACK blocks
// or SYN options needs a second cache line. Further pools have packets with whole frames (frame.h),
// one for each machine that makes such.
//
// How many packets a config can have in flight is far above what most runs have. So a pool begins
// with a part for POOL_FIRST of them and doubles when all are in use, up to its limit.
#pragma once
#include "common/base/err.h"
#include "common/base/likely.h"
#include "common/base/pkt.h"
#include "common/config/flows.h"

enum pool_kind { POOL_FORWARD, POOL_REVERSE, POOL_LARGE, POOL_LARGE_REVERSE, POOL_FRAMES };
#define POOLS_MAX (POOL_FRAMES + 240)
static_assert(POOLS_MAX <= UINT8_MAX && POOL_FRAMES % 2 == 0, "pkt.pool");
static_assert((int)POOL_FORWARD == FLOWS_FORWARD && (int)POOL_REVERSE == FLOWS_REVERSE,
	"the pool of a direction has its number");

#define POOL_FIRST (UINT64_C(1) << 15) // 2 MiB of the smallest packets: one large page
#define POOL_PARTS 24 // of which the last has POOL_FIRST << 22: 137 G packets in all

struct pool {
	char *base; // of the newest part
	struct pkt **free; // a stack: the packet freed last is used next, from the cache
	uint64_t frees;
	uint64_t size, next; // objects of that part; those from `next` on were never used
	size_t object; // bytes
	// All bits, or, of a ring (pipe.h), its packets - 1: no packet is freed, `next` counts on.
	uint64_t mask;
	uint64_t whole, limit; // objects of all parts, and the most that there may be; 0: a ring
	char *part[POOL_PARTS];
	uint32_t parts;
};

// All pools; each belongs to the node whose packets it has. A packet goes back to where it came
// from.
struct pools {
	struct pool *pool[POOLS_MAX];
	uint64_t inside; // packets between hosts
	uint64_t inside_max; // the most that there were at boundaries of windows
	uint64_t unsent; // packets that were dropped because a pool was empty
};

static inline enum flows_direction pool_direction(const struct pkt *p) {
	return p->pool % 2 == 0 ? FLOWS_FORWARD : FLOWS_REVERSE;
}

// Maps one more part; no packet is free. False: the pool has its limit, or there is no memory.
bool pool_grow(struct pool *p);

#define POOL_AHEAD 4 // packets prefetched ahead
#define RING_AHEAD 16 // the same where another CPU had them

// Whether there are n packets without more memory.
static inline bool pool_has(const struct pool *p, uint64_t n) {
	return p->frees + (p->size - p->next) >= n;
}

// A packet of a pool that has one, but for its number.
static inline struct pkt *pool_take(struct pool *p) {
	struct pkt *pkt;

	if (likely(p->frees > 0)) {
		pkt = p->free[--p->frees];
		if (p->frees >= POOL_AHEAD)
			prefetch_write(p->free[p->frees - POOL_AHEAD]);
		return pkt;
	}
	pkt = (struct pkt *)(void *)(p->base + (p->next++ & p->mask) * p->object);
	prefetch_write(p->base + ((p->next + RING_AHEAD) & p->mask) * p->object);
	return pkt;
}

// `number`: of the pool. NULL: it is empty.
static inline struct pkt *pool_get(struct pool *p, uint8_t number) {
	struct pkt *pkt;

	if (unlikely(!pool_has(p, 1)) && !pool_grow(p))
		return NULL;
	pkt = pool_take(p);
	pkt->pool = number;
	return pkt;
}

static inline void pool_put(struct pools *ps, struct pkt *pkt) {
	struct pool *p = ps->pool[pkt->pool];

	p->free[p->frees++] = pkt;
}

// limit: packets that there may be.
int pool_init(struct pools *ps, struct pool *p, uint8_t number, size_t object, uint64_t limit,
	struct err *err);
// Adds to *ps what another thread has counted; both may be the same.
void pools_join(struct pools *ps, struct pools *others);
void pools_fini(struct pools *ps);
