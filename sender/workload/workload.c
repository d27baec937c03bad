// SPDX-License-Identifier: BSD-3-Clause
#include "sender/workload/workload.h"

#include "common/base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct source_ops *source_of(const struct endpoint *e, const struct workload *w) {
	return e->groups->group[w->group].source;
}

static struct workload *workload_of(struct endpoint *e, const struct flow *f) {
	return &e->workloads->workload[f->workload];
}

// ---- Transfers ----

// A flow's oldest transfer has ended.
static void end_transfer(struct endpoint *e, struct flow *f, uint8_t event, uint64_t now_ns) {
	struct workload_count *c = e->workloads->group[f->group];
	struct flow_transfer *t = &f->transfer[f->transfer_first];
	uint64_t ideal = workload_ideal_ns(e, f, t->bytes),
		 took_ns = time_since(now_ns, t->start_ns);

	if (t->bytes == SOURCE_ENDLESS)
		t->bytes = f->count.acked_bytes - f->at_open.acked_bytes;
	f->write_seg = t->end_seg;
	f->write_bytes = t->end_bytes;
	f->transfers--;
	f->transfer_first = (uint8_t)((f->transfer_first + 1u) % f->transfer_room);
	workload_record(e, f->group, f, t, ideal, event, now_ns);
	if (event != TEL_CLOSE) {
		c->failed++;
		return;
	}
	c->finished++;
	if (flow_group(e, f)->keeps) {
		struct workload *w = workload_of(e, f);

		w->last_bytes = t->bytes;
		w->last_ns = time_since(now_ns, time_max(t->start_ns, w->last_end_ns));
		w->last_end_ns = now_ns;
	}
	if (t->start_ns < e->measure_ns)
		return;
	hist_add(&c->completion, took_ns);
	if (ideal == 0)
		return;
	c->slowdown_sum += (double)took_ns / (double)ideal;
	c->slowdowns++;
}

// Notes the schedule's next transfer as one that begins on the flow.
static struct flow_transfer *begin_transfer(
	struct endpoint *e, struct workload *w, struct flow *f) {
	struct flow_transfer *t =
		&f->transfer[(f->transfer_first + f->transfers) % f->transfer_room];

	*t = (struct flow_transfer){
		.start_ns = w->next_ns - w->next.service_ns,
		.gap_ns = w->next.gap_ns,
		.bytes = w->next.bytes,
		.number = w->number,
	};
	f->transfers++;
	e->workloads->group[w->group]->begun++;
	return t;
}

// ---- Schedules ----

// The last segment of each transfer is short, and a window counts segments.
static double permitted_bps(const struct flow *f) {
	double bytes =
		f->data_segs > 0 ? (double)f->total_bytes / (double)f->data_segs : f->payload;
	double srtt_ns = (double)f->rtt.srtt_ns;
	double bps = srtt_ns > 0 ? f->cwnd_segs * bytes * 8e9 / srtt_ns : 0;

	return f->out.pacing_bps > 0 ? fmin(bps, (double)f->out.pacing_bps) : bps;
}

// Draws the transfer after this one, which is to begin its gap after from_ns.
static void draw(const struct endpoint *e, struct workload *w, uint64_t from_ns) {
	const struct group *g = &e->groups->group[w->group];
	struct source_seen seen = {.now_ns = from_ns};

	if (w->flow != FLOW_NONE) {
		const struct flow *f = &e->flow[w->flow];

		seen.acked_bytes = f->count.acked_bytes;
		seen.written_bytes = w->written_bytes;
		seen.unfinished = f->transfers;
		seen.last_bytes = w->last_bytes;
		seen.last_ns = w->last_ns;
		seen.permitted_bps = permitted_bps(f);
	}
	w->number++;
	w->next = (struct transfer){0};
	g->source->next(g->source_config, w->state, &w->rng, &seen, &w->next);
	w->next_ns = w->next.gap_ns == NEVER_NS ? NEVER_NS
						: from_ns + w->next.gap_ns + w->next.service_ns;
	if (g->stop_ns > 0 && w->next_ns >= e->env.start_ns + g->stop_ns)
		w->next_ns = NEVER_NS;
}

// Whether the next transfer of a group belongs to this host.
static bool is_ours(const struct endpoint *e, const struct workload *w) {
	const struct group *g = &e->groups->group[w->group];
	uint32_t id = g->first + w->number % (uint32_t)g->count;

	return e->env.shards <= 1 || id % e->env.shards == e->env.shard_id;
}

static void draw_arrival(const struct endpoint *e, struct workload *w) {
	do {
		draw(e, w, w->next_ns);
	} while (w->next_ns != NEVER_NS && !is_ours(e, w));
}

static void arm_next(struct endpoint *e, struct workload *w, uint64_t now_ns) {
	if (w->next_ns != NEVER_NS)
		endpoint_arm(e, &w->timer, time_max(w->next_ns, now_ns));
}

