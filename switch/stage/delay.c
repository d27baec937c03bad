// SPDX-License-Identifier: BSD-3-Clause
// Constant one-way delay: departure = arrival + delay (+ the class's own extra delay).
//
// Packets of one delay class leave in order of arrival, so each class is a FIFO; a small heap over
// the heads of the non-empty classes finds the next packet. Ties leave in order of arrival. A class
// is a flow group, or one flow where those of a group have base RTTs of their own; the heap then
// holds the flows that have packets under way.
//
// Deliberate reordering: a fraction `late` of the packets, drawn from this stage's own random
// stream, waits `late_by` longer and is overtaken by the others. Late packets are a second FIFO of
// their class.
//
// `on_decrease` decides on the packets inside when the delay is lowered during a run:
//
//	reorder  each packet keeps its delay, and later ones overtake it, as on a route change and
//	         in Linux's netem. The default: each packet has the delay of a real path, and
//	         packets leave with their spacing at arrival.
//	fifo     each packet keeps its delay and none is overtaken: later ones wait for the last of
//	         them and leave in the same nanosecond, as behind a link layer that delivers in
//	         order:
//	         departure = max(departure before, arrival + delay)
//	step     the new delay applies to all packets at once: those already due leave at the moment
//	         of the change, the others at arrival + delay. Order is kept.
//
// A higher delay applies from the next packet on. Overtaken packets move to a separate list, sorted
// by departure, which is one more FIFO in the heap: this needs no extra memory, and time only at a
// change.
#include "switch/stage/flow_delays.h"

#include "common/base/likely.h"
#include "common/base/pkt_ring.h"
#include "common/base/rng.h"
#include "switch/stage/heads.h"

#include <errno.h>
#include <stdlib.h>

// The FIFO of one class.
struct line {
	struct pkt_ring q;
	uint64_t delay_ns;
	uint64_t last_ns; // departure of the packet pushed last
};

enum on_decrease { DECREASE_REORDER, DECREASE_FIFO, DECREASE_STEP };
static const char *const decrease_names[] = {"reorder", "fifo", "step", NULL};

struct delay {
	uint64_t delay_ns;
	double late;
	uint64_t late_by_ns;
	int on_decrease;

	uint32_t heads;
	uint32_t classes;
	uint64_t pkts;
	uint64_t late_threshold;
	bool random; // a packet was subject to a draw
	struct pkt_list out; // departed while the line was full, not yet taken
	struct pkt_list overtaken; // by departure
	struct head *heap; // binary, smallest first; from is a line, NULL: overtaken
	struct line *line; // one per class, then one per class for late packets
	const struct stage_env *env;
	struct rng rng;
};

static const struct param params[] = {
	{"delay", NULL, "one-way propagation delay", UNIT_TIME_NS,
		PARAM_U64(struct delay, delay_ns), 0, 60e9, .live = true},
	{"late", "0%", "share of packets that wait longer and are overtaken", UNIT_RATIO,
		PARAM_F64(struct delay, late), 0, 1, .live = true},
	{"late_by", "0ms", "how much longer", UNIT_TIME_NS, PARAM_U64(struct delay, late_by_ns), 0,
		60e9, .live = true},
	{"on_decrease", "reorder",
		"when the delay falls: packets inside keep theirs and are overtaken (reorder) or "
		"hold up later ones (fifo), or take the new delay at once (step)",
		UNIT_NONE, PARAM_ENUM(struct delay, on_decrease, decrease_names)},
	PARAM_END,
};

// Updates the heap after packets have left the line at its root; `first`: the line's new head,
// NULL: it is empty.
static inline void delay_reroot(struct delay *d, struct line *line, const struct pkt *first) {
	if (first != NULL)
		heads_sink(d->heap, d->heads, (struct head){first->release_ns, first, line});
	else if (--d->heads > 0)
		heads_sink(d->heap, d->heads, d->heap[d->heads]);
}

#define FETCH_FROM 512 // packets in a line from which on the first have left the cache

