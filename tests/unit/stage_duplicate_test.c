// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.h"
#include "switch_test.h"

TEST(the_copy_follows_its_packet) {
	static struct tel_packets records[8];
	struct stage_bench b = {.env = {.run_seed = 1, .link_index = STAGE_NO_LINK}};
	struct tel tel;

	tel_memory(&tel, records, 8);
	b.env.tel_packets = &tel;
	ck_assert_int_eq(stage_open(&b, "{duplicate: {rate: 100%}}"), 0);
	struct pkt p = {.size_bytes = 100, .id = 5, .flow_id = 7, .ecn = ECN_ECT0};
	stage_put(&b, &p, 30);
	ck_assert_ptr_eq(stage_take(&b, 29), NULL);
	ck_assert_ptr_eq(stage_take(&b, 30), &p);
	struct pkt *copy = stage_take(&b, 30);
	ck_assert(copy != NULL && copy != &p);
	ck_assert_uint_eq(copy->id, COPY_BIT | 5);
	ck_assert_uint_eq(copy->arrival_ns, 30);
	ck_assert_uint_eq(copy->size_bytes, 100);
	ck_assert_uint_eq(copy->flow_id, 7);
	ck_assert_uint_eq(copy->ecn, ECN_ECT0);
	ck_assert_ptr_eq(stage_take(&b, 30), NULL);
	ck_assert_uint_eq(b.copies.made.pkts, 1);
	ck_assert_uint_eq(b.copies.made.bytes, 100);
	ck_assert(records[0].event == TEL_DUPLICATE && records[0].pkt_id == (COPY_BIT | 5)
		&& records[0].ts_ns == 30);
	stage_live(&b, "rate", "0%", 40);
	stage_put(&b, &p, 40);
	ck_assert_ptr_eq(stage_take(&b, 40), &p);
	ck_assert_ptr_eq(stage_take(&b, 40), NULL);
}

TEST(a_copy_without_memory_is_a_drop) {
	struct stage_bench b = {.env = {.run_seed = 1}, .copies_max = 1};
	struct pkt p[2] = {{.size_bytes = 100}, {.size_bytes = 60, .id = 1}};

	ck_assert_int_eq(stage_open(&b, "{duplicate: {rate: 100%}}"), 0);
	stage_put(&b, &p[0], 1);
	stage_put(&b, &p[1], 2);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(stage_take(&b, 2));
	ck_assert_ptr_eq(stage_take(&b, 2), NULL);
	ck_assert_uint_eq(b.copies.made.pkts, 2);
	ck_assert_uint_eq(b.copies.made.bytes, 160);
	ck_assert_uint_eq(b.no_memory.pkts, 1);
	ck_assert_uint_eq(b.no_memory.bytes, 60);
}

#define DECISIONS 1000000

// Of a million packets with a rate of 10 %: which ones leave twice.
static uint8_t *decisions(const char *text) {
	uint8_t *twice = calloc(DECISIONS, 1);
	struct stage_bench b = {.env = {.run_seed = 4}};

	ck_assert_int_eq(stage_open(&b, text), 0);
	for (uint32_t i = 0; i < DECISIONS; i++) {
		struct pkt p = {.size_bytes = 100, .id = i};

		stage_put(&b, &p, i);
		NEED(stage_take(&b, i) == &p);
		twice[i] = stage_take(&b, i) != NULL;
	}
	stage_close(&b);
	return twice;
}

// The autocovariance of the decisions over the variance p (1 - p).
static double correlation(const uint8_t *x, uint32_t lag, double p) {
	double sum = 0;

	for (uint32_t i = lag; i < DECISIONS; i++)
		sum += (x[i] - p) * (x[i - lag] - p);
	return sum / (DECISIONS - lag) / (p * (1 - p));
}

TEST(a_tenth_independent_of_each_other) {
	uint8_t *x = decisions("{duplicate: {rate: 10%}}");
	double n = DECISIONS, twice = 0;

	for (uint32_t i = 0; i < DECISIONS; i++)
		twice += x[i];
	ck_assert_double_gt(normal_p((twice - 0.1 * n) / sqrt(n * 0.09)), P_LEAST);
	// A correlation of independent numbers is normal with variance 1/n (Bartlett).
	for (uint32_t lag = 1; lag <= 3; lag++)
		ck_assert_double_gt(normal_p(correlation(x, lag, 0.1) * sqrt(n)), P_LEAST);
	free(x);
}

// A decision is that of the packet before with probability c: the mean over n of them has the
// variance p (1 - p) / n * (1 + c) / (1 - c), and the correlation of those k apart is c^k.
TEST(a_tenth_in_rows) {
	uint8_t *x = decisions("{duplicate: {rate: 10%, correlation: 60%}}");
	double n = DECISIONS, twice = 0;

	for (uint32_t i = 0; i < DECISIONS; i++)
		twice += x[i];
	ck_assert_double_gt(normal_p((twice - 0.1 * n) / sqrt(n * 0.09 * 1.6 / 0.4)), P_LEAST);
	ck_assert_double_eq_tol(correlation(x, 1, 0.1), 0.6, 0.01);
	ck_assert_double_eq_tol(correlation(x, 2, 0.1), 0.36, 0.01);
	ck_assert_double_eq_tol(correlation(x, 5, 0.1), 0.07776, 0.01);
	free(x);
}
