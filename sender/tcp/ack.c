// SPDX-License-Identifier: BSD-3-Clause
// ACK processing at the sender: scoreboard, RTT, delivery rate, recovery, congestion control.
#include "common/base/jiffies.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/kernel_rules.h"
#include "sender/tcp/loss.h"
#include "sender/tcp/prr.h"
#include "sender/tcp/service.h"

#include <string.h>

static void set_window(const struct endpoint *e, struct flow *f, const struct delivery *d) {
	if (f->ca == FLOW_CA_RECOVERY && flow_group(e, f)->cc->prr)
		prr_on_ack(f, d->prr, d->advanced && d->lost == 0);
	else
		f->cwnd_segs = f->out.cwnd_segs;
}

// A peer without SACK: each duplicate ACK counts as the arrival of an unknown segment (RFC 6582).
static void reno_dupacks(struct flow *f, bool dup, struct delivery *d) {
	if (f->ca == FLOW_CA_LOSS) {
		flow_forget(f); // all segments count as lost; duplicate ACKs answer retransmissions
		return;
	}
	if (d->advanced) {
		// One segment filled the hole; the others were counted by their duplicate ACKs.
		d->prr = d->acked > f->sacked + 1 ? d->acked - f->sacked : 1;
		f->sacked = f->sacked + 1 > d->acked ? f->sacked + 1 - d->acked : 0;
		if (f->sacked >= f->nxt - f->una)
			flow_forget(f);
		f->dupacks = 0;
		if (f->ca != FLOW_CA_RECOVERY || f->una >= f->recover)
			return;
	} else if (dup) {
		f->dupacks++;
		d->prr = 1;
		if (flow_inflight(f) > 0 && f->sacked + 1 < f->nxt - f->una)
			f->sacked++;
		if (f->ca != FLOW_CA_OPEN || f->dupacks != FLOW_DUP_THRESH)
			return;
	} else {
		return;
	}
	if ((flow_seg(f, f->una)->flags & SENT_LOST) == 0)
		loss_mark_in(f, f->una, d);
}

// The interval of the delivery rate sample for the newest delivered segment, which was sent and
// acknowledged in so many ns; 0: no sample.
static uint64_t rate_interval_ns(const struct flow *f, uint64_t send_ns, uint64_t ack_ns) {
	uint64_t interval_ns = time_max(send_ns, ack_ns);

	// Shorter than a round trip: ACKs were compressed (section 3.3).
	return interval_ns < f->rtt.min_ns ? 0 : interval_ns;
}

// `loss`: to be answered as a reduction, as is an echo.
static inline void call_cc(struct endpoint *e, struct flow *f, const struct group *g,
	struct cc_ack *a, bool ece, bool loss) {
	double before = f->out.cwnd_segs;
	const struct cc_ops *cc = g->cc;
	uint8_t mode = f->cc_mode;
	bool traced = tel_on(e->env.tel_cc);

	if (a->interval_ns > 0 && (cc->rate || traced))
		a->delivery_bps = (double)(a->delivered_segs - a->prior_delivered_segs) * f->payload
			* 8e9 / (double)a->interval_ns;
	cc->on_ack(f->cc_state, g->cc_config, a, &f->out);
	f->ecn_loss |= loss;
	if (cc->answers_in_on_ack && (ece || loss))
		recovery_reduced(e, f, before, !loss, a->now_ns);
	if (cc->mode != NULL)
		f->cc_mode = cc->mode(f->cc_state, g->cc_config);
	if (f->cc_mode != mode)
		endpoint_event(e, f, TEL_EV_CC_MODE, mode, f->cc_mode, 0, a->now_ns);
	if (traced)
		endpoint_cc_record(e, f, a);
}

static inline void notify_cc(struct endpoint *e, struct flow *f, const struct delivery *d, bool ece,
	uint32_t prior_inflight, uint64_t rtt_ns) {
	struct cc_ack a = {
		.now_ns = d->now_ns,
		.rtt_ns = rtt_ns > 0 ? rtt_ns : kernel_rtt_ns(e, f, d),
		.srtt_ns = f->rtt.srtt_ns,
		.tick_ns = flow_group(e, f)->tick_ns,
		.rtt_min_ns = f->rtt.min_ns,
		.sent_ns = d->newest_ns,
		.cwnd_at_send = (double)d->newest_cwnd,
		.acked_segs = d->acked,
		.passed_segs = d->passed,
		.lost_segs = d->lost,
		.ce_segs = d->ce,
		.classic_ecn = f->classic_ecn,
		.inflight_segs = flow_inflight(f),
		.prior_inflight_segs = prior_inflight,
		.delivered_segs = f->delivered,
		.prior_delivered_segs = d->prior_delivered,
		.interval_ns = d->acked > 0
			? rate_interval_ns(f, d->send_elapsed_ns, d->now_ns - d->prior_ns)
			: 0,
		.next_send_ns = f->next_send_ns,
		.app_limited = d->app_limited,
		.lost_app_limited = d->lost_app_limited,
		.cwnd_limited = f->una <= f->cwnd_limited_nxt,
		.host_paced = flow_group(e, f)->host_paced,
		.in_sequence = d->advanced || kernel_may_raise(e, f, d),
		.in_recovery = f->ca == FLOW_CA_RECOVERY,
		.in_loss = f->ca == FLOW_CA_LOSS,
	};
	// The first loss of an ECN episode, which on_loss does not report.
	bool loss = d->lost > 0 && a.in_recovery && f->ecn_episode && !f->ecn_loss;

	call_cc(e, f, flow_group(e, f), &a, ece, loss);
}

