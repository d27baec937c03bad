// SPDX-License-Identifier: BSD-3-Clause
// Illinois through the transport: alpha and beta by hand. Smallest RTT 100 ms, largest 200 ms: d1 =
// 1, d2 = 10, d3 = 80 ms.
#include "cc_transport.h"

enum { SSTHRESH, ALPHA, BETA, DA };

#define T0 (20 * MS)

// Acknowledges all that is in flight, rtt_ms after it left: a round trip with one sample.
static void round_of(struct link *l, uint64_t *t_ns, uint64_t rtt_ms) {
	*t_ns += rtt_ms * MS;
	hand_ack_at(l, link_flow(l)->nxt, *t_ns);
}

static struct link *opened(int segs) {
	char group[160];

	snprintf(group, sizeof(group),
		"{cc: {illinois: {initial: %d, abc_limit: 1}}, ack_every: 1, "
		"tlp: no, rto_min: 10s}",
		segs);
	return HAND(.group = group);
}

TEST(alpha_and_beta_follow_the_delay) {
	static const struct {
		uint64_t rtt_ms;
		double alpha, beta;
	} cases[] = {
		{100, 10, 0.125},
		{200, 0.3, 0.5}, // 990 / (99 + 99 x 97 / 3)
		{150, 2970.0 / 5050,
			0.3392857142857143}, // 990 / (99 + 49 x 97 / 3), 1/8 + 3/8 x 4/7
		{110, 2970.0 / 1170, 0.125}, // 990 / (99 + 9 x 97 / 3), d2
		{180, 2970.0 / 7960, 0.5}, // 990 / (99 + 79 x 97 / 3), d3
		{101, 2970.0 / 7960, 0.125}, // d1: alpha waits for five in a row
		{100, 2970.0 / 7960, 0.125},
		{100, 2970.0 / 7960, 0.125},
		{100, 2970.0 / 7960, 0.125},
		{100, 10, 0.125},
	};
	struct link *l = opened(20);
	uint64_t t_ns = T0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		round_of(l, &t_ns, cases[i].rtt_ms);
		OBSERVED_EQ(l, DA, (double)(cases[i].rtt_ms - 100) * 1e6);
		OBSERVED_EQ(l, ALPHA, cases[i].alpha);
		OBSERVED_EQ(l, BETA, cases[i].beta);
	}
}

// da is the mean of a round trip's samples, 110, 130 and 100 ms here, and a round trip ends with
// the first segment sent in it.
TEST(da_is_the_mean_of_a_round_trip) {
	struct link *l = opened(20);
	uint64_t t_ns = T0, una;

	round_of(l, &t_ns, 100);
	una = link_flow(l)->una; // all of the next flight left now
	hand_ack_at(l, una + 1, t_ns + 100 * MS);
	OBSERVED_EQ(l, DA, 0);
	hand_ack_at(l, una + 2, t_ns + 110 * MS);
	hand_ack_at(l, una + 21, t_ns + 130 * MS);
	OBSERVED_EQ(l, DA, 0);
	hand_ack_at(l, una + 22, t_ns + 200 * MS); // left with the first ACK
	OBSERVED_EQ(l, DA, 40e6 / 3);
}

TEST(a_loss_takes_beta_and_avoidance_adds_alpha) {
	struct link *l = opened(40);
	uint64_t t_ns = T0, una;

	round_of(l, &t_ns, 100); // 41
	una = link_flow(l)->una;
	t_ns += 100 * MS;
	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, una, una + 1, una + to, t_ns);
	CWND_EQ(l, 41 * 0.875);
	hand_ack_at(l, link_flow(l)->nxt, t_ns += 100 * MS); // ends recovery
	double before = cwnd(l);

	una = link_flow(l)->una;
	hand_ack_at(l, una + 1, t_ns += 100 * MS);
	CWND_EQ(l, before + 10 / before);
}

