// SPDX-License-Identifier: BSD-3-Clause
// Frames between lcores: a received frame goes to its flow's lcore; a sent frame goes through the
// lcore that owns the port's queue.
//
//	port -> RSS or one queue -> received by some lcore -> ring -> the flow's lcore
//	the flow's lcore -> ring -> the lcore that owns the port's queue -> port
//
// A flow's lcore follows from its number (host.h), so that it is the same on any port and with any
// RSS key. A frame of no flow of the config goes to an lcore chosen by its addresses if it may
// begin a connection; else it stays with the lcore that received it.
#include "sender/live/lcore.h"

#include "common/net/flow_addr.h"
#include "common/net/wire_ip.h"

// Makes the ring for frames that lcore `from` receives or sends for lcore `to` at a port.
static int make_ring(
	struct sender_lcore *all, uint32_t port, uint32_t from, uint32_t to, struct err *err) {
	struct sender_port *p = &all[from].port[port];

	if (from == to)
		return 0;
	if (p->owns_queue)
		return lcore_ring_init(&p->rx_ring[to], all->config->process.handover, err);
	if (!all[to].port[port].owns_queue)
		return 0;
	p->egress.ring = &p->tx_ring;
	return lcore_ring_init(&p->tx_ring, SENDER_TX_RING, err);
}

int sender_make_rings(struct sender_lcore *all, struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; i < all->lcore.ports; i++) {
		for (uint32_t from = 0; from < all->lcore.lcores; from++) {
			for (uint32_t to = 0; rc == 0 && to < all->lcore.lcores; to++)
				rc = make_ring(all, i, from, to, err);
		}
	}
	return rc;
}

// The rings from another lcore to this one: for received frames, and for frames to be sent through
// the port. If a ring does not exist, its `ring` is NULL.
static struct lcore_ring *rx_ring(
	const struct sender_lcore *s, const struct sender_port *p, uint32_t from) {
	return &s->all[from].port[p - s->port].rx_ring[s->lcore.index];
}

static struct lcore_ring *tx_ring(
	const struct sender_lcore *s, const struct sender_port *p, uint32_t from) {
	static struct lcore_ring none;

	return p->owns_queue ? &s->all[from].port[p - s->port].tx_ring : &none;
}

// The other end's addresses of a segment that a router says is too large.
static bool read_quoted(const uint8_t *frame, size_t len, struct wire_addr *a) {
	struct wire_info w;
	struct wire_quote q;

	if (wire_parse(frame, len, &w) != WIRE_OK || wire_path_mtu(frame, len, &w) == 0
		|| !wire_too_big_quote(frame, len, &w, &q))
		return false;
	*a = wire_addr_back(&q.addr);
	return true;
}

static uint32_t owner(
	const struct sender_lcore *s, const struct sender_port *p, const struct rte_mbuf *m) {
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_addr a;
	uint32_t id;

	if (!wire_read_addr(frame, m->data_len, &a) && !read_quoted(frame, m->data_len, &a))
		return s->lcore.index;
	id = sender_flow_of(p, &a);
	if (id == FLOW_ADDR_NONE && sender_sends(p))
		return s->lcore.index;
	if (id == FLOW_ADDR_NONE)
		id = flow_addr_hash(a.src_ip, a.dst_ip, a.src_port, a.dst_port, WIRE_PROTO_TCP);
	return id % s->lcore.lcores;
}

// Keeps the received frames of this lcore's flows and gives the others to their lcores.
static void hand_over(struct sender_lcore *s, struct sender_port *p) {
	struct rte_mbuf *batch[LIVE_LCORES_MAX][PORT_BURST_MAX];
	uint32_t nb_batched[LIVE_LCORES_MAX] = {0}, kept = 0;

	for (uint32_t i = 0; i < p->nb_rx; i++) {
		uint32_t to;

		if (i + 4 < p->nb_rx)
			rte_prefetch0(rte_pktmbuf_mtod(p->rx_burst[i + 4], void *));
		to = owner(s, p, p->rx_burst[i]);
		if (to == s->lcore.index)
			p->rx_burst[kept++] = p->rx_burst[i];
		else
			batch[to][nb_batched[to]++] = p->rx_burst[i];
	}
	p->nb_rx = kept;
	for (uint32_t to = 0; to < s->lcore.lcores; to++) {
		uint32_t n = nb_batched[to], put;

		if (n == 0)
			continue;
		put = lcore_ring_put(&p->rx_ring[to], batch[to], n);
		if (put < n)
			lcore_ring_dropped(&p->rx_ring[to], n - put);
		rte_pktmbuf_free_bulk(batch[to] + put, n - put);
	}
}

