// SPDX-License-Identifier: BSD-3-Clause
#include "path_dpdk.h"

#include "flow_addr.h"
#include "intr_dpdk.h"
#include "run.h"
#include "stage/link.h"
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
static void start(struct switch_live *s) {
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
			start(s);
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

	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(pkts[i] + 1); // a small frame, or the buffer's unused headroom
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

// One record per packet: when it should have left, and how late it did.
static void record_departures(struct switch_live *s, const struct switch_port *out,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	for (uint32_t i = 0; i < n; i++) {
		uint64_t late_ns = time_since(sent_ns, d[i].due_ns);
		struct tel_packets *r;

		if (!tel_flow_sampled(out->path->tel_run, d[i].flow_id)
			|| (r = tel_put(&s->tel_packets)) == NULL)
			continue;
		*r = (struct tel_packets){
			.ts_ns = d[i].due_ns,
			.flow_id = d[i].flow_id,
			.pkt_id = d[i].id,
			.queue_bytes = 0,
			.sojourn_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
			.size_bytes = d[i].size_bytes,
			.event = TEL_DEPART,
			.link = out->last_link,
			.ecn = d[i].ecn,
			.path = out->path->index,
			.stage = UINT8_MAX,
		};
	}
}

// The slot's point joins the line.
static void trend_fold(struct switch_trend *t) {
	if (t->n == 0)
		t->first_due_ns = t->due_ns;
	double x = (double)time_since(t->due_ns, t->first_due_ns) * 1e-9;
	double y = (double)t->late_ns;
	t->n += 1;
	t->x += x;
	t->y += y;
	t->xx += x * x;
	t->xy += x * y;
}

static void trend_add(struct switch_trend *t, uint64_t due_ns, uint64_t late_ns) {
	uint64_t slot = due_ns >> SWITCH_TREND_SHIFT;

	if (slot == t->slot && late_ns >= t->late_ns)
		return;
	if (slot != t->slot && t->slot > 0)
		trend_fold(t);
	t->slot = slot;
	t->due_ns = due_ns;
	t->late_ns = late_ns;
}

static void note_departures(struct switch_live *s, struct switch_port *out,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	uint64_t sum_ns = 0, max_ns = 0, late = 0, early = 0;

	if (n == 0)
		return;
	bool disturbed = watch_disturbed(&s->watch, (uint32_t)(out - s->port), d[0].due_ns);
	struct hist *h = disturbed ? &out->late_disturbed : &out->late;
	uint64_t patience_ns = s->watch.late_ns;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t late_ns = time_since(sent_ns, d[i].due_ns);

		hist_count(h, late_ns);
		sum_ns += late_ns;
		max_ns = time_max(max_ns, late_ns);
		late += late_ns > patience_ns;
		early += sent_ns < d[i].due_ns;
	}
	hist_counted(h, n, sum_ns, max_ns);
	out->early += early;
	if (!disturbed) {
		watch_left(&s->watch, n, late, max_ns);
		trend_add(&out->trend, d[0].due_ns, time_since(sent_ns, d[0].due_ns));
	}
	if (s->tel_packets.ring != NULL)
		record_departures(s, out, d, n, sent_ns);
}

