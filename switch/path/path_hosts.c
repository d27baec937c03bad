// SPDX-License-Identifier: BSD-3-Clause
// The cards of a config's `hosts` as stages at both ends of the paths between them:
//
//	hosts.sending -> card -> forward -> card -> hosts.receiving
//	                      <- reverse <-
//
// Cards that send are edges (stage/edges.c), or links if they differ or have a discipline
// (stage/card_out.c); those that receive are stage/card.c. Their stages are called forward.sending,
// forward.receiving, and so on. Where packets of a direction begin, or end, on several paths, all
// of them pass one more, which has only the cards: sending-out, receiving-in, and so on.
#include "switch/path/path_route.h"
#include "switch/stage/card.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The path that packets of direction d enter first, or last.
static struct path *end_path(const struct paths *ps, uint32_t group, uint32_t d, bool last) {
	const struct route *r = &ps->route[group][d];

	return r->path[last ? r->count - 1 : 0];
}

static bool one_end(const struct paths *ps, uint32_t d, bool last) {
	for (uint32_t g = 1; g < ps->groups; g++) {
		if (end_path(ps, g, d, last) != end_path(ps, 0, d, last))
			return false;
	}
	return true;
}

// Adds a path without stages to all routes of direction d, first or last.
static int add_path(struct paths *ps, struct config_node *node, enum flows_direction side,
	uint32_t d, bool last, struct path **path, struct err *err) {
	struct path *p = &ps->path[ps->count];

	if (ps->count == PATHS_MAX)
		return config_err(node, -E2BIG, err,
			"hosts: more than %d paths with that of the cards", PATHS_MAX);
	snprintf(p->name, sizeof(p->name), "%s-%s", hosts_params[side].name, last ? "in" : "out");
	if (paths_find(ps, p->name) != NULL)
		return config_err(node, -EINVAL, err,
			"hosts: their cards are the path '%s': give yours another name", p->name);
	p->index = (uint8_t)ps->count++;
	for (uint32_t g = 0; g < ps->groups; g++) {
		struct route *r = &ps->route[g][d];

		if (r->count == FLOWS_ROUTE_MAX)
			return config_err(node, -E2BIG, err,
				"hosts: a route has more than %d paths with that of the cards",
				FLOWS_ROUTE_MAX);
		if (!last)
			memmove(&r->path[1], &r->path[0], r->count * sizeof(r->path[0]));
		r->path[last ? r->count : 0] = p;
		r->count++;
	}
	routes_round_trip(ps, p);
	*path = p;
	return 0;
}

// Makes room for a stage at an end of the path that all packets of direction d have there; where
// they have several, that is a new one.
static int add_stage(struct paths *ps, const struct stage_ops *ops, const struct hosts *hosts,
	enum flows_direction side, enum flows_direction d, struct path_stage **stage,
	struct err *err) {
	struct config_node *node = hosts->side[side].kind[0].node;
	bool last = side != d;
	struct path *p;
	int rc;

	if (ps->groups == 0)
		return config_err(node, -EINVAL, err, "hosts: they need flows");
	p = end_path(ps, 0, d, last);
	if (!one_end(ps, d, last) && (rc = add_path(ps, node, side, d, last, &p, err)) < 0)
		return rc;
	if (p->stages == PATH_STAGES_MAX)
		return config_err(node, -E2BIG, err, "%s: more than %d stages with the cards",
			p->name, PATH_STAGES_MAX);
	struct path_stage *s = &p->stage[last ? p->stages : 0];
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

// By Linux's name or ours; NULL: there is none.
static const struct aqm_ops *find_qdisc(const char *name) {
	return aqm_find(strcmp(name, "pfifo") == 0 ? "fifo"
			: strcmp(name, "fq") == 0  ? "drr"
						   : name);
}

// The disciplines of a side's kinds, in ps->qdisc. 0: its cards send at once; 1: they are edges; 2:
// they have queues of their own.
static int find_qdiscs(
	struct paths *ps, const struct hosts_side *of, enum flows_direction side, struct err *err) {
	bool rates = false, edges = of->kinds == 1;

	for (uint32_t k = 0; k < of->kinds; k++) {
		const struct hosts_kind *kind = &of->kind[k];

		ps->qdisc[side][k] = find_qdisc(kind->qdisc);
		if (ps->qdisc[side][k] == NULL)
			return config_err(config_get(kind->node, "qdisc"), -EINVAL, err,
				"qdisc: '%s' is not pfifo, fq or a queue discipline (weir list "
				"aqm)",
				kind->qdisc);
		edges &= strcmp(kind->qdisc, "pfifo") == 0;
		rates |= kind->card_bps > 0 || strcmp(kind->qdisc, "pfifo") != 0;
	}
	for (uint32_t k = 0; rates && k < of->kinds; k++) {
		if (of->kind[k].card_bps == 0)
			return config_err(of->kind[k].node, -EINVAL, err,
				"hosts: cards without a rate have no queue: write card: 10Gbit");
	}
	return rates ? edges ? 1 : 2 : 0;
}

// Cards that send and are alike have the parameters of edges.
static int add_edges(
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

static int add_sending(
	struct paths *ps, const struct hosts *hosts, enum flows_direction side, struct err *err) {
	const struct hosts_side *of = &hosts->side[side];
	struct path_stage *s;
	int rc = find_qdiscs(ps, of, side, err);

	if (rc <= 0)
		return rc;
	if (rc == 1)
		return add_edges(ps, hosts, side, err);
	rc = add_stage(ps, &stage_card_out, hosts, side, side, &s, err);
	if (rc == 0)
		card_out_configure(s->state, of, ps->qdisc[side]);
	return rc;
}

// Whether cards do anything to what arrives. Of ACKs GRO joins nothing.
static bool cards_matter(const struct hosts_side *of, enum flows_direction side) {
	bool matter = side == FLOWS_REVERSE && of->gro;

	for (uint32_t k = 0; k < of->kinds; k++)
		matter |= of->kind[k].coalesce_ns > 0 || of->kind[k].cpu_ns > 0;
	return matter;
}

static int add_receiving(
	struct paths *ps, const struct hosts *hosts, enum flows_direction side, struct err *err) {
	struct path_stage *s;
	int rc;

	if (!cards_matter(&hosts->side[side], side))
		return 0;
	rc = add_stage(ps, &stage_card, hosts, side, FLOWS_DIRECTIONS - 1 - side, &s, err);

	if (rc == 0) {
		card_configure(s->state, &hosts->side[side]);
		ps->cards[side] = s->state;
	}
	return rc;
}

int path_hosts_add(struct paths *ps, const struct hosts *hosts, struct err *err) {
	int rc = 0;

	for (uint32_t side = 0; rc == 0 && hosts != NULL && side < FLOWS_DIRECTIONS; side++) {
		if (!hosts_ours(&hosts->side[side]))
			continue;
		rc = add_sending(ps, hosts, side, err);
		if (rc == 0)
			rc = add_receiving(ps, hosts, side, err);
	}
	return rc;
}
