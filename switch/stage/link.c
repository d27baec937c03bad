// SPDX-License-Identifier: BSD-3-Clause
// A link: one queue discipline and a serialiser.
//
// The serialiser is a virtual finish time (as in GCRA, ITU-T I.371), not a token bucket: no burst,
// and an exact rate in the long run.
//
//	start     = max(arrival, end of the frame before)
//	departure = start + (size - FCS + overhead) * 8 / rate
//
// serial.h has the arithmetic: a busy link's rate is off by less than 1e-10 up to 1 Tbit/s.
//
// `overhead` counts per frame on top of the frame without FCS: with the default of 24 B (FCS,
// preamble, start delimiter, gap) a rate of 10 Gbit/s is 10GbE on the wire, where a frame of
// 1514 B takes 1538 B. 0 makes the rate one of frames without FCS.
//
// Logical time: the queue gives up a packet at the moment the wire becomes free, and sees that
// moment, however late the loop runs. A departure at the time of an arrival comes first. The queue
// does not hold the frame on the wire. A new rate applies from the next frame; limits in BDP or
// time stay as they were resolved at the start.
//
// Backlog over time costs one addition per event: the integral up to t is
// q(t) t - sum of t_i over arrivals + sum of t_i over departures from the queue, modulo 2^64 for
// packets (10^6 of them for five hours), 2^128 for bytes.
#include "link.h"

#include "aqm/fifo.h"
#include "rng.h"
#include "serial.h"

#include <errno.h>
#include <stdlib.h>

// What every packet changes. A burst works on a copy of it, which the compiler keeps in registers.
struct link_hot {
	// The wire.
	uint64_t free_ns; // end of the frame on the wire, or of the last one
	uint64_t free_frac;
	struct pkt *wire; // the frame being sent; NULL: idle
	// The queue. Counters are few: what can be told from others is.
	uint64_t queue_pkts, queue_bytes;
	uint64_t moment_pkts; // sum over arrivals - sum over departures of n_i t_i
	link_u128 moment_bytes;
	uint64_t peak_pkts, peak_ns; // since a window was restarted or read
	// Frames given to the wire, FCS included, and their times in the queue.
	uint64_t sent, sent_bytes;
	uint64_t sojourn_ns;
};

struct link {
	uint64_t rate_bps;
	uint64_t overhead_bytes;
	uint64_t byte_ns; // per byte, in 2^-40 ns
	const struct aqm_ops *aqm;
	void *q;
	struct link_hot hot;
	struct pkt_ring out; // sent, not yet taken

	// Totals.
	uint64_t drops, marks;
	uint64_t rate_now_bps; // what `capacity` counts since rate_since_ns
	uint64_t rate_since_ns;
	link_u128 capacity;
	uint64_t old_free_ns; // end of the frame that was on the wire when the rate changed,
	uint64_t old_bps; // and its rate

	const struct stage_env *env;
	struct tel *tel; // NULL: off
	struct link_peak peak[LINK_WINDOWS];
	struct hist sojourn; // since the measurement was restarted
};

static const struct param params[] = {
	{"rate", NULL, "bits per second on the wire", UNIT_RATE_BPS,
		PARAM_U64(struct link, rate_bps), 1e3, 1e12, .live = true},
	{"overhead", "24B", "per frame, on top of the frame without FCS", UNIT_BYTES,
		PARAM_U64(struct link, overhead_bytes), 0, 1000},
	PARAM_END,
};

static const char *const also[] = {"queue", NULL};

static int link_configure(void *self, struct config_node *node, struct err *err) {
	struct link *l = self;
	struct config_node *queue = config_get(node, "queue");
	struct config_node *queue_params;
	const char *name = "fifo";

	if (queue == NULL) {
		queue = config_section(node, "queue");
		queue_params = config_section(queue, name);
	} else {
		int rc = config_plugin(queue, "queue", &name, &queue_params, err);
		if (rc < 0)
			return rc;
	}
	l->aqm = aqm_find(name);
	if (l->aqm == NULL)
		return config_err(queue, -EINVAL, err,
			"queue: there is no '%s'; see --list aqm for the ones there are", name);
	l->q = calloc(1, l->aqm->state_size);
	if (l->q == NULL)
		return err_set(err, -ENOMEM, "no memory for a queue");
	return config_params(queue_params, name, l->aqm->params, NULL, l->q, err);
}

