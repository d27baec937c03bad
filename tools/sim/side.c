// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/side.h"

#include "common/net/clear.h"
#include "common/net/wire.h"

#include <string.h>

// Longest window: long enough to amortise the switch between nodes, short enough that packets
// passed from one to the next are still in the cache.
#define WINDOW_MAX_NS (250 * NS_PER_US)

__attribute__((noinline)) static void flush(struct side *x) {
	uint32_t n = x->in_burst;

	x->in_burst = 0;
	x->given += n;
	x->pools->inside += n;
	x->to->ops->give(x->to, x->burst, n);
}

void side_flush(struct side *x) {
	if (x->in_burst > 0)
		flush(x);
}

void side_send(struct side *x, struct pkt *pkt) {
	x->burst[x->in_burst++] = pkt;
	if (x->in_burst == SIDE_BURST)
		flush(x);
}

// The pools hold more packets than the paths are sized for. If a pool is empty in spite of that,
// the packet is dropped and counted, and main reports that the run is not valid.
__attribute__((noinline)) static void drop_unsent(struct side *x, enum flows_direction direction,
	uint16_t group, uint32_t id, uint16_t size, const struct seg *seg) {
	path_push_nothing(x->paths->route[group][direction].path[0], size);
	x->given++;
	x->pools->unsent++;
	if (seg->len > 0 && direction == FLOWS_FORWARD)
		host_dropped(x->host, id, 1, 0);
}

// Writes the packet's members from flow_id to flags in two words, as seg_header does: a load that
// spans several stores waits for them.
static inline void write_head(struct pkt *p, uint32_t flow_id, uint16_t size_bytes, uint8_t ecn,
	uint8_t pool, uint16_t group) {
	seg_word *w = (seg_word *)(void *)&p->flow_id;

	static_assert(offsetof(struct pkt, pool) == offsetof(struct pkt, flow_id) + 7
			&& offsetof(struct pkt, flags) == offsetof(struct pkt, id) + 7,
		"each is a word");
	w[0] = (uint64_t)pool << 56 | (uint64_t)ecn << 48 | (uint64_t)size_bytes << 32 | flow_id;
	w[1] = (uint64_t)group << 32; // DROP_NONE, no flags
}

// Puts the common part of a segment into a packet of pool `number`, its sequence number `ahead`
// further.
static inline __attribute__((always_inline)) void put_packet(struct side *x, struct pkt *pkt,
	uint8_t number, uint16_t group, uint32_t id, uint16_t size, const struct seg *seg,
	uint32_t ahead, uint8_t ecn, uint64_t t_ns) {
	pkt->arrival_ns = t_ns;
	write_head(pkt, id, size, ecn, number, group);
	seg_copy_header(pkt_seg(pkt), seg);
	pkt_seg(pkt)->seq += ahead;
	x->burst[x->in_burst++] = pkt;
}

// Puts a segment into a packet of a pool.
static inline __attribute__((always_inline)) void send_packet(struct side *x,
	enum flows_direction d, const bool large, uint16_t group, uint32_t id, uint16_t size,
	const struct seg *seg, uint32_t ahead, uint8_t ecn, uint64_t t_ns) {
	uint8_t number = (uint8_t)(d + (large ? POOL_LARGE : 0));
	struct pkt *pkt = pool_get(x->pool[large], number);

	if (unlikely(pkt == NULL)) {
		drop_unsent(x, d, group, id, size, seg);
		return;
	}
	put_packet(x, pkt, number, group, id, size, seg, ahead, ecn, t_ns);
	if (large)
		memcpy(pkt_seg(pkt), seg, sizeof(*seg));
}

// Answers from routers: the receiving host sends them back, as they went on in their packet's
// place; the sending one takes them.
__attribute__((cold, noinline)) static void take_too_big(
	struct side *x, bool to_sender, struct pkt *pkt, uint64_t t_ns) {
	const struct seg *seg = pkt_seg(pkt);
	uint64_t unsent = x->pools->unsent;

	x->host->count.rx_segs++;
	if (to_sender) {
		host_too_big(x->host, pkt->flow_id, seg->seq, seg->window, t_ns);
		return;
	}
	x->host->count.tx_segs++;
	send_packet(x, FLOWS_REVERSE, false, pkt->delay_class, pkt->flow_id, pkt->size_bytes, seg,
		0, ECN_NOT_ECT, t_ns);
	if (x->pools->unsent == unsent)
		x->burst[x->in_burst - 1]->flags = PKT_TOO_BIG;
	side_flush(x);
}

static inline uint16_t group_of(const struct side *x, enum flows_direction d, uint32_t id) {
	return d == FLOWS_FORWARD ? x->host->flow[id].group : x->host->receiver[id].group_index;
}

__attribute__((noinline)) static void send_any(struct side *x, enum flows_direction d, uint32_t id,
	const struct seg *first, uint32_t n, uint8_t ecn, uint64_t t_ns) {
	uint16_t group = group_of(x, d, id);
	uint32_t ip = groups_ip_header(x->host->groups, group);
	uint16_t size = (uint16_t)(wire_tcp_frame(first, ip) + WIRE_FCS);

	if (unlikely(seg_is_large(first))) {
		send_packet(x, d, true, group, id, size, first, 0, ecn, t_ns);
		flush(x);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		send_packet(x, d, false, group, id, size, first, i * first->len, ecn, t_ns);
		if (x->in_burst == SIDE_BURST)
			flush(x);
	}
}

