// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pipeline.h"

#include "common/base/mem.h"
#include "tools/sim/pipe.h"

#include <errno.h>
#include <pthread.h>

#define PASS_MAX 64 // packets that pass between two nodes at a time
#define OWN_PKTS 1024 // of the sender: more than a burst and a batch

struct pipeline {
	struct pipe data, acks;
	struct side *sender, *receiver;
	struct path *forward, *reverse;
	struct node *into_forward, *off_reverse; // the paths as nodes
	struct pools *pools; // of the other thread
	uint64_t there_ns, back_ns; // least delays of the paths, until the next boundary
	pthread_t thread;
	bool begun;
	_Alignas(64) struct pools own; // of the sender
	struct pool ack_pool[2];
	_Alignas(64) struct pool data_pool[2]; // of the other thread
	// How far the threads are: all that the sender sends before `sent_ns` is in its pipe, all
	// ACKs that arrive before `acked_ns` are in theirs.
	_Alignas(64) _Atomic uint64_t sent_ns, boundary_ns;
	_Atomic bool ends;
	_Alignas(64) _Atomic uint64_t acked_ns, rest_ns;
	uint64_t receiver_ns; // all before is done on the receiver
};

static inline uint64_t load(_Atomic uint64_t *at) {
	return atomic_load_explicit(at, memory_order_acquire);
}

static inline void store(_Atomic uint64_t *at, uint64_t value) {
	atomic_store_explicit(at, value, memory_order_release);
}

static uint64_t min3(uint64_t a, uint64_t b, uint64_t c) {
	return time_min(a, time_min(b, c));
}

// When a window of a node begins: with its next event, limit_ns if there is none before, and not
// before now_ns.
static uint64_t event_before(struct node *n, uint64_t limit_ns, uint64_t now_ns) {
	return time_max(now_ns, time_min(limit_ns, n->ops->next_event_ns(n, limit_ns)));
}

// ---- The sender, on the caller's thread ----

// Runs it through a window that begins with its next event. ACKs of the nanosecond acked_ns may come
// later; the sender's timers come before ACKs of their nanosecond, so it may be run through it.
static void run_sender(struct pipeline *p, uint64_t acked_ns, uint64_t boundary_ns) {
	struct node *node = &p->sender->node;
	struct err err;
	uint64_t event_ns =
		event_before(node, time_min(pipe_next_ns(&p->acks), acked_ns), load(&p->sent_ns));
	uint64_t last_ns = min3(acked_ns, event_ns + node->ops->window_max_ns - 1, boundary_ns - 1);

	node->ops->run_until(node, last_ns, &err);
	store(&p->sent_ns, time_min(last_ns + 1, acked_ns));
}

static void sender_loop(struct pipeline *p, uint64_t boundary_ns) {
	uint32_t waits = 0;

	for (uint64_t sent_ns; (sent_ns = load(&p->sent_ns)) < boundary_ns;) {
		uint64_t acked_ns = load(&p->acked_ns);

		if (acked_ns == sent_ns && pipe_next_ns(&p->acks) == NEVER_NS) {
			pipe_wait(&waits);
			continue;
		}
		run_sender(p, acked_ns, boundary_ns);
		waits = 0;
	}
}

// ---- The paths and the receiver, on the other thread ----

// Data that was sent by last_ns enters its path. False: there was none.
static bool take_data(struct pipeline *p, uint64_t last_ns) {
	struct pkt *pkts[PASS_MAX];
	uint32_t count, all = 0;

	do {
		count = pipe_ops.take(&p->data.node, last_ns, pkts, PASS_MAX);
		p->into_forward->ops->give(p->into_forward, pkts, count);
		all += count;
	} while (count == PASS_MAX);
	return all > 0;
}

// ACKs leave their path, as far ahead as its delay allows.
static void give_acks(struct pipeline *p, uint64_t boundary_ns) {
	uint64_t until_ns = time_min(p->receiver_ns + p->back_ns, boundary_ns);
	struct pkt *pkts[PASS_MAX];
	uint32_t count = PASS_MAX;

	if (load(&p->acked_ns) == until_ns)
		return;
	while (count == PASS_MAX && pipe_room(&p->acks) >= PASS_MAX) {
		count = p->off_reverse->ops->take(p->off_reverse, until_ns - 1, pkts, PASS_MAX);
		if (count == 0)
			break;
		uint64_t arrival_ns = pkts[count - 1]->arrival_ns;

		pipe_ops.give(&p->acks.node, pkts, count);
		store(&p->acked_ns, arrival_ns);
	}
	if (count < PASS_MAX)
		store(&p->acked_ns, until_ns);
}