static void link_update(void *self, uint64_t now_ns) {
	struct link *l = self;

	if (l->hot.wire != NULL && l->hot.free_ns != l->old_free_ns) {
		l->old_free_ns = l->hot.free_ns;
		l->old_bps = l->rate_now_bps;
	}
	l->capacity += (link_u128)l->rate_now_bps * time_since(now_ns, l->rate_since_ns);
	l->rate_since_ns = now_ns;
	l->rate_now_bps = l->rate_bps;
	l->byte_ns = serial_byte_ns(l->rate_bps);
}

static int link_init(void *self, const struct stage_env *env, struct err *err) {
	struct link *l = self;
	struct rng seed;

	rng_init(&seed, env->run_seed, env->name);
	struct aqm_env aqm_env = {
		.rate_bps = l->rate_bps,
		.base_rtt_ns = env->base_rtt_ns,
		.overhead_bytes = l->overhead_bytes > SERIAL_FCS_BYTES
			? (uint32_t)l->overhead_bytes - SERIAL_FCS_BYTES
			: 0,
		.mtu_bytes = env->mtu_bytes,
		.seed = rng_u64(&seed),
	};
	l->env = env;
	l->tel = env->tel_packets;
	link_update(self, 0);
	return l->aqm->init(l->q, &aqm_env, err);
}

static void link_fini(void *self) {
	struct link *l = self;

	if (l->q != NULL && l->aqm->fini != NULL)
		l->aqm->fini(l->q);
	free(l->q);
	pkt_ring_fini(&l->out);
}

// A burst asks once what does not change in it: the loops are compiled twice, once for links that are
// `plain`, a fifo whose packets nobody records. (The stream may be opened after the link was made.)
#define LOOP static inline __attribute__((always_inline))

static inline bool link_plain(const struct link *l) {
	return l->aqm == &aqm_fifo && !tel_on(l->tel);
}

LOOP void link_tell(const struct link *l, enum tel_packet_event event, const struct pkt *p,
	uint64_t ts_ns, uint64_t queue_bytes, bool plain) {
	if (!plain && __builtin_expect(tel_on(l->tel), 0))
		stage_tell(l->env, event, p, ts_ns, queue_bytes);
}

// p came into the queue (n = 1) or left it (n = -1) at t_ns.
static inline void queue_count(struct link_hot *h, const struct pkt *p, uint64_t t_ns, int n) {
	if (n > 0) {
		h->queue_pkts++;
		h->queue_bytes += p->size_bytes;
		h->moment_pkts += t_ns;
		h->moment_bytes += (link_u128)t_ns * p->size_bytes;
	} else {
		h->queue_pkts--;
		h->queue_bytes -= p->size_bytes;
		h->moment_pkts -= t_ns;
		h->moment_bytes -= (link_u128)t_ns * p->size_bytes;
	}
}

// Counts what the discipline has just put on the list of drops. (The copy stays in registers only if
// nothing else is given its address.)
__attribute__((noinline)) static struct link_hot link_dropped(
	struct link *l, struct link_hot h, const struct pkt *first, uint64_t t_ns) {
	for (const struct pkt *p = first; p != NULL; p = p->next) {
		queue_count(&h, p, t_ns, -1);
		l->drops++;
		link_tell(l, TEL_DROP, p, t_ns, h.queue_bytes, false);
	}
	return h;
}

// The wire is free at t_ns: the discipline picks the next frame.
LOOP void link_send(
	struct link *l, struct link_hot *h, uint64_t t_ns, struct pkt_list *drops, bool plain) {
	uint32_t before = drops->count;
	const struct pkt *last = drops->tail;
	struct pkt *p = plain ? fifo_get(l->q) : l->aqm->dequeue(l->q, t_ns, drops);

	if (!plain && __builtin_expect(drops->count != before, 0))
		*h = link_dropped(l, *h, before > 0 ? last->next : drops->head, t_ns);
	h->wire = p;
	if (p == NULL)
		return;

	uint64_t sojourn_ns = time_since(t_ns, p->arrival_ns);
	uint64_t bytes = p->size_bytes + l->overhead_bytes - SERIAL_FCS_BYTES;

	h->free_ns = serial_end(t_ns, bytes, l->byte_ns, &h->free_frac);
	h->sent++;
	h->sent_bytes += p->size_bytes;
	h->sojourn_ns += sojourn_ns;
	l->sojourn.count[hist_bucket(sojourn_ns)]++;
	h->peak_ns = time_max(h->peak_ns, sojourn_ns);
	queue_count(h, p, t_ns, -1);
	if (!plain && __builtin_expect(p->flags & PKT_MARKED, 0)) {
		p->flags &= (uint8_t)~PKT_MARKED;
		l->marks++;
		link_tell(l, TEL_MARK, p, t_ns, h->queue_bytes, plain);
	}
	link_tell(l, TEL_DEQUEUE, p, t_ns, h->queue_bytes, plain);
}

