// SPDX-License-Identifier: BSD-3-Clause
// The buddy arena and the rings it feeds, against a map of who owns which record.
#include "common/base/ns.h"
#include "common/base/rng.h"
#include "sender/endpoint/segs.h"
#include "test.h"

#include <errno.h>
#include <string.h>

#define RECORDS 4096u
#define BLOCKS_MAX (RECORDS >> SEG_ORDER_MIN)

// For loops: a ck_assert writes a message to Check's parent even when it holds.
#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			ck_abort_msg("%s", #cond);                                                 \
	} while (0)

struct owned {
	struct seg_rec *rec;
	uint32_t order;
	uint64_t mark;
};

static struct seg_arena open_arena(uint64_t records) {
	struct seg_arena a;
	struct err err;

	ck_assert_int_eq(seg_arena_init(&a, records, &err), 0);
	return a;
}

// Free blocks as the lists have them: aligned, disjoint from each other and from what is owned.
static void check(const struct seg_arena *a, const struct owned *own, uint32_t count) {
	bool taken[BLOCKS_MAX] = {false};
	uint64_t used = 0, free_records = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t block = (uint32_t)(own[i].rec - a->base) / SEG_RECS >> SEG_ORDER_MIN;

		used += UINT64_C(1) << own[i].order;
		NEED(((uint32_t)(own[i].rec - a->base) / SEG_RECS & ((1u << own[i].order) - 1))
			== 0);
		for (uint32_t k = 0; k < 1u << (own[i].order - SEG_ORDER_MIN); k++) {
			NEED(block + k < a->blocks && !taken[block + k]);
			taken[block + k] = true;
		}
	}
	for (uint32_t order = SEG_ORDER_MIN; order <= SEG_ORDER_MAX; order++) {
		for (uint32_t b = a->free[order]; b != UINT32_MAX;) {
			const uint32_t *link =
				(const void *)&a->base[((size_t)b << SEG_ORDER_MIN) * SEG_RECS];

			for (uint32_t k = 0; k < 1u << (order - SEG_ORDER_MIN); k++) {
				NEED(b + k < a->blocks && !taken[b + k]);
				taken[b + k] = true;
			}
			free_records += UINT64_C(1) << order;
			b = link[0];
		}
	}
	NEED(a->used == used);
	NEED(used + free_records == (uint64_t)a->blocks << SEG_ORDER_MIN);
}

TEST(hands_out_what_it_has_and_takes_it_back) {
	struct seg_arena a = open_arena(100); // rounds up to 128
	struct seg_rec *r[8];

	ck_assert_uint_eq(a.blocks, 8);
	for (int i = 0; i < 8; i++) {
		r[i] = seg_arena_get(&a, SEG_ORDER_MIN);
		ck_assert_ptr_nonnull(r[i]);
	}
	ck_assert_ptr_null(seg_arena_get(&a, SEG_ORDER_MIN));
	ck_assert_uint_eq(a.refused, 1);
	ck_assert_uint_eq(a.used_max, 128);
	for (int i = 0; i < 8; i++)
		seg_arena_put(&a, r[i * 5 % 8]);
	ck_assert_uint_eq(a.used, 0);
	r[0] = seg_arena_get(&a, 7); // one piece again
	ck_assert_ptr_eq(r[0], a.base);
	seg_arena_put(&a, r[0]);
	seg_arena_fini(&a);
}

TEST(too_many_records_are_refused_before_any_memory) {
	struct seg_arena a;
	struct err err;

	ck_assert_int_eq(seg_arena_init(&a, (UINT64_C(1) << SEG_ORDER_MAX) + 1, &err), -ERANGE);
	ck_assert_ptr_nonnull(strstr(err.msg, "more than Weir can track"));
	ck_assert_uint_eq(seg_arena_bytes(100), 128 * 32 + 8);
}

