// SPDX-License-Identifier: BSD-3-Clause
// What the schedules of a host's flows take of memory.
#include "sender/workload/workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t workload_transfers(const struct group *g) {
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
		*transfers += (uint64_t)flows * workload_transfers(g);
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

int workloads_init(struct endpoint *e, struct err *err) {
	struct workloads *ws = e->workloads;
	uint32_t workloads;
	uint64_t transfers;
	bool ok = true;

	sizes_of(e->groups, e->env.shard_id, e->env.shards, &workloads, &transfers);
	if (workloads == 0)
		return 0;
	ws->workload = calloc(workloads, sizeof(*ws->workload));
	ws->transfer = calloc(transfers, sizeof(*ws->transfer));
	for (uint32_t g = 0; g < e->groups->count; g++) {
		if (!source_scheduled(e->groups->group[g].source))
			continue;
		ws->group[g] = calloc(1, sizeof(*ws->group[g]));
		ok = ok && ws->group[g] != NULL && workload_probes_init(e, g);
	}
	if (ok && ws->workload != NULL && ws->transfer != NULL)
		return 0;
	return err_set(err, -ENOMEM, "no memory for the schedules of %u flows", e->flows);
}

void workloads_fini(struct endpoint *e) {
	struct workloads *ws = e->workloads;

	if (ws == NULL)
		return;
	for (uint32_t g = 0; g < GROUPS_MAX; g++) {
		if (ws->group[g] != NULL)
			free(ws->group[g]->probe);
		free(ws->group[g]);
	}
	free(ws->workload);
	free(ws->transfer);
	memset(ws, 0, sizeof(*ws));
}
