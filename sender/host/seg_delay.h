// SPDX-License-Identifier: BSD-3-Clause
// Segments that wait a constant time before they are sent, in the order in which they were made.
//
// A receiving port with a `delay` keeps its ACKs here: one cache line each, where the frames of the
// data that they acknowledge would take two kilobytes. All memory is allocated at the start.
#pragma once
#include "common/base/err.h"
#include "common/base/likely.h"
#include "common/net/seg.h"
#include "common/net/wire.h"

struct delayed_seg {
	_Alignas(64) uint64_t due_ns;
	uint32_t id; // of the connection, as in struct endpoint's output
	uint8_t ecn;
	struct seg seg; // its common part is in the first line
	struct wire_addr addr; // of a dynamic connection, which may be another by then
};

struct seg_delay {
	struct delayed_seg *slot; // NULL: nothing is delayed
	uint64_t delay_ns;
	uint32_t slots; // a power of two
	uint32_t first, count;
};

// Room for `segs` segments at least. -ENOMEM with a sentence.
int seg_delay_init(struct seg_delay *d, uint64_t delay_ns, uint64_t segs, struct err *err);
void seg_delay_fini(struct seg_delay *d);
uint64_t seg_delay_bytes(uint64_t segs);

// A slot for a segment that was made at now_ns, filled in but for `addr`. NULL: there is none.
static inline struct delayed_seg *seg_delay_put(
	struct seg_delay *d, uint32_t id, const struct seg *seg, uint8_t ecn, uint64_t now_ns) {
	if (unlikely(d->count == d->slots))
		return NULL;
	struct delayed_seg *s = &d->slot[(d->first + d->count++) & (d->slots - 1)];

	s->due_ns = now_ns + d->delay_ns;
	s->id = id;
	s->ecn = ecn;
	if (unlikely(seg_is_large(seg)))
		s->seg = *seg;
	else
		seg_copy_header(&s->seg, seg);
	return s;
}

// The next segment, if its time has come; it is valid until the next seg_delay_put. NULL: none.
static inline const struct delayed_seg *seg_delay_take(struct seg_delay *d, uint64_t now_ns) {
	const struct delayed_seg *s = &d->slot[d->first];

	if (d->count == 0 || s->due_ns > now_ns)
		return NULL;
	d->first = (d->first + 1) & (d->slots - 1);
	d->count--;
	return s;
}
