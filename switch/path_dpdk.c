// SPDX-License-Identifier: BSD-3-Clause
#include "path_dpdk.h"

#include "flow_addr.h"
#include "intr_dpdk.h"
#include "run.h"
#include "wire.h"

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <string.h>

#define HOUSEKEEPING_TURNS 256

// What the switch keeps in a packet, for itself. Small frames wait beside their struct pkt, in two
// cache lines that lie together, and give their mbuf back at once: it is warm when the next one is
// received, and 3 million of them take 400 MB instead of 7 GB. Larger ones wait in their mbuf.
struct mark {
	uint8_t ecn; // as received: written back only if a queue changed it
	uint8_t len; // of a small frame, which begins at `frame`; 0: it is in its mbuf
	uint8_t frame[] __attribute__((aligned(8)));
};
static_assert(offsetof(struct pkt, user) + offsetof(struct mark, frame) + SWITCH_SMALL_MAX
		== SWITCH_SMALL_BYTES,
	"two lines");

static struct mark *pkt_mark(struct pkt *p) {
	return (struct mark *)(void *)p->user;
}

static void count(struct path_count *c, uint32_t bytes) {
	c->pkts++;
	c->bytes += bytes;
}

// Gives a packet back to where it came from.
static void release(struct switch_live *s, struct pkt *p) {
	if (pkt_mark(p)->len > 0)
		arena_put(&s->small, p);
	else
		rte_pktmbuf_free(port_mbuf(p));
}

static void drop(struct switch_live *s, struct rte_mbuf *m, uint32_t bytes, enum drop_reason why) {
	count(&s->drop[why], bytes);
	rte_pktmbuf_free(m);
}

// Packets that a path dropped: it has counted them.
static void free_drops(struct switch_live *s, struct switch_port *out) {
	struct pkt *p;

	while ((p = pkt_list_pop(&out->path->drops)) != NULL) {
		out->inside--;
		out->large -= pkt_mark(p)->len == 0;
		release(s, p);
	}
}

// The flow's index if it is one of weir-sender's, else a hash of its addresses.
static void classify(const struct switch_live *s, const struct wire_info *w, struct pkt *p) {
	const struct plan *plan = s->plan;
	const struct wire_addr *a = &w->addr;
	uint32_t id = FLOW_ADDR_NONE;

	if (w->proto == WIRE_PROTO_TCP) {
		id = flow_addr_index(plan->flow_base_ip, plan->flows, a->src_ip, a->src_port);
		if (id == FLOW_ADDR_NONE)
			id = flow_addr_index(
				plan->flow_base_ip, plan->flows, a->dst_ip, a->dst_port);
	}
	if (id != FLOW_ADDR_NONE)
		p->delay_class = plan->group_of[id];
	else
		id = flow_addr_hash(a->src_ip, a->dst_ip, a->src_port, a->dst_port, w->proto);
	p->flow_id = id;
}

// Now, or when another lcore did.
void switch_start(struct switch_live *s) {
	uint64_t begun_ns = NEVER_NS;

	if (atomic_compare_exchange_strong(&s->all->begun_ns, &begun_ns, s->now_ns))
		begun_ns = s->now_ns;
	s->start_ns = begun_ns;
	s->measure_ns = s->start_ns + s->warmup_ns;
	// The schedule counts from here too.
	for (uint32_t i = 0; i < s->schedule.count; i++)
		s->schedule.entry[i].at_ns += s->start_ns;
	s->schedule_ns = schedule_next_ns(&s->schedule);
}

// A buffer whose frame was copied: the next small frame that leaves takes it.
static inline void give_fresh(struct switch_live *s, struct rte_mbuf *m) {
	if (s->freshes == SWITCH_FRESH_MAX) {
		rte_pktmbuf_free(m);
		return;
	}
	m->ol_flags = 0;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	s->fresh[s->freshes++] = m;
}

// NULL: there is none.
static inline struct rte_mbuf *take_fresh(struct switch_live *s) {
	if (s->freshes == 0) {
		if (rte_pktmbuf_alloc_bulk(s->pool, s->fresh, s->burst) < 0)
			return NULL;
		s->freshes = s->burst;
	}
	return s->fresh[--s->freshes];
}

