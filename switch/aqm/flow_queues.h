// SPDX-License-Identifier: BSD-3-Clause
// Many queues behind one link, for disciplines that serve flows in turn: which queue a packet
// joins, the lists of queues to be served, the fattest queue. A discipline has one struct
// flow_queues, filled by FLOW_QUEUES_PARAMS and flow_queues_init.
//
// A packet joins the queue hash(flow_id, seed) * buckets / 2^32. Flows with the same result share a
// queue; another seed lets others share. (With 5000 flows in 65536 queues 7 % of them share; in
// Linux's 1024 queues all do.) Live, flow_id is computed from the 5-tuple once per packet, if a
// discipline has aqm_ops.flows.
//
// All queues together have one limit. When a packet exceeds it, the queue with the most bytes loses
// half of its packets from its head, up to the discipline's batch (RFC 8290, section 4.1). RFC 8290
// searches all queues for it. Here a heap is ordered by a bound of each queue's bytes, which is
// raised with them but lowered only when the queue is found at the root: a queue whose bound is
// exact there is the fattest. So a packet that does not exceed its queue's bound, as most do not,
// costs a comparison, and an overflow O(log buckets) per packet dequeued before it.
#pragma once
#include "common/base/rng.h"
#include "switch/aqm.h"

#define FLOW_QUEUES_MAX 65536 // a heap's key and the lists have 16 bits for a queue's index
#define FLOW_QUEUES_BURST 64 // packets that join together

enum flow_list { FLOW_NONE, FLOW_NEW, FLOW_OLD, FLOW_LISTS };

struct flow_queue {
	struct pkt_list pkts;
	uint64_t bound_bytes; // at least pkts.bytes; its key in the heap
	int32_t credits; // bytes
	// Of the packet that joined last; cake: the flow or host that it is used for, or was.
	uint32_t flow_id;
	uint8_t list; // enum flow_list
	// Of cake only; cake_hosts.h has their meaning. Here they cost no cache line of their own.
	bool bulk, by_destination, signals;
	uint16_t source, destination, next, later;
} __attribute__((aligned(64)));
static_assert(sizeof(struct flow_queue) == 64, "one cache line");

// A FIFO of queues' indices, with room for all. (In a linked list the queue after the next could
// not be prefetched.)
struct flow_ring {
	uint16_t *slot;
	uint32_t mask, head, count;
};

struct flow_queues {
	// Parameters.
	struct limit limit;
	uint64_t quantum_bytes;
	uint64_t buckets;

	struct aqm_limit max;
	uint64_t seed;
	struct flow_queue *queue;
	uint8_t *state; // the discipline's, one per queue, zeroed
	size_t state_bytes;
	struct flow_ring list[FLOW_LISTS]; // but FLOW_NONE
	uint64_t *heap; // bound << 16 | index; from 1 on
	uint32_t *place; // of each queue in the heap; 0: no packet has joined it
	uint32_t heaped;
	struct backlog all;
	uint64_t collided; // packets that joined a queue after a packet of another flow
	bool shed; // packets exceeded the limit; the hash decides between two fattest queues
	void *memory;
	size_t memory_bytes;
};

// The lines of a discipline's table for its `struct flow_queues fq`.
#define FLOW_QUEUES_PARAMS(type)                                                                   \
	{"limit", "10240pkt", "of all queues together, without the frame on the wire", UNIT_NONE,  \
		PARAM_LIMIT(type, fq.limit), 1e-6, 1e15},                                          \
		{"quantum", "1518B",                                                               \
			"that each queue may send before the next one; a full-sized frame with "   \
			"FCS",                                                                     \
			UNIT_BYTES, PARAM_U64(type, fq.quantum_bytes), 64, 1e6},                   \
	{                                                                                          \
		"buckets", "65536", "queues, over which a hash spreads the flows", UNIT_NONE,      \
			PARAM_U64(type, fq.buckets), 1, FLOW_QUEUES_MAX                            \
	}

// state_bytes: of the discipline's state of a queue.
int flow_queues_init(
	struct flow_queues *fq, size_t state_bytes, const struct aqm_env *env, struct err *err);
void flow_queues_fini(void *self);
// Moves the queue up in the heap, to which the first packet of a queue adds it: its bytes exceed
// its bound.
void flow_queues_raise(struct flow_queues *fq, struct flow_queue *q);
// The queue with the most bytes. There must be a packet.
struct flow_queue *flow_queues_fattest(struct flow_queues *fq);
// Drops packets from the heads of the fattest queues until the limit holds, up to `batch` of a
// queue at once.
void flow_queues_shed(struct flow_queues *fq, uint32_t batch, struct pkt_list *drops);

