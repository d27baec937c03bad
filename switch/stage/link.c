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
// does not hold the frame on the wire. Limits in BDP or time stay as they were resolved at the start.
//
// A new rate applies from the moment it is set: what is not sent yet of the frame on the wire goes at it.
// Departures that were taken before stay as they are, and are right: pop gives up a frame no earlier than
// its end, however many it takes at once, so the frame on the wire is the only one whose end was computed
// with the old rate and lies ahead. (A path serves its links up to the time of the change before it.)
//
// Backlog over time costs one addition per event: the integral up to t is
// q(t) t - sum of t_i over arrivals + sum of t_i over departures from the queue, modulo 2^64 for
// packets (10^6 of them for five hours), 2^128 for bytes.
#include "switch/stage/link.h"

#include "common/base/likely.h"
#include "common/base/rng.h"
#include "switch/aqm/fifo.h"
#include "switch/stage/serial.h"
#include "switch/stage/tell.h"

#include <errno.h>
#include <stdlib.h>

struct link {
	uint64_t rate_bps;
	uint64_t overhead_bytes;
	uint64_t byte_ns; // per byte, in 2^-40 ns
	const struct aqm_ops *aqm;
	void *q;
	// The wire.
	serial_u128 free; // end of the frame on the wire, or of the last one
	struct pkt *wire; // the frame being sent; NULL: idle
	// The queue. Counters are few: what can be told from others is.
	uint64_t queue_pkts, queue_bytes;
	uint64_t moment_pkts; // sum over arrivals - sum over departures of n_i t_i
	link_u128 moment_bytes;
	uint64_t peak_pkts, peak_ns; // since a window was restarted or read
	// Frames given to the wire, FCS included, and their times in the queue.
	uint64_t sent, sent_bytes;
	uint64_t sojourn_ns;
	struct pkt_ring out; // sent, not yet taken
	struct pkt_list fresh; // dropped by the discipline, not yet counted; empty between calls

	// Totals.
	uint64_t drops, marks;
	uint64_t rate_now_bps; // what `capacity` counts since rate_since_ns
	uint64_t rate_since_ns;
	link_u128 capacity;

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
	if (l->aqm == NULL) {
		char known[CONFIG_NAMES_SIZE] = "";

		for (const struct aqm_ops *const *o = aqm_all; *o != NULL; o++)
			config_name_add(known, (*o)->name);
		return config_err(queue, -EINVAL, err,
			"queue: '%s' is not a queue discipline; there is %s", name, known);
	}
	l->q = calloc(1, l->aqm->state_size);
	if (l->q == NULL)
		return err_set(err, -ENOMEM, "no memory for a queue");
	return config_params(queue_params, name, l->aqm->params, NULL, l->q, err);
}

// The present rate has held until now_ns, if for any time at all.
static void link_rate_held(struct link *l, uint64_t now_ns) {
	struct link_peak *run = &l->peak[LINK_RUN];

	if (now_ns <= time_max(l->rate_since_ns, run->from.at_ns))
		return;
	run->rate_max_bps = time_max(run->rate_max_bps, l->rate_now_bps);
	run->rate_min_bps = run->rate_min_bps == 0 ? l->rate_now_bps
						   : time_min(run->rate_min_bps, l->rate_now_bps);
}

