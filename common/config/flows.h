// SPDX-License-Identifier: BSD-3-Clause
// What every program reads of the config's `flows`: how many flows there are, in which group, what
// round trip each group asks for, and which paths its packets pass:
//
//	path: {forward: [hop1, hop2], reverse: back}
//
// The other keys of a group are the sender's (sender/group/config.c).
#pragma once
#include "common/config/config.h"

#include <stdint.h>

#define GROUPS_MAX 64

// Rows of a group's parameter table; the fields are uint64_t.
#define FLOWS_COUNT(T, field)                                                                      \
	{ "count", "1", "number of flows", UNIT_NONE, PARAM_U64(T, field), 1, 1e6 }
#define FLOWS_BASE_RTT(T, field)                                                                   \
	{                                                                                          \
		"base_rtt", "0s",                                                                  \
			"round trip without queues; 0s: what the paths give; a distribution: "     \
			"each flow has a draw of its own",                                         \
			UNIT_TIME_NS, PARAM_U64(T, field), 0, 6e10, .of = "base_rtt"               \
	}

// The key `path` of a group, and its own keys.
#define FLOWS_PATH                                                                                 \
	{                                                                                          \
		"path", "", "the paths its packets pass in each direction, where there are more",  \
			UNIT_NONE, PARAM_MAP("flows.path")                                         \
	}
extern const struct param flows_path_params[];

enum flows_direction { FLOWS_FORWARD, FLOWS_REVERSE, FLOWS_DIRECTIONS };
#define FLOWS_ROUTE_MAX 16

// The names of the paths that packets pass in one direction, in order; they live as long as the
// config.
struct flows_route {
	const char *path[FLOWS_ROUTE_MAX];
	uint32_t count;
	struct config_node *node; // NULL: not given, the path is called "forward" or "reverse"
};

struct flows {
	uint32_t groups;
	uint32_t count; // of all groups
	uint32_t group_count[GROUPS_MAX];
	uint64_t base_rtt_ns[GROUPS_MAX]; // 0: what the paths give, or a distribution (base_rtt.h)
	struct flows_route route[GROUPS_MAX][FLOWS_DIRECTIONS];
};

// Reads the list; NULL: there are no flows. A group's other keys are left unread. -EINVAL or
// -ERANGE and a sentence: it is no list of 1 to GROUPS_MAX maps, or a value is out of its range.
int flows_read(struct flows *f, struct config_node *list, struct err *err);
