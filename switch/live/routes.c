// SPDX-License-Identifier: BSD-3-Clause
// Several bottlenecks in one switch: packets of flows whose group names its paths pass these one
// after the other.
//
//	receive -> first path -> ... -> last path -> port's list -> port
//
// Paths are emptied up to now before the packets of this iteration enter any, in the order of the
// routes: so a packet enters the next path at the time at which it was due to leave the one before,
// and behind what entered there earlier. A packet whose group names no path passes the path of its
// port, if it has one.
#include "switch/live/lcore.h"
#include "switch/path/path_route.h"

#include <errno.h>
#include <stdlib.h>

#define PASS_MAX 16 // packets taken off a path at a time

static void add_route(struct switch_routes *r, uint32_t number, const struct route *route) {
	struct path **next = &r->first[number];

	for (uint32_t i = 0; i < route->count; i++) {
		*next = route->path[i];
		next = &r->next[number][route->path[i]->index];
	}
}

// As in virtual time. Paths that are computed ahead come first: what leaves them entered them in an
// earlier iteration.
static void find_order(struct switch_routes *r, struct paths *paths) {
	struct route_graph g;
	struct route_order o;

	routes_graph(paths, &g);
	routes_order(paths, &g, &o);
	for (uint32_t i = 0; i < paths->count; i++) {
		if ((o.ahead >> route_node(&paths->path[i]) & 1) != 0)
			r->order[r->paths++] = &paths->path[i];
	}
	for (uint32_t i = 0; i < o.nodes; i++) {
		if (o.node[i] >= NODE_PATHS)
			r->order[r->paths++] = &paths->path[o.node[i] - NODE_PATHS];
	}
}

int switch_routes_init(struct switch_lcore *s, struct paths *paths, struct err *err) {
	const struct switch_config *config = s->config;
	struct switch_routes *r;

	if (!config->routed)
		return 0;
	if ((r = calloc(1, sizeof(*r))) == NULL)
		return err_set(err, -ENOMEM, "no memory for the routes");
	s->routes = r;
	for (uint32_t g = 0; g < config->groups; g++) {
		for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
			if (config->group_route[g][d].node != NULL)
				add_route(r, 1 + FLOWS_DIRECTIONS * g + d, &paths->route[g][d]);
		}
	}
	find_order(r, paths);
	for (uint32_t i = 0; i < paths->count; i++)
		r->exit[i] = (struct stage_env){
			.tel_packets = &s->lcore.tel[TEL_STREAM_PACKETS],
			.tel_run = paths->path[i].tel_run,
			.link_index = path_last_link(&paths->path[i]),
			.path_index = (uint8_t)i,
			.stage_index = UINT8_MAX,
		};
	return 0;
}

static void enter(struct switch_lcore *s, struct path *path, struct pkt *p) {
	if (path == NULL)
		pkt_list_push(&s->port[packet_metadata(p)->port].due, p);
	else
		path_push(path, &p, 1);
}

void switch_routes_push(struct switch_lcore *s, struct switch_port *out, uint32_t n) {
	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = out->batch[i];
		uint8_t route = packet_metadata(p)->route;

		enter(s, route > 0 ? s->routes->first[route] : out->path, p);
	}
}

static void pass(struct switch_lcore *s, struct path *path) {
	const struct switch_routes *r = s->routes;
	struct pkt *pkts[PASS_MAX];
	uint32_t n;

	do {
		n = path_pop(path, s->lcore.now_ns, pkts, PASS_MAX);
		for (uint32_t i = 0; i < n; i++) {
			uint8_t route = packet_metadata(pkts[i])->route;

			stage_trace(
				&r->exit[path->index], TEL_DEPART, pkts[i], pkts[i]->arrival_ns, 0);
			enter(s, r->next[route][path->index], pkts[i]);
		}
	} while (n == PASS_MAX);
}

void switch_routes_pass(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->routes->paths; i++)
		pass(s, s->routes->order[i]);
}