static void link_update(void *self, uint64_t now_ns) {
	struct link *l = self;
	uint64_t byte_ns = serial_byte_ns(l->rate_bps);

	link_rate_held(l, now_ns);
	if (l->wire != NULL)
		l->free = serial_changed_end(l->free, now_ns,
			l->wire->size_bytes + l->overhead_bytes - SERIAL_FCS_BYTES, l->byte_ns,
			byte_ns);
	l->capacity += (link_u128)l->rate_now_bps * time_since(now_ns, l->rate_since_ns);
	l->rate_since_ns = now_ns;
	l->rate_now_bps = l->rate_bps;
	l->byte_ns = byte_ns;
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

// What the discipline has just dropped. given_bytes: of frames given to the wire and not yet counted.
__attribute__((noinline)) static void link_dropped(
	struct link *l, uint64_t t_ns, uint64_t given_bytes, struct pkt_list *drops) {
	uint64_t queue_bytes = l->queue_bytes - given_bytes;

	for (const struct pkt *p = tel_on(l->tel) ? l->fresh.head : NULL; p != NULL; p = p->next) {
		queue_bytes -= p->size_bytes;
		stage_tell(l->env, TEL_DROP, p, t_ns, queue_bytes);
	}
	l->queue_pkts -= l->fresh.count;
	l->queue_bytes -= l->fresh.bytes;
	l->moment_pkts -= t_ns * l->fresh.count;
	l->moment_bytes -= (link_u128)t_ns * l->fresh.bytes;
	l->drops += l->fresh.count;
	pkt_list_join(drops, &l->fresh);
}

// Frames given to the wire one after the other, which the link counts after the last of them. The
// compiler keeps this in registers, if nothing is given its address.
struct link_burst {
	serial_u128 free;
	uint32_t given;
	uint64_t bytes;
	uint64_t moment_pkts; // sum of their times
	link_u128 moment_bytes; // and of these times their sizes
	uint64_t sojourn_ns, peak_ns;
	struct pkt_ring queue; // plain: as it was before them
	bool told; // not plain: there is a stream
};

LOOP struct link_burst link_begin(const struct link *l, bool plain) {
	struct link_burst b = {
		.free = l->free,
		.peak_ns = l->peak_ns,
	};

	if (plain)
		b.queue = ((const struct fifo *)l->q)->q;
	else
		b.told = tel_on(l->tel);
	return b;
}

LOOP void link_end(struct link *l, const struct link_burst *b, struct pkt *wire, bool plain) {
	l->free = b->free;
	l->wire = wire;
	l->queue_pkts -= b->given;
	l->queue_bytes -= b->bytes;
	l->moment_pkts -= b->moment_pkts;
	l->moment_bytes -= b->moment_bytes;
	l->sent += b->given;
	l->sent_bytes += b->bytes;
	l->sojourn_ns += b->sojourn_ns;
	l->peak_ns = b->peak_ns;
	if (plain)
		pkt_ring_skip(&((struct fifo *)l->q)->q, b->given, b->bytes);
}

// The wire is free: the discipline picks the next frame. NULL: there is none.
LOOP struct pkt *link_pick(
	struct link *l, const struct link_burst *b, struct pkt_list *drops, bool plain) {
	struct pkt *p;

	if (plain)
		return b->given < b->queue.count ? pkt_ring_at(&b->queue, b->given) : NULL;
	if (b->given == l->queue_pkts)
		return NULL;
	p = l->aqm->dequeue(l->q, serial_ns(b->free), &l->fresh);
	if (unlikely(l->fresh.head != NULL))
		link_dropped(l, serial_ns(b->free), b->bytes, drops);
	return p;
}

LOOP void link_give(struct link *l, struct link_burst *b, struct pkt *p, bool plain) {
	uint64_t t_ns = serial_ns(b->free);
	uint64_t sojourn_ns = t_ns - p->arrival_ns; // what waits came before the wire was free
	uint64_t bytes = p->size_bytes + l->overhead_bytes - SERIAL_FCS_BYTES;

	b->free = serial_end(b->free, bytes, l->byte_ns);
	b->given++;
	b->bytes += p->size_bytes;
	b->moment_pkts += t_ns;
	b->moment_bytes += (link_u128)t_ns * p->size_bytes;
	b->sojourn_ns += sojourn_ns;
	if (sojourn_ns > b->peak_ns)
		b->peak_ns = sojourn_ns;
	hist_count(&l->sojourn, sojourn_ns);
	if (plain)
		return;
	if (unlikely(p->flags & PKT_MARKED)) {
		p->flags &= (uint8_t)~PKT_MARKED;
		l->marks++;
		if (b->told)
			stage_tell(l->env, TEL_MARK, p, t_ns, l->queue_bytes - b->bytes);
	}
	if (unlikely(b->told))
		tell(l->env, TEL_DEQUEUE, p, t_ns, l->queue_bytes - b->bytes);
}

static inline void link_out(struct link *l, struct pkt *p, struct pkt_list *drops) {
	if (unlikely(!pkt_ring_push(&l->out, p)))
		pkt_drop(drops, p, DROP_NO_MBUF);
}

LOOP struct pkt *link_next(
	struct link *l, struct link_burst *b, struct pkt_list *drops, bool plain) {
	struct pkt *p = link_pick(l, b, drops, plain);

	if (p != NULL)
		link_give(l, b, p, plain);
	return p;
}

static inline bool link_due(const struct link *l, uint64_t now_ns) {
	return l->wire != NULL && serial_ns(l->free) <= now_ns;
}

LOOP void link_work(struct link *l, uint64_t now_ns, struct pkt_list *drops, bool plain) {
	if (!link_due(l, now_ns))
		return;

	struct link_burst b = link_begin(l, plain);
	struct pkt *p = l->wire;

	do {
		p->arrival_ns = serial_ns(b.free);
		link_out(l, p, drops);
		p = link_next(l, &b, drops, plain);
	} while (p != NULL && serial_ns(b.free) <= now_ns);
	link_end(l, &b, p, plain);
}

void link_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	link_work(self, now_ns, drops, false);
}

