// SPDX-License-Identifier: BSD-3-Clause
// The summary of the transfers and probes of a group, of all hosts that share it.
#include "sender/host/workloads.h"

// The estimate from the mean RTTmin and the mean dq of the group's flows.
static void probe_summary(const struct host *const *hosts, uint32_t n, uint32_t g, struct json *j) {
	const struct group *group = &hosts[0]->groups->group[g];
	struct probe_estimate mean = {0}, e;
	uint64_t flows = 0, answered = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct workload_count *c = workloads_of(&hosts[k]->endpoint)->group[g];

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
	json_object(j, "transfers");
	json_u64(j, "begun", sum.begun);
	json_u64(j, "finished", sum.finished);
	json_u64(j, "failed", sum.failed);
	json_u64(j, "unfinished", sum.begun - sum.finished - sum.failed);
	json_u64(j, "waited", sum.waited);
	json_u64(j, "waiting", waiting);
	json_u64(j, "skipped", sum.skipped);
	json_u64(j, "measured", took->total);
	if (took->total > 0) {
		json_f64(j, "completion_mean_ns", hist_mean(took));
		json_f64(j, "completion_p50_ns", (double)hist_quantile(took, 0.5));
		json_f64(j, "completion_p95_ns", (double)hist_quantile(took, 0.95));
		json_f64(j, "completion_p99_ns", (double)hist_quantile(took, 0.99));
	}
	if (sum.slowdowns > 0)
		json_f64(j, "slowdown_mean", sum.slowdown_sum / (double)sum.slowdowns);
	json_close(j, '}');
	if (hosts[0]->groups->group[g].source->probes)
		probe_summary(hosts, n, g, j);
}
