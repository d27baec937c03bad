// SPDX-License-Identifier: BSD-3-Clause
// The scoreboard and RACK-TLP loss detection (RFC 8985), with SACK (RFC 2018, 2883).
//
//	RACK.segment   the delivered segment that was sent last
//	lost           sent before RACK.segment, and RACK.rtt + reo_wnd ago or longer
//	reo_wnd        0 while no reordering was seen and recovery is on or DupThresh segments are
//	               SACKed; else reo_wnd_mult * min RTT / 4, at most srtt. DSACKs raise the
//	               multiplier, 16 recoveries without one reset it.
//	reordering     a segment that was never sent again is delivered after a later one; or one
//	               was sent again because of a later one, and its timestamp or a DSACK says that
//	               the original arrived (spurious.c)
//
// Original segments are sent in order of their number, so they are scanned from rack_scan to the
// first that was sent after RACK.segment; retransmissions are in a list in order of transmission.
// So each segment is read once or twice, for any window.
//
// Where we differ from the RFC: min RTT is the connection's, not a window's; a peer without SACK is
// handled by RFC 6582 (three duplicate ACKs, then one segment per partial ACK), see ack.c.
// Timestamps are used to judge the ACK of a retransmission only if it is cumulative: above a hole
// the receiver echoes the timestamp of the last segment before it. Of a retransmission and new data
// sent in the same nanosecond the retransmission counts as the later. A timeout resets
// reo_wnd_mult.
#include "sender/endpoint/endpoint.h"

#include "common/base/likely.h"
#include "sender/tcp/loss.h"

#include <string.h>

#define REO_WND_PERSIST 16 // recoveries
#define NO_SEG UINT64_MAX

// Undoes the low-32-bit links: the index nearest to una with these low bits.
static uint64_t widen(const struct flow *f, uint32_t low) {
	return f->una + (uint32_t)(low - (uint32_t)f->una);
}

void loss_retrans_push(struct flow *f, uint64_t index) {
	flow_links(f, index)->prev = (uint32_t)f->retrans_tail;
	if (f->retrans_tail == NO_SEG)
		f->retrans_head = index;
	else
		flow_links(f, f->retrans_tail)->next = (uint32_t)index;
	f->retrans_tail = index;
}

// To be called while `index` and its neighbours in the list are still within [una, nxt).
void loss_retrans_unlink(struct flow *f, uint64_t index) {
	const struct seg_links *r = flow_links(f, index);

	if (index == f->retrans_head && index == f->retrans_tail) {
		f->retrans_head = f->retrans_tail = NO_SEG;
	} else if (index == f->retrans_head) {
		f->retrans_head = widen(f, r->next);
	} else if (index == f->retrans_tail) {
		f->retrans_tail = widen(f, r->prev);
	} else {
		flow_links(f, widen(f, r->prev))->next = r->next;
		flow_links(f, widen(f, r->next))->prev = r->prev;
	}
}

// A segment that was never sent again has been overtaken.
static void note_reordering(struct flow *f, uint64_t index, struct delivery *d) {
	d->reordered = true;
	if (d->prior_fack - index > f->reordering)
		f->reordering = (uint32_t)(d->prior_fack - index);
}

