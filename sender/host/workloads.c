// SPDX-License-Identifier: BSD-3-Clause
// The summary of the transfers and probes of a group, of all hosts that share it.
#include "sender/host/workloads.h"

#include "sender/host/fields.h"

// The estimate from the mean RTTmin and the mean dq of the group's flows.
static void probe_summary(const struct host *const *hosts, uint32_t n, uint32_t g, struct json *j) {
	const struct group *group = &hosts[0]->groups->group[g];
	const struct probe_config *c = group->source_config;
	struct probe_estimate mean = {0}, e;
	uint64_t flows = 0, answered = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct workload_count *w = workloads_of(&hosts[k]->endpoint)->group[g];

		for (uint32_t i = 0; w != NULL && i < w->probes; i++) {
			if (w->probe[i].count == 0)
				continue;
			probe_delays(c, &w->probe[i], &e);
			mean.rtt_min_ns += e.rtt_min_ns;
			mean.dq_ns += e.dq_ns;
			flows++;
			answered += w->probe[i].count;
		}
	}
	bool some = flows > 0;
	if (some) {
		mean.rtt_min_ns /= (double)flows;
		mean.dq_ns /= (double)flows;
		probe_rate(c, group->payload, &mean);
	} else {
		const double none = (double)NAN;
		mean = (struct probe_estimate){none, none, none, none};
	}
	json_object(j, "probe");
	PROBE_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

// The same figures of all hosts.
static void add_counts(struct workload_count *sum, const struct endpoint *e, uint32_t g,
	uint64_t *waiting, uint64_t now_ns) {
	const struct workload_count *c = workloads_of(e)->group[g];

	if (c == NULL)
		return;
	sum->begun += c->begun;
	sum->finished += c->finished;
	sum->failed += c->failed;
	sum->skipped += c->skipped;
	sum->waited += c->waited;
	sum->slowdown_sum += c->slowdown_sum;
	sum->slowdowns += c->slowdowns;
	hist_merge(&sum->completion, &c->completion);
	*waiting += workload_waiting(e, g, now_ns);
}

void host_workloads_summary(
	const struct host *const *hosts, uint32_t n, uint32_t g, struct json *j, uint64_t now_ns) {
	struct workload_count sum = {0};
	const struct hist *took = &sum.completion;
	uint64_t waiting = 0;

	if (!source_scheduled(hosts[0]->groups->group[g].source))
		return;
	for (uint32_t k = 0; k < n; k++)
		add_counts(&sum, &hosts[k]->endpoint, g, &waiting, now_ns);
	bool some = took->total > 0;
	json_object(j, "transfers");
	TRANSFERS_FIELDS(FIELD_JSON)
	json_close(j, '}');
	if (hosts[0]->groups->group[g].source->probes)
		probe_summary(hosts, n, g, j);
}
