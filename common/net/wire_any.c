// SPDX-License-Identifier: BSD-3-Clause
// IPv4 and IPv6 behind up to two VLAN tags: length, ECN bits and flow of a packet, for a switch
// that passes on any frame.
#include "common/base/rng.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#include <string.h>

// Where the type of what is behind VLAN tags of four bytes each ends.
static size_t pass_tags(const uint8_t *frame, size_t len) {
	size_t at = WIRE_ETH;

	for (int tags = 0; tags < 2 && len >= at + 4; tags++) {
		uint16_t type = wire_get16(frame + at - 2);

		if (type != WIRE_ETHERTYPE_VLAN && type != WIRE_ETHERTYPE_QINQ)
			break;
		at += 4;
	}
	return at;
}

// Where the IP header begins, behind VLAN tags; 0: there is none, or not the whole of an IPv4
// header without options. *ipv6: which it is.
static inline size_t ip_offset(const uint8_t *frame, size_t len, bool *ipv6) {
	size_t at = likely(wire_is_ipv4(frame)) ? WIRE_ETH : pass_tags(frame, len);
	uint16_t type = wire_get16(frame + at - 2);

	*ipv6 = type == WIRE_ETHERTYPE_IPV6;
	if ((!*ipv6 && type != WIRE_ETHERTYPE_IPV4) || len < at + WIRE_IPV4
		|| frame[at] >> 4 != (*ipv6 ? 6 : 4))
		return 0;
	return at;
}

// The rest of it, where an IPv4 header is at w->ip.
static inline void walk_ipv4(const uint8_t *frame, size_t len, struct wire_walk *w) {
	const uint8_t *ip = frame + w->ip;
	uint16_t total = wire_get16(ip + 2), fragment = wire_get16(ip + 6);

	// 0: a segment that the card is still to cut up.
	w->end = likely(total > 0) ? w->ip + total : len;
	w->l4 = w->ip + (size_t)(ip[0] & 15) * 4;
	w->proto = w->fragment_proto = ip[9];
	w->fragment = (fragment & WIRE_IP_FRAGMENT) != 0;
	w->later = (fragment & WIRE_IP_OFFSET) != 0;
}

struct wire_walk wire_walk(const uint8_t *frame, size_t len) {
	struct wire_walk w = {.end = len};

	w.ip = len < WIRE_ETH ? 0 : ip_offset(frame, len, &w.ipv6);
	w.l4 = w.ip;
	if (w.ip > 0 && !w.ipv6)
		walk_ipv4(frame, len, &w);
	else if (w.ip > 0 && len >= w.ip + WIRE_IPV6)
		wire_walk_ipv6(frame, len, &w);
	size_t end = w.end < len ? w.end : len;
	w.l4 = w.l4 < end ? w.l4 : end;
	return w;
}

// Those of a packet that is no fragment.
static inline void read_ports(
	const uint8_t *frame, size_t len, const struct wire_walk *w, struct wire_flow *flow) {
	size_t end = w->end < len ? w->end : len;

	flow->proto = w->fragment_proto;
	if ((w->proto == WIRE_PROTO_TCP || w->proto == WIRE_PROTO_UDP) && !w->fragment
		&& w->l4 + 4 <= end) {
		uint32_t ports = wire_get32(frame + w->l4);

		flow->src_port = (uint16_t)(ports >> 16);
		flow->dst_port = (uint16_t)ports;
	}
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
	struct wire_walk w = wire_walk(frame, len);
	size_t sum_at = w.l4 + (w.proto == WIRE_PROTO_TCP ? 16 : 6);

	if ((w.proto != WIRE_PROTO_TCP && w.proto != WIRE_PROTO_UDP) || w.fragment || w.end > len
		|| sum_at + 2 > w.end)
		return WIRE_L4_NONE;
	uint32_t sum = wire_sum(frame + w.ip + (w.ipv6 ? 8 : 12), w.ipv6 ? 32 : 8,
		w.proto + (uint32_t)(w.end - w.l4));

	return (wire_get16(frame + sum_at) ^ wire_fold(sum)) == UINT16_MAX ? WIRE_L4_PARTIAL
									   : WIRE_L4_FILLED;
}

uint32_t wire_tags(const uint8_t *frame, size_t len) {
	bool ipv6;
	size_t at = len < WIRE_ETH ? 0 : ip_offset(frame, len, &ipv6);

	return at == 0 ? 0 : (uint32_t)(at - WIRE_ETH) / WIRE_TAG;
}

size_t wire_tcp_size(const uint8_t *frame, size_t len, const struct wire_walk *w) {
	size_t end = w->end < len ? w->end : len, size;

	if (w->proto != WIRE_PROTO_TCP || w->later || w->l4 + WIRE_TCP > end)
		return 0;
	size = (size_t)(frame[w->l4 + 12] >> 4) * 4;
	return size >= WIRE_TCP && w->l4 + size <= end ? size : 0;
}

uint32_t wire_syn_mtu(const uint8_t *frame, size_t len) {
	struct wire_walk w = wire_walk(frame, len);
	size_t header = wire_tcp_size(frame, len, &w);
	struct seg seg;

	if (header == 0 || wire_parse_tcp_header(frame + w.l4, header, &seg) != WIRE_OK
		|| (seg.options & SEG_OPT_MSS) == 0)
		return 0;
	return seg.mss + WIRE_TCP + (w.ipv6 ? WIRE_IPV6 : WIRE_IPV4);
}

void wire_read_flow(const uint8_t *frame, size_t len, struct wire_flow *flow) {
	struct wire_walk w;
	const uint8_t *ip;

	*flow = (struct wire_flow){0};
	w.ip = len < WIRE_ETH ? 0 : ip_offset(frame, len, &w.ipv6);
	ip = frame + w.ip;
	if (w.ip == 0)
		return;
	// Each in a branch of its own: the live switch asks this of every frame.
	if (!w.ipv6) {
		walk_ipv4(frame, len, &w);
		flow->src = wire_get32(ip + 12);
		flow->dst = wire_get32(ip + 16);
		read_ports(frame, len, &w, flow);
	} else if (len >= w.ip + WIRE_IPV6) {
		wire_walk_ipv6(frame, len, &w);
		flow->ipv6 = true;
		flow->src = ipv6_number(ip + 8);
		flow->dst = ipv6_number(ip + 24);
		read_ports(frame, len, &w, flow);
	}
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
