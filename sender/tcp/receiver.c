// SPDX-License-Identifier: BSD-3-Clause
#include "sender/tcp/receiver.h"
#include "sender/endpoint/endpoint.h"

#include <string.h>

static inline uint32_t receiver_next(const struct receiver *r) {
	return receiver_seq(r, r->rcv_nxt + (receiver_done(r) ? 1 : 0));
}

static inline void receiver_header(
	const struct receiver *r, struct seg *s, uint8_t flags, uint64_t now_ns) {
	seg_header(s, receiver_iss(r) + 1 + ((r->modes & RECEIVER_FIN_ACKED) != 0),
		receiver_next(r), 0, r->window, flags, r->ts_ok, flow_tsval(now_ns), r->ts_recent);
}

static void put_counters(const struct receiver *r, struct seg *s) {
	s->options |= SEG_OPT_ACCECN0;
	s->ecn_fields = SEG_ECN_FIELDS;
	for (int i = 0; i < SEG_ECN_FIELDS; i++)
		s->ecn_bytes[i] = r->marks.bytes[i] & ACCECN_BYTES_MASK;
}

// Sends an ACK of all in sequence.
static inline void put_ack(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t now_ns) {
	r->pending = 0;
	r->delack_ns = NEVER_NS;
	r->last_ack = s->ack;
	e->received.acks++;
	endpoint_send(e, r->id, s, ECN_NOT_ECT, now_ns);
}

__attribute__((noinline)) static void send_ack(
	struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	uint8_t flags = SEG_ACK | (r->ecn_echo ? SEG_ECE : 0);
	struct seg s;

	if (((r->modes & RECEIVER_FIN) != 0 || receiver_done(r))
		&& (r->modes & RECEIVER_FIN_ACKED) == 0)
		flags |= SEG_FIN; // if this ACK is lost, the peer retransmits its FIN
	receiver_header(r, &s, flags, now_ns);
	if (unlikely(receiver_accecn(r))) {
		seg_set_ace(&s, r->marks.cep);
		put_counters(r, &s);
		r->ce_pending = 0;
	}
	if (r->sack_ok && (r->sack_count > 0 || r->fin_seen)) {
		uint32_t room = (r->ts_ok ? 3u : 4u) - receiver_accecn(r);

		s.sack_count = (uint8_t)(r->sack_count < room ? r->sack_count : room);
		memcpy(s.sack, r->sack, s.sack_count * sizeof(s.sack[0]));
		if (r->fin_seen && r->rcv_nxt < r->fin)
			receiver_report_fin(r, &s, room);
	}
	if (r->dsack) {
		r->sack_count--;
		memmove(&r->sack[0], &r->sack[1], r->sack_count * sizeof(r->sack[0]));
		r->dsack = false;
	}
	put_ack(e, r, &s, now_ns);
}

void receiver_send_ack(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if ((r->modes & RECEIVER_WINDOW) != 0)
		receiver_window_set(e, r, now_ns);
	send_ack(e, r, now_ns);
	if ((r->modes & RECEIVER_HOST) != 0)
		receiver_ack_sent(r);
}

// An unacceptable segment is dropped and answered with an ACK, from which a genuine peer learns our
// sequence numbers (RFC 9293 section 3.10.7.4, RFC 5961).
static void receiver_refuse(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	e->count.rx_bad++;
	if (r->state != RECEIVER_OPEN || now_ns < r->challenge_ns)
		return;
	r->challenge_ns = now_ns + CHALLENGE_GAP_NS;
	receiver_send_ack(e, r, now_ns);
}

