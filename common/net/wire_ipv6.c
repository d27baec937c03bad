// SPDX-License-Identifier: BSD-3-Clause
// The header of IPv6 (RFC 8200), and extension headers behind it.
#include "common/net/flow_addr.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define HOP_LIMIT 64
#define LABEL 0xfffffu

struct wire_walk wire_walk_extensions(const uint8_t *frame, size_t end, struct wire_walk w) {
	for (int i = 0; i < WIRE_EXTENSIONS_MAX && !w.later && w.l4 + 8 <= end
		&& wire_is_extension(w.proto);
		i++) {
		const uint8_t *extension = frame + w.l4;
		bool part = w.proto == WIRE_EXT_FRAGMENT && wire_is_part(extension);

		w.l4 += wire_extension_size(w.proto, extension);
		w.proto = extension[0];
		if (!w.fragment)
			w.fragment_proto = w.proto;
		w.fragment |= part;
		w.later = part && (wire_get16(extension + 2) & 0xfff8u) != 0;
	}
	w.l4 = w.l4 < end ? w.l4 : end;
	return w;
}

void wire_read_ipv6(const uint8_t *frame, size_t len, struct wire_info *info) {
	const uint8_t *ip = frame + WIRE_ETH;
	struct wire_walk w;
	size_t end;

	if (len < WIRE_ETH + WIRE_IPV6 || ip[0] >> 4 != 6)
		return;
	info->ip_len = WIRE_IPV6 + wire_get16(ip + 4);
	end = WIRE_ETH + info->ip_len;
	end = end < len ? end : len; // of a jumbogram a host reads the header alone
	w.ip = WIRE_ETH;
	wire_walk_ipv6(frame, end, &w);
	info->addr.ipv6 = true;
	info->addr.src_ip = wire_get_ipv6_address(ip + 8);
	info->addr.dst_ip = wire_get_ipv6_address(ip + 24);
	info->dscp = (uint8_t)(wire_get16(ip) >> 6 & 63);
	info->ecn = ip[1] >> 4 & 3;
	info->proto = w.fragment_proto;
	info->l4_offset = (uint16_t)w.l4;
	info->fragment = w.fragment;
	if ((w.proto == WIRE_PROTO_TCP || w.proto == WIRE_PROTO_UDP) && !w.fragment
		&& w.l4 + 4 <= end) {
		info->addr.src_port = wire_get16(frame + w.l4);
		info->addr.dst_port = wire_get16(frame + w.l4 + 2);
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
