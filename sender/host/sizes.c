// SPDX-License-Identifier: BSD-3-Clause
// How much memory a host takes, by what its groups and the network can lead to.
#include "sender/host/host.h"
#include "sender/source/source.h"
#include "sender/tcp/service.h"
#include "sender/transport.h"

#include <math.h>

#define SEGS_PER_FLOW 32 // ring space of a flow with little in flight
#define RANGES_PER_RECEIVER 16
#define WINDOW_PARTS 2 // of a window: a part of the first segment is acknowledged; the FIN

// The largest window that the group's control need not grow to, in segments. The segments of a
// kernel are in its memory.
static double given_window(const struct group *g) {
	return g->cc == NULL ? 0 : g->cc->given_window(g->cc_config);
}

// The peer's may be smaller.
static double group_window(const struct group *g) {
	return fmin(given_window(g), (double)(g->rwnd / g->payload + 1));
}

static bool unbounded(const struct group *g) {
	return isinf(given_window(g));
}

uint32_t host_connection_bytes(const struct groups *gs) {
	size_t bytes = 0;

	for (uint32_t i = 0; i < gs->count; i++) {
		const struct transport_ops *t = gs->group[i].transport;

		if (t != NULL && t->connection_size > bytes)
			bytes = t->connection_size;
		bytes = max_u64(bytes, service_bytes(&gs->group[i]));
	}
	return (uint32_t)((bytes + 63) / 64 * 64);
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

// A hole waits for a timeout that is that of the round trip with all queues full, and may wait for
// a second one.
static uint64_t hole_segs(const struct groups *gs, const struct host_env *env) {
	double pipe_ns = (double)env->pipe_segs * 1e9 / (double)(env->segs_per_s + 1);
	double wait_ns = NS_PER_S, run_ns = (double)env->duration_ns;

	for (uint32_t i = 0; i < gs->count; i++)
		wait_ns = fmax(
			wait_ns, fmin(2 * ((double)gs->group[i].rto_min_ns + pipe_ns), run_ns));
	return (uint64_t)((double)env->segs_per_s * wait_ns * 1e-9);
}

// Without SACK a recovery lasts a round trip per hole and sends new data in each, and windows that
// no loss reduces grow with every ACK: as much as the peer's window holds, or the network carries
// in the whole run.
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
// (slow start overshoots by its own size), what SACK leaves on the scoreboard while a hole waits
// for its timeout, and the windows that need no network to be large; twice again for rings that are
// powers of two, twice for what a shrunk window still holds until its recovery ends, and twice for
// controls that are told of each segment (tcp/service.h). A control that learns of a loss late, or
// ignores losses, sends more than that into a small network: hence `segs_least`, which is only
// address space until it is used.
uint64_t host_arena_segs(const struct groups *gs, const struct host_env *env) {
	uint64_t flows = host_shard_flows(gs->flows, env->shard_id, env->shards);
	uint64_t windows = host_window_segs(gs) + unbounded_segs(gs, env);
	bool packets = false;

	for (uint32_t i = 0; i < gs->count; i++)
		packets |= gs->group[i].packets;
	windows /= env->shards > 1 ? env->shards : 1;
	return max_u64(env->segs_least,
		       4 * (2 * env->pipe_segs + hole_segs(gs, env) + windows)
			       + flows * SEGS_PER_FLOW)
		<< packets;
}

// Every other segment may be missing.
uint64_t host_ranges(const struct groups *gs, const struct host_env *env) {
	uint64_t ranges =
		host_arena_segs(gs, env) / 2 + (uint64_t)env->receivers * RANGES_PER_RECEIVER;

	return env->receivers == 0 ? 0 : min_u64(ranges, UINT32_MAX);
}

uint64_t host_bytes(const struct groups *gs, const struct host_env *env) {
	uint64_t bytes = host_ranges(gs, env) * sizeof(struct range)
		+ (uint64_t)env->receivers * sizeof(struct receiver)
		+ receivers_acks_bytes(gs, env->receivers);

	if (env->flows)
		bytes += seg_arena_bytes(host_arena_segs(gs, env))
			+ host_shard_flows(gs->flows, env->shard_id, env->shards)
				* (sizeof(struct flow) + host_connection_bytes(gs))
			+ gs->flows * sizeof(uint64_t) + service_shared_bytes(gs)
			+ workloads_bytes(gs, env->shard_id, env->shards);
	return bytes;
}
