// SPDX-License-Identifier: BSD-3-Clause
// The serialiser behind a queue: it puts one frame after the other on a wire of constant rate, with
// the statistics of both.
//
// A packet is dequeued at the moment the wire becomes free, and the discipline gets that time,
// however late the loop runs. A departure precedes an arrival at the same time. The frame on the
// wire is not in the queue.
//
// The loops below are inlined into their callers, together with the queue's two functions if these
// are constants (aqm/bursts.h).
#pragma once
#include "common/base/pkt_ring.h"
#include "switch/serialiser/framing.h"
#include "switch/serialiser/serial.h"
#include "switch/serialiser/stats.h"
#include "switch/serialiser/trace.h"
#include "switch/stage.h"

struct serialiser {
	serial_u128 free; // end of the present or the last frame
	uint64_t byte_ns; // per byte, in 2^-40 ns
	struct framing framing; // what a frame takes on it
	struct pkt *sending; // the frame on the wire; NULL: idle, or the wire is down
	struct pkt *halted; // while the wire is down: the frame that was on it, NULL: none
	serial_u128 unsent; // the rest of that frame, as time at byte_ns
	bool down; // its rate is 0
	struct pkt_ring out; // sent, not yet taken
	struct pkt_list fresh; // drops of the queue, not yet counted; empty between calls
	const struct stage_env *env;
	struct stage_stats stats;
};

// The queue's operations, as used by the loops.
struct serialiser_queue {
	void *q;
	void (*enqueue)(void *q, struct pkt *p, uint64_t now_ns, struct pkt_list *drops);
	struct pkt *(*dequeue)(void *q, uint64_t now_ns, struct pkt_list *drops);
	// Enqueues packets that arrived at one moment and drops those that do not fit; returns the
	// bytes enqueued. 0 without a drop: none was taken. Then, or if this is NULL, packets are
	// enqueued one by one, as are recorded ones.
	uint64_t (*enqueue_all)(
		void *q, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops);
	// What enqueue will write for a packet, so that it can be prefetched: the queue that it
	// joins, and the packet before it there. NULL: always the same.
	void *(*joins)(const void *q, const struct pkt *p);
	void *(*follows)(const void *q, const struct pkt *p);
	// Set if dequeue only takes the oldest packet of this ring. NULL: dequeue does more.
	struct pkt_ring *fifo;
	bool traced; // each packet is recorded
	bool padded; // as the wire's framing
};

// Sets the rate from now_ns on, also for the unsent part of the present frame. Also sets the
// initial rate. At rate 0 the wire is down: the frame on it waits, and so does the queue. The wire
// was served to now_ns before; serialiser_resume after it starts a wire that is up again.
void serialiser_rate(struct serialiser *s, uint64_t now_ns, uint64_t rate_bps);
// The statistics up to now_ns.
struct stage_stats *serialiser_figures(struct serialiser *s, uint64_t now_ns);
// Takes up to `max` packets that were sent by now_ns; returns their number.
uint32_t serialiser_pop_out(struct serialiser *s, uint64_t now_ns, struct pkt **pkts, uint32_t max);
// Puts packets behind others that keep the wire busy until the last of them has come, and that are
// not sent now: while `enqueue` finds room for all, only the longest queue depends on when they
// are. False: that may be longer than ever, or it is another case; nothing was done.
bool serialiser_defer(struct serialiser *s, void *q,
	bool (*enqueue)(void *q, struct pkt *const *pkts, uint32_t n), struct pkt *const *pkts,
	uint32_t n);
// Counts the packets just dropped by the queue. given_bytes: of frames given to the wire but not
// yet counted.
void serialiser_dropped(
	struct serialiser *s, uint64_t t_ns, uint64_t given_bytes, struct pkt_list *drops);

#define SERIALISER_LOOP static inline __attribute__((always_inline))

static inline bool serialiser_due(const struct serialiser *s, uint64_t now_ns) {
	return s->sending != NULL && serial_ns(s->free) <= now_ns;
}

// Bytes that p takes on the wire; also counts how much of that is padding.
SERIALISER_LOOP uint64_t serialiser_bytes(
	struct serialiser *s, struct serialiser_queue q, const struct pkt *p) {
	uint64_t bytes = p->size_bytes + s->framing.extra_bytes;

	if (q.padded) {
		uint64_t padded = framing_padded(&s->framing, bytes);

		s->stats.padding_bytes += padded - bytes;
		return padded;
	}
	return bytes;
}

// Frames given to the wire one after the other, counted after the last one. The compiler keeps this
// in registers as long as its address is not taken.
struct serialiser_burst {
	serial_u128 free;
	struct stats_burst sent;
	struct pkt_ring fifo; // a copy of the queue's ring from before the burst, if it has one
};