// `ecn`: the SYN's codepoint.
static void send_syn_ack(struct endpoint *e, struct receiver *r, uint8_t ecn, uint64_t now_ns) {
	struct seg s;

	receiver_header(r, &s, SEG_SYN | SEG_ACK | (r->ecn_ok ? SEG_ECE : 0), now_ns);
	if (receiver_accecn(r)) {
		seg_set_ace(&s, accecn_handshake_ace(ecn));
		put_counters(r, &s);
	}
	s.seq = receiver_iss(r);
	s.ack = r->irs + 1;
	s.options |= SEG_OPT_MSS;
	s.mss = (uint16_t)receiver_group(e, r)->mss;
	s.window = (uint16_t)((r->modes & RECEIVER_WINDOW) != 0
			? r->acks->window.edge
			: min_u64(receiver_window_max(receiver_group(e, r)), 65535));
	if (r->window_scaled) {
		s.options |= SEG_OPT_WSCALE;
		s.wscale = r->wscale;
	}
	if (r->sack_ok)
		s.options |= SEG_OPT_SACK_OK;
	endpoint_send(e, r->id, &s, ECN_NOT_ECT, now_ns);
}

// Agrees on what the SYN asks for, as far as the group has it. Without AccECN a SYN that asks for
// it has classic ECN.
static void agree_ecn(struct receiver *r, const struct group *g, const struct seg *s) {
	enum accecn_mode mode = accecn_of_syn(seg_ace(s));

	if (!g->accecn) {
		r->ecn_ok = g->ecn != 0 && (s->flags & (SEG_ECE | SEG_CWR)) == (SEG_ECE | SEG_CWR);
	} else {
		r->ecn_ok = mode != ACCECN_NO_ECN;
		if (mode == ACCECN_ON)
			r->modes |= RECEIVER_ACCECN;
		r->marks = accecn_counters_init();
	}
	if (r->ecn_ok)
		r->modes |= RECEIVER_ECN;
}

static void receiver_syn(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	if (receiver_renewed_by(r, s))
		receiver_renew(e, r, r->group_index); // the sender's next connection
	if (r->state == RECEIVER_LISTEN) {
		if (!seg_opens(s)) {
			e->count.rx_bad++;
			return;
		}
		r->state = RECEIVER_OPEN;
		r->irs = s->seq;
		r->ts_ok = receiver_group(e, r)->timestamps && (s->options & SEG_OPT_TS) != 0;
		r->sack_ok = receiver_group(e, r)->sack && (s->options & SEG_OPT_SACK_OK) != 0;
		agree_ecn(r, receiver_group(e, r), s);
		if ((r->modes & RECEIVER_HOST) != 0)
			r->acks->syn_ack_ns = now_ns;
		if ((r->modes & RECEIVER_WINDOW) != 0)
			receiver_window_init(r, receiver_group(e, r),
				mss_payload(receiver_group(e, r), s, r->ts_ok));
		r->window_scaled = (s->options & SEG_OPT_WSCALE) != 0;
		if (!r->window_scaled) {
			r->wscale = 0;
			r->window = (uint16_t)min_u64(receiver_group(e, r)->rwnd, 65535);
		}
	} else if (s->seq != r->irs || r->rcv_nxt > 0 || r->head != NULL || r->fin_seen) {
		receiver_refuse(e, r, now_ns); // RFC 5961 section 4
		return;
	}
	if (r->ts_ok && (s->options & SEG_OPT_TS) != 0)
		r->ts_recent = s->tsval;
	r->last_ack = r->irs + 1;
	send_syn_ack(e, r, ecn, now_ns);
}

// RFC 9768 section 3.2.2.5.1: the first mark after packets without, and every second, is
// acknowledged at once.
static void count_ecn(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn, bool *now) {
	bool ce = ecn == ECN_CE;

	accecn_count(&r->marks, ecn, s->len);
	e->received.ce_segs += ce;
	r->ce_pending = (uint8_t)(r->ce_pending + ce);
	if (ce && (!r->ce_last || r->ce_pending >= ACCECN_CE_PER_ACK))
		*now = true;
	r->ce_last = ce;
}

