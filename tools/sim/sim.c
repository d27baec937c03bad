// SPDX-License-Identifier: BSD-3-Clause
// The run: moves packets from their pools into the paths and advances time in windows.
#include "tools/sim/sim.h"

#include "common/base/likely.h"
#include "common/net/clear.h"
#include "common/net/headers.h"
#include "common/net/wire.h"

#include <assert.h>
#include <string.h>

// Longest window: long enough to amortise the switch between components, short enough that packets
// passed from one to the next are still in the cache.
#define WINDOW_MAX_NS (250 * NS_PER_US)

#define POOL_AHEAD 4 // packets prefetched ahead

static_assert((int)POOL_FORWARD == FLOWS_FORWARD && (int)POOL_REVERSE == FLOWS_REVERSE,
	"the pool of a direction has its number");

static inline struct pkt *pool_get(struct sim_pool *p, uint8_t number) {
	struct pkt *pkt;

	if (likely(p->frees > 0)) {
		pkt = p->free[--p->frees];
		if (p->frees >= POOL_AHEAD)
			prefetch_write(p->free[p->frees - POOL_AHEAD]);
	} else {
		if (p->next == p->size)
			return NULL;
		pkt = (struct pkt *)(void *)(p->base + p->next++ * p->object);
	}
	pkt->pool = number;
	return pkt;
}

static inline void pool_put(struct sim *s, struct pkt *pkt) {
	struct sim_pool *p = &s->pool[pkt->pool];

	p->free[p->frees++] = pkt;
}

static struct pkt *copy_packet(void *ctx, const struct pkt *p) {
	struct sim *s = ctx;
	struct sim_pool *pool = &s->pool[p->pool];
	struct pkt *copy = pool_get(pool, p->pool);

	if (copy == NULL) {
		s->unsent++;
		return NULL;
	}
	memcpy(copy, p, pool->object);
	s->inside++;
	return copy;
}

static void free_packets(void *ctx, struct pkt_list *drops) {
	struct sim *s = ctx;
	struct pkt *pkt;

	while ((pkt = pkt_list_pop(drops)) != NULL) {
		if (pkt_seg(pkt)->len > 0)
			host_dropped(&s->sender, pkt->flow_id);
		pool_put(s, pkt);
		s->inside--;
	}
}

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	const struct seg *seg = pkt_seg_const(p);
	const struct sim *s = ctx;

	struct pkt_headers h = {.seq = seg->seq,
		.seq_count = (uint16_t)(seg->len + ((seg->flags & SEG_FIN) != 0)),
		.syn = (seg->flags & SEG_SYN) != 0,
		.dscp = (uint8_t)s->groups.group[p->delay_class].dscp};

	headers_of_ack(&h, seg);
	return h;
}

struct pkt_owner sim_owner(struct sim *s) {
	return (struct pkt_owner){
		.copy = copy_packet, .free = free_packets, .headers = headers, .ctx = s};
}

__attribute__((noinline)) static void flush(struct sim *s, enum sim_pool_kind direction) {
	struct sim_burst *b = &s->side[direction].burst;
	struct path *path = s->side[direction].to;

	s->inside += b->count;
	if (unlikely(path == NULL)) {
		sim_network_send(s, (enum flows_direction)direction);
	} else {
		path_push(path, b->pkt, b->count);
		b->count = 0;
	}
	if (s->inside > s->inside_max)
		s->inside_max = s->inside;
}

// The pools hold more packets than the paths are sized for. If a pool is empty in spite of that,
// the packet is dropped and counted, and main reports that the run is not valid.
__attribute__((noinline)) static void drop_unsent(struct sim *s, enum sim_pool_kind direction,
	uint32_t id, uint16_t size, const struct seg *seg) {
	uint16_t group = s->sender.flow[id].group;

	path_push_nothing(s->paths.route[group][direction].path[0], size);
	s->side[direction].listed += s->side[direction].to == NULL;
	s->unsent++;
	if (seg->len > 0)
		host_dropped(&s->sender, id);
}