TEST(the_ack_that_ends_a_recovery_counts_what_sack_had_reported) {
	struct link *l = opened(40);
	uint64_t t_ns = T0, una;

	round_of(l, &t_ns, 100); // 41
	una = link_flow(l)->una;
	t_ns += 100 * MS;
	for (uint64_t to = 2; to <= 41; to++)
		hand_sack_at(l, una, una + 1, una + to, t_ns);
	CWND_EQ(l, 41 * 0.875);
	ck_assert_uint_eq(link_flow(l)->recover, una + 43); // two left after the first SACKs
	hand_ack_at(l, una + 43, t_ns += 100 * MS); // three of the 43 were not known
	CWND_EQ(l, 41 * 0.875 + 10 * 43 / (41 * 0.875));
}

TEST(no_round_trip_ends_in_a_recovery) {
	static const uint64_t rtts_ms[] = {150, 160, 200};
	struct link *l = opened(40);
	uint64_t t_ns = T0, una;

	round_of(l, &t_ns, 100);
	round_of(l, &t_ns, 200);
	una = link_flow(l)->una;
	for (uint64_t i = 0; i < 3; i++)
		hand_sack_at(l, una, una + 1, una + 2 + i, t_ns + rtts_ms[i] * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	OBSERVED_EQ(l, DA, 100e6);
	hand_ack_at(l, una + 1, t_ns + 300 * MS); // the retransmission: no sample
	OBSERVED_EQ(l, DA, 100e6);
	hand_ack_at(l, link_flow(l)->recover, t_ns + 200 * MS + 200 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_OPEN);
	OBSERVED_EQ(l, DA, (50 + 60 + 100) / 3.0 * 1e6);
}

TEST(below_15_segments_it_is_reno) {
	struct link *l = opened(13);
	uint64_t t_ns = T0;

	round_of(l, &t_ns, 100);
	OBSERVED_EQ(l, ALPHA, 1);
	OBSERVED_EQ(l, BETA, 0.5);
	round_of(l, &t_ns, 100);
	CWND_EQ(l, 15);
	OBSERVED_EQ(l, ALPHA, 1); // that was a round trip of 14
	// It waits for five round trips only if a delay was above d1.
	round_of(l, &t_ns, 100);
	OBSERVED_EQ(l, ALPHA, 10);
	OBSERVED_EQ(l, BETA, 0.125);
}

// A timeout takes beta off ssthresh, once, and until a round trip that began after it is over
// growth is Reno's: the ACK of an original, which shows that the timeout was spurious and gives the
// window back, ends no such round trip. Nor does it leave anything of the delays of before: alpha
// is 10 without a wait for five round trips.
TEST(after_a_timeout_it_is_reno_for_a_round_trip) {
	struct link *l = opened(40);
	uint64_t t_ns = T0, una, sent_ns, fired_ns;
	struct seg s;

	round_of(l, &t_ns, 100);
	round_of(l, &t_ns, 150); // far above d1: alpha is small
	una = link_flow(l)->una;
	round_of(l, &t_ns, 100);
	OBSERVED_EQ(l, BETA, 0.125);
	ck_assert_double_lt(cc_observed(l, ALPHA), 1);
	sent_ns = t_ns;
	una = link_flow(l)->una + 2;
	hand_ack_at(l, una - 1, t_ns + 100 * MS); // ends a round trip
	hand_ack_at(l, una, t_ns + 101 * MS); // a sample of the next one
	double before = cwnd(l);

	while (link_flow(l)->count.timeouts == 0)
		NEED(link_step(l, t_ns + 60 * S));
	fired_ns = l->now_ns;
	CWND_EQ(l, 1);
	OBSERVED_EQ(l, SSTHRESH, 0.875 * before);
	OBSERVED_EQ(l, ALPHA, 1);
	OBSERVED_EQ(l, BETA, 0.5);
	s = hand_ack(l, una + 1, fired_ns + 5 * MS);
	s.tsecr = flow_tsval(sent_ns);
	hand_feed(l, &s, fired_ns + 5 * MS);
	ck_assert_uint_eq(link_flow(l)->count.spurious_timeouts, 1);
	ck_assert_double_ge(cwnd(l), before);
	OBSERVED_EQ(l, ALPHA, 1);
	OBSERVED_EQ(l, BETA, 0.5);
	hand_ack_at(l, link_flow(l)->nxt, fired_ns + 105 * MS);
	OBSERVED_EQ(l, ALPHA, 10);
	OBSERVED_EQ(l, BETA, 0.125);
}
