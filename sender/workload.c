// SPDX-License-Identifier: BSD-3-Clause
#include "sender/workload.h"

#include "common/base/mem.h"
#include "sender/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct source_ops *source_of(const struct host *h, const struct workload *w) {
	return h->groups->group[w->group].source;
}

static struct workload *workload_of(struct host *h, const struct flow *f) {
	return &h->workloads.workload[f->workload];
}

// How many transfers a flow of the group may have begun.
static uint32_t group_transfers(const struct group *g) {
	if (!source_scheduled(g->source))
		return 0;
	return g->source->kind == SOURCE_WRITES ? WORKLOAD_WRITES : 1;
}

// Of the group's flows, those of a host: all below its end, less all below its start.
uint32_t workload_flows(const struct group *g, uint32_t shard_id, uint32_t shards) {
	return host_shard_flows(g->first + (uint32_t)g->count, shard_id, shards)
		- host_shard_flows(g->first, shard_id, shards);
}

// Schedules and rooms for transfers of one host.
static void sizes_of(const struct groups *gs, uint32_t shard_id, uint32_t shards,
	uint32_t *workloads, uint64_t *transfers) {
	*workloads = 0;
	*transfers = 0;
	for (uint32_t i = 0; i < gs->count; i++) {
		const struct group *g = &gs->group[i];
		uint32_t flows = workload_flows(g, shard_id, shards);

		if (!source_scheduled(g->source) || flows == 0)
			continue;
		*workloads += g->source->kind == SOURCE_ARRIVALS ? 1 : flows;
		*transfers += (uint64_t)flows * group_transfers(g);
	}
}

uint64_t workloads_bytes(const struct groups *gs, uint32_t shard_id, uint32_t shards) {
	uint32_t workloads;
	uint64_t transfers;

	sizes_of(gs, shard_id, shards, &workloads, &transfers);
	return workloads * sizeof(struct workload) + transfers * sizeof(struct flow_transfer)
		+ workload_probes_bytes(gs, shard_id, shards)
		+ (workloads > 0 ? gs->count * sizeof(struct workload_count) : 0);
}

int workloads_init(struct host *h, struct err *err) {
	struct workloads *ws = &h->workloads;
	uint32_t workloads;
	uint64_t transfers;
	bool ok = true;

	sizes_of(h->groups, h->env.shard_id, h->env.shards, &workloads, &transfers);
	if (workloads == 0)
		return 0;
	ws->workload = calloc(workloads, sizeof(*ws->workload));
	ws->transfer = calloc(transfers, sizeof(*ws->transfer));
	for (uint32_t g = 0; g < h->groups->count; g++) {
		if (!source_scheduled(h->groups->group[g].source))
			continue;
		ws->group[g] = calloc(1, sizeof(*ws->group[g]));
		ok = ok && ws->group[g] != NULL && workload_probes_init(h, g);
	}
	if (ok && ws->workload != NULL && ws->transfer != NULL)
		return 0;
	return err_set(err, -ENOMEM, "no memory for the schedules of %u flows", h->flows);
}

void workloads_fini(struct host *h) {
	for (uint32_t g = 0; g < GROUPS_MAX; g++) {
		if (h->workloads.group[g] != NULL)
			free(h->workloads.group[g]->probe);
		free(h->workloads.group[g]);
	}
	free(h->workloads.workload);
	free(h->workloads.transfer);
	memset(&h->workloads, 0, sizeof(h->workloads));
}

// ---- Transfers ----

// A flow's oldest transfer has ended.
static void end_transfer(struct host *h, struct flow *f, uint8_t event, uint64_t now_ns) {
	struct workload_count *c = h->workloads.group[f->group];
	struct flow_transfer *t = &f->transfer[f->transfer_first];
	uint64_t ideal = workload_ideal_ns(h, f, t->bytes),
		 took_ns = time_since(now_ns, t->start_ns);

	if (t->bytes == SOURCE_ENDLESS)
		t->bytes = f->count.acked_bytes - f->at_open.acked_bytes;
	f->write_seg = t->end_seg;
	f->write_bytes = t->end_bytes;
	f->transfers--;
	f->transfer_first = (uint8_t)((f->transfer_first + 1u) % f->transfer_room);
	workload_record(h, f->group, f, t, ideal, event, now_ns);
	if (event != TEL_CLOSE) {
		c->failed++;
		return;
	}
	c->finished++;
	if (flow_group(h, f)->keeps) {
		struct workload *w = workload_of(h, f);

		w->last_bytes = t->bytes;
		w->last_ns = time_since(now_ns, time_max(t->start_ns, w->last_end_ns));
		w->last_end_ns = now_ns;
	}
	if (t->start_ns < h->measure_ns)
		return;
	hist_add(&c->completion, took_ns);
	if (ideal == 0)
		return;
	c->slowdown_sum += (double)took_ns / (double)ideal;
	c->slowdowns++;
}

