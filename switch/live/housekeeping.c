// SPDX-License-Identifier: BSD-3-Clause
// What an lcore of the switch does between bursts: it answers the control thread, follows the ports and
// the clock, and looks whether the run is over.
#include "switch/live/lcore.h"

#include "common/live/intr.h"
#include "common/run/run.h"
#include "switch/stage/link.h"

#include <string.h>

static void snapshot_links(struct switch_live *s, struct switch_snapshot *snap, struct path *p) {
	path_serve(p, s->now_ns);
	for (uint32_t k = 0; k < p->stages; k++) {
		uint32_t n = p->stage[k].env.link_index;

		if (p->stage[k].ops != &stage_link)
			continue;
		const void *link = p->stage[k].state;
		struct link_totals t = link_totals(link, s->now_ns);
		struct backlog b = link_queue(link);

		snap->link[n].path = p->index;
		snprintf(snap->link[n].name, sizeof(snap->link[n].name), "%s", p->stage[k].name);
		snap->link[n].rate_bps = link_rate_bps(link);
		snap->link[n].queue_pkts = b.pkts;
		snap->link[n].queue_bytes = b.bytes;
		snap->link[n].out_pkts = t.out_pkts;
		snap->link[n].out_bytes = t.out_bytes;
		snap->link[n].drops = t.drops;
		snap->link[n].marks = t.marks;
		snap->link[n].wire_bits = t.wire_bits;
		snap->link[n].capacity_bits = (double)t.capacity / 1e9;
	}
}

// Its part of a snapshot that was empty before the first lcore was asked.
static void snapshot(struct switch_live *s, struct switch_snapshot *snap) {
	snap->now_ns = time_max(snap->now_ns, s->now_ns);
	snap->start_ns = s->start_ns;
	snap->pool_free = rte_mempool_avail_count(s->pool);
	snap->lcores = s->lcores;
	snap->lcore[s->index].now_ns = s->now_ns;
	snap->lcore[s->index].turns = s->turns;
	snap->lcore[s->index].busy_ns = s->busy_ns;
	for (uint32_t i = 0; i < s->lcores; i++) {
		snap->lcore[s->index].given += s->give[i].given;
		snap->lcore[s->index].not_given +=
			atomic_load_explicit(&s->give[i].dropped, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < s->ports; i++) {
		const struct switch_port *p = &s->port[i];

		snap->rx[i].pkts += p->rx.pkts;
		snap->rx[i].bytes += p->rx.bytes;
		snap->tx_dropped[i] += p->tx_dropped;
		if (p->to != NULL)
			continue;
		snap->tx[i] = p->tx;
		snap->left[i] = p->late.total;
		snap->late_sum_ns[i] = p->late.sum;
		snap->late_max_ns[i] = p->late.max;
	}
	snap->links = s->links;
	for (uint32_t i = 0; i < s->paths; i++) {
		const struct path *p = s->path[i];

		snap->in[p->index] = p->in;
		snap->out[p->index] = p->out;
		memcpy(snap->drop[p->index], p->drop, sizeof(p->drop));
		snap->inside[p->index] = path_backlog(p).pkts;
		snapshot_links(s, snap, s->path[i]);
	}
}

static void read_params(
	const struct switch_live *s, uint32_t first, double value[CONTROL_STRINGS]) {
	struct path_param at = {0};

	for (uint32_t i = 0; i < first + CONTROL_STRINGS && paths_next_param(s->whole, &at); i++) {
		for (uint32_t k = 0; i >= first && k < s->paths; k++) {
			if (s->path[k]->index == at.path)
				value[i - first] = at.value;
		}
	}
}

static void set_param(struct switch_live *s, struct switch_mailbox *box) {
	uint16_t link = UINT16_MAX;
	struct tel_events *r;

	box->rc = path_set(
		box->path, box->key, box->value, s->now_ns, &box->before, &box->after, &box->err);
	if (box->rc < 0 || (r = tel_put(&s->tel_events)) == NULL)
		return;
	for (uint32_t i = 0; i < box->path->stages; i++) {
		const struct path_stage *st = &box->path->stage[i];
		const char *name = st->name + strlen(box->path->name) + 1;

		if (st->ops == &stage_link && strncmp(box->key, name, strlen(name)) == 0
			&& box->key[strlen(name)] == '.')
			link = st->env.link_index;
	}
	*r = (struct tel_events){
		.ts_ns = s->now_ns,
		.value = box->after,
		.flow_id = TEL_NO_FLOW,
		.detail = UINT32_MAX, // not from the schedule
		.before = (float)box->before,
		.event = TEL_EV_PARAM,
		.group = link,
	};
}

static void measure(struct switch_live *s) {
	for (uint32_t i = 0; i < s->paths; i++)
		path_measure(s->path[i], s->now_ns);
	for (uint32_t i = 0; i < s->ports; i++) {
		hist_reset(&s->port[i].late);
		hist_reset(&s->port[i].late_disturbed);
		s->port[i].trend = (struct switch_trend){0};
		s->port[i].scheduled = 0;
	}
	s->measured_ns = s->now_ns;
	s->measure_ns = NEVER_NS;
}

static void answer(struct switch_live *s) {
	struct switch_mailbox *box = &s->mailbox;

	if (!control_posted(&box->box))
		return;
	box->rc = 0;
	switch (box->request) {
	case SWITCH_SNAPSHOT:
		snapshot(s, &s->all->mailbox.snapshot);
		break;
	case SWITCH_PARAMS:
		read_params(s, box->first, s->all->mailbox.param);
		break;
	case SWITCH_SET:
		set_param(s, box);
		break;
	case SWITCH_MEASURE:
		measure(s);
		break;
	}
	control_answered(&box->box);
}

static void follow_link(struct switch_live *s, uint32_t i) {
	struct switch_port *p = &s->port[i];
	bool up = atomic_load_explicit(&p->at->up, memory_order_relaxed);

	if (fabric_is_up(&s->fabric, i) != up)
		fabric_set_up(&s->fabric, i, up);
	if (p->to == NULL && port_changed(&p->port, s->now_ns))
		port_tell(&p->port, &s->tel_events, i, s->now_ns);
}

void switch_handled(struct switch_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].to == NULL)
			port_handled(&s->port[i].port);
	}
}

