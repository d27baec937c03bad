// SPDX-License-Identifier: BSD-3-Clause
// Transmission of a flow's segments, as window and pacer allow.
#include "sender/tcp/bursts.h"

#include "common/base/likely.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"
#include "sender/tcp/pacer.h"
#include "sender/tcp/send_buffer.h"
#include "sender/tcp/service.h"

static bool lost_unsent(const struct flow *f, uint64_t index) {
	return (flow_seg(f, index)->flags & (SENT_LOST | SENT_RETRANS)) == SENT_LOST;
}

uint64_t flow_next_lost(struct flow *f) {
	if (f->relost != 0)
		return relost_first(f);
	f->rtx_hint = max_u64(f->rtx_hint, f->una);
	while (!lost_unsent(f, f->rtx_hint))
		f->rtx_hint++;
	return f->rtx_hint;
}

// Fills the records of `n` segments that are sent now, `index` the first (delivery rate: section
// 3.2).
static inline void record_sent(
	struct flow *f, uint64_t index, uint64_t n, uint16_t flags, uint64_t now_ns) {
	if (f->app_limited != 0)
		flags |= SENT_APP_LIMITED;
	if (f->una == f->nxt)
		f->first_tx_ns = f->delivered_ns = now_ns;
	if (seg_ring_samples(&f->ring)) {
		struct seg_sample sample = seg_sample(&flags, now_ns - f->first_tx_ns,
			now_ns - f->delivered_ns, (uint32_t)f->delivered, (float)f->cwnd_segs);

		for (uint64_t i = index; i < index + n; i++)
			*flow_sample(f, i) = sample;
	}
	for (uint64_t i = index; i < index + n; i++)
		seg_rec_start(flow_seg(f, i), now_ns, flags);
}

// Marks the record of a segment that is retransmitted.
__attribute__((noinline)) static void record_retransmit(
	struct flow *f, uint64_t index, uint64_t now_ns) {
	struct seg_rec *r = flow_seg(f, index);

	if ((r->flags & SENT_RETRANS) != 0) {
		loss_retrans_unlink(f, index);
		f->retrans--;
	}
	if ((r->flags & SENT_LOST) != 0 && (r->flags & SENT_RETRANS) == 0)
		loss_unsent_end(f, index);
	record_sent(f, index, 1, r->flags & (uint16_t) ~(SENT_APP_LIMITED | SENT_LONG_AGO), now_ns);
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
	uint8_t ecn = ECN_NOT_ECT, flags = push ? SEG_ACK | SEG_PSH : SEG_ACK;
	uint32_t acked; // bytes of the segment that are acknowledged
	struct seg s;

	if (index < f->nxt) {
		record_retransmit(f, index, now_ns);
	} else {
		record_sent(f, index, 1, 0, now_ns);
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
	flow_packet(f, index, CC_PACKET_SENT, now_ns);
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

		if (f->buffered)
			end = max_u64(end, f->written);
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
	if (i > f->data_segs || send_buffer_lacks(f, i))
		return false;
	if (flow_offset(f, i) + flow_len(f, i) > f->wnd_bytes)
		return false;
	if (!seg_ring_reserve(&f->ring, &e->arena, f->una, i)) {
		e->count.seg_refused++;
		return false;
	}
	return true;
}

static void flow_after_idle(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);

	if (g->cc->on_idle == NULL)
		return;
	sample_now(e, f, now_ns);
	g->cc->on_idle(f->cc_state, g->cc_config, now_ns, now_ns - f->last_send_ns, &f->out);
	flow_note_mode(e, f);
	f->cwnd_segs = f->out.cwnd_segs;
}

// How many of `n` new, full segments the peer's window has room for.
static inline uint64_t peer_allows(const struct flow *f, uint64_t n) {
	uint64_t end = f->nxt * f->payload, i = 0;

	if (end + n * f->payload <= f->wnd_bytes)
		return n;
	while (i < n && (end += f->payload) <= f->wnd_bytes)
		i++;
	return i;
}

// Counts `n` full segments that were never sent before, and gives them to the host.
static inline __attribute__((always_inline)) void output_new(struct endpoint *e, struct flow *f,
	const struct seg *first, uint32_t n, uint64_t due_ns, bool paced, uint64_t now_ns) {
	f->prr_out += n;
	f->count.sent_segs += n;
	f->last_send_ns = now_ns;
	e->count.data_tx_segs += n;
	e->count.tx_segs += n;
	e->env.output(e->env.ctx, f->id, first, n, ECN_NOT_ECT, due_ns, paced);
}

