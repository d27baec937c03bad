// SPDX-License-Identifier: BSD-3-Clause
// Between lcores: a frame goes to the lcore that its flow is on, and out through one that has a queue.
//
//	port -> RSS or one queue -> received by some lcore -> ring -> the flow's lcore
//	the flow's lcore -> ring -> the lcore that serves the port -> port
//
// Which lcore a flow is on follows from its number (host.h), so that it is the same on any port and with
// any RSS key. A frame of no flow of the config belongs to a lcore by its addresses, if it may begin a
// connection; else to whoever received it. A ring has one producer and one consumer, and is read before
// the clock, as a port is: nothing arrives before it was sent.
#include "sender/live/lcore.h"

#include "common/net/flow_addr.h"
#include "common/net/wire_ip.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

static struct rte_ring *ring(const char *what, uint32_t port, uint32_t from, uint32_t to,
	uint32_t frames, struct err *err) {
	struct rte_ring *r;
	char name[64];

	snprintf(name, sizeof(name), "weir-%s%u-%u-%u", what, port, from, to);
	r = rte_ring_create(name, frames, (int)rte_socket_id(),
		RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	if (r == NULL)
		err_set(err, -ENOMEM, "no memory for rings between lcores");
	return r;
}

// What lcore `from` receives or sends for lcore `to` at a port.
static int join(
	struct sender_lcore *all, uint32_t port, uint32_t from, uint32_t to, struct err *err) {
	struct sender_port *a = &all[from].port[port], *b = &all[to].port[port];

	if (from == to)
		return 0;
	if (a->serves) {
		a->in_to[to] = b->in_from[from] =
			ring("in", port, from, to, (uint32_t)all->plan->handover, err);
		return a->in_to[to] == NULL ? -ENOMEM : 0;
	}
	if (!b->serves)
		return 0;
	a->out_to = b->out_from[from] = ring("out", port, from, to, SENDER_OUT_RING, err);
	return a->out_to == NULL ? -ENOMEM : 0;
}

int sender_share(struct sender_lcore *all, struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; i < all->lcore.ports; i++) {
		for (uint32_t from = 0; from < all->lcore.lcores; from++) {
			for (uint32_t to = 0; rc == 0 && to < all->lcore.lcores; to++)
				rc = join(all, i, from, to, err);
		}
	}
	return rc;
}

static uint32_t owner(
	const struct sender_lcore *s, const struct sender_port *p, const struct rte_mbuf *m) {
	struct wire_addr a;
	uint32_t id;

	if (!wire_read_addr(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &a))
		return s->lcore.index;
	id = sender_flow_of(p, &a);
	if (id == FLOW_ADDR_NONE && sender_sends(p))
		return s->lcore.index;
	if (id == FLOW_ADDR_NONE)
		id = flow_addr_hash(a.src_ip, a.dst_ip, a.src_port, a.dst_port, WIRE_PROTO_TCP);
	return id % s->lcore.lcores;
}

// Of the frames that came to this lcore, keeps its own and hands over the others.
static void hand_in(struct sender_lcore *s, struct sender_port *p) {
	struct rte_mbuf *other[PORT_BURST_MAX];
	uint8_t whose[PORT_BURST_MAX];
	uint32_t n = 0, kept = 0;

	for (uint32_t i = 0; i < p->came; i++) {
		uint32_t to;

		if (i + 4 < p->came)
			rte_prefetch0(rte_pktmbuf_mtod(p->in[i + 4], void *));
		to = owner(s, p, p->in[i]);
		if (to == s->lcore.index) {
			p->in[kept++] = p->in[i];
		} else {
			whose[n] = (uint8_t)to;
			other[n++] = p->in[i];
		}
	}
	p->came = kept;
	for (uint32_t to = 0; n > 0 && to < s->lcore.lcores; to++) {
		struct rte_mbuf *batch[PORT_BURST_MAX];
		uint32_t want = 0, took;

		for (uint32_t i = 0; i < n; i++) {
			if (whose[i] == to)
				batch[want++] = other[i];
		}
		if (want == 0)
			continue;
		took = rte_ring_sp_enqueue_burst(p->in_to[to], (void **)batch, want, NULL);
		p->count.rx_given += took;
		p->count.rx_no_room += want - took;
		if (took < want)
			atomic_fetch_add_explicit(
				&p->in_lost[to], want - took, memory_order_relaxed);
		rte_pktmbuf_free_bulk(batch + took, want - took);
	}
}

// At a port that is full, theirs and ours take turns.
void sender_collect(struct sender_lcore *s, struct sender_port *p) {
	uint32_t burst = (uint32_t)s->plan->process.burst, n;
	struct rte_mbuf *m[PORT_BURST_MAX];

	if (p->outs >= PORT_FULL / 2 && s->lcore.load.iterations % s->lcore.lcores == 0)
		return;
	for (uint32_t from = 0; from < s->lcore.lcores; from++) {
		if (p->out_from[from] == NULL)
			continue;
		while (p->outs < PORT_FULL
			&& (n = rte_ring_sc_dequeue_burst(
				    p->out_from[from], (void **)m, burst, NULL))
				> 0) {
			p->count.tx_got += n;
			for (uint32_t i = 0; i < n; i++)
				sender_queue_frame(s, p, m[i], port_pkt(m[i])->release_ns);
		}
	}
}

uint32_t sender_exchange(struct sender_lcore *s, struct sender_port *p) {
	uint32_t each = (SENDER_IN_MAX - PORT_BURST_MAX) / s->lcore.lcores, moved = 0;

	p->came = 0;
	if (p->serves) {
		sender_collect(s, p);
		p->came = port_rx(p->port, p->queue, p->in, (uint16_t)s->plan->process.burst);
		moved = p->came;
		hand_in(s, p);
	}
	for (uint32_t from = 0; from < s->lcore.lcores; from++) {
		uint32_t n;

		if (p->in_from[from] == NULL)
			continue;
		n = rte_ring_sc_dequeue_burst(
			p->in_from[from], (void **)(p->in + p->came), each, NULL);
		p->came += n;
		p->count.rx_got += n;
		moved += n;
	}
	return moved;
}

uint32_t sender_hand_out(struct sender_port *p, uint32_t at, uint32_t n) {
	uint32_t took;

	for (uint32_t i = at; i < at + n; i++)
		port_pkt(p->out[i])->release_ns = p->waiting[i].due_ns;
	took = rte_ring_sp_enqueue_burst(p->out_to, (void **)(p->out + at), n, NULL);
	p->out_first += took;
	p->outs -= took;
	p->count.tx_given += took;
	return took;
}

uint32_t sender_between(const struct sender_port *p, bool in) {
	uint32_t n = 0;

	for (uint32_t from = 0; from < LIVE_LCORES_MAX; from++) {
		const struct rte_ring *r = in ? p->in_from[from] : p->out_from[from];

		n += r != NULL ? rte_ring_count(r) : 0;
	}
	return n;
}
