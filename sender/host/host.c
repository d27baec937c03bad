// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host/host.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "sender/source/source.h"
#include "sender/tcp/path_mtu.h"
#include "sender/tcp/service.h"
#include "sender/transport.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FETCH_NEAR_NS (4 * NS_PER_US) // timers due until then: their connections
#define FETCH_FAR_NS (8 * NS_PER_US) // the timers themselves

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
	if (g->cc != NULL && g->cc->state_size > h->cc_bytes)
		h->cc_bytes = (uint32_t)g->cc->state_size;
	for (uint32_t i = 0; i < g->count; i++) {
		uint64_t bytes =
			source_scheduled(g->source) ? 0 : g->source->bytes(g->source_config, &rng);
		uint32_t id = g->first + i;

		if (!holds(h, id))
			continue;
		struct flow *f = &h->flow[endpoint_index(&h->endpoint, id)];

		flow_init(
			&h->endpoint, f, id, (uint16_t)index, h->env.start_ns + start_ns[i], bytes);
		if (g->transport != NULL) {
			f->pace.kind = TIMER_TRANSPORT;
			g->transport->open(&h->endpoint, f);
		}
		workload_add(&h->endpoint, f);
	}
}

static int flows_init(struct host *h, struct err *err) {
	const struct groups *gs = h->groups;
	uint64_t *start_ns = calloc(gs->flows, sizeof(*start_ns));
	int rc = seg_arena_init(&h->arena, host_arena_segs(gs, &h->env), err);

	h->flows = h->waiting = host_shard_flows(gs->flows, h->env.shard_id, h->env.shards);
	h->flow = mem_map(h->flows * sizeof(*h->flow));
	h->connection_bytes = host_connection_bytes(gs);
	if (h->connection_bytes > 0)
		h->connection = mem_map((size_t)h->flows * h->connection_bytes);
	size_t shared = service_shared_bytes(gs);

	if (shared > 0 && h->env.shards > 1)
		rc = err_set(err, -EINVAL,
			"a control's flows share memory, which needs one lcore: write one in "
			"live.sender.lcores");
	if (rc == 0 && shared > 0)
		h->shared = mem_map(shared);
	if (h->flow == NULL || start_ns == NULL
		|| (h->connection_bytes > 0 && h->connection == NULL)
		|| (rc == 0 && shared > 0 && h->shared == NULL))
		rc = err_set(err, -ENOMEM, "no memory for %u flows", h->flows);
	if (rc == 0)
		rc = workloads_init(&h->endpoint, err);
	for (uint32_t g = 0; rc == 0 && g < gs->count; g++) {
		group_starts(&gs->group[g], g, h->env.seed, start_ns);
		group_flows(h, g, start_ns);
	}
	if (rc == 0)
		workloads_begin(&h->endpoint);
	free(start_ns);
	return rc;
}

// ---- Connections that one side ends at a time of the config, whether or not their data is sent
// ----
//
//	flows:
//	  - {cc: cubic, stack: {weir: {reset_at: 2s}}}
//	  - {cc: cubic, peer: {weir: {close_at: 2s}}}

// A time of the config, on the host's clock; 0 is never.
static uint64_t on_clock(const struct host *h, uint64_t at_ns) {
	return at_ns == 0 ? NEVER_NS : h->env.start_ns + at_ns;
}

static void closing_arm(struct host *h) {
	uint64_t next_ns = NEVER_NS;

	for (uint32_t i = 0; i < h->groups->count; i++) {
		const struct group *g = &h->groups->group[i];
		const uint64_t times[] = {g->stack.reset_ns, g->peer.reset_ns, g->peer.close_ns};

		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
			uint64_t t_ns = on_clock(h, times[k]);

			if (t_ns > h->closed_ns)
				next_ns = time_min(next_ns, t_ns);
		}
	}
	if (next_ns != NEVER_NS)
		endpoint_arm(&h->endpoint, &h->closing, next_ns);
}

static void closing_init(struct host *h) {
	h->closing.kind = TIMER_CLOSING;
	h->closed_ns = h->env.start_ns;
	closing_arm(h);
}

// Of a transport beside TCP there is nothing to reset.
static void send_reset(struct host *h, const struct flow *f, uint64_t now_ns) {
	if (flow_group(&h->endpoint, f)->transport == NULL)
		flow_reset(&h->endpoint, f, now_ns);
}

static void reset_flow(struct host *h, struct flow *f, uint64_t now_ns) {
	if (f->state != FLOW_OPEN)
		return;
	send_reset(h, f, now_ns);
	flow_end(&h->endpoint, f, FLOW_FAILED, TEL_RESET, now_ns);
}

static void closing_timer(struct host *h, uint64_t now_ns) {
	uint64_t before_ns = h->closed_ns;

	for (uint32_t i = 0; i < h->flows; i++) {
		struct flow *f = &h->flow[i];
		uint64_t reset_ns = on_clock(h, h->groups->group[f->group].stack.reset_ns);

		if (reset_ns > before_ns && reset_ns <= now_ns)
			reset_flow(h, f, now_ns);
	}
	for (uint32_t i = 0; i < h->receivers; i++) {
		struct receiver *r = &h->receiver[i];
		const struct stack *st = &h->groups->group[r->group_index].peer;
		uint64_t reset_ns = on_clock(h, st->reset_ns), close_ns = on_clock(h, st->close_ns);

		if (close_ns > before_ns && close_ns <= now_ns)
			receiver_close(&h->endpoint, r, now_ns);
		if (reset_ns > before_ns && reset_ns <= now_ns && r->state == RECEIVER_OPEN) {
			receiver_reset(&h->endpoint, r, now_ns);
			r->state = RECEIVER_CLOSED;
		}
	}
	h->closed_ns = now_ns;
	closing_arm(h);
}

