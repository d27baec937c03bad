// SPDX-License-Identifier: BSD-3-Clause
// What a packet's acknowledgement says of the other direction.
//
//	RTT by sequence number  of the segment that was sent last among those that the ACK newly
//	                        acknowledges, cumulatively or by SACK, unless it was sent more than
//	                        once (Karn). Delayed ACKs are part of it, as they are of the
//	                        sender's own RTT
//	smoothed RTT            of the oldest of them that was sent once; where Karn forbids a
//	                        sample, of the oldest retransmission that the ACK's timestamp names,
//	                        as in Weir's sender
//	RTT by timestamps       of the first segment that carried the TSval that the ACK echoes, if
//	                        it advances (RFC 7323)
#include "common/base/likely.h"
#include "tools/pcap/track.h"

#include <string.h>

static inline int32_t ahead(uint32_t a, uint32_t b) {
	return (int32_t)(a - b);
}

// What one ACK newly acknowledges.
struct news {
	uint64_t newest_ns; // when the segment that was sent last was sent
	uint64_t oldest_ns; // likewise of the first that was sent once; 0: none
	uint64_t echoed_ns; // of the oldest retransmission that the ACK's timestamp names; 0: none
	uint32_t bytes, segs;
	bool found, retransmitted, by_sack;
};

void track_rtt(
	struct track_at *a, uint32_t d, uint64_t rtt_ns, uint64_t oldest_rtt_ns, bool by_sack) {
	struct track_dir *dir = &a->f->dir[d];

	rtt_sample(&dir->rtt, oldest_rtt_ns, rtt_ns, TRACK_RTO_MIN_NS);
	dir->back.rtt_samples++;
	dir->back.rtt_sum_ns += rtt_ns;
	dir->back.rtt_max_ns = time_max(dir->back.rtt_max_ns, rtt_ns);
	dir->back.rtt_min_ns = time_max(dir->back.rtt_min_ns, NEVER_NS - rtt_ns);
	hist_add(&a->t->rtt, rtt_ns);
	if (unlikely(by_sack))
		track_rare(a, d)->rtt_sack_samples++;
	a->rtt_ns = rtt_ns;
}

// A segment was acknowledged, or the first part of a packet of several (segmentation offload).
static inline void arrived(struct news *n, const struct sent *s, bool by_sack) {
	if ((s->flags & SENT_HOLE) != 0)
		return; // when it was sent is not known
	if ((s->flags & SENT_RETRANSMITTED) == 0 && (n->oldest_ns == 0 || s->ts_ns < n->oldest_ns))
		n->oldest_ns = s->ts_ns;
	if (!n->found || s->ts_ns >= n->newest_ns) {
		n->newest_ns = s->ts_ns;
		n->retransmitted = (s->flags & SENT_RETRANSMITTED) != 0;
		n->by_sack = by_sack;
		n->found = true;
	}
}

static inline void deliver(struct news *n, const struct sent *s, bool by_sack) {
	n->segs++;
	n->bytes += s->end - s->seq - ((s->flags & SENT_FIN) != 0);
	arrived(n, s, by_sack);
}

static void echoed(struct news *n, const struct sent *s, uint32_t tsecr) {
	if ((s->flags & (SENT_SACKED | SENT_HOLE)) == 0 && s->tsval == tsecr
		&& (n->echoed_ns == 0 || s->ts_ns < n->echoed_ns))
		n->echoed_ns = s->ts_ns;
}

static inline void timestamp_rtt(const struct track_at *a, struct track_dir *dir, struct sent *s) {
	s->flags &= (uint8_t)~SENT_TSVAL_FIRST;
	uint64_t rtt_ns = time_since(a->now_ns, s->ts_ns);

	dir->tsrtt_samples++;
	dir->tsrtt_sum_ns += rtt_ns;
	dir->tsrtt_min_ns = time_min(dir->tsrtt_min_ns, rtt_ns);
	dir->tsrtt_max_ns = time_max(dir->tsrtt_max_ns, rtt_ns);
}