// The short path of ACKs: sends all segments that both windows allow at once, if they are new, full
// and unpaced. Sent at the same time, they have equal records, and headers that differ in the
// sequence number only. False: another case; none was sent. send_bursts would send the same; then a
// simulation of 5000 such flows takes 8 % longer.
static bool send_window(struct endpoint *e, struct flow *f, bool *sent, uint64_t now_ns) {
	int64_t room = flow_window_room(f);
	uint64_t most = room > 0 ? (uint64_t)room : 0, n, end;
	struct seg s;

	if ((f->sacked | f->lost) != 0 || f->writes || now_ns >= f->stop_ns || f->ring.rec == NULL
		|| f->ecn_ok || f->una == f->nxt || most > UINT16_MAX)
		return false;
	n = peer_allows(f, most);
	end = f->nxt + n;
	if (end >= f->data_segs || send_buffer_lacks(f, end) || end - f->una > f->ring.mask)
		return false;
	*sent = n > 0;
	f->cwnd_blocked = n == most;
	if (n == most)
		f->cwnd_limited_nxt = end;
	else
		f->owed_ns = 0; // as flow_source_limits
	if (n == 0)
		return true;
	flow_header(f, &s, flow_seq(f, f->nxt), (uint16_t)f->payload, SEG_ACK, now_ns);
	record_sent(f, f->nxt, n, 0, now_ns);
	f->nxt = end;
	output_new(e, f, &s, (uint32_t)n, now_ns, false, now_ns);
	return true;
}

// Sends up to `max` segments at once, all of them retransmissions or all new: how many. The last
// one of several has PSH.
static inline __attribute__((always_inline)) uint32_t burst(struct endpoint *e, struct flow *f,
	uint32_t max, bool retransmit, uint64_t due_ns, bool paced, uint64_t now_ns) {
	uint32_t n = 0;

	do {
		uint64_t i = retransmit ? flow_next_lost(f) : f->nxt;

		// The timeout counts from the first segment's retransmission (RFC 6675 section 6).
		if (retransmit && i == f->una)
			f->rtx_base_ns = now_ns;
		transmit(e, f, i, due_ns, paced,
			n > 0
				&& (n + 1 == max || burst_ends(f, i, retransmit)
					|| (!retransmit && send_buffer_lacks(f, i + 1))),
			now_ns);
		n++;
	} while (n < max && (retransmit ? f->unsent_lost > 0 : new_allowed(e, f, now_ns)));
	return n;
}

// The data of n segments from `first` on, in full segments: the last one of a write may be short.
static double full_segs(const struct flow *f, uint64_t first, uint32_t n) {
	return (double)(flow_offset(f, first + n) - flow_offset(f, first)) / f->payload;
}

// Sends segments as window and pacer allow, up to `size` in a pacing slot. `due_ns`: the time of
// the slot, earlier than now if the timer fired late. Gaps count from it, so that a slow loop does
// not lower the rate. Compiled for a `size` of 1 by itself, which saves 2 % of a simulation.
static inline __attribute__((always_inline)) bool send_bursts(struct endpoint *e, struct flow *f,
	double bps, uint32_t size, uint64_t now_ns, uint64_t due_ns) {
	const struct group *g = flow_group(e, f);
	int64_t room = flow_window_room(f);
	bool paced = bps > 0, sent = false;

	if (f->pace.armed) // the slot may be earlier than this ACK
		due_ns = time_min(due_ns, f->pace.t.expires_ns);
	f->cwnd_blocked = false;
	for (;;) {
		bool retransmit =
			f->unsent_lost > 0 && !(spurious_new_first(f) && new_allowed(e, f, now_ns));
		uint64_t at_ns = now_ns, first = f->nxt;
		uint32_t n;

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
			paced = bps > 0;
		}
		n = size == 1 ? 1 : burst_part(f, size, room, retransmit, now_ns);
		if (n == 0) { // it waits for room for a larger one
			flow_window_limits(f);
			break;
		}
		if (paced)
			at_ns = time_max(f->next_send_ns, due_ns);
		if (paced && retransmit && f->writes)
			first = flow_next_lost(f);
		// The first segment of a flow has no pacing slot yet.
		n = burst(e, f, n, retransmit, at_ns, paced && f->next_send_ns > 0, now_ns);
		sent = true;
		room -= n;
		if (paced)
			due_ns = pacer_slot(
				g, f, bps, f->writes ? full_segs(f, first, n) : n, at_ns, now_ns);
	}
	return sent;
}

