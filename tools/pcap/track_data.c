// SPDX-License-Identifier: BSD-3-Clause
// What a packet's payload says of its direction. A segment that begins at the highest number seen
// so far is new. One beyond it leaves a hole. One below it is
//
//	a duplicate       of a packet seen less than a round trip before: the same IP identification
//	                  and TSval
//	out of order      if all of it lies in holes and it cannot have been sent again: its TSval
//	                  is older than that of the packet behind the hole or, where they are equal
//	                  or absent, less than a round trip has passed since (no ACK can have told
//	                  the sender of the hole)
//	a keep-alive      if it is the last byte without PSH, or none, and all was acknowledged
//	                  (RFC 9293 section 3.8.4)
//	a window probe    if the receiver's window is closed and it is one byte: the next (BSD,
//	                  Windows), or the first that is not acknowledged (section 3.8.6.1)
//	a retransmission  otherwise. It was not needed (spurious) if all of it had been acknowledged
//	                  or SACKed. Else a segment is taken for lost: before the capture if it lies
//	                  in a hole, behind it if not
//
// A reduction of the window is inferred from the first retransmission that an ACK asked for, and
// from CWR: one until all that had been sent by then is acknowledged (RFC 6582, RFC 6675, RFC 3168
// section 6.1.2). A timeout is inferred if the first unacknowledged segment is sent again when
// nothing was acknowledged and it was not sent for 0.9 RTO (RFC 6298 with Linux' minimum); a tail
// loss probe if it is the last one, for less than that and without such ACKs.
#include "common/base/likely.h"
#include "tools/pcap/track.h"

#define IP_ID_NEAR 256 // packets that a host may send within a tick; others draw it at random

static inline int32_t ahead(uint32_t a, uint32_t b) {
	return (int32_t)(a - b);
}

uint64_t track_round_trip_ns(const struct track_at *a) {
	const uint64_t *handshake = a->t->opening[a->place].handshake_ns;
	const struct track_dir *dir = a->f->dir;
	uint64_t both_ns = 0;

	for (uint32_t d = 0; d < 2; d++) {
		bool answered = (a->f->snd[d].flags & DIR_ANSWERED) != 0 && handshake[d] > 0;
		uint64_t part_ns = answered ? handshake[d] : 0;

		if (dir[d].rtt.min_ns != NEVER_NS && (part_ns == 0 || dir[d].rtt.min_ns < part_ns))
			part_ns = dir[d].rtt.min_ns;
		// Where packets are seen at several points, each is of the whole.
		both_ns = (a->f->flags & FLOW_COPIED) != 0 ? time_max(both_ns, part_ns)
							   : both_ns + part_ns;
	}
	return both_ns > 0 ? both_ns : TRACK_REORDER_NS;
}

// Makes a record of a new segment, or of a hole. Where there is no room the oldest is forgotten.
static struct sent *record(struct track_at *a, uint32_t seq, uint32_t end, uint8_t flags) {
	struct track_dir *dir = &a->f->dir[a->d];
	struct sent *s = sent_push(&a->t->pool, &dir->ring);

	if (unlikely(s == NULL)) {
		track_rare(a, a->d)->untracked++;
		if (sent_count(&dir->ring) == 0)
			return NULL;
		dir->ring.head++;
		s = sent_push(&a->t->pool, &dir->ring);
	}
	bool timestamps = (a->p->seg.options & SEG_OPT_TS) != 0;

	*s = (struct sent){
		.ts_ns = a->now_ns,
		.seq = seq,
		.end = end,
		.tsval = a->p->seg.tsval,
		.ip_id = a->p->ip_id,
		.flags = flags,
		.times = 1,
	};
	if (timestamps && (flags & SENT_HOLE) == 0 && a->p->seg.tsval != dir->tsval) {
		s->flags |= SENT_TSVAL_FIRST;
		dir->tsval = a->p->seg.tsval;
	}
	return s;
}