// Puts a segment into a packet, its sequence number `ahead` further, and the packet on its way into
// a path.
static inline void send_packet(struct sim *s, enum sim_pool_kind direction, enum sim_pool_kind kind,
	uint16_t group, uint32_t id, uint16_t size, const struct seg *seg, uint32_t ahead,
	uint8_t ecn, uint64_t t_ns) {
	struct pkt *pkt = pool_get(&s->pool[kind], (uint8_t)kind);
	struct sim_burst *burst = &s->side[direction].burst;

	if (unlikely(pkt == NULL)) {
		drop_unsent(s, direction, id, size, seg);
		return;
	}
	pkt->arrival_ns = t_ns;
	pkt->flow_id = id;
	pkt->size_bytes = size;
	pkt->ecn = ecn;
	pkt->delay_class = group;
	pkt->drop_reason = DROP_NONE;
	pkt->flags = 0;
	if (kind >= POOL_LARGE)
		memcpy(pkt_seg(pkt), seg, sizeof(*seg));
	else
		seg_copy_header(pkt_seg(pkt), seg);
	pkt_seg(pkt)->seq += ahead;
	burst->pkt[burst->count++] = pkt;
}

static inline void send_packets(struct sim *s, enum sim_pool_kind direction, uint16_t group,
	uint32_t id, const struct seg *first, uint32_t n, uint8_t ecn, uint64_t t_ns) {
	uint16_t size = (uint16_t)(wire_tcp_frame(first) + WIRE_FCS);

	if (unlikely(s->guests != NULL))
		guests_emit(s->guests, (enum flows_direction)direction, t_ns);
	if (unlikely(seg_is_large(first))) {
		send_packet(
			s, direction, POOL_LARGE + direction, group, id, size, first, 0, ecn, t_ns);
		flush(s, direction);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		send_packet(
			s, direction, direction, group, id, size, first, i * first->len, ecn, t_ns);
		if (s->side[direction].burst.count == SIM_BURST)
			flush(s, direction);
	}
}

void sim_sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct sim *s = ctx;

	send_packets(s, POOL_FORWARD, s->sender.flow[id].group, id, seg, n, ecn, t_ns);
}

void sim_receiver_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct sim *s = ctx;

	send_packets(s, POOL_REVERSE, s->receiver.receiver[id].group_index, id, seg, n, ecn, t_ns);
}

struct pkt *sim_pool_get(struct sim_pool *p, uint8_t number) {
	return pool_get(p, number);
}

void sim_pool_put(struct sim *s, struct pkt *pkt) {
	pool_put(s, pkt);
}

void sim_flush(struct sim *s, enum flows_direction d) {
	if (s->side[d].burst.count > 0)
		flush(s, (enum sim_pool_kind)d);
}

void sim_send_frame(struct sim *s, enum flows_direction d, struct pkt *pkt) {
	struct sim_burst *burst = &s->side[d].burst;

	burst->pkt[burst->count++] = pkt;
	if (burst->count == SIM_BURST)
		sim_flush(s, d);
}

// Packets taken off a path before the first is processed. Meanwhile the connections of the
// following ones are prefetched, a few cache lines at a time, because a core can have only some
// misses outstanding.
#define BATCH 64
#define FETCH_CONNECTION 6 // packets ahead, for the connection's own cache lines
#define FETCH_MORE 3 // packets ahead, for the data to which these lines point

// Always inlined: gcc takes a function that only prefetches for one without effect.
static inline __attribute__((always_inline)) void fetch(
	const struct host *h, bool to_sender, uint32_t id) {
	if (to_sender)
		host_fetch_flow(h, id);
	else
		host_fetch_receiver(h, id);
}

static inline __attribute__((always_inline)) void fetch_more(
	const struct host *h, bool to_sender, struct pkt *pkt) {
	if (to_sender)
		host_fetch_segs(h, pkt->flow_id, pkt_seg(pkt));
	else
		host_fetch_ranges(h, pkt->flow_id);
}