// Runs the receiver through a window that begins with its next event, if it may be run any further.
static bool run_receiver(struct pipeline *p, uint64_t sent_ns, uint64_t boundary_ns) {
	struct node *node = &p->receiver->node;
	uint64_t limit_ns = time_min(sent_ns + p->there_ns, boundary_ns);
	struct err err;

	if (limit_ns <= p->receiver_ns)
		return false;
	uint64_t event_ns = min3(pipe_next_ns(&p->data), path_next_ns(p->forward), limit_ns);

	event_ns = event_before(node, event_ns, p->receiver_ns);
	uint64_t end_ns = time_min(event_ns + node->ops->window_max_ns, limit_ns);

	take_data(p, end_ns - 1);
	node->ops->run_until(node, end_ns - 1, &err);
	p->receiver_ns = end_ns;
	return true;
}

// Whether all before the boundary is done.
static bool at_rest(struct pipeline *p, uint64_t sent_ns, uint64_t boundary_ns) {
	return sent_ns == boundary_ns && p->receiver_ns == boundary_ns
		&& load(&p->acked_ns) == boundary_ns && pipe_next_ns(&p->data) == NEVER_NS;
}

static void receiver_loop(struct pipeline *p, uint64_t boundary_ns) {
	uint32_t waits = 0;
	uint64_t sent_ns;

	do {
		give_acks(p, boundary_ns);
		sent_ns = load(&p->sent_ns);
		if (run_receiver(p, sent_ns, boundary_ns) || take_data(p, boundary_ns - 1))
			waits = 0;
		else
			pipe_wait(&waits);
	} while (!at_rest(p, sent_ns, boundary_ns));
	store(&p->rest_ns, boundary_ns);
}

static void *thread_main(void *arg) {
	struct pipeline *p = arg;
	uint32_t waits = 0;

	while (!atomic_load_explicit(&p->ends, memory_order_acquire)) {
		uint64_t boundary_ns = load(&p->boundary_ns);

		if (boundary_ns == p->receiver_ns) {
			pipe_wait(&waits);
			continue;
		}
		receiver_loop(p, boundary_ns);
		waits = 0;
	}
	return NULL;
}

// ---- Both ----

uint64_t pipeline_run(struct pipeline *p, uint64_t boundary_ns) {
	uint32_t waits = 0;

	p->there_ns = path_min_delay_ns(p->forward);
	p->back_ns = path_min_delay_ns(p->reverse);
	store(&p->boundary_ns, boundary_ns);
	sender_loop(p, boundary_ns);
	while (load(&p->rest_ns) != boundary_ns)
		pipe_wait(&waits);
	p->pools->inside += p->own.inside;
	p->own.inside = 0;
	return boundary_ns;
}

// Large pools of data go from the sender to the paths; the sender gets small ones of data and ACKs.
static int pools_divide(struct pipeline *p, struct err *err) {
	int rc = 0;

	for (uint8_t i = 0; rc == 0 && i < POOL_FRAMES; i++) {
		size_t object = p->pools->pool[i]->object;
		struct pool *own = &p->ack_pool[i / 2];

		if (i % 2 == FLOWS_FORWARD) {
			own = &p->sender->pool[i / 2];
			p->data_pool[i / 2] = *own;
			p->pools->pool[i] = &p->data_pool[i / 2];
		}
		rc = pool_init(&p->own, own, i, object, OWN_PKTS, err);
	}
	p->sender->pools = &p->own;
	return rc;
}

static void pipe_init(struct pipe *pipe, struct pools *giver, struct pools *taker) {
	pipe->node.ops = &pipe_ops;
	pipe->giver = giver;
	pipe->taker = taker;
}

static void connect(struct pipeline *p) {
	pipe_init(&p->data, &p->own, p->pools);
	pipe_init(&p->acks, p->pools, &p->own);
	p->into_forward = p->sender->to;
	p->off_reverse = p->sender->from;
	p->sender->to = &p->data.node;
	p->sender->from = &p->acks.node;
}

int pipeline_begin(struct pipeline **pipeline, const struct pipeline_env *env, struct err *err) {
	struct pipeline *p = mem_map(sizeof(*p));
	int rc;

	if (p == NULL)
		return err_set(err, -ENOMEM, "no memory for a second thread");
	*pipeline = p;
	p->sender = env->sender;
	p->receiver = env->receiver;
	p->forward = env->forward;
	p->reverse = env->reverse;
	p->pools = env->pools;
	p->data.refused = env->refused;
	p->data.ctx = env->ctx;
	rc = pools_divide(p, err);
	connect(p);
	if (rc == 0 && pthread_create(&p->thread, NULL, thread_main, p) != 0)
		rc = err_set(err, -EAGAIN, "cannot begin a second thread");
	p->begun = rc == 0;
	return rc;
}

void pipeline_end(struct pipeline *p) {
	if (p == NULL)
		return;
	atomic_store_explicit(&p->ends, true, memory_order_release);
	if (p->begun)
		pthread_join(p->thread, NULL);
	pools_fini(&p->own);
	mem_unmap(p, sizeof(*p));
}
