// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/sim.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/live/live.h"
#include "common/net/wire.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Longest window: enough to amortise the switch between components, short enough that what one
// hands to the next is still in the cache.
#define WINDOW_MAX_NS (250 * NS_PER_US)
#define RING_RECORDS 16384
#define PIPE_SEGS_MAX (UINT64_C(1) << 40) // far more than memory_check finds room for

static int pool_init(struct sim_pool *p, size_t object, uint64_t size, struct err *err) {
	memset(p, 0, sizeof(*p));
	p->size = size;
	p->object = object;
	p->base = mem_map(size * object);
	p->free = mem_map(size * sizeof(struct pkt *));
	if (p->base == NULL || p->free == NULL)
		return err_set(err, -ENOMEM, "no memory for %llu packets in flight",
			(unsigned long long)size);
	return 0;
}

#define POOL_AHEAD 4 // packets, fetched before they are asked for

static inline struct pkt *pool_get(struct sim_pool *p, enum sim_pool_kind kind) {
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
	pkt->pool = (uint8_t)kind;
	return pkt;
}

static inline void pool_put(struct sim *s, struct pkt *pkt) {
	struct sim_pool *p = &s->pool[pkt->pool];

	p->free[p->frees++] = pkt;
}

static void free_drops(struct sim *s, struct path *path) {
	struct pkt *pkt;

	while ((pkt = pkt_list_pop(&path->drops)) != NULL) {
		if (path == s->forward && pkt_seg(pkt)->len > 0)
			s->sender.flow[pkt->flow_id].count.drops++;
		pool_put(s, pkt);
		s->inside--;
	}
}

static void flush(struct sim *s, enum sim_pool_kind direction) {
	struct path *path = direction == POOL_FORWARD ? s->forward : s->reverse;
	struct sim_burst *b = &s->burst[direction];

	path_push(path, b->pkt, b->count);
	s->inside += b->count;
	b->count = 0;
	if (path->drops.head != NULL)
		free_drops(s, path);
	if (s->inside > s->inside_max)
		s->inside_max = s->inside;
}

// The pools hold more than paths are sized for. A packet for which they have no room all the same is counted
// and dropped, and main says that the run is not to be trusted.
__attribute__((noinline)) static void drop_unsent(struct sim *s, enum sim_pool_kind direction,
	uint32_t id, uint16_t size, const struct seg *seg) {
	path_push_nothing(direction == POOL_FORWARD ? s->forward : s->reverse, size);
	s->unsent++;
	if (direction == POOL_FORWARD && seg->len > 0)
		s->sender.flow[id].count.drops++;
}

// Puts a segment into a packet and the packet on its way into a path.
static inline void send_packet(struct sim *s, enum sim_pool_kind direction, enum sim_pool_kind kind,
	uint16_t group, uint32_t id, uint16_t size, const struct seg *seg, uint8_t ecn,
	uint64_t t_ns) {
	struct pkt *pkt = pool_get(&s->pool[kind], kind);
	struct sim_burst *burst = &s->burst[direction];

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
	if (kind == POOL_LARGE)
		memcpy(pkt_seg(pkt), seg, sizeof(*seg));
	else
		seg_copy_header(pkt_seg(pkt), seg);
	if (direction == POOL_FORWARD && unlikely(s->pcap != NULL))
		sim_pcap_write(s->pcap, pkt, pkt_seg(pkt), ecn, t_ns, true);
	burst->pkt[burst->count++] = pkt;
}

static inline void send_packets(struct sim *s, enum sim_pool_kind direction, uint16_t group,
	uint32_t id, const struct seg *first, uint32_t n, uint8_t ecn, uint64_t t_ns) {
	uint16_t size = (uint16_t)(wire_tcp_frame(first) + WIRE_FCS);
	struct seg seg;

	if (unlikely(first->sack_count > 0 || (first->flags & SEG_SYN) != 0)) {
		send_packet(s, direction, POOL_LARGE, group, id, size, first, ecn, t_ns);
		flush(s, direction);
		return;
	}
	seg_copy_header(&seg, first);
	while (n > 0) {
		uint32_t room = SIM_BURST - s->burst[direction].count, now = n < room ? n : room;

		for (uint32_t i = 0; i < now; i++) {
			send_packet(s, direction, direction, group, id, size, &seg, ecn, t_ns);
			seg.seq += seg.len;
		}
		if (now == room)
			flush(s, direction);
		n -= now;
	}
}

static void sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct sim *s = ctx;

	send_packets(s, POOL_FORWARD, s->sender.flow[id].group, id, seg, n, ecn, t_ns);
}