// The ACK advances to `ack`: whole records go, the one it ends in loses its beginning.
static inline void advance(
	struct track_at *a, struct track_dir *dir, uint32_t ack, struct news *n) {
	bool timestamps = (a->p->seg.options & SEG_OPT_TS) != 0, retransmitted = false;

	while (dir->ring.head != dir->ring.tail) {
		struct sent *s = sent_at(&a->t->pool, &dir->ring, dir->ring.head);

		if (ahead(s->seq, ack) < 0 && timestamps && (s->flags & SENT_TSVAL_FIRST) != 0
			&& s->tsval == a->p->seg.tsecr && likely(s->ts_ns >= a->t->step_ns))
			timestamp_rtt(a, dir, s);
		if (unlikely(ahead(s->end, ack) > 0)) {
			if (ahead(s->seq, ack) < 0) {
				if ((s->flags & SENT_SACKED) == 0) {
					n->bytes += ack - s->seq;
					arrived(n, s, false);
				}
				retransmitted |= (s->flags & SENT_RETRANSMITTED) != 0;
				s->seq = ack;
			}
			break;
		}
		if (unlikely((s->flags & SENT_HOLE) != 0))
			track_rare(a, !a->d)->uncaptured_bytes += s->end - s->seq;
		if (likely((s->flags & SENT_SACKED) == 0))
			deliver(n, s, false);
		if (unlikely((s->flags & SENT_RETRANSMITTED) != 0)) {
			retransmitted = true;
			if (timestamps)
				echoed(n, s, a->p->seg.tsecr);
		}
		dir->ring.head++;
	}
	// Those behind it may have arrived long before.
	if (unlikely(retransmitted))
		n->oldest_ns = 0;
	if (dir->ring.head == dir->ring.tail && dir->ring.log2 > SENT_LOG2_MIN + 3)
		sent_release(&a->t->pool, &dir->ring);
}

// Bytes [start, end) were SACKed for the first time, as far as the blocks of the last ACK tell.
static void sack_range(
	struct track_at *a, struct track_dir *dir, uint32_t start, uint32_t end, struct news *n) {
	struct track_snd *snd = &a->f->snd[!a->d];

	for (uint32_t i = sent_find(&a->t->pool, &dir->ring, start); i != dir->ring.tail; i++) {
		struct sent *s = sent_at(&a->t->pool, &dir->ring, i);

		if (ahead(s->seq, start)
			< 0) // only whole segments: SACK blocks end where segments do
			continue;
		if (ahead(s->end, end) > 0)
			break;
		if ((s->flags & SENT_SACKED) != 0)
			continue;
		s->flags |= SENT_SACKED;
		snd->flags |= DIR_SACK;
		deliver(n, s, true);
	}
}

// Takes from [*start, *end) what one of the last ACK's blocks holds, at its beginning or at its
// end: a receiver's block grows, and what it held need not be looked at for every ACK.
static void without_known(const struct track_rare *rare, uint32_t *start, uint32_t *end) {
	for (uint32_t i = 0; i < rare->sacked_count; i++) {
		const struct seg_sack *k = &rare->sacked[i];

		if (ahead(k->start, *start) <= 0 && ahead(k->end, *start) > 0)
			*start = ahead(k->end, *end) < 0 ? k->end : *end;
		if (ahead(k->end, *end) >= 0 && ahead(k->start, *end) < 0
			&& ahead(k->start, *start) >= 0)
			*end = k->start;
	}
}

// RFC 2883: the first block tells of a duplicate if it lies below the ACK, or within the second.
static bool is_dsack(const struct seg *s) {
	const struct seg_sack *b = s->sack;

	if (ahead(b[0].end, s->ack) <= 0)
		return true;
	return s->sack_count > 1 && ahead(b[0].start, b[1].start) >= 0
		&& ahead(b[0].end, b[1].end) <= 0;
}

