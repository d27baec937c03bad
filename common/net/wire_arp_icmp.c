// SPDX-License-Identifier: BSD-3-Clause
// ARP, ICMP echo, and the path MTU that a router reports by ICMP.
#include "common/net/wire_icmpv6.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#include <string.h>

#define ARP_SIZE 28u
#define ICMP_HEADER 8u
#define IPV4_MTU_MIN 68u // RFC 791; routers from before RFC 1191 report none

enum wire_status wire_parse_arp(const uint8_t *frame, size_t len, struct wire_arp *arp) {
	const uint8_t *p = frame + WIRE_ETH;

	memset(arp, 0, sizeof(*arp));
	if (len < WIRE_ETH + ARP_SIZE)
		return WIRE_TRUNCATED;
	uint16_t operation = wire_get16(p + 6);
	// Ethernet (1), IPv4, addresses of 6 and 4 bytes; request (1) or reply (2). Nobody may
	// claim to be at a group's address (RFC 1812 section 3.3.2).
	if (wire_get16(frame + 12) != WIRE_ETHERTYPE_ARP || wire_get16(p) != 1
		|| wire_get16(p + 2) != WIRE_ETHERTYPE_IPV4 || p[4] != 6 || p[5] != 4
		|| (operation != 1 && operation != 2) || (p[8] & 1) != 0)
		return WIRE_BAD_HEADER;
	arp->request = operation == 1;
	memcpy(arp->sender_mac.b, p + 8, 6);
	arp->sender_ip = wire_get32(p + 14);
	arp->target_ip = wire_get32(p + 24);
	return WIRE_OK;
}

size_t wire_write_arp(uint8_t *buf, const struct wire_arp *arp, const struct wire_mac *target_mac) {
	static const struct wire_mac broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	static const struct wire_mac unknown;
	const struct wire_mac *dst = arp->request ? &broadcast : target_mac;
	const struct wire_mac *target = arp->request ? &unknown : target_mac;

	memset(buf, 0, WIRE_MIN_FRAME);
	uint8_t *p = wire_put_eth(buf, dst, &arp->sender_mac, WIRE_ETHERTYPE_ARP);
	p = wire_put16(p, 1);
	p = wire_put16(p, WIRE_ETHERTYPE_IPV4);
	p = wire_put16(p, 6 << 8 | 4);
	p = wire_put16(p, arp->request ? 1 : 2);
	memcpy(p, arp->sender_mac.b, 6);
	p = wire_put32(p + 6, arp->sender_ip);
	memcpy(p, target->b, 6);
	wire_put32(p + 6, arp->target_ip);
	return WIRE_MIN_FRAME;
}

// A whole ICMP message of that type and code with a good checksum, without IP options; its size, 0:
// none.
static size_t icmp_size(const uint8_t *frame, size_t len, const struct wire_info *info,
	uint8_t type, uint8_t code) {
	const uint8_t *icmp = frame + WIRE_ETH + WIRE_IPV4;

	if (info->ethertype != WIRE_ETHERTYPE_IPV4 || info->proto != WIRE_PROTO_ICMP
		|| info->fragment || info->l4_offset != WIRE_ETH + WIRE_IPV4
		|| info->ip_len < WIRE_IPV4 + ICMP_HEADER || len < (size_t)WIRE_ETH + info->ip_len)
		return 0;
	size_t size = info->ip_len - (size_t)WIRE_IPV4;
	return icmp[0] == type && icmp[1] == code && wire_fold(wire_sum(icmp, size, 0)) == 0 ? size
											     : 0;
}

uint32_t wire_path_mtu(const uint8_t *frame, size_t len, const struct wire_info *info) {
	uint32_t mtu;

	if (info->addr.ipv6)
		return wire_icmpv6_mtu(frame, len, info);
	if (icmp_size(frame, len, info, 3, 4) == 0)
		return 0;
	mtu = wire_get16(frame + WIRE_ETH + WIRE_IPV4 + 6);
	return mtu > IPV4_MTU_MIN ? mtu : IPV4_MTU_MIN;
}

// The TTL stays: the reply goes back the way the request came. A request with IP options, in
// fragments, to a group or with a wrong checksum gets no answer (RFC 1122 section 3.2.2.6 allows
// it).
bool wire_echo_reply(uint8_t *frame, size_t len, const struct wire_info *info) {
	uint8_t *ip = frame + WIRE_ETH;
	uint8_t *icmp = ip + WIRE_IPV4;

	size_t icmp_len = icmp_size(frame, len, info, 8, 0);

	if (info->addr.ipv6)
		return wire_icmpv6_echo(frame, len, info);
	if (icmp_len == 0 || (frame[0] & 1) != 0)
		return false;
	memcpy(frame, info->addr.src_mac.b, 6);
	memcpy(frame + 6, info->addr.dst_mac.b, 6);
	wire_put32(ip + 12, info->addr.dst_ip);
	wire_put32(ip + 16, info->addr.src_ip);
	icmp[0] = 0;
	// Not by RFC 1624: a reply may be all zero, where its result is the wrong one of the two
	// zeros.
	wire_put16(icmp + 2, 0);
	wire_put16(icmp + 2, wire_fold(wire_sum(icmp, icmp_len, 0)));
	return true;
}