// ---- Life of a host ----

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
	h->app = &workload_app;
	h->workloads = &h->own_workloads;
	wheel_init(&h->wheel, env->start_ns);
	if (env->flows)
		rc = flows_init(h, err);
	if (rc == 0 && env->receivers > 0) {
		h->receiver = mem_map(env->receivers * sizeof(*h->receiver));
		if (h->receiver == NULL)
			rc = err_set(err, -ENOMEM, "no memory for %u receivers", env->receivers);
		else
			rc = range_pool_init(&h->ranges, (uint32_t)host_ranges(gs, env), err);
		if (rc == 0)
			rc = receivers_acks_init(&h->endpoint, err);
	}
	for (uint32_t g = 0; rc == 0 && env->receivers > 0 && g < gs->count; g++) {
		const struct group *group = &gs->group[g];

		for (uint32_t i = group->first; i < group->first + group->count; i++) {
			uint32_t index = endpoint_index(&h->endpoint, i);

			if (!holds(h, i) || index >= env->receivers)
				continue;
			receiver_init(&h->receiver[index], i, gs, (uint16_t)g);
			if (group->transport != NULL)
				h->receiver[index].delack.kind = TIMER_TRANSPORT_RECEIVER;
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
	workloads_fini(&h->endpoint);
	mem_unmap(h->flow, h->flows * sizeof(*h->flow));
	receivers_acks_fini(&h->endpoint);
	mem_unmap(h->receiver, h->env.receivers * sizeof(*h->receiver));
	mem_unmap(h->connection, (size_t)h->flows * h->connection_bytes);
	if (h->shared != NULL)
		mem_unmap(h->shared, service_shared_bytes(h->groups));
	h->flow = NULL;
	h->connection = h->shared = NULL;
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
	struct flow *f = &h->flow[index];

	h->count.rx_segs++;
	if (likely((s->options & SEG_OPT_UDP) == 0)) {
		flow_rx(&h->endpoint, f, s, now_ns);
		return;
	}
	const struct transport_ops *t = flow_group(&h->endpoint, f)->transport;

	if (t != NULL)
		t->receive(&h->endpoint, f, s, now_ns);
	else
		h->count.rx_bad++;
}

void host_rx_receiver(
	struct host *h, uint32_t index, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	struct receiver *r = &h->receiver[index];

	h->count.rx_segs++;
	if (likely((s->options & SEG_OPT_UDP) == 0)) {
		receiver_rx(&h->endpoint, r, s, ecn, now_ns);
		return;
	}
	const struct transport_ops *t = receiver_group(&h->endpoint, r)->transport;

	if (t != NULL)
		t->receive_data(&h->endpoint, r, s, ecn, now_ns);
	else
		h->count.rx_bad++;
}

uint32_t host_too_big(struct host *h, uint32_t index, uint32_t seq, uint32_t mtu, uint64_t now_ns) {
	struct flow *f = &h->flow[index];

	if (flow_group(&h->endpoint, f)->transport != NULL)
		return 0;
	return flow_too_big(&h->endpoint, f, seq, mtu, now_ns);
}

// ---- Timers ----

static struct flow *flow_of_pace(struct host_timer *t) {
	return (struct flow *)(void *)((char *)t - offsetof(struct flow, pace));
}

static struct receiver *receiver_of(struct host_timer *t) {
	return (struct receiver *)(void *)((char *)t - offsetof(struct receiver, delack));
}

static void host_fire(struct host *h, struct host_timer *t, uint64_t now_ns) {
	struct endpoint *e = &h->endpoint;

	t->armed = false;
	switch ((enum host_timer_kind)t->kind) {
	case TIMER_PACE:
		flow_timer(e, flow_of_pace(t), TIMER_PACE, now_ns);
		break;
	case TIMER_RTX:
		flow_timer(e, (struct flow *)(void *)((char *)t - offsetof(struct flow, rtx)),
			TIMER_RTX, now_ns);
		break;
	case TIMER_DELACK:
		receiver_timer(e, receiver_of(t), now_ns);
		break;
	case TIMER_WORKLOAD:
		workload_timer(e,
			(struct workload *)(void *)((char *)t - offsetof(struct workload, timer)),
			now_ns);
		break;
	case TIMER_TRANSPORT:
		flow_group(e, flow_of_pace(t))->transport->timer(e, flow_of_pace(t), now_ns);
		break;
	case TIMER_TRANSPORT_RECEIVER:
		receiver_group(e, receiver_of(t))
			->transport->receiver_timer(e, receiver_of(t), now_ns);
		break;
	case TIMER_CLOSING:
		closing_timer(h, now_ns);
		break;
	case TIMER_CONTROL:
		service_timer(e, t, now_ns);
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

// Timers fire in the order of their time, so that what they touch is spread over all connections. A
// loop that is late begins with timers that were due before now.
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
			send_reset(h, &h->flow[i], now_ns);
		else
			receiver_reset(&h->endpoint, &h->receiver[i - h->flows], now_ns);
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
		workloads_measure(&h->endpoint);
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