// Notes the schedule's next transfer as one that begins on the flow.
static struct flow_transfer *begin_transfer(struct host *h, struct workload *w, struct flow *f) {
	struct flow_transfer *t =
		&f->transfer[(f->transfer_first + f->transfers) % f->transfer_room];

	*t = (struct flow_transfer){
		.start_ns = w->next_ns - w->next.service_ns,
		.gap_ns = w->next.gap_ns,
		.bytes = w->next.bytes,
		.number = w->number,
	};
	f->transfers++;
	h->workloads.group[w->group]->begun++;
	return t;
}

// ---- Schedules ----

// Draws the transfer after this one, which is to begin its gap after from_ns.
static void draw(const struct host *h, struct workload *w, uint64_t from_ns) {
	const struct group *g = &h->groups->group[w->group];
	struct source_seen seen = {.now_ns = from_ns};

	if (w->flow != FLOW_NONE) {
		const struct flow *f = &h->flow[w->flow];

		seen.acked_bytes = f->count.acked_bytes;
		seen.written_bytes = w->written_bytes;
		seen.unfinished = f->transfers;
		seen.last_bytes = w->last_bytes;
		seen.last_ns = w->last_ns;
	}
	w->number++;
	w->next = (struct transfer){0};
	g->source->next(g->source_config, w->state, &w->rng, &seen, &w->next);
	w->next_ns = w->next.gap_ns == NEVER_NS ? NEVER_NS
						: from_ns + w->next.gap_ns + w->next.service_ns;
	if (g->stop_ns > 0 && w->next_ns >= h->env.start_ns + g->stop_ns)
		w->next_ns = NEVER_NS;
}

// Whether the next transfer of a group belongs to this host.
static bool is_ours(const struct host *h, const struct workload *w) {
	const struct group *g = &h->groups->group[w->group];
	uint32_t id = g->first + w->number % (uint32_t)g->count;

	return h->env.shards <= 1 || id % h->env.shards == h->env.shard_id;
}

static void draw_arrival(const struct host *h, struct workload *w) {
	do {
		draw(h, w, w->next_ns);
	} while (w->next_ns != NEVER_NS && !is_ours(h, w));
}

static void arm_next(struct host *h, struct workload *w, uint64_t now_ns) {
	if (w->next_ns != NEVER_NS)
		host_arm(h, &w->timer, time_max(w->next_ns, now_ns));
}

static void free_push(struct host *h, struct workload *w, struct flow *f) {
	uint32_t index = host_index(h, f->id);

	f->next_free = FLOW_NONE;
	if (w->free_first == FLOW_NONE)
		w->free_first = index;
	else
		h->flow[w->free_last].next_free = index;
	w->free_last = index;
}

static struct flow *free_pop(struct host *h, struct workload *w) {
	struct flow *f = &h->flow[w->free_first];

	w->free_first = f->next_free;
	return f;
}

// Opens a connection for the next transfer.
static void connect_next(struct host *h, struct workload *w, struct flow *f, uint64_t now_ns) {
	begin_transfer(h, w, f);
	flow_renew(h, f, w->next.bytes, now_ns);
	if (w->next.bytes == SOURCE_ENDLESS)
		f->stop_ns = now_ns + w->next.on_ns;
}

// Begins all arrivals that are due, as far as there are free flows.
static void arrive(struct host *h, struct workload *w, uint64_t now_ns) {
	while (w->next_ns <= now_ns && w->free_first != FLOW_NONE) {
		connect_next(h, w, free_pop(h, w), now_ns);
		draw_arrival(h, w);
	}
	if (w->free_first != FLOW_NONE)
		arm_next(h, w, now_ns);
	else
		host_cancel(h, &w->timer); // the next flow to become free begins it
}