// At a full port, frames of other lcores and of this one alternate.
void sender_collect(struct sender_lcore *s, struct sender_port *p) {
	struct egress *e = &p->egress;
	struct rte_mbuf *m[PORT_BURST_MAX];
	uint32_t n;

	if (e->count >= PORT_FULL / 2 && s->lcore.load.iterations % s->lcore.lcores == 0)
		return;
	for (uint32_t from = 0; from < s->lcore.lcores; from++) {
		struct lcore_ring *ring = tx_ring(s, p, from);

		while (ring->ring != NULL && e->count < PORT_FULL
			&& (n = lcore_ring_take(ring, m, e->burst)) > 0) {
			for (uint32_t i = 0; i < n; i++)
				egress_enqueue(e, m[i], port_pkt(m[i])->release_ns,
					port_frame_bytes(m[i]->pkt_len));
			s->lcore.watch.moved += n;
		}
	}
}

uint32_t sender_exchange(struct sender_lcore *s, struct sender_port *p) {
	uint32_t each = (SENDER_RX_MAX - PORT_BURST_MAX) / s->lcore.lcores, moved = 0;

	p->nb_rx = 0;
	if (p->owns_queue) {
		sender_collect(s, p);
		moved = p->nb_rx =
			port_rx(p->port, p->queue, p->rx_burst, (uint16_t)p->egress.burst);
		hand_over(s, p);
	}
	for (uint32_t from = 0; from < s->lcore.lcores; from++) {
		struct lcore_ring *ring = rx_ring(s, p, from);
		uint32_t n = ring->ring != NULL
			? lcore_ring_take(ring, p->rx_burst + p->nb_rx, each)
			: 0;

		p->nb_rx += n;
		moved += n;
	}
	return moved;
}

struct sender_count sender_count_port(const struct sender_lcore *s, const struct sender_port *p) {
	struct sender_count c = p->count;

	c.tx_frames = p->egress.tx.pkts;
	c.tx_bytes = p->egress.tx.bytes;
	c.tx_dropped = p->egress.dropped.pkts;
	c.tx_too_long = p->egress.too_long.pkts;
	c.tx_wanted += p->delay.count;
	c.tx_waiting = p->egress.count + p->delay.count;
	c.tx_given = p->tx_ring.nb_handed;
	for (uint32_t k = 0; k < s->lcore.lcores; k++) {
		const struct lcore_ring *rx = rx_ring(s, p, k), *tx = tx_ring(s, p, k);

		c.rx_given += p->rx_ring[k].nb_handed;
		c.rx_no_room += atomic_load_explicit(&p->rx_ring[k].dropped, memory_order_relaxed);
		c.rx_got += rx->nb_taken;
		c.rx_not_taken += atomic_load_explicit(&rx->dropped, memory_order_relaxed);
		c.rx_waiting += lcore_ring_waiting(rx);
		c.tx_got += tx->nb_taken;
		c.tx_waiting += lcore_ring_waiting(tx);
	}
	return c;
}

static bool port_balanced(
	const struct sender_port *p, const struct sender_count *c, const struct host *h) {
	return c->tx_wanted + c->tx_got
		== c->tx_frames + c->tx_given + c->tx_dropped + c->tx_too_long + c->no_mbuf
			+ p->egress.count + p->delay.count
		&& c->rx_frames
		== c->rx_tcp + c->rx_arp + c->rx_echo + c->rx_too_big + c->rx_other + c->rx_outside
			+ c->rx_reset + c->rx_malformed
		&& (h == NULL || h->count.rx_segs == c->rx_tcp)
		&& c->tx_wanted == c->tx_own + (h != NULL ? h->count.tx_segs : 0);
}

bool sender_balanced(const struct sender_lcore *all) {
	for (uint32_t i = 0; i < all->lcore.ports; i++) {
		struct sender_count sum = {0};
		uint64_t queued = 0;

		for (uint32_t k = 0; k < all->lcore.lcores; k++) {
			const struct sender_port *p = &all[k].port[i];
			struct sender_count c = sender_count_port(&all[k], p);

			if (!port_balanced(p, &c, p->host))
				return false;
			sender_count_add(&sum, &c);
			queued += p->egress.count + p->delay.count;
		}
		if (sum.rx_given != sum.rx_got + sum.rx_waiting
			|| sum.tx_given + queued != sum.tx_got + sum.tx_waiting)
			return false;
	}
	return true;
}
