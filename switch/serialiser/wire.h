// SPDX-License-Identifier: BSD-3-Clause
// The wire behind a queue: a serialiser of constant rate, with its statistics.
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

struct wire {
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
struct wire_queue {
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
// was served to now_ns before; wire_resume after it starts a wire that is up again.
void wire_rate(struct wire *w, uint64_t now_ns, uint64_t rate_bps);
// The statistics up to now_ns.
struct stage_stats *wire_figures(struct wire *w, uint64_t now_ns);
// Takes up to `max` packets that were sent by now_ns; returns their number.
uint32_t wire_pop_out(struct wire *w, uint64_t now_ns, struct pkt **pkts, uint32_t max);
// Counts the packets just dropped by the queue. given_bytes: of frames given to the wire but not
// yet counted.
void wire_dropped(struct wire *w, uint64_t t_ns, uint64_t given_bytes, struct pkt_list *drops);

#define WIRE_LOOP static inline __attribute__((always_inline))

static inline bool wire_due(const struct wire *w, uint64_t now_ns) {
	return w->sending != NULL && serial_ns(w->free) <= now_ns;
}

// Bytes that p takes on the wire; also counts how much of that is padding.
WIRE_LOOP uint64_t wire_bytes(struct wire *w, struct wire_queue q, const struct pkt *p) {
	uint64_t bytes = p->size_bytes + w->framing.extra_bytes;

	if (q.padded) {
		uint64_t padded = framing_padded(&w->framing, bytes);

		w->stats.padding_bytes += padded - bytes;
		return padded;
	}
	return bytes;
}

// Frames given to the wire one after the other, counted after the last one. The compiler keeps this
// in registers as long as its address is not taken.
struct wire_burst {
	serial_u128 free;
	struct stats_burst sent;
	struct pkt_ring fifo; // a copy of the queue's ring from before the burst, if it has one
};

WIRE_LOOP struct wire_burst wire_begin(const struct wire *w, struct wire_queue q) {
	struct wire_burst b = {
		.free = w->free,
		.sent = stats_begin(&w->stats),
	};

	if (q.fifo != NULL) { // by members: as one, fresh stores would be waited for
		b.fifo.slot = q.fifo->slot;
		b.fifo.slots = q.fifo->slots;
		b.fifo.head = q.fifo->head;
		b.fifo.count = q.fifo->count;
	}
	return b;
}

WIRE_LOOP void wire_end(
	struct wire *w, struct wire_queue q, const struct wire_burst *b, struct pkt *sending) {
	w->free = b->free;
	w->sending = sending;
	stats_end(&w->stats, &b->sent);
	if (q.fifo != NULL)
		pkt_ring_skip(q.fifo, b->sent.pkts, b->sent.bytes);
}

WIRE_LOOP void wire_trace(struct wire *w, const struct wire_burst *b, const struct pkt *p,
	enum tel_packet_event event) {
	uint64_t left_bytes = w->stats.queue_bytes - b->sent.bytes - p->size_bytes;

	trace_packet(w->env, event, p, serial_ns(b->free), left_bytes);
}

// Dequeues the next frame for a free wire. NULL: there is none.
WIRE_LOOP struct pkt *wire_pick(
	struct wire *w, struct wire_queue q, struct wire_burst *b, struct pkt_list *drops) {
	uint64_t t_ns = serial_ns(b->free);
	struct pkt *p;

	if (q.fifo != NULL)
		return b->sent.pkts < b->fifo.count ? pkt_ring_at(&b->fifo, b->sent.pkts) : NULL;
	if (b->sent.pkts == w->stats.queue_pkts)
		return NULL;
	p = q.dequeue(q.q, t_ns, &w->fresh);
	if (unlikely(w->fresh.head != NULL))
		wire_dropped(w, t_ns, b->sent.bytes, drops);
	if (p != NULL && unlikely(p->flags & PKT_MARKED)) {
		p->flags &= (uint8_t)~PKT_MARKED;
		w->stats.count.marks++;
		if (q.traced)
			wire_trace(w, b, p, TEL_MARK);
	}
	return p;
}

WIRE_LOOP void wire_give(
	struct wire *w, struct wire_queue q, struct wire_burst *b, const struct pkt *p) {
	stats_sent(&w->stats, &b->sent, p, serial_ns(b->free));
	b->free = serial_end(b->free, wire_bytes(w, q, p), w->byte_ns);
}

WIRE_LOOP struct pkt *wire_next(
	struct wire *w, struct wire_queue q, struct wire_burst *b, struct pkt_list *drops) {
	struct pkt *p = wire_pick(w, q, b, drops);

	if (p == NULL)
		return NULL;
	if (q.traced)
		wire_trace(w, b, p, TEL_DEQUEUE);
	wire_give(w, q, b, p);
	return p;
}

// Sends frames due by now_ns; they wait in `out`.
WIRE_LOOP void wire_serve(
	struct wire *w, struct wire_queue q, uint64_t now_ns, struct pkt_list *drops) {
	if (!wire_due(w, now_ns))
		return;

	struct wire_burst b = wire_begin(w, q);
	struct pkt *p = w->sending;

	do {
		p->arrival_ns = serial_ns(b.free);
		if (unlikely(!pkt_ring_push(&w->out, p)))
			pkt_drop(drops, p, DROP_NO_MBUF);
		p = wire_next(w, q, &b, drops);
	} while (p != NULL && serial_ns(b.free) <= now_ns);
	wire_end(w, q, &b, p);
}

// Starts an idle wire when packets have arrived at t_ns.
WIRE_LOOP void wire_start(
	struct wire *w, struct wire_queue q, uint64_t t_ns, struct pkt_list *drops) {
	if (unlikely(w->down))
		return;

