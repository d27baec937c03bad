// SPDX-License-Identifier: BSD-3-Clause
// The way out of a port: segments become frames, which wait in a ring until the port takes them.
//
// Nothing waits for company: a burst is what a turn had to send, cut into as many frames as a call may
// take. The moment a burst is handed over is compared with the times its paced segments were due.
//
// Checksums are ours, whatever the port offers: the payload is zeros, so that a sum of a few header
// fields costs less than telling a card where they are.
#include "sender/live/lcore.h"

#include "common/net/flow_addr.h"

#include <rte_ethdev.h>
#include <string.h>

#define FETCH_FRAMES 4 // ahead

// Frees what waits for a port that takes nothing.
static void give_up(struct sender_lcore *s, struct sender_port *p) {
	s->lcore.watch.count.port[p - s->port].dropped += p->outs;
	for (; p->outs > 0; p->outs--) {
		rte_pktmbuf_free(p->out[p->out_first++ & (SENDER_OUT_MAX - 1)]);
		p->count.tx_dropped++;
	}
}

// Counts frames that the port took now.
static void taken(struct sender_lcore *s, struct sender_port *p, uint32_t n, uint64_t now_ns) {
	uint64_t patience_ns = s->lcore.watch.late_ns;
	uint64_t disturbed_ns = watch_disturbed_ns(&s->lcore.watch, (uint32_t)(p - s->port));
	uint64_t bytes = 0, paced = 0, late = 0, sum_ns = 0, max_ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct sender_waiting w = p->waiting[p->out_first++ & (SENDER_OUT_MAX - 1)];
		uint64_t late_ns = time_since(now_ns, w.due_ns);

		bytes += w.bytes;
		if (w.due_ns == 0)
			continue;
		if (__builtin_expect(w.due_ns > now_ns, 0)) {
			if (s->lcore.lead_ns > 0) {
				p->scheduled++;
				continue;
			}
			p->early++;
		}
		if (w.due_ns < disturbed_ns) {
			hist_add(&p->late_disturbed, late_ns);
			continue;
		}
		hist_count(&p->late, late_ns);
		paced++;
		late += late_ns > patience_ns;
		sum_ns += late_ns;
		max_ns = time_max(max_ns, late_ns);
	}
	hist_counted(&p->late, paced, sum_ns, max_ns);
	watch_left(&s->lcore.watch, paced, late, max_ns);
	p->count.tx_frames += n;
	p->count.tx_bytes += bytes;
	p->outs -= n;
}

// Stamps those of a burst whose time is yet to come.
static void stamp(struct sender_port *p, uint32_t at, uint32_t n, uint64_t now_ns) {
	for (uint32_t i = at; i < at + n; i++) {
		if (p->waiting[i].due_ns > now_ns)
			stamp_departure(&p->port->stamp, p->out[i], p->waiting[i].due_ns);
	}
}

void sender_flush(struct sender_lcore *s, struct sender_port *p) {
	uint32_t burst = (uint32_t)s->plan->process.burst, done = 0;

	while (p->outs > 0) {
		uint32_t at = p->out_first & (SENDER_OUT_MAX - 1);
		uint32_t want = p->outs < burst ? p->outs : burst;
		uint64_t now_ns = clock_now(&s->lcore.clock);

		want = want < SENDER_OUT_MAX - at ? want : SENDER_OUT_MAX - at;
		watch_time(&s->lcore.watch, now_ns);
		if (s->lcore.lead_ns > 0 && p->port->lead_ns > 0)
			stamp(p, at, want, now_ns);
		uint32_t took = p->serves ? port_tx(p->port, p->queue, p->out + at, (uint16_t)want)
					  : sender_hand_out(p, at, want);
		if (p->serves)
			taken(s, p, took, now_ns);
		s->lcore.watch.moved += took;
		done += took;
		if (took < want)
			break;
	}
	s->lcore.busy |= done > 0;
	watch_waiting(&s->lcore.watch, (uint32_t)(p - s->port), p->outs, s->lcore.now_ns);
	if (done > 0 || p->outs == 0) {
		p->refused_ns = NEVER_NS;
		return;
	}
	if (p->refused_ns == NEVER_NS)
		p->refused_ns = s->lcore.now_ns;
	if ((p->leads && !p->port->was_up)
		|| s->lcore.now_ns - p->refused_ns > s->plan->process.patience_ns)
		give_up(s, p);
}

