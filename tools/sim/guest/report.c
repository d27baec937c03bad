// SPDX-License-Identifier: BSD-3-Clause
// Samples of a guest's TCP_INFO become the counters of a flow of ours, so that records, summary and
// reports have kernel flows beside our own.
//
//	acked_bytes tcpi_bytes_acked less the SYN    sent_segs    tcpi_data_segs_out
//	retransmits tcpi_total_retrans               spurious     tcpi_dsack_dups
//	ce_segs     tcpi_delivered_ce
//	cwnd        tcpi_snd_cwnd                    pacing       tcpi_pacing_rate
//	pipe        unacked - sacked - lost + retrans
//	RTT         tcpi_rtt, the kernel's smoothed RTT, once per sample
//
// The kernel does not say how often it has reduced its window, nor how many segments it has ever
// declared lost: these figures of kernel flows are not known, and written as null.
#include "common/net/flow_addr.h"
#include "tools/sim/guest/guests_private.h"

#include <errno.h>

// Linux: enum tcp_ca_state.
enum { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };

static uint8_t state_of(uint8_t kernels) {
	switch (kernels) {
	case CA_LOSS:
		return FLOW_CA_LOSS;
	case CA_RECOVERY:
	case CA_CWR:
		return FLOW_CA_RECOVERY;
	default:
		return FLOW_CA_OPEN;
	}
}

static void update(struct host *h, struct flow *f, const struct sample *m) {
	uint64_t acked = m->bytes > 0 ? m->bytes - 1 : 0;
	uint64_t rtt_ns = m->srtt_us * NS_PER_US;

	f->count.acked_bytes = time_min(acked, f->total_bytes);
	f->count.sent_segs = m->data_segs_out;
	f->count.retransmits = m->total_retrans;
	f->count.spurious = m->dsacks;
	f->count.ce_segs = m->delivered_ce;
	f->una = 0;
	f->nxt = m->unacked;
	f->sacked = m->sacked;
	f->lost = m->lost;
	f->retrans = m->retrans;
	f->ca = state_of(m->ca_state);
	f->out.cwnd_segs = f->cwnd_segs = m->cwnd;
	f->out.pacing_bps = m->pacing_Bps == UINT64_MAX ? 0 : 8.0 * (double)m->pacing_Bps;
	if (m->event != SAMPLE_NOW || rtt_ns == 0)
		return;
	f->rtt.srtt_ns = rtt_ns;
	f->count.rtt_sum_ns += rtt_ns;
	f->count.rtt_samples++;
	if (rtt_ns > f->interval_rtt_max_ns)
		f->interval_rtt_max_ns = rtt_ns;
	struct cc_ack ack = {
		.now_ns = m->clock_ns,
		.rtt_ns = rtt_ns,
		.srtt_ns = rtt_ns,
		.rtt_min_ns = m->min_rtt_us * NS_PER_US,
		.inflight_segs = flow_inflight(f),
		.delivery_bps = 8.0 * (double)m->delivery_Bps,
		.app_limited = m->app_limited != 0,
	};
	endpoint_cc_record(&h->endpoint, f, &ack);
}

static void ended(struct host *h, struct flow *f, const struct sample *m) {
	uint8_t event = TEL_CLOSE;

	if (f->state == FLOW_OPEN)
		h->open--;
	else
		h->waiting--;
	if (m->event == SAMPLE_CLOSED) {
		f->state = FLOW_DONE;
		f->nxt = 0;
		f->sacked = f->lost = f->retrans = 0;
		f->count.acked_bytes = time_min(f->total_bytes, f->count.acked_bytes);
		h->done++;
	} else {
		f->state = FLOW_FAILED;
		h->failed++;
		f->gave_up = m->error == ETIMEDOUT;
		event = f->gave_up ? TEL_GAVE_UP : TEL_RESET;
	}
	endpoint_flow_record(&h->endpoint, f, event, m->clock_ns);
}

// A program of the host opens another connection with the port of one that has ended.
static void reopen(struct host *h, struct flow *f) {
	if (f->state == FLOW_DONE)
		h->done--;
	else
		h->failed--;
	h->waiting++;
}

// The side that was opened: what it has received and sent.
static void received(struct guests *gs, const struct sample *m) {
	struct host *h = guests_side(gs, false)->host;
	struct flow_count *b = &gs->back[m->flow];

	h->received.bytes += m->bytes - h->receiver[m->flow].rcv_nxt;
	h->receiver[m->flow].rcv_nxt = m->bytes;
	b->acked_bytes = m->back_bytes;
	b->sent_segs = m->data_segs_out;
	b->retransmits = m->total_retrans;
	if (m->srtt_us > 0 && m->data_segs_out > 0) {
		b->rtt_sum_ns += m->srtt_us * NS_PER_US;
		b->rtt_samples++;
	}
}

void guests_report(struct guests *gs, const struct sample *m) {
	struct host *h = guests_side(gs, true)->host;
	struct flow *f;

	if (m->flow >= h->flows)
		return;
	if (m->event == SAMPLE_RECEIVED) {
		received(gs, m);
		return;
	}
	f = &h->flow[m->flow];
	if (f->state == FLOW_DONE || f->state == FLOW_FAILED) {
		if (m->event != SAMPLE_OPENED)
			return;
		reopen(h, f);
	}
	update(h, f, m);
	if (m->event == SAMPLE_OPENED) {
		f->state = FLOW_OPEN;
		h->waiting--;
		h->open++;
		endpoint_flow_record(&h->endpoint, f, TEL_OPEN, m->clock_ns);
	} else if (m->event != SAMPLE_NOW) {
		ended(h, f, m);
	}
}

// The connections of a QUIC stack are the flows with their ports. Only its program knows what it
// has sent again and what is acknowledged: what has left the paths counts, its headers with it.
void guests_quic_flows(struct guests *gs, uint64_t now_ns) {
	for (uint32_t i = 0; gs != NULL && i < gs->count; i++) {
		const struct ip_flows *flows = &gs->ip_flows[i];

		if (!gs->place[i].sender || guests_stack(gs, i)->quic == NULL)
			continue;
		for (uint32_t k = 0; k < flows->count; k++) {
			const struct ip_flow_count *c = &flows->flow[k].interval;
			const struct wire_flow *key = &flows->flow[k].key;
			uint32_t id = guests_flow_of_port(gs, i, key->src, key->src_port);

			if (key->proto != WIRE_PROTO_UDP || id == FLOW_ADDR_NONE)
				continue;
			struct flow *f = &guests_side(gs, true)->host->flow[id];

			f->count.drops += c->drops;
			guests_report(gs,
				&(struct sample){
					.event = f->state == FLOW_OPEN ? SAMPLE_NOW : SAMPLE_OPENED,
					.flow = id,
					.clock_ns = now_ns,
					.bytes = f->count.acked_bytes + c->received_bytes + 1,
					.data_segs_out =
						(uint32_t)(f->count.sent_segs + c->sent_pkts),
					.delivered_ce = (uint32_t)(f->count.ce_segs + c->ce_pkts),
				});
		}
	}
}
