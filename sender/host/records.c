// SPDX-License-Identifier: BSD-3-Clause
// Records of a connection: its events, its ACKs as the control has them, its beginning and end.
#include "common/net/flow_addr.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/flow.h"

void endpoint_event(struct endpoint *e, const struct flow *f, enum tel_event event, double before,
	double value, uint32_t detail, uint64_t now_ns) {
	struct tel_events *r;

	if (e->env.tel_events == NULL || (r = tel_put(e->env.tel_events)) == NULL)
		return;
	*r = (struct tel_events){
		.ts_ns = now_ns,
		.value = value,
		.flow_id = f->id,
		.detail = detail,
		.before = (float)before,
		.event = (uint16_t)event,
		.group = f->group,
	};
}

void endpoint_cc_record(struct endpoint *e, const struct flow *f, const struct cc_ack *a) {
	const struct group *g = &e->groups->group[f->group];
	float obs[CC_OBSERVED] = {0};
	struct tel_cc *r;

	if (e->env.tel_cc == NULL || !tel_flow_sampled(e->env.tel_run, f->id)
		|| (r = tel_put(e->env.tel_cc)) == NULL)
		return;
	if (g->cc != NULL && g->cc->observe != NULL)
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

void endpoint_flow_record(
	struct endpoint *e, const struct flow *f, uint8_t event, uint64_t now_ns) {
	const struct base_rtts *rtts = &e->groups->base_rtts;
	const struct stack *st = &e->groups->group[f->group].stack;
	bool ours = !st->guest;
	struct tel_flows *r;

	if (event == TEL_OPEN && base_rtts_drawn(rtts, f->group))
		endpoint_event(e, f, TEL_EV_BASE_RTT, 0, (double)rtts->flow_ns[f->id], 0, now_ns);
	if (e->env.tel_flows == NULL || (r = tel_put(e->env.tel_flows)) == NULL)
		return;
	*r = (struct tel_flows){
		.ts_ns = now_ns,
		.start_ns = f->start_ns,
		.acked_bytes = f->count.acked_bytes - f->at_open.acked_bytes,
		.flow_id = f->id,
		.src_ip = flow_addr_ip(e->env.src_ip, f->id),
		.dst_ip = e->env.dst_ip,
		.sent_segs = f->count.sent_segs - f->at_open.sent_segs,
		.retransmits = st->quic == NULL ? f->count.retransmits - f->at_open.retransmits
						: TEL_UNKNOWN(uint64_t),
		.cwnd_reductions = ours ? f->count.cwnd_reductions - f->at_open.cwnd_reductions
					: TEL_UNKNOWN(uint32_t),
		.timeouts = ours ? f->count.timeouts - f->at_open.timeouts : TEL_UNKNOWN(uint32_t),
		.srtt_ns = f->rtt.srtt_ns,
		.src_port = flow_addr_port(f->id),
		.dst_port = e->env.dst_port,
		.group = f->group,
		.event = event,
	};
}
