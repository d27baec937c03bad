// SPDX-License-Identifier: BSD-3-Clause
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"

void sample_take(struct endpoint *e, struct flow *f, const struct seg *ack,
	const struct delivery *d, uint64_t rtt_ns, bool ece) {
	const struct group *g = flow_group(e, f);
	const struct cc_sample s = {
		.now_ns = d->now_ns,
		.una_segs = f->una,
		.nxt_segs = f->nxt,
		.delivered_segs = f->delivered,
		.prior_delivered_segs = d->acked > 0 ? d->prior_delivered : f->delivered,
		.lost_segs = f->count.lost_segs - f->at_open.lost_segs,
		.rtt_ns = rtt_ns,
		.srtt_ns = f->rtt.srtt_ns,
		.rtt_min_ns = f->rtt.min_ns,
		.rto_ns = f->rtt.rto_ns,
		.cwnd_segs = f->cwnd_segs,
		.passed_segs = d->passed,
		.ce_segs = d->ce,
		.sacked_segs = f->sacked,
		.inflight_segs = flow_inflight(f),
		.peer_tsval = ack != NULL && (ack->options & SEG_OPT_TS) != 0 ? ack->tsval : 0,
		.peer_tsecr = ack != NULL && (ack->options & SEG_OPT_TS) != 0 ? ack->tsecr : 0,
		.ack = ack != NULL,
		.predicted = ack != NULL && ack->flags == SEG_ACK && ack->sack_count == 0
			&& f->ca == FLOW_CA_OPEN,
		.ece = ece,
		.cwnd_limited = f->una <= f->cwnd_limited_nxt,
		.host_paced = g->host_paced,
	};

	if (g->cc->on_sample != NULL)
		g->cc->on_sample(f->cc_state, g->cc_config, &s);
}
