// SPDX-License-Identifier: BSD-3-Clause
// A ring for frames from one lcore to another, with one producer and one consumer.
//
// The consumer reads it like a port, before the clock, so that no frame arrives before it was sent.
// If the ring is full, the producer keeps the frames or drops and counts them.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/err.h"
#include "common/base/pkt.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdatomic.h>

struct lcore_ring {
	struct rte_ring *ring; // NULL: unused
	uint64_t nb_handed; // frames put in; written by the producer
	_Atomic uint64_t dropped; // frames that the producer dropped because the ring was full
	uint64_t nb_taken __rte_cache_aligned; // written by the consumer
};

// To be called before the lcores run; 0 or a negative errno. DPDK frees the ring when it ends.
int lcore_ring_init(struct lcore_ring *r, uint64_t frames, struct err *err);
// Frees and counts the frames left in the ring, once both lcores have ended.
struct pkt_count lcore_ring_clear(struct lcore_ring *r);

// Puts up to `n` frames into the ring; returns their number. The caller keeps the others.
static inline uint32_t lcore_ring_put(struct lcore_ring *r, struct rte_mbuf *const *m, uint32_t n) {
	uint32_t put = rte_ring_sp_enqueue_burst(r->ring, (void *const *)m, n, NULL);

	r->nb_handed += put;
	return put;
}

static inline void lcore_ring_dropped(struct lcore_ring *r, uint64_t n) {
	atomic_fetch_add_explicit(&r->dropped, n, memory_order_relaxed);
}

// Takes up to `n` frames, in the order in which they were put in; returns their number.
static inline uint32_t lcore_ring_take(struct lcore_ring *r, struct rte_mbuf **m, uint32_t n) {
	uint32_t taken = rte_ring_sc_dequeue_burst(r->ring, (void **)m, n, NULL);

	r->nb_taken += taken;
	return taken;
}

// Frames in the ring. Any lcore may call it.
static inline uint32_t lcore_ring_waiting(const struct lcore_ring *r) {
	return r->ring != NULL ? rte_ring_count(r->ring) : 0;
}