// The port answers for these; as far as the lcore knows they leave at their times.
static void note_scheduled(struct switch_live *s, struct switch_port *out,
	const struct switch_departure *d, uint32_t n) {
	out->scheduled += n;
	if (s->tel_packets.ring != NULL)
		record_departures(s, out, d, n, 0);
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
			note_departures(s, out, out->due + done, due < took ? due : took, sent_ns);
		if (due < took)
			note_scheduled(s, out, out->due + done + due, took - due);
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

static void snapshot_links(struct switch_live *s, struct switch_snapshot *snap, struct path *p) {
	path_serve(p, s->now_ns);
	for (uint32_t k = 0; k < p->stages; k++) {
		uint32_t n = p->stage[k].env.link_index;

		if (p->stage[k].ops != &stage_link || n >= SWITCH_LINKS_MAX)
			continue;
		const void *link = p->stage[k].state;
		struct link_totals t = link_totals(link, s->now_ns);
		struct backlog b = link_queue(link);

		snap->link[n].path = p->index;
		snprintf(snap->link[n].name, sizeof(snap->link[n].name), "%s", p->stage[k].name);
		snap->link[n].rate_bps = link_rate_bps(link);
		snap->link[n].queue_pkts = b.pkts;
		snap->link[n].queue_bytes = b.bytes;
		snap->link[n].out_pkts = t.out_pkts;
		snap->link[n].out_bytes = t.out_bytes;
		snap->link[n].drops = t.drops;
		snap->link[n].marks = t.marks;
		snap->link[n].wire_bits = t.wire_bits;
		snap->link[n].capacity_bits = (double)t.capacity / 1e9;
	}
}

// Its part of a snapshot that was empty before the first lcore was asked.
static void snapshot(struct switch_live *s, struct switch_snapshot *snap) {
	snap->now_ns = time_max(snap->now_ns, s->now_ns);
	snap->start_ns = s->start_ns;
	snap->pool_free = rte_mempool_avail_count(s->pool);
	snap->lcores = s->lcores;
	snap->lcore[s->index].now_ns = s->now_ns;
	snap->lcore[s->index].turns = s->turns;
	snap->lcore[s->index].busy_ns = s->busy_ns;
	for (uint32_t i = 0; i < s->lcores; i++) {
		snap->lcore[s->index].given += s->give[i].given;
		snap->lcore[s->index].not_given +=
			atomic_load_explicit(&s->give[i].dropped, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < s->ports; i++) {
		const struct switch_port *p = &s->port[i];

		snap->rx[i].pkts += p->rx.pkts;
		snap->rx[i].bytes += p->rx.bytes;
		snap->tx_dropped[i] += p->tx_dropped;
		if (p->to != NULL)
			continue;
		snap->tx[i] = p->tx;
		snap->left[i] = p->late.total;
		snap->late_sum_ns[i] = p->late.sum;
		snap->late_max_ns[i] = p->late.max;
	}
	snap->links = s->links < SWITCH_LINKS_MAX ? s->links : SWITCH_LINKS_MAX;
	for (uint32_t i = 0; i < s->paths; i++) {
		const struct path *p = s->path[i];

		snap->in[p->index] = p->in;
		snap->out[p->index] = p->out;
		memcpy(snap->drop[p->index], p->drop, sizeof(p->drop));
		snap->inside[p->index] = path_backlog(p).pkts;
		snapshot_links(s, snap, s->path[i]);
	}
}

static void read_params(const struct switch_live *s, double value[SWITCH_PARAMS_MAX]) {
	struct path_param at = {0};

	for (uint32_t i = 0; i < SWITCH_PARAMS_MAX && paths_next_param(s->whole, &at); i++) {
		for (uint32_t k = 0; k < s->paths; k++) {
			if (s->path[k]->index == at.path)
				value[i] = at.value;
		}
	}
}

static void set_param(struct switch_live *s, struct switch_mailbox *box) {
	uint16_t link = UINT16_MAX;
	struct tel_events *r;

	box->rc = path_set(
		box->path, box->key, box->value, s->now_ns, &box->before, &box->after, &box->err);
	if (box->rc < 0 || (r = tel_put(&s->tel_events)) == NULL)
		return;
	for (uint32_t i = 0; i < box->path->stages; i++) {
		const struct path_stage *st = &box->path->stage[i];
		const char *name = st->name + strlen(box->path->name) + 1;

		if (st->ops == &stage_link && strncmp(box->key, name, strlen(name)) == 0
			&& box->key[strlen(name)] == '.')
			link = st->env.link_index;
	}
	*r = (struct tel_events){
		.ts_ns = s->now_ns,
		.value = box->after,
		.flow_id = TEL_NO_FLOW,
		.detail = UINT32_MAX, // not from the schedule
		.before = (float)box->before,
		.event = TEL_EV_PARAM,
		.group = link,
	};
}

static void measure(struct switch_live *s) {
	for (uint32_t i = 0; i < s->paths; i++)
		path_measure(s->path[i], s->now_ns);
	for (uint32_t i = 0; i < s->ports; i++) {
		hist_reset(&s->port[i].late);
		hist_reset(&s->port[i].late_disturbed);
		s->port[i].trend = (struct switch_trend){0};
		s->port[i].scheduled = 0;
	}
	s->measured_ns = s->now_ns;
	s->measure_ns = NEVER_NS;
}

static void answer(struct switch_live *s) {
	struct switch_mailbox *box = &s->mailbox;

	if (!control_posted(&box->box))
		return;
	box->rc = 0;
	switch (box->request) {
	case SWITCH_SNAPSHOT:
		snapshot(s, &s->all->mailbox.snapshot);
		break;
	case SWITCH_PARAMS:
		read_params(s, s->all->mailbox.param);
		break;
	case SWITCH_SET:
		set_param(s, box);
		break;
	case SWITCH_MEASURE:
		measure(s);
		break;
	}
	control_answered(&box->box);
}

static void follow_link(struct switch_live *s, uint32_t i) {
	struct switch_port *p = &s->port[i];
	bool up = atomic_load_explicit(&p->at->up, memory_order_relaxed);

	if (fabric_is_up(&s->fabric, i) != up)
		fabric_set_up(&s->fabric, i, up);
	if (p->to == NULL && port_changed(&p->port, s->now_ns))
		port_tell(&p->port, &s->tel_events, i, s->now_ns);
}

static void handled(struct switch_live *s) {
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].to == NULL)
			port_handled(&s->port[i].port);
	}
}

