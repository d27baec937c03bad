// SPDX-License-Identifier: BSD-3-Clause
// CAKE's order of service: new queues first, then hosts in turn, and the queues of each host in
// turn. cake.c has the rules; nothing here depends on COBALT or on how a packet finds its queue.
//
// A queue with packets is a bulk queue once it has used up the credits of its time as a new one. A
// host's load is the number of its bulk queues. In `triple` a bulk queue counts in the load of both
// its hosts, and is served as one of the busier's.
#pragma once
#include "switch/aqm/cobalt_law.h"
#include "switch/aqm/flow_queues.h"

#define CAKE_HOSTS 65536u // of one side

enum {
	ISOLATE_FLOWS,
	ISOLATE_HOSTS,
	ISOLATE_SRC,
	ISOLATE_DST,
	ISOLATE_DUAL_SRC,
	ISOLATE_DUAL_DST,
	ISOLATE_TRIPLE
};

// In a struct flow_queue:
//
//	source, destination   hosts, if these matter
//	bulk                  it counts in the loads of its hosts
//	by_destination        it is in the chain of its destination, if it is old, else of its
//	                      source
//	next                  the queue after it in that chain, unless it is the last one
//	later                 the queue that was put at the end of a chain CAKE_QUEUES_AHEAD queues
//	                      later. Queues are served in about that order, so it is the one to be
//	                      prefetched; nothing else depends on it.
//	signals               COBALT drops or marks, or did so lately: else its state is not read
//
// A FIFO of queues or of hosts, each of which has the next one's index. Indices are counted from 1
// on here; 0: none.
struct cake_chain {
	uint32_t first, last;
};

#define CAKE_WAYS 8u

// Eight queues in succession. Four sets are in a cache line: with many flows each line comes from
// memory.
struct cake_set {
	uint64_t tags; // a byte for each, which is the last one of its flow_id
	uint8_t used; // a bit for each: it is in a list, or about to be
	uint8_t shared; // by flows that are not its own
} __attribute__((aligned(16)));

struct cake_host {
	int64_t credits; // bytes
	struct cake_chain queues;
	uint32_t load; // bulk queues of this host
	uint32_t filed; // of these, in `queues`
	uint32_t next;
};

// How far ahead queues are prefetched, and how many queues later their oldest packets.
#define CAKE_QUEUES_AHEAD 24
#define CAKE_PACKETS_LATER 12

struct cake {
	struct flow_queues fq; // of the old list only its length: hosts have chains of their own
	struct cobalt_law law;
	int isolation, ack_filter, diffserv;
	uint64_t memory_limit; // bytes; 0: as Linux's
	struct cake_tins *tins; // of which this one is the first; NULL: there is no other

	uint64_t held_bytes; // memory of the packets inside, as Linux counts it
	const struct pkt_owner *owner;
	struct cake_set *set;
	struct cake_host *host; // sources, then destinations; one, if hosts do not matter
	struct cake_chain busy; // hosts with queues
	uint32_t bulk_queues, busy_hosts;
	uint16_t filed[CAKE_QUEUES_AHEAD]; // queues put at the end of a chain
	uint16_t fetched[CAKE_PACKETS_LATER]; // queues prefetched
	uint32_t files, fetches; // the numbers of both
	void *memory;
	size_t memory_bytes;
};

// Whether flows belong to hosts.
static inline bool cake_two_levels(const struct cake *c) {
	return c->isolation >= ISOLATE_DUAL_SRC;
}

static inline struct cake_host *cake_source(const struct cake *c, const struct flow_queue *q) {
	return &c->host[q->source];
}

static inline struct cake_host *cake_destination(const struct cake *c, const struct flow_queue *q) {
	return &c->host[CAKE_HOSTS + q->destination];
}

static inline struct cake_host *cake_host_of(const struct cake *c, const struct flow_queue *q) {
	return q->by_destination ? cake_destination(c, q) : cake_source(c, q);
}

// Whether the busier of a queue's hosts, as far as they matter, is its destination.
static inline bool cake_to_destination(const struct cake *c, const struct flow_queue *q) {
	if (c->isolation == ISOLATE_TRIPLE)
		return cake_source(c, q)->load < cake_destination(c, q)->load;
	return c->isolation == ISOLATE_DUAL_DST;
}

// The queue becomes a bulk queue of its hosts, or ceases to be one.
static inline void cake_set_bulk(struct cake *c, struct flow_queue *q, bool bulk) {
	uint32_t by = bulk ? 1 : UINT32_MAX;

	q->bulk = bulk;
	c->bulk_queues += by;
	cake_host_of(c, q)->filed += by;
	cake_source(c, q)->load += by;
	if (cake_two_levels(c))
		cake_destination(c, q)->load += by;
}

// Puts a host at the end of those with queues.
static inline void cake_host_append(struct cake *c, struct cake_host *h) {
	uint32_t index = (uint32_t)(h - c->host);

	h->next = 0;
	if (c->busy.first == 0)
		c->busy.first = index + 1;
	else
		c->host[c->busy.last - 1].next = index + 1;
	c->busy.last = index + 1;
}

