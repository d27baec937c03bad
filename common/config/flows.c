// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/flows.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

struct group {
	uint64_t count;
	uint64_t base_rtt_ns;
};

static const struct param params[] = {
	FLOWS_COUNT(struct group, count),
	FLOWS_BASE_RTT(struct group, base_rtt_ns),
	PARAM_END,
};

const struct param flows_path_params[] = {
	{"forward", "forward", "from the sender to the receiver: a path, or several in order",
		UNIT_NONE, PARAM_NAMES},
	{"reverse", "reverse", "from the receiver to the sender", UNIT_NONE, PARAM_NAMES},
	PARAM_END,
};
static_assert(FLOWS_DIRECTIONS == 2, "rows of flows_path_params, in the order of the directions");

// A name, or a list of names.
static int route_read(
	struct flows_route *r, const char *what, struct config_node *node, struct err *err) {
	bool list = config_kind(node) == CONFIG_LIST;

	r->node = node;
	r->count = 0;
	if (list && config_count(node) > FLOWS_ROUTE_MAX)
		return config_err(
			node, -E2BIG, err, "%s: more than %d paths", what, FLOWS_ROUTE_MAX);
	if (list) {
		for (size_t i = 0; i < config_count(node); i++)
			r->path[r->count++] = config_text(config_at(node, i));
	} else {
		r->path[r->count++] = config_text(node);
	}
	for (uint32_t i = 0; i < r->count; i++) {
		if (r->path[i] == NULL || r->path[i][0] == '\0')
			r->count = 0;
	}
	return r->count > 0 ? 0
			    : config_err(node, -EINVAL, err,
				    "%s: must be the name of a path, or a list of names in order "
				    "such as [hop1, hop2]",
				    what);
}

// Both directions of a group.
static int routes_read(
	struct flows_route route[FLOWS_DIRECTIONS], struct config_node *group, struct err *err) {
	static const struct param none[] = {PARAM_END};
	struct config_node *node = config_get(group, "path");
	int rc = 0;

	for (int d = 0; d < FLOWS_DIRECTIONS; d++)
		route[d] = (struct flows_route){.path = {flows_path_params[d].def}, .count = 1};
	if (node != NULL)
		rc = config_params(node, "path", none, flows_path_params, NULL, err);
	for (int d = 0; rc == 0 && d < FLOWS_DIRECTIONS; d++) {
		const char *key = flows_path_params[d].name;
		struct config_node *at = NULL;

		if (node != NULL && config_kind(node) == CONFIG_MAP)
			at = config_get(node, key);
		if (at != NULL)
			rc = route_read(&route[d], key, at, err);
	}
	return rc;
}

static int group_read(struct group *g, struct config_node *node, struct err *err) {
	int rc = 0;

	if (config_kind(node) != CONFIG_MAP)
		return config_err(
			node, -EINVAL, err, "a flow group is a map such as {count: 10, cc: copa}");
	for (const struct param *p = params; rc == 0 && p->name != NULL; p++)
		rc = config_param(node, "flows", p, g, err);
	return rc;
}

int flows_read(struct flows *f, struct config_node *list, struct err *err) {
	int rc;

	memset(f, 0, sizeof(*f));
	if (list == NULL)
		return 0;
	if (config_kind(list) != CONFIG_LIST || config_count(list) == 0)
		return config_err(list, -EINVAL, err,
			"flows is a list of groups such as - {count: 10, cc: copa}");
	if (config_count(list) > GROUPS_MAX)
		return config_err(list, -ERANGE, err, "flows: at most %d groups", GROUPS_MAX);
	for (size_t i = 0; i < config_count(list); i++) {
		struct group g;

		if ((rc = group_read(&g, config_at(list, i), err)) < 0)
			return rc;
		if ((rc = routes_read(f->route[f->groups], config_at(list, i), err)) < 0)
			return rc;
		f->group_count[f->groups] = (uint32_t)g.count;
		f->base_rtt_ns[f->groups++] = g.base_rtt_ns;
		f->count += (uint32_t)g.count;
	}
	return 0;
}