static void enter(struct track_at *a, uint16_t state, uint64_t inflight, uint32_t detail) {
	struct track_snd *snd = &a->f->snd[a->d];
	struct track_dir *dir = &a->f->dir[a->d];
	struct track_rare *rare = track_rare(a, a->d);
	double before = dir->mss > 0 ? (double)inflight / dir->mss : 0;

	rare->recover = snd->nxt;
	snd->flags = (uint16_t)((snd->flags & ~(DIR_RECOVERY | DIR_LOSS)) | state);
	if (state == DIR_LOSS) {
		rare->timeouts++;
		track_event(a, a->d, TEL_EV_TIMEOUT, before, 1, detail);
		return;
	}
	rare->interval.reductions++;
	rare->ecn_reductions += detail;
	track_event(a, a->d, TEL_EV_REDUCTION, before, 0, detail);
}

// What made the sender send this segment again: an ACK, a timeout or a probe.
static void cause(struct track_at *a, const struct sent *s, uint64_t last_sent_ns) {
	const struct track_snd *snd = &a->f->snd[a->d];
	struct track_dir *dir = &a->f->dir[a->d];
	uint64_t since_ns = time_max(last_sent_ns, dir->last_ack_ns);
	uint64_t wait_ns = time_since(a->now_ns, since_ns), rto_ns = dir->rtt.rto_ns;
	uint64_t inflight = (uint32_t)ahead(snd->nxt, snd->una);

	if (s->seq == snd->una && wait_ns >= rto_ns - rto_ns / 10)
		enter(a, DIR_LOSS, inflight, 0);
	else if ((snd->flags & (DIR_RECOVERY | DIR_LOSS)) != 0)
		return;
	else if ((snd->flags & DIR_SACK) == 0 && s->end == snd->nxt && wait_ns >= dir->rtt.srtt_ns)
		track_rare(a, a->d)->tail_probes++;
	else
		enter(a, DIR_RECOVERY, inflight, 0);
}

static bool is_duplicate(
	const struct track_at *a, const struct sent *s, uint32_t seq, uint32_t end) {
	const struct packet *p = a->p;

	return s->seq == seq && s->end == end && s->ip_id == p->ip_id
		&& ((p->seg.options & SEG_OPT_TS) == 0 || s->tsval == p->seg.tsval)
		&& (p->ip_id != 0 || (p->seg.options & SEG_OPT_TS) != 0)
		&& time_since(a->now_ns, s->ts_ns) < track_round_trip_ns(a);
}

// A packet in a hole: did it come late, or is it sent again?
static bool reordered(
	const struct track_at *a, const struct sent *hole, const struct sent *behind) {
	int32_t older =
		(a->p->seg.options & SEG_OPT_TS) != 0 ? ahead(a->p->seg.tsval, behind->tsval) : 0;

	if (older != 0)
		return older < 0;
	// Linux counts a connection's packets there: within a tick of TSval this tells.
	int16_t later = (int16_t)(a->p->ip_id - behind->ip_id);
	if (a->p->ip_id != 0 && behind->ip_id != 0 && later > -IP_ID_NEAR && later < IP_ID_NEAR
		&& later != 0)
		return later < 0;
	return time_since(a->now_ns, hole->ts_ns) < track_round_trip_ns(a);
}

// The part [seq, end) of hole i was seen now; what is left of the hole stays. Returns false where
// there is no memory.
static bool fill(struct track_at *a, uint32_t i, uint32_t seq, uint32_t end, uint8_t flags) {
	struct sent_ring *r = &a->f->dir[a->d].ring;
	struct sent_pool *pool = &a->t->pool;
	struct sent hole = *sent_at(pool, r, i);

	if (ahead(seq, hole.seq) > 0) { // the part before
		if (!sent_insert(pool, r, &i))
			return false;
		*sent_at(pool, r, i) = hole;
		sent_at(pool, r, i++)->end = seq;
	}
	if (ahead(hole.end, end) > 0) { // the part behind
		if (!sent_insert(pool, r, &i))
			return false;
		*sent_at(pool, r, i + 1) = hole;
		sent_at(pool, r, i + 1)->seq = end;
	}
	*sent_at(pool, r, i) = (struct sent){
		.ts_ns = a->now_ns,
		.seq = seq,
		.end = end,
		.tsval = a->p->seg.tsval,
		.ip_id = a->p->ip_id,
		.flags = (uint8_t)(flags | (hole.flags & SENT_SACKED)),
		.times = 1,
	};
	return true;
}

