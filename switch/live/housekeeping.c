// SPDX-License-Identifier: BSD-3-Clause
// The switch's work between iterations: it answers the control thread and records intervals.
#include "switch/live/lcore.h"

#include "switch/path/capture.h"

#include <string.h>

static void snapshot_links(struct switch_lcore *s, struct switch_snapshot *snap, struct path *p) {
	path_serve(p, s->lcore.now_ns);
	for (uint32_t k = 0; k < p->stages; k++) {
		uint32_t n = p->stage[k].env.link_index;

		if (!path_is_link(&p->stage[k]))
			continue;
		const struct stage_stats *link =
			p->stage[k].ops->figures->read(p->stage[k].state, s->lcore.now_ns);
		struct stats_totals t = stats_totals(link, s->lcore.now_ns);

		snap->link[n].path = p->index;
		snprintf(snap->link[n].name, sizeof(snap->link[n].name), "%s", p->stage[k].name);
		snap->link[n].rate_bps = link->rate_bps;
		snap->link[n].queue_pkts = link->queue_pkts;
		snap->link[n].queue_bytes = link->queue_bytes;
		snap->link[n].count = t.count;
		snap->link[n].wire_bits = t.wire_bits;
		snap->link[n].capacity_bits = (double)t.capacity / 1e9;
	}
}

// Adds this lcore's part to a snapshot, which is empty before the first lcore.
static void snapshot(struct switch_lcore *s, struct switch_snapshot *snap) {
	snap->now_ns = time_max(snap->now_ns, s->lcore.now_ns);
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		const struct switch_port *p = &s->port[i];

		pkt_count_add(&snap->rx[i], p->rx.pkts, p->rx.bytes);
		snap->tx_dropped[i] += p->egress.dropped.pkts + p->egress.too_long.pkts;
		if (!s->lcore.owns_port[i])
			continue;
		snap->tx[i] = p->egress.tx;
		snap->left[i] = p->egress.late.total;
		snap->late_sum_ns[i] = p->egress.late.sum;
		snap->late_max_ns[i] = p->egress.late.max;
	}
	for (uint32_t i = 0; i < s->paths; i++) {
		const struct path *p = s->path[i];

		snap->in[p->index] = p->in;
		snap->duplicated[p->index] = p->copies.made;
		snap->out[p->index] = p->out;
		memcpy(snap->drop[p->index], p->drop, sizeof(p->drop));
		snap->inside[p->index] = path_backlog(p).pkts;
		snapshot_links(s, snap, s->path[i]);
	}
}

static void read_params(
	const struct switch_lcore *s, uint32_t first, double value[CONTROL_STRINGS]) {
	struct path_param at = {0};

	for (uint32_t i = 0; i < first + CONTROL_STRINGS && paths_next_param(s->all_paths, &at);
		i++) {
		for (uint32_t k = 0; i >= first && k < s->paths; k++) {
			if (s->path[k]->index == at.path)
				value[i - first] = at.value;
		}
	}
}

static void set_param(struct switch_lcore *s, struct switch_mailbox *box) {
	uint16_t link = UINT16_MAX;
	struct tel_events *r;

	box->rc = path_set(box->path, box->key, box->value, s->lcore.now_ns, &box->before,
		&box->after, &box->err);
	if (box->rc < 0 || (r = tel_put(&s->lcore.tel[TEL_STREAM_EVENTS])) == NULL)
		return;
	for (uint32_t i = 0; i < box->path->stages; i++) {
		const struct path_stage *st = &box->path->stage[i];
		const char *name = st->name + strlen(box->path->name) + 1;

		if (strncmp(box->key, name, strlen(name)) == 0 && box->key[strlen(name)] == '.')
			link = path_event_group(st);
	}
	*r = (struct tel_events){
		.ts_ns = s->lcore.now_ns,
		.value = box->after,
		.flow_id = TEL_NO_FLOW,
		.detail = UINT32_MAX, // not from the schedule
		.before = (float)box->before,
		.event = TEL_EV_PARAM,
		.group = link,
	};
}

void switch_measure(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);

	if (l->interval_ns > 0 && l->now_ns > l->start_ns)
		switch_interval(s);
	s->gather.stepped_ns = l->now_ns;
	for (uint32_t i = 0; i < s->paths; i++)
		path_measure(s->path[i], l->now_ns);
	for (uint32_t i = 0; i < l->ports; i++)
		egress_measure(&s->port[i].egress);
}

bool switch_answer(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);

	s->mailbox.rc = 0;
	s->gather.stepped_ns = l->now_ns;
	switch ((enum switch_request)l->box.request) {
	case SWITCH_SNAPSHOT:
		snapshot(s, &s->all->mailbox.snapshot);
		break;
	case SWITCH_PARAMS:
		read_params(s, l->box.first, s->all->mailbox.param);
		break;
	case SWITCH_SET:
		set_param(s, &s->mailbox);
		break;
	case SWITCH_MEASURE:
		lcore_measure(l);
		break;
	}
	return true;
}

// Times of the schedule count from the run's start.
void switch_start(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);

	for (uint32_t i = 0; i < s->schedule.count; i++)
		s->schedule.entry[i].at_ns += l->start_ns;
	s->schedule_ns = schedule_next_ns(&s->schedule);
}

void switch_observe(const struct lcore *l, struct watch_count *c) {
	const struct switch_lcore *s = (const struct switch_lcore *)(const void *)l;

	c->no_buffer = s->drop[DROP_NO_MBUF].pkts;
	for (uint32_t i = 0; i < l->lcores; i++) {
		c->handed_over += s->ring[i].nb_handed;
		c->handover_dropped +=
			atomic_load_explicit(&s->ring[i].dropped, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < s->rx_rings; i++)
		c->not_taken += atomic_load_explicit(&s->rx_ring[i]->dropped, memory_order_relaxed);
}

void switch_interval(struct switch_lcore *s) {
	s->gather.stepped_ns = s->lcore.now_ns;
	for (uint32_t i = 0; i < s->paths; i++)
		path_interval(s->path[i], &s->lcore.tel[TEL_STREAM_LINKS],
			&s->lcore.tel[TEL_STREAM_EVENTS], s->lcore.now_ns);
}

// A run with captures begins when the ports behind them are up, unless packets from elsewhere begin
// it, and ends when all that they held has left.
static void follow_sources(struct switch_lcore *s) {
	bool up = true, ended = true;

	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		const struct switch_port *p = &s->port[i];

		if (p->source != NULL) {
			up &= p->egress.port->was_up && p->egress.port->started;
			ended &= switch_source_ended(p->source);
		}
		ended &= p->egress.count == 0;
	}
	for (uint32_t i = 0; i < s->paths; i++)
		ended &= path_backlog(s->path[i]).pkts == 0;
	if (s->lcore.start_ns == NEVER_NS && s->config->start == SWITCH_START_NOW && up)
		lcore_start(&s->lcore);
	else if (s->lcore.start_ns != NEVER_NS && ended)
		s->lcore.ended = true;
}

bool switch_housekeep(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);
	bool interval_over = lcore_interval_over(l);

	for (uint32_t i = 0; i < l->ports; i++) {
		bool up = atomic_load_explicit(&l->port[i]->up, memory_order_relaxed);

		if (fabric_is_up(&s->fabric, i) != up)
			fabric_set_up(&s->fabric, i, up);
	}
	if (interval_over)
		switch_interval(s);
	if (s->sources > 0)
		follow_sources(s);
	capture_reached(s->capture, l->index, s->path, s->paths, l->now_ns);
	return interval_over;
}
