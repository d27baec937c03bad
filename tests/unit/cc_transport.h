// SPDX-License-Identifier: BSD-3-Clause
// A congestion control inside the transport: the test answers as the peer (HAND of link.h), and the control gets what
// sender/tcp measures of that: a vector that only a test could feed proves nothing.
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
	return l->groups.group[0].cc->mode(link_flow(l)->cc_state);
}

#define CWND_EQ(l, segs) ck_assert_double_eq_tol(cwnd(l), segs, 1e-9 * (1 + (segs)))
#define OBSERVED_EQ(l, i, value)                                                                   \
	ck_assert_double_eq_tol(cc_observed(l, i), value, 1e-6 * (1 + (value))) // it is a float