SERIALISER_LOOP struct serialiser_burst serialiser_begin(
	const struct serialiser *s, struct serialiser_queue q) {
	struct serialiser_burst b = {
		.free = s->free,
		.sent = stats_begin(&s->stats),
	};

	if (q.fifo != NULL) { // by members: as one, fresh stores would be waited for
		b.fifo.slot = q.fifo->slot;
		b.fifo.slots = q.fifo->slots;
		b.fifo.head = q.fifo->head;
		b.fifo.count = q.fifo->count;
	}
	return b;
}

SERIALISER_LOOP void serialiser_end(struct serialiser *s, struct serialiser_queue q,
	const struct serialiser_burst *b, struct pkt *sending) {
	s->free = b->free;
	s->sending = sending;
	stats_end(&s->stats, &b->sent);
	if (q.fifo != NULL)
		pkt_ring_skip(q.fifo, b->sent.pkts, b->sent.bytes);
}

SERIALISER_LOOP void serialiser_trace(struct serialiser *s, const struct serialiser_burst *b,
	const struct pkt *p, enum tel_packet_event event) {
	uint64_t left_bytes = s->stats.queue_bytes - b->sent.bytes - p->size_bytes;

	trace_packet(s->env, event, p, serial_ns(b->free), left_bytes);
}

// Dequeues the next frame for a free wire. NULL: there is none.
SERIALISER_LOOP struct pkt *serialiser_pick(struct serialiser *s, struct serialiser_queue q,
	struct serialiser_burst *b, struct pkt_list *drops) {
	uint64_t t_ns = serial_ns(b->free);
	struct pkt *p;

	if (q.fifo != NULL)
		return b->sent.pkts < b->fifo.count ? pkt_ring_at(&b->fifo, b->sent.pkts) : NULL;
	if (b->sent.pkts == s->stats.queue_pkts)
		return NULL;
	p = q.dequeue(q.q, t_ns, &s->fresh);
	if (unlikely(s->fresh.head != NULL))
		serialiser_dropped(s, t_ns, b->sent.bytes, drops);
	if (p != NULL && unlikely(p->flags & PKT_MARKED)) {
		p->flags &= (uint8_t)~PKT_MARKED;
		s->stats.count.marks++;
		if (q.traced)
			serialiser_trace(s, b, p, TEL_MARK);
	}
	return p;
}

SERIALISER_LOOP void serialiser_give(struct serialiser *s, struct serialiser_queue q,
	struct serialiser_burst *b, const struct pkt *p) {
	stats_sent(&s->stats, &b->sent, p, serial_ns(b->free));
	b->free = serial_end(b->free, serialiser_bytes(s, q, p), s->byte_ns);
}

SERIALISER_LOOP struct pkt *serialiser_next(struct serialiser *s, struct serialiser_queue q,
	struct serialiser_burst *b, struct pkt_list *drops) {
	struct pkt *p = serialiser_pick(s, q, b, drops);

	if (p == NULL)
		return NULL;
	if (q.traced)
		serialiser_trace(s, b, p, TEL_DEQUEUE);
	serialiser_give(s, q, b, p);
	return p;
}

// Sends frames due by now_ns; they wait in `out`.
SERIALISER_LOOP void serialiser_serve(
	struct serialiser *s, struct serialiser_queue q, uint64_t now_ns, struct pkt_list *drops) {
	if (!serialiser_due(s, now_ns))
		return;

	struct serialiser_burst b = serialiser_begin(s, q);
	struct pkt *p = s->sending;

	do {
		p->arrival_ns = serial_ns(b.free);
		if (unlikely(!pkt_ring_push(&s->out, p)))
			pkt_drop(drops, p, DROP_NO_MBUF);
		p = serialiser_next(s, q, &b, drops);
	} while (p != NULL && serial_ns(b.free) <= now_ns);
	serialiser_end(s, q, &b, p);
}

// Starts an idle wire when packets have arrived at t_ns.
SERIALISER_LOOP void serialiser_start(
	struct serialiser *s, struct serialiser_queue q, uint64_t t_ns, struct pkt_list *drops) {
	if (unlikely(s->down))
		return;

	struct serialiser_burst b = serialiser_begin(s, q);

	// The wire may already have been served beyond the packet's arrival.
	if (t_ns > serial_ns(b.free))
		b.free = serial_at(t_ns);

	struct pkt *p = serialiser_next(s, q, &b, drops);

	serialiser_end(s, q, &b, p);
}

// Starts a wire that has come up again before packets that waited.
SERIALISER_LOOP void serialiser_resume(
	struct serialiser *s, struct serialiser_queue q, struct pkt_list *drops) {
	if (unlikely(s->sending == NULL && s->stats.queue_pkts > 0))
		serialiser_start(s, q, s->stats.rate_since_ns, drops);
}