static void note_ecn(struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn,
	bool *now, uint64_t now_ns) {
	bool ce = ecn == ECN_CE, exact = receiver_group(e, r)->dctcp_echo;

	if (!r->ecn_ok)
		return;
	if (receiver_accecn(r)) {
		count_ecn(e, r, s, ecn, now);
		return;
	}
	if (exact && ce != r->ce_last && r->delack_ns != NEVER_NS)
		receiver_send_ack(e, r, now_ns);
	if (exact ? !ce : (s->flags & SEG_CWR) != 0)
		r->ecn_echo = false;
	if (ce) {
		e->received.ce_segs++;
		r->ecn_echo = true;
	}
	if (ce != r->ce_last)
		*now = true;
	r->ce_last = ce;
}

// Whether `pending` full segments are acknowledged without a delay.
static inline bool ack_due(const struct receiver *r) {
	return r->pending >= r->ack_every || r->ack_delay_ns == 0;
}

static inline void delay_ack(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if (r->delack_ns != NEVER_NS)
		return;
	r->delack_ns = now_ns + r->ack_delay_ns;
	if (r->delays)
		return;
	if (!r->delack.armed)
		endpoint_arm(e, &r->delack, r->delack_ns);
	r->delays = true;
}

// Acknowledges a segment of an ideal host: at once if `now` or if ack_every full segments have
// arrived, else delayed.
static inline void acknowledge(
	struct endpoint *e, struct receiver *r, uint16_t len, bool now, uint64_t now_ns) {
	if (len >= r->payload)
		r->pending++;
	if (now || ack_due(r))
		send_ack(e, r, now_ns);
	else
		delay_ack(e, r, now_ns);
}

void receiver_ack_fixed(
	struct endpoint *e, struct receiver *r, uint32_t segs, bool now, uint64_t now_ns) {
	uint32_t pending = r->pending + segs;

	r->pending = (uint8_t)(pending < UINT8_MAX ? pending : UINT8_MAX);
	if (now || ack_due(r))
		receiver_send_ack(e, r, now_ns);
	else
		delay_ack(e, r, now_ns);
}

// Processes payload [start, end), in offsets, and decides whether the ACK may be delayed.
static void receiver_data(struct endpoint *e, struct receiver *r, const struct seg *s,
	uint64_t start, uint8_t ecn, uint64_t now_ns) {
	uint64_t end = start + s->len;
	bool hole = r->head != NULL; // then every segment is acknowledged at once
	bool now = false, odd = false, repeated = false;

	if ((r->modes & RECEIVER_HOST) != 0)
		receiver_gro_break(e, r, s, start, ecn, now_ns);
	if ((r->modes & RECEIVER_WINDOW) != 0)
		receiver_window_read(e, r, now_ns);
	e->received.segs += s->len > 0; // a bare FIN is no data
	note_ecn(e, r, s, ecn, &now, now_ns);
	if ((s->flags & SEG_FIN) != 0) {
		if (end >= r->rcv_nxt && (r->tail == NULL || end >= r->tail->end)) {
			r->fin = end;
			r->fin_seen = true;
		}
		now = true;
	}
	// The end of a transfer on a connection that stays open: what the application answers
	// carries the ACK.
	now |= (s->flags & SEG_PSH) != 0 && receiver_group(e, r)->keeps;
	if (s->len > r->payload)
		r->payload = s->len;
	if (end <= r->rcv_nxt && s->len > 0) {
		receiver_report_duplicate(e, r, start, end);
		repeated = true;
	} else if (start <= r->rcv_nxt) {
		uint64_t before = r->rcv_nxt;

		receiver_in_order(e, r, end);
		if (unlikely(start < before && s->len > 0)) { // RFC 2883 section 4: its part below
			receiver_report_repeated(r, start, before);
			now = true; // or another report might come before this one has left
		}
	} else {
		odd = true;
		// The number of a bare FIN is not in the ranges; receiver_report_fin adds it.
		repeated = s->len > 0 && !receiver_out_of_order(e, r, start, end);
		if (repeated)
			receiver_report_duplicate(e, r, start, end);
		else
			e->received.out_of_order_segs += s->len > 0;
	}
	if ((r->modes & RECEIVER_WINDOW) != 0)
		receiver_window_data(e, r, s, hole || repeated, ecn, now_ns);
	if ((r->modes & RECEIVER_HOST) != 0)
		receiver_ack_host(
			e, r, s, end, ecn, now || (hole && r->head == NULL), repeated, now_ns);
	else
		acknowledge(e, r, s->len, now || hole || odd || repeated, now_ns);
}

