// SPDX-License-Identifier: BSD-3-Clause
// What the switch's lcores have of each other: who has what, the rings between them, one ledger.
#include "switch/live/lcore.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_ring.h>

static void count(struct path_count *c, uint64_t pkts, uint64_t bytes) {
	c->pkts += pkts;
	c->bytes += bytes;
}

// The lcore's view of a port: its own, or another's.
static void see_port(struct switch_lcore *s, uint32_t i) {
	const struct plan_port *plan = &s->plan->port[i];
	struct switch_port *p = &s->port[i];

	p->port = s->lcore.port[i];
	s->lcore.rx_queue[i] = -1;
	for (uint16_t q = 0; q < plan->rx_queues; q++) {
		if (plan_receiver(s->plan, i, q) == s->lcore.index)
			s->lcore.rx_queue[i] = q;
	}
	s->lcore.owns_port[i] = plan->lcore == s->lcore.index;
	p->refused_ns = NEVER_NS;
	p->last_link = STAGE_NO_LINK;
	if (!s->lcore.owns_port[i]) {
		p->to = &s->give[plan->lcore];
		return;
	}
	p->path = plan->path;
	p->share = plan->share;
	p->large_share = plan->large;
	if (p->path != NULL)
		p->last_link = path_last_link(p->path);
}

// Paths in the order of the config.
static void take_paths(struct switch_lcore *s, struct paths *paths) {
	s->whole = paths;
	s->links = paths_links(paths);
	for (uint32_t i = 0; i < paths->count; i++) {
		for (uint32_t k = 0; k < s->lcore.ports; k++) {
			if (s->port[k].path == &paths->path[i])
				s->path[s->paths++] = &paths->path[i];
		}
	}
	for (uint32_t i = 0; i < s->paths; i++)
		path_streams(s->path[i], &s->lcore.tel[TEL_STREAM_PACKETS],
			&s->lcore.tel[TEL_STREAM_ARRIVALS]);
}

static int make_ring(struct switch_lcore *from, struct switch_lcore *to, struct err *err) {
	char name[RTE_RING_NAMESIZE];
	struct rte_ring *ring;

	snprintf(name, sizeof(name), "weir%uto%u", from->lcore.index, to->lcore.index);
	ring = rte_ring_create(name, (unsigned int)from->plan->handover, (int)rte_socket_id(),
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (ring == NULL)
		return err_set(err, -rte_errno, "handover: a ring of %llu frames: %s",
			(unsigned long long)from->plan->handover, rte_strerror(rte_errno));
	from->give[to->lcore.index].ring = ring;
	to->take[to->takes++] = ring;
	return 0;
}

int switch_share(struct switch_lcore *all, struct paths *paths, const struct schedule *schedule,
	struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < all->lcore.lcores; i++) {
		struct switch_lcore *s = &all[i];

		s->lcore.ports = s->plan->ports;
		for (uint32_t k = 0; k < s->lcore.ports; k++)
			see_port(s, k);
		take_paths(s, paths);
		rc = schedule_part(&s->schedule, schedule, s->path, s->paths, err);
		for (uint32_t k = 0; rc == 0 && k < all->lcore.lcores; k++) {
			if (k != i)
				rc = make_ring(s, &all[k], err);
		}
	}
	return rc;
}

void switch_unshare(struct switch_lcore *all) {
	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		for (uint32_t k = 0; k < all[i].takes; k++)
			rte_ring_free(all[i].take[k]);
		all[i].takes = 0;
		schedule_fini(&all[i].schedule);
	}
}

void switch_clear(struct switch_lcore *all) {
	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		for (uint32_t k = 0; k < all[i].takes; k++) {
			void *m;

			while (rte_ring_sc_dequeue(all[i].take[k], &m) == 0) {
				count(&all[i].unread, 1,
					port_frame_bytes(((struct rte_mbuf *)m)->pkt_len));
				rte_pktmbuf_free(m);
			}
		}
	}
}

struct path_count switch_inside(const struct switch_lcore *all) {
	struct path_count in = {0};

	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		const struct switch_lcore *s = &all[i];

		count(&in, s->unread.pkts, s->unread.bytes);
		for (uint32_t k = 0; k < s->lcore.ports; k++) {
			for (uint32_t n = 0; n < s->port[k].outs; n++)
				count(&in, 1, s->port[k].due[n].size_bytes);
		}
		for (uint32_t k = 0; k < s->paths; k++) {
			struct backlog b = path_backlog(s->path[k]);

			count(&in, b.pkts, b.bytes);
		}
	}
	return in;
}

bool switch_balanced(const struct switch_lcore *all) {
	struct path_count out = switch_inside(all), in = {0};

	for (uint32_t i = 0; i < all->lcore.lcores; i++) {
		const struct switch_lcore *s = &all[i];

		count(&in, s->copies, s->copied_bytes);
		for (uint32_t k = 0; k < s->lcore.ports; k++) {
			count(&in, s->port[k].rx.pkts, s->port[k].rx.bytes);
			count(&out, s->port[k].tx.pkts, s->port[k].tx.bytes);
		}
		for (uint32_t r = 0; r < DROP_REASONS; r++)
			count(&out, s->drop[r].pkts, s->drop[r].bytes);
		for (uint32_t k = 0; k < s->paths; k++) {
			const struct path *p = s->path[k];

			if (!path_balanced(p))
				return false;
			for (uint32_t r = 0; r < DROP_REASONS; r++)
				count(&out, p->drop[r].pkts, p->drop[r].bytes);
		}
	}
	return in.pkts == out.pkts && in.bytes == out.bytes;
}