// Runs one host to the end of the window, last_ns, on the packets that arrive within it.
static inline __attribute__((always_inline)) void feed(
	struct sim *s, bool to_sender, uint64_t last_ns) {
	struct path *from = s->side[to_sender ? FLOWS_FORWARD : FLOWS_REVERSE].from;
	struct host *h = to_sender ? &s->sender : &s->receiver;
	struct pkt *batch[BATCH];
	uint32_t n;

	do {
		if (likely(from != NULL))
			n = path_pop(from, last_ns, batch, BATCH);
		else
			n = sim_network_take(
				s, to_sender ? NODE_SENDER : NODE_RECEIVER, batch, BATCH);
		for (uint32_t i = 0; i < n && i < FETCH_CONNECTION; i++)
			fetch(h, to_sender, batch[i]->flow_id);
		for (uint32_t i = 0; i < n; i++) {
			struct pkt *pkt = batch[i];
			uint64_t t_ns = pkt->arrival_ns;

			if (i + FETCH_CONNECTION < n)
				fetch(h, to_sender, batch[i + FETCH_CONNECTION]->flow_id);
			if (i + FETCH_MORE < n)
				fetch_more(h, to_sender, batch[i + FETCH_MORE]);
			host_run(h, t_ns);
			if (unlikely((pkt->flags & PKT_CLEARED) != 0))
				clear_seg(pkt_seg(pkt), pkt->flags);
			if (unlikely((pkt->flags & PKT_CORRUPT) != 0))
				s->checksum_errors[to_sender]++;
			else if (to_sender)
				host_rx_flow(h, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
			else
				host_rx_receiver(h, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
			pool_put(s, pkt);
		}
		s->inside -= n;
	} while (n == BATCH);
	host_run(h, last_ns);
	if (s->side[to_sender ? FLOWS_FORWARD : FLOWS_REVERSE].burst.count > 0)
		flush(s, to_sender ? POOL_FORWARD : POOL_REVERSE);
}

__attribute__((noinline)) static void feed_sender(struct sim *s, uint64_t last_ns) {
	if (unlikely(s->guests != NULL))
		guests_feed(s->guests, FLOWS_FORWARD, last_ns);
	else
		feed(s, true, last_ns);
}

__attribute__((noinline)) static void feed_receiver(struct sim *s, uint64_t last_ns) {
	if (unlikely(s->guests != NULL))
		guests_feed(s->guests, FLOWS_REVERSE, last_ns);
	else
		feed(s, false, last_ns);
}

// The next time of an action for which all earlier events must be done: an interval, a change, the
// warm-up's end.
static uint64_t next_boundary(const struct sim *s, uint64_t until_ns) {
	uint64_t t_ns = time_min(until_ns, schedule_next_ns(&s->schedule));

	if (!s->measuring)
		t_ns = time_min(t_ns, s->run->warmup_ns);
	return time_min(t_ns, time_min(s->next_interval_ns, s->run->stop.next_ns));
}

static void stop_sample(struct sim *s) {
	struct host_figures f = host_figures(&s->sender, s->now_ns);
	const double metric[] = {
		[STOP_NONE] = 0,
		[STOP_GOODPUT] = f.goodput_bps,
		[STOP_JFI] = f.jfi,
		[STOP_CWND_REDUCTIONS] = f.cwnd_reductions_per_s,
		[STOP_DROPS] = f.drops_per_s,
	};

	stop_put(&s->run->stop, metric[s->run->stop.metric]);
}

static void publish(struct sim *s) {
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++)
		tel_publish(&s->tel[i]);
}

// Ends an interval, unless one ends there: with every telemetry.interval, with the warm-up and with
// the run, so that each interval is of one of them.
static void end_interval(struct sim *s) {
	uint64_t now_ns = s->now_ns;

	if (now_ns == s->interval_start_ns)
		return;
	host_interval(&s->sender, now_ns);
	paths_interval(&s->paths, &s->tel[TEL_STREAM_LINKS], &s->tel[TEL_STREAM_EVENTS], now_ns);
	s->interval_start_ns = now_ns;
}

static void at_boundary(struct sim *s) {
	uint64_t now_ns = s->now_ns;

	for (uint32_t i = 0; i < s->paths.count; i++)
		path_serve(&s->paths.path[i], now_ns);
	capture_flush(s->capture, now_ns);
	if (now_ns == s->next_interval_ns) {
		end_interval(s);
		s->next_interval_ns += s->run->telemetry_interval_ns;
	}
	if (!s->measuring && now_ns >= s->run->warmup_ns) {
		s->measuring = true;
		end_interval(s);
		host_measure(&s->sender, now_ns);
		paths_measure(&s->paths, now_ns);
	}
	if (now_ns >= schedule_next_ns(&s->schedule)) {
		schedule_apply(&s->schedule, now_ns, &s->tel[TEL_STREAM_EVENTS]);
		sim_network_order(s);
	}
	if (now_ns == s->run->stop.next_ns)
		stop_sample(s);
	publish(s);
}

// The time of the next event: the first packet that leaves a path, or the first timer.
static uint64_t next_event(struct sim *s, uint64_t limit_ns) {
	const struct path *p = s->paths.path; // most runs have two
	uint64_t t_ns = time_min(path_next_ns(&p[0]), path_next_ns(&p[1]));

	for (uint32_t i = 2; i < s->paths.count; i++)
		t_ns = time_min(t_ns, path_next_ns(&p[i]));
	t_ns = time_min(t_ns, limit_ns);
	t_ns = time_min(t_ns, host_next_ns(&s->sender, t_ns));
	t_ns = time_min(t_ns, host_next_ns(&s->receiver, t_ns));
	if (s->guests != NULL)
		t_ns = time_min(t_ns, guests_next_ns(s->guests));
	return time_max(t_ns, s->now_ns);
}

__attribute__((noinline)) static void run_step(
	struct sim *s, struct sim_step step, uint64_t last_ns) {
	if (step.kind == STEP_ENTER)
		sim_network_enter(s, &s->paths.path[step.node - NODE_PATHS]);
	else if (step.kind == STEP_LEAVE)
		sim_network_leave(s, &s->paths.path[step.node - NODE_PATHS], last_ns);
	else if (step.node == NODE_SENDER)
		feed_sender(s, last_ns);
	else
		feed_receiver(s, last_ns);
}

// One window, up to last_ns.
static inline void run_window(struct sim *s, uint64_t last_ns) {
	const struct sim_network *n = &s->network;

	if (unlikely(n->steps > 2)) {
		for (uint32_t i = 0; i < n->steps; i++)
			run_step(s, n->step[i], last_ns);
	} else if (n->step[0].node == NODE_SENDER) { // hosts, with one path in each direction
		feed_sender(s, last_ns);
		feed_receiver(s, last_ns);
	} else {
		feed_receiver(s, last_ns);
		feed_sender(s, last_ns);
	}
}

// Packets that enter a path ahead from the first event on leave it no earlier than the window's
// length later. So windows begin at events, and idle time costs nothing, however short the delay
// is.
void sim_run(struct sim *s, uint64_t until_ns) {
	if (s->now_ns == 0)
		at_boundary(s);
	while (s->now_ns < until_ns && !s->run->stop.settled && s->failed == 0) {
		uint64_t boundary_ns = next_boundary(s, until_ns);
		uint64_t both_ns = s->guests != NULL ? guests_both_ns(s->guests) : 0;
		uint64_t window_ns = s->guests != NULL
			? time_min(
				both_ns > 0 ? both_ns : s->network.order.ahead_ns, GUESTS_WINDOW_NS)
			: time_min(s->network.order.ahead_ns, WINDOW_MAX_NS);
		while (s->now_ns < boundary_ns && s->failed == 0) {
			uint64_t end_ns =
				time_min(next_event(s, boundary_ns) + window_ns, boundary_ns);

			if (both_ns > 0)
				guests_feed_both(s->guests, end_ns - 1);
			else
				run_window(s, end_ns - 1);
			s->now_ns = end_ns;
		}
		publish(s);
		at_boundary(s);
	}
}

int sim_close(struct sim *s, struct err *err) {
	int rc;

	end_interval(s);
	host_still_open(&s->sender, s->now_ns);
	for (uint32_t i = 0; i < s->paths.count; i++)
		path_end(&s->paths.path[i], s->now_ns);
	publish(s);
	rc = capture_close(s->capture, err);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		struct err one;

		if (s->tel[i].ring == NULL)
			continue;
		int closed = tel_close(&s->tel[i], &one);
		if (closed < 0 && rc == 0)
			rc = err_set(err, closed, "%s", one.msg);
	}
	return rc;
}
