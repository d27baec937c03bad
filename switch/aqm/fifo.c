// SPDX-License-Identifier: BSD-3-Clause
// First in, first out, with a limit in bytes, packets, time or bandwidth-delay products.
//
//	drop: tail   a packet that does not fit is dropped
//	drop: head   the oldest packets are dropped until it fits
//
// Head drop tells the sender of congestion one queueing delay earlier (Lakshman, Neidhardt, Ott:
// The Drop from Front Strategy in TCP and in TCP over ATM, INFOCOM 1996).
#include "switch/aqm/fifo.h"

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

void fifo_make_room(struct fifo *f, const struct pkt *p, struct pkt_list *drops) {
	while (f->q.count > 0 && !aqm_limit_fits(&f->max, f->q.count, f->q.bytes, p->size_bytes))
		pkt_drop(drops, fifo_get(f), DROP_QUEUE_FULL);
}

static void fifo_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	fifo_put(self, p, drops);
}

static uint64_t fifo_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct fifo *f = self;

	if (f->drop == FIFO_HEAD)
		return aqm_ring_whole(&f->q, &f->max, pkts, n);
	return aqm_ring_all(&f->q, &f->max, pkts, n, drops);
}

static struct pkt *fifo_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	return fifo_get(self);
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
	.enqueue_all = fifo_enqueue_all,
	.dequeue = fifo_dequeue,
	.backlog = fifo_backlog,
	.limit = fifo_limit,
};