SERIALISER_LOOP void serialiser_take(
	struct serialiser *s, struct serialiser_queue q, struct pkt *p, struct pkt_list *drops) {
	uint64_t t_ns = p->arrival_ns;
	bool kept = true;

	serialiser_serve(s, q, t_ns, drops);
	stats_arrived(&s->stats, t_ns, 1, p->size_bytes);
	q.enqueue(q.q, p, t_ns, &s->fresh);
	if (unlikely(s->fresh.head != NULL)) {
		kept = s->fresh.tail != p;
		serialiser_dropped(s, t_ns, 0, drops);
	}
	if (q.traced && kept)
		stage_trace(s->env, TEL_ENQUEUE, p, t_ns, s->stats.queue_bytes);
	if (s->sending == NULL)
		serialiser_start(s, q, t_ns, drops);
	stats_longest(&s->stats);
}

// Packets that arrive at one moment while the wire is busy are only enqueued or dropped. False:
// another case; nothing was done.
SERIALISER_LOOP bool serialiser_wait(struct serialiser *s, struct serialiser_queue q,
	struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	uint64_t t_ns = pkts[0]->arrival_ns, bytes;

	if (q.enqueue_all == NULL || q.traced || pkts[n - 1]->arrival_ns != t_ns
		|| s->sending == NULL || serialiser_due(s, t_ns))
		return false;
	bytes = q.enqueue_all(q.q, pkts, n, &s->fresh);
	if (bytes == 0 && s->fresh.head == NULL)
		return false;
	stats_arrived(&s->stats, t_ns, n - s->fresh.count, bytes);
	stats_longest(&s->stats);
	s->stats.count.drops += s->fresh.count;
	pkt_list_join(drops, &s->fresh);
	return true;
}

// Packets of different queues are prefetched this far ahead: their queues, and what these point to.
#define SERIALISER_FETCH_QUEUE 16
#define SERIALISER_FETCH_TAIL 6

// aqm_ops.enqueue_burst.
SERIALISER_LOOP void serialiser_push(struct serialiser *s, struct serialiser_queue q,
	struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	serialiser_take(s, q, pkts[0], drops);
	if (n == 1 || serialiser_wait(s, q, pkts + 1, n - 1, drops))
		return;
	for (uint32_t i = 1; q.joins != NULL && i < n && i <= SERIALISER_FETCH_QUEUE; i++)
		prefetch_write(q.joins(q.q, pkts[i]));
	for (uint32_t i = 1; i < n; i++) {
		if (q.joins != NULL && i + SERIALISER_FETCH_QUEUE < n)
			prefetch_write(q.joins(q.q, pkts[i + SERIALISER_FETCH_QUEUE]));
		if (q.follows != NULL && i + SERIALISER_FETCH_TAIL < n)
			prefetch_write(q.follows(q.q, pkts[i + SERIALISER_FETCH_TAIL]));
		serialiser_take(s, q, pkts[i], drops);
	}
}

// serialiser_send for a queue with a ring, in which the number of waiting packets is known.
SERIALISER_LOOP uint32_t serialiser_send_fifo(struct serialiser *s, struct serialiser_queue q,
	uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	struct pkt *p = s->sending;

	// The usual case below the wire's rate.
	if (q.fifo->count == 0) {
		p->arrival_ns = serial_ns(s->free);
		pkts[0] = p;
		s->sending = NULL;
		return 1;
	}

	struct serialiser_burst b = serialiser_begin(s, q);
	uint32_t end = b.fifo.count < max ? b.fifo.count : max;

	while (b.sent.pkts < end && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.sent.pkts] = p;
		p = pkt_ring_at(&b.fifo, b.sent.pkts);
		serialiser_give(s, q, &b, p);
	}
	if (b.sent.pkts < max && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.sent.pkts] = p;
		p = NULL;
	}
	serialiser_end(s, q, &b, p);
	return b.sent.pkts + (p == NULL);
}

// aqm_ops.dequeue_burst: the frame on the wire is due, and there is room for it: max is not 0.
SERIALISER_LOOP uint32_t serialiser_send(struct serialiser *s, struct serialiser_queue q,
	uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	if (q.fifo != NULL)
		return serialiser_send_fifo(s, q, now_ns, pkts, max);

	struct serialiser_burst b = serialiser_begin(s, q);
	struct pkt *p = s->sending;
	uint32_t n = 0;

	do {
		p->arrival_ns = serial_ns(b.free);
		pkts[n++] = p;
		p = serialiser_next(s, q, &b, drops);
	} while (p != NULL && n < max && serial_ns(b.free) <= now_ns);
	serialiser_end(s, q, &b, p);
	return n;
}
