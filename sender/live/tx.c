// SPDX-License-Identifier: BSD-3-Clause
// Transmission at a port: segments become frames, which wait in the port's queue until the port
// takes them.
//
// No frame waits for a burst to fill: a burst is an iteration's frames, split at the maximum per
// call of the driver.
//
// Checksums are computed here, even if the port offers it: the payload is zeros, so that summing a
// few header fields costs less than filling in a card's offload fields.
#include "sender/live/lcore.h"

#include "common/net/flow_addr.h"

#include <rte_ethdev.h>
#include <string.h>

#define FETCH_FRAMES 4 // frames prefetched ahead

// Prefetches a cache line for writing. gcc's builtin, without a known processor, fetches it for
// reading; the write would then need a second transaction to own the line.
static inline void fetch_to_write(const char *line) {
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

// Refills the stock of empty frames. False: the pool is empty.
static __attribute__((noinline)) bool restock(struct sender_lcore *s) {
	if (rte_pktmbuf_alloc_bulk(s->tx_pool, s->stock, SENDER_STOCK) == 0)
		s->stocked = SENDER_STOCK;
	else if ((s->stock[0] = rte_pktmbuf_alloc(s->tx_pool)) != NULL)
		s->stocked = 1;
	return s->stocked > 0;
}

struct rte_mbuf *sender_new_frame(struct sender_lcore *s, struct sender_port *p, uint8_t **data) {
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
		fetch_to_write(next + RTE_CACHE_LINE_MIN_SIZE);
	}
	*data = rte_pktmbuf_mtod(m, uint8_t *);
	return m;
}

// Writes a segment into a frame; `addr` NULL: with the port's template.
static inline void put_seg(struct sender_lcore *s, struct sender_port *p,
	const struct wire_addr *addr, uint8_t tos, const struct seg *seg, uint64_t due_ns) {
	uint8_t *data;
	struct rte_mbuf *m = sender_new_frame(s, p, &data);

	if (m == NULL)
		return;
	// The longer header of an earlier use may lie where the payload must be zero.
	const struct wire_addr *to = addr == NULL ? &p->head.addr : addr;

	if (addr == NULL && wire_is_plain(seg) && likely(!to->ipv6)) {
		wire_write_plain(data, &p->head, tos, p->ip_id++, seg);
		memset(data + WIRE_HEADER_PLAIN, 0, WIRE_HEADER_MAX - WIRE_HEADER_PLAIN);
	} else {
		bool udp = (seg->options & SEG_OPT_UDP) != 0;
		size_t header = udp ? wire_write_udp(data, to, tos, p->ip_id++, seg)
				    : wire_write_tcp(data, to, tos, p->ip_id++, seg);

		memset(data + header, 0, WIRE_HEADER_MAX - header);
	}
	m->data_len = (uint16_t)wire_tcp_frame(seg, wire_ip_header(to->ipv6));
	m->pkt_len = m->data_len;
	sender_put_frame(s, p, m, due_ns);
}

void sender_put_seg(struct sender_lcore *s, struct sender_port *p, const struct wire_addr *addr,
	const struct seg *seg) {
	put_seg(s, p, addr, ECN_NOT_ECT, seg, 0);
}

// The IP header's TOS byte. A connection that is no flow of ours has no DSCP.
static inline uint8_t tos_of(const struct groups *groups, uint32_t id, uint8_t ecn) {
	if (likely(!groups->dscp) || id >= groups->flows)
		return ecn;
	for (uint32_t g = groups->count; g-- > 0;) {
		if (id >= groups->group[g].first)
			return (uint8_t)(groups->group[g].dscp << 2 | ecn);
	}
	return ecn;
}

// A receiver's segment; `addr`: of a dynamic connection, else NULL.
static inline void put_answer(struct sender_port *p, uint32_t id, const struct wire_addr *addr,
	const struct seg *seg, uint8_t ecn, uint64_t due_ns) {
	const struct live_port *config = p->config;

	if (addr == NULL)
		wire_template_ends(&p->head, config->ip, (uint16_t)config->peer_port,
			flow_addr_ip(config->peer, id), flow_addr_port(id),
			groups_ipv6(p->live->groups, id));
	put_seg(p->live, p, addr, tos_of(p->live->groups, id, ecn), seg, due_ns);
}

static void delay_answer(struct sender_port *p, uint32_t id, const struct wire_addr *addr,
	const struct seg *seg, uint8_t ecn) {
	struct delayed_seg *d = seg_delay_put(&p->delay, id, seg, ecn, p->live->lcore.now_ns);

	if (unlikely(d == NULL)) {
		p->count.tx_wanted++;
		p->count.no_mbuf++;
	} else if (unlikely(addr != NULL)) {
		d->addr = *addr;
	}
}

// The clock of the hosts is ahead of the port's by the lead.
void sender_send_delayed(struct sender_lcore *s, struct sender_port *p) {
	const struct delayed_seg *d;

	while (p->egress.count < PORT_FULL
		&& (d = seg_delay_take(&p->delay, s->lcore.now_ns)) != NULL)
		put_answer(p, d->id, d->id < s->groups->flows ? NULL : &d->addr, &d->seg, d->ecn,
			d->due_ns - s->lcore.lead_ns);
}

static void output_answer(struct sender_port *p, uint32_t id, const struct seg *seg, uint8_t ecn) {
	const struct wire_addr *addr = NULL;

	if (unlikely(id >= p->live->groups->flows))
		addr = connections_addr(&p->connections, &p->host->endpoint, id);
	if (p->delay.slot != NULL && (seg->flags & SEG_RST) == 0)
		delay_answer(p, id, addr, seg, ecn);
	else
		put_answer(p, id, addr, seg, ecn, 0);
}

void sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	struct sender_port *p = ctx;
	const struct live_port *config = p->config;
	uint8_t tos;

	if (config->role == LIVE_RECEIVER) {
		output_answer(p, id, seg, ecn);
		return;
	}
	wire_template_ends(&p->head, flow_addr_ip(config->ip, id), flow_addr_port(id), config->peer,
		(uint16_t)config->peer_port, groups_ipv6(p->live->groups, id));
	due_ns = paced ? due_ns : 0;
	tos = tos_of(p->live->groups, id, ecn);
	put_seg(p->live, p, NULL, tos, seg, due_ns);
	if (n == 1)
		return;
	struct seg next; // one of several plain segments
	seg_copy_header(&next, seg);
	for (uint32_t i = 1; i < n; i++) {
		next.seq += seg->len;
		put_seg(p->live, p, NULL, tos, &next, due_ns);
	}
}
