// SPDX-License-Identifier: BSD-3-Clause
// LEDBAT through the transport, by RFC 6817's pseudocode. Base delay 100 ms, target 100 ms.
#include "cc_transport.h"

#include <errno.h>

enum { QDELAY, BASE };

#define T0 (20 * MS)
#define BASE_NS (100 * MS)

static struct link *opened(const char *options) {
	char group[200];

	snprintf(group, sizeof(group), "{cc: {ledbat: {%s}}, ack_every: 1, tlp: no, rto_min: 60s}",
		options);
	return HAND(.group = group);
}

// cwnd += off / cwnd, with off of 1, 1/2, 0 and -1 at queueing delays of 0, 50, 100 and 200 ms.
TEST(the_step_is_linear_in_the_delay) {
	static const struct {
		uint64_t delay_ms;
		double off;
	} cases[] = {{0, 1}, {50, 0.5}, {100, 0}, {200, -1}, {300, -2}};
	struct link *l = opened("initial: 20, current_filter: 1");
	double want = 20;

	for (uint64_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hand_ack_at(l, i + 1, T0 + BASE_NS + cases[i].delay_ms * MS);
		want += cases[i].off / want;
		OBSERVED_EQ(l, QDELAY, (double)(cases[i].delay_ms * MS));
		OBSERVED_EQ(l, BASE, 100e6);
		CWND_EQ(l, want);
	}
}

// The current delay is the smallest of the last four: the first sample counts until a fifth has
// come.
TEST(the_filter_takes_the_smallest_of_four) {
	struct link *l = opened("initial: 20");

	hand_ack_at(l, 1, T0 + BASE_NS);
	for (uint64_t i = 2; i <= 4; i++) {
		hand_ack_at(l, i, T0 + BASE_NS + 100 * MS);
		OBSERVED_EQ(l, QDELAY, 0);
	}
	hand_ack_at(l, 5, T0 + BASE_NS + 100 * MS);
	OBSERVED_EQ(l, QDELAY, 100e6);
}

// ALLOWED_INCREASE: ten were in flight before the ACK, so cwnd may not exceed 10 + 0.03.
TEST(the_window_stays_near_the_flight) {
	struct link *l = opened("initial: 10, allowed_increase: 0.03");

	hand_ack_at(l, 1, T0 + BASE_NS);
	CWND_EQ(l, 10.03);
}

// A history of two minutes: the delay of minute 0 counts throughout minute 1 and is forgotten with
// minute 2.
TEST(the_base_is_forgotten_by_minutes) {
	struct link *l = opened("base_history: 2");
	uint64_t t_ns = T0;

	hand_ack_at(l, link_flow(l)->nxt, t_ns += BASE_NS);
	while (t_ns + 300 * MS < 180 * S) {
		hand_ack_at(l, link_flow(l)->nxt, t_ns += 300 * MS);
		OBSERVED_EQ(l, BASE, t_ns < 120 * S ? 100e6 : 300e6);
		ck_assert_double_ge(cwnd(l), 2);
	}
	ck_assert_double_gt(cwnd(l), 10); // its own queue counts as the path now
}

// A pause of more minutes than the history has: the base is what is measured after it, its first
// sample included.
TEST(a_long_pause_leaves_no_base) {
	struct link *l = HAND(.group = "{cc: {ledbat: {base_history: 2, current_filter: 1}}, "
				       "ack_every: 1, tlp: no, frto: no, rto_min: 60s}");
	uint64_t t_ns = T0;

	hand_ack_at(l, link_flow(l)->nxt, t_ns += BASE_NS);
	OBSERVED_EQ(l, BASE, 100e6);
	// Minutes without an answer, then the ACK of a retransmission, which is no sample.
	hand_ack_at(l, link_flow(l)->nxt, t_ns += 7 * 60 * S);
	ck_assert_uint_ge(link_flow(l)->count.timeouts, 2);
	OBSERVED_EQ(l, BASE, 100e6);
	hand_ack_at(l, link_flow(l)->nxt, t_ns += 200 * MS);
	OBSERVED_EQ(l, BASE, 200e6);
	hand_ack_at(l, link_flow(l)->nxt, t_ns += 300 * MS);
	OBSERVED_EQ(l, BASE, 200e6);
}

