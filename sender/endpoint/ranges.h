// SPDX-License-Identifier: BSD-3-Clause
// Memory for the ranges of what receivers have out of order.
#pragma once
#include "common/base/err.h"

#include <assert.h>
#include <stdint.h>

// Out-of-order data [start, end), offsets from the first byte; sorted, disjoint, not adjacent.
struct range {
	struct range *next;
	uint64_t start, end;
	uint32_t below, above; // the tree's lower and higher part: places in the pool, from 1
};
#define RANGE_NONE 0

static_assert(sizeof(struct range) == 32, "two in a cache line");

// Address space for the worst case; pages are touched only when used.
struct range_pool {
	struct range *base;
	struct range *free; // list of freed ranges
	uint32_t size, used; // base[used] was never used
	uint64_t refused; // segments not kept because the pool was empty
	uint64_t visits; // ranges that were compared on the way to a place in a tree
};

int range_pool_init(struct range_pool *p, uint32_t size, struct err *err);
void range_pool_fini(struct range_pool *p);