static void receiver_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct sim *s = ctx;

	send_packets(s, POOL_REVERSE, s->receiver.receiver[id].group_index, id, seg, n, ecn, t_ns);
}

// Packets all links, edges and delays can hold at any time of the schedule, as if all were full segments of
// the group with the smallest; and per second.
static void size_network(const struct sim *s, uint64_t *pipe_segs, uint64_t *segs_per_s) {
	uint32_t frame = groups_min_frame(&s->groups);
	struct path_capacity f = path_capacity(s->forward, frame);
	struct path_capacity r = path_capacity(s->reverse, frame);

	*segs_per_s = f.rate_bps / (8 * (uint64_t)frame) + 1024;
	*pipe_segs = time_min(f.queue_pkts, PIPE_SEGS_MAX)
		+ (uint64_t)((double)*segs_per_s * (double)(f.delay_ns + r.delay_ns) / 1e9);
}

// Refuses what the machine has no memory for, before anything is allocated. The pools below are
// reserved for the worst case but only touched as far as they are used.
static int memory_check(struct sim *s, const struct host_env *env, struct err *err) {
	const struct config_node *flows = config_get(config_root(s->run->config), "flows");
	uint64_t windows = host_window_segs(&s->groups);
	uint64_t bytes = (uint64_t)s->groups.flows
			* (sizeof(struct flow) + sizeof(struct receiver)
				+ (sizeof(struct seg_rec) << SEG_ORDER_MIN))
		+ 4 * env->pipe_segs * (SIM_PKT_SIZE + sizeof(struct seg_rec))
		+ 4 * windows * sizeof(struct seg_rec);
	struct err why;
	char what[64];

	snprintf(what, sizeof(what), "%u flows and %llu packets in flight", s->groups.flows,
		(unsigned long long)(env->pipe_segs + windows));
	int rc = live_memory_check(bytes, what, &why);
	return rc < 0 ? config_err(flows, rc, err, "%s", why.msg) : 0;
}

static int hosts_init(struct sim *s, struct err *err) {
	struct host_env env = {
		.ctx = s,
		.seed = s->run->seed,
		.duration_ns = s->run->duration_ns,
		.virtual_time = true,
		.tel_run = &s->run->tel,
	};
	int rc;

	size_network(s, &env.pipe_segs, &env.segs_per_s);
	rc = memory_check(s, &env, err);
	if (rc < 0)
		return rc;
	env.output = sender_output;
	env.flows = true;
	env.tel_cc = &s->tel[TEL_STREAM_CC];
	env.tel_flows = &s->tel[TEL_STREAM_FLOWS];
	env.tel_interval = &s->tel[TEL_STREAM_INTERVAL];
	env.tel_events = &s->tel[TEL_STREAM_EVENTS];
	rc = host_init(&s->sender, &s->groups, &env, err);
	if (rc < 0)
		return rc;
	env.output = receiver_output;
	env.flows = false;
	env.receivers = s->groups.flows;
	rc = host_init(&s->receiver, &s->groups, &env, err);
	if (rc < 0)
		return rc;
	// A packet for each segment on the scoreboard, its retransmission, and their ACKs.
	for (uint32_t i = 0; rc == 0 && i < POOLS; i++)
		rc = pool_init(&s->pool[i], i == POOL_LARGE ? SIM_PKT_SIZE : sizeof(struct pkt),
			4 * ((uint64_t)s->sender.arena.blocks << SEG_ORDER_MIN)
				+ 16 * (uint64_t)s->groups.flows,
			err);
	return rc;
}

// Without any delay nothing can be computed ahead. What several changes of one time make of it counts.
static int delays_stay(const struct schedule *schedule, struct err *err) {
	for (uint32_t i = 0; i < schedule->count; i++) {
		const struct schedule_entry *e = &schedule->entry[i];
		bool last = i + 1 == schedule->count || e[1].at_ns != e->at_ns;

		if (last && e->base_rtt_ns == 0)
			return config_err(e->node, -EINVAL, err,
				"schedule: this leaves no delay in either direction; virtual time "
				"needs more than 0 in one of them, 1ns will do");
	}
	return 0;
}