// Marks a segment as delivered, by cumulative ACK or SACK: section 6.2 steps 2 and 3, and the
// choice of the newest segment for the delivery rate.
static void delivered(struct flow *f, uint64_t index, struct seg_rec *r, struct delivery *d) {
	uint64_t sent_ns = flow_sent_ns(r, d->now_ns);
	uint16_t flags = r->flags;

	flow_packet(f, index, CC_PACKET_ACKED, d->now_ns);
	if ((flags & (SENT_LOST | SENT_RETRANS)) != 0) {
		if ((flags & SENT_RETRANS) != 0) {
			loss_retrans_unlink(f, index);
			f->retrans--;
		} else {
			loss_unsent_end(f, index);
		}
		f->lost--;
		r->flags &= (uint16_t) ~(SENT_LOST | SENT_RETRANS);
	}
	f->delivered++;
	d->acked++;
	d->original |= (flags & SENT_EVER_RETRANS) == 0 && index < f->recover;
	if ((flags & SENT_EVER_RETRANS) == 0 && (d->oldest_ns == 0 || sent_ns < d->oldest_ns))
		d->oldest_ns = sent_ns;
	// Compared with fack before this ACK, because the blocks of one ACK are in no order.
	if (index < d->prior_fack && (flags & SENT_EVER_RETRANS) == 0)
		note_reordering(f, index, d);
	if (index >= f->fack)
		f->fack = index + 1;
	if (sent_ns > d->newest_ns || (sent_ns == d->newest_ns && index >= d->newest_seg)) {
		d->newest_ns = sent_ns;
		d->newest_seg = index;
		d->newest_retrans = (flags & SENT_EVER_RETRANS) != 0;
		if (seg_ring_samples(&f->ring)) {
			const struct seg_sample *x = flow_sample(f, index);

			d->newest_cwnd = x->cwnd_segs;
			d->prior_delivered =
				f->delivered - (uint32_t)((uint32_t)f->delivered - x->delivered);
			d->prior_ns = sent_ns - seg_rec_ago_ns(r, x->delivered_ago);
			d->send_elapsed_ns = seg_rec_ago_ns(r, x->first_tx_ago);
		}
		d->app_limited = (flags & SENT_APP_LIMITED) != 0;
	}
	// An ACK soon after a retransmission may be for the original: step 2's two tests.
	if ((flags & SENT_EVER_RETRANS) != 0) {
		if (d->tsecr == flow_tsval(sent_ns)
			&& (d->echoed_ns == 0 || sent_ns < d->echoed_ns))
			d->echoed_ns = sent_ns;
		if (d->now_ns - sent_ns < f->rtt.min_ns)
			return;
		if (d->tsecr != 0 && seq_diff(d->tsecr, flow_tsval(sent_ns)) < 0)
			return;
	}
	if (sent_ns > f->rack_sent_ns || (sent_ns == f->rack_sent_ns && index > f->rack_seg)) {
		f->rack_sent_ns = sent_ns;
		f->rack_seg = index;
		f->rack_retrans = (flags & SENT_EVER_RETRANS) != 0;
		f->rack_rtt_ns = d->now_ns - sent_ns;
	}
}

void loss_cumulative(struct endpoint *e, struct flow *f, uint64_t una, struct delivery *d) {
	bool retrans = false;

	for (uint64_t i = f->una; i < una; i++) {
		struct seg_rec *r = flow_seg(f, i);

		retrans |= (r->flags & SENT_EVER_RETRANS) != 0;
		if ((r->flags & SENT_SACKED) != 0)
			f->sacked--;
		else
			delivered(f, i, r, d);
	}
	// Those behind it may have arrived long before.
	if (retrans)
		d->oldest_ns = 0;
	f->una = una;
	if (f->rack_scan < una)
		f->rack_scan = una;
	if (f->fack < una)
		f->fack = una;
}

// The first segment that starts at or after the sequence number (up), or that ends after it (down).
// The result is within [una, nxt], so that 32 bits relative to una suffice.
static uint64_t seg_from(const struct flow *f, uint32_t seq, bool up) {
	uint64_t first = flow_offset(f, f->una);
	uint32_t ahead = seq - (f->iss + 1 + (uint32_t)first);

	if (first + ahead >= f->total_bytes && f->data_segs != UINT64_MAX)
		return f->data_segs + (first + ahead > f->total_bytes);
	if (f->writes)
		return writes_segment(f, first + ahead, up);
	return f->una + (ahead + (up ? f->payload - 1 : 0)) / f->payload;
}

// Marks segments [from, to) as SACKED and stores `to` in the first record, so that a later block
// with the same start continues there: the cost of a block is that of its new segments.
static void sack_segs(struct flow *f, uint64_t from, uint64_t to, struct delivery *d) {
	uint64_t i = from;

	while (i < to) {
		struct seg_rec *r = flow_seg(f, i);

		if ((r->flags & SENT_SACKED) != 0) {
			i = widen(f, flow_links(f, i)->sacked_end);
			continue;
		}
		delivered(f, i, r, d);
		r->flags |= SENT_SACKED;
		flow_links(f, i)->sacked_end = (uint32_t)(i + 1);
		i++;
		f->sacked++;
	}
	if (from < to)
		flow_links(f, from)->sacked_end = (uint32_t)i;
}

