// SPDX-License-Identifier: BSD-3-Clause
// Hints to the compiler and to the processor, under the names that DPDK and the Linux kernel give
// them.
#pragma once

#ifndef likely // rte_branch_prediction.h has the same
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

// Prefetches a line for reading, or for writing. Any address is allowed, NULL too.
#define prefetch(p) __builtin_prefetch(p)
#define prefetch_write(p) __builtin_prefetch(p, 1)
