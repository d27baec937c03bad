// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/lcore.h"

#include "common/net/flow_addr.h"
#include "common/net/wire_ip.h"

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <string.h>

void switch_drop(struct switch_lcore *s, struct rte_mbuf *m, uint32_t bytes, enum drop_reason why) {
	switch_count(&s->drop[why], bytes);
	rte_pktmbuf_free(m);
}

void switch_free_drops(struct switch_lcore *s, struct switch_port *out) {
	struct pkt_list *drops = &out->path->drops;

	out->inside -= drops->count;
	for (struct pkt *p = drops->head, *next; p != NULL; p = next) {
		next = p->next;
		if (switch_mark(p)->len > 0) {
			arena_put(&s->small, &p, 1);
		} else {
			rte_pktmbuf_free(port_mbuf(p));
			out->large--;
		}
	}
	*drops = (struct pkt_list){0};
}

// The flow's index if it is one of weir-sender's, else a hash of its addresses.
static void classify(const struct switch_lcore *s, const uint8_t *frame, struct pkt *p) {
	const struct plan *plan = s->plan;
	uint32_t id = FLOW_ADDR_NONE;
	struct wire_info w;
	const struct wire_addr *a = &w.addr;

	wire_read(frame, &w);
	if (w.proto == WIRE_PROTO_TCP) {
		id = flow_addr_index(plan->flow_base_ip, plan->flows, a->src_ip, a->src_port);
		if (id == FLOW_ADDR_NONE)
			id = flow_addr_index(
				plan->flow_base_ip, plan->flows, a->dst_ip, a->dst_port);
	}
	if (id != FLOW_ADDR_NONE)
		p->delay_class = plan->group_of[id];
	else
		id = flow_addr_hash(a->src_ip, a->dst_ip, a->src_port, a->dst_port, w.proto);
	p->flow_id = id;
}

// Traffic is what hosts send each other of their own accord.
static void start_with(struct switch_lcore *s, const uint8_t *frame) {
	struct wire_info w;

	wire_read(frame, &w);
	if (w.proto == WIRE_PROTO_TCP || w.proto == WIRE_PROTO_UDP)
		lcore_start(&s->lcore);
}

// Takes what was collected for a path into it.
static void push(struct switch_lcore *s, struct switch_port *out) {
	path_push(out->path, out->batch, out->batched);
	out->inside += out->batched;
	out->batched = 0;
	if (out->path->drops.head != NULL)
		switch_free_drops(s, out);
}

// What is known of a received frame, as in struct pkt.
struct received {
	uint64_t arrival_ns;
	uint16_t size_bytes;
	uint8_t ecn;
};

static inline struct received received(
	const struct switch_lcore *s, struct switch_port *from, const struct rte_mbuf *m) {
	return (struct received){stamp_arrival(&from->port->stamp, m, s->lcore.now_ns),
		port_frame_bytes(m->pkt_len),
		wire_ecn(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len)};
}

// What goes with a frame to another lcore, in its buffer's private area.
struct handed {
	struct received r;
	uint8_t out; // the port it leaves by
};
static_assert(sizeof(struct handed) <= sizeof(struct pkt), "in the place of a struct pkt");

static struct handed *mbuf_handed(struct rte_mbuf *m) {
	return (struct handed *)(void *)port_pkt(m);
}

void switch_hand_over(struct switch_lcore *s, struct switch_port *out) {
	uint32_t n =
		rte_ring_sp_enqueue_burst(out->to->ring, (void *const *)out->out, out->outs, NULL);
	uint32_t lost = out->outs - n;

	for (uint32_t i = n; i < out->outs; i++)
		switch_drop(s, out->out[i], out->due[i].size_bytes, DROP_TX);
	out->to->given += n;
	out->tx_dropped += lost;
	if (lost > 0)
		atomic_fetch_add_explicit(&out->to->dropped, lost, memory_order_relaxed);
	out->outs = 0;
	out->out_bytes = 0;
}

static inline bool is_small(const struct rte_mbuf *m) {
	return m->pkt_len <= SWITCH_SMALL_MAX && m->nb_segs == 1;
}

