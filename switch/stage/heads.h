// SPDX-License-Identifier: BSD-3-Clause
// A small heap over the first packets of FIFOs, by departure.
#pragma once
#include "common/base/ns.h"
#include "common/base/pkt.h"

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
