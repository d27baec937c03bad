// SPDX-License-Identifier: BSD-3-Clause
// A sending connection: acceptance of the peer's segments, and transmission.
#include "sender/tcp/loss.h"

#include "common/base/likely.h"
#include "sender/endpoint.h"
#include "sender/tcp/pacer.h"

#include <string.h>

void flow_init(struct endpoint *e, struct flow *f, uint32_t id, uint16_t group, uint64_t start_ns,
	uint64_t bytes) {
	const struct group *g = &e->groups->group[group];

	memset(f, 0, sizeof(*f));
	f->pace.kind = TIMER_PACE;
	f->rtx.kind = TIMER_RTX;
	f->id = id;
	f->group = group;
	f->start_ns = start_ns;
	f->stop_ns = g->stop_ns == 0
		? NEVER_NS
		: e->env.start_ns + g->stop_ns + (id - g->first) * g->stop_stagger_ns;
	f->payload = g->payload;
	f->total_bytes = bytes;
	f->data_segs = bytes == FLOW_ENDLESS ? FLOW_ENDLESS : (bytes + g->payload - 1) / g->payload;
	f->retrans_head = f->retrans_tail = UINT64_MAX;
	f->undo_from = UNDO_NONE;
	f->reo_wnd_mult = 1;
	f->iss = (id + 1) * 0x9e3779b1u; // arbitrary, but easy to recognise in traces
	rtt_init(&f->rtt, g->rto_initial_ns);
	if (!g->stack.guest) // else a guest starts it
		endpoint_arm(e, &f->pace, start_ns);
}

void flow_ack_now(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	struct seg s;

	flow_header(f, &s, flow_seq_nxt(f), 0, SEG_ACK, now_ns);
	endpoint_send(e, f->id, &s, ECN_NOT_ECT, now_ns);
}

// Linux accepts a RST at RCV.NXT, and at the end of its last SACK block.
void flow_reset(struct endpoint *e, const struct flow *f, uint64_t now_ns) {
	struct seg s;

	if (f->state != FLOW_OPEN)
		return;
	flow_header(f, &s, flow_seq_nxt(f), 0, SEG_RST | SEG_ACK, now_ns);
	endpoint_send(e, f->id, &s, ECN_NOT_ECT, now_ns);
}

void flow_end(
	struct endpoint *e, struct flow *f, enum flow_state state, uint8_t event, uint64_t now_ns) {
	f->state = (uint8_t)state;
	f->rtx_kind = RTX_NONE;
	f->rtx_deadline_ns = NEVER_NS;
	endpoint_cancel(e, &f->rtx);
	endpoint_cancel(e, &f->pace);
	flow_forget(f);
	seg_ring_free(&f->ring, &e->arena);
	e->open--;
	if (state == FLOW_DONE)
		e->done++;
	else
		e->failed++;
	endpoint_flow_record(e, f, event, now_ns);
	if (f->transfer != NULL && (state == FLOW_FAILED || f->peer_closed))
		e->app->closed(e, f, now_ns);
}

// Takes the peer's payload and FIN: only data in order is counted; every such segment is
// acknowledged.
static void flow_peer_data(
	struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	bool closed = false;

	if (s->len == 0 && (s->flags & SEG_FIN) == 0)
		return;
	if (s->seq == f->rcv_nxt) {
		f->rcv_nxt += s->len + ((s->flags & SEG_FIN) != 0 ? 1u : 0u);
		closed = (s->flags & SEG_FIN) != 0 && !f->peer_closed;
		f->peer_closed |= closed;
	}
	flow_ack_now(e, f, now_ns);
	if (closed && f->transfer != NULL && f->state == FLOW_DONE)
		e->app->closed(e, f, now_ns);
}

// An unacceptable segment is dropped and answered with an ACK, from which a genuine peer learns our
// sequence numbers (RFC 9293 section 3.10.7.4, RFC 5961).
static void flow_refuse(struct endpoint *e, struct flow *f, bool answer, uint64_t now_ns) {
	e->count.rx_bad++;
	if (!answer || now_ns < f->challenge_ns)
		return;
	f->challenge_ns = now_ns + CHALLENGE_GAP_NS;
	flow_ack_now(e, f, now_ns);
}

// RFC 5961 section 3.2: a RST at RCV.NXT is accepted; elsewhere in the window it is answered with a
// challenge ACK.
static void flow_rst(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	int32_t ahead = seq_diff(s->seq, f->rcv_nxt);

	if (ahead == 0)
		flow_end(e, f, FLOW_FAILED, TEL_RESET, now_ns);
	else
		flow_refuse(e, f, ahead > 0 && ahead <= FLOW_OUR_WINDOW, now_ns);
}