// Counts the RTT of the oldest and of the newest segment that an ACK acknowledges.
static inline void add_rtt(
	struct flow *f, uint64_t oldest_ns, uint64_t newest_ns, uint64_t rto_min_ns) {
	rtt_sample(&f->rtt, oldest_ns, newest_ns, rto_min_ns);
	f->count.rtt_sum_ns += newest_ns;
	f->count.rtt_samples++;
	f->interval_rtt_max_ns = max_u64(f->interval_rtt_max_ns, newest_ns);
}

// The RTT of the newest segment, unless it was sent twice (Karn): then 0. srtt learns from the
// oldest (tcp_clean_rtx_queue).
//
// Of what was sent twice a timestamp may say which transmission arrived (RFC 6298 section 3, RFC
// 7323 section 4.1, tcp_ack_update_rtt). srtt and the timeout learn from it, so that they follow
// the path through a long recovery, and the backoff ends (section 5.7). Its clock ticks in
// milliseconds, in which there may have been another transmission: it is no sample for the smallest
// RTT, nor for the control.
static inline uint64_t take_rtt(struct endpoint *e, struct flow *f, const struct delivery *d) {
	uint64_t rtt_ns = d->now_ns - d->newest_ns, rto_min_ns = flow_group(e, f)->rto_min_ns;

	if (d->acked == 0 || d->newest_retrans) {
		if (d->echoed_ns > 0) {
			rtt_sample(&f->rtt, d->now_ns - d->echoed_ns, NEVER_NS, rto_min_ns);
			f->backoff = 0;
		}
		return 0;
	}
	add_rtt(f, d->oldest_ns > 0 ? d->now_ns - d->oldest_ns : rtt_ns, rtt_ns, rto_min_ns);
	return rtt_ns;
}

// Sets the deadline of RACK's reordering timer after an ACK; the caller then calls flow_arm_rtx.
static void set_reorder_timer(
	const struct endpoint *e, struct flow *f, uint64_t wait_ns, uint64_t now_ns) {
	if (wait_ns > 0) {
		f->rtx_kind = RTX_REO;
		f->rtx_deadline_ns = jiffies_wait_ns(flow_group(e, f)->tick_ns, now_ns, wait_ns);
	} else if (f->rtx_kind == RTX_REO) {
		f->rtx_kind = RTX_RTO;
	}
}

