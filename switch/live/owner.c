// SPDX-License-Identifier: BSD-3-Clause
// The owner of a live lcore's packets: small ones are in its arena, others in their mbufs. Of each
// kind the port by which they leave has a quota.
#include "switch/live/lcore.h"

#include "common/net/flow_addr.h"
#include "common/net/headers.h"
#include "common/net/wire_ip.h"

#include <string.h>

struct frame_view {
	const uint8_t *bytes;
	size_t len;
};

static struct frame_view frame_of(const struct pkt *p) {
	const struct packet_metadata *m = (const void *)p->user;

	if (m->len > 0)
		return (struct frame_view){m->frame, m->len};
	return (struct frame_view){rte_pktmbuf_mtod(port_mbuf_const(p), const uint8_t *),
		port_mbuf_const(p)->data_len};
}

static uint32_t hosts(void *ctx, const struct pkt *p) {
	const struct packet_metadata *m = (const void *)p->user;
	struct frame_view frame = frame_of(p);
	struct wire_flow f;

	if (!m->replayed && (p->flow_id & FLOW_ADDR_HASHED) == 0) // weir-sender's
		return pkt_hosts(NULL, p);
	wire_read_flow(frame.bytes, frame.len, &f);
	return flow_addr_hosts(f.src, f.dst);
}

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	struct frame_view frame = frame_of(p);

	return headers_read(frame.bytes, frame.len);
}

static struct pkt *copy_packet(void *ctx, const struct pkt *p) {
	const struct packet_metadata *m = (const void *)p->user;
	struct switch_lcore *s = ctx;
	struct switch_port *out = &s->port[m->port];
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

// In an mbuf, as an answer of IPv6 is as long as its least MTU. What a capture has is not answered:
// its sender is not there.
static struct pkt *too_big(void *ctx, const struct pkt *p, uint32_t mtu) {
	const struct packet_metadata *m = (const void *)p->user;
	struct switch_lcore *s = ctx;
	struct switch_port *out = &s->port[m->port];
	struct frame_view about = frame_of(p);
	struct rte_mbuf *mbuf;
	struct pkt *answer;

	if (out->source != NULL || out->inside + out->nb_batched >= out->quota
		|| out->large >= out->large_quota || (mbuf = rte_pktmbuf_alloc(s->pool)) == NULL)
		return NULL;
	mbuf->pkt_len = mbuf->data_len = (uint16_t)wire_write_too_big(
		rte_pktmbuf_mtod(mbuf, uint8_t *), about.bytes, about.len, mtu);
	if (mbuf->data_len == 0) {
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	answer = port_pkt(mbuf);
	*answer = *p;
	answer->flags = PKT_TOO_BIG;
	answer->size_bytes = port_frame_bytes(mbuf->data_len);
	answer->ecn = packet_metadata(answer)->ecn = ECN_NOT_ECT;
	packet_metadata(answer)->len = 0;
	out->inside++;
	out->large++;
	s->answers = true;
	return answer;
}

static void free_packets(void *ctx, struct pkt_list *drops) {
	struct switch_lcore *s = ctx;

	for (struct pkt *p = drops->head, *next; p != NULL; p = next) {
		struct switch_port *out = &s->port[packet_metadata(p)->port];

		next = p->next;
		out->inside--;
		if (packet_metadata(p)->len > 0) {
			arena_put(&s->small, &p, 1);
		} else {
			rte_pktmbuf_free(port_mbuf(p));
			out->large--;
		}
	}
}

struct pkt_owner switch_pkt_owner(struct switch_lcore *s) {
	return (struct pkt_owner){.copy = copy_packet,
		.free = free_packets,
		.too_big = too_big,
		.hosts = hosts,
		.headers = headers,
		.ctx = s};
}
