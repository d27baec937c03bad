// SPDX-License-Identifier: BSD-3-Clause
// UDP datagrams (RFC 768), whose payload begins with two numbers:
//
//	number   other   zeros
//	4 bytes  4 bytes
//
// sender/udp/udp.h says what the numbers mean.
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

static size_t payload_of(const struct seg *seg) {
	return seg->len > 0 ? seg->len : WIRE_UDP_NUMBERS;
}

size_t wire_write_udp(uint8_t *buf, const struct wire_addr *addr, uint8_t tos, uint16_t ip_id,
	const struct seg *seg) {
	uint32_t udp_len = WIRE_UDP + (uint32_t)payload_of(seg);
	uint8_t *udp = wire_put_ip(buf, addr, WIRE_PROTO_UDP, tos, ip_id, udp_len), *p;
	uint32_t pseudo = wire_frame_sum(buf, addr->ipv6) + WIRE_PROTO_UDP + udp_len;
	uint16_t sum;

	p = wire_put32(udp, (uint32_t)addr->src_port << 16 | addr->dst_port);
	p = wire_put32(p, udp_len << 16);
	wire_put32(wire_put32(p, seg->seq), seg->ack);
	// The rest is zero.
	sum = wire_fold(wire_sum(udp, WIRE_UDP + WIRE_UDP_NUMBERS, pseudo));
	wire_put16(udp + 6, sum == 0 ? 0xffff : sum); // 0 would say that there is none
	return WIRE_ETH + wire_ip_header(addr->ipv6) + WIRE_UDP + WIRE_UDP_NUMBERS;
}

// A sum of 0 says that there is none, which IPv6 does not allow (RFC 8200 section 8.1).
static bool udp_sum_good(const uint8_t *frame, const struct wire_info *info, size_t len) {
	const uint8_t *udp = frame + info->l4_offset;
	uint32_t pseudo = wire_frame_sum(frame, info->addr.ipv6) + WIRE_PROTO_UDP + (uint32_t)len;

	if (wire_get16(udp + 6) == 0)
		return !info->addr.ipv6;
	return wire_fold(wire_sum(udp, len, pseudo)) == 0;
}

enum wire_status wire_parse_udp(
	const uint8_t *frame, const struct wire_info *info, bool verify, struct seg *seg) {
	const uint8_t *udp = frame + info->l4_offset;
	size_t len = WIRE_ETH + (size_t)info->ip_len - info->l4_offset, said;

	if (info->proto != WIRE_PROTO_UDP || info->fragment)
		return WIRE_BAD_HEADER;
	if (len < WIRE_UDP + WIRE_UDP_NUMBERS)
		return WIRE_TRUNCATED;
	said = wire_get16(udp + 4);
	if (said < WIRE_UDP + WIRE_UDP_NUMBERS || said > len)
		return WIRE_BAD_HEADER;
	if (verify && !udp_sum_good(frame, info, said))
		return WIRE_BAD_CHECKSUM;
	*seg = (struct seg){.seq = wire_get32(udp + WIRE_UDP),
		.ack = wire_get32(udp + WIRE_UDP + 4),
		.len = (uint16_t)(said - WIRE_UDP),
		.options = SEG_OPT_UDP};
	return WIRE_OK;
}
