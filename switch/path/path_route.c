// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/path_route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct flows_route route_default[FLOWS_DIRECTIONS] = {
	[FLOWS_FORWARD] = {.path = {"forward"}, .count = 1},
	[FLOWS_REVERSE] = {.path = {"reverse"}, .count = 1},
};

static bool route_has(const struct route *r, const struct path *p) {
	for (uint32_t i = 0; i < r->count; i++) {
		if (r->path[i] == p)
			return true;
	}
	return false;
}

// Paths by their names. One that the config does not name may be missing: live, ports lead into
// paths of any name.
static int route_find(
	struct paths *ps, struct route *r, const struct flows_route *names, struct err *err) {
	char known[CONFIG_NAMES_SIZE];

	r->count = 0;
	for (uint32_t i = 0; i < names->count; i++) {
		struct path *p = paths_find(ps, names->path[i]);

		if (p == NULL && names->node == NULL)
			return 0;
		paths_names(ps, known);
		if (p == NULL)
			return config_err(names->node, -EINVAL, err,
				"path: there is no path '%s'; there is %s", names->path[i], known);
		if (route_has(r, p))
			return config_err(names->node, -EINVAL, err,
				"path: '%s' is there twice; a packet passes a path once", p->name);
		r->path[r->count++] = p;
	}
	return 0;
}

static uint64_t route_delay_ns(const struct route *r) {
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < r->count; i++)
		sum_ns += path_min_delay_ns(r->path[i]);
	return sum_ns;
}

static uint64_t group_delay_ns(const struct paths *ps, uint32_t group) {
	return route_delay_ns(&ps->route[group][FLOWS_FORWARD])
		+ route_delay_ns(&ps->route[group][FLOWS_REVERSE]);
}

// The path whose last delay stage carries the rest of a group's base RTT: the last one with a delay
// stage, reverse first. Not one that the group's packets pass in both directions.
static struct path *group_carrier(struct paths *ps, uint32_t group) {
	for (int d = FLOWS_DIRECTIONS; d-- > 0;) {
		const struct route *r = &ps->route[group][d];

		for (uint32_t i = r->count; i-- > 0;) {
			if (path_last_delay(r->path[i]) != NULL
				&& !route_has(&ps->route[group][1 - d], r->path[i]))
				return r->path[i];
		}
	}
	return NULL;
}

static struct config_node *group_node(const struct paths_env *env, uint32_t g, const char *key) {
	struct config_node *node = env->flows != NULL ? config_at(env->flows, g) : NULL;

	return node != NULL && key != NULL ? config_get(node, key) : node;
}

// What its base RTT exceeds the delays of the paths by, for each flow of a group.
static int flow_extras(
	struct flow_delays *f, const struct base_rtts *rtts, uint32_t g, uint64_t have_ns) {
	const struct base_rtt_group *group = &rtts->group[g];
	uint32_t at = f->count, count = at + group->flows;
	uint64_t *extra_ns = realloc(f->extra_ns, count * sizeof(*extra_ns));

	if (extra_ns == NULL)
		return -ENOMEM;
	f->extra_ns = extra_ns;
	f->count = count;
	f->group[g].first = group->first;
	f->group[g].flows = group->flows;
	f->group[g].at = at;
	for (uint32_t i = 0; i < group->flows; i++)
		extra_ns[at + i] = rtts->flow_ns[group->first + i] - have_ns;
	return 0;
}