// Lets DPDK's interrupt thread do what it has to, with what that did to ports.
static void stand_still(struct switch_live *s) {
	uint64_t from_ns = clock_now(&s->clock);

	if (!intr_pass())
		return;
	switch_handled(s);
	uint64_t to_ns = clock_now(&s->clock);
	watch_stood(&s->watch, from_ns, to_ns);
	s->stood++;
	s->stood_max_ns = time_max(s->stood_max_ns, to_ns - from_ns);
}

void switch_show(struct switch_live *s) {
	struct watch_count *c = &s->watch.count;

	c->begun_ns = s->start_ns;
	c->turns = s->turns;
	c->busy_ns = s->busy_ns;
	c->no_buffer = s->drop[DROP_NO_MBUF].pkts;
	c->not_taken = 0;
	for (uint32_t i = 0; i < s->lcores; i++)
		c->not_taken += atomic_load_explicit(
			&s->all[i].give[s->index].dropped, memory_order_relaxed);
	c->lost =
		s->tel_packets.lost + s->tel_arrivals.lost + s->tel_links.lost + s->tel_events.lost;
	watch_show(&s->watch, s->now_ns);
}

void switch_interval(struct switch_live *s) {
	for (uint32_t i = 0; i < s->paths; i++)
		path_interval(s->path[i], &s->tel_links, &s->tel_events, s->now_ns);
}

// Returns false when the run is over.
bool switch_housekeeping(struct switch_live *s) {
	bool interval_over = s->interval_ns > 0 && s->now_ns >= s->interval_next_ns;
	bool other = interval_over || s->now_ns >= s->measure_ns || control_posted(&s->mailbox.box);

	watch_time(&s->watch, clock_now(&s->clock));
	stand_still(s);
	clock_follow(&s->clock, &s->all->clock);
	switch_show(s);
	for (uint32_t i = 0; i < s->ports; i++) {
		struct port *p = &s->port[i].port;

		follow_link(s, i);
		if (s->port[i].to == NULL)
			stamp_follow(&p->stamp, p->id, &s->clock, s->now_ns);
	}
	answer(s);
	if (s->start_ns == NEVER_NS && atomic_load(&s->all->begun_ns) != NEVER_NS)
		switch_start(s);
	if (s->now_ns >= s->measure_ns)
		measure(s);
	if (interval_over) {
		switch_interval(s);
		tel_publish(&s->tel_links);
		s->interval_next_ns = time_next(s->interval_next_ns, s->interval_ns, s->now_ns);
	}
	tel_publish(&s->tel_events);
	if (s->start_ns != NEVER_NS && time_since(s->now_ns, s->start_ns) >= s->duration_ns)
		s->ended = true;
	if (other) // that takes as long as it takes
		watch_resume(&s->watch, clock_now(&s->clock));
	else
		watch_time(&s->watch, clock_now(&s->clock));
	return !s->ended && !run_stop && !atomic_load_explicit(&s->all->stop, memory_order_relaxed);
}