// RACK's timer expired: segments beyond the reordering window are lost now.
void flow_reorder_timer(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	struct delivery d = {.now_ns = now_ns};
	uint64_t wait_ns = loss_detect(e, f, now_ns, &d);

	if (d.lost > 0)
		sample_now(e, f, now_ns);
	if (d.lost > 0 && f->ca == FLOW_CA_OPEN)
		recovery_enter(e, f, &d, CAUSE_LOSS);
	if (d.lost > 0) {
		notify_cc(e, f, &d, false, flow_inflight(f) + d.lost, 0);
		set_window(e, f, &d);
	}
	set_reorder_timer(e, f, wait_ns, now_ns);
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

// RFC 5961 section 5.2: the ACK is neither beyond SND.NXT nor older than the largest window that
// the peer has had. What its window scale allows stands for that one.
bool flow_ack_acceptable(const struct flow *f, const struct seg *s) {
	uint64_t oldest = min_u64(f->una_bytes, (uint64_t)UINT16_MAX << f->snd_wscale);
	int64_t ahead = flow_ack_ahead(f, s);

	return ahead >= 0 ? f->una_bytes + (uint64_t)ahead <= flow_sent_bytes(f)
			  : (uint64_t)-ahead <= oldest;
}

// Moves una_bytes and the window's right edge as an acceptable ACK says; returns the new una. The
// edge moves back only if the ACK acknowledges new data or closes the window, as in Linux
// (tcp_may_update_window): otherwise it may be an ACK that was overtaken by another.
static uint64_t take_ack(struct flow *f, const struct seg *s) {
	int32_t ahead = flow_ack_ahead(f, s);
	uint64_t una = f->una, wnd = (uint64_t)s->window << f->snd_wscale;

	if (ahead < 0)
		return una;
	f->una_bytes += (uint32_t)ahead;
	while (una < f->nxt && flow_offset(f, una + 1) <= f->una_bytes)
		una++;
	if (ahead > 0 || wnd == 0 || f->una_bytes + wnd > f->wnd_bytes)
		f->wnd_bytes = f->una_bytes + wnd;
	return una;
}

// Updates the flow's timers for newly acknowledged segments.
static void progress(struct flow *f, const struct delivery *d, uint64_t rtt_ns) {
	f->probes = 0;
	f->timeouts = 0;
	f->rtx_base_ns = d->now_ns;
	if (rtt_ns > 0)
		f->backoff = 0;
}

void flow_ack(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	struct delivery d = {
		.now_ns = now_ns,
		.tsecr = f->ts_ok && (s->options & SEG_OPT_TS) != 0 ? s->tsecr : 0,
		.prior_fack = f->fack,
		.old = flow_ack_ahead(f, s) < 0,
	};
	uint32_t prior_inflight = flow_inflight(f);
	uint64_t before = f->una_bytes, edge = f->wnd_bytes, una = take_ack(f, s);
	uint64_t wnd = (uint64_t)s->window << f->snd_wscale;
	uint64_t wait_ns = 0, rtt_ns;
	bool ece, stays = false;

	d.advanced = f->una_bytes > before;
	d.repeated = !d.advanced && !d.old && f->una_bytes + wnd == edge && s->len == 0
		&& (s->flags & SEG_FIN) == 0;
	d.passed = (uint32_t)(una - f->una);
	if (f->rtx_kind == RTX_PERSIST)
		f->timeouts = 0; // the peer answers
	f->count.acked_bytes +=
		min_u64(f->una_bytes, f->total_bytes) - min_u64(before, f->total_bytes);
	loss_cumulative(e, f, una, &d);
	if (f->sack_ok) {
		if (s->sack_count > 0 || f->seen_count > 0)
			loss_sack(f, s, &d);
		d.prr = d.acked;
	} else {
		reno_dupacks(f, d.repeated && f->una < f->nxt, &d);
	}
	if (d.acked > 0)
		f->delivered_ns = now_ns;
	if (d.newest_ns > 0)
		f->first_tx_ns = d.newest_ns;
	if (f->app_limited != 0 && f->delivered >= f->app_limited)
		f->app_limited = 0;
	rtt_ns = take_rtt(e, f, &d);
	ece = flow_take_marks(e, f, s, &d);
	if (unlikely(f->packets))
		service_acked(f, d.each, now_ns);
	sample_ack(e, f, s, &d, rtt_ns > 0 ? rtt_ns : kernel_rtt_ns(e, f, &d), ece);
	spurious_detect(e, f, &d);
	if (f->sack_ok)
		wait_ns = loss_detect(e, f, now_ns, &d);
	if (d.advanced)
		progress(f, &d, rtt_ns);
	recovery_update(e, f, &d, ece);
	if (d.acked > 0 || d.lost > 0) {
		notify_cc(e, f, &d, ece, prior_inflight, rtt_ns);
		stays = f->sampled && recovery_take_requests(e, f, &d);
	}
	if (!stays)
		set_window(e, f, &d);
	if (f->transfers > 0)
		e->app->acked(e, f, rtt_ns, now_ns);
	if (f->una > f->data_segs) {
		flow_end(e, f, FLOW_DONE, TEL_CLOSE, now_ns);
		return;
	}
	set_reorder_timer(e, f, wait_ns, now_ns);
	flow_search(e, f, s, now_ns);
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

// Header prediction (Jacobson, 1990): no segment is lost, SACKed or retransmitted, and the ACK
// acknowledges whole segments. Then the newest of them has the highest number, the scoreboard needs
// no walk, and RACK cannot find a loss. The effect is that of flow_ack. With AccECN every ACK has
// feedback, also one without flags: ACE may be 000.
static bool expected(const struct flow *f, const struct seg *s, uint32_t ahead) {
	static const struct flow_condition usual = {
		.state = FLOW_OPEN, .ca = FLOW_CA_OPEN, .ts_ok = true, .sack_ok = true};

	return seg_is_bare_ack(s) && memcmp(&f->condition, &usual, sizeof(usual)) == 0
		&& seq_diff(s->tsval, f->ts_recent) >= 0 && s->seq == f->rcv_nxt
		&& (f->sacked | f->lost) == 0 && f->una >= f->rtx_end && f->tlp_end == 0
		&& f->rtx_kind != RTX_REO && ahead - 1 < (uint32_t)(f->nxt - f->una) * f->payload
		&& f->una_bytes == f->una * f->payload;
}

// The sample of the newest segment acknowledged, una - 1, whose record is r.
static inline void take_sample(const struct flow *f, const struct seg_rec *r, struct cc_ack *a) {
	const struct seg_sample *x = flow_sample(f, f->una - 1);

	a->cwnd_at_send = (double)x->cwnd_segs;
	a->prior_delivered_segs = f->delivered - (uint32_t)((uint32_t)f->delivered - x->delivered);
	a->interval_ns = rate_interval_ns(f, seg_rec_ago_ns(r, x->first_tx_ago),
		a->rtt_ns + seg_rec_ago_ns(r, x->delivered_ago));
}

// What a control that takes samples gets on the short path.
__attribute__((cold)) static void sampled_ack(struct endpoint *e, struct flow *f,
	const struct group *g, const struct seg *s, struct cc_ack *a, uint32_t segs) {
	const struct delivery d = {.now_ns = a->now_ns,
		.acked = segs,
		.passed = segs,
		.prior_delivered = a->prior_delivered_segs,
		.newest_ns = a->sent_ns};

	sample_take(e, f, s, &d, a->rtt_ns, false);
	call_cc(e, f, g, a, false, false);
	if (!recovery_take_requests(e, f, &d))
		f->cwnd_segs = f->out.cwnd_segs;
}

bool flow_ack_expected(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	uint32_t ahead = s->ack - (f->iss + 1 + (uint32_t)f->una_bytes), left = ahead, segs = 0;
	const struct group *g = flow_group(e, f);
	uint64_t oldest_ns, newest_ns, rtt_ns;
	const struct seg_rec *r;

	if (!expected(f, s, ahead))
		return false;
	for (; left >= f->payload; left -= f->payload)
		segs++;
	if (left > 0 || f->una + segs >= f->data_segs)
		return false;
	r = flow_seg(f, f->una + segs - 1);
	oldest_ns = flow_sent_ns(flow_seg(f, f->una), now_ns);
	newest_ns = flow_sent_ns(r, now_ns);
	if (newest_ns < f->rack_sent_ns)
		return false; // a retransmission sent later was delivered: RACK has to run
	rtt_ns = now_ns - newest_ns;
	add_rtt(f, oldest_ns > 0 ? now_ns - oldest_ns : rtt_ns, rtt_ns, g->rto_min_ns);
	f->ts_recent = s->tsval;
	f->echoing = false;
	f->una += segs;
	f->una_bytes += ahead;
	f->wnd_bytes = f->una_bytes + ((uint64_t)s->window << f->snd_wscale);
	f->delivered += segs;
	f->count.acked_bytes += ahead;
	f->delivered_ns = now_ns;
	f->first_tx_ns = newest_ns;
	if (f->app_limited != 0 && f->delivered >= f->app_limited)
		f->app_limited = 0;
	f->rack_sent_ns = newest_ns;
	f->rack_seg = f->una - 1;
	f->rack_retrans = false;
	f->rack_rtt_ns = rtt_ns;
	f->timeouts = 0;
	f->backoff = 0;
	f->rtx_base_ns = now_ns;
	struct cc_ack ack = {
		.now_ns = now_ns,
		.rtt_ns = rtt_ns,
		.srtt_ns = f->rtt.srtt_ns,
		.tick_ns = g->tick_ns,
		.rtt_min_ns = f->rtt.min_ns,
		.sent_ns = newest_ns,
		.acked_segs = segs,
		.passed_segs = segs,
		.inflight_segs = flow_inflight(f),
		.prior_inflight_segs = flow_inflight(f) + segs,
		.delivered_segs = f->delivered,
		.next_send_ns = f->next_send_ns,
		.app_limited = (r->flags & SENT_APP_LIMITED) != 0,
		.cwnd_limited = f->una <= f->cwnd_limited_nxt,
		.host_paced = g->host_paced,
		.in_sequence = true,
		.classic_ecn = f->classic_ecn,
	};
	if (seg_ring_samples(&f->ring))
		take_sample(f, r, &ack);
	if (unlikely(f->sampled)) {
		sampled_ack(e, f, g, s, &ack, segs);
	} else {
		call_cc(e, f, g, &ack, false, false);
		f->cwnd_segs = f->out.cwnd_segs;
	}
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
	return true;
}
