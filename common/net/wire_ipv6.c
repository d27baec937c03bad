// SPDX-License-Identifier: BSD-3-Clause
// The header of IPv6 (RFC 8200), and extension headers behind it.
#include "common/net/flow_addr.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define EXTENSIONS_MAX 4
#define HOP_OPTIONS 0
#define ROUTING 43
#define FRAGMENT 44
#define OPTIONS 60
#define HOP_LIMIT 64
#define LABEL 0xfffffu

static bool is_extension(uint8_t proto) {
	return proto == HOP_OPTIONS || proto == ROUTING || proto == OPTIONS || proto == FRAGMENT;
}

// Extension headers (RFC 8200 section 4) may come before the transport header. Behind that of a
// fragment there is none to read.
struct wire_upper wire_ipv6_upper(const uint8_t *frame, size_t at, size_t end) {
	struct wire_upper u = {.at = at + WIRE_IPV6, .proto = frame[at + 6]};

	for (int i = 0; i < EXTENSIONS_MAX && u.at + 8 <= end && is_extension(u.proto); i++) {
		const uint8_t *extension = frame + u.at;

		u.fragment = u.proto == FRAGMENT;
		u.proto = extension[0];
		u.at += u.fragment ? 8 : ((size_t)extension[1] + 1) * 8;
		if (u.fragment)
			break;
	}
	u.at = u.at < end ? u.at : end;
	return u;
}

void wire_read_ipv6(const uint8_t *frame, size_t len, struct wire_info *info) {
	const uint8_t *ip = frame + WIRE_ETH;
	struct wire_upper upper;
	size_t end;

	if (len < WIRE_ETH + WIRE_IPV6 || ip[0] >> 4 != 6)
		return;
	info->ip_len = WIRE_IPV6 + wire_get16(ip + 4);
	end = WIRE_ETH + info->ip_len;
	end = end < len ? end : len;
	upper = wire_ipv6_upper(frame, WIRE_ETH, end);
	info->addr.ipv6 = true;
	info->addr.src_ip = wire_get_ipv6_address(ip + 8);
	info->addr.dst_ip = wire_get_ipv6_address(ip + 24);
	info->dscp = (uint8_t)(wire_get16(ip) >> 6 & 63);
	info->ecn = ip[1] >> 4 & 3;
	info->proto = upper.proto;
	info->l4_offset = (uint16_t)upper.at;
	info->fragment = upper.fragment;
	if ((upper.proto == WIRE_PROTO_TCP || upper.proto == WIRE_PROTO_UDP) && !upper.fragment
		&& upper.at + 4 <= end) {
		info->addr.src_port = wire_get16(frame + upper.at);
		info->addr.dst_port = wire_get16(frame + upper.at + 2);
	}
}

uint8_t *wire_put_ipv6(
	uint8_t *p, const struct wire_addr *a, uint8_t proto, uint8_t tos, uint32_t payload) {
	uint32_t label =
		LABEL & flow_addr_hash(a->src_ip, a->dst_ip, a->src_port, a->dst_port, proto);

	p = wire_put32(p, 6u << 28 | (uint32_t)tos << 20 | label);
	p = wire_put32(p, payload << 16 | (uint32_t)proto << 8 | HOP_LIMIT);
	return wire_put_ipv6_address(wire_put_ipv6_address(p, a->src_ip), a->dst_ip);
}
