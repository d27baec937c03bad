// SPDX-License-Identifier: BSD-3-Clause
// What is recorded of transfers, and the summary of a group's.
#include "common/net/wire.h"
#include "sender/group/network.h"
#include "sender/workload/workload.h"

// The time that the transfer would take alone, on a network without queues, without a limit by
// windows: round trips, and its frames at the rate of the slowest link. 0: the config does not say.
uint64_t workload_ideal_ns(const struct endpoint *e, const struct flow *f, uint64_t bytes) {
	const struct network_empty *empty = e->env.empty == NULL ? NULL : &e->env.empty[f->group];
	uint64_t payload = f->payload, segs = bytes / payload, rest = bytes % payload;
	uint32_t headers = WIRE_ETH + flow_group(e, f)->ip_header + WIRE_TCP + WIRE_FCS
		+ WIRE_OVERHEAD + (flow_group(e, f)->timestamps ? 12 : 0);
	const uint64_t *own_ns = e->groups->base_rtts.flow_ns;
	uint64_t wire, rtt_ns;

	if (empty == NULL || empty->rate_bps == 0 || bytes == SOURCE_ENDLESS)
		return 0;
	wire = segs * (payload + headers) + (rest > 0 ? rest + headers : 0);
	rtt_ns = own_ns != NULL && own_ns[f->id] > 0 ? own_ns[f->id] : empty->rtt_ns;
	return (flow_group(e, f)->keeps ? 1 : 2) * rtt_ns
		+ (uint64_t)((double)wire * 8e9 / (double)empty->rate_bps);
}

void workload_record(struct endpoint *e, uint16_t group, const struct flow *f,
	const struct flow_transfer *t, uint64_t ideal_ns, uint8_t event, uint64_t now_ns) {
	struct tel_transfers *r;

	if (!tel_on(e->env.tel_transfers) || (r = tel_put(e->env.tel_transfers)) == NULL)
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

void workloads_measure(struct endpoint *e) {
	for (uint32_t g = 0; g < e->groups->count; g++) {
		struct workload_count *c = e->workloads->group[g];

		if (c == NULL)
			continue;
		hist_reset(&c->completion);
		c->slowdown_sum = 0;
		c->slowdowns = 0;
		for (uint32_t i = 0; i < c->probes; i++)
			c->probe[i].count = 0;
	}
}
