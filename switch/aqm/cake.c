// SPDX-License-Identifier: BSD-3-Clause
// CAKE, Common Applications Kept Enhanced: a queue per flow, with COBALT, served fairly among hosts
// and the flows of a host (Hoiland-Jorgensen, Taht, Morton: Piece of CAKE, LANMAN 2018, III.B-C).
//
//	enqueue   the packet joins its flow's queue, one of eight that its hash allows. A queue that
//	          was in no list is sparse: it joins the new queues with quantum / load credits.
//	          Above the limit the queue with the most bytes loses its oldest packet, and its
//	          BLUE makes a step.
//	dequeue   the first new queue is served; without credits it gets a quantum and is from now
//	          on a bulk queue of its host. If there is no new queue, the first host is served:
//	          without credits it gets a quantum and goes to the end of the hosts. Likewise its
//	          first queue, among its queues. COBALT takes a packet off the queue, whose size is
//	          subtracted from the credits of the queue and, unless the queue is new, of the
//	          host. A new queue that is empty goes to the end of its host's queues; an empty
//	          queue there leaves the list, and a host without queues does too.
//	load      the number of the host's bulk queues
//	memory    as Linux counts it (skb->truesize): a frame, 64 bytes before it and 320 after it
//	          in a block whose size is a power of two, and 256 bytes: 2304 for a frame of 1518
//	          bytes. Its limit is what the link carries in four intervals, or 4 MiB if that is
//	          more, or 10240 frames of the largest size (`limit`, if it is larger) if that is
//	          less
//
// `isolation` says what a flow and its host are:
//
//	flows           flows by themselves, as in fq_codel
//	hosts           a pair of source and destination has one queue; srchost: a source, dsthost:
//	                a destination
//	dual-srchost    equal shares for the sources, and for the flows of each; dual-dsthost: for
//	                destinations
//	triple          a flow's share is that of the busier of its two hosts: 1 / max(load of both)
//
// Hosts: a packet's owner knows them (pkt_hosts). Live they are hashes of the IPv4 addresses.
// Flows of weir-sender share addresses: a group of them is a host, as source and as destination.
//
// The hash (section III.C): eight queues in succession are a set. A flow joins the queue it has,
// else the one at its hash if that is in no list, else another such in the set. If all eight are in
// a list it shares the one at its hash until that has left the list: its packets keep their order.
// One of 100 flows in 1024 queues shares its own with probability 1.4e-6; with a plain hash, 9 %.
//
// `diffserv` (section III.A): packets of some DSCPs have queues, hosts and COBALT of their own, a
// tin, and so precedence up to a part of the rate. cake_tins.h has the modes.
//
// `ack_filter` (section III.D): an ACK that joins a queue takes the oldest there that it makes
// redundant out of it, by ack_filter.h: `filter` if another one stays, `aggressive` at once. A slow
// uplink then carries fewer ACKs, and a download is not limited by them.
//
// cake_ways.h has the hash, cake_hosts.h the order of service, cobalt_law.h COBALT, flow_queues.h
// new and fattest queues.
//
// Where we differ from Linux, and why:
// - Flows are served in two levels, hosts and their queues. Linux has one round, in which a queue
//   gets quantum / load: the shares are the same, but with 5000 flows of one host a packet would
//   cost thousands of visits. In `triple` a queue is served as one of the busier host's, which is
//   decided anew at each of its turns; a host's quantum is in proportion to how many of its bulk
//   queues are with it.
// - An empty new queue passes through the old ones (RFC 8290, section 4.2). In Linux it leaves at
//   once: a flow whose next packet always comes just after that is served as often as all others
//   together.
// - Queues whose COBALT has not yet decayed are not kept in a list of their own: see cobalt_law.h.
// - Sizes count the FCS. The quantum is constant; Linux takes less than 1514 B below 50 Mbit/s.
// - Linux has no limit in packets. Here both hold. With `limit` in bytes, time or BDP there is no
//   limit of the memory unless one is written.
// - `diffserv` is besteffort unless one is written; Linux has diffserv3. A packet that is no IP
//   packet is best effort; in Linux ARP is network control. A link's rate may change: the tins'
//   parts are of its first one, as Linux's are of `bandwidth`.
//
// What is not there, and why:
// - The shaper with its overhead compensation: the stage `link` has both.
// - `wash`, which sets a packet's DSCP to 0 once its tin is chosen: no stage writes a DSCP.
#include "common/base/mem.h"
#include "switch/aqm/ack_filter.h"
#include "switch/aqm/bursts.h"
#include "switch/aqm/cake_memory.h"
#include "switch/aqm/cake_tins.h"
#include "switch/aqm/cake_ways.h"

#include <errno.h>

static const char *const isolation_names[] = {
	"flows", "hosts", "srchost", "dsthost", "dual-srchost", "dual-dsthost", "triple", NULL};