// A group with base RTTs of its own: the rest of them goes to one delay stage.
static int group_class(struct paths *ps, const struct paths_env *env, uint32_t g, struct err *err) {
	bool drawn = base_rtts_drawn(env->base_rtts, g);
	uint64_t want_ns = env->group_base_rtt_ns != NULL ? env->group_base_rtt_ns[g] : 0;
	uint64_t have_ns = group_delay_ns(ps, g);
	struct path *carrier = group_carrier(ps, g);

	if (drawn && env->base_rtts->group[g].least_ns < have_ns)
		return config_err(group_node(env, g, "base_rtt"), -EINVAL, err,
			"base_rtt: draws begin at %g ms, which is less than the delay of the "
			"paths, %g ms; that is the least that min may be",
			(double)env->base_rtts->group[g].least_ns / 1e6, (double)have_ns / 1e6);
	if (!drawn && (want_ns == 0 || want_ns == have_ns))
		return 0;
	if (!drawn && want_ns < have_ns)
		return config_err(group_node(env, g, NULL), -EINVAL, err,
			"base_rtt %g ms is less than the delay of the paths, %g ms",
			(double)want_ns / 1e6, (double)have_ns / 1e6);
	if (carrier == NULL)
		return err_set(err, -EINVAL,
			"flows: base_rtt needs a delay stage in reverse or forward to carry it; "
			"add {delay: {delay: 0ms}}");
	struct path_stage *s = path_last_delay(carrier);
	uint64_t *extra_ns = ps->class_extra_ns[carrier->index];

	s->env.class_extra_ns = extra_ns;
	s->env.class_count = env->groups;
	if (!drawn) {
		extra_ns[g] = want_ns - have_ns;
		return 0;
	}
	s->env.flow_delays = &ps->flow_delays[carrier->index];
	return flow_extras(&ps->flow_delays[carrier->index], env->base_rtts, g, have_ns) == 0
		? 0
		: err_set(err, -ENOMEM, "base_rtt: no memory for the flows' delays");
}

void routes_round_trip(struct paths *ps, struct path *p) {
	bool used = false;

	for (uint32_t g = 0; g < ps->groups; g++) {
		for (int d = 0; d < FLOWS_DIRECTIONS; d++) {
			if (!route_has(&ps->route[g][d], p))
				continue;
			p->base_rtt_ns = time_max(p->base_rtt_ns, group_delay_ns(ps, g));
			used = true;
		}
	}
	for (int d = 0; !used && d < FLOWS_DIRECTIONS; d++) {
		const struct path *named = paths_find(ps, route_default[d].path[0]);

		p->base_rtt_ns += named != NULL ? path_min_delay_ns(named) : 0;
	}
}

// Live, a group may have none.
static bool routed(const struct paths *ps, uint32_t group) {
	return ps->route[group][FLOWS_FORWARD].count > 0
		&& ps->route[group][FLOWS_REVERSE].count > 0;
}

void routes_graph(const struct paths *ps, struct route_graph *graph) {
	*graph = (struct route_graph){0};
	for (uint32_t g = 0; g < ps->groups; g++) {
		uint32_t from = NODE_SENDER;

		if (!routed(ps, g))
			continue;
		for (int d = 0; d < FLOWS_DIRECTIONS; d++) {
			const struct route *r = &ps->route[g][d];
			uint32_t host = d == FLOWS_FORWARD ? NODE_RECEIVER : NODE_SENDER;

			for (uint32_t i = 0; i < r->count; i++) {
				graph->from[route_node(r->path[i])] |= 1u << from;
				from = route_node(r->path[i]);
			}
			graph->from[host] |= 1u << from;
			from = host;
		}
	}
}

// Where all packets come from groups of flows, every group has a route and every path a group.
static int all_used(const struct paths *ps, struct config_node *node, struct err *err) {
	struct route_graph g;

	for (uint32_t i = 0; i < ps->groups; i++) {
		if (!routed(ps, i))
			return config_err(node, -EINVAL, err,
				"paths: needs 'forward' and 'reverse', or a path: in each group of "
				"flows that names others");
	}
	routes_graph(ps, &g);
	for (uint32_t i = 0; i < ps->count; i++) {
		if (g.from[NODE_PATHS + i] == 0)
			return config_err(node, -EINVAL, err,
				"paths: no group of flows passes '%s'; name it in the path: "
				"of one, or leave it out",
				ps->path[i].name);
	}
	return 0;
}