// The frame on the wire has left; the next one starts at that moment.
LOOP struct pkt *link_sent(struct link *l, struct link_hot *h, struct pkt_list *drops, bool plain) {
	struct pkt *p = h->wire;

	p->arrival_ns = h->free_ns;
	if (h->queue_pkts > 0)
		link_send(l, h, h->free_ns, drops, plain);
	else
		h->wire = NULL;
	return p;
}

static inline void link_out(struct link *l, struct pkt *p, struct pkt_list *drops) {
	if (__builtin_expect(!pkt_ring_push(&l->out, p), 0))
		pkt_drop(drops, p, DROP_NO_MBUF);
}

LOOP void link_work(
	struct link *l, struct link_hot *h, uint64_t now_ns, struct pkt_list *drops, bool plain) {
	while (h->wire != NULL && h->free_ns <= now_ns)
		link_out(l, link_sent(l, h, drops, plain), drops);
}

void link_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct link *l = self;
	struct link_hot h = l->hot;

	link_work(l, &h, now_ns, drops, false);
	l->hot = h;
}

LOOP void link_take(
	struct link *l, struct link_hot *h, struct pkt *p, struct pkt_list *drops, bool plain) {
	uint32_t before = drops->count;
	const struct pkt *last = drops->tail;
	uint64_t t_ns = p->arrival_ns;

	queue_count(h, p, t_ns, 1);
	if (plain)
		fifo_put(l->q, p, drops);
	else
		l->aqm->enqueue(l->q, p, t_ns, drops);
	if (__builtin_expect(drops->count != before, 0))
		*h = link_dropped(l, *h, before > 0 ? last->next : drops->head, t_ns);
	if (drops->count == before || drops->tail != p)
		link_tell(l, TEL_ENQUEUE, p, t_ns, h->queue_bytes, plain);
	if (h->wire == NULL) {
		// A packet may come in after the link was served beyond its arrival.
		if (t_ns > h->free_ns)
			h->free_frac = 0;
		link_send(l, h, time_max(t_ns, h->free_ns), drops, plain);
	}
	h->peak_pkts = time_max(h->peak_pkts, h->queue_pkts);
}

LOOP void link_push_all(
	struct link *l, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops, bool plain) {
	struct link_hot h = l->hot;

	for (uint32_t i = 0; i < n; i++) {
		link_work(l, &h, pkts[i]->arrival_ns, drops, plain);
		link_take(l, &h, pkts[i], drops, plain);
	}
	l->hot = h;
}

static void link_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	if (link_plain(self))
		link_push_all(self, pkts, n, drops, true);
	else
		link_push_all(self, pkts, n, drops, false);
}

LOOP uint32_t link_send_all(struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t n,
	uint32_t max, struct pkt_list *drops, bool plain) {
	struct link_hot h = l->hot;

	do
		pkts[n++] = link_sent(l, &h, drops, plain);
	while (n < max && h.wire != NULL && h.free_ns <= now_ns);
	l->hot = h;
	return n;
}

static uint32_t link_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct link *l = self;
	uint32_t n = 0;

	while (n < max && l->out.count > 0 && pkt_ring_head(&l->out)->arrival_ns <= now_ns)
		pkts[n++] = pkt_ring_pop(&l->out);
	if (n == max || l->out.count > 0 || l->hot.wire == NULL || l->hot.free_ns > now_ns)
		return n;
	return link_plain(l) ? link_send_all(l, now_ns, pkts, n, max, drops, true)
			     : link_send_all(l, now_ns, pkts, n, max, drops, false);
}

static uint64_t link_next_ns(const void *self) {
	const struct link *l = self;

	if (l->out.count > 0)
		return pkt_ring_head(&l->out)->arrival_ns;
	return l->hot.wire != NULL ? l->hot.free_ns : NEVER_NS;
}

// Asks the discipline, so that the ledger does not rest on the link's own counts.
static struct backlog link_backlog(const void *self) {
	const struct link *l = self;
	const struct pkt *wire = l->hot.wire;
	struct backlog b = l->aqm->backlog(l->q);

	b.pkts += l->out.count + (wire != NULL);
	b.bytes += l->out.bytes + (wire != NULL ? wire->size_bytes : 0);
	return b;
}

