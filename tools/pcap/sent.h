// SPDX-License-Identifier: BSD-3-Clause
// What one direction of a connection has sent and the other has not acknowledged yet: records of
// segments in the order of their sequence numbers, without gaps, in a ring that doubles when it is
// full. All rings live in one pool of fixed size: blocks of 8, 16, 32, ... records, and a list of
// free ones per size.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// No packet with these bytes was seen: lost before the capture, or on its way behind others.
#define SENT_HOLE 0x01
#define SENT_RETRANSMITTED 0x02
#define SENT_SACKED 0x04
#define SENT_TSVAL_FIRST 0x08 // the first to carry its TSval
#define SENT_FIN 0x10 // the last number is the FIN's

struct sent {
	uint64_t ts_ns; // when it was last seen; a hole: when the packet behind it was
	uint32_t seq, end; // sequence numbers, end exclusive
	uint32_t tsval;
	uint16_t ip_id;
	uint8_t flags;
	uint8_t times; // seen, saturates
};

#define SENT_LOG2_MIN 3 // 8 records, 192 bytes: three cache lines
#define SENT_LOG2_MAX 20 // a million segments in flight

#define SENT_BLOCK_BITS 27

struct sent_ring {
	// The block's place in the pool, in units of 64 bytes, from 1 on, 0: none yet; and its
	// number of records.
	uint32_t block : SENT_BLOCK_BITS, log2 : 32 - SENT_BLOCK_BITS;
	uint32_t head, tail; // count up; tail exclusive
};

struct sent_pool {
	uint8_t *base;
	size_t size, used; // bytes
	uint32_t free[SENT_LOG2_MAX + 1]; // blocks by size, linked through their first word
	uint64_t refused; // records for which there was no room
};

// 0 or -ENOMEM.
int sent_pool_init(struct sent_pool *p, size_t bytes);
void sent_pool_fini(struct sent_pool *p);

static inline uint32_t sent_count(const struct sent_ring *r) {
	return r->tail - r->head;
}

// The record with that count, head to tail - 1.
static inline struct sent *sent_at(
	const struct sent_pool *p, const struct sent_ring *r, uint32_t i) {
	uint32_t mask = (1u << r->log2) - 1;

	return (struct sent *)(void *)(p->base + (size_t)r->block * 64) + (i & mask);
}

bool sent_grow(struct sent_pool *p, struct sent_ring *r);

// Room for one more record behind the last; NULL: the pool is full, or the ring cannot grow any
// more.
static inline struct sent *sent_push(struct sent_pool *p, struct sent_ring *r) {
	if (__builtin_expect(r->block == 0 || sent_count(r) == 1u << r->log2, 0)
		&& !sent_grow(p, r))
		return NULL;
	return sent_at(p, r, r->tail++);
}

// Makes room before record i (head to tail); the records before it or behind it move, whichever are
// fewer, and so numbers may change: the new record's is *i. False: there is no room.
bool sent_insert(struct sent_pool *p, struct sent_ring *r, uint32_t *i);
// The first record whose end is beyond seq; tail if none.
uint32_t sent_find(const struct sent_pool *p, const struct sent_ring *r, uint32_t seq);
// Gives the block back. The ring is empty then.
void sent_release(struct sent_pool *p, struct sent_ring *r);
