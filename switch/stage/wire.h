// SPDX-License-Identifier: BSD-3-Clause
// The wire behind a queue: a serialiser of constant rate and what it counts.
//
// The queue gives up a packet at the moment the wire becomes free, and sees that moment, however late the loop
// runs. A departure at the time of an arrival comes first. The queue does not hold the frame on the wire.
//
// The loops below are compiled into whoever calls them, with the queue's two functions inlined where these are
// constants: see aqm/bursts.h.
#pragma once
#include "common/base/pkt_ring.h"
#include "switch/stage/serial.h"
#include "switch/stage/stage.h"
#include "switch/stage/stats.h"
#include "switch/stage/tell.h"

struct wire {
	serial_u128 free; // end of the frame on it, or of the last one
	uint64_t byte_ns; // per byte, in 2^-40 ns
	uint64_t extra_bytes; // per frame besides its size: overhead - FCS, modulo 2^64
	struct pkt *sending; // the frame on it; NULL: idle
	struct pkt_ring out; // sent, not yet taken
	struct pkt_list fresh; // dropped by the queue, not yet counted; empty between calls
	const struct stage_env *env;
	struct stage_stats stats;
};

// A queue as the loops see it: a discipline's own operations.
struct wire_queue {
	void *q;
	void (*enqueue)(void *q, struct pkt *p, uint64_t now_ns, struct pkt_list *drops);
	struct pkt *(*dequeue)(void *q, uint64_t now_ns, struct pkt_list *drops);
	// Takes what came at one moment and says how many bytes of it are now inside; the rest, and
	// nothing else, is dropped. 0, and nothing dropped: took nothing. NULL, or so: one by one, as what is
	// recorded.
	uint64_t (*enqueue_all)(
		void *q, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops);
	// What dequeue does at any moment is to take the oldest of this. NULL: it decides something.
	struct pkt_ring *fifo;
	bool traced; // each packet is recorded
};

// From now_ns on its rate is another: the unsent part of the frame on it goes at it. Also sets the first.
void wire_rate(struct wire *w, uint64_t now_ns, uint64_t rate_bps);
// Its figures up to now_ns.
struct stage_stats *wire_figures(struct wire *w, uint64_t now_ns);
// What was sent before now_ns and not yet taken.
uint32_t wire_pop_out(struct wire *w, uint64_t now_ns, struct pkt **pkts, uint32_t max);
// Counts what the queue has just dropped. given_bytes: of frames given to the wire and not yet counted.
void wire_dropped(struct wire *w, uint64_t t_ns, uint64_t given_bytes, struct pkt_list *drops);

#define WIRE_LOOP static inline __attribute__((always_inline))

static inline bool wire_due(const struct wire *w, uint64_t now_ns) {
	return w->sending != NULL && serial_ns(w->free) <= now_ns;
}

// Frames given to the wire one after the other, which are counted after the last of them. The
// compiler keeps this in registers, if nothing is given its address.
struct wire_burst {
	serial_u128 free;
	struct stats_burst sent;
	struct pkt_ring fifo; // if there is one: as it was before them
};

WIRE_LOOP struct wire_burst wire_begin(const struct wire *w, struct wire_queue q) {
	struct wire_burst b = {
		.free = w->free,
		.sent = stats_begin(&w->stats),
	};

	if (q.fifo != NULL)
		b.fifo = *q.fifo;
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

	tell(w->env, event, p, serial_ns(b->free), left_bytes);
}

// The wire is free: the queue picks the next frame. NULL: there is none.
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
		w->stats.marks++;
		if (q.traced)
			wire_trace(w, b, p, TEL_MARK);
	}
	return p;
}

WIRE_LOOP void wire_give(struct wire *w, struct wire_burst *b, const struct pkt *p) {
	stats_sent(&w->stats, &b->sent, p, serial_ns(b->free));
	b->free = serial_end(b->free, p->size_bytes + w->extra_bytes, w->byte_ns);
}

WIRE_LOOP struct pkt *wire_next(
	struct wire *w, struct wire_queue q, struct wire_burst *b, struct pkt_list *drops) {
	struct pkt *p = wire_pick(w, q, b, drops);

	if (p == NULL)
		return NULL;
	if (q.traced)
		wire_trace(w, b, p, TEL_DEQUEUE);
	wire_give(w, b, p);
	return p;
}

// What is due by now_ns is sent and waits in `out`.
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

// The wire is idle and something came at t_ns.
WIRE_LOOP void wire_start(
	struct wire *w, struct wire_queue q, uint64_t t_ns, struct pkt_list *drops) {
	struct wire_burst b = wire_begin(w, q);

	// A packet may come in after the wire was served beyond its arrival.
	if (t_ns > serial_ns(b.free))
		b.free = serial_at(t_ns);

	struct pkt *p = wire_next(w, q, &b, drops);

	wire_end(w, q, &b, p);
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
		stage_tell(w->env, TEL_ENQUEUE, p, t_ns, w->stats.queue_bytes);
	if (w->sending == NULL)
		wire_start(w, q, t_ns, drops);
	stats_longest(&w->stats);
}

// What comes at one moment while the wire is busy only adds up, or is dropped. False: it is not so.
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
	w->stats.drops += w->fresh.count;
	pkt_list_join(drops, &w->fresh);
	return true;
}

// aqm_ops.enqueue_burst.
WIRE_LOOP void wire_push(struct wire *w, struct wire_queue q, struct pkt *const *pkts, uint32_t n,
	struct pkt_list *drops) {
	wire_take(w, q, pkts[0], drops);
	if (n == 1 || wire_wait(w, q, pkts + 1, n - 1, drops))
		return;
	for (uint32_t i = 1; i < n; i++)
		wire_take(w, q, pkts[i], drops);
}

// The same as wire_send: how many wait is known.
WIRE_LOOP uint32_t wire_send_fifo(
	struct wire *w, struct wire_queue q, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	struct wire_burst b = wire_begin(w, q);
	struct pkt *p = w->sending;
	uint32_t end = b.fifo.count < max ? b.fifo.count : max;

	while (b.sent.pkts < end && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.sent.pkts] = p;
		p = pkt_ring_at(&b.fifo, b.sent.pkts);
		wire_give(w, &b, p);
	}
	if (b.sent.pkts < max && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.sent.pkts] = p;
		p = NULL;
	}
	wire_end(w, q, &b, p);
	return b.sent.pkts + (p == NULL);
}

// aqm_ops.dequeue_burst: the frame on the wire is due.
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