static uint32_t seg_end(const struct seg *s) {
	return s->seq + s->len + ((s->flags & SEG_FIN) != 0 ? 1u : 0u);
}

// Whether the segment ends at the left edge of our window, as a retransmitted FIN does, or inside
// it.
static bool in_window(const struct flow *f, const struct seg *s) {
	return seq_diff(seg_end(s), f->rcv_nxt) >= 0
		&& seq_diff(s->seq, f->rcv_nxt) <= FLOW_OUR_WINDOW;
}

// RFC 7323 section 4.3: whether the segment's timestamp is to be echoed: it is next in sequence and
// not older than the last one.
static bool is_recent(const struct flow *f, const struct seg *s) {
	return seq_diff(s->tsval, f->ts_recent) > 0 && flow_ack_ahead(f, s) >= 0
		&& (s->seq == f->rcv_nxt
			|| (seq_diff(s->seq, f->rcv_nxt) < 0
				&& seq_diff(seg_end(s), f->rcv_nxt) > 0));
}

// PAWS (RFC 7323 section 5.3). A bare ACK that was overtaken by others is accepted if it is not
// older than an RTO, because its SACK blocks may be new (Linux: tcp_disordered_ack).
static bool too_old(const struct flow *f, const struct seg *s) {
	uint32_t age_ms = f->ts_recent - s->tsval;

	return seq_diff(s->tsval, f->ts_recent) < 0
		&& (s->len > 0 || (s->flags & SEG_FIN) != 0 || s->seq != f->rcv_nxt
			|| (uint64_t)age_ms * NS_PER_MS > f->rtt.rto_ns);
}

// A segment of a connection that we have reset is answered by a reset with the sequence number that
// its sender expects (RFC 9293 section 3.10.7.1): that of the first reset may have been higher.
static void answer_closed(
	struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	struct seg reset;

	if ((s->flags & (SEG_RST | SEG_ACK)) != SEG_ACK)
		return;
	flow_header(f, &reset, s->ack, 0, SEG_RST, now_ns);
	endpoint_send(e, f->id, &reset, ECN_NOT_ECT, now_ns);
}

void flow_rx(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	bool timestamp;

	if (flow_ack_expected(e, f, s, now_ns))
		return;
	if (f->state == FLOW_SYN_SENT) {
		handshake_rx(e, f, s, now_ns);
		return;
	}
	if (f->state != FLOW_OPEN) {
		if (f->state == FLOW_DONE && (s->flags & SEG_RST) == 0)
			flow_peer_data(e, f, s, now_ns);
		if (f->state == FLOW_FAILED && flow_group(e, f)->stack.reset_ns > 0)
			answer_closed(e, f, s, now_ns);
		return;
	}
	if ((s->flags & SEG_RST) != 0) {
		flow_rst(e, f, s, now_ns);
		return;
	}
	if ((s->flags & (SEG_SYN | SEG_ACK)) != SEG_ACK) {
		flow_refuse(e, f, (s->flags & SEG_SYN) != 0, now_ns); // our ACK was lost
		return;
	}
	timestamp = f->ts_ok && (s->options & SEG_OPT_TS) != 0;
	if ((timestamp && too_old(f, s)) || !in_window(f, s) || !flow_ack_acceptable(f, s)) {
		flow_refuse(e, f, true, now_ns);
		return;
	}
	if (timestamp && is_recent(f, s))
		f->ts_recent = s->tsval;
	flow_ack(e, f, s, now_ns);
	flow_peer_data(e, f, s, now_ns);
}

static bool lost_unsent(const struct flow *f, uint64_t index) {
	return (flow_seg(f, index)->flags & (SENT_LOST | SENT_RETRANS)) == SENT_LOST;
}

uint64_t flow_next_lost(struct flow *f) {
	f->relost = max_u64(f->relost, f->una);
	while (f->relost < f->relost_end && !lost_unsent(f, f->relost))
		f->relost++;
	if (f->relost < f->relost_end)
		return f->relost;
	f->rtx_hint = max_u64(f->rtx_hint, f->una);
	while (!lost_unsent(f, f->rtx_hint))
		f->rtx_hint++;
	return f->rtx_hint;
}

// Fills the record of a segment that is sent now (delivery rate: section 3.2).
static inline void record_sent(struct flow *f, struct seg_rec *r, uint16_t flags, uint64_t now_ns) {
	if (f->una == f->nxt)
		f->first_tx_ns = f->delivered_ns = now_ns;
	seg_rec_start(r, now_ns, flags | (f->app_limited != 0 ? SENT_APP_LIMITED : 0));
	seg_rec_set_ago(r, now_ns - f->first_tx_ns, now_ns - f->delivered_ns);
	r->delivered = (uint32_t)f->delivered;
	r->cwnd_segs = (float)f->cwnd_segs;
}