// The wire is idle and something came at t_ns.
LOOP void link_start(struct link *l, uint64_t t_ns, struct pkt_list *drops, bool plain) {
	struct link_burst b = link_begin(l, plain);

	// A packet may come in after the link was served beyond its arrival.
	if (t_ns > serial_ns(b.free))
		b.free = serial_at(t_ns);

	struct pkt *p = link_next(l, &b, drops, plain);

	link_end(l, &b, p, plain);
}

static inline void link_came(struct link *l, uint64_t t_ns, uint32_t n, uint64_t bytes) {
	l->queue_pkts += n;
	l->queue_bytes += bytes;
	l->moment_pkts += t_ns * n;
	l->moment_bytes += (link_u128)t_ns * bytes;
}

LOOP void link_take(struct link *l, struct pkt *p, struct pkt_list *drops, bool plain) {
	uint64_t t_ns = p->arrival_ns;
	bool kept = true;

	link_work(l, t_ns, drops, plain);
	link_came(l, t_ns, 1, p->size_bytes);
	if (plain)
		fifo_put(l->q, p, &l->fresh);
	else
		l->aqm->enqueue(l->q, p, t_ns, &l->fresh);
	if (unlikely(l->fresh.head != NULL)) {
		kept = l->fresh.tail != p;
		link_dropped(l, t_ns, 0, drops);
	}
	if (!plain && kept && tel_on(l->tel))
		stage_tell(l->env, TEL_ENQUEUE, p, t_ns, l->queue_bytes);
	if (l->wire == NULL)
		link_start(l, t_ns, drops, plain);
	l->peak_pkts = time_max(l->peak_pkts, l->queue_pkts);
}

// Of these the discipline dropped the `fresh` when they came at one moment; queue_bytes: before them.
__attribute__((noinline)) static void link_tell_waits(
	const struct link *l, struct pkt *const *pkts, uint32_t n, uint64_t queue_bytes) {
	const struct stage_env env = *l->env;
	const struct pkt *dropped = l->fresh.head;

	for (uint32_t i = 0; i < n; i++) {
		const struct pkt *p = pkts[i];
		bool kept = p != dropped;

		queue_bytes += kept ? p->size_bytes : 0;
		dropped = kept ? dropped : p->next;
		if (kept)
			tell(&env, TEL_ENQUEUE, p, p->arrival_ns, queue_bytes);
		else
			stage_tell(l->env, TEL_DROP, p, p->arrival_ns, queue_bytes);
	}
}

