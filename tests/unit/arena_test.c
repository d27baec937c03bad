// SPDX-License-Identifier: BSD-3-Clause
#include "arena.h"

#include "rng.h"
#include "test.h"

#define PKTS 1000
#define OBJECT 128

// Takes and gives back at random: each packet is out once at most, keeps what was written into it, and no
// more are used than ever were out at once. What came back last goes out first, in the order it came in.
START_TEST(each_is_out_once) {
	struct pkt *out[PKTS];
	uint64_t outs = 0, most = 0;
	struct arena a;
	struct rng rng;

	rng_init(&rng, 1, "arena");
	ck_assert(arena_init(&a, OBJECT, PKTS));
	for (uint32_t round = 0; round < 5000; round++) {
		uint64_t n = rng_u64(&rng) % 65;

		n = n < PKTS - outs ? n : PKTS - outs;
		struct pkt **row = arena_take(&a, n);
		uint64_t kept = n > 0 ? rng_u64(&rng) % (n + 1) : 0;

		most = outs + n > most ? outs + n : most;
		for (uint64_t i = 0; i < kept; i++) {
			ck_assert_uint_eq(((char *)row[i] - a.base) % OBJECT, 0);
			ck_assert_uint_eq(row[i]->flags, 0);
			row[i]->flags = 1;
			out[outs++] = row[i];
		}
		arena_put(&a, row + kept, n - kept);
		// The oldest come back, in every other hundred of rounds.
		uint64_t back =
			round / 100 % 2 == 1 ? rng_u64(&rng) % (outs < 65 ? outs + 1 : 65) : 0;

		for (uint64_t i = 0; i < back; i++)
			out[i]->flags = 0;
		arena_put(&a, out, back);
		row = arena_take(&a, back);
		for (uint64_t i = 0; i < back; i++)
			ck_assert_ptr_eq(row[i], out[i]);
		arena_put(&a, row, back);
		memmove(out, out + back, (outs - back) * sizeof(out[0]));
		outs -= back;
		ck_assert_uint_eq(outs + a.frees, a.used);
	}
	ck_assert_uint_eq(a.used, most);
	ck_assert_uint_eq(most, PKTS);
	arena_fini(&a);
}
END_TEST

TEST_MAIN(each_is_out_once)
