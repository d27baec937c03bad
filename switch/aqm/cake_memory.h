// SPDX-License-Identifier: BSD-3-Clause
// The memory of a packet as Linux counts it (cake.c).
#pragma once
#include "common/base/pkt.h"

#include <stdint.h>

#define CAKE_FCS_BYTES 4
#define CAKE_HEAD_BYTES (64 + 320)
#define CAKE_SKB_BYTES 256

// The truesize of its skb.
static inline uint64_t memory_of(const struct pkt *p) {
	uint32_t data = p->size_bytes + CAKE_HEAD_BYTES - 1u;

	return CAKE_SKB_BYTES + (UINT64_C(1) << (32 - __builtin_clz(data)));
}
