// SPDX-License-Identifier: BSD-3-Clause
// Reception at a port: finds the connection of each frame, and answers or counts frames of no
// connection.
#include "sender/live/lcore.h"

#include "common/net/flow_addr.h"

#include <rte_ethdev.h>
#include <string.h>

void sender_learn_peer(struct sender_port *p, const struct wire_mac *mac) {
	struct wire_addr addr = p->head.addr;

	p->peer_mac = addr.dst_mac = *mac;
	addr.src_mac = p->port->mac;
	wire_template_init(&p->head, &addr);
}

// Shares the next hop's MAC address with the other lcores.
static void share_peer(struct sender_lcore *s, const struct sender_port *p) {
	uint64_t mac = 0;

	memcpy(&mac, &p->peer_mac, sizeof(p->peer_mac));
	atomic_store_explicit(&s->all->port[p - s->port].shared_peer, mac, memory_order_relaxed);
}

void sender_follow_peer(struct sender_lcore *s, struct sender_port *p) {
	uint64_t shared =
		atomic_load_explicit(&s->all->port[p - s->port].shared_peer, memory_order_relaxed);
	struct wire_mac mac;

	memcpy(&mac, &shared, sizeof(mac));
	if (shared != 0 && memcmp(&mac, &p->peer_mac, sizeof(mac)) != 0)
		sender_learn_peer(p, &mac);
}

static bool is_ours(const struct sender_port *p, uint32_t ip) {
	return ip - p->config->ip < p->addresses;
}

static void learn(
	struct sender_lcore *s, struct sender_port *p, uint32_t ip, const struct wire_mac *mac) {
	if (ip != p->config->next_hop)
		return;
	sender_learn_peer(p, mac);
	p->peer_known = true;
	share_peer(s, p);
}

// Sends an answer that was written into the frame that asked, which may have been longer than a
// buffer.
static void send_back(
	struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m, size_t size) {
	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
	m->pkt_len = m->data_len = (uint16_t)size;
	p->count.tx_own++;
	sender_put_frame(s, p, m, 0);
}

// Neighbour discovery, which is IPv6's ARP. False: it is none.
static bool receive_neighbour(struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m,
	const struct wire_info *w) {
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_arp arp;

	if (!wire_parse_neighbour(frame, m->data_len, w, &arp))
		return false;
	p->count.rx_arp++;
	learn(s, p, arp.sender_ip, &arp.sender_mac);
	if (arp.request && is_ours(p, arp.target_ip)) {
		wire_advertise(frame, &p->port->mac);
		send_back(s, p, m, WIRE_NEIGHBOUR);
	} else {
		rte_pktmbuf_free(m);
	}
	return true;
}

static void receive_arp(struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m) {
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_arp arp;

	if (wire_parse_arp(frame, m->data_len, &arp) != WIRE_OK) {
		p->count.rx_malformed++;
		rte_pktmbuf_free(m);
		return;
	}
	p->count.rx_arp++;
	learn(s, p, arp.sender_ip, &arp.sender_mac);
	if (!arp.request || !is_ours(p, arp.target_ip)) {
		rte_pktmbuf_free(m);
		return;
	}
	struct wire_arp reply = {
		.sender_mac = p->port->mac, .sender_ip = arp.target_ip, .target_ip = arp.sender_ip};
	send_back(s, p, m, wire_write_arp(frame, &reply, &arp.sender_mac));
}

// Answers a segment of no connection with a reset.
static void refuse(struct sender_lcore *s, struct sender_port *p, const struct wire_addr *from,
	const struct seg *seg) {
	struct wire_addr to = wire_addr_back(from);
	struct seg rst;

	p->count.rx_reset++;
	if (!seg_reset(&rst, seg))
		return;
	p->count.tx_own++;
	sender_put_seg(s, p, &to, &rst);
}

