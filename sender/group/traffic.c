// SPDX-License-Identifier: BSD-3-Clause
// What follows from the groups' keys about their traffic: when flows start, how large frames are.
#include "sender/group/group.h"

#include "common/base/rng.h"
#include "common/base/u64.h"
#include "common/net/wire.h"
#include "sender/source/source.h"

#include <stdio.h>
#include <string.h>

const struct config_node *groups_unreached(
	const struct groups *gs, struct config_node *flows, uint64_t duration_ns) {
	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->group[i].start_ns >= duration_ns)
			return config_at(flows, i);
	}
	return NULL;
}

// Whether the groups differ in nothing that a comparison would be of, and start at the same
// instants.
static bool alike(const struct group *a, const struct group *b) {
	return strcmp(a->control, b->control) == 0 && a->stack.guest == b->stack.guest
		&& a->base_rtt_ns == b->base_rtt_ns && a->mss == b->mss
		&& a->start_ns == b->start_ns && a->stagger_ns == b->stagger_ns && a->jitter_ns == 0
		&& b->jitter_ns == 0 && a->source->kind == b->source->kind
		&& a->source->kind != SOURCE_ARRIVALS;
}

const struct config_node *groups_together(
	const struct groups *gs, struct config_node *flows, uint32_t *with) {
	for (uint32_t i = 0; i < gs->count; i++) {
		struct config_node *node = config_at(flows, i);

		if (config_get(node, "path") != NULL)
			continue; // it has a path of its own
		for (*with = 0; *with < i; ++*with) {
			if (alike(&gs->group[*with], &gs->group[i]))
				return node;
		}
	}
	return NULL;
}

void group_starts(const struct group *g, uint32_t index, uint64_t seed, uint64_t *start_ns) {
	struct rng rng;
	char name[32];

	snprintf(name, sizeof(name), "flows.%u.jitter", index);
	rng_init(&rng, seed, name);
	for (uint64_t i = 0; i < g->count; i++)
		start_ns[i] = g->start_ns + i * g->stagger_ns
			+ (uint64_t)(rng_unit(&rng) * (double)g->jitter_ns);
}

bool groups_random(const struct groups *gs) {
	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->group[i].jitter_ns > 0 || gs->group[i].source->random)
			return true;
	}
	return false;
}

bool groups_datagrams(const struct groups *gs, uint32_t id) {
	for (uint32_t i = gs->count; gs->datagrams && i-- > 0;) {
		if (id >= gs->group[i].first)
			return id < gs->flows && gs->group[i].transport != NULL;
	}
	return false;
}

bool groups_ipv6_of(const struct groups *gs, uint32_t id) {
	for (uint32_t i = gs->count; i-- > 0;) {
		if (id >= gs->group[i].first)
			return id < gs->flows && gs->group[i].ip == GROUP_IPV6;
	}
	return false;
}

bool groups_scheduled(const struct groups *gs) {
	for (uint32_t i = 0; i < gs->count; i++) {
		if (source_scheduled(gs->group[i].source))
			return true;
	}
	return false;
}

// Of a full segment or of a datagram, with FCS.
static uint32_t frame_bytes(const struct group *g) {
	uint32_t ip = WIRE_ETH + g->ip_header + WIRE_FCS;

	return ip + (g->transport != NULL ? WIRE_UDP + g->payload : WIRE_TCP + (uint32_t)g->mss);
}

uint32_t groups_mtu_bytes(const struct groups *gs) {
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < gs->count; i++)
		bytes = (uint32_t)max_u64(bytes, frame_bytes(&gs->group[i]));
	return bytes;
}

uint32_t groups_min_frame(const struct groups *gs) {
	uint32_t bytes = UINT16_MAX;

	for (uint32_t i = 0; i < gs->count; i++)
		bytes = (uint32_t)min_u64(bytes, frame_bytes(&gs->group[i]));
	return (uint32_t)max_u64(bytes, WIRE_MIN_FRAME + WIRE_FCS);
}
