// SPDX-License-Identifier: BSD-3-Clause
// Compound through the transport: both windows by hand. baseRTT is 100 ms.
#include "cc_transport.h"

#include <math.h>

enum { SSTHRESH, DWND, DIFF, BASE };
enum { SLOW_START, AVOIDANCE };

#define T0 (20 * MS)

static struct link *opened(int segs, const char *more) {
	char group[200];

	snprintf(group, sizeof(group),
		"{cc: {compound: {initial: %d, abc_limit: 0%s}}, ack_every: 1, tlp: no, rto_min: "
		"10s}",
		segs, more);
	return HAND(.group = group);
}

// Acknowledges all that is in flight, rtt_ms after it left: a round trip with one sample.
static void round_of(struct link *l, uint64_t *t_ns, uint64_t rtt_ms) {
	*t_ns += rtt_ms * MS;
	hand_ack_at(l, link_flow(l)->nxt, *t_ns);
}

// One segment of what is in flight is lost, and the recovery is over two round trips later.
static void lose_one(struct link *l, uint64_t *t_ns) {
	uint64_t una = link_flow(l)->una;

	*t_ns += 100 * MS;
	for (uint64_t to = 2; to <= 4; to++)
		hand_sack_at(l, una, una + 1, una + to, *t_ns);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_RECOVERY);
}

// `segs` segments double in the first round trip and are halved by a loss: cwnd is `segs`, in
// avoidance, dwnd 0.
static struct link *avoiding(int segs, const char *more, uint64_t *t_ns) {
	struct link *l = opened(segs, more);

	*t_ns = T0;
	round_of(l, t_ns, 100);
	lose_one(l, t_ns);
	CWND_EQ(l, segs);
	OBSERVED_EQ(l, DWND, 0);
	return l;
}

// The ACK that ends the recovery also ends a round trip. cwnd grows by what was acknowledged for
// the first time, less than one window, dwnd by 1/8 win^(3/4) - 1.
static double recovered(struct link *l, uint64_t *t_ns) {
	double before = cwnd(l);

	hand_ack_at(l, link_flow(l)->nxt, *t_ns += 100 * MS);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_OPEN);
	ck_assert_int_eq(cc_mode(l), AVOIDANCE);
	ck_assert_double_gt(cwnd(l), before);
	return cwnd(l);
}

TEST(slow_start_has_no_delay_window) {
	struct link *l = opened(40, "");
	uint64_t t_ns = T0;

	round_of(l, &t_ns, 100);
	round_of(l, &t_ns, 100);
	CWND_EQ(l, 160);
	OBSERVED_EQ(l, DWND, 0);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
}

