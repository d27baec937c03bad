// SPDX-License-Identifier: BSD-3-Clause
// What a packet costs each queue discipline in virtual time, for `weir bench aqm`:
//
//	weir-aqm FLOWS PACKETS ROUNDS NAME PARAMETERS [NAME PARAMETERS ...]
//
// Each discipline stands in a closed loop of its own, without a transport. All loops have the same
// flows with the same windows, and no packet is lost: what a discipline drops arrives like the
// rest. So the packets that arrive are as many for each, and of as many flows; only their order is
// the discipline's.
//
//	pool -> discipline, 10 Gbit/s -> 10 ms -> receiver -> pool; every second packet of a flow:
//	  10 ms -> sender: two packets from the pool
//
// The windows keep QUEUED packets in the queue. As in weir-sim time advances in windows, packets
// arrive in bursts and those freed last are used first, and a flow has some cache lines at each
// end, which compete with the discipline's for the cache. With many flows, therefore, nearly all
// that a discipline reads of a flow comes from memory, in random order.
//
// In each round the loops run one after the other, each for a tenth of PACKETS before it is
// measured. Prints a line of JSON per discipline and round: ns per packet, which includes the
// loop's own cost, and the packets marked and dropped.
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/config/config.h"
#include "switch/serialiser/serialiser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAME_BYTES 1518
#define RATE_BPS UINT64_C(10000000000)
#define DELAY_NS (10 * NS_PER_MS)
#define WINDOW_NS (250 * NS_PER_US)
#define QUEUED 250000u
#define FLYING 16256u // in a round trip without a queue
#define BURST 64
#define AHEAD 6 // packets whose flows are prefetched
#define END_LINES 4
#define DISCIPLINES_MAX 32

// One end of a flow.
struct end {
	_Alignas(64) struct { uint64_t packets, rest[7]; } line[END_LINES];
};

// A ring of what comes out of a delay. Its size is a power of two, above the number of packets.
struct delay {
	struct event {
		uint64_t due_ns;
		union {
			struct pkt *pkt;
			uint64_t flow;
		};
	} * event;
	uint64_t mask, head, tail;
};

struct loop {
	const char *name;
	const struct aqm_ops *ops;
	void *q;
	struct serialiser serialiser;
	struct stage_env env;
	struct pkt_list drops;
	uint64_t dropped, departed;

	struct pkt **free; // a stack
	uint64_t frees;
	struct end *sender, *receiver;
	struct delay data, acks;
	struct pkt *burst[BURST];
	uint32_t bursts; // packets in it
	uint64_t now_ns;
};

static void *table(uint64_t n, size_t size) {
	void *p = mem_map(n * size);

	if (p == NULL) {
		fprintf(stderr, "weir-aqm: no memory\n");
		exit(1);
	}
	return p;
}

static void delay_init(struct delay *d, uint64_t packets) {
	d->mask = 1;
	while (d->mask < packets)
		d->mask *= 2;
	d->event = table(d->mask--, sizeof(*d->event));
}

static inline void delay_push(struct delay *d, struct event e) {
	d->event[d->tail++ & d->mask] = e;
}

// Those of the next events that are due by now_ns.
static inline uint32_t delay_due(const struct delay *d, uint64_t now_ns, uint32_t max) {
	uint32_t n = 0;

	while (n < max && d->head + n < d->tail
		&& d->event[(d->head + n) & d->mask].due_ns <= now_ns)
		n++;
	return n;
}

static inline struct event *delay_at(const struct delay *d, uint32_t i) {
	return &d->event[(d->head + i) & d->mask];
}

static inline void end_fetch(const struct end *e) {
	for (int i = 0; i < END_LINES; i++)
		prefetch_write(&e->line[i]);
}

static inline void end_count(struct end *e) {
	for (int i = 0; i < END_LINES; i++)
		e->line[i].packets++;
}

static void arrive(struct loop *l) {
	struct pkt *p;

	l->ops->enqueue_burst(l->q, &l->serialiser, l->burst, l->bursts, &l->drops);
	l->bursts = 0;
	while ((p = pkt_list_pop(&l->drops)) != NULL) {
		l->dropped++;
		delay_push(&l->data, (struct event){.due_ns = l->now_ns + DELAY_NS, .pkt = p});
	}
}