// Out of a port without a path, or of another lcore's.
static inline void leave_straight(struct switch_lcore *s, struct switch_port *out,
	struct rte_mbuf *m, const struct received *r) {
	if (out->to != NULL) {
		if (out->outs == SWITCH_OUT_MAX)
			switch_hand_over(s, out);
		*mbuf_handed(m) = (struct handed){*r, (uint8_t)(out - s->port)};
	}
	if (out->outs == SWITCH_OUT_MAX) {
		out->tx_dropped++;
		switch_drop(s, m, r->size_bytes, DROP_TX);
		return;
	}
	out->due[out->outs] =
		(struct switch_departure){.due_ns = s->lcore.now_ns, .size_bytes = r->size_bytes};
	out->out_bytes += r->size_bytes;
	out->out[out->outs++] = m;
}

// How many of `n` packets more, all of them small or none, the path has room for; the batch and the list of
// spare buffers then have.
static inline uint32_t make_room(
	struct switch_lcore *s, struct switch_port *out, uint32_t n, bool small) {
	if (out->batched + n > PORT_BURST_MAX)
		push(s, out);
	uint64_t room = out->share - out->inside - out->batched;

	if (!small)
		room = time_min(room, out->large_share - out->large);
	if (n > room)
		n = (uint32_t)room;
	if (small && s->freshes + n > SWITCH_FRESH_MAX) {
		uint32_t kept = SWITCH_FRESH_MAX - n;

		rte_pktmbuf_free_bulk(s->fresh + kept, s->freshes - kept);
		s->freshes = kept;
	}
	return n;
}

// A buffer whose frame lies in memory of others gives that back when it is freed, and not before.
#define FOREIGN (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)

// Buffers whose frames were copied are for the next ones; `flags`: what any of theirs has set.
static inline void spare(
	struct switch_lcore *s, struct rte_mbuf *const *m, size_t n, uint64_t flags) {
	if (__builtin_expect((flags & FOREIGN) != 0, 0)) {
		for (size_t i = 0; i < n; i++)
			rte_pktmbuf_free(m[i]);
		return;
	}
	memcpy(s->fresh + s->freshes, m, n * sizeof(*m));
	s->freshes += (uint32_t)n;
}

static inline void describe(struct pkt *p, struct received r) {
	p->arrival_ns = r.arrival_ns;
	p->size_bytes = r.size_bytes;
	p->ecn = r.ecn;
	p->flags = 0;
	p->drop_reason = DROP_NONE;
	p->flow_id = 0;
	p->delay_class = 0;
	switch_mark(p)->ecn = r.ecn;
}

// A small frame goes into a packet.
static inline void keep(struct pkt *p, const uint8_t *frame, uint32_t len) {
	switch_mark(p)->len = (uint8_t)len;
	// All of the room: a length known to the compiler is a few moves.
	memcpy(switch_mark(p)->frame, frame, SWITCH_SMALL_MAX);
}

// Puts a received frame on its way out of a port.
static void leave(struct switch_lcore *s, struct switch_port *out, struct rte_mbuf *m,
	const struct received *r) {
	bool small = is_small(m);
	struct pkt *p = port_pkt(m);

	if (out->path == NULL) {
		leave_straight(s, out, m, r);
		return;
	}
	if (make_room(s, out, 1, small) == 0) {
		switch_drop(s, m, r->size_bytes, DROP_NO_MBUF);
		return;
	}
	if (small) {
		arena_take(&s->small, &p, 1);
		keep(p, rte_pktmbuf_mtod(m, const uint8_t *), m->pkt_len);
	} else {
		switch_mark(p)->len = 0;
		out->large++;
	}
	describe(p, *r);
	if (s->flows_matter)
		classify(s, rte_pktmbuf_mtod(m, const uint8_t *), p);
	if (small)
		spare(s, &m, 1, m->ol_flags);
	out->batch[out->batched++] = p;
}

// Where to: neighbours in a burst mostly go the same way.
struct way {
	uint8_t macs[12]; // destination and source
	uint64_t ports; // a bit each
	struct switch_port *only; // NULL: none, or several
	bool known;
};

static void find_way(struct switch_lcore *s, struct way *way, uint32_t in, const uint8_t *frame) {
	uint64_t ports = fabric_relay(&s->fabric, frame, frame + 6, in, s->lcore.now_ns).ports;

	memcpy(way->macs, frame, sizeof(way->macs));
	way->ports = ports;
	way->only =
		ports != 0 && (ports & (ports - 1)) == 0 ? &s->port[__builtin_ctzll(ports)] : NULL;
	way->known = true;
}