// What is known of the bytes of an old segment that are not acknowledged.
struct old {
	uint32_t first, count; // records that it overlaps
	bool seen, unseen, all_sacked;
	uint64_t last_sent_ns;
};

static struct old find_sent(const struct track_at *a, uint32_t seq, uint32_t end) {
	const struct sent_ring *r = &a->f->dir[a->d].ring;
	struct old o = {.first = sent_find(&a->t->pool, r, seq), .all_sacked = true};

	for (uint32_t i = o.first; i != r->tail; i++) {
		const struct sent *s = sent_at(&a->t->pool, r, i);

		if (ahead(s->seq, end) >= 0)
			break;
		o.count++;
		if ((s->flags & SENT_HOLE) != 0)
			o.unseen = true;
		else
			o.seen = true;
		o.all_sacked &= (s->flags & SENT_SACKED) != 0;
		o.last_sent_ns = time_max(o.last_sent_ns, s->ts_ns);
	}
	return o;
}

// Segmentation offload: a host takes packets apart, or puts them together, between two points. All
// pieces have the TSval of the whole, and their IP identifications count its segments; of what is
// sent again neither is so.
bool track_recut(const struct track_at *a) {
	const struct track_snd *snd = &a->f->snd[a->d];
	const struct sent_ring *r = &a->f->dir[a->d].ring;
	const struct packet *p = a->p;
	uint32_t seq = p->seg.seq, end = seq + p->payload;

	if ((p->seg.flags & SEG_SYN) != 0 || ahead(seq, snd->una) < 0 || ahead(end, snd->nxt) > 0)
		return false;
	struct old o = find_sent(a, seq, end);

	if (o.count == 0 || o.unseen)
		return false;
	const struct sent *s = sent_at(&a->t->pool, r, o.first);
	uint16_t later = (uint16_t)(p->ip_id - s->ip_id);
	uint32_t offset = seq - s->seq;

	if ((p->seg.options & SEG_OPT_TS) != 0 ? p->seg.tsval != s->tsval : p->ip_id == 0)
		return false;
	return p->ip_id == 0
		|| (later == 0 ? offset == 0 : offset % later == 0 && offset / later >= p->payload);
}

// Holes that the segment covers are holes no more, and what was seen before was sent again.
static void mark(
	struct track_at *a, const struct old *o, uint32_t seq, uint32_t end, uint8_t flags) {
	struct track_dir *dir = &a->f->dir[a->d];

	for (uint32_t i = sent_find(&a->t->pool, &dir->ring, seq); i != dir->ring.tail; i++) {
		struct sent *s = sent_at(&a->t->pool, &dir->ring, i);

		if (ahead(s->seq, end) >= 0)
			break;
		if ((s->flags & SENT_HOLE) != 0) {
			uint32_t from = ahead(seq, s->seq) > 0 ? seq : s->seq;
			uint32_t to = ahead(s->end, end) > 0 ? end : s->end;

			if (!fill(a, i, from, to, flags))
				return;
			i = sent_find(&a->t->pool, &dir->ring, from); // records may have moved
		} else if (o->seen && (flags & SENT_RETRANSMITTED) != 0) {
			s->flags = (uint8_t)((s->flags & ~SENT_TSVAL_FIRST) | SENT_RETRANSMITTED);
			s->ts_ns = a->now_ns;
			s->ip_id = a->p->ip_id;
			s->times = (uint8_t)(s->times + (s->times < UINT8_MAX));
			if ((a->p->seg.options & SEG_OPT_TS) != 0) {
				if (a->p->seg.tsval != dir->tsval)
					s->flags |= SENT_TSVAL_FIRST;
				s->tsval = dir->tsval = a->p->seg.tsval;
			}
		}
	}
}