// Takes up to `max` packets due by now_ns off the line whose head leaves first: those that leave
// before any other line's head, up to the end of its ring. Ties are left to the heap. The caller
// knows that the first one is due.
static inline uint32_t delay_release(
	struct delay *d, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	uint64_t end_ns = time_min(now_ns + 1, heads_second_ns(d->heap, d->heads));
	struct line *line = d->heap[0].from;

	if (unlikely(line == NULL)) {
		pkts[0] = pkt_list_pop(&d->overtaken);
		pkts[0]->arrival_ns = pkts[0]->release_ns;
		d->pkts--;
		delay_reroot(d, NULL, d->overtaken.head);
		return 1;
	}

	const struct pkt_ring q = line->q; // a copy that stays in registers
	uint32_t most = max, n = 0;
	struct pkt *const *oldest = pkt_ring_oldest(&q, &most);
	struct pkt *p = oldest[0];
	bool fetch = q.count >= FETCH_FROM;
	uint64_t bytes = 0;

	do {
		p->arrival_ns = p->release_ns;
		bytes += p->size_bytes;
		pkts[n] = p;
	} while (++n < most && (p = oldest[n])->release_ns < end_ns);
	for (uint32_t i = 0; fetch && i < n; i++)
		pkt_ring_fetch(&q, i);
	pkt_ring_skip(&line->q, n, bytes);
	d->pkts -= n;
	delay_reroot(d, line, n < q.count ? pkt_ring_head(&line->q) : NULL);
	return n;
}

// Moves all packets from their lines to the list of overtaken ones, in order of departure, so that
// later arrivals may leave before them.
static void delay_overtake(struct delay *d) {
	struct pkt_list all = {0};

	while (d->heads > 0) {
		struct line *line = d->heap[0].from;

		if (line == NULL) {
			pkt_list_push(&all, pkt_list_pop(&d->overtaken));
			delay_reroot(d, NULL, d->overtaken.head);
		} else {
			pkt_list_push(&all, pkt_ring_pop(&line->q));
			delay_reroot(d, line, line->q.count > 0 ? pkt_ring_head(&line->q) : NULL);
		}
	}
	for (uint32_t i = 0; i < 2 * d->classes; i++)
		d->line[i].last_ns = 0;
	d->overtaken = all;
	if (all.head != NULL)
		heads_rise(
			d->heap, d->heads++, (struct head){all.head->release_ns, all.head, NULL});
}

// Applies a lower delay to the packets inside; none leaves later than before.
static void delay_step(struct delay *d, uint64_t now_ns) {
	d->heads = 0;
	for (uint32_t i = 0; i < 2 * d->classes; i++) {
		struct line *line = &d->line[i];
		struct pkt *p;

		for (uint32_t k = 0; k < line->q.count; k++) {
			p = pkt_ring_at(&line->q, k);
			p->release_ns = time_min(
				p->release_ns, time_max(now_ns, p->arrival_ns + line->delay_ns));
			line->last_ns = p->release_ns;
		}
		if (line->q.count == 0)
			continue;
		p = pkt_ring_head(&line->q);
		heads_rise(d->heap, d->heads++, (struct head){p->release_ns, p, line});
	}
}

static void delay_update(void *self, uint64_t now_ns) {
	struct delay *d = self;
	bool lower = false, extras = stage_extras(d->env) > 0;

	d->late_threshold = rng_threshold(d->late);
	d->random |= d->late > 0 && d->late_by_ns > 0;
	for (uint32_t i = 0; i < 2 * d->classes; i++) {
		uint64_t delay_ns = d->delay_ns + (i < d->classes ? 0 : d->late_by_ns);

		if (extras)
			delay_ns += stage_extra_ns(d->env, i % d->classes);

		lower |= delay_ns < d->line[i].delay_ns;
		d->line[i].delay_ns = delay_ns;
	}
	if (lower && d->on_decrease == DECREASE_REORDER)
		delay_overtake(d);
	else if (lower && d->on_decrease == DECREASE_STEP)
		delay_step(d, now_ns);
}

static int delay_init(void *self, const struct stage_env *env, struct err *err) {
	struct delay *d = self;

	d->env = env;
	d->classes = stage_extras(env) > 0 ? stage_extras(env) : 1;
	d->heap = calloc(2 * (size_t)d->classes + 1, sizeof(*d->heap));
	d->line = calloc(2 * (size_t)d->classes, sizeof(*d->line));
	if (d->heap == NULL || d->line == NULL)
		return err_set(err, -ENOMEM, "no memory for %u delay classes", d->classes);
	rng_init(&d->rng, env->run_seed, env->name);
	delay_update(self, 0);
	return 0;
}

static bool delay_random(const void *self) {
	const struct delay *d = self;

	return d->random;
}

static void delay_fini(void *self) {
	struct delay *d = self;

	for (uint32_t i = 0; d->line != NULL && i < 2 * d->classes; i++)
		pkt_ring_fini(&d->line[i].q);
	free(d->heap);
	free(d->line);
}

static inline bool delay_due(const struct delay *d, uint64_t now_ns) {
	return d->heads > 0 && d->heap[0].release_ns <= now_ns;
}

// Whether there is no room for a packet that arrives at t_ns. Packets due by then do not count,
// even if pop has not taken them yet.
__attribute__((noinline)) static bool delay_full(struct delay *d, uint64_t t_ns) {
	struct pkt *p = NULL;

	while (delay_due(d, t_ns)) {
		delay_release(d, t_ns, &p, 1);
		pkt_list_push(&d->out, p);
	}
	return d->pkts >= d->env->max_pkts;
}

