// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pipe.h"

#include "common/base/ns.h"

#include <string.h>
#include <time.h>

// About as long as the other thread works on a window; then a shared machine is left to others.
#ifndef PIPE_SPINS_MAX
#define PIPE_SPINS_MAX 1000
#endif
#define SLEEP_NS (50 * NS_PER_US)

static inline void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void pipe_wait(uint32_t *times) {
	if (++*times < PIPE_SPINS_MAX)
		pause_cpu();
	else
		nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

// Packets may be made in the slots that the consumer has read; returns their number.
static uint64_t find_room(struct pipe *p) {
	p->made.size = atomic_load_explicit(&p->tail, memory_order_acquire) + PIPE_SLOTS;
	return p->made.size - p->made.next;
}

void pipe_init(struct pipe *p) {
	p->node.ops = &pipe_ops;
	p->made = (struct pool){.base = p->slot[0],
		.object = PIPE_SLOT,
		.mask = PIPE_SLOTS - 1,
		.size = PIPE_SLOTS};
}

static const struct pkt *first(struct pipe *p) {
	return (const struct pkt *)(const void *)p->slot[p->got % PIPE_SLOTS];
}

// Whether there is a packet to take.
static bool filled(struct pipe *p) {
	if (p->got == p->head_seen)
		p->head_seen = atomic_load_explicit(&p->head, memory_order_acquire);
	return p->got != p->head_seen;
}

uint64_t pipe_next_ns(struct pipe *p) {
	return filled(p) ? first(p)->arrival_ns : NEVER_NS;
}

static void give(struct node *n, struct pkt *const *pkts, uint32_t count) {
	struct pipe *p = (struct pipe *)(void *)n;
	uint32_t times = 0;

	atomic_store_explicit(&p->head, p->made.next, memory_order_release);
	while (p->made.size - p->made.next < PIPE_BURST && find_room(p) < PIPE_BURST) {
		p->waits(p->waits_ctx);
		pipe_wait(&times);
	}
}

// The first packet, which there is, in the consumer's memory; NULL: it has none.
static struct pkt *get(struct pipe *p) {
	const struct pkt *from = first(p);
	struct pool *pool = p->taker->pool[from->pool];
	struct pkt *pkt = pool_get(pool, from->pool);

	prefetch(p->slot[(p->got + RING_AHEAD) % PIPE_SLOTS]);
	if (likely(pkt != NULL))
		memcpy(pkt, from, pool->object > sizeof(struct pkt) ? PIPE_SLOT : sizeof(*pkt));
	else
		p->refused(p->refused_ctx, from);
	p->got++;
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

const struct node_ops pipe_ops = {.take = take, .give = give};
