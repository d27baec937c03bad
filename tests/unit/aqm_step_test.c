// SPDX-License-Identifier: BSD-3-Clause
// DCTCP's step: marks above a length or a time, and nothing below it.
#include "switch_test.h"

static const struct aqm_env env = {
	.rate_bps = 80000000,
	.base_rtt_ns = 10 * MS,
	.mtu_bytes = 1000,
};

static void open_step(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "step", params, &env) == 0, "%s", b->err.msg);
}

// The paper, section 3.1: an arrival is marked if the queue is longer than K.
TEST(a_length_marks_on_arrival) {
	static const char *const cases[] = {
		"{limit: 100pkt, threshold: 20pkt}", "{limit: 100pkt, threshold: 20kB}",
		"{limit: 100pkt, threshold: 0.2BDP}", // of 100 kB
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct pkt *pkts = pkts_new(60, 1000);
		struct aqm_bench b;

		open_step(&b, cases[k]);
		for (int i = 0; i < 40; i++) {
			pkts[i].ecn = i % 2 > 0 ? ECN_ECT0 : ECN_ECT1;
			aqm_put(&b, &pkts[i], 0);
			ck_assert_uint_eq((pkts[i].flags & PKT_MARKED) != 0, i >= 20);
			ck_assert_double_eq(aqm_observed(&b, 0), i >= 20);
		}
		for (int i = 0; i < 21; i++)
			ck_assert_ptr_eq(aqm_take(&b, MS), &pkts[i]);
		for (int i = 40; i < 42; i++) { // the 20th and the 21st
			pkts[i].ecn = ECN_ECT0;
			aqm_put(&b, &pkts[i], MS);
			ck_assert_uint_eq(pkts[i].ecn, i == 40 ? ECN_ECT0 : ECN_CE);
		}
		ck_assert_uint_eq(b.drops.count, 0);
		aqm_close(&b);
		test_close(pkts);
	}
}

TEST(a_time_marks_on_departure) {
	struct pkt *pkts = pkts_new(3, 1000);
	struct aqm_bench b;

	open_step(&b, "{limit: 100pkt, threshold: 1ms}");
	for (int i = 0; i < 3; i++) {
		pkts[i].ecn = ECN_ECT0;
		aqm_put(&b, &pkts[i], 0);
	}
	ck_assert_uint_eq(aqm_take(&b, MS)->ecn, ECN_ECT0);
	ck_assert_uint_eq(aqm_take(&b, MS + 1)->ecn, ECN_CE);
	ck_assert_uint_eq(pkts[1].flags & PKT_MARKED, PKT_MARKED);
	ck_assert_uint_eq(pkts[2].ecn, ECN_ECT0);
}

// RFC 8257, section 5: what a switch that makes the step with RED does to packets that are not ECN
// capable.
TEST(packets_that_cannot_be_marked_stay_or_are_dropped) {
	for (int k = 0; k < 4; k++) {
		struct pkt *pkts = pkts_new(10, 1000);
		bool drop = k % 2 > 0, sojourn = k > 1;
		char params[128];
		struct aqm_bench b;

		snprintf(params, sizeof(params), "{limit: 100pkt, threshold: %s, others: %s}",
			sojourn ? "1ms" : "4pkt", drop ? "drop" : "keep");
		open_step(&b, params);
		for (int i = 0; i < 10; i++) {
			pkts[i].ecn = i == 7 ? ECN_CE : ECN_NOT_ECT;
			aqm_put(&b, &pkts[i], i < 4 ? 3 * MS : 0);
		}
		if (!sojourn) {
			ck_assert_uint_eq(b.drops.count, drop ? 5 : 0);
		} else {
			for (int i = 0; i < 4; i++)
				ck_assert_ptr_eq(aqm_take(&b, 3 * MS), &pkts[i]);
			// The six others have waited for 3 ms: only the one with CE is not dropped.
			ck_assert_ptr_eq(aqm_take(&b, 3 * MS), &pkts[drop ? 7 : 4]);
			ck_assert_uint_eq(b.drops.count, drop ? 3 : 0);
			if (drop)
				ck_assert_ptr_null(aqm_take(&b, 3 * MS));
		}
		ck_assert_uint_eq(pkts[7].flags & PKT_MARKED, 0); // others marked it
		for (const struct pkt *p = b.drops.head; p != NULL; p = p->next)
			ck_assert_uint_eq(p->drop_reason, DROP_AQM);
		aqm_close(&b);
		test_close(pkts);
	}
}

TEST(the_limit_comes_first) {
	struct pkt *pkts = pkts_new(3, 1000);
	struct aqm_bench b;

	open_step(&b, "{limit: 2pkt, threshold: 1pkt, others: drop}");
	for (int i = 0; i < 3; i++) {
		pkts[i].ecn = ECN_ECT0;
		aqm_put(&b, &pkts[i], 0);
	}
	ck_assert_uint_eq(pkts[2].drop_reason, DROP_QUEUE_FULL);
	ck_assert_uint_eq(pkts[2].flags & PKT_MARKED, 0);
}

TEST(a_bdp_without_a_round_trip_is_refused) {
	struct aqm_env no_rtt = env;
	struct aqm_bench b;

	no_rtt.base_rtt_ns = 0;
	ck_assert_int_lt(aqm_open(&b, "step", "{limit: 10pkt}", &no_rtt), 0);
	ck_assert_str_eq(b.err.msg,
		"threshold: a BDP needs a base RTT, but its paths have no delay; write a "
		"threshold such as 65pkt, 100kB or 1ms");
}
