// SPDX-License-Identifier: BSD-3-Clause
// BBR's measure of ACK aggregation: exact excesses of ACKs at exact times. 1000 segments per
// second.
#include "sender/cc/extra_acked.h"

#include "test.h"

#define MSS_BITS 8000
#define RATE_BPS 8e6

static void add(struct extra_acked *e, uint32_t segs, uint64_t now_ms, double cwnd_segs) {
	struct cc_ack ack = {.now_ns = now_ms * NS_PER_MS, .acked_segs = segs};

	extra_acked_add(e, &ack, RATE_BPS, MSS_BITS, cwnd_segs);
}

TEST(what_a_batch_brings_beyond_the_rate) {
	struct extra_acked e = {0};

	add(&e, 20, 10, 100); // 10 ms without an ACK: the interval begins here
	ck_assert_double_eq(extra_acked_segs(&e), 20);
	add(&e, 30, 20, 100); // 10 of them are the rate's
	ck_assert_double_eq(extra_acked_segs(&e), 40);
	add(&e, 15, 100, 100); // 50 in 90 ms: ACKs have fallen behind
	add(&e, 50, 110, 100);
	ck_assert_double_eq(extra_acked_segs(&e), 55);
	extra_acked_restart(&e, 120 * NS_PER_MS);
	add(&e, 80, 120, 60); // no more than a window
	ck_assert_double_eq(extra_acked_segs(&e), 60);
}

TEST(an_excess_lasts_five_to_ten_rounds) {
	for (int into = 0; into < EXTRA_ROUNDS; into++) { // rounds of its half that were over
		struct extra_acked e = {0};

		for (int i = 0; i < into; i++)
			extra_acked_round(&e, EXTRA_ROUNDS);
		add(&e, 20, 10, 100);
		for (int i = into; i < 2 * EXTRA_ROUNDS - 1; i++) {
			extra_acked_round(&e, EXTRA_ROUNDS);
			ck_assert_double_eq(extra_acked_segs(&e), 20);
		}
		extra_acked_round(&e, EXTRA_ROUNDS);
		ck_assert_double_eq(extra_acked_segs(&e), 0);
	}
}

TEST(a_long_interval_ends) {
	struct extra_acked e = {0};

	add(&e, EXTRA_SEGS_MAX - 100, 10, 1e9);
	add(&e, 100, 20, 1e9);
	ck_assert_uint_eq(e.segs, 100);
	ck_assert_uint_eq(e.start_ns, 20 * NS_PER_MS);
}
