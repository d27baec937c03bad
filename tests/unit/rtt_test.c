// SPDX-License-Identifier: BSD-3-Clause
// RFC 6298, section 2: the estimator's arithmetic, to the nanosecond.
#include "sender/tcp/rtt.h"
#include "test.h"

#define MS NS_PER_MS
#define FLOOR_NS (200 * MS)

static struct rtt fresh(void) {
	struct rtt r;

	rtt_init(&r, NS_PER_S);
	return r;
}

TEST(starts_without_a_sample_at_the_initial_timeout) {
	struct rtt r = fresh();

	ck_assert_uint_eq(r.srtt_ns, 0);
	ck_assert_uint_eq(r.min_ns, NEVER_NS);
	ck_assert_uint_eq(r.rto_ns, NS_PER_S);
}

TEST(first_sample_sets_srtt_and_half_of_it_as_variance) {
	struct rtt r = fresh();

	rtt_sample(&r, 100 * MS, 100 * MS, MS);
	ck_assert_uint_eq(r.srtt_ns, 100 * MS);
	ck_assert_uint_eq(r.rttvar_ns, 50 * MS);
	ck_assert_uint_eq(r.rto_ns, 300 * MS); // srtt + 4 rttvar
	ck_assert_uint_eq(r.min_ns, 100 * MS);
}

// Of an ACK's segments the oldest counts for srtt, the newest for the smallest RTT.
TEST(the_smallest_is_of_the_newest_segment) {
	struct rtt r = fresh();

	rtt_sample(&r, 100 * MS, 80 * MS, MS);
	rtt_sample(&r, 180 * MS, 90 * MS, MS);
	ck_assert_uint_eq(r.srtt_ns, 110 * MS);
	ck_assert_uint_eq(r.min_ns, 80 * MS);
}

// rttvar = 3/4 rttvar + 1/4 |srtt - r| with the old srtt, then srtt = 7/8 srtt + 1/8 r.
TEST(later_samples_weigh_an_eighth_and_a_quarter) {
	struct rtt r = fresh();

	rtt_sample(&r, 100 * MS, 100 * MS, MS);
	rtt_sample(&r, 180 * MS, 180 * MS, MS);
	ck_assert_uint_eq(r.srtt_ns, 110 * MS);
	ck_assert_uint_eq(r.rttvar_ns, 57500000); // 37.5 + 20 ms
	ck_assert_uint_eq(r.rto_ns, 340 * MS);
	rtt_sample(&r, 30 * MS, 30 * MS, MS);
	ck_assert_uint_eq(r.srtt_ns, 100 * MS);
	ck_assert_uint_eq(r.rttvar_ns, 63125000); // 43.125 + 20 ms
	ck_assert_uint_eq(r.min_ns, 30 * MS);
}

// A defect of the first version: it ended at 7/8 of the RTT, as it decayed the new sample too.
TEST(constant_samples_converge_to_themselves) {
	struct rtt r = fresh();

	rtt_sample(&r, 500 * MS, 500 * MS, MS);
	for (int i = 0; i < 300; i++)
		rtt_sample(&r, 20 * MS + 3, 20 * MS + 3, MS);
	ck_assert_uint_ge(r.srtt_ns, 20 * MS + 3);
	ck_assert_uint_le(r.srtt_ns, 20 * MS + 3 + 8); // integer division: within one gain step
	ck_assert_uint_le(r.rttvar_ns, 8);
	ck_assert_uint_eq(r.min_ns, 20 * MS + 3);
}

// A steady path longer than the floor: the timeout must not fall to srtt itself.
TEST(timeout_has_a_floor_above_srtt) {
	struct rtt r = fresh();

	rtt_sample(&r, 10 * MS, 10 * MS, FLOOR_NS);
	ck_assert_uint_eq(r.rto_ns, 10 * MS + FLOOR_NS);
	rtt_sample(&r, 1000 * MS, 1000 * MS, FLOOR_NS);
	ck_assert_uint_eq(r.rto_ns, r.srtt_ns + 4 * r.rttvar_ns);
}

// The integer law against real numbers on a random walk.
TEST(stays_within_rounding_of_real_arithmetic) {
	struct rtt r = fresh();
	double srtt = 0, var = 0;
	uint64_t x = 12345;

	for (int i = 0; i < 10000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint64_t sample = 5 * MS + (x >> 33) % (50 * MS);
		double s = (double)sample, diff = s > srtt ? s - srtt : srtt - s;

		var = i == 0 ? s / 2 : 0.75 * var + 0.25 * diff;
		srtt = i == 0 ? s : 0.875 * srtt + 0.125 * s;
		rtt_sample(&r, sample, sample, MS);
		ck_assert_double_eq_tol((double)r.srtt_ns, srtt, 10);
		ck_assert_double_eq_tol((double)r.rttvar_ns, var, 20);
	}
}