// Takes what was collected for a path into it.
static void push(struct switch_live *s, struct switch_port *out) {
	path_push(out->path, out->batch, out->batched);
	out->batched = 0;
	if (out->path->drops.head != NULL)
		free_drops(s, out);
}

// A received frame, and when it came; for the ports it leaves by.
struct received {
	struct rte_mbuf *m;
	uint64_t arrival_ns;
	struct wire_info w;
	uint16_t size;
	uint8_t in; // the port it came from
};

// What goes with a frame to another lcore, in its buffer's private area.
struct handed {
	struct received r;
	uint8_t out; // the port it leaves by
};
static_assert(sizeof(struct handed) <= sizeof(struct pkt), "in the place of a struct pkt");

static struct handed *mbuf_handed(struct rte_mbuf *m) {
	return (struct handed *)(void *)port_pkt(m);
}

// What waits for another lcore's port goes to that lcore.
static void hand_over(struct switch_live *s, struct switch_port *out) {
	uint32_t n =
		rte_ring_sp_enqueue_burst(out->to->ring, (void *const *)out->out, out->outs, NULL);
	uint32_t lost = out->outs - n;

	for (uint32_t i = n; i < out->outs; i++)
		drop(s, out->out[i], out->due[i].size_bytes, DROP_TX);
	out->to->given += n;
	out->tx_dropped += lost;
	if (lost > 0)
		atomic_fetch_add_explicit(&out->to->dropped, lost, memory_order_relaxed);
	out->outs = 0;
}

// Out of a port without a path, or of another lcore's.
static void leave_straight(struct switch_live *s, struct switch_port *out, const struct received *r,
	struct rte_mbuf *m) {
	if (out->to != NULL) {
		if (out->outs == SWITCH_OUT_MAX)
			hand_over(s, out);
		*mbuf_handed(m) = (struct handed){*r, (uint8_t)(out - s->port)};
	}
	if (out->outs == SWITCH_OUT_MAX) {
		out->tx_dropped++;
		drop(s, m, r->size, DROP_TX);
		return;
	}
	out->due[out->outs] = (struct switch_departure){.due_ns = s->now_ns, .size_bytes = r->size};
	out->out[out->outs++] = m;
}

// Puts a received frame on its way out of a port.
static inline void leave(struct switch_live *s, struct switch_port *out, const struct received *r,
	struct rte_mbuf *m) {
	bool small = m->pkt_len <= SWITCH_SMALL_MAX && m->nb_segs == 1;
	struct pkt *p;

	if (out->path == NULL) {
		leave_straight(s, out, r, m);
		return;
	}
	if (out->inside == out->share || (!small && out->large == out->large_share)) {
		drop(s, m, r->size, DROP_NO_MBUF);
		return;
	}
	if (small) {
		p = arena_get(&s->small); // one for each of all shares
		pkt_mark(p)->len = (uint8_t)m->pkt_len;
		// All of the room: a length known to the compiler is a few moves.
		memcpy(pkt_mark(p)->frame, rte_pktmbuf_mtod(m, const void *), SWITCH_SMALL_MAX);
		give_fresh(s, m);
	} else {
		p = port_pkt(m);
		pkt_mark(p)->len = 0;
		out->large++;
	}
	out->inside++;
	p->arrival_ns = r->arrival_ns;
	p->size_bytes = r->size;
	p->ecn = r->w.ecn;
	pkt_mark(p)->ecn = r->w.ecn;
	p->port = r->in;
	p->flags = 0;
	p->drop_reason = DROP_NONE;
	p->flow_id = 0;
	p->delay_class = 0;
	if (s->flows_matter)
		classify(s, &r->w, p);
	if (out->batched == PORT_BURST_MAX)
		push(s, out);
	out->batch[out->batched++] = p;
}

// Where to: neighbours in a burst mostly go the same way.
struct way {
	uint8_t macs[12]; // destination and source
	uint64_t ports; // a bit each
	struct switch_port *only; // NULL: none, or several
	bool known;
};

