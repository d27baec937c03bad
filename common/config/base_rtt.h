// SPDX-License-Identifier: BSD-3-Clause
// Base RTTs of flows: `base_rtt` of a flow group, one time for all its flows, or a distribution
// from which each flow has a draw that it keeps:
//
//	base_rtt: 40ms
//	base_rtt: {uniform: {min: 10ms, max: 100ms}}
//
//	uniform      between min and max
//	log_uniform  its logarithm is uniform between those of min and max
//	normal       of this mean and standard deviation
//	exponential  min + X, with X exponential of mean `mean` - min
//	pareto       P(X > x) = (min / x)^shape
//	table        a number of a file, each as likely as the others; `unit` is what 1 means
//
// A draw outside [min, max] is repeated, as in ns-3's bounded random variables: the distribution is
// the one that is written, on the condition that it is in between.
//
// Each flow has a generator of its own, seeded by the run's seed, the group's `name` (without one:
// its place in the list; from the second group of a name on: its place among those too) and the
// flow's number in its group. So its draw depends neither on how many other flows there are nor on
// which program or lcore asks; the switch and the sender find the same.
#pragma once
#include "common/config/flows.h"

// Base RTTs of the flows of a group.
struct base_rtt_group {
	const char *law; // name of the distribution; NULL: all have the same
	uint64_t least_ns; // that may be drawn
	uint64_t min_ns, median_ns, max_ns; // of its flows
	uint32_t first, flows; // its first flow, and how many
};

struct base_rtts {
	uint64_t *flow_ns; // by flow; NULL: no group has a distribution. 0: what the paths give
	struct base_rtt_group group[GROUPS_MAX];
	uint32_t groups;
};

// Draws. `list` is the config's flows, which flows_read has read to `f`. duration_ns: of the run;
// 0: it has no end. -EINVAL, -ERANGE and a sentence: what is written is no distribution, or a
// flow's RTT would be longer than the run. After an error, too, base_rtts_free.
int base_rtts_init(struct base_rtts *b, const struct flows *f, struct config_node *list,
	uint64_t seed, uint64_t duration_ns, struct err *err);
void base_rtts_free(struct base_rtts *b);
// The distributions from which base RTTs are drawn, in the order of --list.
struct base_rtt_law {
	const char *name, *summary;
	const struct param *params, *also;
};
// NULL: there are no more.
const struct base_rtt_law *base_rtt_law(size_t i);

// Whether the flows of a group have base RTTs of their own.
static inline bool base_rtts_drawn(const struct base_rtts *b, uint32_t group) {
	return b != NULL && b->group[group].law != NULL;
}