TEST(random_use_conserves_every_record) {
	struct seg_arena a = open_arena(RECORDS);
	struct owned own[BLOCKS_MAX];
	uint32_t count = 0;
	struct rng rng;

	rng_init(&rng, 1, "arena");
	for (int i = 0; i < 50000; i++) {
		if (rng_u64(&rng) % 2 == 0) {
			uint32_t order = SEG_ORDER_MIN + (uint32_t)(rng_u64(&rng) % 6);
			struct seg_rec *r = seg_arena_get(&a, order);

			if (r != NULL)
				own[count++] = (struct owned){r, order, 0};
		} else if (count > 0) {
			uint32_t k = (uint32_t)(rng_u64(&rng) % count);

			seg_arena_put(&a, own[k].rec);
			own[k] = own[--count];
		}
		check(&a, own, count);
	}
	while (count > 0)
		seg_arena_put(&a, own[--count].rec);
	check(&a, own, 0);
	ck_assert_uint_eq(a.free[12], 0); // merged to one block
	seg_arena_fini(&a);
}

TEST(refuses_only_what_does_not_fit) {
	struct seg_arena a = open_arena(64);
	struct seg_rec *r = seg_arena_get(&a, 5);

	ck_assert_ptr_null(seg_arena_get(&a, 6));
	ck_assert_ptr_nonnull(seg_arena_get(&a, 5));
	ck_assert_ptr_null(seg_arena_get(&a, 4));
	seg_arena_put(&a, r);
	ck_assert_ptr_nonnull(seg_arena_get(&a, 4));
	ck_assert_uint_eq(a.refused, 2);
	seg_arena_fini(&a);
}

static void fill_and_grow(struct seg_ring ring) {
	struct seg_arena a = open_arena(1024);
	uint64_t una = UINT32_MAX - 100u, next = una; // low bits wrap on the way

	for (int i = 0; i < 300; i++) {
		ck_assert(seg_ring_reserve(&ring, &a, una, next));
		ck_assert_uint_ge(ring.mask, next - una);
		*seg_at(&ring, next) = (struct seg_rec){.sent_ns = next};
		*seg_links_at(&ring, next) = (struct seg_links){.next = (uint32_t)next};
		if (seg_ring_samples(&ring))
			*seg_sample_at(&ring, next) =
				(struct seg_sample){.delivered = (uint32_t)next};
		next++;
		for (uint64_t k = una; k < next; k++)
			NEED(seg_at(&ring, k)->sent_ns == k
				&& seg_links_at(&ring, k)->next == (uint32_t)k
				&& (!seg_ring_samples(&ring)
					|| seg_sample_at(&ring, k)->delivered == (uint32_t)k));
		una += i % 3 == 0;
	}
	ck_assert_uint_eq(ring.mask, 255);
	ck_assert_uint_eq(a.used, 256);
	seg_ring_free(&ring, &a);
	ck_assert_uint_eq(a.used, 0);
	ck_assert_ptr_null(ring.rec);
	seg_arena_fini(&a);
}

TEST(ring_grows_and_keeps_its_records) {
	fill_and_grow((struct seg_ring){.stride = sizeof(struct seg_rec)});
	fill_and_grow((struct seg_ring){.stride = SEG_BYTES});
}

TEST(ring_gives_back_what_it_does_not_need) {
	struct seg_arena a = open_arena(RECORDS);
	struct seg_ring r = {.stride = SEG_BYTES};
	uint64_t una = 100000;

	for (uint64_t i = una; i < una + 600; i++) {
		NEED(seg_ring_reserve(&r, &a, una, i));
		seg_sample_at(&r, i)->delivered = (uint32_t)i;
	}
	ck_assert_uint_eq(a.used, 1024);
	seg_ring_fit(&r, &a, una, una + 600); // nothing to give
	ck_assert_uint_eq(a.used, 1024);
	una += 600 - 128;
	seg_ring_fit(&r, &a, una, una + 128); // 256 would be just twice as much
	ck_assert_uint_eq(a.used, 1024);
	una++;
	seg_ring_fit(&r, &a, una, una + 127); // 256 is more than twice as much
	ck_assert_uint_eq(r.mask, 255);
	ck_assert_uint_eq(a.used, 256);
	for (uint64_t i = una; i < una + 127; i++)
		NEED(seg_sample_at(&r, i)->delivered == (uint32_t)i);
	seg_ring_fit(&r, &a, una + 127, una + 127); // idle: the smallest
	ck_assert_uint_eq(a.used, 1u << SEG_ORDER_MIN);
	seg_ring_free(&r, &a);
	ck_assert_uint_eq(a.used, 0);
	ck_assert_uint_eq(a.refused, 0);
	seg_arena_fini(&a);
}

