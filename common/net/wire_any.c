// SPDX-License-Identifier: BSD-3-Clause
// IPv4 and IPv6 behind up to two VLAN tags: the ECN bits of a packet and its flow, for a switch that passes on any frame.
#include "common/base/rng.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#include <string.h>

#define IPV6_HEADER 40u
#define IPV6_EXTENSIONS_MAX 4
#define IPV6_HOP_OPTIONS 0
#define IPV6_ROUTING 43
#define IPV6_FRAGMENT 44
#define IPV6_OPTIONS 60

// Where the IP header begins, behind VLAN tags of four bytes each; 0: there is none, or not the whole of an
// IPv4 header without options. *ipv6: which it is.
static size_t ip_offset(const uint8_t *frame, size_t len, bool *ipv6) {
	size_t at = WIRE_ETH;
	uint16_t type = wire_get16(frame + at - 2);

	for (int tags = 0; tags < 2 && len >= at + 4
		&& (type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ);
		tags++) {
		at += 4;
		type = wire_get16(frame + at - 2);
	}
	*ipv6 = type == WIRE_ETHERTYPE_IPV6;
	if ((!*ipv6 && type != WIRE_ETHERTYPE_IPV4) || len < at + WIRE_IPV4
		|| frame[at] >> 4 != (*ipv6 ? 6 : 4))
		return 0;
	return at;
}

// Those of a transport header at `at`, of a packet that ends at `end`.
static void read_ports(const uint8_t *frame, size_t at, size_t end, struct wire_flow *flow) {
	if ((flow->proto != WIRE_PROTO_TCP && flow->proto != WIRE_PROTO_UDP) || at + 4 > end)
		return;
	flow->src_port = wire_get16(frame + at);
	flow->dst_port = wire_get16(frame + at + 2);
}

static uint32_t ipv6_hash(const uint8_t *address) {
	uint64_t net, host;

	memcpy(&net, address, sizeof(net));
	memcpy(&host, address + sizeof(net), sizeof(host));
	return (uint32_t)(rng_mix(net ^ rng_mix(host)) >> 32);
}

// Extension headers (RFC 8200 section 4) may come before the transport header.
static void read_ipv6_flow(const uint8_t *frame, size_t at, size_t end, struct wire_flow *flow) {
	const uint8_t *ip = frame + at;

	if (at + IPV6_HEADER > end)
		return;
	flow->ipv6 = true;
	flow->src = ipv6_hash(ip + 8);
	flow->dst = ipv6_hash(ip + 24);
	flow->proto = ip[6];
	at += IPV6_HEADER;
	for (int i = 0; i < IPV6_EXTENSIONS_MAX && at + 8 <= end; i++) {
		bool fragment = flow->proto == IPV6_FRAGMENT;

		if (!fragment && flow->proto != IPV6_HOP_OPTIONS && flow->proto != IPV6_ROUTING
			&& flow->proto != IPV6_OPTIONS)
			break;
		flow->proto = frame[at];
		if (fragment)
			return;
		at += ((size_t)frame[at + 1] + 1) * 8;
	}
	read_ports(frame, at, end, flow);
}

void wire_read_flow(const uint8_t *frame, size_t len, struct wire_flow *flow) {
	bool ipv6 = false;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6), end;
	const uint8_t *ip = frame + at;

	*flow = (struct wire_flow){0};
	if (at == 0)
		return;
	end = at + (ipv6 ? (size_t)IPV6_HEADER + wire_get16(ip + 4) : wire_get16(ip + 2));
	end = end < len ? end : len;
	if (ipv6) {
		read_ipv6_flow(frame, at, end, flow);
		return;
	}
	flow->src = wire_get32(ip + 12);
	flow->dst = wire_get32(ip + 16);
	flow->proto = ip[9];
	if ((wire_get16(ip + 6) & WIRE_IP_FRAGMENT) == 0)
		read_ports(frame, at + (size_t)(ip[0] & 15) * 4, end, flow);
}

// IPv6 has version, traffic class and flow label in its first word: ECN are the class's last bits (RFC 3168
// section 5, RFC 8200 section 3).
uint8_t wire_ecn_any(const uint8_t *frame, size_t len) {
	bool ipv6;
	size_t at = ip_offset(frame, len, &ipv6);

	if (at == 0)
		return ECN_NOT_ECT;
	return (ipv6 ? frame[at + 1] >> 4 : frame[at + 1]) & 3;
}

void wire_set_ecn(uint8_t *frame, size_t len, uint8_t ecn) {
	bool ipv6;
	size_t at = ip_offset(frame, len, &ipv6);
	uint8_t *ip = frame + at;

	if (at == 0)
		return;
	if (ipv6) { // no checksum covers it
		ip[1] = (uint8_t)((ip[1] & ~0x30) | (ecn & 3) << 4);
		return;
	}
	uint16_t was = wire_get16(ip);
	uint16_t is = (uint16_t)((was & ~3u) | (ecn & 3u));

	wire_put16(ip, is);
	wire_put16(ip + 10, wire_csum_replace(wire_get16(ip + 10), was, is));
}
