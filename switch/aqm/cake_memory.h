// SPDX-License-Identifier: BSD-3-Clause
// The memory of packets as Linux counts it, and its limit (cake.c).
#pragma once
#include "common/base/u64.h"
#include "switch/aqm/cake_hosts.h"

#define CAKE_FCS_BYTES 4
#define CAKE_HEAD_BYTES (64 + 320)
#define CAKE_SKB_BYTES 256

// The truesize of its skb.
static inline uint64_t memory_of(const struct pkt *p) {
	uint32_t data = p->size_bytes + CAKE_HEAD_BYTES - 1u;

	return CAKE_SKB_BYTES + (UINT64_C(1) << (32 - __builtin_clz(data)));
}

#define CAKE_MEMORY_LEAST (UINT64_C(4) << 20)
#define CAKE_MEMORY_FRAMES 10240

// Of all packets; UINT64_MAX: none.
static inline uint64_t cake_memory_limit(const struct cake *c, const struct aqm_env *env) {
	double intervals = 4 * (double)c->law.interval_ns * 1e-9 * (double)env->rate_bps / 8;
	uint64_t frames = max_u64(c->fq.max.pkts, CAKE_MEMORY_FRAMES);

	if (c->memory_limit > 0)
		return c->memory_limit;
	if (c->fq.limit.kind != LIMIT_PACKETS)
		return UINT64_MAX;
	frames *= env->mtu_bytes - CAKE_FCS_BYTES;
	return env->rate_bps > 0 && intervals < (double)frames
		? time_min(time_max((uint64_t)intervals, CAKE_MEMORY_LEAST), frames)
		: frames;
}

// Whether n more packets fit, of so many bytes and so much memory.
static inline bool cake_fit(const struct cake *c, uint32_t n, uint64_t bytes, uint64_t memory) {
	return flow_queues_fit(&c->fq, n, bytes) && c->held_bytes + memory <= c->memory_limit;
}