	struct wire_burst b = wire_begin(w, q);

	// The wire may already have been served beyond the packet's arrival.
	if (t_ns > serial_ns(b.free))
		b.free = serial_at(t_ns);

	struct pkt *p = wire_next(w, q, &b, drops);

	wire_end(w, q, &b, p);
}

// Starts a wire that has come up again before packets that waited.
WIRE_LOOP void wire_resume(struct wire *w, struct wire_queue q, struct pkt_list *drops) {
	if (unlikely(w->sending == NULL && w->stats.queue_pkts > 0))
		wire_start(w, q, w->stats.rate_since_ns, drops);
}

WIRE_LOOP void wire_take(
	struct wire *w, struct wire_queue q, struct pkt *p, struct pkt_list *drops) {
	uint64_t t_ns = p->arrival_ns;
	bool kept = true;

	wire_serve(w, q, t_ns, drops);
	stats_arrived(&w->stats, t_ns, 1, p->size_bytes);
	q.enqueue(q.q, p, t_ns, &w->fresh);
	if (unlikely(w->fresh.head != NULL)) {
		kept = w->fresh.tail != p;
		wire_dropped(w, t_ns, 0, drops);
	}
	if (q.traced && kept)
		stage_trace(w->env, TEL_ENQUEUE, p, t_ns, w->stats.queue_bytes);
	if (w->sending == NULL)
		wire_start(w, q, t_ns, drops);
	stats_longest(&w->stats);
}

// Packets that arrive at one moment while the wire is busy are only enqueued or dropped. False:
// another case; nothing was done.
WIRE_LOOP bool wire_wait(struct wire *w, struct wire_queue q, struct pkt *const *pkts, uint32_t n,
	struct pkt_list *drops) {
	uint64_t t_ns = pkts[0]->arrival_ns, bytes;

	if (q.enqueue_all == NULL || q.traced || pkts[n - 1]->arrival_ns != t_ns
		|| w->sending == NULL || wire_due(w, t_ns))
		return false;
	bytes = q.enqueue_all(q.q, pkts, n, &w->fresh);
	if (bytes == 0 && w->fresh.head == NULL)
		return false;
	stats_arrived(&w->stats, t_ns, n - w->fresh.count, bytes);
	stats_longest(&w->stats);
	w->stats.count.drops += w->fresh.count;
	pkt_list_join(drops, &w->fresh);
	return true;
}

// Packets of different queues are prefetched this far ahead: their queues, and what these point to.
#define WIRE_FETCH_QUEUE 16
#define WIRE_FETCH_TAIL 6

// aqm_ops.enqueue_burst.
WIRE_LOOP void wire_push(struct wire *w, struct wire_queue q, struct pkt *const *pkts, uint32_t n,
	struct pkt_list *drops) {
	wire_take(w, q, pkts[0], drops);
	if (n == 1 || wire_wait(w, q, pkts + 1, n - 1, drops))
		return;
	for (uint32_t i = 1; q.joins != NULL && i < n && i <= WIRE_FETCH_QUEUE; i++)
		prefetch_write(q.joins(q.q, pkts[i]));
	for (uint32_t i = 1; i < n; i++) {
		if (q.joins != NULL && i + WIRE_FETCH_QUEUE < n)
			prefetch_write(q.joins(q.q, pkts[i + WIRE_FETCH_QUEUE]));
		if (q.follows != NULL && i + WIRE_FETCH_TAIL < n)
			prefetch_write(q.follows(q.q, pkts[i + WIRE_FETCH_TAIL]));
		wire_take(w, q, pkts[i], drops);
	}
}

// wire_send for a queue with a ring, in which the number of waiting packets is known.
WIRE_LOOP uint32_t wire_send_fifo(
	struct wire *w, struct wire_queue q, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	struct pkt *p = w->sending;

	// The usual case below the wire's rate.
	if (q.fifo->count == 0) {
		p->arrival_ns = serial_ns(w->free);
		pkts[0] = p;
		w->sending = NULL;
		return 1;
	}

	struct wire_burst b = wire_begin(w, q);
	uint32_t end = b.fifo.count < max ? b.fifo.count : max;

	while (b.sent.pkts < end && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.sent.pkts] = p;
		p = pkt_ring_at(&b.fifo, b.sent.pkts);
		wire_give(w, q, &b, p);
	}
	if (b.sent.pkts < max && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.sent.pkts] = p;
		p = NULL;
	}
	wire_end(w, q, &b, p);
	return b.sent.pkts + (p == NULL);
}

// aqm_ops.dequeue_burst: the frame on the wire is due, and there is room for it: max is not 0.
WIRE_LOOP uint32_t wire_send(struct wire *w, struct wire_queue q, uint64_t now_ns,
	struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	if (q.fifo != NULL)
		return wire_send_fifo(w, q, now_ns, pkts, max);

	struct wire_burst b = wire_begin(w, q);
	struct pkt *p = w->sending;
	uint32_t n = 0;

	do {
		p->arrival_ns = serial_ns(b.free);
		pkts[n++] = p;
		p = wire_next(w, q, &b, drops);
	} while (p != NULL && n < max && serial_ns(b.free) <= now_ns);
	wire_end(w, q, &b, p);
	return n;
}
