// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

// 8 Mbit/s is one byte per microsecond; 1518 + 20 B per full-sized frame.
static const struct aqm_env env = {
	.rate_bps = 8000000,
	.base_rtt_ns = 10 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
};

static uint32_t fill(struct aqm_bench *b, struct pkt *pkts, uint32_t n) {
	uint32_t before = b->drops.count;

	for (uint32_t i = 0; i < n; i++)
		aqm_put(b, &pkts[i], 0);
	return n - (b->drops.count - before);
}

// How many full-sized frames fit, for each way of writing a limit.
TEST(limits_in_every_unit) {
	static const struct {
		const char *params;
		uint32_t fit;
	} cases[] = {
		{"{limit: 4pkt}", 4}, {"{limit: 6072B}", 4}, // frames only: 4 * 1518
		{"{limit: 6071B}", 3}, {"{limit: 10ms}", 6}, // 10000 B on the link, 6 * 1538 = 9228
		{"{limit: 1BDP}", 6}, {"{limit: 0.5BDP}", 3}, // 5000 B
		{"{limit: 9228us}", 6}, // to the byte
		{"{limit: 9227us}", 5}, {"{}", 6}, // 1BDP
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pkt *pkts = pkts_new(10, MTU);
		struct aqm_bench b;

		ck_assert_msg(aqm_open(&b, "fifo", cases[i].params, &env) == 0, "%s", b.err.msg);
		ck_assert_msg(fill(&b, pkts, 10) == cases[i].fit, "%s", cases[i].params);
		aqm_close(&b);
		test_close(pkts);
	}
}

TEST(tail_drops_the_newest_in_order) {
	struct pkt *pkts = pkts_new(5, 1000);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "fifo", "{limit: 3pkt}", &env), 0);
	ck_assert_uint_eq(fill(&b, pkts, 5), 3);
	ck_assert_ptr_eq(pkt_list_pop(&b.drops), &pkts[3]);
	ck_assert_ptr_eq(pkt_list_pop(&b.drops), &pkts[4]);
	ck_assert_uint_eq(pkts[3].drop_reason, DROP_QUEUE_FULL);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert_ptr_eq(b.ops->dequeue(b.q, 0, &b.drops), &pkts[i]);
	ck_assert_ptr_null(b.ops->dequeue(b.q, 0, &b.drops));
}

TEST(head_drops_the_oldest_until_it_fits) {
	struct pkt *pkts = pkts_new(5, 500);
	struct aqm_bench b;

	pkts[4].size_bytes = 1518;
	ck_assert_int_eq(aqm_open(&b, "fifo", "{limit: 2000B, drop: head}", &env), 0);
	ck_assert_uint_eq(fill(&b, pkts, 4), 4);
	aqm_put(&b, &pkts[4], 0); // needs 1518 of 2000: three of the four must go
	ck_assert_uint_eq(b.drops.count, 4);
	ck_assert_ptr_eq(aqm_take(&b, 0), &pkts[4]);
	ck_assert_ptr_null(aqm_take(&b, 0));
}

TEST(head_drop_leaves_out_what_never_fits) {
	struct pkt *pkts = pkts_new(2, 1000);
	struct aqm_bench b;

	pkts[1].size_bytes = 3000; // larger than the MTU of the run
	ck_assert_int_eq(aqm_open(&b, "fifo", "{limit: 2000B, drop: head}", &env), 0);
	aqm_put(&b, &pkts[0], 0);
	aqm_put(&b, &pkts[1], 0);
	ck_assert_uint_eq(b.drops.count, 2);
	ck_assert_ptr_null(aqm_take(&b, 0));
}

TEST(limits_that_cannot_work_are_refused) {
	struct aqm_env no_delay = env;
	struct aqm_bench b;

	no_delay.base_rtt_ns = 0;
	ck_assert_int_lt(aqm_open(&b, "fifo", "{limit: 1BDP}", &no_delay), 0);
	ck_assert_ptr_nonnull(strstr(b.err.msg, "base RTT"));
	aqm_close(&b);
	ck_assert_int_lt(aqm_open(&b, "fifo", "{limit: 1517B}", &env), 0);
	ck_assert_str_eq(
		b.err.msg, "limit: no full-sized frame fits: it is 1518 B, the limit 1517 B");
	aqm_close(&b);
	ck_assert_int_eq(aqm_open(&b, "fifo", "{limit: 1518B}", &env), 0);
}

// The buffer of CoreScale: 375 MB are 250000 packets of 1500 B, to the packet.
TEST(a_limit_of_375_megabytes_is_exact) {
	struct pkt *pkts = pkts_new(250010, 1500);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "fifo", "{limit: 375MB}", &env), 0);
	ck_assert_uint_eq(fill(&b, pkts, 250010), 250000);
	ck_assert_uint_eq(b.ops->backlog(b.q).bytes, 375000000);
}
