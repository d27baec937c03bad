// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/lcore.h"

#include "common/net/flow_addr.h"
#include "common/net/wire_ip.h"

#include <string.h>

#define REPLAY_MAX 4096 // frames of a capture in one iteration

static void drop(struct switch_lcore *s, struct rte_mbuf *m, enum drop_reason why) {
	pkt_count_add(&s->drop[why], 1, port_frame_bytes(m->pkt_len));
	rte_pktmbuf_free(m);
}

static bool is_tcp_or_udp(const struct wire_flow *f) {
	return f->proto == WIRE_PROTO_TCP || f->proto == WIRE_PROTO_UDP;
}

// Sets the packet's flow: its index if it is one of weir-sender's flows, else a hash of its
// addresses.
static void classify(const struct switch_lcore *s, const struct rte_mbuf *m, struct pkt *p) {
	const struct switch_config *c = s->config;
	uint32_t id = FLOW_ADDR_NONE, direction = FLOWS_FORWARD;
	struct wire_flow f;

	wire_read_flow(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &f);
	if (is_tcp_or_udp(&f)) {
		id = flow_addr_index(c->flow_base_ip, c->flows, f.src, f.src_port);
		if (id == FLOW_ADDR_NONE) {
			id = flow_addr_index(c->flow_base_ip, c->flows, f.dst, f.dst_port);
			direction = FLOWS_REVERSE;
		}
	}
	packet_metadata(p)->route = 0;
	packet_metadata(p)->replayed = false;
	if (id != FLOW_ADDR_NONE) {
		p->delay_class = c->group_of[id];
		packet_metadata(p)->route = switch_route(s, p->delay_class, direction);
	} else {
		id = flow_addr_hash(f.src, f.dst, f.src_port, f.dst_port, f.proto);
	}
	p->flow_id = id;
}

// Starts the run at the first TCP or UDP frame; other protocols, such as ARP, are not traffic.
static void start_with(struct switch_lcore *s, const struct rte_mbuf *m) {
	struct wire_flow f;

	wire_read_flow(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &f);
	if (is_tcp_or_udp(&f))
		lcore_start(&s->lcore);
}

// Pushes the batch of packets into the path.
static void push(struct switch_lcore *s, struct switch_port *out) {
	uint32_t n = out->nb_batched;

	out->inside += n;
	out->nb_batched = 0;
	if (unlikely(s->routes != NULL))
		switch_routes_push(s, out, n);
	else
		path_push(out->path, out->batch, n);
}

// Frames for the port are copied out of their mbufs up to this length: small ones, unless its path
// is short.
static inline uint32_t copied_max(const struct switch_port *out) {
	return out->inside >= SWITCH_SHORT_PKTS || out->large >= out->large_quota ? SWITCH_SMALL_MAX
										  : 0;
}

// The number of `n` packets, all copied or none, for which the path has room. Makes room for them
// in the batch and the mbuf cache.
static inline uint32_t make_room(
	struct switch_lcore *s, struct switch_port *out, uint32_t n, bool copied) {
	if (out->nb_batched + n > PORT_BURST_MAX)
		push(s, out);
	uint64_t room = out->quota - out->inside - out->nb_batched;

	if (!copied)
		room = time_min(room, out->large_quota - out->large);
	if (n > room)
		n = (uint32_t)room;
	if (copied && s->nb_cached + n > SWITCH_MBUF_CACHE) {
		uint32_t kept = SWITCH_MBUF_CACHE - n;

		rte_pktmbuf_free_bulk(s->mbuf_cache + kept, s->nb_cached - kept);
		s->nb_cached = kept;
	}
	return n;
}

// An mbuf whose data is in foreign memory has to be freed to return it; it cannot be recycled.
#define FOREIGN (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)

// Recycles mbufs whose frames were copied. `flags`: the union of their ol_flags.
static inline void recycle_mbufs(
	struct switch_lcore *s, struct rte_mbuf *const *m, size_t n, uint64_t flags) {
	if (unlikely((flags & FOREIGN) != 0)) {
		for (size_t i = 0; i < n; i++)
			rte_pktmbuf_free(m[i]);
		return;
	}
	memcpy(s->mbuf_cache + s->nb_cached, m, n * sizeof(*m));
	s->nb_cached += (uint32_t)n;
}

// Copies a small frame into a packet.
static inline void copy_frame(struct pkt *p, const uint8_t *frame, uint32_t len) {
	packet_metadata(p)->len = (uint8_t)len;
	// Copies the maximum length: a constant length compiles to a few moves.
	memcpy(packet_metadata(p)->frame, frame, SWITCH_SMALL_MAX);
}