// The index of the receiver for a segment to the receiving side.
static uint32_t receiver_of(struct sender_port *p, const struct sender_arrival *a) {
	const struct wire_addr *from = &a->info.addr;

	if (a->id == FLOW_ADDR_NONE) {
		if (from->dst_port != p->config->peer_port)
			return FLOW_ADDR_NONE;
	} else if (memcmp(&p->peer_mac, &from->src_mac, sizeof(p->peer_mac)) != 0) {
		sender_learn_peer(p, &from->src_mac);
	}
	return connections_receiver(&p->connections, &p->host->endpoint, a->id, from, &a->seg);
}

static void deliver(struct sender_lcore *s, struct sender_port *p, const struct sender_arrival *a) {
	uint32_t id = FLOW_ADDR_NONE;

	if (p->host != NULL)
		id = sender_sends(p) ? a->id : receiver_of(p, a);
	if (id == FLOW_ADDR_NONE) {
		refuse(s, p, &a->info.addr, &a->seg);
		return;
	}
	p->count.rx_tcp++;
	if (sender_sends(p))
		host_rx_flow(p->host, id, &a->seg, a->info.ecn, s->lcore.now_ns);
	else
		host_rx_receiver(p->host, id, &a->seg, a->info.ecn, s->lcore.now_ns);
}

// From an address of IPv6 that is none of the testbed's, as a kernel's own of a link: not answered.
static bool is_foreign(const struct wire_info *w) {
	return w->addr.ipv6 && w->addr.src_ip == 0;
}

static bool is_outside(const struct sender_lcore *s, const struct wire_info *w) {
	return (w->ethertype == WIRE_ETHERTYPE_IPV4 || (w->addr.ipv6 && !is_foreign(w)))
		&& !live_may_send(&s->config->process, w->addr.src_ip);
}

// A router has dropped a segment as too large.
static void take_too_big(struct sender_lcore *s, struct sender_port *p, const struct rte_mbuf *m,
	const struct wire_info *w, uint32_t mtu) {
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_quote q;
	struct wire_addr back;
	uint32_t id;

	p->count.rx_too_big++;
	if (p->host == NULL || !sender_sends(p) || !wire_too_big_quote(frame, m->data_len, w, &q))
		return;
	back = wire_addr_back(&q.addr);
	id = sender_flow_of(p, &back);
	if (id == FLOW_ADDR_NONE || id % s->lcore.lcores != s->lcore.index)
		return;
	mtu = host_too_big(
		p->host, endpoint_index(&p->host->endpoint, id), q.seq, mtu, s->lcore.now_ns);
	if (mtu > 0)
		p->path_mtu = p->path_mtu == 0 || mtu < p->path_mtu ? mtu : p->path_mtu;
}

// Answers or counts a frame without a segment for us, and frees it.
static void receive_other(struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m,
	const struct wire_info *w) {
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	bool ours = is_ours(p, w->addr.dst_ip) && !is_foreign(w);
	uint32_t mtu;

	if (w->ethertype == WIRE_ETHERTYPE_ARP) {
		receive_arp(s, p, m);
		return;
	}
	if (w->addr.ipv6 && receive_neighbour(s, p, m, w))
		return;
	if (ours && wire_echo_reply(frame, m->data_len, w)) {
		p->count.rx_echo++;
		p->count.tx_own++;
		sender_put_frame(s, p, m, 0);
		return;
	}
	mtu = ours ? wire_path_mtu(frame, m->data_len, w) : 0;
	if (mtu > 0)
		take_too_big(s, p, m, w, mtu);
	else
		p->count.rx_other++;
	rte_pktmbuf_free(m);
}

static bool dropped(struct rte_mbuf *m, uint64_t *count) {
	(*count)++;
	rte_pktmbuf_free(m);
	return false;
}

// Reads a datagram for a flow of UDP, or the report about it.
static bool read_datagram(
	const struct sender_port *p, const uint8_t *frame, struct sender_arrival *a) {
	return p->host != NULL && a->id != FLOW_ADDR_NONE
		&& groups_datagrams(p->live->groups, a->id)
		&& wire_parse_udp(frame, &a->info, p->live->config->checksum, &a->seg) == WIRE_OK;
}

