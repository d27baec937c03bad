// SPDX-License-Identifier: BSD-3-Clause
// A sending connection: its beginning and end, and acceptance of the peer's segments.
#include "sender/tcp/loss.h"

#include "sender/endpoint/endpoint.h"
#include "sender/tcp/service.h"

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
	const struct group *g = flow_group(e, f);

	f->state = (uint8_t)state;
	f->gave_up = event == TEL_GAVE_UP;
	f->rtx_kind = RTX_NONE;
	f->rtx_deadline_ns = NEVER_NS;
	endpoint_cancel(e, &f->rtx);
	endpoint_cancel(e, &f->pace);
	if (g->cc != NULL && g->cc->release != NULL) // NULL: of a transport beside TCP
		g->cc->release(f->cc_state, g->cc_config);
	if (f->service != NULL)
		service_close(e, f);
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

// What belongs to no connection of ours is answered by a reset with the sequence number that its
// sender expects (RFC 9293 sections 3.10.7.1 and 3.10.7.3): one that we have reset, as the number
// of the first reset may have been higher, or an older one that our SYN met.
void flow_answer_unknown(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	struct seg reset;

	if ((s->flags & (SEG_RST | SEG_ACK)) != SEG_ACK)
		return;
	flow_header(f, &reset, s->ack, 0, SEG_RST, now_ns);
	endpoint_send(e, f->id, &reset, ECN_NOT_ECT, now_ns);
}

// All but ACKs of the short path. Not inlined, so that these have the registers.
__attribute__((noinline)) static void flow_rx_other(
	struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	bool timestamp;

	if (f->state == FLOW_SYN_SENT) {
		handshake_rx(e, f, s, now_ns);
		return;
	}
	if (f->state != FLOW_OPEN) {
		if (f->state == FLOW_DONE && (s->flags & SEG_RST) == 0)
			flow_peer_data(e, f, s, now_ns);
		if (f->state == FLOW_FAILED && flow_group(e, f)->stack.reset_ns > 0)
			flow_answer_unknown(e, f, s, now_ns);
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

void flow_rx(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	if (!flow_ack_expected(e, f, s, now_ns))
		flow_rx_other(e, f, s, now_ns);
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
