// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "sender/closing.h"
#include "sender/source/source.h"
#include "sender/udp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEGS_PER_FLOW 32 // ring space of a flow with little in flight
#define RANGES_PER_RECEIVER 16
#define WINDOW_PARTS 2 // of a window: a part of the first segment is acknowledged; the FIN
#define FETCH_NEAR_NS (4 * NS_PER_US) // timers due until then: their connections
#define FETCH_FAR_NS (8 * NS_PER_US) // the timers themselves

// The largest window that the group's control need not grow to, in segments; the peer's may be smaller.
static double group_window(const struct group *g) {
	return fmin(g->cc->given_window(g->cc_config), (double)(g->rwnd / g->payload + 1));
}

static bool unbounded(const struct group *g) {
	return isinf(g->cc->given_window(g->cc_config));
}

uint64_t host_window_segs(const struct groups *gs) {
	double segs = 0;

	for (uint32_t i = 0; i < gs->count; i++) {
		double window = group_window(&gs->group[i]);

		if (window > SEGS_PER_FLOW / 2 && !unbounded(&gs->group[i]))
			segs += window * (double)gs->group[i].count;
	}
	return (uint64_t)fmin(segs, 0x1p40);
}

// A hole waits for a timeout that is that of the round trip with all queues full, and may wait for a second one.
static uint64_t hole_segs(const struct groups *gs, const struct host_env *env) {
	double pipe_ns = (double)env->pipe_segs * 1e9 / (double)(env->segs_per_s + 1);
	double wait_ns = NS_PER_S, run_ns = (double)env->duration_ns;

	for (uint32_t i = 0; i < gs->count; i++)
		wait_ns = fmax(
			wait_ns, fmin(2 * ((double)gs->group[i].rto_min_ns + pipe_ns), run_ns));
	return (uint64_t)((double)env->segs_per_s * wait_ns * 1e-9);
}

// Without SACK a recovery lasts a round trip per hole and sends new data in each, and windows that no loss reduces grow with
// every ACK: as much as the peer's window holds, or the network carries in the whole run.
static uint64_t unbounded_segs(const struct groups *gs, const struct host_env *env) {
	double most = (double)env->segs_per_s * (double)env->duration_ns * 1e-9, segs = 0;

	for (uint32_t i = 0; i < gs->count; i++) {
		const struct group *g = &gs->group[i];

		if (!g->sack || unbounded(g))
			segs += (double)g->count * (double)(g->rwnd / g->payload + 1);
	}
	return (uint64_t)fmin(segs, most);
}

uint64_t host_peer_window_segs(const struct groups *gs) {
	uint64_t ring = 1;

	for (uint32_t i = 0; i < gs->count; i++) {
		uint64_t segs = gs->group[i].rwnd / gs->group[i].payload + WINDOW_PARTS;

		while (ring <= segs)
			ring *= 2;
	}
	return ring * ((uint64_t)gs->flows + 1);
}

// Segments that may be unacknowledged at once, all flows together: what the network can hold, twice
// (slow start overshoots by its own size), what SACK leaves on the scoreboard while a hole waits for its
// timeout, and the windows that need no network to be large; twice again for rings that
// are powers of two, and twice for what a shrunk window still holds until its recovery ends. A control that
// learns of a loss late, or ignores losses, sends more than that into a small network: hence `segs_least`, which is
// only address space until it is used.
static uint64_t arena_segs(const struct groups *gs, const struct host_env *env) {
	uint64_t flows = host_shard_flows(gs->flows, env->shard_id, env->shards);
	uint64_t windows = host_window_segs(gs) + unbounded_segs(gs, env);

	windows /= env->shards > 1 ? env->shards : 1;
	return max_u64(env->segs_least,
		4 * (2 * env->pipe_segs + hole_segs(gs, env) + windows) + flows * SEGS_PER_FLOW);
}

// Every other segment may be missing.
static uint64_t range_count(const struct groups *gs, const struct host_env *env) {
	uint64_t ranges = arena_segs(gs, env) / 2 + (uint64_t)env->receivers * RANGES_PER_RECEIVER;

	return env->receivers == 0 ? 0 : min_u64(ranges, UINT32_MAX);
}

uint64_t host_bytes(const struct groups *gs, const struct host_env *env) {
	uint64_t bytes = range_count(gs, env) * sizeof(struct range)
		+ (uint64_t)env->receivers * sizeof(struct receiver)
		+ receivers_acks_bytes(gs, env->receivers);

	if (env->flows)
		bytes += seg_arena_bytes(arena_segs(gs, env))
			+ host_shard_flows(gs->flows, env->shard_id, env->shards)
				* sizeof(struct flow)
			+ gs->flows * sizeof(uint64_t)
			+ workloads_bytes(gs, env->shard_id, env->shards);
	return bytes;
}

