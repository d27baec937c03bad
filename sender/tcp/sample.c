// SPDX-License-Identifier: BSD-3-Clause
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"
#include "sender/tcp/service.h"

// From sent_ns to the receiver's timestamp.
static int64_t one_way_ns(uint32_t tsval, uint64_t sent_ns) {
	return (int32_t)(tsval - flow_tsval(sent_ns)) * (int64_t)NS_PER_MS
		- (int64_t)(sent_ns % NS_PER_MS);
}

void sample_take(struct endpoint *e, struct flow *f, const struct seg *ack,
	const struct delivery *d, uint64_t rtt_ns, bool ece) {
	const struct group *g = flow_group(e, f);
	bool stamped = ack != NULL && (ack->options & SEG_OPT_TS) != 0;
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
		.peer_tsval = stamped ? ack->tsval : 0,
		.peer_tsecr = stamped ? ack->tsecr : 0,
		.ack = ack != NULL,
		.predicted = ack != NULL && ack->flags == SEG_ACK && ack->sack_count == 0
			&& f->ca == FLOW_CA_OPEN,
		.ece = ece,
		.cwnd_limited = f->una <= f->cwnd_limited_nxt,
		.host_paced = g->host_paced,
		.one_way = stamped && d->newest_ns > 0 && !d->newest_retrans,
		.one_way_ns = stamped ? one_way_ns(ack->tsval, d->newest_ns) : 0,
	};

	if (f->service != NULL)
		f->service->now_ns = d->now_ns;

	if (g->cc->on_sample != NULL)
		g->cc->on_sample(f->cc_state, g->cc_config, &s);
}