// Lets DPDK's interrupt thread do what it has to, with what that did to ports.
static void stand_still(struct switch_live *s) {
	uint64_t from_ns = clock_now(&s->clock);

	if (!intr_pass())
		return;
	handled(s);
	uint64_t to_ns = clock_now(&s->clock);
	watch_stood(&s->watch, from_ns, to_ns);
	s->stood++;
	s->stood_max_ns = time_max(s->stood_max_ns, to_ns - from_ns);
}

// What other threads may know of this one.
static void show(struct switch_live *s) {
	struct watch_count *c = &s->watch.count;

	c->begun_ns = s->start_ns;
	c->turns = s->turns;
	c->busy_ns = s->busy_ns;
	c->no_buffer = s->drop[DROP_NO_MBUF].pkts;
	c->not_taken = 0;
	for (uint32_t i = 0; i < s->lcores; i++)
		c->not_taken += atomic_load_explicit(
			&s->all[i].give[s->index].dropped, memory_order_relaxed);
	c->lost = s->tel_packets.lost + s->tel_links.lost + s->tel_events.lost;
	watch_show(&s->watch, s->now_ns);
}

static void interval(struct switch_live *s) {
	for (uint32_t i = 0; i < s->paths; i++)
		path_interval(s->path[i], &s->tel_links, s->now_ns);
}

// Returns false when the run is over.
static bool housekeeping(struct switch_live *s) {
	bool interval_over = s->interval_ns > 0 && s->now_ns >= s->interval_next_ns;
	bool other = interval_over || s->now_ns >= s->measure_ns || control_posted(&s->mailbox.box);

	watch_time(&s->watch, clock_now(&s->clock));
	stand_still(s);
	if (s->index == 0)
		clock_follow(&s->clock);
	else
		clock_follow_other(&s->clock, &s->all->clock);
	show(s);
	for (uint32_t i = 0; i < s->ports; i++) {
		struct port *p = &s->port[i].port;

		follow_link(s, i);
		if (s->port[i].to == NULL)
			stamp_follow(&p->stamp, p->id, &s->clock, s->now_ns);
	}
	answer(s);
	if (s->start_ns == NEVER_NS && atomic_load(&s->all->begun_ns) != NEVER_NS)
		start(s);
	if (s->now_ns >= s->measure_ns)
		measure(s);
	if (interval_over) {
		interval(s);
		tel_publish(&s->tel_links);
		s->interval_next_ns += s->interval_ns;
		if (s->interval_next_ns <= s->now_ns) // the host took the CPU away for longer
			s->interval_next_ns = s->now_ns + s->interval_ns;
	}
	tel_publish(&s->tel_events);
	if (s->start_ns != NEVER_NS && time_since(s->now_ns, s->start_ns) >= s->duration_ns)
		s->ended = true;
	if (other) // that takes as long as it takes
		watch_resume(&s->watch, clock_now(&s->clock));
	else
		watch_time(&s->watch, clock_now(&s->clock));
	return !s->ended && !run_stop && !atomic_load_explicit(&s->all->stop, memory_order_relaxed);
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
		start(s);
	intr_begin();
	handled(s);
	atomic_store(&s->watch.tid, rte_sys_gettid());
	atomic_store(&s->running, true);
	while (more) {
		for (int i = 0; i < HOUSEKEEPING_TURNS; i++)
			turn(s);
		more = housekeeping(s);
	}
	intr_end();
	// The last, partial interval.
	if (s->interval_ns > 0)
		interval(s);
	// A path ends where it was last asked for packets.
	for (uint32_t i = 0; i < s->ports; i++) {
		if (s->port[i].path != NULL)
			path_end(s->port[i].path, horizon(s, &s->port[i]));
	}
	tel_publish(&s->tel_packets);
	tel_publish(&s->tel_arrivals);
	tel_publish(&s->tel_links);
	tel_publish(&s->tel_events);
	show(s);
	atomic_store(&s->done, true);
}