// Does this host hold the flow?
static bool holds(const struct host *h, uint32_t id) {
	return h->env.shards <= 1 || id % h->env.shards == h->env.shard_id;
}

// Draws the sizes of all flows, those of other hosts too, so that a flow's size is the same on any.
static void group_flows(struct host *h, uint32_t index, const uint64_t *start_ns) {
	const struct group *g = &h->groups->group[index];
	struct rng rng;
	char name[32];

	snprintf(name, sizeof(name), "flows.%u.source", index);
	rng_init(&rng, h->env.seed, name);
	if (g->cc->state_size > h->cc_bytes)
		h->cc_bytes = (uint32_t)g->cc->state_size;
	for (uint32_t i = 0; i < g->count; i++) {
		uint64_t bytes =
			source_scheduled(g->source) ? 0 : g->source->bytes(g->source_config, &rng);
		uint32_t id = g->first + i;

		if (!holds(h, id))
			continue;
		flow_init(h, &h->flow[host_index(h, id)], id, (uint16_t)index,
			h->env.start_ns + start_ns[i], bytes);
		workload_add(h, &h->flow[host_index(h, id)]);
	}
}

static int flows_init(struct host *h, struct err *err) {
	const struct groups *gs = h->groups;
	uint64_t *start_ns = calloc(gs->flows, sizeof(*start_ns));
	int rc = seg_arena_init(&h->arena, arena_segs(gs, &h->env), err);

	h->flows = h->waiting = host_shard_flows(gs->flows, h->env.shard_id, h->env.shards);
	h->flow = mem_map(h->flows * sizeof(*h->flow));
	if (h->flow == NULL || start_ns == NULL)
		rc = err_set(err, -ENOMEM, "no memory for %u flows", h->flows);
	if (rc == 0)
		rc = workloads_init(h, err);
	for (uint32_t g = 0; rc == 0 && g < gs->count; g++) {
		group_starts(&gs->group[g], g, h->env.seed, start_ns);
		group_flows(h, g, start_ns);
	}
	if (rc == 0)
		workloads_begin(h);
	free(start_ns);
	return rc;
}

int host_init(
	struct host *h, const struct groups *gs, const struct host_env *env, struct err *err) {
	int rc = 0;

	memset(h, 0, sizeof(*h));
	h->env = *env;
	if (env->src_ip == 0) {
		h->env.src_ip = FLOW_ADDR_SENDER;
		h->env.dst_ip = FLOW_ADDR_RECEIVER;
		h->env.dst_port = FLOW_ADDR_DST_PORT;
	}
	h->groups = gs;
	h->measure_ns = env->start_ns;
	h->heard_ns = env->virtual_time ? NEVER_NS : env->start_ns;
	wheel_init(&h->wheel, env->start_ns);
	if (env->flows)
		rc = flows_init(h, err);
	if (rc == 0 && env->receivers > 0) {
		h->receiver = mem_map(env->receivers * sizeof(*h->receiver));
		if (h->receiver == NULL)
			rc = err_set(err, -ENOMEM, "no memory for %u receivers", env->receivers);
		else
			rc = range_pool_init(&h->ranges, (uint32_t)range_count(gs, env), err);
		if (rc == 0)
			rc = receivers_acks_init(h, err);
	}
	for (uint32_t g = 0; rc == 0 && env->receivers > 0 && g < gs->count; g++) {
		const struct group *group = &gs->group[g];

		for (uint32_t i = group->first; i < group->first + group->count; i++) {
			if (holds(h, i) && host_index(h, i) < env->receivers)
				receiver_init(&h->receiver[host_index(h, i)], i, gs, (uint16_t)g);
		}
	}
	h->receivers = rc == 0 ? env->receivers : 0;
	if (rc < 0)
		host_fini(h);
	else
		closing_init(h);
	return rc;
}

void host_fini(struct host *h) {
	seg_arena_fini(&h->arena);
	range_pool_fini(&h->ranges);
	workloads_fini(h);
	mem_unmap(h->flow, h->flows * sizeof(*h->flow));
	receivers_acks_fini(h);
	mem_unmap(h->receiver, h->env.receivers * sizeof(*h->receiver));
	h->flow = NULL;
	h->receiver = NULL;
	h->flows = h->receivers = 0;
}

int host_had_memory(const struct host *h, struct err *err) {
	if (h->count.seg_refused > 0)
		return err_set(err, -ENOSPC, HOST_NO_FIGURES,
			"flows were held back because the scoreboard's memory was full");
	if (h->ranges.refused > 0)
		return err_set(err, -ENOSPC, HOST_NO_FIGURES,
			"receivers threw segments away because the memory for what comes out of "
			"order was full");
	return 0;
}

void host_rx_flow(
	struct host *h, uint32_t index, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	h->count.rx_segs++;
	flow_rx(h, &h->flow[index], s, now_ns);
}

