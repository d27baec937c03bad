// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

// The MTU of the last message, whose size is 74 bytes.
static uint32_t reported;

static struct pkt *answer(void *ctx, const struct pkt *p, uint32_t mtu) {
	struct pkt *copy = stage_make(ctx, p);

	reported = mtu;
	copy->size_bytes = 74;
	copy->flags = PKT_TOO_BIG;
	return copy;
}

// An IP packet of 1400 bytes is in a frame of 1418 with FCS.
TEST(a_larger_packet_is_dropped_and_answered) {
	struct stage_bench b = {.owner.too_big = answer};
	struct pkt fits = {.size_bytes = 1418}, large = {.size_bytes = 1419, .id = 7};
	struct pkt *p;

	ck_assert_int_eq(stage_open(&b, "{mtu: {mtu: 1400B}}"), 0);
	stage_put(&b, &fits, 10);
	ck_assert_ptr_eq(stage_take(&b, 10), &fits);
	stage_put(&b, &large, 20);
	ck_assert_ptr_eq(b.drops.head, &large);
	ck_assert_int_eq(large.drop_reason, DROP_TOO_BIG);
	p = stage_take(&b, 20);
	ck_assert(p != NULL && (p->flags & PKT_TOO_BIG) != 0);
	ck_assert_uint_eq(p->id, 7 | COPY_BIT);
	ck_assert_uint_eq(reported, 1400);
	ck_assert_uint_eq(b.copies.made.pkts, 1);
	ck_assert_uint_eq(b.copies.made.bytes, 74);
}

// Nor is a message about a message made.
TEST(a_black_hole_says_nothing) {
	struct stage_bench b = {.owner.too_big = answer};
	struct pkt large = {.size_bytes = 1419};

	ck_assert_int_eq(stage_open(&b, "{mtu: {mtu: 1400B, black_hole: yes}}"), 0);
	stage_put(&b, &large, 20);
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_ptr_null(stage_take(&b, 20));
	stage_close(&b);
	struct stage_bench c = {.owner.too_big = answer};
	struct pkt message = {.size_bytes = 1298, .flags = PKT_TOO_BIG};

	ck_assert_int_eq(stage_open(&c, "{mtu: {mtu: 600B}}"), 0);
	stage_put(&c, &message, 20);
	ck_assert_uint_eq(c.drops.count, 1);
	ck_assert_ptr_null(stage_take(&c, 20));
}