// To several ports, or to none. All but the last get copies, while the original is still whole; they
// leave with the same times.
__attribute__((noinline)) static void flood(
	struct switch_lcore *s, uint64_t ports, struct rte_mbuf *m, const struct received *r) {
	if (ports == 0) {
		switch_drop(s, m, r->size_bytes, DROP_NO_ROUTE);
		return;
	}
	for (; (ports & (ports - 1)) != 0; ports &= ports - 1) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(m, s->pool, 0, UINT32_MAX);

		s->copies++;
		s->copied_bytes += r->size_bytes;
		if (copy == NULL)
			switch_count(&s->drop[DROP_NO_MBUF], r->size_bytes);
		else
			leave(s, &s->port[__builtin_ctzll(ports)], copy, r);
	}
	leave(s, &s->port[__builtin_ctzll(ports)], m, r);
}

// How many of n frames go the same way, are good, and are small or not as asked.
static inline uint32_t run_length(
	const struct way *way, struct rte_mbuf *const *m, uint32_t n, const bool small) {
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(m[i], const uint8_t *);

		if (i + 4 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 4], void *));
		if (is_small(m[i]) != small || memcmp(way->macs, frame, sizeof(way->macs)) != 0
			|| wire_check(frame, m[i]->data_len) != WIRE_OK)
			break;
	}
	return i;
}

// The first of the frames that are left of a burst: as many as go the same way, are small if the first is,
// and find room in the path. What concerns all of them is asked and counted once.
static inline __attribute__((always_inline)) uint32_t relay_run(struct switch_lcore *s,
	struct switch_port *from, const struct way *way, uint32_t first, const bool small) {
	struct rte_mbuf *const *m = from->in + first;
	struct switch_port *out = way->only;
	size_t n = make_room(s, out, run_length(way, m, from->came - first, small), small), i;
	struct pkt **batch = out->batch + out->batched;
	uint64_t bytes = 0, flags = 0, now_ns = s->lcore.now_ns;

	if (small)
		arena_take(&s->small, batch, (uint32_t)n); // one for each of all shares
	for (i = 0; i < n; i++) {
		struct rte_mbuf *buf = m[i];
		const uint8_t *frame = rte_pktmbuf_mtod(buf, const uint8_t *);
		uint32_t len = buf->pkt_len;
		struct received r = {now_ns, port_frame_bytes(len), wire_ecn(frame, buf->data_len)};

		bytes += r.size_bytes;
		flags |= buf->ol_flags;
		if (small) {
			keep(batch[i], frame, len);
		} else {
			batch[i] = port_pkt(buf);
			switch_mark(batch[i])->len = 0;
		}
		describe(batch[i], r);
	}
	for (uint32_t k = 0; from->port->stamp.rx && k < i; k++)
		batch[k]->arrival_ns = stamp_arrival(&from->port->stamp, m[k], now_ns);
	for (uint32_t k = 0; s->flows_matter && k < i; k++)
		classify(s, rte_pktmbuf_mtod(m[k], const uint8_t *), batch[k]);
	if (small)
		spare(s, m, i, flags);
	else
		out->large += i;
	out->batched += i;
	from->rx.pkts += i;
	from->rx.bytes += bytes;
	return i;
}

// Each by itself: its loop has the registers it needs.
__attribute__((noinline)) static uint32_t relay_small(
	struct switch_lcore *s, struct switch_port *from, const struct way *way, uint32_t first) {
	return relay_run(s, from, way, first, true);
}

__attribute__((noinline)) static uint32_t relay_large(
	struct switch_lcore *s, struct switch_port *from, const struct way *way, uint32_t first) {
	return relay_run(s, from, way, first, false);
}

// The same out of a port without a path, or of another lcore's.
__attribute__((noinline)) static uint32_t relay_straight(
	struct switch_lcore *s, struct switch_port *from, const struct way *way, uint32_t first) {
	struct rte_mbuf *const *m = from->in + first;
	uint32_t n = run_length(way, m, from->came - first, is_small(m[0]));

	for (uint32_t i = 0; i < n; i++) {
		struct received r = received(s, from, m[i]);

		switch_count(&from->rx, r.size_bytes);
		leave_straight(s, way->only, m[i], &r);
	}
	return n;
}