static void find_way(struct switch_live *s, struct way *way, uint32_t in, const uint8_t *frame) {
	uint64_t ports = fabric_relay(&s->fabric, frame, frame + 6, in, s->now_ns).ports;

	memcpy(way->macs, frame, sizeof(way->macs));
	way->ports = ports;
	way->only =
		ports != 0 && (ports & (ports - 1)) == 0 ? &s->port[__builtin_ctzll(ports)] : NULL;
	way->known = true;
}

// To several ports, or to none. All but the last get copies, while the original is still whole; they
// leave with the same times.
__attribute__((noinline)) static void flood(
	struct switch_live *s, uint64_t ports, const struct received *r) {
	if (ports == 0) {
		drop(s, r->m, r->size, DROP_NO_ROUTE);
		return;
	}
	for (; (ports & (ports - 1)) != 0; ports &= ports - 1) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(r->m, s->pool, 0, UINT32_MAX);

		s->copies++;
		s->copied_bytes += r->size;
		if (copy == NULL)
			count(&s->drop[DROP_NO_MBUF], r->size);
		else
			leave(s, &s->port[__builtin_ctzll(ports)], r, copy);
	}
	leave(s, &s->port[__builtin_ctzll(ports)], r, r->m);
}

static void relay(struct switch_live *s, uint32_t in) {
	struct switch_port *from = &s->port[in];
	struct received r = {.arrival_ns = s->now_ns, .in = (uint8_t)in};
	bool stamped = from->port.stamp.rx;
	struct way way = {.known = false};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < from->came; i++) {
		struct rte_mbuf *m = from->in[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		if (i + 4 < from->came)
			rte_prefetch0(rte_pktmbuf_mtod(from->in[i + 4], void *));
		r.m = m;
		r.size = port_frame_bytes(m->pkt_len);
		bytes += r.size;
		if (wire_parse(frame, m->data_len, &r.w) != WIRE_OK) {
			drop(s, m, r.size, DROP_MALFORMED);
			continue;
		}
		if (s->start_ns == NEVER_NS
			&& (r.w.proto == WIRE_PROTO_TCP || r.w.proto == WIRE_PROTO_UDP))
			switch_start(s);
		if (stamped)
			r.arrival_ns = stamp_arrival(&from->port.stamp, m, s->now_ns);
		if (!way.known || memcmp(way.macs, frame, sizeof(way.macs)) != 0)
			find_way(s, &way, in, frame);
		if (__builtin_expect(way.only != NULL, 1))
			leave(s, way.only, &r, m);
		else
			flood(s, way.ports, &r);
	}
	from->rx.pkts += from->came;
	from->rx.bytes += bytes;
}

// Frames that other lcores received, read like those of ports.
__attribute__((noinline)) static uint32_t take_handed(struct switch_live *s) {
	for (uint32_t i = 0; i < s->takes; i++)
		s->handeds += rte_ring_sc_dequeue_burst(s->take[i], (void **)s->handed + s->handeds,
			PORT_BURST_MAX / s->takes, NULL);
	return s->handeds;
}

__attribute__((noinline)) static void accept_handed(struct switch_live *s) {
	for (uint32_t i = 0; i < s->handeds; i++) {
		struct rte_mbuf *m = s->handed[i];
		struct handed h = *mbuf_handed(m);

		if (i + 4 < s->handeds) {
			rte_prefetch0(s->handed[i + 4]);
			rte_prefetch0(mbuf_handed(s->handed[i + 4]));
			rte_prefetch0(rte_pktmbuf_mtod(s->handed[i + 2], void *));
		}
		h.r.arrival_ns = s->now_ns;
		leave(s, &s->port[h.out], &h.r, m);
	}
	s->handeds = 0;
}

static void relay_all(struct switch_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].came > 0)
			relay(s, i);
	}
	if (s->handeds > 0)
		accept_handed(s);
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].batched > 0)
			push(s, &s->port[i]);
	}
}