// Turns the first of `n` frames, all copied or none, into packets of the port's path, as far as it
// has room; checks and counters are shared by all. Their arrival time is that of the card of port
// `from`, or now if `from` is NULL.
static inline __attribute__((always_inline)) struct pkt_count mbufs_to_packets(
	struct switch_lcore *s, struct switch_port *out, struct rte_mbuf *const *m, uint32_t n,
	const bool copied, struct port *from) {
	size_t most = make_room(s, out, n, copied);
	uint8_t port = (uint8_t)out->egress.index;
	struct pkt **batch = out->batch + out->nb_batched;
	uint64_t flags = 0, bytes = 0, now_ns = s->lcore.now_ns;

	if (copied)
		arena_take(&s->small, batch, (uint32_t)most); // one per unit of quota
	const char *ahead = copied ? arena_ahead(&s->small) : NULL;
	for (size_t i = 0; i < most; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(m[i], const uint8_t *);
		uint32_t len = m[i]->pkt_len;
		struct pkt *p;

		flags |= m[i]->ol_flags;
		if (copied) {
			arena_fetch(ahead, batch[i]);
			copy_frame(batch[i], frame, len);
		} else {
			batch[i] = port_pkt(m[i]);
			packet_metadata(batch[i])->len = 0;
		}
		p = batch[i];
		packet_metadata(p)->port = port;
		p->arrival_ns = now_ns;
		bytes += p->size_bytes = port_frame_bytes(len);
		p->ecn = packet_metadata(p)->ecn = wire_ecn(frame, m[i]->data_len);
		p->flags = 0;
		p->drop_reason = DROP_NONE;
		p->flow_id = 0;
		p->delay_class = 0;
	}
	if (from != NULL && (from->kernel != NULL || from->stamp.rx))
		switch_set_arrivals(s, from, out, m, most, batch);
	for (uint32_t k = 0; s->flows_matter && k < most; k++)
		classify(s, m[k], batch[k]);
	if (copied)
		recycle_mbufs(s, m, most, flags);
	else
		out->large += most;
	out->nb_batched += most;
	return (struct pkt_count){most, bytes};
}

// Two functions, so that each loop has enough registers.
__attribute__((noinline)) static struct pkt_count push_copied(struct switch_lcore *s,
	struct switch_port *out, struct rte_mbuf *const *m, uint32_t n, struct port *from) {
	return mbufs_to_packets(s, out, m, n, true, from);
}

__attribute__((noinline)) static struct pkt_count push_mbufs(struct switch_lcore *s,
	struct switch_port *out, struct rte_mbuf *const *m, uint32_t n, struct port *from) {
	return mbufs_to_packets(s, out, m, n, false, from);
}

// Puts the first of `n` frames, all copied or none, into a port's path or queue, or drops them.
// Returns their number, at least one.
static struct pkt_count enqueue(struct switch_lcore *s, struct switch_port *out,
	struct rte_mbuf *const *m, uint32_t n, struct port *from) {
	struct pkt_count put = {0};

	if (out->path != NULL || unlikely(s->routes != NULL)) {
		put = m[0]->pkt_len <= copied_max(out) ? push_copied(s, out, m, n, from)
						       : push_mbufs(s, out, m, n, from);
		if (put.pkts == 0) {
			pkt_count_add(&put, 1, port_frame_bytes(m[0]->pkt_len));
			drop(s, m[0], DROP_NO_MBUF);
		}
		return put;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint16_t bytes = port_frame_bytes(m[i]->pkt_len);

		packet_metadata(port_pkt(m[i]))->port = (uint8_t)out->egress.index;
		egress_enqueue(&out->egress, m[i], 0, bytes);
		pkt_count_add(&put, 1, bytes);
	}
	return put;
}

// The output ports of a frame, kept for the next frame: successive frames mostly have the same
// addresses.
struct way {
	uint8_t macs[12]; // destination and source
	uint64_t ports; // one bit per port
	struct switch_port *only; // NULL: none, or several
	bool known;
};

// A frame that is longer than a buffer arrives in several of them (memif does that). It is not
// relayed, because ports are set up without the offload to send such frames (MULTI_SEGS): a driver
// would read beyond the first buffer.
static inline bool is_valid(const struct rte_mbuf *m, const uint8_t *frame) {
	return m->nb_segs == 1 && wire_check(frame, m->data_len) == WIRE_OK;
}

static void find_way(struct switch_lcore *s, struct way *way, uint32_t in, const uint8_t *frame) {
	uint64_t ports = fabric_relay(&s->fabric, frame, frame + 6, in, s->lcore.now_ns).ports;

	memcpy(way->macs, frame, sizeof(way->macs));
	way->ports = ports;
	way->only =
		ports != 0 && (ports & (ports - 1)) == 0 ? &s->port[__builtin_ctzll(ports)] : NULL;
	way->known = true;
}