struct link_totals link_totals(const void *self, uint64_t now_ns) {
	const struct link *l = self;
	const struct link_hot *h = &l->hot;
	uint64_t overhead_bytes =
		h->sent * (l->overhead_bytes - SERIAL_FCS_BYTES); // modulo 2^64, as the sum
	uint64_t sending_bps = h->free_ns == l->old_free_ns ? l->old_bps : l->rate_now_bps;
	double unsent_ns = h->wire != NULL ? (double)time_since(h->free_ns, now_ns) : 0.0;

	return (struct link_totals){
		.at_ns = now_ns,
		.out_pkts = h->sent - (h->wire != NULL),
		.out_bytes = h->sent_bytes - (h->wire != NULL ? h->wire->size_bytes : 0),
		.dequeued = h->sent,
		.sojourn_ns = h->sojourn_ns,
		.drops = l->drops,
		.marks = l->marks,
		.queue_pkt_ns = now_ns * h->queue_pkts - h->moment_pkts,
		.queue_byte_ns = (link_u128)now_ns * h->queue_bytes - h->moment_bytes,
		.capacity = l->capacity
			+ (link_u128)l->rate_now_bps * time_since(now_ns, l->rate_since_ns),
		.wire_bits = 8.0 * (double)(h->sent_bytes + overhead_bytes)
			- unsent_ns * (double)sending_bps / 1e9,
	};
}

struct link_figures link_figures(const struct link_totals *from, const struct link_totals *to) {
	double ns = (double)time_since(to->at_ns, from->at_ns);
	double capacity_bits = (double)(to->capacity - from->capacity) / 1e9;
	uint64_t dequeued = to->dequeued - from->dequeued;
	struct link_figures f = {0};

	if (capacity_bits > 0) {
		f.utilisation = (to->wire_bits - from->wire_bits) / capacity_bits;
		// A frame that started before the rate was lowered; the last bits of a double.
		f.utilisation = f.utilisation > 1 ? 1 : f.utilisation < 0 ? 0 : f.utilisation;
	}
	if (ns > 0) {
		f.queue_mean_pkts = (double)(to->queue_pkt_ns - from->queue_pkt_ns) / ns;
		f.queue_mean_bytes = (double)(to->queue_byte_ns - from->queue_byte_ns) / ns;
	}
	if (dequeued > 0)
		f.sojourn_mean_ns = (double)(to->sojourn_ns - from->sojourn_ns) / (double)dequeued;
	return f;
}

const struct link_peak *link_peak(void *self, enum link_window window) {
	struct link *l = self;

	for (uint32_t w = 0; w < LINK_WINDOWS; w++) {
		l->peak[w].queue_pkts = time_max(l->peak[w].queue_pkts, l->hot.peak_pkts);
		l->peak[w].sojourn_ns = time_max(l->peak[w].sojourn_ns, l->hot.peak_ns);
	}
	l->hot.peak_pkts = l->hot.queue_pkts;
	l->hot.peak_ns = 0;
	return &l->peak[window];
}

void link_restart(void *self, enum link_window window, uint64_t now_ns) {
	struct link *l = self;

	link_peak(l, window);
	l->peak[window] = (struct link_peak){
		.queue_pkts = l->hot.queue_pkts,
		.from = link_totals(l, now_ns),
	};
	if (window == LINK_RUN)
		hist_reset(&l->sojourn);
}

// The link counts buckets alone; the rest is known.
const struct hist *link_sojourn(void *self) {
	struct link *l = self;
	const struct link_peak *run = link_peak(l, LINK_RUN);

	l->sojourn.total = l->hot.sent - run->from.dequeued;
	l->sojourn.sum = l->hot.sojourn_ns - run->from.sojourn_ns;
	l->sojourn.max = run->sojourn_ns;
	return &l->sojourn;
}

struct backlog link_queue(const void *self) {
	const struct link *l = self;

	return (struct backlog){.pkts = l->hot.queue_pkts, .bytes = l->hot.queue_bytes};
}

void link_stream(void *self, struct tel *packets) {
	((struct link *)self)->tel = packets;
}

uint64_t link_rate_bps(const void *self) {
	const struct link *l = self;

	return l->rate_bps;
}

struct aqm_limit link_limit(const void *self) {
	const struct link *l = self;

	return l->aqm->limit(l->q);
}

const struct stage_ops stage_link = {
	.name = "link",
	.summary = "a queue and a serialiser of constant rate",
	.params = params,
	.also = also,
	.state_size = sizeof(struct link),
	.configure = link_configure,
	.init = link_init,
	.fini = link_fini,
	.push = link_push,
	.pop = link_pop,
	.next_ns = link_next_ns,
	.backlog = link_backlog,
	.update = link_update,
};