// No transfer follows on the flow's connection.
static void finish(struct flow *f) {
	f->keep = false;
	f->stop_ns = NEVER_NS;
}

// Writes the next transfer behind what the flow has to send.
static void write_next(struct host *h, struct workload *w, struct flow *f) {
	uint64_t segs = (w->next.bytes + f->payload - 1) / f->payload;
	struct flow_transfer *t;

	if (f->transfers == f->transfer_room) {
		h->workloads.group[w->group]->skipped++;
		return;
	}
	f->data_segs += segs;
	f->total_bytes += w->next.bytes;
	t = begin_transfer(h, w, f);
	t->end_seg = f->data_segs;
	t->end_bytes = f->total_bytes;
	w->written_bytes += w->next.bytes;
}

// Writes what is due on an open connection that is kept.
static void write_due(struct host *h, struct workload *w, struct flow *f, uint64_t now_ns) {
	bool waits = source_of(h, w)->kind == SOURCE_PAUSES;

	while (w->next_ns <= now_ns) {
		write_next(h, w, f);
		if (waits) {
			w->next_ns = NEVER_NS; // until it is acknowledged
			return;
		}
		draw(h, w, w->next_ns);
	}
	if (w->next_ns == NEVER_NS)
		finish(f);
	else
		arm_next(h, w, now_ns);
}

void workload_timer(struct host *h, struct workload *w, uint64_t now_ns) {
	struct flow *f;

	if (w->flow == FLOW_NONE) {
		arrive(h, w, now_ns);
		return;
	}
	f = &h->flow[w->flow];
	if (!flow_group(h, f)->keeps) {
		connect_next(h, w, f, now_ns);
		w->next_ns = NEVER_NS;
		return;
	}
	if (f->state != FLOW_OPEN)
		return;
	write_due(h, w, f, now_ns);
	flow_send(h, f, now_ns, now_ns);
	flow_arm_rtx(h, f, now_ns);
}

void workload_opened(struct host *h, struct flow *f, uint64_t now_ns) {
	struct workload *w = workload_of(h, f);

	if (source_of(h, w)->probes)
		draw(h, w, now_ns);
	if (flow_group(h, f)->keeps)
		write_due(h, w, f, now_ns);
}

void workload_acked(struct host *h, struct flow *f, uint64_t rtt_ns, uint64_t now_ns) {
	struct workload *w = workload_of(h, f);
	bool waits = source_of(h, w)->kind == SOURCE_PAUSES;

	if (!flow_group(h, f)->keeps) {
		if (f->una < f->data_segs)
			return;
		end_transfer(h, f, TEL_CLOSE, now_ns);
		if (waits)
			draw(h, w, now_ns); // it begins when the connection is closed, or later
		return;
	}
	while (f->transfers > 0 && f->transfer[f->transfer_first].end_seg <= f->una)
		end_transfer(h, f, TEL_CLOSE, now_ns);
	if (source_of(h, w)->probes)
		workload_probe_acked(h, f, rtt_ns, w->next_ns == NEVER_NS, now_ns);
	if (!waits || f->transfers > 0)
		return;
	draw(h, w, now_ns);
	write_due(h, w, f, now_ns);
}

void workload_closed(struct host *h, struct flow *f, uint64_t now_ns) {
	struct workload *w = workload_of(h, f);
	bool failed = f->state == FLOW_FAILED, unfinished = f->transfers > 0;

	while (f->transfers > 0)
		end_transfer(h, f, failed ? TEL_GAVE_UP : TEL_CLOSE, now_ns);
	if (w->flow == FLOW_NONE) {
		bool waited = w->free_first == FLOW_NONE && w->next_ns <= now_ns;

		// By the timer, because the segment that closed the connection is still being processed.
		h->workloads.group[w->group]->waited += waited;
		free_push(h, w, f);
		arm_next(h, w, now_ns);
	} else if (!flow_group(h, f)->keeps) {
		if (unfinished)
			draw(h, w, now_ns);
		arm_next(h, w, now_ns);
	}
}

// ---- Start and end of a run ----