// RFC 5681 section 3.1 and the file's head: no growth on ACKs that do not advance or in fast
// recovery, where it may shrink, and where the data in flight, which the loss has reduced, is no
// limit.
TEST(recovery_does_not_grow_it) {
	struct link *l = opened("initial: 20, current_filter: 1");
	double half = 10;

	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, 0, 1, to, T0 + BASE_NS);
	CWND_EQ(l, half); // SACKs had not changed it
	hand_sack_at(l, 0, 1, 6, T0 + BASE_NS);
	CWND_EQ(l, half);
	hand_sack_at(l, 0, 1, 8, T0 + BASE_NS + 300 * MS); // -2 per segment
	CWND_EQ(l, half - 4 / half);
	half -= 4 / half;
	hand_sack_at(l, 0, 1, 20,
		T0 + BASE_NS + 300 * MS); // nothing is in flight but the retransmission
	CWND_EQ(l, half - 24 / half);
}

// Most of a flight is lost: in recovery the delay lets the window shrink, and the flight, which is
// much smaller, is no limit.
TEST(recovery_is_not_held_to_the_flight) {
	struct link *l = opened("initial: 20, current_filter: 1");
	double before;

	hand_sack_at(l, 0, 17, 18, T0 + BASE_NS);
	hand_sack_at(l, 0, 17, 20, T0 + BASE_NS + 300 * MS);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 17);
	OBSERVED_EQ(l, QDELAY, 300e6);
	before = cwnd(l);
	ck_assert_double_lt(flow_inflight(link_flow(l)) + 1, before);
	hand_ack_at(l, 1, T0 + BASE_NS + 400 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
	CWND_EQ(l, before - 2 / before);
}

// A loss never raises the window, though it is below min_cwnd as yet.
TEST(a_loss_does_not_raise_it_to_min_cwnd) {
	struct link *l = opened("initial: 4, min_cwnd: 10");

	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, 0, 1, to, T0 + BASE_NS);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	CWND_EQ(l, 4);
}

// RFC 4015: the window of before the first of two timeouts comes back when the original's ACK
// arrives after both.
TEST(two_spurious_timeouts_are_taken_back) {
	struct link *l = HAND(.group = "{cc: {ledbat: {initial: 20, "
				       "allowed_increase: 0.03}}, ack_every: 1, tlp: no, "
				       "rto_min: 200ms}");
	struct seg s;

	hand_ack_at(l, 1, T0 + BASE_NS);
	double before = cwnd(l);

	while (link_flow(l)->count.timeouts < 2)
		NEED(link_step(l, 100 * S));
	CWND_EQ(l, 1);
	s = hand_ack(l, 2, l->now_ns + MS);
	s.tsecr = flow_tsval(T0);
	hand_feed(l, &s, l->now_ns + MS);
	ck_assert_uint_eq(link_flow(l)->count.spurious_timeouts, 1);
	ck_assert_double_ge(cwnd(l), before);
	hand_ack_at(l, 3, l->now_ns + 1);
	CWND_EQ(l, 20.03); // and the next ACK is held to the flight again
}

TEST(a_loss_halves_but_not_below_min_cwnd) {
	static const struct {
		int initial;
		double after;
	} cases[] = {{20, 10}, {5, 2.5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char options[40];

		snprintf(options, sizeof(options), "initial: %d", cases[i].initial);
		struct link *l = opened(options);

		for (uint64_t to = 2; to <= 4; to++)
			hand_sack_at(l, 0, 1, to, T0 + BASE_NS + to);
		ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
		CWND_EQ(l, cases[i].after);
		link_close(l);
	}
	struct link *l = opened("initial: 3");
	struct cc_loss loss = {.inflight_segs = 3, .lost_segs = 1};
	const struct cc_ops *cc = cc_find("ledbat");
	const void *config = l->groups.group[0].cc_config;

	cc->on_loss(link_flow(l)->cc_state, config, &loss, &link_flow(l)->out);
	CWND_EQ(l, 2);
	cc->on_rto(link_flow(l)->cc_state, config, &loss, &link_flow(l)->out);
	CWND_EQ(l, 1);
	cc->on_spurious(link_flow(l)->cc_state, config, T0, &link_flow(l)->out);
	CWND_EQ(l, 2);
}

// RFC 6817 section 2.5: TARGET is 100 ms at most; GAIN is more than its 1 for RFC 7928,
// section 5.4.
TEST(the_limits_of_the_rfc_are_checked) {
	const struct cc_ops *cc = cc_find("ledbat");
	_Alignas(16) char config[256];

	ck_assert_uint_le(cc->config_size, sizeof(config));
	ck_assert_int_eq(
		param_set(param_find(cc->params, "target"), config, "101ms", NULL), -ERANGE);
	ck_assert_int_eq(param_set(param_find(cc->params, "gain"), config, "10.5", NULL), -ERANGE);
	ck_assert_int_eq(
		param_set(param_find(cc->params, "base_history"), config, "11", NULL), -ERANGE);
}
