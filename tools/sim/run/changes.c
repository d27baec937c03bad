// SPDX-License-Identifier: BSD-3-Clause
// Changes of a schedule, or of a branch, that are not a path's:
//
//	schedule:
//	  - {at: 10s, seed: 7}             all random streams begin anew
//	  - {at: 10s, flows.1.start: 20s}  of a group of which no flow has started
#include "tools/sim/run/sim.h"

#include "sender/source/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct values {
	uint64_t seed, start_ns;
};

static const struct param seed_param = {
	"seed", NULL, "", UNIT_NONE, PARAM_U64(struct values, seed), 0, 0x1p64};
static const struct param start_param = {
	"start", NULL, "", UNIT_TIME_NS, PARAM_U64(struct values, start_ns), 0, 86400e9};

// The group of "flows.1.start"; NULL: it is no such key, or there is no such group.
static struct group *start_of(struct sim *s, const char *key) {
	unsigned long i;
	char *end;

	if (strncmp(key, "flows.", strlen("flows.")) != 0)
		return NULL;
	i = strtoul(key + strlen("flows."), &end, 10);
	return strcmp(end, ".start") == 0 && i < s->groups.count ? &s->groups.group[i] : NULL;
}

static int start_check(const struct group *g, uint64_t at_ns, uint64_t start_ns, struct err *err) {
	if (g->source->kind != SOURCE_ONCE || g->transport != NULL)
		return err_set(
			err, -EINVAL, "only flows of TCP that send once (bulk, size) have it");
	if (g->stop_ns > 0)
		return err_set(err, -EINVAL, "only the start of a group without a stop");
	if (g->start_ns < at_ns || start_ns < at_ns)
		return err_set(err, -EINVAL,
			"the group's start, before and after, must not be earlier than the change");
	return 0;
}

static int check(void *ctx, uint64_t at_ns, const char *key, const char *value, uint64_t *number,
	struct err *err) {
	struct sim *s = ctx;
	const struct group *g = start_of(s, key);
	struct values values;
	int rc;

	if (strcmp(key, "seed") == 0) {
		rc = param_set(&seed_param, &values, value, err);
		*number = values.seed;
		if (rc == 0 && s->run->telemetry_arrivals)
			rc = err_set(
				err, -EINVAL, "a replay (telemetry.arrivals) cannot repeat it");
		return rc;
	}
	if (g == NULL)
		return -ENOENT;
	rc = param_set(&start_param, &values, value, err);
	*number = values.start_ns;
	return rc < 0 ? rc : start_check(g, at_ns, values.start_ns, err);
}

static uint64_t reseed(struct sim *s, uint64_t seed) {
	uint64_t before = s->run->seed;

	paths_reseed(&s->paths, seed);
	host_reseed(&s->sender, seed);
	return before;
}

static uint64_t apply(void *ctx, const char *key, uint64_t number) {
	struct sim *s = ctx;
	struct group *g = start_of(s, key);

	if (g == NULL)
		return reseed(s, number);
	uint64_t before_ns = g->start_ns;
	host_move_start(&s->sender, g, number);
	g->start_ns = number;
	return before_ns;
}

void sim_others(struct sim *s) {
	s->others = (struct schedule_others){.check = check, .apply = apply, .ctx = s};
}
