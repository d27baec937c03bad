// SPDX-License-Identifier: BSD-3-Clause
#include "switch/aqm/flow_queues.h"

#include "common/base/mem.h"
#include "common/base/u64.h"

#include <errno.h>

#define INDEX_BITS 16

// The next part of the memory; without memory, only adds its bytes.
static void *carve(struct flow_queues *fq, uint64_t n, size_t size) {
	size_t at = fq->memory_bytes;

	fq->memory_bytes += (n * size + 63) / 64 * 64;
	return fq->memory != NULL ? (uint8_t *)fq->memory + at : NULL;
}

static void carve_all(struct flow_queues *fq) {
	uint32_t slots = 1;

	while (slots < fq->buckets)
		slots *= 2;
	fq->memory_bytes = 0;
	fq->queue = carve(fq, fq->buckets, sizeof(*fq->queue));
	fq->state = carve(fq, fq->buckets, fq->state_bytes);
	fq->heap = carve(fq, fq->buckets + 1, sizeof(*fq->heap));
	fq->place = carve(fq, fq->buckets, sizeof(*fq->place));
	for (uint32_t i = FLOW_NEW; i < FLOW_LISTS; i++) {
		fq->list[i].slot = carve(fq, slots, sizeof(*fq->list[i].slot));
		fq->list[i].mask = slots - 1;
	}
}

int flow_queues_init(
	struct flow_queues *fq, size_t state_bytes, const struct aqm_env *env, struct err *err) {
	int rc = aqm_limit_init(&fq->max, &fq->limit, env, err);

	if (rc < 0)
		return rc;
	fq->seed = env->seed;
	fq->state_bytes = state_bytes;
	carve_all(fq);
	fq->memory = mem_map(fq->memory_bytes);
	if (fq->memory == NULL)
		return err_set(err, -ENOMEM, "buckets: no memory for %llu queues",
			(unsigned long long)fq->buckets);
	carve_all(fq);
	return 0;
}

void flow_queues_fini(void *self) {
	struct flow_queues *fq = self;

	mem_unmap(fq->memory, fq->memory_bytes);
}

static void put(struct flow_queues *fq, uint32_t place, uint64_t key) {
	fq->heap[place] = key;
	fq->place[key & (FLOW_QUEUES_MAX - 1)] = place;
}

void flow_queues_raise(struct flow_queues *fq, struct flow_queue *q) {
	uint32_t index = flow_queue_index(fq, q);
	uint64_t key = q->pkts.bytes << INDEX_BITS | index;
	uint32_t i = fq->place[index] > 0 ? fq->place[index] : ++fq->heaped;

	q->bound_bytes = q->pkts.bytes;
	for (; i > 1 && fq->heap[i / 2] < key; i /= 2)
		put(fq, i, fq->heap[i / 2]);
	put(fq, i, key);
}

// Lowers the key of the queue at the root.
static void lower(struct flow_queues *fq, uint64_t key) {
	uint32_t i = 1;

	for (uint32_t child = 2; child <= fq->heaped; child = 2 * i) {
		if (child < fq->heaped && fq->heap[child + 1] > fq->heap[child])
			child++;
		if (fq->heap[child] < key)
			break;
		put(fq, i, fq->heap[child]);
		i = child;
	}
	put(fq, i, key);
}

struct flow_queue *flow_queues_fattest(struct flow_queues *fq) {
	for (;;) {
		uint64_t index = fq->heap[1] & (FLOW_QUEUES_MAX - 1);
		struct flow_queue *q = &fq->queue[index];

		if (q->bound_bytes == q->pkts.bytes)
			return q;
		q->bound_bytes = q->pkts.bytes;
		lower(fq, q->bound_bytes << INDEX_BITS | index);
	}
}

void flow_queues_shed(struct flow_queues *fq, uint32_t batch, struct pkt_list *drops) {
	while (!flow_queues_fit(fq, 0, 0)) {
		struct flow_queue *q = flow_queues_fattest(fq);
		struct backlog before = flow_queue_backlog(q);
		uint64_t half = time_min((before.pkts + 1) / 2, batch);

		for (uint64_t i = 0; i < half; i++)
			pkt_drop(drops, pkt_list_pop(&q->pkts), DROP_QUEUE_FULL);
		flow_queues_left(fq, q, before);
		fq->shed = true;
	}
}
