// SPDX-License-Identifier: BSD-3-Clause
// What stages ask the owner of packets for: numbers of their hosts, their headers, copies of them.
#include "switch/live/lcore.h"

#include "common/net/flow_addr.h"
#include "common/net/headers.h"
#include "common/net/wire_ip.h"

#include <string.h>

uint32_t switch_hosts(const struct pkt *p) {
	const struct packet_metadata *m = (const void *)p->user;
	struct wire_flow f;

	if (!m->replayed && (p->flow_id & FLOW_ADDR_HASHED) == 0) // weir-sender's
		return aqm_hosts(NULL, p);
	if (m->len > 0)
		wire_read_flow(m->frame, m->len, &f);
	else
		wire_read_flow(rte_pktmbuf_mtod(port_mbuf_const(p), const uint8_t *),
			port_mbuf_const(p)->data_len, &f);
	return flow_addr_hosts(f.src, f.dst);
}

struct pkt_headers switch_headers(void *ctx, const struct pkt *p) {
	const struct packet_metadata *m = (const void *)p->user;

	if (m->len > 0)
		return headers_read(m->frame, m->len);
	return headers_read(rte_pktmbuf_mtod(port_mbuf_const(p), const uint8_t *),
		port_mbuf_const(p)->data_len);
}

// The port that a packet leaves by whose path this is.
static struct switch_port *exit_of(
	struct switch_lcore *s, const struct path *path, const struct pkt *p) {
	uint32_t i = 0;

	if (s->routes != NULL)
		return &s->port[((const struct packet_metadata *)(const void *)p->user)->port];
	while (s->port[i].path != path)
		i++;
	return &s->port[i];
}

struct pkt *switch_copy(void *ctx, const struct path *path, const struct pkt *p) {
	const struct packet_metadata *m = (const void *)p->user;
	struct switch_lcore *s = ctx;
	struct switch_port *out = exit_of(s, path, p);
	struct pkt *copy = NULL;

	// Packets on their way into the path have their part of the quota already.
	if (out->inside + out->nb_batched >= out->quota)
		return NULL;
	if (m->len > 0) {
		arena_take(&s->small, &copy, 1);
		memcpy(copy, p, ARENA_PKT_BYTES);
	} else if (out->large < out->large_quota) {
		// Whole, as stages behind may write into one of the two.
		struct rte_mbuf *mbuf =
			rte_pktmbuf_copy(port_mbuf_const(p), s->pool, 0, UINT32_MAX);

		if (mbuf == NULL)
			return NULL;
		copy = port_pkt(mbuf);
		*copy = *p;
		out->large++;
	} else {
		return NULL;
	}
	out->inside++;
	return copy;
}
