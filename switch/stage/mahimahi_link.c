// SPDX-License-Identifier: BSD-3-Clause
// A link that follows a mahimahi file (trace_file.c has the format): at each time of the file
// `bytes` may leave the queue.
//
//	opportunity:  left = bytes
//	              while left > 0: the packet at the head gives up min(left, what it still has to
//	              send);
//	                              when it has nothing more to send, it leaves at this time
//	              what is left when the queue is empty is lost
//
// So small packets share an opportunity, and a packet that does not fit leaves with the next one
// (Netravali et al., USENIX ATC 2015; mm-link(1); Winstein et al., "Stochastic Forecasts Achieve
// High Throughput and Low Delay over Cellular Networks", NSDI 2013, whose traces these are). A
// packet is dequeued when its first byte is sent; an arrival at the time of an opportunity comes
// after it. At the end of the file it begins again, a round later (`end: loop`), or nothing more
// leaves (`end: hold`, mm-link's --uplink-once).
//
// A gap of more than `outage` between two opportunities counts as time without a rate, from the
// first to the second. The capacity of an interval is that of its opportunities, used or not.
// Limits in time or BDP refer to the mean rate.
//
// Where we differ from mahimahi, and why: an opportunity is of 1500 bytes of IP packets, as its
// manual has it; its code says 1504 and counts the 4 bytes that a tun device puts before each,
// which is the same for full-sized packets (`bytes: 1504B, overhead: 4B` is its count). A packet
// may be larger than an opportunity, and times may be finer than ms (`unit`). Opportunities come at
// their own times, not when a loop wakes up: mahimahi falls behind near 1 Gbit/s.
#include "switch/stage/link.h"
#include "switch/stage/trace_file.h"

#include "common/base/u64.h"

#include <errno.h>

#define PEAK_WINDOW_NS (10 * NS_PER_MS) // over which the largest rate is one

enum end { END_LOOP, END_HOLD };
static const char *const end_names[] = {"loop", "hold", NULL};

struct mahimahi_link {
	struct link link; // its wire is down: opportunities move the packets
	uint64_t unit_ns, bytes, outage_ns;
	int end;

	struct trace_file trace;
	size_t next; // index of the next opportunity
	uint64_t next_ns; // NEVER_NS: there is none
	uint64_t round_ns; // start of the present round
	uint64_t last_ns; // the opportunity before, or the start
	uint64_t left_bytes; // of the packet that is being sent (serialiser.halted)
	uint64_t round_down_ns; // outages of a whole round, when another came before it
};

static const struct param params[] = {
	{"unit", "1ms", "of the times in the file", UNIT_TIME_NS,
		PARAM_U64(struct mahimahi_link, unit_ns), 1, 1e9},
	{"bytes", "1500B", "of an opportunity", UNIT_BYTES, PARAM_U64(struct mahimahi_link, bytes),
		1, 1e6},
	{"end", "loop", "at the end of the file: from its start, or nothing more", UNIT_NONE,
		PARAM_ENUM(struct mahimahi_link, end, end_names)},
	{"outage", "1s", "a longer time without an opportunity counts as down", UNIT_TIME_NS,
		PARAM_U64(struct mahimahi_link, outage_ns), 1, 1e15},
	FRAMING_PARAM(struct mahimahi_link, link.serialiser.framing, "ip", "what a packet takes"),
	PARAM_END,
};

static const struct param also[] = {
	CONFIG_FILE_PARAMS("times at which packets may leave, one per line"),
	LINK_QUEUE_PARAM,
	FRAMING_OVERHEAD_PARAM,
	PARAM_END,
};

static uint64_t mahimahi_bps(const struct mahimahi_link *l, size_t count, uint64_t ns) {
	return (uint64_t)((stats_u128)count * l->bytes * 8 * NS_PER_S / ns);
}

