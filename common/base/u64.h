// SPDX-License-Identifier: BSD-3-Clause
// The smaller and the larger of two numbers; of two times: ns.h.
#pragma once
#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}
