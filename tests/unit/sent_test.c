// SPDX-License-Identifier: BSD-3-Clause
// The ring of unacknowledged segments and the table of connections, against plain arrays.
#include "tools/pcap/sent.h"

#include "common/base/rng.h"
#include "test.h"
#include "tools/pcap/table.h"

#include <string.h>

TEST(inserted_anywhere_records_stay_in_order) {
	struct sent_pool pool;
	struct rng rng;

	ck_assert_int_eq(sent_pool_init(&pool, 1 << 20), 0);
	rng_init(&rng, 1, "sent");
	for (uint32_t round = 0; round < 50; round++) {
		struct sent_ring ring = {0};
		uint32_t end[400], n = 0;

		while (n < 400) {
			uint32_t at = (uint32_t)(rng_u64(&rng) % (n + 1)), i = ring.head + at;
			uint32_t value = n;

			if (at == n) {
				struct sent *s = sent_push(&pool, &ring);
				ck_assert_ptr_nonnull(s);
				s->ts_ns = value;
			} else {
				ck_assert(sent_insert(&pool, &ring, &i));
				ck_assert_uint_eq(i - ring.head, at);
				sent_at(&pool, &ring, i)->ts_ns = value;
			}
			memmove(end + at + 1, end + at, (n - at) * sizeof(end[0]));
			end[at] = value;
			n++;
			ck_assert_uint_eq(sent_count(&ring), n);
		}
		for (uint32_t i = 0; i < n; i++)
			ck_assert_uint_eq(sent_at(&pool, &ring, ring.head + i)->ts_ns, end[i]);
		sent_release(&pool, &ring);
	}
	// 400 records need blocks of 8 to 512; released ones are used again.
	ck_assert_uint_le(pool.used, 64 + sizeof(struct sent) * 1024);
	sent_pool_fini(&pool);
}

TEST(find_is_right_where_numbers_wrap) {
	struct sent_pool pool;
	struct sent_ring ring = {0};
	uint32_t first = UINT32_MAX - 5000;

	ck_assert_int_eq(sent_pool_init(&pool, 1 << 20), 0);
	for (uint32_t i = 0; i < 100; i++)
		*sent_push(&pool, &ring) =
			(struct sent){.seq = first + 100 * i, .end = first + 100 * i + 100};
	for (uint32_t byte = 0; byte < 10000; byte += 33)
		ck_assert_uint_eq(sent_find(&pool, &ring, first + byte), ring.head + byte / 100);
	ck_assert_uint_eq(sent_find(&pool, &ring, first - 1), ring.head);
	ck_assert_uint_eq(sent_find(&pool, &ring, first + 10000), ring.tail);
	sent_pool_fini(&pool);
}

TEST(a_full_pool_refuses) {
	struct sent_pool pool;
	struct sent_ring ring = {0};
	uint32_t n = 0;

	ck_assert_int_eq(sent_pool_init(&pool, 4096), 0);
	while (sent_push(&pool, &ring) != NULL)
		n++;
	ck_assert_uint_eq(n, 64); // blocks of 8, 16, 32 and 64 records, but not of 128
	ck_assert_uint_eq(pool.refused, 1);
	ck_assert_uint_eq(sent_count(&ring), 64);
	sent_pool_fini(&pool);
}

// Hashes that collide, in a table that is as full as it may be.
TEST(the_table_finds_what_is_in_it) {
	static bool in[64];
	struct table t;
	struct rng rng;

	ck_assert_int_eq(table_init(&t, 64), 0);
	rng_init(&rng, 2, "table");
	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t i = (uint32_t)(rng_u64(&rng) % 64), hash = i % 7 + 120;

		if (in[i])
			table_remove(&t, hash, i);
		else
			table_insert(&t, hash, i);
		in[i] = !in[i];
		for (uint32_t k = 0; k < 64; k++) {
			uint32_t at = k % 7 + 120, found;

			while ((found = table_find(&t, k % 7 + 120, &at)) != TABLE_NONE
				&& found != k)
				continue;
			ck_assert(in[k] == (found == k));
		}
	}
	table_fini(&t);
}
