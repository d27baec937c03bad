// SPDX-License-Identifier: BSD-3-Clause
// The ranges of sequence numbers that were sent again last. A D-SACK of any other range tells of a
// packet that the network duplicated, not of a retransmission (RFC 2883 section 4, RFC 3708 section
// 3). The reports of a retransmission come a round trip after it: of more than so many ranges the
// oldest are forgotten.
#pragma once
#include "common/net/seg.h"

#define RESENT_RANGES 31

struct resent {
	struct seg_sack range[RESENT_RANGES]; // a ring; empty ones hold nothing
	uint32_t newest;
};

// Bytes [start, end) are sent again. Segments that continue the one before are one range with it.
static inline void resent_add(struct resent *r, uint32_t start, uint32_t end) {
	struct seg_sack *last = &r->range[r->newest];

	if (last->start != last->end && last->end == start) {
		last->end = end;
		return;
	}
	r->newest = (r->newest + 1) % RESENT_RANGES;
	r->range[r->newest] = (struct seg_sack){start, end};
}

// Whether some of these bytes were sent again.
static inline bool resent_has(const struct resent *r, const struct seg_sack *b) {
	for (uint32_t i = 0; i < RESENT_RANGES; i++) {
		const struct seg_sack *o = &r->range[i];

		if (o->start != o->end && seq_diff(o->start, b->end) < 0
			&& seq_diff(b->start, o->end) < 0)
			return true;
	}
	return false;
}