// Marks the record of a segment that is retransmitted.
__attribute__((noinline)) static void record_retransmit(
	struct flow *f, struct seg_rec *r, uint64_t index, uint64_t now_ns) {
	if ((r->flags & SENT_RETRANS) != 0) {
		loss_retrans_unlink(f, index);
		f->retrans--;
	}
	if ((r->flags & SENT_LOST) != 0 && (r->flags & SENT_RETRANS) == 0)
		f->unsent_lost--;
	record_sent(f, r, r->flags & (uint16_t) ~(SENT_APP_LIMITED | SENT_LONG_AGO), now_ns);
	if ((r->flags & SENT_LOST) != 0) { // else a probe: the original still counts
		r->flags |= SENT_RETRANS;
		f->retrans++;
		loss_retrans_push(f, index);
		spurious_sent(f, now_ns);
	}
	r->flags |= SENT_EVER_RETRANS;
	resent_add(&f->resent, flow_seq(f, index), flow_seq(f, index + 1));
	f->count.retransmits += index < f->data_segs;
	f->rtx_end = max_u64(f->rtx_end, index + 1);
}

// Always inline: nearly all segments are sent by the loop below, and the call costs 3 % of it.
static inline __attribute__((always_inline)) void transmit(struct endpoint *e, struct flow *f,
	uint64_t index, uint64_t due_ns, bool paced, bool push, uint64_t now_ns) {
	struct seg_rec *r = flow_seg(f, index);
	uint8_t ecn = ECN_NOT_ECT, flags = push ? SEG_ACK | SEG_PSH : SEG_ACK;
	uint32_t acked; // bytes of the segment that are acknowledged
	struct seg s;

	if (index < f->nxt) {
		record_retransmit(f, r, index, now_ns);
	} else {
		record_sent(f, r, 0, now_ns);
		f->nxt++;
		if (f->ecn_ok && index < f->data_segs) {
			ecn = f->ect;
			if (f->ecn_cwr && !f->accecn)
				flags |= SEG_CWR;
			f->ecn_cwr = false;
		}
	}
	if (unlikely(index + 1 >= f->data_segs))
		flags = index == f->data_segs ? SEG_ACK | SEG_FIN : flags | SEG_PSH;
	acked = index == f->una ? (uint32_t)(f->una_bytes - flow_offset(f, index)) : 0;
	flow_header(f, &s, flow_seq(f, index) + acked, (uint16_t)(flow_len(f, index) - acked),
		flags, now_ns);
	f->prr_out++;
	f->count.sent_segs += index < f->data_segs; // a FIN is no data
	f->last_send_ns = now_ns;
	e->count.data_tx_segs++;
	e->count.tx_segs++;
	e->env.output(e->env.ctx, f->id, &s, 1, ecn, due_ns, paced);
}

void flow_transmit(struct endpoint *e, struct flow *f, uint64_t index, uint64_t due_ns, bool paced,
	bool push, uint64_t now_ns) {
	transmit(e, f, index, due_ns, paced, push, now_ns);
}

// Whether a flow past its stop has something to send: its data ends with what was sent, and the FIN
// follows. One that keeps its connection (`keep`) sends the data that it has, and no FIN.
__attribute__((noinline)) static bool stopped(struct flow *f) {
	uint64_t i = f->nxt;

	if (f->keep)
		return i < f->data_segs;
	if (i < f->data_segs) {
		uint64_t end =
			i + (f->probe_end > i * f->payload); // probed: its first bytes are sent

		if (end < f->data_segs) {
			f->data_segs = end;
			f->total_bytes = end * f->payload;
		}
	}
	return true;
}

static inline bool new_allowed(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	uint64_t i = f->nxt;

	if (now_ns >= f->stop_ns && !stopped(f))
		return false;
	if (i > f->data_segs)
		return false;
	if (flow_offset(f, i) + flow_len(f, i) > f->wnd_bytes)
		return false;
	if (!seg_ring_reserve(&f->ring, &e->arena, f->una, i)) {
		e->count.seg_refused++;
		return false;
	}
	return true;
}

bool flow_new_allowed(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	return new_allowed(e, f, now_ns);
}

void flow_after_idle(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);

	if (g->cc->on_idle == NULL)
		return;
	g->cc->on_idle(f->cc_state, g->cc_config, now_ns, now_ns - f->last_send_ns, &f->out);
	flow_note_mode(e, f);
	f->cwnd_segs = f->out.cwnd_segs;
}

