// SPDX-License-Identifier: BSD-3-Clause
// Swift's algorithm 1 through the transport: an empty path of 50 ms, a target of 10 ms beyond it.
#include "cc_transport.h"

enum { CWND, TARGET };

#define T0 (20 * MS)
#define SWIFT(more)                                                                                \
	"{cc: {swift: {base_rtt: 50ms, base_target: 10ms, " more                                   \
	"}}, ack_every: 1, tlp: no, rto_min: 10s}"

// 10 + 1/10 below the target; then 80 ms are 20 beyond it: x (1 - 0.8 20/80). Once per round trip.
TEST(steps) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s"));

	CWND_EQ(l, 10.0);
	hand_ack_at(l, 1, T0 + 50 * MS);
	CWND_EQ(l, 10.1);
	OBSERVED_EQ(l, TARGET, 60e6);
	hand_ack_at(l, 2, T0 + 80 * MS);
	CWND_EQ(l, 10.1 * 0.8);
	hand_ack_at(l, 3, T0 + 81 * MS);
	CWND_EQ(l, 10.1 * 0.8);
}

// 500 ms are 440 beyond the target, 0.704 of the window; max_mdf takes half.
TEST(a_reduction_takes_half_at_most) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s"));

	hand_ack_at(l, 1, T0 + 500 * MS);
	CWND_EQ(l, 5.0);
}

// Section 3.5 with windows from 1 to 100 and 30 ms: for 25 segments (1/5 - 1/10) / (1 - 1/10) of
// it, a ninth.
TEST(small_windows_tolerate_more) {
	static const struct {
		const char *group;
		double target_ns;
	} cases[] = {
		{SWIFT("fs_range: 30ms, fs_min_cwnd: 1, fs_max_cwnd: 100, initial: 25"),
			60e6 + 30e6 / 9},
		{SWIFT("fs_range: 30ms, fs_min_cwnd: 1, fs_max_cwnd: 100, initial: 1"), 90e6},
		{SWIFT("fs_range: 30ms, fs_min_cwnd: 1, fs_max_cwnd: 100, initial: 200"), 60e6},
		{SWIFT("fs_range: 30ms, fs_min_cwnd: 4, fs_max_cwnd: 100, initial: 2"), 90e6},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = HAND(.group = cases[i].group);

		hand_ack_at(l, 1, T0 + 50 * MS);
		OBSERVED_EQ(l, TARGET, cases[i].target_ns);
		link_close(l);
	}
}

// Half a segment: one segment every rtt / cwnd = 1 s. Below one, ai counts whole for each segment.
TEST(windows_below_one_segment) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s, initial: 1"));

	hand_ack_at(l, 1, T0 + 500 * MS);
	OBSERVED_EQ(l, CWND, 0.5);
	CWND_EQ(l, 1.0);
	ck_assert_double_eq_tol(link_flow(l)->out.pacing_bps, 0.5 * 1448 * 8 / 0.5, 1e-6);
	link_run(l, T0 + 2000 * MS);
	ck_assert_uint_eq(link_flow(l)->nxt, 2);
	link_close(l);
	l = HAND(.group = SWIFT("fs_range: 0s, initial: 1, max_mdf: 0.9"));
	hand_ack_at(l, 1, T0 + 500 * MS);
	OBSERVED_EQ(l, CWND, 1 - 0.8 * 0.88);
	link_run(l, T0 + 3000 * MS);
	hand_ack_at(l, 2, l->data[1].t_ns + 50 * MS);
	OBSERVED_EQ(l, CWND, 1 - 0.8 * 0.88 + 1);
	ck_assert_double_eq(link_flow(l)->out.pacing_bps, 0);
}

TEST(a_loss_takes_max_mdf) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s, max_mdf: 0.3"));

	for (uint64_t to = 2; to <= 5; to++)
		hand_sack_at(l, 0, 1, to, T0 + 50 * MS + to);
	ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
	// Of the four ACKs of one segment each the third reveals the loss; it and the fourth grow
	// the reduced window.
	double w = 10;

	for (int i = 0; i < 4; i++) {
		w *= i == 2 ? 0.7 : 1;
		w += 1 / w;
	}
	CWND_EQ(l, w);
}

// Four timeouts in a row reduce, the fifth leaves the smallest window.
TEST(the_fifth_timeout_resets) {
	struct link *l =
		HAND(.group = "{cc: {swift: {base_rtt: 50ms, base_target: 10ms, initial: 64, "
			      "min_cwnd: 0.25}}, rto_min: 200ms, tlp: no}");

	for (unsigned n = 1; n <= 5; n++) {
		while (link_flow(l)->count.timeouts < n)
			link_run(l, l->now_ns + 10 * MS);
		OBSERVED_EQ(l, CWND, n < 5 ? 64.0 / (1u << n) : 0.25);
	}
}

// Algorithm 1: retransmit_cnt counts timeouts in a row, and an ACK of new data starts it again.
TEST(an_ack_starts_the_count_of_timeouts_again) {
	struct link *l =
		HAND(.group = "{cc: {swift: {base_rtt: 50ms, base_target: 10ms, initial: 64, "
			      "min_cwnd: 0.25}}, rto_min: 200ms, tlp: no}");
	double w = 0;

	for (unsigned n = 1; n <= 5; n++) {
		while (link_flow(l)->count.timeouts < n)
			link_run(l, l->now_ns + 10 * MS);
		if (n == 4) {
			OBSERVED_EQ(l, CWND, 4.0);
			hand_ack_at(l, 1, l->now_ns + 50 * MS);
			w = cc_observed(l, CWND);
			ck_assert_double_ge(w, 4.0);
		}
	}
	OBSERVED_EQ(l, CWND, w / 2);
}

// Algorithm 1 adds ai / cwnd for each segment that an ACK acknowledges: two.
TEST(each_acknowledged_segment_counts) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s, ai: 3"));

	hand_ack_at(l, 2, T0 + 50 * MS);
	CWND_EQ(l, 10 + 2 * 3.0 / 10);
}

TEST(max_cwnd_is_the_largest_window) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s, max_cwnd: 10.05"));

	hand_ack_at(l, 1, T0 + 50 * MS);
	CWND_EQ(l, 10.05);
}

// Four segments are all the data: a window of 10 was never filled, and does not grow (RFC 7661
// section 4).
TEST(a_window_that_is_not_filled_does_not_grow) {
	struct link *l = HAND(.group = "{cc: {swift: {base_rtt: 50ms, base_target: 10ms, "
				       "fs_range: 0s}}, ack_every: 1, tlp: no, "
				       "source: {size: {bytes: 5792B}}}");

	hand_ack_at(l, 1, T0 + 50 * MS);
	hand_ack_at(l, 2, T0 + 51 * MS);
	CWND_EQ(l, 10.0);
}

// The window before the loss is back once the loss turns out to be none.
TEST(a_spurious_loss_is_undone) {
	struct link *l = HAND(.group = SWIFT("fs_range: 0s"));
	const struct group *g = &l->groups.group[0];
	struct flow *f = link_flow(l);
	struct cc_loss loss = {.now_ns = T0 + 50 * MS, .inflight_segs = 10, .lost_segs = 1};

	g->cc->on_loss(f->cc_state, g->cc_config, &loss, &f->out);
	CWND_EQ(l, 5.0);
	g->cc->on_spurious(f->cc_state, g->cc_config, T0 + 60 * MS, &f->out);
	CWND_EQ(l, 10.0);
}