enum { ACK_FILTER_NO, ACK_FILTER_ONE_STAYS, ACK_FILTER_AGGRESSIVE };
static const char *const ack_filter_names[] = {"no", "filter", "aggressive", NULL};

static const struct param params[] = {
	{"limit", "10240pkt", "of all queues together, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct cake, fq.limit), 1e-6, 1e15},
	{"memlimit", "0B", "memory of all packets as Linux counts it; 0: from rate and interval",
		UNIT_BYTES, PARAM_U64(struct cake, memory_limit), 1e4, 1e15, .zero = true},
	{"quantum", "1518B",
		"that a queue or a host may send before the next one; a full-sized frame with FCS",
		UNIT_BYTES, PARAM_U64(struct cake, fq.quantum_bytes), 64, 1e6},
	{"buckets", "1024", "queues, a multiple of 8", UNIT_NONE,
		PARAM_U64(struct cake, fq.buckets), CAKE_WAYS, FLOW_QUEUES_MAX},
	{"isolation", "triple", "what has equal shares; a group of weir-sender's flows is a host",
		UNIT_NONE, PARAM_ENUM(struct cake, isolation, isolation_names)},
	{"ack_filter", "no",
		"drop ACKs that a newer one in the queue makes redundant: "
		"all but one of a flow, or all",
		UNIT_NONE, PARAM_ENUM(struct cake, ack_filter, ack_filter_names)},
	{"diffserv", "besteffort", "tins for packets' DSCPs, as Linux's (its default is diffserv3)",
		UNIT_NONE, PARAM_ENUM(struct cake, diffserv, cake_mode_names)},
	COBALT_LAW_PARAMS(struct cake),
	PARAM_END,
};

// A tin, with COBALT for so much of the link.
static int tin_init(struct cake *c, const struct aqm_env *env, uint64_t rate_bps, struct err *err) {
	size_t sets = c->fq.buckets / CAKE_WAYS;
	size_t hosts = cake_two_levels(c) ? 2 * CAKE_HOSTS : 1;
	struct aqm_env own = *env;
	int rc = flow_queues_init(&c->fq, sizeof(struct cobalt_state), env, err);

	if (rc < 0)
		return rc;
	own.rate_bps = rate_bps;
	c->owner = env->owner;
	c->memory_limit = cake_memory_limit(c, env);
	if (c->diffserv != CAKE_BESTEFFORT)
		cake_tin_targets(&c->law, &own);
	cobalt_law_init(&c->law, &own, "cake");
	c->memory_bytes = sets * sizeof(*c->set) + hosts * sizeof(*c->host);
	c->memory = mem_map(c->memory_bytes);
	if (c->memory == NULL)
		return err_set(err, -ENOMEM, "isolation: no memory for %zu hosts", hosts);
	c->set = c->memory;
	c->host = (struct cake_host *)(void *)(c->set + sets);
	return 0;
}

static void tin_fini(struct cake *c) {
	mem_unmap(c->memory, c->memory_bytes);
	flow_queues_fini(&c->fq);
}

// All tins but the first, which have its parameters.
static int tins_init(
	struct cake *c, const struct cake *as_written, const struct aqm_env *env, struct err *err) {
	struct cake_tins *t = c->tins = mem_map(sizeof(*t));
	int rc = 0;

	if (t == NULL)
		return err_set(err, -ENOMEM, "diffserv: no memory for its tins");
	cake_tins_init(t, c, env);
	for (uint32_t i = 1; i < t->count && rc == 0; i++) {
		*t->tin[i] = *as_written;
		rc = tin_init(t->tin[i], env, t->rate_bps[i], err);
	}
	return rc;
}

static int cake_init(void *self, const struct aqm_env *env, struct err *err) {
	struct cake *c = self;
	struct cake as_written = *c;
	int rc;

	if (c->fq.buckets % CAKE_WAYS != 0)
		return err_set(err, -EINVAL, "buckets: %llu is not a multiple of %u",
			(unsigned long long)c->fq.buckets, CAKE_WAYS);
	if (c->diffserv != CAKE_BESTEFFORT && aqm_rate_known("diffserv", env, err) < 0)
		return -EINVAL;
	rc = tin_init(c, env, env->rate_bps, err);
	return rc < 0 || c->diffserv == CAKE_BESTEFFORT ? rc : tins_init(c, &as_written, env, err);
}

static uint32_t tin_count(const struct cake *c) {
	return c->tins != NULL ? c->tins->count : 1;
}

static void cake_fini(void *self) {
	struct cake *c = self;

	for (uint32_t i = 1; i < tin_count(c); i++)
		tin_fini(c->tins->tin[i]);
	mem_unmap(c->tins, sizeof(*c->tins));
	tin_fini(c);
}

static inline void join(struct cake *c, uint32_t index, struct pkt *p) {
	struct flow_queue *q = &c->fq.queue[index];
	uint8_t list = q->list;

	flow_queues_append(&c->fq, index, p, FLOW_NEW);
	c->held_bytes += memory_of(p);
	if (list == FLOW_NONE)
		cake_wake(c, q, p);
	else if (unlikely(list == FLOW_OLD && !q->bulk))
		cake_set_bulk(c, q, true);
}

// Drops the oldest packet of the fattest queue.
static void shed_one(struct cake *c, uint64_t now_ns, struct pkt_list *drops) {
	struct flow_queue *q = flow_queues_fattest(&c->fq);
	struct backlog before = flow_queue_backlog(q);

	cobalt_overflow(&c->law, flow_queue_state(&c->fq, q), q->pkts.head->arrival_ns, now_ns);
	q->signals = true;
	c->held_bytes -= memory_of(q->pkts.head);
	pkt_drop(drops, pkt_list_pop(&q->pkts), DROP_QUEUE_FULL);
	flow_queues_left(&c->fq, q, before);
	c->fq.shed = true;
}

// Until the limit holds.
__attribute__((noinline)) static void shed(
	struct cake *c, uint64_t now_ns, struct pkt_list *drops) {
	while (!cake_fit(c, 0, 0, 0))
		shed_one(c, now_ns, drops);
}

// p is the newest packet of the queue.
__attribute__((noinline)) static void filter_acks(
	struct cake *c, struct flow_queue *q, const struct pkt *p, struct pkt_list *drops) {
	struct pkt_headers newest = pkt_headers(c->owner, p);
	struct backlog backlog = flow_queue_backlog(q);
	struct pkt *oldest = NULL, *before_oldest = NULL, *before = NULL;
	uint32_t redundant = 0, enough = c->ack_filter == ACK_FILTER_AGGRESSIVE ? 1 : 2;

	if (!newest.pure_ack)
		return;
	for (struct pkt *i = q->pkts.head; i != p; before = i, i = i->next) {
		struct pkt_headers h;

		if (i->flow_id != p->flow_id)
			continue;
		h = pkt_headers(c->owner, i);
		if (!ack_filter_alike(&newest, &h))
			redundant = 0;
		else if (ack_filter_covers(&newest, &h) && redundant++ == 0) {
			oldest = i;
			before_oldest = before;
		}
	}
	if (redundant < enough)
		return;
	pkt_list_remove(&q->pkts, before_oldest, oldest);
	c->held_bytes -= memory_of(oldest);
	flow_queues_left(&c->fq, q, backlog);
	pkt_drop(drops, oldest, DROP_ACK_FILTER);
}

static inline void tin_enqueue(
	struct cake *c, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	uint32_t index = find_way(c, key_of(c, p));

	p->arrival_ns = now_ns;
	join(c, index, p);
	if (unlikely(c->ack_filter != ACK_FILTER_NO))
		filter_acks(c, &c->fq.queue[index], p, drops);
}

__attribute__((noinline)) static void tins_enqueue(
	struct cake_tins *t, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	uint32_t i = t->of_dscp[pkt_headers(t->tin[0]->owner, p).dscp];

	cake_tin_wakes(t, i, now_ns);
	tin_enqueue(t->tin[i], p, now_ns, drops);
	while (unlikely(!cake_tins_fit(t)))
		shed_one(cake_tins_fattest(t), now_ns, drops);
}

static void cake_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct cake *c = self;

	if (unlikely(c->tins != NULL)) {
		tins_enqueue(c->tins, p, now_ns, drops);
		return;
	}
	tin_enqueue(c, p, now_ns, drops);
	if (unlikely(!cake_fit(c, 0, 0, 0)))
		shed(c, now_ns, drops);
}