static int network_init(struct sim *s, struct err *err) {
	struct config_node *root = config_root(s->run->config), *node = config_get(root, "paths");
	uint64_t base_rtt_ns[GROUPS_MAX];
	struct paths_env env = {
		.run_seed = s->run->seed,
		.mtu_bytes = groups_mtu_bytes(&s->groups),
		.group_base_rtt_ns = base_rtt_ns,
		.flows = config_get(root, "flows"),
		.groups = s->groups.count,
		.tel_packets = &s->tel[TEL_STREAM_PACKETS],
		.tel_arrivals = &s->tel[TEL_STREAM_ARRIVALS],
		.tel_run = &s->run->tel,
	};
	int rc;

	for (uint32_t i = 0; i < s->groups.count; i++)
		base_rtt_ns[i] = s->groups.group[i].base_rtt_ns;
	rc = paths_init(&s->paths, node, &env, err);
	if (rc < 0)
		return rc;
	s->forward = paths_find(&s->paths, "forward");
	s->reverse = paths_find(&s->paths, "reverse");
	if (s->forward == NULL || s->reverse == NULL)
		return config_err(node, -EINVAL, err, "paths: needs 'forward' and 'reverse'");
	if (s->paths.base_rtt_ns == 0)
		return config_err(node, -EINVAL, err,
			"paths: virtual time needs a delay stage of more than 0 in one direction; "
			"1ns will do");
	rc = schedule_init(&s->schedule, config_get(root, "schedule"), &s->paths, err);
	return rc < 0 ? rc : delays_stay(&s->schedule, err);
}

int sim_init(struct sim *s, struct run *run, struct err *err) {
	struct config_node *flows = config_get(config_root(run->config), "flows");
	int rc;

	memset(s, 0, sizeof(*s));
	s->run = run;
	if (flows == NULL)
		return err_set(err, -EINVAL,
			"%s: flows is required: a list of groups such as "
			"- {count: 10, cc: copa}",
			config_place(config_root(run->config)));
	rc = groups_init(&s->groups, flows, err);
	if (rc == 0)
		rc = network_init(s, err);
	if (rc == 0)
		rc = hosts_init(s, err);
	s->next_interval_ns = run->telemetry_interval_ns;
	if (rc < 0)
		sim_fini(s);
	return rc;
}

int sim_open(struct sim *s, const char *pcap, struct err *err) {
	static const uint32_t least_level[TEL_STREAM_COUNT] = {
		[TEL_STREAM_PACKETS] = 2,
		[TEL_STREAM_CC] = 2,
		[TEL_STREAM_FLOWS] = 1,
		[TEL_STREAM_INTERVAL] = 1,
		[TEL_STREAM_LINKS] = 1,
		[TEL_STREAM_EVENTS] = 1,
	};

	paths_observers(&s->run->tel);
	groups_observers(&s->run->tel);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		if (s->run->telemetry_level < least_level[i]
			|| (i == TEL_STREAM_ARRIVALS && !s->run->telemetry_arrivals))
			continue;
		int rc = tel_open(
			&s->tel[i], (enum tel_stream)i, &s->run->tel, "", RING_RECORDS, NULL, err);
		if (rc < 0)
			return rc;
	}
	if (pcap != NULL) {
		s->pcap = sim_pcap_open(pcap, err);
		if (s->pcap == NULL)
			return -EIO;
	}
	return 0;
}

// Packets taken off a path before the first is looked at. While one is worked on, the connections of
// those that follow are fetched, a few lines at a time: a core has only so many misses under way.
#define BATCH 64
#define FETCH_CONNECTION 6 // packets ahead: its own cache lines
#define FETCH_MORE 3 // what they point to

// Inlined whatever gcc thinks: it takes a function that only fetches for one that does nothing.
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

// Runs one host through the window that ends with `last_ns`, on what leaves its path in it.
static inline __attribute__((always_inline)) void feed(
	struct sim *s, bool to_sender, uint64_t last_ns) {
	struct path *from = to_sender ? s->reverse : s->forward;
	struct host *h = to_sender ? &s->sender : &s->receiver;
	struct pkt *batch[BATCH];
	uint32_t n;

	do {
		n = path_pop(from, last_ns, batch, BATCH);
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
			if (to_sender && s->pcap != NULL)
				sim_pcap_write(s->pcap, pkt, pkt_seg(pkt), pkt->ecn, t_ns, false);
			if (to_sender)
				host_rx_flow(h, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
			else
				host_rx_receiver(h, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
			pool_put(s, pkt);
		}
		s->inside -= n;
	} while (n == BATCH);
	if (from->drops.head != NULL)
		free_drops(s, from);
	host_run(h, last_ns);
	flush(s, to_sender ? POOL_FORWARD : POOL_REVERSE);
}

static void feed_sender(struct sim *s, uint64_t last_ns) {
	feed(s, true, last_ns);
}

static void feed_receiver(struct sim *s, uint64_t last_ns) {
	feed(s, false, last_ns);
}

// What must happen at an exact time, when all before it is done.
static uint64_t next_boundary(const struct sim *s, uint64_t until_ns) {
	uint64_t t_ns = time_min(until_ns, schedule_next_ns(&s->schedule));

	if (!s->measuring)
		t_ns = time_min(t_ns, s->run->warmup_ns);
	return time_min(t_ns, time_min(s->next_interval_ns, s->run->stop.next_ns));
}

static void stop_look(struct sim *s) {
	struct host_figures f = host_figures(&s->sender, s->now_ns);
	const double metric[] = {
		[STOP_NONE] = 0,
		[STOP_GOODPUT] = f.goodput_bps,
		[STOP_JFI] = f.jfi,
		[STOP_HALVINGS] = f.halvings_per_s,
		[STOP_DROPS] = f.drops_per_s,
	};

	stop_put(&s->run->stop, metric[s->run->stop.metric]);
}

static void publish(struct sim *s) {
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++)
		tel_publish(&s->tel[i]);
}

