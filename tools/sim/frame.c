// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/frame.h"

#include "common/base/rng.h"
#include "common/net/clear.h"
#include "common/net/corrupt.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"

#include <string.h>

static uint32_t write_whole(const struct pkt *p, uint8_t *bytes, uint32_t room, uint32_t *length) {
	const uint8_t *frame = frame_bytes_const(p);
	uint32_t size = p->size_bytes - WIRE_FCS, n = size < room ? size : room;

	*length = size;
	memcpy(bytes, frame, n);
	if (wire_ecn_any(bytes, n) != p->ecn)
		wire_set_ecn(bytes, n, p->ecn);
	if ((p->flags & PKT_CLEARED) != 0)
		clear_frame(bytes, n, p->flags);
	if ((p->flags & PKT_CORRUPT) != 0)
		corrupt_frame(bytes, n, rng_mix(p->id));
	return n;
}

// What a router writes of the packet in whose place the answer travels (sim.c). The receiver's
// address stands for the router's, as it has none.
static uint32_t write_too_big(const struct pkt *p, const struct group *group,
	const struct wire_addr *from, uint8_t *bytes, uint32_t room, uint32_t *length) {
	uint8_t frame[WIRE_TOO_BIG_MAX] = {0}, answer[WIRE_TOO_BIG_MAX];
	const struct seg *seg = pkt_seg_const(p);
	struct seg about = {.seq = seg->seq, .len = (uint16_t)seg->ack, .flags = SEG_ACK};

	wire_write_tcp(frame, from, (uint8_t)(group->dscp << 2), (uint16_t)p->id, &about);
	*length = (uint32_t)wire_write_too_big(answer, frame, sizeof(frame), seg->window);
	if (*length < room)
		room = *length;
	memcpy(bytes, answer, room);
	return room;
}

uint32_t frame_write(const struct pkt *p, const struct group *group, uint8_t *bytes, uint32_t room,
	uint32_t *length) {
	struct wire_addr a = {
		.src_mac = {{2, 0, 0, 0, 0, 1}},
		.dst_mac = {{2, 0, 0, 0, 0, 2}},
		.src_ip = flow_addr_ip(FLOW_ADDR_SENDER, p->flow_id),
		.dst_ip = FLOW_ADDR_RECEIVER,
		.src_port = flow_addr_port(p->flow_id),
		.dst_port = FLOW_ADDR_DST_PORT,
		.ipv6 = group->ip == GROUP_IPV6,
	};
	const struct seg *seg = pkt_seg_const(p);

	if (frame_is_whole(p))
		return write_whole(p, bytes, room, length);
	if ((p->flags & PKT_TOO_BIG) != 0)
		return write_too_big(p, group, &a, bytes, room, length);
	if (pool_direction(p) == FLOWS_REVERSE)
		a = wire_addr_back(&a);
	uint8_t tos = (uint8_t)(group->dscp << 2 | p->ecn);
	bool udp = (seg->options & SEG_OPT_UDP) != 0;
	uint32_t captured = (uint32_t)(udp ? wire_write_udp(bytes, &a, tos, (uint16_t)p->id, seg)
					   : wire_write_tcp(bytes, &a, tos, (uint16_t)p->id, seg));
	*length = (uint32_t)wire_tcp_frame(seg, group->ip_header);
	if ((p->flags & PKT_CLEARED) != 0)
		clear_frame(bytes, captured, p->flags);
	if ((p->flags & PKT_CORRUPT) != 0)
		corrupt_frame(bytes, captured, rng_mix(p->id));
	if (captured + seg->len >= *length)
		return captured;
	memset(bytes + captured, 0, *length - captured); // padded to the shortest frame
	return *length;
}