// A packet that has left its path, in a buffer; NULL: there is none.
static inline struct rte_mbuf *emerge(
	struct switch_live *s, struct switch_port *out, struct pkt *p) {
	const struct mark *mark = pkt_mark(p);
	struct rte_mbuf *m = port_mbuf(p);

	if (mark->len == 0) {
		out->large--;
	} else {
		if ((m = take_fresh(s)) != NULL) {
			memcpy(rte_pktmbuf_mtod(m, void *), mark->frame, SWITCH_SMALL_MAX);
			m->data_len = mark->len;
			m->pkt_len = mark->len;
		}
		arena_put(&s->small, p);
	}
	return m;
}

// Until when packets leave the path: until now, but for a port that keeps their times.
static inline uint64_t horizon(const struct switch_live *s, const struct switch_port *out) {
	if (out->port.lead_ns == 0 || !stamp_holds(&out->port.stamp))
		return s->now_ns;
	return s->now_ns + time_min(out->port.lead_ns, out->path->tail_ns);
}

// Takes what is due off the path, a burst at most and as far as there is room.
static uint32_t collect(struct switch_live *s, struct switch_port *out) {
	struct pkt *pkts[PORT_BURST_MAX];
	uint32_t room = SWITCH_OUT_MAX - out->outs;
	uint32_t n = path_pop(out->path, horizon(s, out), pkts, room < s->burst ? room : s->burst);

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = pkts[i];
		bool marked = p->ecn != pkt_mark(p)->ecn;
		uint8_t ecn = p->ecn;
		struct rte_mbuf *m;

		out->due[out->outs] = (struct switch_departure){
			p->arrival_ns, p->flow_id, p->size_bytes, p->ecn, p->port, p->id};
		if ((m = emerge(s, out, p)) == NULL) {
			count(&s->drop[DROP_NO_MBUF], out->due[out->outs].size_bytes);
			continue;
		}
		if (__builtin_expect(marked, 0))
			wire_set_ecn(rte_pktmbuf_mtod(m, uint8_t *), ecn);
		out->out[out->outs++] = m;
	}
	out->inside -= n;
	if (out->path->drops.head != NULL)
		free_drops(s, out);
	return n;
}

// Keeps the order: what the port did not take stays first.
static void shift_out(struct switch_port *out, uint32_t taken) {
	out->outs -= taken;
	if (out->outs == 0)
		return;
	memmove(out->out, out->out + taken, out->outs * sizeof(out->out[0]));
	memmove(out->due, out->due + taken, out->outs * sizeof(out->due[0]));
}

static void give_up(struct switch_live *s, struct switch_port *out) {
	for (uint32_t i = 0; i < out->outs; i++)
		drop(s, out->out[i], out->due[i].size_bytes, DROP_TX);
	out->tx_dropped += out->outs;
	s->watch.count.port[out - s->port].dropped += out->outs;
	out->outs = 0;
}

// Stamps those of a burst whose time is yet to come. How many are due, which come first.
static uint32_t stamp(struct switch_port *out, struct rte_mbuf *const *m,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	uint32_t due = 0;

	if (out->port.lead_ns == 0 || !stamp_holds(&out->port.stamp))
		return n;
	while (due < n && d[due].due_ns <= sent_ns)
		due++;
	for (uint32_t i = due; i < n; i++)
		stamp_departure(&out->port.stamp, m[i], d[i].due_ns);
	return due;
}

