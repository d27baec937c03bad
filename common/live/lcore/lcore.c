// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/lcore/lcore.h"

#include "common/live/base/quiesce.h"
#include "common/run/run.h"

#include <rte_eal.h>

void lcore_init(struct lcore *l, struct lcore *const *all, uint32_t lcores, uint32_t index,
	const struct lcore_ops *ops) {
	l->all = all;
	l->lcores = lcores;
	l->index = index;
	l->ops = ops;
	l->start_ns = l->measure_ns = NEVER_NS;
	atomic_store(&l->begun_ns, NEVER_NS);
}

void lcore_start_at(struct lcore *l, uint64_t start_ns) {
	l->start_ns = start_ns;
	l->measure_ns = start_ns + l->warmup_ns;
	if (l->ops->start != NULL)
		l->ops->start(l);
	if (l->warmup_ns == 0) // not at the next housekeeping: what happens before it counts
		lcore_measure(l);
}

void lcore_start(struct lcore *l) {
	uint64_t begun_ns = NEVER_NS;

	if (atomic_compare_exchange_strong(&l->all[0]->begun_ns, &begun_ns, l->now_ns))
		begun_ns = l->now_ns;
	lcore_start_at(l, begun_ns);
}

void lcore_measure(struct lcore *l) {
	l->ops->measure(l);
	l->measured_ns = time_max(l->now_ns, l->start_ns);
	l->measure_ns = NEVER_NS;
}

bool lcore_interval_over(struct lcore *l) {
	if (l->interval_ns == 0 || l->now_ns < l->interval_next_ns)
		return false;
	l->interval_next_ns = time_next(l->interval_next_ns, l->interval_ns, l->now_ns);
	return true;
}

void lcore_publish_all(struct lcore *l) {
	l->published = UINT64_MAX;
	lcore_publish(l);
}

void lcore_handle_ports(struct lcore *l) {
	for (uint32_t i = 0; i < l->ports; i++) {
		if (l->owns_port[i])
			port_handled(l->port[i]);
	}
}

// Waits while DPDK's interrupt thread or the control thread holds the lcores. False: neither does.
static bool quiesce(struct lcore *l) {
	uint64_t from_ns = clock_now(&l->clock), to_ns;

	if (!quiesce_pass())
		return false;
	lcore_handle_ports(l);
	to_ns = clock_now(&l->clock);
	watch_quiesced(&l->watch, from_ns, to_ns);
	l->load.quiesced++;
	l->load.quiesced_max_ns = time_max(l->load.quiesced_max_ns, to_ns - from_ns);
	return true;
}

bool lcore_follow_ports(struct lcore *l) {
	bool quiesced = quiesce(l);

	clock_follow(&l->clock, &l->all[0]->clock);
	for (uint32_t i = 0; i < l->ports; i++) {
		struct port *p = l->port[i];

		if (!l->owns_port[i])
			continue;
		if (port_changed(p, l->now_ns))
			port_trace(p, &l->tel[TEL_STREAM_EVENTS], i, l->now_ns);
		stamp_follow(&p->stamp, p->id, &l->clock, clock_now(&l->clock));
	}
	return quiesced;
}

void lcore_show(struct lcore *l) {
	struct watch_count *c = &l->watch.count;

	c->begun_ns = l->start_ns;
	c->iterations = l->load.iterations;
	c->iteration_max_ns = l->load.iteration_max_ns;
	c->busy_ns = l->load.busy_ns;
	c->lost = c->no_buffer = c->not_taken = c->handed_over = c->handover_dropped = 0;
	for (uint32_t i = 0; i < l->streams; i++)
		c->lost += l->stream[i]->lost;
	l->ops->observe(l, c);
	watch_show(&l->watch, l->now_ns);
}

void lcore_answered(struct lcore *l) {
	l->answering = false;
	control_answered(&l->box);
}

static void answer(struct lcore *l) {
	if (l->answering || !control_posted(&l->box))
		return;
	l->answering = true;
	if (l->ops->answer(l))
		lcore_answered(l);
}

// False: the run is over.
static bool goes_on(struct lcore *l) {
	if (l->start_ns != NEVER_NS && time_since(l->now_ns, l->start_ns) >= l->duration_ns)
		l->ended = true;
	return !l->ended && !run_stop
		&& !atomic_load_explicit(&l->all[0]->stop, memory_order_relaxed);
}

bool lcore_housekeeping(struct lcore *l) {
	bool other = l->now_ns >= l->measure_ns || control_posted(&l->box);

	watch_time(&l->watch, clock_now(&l->clock));
	lcore_follow_ports(l);
	lcore_show(l);
	answer(l);
	if (l->start_ns == NEVER_NS && atomic_load(&l->all[0]->begun_ns) != NEVER_NS)
		lcore_start(l);
	// A run that is over by now, after a stall, would have measured for no time.
	if (l->now_ns >= l->measure_ns && goes_on(l))
		lcore_measure(l);
	other |= l->ops->housekeep(l);
	lcore_publish(l);
	if (other) // may have taken long
		watch_resume(&l->watch, clock_now(&l->clock));
	else
		watch_time(&l->watch, clock_now(&l->clock));
	return goes_on(l);
}

void lcore_begin(struct lcore *l) {
	quiesce_begin();
	lcore_handle_ports(l);
	// Frames received before, while the next hop was resolved, do not belong to the run.
	l->loop_ns = l->now_ns = clock_now(&l->clock);
	l->load = (struct lcore_load){0};
	l->busy = false;
	watch_resume(&l->watch, l->now_ns);
	atomic_store(&l->watch.tid, rte_sys_gettid());
	atomic_store(&l->running, true);
	control_open(&l->box, true);
}

void lcore_leave(struct lcore *l) {
	quiesce_end();
	lcore_show(l);
	atomic_store(&l->done, true);
}
