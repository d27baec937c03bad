// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/flows.h"

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
		f->group_count[f->groups] = (uint32_t)g.count;
		f->base_rtt_ns[f->groups++] = g.base_rtt_ns;
		f->count += (uint32_t)g.count;
	}
	return 0;
}
