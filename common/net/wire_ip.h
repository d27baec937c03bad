// SPDX-License-Identifier: BSD-3-Clause
// Checks of a received frame: whether all of it is there, and whether its IPv4 header is good.
// Inline, because the live programs check every frame.
#pragma once
#include "common/base/likely.h"
#include "common/net/wire.h"

#include <string.h>

#define WIRE_IP_FRAGMENT 0x3fffu // more fragments, or an offset
#define WIRE_IP_OFFSET 0x1fffu
#define WIRE_EXTENSIONS_MAX 8 // headers of IPv6: more are no traffic
#define WIRE_EXT_FRAGMENT 44
#define WIRE_EXT_AUTH 51

static inline uint16_t wire_get16(const uint8_t *p) {
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t wire_get32(const uint8_t *p) {
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

// Of a frame of WIRE_ETH bytes or more.
static inline bool wire_is_ipv4(const uint8_t *frame) {
	return wire_get16(frame + 12) == WIRE_ETHERTYPE_IPV4;
}

// Most IPv4 headers are 20 bytes. A good one adds up to a multiple of 2^16 - 1 (RFC 1071).
static inline bool wire_ip_sum_good(const uint8_t *ip, size_t header) {
	uint64_t lo, mid;
	uint32_t hi;

	if (unlikely(header != WIRE_IPV4))
		return wire_fold(wire_sum(ip, header, 0)) == 0;
	memcpy(&lo, ip, sizeof(lo));
	memcpy(&mid, ip + 8, sizeof(mid));
	memcpy(&hi, ip + 16, sizeof(hi));
	return ((lo & UINT32_MAX) + (lo >> 32) + (mid & UINT32_MAX) + (mid >> 32) + hi) % 0xffff
		== 0;
}

static inline enum wire_status wire_check_ipv4(const uint8_t *frame, size_t len) {
	const uint8_t *ip = frame + WIRE_ETH;

	if (len < WIRE_ETH + WIRE_IPV4)
		return WIRE_TRUNCATED;
	if (ip[0] < 0x45 || ip[0] > 0x4f) // version 4, 20 to 60 bytes of header
		return WIRE_BAD_HEADER;
	size_t header = (size_t)(ip[0] & 15) * 4, total = wire_get16(ip + 2);
	if (total < header)
		return WIRE_BAD_HEADER;
	if (len < WIRE_ETH + total)
		return WIRE_TRUNCATED;
	return wire_ip_sum_good(ip, header) ? WIRE_OK : WIRE_BAD_CHECKSUM;
}

// The last 32 bits of an IPv6 address in 2001:2::/96; 0: it is another.
static inline uint32_t wire_get_ipv6_address(const uint8_t *p) {
	static const uint8_t net[12] = {0x20, 0x01, 0x00, 0x02};

	return memcmp(p, net, sizeof(net)) == 0 ? wire_get32(p + sizeof(net)) : 0;
}

// What the addresses of an untagged frame add to the checksum of a pseudo header.
static inline uint32_t wire_frame_sum(const uint8_t *frame, bool ipv6) {
	return wire_sum(frame + WIRE_ETH + (ipv6 ? 8 : 12), ipv6 ? 32 : 8, 0);
}

// Where the headers of a frame are, in bytes from its start. What a tunnel carries is payload.
struct wire_walk {
	size_t ip; // behind up to two VLAN tags; 0: there is none, or not its first 20 bytes
	// Behind IPv4's options, or IPv6's extension headers; at most where the packet ends.
	size_t l4;
	size_t end; // of the packet by its own word; of the frame if that does not say
	uint8_t proto; // of what is at l4
	uint8_t fragment_proto; // the same for all fragments of a packet; else proto
	bool ipv6;
	bool fragment; // a part of a packet
	bool later; // not its first part: no transport header is there
};
// Of a frame of which `len` bytes are there.
struct wire_walk wire_walk(const uint8_t *frame, size_t len);
// Bytes of its TCP header; 0: it has none, or not all of it is there.
size_t wire_tcp_size(const uint8_t *frame, size_t len, const struct wire_walk *w);
// Passes over extension headers from w.l4 on, of a packet of which the bytes before `end` are
// there. By value, so that the common case stays in registers.
struct wire_walk wire_walk_extensions(const uint8_t *frame, size_t end, struct wire_walk w);
// The rest of it, where an IPv6 header is at w->ip.
static inline void wire_walk_ipv6(const uint8_t *frame, size_t len, struct wire_walk *w) {
	const uint8_t *ip = frame + w->ip;
	uint16_t payload = wire_get16(ip + 4);

	// 0: a jumbogram, or a segment that the card is still to cut up.
	w->end = likely(payload > 0) ? w->ip + WIRE_IPV6 + payload : len;
	w->ipv6 = true;
	w->fragment = w->later = false;
	w->l4 = w->ip + WIRE_IPV6;
	w->proto = w->fragment_proto = ip[6];
	if (unlikely(w->proto != WIRE_PROTO_TCP && w->proto != WIRE_PROTO_UDP))
		*w = wire_walk_extensions(frame, w->end < len ? w->end : len, *w);
}

// Whether an extension header follows that says how long it is (RFC 8200 section 4, RFC 4302, RFC
// 6275, RFC 7401, RFC 5533).
static inline bool wire_is_extension(uint8_t proto) {
	return proto == 0 || proto == 43 || proto == WIRE_EXT_FRAGMENT || proto == WIRE_EXT_AUTH
		|| proto == 60 || proto == 135 || proto == 139 || proto == 140;
}

// Bytes of such a header, of which eight are there.
static inline size_t wire_extension_size(uint8_t proto, const uint8_t *p) {
	return proto == WIRE_EXT_FRAGMENT ? 8
		: proto == WIRE_EXT_AUTH  ? (p[1] + 2u) * 4
					  : (p[1] + 1u) * 8;
}

// Whether a fragment header is that of a part: an atomic fragment (RFC 6946) is a whole packet.
static inline bool wire_is_part(const uint8_t *extension) {
	return (wire_get16(extension + 2) & 0xfff9u) != 0;
}
// wire_read of untagged IPv6.
void wire_read_ipv6(const uint8_t *frame, size_t len, struct wire_info *info);

// Of a frame that is not IPv4, as far as it is IPv6, or IP behind VLAN tags.
enum wire_status wire_check_any(const uint8_t *frame, size_t len);

// What wire_parse would say of a frame. IPv6 and both kinds of VLAN tags have numbers from 0x8100
// on.
static inline enum wire_status wire_check(const uint8_t *frame, size_t len) {
	if (len < WIRE_ETH)
		return WIRE_TRUNCATED;
	if (likely(wire_is_ipv4(frame)))
		return wire_check_ipv4(frame, len);
	return wire_get16(frame + 12) < WIRE_ETHERTYPE_VLAN ? WIRE_OK : wire_check_any(frame, len);
}

// The checksum of a TCP segment or a UDP datagram.
enum wire_l4_sum {
	WIRE_L4_NONE, // it is neither, or a fragment
	WIRE_L4_FILLED, // filled in: right or wrong
	// Over the addresses alone, as a host has it that leaves the rest to its card.
	WIRE_L4_PARTIAL
};
enum wire_l4_sum wire_l4_sum(const uint8_t *frame, size_t len);

// Of a good frame; ECN_NOT_ECT unless IPv4 or IPv6.
static inline uint8_t wire_ecn(const uint8_t *frame, size_t len) {
	uint16_t type = wire_get16(frame + 12);

	if (likely(type == WIRE_ETHERTYPE_IPV4))
		return frame[WIRE_ETH + 1] & 3;
	// IPv6 and both kinds of VLAN tags have numbers from 0x8100 on.
	return type < WIRE_ETHERTYPE_VLAN ? ECN_NOT_ECT : wire_ecn_any(frame, len);
}

// Addresses and ports of a TCP segment or a UDP datagram in IPv6 without extension headers, between
// addresses of 2001:2::/96. The frame is not checked. False: it is something else.
static inline bool wire_read_addr_ipv6(const uint8_t *frame, size_t len, struct wire_addr *a) {
	const uint8_t *ip = frame + WIRE_ETH;

	if (len < WIRE_ETH + WIRE_IPV6 + 4 || wire_get16(frame + 12) != WIRE_ETHERTYPE_IPV6
		|| ip[0] >> 4 != 6 || (ip[6] != WIRE_PROTO_TCP && ip[6] != WIRE_PROTO_UDP))
		return false;
	a->src_ip = wire_get_ipv6_address(ip + 8);
	a->dst_ip = wire_get_ipv6_address(ip + 24);
	a->src_port = wire_get16(ip + WIRE_IPV6);
	a->dst_port = wire_get16(ip + WIRE_IPV6 + 2);
	a->ipv6 = true;
	return a->src_ip != 0 && a->dst_ip != 0;
}

// The same of IPv4 without options, or of IPv6. The frame is not checked: the lcore that gets it
// does this.
static inline bool wire_read_addr(const uint8_t *frame, size_t len, struct wire_addr *a) {
	const uint8_t *ip = frame + WIRE_ETH;

	if (len >= WIRE_ETH && unlikely(!wire_is_ipv4(frame)))
		return wire_read_addr_ipv6(frame, len, a);
	if (len < WIRE_ETH + WIRE_IPV4 + WIRE_TCP || ip[0] != 0x45
		|| (ip[9] != WIRE_PROTO_TCP && ip[9] != WIRE_PROTO_UDP)
		|| (wire_get16(ip + 6) & WIRE_IP_FRAGMENT) != 0)
		return false;
	a->src_ip = wire_get32(ip + 12);
	a->dst_ip = wire_get32(ip + 16);
	a->src_port = wire_get16(ip + WIRE_IPV4);
	a->dst_port = wire_get16(ip + WIRE_IPV4 + 2);
	a->ipv6 = false;
	return true;
}