// Gives the port what is due. Turns that transmit read the clock again: the error counts to the real
// moment.
static void transmit(struct switch_live *s, struct switch_port *out) {
	uint32_t done = 0;

	while (done < out->outs) {
		uint32_t want = out->outs - done < s->burst ? out->outs - done : s->burst;
		uint64_t sent_ns = clock_now(&s->clock);

		watch_time(&s->watch, sent_ns);
		uint32_t due = stamp(out, out->out + done, out->due + done, want, sent_ns);
		uint16_t took = port_tx(&out->port, 0, out->out + done, (uint16_t)want);

		uint64_t bytes = 0;
		for (uint32_t i = 0; i < took; i++)
			bytes += out->due[done + i].size_bytes;
		out->tx.bytes += bytes;
		out->tx.pkts += took;
		if (out->path != NULL)
			switch_note_departures(
				s, out, out->due + done, due < took ? due : took, sent_ns);
		if (due < took)
			switch_note_scheduled(s, out, out->due + done + due, took - due);
		s->watch.moved += took;
		done += took;
		if (took < want)
			break;
	}
	s->busy |= done > 0;
	shift_out(out, done);
	watch_waiting(&s->watch, (uint32_t)(out - s->port), out->outs, s->now_ns);
	if (done > 0 || out->outs == 0) {
		out->refused_ns = NEVER_NS;
		return;
	}
	if (out->refused_ns == NEVER_NS)
		out->refused_ns = s->now_ns;
	if (!out->port.was_up || s->now_ns - out->refused_ns > s->patience_ns)
		give_up(s, out);
}

// What is due goes out, burst by burst, until nothing is or the port is full.
static void serve(struct switch_live *s, struct switch_port *out) {
	uint32_t n;

	do {
		n = out->path != NULL ? collect(s, out) : 0;
		if (out->outs > 0 && out->to != NULL)
			hand_over(s, out);
		else if (out->outs > 0)
			transmit(s, out);
	} while (n == s->burst && out->outs == 0);
}

static void turn(struct switch_live *s) {
	uint32_t came = 0;

	// 1. What came in. The clock is read after it: a packet's arrival may be taken for later than
	// it was, by a turn, but never for earlier, and so no packet leaves early.
	for (uint32_t i = 0; i < s->ports; i++) {
		struct switch_port *p = &s->port[i];

		if (!p->receives)
			continue;
		p->came = port_rx(p->at, p->queue, p->in, (uint16_t)s->burst);
		came += p->came;
	}
	if (s->takes > 0)
		came += take_handed(s);
	// 2. The time of this turn; the turn before was busy until now.
	uint64_t now_ns = clock_now(&s->clock);
	if (s->busy)
		s->busy_ns += now_ns - s->now_ns;
	else
		watch_idle(&s->watch, now_ns);
	s->now_ns = time_max(now_ns, s->now_ns);
	s->busy = came > 0;
	watch_time(&s->watch, now_ns);
	s->watch.moved = came;
	// 3. Changes that are due come before the packets of this turn.
	if (s->now_ns >= s->schedule_ns) {
		schedule_apply(&s->schedule, s->now_ns, &s->tel_events);
		s->schedule_ns = schedule_next_ns(&s->schedule);
	}
	// 4. What came in goes into the paths, what is due goes out.
	if (came > 0)
		relay_all(s);
	for (uint32_t i = 0; i < s->ports; i++)
		serve(s, &s->port[i]);
	// 5. Telemetry of this turn, at once.
	if (came > 0)
		tel_publish(&s->tel_arrivals);
	if (s->tel_packets.head != s->published) {
		tel_publish(&s->tel_packets);
		s->published = s->tel_packets.head;
	}
	s->turns++;
}

void switch_loop(struct switch_live *s) {
	bool more = true;

	s->now_ns = clock_now(&s->clock);
	if (s->plan->start == PLAN_START_NOW)
		switch_start(s);
	intr_begin();
	switch_handled(s);
	atomic_store(&s->watch.tid, rte_sys_gettid());
	atomic_store(&s->running, true);
	while (more) {
		for (int i = 0; i < HOUSEKEEPING_TURNS; i++)
			turn(s);
		more = switch_housekeeping(s);
	}
	intr_end();
	// The last, partial interval.
	if (s->interval_ns > 0)
		switch_interval(s);
	// A path ends where it was last asked for packets.
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].path != NULL)
			path_end(s->port[i].path, horizon(s, &s->port[i]));
	}
	tel_publish(&s->tel_packets);
	tel_publish(&s->tel_arrivals);
	tel_publish(&s->tel_links);
	tel_publish(&s->tel_events);
	switch_show(s);
	atomic_store(&s->done, true);
}
