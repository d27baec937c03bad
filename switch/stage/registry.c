// SPDX-License-Identifier: BSD-3-Clause
// The list of stages.
#include "switch/stage/stage.h"

#include <string.h>

extern const struct stage_ops stage_clear_options;
extern const struct stage_ops stage_corrupt;
extern const struct stage_ops stage_delay;
extern const struct stage_ops stage_duplicate;
extern const struct stage_ops stage_ecn;
extern const struct stage_ops stage_edges;
extern const struct stage_ops stage_jitter;
extern const struct stage_ops stage_link;
extern const struct stage_ops stage_loss;
extern const struct stage_ops stage_loss_gilbert;
extern const struct stage_ops stage_loss_markov;
extern const struct stage_ops stage_loss_mask;
extern const struct stage_ops stage_loss_periodic;
extern const struct stage_ops stage_loss_target;
extern const struct stage_ops stage_loss_trace;
extern const struct stage_ops stage_mahimahi_link;
extern const struct stage_ops stage_markov_link;
extern const struct stage_ops stage_policer;
extern const struct stage_ops stage_theaterq_link;

const struct stage_ops *const stage_all[] = {
	&stage_link,
	&stage_delay,
	&stage_loss,
	&stage_edges,
	&stage_loss_gilbert,
	&stage_loss_markov,
	&stage_loss_periodic,
	&stage_loss_mask,
	&stage_loss_trace,
	&stage_loss_target,
	&stage_ecn,
	&stage_clear_options,
	&stage_corrupt,
	&stage_duplicate,
	&stage_policer,
	&stage_jitter,
	&stage_mahimahi_link,
	&stage_theaterq_link,
	&stage_markov_link,
	NULL,
};

const struct stage_ops *stage_find(const char *name) {
	for (size_t i = 0; stage_all[i] != NULL; i++) {
		if (strcmp(stage_all[i]->name, name) == 0)
			return stage_all[i];
	}
	return NULL;
}
