// SPDX-License-Identifier: BSD-3-Clause
// What is recorded of transfers, and the summary of a group's.
#include "common/net/wire.h"
#include "sender/host.h"

// The time that the transfer would take alone, on a network without queues, without a limit by windows: round trips, and
// its frames at the rate of the slowest link. 0: the config does not say.
uint64_t workload_ideal_ns(const struct host *h, const struct flow *f, uint64_t bytes) {
	const struct network_empty *e = h->env.empty == NULL ? NULL : &h->env.empty[f->group];
	uint64_t payload = f->payload, segs = bytes / payload, rest = bytes % payload;
	uint32_t headers = WIRE_ETH + WIRE_IPV4 + WIRE_TCP + WIRE_FCS + WIRE_OVERHEAD
		+ (flow_group(h, f)->timestamps ? 12 : 0);
	const uint64_t *own_ns = h->groups->base_rtts.flow_ns;
	uint64_t wire, rtt_ns;

	if (e == NULL || e->rate_bps == 0 || bytes == SOURCE_ENDLESS)
		return 0;
	wire = segs * (payload + headers) + (rest > 0 ? rest + headers : 0);
	rtt_ns = own_ns != NULL && own_ns[f->id] > 0 ? own_ns[f->id] : e->rtt_ns;
	return (flow_group(h, f)->keeps ? 1 : 2) * rtt_ns
		+ (uint64_t)((double)wire * 8e9 / (double)e->rate_bps);
}

void workload_record(struct host *h, uint16_t group, const struct flow *f,
	const struct flow_transfer *t, uint64_t ideal_ns, uint8_t event, uint64_t now_ns) {
	struct tel_transfers *r;

	if (!tel_on(h->env.tel_transfers) || (r = tel_put(h->env.tel_transfers)) == NULL)
		return;
	*r = (struct tel_transfers){
		.ts_ns = now_ns,
		.start_ns = t->start_ns,
		.gap_ns = t->gap_ns,
		.size_bytes = t->bytes,
		.ideal_ns = ideal_ns,
		.flow_id = f == NULL ? FLOW_NONE : f->id,
		.number = t->number,
		.group = group,
		.event = event,
	};
}

void workloads_measure(struct host *h) {
	for (uint32_t g = 0; g < h->groups->count; g++) {
		struct workload_count *c = h->workloads.group[g];

		if (c == NULL)
			continue;
		hist_reset(&c->completion);
		c->slowdown_sum = 0;
		c->slowdowns = 0;
		for (uint32_t i = 0; i < c->probes; i++)
			c->probe[i].count = 0;
	}
}

// The same figures of all hosts.
static void add_counts(struct workload_count *sum, const struct host *h, uint32_t g,
	uint64_t *waiting, uint64_t now_ns) {
	const struct workload_count *c = h->workloads.group[g];

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
	*waiting += workload_waiting(h, g, now_ns);
}

void workload_summary(
	const struct host *const *hosts, uint32_t n, uint32_t g, struct json *j, uint64_t now_ns) {
	struct workload_count sum = {0};
	const struct hist *took = &sum.completion;
	uint64_t waiting = 0;

	if (!source_scheduled(hosts[0]->groups->group[g].source))
		return;
	for (uint32_t k = 0; k < n; k++)
		add_counts(&sum, hosts[k], g, &waiting, now_ns);
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
		workload_probe_summary(hosts, n, g, j);
}
