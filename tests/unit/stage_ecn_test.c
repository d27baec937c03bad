// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.h"
#include "switch_test.h"

// The codepoint with which a packet of `ecn` leaves.
static uint8_t after(struct stage_bench *b, uint8_t ecn, uint64_t t_ns) {
	struct pkt p = {.size_bytes = 100, .ecn = ecn};

	stage_put(b, &p, t_ns);
	NEED(stage_take(b, t_ns) == &p && p.arrival_ns == t_ns);
	return p.ecn;
}

TEST(codepoints_become_what_is_written) {
	static const struct {
		const char *text;
		uint8_t not_ect, ect1, ect0, ce;
	} cases[] = {
		{"{ecn: {}}", ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE},
		{"{ecn: {ect0: not_ect, ect1: not_ect, ce: not_ect}}", 0, 0, 0, 0},
		{"{ecn: {ce: ect0}}", ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_ECT0},
		{"{ecn: {ect1: ect0}}", ECN_NOT_ECT, ECN_ECT0, ECN_ECT0, ECN_CE},
		{"{ecn: {ect0: ect1, ect1: ect0}}", ECN_NOT_ECT, ECN_ECT0, ECN_ECT1, ECN_CE},
		{"{ecn: {not_ect: ect0, ect0: ce}}", ECN_ECT0, ECN_ECT1, ECN_CE, ECN_CE},
		{"{ecn: {ect0: ce, fraction: 0%}}", ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};

		ck_assert_int_eq(stage_open(&b, cases[i].text), 0);
		ck_assert_uint_eq(after(&b, ECN_NOT_ECT, 1), cases[i].not_ect);
		ck_assert_uint_eq(after(&b, ECN_ECT1, 2), cases[i].ect1);
		ck_assert_uint_eq(after(&b, ECN_ECT0, 3), cases[i].ect0);
		ck_assert_uint_eq(after(&b, ECN_CE, 4), cases[i].ce);
		ck_assert(!b.ops->needs->random(b.st));
		stage_close(&b);
	}
}

TEST(a_fraction_of_packets_is_changed) {
	struct stage_bench b = {.env = {.run_seed = 1}};
	double n = 1e6, changed = 0;

	ck_assert_int_eq(stage_open(&b, "{ecn: {ect0: not_ect, fraction: 3%}}"), 0);
	ck_assert(b.ops->needs->random(b.st));
	for (uint32_t i = 0; i < n; i++)
		changed += after(&b, ECN_ECT0, i) == ECN_NOT_ECT;
	ck_assert_double_gt(normal_p((changed - 0.03 * n) / sqrt(n * 0.03 * 0.97)), P_LEAST);
	stage_live(&b, "fraction", "100%", 2000000);
	for (uint32_t i = 0; i < 1000; i++)
		ck_assert_uint_eq(after(&b, ECN_ECT0, 2000000), ECN_NOT_ECT);
	stage_live(&b, "ect0", "ce", 3000000);
	ck_assert_uint_eq(after(&b, ECN_ECT0, 3000000), ECN_CE);
}