void host_rx_receiver(
	struct host *h, uint32_t index, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	h->count.rx_segs++;
	receiver_rx(h, &h->receiver[index], s, ecn, now_ns);
}

void host_arm(struct host *h, struct host_timer *t, uint64_t expires_ns) {
	if (t->armed)
		wheel_cancel(&h->wheel, &t->t);
	t->armed = true;
	wheel_arm(&h->wheel, &t->t, expires_ns);
}

void host_cancel(struct host *h, struct host_timer *t) {
	if (t->armed)
		wheel_cancel(&h->wheel, &t->t);
	t->armed = false;
}

static void host_fire(struct host *h, struct host_timer *t, uint64_t now_ns) {
	t->armed = false;
	switch ((enum host_timer_kind)t->kind) {
	case TIMER_PACE:
		flow_timer(h, (struct flow *)(void *)((char *)t - offsetof(struct flow, pace)),
			TIMER_PACE, now_ns);
		break;
	case TIMER_RTX:
		flow_timer(h, (struct flow *)(void *)((char *)t - offsetof(struct flow, rtx)),
			TIMER_RTX, now_ns);
		break;
	case TIMER_DELACK:
		receiver_timer(h,
			(struct receiver *)(void *)((char *)t - offsetof(struct receiver, delack)),
			now_ns);
		break;
	case TIMER_WORKLOAD:
		workload_timer(h,
			(struct workload *)(void *)((char *)t - offsetof(struct workload, timer)),
			now_ns);
		break;
	case TIMER_UDP:
		udp_timer(h, (struct flow *)(void *)((char *)t - offsetof(struct flow, pace)),
			now_ns);
		break;
	case TIMER_UDP_REPORT:
		udp_report_timer(h,
			(struct receiver *)(void *)((char *)t - offsetof(struct receiver, delack)),
			now_ns);
		break;
	case TIMER_CLOSING:
		closing_timer(h, now_ns);
		break;
	}
}

void host_fire_due(struct host *h, uint64_t now_ns, uint32_t max) {
	struct timer *t;

	// In virtual time each timer is served at its own nanosecond; live, at now.
	while (max-- > 0 && (t = wheel_pop(&h->wheel, now_ns)) != NULL) {
		uint64_t at_ns = h->env.virtual_time ? t->expires_ns : now_ns;

		host_fire(h, (struct host_timer *)(void *)t, at_ns);
	}
}

// Timers fire in the order of their time, so that what they touch is spread over all connections. A loop that is late
// begins with timers that were due before now.
void host_fetch_timers(struct host *h, uint64_t now_ns) {
	uint64_t next_ns = time_min(now_ns, wheel_slot_ns(&h->wheel));
	struct timer *t;

	while ((t = wheel_peek(&h->wheel, &h->fetched_far, next_ns + FETCH_FAR_NS)) != NULL)
		prefetch_write(t);
	while ((t = wheel_peek(&h->wheel, &h->fetched_slot, next_ns + FETCH_NEAR_NS)) != NULL) {
		for (; t != NULL; t = t->next) {
			const char *f = (const char *)t - offsetof(struct flow, pace);

			if (((struct host_timer *)(void *)t)->kind != TIMER_PACE)
				continue;
			for (size_t line = 0; line < FLOW_HOT_BYTES; line += 64)
				prefetch_write(f + line);
		}
	}
}

uint64_t host_next_ns(struct host *h, uint64_t limit_ns) {
	return wheel_next_ns(&h->wheel, limit_ns);
}

void host_reset_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns) {
	for (uint32_t i = first; i < first + n && i < h->flows + h->receivers; i++) {
		if (i < h->flows)
			flow_reset(h, &h->flow[i], now_ns);
		else
			receiver_reset(h, &h->receiver[i - h->flows], now_ns);
	}
}

void host_measure(struct host *h, uint64_t now_ns) {
	host_measure_some(h, 0, h->flows, now_ns);
}

// After `n` flows from `first` on, of those there are.
static uint32_t flows_end(const struct host *h, uint32_t first, uint32_t n) {
	return h->flows - first < n ? h->flows : first + n;
}

uint32_t host_measure_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns) {
	uint32_t end = flows_end(h, first, n);

	if (first == 0) {
		h->measure_ns = now_ns;
		workloads_measure(h);
	} else {
		h->measure_ns += (now_ns - h->measure_ns) * (end - first) / end;
	}
	for (uint32_t i = first; i < end; i++) {
		struct flow *f = &h->flow[i];

		if (h->back != NULL)
			h->back[h->flows + i] = h->back[i];
		f->measure_delivered_bytes = flow_delivered_bytes(f);
		f->at_measure = f->count;
		f->missed_ns = 0;
		f->measure_send_ns = f->state == FLOW_OPEN ? f->last_send_ns : NEVER_NS;
	}
	return end;
}
