// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host/seg_delay.h"

#include "test.h"

#include <errno.h>

#define DELAY_NS UINT64_C(10000000)

// Some have a SACK block, which lies behind the header.
static struct seg ack_of(uint32_t i) {
	struct seg s = {.ack = i, .flags = SEG_ACK, .options = SEG_OPT_TS, .tsecr = i};

	if (i % 3 == 0) {
		s.sack_count = 1;
		s.sack[0] = (struct seg_sack){i + 1, i + 2};
	}
	return s;
}

static void put(struct seg_delay *d, uint32_t i, uint64_t now_ns) {
	struct seg s = ack_of(i);
	struct delayed_seg *slot = seg_delay_put(d, i, &s, ECN_ECT0, now_ns);

	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->due_ns, now_ns + DELAY_NS);
}

static void take(struct seg_delay *d, uint32_t i, uint64_t now_ns) {
	const struct delayed_seg *slot = seg_delay_take(d, now_ns);
	struct seg s = ack_of(i);

	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->id, i);
	ck_assert_uint_eq(slot->ecn, ECN_ECT0);
	ck_assert_uint_eq(slot->seg.ack, s.ack);
	ck_assert_uint_eq(slot->seg.tsecr, s.tsecr);
	ck_assert_uint_eq(slot->seg.sack_count, s.sack_count);
	if (s.sack_count > 0)
		ck_assert_mem_eq(&slot->seg.sack[0], &s.sack[0], sizeof(s.sack[0]));
}

TEST(each_leaves_at_its_own_nanosecond) {
	struct seg_delay d;
	struct err err;

	ck_assert_int_eq(seg_delay_init(&d, DELAY_NS, 100, &err), 0);
	for (uint32_t i = 0; i < 10; i++)
		put(&d, i, 1000 * i);
	for (uint32_t i = 0; i < 10; i++) {
		ck_assert_ptr_null(seg_delay_take(&d, DELAY_NS + 1000 * i - 1));
		take(&d, i, DELAY_NS + 1000 * i);
	}
	ck_assert_ptr_null(seg_delay_take(&d, UINT64_MAX));
	seg_delay_fini(&d);
}

TEST(order_is_kept_while_the_ring_wraps) {
	uint32_t in = 0, out = 0;
	struct seg_delay d;
	struct err err;

	ck_assert_int_eq(seg_delay_init(&d, DELAY_NS, 100, &err), 0);
	for (uint32_t round = 0; round < 50; round++) {
		while (in - out < d.slots - round)
			put(&d, in++, round);
		ck_assert_uint_eq(d.count, in - out);
		for (uint32_t n = d.slots / 3 + round; n > 0; n--)
			take(&d, out++, DELAY_NS + round);
	}
	ck_assert_uint_gt(out, 10 * d.slots);
	seg_delay_fini(&d);
}

TEST(a_full_one_takes_no_more) {
	struct seg s = ack_of(1);
	struct seg_delay d;
	struct err err;

	ck_assert_int_eq(seg_delay_init(&d, DELAY_NS, 3000, &err), 0);
	ck_assert_uint_eq(d.slots, 4096);
	ck_assert_uint_eq(seg_delay_bytes(3000), 4096 * sizeof(struct delayed_seg));
	for (uint32_t i = 0; i < d.slots; i++)
		put(&d, i, 0);
	ck_assert_ptr_null(seg_delay_put(&d, 1, &s, ECN_NOT_ECT, 0));
	take(&d, 0, DELAY_NS);
	put(&d, 7, 0);
	seg_delay_fini(&d);
}

TEST(what_does_not_fit_is_refused) {
	struct seg_delay d;
	struct err err;

	ck_assert_int_eq(seg_delay_init(&d, DELAY_NS, UINT64_C(1) << 33, &err), -ENOMEM);
	ck_assert_str_eq(err.msg, "no memory for 8589934592 delayed segments (1099512 MB)");
}