static void free_push(struct endpoint *e, struct workload *w, struct flow *f) {
	uint32_t index = endpoint_index(e, f->id);

	f->next_free = FLOW_NONE;
	if (w->free_first == FLOW_NONE)
		w->free_first = index;
	else
		e->flow[w->free_last].next_free = index;
	w->free_last = index;
}

static struct flow *free_pop(struct endpoint *e, struct workload *w) {
	struct flow *f = &e->flow[w->free_first];

	w->free_first = f->next_free;
	return f;
}

// Opens a connection for the next transfer.
static void connect_next(struct endpoint *e, struct workload *w, struct flow *f, uint64_t now_ns) {
	begin_transfer(e, w, f);
	flow_renew(e, f, w->next.bytes, now_ns);
	if (w->next.bytes == SOURCE_ENDLESS)
		f->stop_ns = now_ns + w->next.on_ns;
}

// Begins all arrivals that are due, as far as there are free flows.
static void arrive(struct endpoint *e, struct workload *w, uint64_t now_ns) {
	while (w->next_ns <= now_ns && w->free_first != FLOW_NONE) {
		connect_next(e, w, free_pop(e, w), now_ns);
		draw_arrival(e, w);
	}
	if (w->free_first != FLOW_NONE)
		arm_next(e, w, now_ns);
	else
		endpoint_cancel(e, &w->timer); // the next flow to become free begins it
}

// No transfer follows on the flow's connection.
static void finish(struct flow *f) {
	f->keep = false;
	f->stop_ns = NEVER_NS;
}

// Writes the next transfer behind what the flow has to send.
static void write_next(struct endpoint *e, struct workload *w, struct flow *f) {
	uint64_t segs = (w->next.bytes + f->payload - 1) / f->payload;
	struct flow_transfer *t;

	if (f->transfers == f->transfer_room) {
		e->workloads->group[w->group]->skipped++;
		return;
	}
	f->data_segs += segs;
	f->total_bytes += w->next.bytes;
	t = begin_transfer(e, w, f);
	t->end_seg = f->data_segs;
	t->end_bytes = f->total_bytes;
	w->written_bytes += w->next.bytes;
}

// Writes what is due on an open connection that is kept.
static void write_due(struct endpoint *e, struct workload *w, struct flow *f, uint64_t now_ns) {
	bool waits = source_of(e, w)->kind == SOURCE_PAUSES;

	while (w->next_ns <= now_ns) {
		write_next(e, w, f);
		if (waits) {
			w->next_ns = NEVER_NS; // until it is acknowledged
			return;
		}
		draw(e, w, w->next_ns);
	}
	if (w->next_ns == NEVER_NS)
		finish(f);
	else
		arm_next(e, w, now_ns);
}