static inline void queue_frame(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, uint64_t due_ns) {
	// A whole burst goes at once, unless the port refused one in this turn already.
	if (p->outs == SENDER_OUT_MAX
		|| (p->outs >= s->plan->process.burst && p->refused_ns == NEVER_NS))
		sender_flush(s, p);
	if (p->outs == SENDER_OUT_MAX) {
		s->lcore.watch.count.port[p - s->port].dropped++;
		p->count.tx_dropped++;
		rte_pktmbuf_free(m);
		return;
	}
	uint32_t at = (p->out_first + p->outs++) & (SENDER_OUT_MAX - 1);
	p->out[at] = m;
	p->waiting[at] = (struct sender_waiting){due_ns, port_frame_bytes(m->pkt_len)};
	s->lcore.watch.moved++; // made; it moves once more when the port takes it
}

void sender_queue_frame(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, uint64_t due_ns) {
	queue_frame(s, p, m, due_ns);
}

void sender_put_frame(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, uint64_t due_ns) {
	p->count.tx_wanted++;
	queue_frame(s, p, m, due_ns);
}

// Fetches a line for writing. Without being told of the processor gcc would fetch it for reading, and
// it had to be asked for again, of the core that has read it.
static inline void fetch_to_write(const char *line) {
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

// Has empty frames at hand again; false: none is left.
static __attribute__((noinline)) bool restock(struct sender_lcore *s) {
	if (rte_pktmbuf_alloc_bulk(s->tx_pool, s->stock, SENDER_STOCK) == 0)
		s->stocked = SENDER_STOCK;
	else if ((s->stock[0] = rte_pktmbuf_alloc(s->tx_pool)) != NULL)
		s->stocked = 1;
	return s->stocked > 0;
}

static inline struct rte_mbuf *new_frame(
	struct sender_lcore *s, struct sender_port *p, uint8_t **data) {
	if (s->stocked == 0 && !restock(s)) {
		p->count.tx_wanted++;
		p->count.no_mbuf++;
		return NULL;
	}
	struct rte_mbuf *m = s->stock[--s->stocked];
	if (s->stocked >= FETCH_FRAMES) {
		const char *next =
			rte_pktmbuf_mtod(s->stock[s->stocked - FETCH_FRAMES], const char *);

		fetch_to_write(next);
		fetch_to_write(next + RTE_CACHE_LINE_SIZE);
	}
	*data = rte_pktmbuf_mtod(m, uint8_t *);
	return m;
}

struct rte_mbuf *sender_new_frame(struct sender_lcore *s, struct sender_port *p, uint8_t **data) {
	return new_frame(s, p, data);
}

// A segment as a frame: by the port's template if that is NULL.
static inline void put_seg(struct sender_lcore *s, struct sender_port *p,
	const struct wire_addr *addr, uint8_t ecn, const struct seg *seg, uint64_t due_ns) {
	uint8_t *data;
	struct rte_mbuf *m = new_frame(s, p, &data);

	if (m == NULL)
		return;
	// A longer header of an earlier use may reach into the payload.
	if (addr == NULL && wire_is_plain(seg)) {
		wire_write_plain(data, &p->head, ecn, p->ip_id++, seg);
		memset(data + WIRE_HEADER_PLAIN, 0, WIRE_HEADER_MAX - WIRE_HEADER_PLAIN);
	} else {
		size_t header = wire_write_tcp(
			data, addr == NULL ? &p->head.addr : addr, ecn, p->ip_id++, seg);

		memset(data + header, 0, WIRE_HEADER_MAX - header);
	}
	m->data_len = (uint16_t)wire_tcp_frame(seg);
	m->pkt_len = m->data_len;
	p->count.tx_wanted++;
	queue_frame(s, p, m, due_ns);
}

void sender_put_seg(struct sender_lcore *s, struct sender_port *p, const struct wire_addr *addr,
	const struct seg *seg) {
	put_seg(s, p, addr, ECN_NOT_ECT, seg, 0);
}

void sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	struct sender_port *p = ctx;
	const struct live_port *plan = p->plan;
	const struct wire_addr *addr = NULL;
	uint32_t flows = p->live->groups->flows;
	uint16_t port = (uint16_t)plan->peer_port;

	if (plan->role == LIVE_SENDER) {
		wire_template_ends(
			&p->head, flow_addr_ip(plan->ip, id), flow_addr_port(id), plan->peer, port);
	} else {
		if (id < flows)
			wire_template_ends(&p->head, plan->ip, port, flow_addr_ip(plan->peer, id),
				flow_addr_port(id));
		else
			addr = connections_addr(&p->connections, p->host, id);
	}
	due_ns = paced ? due_ns : 0;
	put_seg(p->live, p, addr, ecn, seg, due_ns);
	if (n == 1)
		return;
	struct seg next; // of several, each is plain
	seg_copy_header(&next, seg);
	for (uint32_t i = 1; i < n; i++) {
		next.seq += seg->len;
		put_seg(p->live, p, addr, ecn, &next, due_ns);
	}
}
