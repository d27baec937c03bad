// SPDX-License-Identifier: BSD-3-Clause
// First in, first out, with a limit in bytes, packets, time or bandwidth-delay products.
//
//	drop: tail   a packet that does not fit is dropped
//	drop: head   the oldest packets are dropped until it fits
//
// Head drop tells the sender of congestion one queueing delay earlier (Lakshman, Neidhardt, Ott:
// The Drop from Front Strategy in TCP and in TCP over ATM, INFOCOM 1996).
#include "aqm.h"
#include "pkt_ring.h"

enum { FIFO_TAIL, FIFO_HEAD };

struct fifo {
	struct limit limit;
	int drop;

	struct aqm_limit max;
	struct pkt_ring q;
};

static const char *const drop_names[] = {"tail", "head", NULL};

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct fifo, limit), 1e-6, 1e15},
	{"drop", "tail", "which packet makes room", UNIT_NONE,
		PARAM_ENUM(struct fifo, drop, drop_names)},
	PARAM_END,
};

static int fifo_init(void *self, const struct aqm_env *env, struct err *err) {
	struct fifo *f = self;

	return aqm_limit_init(&f->max, &f->limit, env, err);
}

static void fifo_fini(void *self) {
	struct fifo *f = self;

	pkt_ring_fini(&f->q);
}

static bool fifo_fits(const struct fifo *f, const struct pkt *p) {
	return aqm_limit_fits(&f->max, f->q.count, f->q.bytes, p->size_bytes);
}

void fifo_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct fifo *f = self;

	while (__builtin_expect(!fifo_fits(f, p), 0)) {
		if (f->drop == FIFO_TAIL || f->q.count == 0) {
			pkt_drop(drops, p, DROP_QUEUE_FULL);
			return;
		}
		pkt_drop(drops, pkt_ring_pop(&f->q), DROP_QUEUE_FULL);
	}
	if (!pkt_ring_push(&f->q, p))
		pkt_drop(drops, p, DROP_NO_MBUF);
}

struct pkt *fifo_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct fifo *f = self;

	return pkt_ring_pop(&f->q);
}

static struct backlog fifo_backlog(const void *self) {
	const struct fifo *f = self;

	return (struct backlog){.pkts = f->q.count, .bytes = f->q.bytes};
}

static struct aqm_limit fifo_limit(const void *self) {
	const struct fifo *f = self;

	return f->max;
}

const struct aqm_ops aqm_fifo = {
	.name = "fifo",
	.summary = "first in, first out, tail or head drop",
	.params = params,
	.state_size = sizeof(struct fifo),
	.init = fifo_init,
	.fini = fifo_fini,
	.enqueue = fifo_enqueue,
	.dequeue = fifo_dequeue,
	.backlog = fifo_backlog,
	.limit = fifo_limit,
};