struct cake_served {
	struct cake *cake;
	struct flow_queue *queue;
};

static inline struct pkt *cake_oldest(void *served, uint64_t *left_bytes) {
	struct cake_served *s = served;
	struct pkt *p = flow_queue_pop(s->queue);

	*left_bytes = s->queue->pkts.bytes;
	if (likely(p != NULL))
		s->cake->held_bytes -= memory_of(p);
	return p;
}

static inline struct pkt *tin_dequeue(struct cake *c, uint64_t now_ns, struct pkt_list *drops) {
	struct flow_queue *q;

	while ((q = cake_next(c)) != NULL) {
		struct backlog before = flow_queue_backlog(q);
		struct cake_served served = {c, q};
		struct pkt *p = cobalt_law_dequeue(&c->law, flow_queue_state(&c->fq, q),
			&q->signals, cake_oldest, &served, now_ns, drops);

		if (p == NULL) {
			cake_empty(c, q);
			continue;
		}
		flow_queues_left(&c->fq, q, before);
		q->credits -= p->size_bytes;
		if (q->list == FLOW_OLD)
			cake_host_of(c, q)->credits -= p->size_bytes;
		return p;
	}
	return NULL;
}

__attribute__((noinline)) static struct pkt *tins_dequeue(
	struct cake_tins *t, uint64_t now_ns, struct pkt_list *drops) {
	uint32_t i;

	while ((i = cake_tins_next(t, now_ns)) < t->count) {
		struct pkt *p = tin_dequeue(t->tin[i], now_ns, drops);

		if (p == NULL)
			continue;
		cake_tin_sent(t, i, p, now_ns);
		return p;
	}
	return NULL;
}