// Marks the segments that are entirely within a block, unless the last ACK had the same block.
static void sack_block(struct flow *f, const struct seg_sack *b, struct delivery *d) {
	for (uint32_t i = 0; i < f->seen_count; i++) {
		if (f->seen[i].start == b->start && f->seen[i].end == b->end)
			return;
	}
	sack_segs(f, seg_from(f, b->start, true), seg_from(f, b->end, false), d);
}

// Prefetches for the first SACK block, which is the one that grew: its first record and the one at
// its end.
void loss_fetch(const struct flow *f, const struct seg *s) {
	const struct seg_sack *b = &s->sack[0];

	prefetch_write(f->seen);
	prefetch_write(flow_seg(f, seg_from(f, b->start, true)));
	prefetch_write(flow_seg(f, seg_from(f, b->end, false) - 1));
	prefetch_write(flow_seg(f, f->rack_scan));
}

void loss_sack(struct flow *f, const struct seg *s, struct delivery *d) {
	uint32_t una = f->iss + 1 + (uint32_t)f->una_bytes;
	uint32_t out = f->una < f->nxt ? flow_seq(f, f->nxt) - una : 0;
	struct seg_sack seen[SEG_SACK_MAX];
	uint32_t tsecr = d->tsecr;
	uint8_t n = 0;

	d->tsecr = 0; // above a hole the echo is older (RFC 7323 section 4.3)
	for (uint32_t i = 0; i < s->sack_count; i++) {
		const struct seg_sack *b = &s->sack[i];

		if (seq_diff(b->start, b->end) >= 0)
			continue; // empty or reversed
		// RFC 2883: below the ACK, or inside the second block.
		if (i == 0
			&& (seq_diff(b->end, s->ack) <= 0
				|| (s->sack_count > 1 && seq_diff(b->start, s->sack[1].start) >= 0
					&& seq_diff(b->end, s->sack[1].end) <= 0))) {
			if (resent_has(&f->resent, b) && !mtu_probe_arrived(f, b)) {
				d->dsack = true;
				spurious_duplicates(f, b, d);
			}
			continue;
		}
		// The block is old, or of data that was never sent. Compared as distances from una,
		// because comparisons modulo 2^32 are not transitive.
		if (b->end - una > out || b->start - una >= b->end - una)
			continue;
		sack_block(f, b, d);
		seen[n++] = *b;
	}
	d->tsecr = tsecr;
	memcpy(f->seen, seen, n * sizeof(seen[0]));
	f->seen_count = n;
}

void loss_mark(struct flow *f, uint64_t index, uint64_t now_ns) {
	struct seg_rec *r = flow_seg(f, index);

	flow_packet(f, index, CC_PACKET_LOST, now_ns);
	if ((r->flags & SENT_RETRANS) != 0) { // the retransmission is lost too
		loss_retrans_unlink(f, index);
		f->retrans--;
		r->flags &= (uint16_t)~SENT_RETRANS;
	} else {
		r->flags |= SENT_LOST;
		f->lost++;
	}
	f->unsent_lost++;
	f->count.lost_segs += index < f->data_segs;
	if (index < f->rtx_hint)
		relost_add(f, index);
}

void loss_mark_in(struct flow *f, uint64_t index, struct delivery *d) {
	d->lost_app_limited = (flow_seg(f, index)->flags & SENT_APP_LIMITED) != 0;
	loss_mark(f, index, d->now_ns);
	d->lost++;
}

static uint64_t reo_wnd_ns(const struct flow *f) {
	if (!f->reordering_seen && (f->ca != FLOW_CA_OPEN || f->sacked >= FLOW_DUP_THRESH))
		return 0;
	return time_min(f->reo_wnd_mult * (f->rtt.min_ns / 4), f->rtt.srtt_ns);
}

// Section 6.2 step 4: grow the window on a DSACK of what was sent again, once per round trip. More
// of them than retransmissions of the connection report packets that the network duplicated (as in
// Linux's tcp_dsack_seen).
static void update_reo_wnd(
	struct endpoint *e, struct flow *f, const struct delivery *d, uint64_t now_ns) {
	if (d->reordered)
		f->reordering_seen = true;
	if (!d->dsack
		|| f->count.spurious - f->at_open.spurious
			>= f->count.retransmits - f->at_open.retransmits)
		return;
	f->count.spurious++;
	endpoint_event(e, f, TEL_EV_SPURIOUS, 0, 0, 0, now_ns);
	if (f->una < f->dsack_round)
		return;
	f->dsack_round = f->nxt;
	f->reo_wnd_mult += f->reo_wnd_mult < 255;
	f->reo_wnd_persist = REO_WND_PERSIST;
}