// Sends a frame to several ports, or to none. All but the last port get copies, made before the
// original changes; all have the same arrival time.
__attribute__((noinline)) static void flood(
	struct switch_lcore *s, uint64_t ports, struct rte_mbuf *m, struct port *from) {
	if (ports == 0) {
		drop(s, m, DROP_NO_ROUTE);
		return;
	}
	for (; (ports & (ports - 1)) != 0; ports &= ports - 1) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, s->pool, 0, UINT32_MAX);
		uint16_t bytes = port_frame_bytes(m->pkt_len);

		pkt_count_add(&s->copied, 1, bytes);
		if (copy == NULL) {
			pkt_count_add(&s->drop[DROP_NO_MBUF], 1, bytes);
			continue;
		}
		port_pkt(copy)->release_ns = port_pkt(m)->release_ns; // when it arrived
		enqueue(s, &s->port[__builtin_ctzll(ports)], &copy, 1, from);
	}
	enqueue(s, &s->port[__builtin_ctzll(ports)], &m, 1, from);
}

// The number of frames from the first on that have the same output port, are valid, and are copied
// if the first is. The first frame has been checked.
static inline uint32_t run_length(const struct way *way, struct rte_mbuf *const *m, uint32_t n) {
	uint32_t max = copied_max(way->only);
	bool copied = m[0]->pkt_len <= max;
	uint32_t i;

	for (i = 1; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(m[i], const uint8_t *);

		if (i + 4 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 4], void *));
		if ((m[i]->pkt_len <= max) != copied
			|| memcmp(way->macs, frame, sizeof(way->macs)) != 0
			|| !is_valid(m[i], frame))
			break;
	}
	return i;
}

static void relay(struct switch_lcore *s, uint32_t in) {
	struct switch_port *from = &s->port[in];
	struct port *port = from->egress.port;
	struct way way = {.known = false};

	if (unlikely(from->inspected < SWITCH_INSPECTED))
		switch_find_offloads(from);
	for (uint32_t i = 0, n; i < from->nb_rx; i += n) {
		struct rte_mbuf **m = from->rx_burst + i;
		const uint8_t *frame = rte_pktmbuf_mtod(m[0], const uint8_t *);

		n = 1;
		if (i + 4 < from->nb_rx)
			rte_prefetch0(rte_pktmbuf_mtod(m[4], void *));
		if (!is_valid(m[0], frame)) {
			pkt_count_add(&from->rx, 1, port_frame_bytes(m[0]->pkt_len));
			drop(s, m[0], switch_invalid(m[0]));
			continue;
		}
		if (s->lcore.start_ns == NEVER_NS)
			start_with(s, m[0]);
		if (!way.known || memcmp(way.macs, frame, sizeof(way.macs)) != 0)
			find_way(s, &way, in, frame);
		if (way.only == NULL) {
			pkt_count_add(&from->rx, 1, port_frame_bytes(m[0]->pkt_len));
			flood(s, way.ports, m[0], port);
			continue;
		}
		if (s->lcore.start_ns != NEVER_NS)
			n = run_length(&way, m, from->nb_rx - i);
		struct pkt_count put = enqueue(s, way.only, m, n, port);
		pkt_count_add(&from->rx, put.pkts, put.bytes);
		n = (uint32_t)put.pkts;
	}
}

// Takes frames that other lcores received from the rings, as from ports.
__attribute__((noinline)) static uint32_t receive_handed(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->rx_rings; i++)
		s->nb_handed += lcore_ring_take(
			s->rx_ring[i], s->handed + s->nb_handed, PORT_BURST_MAX / s->rx_rings);
	return s->nb_handed;
}

__attribute__((noinline)) static void relay_handed(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->nb_handed; i++) {
		struct rte_mbuf **m = s->handed + i;

		if (i + 4 < s->nb_handed) {
			rte_prefetch0(m[4]);
			rte_prefetch0(port_pkt(m[4]));
			rte_prefetch0(rte_pktmbuf_mtod(m[2], void *));
		}
		enqueue(s, &s->port[packet_metadata(port_pkt(m[0]))->port], m, 1, NULL);
	}
	s->nb_handed = 0;
}

static void push_all(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		if (s->port[i].nb_batched > 0)
			push(s, &s->port[i]);
	}
}

static void relay_all(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		if (s->port[i].nb_rx > 0)
			relay(s, i);
	}
	if (s->nb_handed > 0)
		relay_handed(s);
	push_all(s);
}

