// SPDX-License-Identifier: BSD-3-Clause
// The telemetry records of a host's flows.
#include "sender/host/host.h"

void host_still_open(struct host *h, uint64_t now_ns) {
	for (uint32_t i = 0; i < h->flows; i++) {
		const struct flow *f = &h->flow[i];

		if (f->state == FLOW_SYN_SENT || f->state == FLOW_OPEN)
			endpoint_flow_record(&h->endpoint, f, TEL_STILL_OPEN, now_ns);
	}
	workloads_still_open(&h->endpoint, now_ns);
}

// After `n` flows from `first` on, of those there are.
static uint32_t flows_end(const struct host *h, uint32_t first, uint32_t n) {
	return h->flows - first < n ? h->flows : first + n;
}

void host_interval(struct host *h, uint64_t now_ns) {
	host_interval_some(h, 0, h->flows, now_ns);
}

uint32_t host_interval_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns) {
	uint32_t end = flows_end(h, first, n);

	if (!tel_on(h->env.tel_interval))
		return end;
	for (uint32_t i = first; i < end; i++) {
		struct flow *f = &h->flow[i];
		const struct flow_count *c = &f->count, *o = &f->at_interval;
		uint64_t delivered = flow_delivered_bytes(f);
		const struct stack *st = &h->groups->group[f->group].stack;
		bool ours = !st->guest;
		bool quiet = f->state != FLOW_OPEN && delivered == f->interval_delivered_bytes
			&& c->acked_bytes == o->acked_bytes && c->sent_segs == o->sent_segs
			&& c->rtt_samples == o->rtt_samples && c->lost_segs == o->lost_segs
			&& c->drops == o->drops && c->cwnd_reductions == o->cwnd_reductions;
		uint64_t samples = c->rtt_samples - o->rtt_samples;
		struct tel_interval *r;

		if (quiet || (r = tel_put(h->env.tel_interval)) == NULL)
			continue;
		*r = (struct tel_interval){
			.ts_ns = now_ns,
			.acked_bytes = c->acked_bytes - o->acked_bytes,
			.delivered_bytes = delivered - f->interval_delivered_bytes,
			.flow_id = f->id,
			.sent_segs = c->sent_segs - o->sent_segs,
			.retransmits = st->quic == NULL ? c->retransmits - o->retransmits
							: TEL_UNKNOWN(uint64_t),
			.lost_segs = ours ? c->lost_segs - o->lost_segs : TEL_UNKNOWN(uint64_t),
			.drops = h->env.virtual_time ? c->drops - o->drops : TEL_UNKNOWN(uint64_t),
			.rtt_samples = samples,
			.rtt_mean_ns = samples == 0 ? 0 : (c->rtt_sum_ns - o->rtt_sum_ns) / samples,
			.rtt_max_ns = f->interval_rtt_max_ns,
			.cwnd_segs = (float)f->out.cwnd_segs,
			.pacing_bps = (float)f->out.pacing_bps,
			.inflight_segs = flow_inflight(f),
			.group = f->group,
			.cwnd_reductions = ours ? c->cwnd_reductions - o->cwnd_reductions
						: TEL_UNKNOWN(uint32_t),
			.state = f->ca,
			.cc_state = f->state == FLOW_OPEN ? f->cc_mode : 0,
		};
		f->at_interval = *c;
		f->interval_rtt_max_ns = 0;
		f->interval_delivered_bytes = delivered;
	}
	return end;
}