__attribute__((noinline)) static bool send_each(
	struct endpoint *e, struct flow *f, double bps, uint64_t now_ns, uint64_t due_ns) {
	return send_bursts(e, f, bps, 1, now_ns, due_ns);
}

// Whether the next segment is a new and full one of a connection that has lost nothing, and its
// record has a place.
static inline bool next_is_plain(const struct flow *f, uint64_t now_ns) {
	return (f->sacked | f->lost) == 0 && !f->writes && !f->buffered && !f->ecn_ok
		&& now_ns < f->stop_ns && f->una < f->nxt && f->nxt + 1 < f->data_segs
		&& f->nxt - f->una <= f->ring.mask;
}

// The short path of paced flows. send_bursts would do the same, and goes on where the next segment
// is another case; alone it takes 130 instructions more per segment.
static bool send_paced(
	struct endpoint *e, struct flow *f, double bps, uint64_t now_ns, uint64_t due_ns) {
	bool sent = false;
	struct seg s;

	if (f->pace.armed) // the slot may be earlier than this ACK
		due_ns = time_min(due_ns, f->pace.t.expires_ns);
	f->cwnd_blocked = false;
	for (;; sent = true) {
		uint64_t end = (f->nxt + 1) * f->payload, at_ns = time_max(f->next_send_ns, due_ns);

		if (flow_window_room(f) <= 0) {
			flow_window_limits(f);
			f->owed_ns = 0;
			return sent;
		}
		if (f->lost == 0 && pacer_holds(e, f, false, now_ns))
			return sent;
		if (unlikely(!next_is_plain(f, now_ns)))
			break;
		if (end > f->wnd_bytes) {
			flow_source_limits(f);
			return sent;
		}
		flow_header(f, &s, f->iss + 1 + (uint32_t)end - f->payload, (uint16_t)f->payload,
			SEG_ACK, now_ns);
		record_sent(f, f->nxt, 1, 0, now_ns);
		f->nxt++;
		output_new(e, f, &s, 1, at_ns, f->next_send_ns > 0, now_ns);
		due_ns = pacer_slot(flow_group(e, f), f, bps, 1, at_ns, now_ns);
	}
	return send_each(e, f, bps, now_ns, due_ns) || sent;
}

// For groups with `tso` or `pacing: fq`.
__attribute__((cold, noinline)) static bool send_offloaded(
	struct endpoint *e, struct flow *f, double bps, uint64_t now_ns, uint64_t due_ns) {
	return send_bursts(e, f, bps, burst_segs(flow_group(e, f), f), now_ns, due_ns);
}

static bool send_written(struct endpoint *e, struct flow *f, uint64_t now_ns, uint64_t due_ns) {
	const struct group *g = flow_group(e, f);
	double bps = f->out.pacing_bps;
	bool sent;

	if (f->state != FLOW_OPEN)
		return false;
	if (unlikely(!g->paced_by_cc)) {
		bps = pacer_bps(g, f);
		if (g->bursts)
			return send_offloaded(e, f, bps, now_ns, due_ns);
	}
	if (bps <= 0 && send_window(e, f, &sent, now_ns))
		return sent;
	return bps > 0 ? send_paced(e, f, bps, now_ns, due_ns)
		       : send_each(e, f, bps, now_ns, due_ns);
}

bool flow_send(struct endpoint *e, struct flow *f, uint64_t now_ns, uint64_t due_ns) {
	bool sent;

	if (likely(!f->buffered))
		return send_written(e, f, now_ns, due_ns);
	sent = send_written(e, f, now_ns, due_ns);
	if (send_buffer_write(e, f, now_ns))
		sent |= send_written(e, f, now_ns, due_ns);
	return sent;
}

void flow_send_probe(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	double bps = pacer_bps(flow_group(e, f), f);

	f->tlp_retrans = !new_allowed(e, f, now_ns);
	if (f->service != NULL)
		f->service->probing = true;
	flow_transmit(e, f, f->tlp_retrans ? f->nxt - 1 : f->nxt, now_ns, false, false, now_ns);
	if (f->service != NULL)
		f->service->probing = false;
	if (bps > 0)
		pacer_sent(f, bps, 1, time_max(f->next_send_ns, now_ns), now_ns);
}