void workload_timer(struct endpoint *e, struct workload *w, uint64_t now_ns) {
	struct flow *f;

	if (w->flow == FLOW_NONE) {
		arrive(e, w, now_ns);
		return;
	}
	f = &e->flow[w->flow];
	if (!flow_group(e, f)->keeps) {
		connect_next(e, w, f, now_ns);
		w->next_ns = NEVER_NS;
		return;
	}
	if (f->state != FLOW_OPEN)
		return;
	write_due(e, w, f, now_ns);
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

static void workload_opened(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	struct workload *w = workload_of(e, f);

	if (source_of(e, w)->probes)
		draw(e, w, now_ns);
	if (flow_group(e, f)->keeps)
		write_due(e, w, f, now_ns);
}

static void workload_acked(struct endpoint *e, struct flow *f, uint64_t rtt_ns, uint64_t now_ns) {
	struct workload *w = workload_of(e, f);
	bool waits = source_of(e, w)->kind == SOURCE_PAUSES;

	if (!flow_group(e, f)->keeps) {
		if (f->una < f->data_segs)
			return;
		end_transfer(e, f, TEL_CLOSE, now_ns);
		if (waits)
			draw(e, w, now_ns); // it begins when the connection is closed, or later
		return;
	}
	while (f->transfers > 0 && f->transfer[f->transfer_first].end_seg <= f->una)
		end_transfer(e, f, TEL_CLOSE, now_ns);
	if (source_of(e, w)->probes)
		workload_probe_acked(e, f, rtt_ns, w->next_ns == NEVER_NS, now_ns);
	if (!waits || f->transfers > 0)
		return;
	draw(e, w, now_ns);
	write_due(e, w, f, now_ns);
}

static void workload_closed(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	struct workload *w = workload_of(e, f);
	bool failed = f->state == FLOW_FAILED, unfinished = f->transfers > 0;

	while (f->transfers > 0)
		end_transfer(e, f, failed ? TEL_GAVE_UP : TEL_CLOSE, now_ns);
	if (w->flow == FLOW_NONE) {
		bool waited = w->free_first == FLOW_NONE && w->next_ns <= now_ns;

		// By the timer, because the segment that closed the connection is still being
		// processed.
		e->workloads->group[w->group]->waited += waited;
		free_push(e, w, f);
		arm_next(e, w, now_ns);
	} else if (!flow_group(e, f)->keeps) {
		if (unfinished)
			draw(e, w, now_ns);
		arm_next(e, w, now_ns);
	}
}

// ---- Start and end of a run ----

static void workload_seed(struct workload *w, uint64_t seed, uint32_t nth) {
	char name[48];

	if (w->flow == FLOW_NONE)
		snprintf(name, sizeof(name), "flows.%u.source", w->group);
	else
		snprintf(name, sizeof(name), "flows.%u.source.%u", w->group, nth);
	rng_init(&w->rng, seed, name);
}

void workloads_reseed(struct endpoint *e, uint64_t seed) {
	for (uint32_t i = 0; i < e->workloads->count; i++)
		workload_seed(&e->workloads->workload[i], seed, i);
}

static struct workload *add_workload(
	struct endpoint *e, uint16_t group, uint32_t flow, uint32_t nth) {
	struct workload *w = &e->workloads->workload[e->workloads->count++];

	w->timer.kind = TIMER_WORKLOAD;
	w->group = group;
	w->flow = flow;
	w->free_first = FLOW_NONE;
	w->next_ns = NEVER_NS;
	w->number = UINT32_MAX; // none is drawn
	workload_seed(w, e->env.seed, nth);
	return w;
}

void workload_add(struct endpoint *e, struct flow *f) {
	const struct group *g = flow_group(e, f);
	struct workloads *ws = e->workloads;
	struct workload *last = ws->count > 0 ? &ws->workload[ws->count - 1] : NULL;

	if (!source_scheduled(g->source))
		return;
	f->transfer = ws->transfer + ws->transfers;
	f->transfer_room = (uint8_t)workload_transfers(g);
	ws->transfers += f->transfer_room;
	f->keep = f->writes = g->keeps;
	if (g->keeps) {
		f->stop_ns = 0;
		f->data_segs = f->total_bytes = 0;
		f->rtx_end = UINT64_MAX; // each ACK is looked at for the end of a transfer
	} else {
		endpoint_cancel(e, &f->pace); // its schedule opens its connections
	}
	if (g->source->kind != SOURCE_ARRIVALS)
		last = add_workload(e, f->group, endpoint_index(e, f->id), f->id - g->first);
	else if (last == NULL || last->group != f->group)
		last = add_workload(e, f->group, FLOW_NONE, 0);
	f->workload = (uint32_t)(last - ws->workload);
	if (g->source->kind == SOURCE_ARRIVALS) {
		free_push(e, last, f);
		last->next_ns = e->env.start_ns + g->start_ns;
		return;
	}
	if (g->source->probes)
		return; // until its connection is open
	draw(e, last, f->start_ns);
	if (!g->keeps)
		arm_next(e, last, f->start_ns);
}

void workloads_begin(struct endpoint *e) {
	for (uint32_t i = 0; i < e->workloads->count; i++) {
		struct workload *w = &e->workloads->workload[i];

		if (w->flow != FLOW_NONE)
			continue;
		draw_arrival(e, w);
		arm_next(e, w, e->env.start_ns);
	}
}

// The transfers of a schedule that wait for a free flow. They are recorded by `to`, unless it is
// NULL.
static uint64_t waiting(
	const struct endpoint *e, const struct workload *w, struct endpoint *to, uint64_t now_ns) {
	struct workload ahead = *w; // the schedule goes on, in a copy
	uint64_t n = 0;

	for (; ahead.flow == FLOW_NONE && ahead.next_ns <= now_ns; n++) {
		struct flow_transfer t = {.start_ns = ahead.next_ns,
			.gap_ns = ahead.next.gap_ns,
			.bytes = ahead.next.bytes,
			.number = ahead.number};

		if (to != NULL)
			workload_record(to, w->group, NULL, &t, 0, TEL_STILL_OPEN, now_ns);
		draw_arrival(e, &ahead);
	}
	return n;
}

uint64_t workload_waiting(const struct endpoint *e, uint32_t g, uint64_t now_ns) {
	uint64_t n = 0;

	for (uint32_t i = 0; i < workloads_of(e)->count; i++) {
		if (e->workloads->workload[i].group == g)
			n += waiting(e, &e->workloads->workload[i], NULL, now_ns);
	}
	return n;
}

void workloads_still_open(struct endpoint *e, uint64_t now_ns) {
	for (uint32_t i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];

		for (uint32_t k = 0; k < f->transfers; k++) {
			const struct flow_transfer *t =
				&f->transfer[(f->transfer_first + k) % f->transfer_room];

			workload_record(e, f->group, f, t, workload_ideal_ns(e, f, t->bytes),
				TEL_STILL_OPEN, now_ns);
		}
	}
	for (uint32_t i = 0; i < workloads_of(e)->count; i++)
		waiting(e, &e->workloads->workload[i], e, now_ns);
}

const struct endpoint_app workload_app = {
	.opened = workload_opened,
	.acked = workload_acked,
	.closed = workload_closed,
};
