// SPDX-License-Identifier: BSD-3-Clause
// The assignment of ports and paths to lcores, the rings between lcores, and the packet counts over
// all of them.
#include "switch/live/lcore.h"

#include <errno.h>
#include <stdlib.h>

// Sets up a port in an lcore, which may be its owner.
static int assign_port(struct switch_lcore *s, uint32_t i, struct err *err) {
	const struct switch_config_port *config = &s->config->port[i];
	struct switch_port *p = &s->port[i];
	int rc = egress_init(
		&p->egress, &s->lcore, i, SWITCH_EGRESS_SLOTS, &s->config->process, err);

	s->lcore.rx_queue[i] = -1;
	for (uint16_t q = 0; q < config->rx_queues; q++) {
		if (switch_config_receiver(s->config, i, q) == s->lcore.index)
			s->lcore.rx_queue[i] = q;
	}
	if (s->lcore.rx_queue[i] == 0)
		s->lcore.port[i]->clock = &s->lcore.clock;
	s->lcore.owns_port[i] = config->lcore == s->lcore.index;
	p->last_link = STAGE_NO_LINK;
	if (!s->lcore.owns_port[i]) {
		p->egress.ring = &s->ring[config->lcore];
		p->egress.ring_drops = true;
		return rc;
	}
	p->path = config->path;
	p->quota = config->quota;
	p->large_quota = config->large_quota;
	if (p->path != NULL)
		p->last_link = path_last_link(p->path);
	return rc;
}

// Assigns paths in the order of the config.
static void assign_paths(struct switch_lcore *s, struct paths *paths) {
	s->all_paths = paths;
	s->links = paths_links(paths);
	for (uint32_t i = 0; s->routes != NULL && i < paths->count; i++)
		s->path[s->paths++] = &paths->path[i];
	for (uint32_t i = 0; s->routes == NULL && i < paths->count; i++) {
		for (uint32_t k = 0; k < s->lcore.ports; k++) {
			if (s->port[k].path == &paths->path[i])
				s->path[s->paths++] = &paths->path[i];
		}
	}
	struct pkt_owner owner = switch_pkt_owner(s);

	for (uint32_t i = 0; i < s->paths; i++) {
		path_streams(s->path[i], &s->lcore.tel[TEL_STREAM_PACKETS],
			&s->lcore.tel[TEL_STREAM_ARRIVALS]);
		path_owner(s->path[i], &owner);
	}
}

static int make_ring(struct switch_lcore *from, struct switch_lcore *to, struct err *err) {
	struct lcore_ring *ring = &from->ring[to->lcore.index];

	if (from == to)
		return 0;
	to->rx_ring[to->rx_rings++] = ring;
	return lcore_ring_init(ring, from->config->process.handover, err);
}

int switch_assign(struct switch_lcore *all, struct paths *paths, const struct schedule *schedule,
	struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < all->lcore.lcores; i++) {
		struct switch_lcore *s = &all[i];

		for (uint32_t k = 0; rc == 0 && k < s->lcore.ports; k++)
			rc = assign_port(s, k, err);
		if (rc == 0)
			rc = switch_routes_init(s, paths, err);
		assign_paths(s, paths);
		if (rc == 0)
			rc = schedule_part(&s->schedule, schedule, s->path, s->paths, err);
		for (uint32_t k = 0; rc == 0 && k < all->lcore.lcores; k++)
			rc = make_ring(s, &all[k], err);
	}
	return rc;
}

void switch_unassign(struct switch_lcore *all) {
	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		for (uint32_t k = 0; k < all[i].lcore.ports; k++)
			egress_fini(&all[i].port[k].egress);
		schedule_fini(&all[i].schedule);
		free(all[i].routes);
		all[i].routes = NULL;
	}
}

void switch_clear(struct switch_lcore *all) {
	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		for (uint32_t k = 0; k < all[i].rx_rings; k++) {
			struct pkt_count left = lcore_ring_clear(all[i].rx_ring[k]);

			pkt_count_add(&all[i].unread, left.pkts, left.bytes);
		}
	}
}

struct pkt_count switch_dropped(const struct switch_lcore *s, enum drop_reason why) {
	struct pkt_count c = s->drop[why];

	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		const struct egress *e = &s->port[i].egress;

		if (why == DROP_TX)
			pkt_count_add(&c, e->dropped.pkts, e->dropped.bytes);
		else if (why == DROP_MTU)
			pkt_count_add(&c, e->too_long.pkts, e->too_long.bytes);
	}
	return c;
}

struct pkt_count switch_inside(const struct switch_lcore *all) {
	struct pkt_count in = {0};

	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		const struct switch_lcore *s = &all[i];

		pkt_count_add(&in, s->unread.pkts, s->unread.bytes);
		for (uint32_t k = 0; k < s->lcore.ports; k++) {
			pkt_count_add(
				&in, s->port[k].egress.count, egress_bytes(&s->port[k].egress));
			pkt_count_add(&in, s->port[k].due.count, s->port[k].due.bytes);
		}
		for (uint32_t k = 0; k < s->paths; k++) {
			struct backlog b = path_backlog(s->path[k]);

			pkt_count_add(&in, b.pkts, b.bytes);
		}
	}
	return in;
}

bool switch_balanced(const struct switch_lcore *all) {
	struct pkt_count out = switch_inside(all), in = {0};

	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		const struct switch_lcore *s = &all[i];

		pkt_count_add(&in, s->copied.pkts, s->copied.bytes);
		for (uint32_t k = 0; k < s->lcore.ports; k++) {
			const struct switch_port *p = &s->port[k];

			pkt_count_add(&in, p->rx.pkts, p->rx.bytes);
			if (p->source != NULL)
				pkt_count_add(&in, p->source->pushed.pkts, p->source->pushed.bytes);
			pkt_count_add(&out, p->egress.tx.pkts, p->egress.tx.bytes);
		}
		for (uint32_t r = 0; r < DROP_REASONS; r++) {
			struct pkt_count drop = switch_dropped(s, r);

			pkt_count_add(&out, drop.pkts, drop.bytes);
		}
		for (uint32_t k = 0; k < s->paths; k++) {
			const struct path *p = s->path[k];

			if (!path_balanced(p))
				return false;
			pkt_count_add(&in, p->copies.made.pkts, p->copies.made.bytes);
			for (uint32_t r = 0; r < DROP_REASONS; r++)
				pkt_count_add(&out, p->drop[r].pkts, p->drop[r].bytes);
		}
	}
	return in.pkts == out.pkts && in.bytes == out.bytes;
}
