// SPDX-License-Identifier: BSD-3-Clause
// The default discipline's own operations, for the link, which is spared two calls per packet.
#pragma once
#include "switch/aqm/aqm.h"

enum { FIFO_TAIL, FIFO_HEAD };

struct fifo {
	struct limit limit;
	int drop;

	struct aqm_limit max;
	struct pkt_ring q;
};

extern const struct aqm_ops aqm_fifo;

// Drops the oldest until p fits or none is left.
void fifo_make_room(struct fifo *f, const struct pkt *p, struct pkt_list *drops);

static inline void fifo_put(struct fifo *f, struct pkt *p, struct pkt_list *drops) {
	if (f->drop == FIFO_HEAD)
		fifo_make_room(f, p, drops);
	aqm_ring_put(&f->q, &f->max, p, drops);
}

static inline struct pkt *fifo_get(struct fifo *f) {
	return pkt_ring_pop(&f->q);
}
