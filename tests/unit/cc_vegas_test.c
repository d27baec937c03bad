// SPDX-License-Identifier: BSD-3-Clause
// Vegas through the transport. The tuples are those of ns-3's test of its own: windows and RTTs,
// baseRTT 100 ms.
#include "cc_transport.h"

enum { SSTHRESH, DIFF, BASE };
enum { SLOW_START, AVOIDANCE };

#define T0 (20 * MS) // the handshake is over, the initial window leaves
#define BASE_NS (100 * MS)

// Opens a flow that sends `segs` segments at once; `avoid`: ssthresh is half of them.
static struct link *opened(int segs, bool avoid) {
	struct cc_loss loss = {.inflight_segs = 1, .lost_segs = 1};
	char group[160];
	struct link *l;

	snprintf(group, sizeof(group),
		"{cc: {vegas: {initial: %d, abc_limit: 1}}, mss: 512B, ack_every: 1, tlp: no, "
		"rto_min: 10s}",
		segs);
	l = HAND(.group = group);
	if (avoid) { // after a loss some time ago
		cc_find("vegas")->on_loss(link_flow(l)->cc_state, NULL, &loss, &link_flow(l)->out);
		link_flow(l)->out.cwnd_segs = segs;
	}
	return l;
}

// One ACK at baseRTT, which also ends the first round. Then a round of four ACKs that take rtt_ns;
// the last one is for the first segment sent in it.
static void two_rounds(struct link *l, uint64_t rtt_ns) {
	uint64_t flight = link_flow(l)->nxt;

	hand_ack_at(l, 1, T0 + BASE_NS);
	ck_assert_uint_gt(link_flow(l)->nxt, flight);
	hand_ack_at(l, 2, T0 + rtt_ns);
	hand_ack_at(l, 3, T0 + rtt_ns);
	hand_ack_at(l, flight, T0 + rtt_ns);
	hand_ack_at(l, flight + 1, T0 + BASE_NS + rtt_ns);
	ck_assert_double_eq(cc_observed(l, BASE), 100e6);
}

// diff = trunc(38 x 0.06) = 2 > gamma: the window goes to trunc(38 / 1.06) + 1.
TEST(slow_start_ends_above_gamma) {
	struct link *l = opened(34, false);

	two_rounds(l, 106 * MS); // four ACKs in slow start before the decision: 38
	ck_assert_double_eq(cc_observed(l, DIFF), 2);
	CWND_EQ(l, 36);
	OBSERVED_EQ(l, SSTHRESH, 36);
	ck_assert_int_eq(cc_mode(l), AVOIDANCE);
}

// trunc(9 x 0.18) = 1 is not above gamma: one more segment, as ever in slow start.
TEST(slow_start_goes_on_at_gamma) {
	struct link *l = opened(5, false);

	two_rounds(l, 118 * MS);
	ck_assert_double_eq(cc_observed(l, DIFF), 1);
	CWND_EQ(l, 10);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
}

TEST(avoidance_moves_by_one_per_round) {
	static const struct {
		int cwnd;
		uint64_t rtt_ms;
		double diff, step;
	} cases[] = {
		{60, 206, 63, -1}, // ns-3: above beta
		{15, 106, 0, 1}, // ns-3: below alpha
		// Below it too, by Linux's formula: 20 x 0.09 = 1.8 (ns-3: 20 - trunc(20 / 1.09)).
		{20, 109, 1, 1},
		{20, 110, 2, 0}, // alpha itself
		{20, 124, 4, 0}, // above 4, but truncated
		{20, 125, 5, -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = opened(cases[i].cwnd, true);
		double before = cases[i].cwnd;

		two_rounds(l, cases[i].rtt_ms * MS);
		before += 1 / before; // the first ACK's round had one sample: as Reno
		ck_assert_double_eq(cc_observed(l, DIFF), cases[i].diff);
		CWND_EQ(l, before + cases[i].step);
		OBSERVED_EQ(l, SSTHRESH, 0.75 * (before + cases[i].step));
		link_close(l);
	}
}

TEST(two_samples_do_not_decide) {
	struct link *l = opened(20, true);

	hand_ack_at(l, 1, T0 + BASE_NS);
	hand_ack_at(l, 20, T0 + 2 * BASE_NS);
	hand_ack_at(l, 21, T0 + 3 * BASE_NS);
	ck_assert_double_eq(cc_observed(l, DIFF), 0);
	ck_assert_double_gt(cwnd(l), 20); // as Reno
}

// Two segments make two samples a round, which are too few: it grows as Reno to three, and is sent
// back.
TEST(never_below_two) {
	struct link *l = opened(2, true);

	for (uint64_t i = 1; i < 200; i++) {
		hand_ack_at(l, i, T0 + i * (i < 3 ? 20 : 400) * MS);
		ck_assert_double_ge(cwnd(l), 2);
		ck_assert_double_lt(cwnd(l), 4);
	}
}

TEST(a_loss_halves_and_suspends) {
	struct link *l = opened(20, false);

	for (uint64_t to = 2; to <= 5; to++)
		hand_sack_at(l, 0, 1, to, T0 + BASE_NS + to);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	ck_assert_double_eq(cwnd(l), cc_observed(l, SSTHRESH));
	double after = cwnd(l);

	ck_assert_double_le(after, 11);
	hand_ack_at(l, 10, T0 + 2 * BASE_NS);
	hand_ack_at(l, 15, T0 + 4 * BASE_NS); // slow, but this is recovery
	CWND_EQ(l, after);
}

TEST(idling_forgets_base_rtt) {
	struct link *l = opened(10, false);
	const struct cc_ops *cc = cc_find("vegas");

	hand_ack_at(l, 1, T0 + BASE_NS);
	cc->on_idle(link_flow(l)->cc_state, l->groups.group[0].cc_config, 1 * S, 1 * S,
		&link_flow(l)->out);
	ck_assert_double_eq(cc_observed(l, BASE), 0);
	CWND_EQ(l, 10);
}

// One segment is lost and all others are there: the retransmission leaves with nothing in flight,
// so that the base RTT is what its ACK takes. A flow that lives on beside a standing queue does so
// by this.
TEST(an_empty_pipe_forgets_base_rtt) {
	struct link *l = opened(5, false);

	hand_ack_at(l, 1, T0 + BASE_NS);
	ck_assert_double_eq(cc_observed(l, BASE), 100e6);
	hand_sack_at(l, 1, 2, link_flow(l)->nxt, T0 + 2 * BASE_NS);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	ck_assert_double_eq(cc_observed(l, BASE), 0);
	hand_ack_at(l, link_flow(l)->nxt - 1, T0 + 4 * BASE_NS);
	ck_assert_double_eq(cc_observed(l, BASE), 200e6);
}
