// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pipe.h"

#include "common/base/ns.h"

#include <string.h>
#include <time.h>

// About as long as the other thread works on a window; then a shared machine is left to others.
#define SPINS_MAX 1000
#define SLEEP_NS (50 * NS_PER_US)

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void pipe_wait(uint32_t *times) {
	if (++*times < SPINS_MAX)
		pause_cpu();
	else
		nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

static inline char *slot(struct pipe *p, uint64_t i) {
	return p->slot[i % PIPE_SLOTS];
}

static uint64_t slots_free(struct pipe *p) {
	p->tail_seen = atomic_load_explicit(&p->tail, memory_order_acquire);
	return PIPE_SLOTS - (p->put - p->tail_seen);
}

uint32_t pipe_room(struct pipe *p) {
	return (uint32_t)slots_free(p) / 2;
}

// Whether there is a packet to take.
static bool filled(struct pipe *p) {
	if (p->got == p->head_seen)
		p->head_seen = atomic_load_explicit(&p->head, memory_order_acquire);
	return p->got != p->head_seen;
}

static const struct pkt *first(struct pipe *p) {
	return (const struct pkt *)(const void *)slot(p, p->got);
}

uint64_t pipe_next_ns(struct pipe *p) {
	return filled(p) ? first(p)->arrival_ns : NEVER_NS;
}

static uint64_t next_event_ns(struct node *n, uint64_t limit_ns) {
	return pipe_next_ns((struct pipe *)(void *)n);
}

static void put(struct pipe *p, const struct pkt *pkt) {
	size_t object = p->giver->pool[pkt->pool]->object;

	for (size_t at = 0; at < object; at += PIPE_SLOT)
		memcpy(slot(p, p->put++), (const char *)pkt + at, PIPE_SLOT);
}

static void publish(struct pipe *p) {
	atomic_store_explicit(&p->head, p->put, memory_order_release);
}

__attribute__((noinline)) static void wait_for_room(struct pipe *p) {
	uint32_t times = 0;

	publish(p);
	while (slots_free(p) < 2)
		pipe_wait(&times);
}

static void give(struct node *n, struct pkt *const *pkts, uint32_t count) {
	struct pipe *p = (struct pipe *)(void *)n;

	for (uint32_t i = 0; i < count; i++) {
		if (unlikely(PIPE_SLOTS - (p->put - p->tail_seen) < 2))
			wait_for_room(p);
		put(p, pkts[i]);
		pool_put(p->giver, pkts[i]);
	}
	publish(p);
}

// The first packet, which there is, in the consumer's memory; NULL: it has none.
static struct pkt *get(struct pipe *p) {
	uint8_t number = first(p)->pool;
	struct pool *pool = p->taker->pool[number];
	struct pkt *pkt = pool_get(pool, number);

	if (unlikely(pkt == NULL))
		p->refused(p->ctx, first(p));
	for (size_t at = 0; at < pool->object; at += PIPE_SLOT, p->got++) {
		if (likely(pkt != NULL))
			memcpy((char *)pkt + at, slot(p, p->got), PIPE_SLOT);
	}
	return pkt;
}

static uint32_t take(struct node *n, uint64_t last_ns, struct pkt **pkts, uint32_t max) {
	struct pipe *p = (struct pipe *)(void *)n;
	uint32_t count = 0;

	while (count < max && pipe_next_ns(p) <= last_ns) {
		pkts[count] = get(p);
		count += pkts[count] != NULL;
	}
	atomic_store_explicit(&p->tail, p->got, memory_order_release);
	return count;
}

const struct node_ops pipe_ops = {.next_event_ns = next_event_ns, .take = take, .give = give};
