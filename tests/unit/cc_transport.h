// SPDX-License-Identifier: BSD-3-Clause
// A congestion control inside the transport: the test answers as the peer (HAND of link.h), and the
// control gets what sender/tcp measures of that: a vector that only a test could feed proves
// nothing.
#pragma once
#include "link.h"

static inline double cwnd(struct link *l) {
	return link_flow(l)->out.cwnd_segs;
}

static inline double cc_observed(struct link *l, int i) {
	const struct group *g = &l->groups.group[0];
	float out[CC_OBSERVED] = {0};

	g->cc->observe(link_flow(l)->cc_state, g->cc_config, out);
	return (double)out[i];
}

static inline int cc_mode(struct link *l) {
	const struct group *g = &l->groups.group[0];

	return g->cc->mode(link_flow(l)->cc_state, g->cc_config);
}

#define CWND_EQ(l, segs) ck_assert_double_eq_tol(cwnd(l), segs, 1e-9 * (1 + (segs)))
#define OBSERVED_EQ(l, i, value)                                                                   \
	ck_assert_double_eq_tol(cc_observed(l, i), value, 1e-6 * (1 + (value))) // it is a float

// An ACK up to segment `una`, which echoes CE or not.
static inline void ack_to(struct link *l, uint64_t una, bool ece, uint64_t now_ns) {
	struct seg s = hand_ack(l, una, now_ns);

	s.flags |= ece ? SEG_ECE : 0;
	hand_feed(l, &s, now_ns);
}

// It reduces like Reno where nothing is marked: ssthresh is halved by a timeout, once. `group`
// begins with 4 segments, one ACK for each, and has a smallest timeout of 200 ms.
static inline void cc_check_reno_without_marks(const char *group, int ssthresh) {
	struct link *l = HAND(.group = group);

	hand_ack_at(l, 1, 40 * MS);
	CWND_EQ(l, 5);
	link_run(l, 500 * MS);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	OBSERVED_EQ(l, ssthresh, 2.5);
	CWND_EQ(l, 1);
	link_close(l);
}
