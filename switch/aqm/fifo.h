// SPDX-License-Identifier: BSD-3-Clause
// The default discipline's own operations, for the link, which is spared two calls per packet.
#pragma once
#include "aqm.h"

enum { FIFO_TAIL, FIFO_HEAD };

struct fifo {
	struct limit limit;
	int drop;

	struct aqm_limit max;
	struct pkt_ring q;
};

extern const struct aqm_ops aqm_fifo;

// What to do with a packet that does not fit: makes room at the head, or drops it (true).
bool fifo_full(struct fifo *f, struct pkt *p, struct pkt_list *drops);

static inline bool fifo_fits(const struct fifo *f, const struct pkt *p) {
	return aqm_limit_fits(&f->max, f->q.count, f->q.bytes, p->size_bytes);
}

static inline void fifo_put(struct fifo *f, struct pkt *p, struct pkt_list *drops) {
	if (__builtin_expect(!fifo_fits(f, p), 0) && fifo_full(f, p, drops))
		return;
	if (__builtin_expect(!pkt_ring_push(&f->q, p), 0))
		pkt_drop(drops, p, DROP_NO_MBUF);
}

static inline struct pkt *fifo_get(struct fifo *f) {
	return pkt_ring_pop(&f->q);
}
