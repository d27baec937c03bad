// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pool.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT (5 * POOL_FIRST) // parts of 1, 1, 2 and what is left, 1

static int in_order(const void *a, const void *b) {
	const char *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

TEST(a_pool_doubles_up_to_its_limit_and_no_two_packets_share_memory) {
	struct pkt **taken = calloc(LIMIT, sizeof(struct pkt *));
	static struct pools pools;
	struct pool pool;
	struct err err;

	ck_assert_int_eq(pool_init(&pools, &pool, POOL_LARGE, 128, LIMIT, &err), 0);
	ck_assert_uint_eq(pool.whole, POOL_FIRST);
	for (uint64_t i = 0; i < LIMIT; i++) {
		taken[i] = pool_get(&pool, POOL_LARGE);
		ck_assert_ptr_nonnull(taken[i]);
		memset(taken[i], (int)i & 0x7f, 128);
		taken[i]->pool = POOL_LARGE;
		if (i == POOL_FIRST / 2) { // the packet freed last is used next
			pool_put(&pools, taken[i]);
			ck_assert_ptr_eq(pool_get(&pool, POOL_LARGE), taken[i]);
		}
	}
	ck_assert_ptr_null(pool_get(&pool, POOL_LARGE));
	ck_assert_uint_eq(pool.whole, LIMIT);
	for (uint64_t i = 0; i < LIMIT; i++)
		pool_put(&pools, taken[i]);
	ck_assert_uint_eq(pool.frees, LIMIT);
	for (uint64_t i = LIMIT; i-- > 0;)
		ck_assert_ptr_eq(pool_get(&pool, POOL_LARGE), taken[i]);
	qsort(taken, LIMIT, sizeof(*taken), in_order);
	for (uint64_t i = 1; i < LIMIT; i++)
		ck_assert_int_ge((const char *)taken[i] - (const char *)taken[i - 1], 128);
	pools_fini(&pools);
	free(taken);
}