static void sack(struct track_at *a, struct track_dir *dir, struct news *n) {
	const struct track_snd *snd = &a->f->snd[!a->d];
	struct track_rare *rare = track_rare(a, !a->d);
	const struct seg *s = &a->p->seg;
	bool dsack = is_dsack(s);

	rare->sack_acks++;
	a->kind |= KIND_SACK;
	if (dsack) {
		a->kind |= KIND_DSACK;
		rare->dsacks++;
		rare->resent_dsacks += resent_has(&rare->resent, &s->sack[0]);
		// Of a retransmission that was taken for needed.
		if (rare->spurious + rare->resent_duplicates < rare->resent_dsacks
			&& rare->lost_segs + rare->interval.lost_segs > rare->dsack_spurious) {
			rare->spurious++;
			rare->dsack_spurious++;
			track_event(a, !a->d, TEL_EV_SPURIOUS, 0, 0, 0);
		}
	}
	for (uint32_t i = dsack; i < s->sack_count; i++) {
		uint32_t start = s->sack[i].start, end = s->sack[i].end;

		if (ahead(start, snd->una) < 0)
			start = snd->una;
		if (ahead(end, start) <= 0 || ahead(end, snd->nxt) > 0)
			continue; // of what is not in the capture, or wrong
		without_known(rare, &start, &end);
		if (ahead(end, start) > 0)
			sack_range(a, dir, start, end, n);
	}
	rare->sacked_count = (uint8_t)(s->sack_count - dsack);
	memcpy(rare->sacked, s->sack + dsack, rare->sacked_count * sizeof(rare->sacked[0]));
}

static void window(struct track_at *a) {
	struct track_snd *snd = &a->f->snd[!a->d];
	const struct seg *s = &a->p->seg;
	// A SYN's window is not scaled.
	bool scaled = (s->flags & SEG_SYN) == 0 && track_scale_known(a->f, a->d);
	uint32_t scale = scaled ? a->f->snd[a->d].wscale : 0;
	uint32_t bytes = (uint32_t)s->window << scale;
	struct track_rare *rare = track_rare(a, !a->d);

	if (likely(bytes == snd->window))
		return;
	snd->window = bytes;
	if (track_scale_known(a->f, a->d) || (s->flags & SEG_SYN) != 0) {
		if (bytes > rare->window_max)
			rare->window_max = bytes;
		if (bytes < rare->window_min)
			rare->window_min = bytes;
	}
	if (likely((bytes == 0) == ((snd->flags & DIR_ZERO) != 0)))
		return;
	snd->flags ^= DIR_ZERO;
	if (bytes == 0) {
		rare->zero_windows++;
		rare->zero_since_ns = a->now_ns;
	} else {
		uint64_t closed_ns = time_since(a->now_ns, rare->zero_since_ns);

		rare->zero_window_ns += closed_ns;
		track_event(a, !a->d, TEL_EV_ZERO_WINDOW, 0, (double)closed_ns, 0);
	}
}

static void count_acked(struct track_at *a, struct track_dir *dir, uint32_t bytes) {
	const struct track_snd *snd = &a->f->snd[!a->d];
	uint64_t gap_ns = time_since(a->now_ns, dir->last_ack_ns);

	// The FIN's number is no byte.
	if (unlikely((snd->flags & DIR_FIN) != 0 && snd->una == snd->nxt && bytes > 0))
		bytes--;
	dir->back.acked_bytes += bytes;
	if (dir->acks++ == 0)
		track_rare(a, !a->d)->first_ack_ns = a->now_ns;
	else if (gap_ns > dir->ack_gap_max_ns)
		dir->ack_gap_max_ns = gap_ns;
	dir->last_ack_ns = a->now_ns;
	if (unlikely(dir->mss > 0 && bytes > 2u * dir->mss))
		track_rare(a, !a->d)->stretch_acks++;
}

// The receiver took the byte that probed its window.
static void probe_taken(struct track_at *a, struct track_snd *snd) {
	struct track_dir *dir = &a->f->dir[!a->d];

	if ((snd->flags & DIR_FLOW) == 0)
		track_new_flow(a, !a->d);
	track_touch(a, !a->d);
	dir->sent.segs++;
	dir->sent.bytes++;
	track_rare(a, !a->d)->keep_alives--;
	snd->nxt++;
	snd->flags &= (uint16_t)~DIR_PROBED;
}

