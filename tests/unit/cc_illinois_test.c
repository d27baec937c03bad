// SPDX-License-Identifier: BSD-3-Clause
// Illinois through the transport: alpha and beta by hand. Smallest RTT 100 ms, largest 200 ms: d1 = 1, d2 = 10, d3 = 80 ms.
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
		"{cc: {illinois: {initial: %d, abc_limit: 1}}, ack_every: 1, tlp: no, rto_min: 10s}",
		segs);
	return HAND(.group = group);
}

START_TEST(alpha_and_beta_follow_the_delay) {
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
	link_close(l);
}
END_TEST

START_TEST(a_loss_takes_beta_and_avoidance_adds_alpha) {
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
	link_close(l);
}
END_TEST

START_TEST(below_15_segments_it_is_reno) {
	struct link *l = opened(13);
	uint64_t t_ns = T0;

	round_of(l, &t_ns, 100);
	OBSERVED_EQ(l, ALPHA, 1);
	OBSERVED_EQ(l, BETA, 0.5);
	link_close(l);
}
END_TEST

TEST_MAIN(alpha_and_beta_follow_the_delay, a_loss_takes_beta_and_avoidance_adds_alpha,
	below_15_segments_it_is_reno)