void receiver_timer(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	r->delays = false;
	if ((r->modes & RECEIVER_HOST) != 0) {
		receiver_host_timer(e, r, now_ns);
		return;
	}
	if (r->delack_ns == NEVER_NS)
		return; // acknowledged meanwhile
	if (now_ns < r->delack_ns)
		endpoint_arm(e, &r->delack, r->delack_ns);
	else
		receiver_send_ack(e, r, now_ns);
}

void receiver_reset(struct endpoint *e, const struct receiver *r, uint64_t now_ns) {
	struct seg s;

	if (r->state != RECEIVER_OPEN || receiver_done(r))
		return;
	receiver_header(r, &s, SEG_RST | SEG_ACK, now_ns);
	endpoint_send(e, r->id, &s, ECN_NOT_ECT, now_ns);
}

void receiver_close(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if (r->state != RECEIVER_OPEN || receiver_done(r))
		return;
	r->modes |= RECEIVER_FIN;
	receiver_send_ack(e, r, now_ns);
}

// As flow_answer_unknown.
static void answer_closed(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t now_ns) {
	struct seg reset;

	if ((s->flags & SEG_ACK) == 0)
		return;
	receiver_header(r, &reset, SEG_RST, now_ns);
	reset.seq = s->ack;
	endpoint_send(e, r->id, &reset, ECN_NOT_ECT, now_ns);
}

// RFC 5961 section 3.2: a RST at RCV.NXT is accepted; elsewhere in the window it is answered with a
// challenge ACK.
static void receiver_rst(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t now_ns) {
	int32_t ahead = seq_diff(s->seq, receiver_next(r));

	if (ahead == 0) {
		r->state = RECEIVER_CLOSED;
		return;
	}
	if (ahead > 0 && ahead <= (int64_t)receiver_group(e, r)->rwnd)
		receiver_refuse(e, r, now_ns);
	else
		e->count.rx_bad++;
}

// RFC 5961 section 5.2. We send only a SYN and a FIN.
static bool ack_acceptable(const struct receiver *r, const struct seg *s) {
	int64_t ahead = seq_diff(s->ack, receiver_iss(r) + 1);

	return (s->flags & SEG_ACK) != 0
		&& ahead <= (receiver_done(r) || (r->modes & RECEIVER_FIN) != 0 ? 1 : 0)
		&& -ahead <= UINT16_MAX;
}

// A segment with an old timestamp is dropped. But a late original whose retransmission arrived
// first is reported by a DSACK: otherwise the sender would never learn that the retransmission was
// spurious.
static void receiver_stale(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t now_ns) {
	uint64_t behind = receiver_seq(r, r->rcv_nxt) - s->seq;

	e->count.rx_bad++;
	if (s->len > 0 && behind >= s->len && behind <= r->rcv_nxt && behind <= INT32_MAX)
		receiver_report_duplicate(e, r, r->rcv_nxt - behind, r->rcv_nxt - behind + s->len);
	receiver_send_ack(e, r, now_ns);
}

// send_ack for a receiver as the next function has it, without a duplicate or a mark to report.
__attribute__((noinline)) static void send_plain_ack(
	struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct seg s;

	seg_header(&s, receiver_iss(r) + 1, receiver_seq(r, r->rcv_nxt), 0, r->window, SEG_ACK,
		true, flow_tsval(now_ns), r->ts_recent);
	put_ack(e, r, &s, now_ns);
}

