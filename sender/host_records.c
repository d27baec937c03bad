// SPDX-License-Identifier: BSD-3-Clause
// The telemetry records of a host's flows.
#include "sender/host.h"

void host_event(struct host *h, const struct flow *f, enum tel_event event, double before,
	double value, uint32_t detail, uint64_t now_ns) {
	struct tel_events *e;

	if (h->env.tel_events == NULL || (e = tel_put(h->env.tel_events)) == NULL)
		return;
	*e = (struct tel_events){
		.ts_ns = now_ns,
		.value = value,
		.flow_id = f->id,
		.detail = detail,
		.before = (float)before,
		.event = (uint16_t)event,
		.group = f->group,
	};
}

void host_cc_record(struct host *h, const struct flow *f, const struct cc_ack *a) {
	const struct group *g = &h->groups->group[f->group];
	float obs[CC_OBSERVED] = {0};
	struct tel_cc *r;

	if (h->env.tel_cc == NULL || !tel_flow_sampled(h->env.tel_run, f->id)
		|| (r = tel_put(h->env.tel_cc)) == NULL)
		return;
	if (g->cc->observe != NULL)
		g->cc->observe(f->cc_state, g->cc_config, obs);
	*r = (struct tel_cc){
		.ts_ns = a->now_ns,
		.flow_id = f->id,
		.rtt_ns = a->rtt_ns,
		.srtt_ns = a->srtt_ns,
		.rtt_min_ns = a->rtt_min_ns,
		.cwnd_segs = (float)f->out.cwnd_segs,
		.inflight_segs = a->inflight_segs,
		.pacing_bps = (float)f->out.pacing_bps,
		.delivery_bps = (float)a->delivery_bps,
		.lost_segs = g->stack.guest ? TEL_UNKNOWN(uint64_t) : f->count.lost_segs,
		.state = f->ca,
		.app_limited = a->app_limited,
		.group = f->group,
		.obs0 = obs[0],
		.obs1 = obs[1],
		.obs2 = obs[2],
		.obs3 = obs[3],
	};
}

void host_flow_record(struct host *h, const struct flow *f, uint8_t event, uint64_t now_ns) {
	const struct base_rtts *rtts = &h->groups->base_rtts;
	bool ours = !h->groups->group[f->group].stack.guest;
	struct tel_flows *r;

	if (event == TEL_OPEN && base_rtts_drawn(rtts, f->group))
		host_event(h, f, TEL_EV_BASE_RTT, 0, (double)rtts->flow_ns[f->id], 0, now_ns);
	if (h->env.tel_flows == NULL || (r = tel_put(h->env.tel_flows)) == NULL)
		return;
	*r = (struct tel_flows){
		.ts_ns = now_ns,
		.start_ns = f->start_ns,
		.acked_bytes = f->count.acked_bytes - f->at_open.acked_bytes,
		.flow_id = f->id,
		.src_ip = flow_addr_ip(h->env.src_ip, f->id),
		.dst_ip = h->env.dst_ip,
		.sent_segs = f->count.sent_segs - f->at_open.sent_segs,
		.retransmits = f->count.retransmits - f->at_open.retransmits,
		.cwnd_reductions = ours ? f->count.cwnd_reductions - f->at_open.cwnd_reductions
					: TEL_UNKNOWN(uint32_t),
		.timeouts = ours ? f->count.timeouts - f->at_open.timeouts : TEL_UNKNOWN(uint32_t),
		.srtt_ns = f->rtt.srtt_ns,
		.src_port = flow_addr_port(f->id),
		.dst_port = h->env.dst_port,
		.group = f->group,
		.event = event,
	};
}

void host_still_open(struct host *h, uint64_t now_ns) {
	for (uint32_t i = 0; i < h->flows; i++) {
		const struct flow *f = &h->flow[i];

		if (f->state == FLOW_SYN_SENT || f->state == FLOW_OPEN)
			host_flow_record(h, f, TEL_STILL_OPEN, now_ns);
	}
	workloads_still_open(h, now_ns);
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

	for (uint32_t i = first; i < end; i++) {
		struct flow *f = &h->flow[i];
		const struct flow_count *c = &f->count, *o = &f->at_interval;
		uint64_t delivered = flow_delivered_bytes(f);
		bool ours = !h->groups->group[f->group].stack.guest;
		bool quiet = f->state != FLOW_OPEN && delivered == f->interval_delivered_bytes
			&& c->acked_bytes == o->acked_bytes && c->sent_segs == o->sent_segs
			&& c->rtt_samples == o->rtt_samples && c->lost_segs == o->lost_segs
			&& c->drops == o->drops && c->cwnd_reductions == o->cwnd_reductions;
		uint64_t samples = c->rtt_samples - o->rtt_samples;
		struct tel_interval *r;

		if (quiet || h->env.tel_interval == NULL
			|| (r = tel_put(h->env.tel_interval)) == NULL)
			continue;
		*r = (struct tel_interval){
			.ts_ns = now_ns,
			.acked_bytes = c->acked_bytes - o->acked_bytes,
			.delivered_bytes = delivered - f->interval_delivered_bytes,
			.flow_id = f->id,
			.sent_segs = c->sent_segs - o->sent_segs,
			.retransmits = c->retransmits - o->retransmits,
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