static void at_boundary(struct sim *s) {
	uint64_t now_ns = s->now_ns;

	for (uint32_t i = 0; i < s->paths.count; i++) {
		path_serve(&s->paths.path[i], now_ns);
		free_drops(s, &s->paths.path[i]);
	}
	if (now_ns == s->next_interval_ns) {
		host_interval(&s->sender, now_ns);
		paths_interval(
			&s->paths, &s->tel[TEL_STREAM_LINKS], &s->tel[TEL_STREAM_EVENTS], now_ns);
		s->next_interval_ns += s->run->telemetry_interval_ns;
	}
	if (!s->measuring && now_ns >= s->run->warmup_ns) {
		s->measuring = true;
		host_measure(&s->sender, now_ns);
		paths_measure(&s->paths, now_ns);
	}
	if (now_ns >= schedule_next_ns(&s->schedule))
		schedule_apply(&s->schedule, now_ns, &s->tel[TEL_STREAM_EVENTS]);
	if (now_ns == s->run->stop.next_ns)
		stop_look(s);
	publish(s);
}

// Nothing happens before: no packet leaves a path, no timer fires.
static uint64_t next_event(struct sim *s, uint64_t limit_ns) {
	uint64_t t_ns = time_min(path_next_ns(s->forward), path_next_ns(s->reverse));

	t_ns = time_min(t_ns, limit_ns);
	t_ns = time_min(t_ns, host_next_ns(&s->sender, t_ns));
	t_ns = time_min(t_ns, host_next_ns(&s->receiver, t_ns));
	return time_max(t_ns, s->now_ns);
}

// From the first event on, what enters the cut leaves it no earlier than its least delay. So a window costs
// nothing while nothing happens, however short the delay is.
void sim_run(struct sim *s, uint64_t until_ns) {
	if (s->now_ns == 0)
		at_boundary(s);
	while (s->now_ns < until_ns && !s->run->stop.settled) {
		uint64_t boundary_ns = next_boundary(s, until_ns);
		uint64_t ahead_f = path_min_delay_ns(s->forward);
		uint64_t ahead_r = path_min_delay_ns(s->reverse);
		uint64_t window_ns = time_min(time_max(ahead_f, ahead_r), WINDOW_MAX_NS);

		while (s->now_ns < boundary_ns) {
			uint64_t end_ns =
				time_min(next_event(s, boundary_ns) + window_ns, boundary_ns);

			if (ahead_r >= ahead_f) {
				feed_sender(s, end_ns - 1);
				feed_receiver(s, end_ns - 1);
			} else {
				feed_receiver(s, end_ns - 1);
				feed_sender(s, end_ns - 1);
			}
			s->now_ns = end_ns;
		}
		publish(s);
		at_boundary(s);
	}
}

int sim_close(struct sim *s, struct err *err) {
	int rc = sim_pcap_close(s->pcap, err);

	s->pcap = NULL;
	host_still_open(&s->sender, s->now_ns);
	for (uint32_t i = 0; i < s->paths.count; i++)
		path_end(&s->paths.path[i], s->now_ns);
	publish(s);
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

void sim_fini(struct sim *s) {
	host_fini(&s->sender);
	host_fini(&s->receiver);
	schedule_fini(&s->schedule);
	if (s->paths.count > 0)
		paths_fini(&s->paths);
	groups_fini(&s->groups);
	for (uint32_t i = 0; i < POOLS; i++) {
		mem_unmap(s->pool[i].base, s->pool[i].size * s->pool[i].object);
		mem_unmap(s->pool[i].free, s->pool[i].size * sizeof(struct pkt *));
	}
}
