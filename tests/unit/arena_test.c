// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/arena.h"

#include "common/base/rng.h"
#include "test.h"

#include <string.h>

#define PKTS 1000
#define BURST 64

// Takes and gives back at random, the oldest or any: each packet is out once at most, and there is
// one as long as fewer than PKTS are out, wherever those stand.
static void play(const char *seed, bool in_order) {
	struct pkt *out[PKTS], *burst[BURST];
	uint32_t outs = 0, most = 0;
	struct arena a;
	struct rng rng;

	rng_init(&rng, 1, seed);
	ck_assert(arena_init(&a, PKTS));
	for (uint32_t round = 0; round < 5000; round++) {
		uint32_t n = (uint32_t)(rng_u64(&rng) % (BURST + 1));

		n = n < PKTS - outs ? n : PKTS - outs;
		arena_take(&a, burst, n);
		uint32_t kept = (uint32_t)(rng_u64(&rng) % (n + 1));

		for (uint32_t i = 0; i < kept; i++) {
			uint64_t at = (uint64_t)((char *)burst[i] - a.base);

			ck_assert_uint_eq(at % ARENA_PKT_BYTES, 0);
			ck_assert_uint_lt(at / ARENA_PAGE_BYTES, a.used);
			ck_assert_uint_eq(burst[i]->flags, 0);
			burst[i]->flags = 1;
			out[outs++] = burst[i];
		}
		arena_put(&a, burst + kept, n - kept);
		most = outs > most ? outs : most;
		// In every other hundred of rounds some come back.
		uint32_t back = round / 100 % 2 == 1 ? (uint32_t)(rng_u64(&rng) % BURST) : 0;

		for (; back > 0 && outs > 0; back--) {
			uint32_t i = in_order ? 0 : (uint32_t)(rng_u64(&rng) % outs);

			out[i]->flags = 0;
			arena_put(&a, &out[i], 1);
			memmove(&out[i], &out[i + 1], (--outs - i) * sizeof(out[0]));
		}
	}
	ck_assert_uint_eq(most, PKTS);
	arena_fini(&a);
}

TEST(each_is_out_once) {
	play("in order", true);
	play("any order", false);
}

// What is taken and comes back in order stands together, and no more pages are used than it needs.
TEST(a_page_comes_back_whole) {
	struct pkt *line[PKTS];
	struct arena a;

	ck_assert(arena_init(&a, PKTS));
	for (uint32_t i = 0; i < PKTS / 4; i++)
		arena_take(&a, &line[i], 1);
	for (uint32_t round = 0; round < 1000; round++) {
		struct pkt *burst[24];
		uint32_t together = 0;

		arena_put(&a, line, 24);
		memmove(line, line + 24, (PKTS / 4 - 24) * sizeof(line[0]));
		arena_take(&a, burst, 24);
		memcpy(line + PKTS / 4 - 24, burst, sizeof(burst));
		for (uint32_t i = 1; i < 24; i++)
			together += (char *)burst[i] == (char *)burst[i - 1] + ARENA_PKT_BYTES;
		ck_assert_uint_ge(together, 22); // a page may end among them
	}
	ck_assert_uint_le(a.used, PKTS / 4 / 32 + 3);
	arena_fini(&a);
}
