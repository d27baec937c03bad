// SPDX-License-Identifier: BSD-3-Clause
// Extra delays of the delay stage that carries what base RTTs exceed the delays of the paths by:
// one for each flow group, and one for each flow of the groups whose `base_rtt` is a distribution.
//
// Both are numbered together: first the groups, then such flows.
#pragma once
#include "common/config/flows.h"
#include "switch/stage.h"

struct flow_delays {
	uint64_t *extra_ns; // by flow of such groups, one group after the other
	uint32_t count;
	struct {
		uint32_t first; // flow
		uint32_t flows; // 0: the flows of the group are alike
		uint32_t at; // where extra_ns has the first one's
	} group[GROUPS_MAX];
};

// How many delays there are; 0: the stage carries none.
static inline uint32_t stage_extras(const struct stage_env *env) {
	if (env->class_extra_ns == NULL)
		return 0;
	return env->class_count + (env->flow_delays != NULL ? env->flow_delays->count : 0);
}

// The i-th of them.
static inline uint64_t stage_extra_ns(const struct stage_env *env, uint32_t i) {
	return i < env->class_count ? env->class_extra_ns[i]
				    : env->flow_delays->extra_ns[i - env->class_count];
}

// Which of them is a packet's. Connections that are no flows of the config, as a kernel's through
// the live switch, are the first group's; where its flows differ, each has the delay of one of
// them.
static inline uint32_t stage_extra_of(const struct stage_env *env, const struct pkt *p) {
	uint32_t group = p->delay_class < env->class_count ? p->delay_class : 0;
	const struct flow_delays *f = env->flow_delays;

	if (f == NULL || f->group[group].flows == 0)
		return group;
	uint32_t number = p->flow_id - f->group[group].first;
	if (number >= f->group[group].flows)
		number %= f->group[group].flows;
	return env->class_count + f->group[group].at + number;
}