static struct pkt *cake_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct cake *c = self;

	return unlikely(c->tins != NULL) ? tins_dequeue(c->tins, now_ns, drops)
					 : tin_dequeue(c, now_ns, drops);
}

// The queue at the packet's hash, which is that of most flows; besides, its set.
static inline void *cake_joins(const void *self, const struct pkt *p) {
	const struct cake *c = self;
	uint32_t direct = flow_queues_index(&c->fq, key_of(c, p));

	prefetch_write(&c->set[direct / CAKE_WAYS]);
	return &c->fq.queue[direct];
}

// The packet before it in that queue, or another queue that the packet probably joins.
static inline void *cake_follows(const void *self, const struct pkt *p) {
	const struct cake *c = self;
	uint32_t key = key_of(c, p), direct = flow_queues_index(&c->fq, key);
	struct flow_queue *q = &c->fq.queue[direct];

	if (unlikely(q->flow_id != key)) {
		uint64_t ways = tagged_ways(&c->set[direct / CAKE_WAYS], key);

		if (ways != 0)
			return q - direct % CAKE_WAYS + first_way(ways);
	}
	return q->pkts.head != NULL ? (void *)q->pkts.tail : q;
}

static uint64_t cake_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	uint32_t index[FLOW_QUEUES_BURST];
	struct cake *c = self;
	uint64_t bytes = 0, memory = 0;

	if (unlikely(n > FLOW_QUEUES_BURST || c->ack_filter != ACK_FILTER_NO || c->tins != NULL))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		index[i] = key_of(c, pkts[i]);
		prefetch_write(cake_joins(c, pkts[i]));
		bytes += pkts[i]->size_bytes;
		memory += memory_of(pkts[i]);
	}
	if (unlikely(!cake_fit(c, n, bytes, memory)))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		index[i] = find_way(c, index[i]);
		prefetch_write(&c->fq.queue[index[i]]);
	}
	for (uint32_t i = 0; i < n; i++)
		join(c, index[i], pkts[i]);
	return bytes;
}

static inline struct serialiser_queue cake_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = cake_enqueue,
		.dequeue = cake_dequeue,
		.enqueue_all = cake_enqueue_all,
		.joins = cake_joins,
		.follows = cake_follows};
}
AQM_BURSTS(cake)

static struct backlog cake_backlog(const void *self) {
	const struct cake *c = self;

	return c->tins != NULL ? cake_tins_backlog(c->tins) : c->fq.all;
}

static bool cake_random(const void *self) {
	const struct cake *c = self;
	bool random = c->law.drew || flow_queues_random(&c->fq);

	for (uint32_t i = 1; i < tin_count(c); i++)
		random |= cake_random(c->tins->tin[i]);
	return random;
}

static bool cake_reads_headers(const void *self) {
	const struct cake *c = self;

	return c->ack_filter != ACK_FILTER_NO || c->diffserv != CAKE_BESTEFFORT;
}

static void cake_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct cake *c = self;

	out[0] += c->fq.list[FLOW_NEW].count;
	out[1] += c->bulk_queues;
	out[2] += c->busy_hosts;
	out[3] += (double)c->fq.collided;
	for (uint32_t i = 1; i < tin_count(c); i++)
		cake_observe(c->tins->tin[i], out);
}

const struct aqm_ops aqm_cake = {
	.name = "cake",
	.summary = "a queue per flow with COBALT, fair to hosts and flows (LANMAN 2018)",
	.reference = "Hoiland-Jorgensen, Taht, Morton: Piece of CAKE, LANMAN 2018",
	.params = params,
	.state_size = sizeof(struct cake),
	.observed = {"new_queues", "bulk_queues", "busy_hosts", "collided_pkts"},
	.flows = true,
	.init = cake_init,
	.fini = cake_fini,
	.enqueue = cake_enqueue,
	.dequeue = cake_dequeue,
	.enqueue_burst = cake_enqueue_burst,
	.dequeue_burst = cake_dequeue_burst,
	.backlog = cake_backlog,
	.limit = flow_queues_limit,
	.random = cake_random,
	.headers = cake_reads_headers,
	.observe = cake_observe,
};