// Reads a segment for us. False: the frame has none and was freed.
static bool receive_seg(struct sender_lcore *s, struct sender_port *p, struct rte_mbuf *m,
	struct sender_arrival *a) {
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_info *w = &a->info;
	bool verify = s->config->checksum;
	bool plain = wire_parse_plain(frame, m->data_len, verify, w, &a->seg);

	p->count.rx_frames++;
	p->count.rx_bytes += port_frame_bytes(m->pkt_len);
	if (!plain && wire_parse(frame, m->data_len, w) != WIRE_OK)
		return dropped(m, &p->count.rx_malformed);
	if (is_outside(s, w))
		return dropped(m, &p->count.rx_outside);
	a->id = sender_flow_of(p, &w->addr);
	if (w->fragment || !is_ours(p, w->addr.dst_ip) || is_foreign(w)
		|| (w->proto != WIRE_PROTO_TCP
			&& (w->proto != WIRE_PROTO_UDP || !read_datagram(p, frame, a)))) {
		receive_other(s, p, m, w);
		return false;
	}
	if (w->proto == WIRE_PROTO_TCP) {
		if (!plain && wire_parse_tcp(frame, w, verify, &a->seg) != WIRE_OK)
			return dropped(m, &p->count.rx_malformed);
		if (unlikely(groups_datagrams(p->live->groups, a->id)))
			a->id = FLOW_ADDR_NONE; // a flow of UDP has no connection
	}
	if (a->id != FLOW_ADDR_NONE && p->host != NULL)
		a->id = endpoint_index(&p->host->endpoint, a->id);
	return true;
}

// While a segment is processed, the connections of the following ones are prefetched, as in virtual
// time (sim.c). A few cache lines at a time, because a core can have only some misses outstanding.
#define FETCH_CONNECTION 6 // segments ahead, for the connection's own cache lines
#define FETCH_SEGS 3 // segments ahead, for the data to which these lines point

// Always inlined: gcc takes a function that only prefetches for one without effect.
static inline __attribute__((always_inline)) void fetch_segs(
	const struct sender_port *p, const struct sender_arrival *a) {
	if (a->id != FLOW_ADDR_NONE && p->host != NULL && sender_sends(p))
		host_fetch_segs(p->host, a->id, &a->seg);
}

static inline __attribute__((always_inline)) void fetch(const struct sender_port *p, uint32_t id) {
	if (id == FLOW_ADDR_NONE || p->host == NULL)
		return;
	if (sender_sends(p))
		host_fetch_flow(p->host, id);
	else
		host_fetch_receiver(p->host, id);
}

void sender_receive(struct sender_lcore *s, struct sender_port *p) {
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nb_rx; i++) {
		struct rte_mbuf *m = p->rx_burst[i];

		if (i + SENDER_FETCH < p->nb_rx)
			sender_fetch_frame(p->rx_burst[i + SENDER_FETCH]);
		if (unlikely(s->capture != NULL))
			sender_capture_frame(s, p, m, PCAPNG_INBOUND, s->lcore.now_ns);
		if (receive_seg(s, p, m, &p->arrival[n]))
			p->rx_burst[n++] = m;
	}
	rte_pktmbuf_free_bulk(p->rx_burst, n);
	p->arrivals = n;
	for (uint32_t i = 0; i < n && i < FETCH_CONNECTION; i++)
		fetch(p, p->arrival[i].id);
}

void sender_fetch(const struct sender_port *p) {
	for (uint32_t i = 0; i < p->arrivals && i < FETCH_SEGS; i++)
		fetch_segs(p, &p->arrival[i]);
}

void sender_deliver(struct sender_lcore *s, struct sender_port *p, uint32_t first, uint32_t n) {
	const struct sender_arrival *a = p->arrival;
	uint32_t end = p->arrivals - first < n ? p->arrivals : first + n;

	for (uint32_t i = first; i < end; i++) {
		if (i + FETCH_CONNECTION < p->arrivals)
			fetch(p, a[i + FETCH_CONNECTION].id);
		if (i + FETCH_SEGS < p->arrivals)
			fetch_segs(p, &a[i + FETCH_SEGS]);
		deliver(s, p, &a[i]);
	}
}