// A good frame that is no part of a run.
static void relay_one(struct switch_lcore *s, struct switch_port *from, const struct way *way,
	struct rte_mbuf *m) {
	struct received r = received(s, from, m);

	switch_count(&from->rx, r.size_bytes);
	if (way->only != NULL)
		leave(s, way->only, m, &r);
	else
		flood(s, way->ports, m, &r);
}

static void relay(struct switch_lcore *s, uint32_t in) {
	struct switch_port *from = &s->port[in];
	struct way way = {.known = false};

	for (uint32_t i = 0, n; i < from->came; i += n) {
		struct rte_mbuf *m = from->in[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		n = 0;
		if (i + 4 < from->came)
			rte_prefetch0(rte_pktmbuf_mtod(from->in[i + 4], void *));
		if (wire_check(frame, m->data_len) != WIRE_OK) {
			uint16_t size = port_frame_bytes(m->pkt_len);

			switch_count(&from->rx, size);
			switch_drop(s, m, size, DROP_MALFORMED);
			n = 1;
			continue;
		}
		if (s->lcore.start_ns == NEVER_NS)
			start_with(s, frame);
		if (!way.known || memcmp(way.macs, frame, sizeof(way.macs)) != 0)
			find_way(s, &way, in, frame);
		if (s->lcore.start_ns != NEVER_NS && way.only != NULL) {
			if (way.only->path == NULL)
				n = relay_straight(s, from, &way, i);
			else
				n = is_small(m) ? relay_small(s, from, &way, i)
						: relay_large(s, from, &way, i);
		}
		if (n == 0) {
			relay_one(s, from, &way, m);
			n = 1;
		}
	}
}

// Frames that other lcores received, read like those of ports.
__attribute__((noinline)) static uint32_t take_handed(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->takes; i++)
		s->handeds += rte_ring_sc_dequeue_burst(s->take[i], (void **)s->handed + s->handeds,
			PORT_BURST_MAX / s->takes, NULL);
	return s->handeds;
}

__attribute__((noinline)) static void accept_handed(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->handeds; i++) {
		struct rte_mbuf *m = s->handed[i];
		struct handed h = *mbuf_handed(m);

		if (i + 4 < s->handeds) {
			rte_prefetch0(s->handed[i + 4]);
			rte_prefetch0(mbuf_handed(s->handed[i + 4]));
			rte_prefetch0(rte_pktmbuf_mtod(s->handed[i + 2], void *));
		}
		h.r.arrival_ns = s->lcore.now_ns;
		leave(s, &s->port[h.out], m, &h.r);
	}
	s->handeds = 0;
}

static void relay_all(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		if (s->port[i].came > 0)
			relay(s, i);
	}
	if (s->handeds > 0)
		accept_handed(s);
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		if (s->port[i].batched > 0)
			push(s, &s->port[i]);
	}
}

static uint32_t receive(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);
	uint32_t nb_rx = 0;

	for (uint32_t i = 0; i < l->ports; i++) {
		struct switch_port *p = &s->port[i];

		if (l->rx_queue[i] < 0)
			continue;
		p->came = port_rx(p->port, (uint16_t)l->rx_queue[i], p->in, (uint16_t)s->burst);
		nb_rx += p->came;
	}
	if (s->takes > 0)
		nb_rx += take_handed(s);
	return nb_rx;
}

static void run(struct lcore *l, uint32_t nb_rx) {
	struct switch_lcore *s = switch_lcore(l);

	// Changes that are due come before the packets of this iteration.
	if (l->now_ns >= s->schedule_ns) {
		schedule_apply(&s->schedule, l->now_ns, &l->tel[TEL_STREAM_EVENTS]);
		s->schedule_ns = schedule_next_ns(&s->schedule);
	}
	if (nb_rx > 0)
		relay_all(s);
	for (uint32_t i = 0; i < l->ports; i++)
		switch_serve(s, &s->port[i]);
}

static void loop(struct lcore *l) {
	struct switch_lcore *s = switch_lcore(l);

	l->now_ns = clock_now(&l->clock);
	if (s->plan->start == PLAN_START_NOW)
		lcore_start(l);
	lcore_loop(l, &switch_lcore_ops);
	// The last, partial interval.
	if (l->interval_ns > 0)
		switch_interval(s);
	// A path ends where it was last asked for packets.
	for (uint32_t i = 0; i < l->ports; i++) {
		if (s->port[i].path != NULL)
			path_end(s->port[i].path, switch_horizon(s, &s->port[i]));
	}
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
