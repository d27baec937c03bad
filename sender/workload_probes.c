// SPDX-License-Identifier: BSD-3-Clause
// The estimates of a group whose source probes (source/probe.c): RTTs of its flows, an event of each flow, the summary.
#include "sender/host.h"

#include <stdlib.h>

uint64_t workload_probes_bytes(const struct groups *gs, uint32_t shard_id, uint32_t shards) {
	uint64_t flows = 0;

	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->group[i].source->probes)
			flows += workload_flows(&gs->group[i], shard_id, shards);
	}
	return flows * sizeof(struct probe);
}

bool workload_probes_init(struct host *h, uint32_t group) {
	const struct group *g = &h->groups->group[group];
	struct workload_count *c = h->workloads.group[group];

	if (!g->source->probes)
		return true;
	c->probes = workload_flows(g, h->env.shard_id, h->env.shards);
	c->probe = calloc(c->probes + 1, sizeof(*c->probe)); // a host may have none of them
	return c->probe != NULL;
}

static void record(struct host *h, const struct flow *f, const struct probe *p, uint64_t now_ns) {
	const struct group *g = flow_group(h, f);
	struct probe_estimate e;
	struct tel_events *r;

	if (!tel_on(h->env.tel_events) || (r = tel_put(h->env.tel_events)) == NULL)
		return;
	probe_delays(g->source_config, p, &e);
	probe_rate(g->source_config, g->payload, &e);
	*r = (struct tel_events){
		.ts_ns = now_ns,
		.value = e.dq_ns,
		.flow_id = f->id,
		.detail = p->count,
		.before = (float)e.rtt_min_ns,
		.value2 = e.dq_ns > 0 ? (float)e.rate_bps : 0,
		.value3 = (float)e.completion_ns,
		.event = TEL_EV_PROBE,
		.group = f->group,
	};
}

void workload_probe_acked(
	struct host *h, struct flow *f, uint64_t rtt_ns, bool last, uint64_t now_ns) {
	uint32_t first = host_shard_flows(flow_group(h, f)->first, h->env.shard_id, h->env.shards);
	struct probe *p = &h->workloads.group[f->group]->probe[host_index(h, f->id) - first];

	if (rtt_ns > 0)
		probe_add(p, rtt_ns, f->rtt.srtt_ns, f->rtt.min_ns, now_ns);
	if (last && f->transfers == 0 && p->count > 0)
		record(h, f, p, now_ns);
}

// The estimate from the mean RTTmin and the mean dq of the group's flows.
void workload_probe_summary(
	const struct host *const *hosts, uint32_t n, uint32_t g, struct json *j) {
	const struct group *group = &hosts[0]->groups->group[g];
	struct probe_estimate mean = {0}, e;
	uint64_t flows = 0, answered = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct workload_count *c = hosts[k]->workloads.group[g];

		for (uint32_t i = 0; c != NULL && i < c->probes; i++) {
			if (c->probe[i].count == 0)
				continue;
			probe_delays(group->source_config, &c->probe[i], &e);
			mean.rtt_min_ns += e.rtt_min_ns;
			mean.dq_ns += e.dq_ns;
			flows++;
			answered += c->probe[i].count;
		}
	}
	json_object(j, "probe");
	json_u64(j, "flows", flows);
	json_u64(j, "answered", answered);
	if (flows > 0) {
		const struct probe_config *c = group->source_config;

		mean.rtt_min_ns /= (double)flows;
		mean.dq_ns /= (double)flows;
		probe_rate(c, group->payload, &mean);
		json_f64(j, "rtt_min_ns", mean.rtt_min_ns);
		json_f64(j, "dq_ns", mean.dq_ns);
		json_f64(j, "delta", c->delta);
		json_f64(j, "rate_bps", mean.rate_bps);
		json_u64(j, "size_bytes", c->size_bytes);
		json_f64(j, "completion_ns", mean.completion_ns);
	}
	json_close(j, '}');
}
