// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

static uint32_t lost(
	const char *text, const char *name, uint64_t seed, uint32_t n, uint8_t *which) {
	struct stage_bench b = {.env = {.name = name, .run_seed = seed}};
	struct pkt *pkts = pkts_new(n, 100);

	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	for (uint32_t i = 0; i < n; i++) {
		stage_put(&b, &pkts[i], i);
		struct pkt *p = stage_take(&b, i);
		NEED(p == NULL ? pkts[i].drop_reason == DROP_LOSS : p == &pkts[i]);
		NEED(pkts[i].arrival_ns == i);
		if (which != NULL)
			which[i] = p == NULL;
	}
	uint32_t count = b.drops.count;
	stage_close(&b);
	test_close(pkts);
	return count;
}

TEST(rate_is_exact_at_its_ends) {
	ck_assert_uint_eq(lost("{loss: {rate: 0%}}", "a", 1, 100000, NULL), 0);
	ck_assert_uint_eq(lost("{loss: {rate: 100%}}", "a", 1, 100000, NULL), 100000);
}

// 0.74 % of 200000: 1480, five standard deviations are 192.
TEST(rate_is_met_and_each_name_has_its_own_dice) {
	static uint8_t a[200000], b[200000], c[200000];
	uint32_t n = lost("{loss: {rate: 0.74%}}", "forward.loss", 1, 200000, a);
	uint32_t both = 0;

	ck_assert_uint_ge(n, 1480 - 192);
	ck_assert_uint_le(n, 1480 + 192);
	ck_assert_uint_eq(lost("{loss: {rate: 0.74%}}", "forward.loss", 1, 200000, b), n);
	ck_assert_int_eq(memcmp(a, b, sizeof(a)), 0);
	lost("{loss: {rate: 0.74%}}", "reverse.loss", 1, 200000, b);
	lost("{loss: {rate: 0.74%}}", "forward.loss", 2, 200000, c);
	for (uint32_t i = 0; i < 200000; i++)
		both += (a[i] & b[i]) + (a[i] & c[i]);
	ck_assert_uint_lt(both, 60); // 2 * 11 expected of independent draws
}

// Losses do not come in runs: the share of losses right after a loss is the rate.
TEST(losses_are_independent) {
	static uint8_t a[200000];
	uint32_t n = lost("{loss: {rate: 10%}}", "x", 3, 200000, a);
	uint32_t pairs = 0;

	for (uint32_t i = 1; i < 200000; i++)
		pairs += a[i] & a[i - 1];
	ck_assert_uint_ge(pairs, n / 10 - 220);
	ck_assert_uint_le(pairs, n / 10 + 220);
}

TEST(higher_rate_loses_the_same_packets_and_more) {
	static uint8_t a[100000], b[100000];

	lost("{loss: {rate: 1%}}", "x", 3, 100000, a);
	lost("{loss: {rate: 2%}}", "x", 3, 100000, b);
	for (uint32_t i = 0; i < 100000; i++)
		NEED(!a[i] || b[i]);
}

// One draw per packet at rate 0 too: once its rate is set, a run without loss before loses the
// packets that a run at that rate loses.
TEST(what_is_lost_does_not_depend_on_earlier_rates) {
	static uint8_t always[2000];
	struct stage_bench b = {.env = {.name = "x", .run_seed = 3}};
	struct pkt *pkts = pkts_new(2000, 100);

	lost("{loss: {rate: 10%}}", "x", 3, 2000, always);
	ck_assert_int_eq(stage_open(&b, "{loss: {rate: 0}}"), 0);
	for (uint32_t i = 0; i < 2000; i++) {
		uint64_t drops = b.drops.count;

		if (i == 1000)
			stage_live(&b, "rate", "10%", i);
		stage_put(&b, &pkts[i], i);
		NEED(b.drops.count - drops == (i < 1000 ? 0 : always[i]));
	}
}

TEST(losses_are_told) {
	static struct tel_packets record[4];
	static struct tel_header header;
	struct tel packets = {.ring = &header,
		.records = (uint8_t *)record,
		.record_size = sizeof(record[0]),
		.limit = 4,
		.mask = 3};
	struct stage_bench b = {.env = {.tel_packets = &packets,
					.path_index = 3,
					.stage_index = 2,
					.link_index = STAGE_NO_LINK}};
	struct pkt *pkts = pkts_new(2, 100);

	ck_assert_int_eq(stage_open(&b, "{loss: {rate: 100%}}"), 0);
	pkts[1].flow_id = 5;
	pkts[1].ecn = ECN_ECT1;
	stage_put(&b, &pkts[0], 10);
	stage_put(&b, &pkts[1], 20);
	ck_assert_uint_eq(packets.written, 2);
	const struct tel_packets want = {
		.ts_ns = 20,
		.flow_id = 5,
		.pkt_id = 1,
		.size_bytes = 100,
		.event = TEL_DROP,
		.reason = DROP_LOSS,
		.link = STAGE_NO_LINK,
		.ecn = ECN_ECT1,
		.path = 3,
		.stage = 2,
	};
	ck_assert_mem_eq(&record[1], &want, sizeof(want));
}

TEST(rate_changes_while_running) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(30, 100);

	ck_assert_int_eq(stage_open(&b, "{loss: {rate: 0}}"), 0);
	for (uint32_t i = 0; i < 30; i++) {
		if (i == 10)
			stage_live(&b, "rate", "100%", i);
		if (i == 20)
			stage_live(&b, "rate", "0%", i);
		stage_put(&b, &pkts[i], i);
		ck_assert_uint_eq(b.drops.count, i < 10 ? 0 : i < 20 ? i - 9 : 10);
	}
	ck_assert_uint_eq(b.ops->next_ns(b.st), 0);
	ck_assert_ptr_eq(stage_take(&b, 0), &pkts[0]);
	ck_assert_ptr_null(stage_take(&b, 0)); // the next came at 1
	ck_assert_uint_eq(b.ops->next_ns(b.st), 1);
}
