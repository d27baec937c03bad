// SPDX-License-Identifier: BSD-3-Clause
// The estimates of a group whose source probes (source/probe.c): RTTs of its flows, an event of
// each flow, the summary.
#include "sender/workload/workload.h"

#include <stdlib.h>

uint64_t workload_probes_bytes(const struct groups *gs, uint32_t shard_id, uint32_t shards) {
	uint64_t flows = 0;

	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->group[i].source->probes)
			flows += workload_flows(&gs->group[i], shard_id, shards);
	}
	return flows * sizeof(struct probe);
}

bool workload_probes_init(struct endpoint *e, uint32_t group) {
	const struct group *g = &e->groups->group[group];
	struct workload_count *c = e->workloads->group[group];

	if (!g->source->probes)
		return true;
	c->probes = workload_flows(g, e->env.shard_id, e->env.shards);
	c->probe = calloc(c->probes + 1, sizeof(*c->probe)); // a host may have none of them
	return c->probe != NULL;
}

static void record(
	struct endpoint *e, const struct flow *f, const struct probe *p, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	struct probe_estimate to;
	struct tel_events *r;

	if (!tel_on(e->env.tel_events) || (r = tel_put(e->env.tel_events)) == NULL)
		return;
	probe_delays(g->source_config, p, &to);
	probe_rate(g->source_config, g->payload, &to);
	*r = (struct tel_events){
		.ts_ns = now_ns,
		.value = to.dq_ns,
		.flow_id = f->id,
		.detail = p->count,
		.before = (float)to.rtt_min_ns,
		.value2 = to.dq_ns > 0 ? (float)to.rate_bps : 0,
		.value3 = (float)to.completion_ns,
		.event = TEL_EV_PROBE,
		.group = f->group,
	};
}

void workload_probe_acked(
	struct endpoint *e, struct flow *f, uint64_t rtt_ns, bool last, uint64_t now_ns) {
	uint32_t first = host_shard_flows(flow_group(e, f)->first, e->env.shard_id, e->env.shards);
	struct probe *p = &e->workloads->group[f->group]->probe[endpoint_index(e, f->id) - first];

	if (rtt_ns > 0)
		probe_add(p, rtt_ns, f->rtt.srtt_ns, f->rtt.min_ns, now_ns);
	if (last && f->transfers == 0 && p->count > 0)
		record(e, f, p, now_ns);
}
