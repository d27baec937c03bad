// SPDX-License-Identifier: BSD-3-Clause
// Changes of live parameters at given times, from the config's `schedule` section:
//
//	schedule:
//	  - {at: 10s, forward.link.rate: 5Gbit}
//	  - {at: 12s, forward.delay.delay: 30ms, reverse.delay.delay: 30ms}
//
// Everything is checked at the start: the path, the stage, the parameter, its range, and that it
// may change while running. Entries of one time apply in the order they are written.
#pragma once
#include "switch/path/path.h"

struct run_list;

// Changes of what is not a path's, which whoever runs the schedule makes.
struct schedule_others {
	// Reads a key and its value, a whole number then. -ENOENT: the key is none of them.
	int (*check)(void *ctx, uint64_t at_ns, const char *key, const char *value,
		uint64_t *number, struct err *err);
	// Makes the change, and returns what the value was.
	uint64_t (*apply)(void *ctx, const char *key, uint64_t number);
	void *ctx;
};

struct schedule_entry {
	uint64_t at_ns;
	struct config_node *node; // its value in the config; lives as long as that
	struct path *path; // NULL: one of the others, whose number is `number`
	uint64_t number;
	struct path_stage *stage;
	const struct param *param;
	// How far virtual time can compute ahead from then on (path_route.h); 0: not at all.
	uint64_t ahead_ns;
	const char
		*key; // "link.rate", of the others all of it; both texts live as long as the config
	const char *value;
	uint32_t item; // of the list in the config, from 0
	uint16_t link; // index in the summary; UINT16_MAX: not a link
};

struct schedule {
	const struct schedule_others *others; // NULL: there are none
	struct schedule_entry *entry; // by time
	uint32_t count;
	uint32_t next;
};

// Reads and checks the section; NULL: nothing is scheduled. On error nothing needs freeing. From
// here on path_capacity counts with the highest rates and longest delays of all times, so that
// memory is sized for them.
int schedule_init(struct schedule *s, struct config_node *node, struct paths *ps,
	const struct schedule_others *others, struct err *err);
// The schedule of a branch of a run (tools/sim/run/branches.c): `trunk` and, at one time, the
// changes of a map, which would be this item of the config's list. Read and checked likewise.
int schedule_branch(struct schedule *s, const struct schedule *trunk, uint64_t at_ns,
	struct config_node *changes, uint32_t item, struct paths *ps, struct err *err);
// The part of it that changes these paths, for the lcore they belong to. It is freed like the
// whole.
int schedule_part(struct schedule *part, const struct schedule *whole, struct path *const *paths,
	uint32_t n, struct err *err);
void schedule_fini(struct schedule *s);
// The keys of an item, for --list.
void schedule_list(struct run_list *l);
// Where the config has the first change that a run of duration_ns does not come to; NULL: it makes
// them all.
const struct config_node *schedule_unreached(const struct schedule *s, uint64_t duration_ns);
// When schedule_apply must be called next; NEVER_NS when all is done.
uint64_t schedule_next_ns(const struct schedule *s);
// Applies all that is due by now_ns, each at its own theoretical time, and writes one TEL_EV_PARAM
// event per change (events may be NULL). Returns the number of changes.
uint32_t schedule_apply(struct schedule *s, uint64_t now_ns, struct tel *events);