int routes_init(
	struct paths *ps, struct config_node *node, const struct paths_env *env, struct err *err) {
	int rc = 0;

	if (env->groups > GROUPS_MAX)
		return err_set(err, -E2BIG, "flows: more than %d groups", GROUPS_MAX);
	ps->groups = env->groups;
	for (uint32_t g = 0; g < ps->groups; g++) {
		const struct flows_route *names =
			env->group_route != NULL ? env->group_route[g] : route_default;

		for (int d = 0; rc == 0 && d < FLOWS_DIRECTIONS; d++)
			rc = route_find(ps, &ps->route[g][d], &names[d], err);
		if (rc == 0)
			rc = group_class(ps, env, g, err);
		if (rc < 0)
			return rc;
	}
	for (uint32_t i = 0; i < ps->count; i++)
		routes_round_trip(ps, &ps->path[i]);
	return env->groups_only ? all_used(ps, node, err) : 0;
}

bool routes_sort(const struct paths *ps, const struct route_graph *g, struct route_order *o) {
	uint32_t all = NODE_PATHS + ps->count, done = o->ahead;

	o->nodes = 0;
	for (uint32_t i = 0; i < all;) {
		bool ready = (done >> i & 1) == 0 && (g->from[i] & ~done) == 0;

		if (ready) {
			o->node[o->nodes++] = (uint8_t)i;
			done |= 1u << i;
		}
		i = ready ? 0 : i + 1;
	}
	return done == (1u << all) - 1;
}

void routes_order(const struct paths *ps, const struct route_graph *g, struct route_order *o) {
	o->ahead = 0;
	o->ahead_ns = NEVER_NS;
	while (!routes_sort(ps, g, o)) { // the next shorter delay, until there is an order
		uint64_t next_ns = 0;

		for (uint32_t i = 0; i < ps->count; i++) {
			uint64_t delay_ns = path_min_delay_ns(&ps->path[i]);

			if (delay_ns < o->ahead_ns)
				next_ns = time_max(next_ns, delay_ns);
		}
		o->ahead_ns = next_ns;
		for (uint32_t i = 0; i < ps->count; i++) {
			if (path_min_delay_ns(&ps->path[i]) >= next_ns)
				o->ahead |= 1u << route_node(&ps->path[i]);
		}
	}
}

uint64_t routes_ahead_ns(const struct paths *ps) {
	struct route_graph g;
	struct route_order o;

	routes_graph(ps, &g);
	routes_order(ps, &g, &o);
	return o.ahead_ns;
}

// The paths of a circle without delay: those that no order reaches.
static void circle(const struct paths *ps, char names[static CONFIG_NAMES_SIZE]) {
	struct route_graph g;
	struct route_order o = {0};
	uint32_t reached;

	routes_graph(ps, &g);
	for (uint32_t i = 0; i < ps->count; i++) {
		if (path_min_delay_ns(&ps->path[i]) > 0)
			o.ahead |= 1u << route_node(&ps->path[i]);
	}
	routes_sort(ps, &g, &o);
	reached = o.ahead;
	for (uint32_t i = 0; i < o.nodes; i++)
		reached |= 1u << o.node[i];
	names[0] = '\0';
	for (uint32_t i = 0; i < ps->count; i++) {
		if ((reached >> route_node(&ps->path[i]) & 1) == 0)
			config_name_add(names, ps->path[i].name);
	}
}

int routes_check(const struct paths *ps, struct config_node *node, struct err *err) {
	char names[CONFIG_NAMES_SIZE];

	if (routes_ahead_ns(ps) > 0)
		return 0;
	circle(ps, names);
	return config_err(node, -EINVAL, err,
		"paths: virtual time needs a delay stage of more than 0 in one of %s, through "
		"which packets come back; 1ns will do",
		names);
}