static inline uint32_t flow_queues_index(const struct flow_queues *fq, uint32_t flow_id) {
	uint64_t hash = rng_mix(fq->seed ^ flow_id) >> 32;

	return (uint32_t)(hash * fq->buckets >> 32);
}

static inline void flow_ring_push(struct flow_ring *r, uint32_t index) {
	r->slot[(r->head + r->count++) & r->mask] = (uint16_t)index;
}

// The i-th index from the head on; beyond the last one, some index.
static inline uint32_t flow_ring_at(const struct flow_ring *r, uint32_t i) {
	return r->slot[(r->head + i) & r->mask];
}

static inline uint32_t flow_queue_index(const struct flow_queues *fq, const struct flow_queue *q) {
	return (uint32_t)(q - fq->queue);
}

static inline bool flow_queues_fit(const struct flow_queues *fq, uint32_t pkts, uint64_t bytes) {
	uint64_t count = fq->all.pkts + pkts;

	return count <= fq->max.pkts
		&& fq->all.bytes + bytes + count * fq->max.overhead_bytes <= fq->max.bytes;
}

// The discipline's state of a queue.
static inline void *flow_queue_state(const struct flow_queues *fq, const struct flow_queue *q) {
	return fq->state + flow_queue_index(fq, q) * fq->state_bytes;
}

// Operations of a discipline whose first member is its struct flow_queues.
static inline struct backlog flow_queues_backlog(const void *self) {
	const struct flow_queues *fq = self;

	return fq->all;
}

static inline struct aqm_limit flow_queues_limit(const void *self) {
	const struct flow_queues *fq = self;

	return fq->max;
}

static inline void *flow_queues_joins(const void *self, const struct pkt *p) {
	const struct flow_queues *fq = self;

	return &fq->queue[flow_queues_index(fq, p->flow_id)];
}

static inline void *flow_queues_follows(const void *self, const struct pkt *p) {
	const struct flow_queues *fq = self;
	struct flow_queue *q = &fq->queue[flow_queues_index(fq, p->flow_id)];

	return q->pkts.head != NULL ? (void *)q->pkts.tail : q;
}

// How far ahead in a list queues are prefetched, then their oldest packets, and the packets after
// these: each may come from memory, and what it points to is only known when it is there.
#define FLOW_QUEUES_AHEAD 32
#define FLOW_PACKETS_AHEAD 16
#define FLOW_SECONDS_AHEAD 4

// Appends p to the queue. A queue that is in no list joins `list` with a quantum of credits.
static inline void flow_queues_append(
	struct flow_queues *fq, uint32_t index, struct pkt *p, enum flow_list list) {
	struct flow_queue *q = &fq->queue[index];

	pkt_list_push(&q->pkts, p);
	fq->all.pkts++;
	fq->all.bytes += p->size_bytes;
	if (unlikely(q->pkts.bytes > q->bound_bytes))
		flow_queues_raise(fq, q);
	if (q->list == FLOW_NONE) {
		q->list = (uint8_t)list;
		q->credits = (int32_t)fq->quantum_bytes;
		// Else flow_queues_retire prefetches it.
		if (fq->list[list].count <= FLOW_QUEUES_AHEAD)
			prefetch_write(flow_queue_state(fq, q));
		flow_ring_push(&fq->list[list], index);
	}
}

// The same; counts packets of another flow than the one before.
static inline void flow_queues_join(
	struct flow_queues *fq, uint32_t index, struct pkt *p, enum flow_list list) {
	struct flow_queue *q = &fq->queue[index];

	fq->collided += q->flow_id != p->flow_id && q->bound_bytes > 0;
	q->flow_id = p->flow_id;
	flow_queues_append(fq, index, p, list);
}

static inline void flow_queues_put(struct flow_queues *fq, struct pkt *p, enum flow_list list) {
	flow_queues_join(fq, flow_queues_index(fq, p->flow_id), p, list);
}

// The same for packets that arrived at one moment, if all of them fit; returns their bytes. 0: none
// joined.
static inline uint64_t flow_queues_put_all(
	struct flow_queues *fq, struct pkt *const *pkts, uint32_t n, enum flow_list list) {
	uint32_t index[FLOW_QUEUES_BURST];
	uint64_t bytes = 0;

	if (unlikely(n > FLOW_QUEUES_BURST))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		index[i] = flow_queues_index(fq, pkts[i]->flow_id);
		prefetch_write(&fq->queue[index[i]]);
		bytes += pkts[i]->size_bytes;
	}
	if (unlikely(!flow_queues_fit(fq, n, bytes)))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		if (fq->queue[index[i]].pkts.head != NULL)
			prefetch_write(fq->queue[index[i]].pkts.tail);
	}
	for (uint32_t i = 0; i < n; i++)
		flow_queues_join(fq, index[i], pkts[i], list);
	return bytes;
}

