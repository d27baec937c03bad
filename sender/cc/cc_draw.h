// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of controls, which have no generator: a hash of the MSS and of the times of the
// flow's start and of the draw. These times differ between flows that share a link.
#pragma once
#include "common/base/rng.h"

static inline uint32_t cc_seed(uint64_t start_ns, uint32_t mss_bytes) {
	return (uint32_t)(start_ns ^ (start_ns >> 32)) ^ mss_bytes;
}

static inline uint64_t cc_draw(uint32_t seed, uint64_t now_ns) {
	return rng_mix((now_ns ^ seed) * RNG_GOLDEN);
}