// An outage ends at t_ns if the opportunity before was so long ago.
static uint64_t outage(const struct mahimahi_link *l, uint64_t last_ns, uint64_t t_ns) {
	return t_ns - last_ns > l->outage_ns ? t_ns - last_ns : 0;
}

static int mahimahi_configure(void *self, struct config_node *node, struct err *err) {
	struct mahimahi_link *l = self;
	struct trace_file *t = &l->trace;
	const struct config_file *file;
	struct err why = {""};
	int rc = config_read_file(node, "file", &file, err);

	if (rc < 0)
		return rc;
	rc = trace_file_read(t, TRACE_MAHIMAHI, l->unit_ns, file->path, file->text, &why);
	if (rc < 0)
		return config_err(file->named, rc, err, "file: %s", why.msg);
	// The last opportunity of a round is the start of the next.
	for (size_t i = 0; i < t->count; i++)
		l->round_down_ns += outage(l, i > 0 ? t->at_ns[i - 1] : 0, t->at_ns[i]);
	l->next_ns = t->at_ns[0];
	return link_configure(self, node, err);
}

static int mahimahi_init(void *self, const struct stage_env *env, struct err *err) {
	struct mahimahi_link *l = self;
	uint64_t mean_bps = max_u64(mahimahi_bps(l, l->trace.count, l->trace.period_ns), 1000);
	struct serialiser *s = &l->link.serialiser;

	s->stats.varies = true;
	s->stats.slots = true;
	int rc = link_begin(&l->link, env, mean_bps, mean_bps, err);
	s->down = true;
	return rc;
}

static void mahimahi_fini(void *self) {
	struct mahimahi_link *l = self;

	trace_file_free(&l->trace);
	link_fini(self);
}

static void mahimahi_advance(struct mahimahi_link *l) {
	l->last_ns = l->next_ns;
	if (++l->next == l->trace.count) {
		l->next = 0;
		l->round_ns += l->trace.period_ns;
		if (l->end == END_HOLD) {
			l->next_ns = NEVER_NS;
			stats_rate(&l->link.serialiser.stats, l->last_ns, 0);
			return;
		}
	}
	l->next_ns = l->round_ns + l->trace.at_ns[l->next];
}

// The next packet to be sent, dequeued at t_ns. NULL: there is none.
static struct pkt *mahimahi_dequeue(
	struct mahimahi_link *l, uint64_t t_ns, struct pkt_list *drops) {
	struct serialiser_queue q = link_queue(&l->link);
	struct serialiser *s = &l->link.serialiser;

	s->free = serial_at(t_ns);
	s->byte_ns = 0; // an opportunity takes no time

	struct serialiser_burst b = serialiser_begin(s, q);
	struct pkt *p = serialiser_next(s, q, &b, drops);

	serialiser_end(s, q, &b, NULL);
	s->halted = p;
	if (p != NULL)
		l->left_bytes = framing_bytes(&s->framing, p->size_bytes);
	return p;
}

static void mahimahi_opportunity(struct mahimahi_link *l, uint64_t t_ns, struct pkt_list *drops) {
	struct serialiser *s = &l->link.serialiser;
	uint64_t left_bytes = l->bytes;

	stats_slot(&s->stats, l->bytes);
	while (left_bytes > 0 && (s->halted != NULL || mahimahi_dequeue(l, t_ns, drops) != NULL)) {
		uint64_t used = min_u64(left_bytes, l->left_bytes);

		left_bytes -= used;
		l->left_bytes -= used;
		if (l->left_bytes > 0)
			return;
		s->halted->arrival_ns = t_ns;
		if (unlikely(!pkt_ring_push(&s->out, s->halted)))
			pkt_drop(drops, s->halted, DROP_NO_MBUF);
		s->halted = NULL;
	}
}

