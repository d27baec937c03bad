// SPDX-License-Identifier: BSD-3-Clause
// IPv4 and IPv6 behind up to two VLAN tags: length, ECN bits and flow of a packet, for a switch
// that passes on any frame.
#include "common/base/rng.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#include <string.h>

// Where the IP header begins, behind VLAN tags of four bytes each; 0: there is none, or not the
// whole of an IPv4 header without options. *ipv6: which it is.
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

// Of 2001:2::/96 the last 32 bits, so that flows of weir-sender are known.
static uint32_t ipv6_number(const uint8_t *address) {
	uint32_t ip = wire_get_ipv6_address(address);
	uint64_t net, host;

	if (ip != 0)
		return ip;
	memcpy(&net, address, sizeof(net));
	memcpy(&host, address + sizeof(net), sizeof(host));
	return (uint32_t)(rng_mix(net ^ rng_mix(host)) >> 32);
}

static void read_ipv6_flow(const uint8_t *frame, size_t at, size_t end, struct wire_flow *flow) {
	struct wire_upper upper;

	if (at + WIRE_IPV6 > end)
		return;
	upper = wire_ipv6_upper(frame, at, end);
	flow->ipv6 = true;
	flow->src = ipv6_number(frame + at + 8);
	flow->dst = ipv6_number(frame + at + 24);
	flow->proto = upper.proto;
	if (!upper.fragment)
		read_ports(frame, upper.at, end, flow);
}

// Where the packet whose IP header begins at `at` ends, by its own word.
static size_t ip_end(const uint8_t *frame, size_t at, bool ipv6) {
	return at
		+ (ipv6 ? (size_t)WIRE_IPV6 + wire_get16(frame + at + 4)
			: wire_get16(frame + at + 2));
}

enum wire_status wire_check_any(const uint8_t *frame, size_t len) {
	bool ipv6;
	size_t at = ip_offset(frame, len, &ipv6);

	return at > 0 && ip_end(frame, at, ipv6) > len ? WIRE_TRUNCATED : WIRE_OK;
}

// The sum of the pseudo header (RFC 9293 section 3.1, RFC 768; RFC 8200 section 8.1) is what a host
// leaves in the checksum's place if its card is to add the rest.
enum wire_l4_sum wire_l4_sum(const uint8_t *frame, size_t len) {
	struct wire_flow flow;
	bool ipv6 = false;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6), end, addresses;

	wire_read_flow(frame, len, &flow);
	if (at == 0 || (flow.src_port == 0 && flow.dst_port == 0))
		return WIRE_L4_NONE;
	end = ip_end(frame, at, ipv6);
	addresses = ipv6 ? 32 : 8;
	size_t l4 = ipv6 ? wire_ipv6_upper(frame, at, end < len ? end : len).at
			 : at + (size_t)(frame[at] & 15) * 4;
	size_t sum_at = l4 + (flow.proto == WIRE_PROTO_TCP ? 16 : 6);
	if (end > len || sum_at + 2 > end)
		return WIRE_L4_NONE;
	uint32_t sum = wire_sum(
		frame + at + (ipv6 ? 8 : 12), addresses, flow.proto + (uint32_t)(end - l4));

	return (wire_get16(frame + sum_at) ^ wire_fold(sum)) == UINT16_MAX ? WIRE_L4_PARTIAL
									   : WIRE_L4_FILLED;
}

uint32_t wire_tags(const uint8_t *frame, size_t len) {
	bool ipv6;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6);

	return at == 0 ? 0 : (uint32_t)(at - WIRE_ETH) / WIRE_TAG;
}

uint32_t wire_syn_mtu(const uint8_t *frame, size_t len) {
	bool ipv6 = false;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6);
	struct seg seg;

	if (at == 0 || frame[at + (ipv6 ? 6 : 9)] != WIRE_PROTO_TCP)
		return 0;
	at += ipv6 ? WIRE_IPV6 : (size_t)(frame[at] & 15) * 4;
	size_t header = at + WIRE_TCP > len ? 0 : (size_t)(frame[at + 12] >> 4) * 4;
	if (header < WIRE_TCP || at + header > len
		|| wire_parse_tcp_header(frame + at, header, &seg) != WIRE_OK
		|| (seg.options & SEG_OPT_MSS) == 0)
		return 0;
	return seg.mss + WIRE_TCP + (ipv6 ? WIRE_IPV6 : WIRE_IPV4);
}

void wire_read_flow(const uint8_t *frame, size_t len, struct wire_flow *flow) {
	bool ipv6 = false;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6), end;
	const uint8_t *ip = frame + at;

	*flow = (struct wire_flow){0};
	if (at == 0)
		return;
	end = ip_end(frame, at, ipv6);
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

size_t wire_length(const uint8_t *frame, size_t len) {
	bool ipv6 = false;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6);

	if (at == 0)
		return 0;
	// 0: a jumbogram, or a segment that the card is still to cut up.
	uint16_t says = wire_get16(frame + at + (ipv6 ? 4 : 2));
	return says == 0 ? 0 : ip_end(frame, at, ipv6);
}

// IPv6 has version, traffic class and flow label in its first word: ECN are the class's last bits
// (RFC 3168 section 5, RFC 8200 section 3).
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