// Puts a queue at the end of its host's.
static inline void cake_file(struct cake *c, struct flow_queue *q) {
	uint16_t index = (uint16_t)flow_queue_index(&c->fq, q);
	uint16_t *slot = &c->filed[c->files++ % CAKE_QUEUES_AHEAD];
	struct cake_host *h;

	c->fq.queue[*slot].later = index;
	*slot = index;
	q->by_destination = cake_to_destination(c, q);
	c->fq.list[FLOW_OLD].count++;
	h = cake_host_of(c, q);
	h->filed += q->bulk;
	if (h->queues.first == 0) {
		h->queues.first = index + 1u;
		cake_host_append(c, h);
		c->busy_hosts++;
	} else {
		c->fq.queue[h->queues.last - 1].next = index;
	}
	h->queues.last = index + 1u;
}

// Prefetches a queue, and what else the service of an earlier one needs.
static inline void cake_fetch(struct cake *c, uint16_t index) {
	uint16_t *slot = &c->fetched[c->fetches++ % CAKE_PACKETS_LATER];
	const struct flow_queue *earlier = &c->fq.queue[*slot];

	prefetch_write(&c->fq.queue[index]);
	if (earlier->signals)
		prefetch_write(flow_queue_state(&c->fq, earlier));
	if (earlier->pkts.head != NULL)
		prefetch_write(earlier->pkts.head);
	*slot = index;
}

static inline bool cake_is_last(
	const struct cake *c, const struct cake_host *h, const struct flow_queue *q) {
	return h->queues.last == flow_queue_index(&c->fq, q) + 1;
}

// Takes the queue off its host's chain, of which it is the first.
static inline void cake_unfile(struct cake *c, struct flow_queue *q) {
	struct cake_host *h = cake_host_of(c, q);

	h->filed -= q->bulk;
	c->fq.list[FLOW_OLD].count--;
	h->queues.first = cake_is_last(c, h, q) ? 0 : q->next + 1u;
	cake_fetch(c, q->later);
}

// The first host leaves if it has no queue; it keeps its debts.
static inline void cake_host_leaves(struct cake *c, struct cake_host *h) {
	if (h->queues.first != 0)
		return;
	c->busy.first = h->next;
	c->busy_hosts--;
	if (h->credits > 0)
		h->credits = 0;
}

// A new queue becomes an old one of its host; without packets only for its next turn.
static inline void cake_make_old(struct cake *c, struct flow_queue *q) {
	flow_queues_retire(&c->fq, q);
	q->list = FLOW_OLD;
	cake_file(c, q);
	if (q->pkts.count > 0)
		cake_set_bulk(c, q, true);
}

// The turn of the first host is over.
static inline void cake_rotate_hosts(struct cake *c, struct cake_host *h) {
	uint64_t quantum = c->fq.quantum_bytes;

	if (unlikely(h->filed > 0 && h->filed < h->load))
		quantum = time_max(quantum * h->filed / h->load, 1);
	h->credits += (int64_t)quantum;
	if (h->next == 0)
		return;
	c->busy.first = h->next;
	cake_host_append(c, h);
}

// The turn of the first host's first queue is over.
static inline void cake_rotate_queues(struct cake *c, struct cake_host *h, struct flow_queue *q) {
	q->credits += (int32_t)c->fq.quantum_bytes;
	if (cake_is_last(c, h, q) && cake_to_destination(c, q) == q->by_destination)
		return;
	cake_unfile(c, q);
	cake_file(c, q);
	cake_host_leaves(c, h);
}

// The queue to be served; NULL: there is no packet.
static inline struct flow_queue *cake_next(struct cake *c) {
	struct flow_queue *q;

	while ((q = flow_queues_first(&c->fq, FLOW_NEW)) != NULL) {
		if (q->credits > 0)
			return q;
		q->credits += (int32_t)c->fq.quantum_bytes;
		cake_make_old(c, q);
	}
	while (c->busy.first != 0) {
		struct cake_host *h = &c->host[c->busy.first - 1];

		if (h->credits <= 0 && cake_two_levels(c)) {
			cake_rotate_hosts(c, h);
			continue;
		}
		q = &c->fq.queue[h->queues.first - 1];
		if (q->credits > 0)
			return q;
		cake_rotate_queues(c, h, q);
	}
	return NULL;
}

// The queue to be served has no packet.
static inline void cake_empty(struct cake *c, struct flow_queue *q) {
	uint32_t index = flow_queue_index(&c->fq, q);
	struct cake_set *set = &c->set[index / CAKE_WAYS];
	uint8_t others = (uint8_t) ~(1u << index % CAKE_WAYS);

	if (q->list == FLOW_NEW) {
		cake_make_old(c, q);
		return;
	}
	if (q->bulk)
		cake_set_bulk(c, q, false);
	cake_unfile(c, q);
	cake_host_leaves(c, cake_host_of(c, q));
	q->list = FLOW_NONE;
	set->used &= others;
	set->shared &= others;
}

// A queue in no list gets its first packet's hosts, and less credits the more old ones these have.
static inline void cake_wake(struct cake *c, struct flow_queue *q, const struct pkt *p) {
	uint32_t hosts, load;

	if (!cake_two_levels(c))
		return;
	hosts = pkt_hosts(c->owner, p);
	q->source = (uint16_t)(hosts >> 16);
	q->destination = (uint16_t)hosts;
	q->by_destination = cake_to_destination(c, q);
	load = cake_host_of(c, q)->load;
	if (load > 1)
		q->credits = (int32_t)time_max(c->fq.quantum_bytes / load, 1);
}