static inline void send(struct loop *l, uint32_t flow, uint64_t t_ns) {
	struct pkt *p = l->free[--l->frees];

	if (l->frees >= 4)
		prefetch_write(l->free[l->frees - 4]);
	p->arrival_ns = t_ns;
	p->flow_id = flow;
	p->size_bytes = FRAME_BYTES;
	p->ecn = ECN_ECT0;
	p->flags = 0;
	p->drop_reason = DROP_NONE;
	memset(p->user, 0, sizeof(p->user));
	l->burst[l->bursts++] = p;
	if (l->bursts == BURST)
		arrive(l);
}

static void run_senders(struct loop *l) {
	uint32_t n;

	while ((n = delay_due(&l->acks, l->now_ns, BURST)) > 0) {
		for (uint32_t i = 0; i < n && i < AHEAD; i++)
			end_fetch(&l->sender[delay_at(&l->acks, i)->flow]);
		for (uint32_t i = 0; i < n; i++) {
			const struct event *e = delay_at(&l->acks, i);

			if (i + AHEAD < n)
				end_fetch(&l->sender[delay_at(&l->acks, i + AHEAD)->flow]);
			end_count(&l->sender[e->flow]);
			send(l, (uint32_t)e->flow, e->due_ns);
			send(l, (uint32_t)e->flow, e->due_ns);
		}
		l->acks.head += n;
	}
	if (l->bursts > 0)
		arrive(l);
}

static void run_link(struct loop *l) {
	struct pkt *batch[BURST];
	uint32_t n;

	do {
		n = serialiser_pop_out(&l->serialiser, l->now_ns, batch, BURST);
		if (n < BURST && serialiser_due(&l->serialiser, l->now_ns))
			n += l->ops->dequeue_burst(
				l->q, &l->serialiser, l->now_ns, batch + n, BURST - n, &l->drops);
		for (uint32_t i = 0; i < n; i++)
			delay_push(&l->data,
				(struct event){.due_ns = batch[i]->arrival_ns + DELAY_NS,
					.pkt = batch[i]});
		l->departed += n;
	} while (n == BURST);
}

static void receive(struct loop *l, struct pkt *p, uint64_t t_ns) {
	struct end *r = &l->receiver[p->flow_id];

	end_count(r);
	if (r->line[0].packets % 2 == 0)
		delay_push(&l->acks, (struct event){.due_ns = t_ns + DELAY_NS, .flow = p->flow_id});
	l->free[l->frees++] = p;
}

static void run_receivers(struct loop *l) {
	uint32_t n;

	while ((n = delay_due(&l->data, l->now_ns, BURST)) > 0) {
		for (uint32_t i = 0; i < n; i++)
			prefetch_write(delay_at(&l->data, i)->pkt);
		for (uint32_t i = 0; i < n && i < AHEAD; i++)
			end_fetch(&l->receiver[delay_at(&l->data, i)->pkt->flow_id]);
		for (uint32_t i = 0; i < n; i++) {
			const struct event *e = delay_at(&l->data, i);

			if (i + AHEAD < n)
				end_fetch(
					&l->receiver[delay_at(&l->data, i + AHEAD)->pkt->flow_id]);
			receive(l, e->pkt, e->due_ns);
		}
		l->data.head += n;
	}
}

static void run(struct loop *l, uint64_t packets) {
	uint64_t until = l->departed + packets;

	while (l->departed < until) {
		l->now_ns += WINDOW_NS;
		run_senders(l);
		run_link(l);
		run_receivers(l);
	}
}

static void stop_with(const char *name, const struct err *err) {
	fprintf(stderr, "weir-aqm: %s: %s\n", name, err->msg);
	exit(2);
}