void switch_relay_own(struct switch_lcore *s, uint32_t in, struct rte_mbuf *m) {
	static const uint8_t no_station[6]; // an address to be learned is not in it
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	flood(s, fabric_relay(&s->fabric, frame, no_station, in, s->lcore.now_ns).ports, m, NULL);
	push_all(s);
}

// Puts frames of a capture into their path, up to now, with their own times as arrivals. They are
// not checked: of a capture without addresses (anonymised) no checksum is right, and virtual time
// passes it too.
static void replay(struct switch_lcore *s, struct switch_port *out) {
	uint64_t now_ns = s->lcore.now_ns, due_ns;
	struct rte_mbuf *m;

	for (uint32_t i = 0; i < REPLAY_MAX
		&& (m = switch_source_due(out->source, s->lcore.start_ns, now_ns, &due_ns)) != NULL;
		i++) {
		if (out->nb_batched == PORT_BURST_MAX)
			push(s, out);
		uint32_t before = out->nb_batched, flow_id = port_pkt(m)->flow_id;
		enqueue(s, out, &m, 1, NULL);
		if (out->nb_batched > before) { // else there was no memory for it
			struct pkt *p = out->batch[before];

			p->arrival_ns = due_ns;
			p->flow_id = flow_id;
			packet_metadata(p)->replayed = true;
		}
		s->lcore.busy = true;
	}
	out->source->served_ns = now_ns;
	if (out->nb_batched > 0)
		push(s, out);
}

__attribute__((noinline)) static void replay_all(struct switch_lcore *s) {
	for (uint32_t i = 0; s->lcore.start_ns != NEVER_NS && i < s->lcore.ports; i++) {
		if (s->port[i].source != NULL)
			replay(s, &s->port[i]);
	}
}

static uint32_t receive(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);
	uint64_t now_ns = s->gather.joins ? clock_now(&l->clock) : 0;
	uint32_t nb_rx = 0;

	s->gather.waits = now_ns < s->gather.until_ns;
	if (unlikely(s->gather.waits))
		return 0;
	for (uint32_t i = 0; i < l->ports; i++) {
		struct switch_port *p = &s->port[i];

		if (l->rx_queue[i] < 0)
			continue;
		p->nb_rx = port_rx(
			l->port[i], (uint16_t)l->rx_queue[i], p->rx_burst, (uint16_t)s->burst);
		nb_rx += p->nb_rx;
	}
	if (s->rx_rings > 0)
		nb_rx += receive_handed(s);
	if (s->gather.joins)
		switch_gather(s, now_ns, nb_rx);
	return nb_rx;
}

static void run(struct lcore *l, uint32_t nb_rx) {
	struct switch_lcore *s = switch_lcore(l);

	if (unlikely(s->gather.waits))
		return;
	// Changes that are due come before the packets of this iteration.
	if (l->now_ns >= s->schedule_ns) {
		schedule_apply(&s->schedule, l->now_ns, &l->tel[TEL_STREAM_EVENTS]);
		s->schedule_ns = schedule_next_ns(&s->schedule);
		s->gather.stepped_ns = l->now_ns;
	}
	if (unlikely(s->routes != NULL))
		switch_routes_pass(s);
	if (unlikely(s->sources > 0))
		replay_all(s);
	if (nb_rx > 0)
		relay_all(s);
	for (uint32_t i = 0; i < l->ports; i++)
		switch_serve(s, &s->port[i]);
	s->gather.served_ns = l->now_ns;
}

static void loop(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);

	l->now_ns = clock_now(&l->clock);
	if (s->gather.joins) // no fault of this machine
		l->watch.late_ns += SWITCH_GATHER_NS;
	switch_trace_departures(s);
	if (s->config->start == SWITCH_START_NOW && s->sources == 0)
		lcore_start(l);
	lcore_loop(l, &switch_lcore_ops);
	// The last, partial interval.
	if (l->interval_ns > 0)
		switch_interval(s);
	// A path's final time is the one up to which packets were last taken off it.
	for (uint32_t i = 0; s->routes == NULL && i < l->ports; i++) {
		if (s->port[i].path != NULL)
			path_end(s->port[i].path, l->now_ns + switch_lead_ns(s, &s->port[i]));
	}
	for (uint32_t i = 0; s->routes != NULL && i < s->paths; i++)
		path_end(s->path[i], l->now_ns);
	lcore_publish_all(l);
	lcore_show(l);
}

const struct lcore_ops switch_lcore_ops = {
	.loop = loop,
	.receive = receive,
	.run = run,
	.housekeep = switch_housekeep,
	.start = switch_start,
	.measure = switch_measure,
	.answer = switch_answer,
	.observe = switch_observe,
};