// In a round trip without a queue cwnd grows by acked / win, dwnd by alpha win^(3/4) - 1.
TEST(both_windows_grow_without_a_queue) {
	static const struct {
		const char *more;
		double alpha;
	} cases[] = {{"", 0.125}, {", alpha: 0.5", 0.5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t t_ns;
		struct link *l = avoiding(40, cases[i].more, &t_ns);
		double win = recovered(l, &t_ns), dwnd = cc_observed(l, DWND), acked;

		acked = (double)(link_flow(l)->nxt - link_flow(l)->una);
		round_of(l, &t_ns, 100);
		OBSERVED_EQ(l, DIFF, 0);
		OBSERVED_EQ(l, DWND, dwnd + cases[i].alpha * pow(win, 0.75) - 1);
		ck_assert_double_eq_tol(
			cwnd(l), win + acked / win + cases[i].alpha * pow(win, 0.75) - 1, 1e-5);
		link_close(l);
	}
}

TEST(below_the_low_window_it_is_reno) {
	uint64_t t_ns;
	struct link *l = avoiding(30, "", &t_ns);

	recovered(l, &t_ns);
	for (int i = 0; i < 5; i++) {
		double win = cwnd(l);

		ck_assert_double_lt(win, 38);
		round_of(l, &t_ns, 100);
		OBSERVED_EQ(l, DWND, 0);
		ck_assert_double_le(cwnd(l), win + 1);
	}
	link_close(l);

	l = avoiding(30, ", low_window: 20", &t_ns);
	recovered(l, &t_ns);
	round_of(l, &t_ns, 100);
	ck_assert_double_gt(cc_observed(l, DWND), 0);
}

// dwnd is 40 or more: an RTT of 125 ms shows a fifth of the window queued, which is below gamma or
// not.
TEST(a_queue_takes_the_delay_window) {
	static const struct {
		const char *more;
		double zeta;
		bool shrinks;
	} cases[] = {
		{", alpha: 1, gamma: 100", 1, false},
		{", alpha: 1, gamma: 10, zeta: 0.5", 0.5, true},
		{", alpha: 1, gamma: 10", 1, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t t_ns;
		struct link *l = avoiding(40, cases[i].more, &t_ns);
		double win, dwnd;

		recovered(l, &t_ns);
		round_of(l, &t_ns, 100);
		round_of(l, &t_ns, 100);
		win = cwnd(l);
		dwnd = cc_observed(l, DWND);
		ck_assert_double_gt(dwnd, win * 0.2);
		round_of(l, &t_ns, 125);
		OBSERVED_EQ(l, DIFF, win * 0.2);
		if (cases[i].shrinks)
			OBSERVED_EQ(l, DWND, dwnd - cases[i].zeta * win * 0.2);
		else
			ck_assert_double_gt(cc_observed(l, DWND), dwnd);
		if (cases[i].shrinks) { // and never below 0
			round_of(l, &t_ns, 1000);
			round_of(l, &t_ns, 1000);
			OBSERVED_EQ(l, DWND, 0);
			ck_assert_double_gt(cwnd(l), 40);
		}
		link_close(l);
	}
}

// win falls to win (1 - beta), of which cwnd / 2 is cwnd. If that is more, dwnd is 0.
TEST(a_loss_takes_beta_of_the_whole) {
	static const struct {
		const char *more;
		double left;
	} cases[] = {{", alpha: 1", 0.5}, {", alpha: 1, beta: 0.25", 0.75}};
	uint64_t t_ns;
	struct link *l;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double win, loss;

		l = opened(40, cases[i].more);
		t_ns = T0;
		round_of(l, &t_ns, 100);
		lose_one(l, &t_ns);
		recovered(l, &t_ns);
		round_of(l, &t_ns, 100);
		win = cwnd(l);
		loss = win - cc_observed(l, DWND);
		ck_assert_double_gt(cc_observed(l, DWND), 1);
		lose_one(l, &t_ns);
		ck_assert_double_eq_tol(cwnd(l), win * cases[i].left, 1e-4);
		ck_assert_double_eq_tol(cc_observed(l, SSTHRESH), loss / 2, 1e-4);
		link_close(l);
	}
	l = opened(40, ", beta: 0.9");
	t_ns = T0;
	round_of(l, &t_ns, 100);
	lose_one(l, &t_ns);
	CWND_EQ(l, 40);
}

TEST(a_timeout_leaves_half_of_the_whole_as_ssthresh) {
	uint64_t t_ns;
	struct link *l = avoiding(40, ", alpha: 1", &t_ns);
	double win;

	recovered(l, &t_ns);
	round_of(l, &t_ns, 100);
	win = cwnd(l);
	ck_assert_double_gt(cc_observed(l, DWND), 10);
	while (link_flow(l)->count.timeouts == 0)
		NEED(link_step(l, t_ns + 60 * S));
	CWND_EQ(l, 1);
	OBSERVED_EQ(l, DWND, 0);
	OBSERVED_EQ(l, SSTHRESH, win / 2);
	// That was spurious: both windows are back.
	cc_find("compound")
		->on_spurious(link_flow(l)->cc_state, l->groups.group[0].cc_config, l->now_ns,
			&link_flow(l)->out);
	CWND_EQ(l, win);
}

TEST(a_pause_leaves_the_initial_window) {
	uint64_t t_ns;
	struct link *l = avoiding(40, ", alpha: 1", &t_ns);
	double win;

	recovered(l, &t_ns);
	round_of(l, &t_ns, 100);
	win = cwnd(l);
	cc_find("compound")
		->on_idle(link_flow(l)->cc_state, l->groups.group[0].cc_config, 1 * S, 1 * S,
			&link_flow(l)->out);
	CWND_EQ(l, 40);
	OBSERVED_EQ(l, DWND, 0);
	OBSERVED_EQ(l, SSTHRESH, 0.75 * win);
}