TEST(ring_that_cannot_grow_stays_as_it_is) {
	struct seg_arena a = open_arena(32);
	struct seg_ring one = {.stride = SEG_BYTES}, two = one;

	for (uint64_t i = 0; i < 16; i++)
		ck_assert(seg_ring_reserve(&one, &a, 0, i));
	ck_assert(seg_ring_reserve(&two, &a, 0, 0));
	seg_sample_at(&one, 15)->delivered = 15;
	ck_assert(!seg_ring_reserve(&one, &a, 0, 16));
	ck_assert_uint_eq(one.mask, 15);
	ck_assert_uint_eq(seg_sample_at(&one, 15)->delivered, 15);
	ck_assert(seg_ring_reserve(&one, &a, 1, 16)); // room by an ACK
	ck_assert_uint_eq(a.refused, 1);
	seg_arena_fini(&a);
}

// What host_peer_window_segs relies on: rings of up to 2^8 records, one for each of 15 flows, never
// find an arena of 16 times 2^8 full, however they grow, shrink and move.
TEST(one_largest_ring_per_flow_and_one_more_is_always_enough) {
	enum { FLOWS = 15, LARGEST = 1 << 8 };
	struct seg_arena a = open_arena((FLOWS + 1) * LARGEST);
	struct seg_ring ring[FLOWS] = {0};
	uint64_t una[FLOWS] = {0}, next[FLOWS] = {0};
	struct rng rng;

	for (uint32_t i = 0; i < FLOWS; i++)
		ring[i].stride = i % 2 == 0 ? SEG_BYTES : sizeof(struct seg_rec);
	rng_init(&rng, 1, "rings");
	for (int step = 0; step < 200000; step++) {
		uint32_t i = (uint32_t)(rng_u64(&rng) % FLOWS);
		uint64_t room = LARGEST - (next[i] - una[i]), held = next[i] - una[i];

		if (rng_u64(&rng) % 2 == 0) {
			for (uint64_t n = rng_u64(&rng) % (room + 1); n > 0; n--)
				NEED(seg_ring_reserve(&ring[i], &a, una[i], next[i]++));
		} else {
			una[i] += rng_u64(&rng) % (held + 1);
			seg_ring_fit(&ring[i], &a, una[i], next[i]);
		}
	}
	ck_assert_uint_eq(a.refused, 0);
	for (uint32_t i = 0; i < FLOWS; i++)
		seg_ring_free(&ring[i], &a);
	seg_arena_fini(&a);
}

// The delivery rate of a path of more than 4.29 s was that of 4.29 s: times were cut to 32 bits of
// nanoseconds.
TEST(times_of_any_length_are_kept) {
	static const uint64_t ns[] = {
		0, 20 * NS_PER_MS + 1, UINT32_MAX, 12 * NS_PER_S, NS_PER_S * 3600};

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		struct seg_rec r = {0};
		uint64_t unit = ns[i] <= UINT32_MAX ? 1 : 1024;
		struct seg_sample sample;
		uint16_t flags = 0;

		sample = seg_sample(&flags, ns[i], ns[i] / 2, 0, 0);
		seg_rec_start(&r, 5, flags);
		ck_assert_uint_eq(seg_rec_ago_ns(&r, sample.first_tx_ago), ns[i] / unit * unit);
		ck_assert_uint_eq(
			seg_rec_ago_ns(&r, sample.delivered_ago), ns[i] / 2 / unit * unit);
		ck_assert_uint_eq(r.sent_ns, 5);
	}
}