// The next segment in order of a connection without a hole: the common case. The effect is that of
// receiver_data.
static inline bool receiver_expected(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t now_ns) {
	static const struct receiver_condition usual = {.state = RECEIVER_OPEN, .ts_ok = true};

	if ((s->flags & r->flags_mask) != SEG_ACK || s->options != SEG_OPT_TS || s->len == 0
		|| memcmp(&r->condition, &usual, sizeof(usual)) != 0 || r->head != NULL
		|| s->seq != receiver_seq(r, r->rcv_nxt) || s->ack != receiver_iss(r) + 1
		|| seq_diff(s->tsval, r->ts_recent) < 0)
		return false;
	if (seq_diff(s->seq, r->last_ack) <= 0)
		r->ts_recent = s->tsval;
	if (s->len > r->payload)
		r->payload = s->len;
	r->rcv_nxt += s->len;
	e->received.segs++;
	e->received.bytes += s->len;
	r->pending = (uint8_t)(r->pending + (s->len >= r->payload));
	if (!ack_due(r))
		delay_ack(e, r, now_ns);
	else if (unlikely(r->sack_count > 0 || r->ecn_echo))
		send_ack(e, r, now_ns);
	else
		send_plain_ack(e, r, now_ns);
	return true;
}

// All other segments. Not inlined, so that the short path is.
__attribute__((noinline)) static void receiver_other(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	bool timestamp, fin, bare;
	int64_t ahead;

	if ((s->flags & SEG_RST) != 0) {
		if (r->state == RECEIVER_OPEN)
			receiver_rst(e, r, s, now_ns);
		return;
	}
	if ((s->flags & SEG_SYN) != 0) {
		receiver_syn(e, r, s, ecn, now_ns);
		return;
	}
	if (r->state != RECEIVER_OPEN) {
		e->count.rx_bad++;
		if (r->state == RECEIVER_CLOSED && receiver_group(e, r)->peer.reset_ns > 0)
			answer_closed(e, r, s, now_ns);
		return;
	}
	if ((r->modes & RECEIVER_HOST) != 0)
		receiver_answered(r, now_ns);
	timestamp = r->ts_ok && (s->options & SEG_OPT_TS) != 0;
	if (timestamp && seq_diff(s->tsval, r->ts_recent) < 0) { // PAWS, RFC 7323 section 5.3
		receiver_stale(e, r, s, now_ns);
		return;
	}
	fin = (s->flags & SEG_FIN) != 0;
	bare = s->len == 0 && !fin;
	ahead = seq_diff(s->seq, receiver_seq(r, r->rcv_nxt));
	if (!ack_acceptable(r, s) || ahead > (int64_t)receiver_group(e, r)->rwnd
		|| (receiver_done(r) && ahead + s->len > bare) // only ACKs may follow a FIN
		|| (!bare && -ahead > (int64_t)r->rcv_nxt)) {
		receiver_refuse(e, r, now_ns);
		return;
	}
	if ((r->modes & RECEIVER_FIN) != 0 && s->ack == receiver_iss(r) + 2)
		r->modes |= RECEIVER_FIN_ACKED;
	// RFC 7323 section 4.3: from a segment in the window that starts at or before
	// Last.ACK.sent.
	if (timestamp && seq_diff(s->seq, r->last_ack) <= 0
		&& (bare ? ahead >= 0 : ahead + s->len + fin > 0))
		r->ts_recent = s->tsval;
	if (bare) {
		// Below the window it is a probe, which is to be answered.
		if (ahead < 0 && !receiver_done(r))
			receiver_send_ack(e, r, now_ns);
		return;
	}
	receiver_data(e, r, s, r->rcv_nxt + (uint64_t)ahead, ecn, now_ns);
}

void receiver_rx(
	struct endpoint *e, struct receiver *r, const struct seg *s, uint8_t ecn, uint64_t now_ns) {
	if (!receiver_expected(e, r, s, now_ns))
		receiver_other(e, r, s, ecn, now_ns);
}
