// SPDX-License-Identifier: BSD-3-Clause
// The list of stages.
#include "switch/stage.h"

#include <string.h>

// In the order in which --list prints them.
#define STAGES(V)                                                                                  \
	V(link)                                                                                    \
	V(delay)                                                                                   \
	V(loss)                                                                                    \
	V(edges)                                                                                   \
	V(loss_gilbert)                                                                            \
	V(loss_markov)                                                                             \
	V(loss_periodic)                                                                           \
	V(loss_mask)                                                                               \
	V(loss_trace)                                                                              \
	V(loss_target)                                                                             \
	V(ecn)                                                                                     \
	V(clear_options)                                                                           \
	V(corrupt)                                                                                 \
	V(duplicate)                                                                               \
	V(mtu)                                                                                     \
	V(policer)                                                                                 \
	V(jitter)                                                                                  \
	V(wifi_jitter)                                                                             \
	V(periodic_delay)                                                                          \
	V(leo_handover)                                                                            \
	V(mahimahi_link)                                                                           \
	V(replay)                                                                                  \
	V(markov_link)

#define DECLARE(name) extern const struct stage_ops stage_##name;
STAGES(DECLARE)

#define ENTRY(name) &stage_##name,
const struct stage_ops *const stage_all[] = {STAGES(ENTRY) NULL};

const struct stage_ops *stage_find(const char *name) {
	for (size_t i = 0; stage_all[i] != NULL; i++) {
		if (strcmp(stage_all[i]->name, name) == 0)
			return stage_all[i];
	}
	return NULL;
}