// What comes at one moment while the wire is busy only adds up, or is dropped. False: it is not so.
static bool link_wait(struct link *l, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	uint64_t t_ns = pkts[0]->arrival_ns, before = l->queue_bytes, bytes;

	if (pkts[n - 1]->arrival_ns != t_ns || l->wire == NULL || link_due(l, t_ns)
		|| l->aqm->enqueue_all == NULL)
		return false;
	bytes = l->aqm->enqueue_all(l->q, pkts, n, &l->fresh);
	if (bytes == 0 && l->fresh.head == NULL)
		return false;
	link_came(l, t_ns, n - l->fresh.count, bytes);
	l->peak_pkts = time_max(l->peak_pkts, l->queue_pkts);
	if (tel_on(l->tel))
		link_tell_waits(l, pkts, n, before);
	l->drops += l->fresh.count;
	pkt_list_join(drops, &l->fresh);
	return true;
}

LOOP void link_push_all(
	struct link *l, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops, bool plain) {
	link_take(l, pkts[0], drops, plain);
	if (n == 1 || link_wait(l, pkts + 1, n - 1, drops))
		return;
	for (uint32_t i = 1; i < n; i++)
		link_take(l, pkts[i], drops, plain);
}

static void link_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	if (link_plain(self))
		link_push_all(self, pkts, n, drops, true);
	else
		link_push_all(self, pkts, n, drops, false);
}

// What was sent when the link was served.
__attribute__((noinline)) static uint32_t link_pop_out(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	uint32_t n = 0;

	while (n < max && l->out.count > 0 && pkt_ring_head(&l->out)->arrival_ns <= now_ns)
		pkts[n++] = pkt_ring_pop(&l->out);
	return n;
}

__attribute__((noinline)) static uint32_t link_send_any(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct link_burst b = link_begin(l, false);
	struct pkt *p = l->wire;
	uint32_t n = 0;

	do {
		p->arrival_ns = serial_ns(b.free);
		pkts[n++] = p;
		p = link_next(l, &b, drops, false);
	} while (p != NULL && n < max && serial_ns(b.free) <= now_ns);
	link_end(l, &b, p, false);
	return n;
}

// The same of a plain link: how many wait is known.
__attribute__((noinline)) static uint32_t link_send_plain(
	struct link *l, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	struct link_burst b = link_begin(l, true);
	struct pkt *p = l->wire;
	uint32_t end = b.queue.count < max ? b.queue.count : max;

	while (b.given < end && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.given] = p;
		p = pkt_ring_at(&b.queue, b.given);
		link_give(l, &b, p, true);
	}
	if (b.given < max && serial_ns(b.free) <= now_ns) {
		p->arrival_ns = serial_ns(b.free);
		pkts[b.given] = p;
		p = NULL;
	}
	link_end(l, &b, p, true);
	return b.given + (p == NULL);
}

static uint32_t link_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct link *l = self;
	uint32_t n = 0;

	if (unlikely(l->out.count > 0))
		n = link_pop_out(l, now_ns, pkts, max);
	if (n == max || l->out.count > 0 || !link_due(l, now_ns))
		return n;
	pkts += n;
	max -= n;
	return n
		+ (link_plain(l) ? link_send_plain(l, now_ns, pkts, max)
				 : link_send_any(l, now_ns, pkts, max, drops));
}

static uint64_t link_next_ns(const void *self) {
	const struct link *l = self;

	if (l->out.count > 0)
		return pkt_ring_head(&l->out)->arrival_ns;
	return l->wire != NULL ? serial_ns(l->free) : NEVER_NS;
}

// Asks the discipline, so that the ledger does not rest on the link's own counts.
static struct backlog link_backlog(const void *self) {
	const struct link *l = self;
	const struct pkt *wire = l->wire;
	struct backlog b = l->aqm->backlog(l->q);

	b.pkts += l->out.count + (wire != NULL);
	b.bytes += l->out.bytes + (wire != NULL ? wire->size_bytes : 0);
	return b;
}

