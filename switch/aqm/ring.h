// SPDX-License-Identifier: BSD-3-Clause
// A FIFO with a limit, in which most disciplines keep their packets.
#pragma once
#include "common/base/pkt_ring.h"
#include "switch/aqm.h"

struct aqm_ring {
	struct pkt_ring q;
	struct aqm_limit max;
};

// The state of a discipline that keeps its packets in one ring `q` begins with it: these are its
// operations then.
#define AQM_RING_FIRST(type) static_assert(offsetof(type, q) == 0, "aqm_ring_fini and the like")

static inline void aqm_ring_fini(void *self) {
	struct aqm_ring *r = self;

	pkt_ring_fini(&r->q);
}

static inline struct aqm_limit aqm_ring_limit(const void *self) {
	const struct aqm_ring *r = self;

	return r->max;
}

static inline struct backlog aqm_ring_backlog(const void *self) {
	const struct aqm_ring *r = self;

	return (struct backlog){.pkts = r->q.count, .bytes = r->q.bytes};
}

static inline int aqm_ring_init(
	struct aqm_ring *r, const struct limit *limit, const struct aqm_env *env, struct err *err) {
	return aqm_limit_init(&r->max, limit, env, err);
}

static inline bool aqm_ring_fits(const struct aqm_ring *r, const struct pkt *p) {
	return aqm_limit_fits(&r->max, r->q.count, r->q.bytes, p->size_bytes);
}

// Appends p if it fits, else drops it.
static inline void aqm_ring_put(struct aqm_ring *r, struct pkt *p, struct pkt_list *drops) {
	if (unlikely(!aqm_ring_fits(r, p)))
		pkt_drop(drops, p, DROP_QUEUE_FULL);
	else if (unlikely(!pkt_ring_push(&r->q, p)))
		pkt_drop(drops, p, DROP_NO_MBUF);
}

// Appends packets that arrived at one moment if all of them fit; returns their bytes. 0: none was
// appended. (A full ring grows packet by packet.)
static inline uint64_t aqm_ring_put_whole(struct aqm_ring *r, struct pkt *const *pkts, uint32_t n) {
	uint64_t count = (uint64_t)r->q.count + n, bytes = 0;

	if (n > pkt_ring_room(&r->q) || count > r->max.pkts)
		return 0;
	// They are in the ring only once pkt_ring_add has counted them.
	for (uint32_t i = 0; i < n; i++) {
		pkt_ring_put(&r->q, i, pkts[i]);
		bytes += pkts[i]->size_bytes;
	}
	if (r->q.bytes + bytes + count * r->max.overhead_bytes > r->max.bytes)
		return 0;
	pkt_ring_add(&r->q, n, bytes);
	return bytes;
}

// The same for as many as fit; drops the rest.
static inline uint64_t aqm_ring_put_all(
	struct aqm_ring *r, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	uint64_t before = r->q.bytes;

	if (aqm_ring_put_whole(r, pkts, n) == 0)
		for (uint32_t i = 0; i < n; i++)
			aqm_ring_put(r, pkts[i], drops);
	return r->q.bytes - before;
}

// The oldest packet, which stays; NULL: the ring is empty.
static inline const struct pkt *aqm_ring_oldest(const struct aqm_ring *r) {
	return r->q.count == 0 ? NULL : pkt_ring_head(&r->q);
}

// Takes the oldest packet; NULL: the ring is empty.
static inline struct pkt *aqm_ring_get(struct aqm_ring *r) {
	return pkt_ring_pop(&r->q);
}

// The same as an aqm_get_fn.
static inline struct pkt *aqm_ring_take(void *queue, uint64_t *left_bytes) {
	struct aqm_ring *r = queue;
	struct pkt *p = aqm_ring_get(r);

	*left_bytes = r->q.bytes;
	return p;
}
