// SPDX-License-Identifier: BSD-3-Clause
// A small heap over the first packets of FIFOs, by departure; and FIFOs under such a heap whose
// packets' departures are known when they arrive.
#pragma once
#include "common/base/ns.h"
#include "switch/stage.h"

// The first packet of a non-empty FIFO, with a copy of its departure to keep the heap in few cache
// lines.
struct head {
	uint64_t release_ns;
	const struct pkt *pkt;
	void *from; // the FIFO
};

// Whether a leaves before b: by departure, then arrival, then the order in which they entered the
// path.
static inline bool head_before(const struct head *a, const struct head *b) {
	if (a->release_ns != b->release_ns)
		return a->release_ns < b->release_ns;
	if (a->pkt->arrival_ns != b->pkt->arrival_ns)
		return a->pkt->arrival_ns < b->pkt->arrival_ns;
	return (int32_t)(a->pkt->id - b->pkt->id) < 0;
}

// Departure of the second of the n heads; NEVER_NS: there is none.
static inline uint64_t heads_second_ns(const struct head *heap, uint32_t n) {
	if (n < 3)
		return n < 2 ? NEVER_NS : heap[1].release_ns;
	return time_min(heap[1].release_ns, heap[2].release_ns);
}

// Replaces the root of n heads with h and sifts it down.
static inline void heads_sink(struct head *heap, uint32_t n, struct head h) {
	uint32_t i = 0;

	for (uint32_t child = 1; child < n; child = 2 * i + 1) {
		if (child + 1 < n && head_before(&heap[child + 1], &heap[child]))
			child++;
		if (!head_before(&heap[child], &h))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = h;
}

// Adds h to n heads and sifts it up.
static inline void heads_rise(struct head *heap, uint32_t n, struct head h) {
	uint32_t i = n;

	while (i > 0 && head_before(&h, &heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = h;
}

struct fifo {
	struct pkt *head, *tail;
	uint64_t pkts, bytes;
};

// A stage that begins with it has fifos_pop, fifos_next_ns and fifos_backlog as its operations.
struct fifos {
	uint64_t pkts, bytes; // in all FIFOs
	struct pkt_list out; // departed, not yet taken
	struct head *heap; // of FIFOs that are not empty, smallest first
	uint32_t heads;
};

// Appends a packet, whose release_ns is its departure, to a FIFO.
static inline void fifos_push(struct fifos *fs, struct fifo *f, struct pkt *p) {
	p->next = NULL;
	f->pkts++;
	f->bytes += p->size_bytes;
	fs->pkts++;
	fs->bytes += p->size_bytes;
	if (f->head != NULL) {
		f->tail->next = p;
		f->tail = p;
		return;
	}
	f->head = p;
	f->tail = p;
	heads_rise(fs->heap, fs->heads++, (struct head){p->release_ns, p, f});
}

// Puts the FIFO at the root of the heap, which has lost its first packets, where it now belongs.
static inline void fifos_sink(struct fifos *fs, struct fifo *f) {
	if (f->head != NULL)
		heads_sink(fs->heap, fs->heads, (struct head){f->head->release_ns, f->head, f});
	else if (--fs->heads > 0)
		heads_sink(fs->heap, fs->heads, fs->heap[fs->heads]);
}

// Takes the packet with the earliest departure off its FIFO.
static inline struct pkt *fifos_release(struct fifos *fs) {
	struct fifo *f = fs->heap[0].from;
	struct pkt *p = f->head;

	f->head = p->next;
	f->pkts--;
	f->bytes -= p->size_bytes;
	fs->pkts--;
	fs->bytes -= p->size_bytes;
	p->arrival_ns = p->release_ns;
	p->next = NULL;
	fifos_sink(fs, f);
	return p;
}

// Moves the packets that have the earliest departure in one FIFO to the list `out`, at once.
static inline void fifos_release_all(struct fifos *fs) {
	struct fifo *f = fs->heap[0].from;
	uint64_t release_ns = fs->heap[0].release_ns, bytes = 0;
	struct pkt *p = f->head, *first = p, *last;
	uint32_t n = 0;

	do {
		p->arrival_ns = release_ns;
		bytes += p->size_bytes;
		n++;
		last = p;
		p = p->next;
	} while (p != NULL && p->release_ns == release_ns);
	last->next = NULL;
	pkt_list_join(&fs->out, &(struct pkt_list){first, last, n, bytes});
	f->head = p;
	f->pkts -= n;
	f->bytes -= bytes;
	fs->pkts -= n;
	fs->bytes -= bytes;
	fifos_sink(fs, f);
}

// Moves packets that have departed by t_ns to the list `out`.
static inline void fifos_depart(struct fifos *fs, uint64_t t_ns) {
	while (fs->heads > 0 && fs->heap[0].release_ns <= t_ns)
		pkt_list_push(&fs->out, fifos_release(fs));
}

static inline uint32_t fifos_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct fifos *fs = self;
	uint32_t n = 0;

	while (n < max && fs->out.head != NULL && fs->out.head->arrival_ns <= now_ns)
		pkts[n++] = pkt_list_pop(&fs->out);
	if (fs->out.head != NULL)
		return n;
	while (n < max && fs->heads > 0 && fs->heap[0].release_ns <= now_ns)
		pkts[n++] = fifos_release(fs);
	return n;
}

static inline uint64_t fifos_next_ns(const void *self) {
	const struct fifos *fs = self;

	if (fs->out.head != NULL)
		return fs->out.head->arrival_ns;
	return fs->heads == 0 ? NEVER_NS : fs->heap[0].release_ns;
}

static inline struct backlog fifos_backlog(const void *self) {
	const struct fifos *fs = self;

	return (struct backlog){
		.pkts = fs->pkts + fs->out.count, .bytes = fs->bytes + fs->out.bytes};
}