// At the start of a round of an empty link: passes over whole rounds.
static void mahimahi_skip(struct mahimahi_link *l, uint64_t now_ns) {
	struct stage_stats *stats = &l->link.serialiser.stats;
	uint64_t rounds = time_since(now_ns, l->round_ns) / l->trace.period_ns;
	uint64_t ns = rounds * l->trace.period_ns;

	if (l->next != 0 || l->end == END_HOLD || rounds == 0)
		return;
	stats_skip(stats, ns, (stats_u128)rounds * l->trace.count * l->bytes * 8 * NS_PER_S,
		rounds * l->round_down_ns);
	l->round_ns += ns;
	l->next_ns += ns;
	l->last_ns += ns;
}

static void mahimahi_serve(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct mahimahi_link *l = self;
	struct serialiser *s = &l->link.serialiser;

	while (l->next_ns <= now_ns) {
		if (s->halted == NULL && s->stats.queue_pkts == 0)
			mahimahi_skip(l, now_ns);
		if (l->next_ns > now_ns)
			return;
		s->stats.down_ns += outage(l, l->last_ns, l->next_ns);
		mahimahi_opportunity(l, l->next_ns, drops);
		mahimahi_advance(l);
	}
}

static void mahimahi_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct mahimahi_link *l = self;

	for (uint32_t i = 0, end; i < n; i = end) {
		mahimahi_serve(l, pkts[i]->arrival_ns, drops);
		for (end = i + 1; end < n && pkts[end]->arrival_ns < l->next_ns; end++)
			;
		link_push(&l->link, pkts + i, end - i, drops);
	}
}

static uint32_t mahimahi_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct mahimahi_link *l = self;

	mahimahi_serve(l, now_ns, drops);
	return serialiser_pop_out(&l->link.serialiser, now_ns, pkts, max);
}

static uint64_t mahimahi_next_ns(const void *self) {
	const struct mahimahi_link *l = self;
	const struct serialiser *s = &l->link.serialiser;

	if (s->out.count > 0)
		return pkt_ring_head(&s->out)->arrival_ns;
	return s->halted != NULL || s->stats.queue_pkts > 0 ? l->next_ns : NEVER_NS;
}

static struct stage_stats *mahimahi_figures(void *self, uint64_t now_ns) {
	struct mahimahi_link *l = self;
	struct stage_stats *stats = link_figures(&l->link, now_ns);

	stats->unsent_bits = l->link.serialiser.halted != NULL ? 8.0 * (double)l->left_bytes : 0;
	return stats;
}

// The largest in any window of 10 ms, so that what follows has room for it.
static uint64_t mahimahi_rate_bps(const void *self) {
	const struct mahimahi_link *l = self;
	const struct trace_file *t = &l->trace;
	size_t from = 0, most = 0;

	for (size_t i = 0; i < t->count; i++) {
		while (t->at_ns[i] - t->at_ns[from] > PEAK_WINDOW_NS)
			from++;
		most = max_u64(most, i - from + 1);
	}
	return max_u64(
		mahimahi_bps(l, most, PEAK_WINDOW_NS), mahimahi_bps(l, t->count, t->period_ns) + 1);
}

const struct stage_ops stage_mahimahi_link = {
	.name = "mahimahi_link",
	.summary = "a queue whose packets leave at the times of a mahimahi file",
	.reference = "mm-link of mahimahi (USENIX ATC 2015)",
	.params = params,
	.state_size = sizeof(struct mahimahi_link),
	.init = mahimahi_init,
	.fini = mahimahi_fini,
	.push = mahimahi_push,
	.pop = mahimahi_pop,
	.next_ns = mahimahi_next_ns,
	.backlog = link_backlog,
	.config = &(const struct stage_config){.also = also, .configure = mahimahi_configure},
	.capacity =
		&(const struct stage_capacity){.limit = link_limit, .rate_bps = mahimahi_rate_bps},
	.figures = &(const struct stage_figures){.serve = mahimahi_serve, .read = mahimahi_figures},
	.observer = &link_observer,
	.needs =
		&(const struct stage_needs){
			.random = link_random, .flows = link_flows, .headers = link_headers},
};