// Nothing of this direction was captured so far, or less than is acknowledged.
static void uncaptured(struct track_at *a, struct track_snd *snd, uint32_t ack) {
	if ((snd->flags & (DIR_KNOWN | DIR_ACKED)) == 0) {
		snd->nxt = snd->una = ack;
		snd->flags |= DIR_ACKED;
		return;
	}
	track_rare(a, !a->d)->uncaptured_bytes += ack - snd->nxt;
	if ((snd->flags & DIR_FLOW) == 0)
		track_new_flow(a, !a->d);
	snd->nxt = ack;
}

static void duplicate_ack(struct track_at *a, struct track_snd *snd, uint32_t window_before) {
	const struct seg *s = &a->p->seg;

	if (a->p->payload > 0 || snd->una == snd->nxt || snd->window != window_before
		|| snd->window == 0 // it answers a probe
		|| (s->flags & (SEG_SYN | SEG_FIN)) != 0)
		return;
	a->kind |= KIND_DUPLICATE_ACK;
	snd->flags |= DIR_SACK;
	track_rare(a, !a->d)->duplicate_acks++;
}

void track_ack(struct track_at *a) {
	struct track_snd *snd = &a->f->snd[!a->d];
	struct track_dir *dir = &a->f->dir[!a->d];
	const struct seg *s = &a->p->seg;
	uint32_t window_before = snd->window;
	struct news n = {0};

	if (unlikely((snd->flags & (DIR_KNOWN | DIR_ACKED)) == 0))
		uncaptured(a, snd, s->ack);
	int32_t by = ahead(s->ack, snd->una);
	if (unlikely(by > TRACK_SEQ_MAX || by < -TRACK_SEQ_MAX)) {
		track_rare(a, !a->d)->out_of_window++;
		return;
	}
	if (likely(by >= 0))
		window(a);
	if (unlikely((s->flags & SEG_ECE) != 0 && (s->flags & SEG_SYN) == 0
		    && a->f->ecn != TRACK_ECN_ACCURATE))
		track_rare(a, !a->d)->ece++;
	if (by > 0) {
		if (unlikely((snd->flags & DIR_PROBED) != 0 && s->ack == snd->nxt + 1))
			probe_taken(a, snd);
		if (unlikely(ahead(s->ack, snd->nxt) > 0))
			uncaptured(a, snd, s->ack);
		if (likely((snd->flags & DIR_FLOW) != 0))
			track_touch(a, !a->d);
		advance(a, dir, s->ack, &n);
		snd->una = s->ack;
		count_acked(a, dir, (uint32_t)by);
		snd->flags &= (uint16_t)~DIR_SACK;
		if (unlikely((snd->flags & (DIR_RECOVERY | DIR_LOSS)) != 0
			    && ahead(snd->una, track_rare(a, !a->d)->recover) >= 0)) {
			snd->flags &= (uint16_t) ~(DIR_RECOVERY | DIR_LOSS);
			track_event(a, !a->d, TEL_EV_RECOVERED, 0,
				dir->mss > 0 ? (double)(snd->nxt - snd->una) / dir->mss : 0, 0);
		}
	} else if (by == 0) {
		duplicate_ack(a, snd, window_before);
	}
	if (unlikely(s->sack_count > 0 && by >= 0))
		sack(a, dir, &n);
	else if (unlikely(by > 0 && snd->una == snd->nxt))
		track_rare(a, !a->d)->sacked_count = 0;
	dir->back.delivered_bytes += n.bytes;
	if (n.found && !n.retransmitted && likely(n.newest_ns >= a->t->step_ns))
		track_rtt(a, !a->d, time_since(a->now_ns, n.newest_ns),
			time_since(a->now_ns, n.oldest_ns > 0 ? n.oldest_ns : n.newest_ns),
			n.by_sack);
	else if (unlikely(n.echoed_ns > 0) && n.echoed_ns >= a->t->step_ns)
		rtt_sample(
			&dir->rtt, time_since(a->now_ns, n.echoed_ns), NEVER_NS, TRACK_RTO_MIN_NS);
}