struct link_totals link_totals(const void *self, uint64_t now_ns) {
	const struct link *l = self;
	uint64_t overhead_bytes =
		l->sent * (l->overhead_bytes - SERIAL_FCS_BYTES); // modulo 2^64, as the sum
	double unsent_ns = l->wire != NULL ? (double)time_since(serial_ns(l->free), now_ns) : 0.0;

	return (struct link_totals){
		.at_ns = now_ns,
		.out_pkts = l->sent - (l->wire != NULL),
		.out_bytes = l->sent_bytes - (l->wire != NULL ? l->wire->size_bytes : 0),
		.dequeued = l->sent,
		.sojourn_ns = l->sojourn_ns,
		.drops = l->drops,
		.marks = l->marks,
		.queue_pkt_ns = now_ns * l->queue_pkts - l->moment_pkts,
		.queue_byte_ns = (link_u128)now_ns * l->queue_bytes - l->moment_bytes,
		.capacity = l->capacity
			+ (link_u128)l->rate_now_bps * time_since(now_ns, l->rate_since_ns),
		.wire_bits = 8.0 * (double)(l->sent_bytes + overhead_bytes)
			- unsent_ns * (double)l->rate_now_bps / 1e9,
	};
}

struct link_figures link_figures(const struct link_totals *from, const struct link_totals *to) {
	double ns = (double)time_since(to->at_ns, from->at_ns);
	double capacity_bits = (double)(to->capacity - from->capacity) / 1e9;
	uint64_t dequeued = to->dequeued - from->dequeued;
	struct link_figures f = {0};

	if (ns > 0)
		f.rate_mean_bps = capacity_bits / ns * 1e9;
	if (capacity_bits > 0) {
		f.utilisation = (to->wire_bits - from->wire_bits) / capacity_bits;
		// The last nanosecond of a frame on the wire, the last bits of a double.
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
		l->peak[w].queue_pkts = time_max(l->peak[w].queue_pkts, l->peak_pkts);
		l->peak[w].sojourn_ns = time_max(l->peak[w].sojourn_ns, l->peak_ns);
	}
	l->peak_pkts = l->queue_pkts;
	l->peak_ns = 0;
	return &l->peak[window];
}

const struct link_peak *link_run(void *self, uint64_t now_ns) {
	link_rate_held(self, now_ns);
	return link_peak(self, LINK_RUN);
}

void link_restart(void *self, enum link_window window, uint64_t now_ns) {
	struct link *l = self;

	link_peak(l, window);
	l->peak[window] = (struct link_peak){
		.queue_pkts = l->queue_pkts,
		.from = link_totals(l, now_ns),
	};
	if (window == LINK_RUN)
		hist_reset(&l->sojourn);
}

// The link counts buckets alone; the rest is known.
const struct hist *link_sojourn(void *self) {
	struct link *l = self;
	const struct link_peak *run = link_peak(l, LINK_RUN);

	l->sojourn.total = l->sent - run->from.dequeued;
	l->sojourn.sum = l->sojourn_ns - run->from.sojourn_ns;
	l->sojourn.max = run->sojourn_ns;
	return &l->sojourn;
}

struct backlog link_queue(const void *self) {
	const struct link *l = self;

	return (struct backlog){.pkts = l->queue_pkts, .bytes = l->queue_bytes};
}

void link_stream(void *self, struct tel *packets) {
	((struct link *)self)->tel = packets;
}

uint64_t link_rate_bps(const void *self) {
	const struct link *l = self;

	return l->rate_bps;
}

const struct aqm_ops *link_aqm(const void *self) {
	const struct link *l = self;

	return l->aqm;
}

void link_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct link *l = self;

	if (l->aqm->observe != NULL)
		l->aqm->observe(l->q, out);
}

static struct aqm_limit link_limit(const void *self) {
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
	.limit = link_limit,
	.rate_bps = link_rate_bps,
};
