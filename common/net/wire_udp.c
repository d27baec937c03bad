// SPDX-License-Identifier: BSD-3-Clause
// UDP datagrams (RFC 768), whose payload begins with two numbers:
//
//	number   other   zeros
//	4 bytes  4 bytes
//
// sender/udp/udp.h says what the numbers mean.
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define IP_DF 0x4000u
#define IP_TTL 64u

static size_t payload_of(const struct seg *seg) {
	return seg->len > 0 ? seg->len : WIRE_UDP_NUMBERS;
}

static uint32_t pseudo_sum(const struct wire_addr *a, size_t udp_len) {
	uint8_t pseudo[12], *p = wire_put32(wire_put32(pseudo, a->src_ip), a->dst_ip);

	wire_put32(p, WIRE_PROTO_UDP << 16 | (uint32_t)udp_len);
	return wire_sum(pseudo, sizeof(pseudo), 0);
}

size_t wire_write_udp(uint8_t *buf, const struct wire_addr *addr, uint8_t tos, uint16_t ip_id,
	const struct seg *seg) {
	uint8_t *ip = wire_put_eth(buf, &addr->dst_mac, &addr->src_mac, WIRE_ETHERTYPE_IPV4), *p;
	uint8_t *udp = ip + WIRE_IPV4;
	uint32_t udp_len = WIRE_UDP + (uint32_t)payload_of(seg);
	uint16_t sum;

	p = wire_put32(ip, 0x45u << 24 | (uint32_t)tos << 16 | (WIRE_IPV4 + udp_len));
	p = wire_put32(p, (uint32_t)ip_id << 16 | IP_DF);
	p = wire_put32(p, IP_TTL << 24 | WIRE_PROTO_UDP << 16);
	wire_put32(wire_put32(p, addr->src_ip), addr->dst_ip);
	wire_put16(ip + 10, wire_fold(wire_sum(ip, WIRE_IPV4, 0)));
	p = wire_put32(udp, (uint32_t)addr->src_port << 16 | addr->dst_port);
	p = wire_put32(p, udp_len << 16);
	wire_put32(wire_put32(p, seg->seq), seg->ack);
	sum = wire_fold(wire_sum(
		udp, WIRE_UDP + WIRE_UDP_NUMBERS, pseudo_sum(addr, udp_len))); // the rest is zero
	wire_put16(udp + 6, sum == 0 ? 0xffff : sum); // 0 would say that there is none
	return WIRE_ETH + WIRE_IPV4 + WIRE_UDP + WIRE_UDP_NUMBERS;
}

enum wire_status wire_parse_udp(
	const uint8_t *frame, const struct wire_info *info, bool verify, struct seg *seg) {
	const uint8_t *udp = frame + info->l4_offset;
	size_t len = WIRE_ETH + (size_t)info->ip_len - info->l4_offset, said;

	if (info->ethertype != WIRE_ETHERTYPE_IPV4 || info->proto != WIRE_PROTO_UDP
		|| info->fragment)
		return WIRE_BAD_HEADER;
	if (len < WIRE_UDP + WIRE_UDP_NUMBERS)
		return WIRE_TRUNCATED;
	said = wire_get16(udp + 4);
	if (said < WIRE_UDP + WIRE_UDP_NUMBERS || said > len)
		return WIRE_BAD_HEADER;
	if (verify && wire_get16(udp + 6) != 0
		&& wire_fold(wire_sum(udp, said, pseudo_sum(&info->addr, said))) != 0)
		return WIRE_BAD_CHECKSUM;
	*seg = (struct seg){.seq = wire_get32(udp + WIRE_UDP),
		.ack = wire_get32(udp + WIRE_UDP + 4),
		.len = (uint16_t)(said - WIRE_UDP),
		.options = SEG_OPT_UDP};
	return WIRE_OK;
}