// Sends all segments that the window allows at once, if they are new, full and unpaced. Sent at the
// same time, they have equal records, and headers that differ in the sequence number only. False:
// another case; none was sent.
static bool send_window(struct endpoint *e, struct flow *f, bool *sent, uint64_t now_ns) {
	int64_t room = flow_window_room(f);
	uint64_t n = room > 0 ? (uint64_t)room : 0, end = f->nxt + n;
	struct seg s;

	if ((f->sacked | f->lost) != 0 || end >= f->data_segs || f->writes || now_ns >= f->stop_ns
		|| end * f->payload > f->wnd_bytes || n > f->ring.mask || f->ring.rec == NULL
		|| end - f->una > f->ring.mask || f->ecn_ok || f->una == f->nxt)
		return false;
	*sent = n > 0;
	f->cwnd_blocked = true;
	f->cwnd_limited_nxt = end;
	if (n == 0)
		return true;
	flow_header(f, &s, flow_seq(f, f->nxt), (uint16_t)f->payload, SEG_ACK, now_ns);
	f->prr_out += (uint32_t)n;
	f->count.sent_segs += n;
	f->last_send_ns = now_ns;
	e->count.data_tx_segs += n;
	e->count.tx_segs += n;
	for (uint64_t i = f->nxt; i < end; i++)
		record_sent(f, flow_seg(f, i), 0, now_ns);
	f->nxt = end;
	e->env.output(e->env.ctx, f->id, &s, (uint32_t)n, ECN_NOT_ECT, now_ns, false);
	return true;
}

// Sends segments one by one as window and pacer allow. `due_ns`: the time of the pacing slot,
// earlier than now if the timer fired late. Gaps count from it, so that a slow loop does not lower
// the rate.
static bool send_each(
	struct endpoint *e, struct flow *f, double bps, uint64_t now_ns, uint64_t due_ns) {
	const struct group *g = flow_group(e, f);
	int64_t room = flow_window_room(f);
	bool paced = bps > 0, sent = false;

	if (f->pace.armed) // the slot may be earlier than this ACK
		due_ns = time_min(due_ns, f->pace.t.expires_ns);
	f->cwnd_blocked = false;
	for (;; room--) {
		bool retransmit =
			f->unsent_lost > 0 && !(spurious_new_first(f) && new_allowed(e, f, now_ns));
		uint64_t i, at_ns = now_ns;

		if (room <= 0) {
			flow_window_limits(f);
			f->owed_ns = 0; // the window limits sending, not the pacer
			break;
		}
		if (paced && pacer_holds(e, f, retransmit, now_ns))
			break;
		if (!retransmit && !new_allowed(e, f, now_ns)) {
			flow_source_limits(f);
			break;
		}
		if (flow_idle(g, f, now_ns)) {
			flow_after_idle(e, f, now_ns);
			room = flow_window_room(f);
			bps = paced ? pacer_bps(g, f) : 0;
		}
		i = retransmit ? flow_next_lost(f) : f->nxt;
		// The timeout counts from the first segment's retransmission (RFC 6675 section 6).
		if (retransmit && i == f->una)
			f->rtx_base_ns = now_ns;
		if (paced)
			at_ns = time_max(f->next_send_ns, due_ns);
		// The first segment of a flow has no pacing slot yet.
		transmit(e, f, i, at_ns, paced && f->next_send_ns > 0, false, now_ns);
		sent = true;
		if (paced)
			due_ns = pacer_sent(f, bps, 1, at_ns, now_ns);
	}
	return sent;
}

bool flow_send(struct endpoint *e, struct flow *f, uint64_t now_ns, uint64_t due_ns) {
	const struct group *g = flow_group(e, f);
	double bps = f->out.pacing_bps;
	bool sent;

	if (f->state != FLOW_OPEN)
		return false;
	if (unlikely(!g->paced_by_cc)) {
		if (g->bursts)
			return flow_send_bursts(e, f, now_ns, due_ns);
		bps = pacer_bps(g, f);
	}
	if (bps <= 0 && send_window(e, f, &sent, now_ns))
		return sent;
	return send_each(e, f, bps, now_ns, due_ns);
}

void flow_send_probe(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	double bps = pacer_bps(flow_group(e, f), f);

	f->tlp_retrans = !new_allowed(e, f, now_ns);
	flow_transmit(e, f, f->tlp_retrans ? f->nxt - 1 : f->nxt, now_ns, false, false, now_ns);
	if (bps > 0)
		pacer_sent(f, bps, 1, time_max(f->next_send_ns, now_ns), now_ns);
}

static void flow_pace_timer(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	if (flow_send(e, f, now_ns, f->pace.t.expires_ns) || f->rtx_kind == RTX_NONE)
		flow_arm_rtx(e, f, now_ns);
}

void flow_timer(struct endpoint *e, struct flow *f, enum host_timer_kind kind, uint64_t now_ns) {
	if (kind == TIMER_RTX)
		flow_rtx_timer(e, f, now_ns);
	else if (f->state == FLOW_WAITING)
		handshake_syn(e, f, now_ns);
	else
		flow_pace_timer(e, f, now_ns);
}