static void retransmission(
	struct track_at *a, const struct old *o, uint32_t seq, uint32_t end, bool acked) {
	const struct track_snd *snd = &a->f->snd[a->d];
	struct track_dir *dir = &a->f->dir[a->d];
	struct track_rare *rare = track_rare(a, a->d);
	uint32_t payload = a->p->payload;

	a->kind |= KIND_RETRANSMIT;
	resent_add(&rare->resent, seq, end);
	if (payload > 0) {
		rare->interval.retransmits++;
		rare->retransmit_bytes += (uint32_t)ahead(snd->nxt, seq) < payload
			? (uint32_t)ahead(snd->nxt, seq)
			: payload;
	}
	if (acked || (o->count > 0 && o->all_sacked)) {
		a->kind |= KIND_SPURIOUS;
		rare->spurious++;
	} else if (payload > 0) {
		rare->interval.lost_segs++;
		rare->lost_before += !o->seen;
	}
	if (!acked && o->count > 0) {
		struct sent first = *sent_at(&a->t->pool, &dir->ring, o->first);

		if (ahead(first.seq, seq) < 0)
			first.seq = seq;
		if (ahead(first.end, end) > 0)
			first.end = end;
		cause(a, &first, o->last_sent_ns);
		mark(a, o, seq, end, SENT_RETRANSMITTED);
	}
}

void track_duplicate(struct track_at *a) {
	struct track_rare *rare = track_rare(a, a->d);
	const struct seg *s = &a->p->seg;

	a->kind |= KIND_DUPLICATE;
	a->t->count.duplicates++;
	rare->duplicates++;
	rare->resent_duplicates += resent_has(&rare->resent,
		&(struct seg_sack){s->seq, s->seq + a->p->payload + ((s->flags & SEG_FIN) != 0)});
}

// A segment that begins below nxt. Returns whether its payload counts as sent.
static bool old_data(struct track_at *a, uint32_t seq, uint32_t end) {
	const struct track_snd *snd = &a->f->snd[a->d];
	struct track_dir *dir = &a->f->dir[a->d];
	struct track_rare *rare = track_rare(a, a->d);
	uint32_t low = ahead(seq, snd->una) < 0 ? snd->una : seq;
	struct old o = {.all_sacked = true};
	bool acked = ahead(end, snd->una) <= 0;

	if (end == seq)
		return false;
	if (!acked)
		o = find_sent(a, low, end);
	if (o.count == 1 && o.seen
		&& is_duplicate(a, sent_at(&a->t->pool, &dir->ring, o.first), seq, end)) {
		track_duplicate(a);
		return false;
	}
	if (o.count == 1 && o.unseen && o.first + 1 != dir->ring.tail
		&& reordered(a, sent_at(&a->t->pool, &dir->ring, o.first),
			sent_at(&a->t->pool, &dir->ring, o.first + 1))) {
		a->kind |= KIND_OUT_OF_ORDER;
		rare->out_of_order++;
		mark(a, &o, low, end, 0);
		return true;
	}
	retransmission(a, &o, seq, end, acked);
	return true;
}

// Segments close behind each other, and the longest time without any.
static inline void pace(struct track_at *a, struct track_dir *dir) {
	uint64_t gap_ns = time_since(a->now_ns, dir->last_data_ns);

	if (gap_ns < TRACK_BURST_GAP_NS && dir->burst > 0) {
		track_rare(a, a->d)->bursts += dir->burst == 1;
		dir->burst = (uint16_t)(dir->burst + (dir->burst < UINT16_MAX));
		if (dir->burst > dir->burst_max)
			dir->burst_max = dir->burst;
	} else {
		if (dir->burst > 0 && gap_ns > dir->gap_max_ns)
			dir->gap_max_ns = gap_ns;
		dir->burst = 1;
	}
	dir->last_data_ns = a->now_ns;
}

static void sent_data(struct track_at *a, struct track_dir *dir, uint32_t payload) {
	const struct track_snd *snd = &a->f->snd[a->d];
	uint32_t inflight = snd->nxt - snd->una;

	pace(a, dir);
	dir->sent.segs++;
	dir->sent.bytes += payload;
	if (inflight > dir->sent.inflight_max_bytes)
		dir->sent.inflight_max_bytes = inflight;
	if (payload > dir->mss)
		dir->mss = (uint16_t)(payload < UINT16_MAX ? payload : UINT16_MAX);
	dir->inflight_sum += inflight;
	// Of a segment that is cut up later the smaller pieces count.
	uint32_t mss =
		dir->mss_allowed > 0 && dir->mss_allowed < dir->mss ? dir->mss_allowed : dir->mss;
	if (unlikely(track_scale_known(a->f, !a->d) && snd->window != UINT32_MAX
		    && inflight + mss > snd->window))
		track_rare(a, a->d)->window_limited++;
	a->inflight = inflight;
}