// Takes the oldest packet off a queue.
static inline struct pkt *flow_queue_pop(struct flow_queue *q) {
	struct pkt *p = q->pkts.head;

	if (p == NULL)
		return NULL;
	q->pkts.head = p->next;
	q->pkts.count--;
	q->pkts.bytes -= p->size_bytes;
	p->next = NULL;
	return p;
}

// Counts what has left a queue since its backlog was `before`. The next packet is prefetched if
// there are credits for it, or few queues in the list. Else it is that of another round, and
// flow_queues_retire prefetches it.
static inline void flow_queues_left(
	struct flow_queues *fq, const struct flow_queue *q, struct backlog before) {
	uint64_t bytes = before.bytes - q->pkts.bytes;

	fq->all.pkts -= before.pkts - q->pkts.count;
	fq->all.bytes -= bytes;
	if (q->pkts.head != NULL
		&& (q->credits > (int32_t)bytes || fq->list[q->list].count <= FLOW_QUEUES_AHEAD))
		prefetch_write(q->pkts.head);
}

static inline struct backlog flow_queue_backlog(const struct flow_queue *q) {
	return (struct backlog){.pkts = q->pkts.count, .bytes = q->pkts.bytes};
}

// Takes the queue at the head of its list off it, and prefetches what the list will come to, if it
// is long.
static inline void flow_queues_retire(struct flow_queues *fq, struct flow_queue *q) {
	struct flow_ring *from = &fq->list[q->list];
	struct flow_queue *later;

	from->head++;
	from->count--;
	q->list = FLOW_NONE;
	if (from->count <= FLOW_QUEUES_AHEAD)
		return;
	later = &fq->queue[flow_ring_at(from, FLOW_QUEUES_AHEAD)];
	prefetch_write(later);
	prefetch_write(flow_queue_state(fq, later));
	later = &fq->queue[flow_ring_at(from, FLOW_PACKETS_AHEAD)];
	if (later->pkts.head != NULL)
		prefetch_write(later->pkts.head);
	// A queue whose credits exceed its oldest packet comes to the one after it, if only to find
	// that it must wait.
	later = &fq->queue[flow_ring_at(from, FLOW_SECONDS_AHEAD)];
	if (later->pkts.head != NULL && later->credits > later->pkts.head->size_bytes)
		prefetch_write(later->pkts.head->next);
}

// The same; puts it at the end of the old list.
static inline void flow_queues_rotate(struct flow_queues *fq, struct flow_queue *q) {
	flow_queues_retire(fq, q);
	flow_ring_push(&fq->list[FLOW_OLD], flow_queue_index(fq, q));
	q->list = FLOW_OLD;
}

// The queue at the head of a list; NULL: the list is empty.
static inline struct flow_queue *flow_queues_first(
	const struct flow_queues *fq, enum flow_list list) {
	const struct flow_ring *r = &fq->list[list];

	return r->count > 0 ? &fq->queue[flow_ring_at(r, 0)] : NULL;
}

// RFC 8290, section 4.2: the queue to be served, new ones before old ones. One whose credits are
// used up gets a quantum and goes to the end of the old list. NULL: both lists are empty.
static inline struct flow_queue *flow_queues_next(struct flow_queues *fq) {
	for (;;) {
		struct flow_queue *q = flow_queues_first(fq, FLOW_NEW);

		if (q == NULL)
			q = flow_queues_first(fq, FLOW_OLD);
		if (q == NULL || q->credits > 0)
			return q;
		q->credits += (int32_t)fq->quantum_bytes;
		flow_queues_rotate(fq, q);
	}
}

// Whether the seed decided something.
static inline bool flow_queues_random(const void *self) {
	const struct flow_queues *fq = self;

	return fq->collided > 0 || fq->shed;
}

// The same section: what becomes of the queue to be served if it is empty. A new one becomes old,
// lest a flow that always sends its next packet in time starves the old ones; an old one leaves the
// lists.
static inline void flow_queues_empty(struct flow_queues *fq, struct flow_queue *q) {
	if (q->list == FLOW_NEW)
		flow_queues_rotate(fq, q);
	else
		flow_queues_retire(fq, q);
}
