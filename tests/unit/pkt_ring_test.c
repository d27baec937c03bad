// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/pkt_ring.h"

#include "common/base/rng.h"
#include "test.h"

#define PKTS 5000

TEST(first_in_first_out_while_it_grows_and_wraps) {
	static struct pkt pkt[PKTS];
	struct pkt_ring r = {0};
	uint64_t in = 0, out = 0, bytes = 0;
	struct rng rng;

	rng_init(&rng, 1, "pkt_ring");
	for (uint32_t i = 0; i < PKTS; i++)
		pkt[i].size_bytes = (uint16_t)(60 + i % 1459);
	ck_assert_ptr_null(pkt_ring_pop(&r));
	// Up and down, higher each time: it grows with its head anywhere.
	for (uint32_t round = 0; round < 200; round++) {
		uint32_t puts = (uint32_t)(rng_u64(&rng) % (25 * round + 10));

		puts = puts < PKTS - (in - out) ? puts : (uint32_t)(PKTS - (in - out));
		while (puts > 0 && round % 2 == 0 && pkt_ring_room(&r) < puts)
			ck_assert(pkt_ring_grow(&r));
		uint64_t before = bytes;
		for (uint32_t i = 0; i < puts; i++) {
			struct pkt *p = &pkt[in++ % PKTS];

			if (round % 2 == 0)
				pkt_ring_put(&r, i, p);
			else
				ck_assert(pkt_ring_push(&r, p));
			bytes += p->size_bytes;
		}
		if (round % 2 == 0)
			pkt_ring_add(&r, puts, bytes - before);
		uint32_t count = (uint32_t)(rng_u64(&rng) % (in - out + 1));

		before = bytes;
		for (uint32_t i = 0; i < count; i++) {
			struct pkt *p = &pkt[out++ % PKTS];

			if (round % 3 == 0) {
				ck_assert_ptr_eq(pkt_ring_at(&r, i), p);
			} else {
				ck_assert_ptr_eq(pkt_ring_head(&r), p);
				ck_assert_ptr_eq(pkt_ring_pop(&r), p);
			}
			bytes -= p->size_bytes;
		}
		if (round % 3 == 0)
			pkt_ring_skip(&r, count, before - bytes);
		ck_assert_uint_eq(r.count, in - out);
		ck_assert_uint_eq(r.bytes, bytes);
	}
	ck_assert_uint_gt(r.slots, 2048);
	while (pkt_ring_pop(&r) != NULL)
		out++;
	ck_assert_uint_eq(in, out);
	ck_assert_uint_eq(r.bytes, 0);
	pkt_ring_fini(&r);
}

// One of very many begins with room for 8, and becomes like the others when it is long.
TEST(a_small_one_does_too) {
	static struct pkt pkt[PKTS];
	struct pkt_ring r = {0};
	uint32_t in = 0, out = 0, slots = 0;

	while (in < PKTS) {
		for (uint32_t i = 0; i < 3 && in < PKTS; i++) {
			if (pkt_ring_room(&r) == 0) {
				ck_assert(pkt_ring_grow_small(&r));
				ck_assert_uint_eq(r.slots, slots == 0 ? 8 : 2 * slots);
				slots = r.slots;
			}
			ck_assert(pkt_ring_push(&r, &pkt[in++]));
		}
		ck_assert_ptr_eq(pkt_ring_pop(&r), &pkt[out++]);
	}
	ck_assert_uint_eq(r.slots, 4096);
	while (out < PKTS)
		ck_assert_ptr_eq(pkt_ring_pop(&r), &pkt[out++]);
	pkt_ring_fini(&r);

	// From small to large by the other function.
	ck_assert(pkt_ring_grow_small(&r));
	ck_assert(pkt_ring_push(&r, &pkt[0]));
	ck_assert(pkt_ring_grow(&r));
	ck_assert_uint_eq(r.slots, 1024);
	ck_assert_ptr_eq(pkt_ring_pop(&r), &pkt[0]);
	pkt_ring_fini(&r);
}
