// SPDX-License-Identifier: BSD-3-Clause
// Records of sent segments: per flow a power-of-two ring that grows, all from one buddy arena.
//
// Payload is synthetic, so a segment has 32 bytes: its record, with its transmission time; its
// sample, with what the delivery-rate estimator and some algorithms need when it is acknowledged;
// its links, for lists of those that were lost or SACKed. With samples these are side by side. A
// ring without them has all records and then all links, so that a cache line has eight records. A
// segment's sequence number is its index times the segment size. A ring gives O(1) access by index
// for SACK processing; the arena bounds the sum over all flows.
#pragma once
#include "common/base/err.h"
#include "common/base/likely.h"
#include "common/base/u64.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Bits of seg_rec.flags.
#define SENT_SACKED 0x01
#define SENT_LOST 0x02 // declared lost, whether sent again or not
#define SENT_RETRANS 0x04 // a retransmission is in flight
#define SENT_EVER_RETRANS 0x08
#define SENT_APP_LIMITED 0x10
#define SENT_LONG_AGO 0x20 // the `_ago` times are in units of 2^SENT_AGO_SHIFT ns: up to 73 minutes
#define SENT_AGO_SHIFT 10

#define SENT_NS_MASK ((UINT64_C(1) << 48) - 1)

struct seg_rec {
	uint64_t sent_ns : 48; // last transmission; 78 hours
	uint64_t flags : 16;
};

// What was known when it was sent.
struct seg_sample {
	uint32_t first_tx_ago; // sent_ns - start of the send interval: seg_rec_ago_ns
	uint32_t delivered_ago; // sent_ns - time of the last delivery then
	uint32_t delivered; // segments delivered when it was sent, low 32 bits
	float cwnd_segs; // window when it was sent
};

struct seg_links {
	union {
		uint32_t next; // retransmissions in order of transmission: low bits of the index
		uint32_t sacked_end; // SACKED: up to here, all are; low bits of the index
		uint32_t high; // relost.c
	};
	union {
		uint32_t prev; // as `next`
		uint32_t low; // as `high`
	};
};
#define SEG_BYTES 32u // of a segment in all
#define SEG_RECS (SEG_BYTES / (uint32_t)sizeof(struct seg_rec)) // as much memory
static_assert(sizeof(struct seg_rec) == 8 && sizeof(struct seg_sample) == 16
		&& sizeof(struct seg_links) == 8,
	"SEG_BYTES");

// Writes a record without reading it, because it is not in the cache yet.
static inline void seg_rec_start(struct seg_rec *r, uint64_t sent_ns, uint16_t flags) {
	const uint64_t word = (sent_ns & SENT_NS_MASK) | (uint64_t)flags << 48;

	memcpy(r, &word, sizeof(word));
}

// The sample of a segment that is sent so long after the start of its send interval, and after the
// last delivery; adds to the record's flags.
static inline struct seg_sample seg_sample(uint16_t *flags, uint64_t first_tx_ns,
	uint64_t delivered_ns, uint32_t delivered, float cwnd_segs) {
	if (unlikely(((first_tx_ns | delivered_ns) >> 32) != 0)) {
		*flags |= SENT_LONG_AGO;
		first_tx_ns = min_u64(first_tx_ns >> SENT_AGO_SHIFT, UINT32_MAX);
		delivered_ns = min_u64(delivered_ns >> SENT_AGO_SHIFT, UINT32_MAX);
	}
	return (struct seg_sample){
		(uint32_t)first_tx_ns, (uint32_t)delivered_ns, delivered, cwnd_segs};
}

// Of one of the two.
static inline uint64_t seg_rec_ago_ns(const struct seg_rec *r, uint32_t ago) {
	return (uint64_t)ago << ((r->flags & SENT_LONG_AGO) != 0 ? SENT_AGO_SHIFT : 0);
}

#define SEG_ORDER_MIN 4 // 16 records
#define SEG_ORDER_MAX 30

struct seg_arena {
	struct seg_rec *base;
	uint8_t *order; // per smallest block: order of the block that starts here, | SEG_FREE
	uint32_t free[SEG_ORDER_MAX + 1]; // head of each free list: block number, or UINT32_MAX
	uint32_t blocks;
	uint64_t used, used_max; // records handed out
	uint64_t refused; // times the arena was full
};

// An arena for at least `records`. -ENOMEM with a sentence.
int seg_arena_init(struct seg_arena *a, uint64_t records, struct err *err);
void seg_arena_fini(struct seg_arena *a);
// Allocates a block of 2^order segments; NULL: the arena is full.
struct seg_rec *seg_arena_get(struct seg_arena *a, uint32_t order);
void seg_arena_put(struct seg_arena *a, struct seg_rec *block);
// Bytes that seg_arena_init(records) would need.
uint64_t seg_arena_bytes(uint64_t records);

// A flow's ring: records of segments [first, first + 2^order), by index modulo its size.
struct seg_ring {
	struct seg_rec *rec;
	uint32_t mask;
	uint32_t stride; // bytes from one record to the next: SEG_BYTES with samples, else a record
};

// Also called, to prefetch, for a flow without a ring: adding to a NULL pointer would be undefined.
static inline struct seg_rec *seg_at(const struct seg_ring *r, uint64_t index) {
	uintptr_t at = (uintptr_t)r->rec + (uintptr_t)((uint32_t)index & r->mask) * r->stride;

	return (struct seg_rec *)at;
}

static inline bool seg_ring_samples(const struct seg_ring *r) {
	return r->stride == SEG_BYTES;
}

// Of a ring that has samples.
static inline struct seg_sample *seg_sample_at(const struct seg_ring *r, uint64_t index) {
	return (struct seg_sample *)(void *)(seg_at(r, index) + 1);
}

static inline struct seg_links *seg_links_at(const struct seg_ring *r, uint64_t index) {
	uint32_t recs = seg_ring_samples(r) ? SEG_RECS - 1 : r->mask + 1;

	return (struct seg_links *)(void *)(seg_at(r, index) + recs);
}

static inline void seg_copy(
	const struct seg_ring *to, uint64_t index, const struct seg_ring *from, uint64_t other) {
	*seg_at(to, index) = *seg_at(from, other);
	*seg_links_at(to, index) = *seg_links_at(from, other);
	if (seg_ring_samples(to))
		*seg_sample_at(to, index) = *seg_sample_at(from, other);
}

// Makes room for index `next` when [una, next) are in use. False: the arena is full.
bool seg_ring_grow(struct seg_ring *r, struct seg_arena *a, uint64_t una, uint64_t next);
static inline bool seg_ring_reserve(
	struct seg_ring *r, struct seg_arena *a, uint64_t una, uint64_t next) {
	return (r->rec != NULL && next - una <= r->mask) || seg_ring_grow(r, a, una, next);
}
// Shrinks a ring to the smallest size above twice [una, next), if that is a quarter of its present
// size or less.
void seg_ring_fit(struct seg_ring *r, struct seg_arena *a, uint64_t una, uint64_t next);
void seg_ring_free(struct seg_ring *r, struct seg_arena *a);