// As send_any for segments with timestamps alone, with memory for all packets and room in the
// burst. Without a call it has few registers to save.
static inline __attribute__((always_inline)) void send_packets(struct side *x,
	enum flows_direction d, uint32_t id, const struct seg *first, uint32_t n, uint8_t ecn,
	uint64_t t_ns) {
	uint16_t size = (uint16_t)(wire_tcp_frame_usual(first, WIRE_IPV4) + WIRE_FCS);
	uint16_t group = group_of(x, d, id);
	uint32_t ahead = 0;

	if (unlikely(!seg_is_usual(first) || x->host->groups->ipv6 || !pool_has(x->pool[0], n)
		    || x->in_burst + n >= SIDE_BURST)) {
		send_any(x, d, id, first, n, ecn, t_ns);
		return;
	}
	do {
		put_packet(x, pool_take(x->pool[0]), (uint8_t)d, group, id, size, first, ahead, ecn,
			t_ns);
		ahead += first->len;
	} while (--n > 0);
}

void side_sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct side *x = ctx;

	send_packets(x, FLOWS_FORWARD, id, seg, n, ecn, t_ns);
}

void side_recorded_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct side *x = ctx;

	segments_sent(x->segments, &x->host->flow[id], seg, n, ecn, t_ns);
	side_sender_output(ctx, id, seg, n, ecn, t_ns, paced);
}

void side_receiver_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct side *x = ctx;

	send_packets(x, FLOWS_REVERSE, id, seg, n, ecn, t_ns);
}

// Packets taken before the first is processed. Meanwhile the connections of the following ones are
// prefetched, a few cache lines at a time, because a core can have only some misses outstanding.
#define BATCH 64
#define FETCH_CONNECTION 12 // packets ahead, for the connection's own cache lines
#define FETCH_MORE 6 // packets ahead, for the data to which these lines point

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

static inline __attribute__((always_inline)) void to_flow(
	struct side *x, bool recorded, struct pkt *pkt, uint64_t t_ns) {
	if (recorded)
		segments_received(
			x->segments, &x->host->flow[pkt->flow_id], pkt_seg(pkt), pkt->ecn, t_ns);
	host_rx_flow(x->host, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
}

// A packet that a stage has changed, or behind which something follows.
__attribute__((cold, noinline)) static void take_flagged(
	struct side *x, bool to_sender, bool recorded, struct pkt *pkt, uint64_t t_ns) {
	if ((pkt->flags & PKT_CLEARED) != 0)
		clear_seg(pkt_seg(pkt), pkt->flags);
	if ((pkt->flags & PKT_CORRUPT) != 0)
		x->checksum_errors++;
	else if ((pkt->flags & PKT_TOO_BIG) != 0)
		take_too_big(x, to_sender, pkt, t_ns);
	else if (to_sender)
		to_flow(x, recorded, pkt, t_ns);
	else
		host_rx_receiver(x->host, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
	if (!to_sender && (pkt->flags & PKT_POLL_END) != 0)
		receivers_gro_poll_end(&x->host->endpoint, pkt->delay_class, pkt->flow_id, t_ns);
}

static inline __attribute__((always_inline)) void run(
	struct side *x, bool to_sender, bool recorded, uint64_t last_ns) {
	struct host *const h = x->host;
	struct pools *const ps = x->pools;
	struct pkt *batch[BATCH];
	uint32_t n;

	do {
		n = side_take(x, last_ns, batch, BATCH);
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
			if (unlikely(pkt->flags != 0))
				take_flagged(x, to_sender, recorded, pkt, t_ns);
			else if (to_sender)
				to_flow(x, recorded, pkt, t_ns);
			else
				host_rx_receiver(h, pkt->flow_id, pkt_seg(pkt), pkt->ecn, t_ns);
			pool_put(ps, pkt);
		}
		ps->inside -= n;
	} while (n == BATCH);
	host_run(h, last_ns);
	side_flush(x);
}

static int run_sender(struct node *n, uint64_t last_ns, struct err *err) {
	run((struct side *)(void *)n, true, false, last_ns);
	return 0;
}

static int run_recorded(struct node *n, uint64_t last_ns, struct err *err) {
	run((struct side *)(void *)n, true, true, last_ns);
	return 0;
}

static int run_receiver(struct node *n, uint64_t last_ns, struct err *err) {
	run((struct side *)(void *)n, false, false, last_ns);
	return 0;
}

static uint64_t next_event_ns(struct node *n, uint64_t limit_ns) {
	return host_next_ns(((struct side *)(void *)n)->host, limit_ns);
}

const struct node_ops side_sender_ops = {
	.next_event_ns = next_event_ns,
	.run_until = run_sender,
	.window_max_ns = WINDOW_MAX_NS,
};
const struct node_ops side_recorded_ops = {
	.next_event_ns = next_event_ns,
	.run_until = run_recorded,
	.window_max_ns = WINDOW_MAX_NS,
};
const struct node_ops side_receiver_ops = {
	.next_event_ns = next_event_ns,
	.run_until = run_receiver,
	.window_max_ns = WINDOW_MAX_NS,
};
