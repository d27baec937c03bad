// SPDX-License-Identifier: BSD-3-Clause
// What every program reads of the config's `flows`: how many flows there are, in which group, and what round
// trip each group asks for. The other keys of a group are the sender's (sender/group.c).
#pragma once
#include "common/config/config.h"

#include <stdint.h>

#define GROUPS_MAX 64

// Rows of a group's parameter table; the fields are uint64_t.
#define FLOWS_COUNT(T, field)                                                                      \
	{ "count", "1", "number of flows", UNIT_NONE, PARAM_U64(T, field), 1, 1e6 }
#define FLOWS_BASE_RTT(T, field)                                                                   \
	{                                                                                          \
		"base_rtt", "0s", "round trip without queues; 0s: what the paths give",            \
			UNIT_TIME_NS, PARAM_U64(T, field), 0, 6e10                                 \
	}

struct flows {
	uint32_t groups;
	uint32_t count; // of all groups
	uint32_t group_count[GROUPS_MAX];
	uint64_t base_rtt_ns[GROUPS_MAX]; // 0: what the paths give
};

// Reads the list; NULL: there are no flows. A group's other keys are left unread. -EINVAL or -ERANGE and a
// sentence: it is no list of 1 to GROUPS_MAX maps, or a value is out of its range.
int flows_read(struct flows *f, struct config_node *list, struct err *err);