static struct workload *add_workload(struct host *h, uint16_t group, uint32_t flow, uint32_t nth) {
	struct workload *w = &h->workloads.workload[h->workloads.count++];
	char name[48];

	w->timer.kind = TIMER_WORKLOAD;
	w->group = group;
	w->flow = flow;
	w->free_first = FLOW_NONE;
	w->next_ns = NEVER_NS;
	w->number = UINT32_MAX; // none is drawn
	if (flow == FLOW_NONE)
		snprintf(name, sizeof(name), "flows.%u.source", group);
	else
		snprintf(name, sizeof(name), "flows.%u.source.%u", group, nth);
	rng_init(&w->rng, h->env.seed, name);
	return w;
}

void workload_add(struct host *h, struct flow *f) {
	const struct group *g = flow_group(h, f);
	struct workloads *ws = &h->workloads;
	struct workload *last = ws->count > 0 ? &ws->workload[ws->count - 1] : NULL;

	if (!source_scheduled(g->source))
		return;
	f->transfer = ws->transfer + ws->transfers;
	f->transfer_room = (uint8_t)group_transfers(g);
	ws->transfers += f->transfer_room;
	f->keep = f->writes = g->keeps;
	if (g->keeps) {
		f->stop_ns = 0;
		f->data_segs = f->total_bytes = 0;
		f->rtx_end = UINT64_MAX; // each ACK is looked at for the end of a transfer
	} else {
		host_cancel(h, &f->pace); // its schedule opens its connections
	}
	if (g->source->kind != SOURCE_ARRIVALS)
		last = add_workload(h, f->group, host_index(h, f->id), f->id - g->first);
	else if (last == NULL || last->group != f->group)
		last = add_workload(h, f->group, FLOW_NONE, 0);
	f->workload = (uint32_t)(last - ws->workload);
	if (g->source->kind == SOURCE_ARRIVALS) {
		free_push(h, last, f);
		last->next_ns = h->env.start_ns + g->start_ns;
		return;
	}
	if (g->source->probes)
		return; // until its connection is open
	draw(h, last, f->start_ns);
	if (!g->keeps)
		arm_next(h, last, f->start_ns);
}

void workloads_begin(struct host *h) {
	for (uint32_t i = 0; i < h->workloads.count; i++) {
		struct workload *w = &h->workloads.workload[i];

		if (w->flow != FLOW_NONE)
			continue;
		draw_arrival(h, w);
		arm_next(h, w, h->env.start_ns);
	}
}

// The transfers of a schedule that wait for a free flow. They are recorded if `h` is not NULL.
static uint64_t waiting(
	const struct host *from, const struct workload *w, struct host *h, uint64_t now_ns) {
	struct workload ahead = *w; // the schedule goes on, in a copy
	uint64_t n = 0;

	for (; ahead.flow == FLOW_NONE && ahead.next_ns <= now_ns; n++) {
		struct flow_transfer t = {.start_ns = ahead.next_ns,
			.gap_ns = ahead.next.gap_ns,
			.bytes = ahead.next.bytes,
			.number = ahead.number};

		if (h != NULL)
			workload_record(h, w->group, NULL, &t, 0, TEL_STILL_OPEN, now_ns);
		draw_arrival(from, &ahead);
	}
	return n;
}

uint64_t workload_waiting(const struct host *h, uint32_t g, uint64_t now_ns) {
	uint64_t n = 0;

	for (uint32_t i = 0; i < h->workloads.count; i++) {
		if (h->workloads.workload[i].group == g)
			n += waiting(h, &h->workloads.workload[i], NULL, now_ns);
	}
	return n;
}

void workloads_still_open(struct host *h, uint64_t now_ns) {
	for (uint32_t i = 0; i < h->flows; i++) {
		const struct flow *f = &h->flow[i];

		for (uint32_t k = 0; k < f->transfers; k++) {
			const struct flow_transfer *t =
				&f->transfer[(f->transfer_first + k) % f->transfer_room];

			workload_record(h, f->group, f, t, workload_ideal_ns(h, f, t->bytes),
				TEL_STILL_OPEN, now_ns);
		}
	}
	for (uint32_t i = 0; i < h->workloads.count; i++)
		waiting(h, &h->workloads.workload[i], h, now_ns);
}