static void first_packet(struct track_snd *snd, uint32_t seq) {
	snd->flags |= DIR_KNOWN;
	if ((snd->flags & DIR_ACKED) == 0)
		snd->una = seq;
	snd->nxt = ahead(seq, snd->una) < 0 ? snd->una : seq;
}

// The segment behind nxt, with what is missing before it.
static void new_data(struct track_at *a, struct track_snd *snd, uint32_t seq, uint32_t end) {
	bool fin = (a->p->seg.flags & SEG_FIN) != 0;

	if (unlikely(seq != snd->nxt)) {
		a->kind |= KIND_GAP;
		record(a, snd->nxt, seq, SENT_HOLE);
	}
	record(a, seq, end, fin ? SENT_FIN : 0);
	snd->nxt = end;
	if (unlikely((snd->flags & DIR_PROBED) != 0))
		snd->flags &= (uint16_t)~DIR_PROBED;
	if (unlikely(fin))
		snd->flags |= DIR_FIN;
}

// Does a packet of at most one byte ask for a sign of life, or a window, rather than carry data?
static bool probes(struct track_at *a, struct track_snd *snd, uint32_t seq, uint32_t end) {
	bool closed = (snd->flags & DIR_ZERO) != 0, all_acked = snd->una == snd->nxt;
	bool pushed = end != seq && (a->p->seg.flags & SEG_PSH) != 0; // the end of a write, again
	bool keep_alive = all_acked && seq == snd->nxt - 1 && ahead(end, snd->nxt) <= 0 && !pushed;
	bool next = closed && all_acked && seq == snd->nxt && end != seq;
	bool first = closed && !all_acked && seq == snd->una - (end == seq);

	if (!keep_alive && !next && !first)
		return false;
	if (next)
		snd->flags |= DIR_PROBED;
	a->kind |= KIND_KEEP_ALIVE;
	track_rare(a, a->d)->keep_alives++;
	return true;
}

void track_refused(struct track_at *a) {
	struct track_snd *sender = &a->f->snd[!a->d];

	sender->nxt = sender->una;
	sent_release(&a->t->pool, &a->f->dir[!a->d].ring);
}

void track_data(struct track_at *a) {
	struct track_snd *snd = &a->f->snd[a->d];
	struct track_dir *dir = &a->f->dir[a->d];
	const struct seg *s = &a->p->seg;
	bool syn = (s->flags & SEG_SYN) != 0, fin = (s->flags & SEG_FIN) != 0;
	uint32_t payload = a->p->payload, seq = s->seq + syn, end = seq + payload + fin;
	bool counts = true;

	if (unlikely((snd->flags & DIR_KNOWN) == 0))
		first_packet(snd, seq);
	int32_t off = ahead(seq, snd->nxt);
	if (unlikely(off > TRACK_SEQ_MAX || off < -TRACK_SEQ_MAX)) {
		track_rare(a, a->d)->out_of_window++;
		return;
	}
	if (unlikely(payload <= 1 && !fin && !syn && probes(a, snd, seq, end)))
		return;
	if (payload > 0) {
		if (unlikely((snd->flags & DIR_FLOW) == 0))
			track_new_flow(a, a->d);
		track_touch(a, a->d);
		if (unlikely((s->flags & SEG_CWR) != 0 && a->f->ecn == TRACK_ECN_CLASSIC
			    && (snd->flags & (DIR_RECOVERY | DIR_LOSS)) == 0))
			enter(a, DIR_RECOVERY, (uint32_t)ahead(snd->nxt, snd->una), 1);
	}
	if (likely(off >= 0)) {
		if (payload == 0 && !fin)
			return;
		new_data(a, snd, seq, end);
	} else {
		counts = old_data(a, seq, end);
		if (ahead(end, snd->nxt) > 0 && counts) // and new bytes behind the old ones
			new_data(a, snd, snd->nxt, end);
	}
	if (likely(payload > 0 && counts))
		sent_data(a, dir, payload);
}