// Whether the segment is lost. If not yet, *wait_ns is the time until it will be.
static bool rack_lost(const struct flow *f, uint64_t sent_ns, uint64_t reo_ns, uint64_t now_ns,
	uint64_t *wait_ns) {
	uint64_t lost_ns = sent_ns + f->rack_rtt_ns + reo_ns;

	if (lost_ns <= now_ns)
		return true;
	*wait_ns = time_max(*wait_ns, lost_ns - now_ns);
	return false;
}

static bool sent_before_rack(const struct flow *f, uint64_t index, uint64_t sent_ns) {
	return sent_ns < f->rack_sent_ns || (sent_ns == f->rack_sent_ns && index < f->rack_seg);
}

uint64_t loss_detect(struct endpoint *e, struct flow *f, uint64_t now_ns, struct delivery *d) {
	uint64_t wait_ns = 0, reo_ns;

	update_reo_wnd(e, f, d, now_ns);
	reo_ns = reo_wnd_ns(f);
	for (uint64_t i = f->rack_scan; i < f->nxt; i++) {
		const struct seg_rec *r = flow_seg(f, i);

		if ((r->flags & (SENT_SACKED | SENT_LOST)) == 0) {
			uint64_t sent_ns = flow_sent_ns(r, now_ns);

			if (!sent_before_rack(f, i, sent_ns)
				|| !rack_lost(f, sent_ns, reo_ns, now_ns, &wait_ns))
				break;
			loss_mark_in(f, i, d);
		}
		f->rack_scan = i + 1;
	}
	while (f->retrans_head != NO_SEG) {
		uint64_t i = f->retrans_head, sent_ns = flow_sent_ns(flow_seg(f, i), now_ns);

		// A retransmission and new data sent in the same nanosecond have no known order:
		// the retransmission then counts as the later and is not marked lost.
		if ((sent_ns == f->rack_sent_ns && !f->rack_retrans)
			|| !sent_before_rack(f, i, sent_ns)
			|| !rack_lost(f, sent_ns, reo_ns, now_ns, &wait_ns))
			break;
		loss_mark_in(f, i, d);
	}
	return wait_ns;
}

uint64_t flow_delivered_bytes(const struct flow *f) {
	uint64_t sacked = f->writes ? writes_sacked_bytes(f) : (uint64_t)f->sacked * f->payload;
	uint64_t bytes = f->count.acked_bytes - f->at_open.acked_bytes + sacked;

	// A finite flow's last segment may be short.
	bytes = f->before_delivered_bytes + time_min(bytes, f->total_bytes);
	return time_max(bytes, f->least_delivered_bytes);
}

void flow_keep_delivered(struct flow *f) {
	f->least_delivered_bytes = flow_delivered_bytes(f);
}

void flow_forget(struct flow *f) {
	flow_keep_delivered(f);
	f->sacked = 0;
}

// The receiver discarded segments that it had SACKed (RFC 2018 section 8): forget all SACKs.
// Otherwise the first segment would never be retransmitted.
static void reneged(struct flow *f) {
	flow_forget(f);
	for (uint64_t i = f->una; i < f->nxt; i++)
		flow_seg(f, i)->flags &= (uint16_t)~SENT_SACKED;
	f->seen_count = 0;
	f->rack_scan = f->una;
	f->fack = f->una;
}

// Section 6.3: at a timeout the first segment is lost, and all sent an RTT and reo_wnd ago.
void loss_on_timeout(struct flow *f, uint64_t now_ns) {
	uint64_t old_ns = f->rack_rtt_ns + reo_wnd_ns(f);
	bool all = (flow_seg(f, f->una)->flags & SENT_SACKED) != 0;

	if (!f->sack_ok)
		flow_forget(f);
	else if (all)
		reneged(f);
	for (uint64_t i = f->una; i < f->nxt; i++) {
		const struct seg_rec *r = flow_seg(f, i);
		bool waiting = (r->flags & (SENT_LOST | SENT_RETRANS)) == SENT_LOST;

		if ((r->flags & SENT_SACKED) != 0 || waiting)
			continue;
		if (all || i == f->una || flow_sent_ns(r, now_ns) + old_ns <= now_ns)
			loss_mark(f, i, now_ns);
	}
}
