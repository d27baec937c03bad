// SPDX-License-Identifier: BSD-3-Clause
// The handshake of a sending connection: the SYN, its retransmissions, and the options agreed in
// the SYN/ACK; the next connection of a flow.
#include "common/base/rng.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"
#include "sender/tcp/path_mtu.h"
#include "sender/tcp/send_buffer.h"
#include "sender/tcp/service.h"

#define PAYLOAD_MIN 48 // MSS_MIN less 40 bytes of options
// Between the sequence numbers of two connections: more than any window, so that old packets are
// unacceptable.
#define RENEW_SEQ_GAP (1u << 30)
#define RTO_UNMEASURED_NS (3 * NS_PER_S) // RFC 6298 section 5.7: after a SYN was sent again

void handshake_syn(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	struct seg s;

	flow_header(f, &s, f->iss, 0, SEG_SYN, now_ns);
	s.ack = 0;
	s.options = SEG_OPT_MSS | SEG_OPT_WSCALE;
	if (g->ecn != 0)
		seg_set_ace(&s, !g->accecn ? 3 : f->backoff < ACCECN_SYNS ? 7 : 0);
	s.mss = (uint16_t)g->mss;
	if (g->sack)
		s.options |= SEG_OPT_SACK_OK;
	if (g->timestamps) {
		s.options |= SEG_OPT_TS;
		s.tsval = flow_tsval(now_ns);
	}
	if (f->state == FLOW_WAITING) {
		f->state = FLOW_SYN_SENT;
		f->ring.stride =
			g->samples || tel_on(e->env.tel_cc) ? SEG_BYTES : sizeof(struct seg_rec);
		f->start_ns = now_ns;
		e->waiting--;
		e->open++;
	}
	f->last_send_ns = now_ns;
	endpoint_send(e, f->id, &s, ECN_NOT_ECT, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

// Each timeout is lengthened by a random part of up to a quarter, drawn by seed, flow and attempt,
// so that SYNs lost together are not retransmitted together.
uint64_t handshake_timeout_ns(const struct endpoint *e, const struct flow *f, uint64_t rto_ns) {
	uint64_t x = rng_mix((e->env.seed ^ ((uint64_t)f->id << 16 | f->backoff)) * RNG_GOLDEN);

	return rto_ns + (rto_ns / 4 >> 16) * (x >> 48);
}

// Payload of a full segment. It is smaller if the peer's window holds less than two, as in Linux
// (tcp_bound_to_half_wnd): only whole segments are sent, and one larger than the window could never
// be.
static uint32_t sendable(uint32_t payload, uint32_t window) {
	uint32_t cut = window > MSS_DEFAULT ? window / 2 : window;

	return cut > 0 && payload > cut ? (cut > PAYLOAD_MIN ? cut : PAYLOAD_MIN) : payload;
}

static void agree_ecn(struct flow *f, const struct group *g, const struct seg *s) {
	if (!g->accecn) {
		f->ecn_ok = g->ecn != 0 && (s->flags & (SEG_ECE | SEG_CWR)) == SEG_ECE;
	} else {
		f->ecn_ok = accecn_of_syn_ack(seg_ace(s)) != ACCECN_NO_ECN;
		f->accecn = accecn_of_syn_ack(seg_ace(s)) == ACCECN_ON;
		f->ace = accecn_handshake_ace(ECN_NOT_ECT); // of the SYN/ACK, in the first ACK
		f->marks = (struct accecn_sender){
			.cep = ACCECN_CEP_INIT, .ceb_known = seg_has_ceb(s), .first = true};
	}
	f->classic_ecn = f->ecn_ok && !f->accecn && !g->dctcp_echo;
	f->ect = g->ecn == CC_ECN_ECT1 ? ECN_ECT1 : ECN_ECT0;
	if (f->accecn && accecn_mangled(seg_ace(s)))
		f->ect = ECN_NOT_ECT; // although its peer counts marks
	else if (f->classic_ecn && g->cc->feedback != CC_FEEDBACK_CLASSIC)
		f->ect = ECN_ECT0; // RFC 9331 section 4.2: it answers as a Classic control
}

// The RTT of the SYN. If that was retransmitted, only a timestamp shows which one is answered
// (Karn): of one before the last it is known to a millisecond, and rounded up. Without that
// knowledge NEVER_NS.
static uint64_t syn_rtt_ns(const struct flow *f, const struct seg *s, uint64_t now_ns) {
	if (f->backoff == 0 || (f->ts_ok && s->tsecr == flow_tsval(f->last_send_ns)))
		return now_ns - f->last_send_ns;
	if (f->ts_ok && seq_diff(s->tsecr, flow_tsval(f->start_ns)) >= 0
		&& seq_diff(s->tsecr, flow_tsval(f->last_send_ns)) < 0)
		return (uint64_t)(flow_tsval(now_ns) - s->tsecr + 1) * NS_PER_MS;
	return NEVER_NS;
}

// Whether more than one SYN was lost: then the first window is one segment (RFC 5681 section 3.1,
// which RFC 6928 section 2 limits to more than one retransmission). If the first SYN is answered,
// only the timeouts were too short. A control that ignores losses sets its own window with the
// first ACK.
static bool lost_syns(const struct flow *f, const struct seg *s) {
	return f->backoff > 1 && !(f->ts_ok && s->tsecr == flow_tsval(f->start_ns));
}

// Processes the SYN/ACK: agrees on options and starts congestion control (RFC 9293 section
// 3.10.7.3).
static void established(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	uint64_t rtt_ns;

	f->ts_ok = g->timestamps && (s->options & SEG_OPT_TS) != 0;
	f->sack_ok = g->sack && (s->options & SEG_OPT_SACK_OK) != 0;
	f->snd_wscale = (s->options & SEG_OPT_WSCALE) != 0 ? s->wscale : 0;
	rtt_ns = syn_rtt_ns(f, s, now_ns);
	agree_ecn(f, g, s);
	f->payload = g->probes ? 1 : sendable(mss_payload(g, s, f->ts_ok), s->window);
	f->payload = (uint32_t)min_u64(f->payload, path_mtu_payload(e, f));
	if (g->mtu_probing != MTU_PROBING_OFF)
		mtu_probe_open(e, f);
	if (f->data_segs != FLOW_ENDLESS)
		f->data_segs = (f->total_bytes + f->payload - 1) / f->payload;
	f->ts_recent = s->tsval;
	f->rcv_nxt = s->seq + 1;
	f->wnd_bytes = s->window; // never scaled in a SYN
	if (rtt_ns != NEVER_NS)
		rtt_sample(&f->rtt, rtt_ns, rtt_ns, g->rto_min_ns);
	else
		f->rtt.rto_ns = RTO_UNMEASURED_NS;
	f->rack_rtt_ns = f->rtt.srtt_ns;
	f->sampled = g->sampled;
	if (g->has_service)
		service_open(e, f, now_ns);
	g->cc->init(f->cc_state, g->cc_config, f->payload, f->rtt.srtt_ns, now_ns, &f->out);
	if (lost_syns(f, s))
		f->out.cwnd_segs = 1;
	f->backoff = f->timeouts = 0;
	f->rtx_kind = RTX_NONE;
	f->state = FLOW_OPEN;
	f->delivered_ns = f->first_tx_ns = now_ns;
	f->cwnd_segs = f->out.cwnd_segs;
	send_buffer_open(g, f);
	flow_note_mode(e, f);
	endpoint_flow_record(e, f, TEL_OPEN, now_ns);
	flow_ack_now(e, f, now_ns);
	f->ace = ACCECN_CEP_INIT;
	if (f->transfer != NULL)
		e->app->opened(e, f, now_ns);
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

void handshake_rx(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	bool acks_syn = (s->flags & SEG_ACK) != 0 && s->ack == f->iss + 1;

	if ((s->flags & SEG_RST) != 0 && acks_syn)
		flow_end(e, f, FLOW_FAILED, TEL_RESET, now_ns);
	else if ((s->flags & SEG_SYN) != 0 && acks_syn)
		established(e, f, s, now_ns);
	else {
		e->count.rx_bad++;
		if (!acks_syn)
			flow_answer_unknown(e, f, s, now_ns);
	}
}

void flow_renew(struct endpoint *e, struct flow *f, uint64_t bytes, uint64_t now_ns) {
	struct flow old = *f;
	uint64_t delivered = flow_delivered_bytes(f);

	if (f->state != FLOW_WAITING) {
		e->done -= f->state == FLOW_DONE;
		e->failed -= f->state == FLOW_FAILED;
		e->waiting++;
	}
	flow_init(e, f, old.id, old.group, now_ns, bytes);
	endpoint_cancel(e, &f->pace);
	if (old.state != FLOW_WAITING)
		f->iss = flow_seq_nxt(&old) + RENEW_SEQ_GAP;
	else
		f->iss = old.iss;
	f->stop_ns = NEVER_NS; // what has begun is finished
	f->count = f->at_open = old.count;
	f->at_measure = old.at_measure;
	f->at_interval = old.at_interval;
	f->before_delivered_bytes = f->least_delivered_bytes = delivered;
	f->interval_delivered_bytes = old.interval_delivered_bytes;
	f->measure_delivered_bytes = old.measure_delivered_bytes;
	f->measure_send_ns = old.measure_send_ns;
	f->missed_ns = old.missed_ns;
	f->transfer = old.transfer;
	f->path_mtu = old.path_mtu;
	f->workload = old.workload;
	f->next_free = FLOW_NONE;
	f->transfers = old.transfers;
	f->transfer_first = old.transfer_first;
	f->transfer_room = old.transfer_room;
	handshake_syn(e, f, now_ns);
}
