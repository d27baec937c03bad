// SPDX-License-Identifier: BSD-3-Clause
// Episodes of recovery at the sender.
//
//	OPEN --loss or ECN echo--> RECOVERY --una reaches recover--> OPEN
//	any  --timeout-----------> LOSS     --una reaches recover--> OPEN
//
// An episode lasts for one window: on_loss is called once, and recover is set to nxt (RFC 6582). In
// RECOVERY the window of an algorithm with cc_ops.prr moves to its new value by proportional rate
// reduction (RFC 9937).
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"

static const struct cc_ops *cc_of(const struct endpoint *e, const struct flow *f) {
	return flow_group(e, f)->cc;
}

static const void *cc_config(const struct endpoint *e, const struct flow *f) {
	return flow_group(e, f)->cc_config;
}

void recovery_reduced(
	struct endpoint *e, struct flow *f, double before, bool ecn, uint64_t now_ns) {
	if (f->out.cwnd_segs >= before)
		return;
	f->ecn_cwr = f->ecn_ok; // whatever the reason (RFC 3168 section 6.1.2)
	f->count.cwnd_reductions++;
	f->count.ecn_echoes += ecn;
	endpoint_event(e, f, TEL_EV_REDUCTION, before, f->out.cwnd_segs, ecn, now_ns);
}

void recovery_enter(
	struct endpoint *e, struct flow *f, const struct delivery *d, enum cause cause) {
	struct cc_loss loss = {
		.now_ns = d->now_ns,
		.inflight_segs = flow_inflight(f) + f->unsent_lost,
		.lost_segs = f->unsent_lost,
		.ecn = cause == CAUSE_ECN,
		.classic_ecn = f->classic_ecn,
		.requested = cause == CAUSE_REQUEST,
		.probe = cause == CAUSE_PROBE,
	};
	double before = f->out.cwnd_segs;

	// An ECN echo, or a loss that the tail loss probe has repaired: nothing that arrives later
	// can disprove it.
	if (f->lost == 0)
		f->undo_from = UNDO_NONE;
	else
		spurious_start(f, false, d->now_ns);
	f->ca = FLOW_CA_RECOVERY;
	f->recover = f->nxt;
	f->prr_delivered = f->prr_out = 0;
	// As many segments as prr_delivered will count, this ACK's included.
	f->prr_flight = loss.inflight_segs + d->prr;
	f->prr_flight += f->prr_flight == 0;
	f->tlp_end = 0;
	f->ecn_episode = f->ecn_loss = false;
	if (f->reo_wnd_persist > 0 && --f->reo_wnd_persist == 0)
		f->reo_wnd_mult = 1;
	cc_of(e, f)->on_loss(f->cc_state, cc_config(e, f), &loss, &f->out);
	flow_note_mode(e, f);
	recovery_reduced(e, f, before, loss.ecn, d->now_ns);
}

void flow_enter_loss(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	struct cc_loss loss = {
		.now_ns = now_ns,
		.inflight_segs = flow_inflight(f),
		.repeated = f->timeouts > 0,
	};
	double before = f->out.cwnd_segs;
	bool frto = loss.repeated ? f->frto != FRTO_OFF : f->ca == FLOW_CA_OPEN;

	// A timeout in fast recovery is not taken back: the losses before it may have been real.
	if (!loss.repeated && f->ca != FLOW_CA_RECOVERY)
		spurious_start(f, true, now_ns);
	else if (!loss.repeated)
		f->undo_from = UNDO_NONE;
	f->frto = frto && g->frto && f->sack_ok ? FRTO_RETRANSMITTED : FRTO_OFF;
	loss_on_timeout(f, now_ns);
	loss.lost_segs = f->unsent_lost;
	sample_now(e, f, now_ns);
	f->count.timeouts++;
	f->ca = FLOW_CA_LOSS;
	f->recover = f->nxt;
	f->tlp_end = 0;
	f->dupacks = 0;
	f->reo_wnd_mult = 1;
	f->ecn_episode = false;
	f->ecn_cwr = f->ecn_ok;
	cc_of(e, f)->on_rto(f->cc_state, cc_config(e, f), &loss, &f->out);
	flow_note_mode(e, f);
	f->cwnd_segs = f->out.cwnd_segs;
	endpoint_event(e, f, TEL_EV_TIMEOUT, before, f->out.cwnd_segs, 0, now_ns);
}

bool recovery_take_requests(struct endpoint *e, struct flow *f, const struct delivery *d) {
	const struct cc_ops *cc = cc_of(e, f);
	uint32_t requests = cc->requests != NULL ? cc->requests(f->cc_state, cc_config(e, f)) : 0;

	if ((requests & CC_REQUEST_APP_LIMITED) != 0)
		flow_app_limits(f);
	if ((requests & CC_REQUEST_REDUCTION) == 0 || f->ca != FLOW_CA_OPEN)
		return false;
	recovery_enter(e, f, d, CAUSE_REQUEST);
	f->ecn_episode = true;
	return true;
}

// RFC 8985 section 7.4.2: whether the tail loss probe repaired a loss that was not detected
// otherwise. This is known when an ACK passes the probe: without a DSACK it did; a duplicate ACK or
// a DSACK shows that the original arrived. Other ACKs of the probe's number, such as window
// updates, show nothing.
static bool tlp_repaired(struct flow *f, const struct delivery *d) {
	bool repaired;

	if (f->tlp_end == 0 || f->una < f->tlp_end)
		return false;
	if (f->tlp_retrans && !d->dsack && f->una == f->tlp_end && (d->acked > 0 || !d->repeated))
		return false; // not yet known
	repaired = f->tlp_retrans && !d->dsack && f->una > f->tlp_end;
	f->tlp_end = 0;
	return repaired;
}

// An episode ends when all segments sent before it began are acknowledged. After an ECN echo a
// newer segment must be acknowledged too, which shows that CWR arrived and the echo has stopped;
// likewise without SACK, so that duplicate ACKs do not start another episode (RFC 6582 section 5).
static bool episode_over(const struct flow *f) {
	if (f->una < f->recover)
		return false;
	return f->una == f->nxt || f->una > f->recover || (f->sack_ok && !f->ecn_episode);
}

void recovery_update(struct endpoint *e, struct flow *f, const struct delivery *d, bool ece) {
	bool repaired = tlp_repaired(f, d);

	f->ecn_episode |= ece;
	if (ece)
		f->undo_from = UNDO_NONE; // the ECN echo justifies the reduction in any case
	if (f->ca != FLOW_CA_OPEN && episode_over(f)) {
		f->ca = FLOW_CA_OPEN;
		seg_ring_fit(&f->ring, &e->arena, f->una, f->nxt);
		endpoint_event(e, f, TEL_EV_RECOVERED, 0, f->out.cwnd_segs, 0, d->now_ns);
	}
	if (f->ca != FLOW_CA_OPEN)
		return;
	// Segments still marked lost were sent after the last reduction and cause another one. An
	// echo that arrives before CWR was sent belongs to the last reduction.
	if (f->lost > 0 || repaired || (ece && !f->ecn_cwr)) {
		recovery_enter(e, f, d,
			f->lost > 0	   ? CAUSE_LOSS
				: repaired ? CAUSE_PROBE
					   : CAUSE_ECN);
		f->ecn_episode = ece;
		f->ecn_cwr |= ece;
	}
}