static void open_queue(struct loop *l, const char *name, const char *params) {
	static const struct aqm_env env = {.rate_bps = RATE_BPS,
		.base_rtt_ns = 2 * DELAY_NS,
		.overhead_bytes = 20,
		.mtu_bytes = FRAME_BYTES,
		.seed = 1};
	struct err err = {""};
	struct config *c = config_parse("parameters", params, strlen(params), &err);

	l->name = name;
	l->ops = aqm_find(name);
	if (l->ops == NULL || l->ops->enqueue_burst == NULL) {
		fprintf(stderr, "weir-aqm: %s is no discipline with operations for bursts\n", name);
		exit(2);
	}
	if (c == NULL)
		stop_with(name, &err);
	l->q = table(1, l->ops->state_size);
	if (config_params(config_root(c), name, l->ops->params, NULL, l->q, &err) < 0
		|| l->ops->init(l->q, &env, &err) < 0)
		stop_with(name, &err);
	config_free(c);
	l->serialiser.env = &l->env;
	l->serialiser.framing.extra_bytes = 20;
	serialiser_rate(&l->serialiser, 0, RATE_BPS);
}

// The flows' windows, in random order: as many packets of each flow, two at least, so that there
// are always ACKs.
static void fill(struct loop *l, uint32_t flows) {
	uint64_t window = max_u64((QUEUED + FLYING + flows / 2) / flows, 2);
	uint64_t packets = window * flows;
	struct pkt *pkts = table(packets, sizeof(*pkts));
	uint32_t *order = table(packets, sizeof(*order));
	struct rng rng;

	delay_init(&l->data, packets);
	delay_init(&l->acks, packets);
	l->sender = table(flows, sizeof(*l->sender));
	l->receiver = table(flows, sizeof(*l->receiver));
	l->free = table(packets, sizeof(struct pkt *));
	while (l->frees < packets) {
		l->free[l->frees] = &pkts[l->frees];
		l->frees++;
	}
	rng_init(&rng, 1, "fill");
	for (uint64_t i = 0; i < packets; i++) {
		uint64_t j = rng_u64(&rng) % (i + 1);

		order[i] = order[j];
		order[j] = (uint32_t)(i % flows);
	}
	for (uint64_t i = 0; i < packets; i++)
		send(l, order[i], 0);
	if (l->bursts > 0)
		arrive(l);
	mem_unmap(order, packets * sizeof(*order));
}

static double cpu_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(struct loop *l, uint64_t packets) {
	uint64_t marks, dropped, departed;
	double ns;

	run(l, packets / 10);
	marks = l->serialiser.stats.count.marks;
	dropped = l->dropped;
	departed = l->departed;
	ns = cpu_ns();
	run(l, packets);
	ns = cpu_ns() - ns;
	printf("{\"name\": \"%s\", \"ns\": %.3f, \"queued\": %" PRIu64 ", \"marked\": %" PRIu64
	       ", \"dropped\": %" PRIu64 "}\n",
		l->name, ns / (double)(l->departed - departed), l->ops->backlog(l->q).pkts,
		l->serialiser.stats.count.marks - marks, l->dropped - dropped);
	fflush(stdout);
}

static uint64_t number(const char *text, uint64_t max) {
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	return *end == '\0' && value <= max ? value : 0;
}

int main(int argc, char **argv) {
	static struct loop loop[DISCIPLINES_MAX];
	uint64_t flows = argc > 1 ? number(argv[1], QUEUED) : 0;
	uint64_t packets = argc > 2 ? number(argv[2], UINT64_C(1000000000000)) : 0;
	uint64_t rounds = argc > 3 ? number(argv[3], 1000) : 0;
	int loops = (argc - 4) / 2;

	if (flows == 0 || packets == 0 || rounds == 0 || argc % 2 != 0 || loops < 1
		|| loops > DISCIPLINES_MAX) {
		fprintf(stderr,
			"usage: weir-aqm FLOWS PACKETS ROUNDS NAME PARAMETERS ... "
			"(FLOWS at most %u)\n",
			QUEUED);
		return 2;
	}
	for (int i = 0; i < loops; i++) {
		open_queue(&loop[i], argv[4 + 2 * i], argv[5 + 2 * i]);
		fill(&loop[i], (uint32_t)flows);
		run(&loop[i], 2 * (uint64_t)QUEUED); // until the order is self-clocked
	}
	for (uint64_t r = 0; r < rounds; r++) {
		for (int i = 0; i < loops; i++)
			measure(&loop[i], packets);
	}
	return 0;
}
