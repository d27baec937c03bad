// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/headers.h"

#include "common/net/wire.h"
#include "common/net/wire_ip.h"

#define TCP_FLAGS 13
#define TCP_OFFSET 12

static_assert(PKT_SACKS == SEG_SACK_MAX, "room for all");

void headers_of_ack(struct pkt_headers *h, const struct seg *seg) {
	if (seg->len > 0 || (seg->flags & ~(SEG_ECE | SEG_CWR)) != SEG_ACK
		|| (seg->options & ~(SEG_OPT_TS | SEG_OPT_AE)) != 0)
		return;
	h->pure_ack = true;
	h->ace = seg_ace(seg);
	h->ack = seg->ack;
	h->timestamps = (seg->options & SEG_OPT_TS) != 0;
	h->tsval = h->timestamps ? seg->tsval : 0;
	h->sacks = seg->sack_count;
	for (uint32_t i = 0; i < h->sacks; i++)
		h->sack[i] = (struct pkt_sack){seg->sack[i].start, seg->sack[i].end};
}

// An option that is neither timestamps nor SACK makes the header longer than these need.
static void read_ack(struct pkt_headers *h, const uint8_t *tcp, size_t header) {
	struct seg seg;

	if (header >= WIRE_TCP && wire_parse_tcp_header(tcp, header, &seg) == WIRE_OK
		&& wire_tcp_header(&seg) == header)
		headers_of_ack(h, &seg);
}

struct pkt_headers headers_read(const uint8_t *frame, size_t len) {
	struct wire_walk w = wire_walk(frame, len);
	struct pkt_headers h = {0};
	size_t tcp = w.l4;

	if (w.ip > 0)
		h.dscp = w.ipv6 ? (uint8_t)(wire_get16(frame + w.ip) >> 6 & 63)
				: frame[w.ip + 1] >> 2;
	if (w.proto != WIRE_PROTO_TCP || len < tcp + WIRE_TCP || w.fragment)
		return h;
	size_t end = w.end, payload = tcp + (size_t)(frame[tcp + TCP_OFFSET] >> 4) * 4;

	h.seq = wire_get32(frame + tcp + 4);
	h.seq_count = (uint16_t)((end > payload ? end - payload : 0)
		+ ((frame[tcp + TCP_FLAGS] & SEG_FIN) != 0));
	h.syn = (frame[tcp + TCP_FLAGS] & SEG_SYN) != 0;
	if (end == payload && len >= payload)
		read_ack(&h, frame + tcp, payload - tcp);
	return h;
}
