// SPDX-License-Identifier: BSD-3-Clause
// The cards of a config's `hosts` as stages at both ends of the paths between them:
//
//	hosts.sending -> card -> forward -> card -> hosts.receiving
//	                      <- reverse <-
//
// A card that sends is an edge (stage/edges.c), one that receives a stage of its own
// (stage/card.c); their stages are called forward.sending, forward.receiving, and so on.
#include "switch/path/path_route.h"
#include "switch/stage/card.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The stage that packets of direction d come to first, or last: its path.
static struct path *end_path(const struct paths *ps, uint32_t group, uint32_t d, bool last) {
	const struct route *r = &ps->route[group][d];

	return r->path[last ? r->count - 1 : 0];
}

// Makes room for a stage at an end of the path that all packets of direction d have there.
static int add_stage(struct paths *ps, const struct stage_ops *ops, const struct hosts *hosts,
	enum flows_direction side, enum flows_direction d, struct path_stage **stage,
	struct err *err) {
	struct config_node *node = hosts->side[side].node;
	bool last = side != d;

	if (ps->groups == 0)
		return config_err(node, -EINVAL, err, "hosts: they need flows");
	struct path *p = end_path(ps, 0, d, last);
	struct path_stage *s = &p->stage[last ? p->stages : 0];

	for (uint32_t g = 1; g < ps->groups; g++) {
		if (end_path(ps, g, d, last) != p)
			return config_err(node, -EINVAL, err,
				"hosts: all packets must %s their cards by one path, not by %s and "
				"%s",
				last ? "come to" : "leave", p->name,
				end_path(ps, g, d, last)->name);
	}
	if (p->stages == PATH_STAGES_MAX)
		return config_err(node, -E2BIG, err, "%s: more than %d stages with the cards",
			p->name, PATH_STAGES_MAX);
	void *state = calloc(1, ops->state_size);
	if (state == NULL)
		return err_set(err, -ENOMEM, "%s: no memory", p->name);
	memmove(s + 1, s, (size_t)(&p->stage[p->stages++] - s) * sizeof(*s));
	*s = (struct path_stage){.ops = ops, .state = state, .node = node};
	static_assert(sizeof(s->name) >= sizeof(p->name) + sizeof("receiving"), "a whole name");
	memcpy(s->name, p->name, strlen(p->name));
	s->name[strlen(p->name)] = '.';
	memcpy(s->name + strlen(p->name) + 1, hosts_params[side].name,
		strlen(hosts_params[side].name));
	*stage = s;
	return 0;
}

// A card that sends has the parameters of an edge.
static int add_sending(
	struct paths *ps, const struct hosts *hosts, enum flows_direction side, struct err *err) {
	static const struct {
		const char *edges, *hosts;
	} keys[] = {{"count", "count"}, {"rate", "card"}, {"limit", "limit"}};
	const struct stage_ops *edges = stage_find("edges");
	struct path_stage *s;
	int rc = add_stage(ps, edges, hosts, side, side, &s, err);

	if (rc < 0 || (rc = param_defaults(edges->params, s->state, err)) < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct config_node *at = config_get(s->node, keys[i].hosts);

		rc = param_set(
			param_find(edges->params, keys[i].edges), s->state, config_text(at), err);
	}
	return rc;
}

static int add_receiving(
	struct paths *ps, const struct hosts *hosts, enum flows_direction side, struct err *err) {
	struct path_stage *s;
	int rc = add_stage(ps, &stage_card, hosts, side, FLOWS_DIRECTIONS - 1 - side, &s, err);

	if (rc == 0) {
		card_configure(s->state, &hosts->side[side]);
		ps->cards[side] = s->state;
	}
	return rc;
}

int path_hosts_add(struct paths *ps, const struct hosts *hosts, struct err *err) {
	int rc = 0;

	for (uint32_t side = 0; rc == 0 && hosts != NULL && side < FLOWS_DIRECTIONS; side++) {
		const struct hosts_side *of = &hosts->side[side];

		if (of->node == NULL || of->guests)
			continue;
		if (of->card_bps > 0)
			rc = add_sending(ps, hosts, side, err);
		if (rc == 0)
			rc = add_receiving(ps, hosts, side, err);
	}
	return rc;
}