// Puts packets into a line that has room for them.
static inline void line_take(
	struct delay *d, struct line *line, struct pkt *const *pkts, uint32_t n) {
	if (line->q.count == 0)
		line->q.head = 0; // the same slots again, which are in the cache

	const struct pkt_ring q = line->q; // a copy that stays in registers
	uint64_t delay_ns = line->delay_ns, last_ns = line->last_ns, bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = pkts[i];

		last_ns = time_max(last_ns, p->arrival_ns + delay_ns);
		p->release_ns = last_ns;
		bytes += p->size_bytes;
		pkt_ring_put(&q, i, p);
	}
	pkt_ring_add(&line->q, n, bytes);
	line->last_ns = last_ns;
	d->pkts += n;
	if (q.count == 0)
		heads_rise(d->heap, d->heads++, (struct head){pkts[0]->release_ns, pkts[0], line});
}

// A flow's own line begins small: there may be a million of them.
static bool line_grow(struct pkt_ring *q, bool flow) {
	return flow ? pkt_ring_grow_small(q) : pkt_ring_grow(q);
}

// Pushes packets one by one, each into the line of its class.
__attribute__((noinline)) static void delay_sort(
	struct delay *d, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = pkts[i];
		uint32_t class = d->classes == 1 ? 0 : stage_extra_of(d->env, p);
		struct line *line = &d->line[class];

		if (d->late_threshold > 0 && rng_below(&d->rng, d->late_threshold))
			line += d->classes;
		if (unlikely(d->pkts >= d->env->max_pkts) && delay_full(d, p->arrival_ns))
			stage_drop(d->env, drops, p, DROP_DELAY_FULL);
		else if (unlikely(pkt_ring_room(&line->q) == 0)
			&& !line_grow(&line->q,
				d->env->flow_delays != NULL && class >= d->env->class_count))
			stage_drop(d->env, drops, p, DROP_NO_MBUF);
		else
			line_take(d, line, &p, 1);
	}
}

static void delay_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct delay *d = self;

	if (d->classes == 1 && d->late_threshold == 0 && pkt_ring_room(&d->line->q) >= n
		&& d->pkts + n <= d->env->max_pkts)
		line_take(d, d->line, pkts, n);
	else
		delay_sort(d, pkts, n, drops);
}

static uint32_t delay_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct delay *d = self;
	uint32_t n = 0;

	while (n < max && unlikely(d->out.head != NULL) && d->out.head->arrival_ns <= now_ns)
		pkts[n++] = pkt_list_pop(&d->out);
	if (d->out.head != NULL)
		return n;
	while (n < max && delay_due(d, now_ns))
		n += delay_release(d, now_ns, pkts + n, max - n);
	return n;
}

static uint64_t delay_next_ns(const void *self) {
	const struct delay *d = self;

	if (d->out.head != NULL)
		return d->out.head->arrival_ns;
	return d->heads == 0 ? NEVER_NS : d->heap[0].release_ns;
}

static struct backlog delay_backlog(const void *self) {
	const struct delay *d = self;

	struct backlog b = {
		.pkts = d->pkts + d->out.count, .bytes = d->out.bytes + d->overtaken.bytes};

	for (uint32_t i = 0; i < 2 * d->classes; i++)
		b.bytes += d->line[i].q.bytes;
	return b;
}

// A lower bound, because extra delays per class are only added.
static uint64_t delay_min_delay_ns(const void *self) {
	const struct delay *d = self;

	return d->delay_ns;
}

static uint64_t delay_max_delay_ns(const void *self) {
	const struct delay *d = self;
	uint64_t max_ns = 0;

	for (uint32_t i = 0; i < 2 * d->classes; i++)
		max_ns = time_max(max_ns, d->line[i].delay_ns);
	return max_ns;
}

const struct stage_ops stage_delay = {
	.name = "delay",
	.summary = "constant one-way delay, per flow group if wanted, with late packets",
	.params = params,
	.state_size = sizeof(struct delay),
	.init = delay_init,
	.fini = delay_fini,
	.push = delay_push,
	.pop = delay_pop,
	.next_ns = delay_next_ns,
	.backlog = delay_backlog,
	.config = &(const struct stage_config){.update = delay_update},
	.delay = &(const struct stage_delay){.min_ns = delay_min_delay_ns,
		.max_ns = delay_max_delay_ns},
	.needs = &(const struct stage_needs){.random = delay_random,
		.rng = offsetof(struct delay, rng)},
};
