// SPDX-License-Identifier: BSD-3-Clause
// FAST through the transport: the average and the law by hand. baseRTT is 100 ms.
#include "cc_transport.h"

enum { SSTHRESH, BASE, RTT };
enum { SLOW_START, AVOIDANCE };

#define T0 (20 * MS)
#define MS_F 1e6

// Opens a flow that sends `segs` segments at once; `avoid`: slow start is over.
static struct link *opened(int segs, const char *more, bool avoid) {
	struct cc_loss loss = {.inflight_segs = 1, .lost_segs = 1};
	char group[200];
	struct link *l;

	snprintf(group, sizeof(group),
		"{cc: {fast: {initial: %d, abc_limit: 0%s}}, ack_every: 1, tlp: no, rto_min: 10s}",
		segs, more);
	l = HAND(.group = group);
	if (avoid) { // after a loss some time ago
		cc_find("fast")->on_loss(link_flow(l)->cc_state, NULL, &loss, &link_flow(l)->out);
		link_flow(l)->out.cwnd_segs = segs;
	}
	return l;
}

// Acknowledges all that is in flight, rtt_ms after it left: a round trip with one sample.
static void round_of(struct link *l, uint64_t *t_ns, uint64_t rtt_ms) {
	*t_ns += rtt_ms * MS;
	hand_ack_at(l, link_flow(l)->nxt, *t_ns);
}

TEST(the_average_weighs_by_the_window) {
	static const struct {
		int segs;
		double weight;
	} cases[] = {{4, 0.25}, {12, 0.25}, {20, 0.15}, {60, 0.05}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = opened(cases[i].segs, "", true);
		uint64_t t_ns = T0;

		round_of(l, &t_ns, 100);
		OBSERVED_EQ(l, RTT, 100 * MS_F);
		round_of(l, &t_ns, 140);
		OBSERVED_EQ(l, RTT, (100 + 40 * cases[i].weight) * MS_F);
		OBSERVED_EQ(l, BASE, 100 * MS_F);
		link_close(l);
	}
}

// 20 segments: after RTTs of 100 and 140 ms the average is 106 ms. Only every second round trip
// changes the window.
TEST(the_law_moves_every_second_round_trip) {
	static const struct {
		const char *more;
		double alpha, gamma;
	} cases[] = {{"", 20, 0.5}, {", alpha: 5", 5, 0.5}, {", alpha: 1, gamma: 1", 1, 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = opened(20, cases[i].more, true);
		double gamma = cases[i].gamma, next;
		uint64_t t_ns = T0;

		round_of(l, &t_ns, 100);
		CWND_EQ(l, 20);
		round_of(l, &t_ns, 140);
		next = (1 - gamma) * 20 + gamma * (100.0 / 106 * 20 + cases[i].alpha);
		CWND_EQ(l, next);
		OBSERVED_EQ(l, SSTHRESH, next);
		round_of(l, &t_ns, 140);
		CWND_EQ(l, next);
		ck_assert_int_eq(cc_mode(l), AVOIDANCE);
		round_of(l, &t_ns, 140);
		ck_assert_double_ne(cwnd(l), next);
		link_close(l);
	}
}

TEST(a_step_doubles_at_most_and_leaves_two) {
	struct link *l = opened(20, ", alpha: 1000", true);
	uint64_t t_ns = T0;

	round_of(l, &t_ns, 100);
	round_of(l, &t_ns, 100);
	CWND_EQ(l, 40);
	link_close(l);

	l = opened(3, ", alpha: 1, gamma: 1", true);
	t_ns = T0;
	round_of(l, &t_ns, 100);
	round_of(l, &t_ns, 2100); // an average of 600 ms: 3/6 + 1
	CWND_EQ(l, 2);
}

// 40 segments and an average of 103.75 ms: 1.45 queued. With 107.5 ms 2.79, more than alpha.
TEST(slow_start_ends_when_alpha_are_queued) {
	struct link *l = opened(20, ", alpha: 2", false);
	uint64_t t_ns = T0;

	round_of(l, &t_ns, 100);
	CWND_EQ(l, 40);
	round_of(l, &t_ns, 150);
	CWND_EQ(l, 80);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	link_close(l);

	l = opened(20, ", alpha: 2", false);
	t_ns = T0;
	round_of(l, &t_ns, 100);
	round_of(l, &t_ns, 200);
	CWND_EQ(l, 40);
	OBSERVED_EQ(l, SSTHRESH, 40);
	ck_assert_int_eq(cc_mode(l), AVOIDANCE);
	round_of(l, &t_ns, 200);
	CWND_EQ(l, 40); // two round trips from there
	round_of(l, &t_ns, 200);
	ck_assert_double_lt(cwnd(l), 40);
}

TEST(a_loss_halves_and_suspends) {
	struct link *l = opened(40, "", true);
	uint64_t t_ns = T0, una;

	round_of(l, &t_ns, 100);
	una = link_flow(l)->una;
	t_ns += 100 * MS;
	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, una, una + 1, una + to, t_ns);
	CWND_EQ(l, 20);
	OBSERVED_EQ(l, SSTHRESH, 20);
	hand_ack_at(l, una + 1, t_ns += 100 * MS); // still recovery
	CWND_EQ(l, 20);
	hand_ack_at(l, link_flow(l)->nxt, t_ns += 100 * MS); // ends it
	CWND_EQ(l, 20);
	round_of(l, &t_ns, 100);
	CWND_EQ(l, 20);
	round_of(l, &t_ns, 100);
	ck_assert_double_gt(cwnd(l), 20);
}

TEST(a_timeout_is_renos) {
	cc_check_reno_without_marks(
		"{cc: {fast: {initial: 4}}, ack_every: 1, tlp: no, rto_min: 200ms}", SSTHRESH);
}
