// SPDX-License-Identifier: BSD-3-Clause
// First in, first out, with a limit in bytes, packets, time or bandwidth-delay products.
//
//	drop: tail   a packet that does not fit is dropped
//	drop: head   the oldest packets are dropped until it fits
//
// With head drop the sender learns of congestion one queueing delay earlier (Lakshman, Neidhardt,
// Ott:
// The Drop from Front Strategy in TCP and in TCP over ATM, INFOCOM 1996).
#include "switch/aqm/bursts.h"
#include "switch/aqm/ring.h"

enum { FIFO_TAIL, FIFO_HEAD };

struct fifo {
	struct limit limit;
	int drop;

	// Not first (AQM_RING_FIRST): a run costs 0.3 % more instructions then.
	struct aqm_ring q;
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

	return aqm_ring_init(&f->q, &f->limit, env, err);
}

static void fifo_fini(void *self) {
	struct fifo *f = self;

	aqm_ring_fini(&f->q);
}

static void fifo_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct fifo *f = self;

	if (f->drop == FIFO_HEAD) {
		while (f->q.q.count > 0 && !aqm_ring_fits(&f->q, p))
			pkt_drop(drops, aqm_ring_get(&f->q), DROP_QUEUE_FULL);
	}
	aqm_ring_put(&f->q, p, drops);
}

static struct pkt *fifo_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct fifo *f = self;

	return aqm_ring_get(&f->q);
}

static uint64_t fifo_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct fifo *f = self;

	if (f->drop == FIFO_HEAD)
		return aqm_ring_put_whole(&f->q, pkts, n);
	return aqm_ring_put_all(&f->q, pkts, n, drops);
}

static bool fifo_enqueue_whole(void *self, struct pkt *const *pkts, uint32_t n) {
	struct fifo *f = self;

	return aqm_ring_put_whole(&f->q, pkts, n) > 0;
}

static inline struct serialiser_queue fifo_queue(void *self) {
	struct fifo *f = self;

	return (struct serialiser_queue){.q = f,
		.enqueue = fifo_enqueue,
		.dequeue = fifo_dequeue,
		.enqueue_all = fifo_enqueue_all,
		.fifo = &f->q.q};
}
AQM_BURSTS(fifo)

static struct backlog fifo_backlog(const void *self) {
	const struct fifo *f = self;

	return aqm_ring_backlog(&f->q);
}

static struct aqm_limit fifo_limit(const void *self) {
	const struct fifo *f = self;

	return f->q.max;
}

const struct aqm_ops aqm_fifo = {
	.name = "fifo",
	.summary = "first in, first out, tail or head drop",
	.reference = "head drop: Lakshman, Neidhardt, Ott: The Drop from Front "
		     "Strategy in TCP and in TCP over ATM, INFOCOM 1996",
	.params = params,
	.state_size = sizeof(struct fifo),
	.init = fifo_init,
	.fini = fifo_fini,
	.enqueue = fifo_enqueue,
	.dequeue = fifo_dequeue,
	.enqueue_burst = fifo_enqueue_burst,
	.dequeue_burst = fifo_dequeue_burst,
	.enqueue_whole = fifo_enqueue_whole,
	.backlog = fifo_backlog,
	.limit = fifo_limit,
};
