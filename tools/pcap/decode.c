// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/decode.h"

#include "common/base/likely.h"
#include "common/net/wire_ip.h"

#include <string.h>

#define TAGS_MAX 8 // VLAN tags, MPLS labels, extension headers: more are no traffic
#define ETHERTYPE_MPLS 0x8847
#define ETHERTYPE_PPPOE 0x8864
#define ETHERTYPE_QINQ_OLD 0x9100
#define IPV6_HEADER 40u
#define SLL_HEADER 16u
#define SLL2_HEADER 20u
#define UDP_HEADER 8u

// What is left of a frame: captured bytes from p on, and how many there were on the wire.
struct rest {
	const uint8_t *p;
	uint32_t captured, length;
};

static inline bool take(struct rest *r, uint32_t n) {
	if (r->captured < n)
		return false;
	r->p += n;
	r->captured -= n;
	r->length -= n;
	return true;
}

static inline uint64_t get64(const uint8_t *p) {
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

__extension__ typedef unsigned __int128 uint128;

// Two multiplications, each of whose halves meet: every bit of the key moves about half of the hash's.
static inline uint32_t hash_key(const struct flow_key *k) {
	uint64_t ports = (uint64_t)k->port[0] << 16 | k->port[1];
	uint64_t a = k->end[0].low ^ k->end[0].high * UINT64_C(0xc2b2ae3d27d4eb4f);
	uint64_t b = k->end[1].low ^ k->end[1].high * UINT64_C(0x165667b19e3779f9);
	uint128 m = (uint128)(a ^ UINT64_C(0x9e3779b97f4a7c15))
		* (b ^ ports << 32 ^ UINT64_C(0xd6e8feb86659fd93));
	uint64_t x = ((uint64_t)m ^ (uint64_t)(m >> 64) ^ ports) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(x >> 32);
}

static inline void set_key(struct packet *p, const struct endpoint *src, const struct endpoint *dst,
	const uint8_t *ports, bool udp) {
	uint16_t src_port = wire_get16(ports), dst_port = wire_get16(ports + 2);
	bool swap = src->high != dst->high ? src->high > dst->high
		: src->low != dst->low	   ? src->low > dst->low
					   : src_port > dst_port;

	p->ipv4 = endpoint_is_ipv4(src) && endpoint_is_ipv4(dst);
	p->from = swap;
	p->key.end[swap] = *src;
	p->key.end[!swap] = *dst;
	p->key.port[swap] = src_port;
	p->key.port[!swap] = dst_port;
	p->key.udp = udp;
	p->hash = hash_key(&p->key);
}

// `r` begins with the TCP header; its length is that of the segment.
static inline __attribute__((always_inline)) enum decode decode_tcp(
	struct rest *r, const struct endpoint *src, const struct endpoint *dst, struct packet *p) {
	const uint8_t *tcp = r->p;

	if (unlikely(r->length < WIRE_TCP))
		return DECODE_MALFORMED;
	if (unlikely(r->captured < WIRE_TCP))
		return DECODE_TRUNCATED;
	uint32_t header = (tcp[12] >> 4) * 4u;
	if (unlikely(header < WIRE_TCP || header > r->length))
		return DECODE_MALFORMED;
	uint32_t captured = header < r->captured ? header : r->captured;

	p->payload = r->length - header;
	p->captured = r->captured - captured;
	p->data = tcp + captured;
	enum wire_status options = wire_parse_tcp_header(tcp, captured, &p->seg);
	p->options = unlikely(captured < header) ? DECODE_OPTIONS_CUT
		: unlikely(options != WIRE_OK)	 ? DECODE_OPTIONS_BAD
						 : DECODE_OPTIONS_WHOLE;
	set_key(p, src, dst, tcp, false);
	return DECODE_TCP;
}

// The same for a UDP header; its length field is 0 in a jumbogram, and what a card is still to cut up has another.
static enum decode decode_udp(
	struct rest *r, const struct endpoint *src, const struct endpoint *dst, struct packet *p) {
	if (r->length < UDP_HEADER)
		return DECODE_MALFORMED;
	if (r->captured < UDP_HEADER)
		return DECODE_TRUNCATED;
	p->payload = r->length - UDP_HEADER;
	p->captured = r->captured - UDP_HEADER;
	p->data = r->p + UDP_HEADER;
	p->options = DECODE_OPTIONS_WHOLE;
	memset(&p->seg, 0, sizeof(p->seg));
	set_key(p, src, dst, r->p, true);
	return DECODE_UDP;
}

static enum decode decode_ipv4(struct rest *r, struct packet *p) {
	const uint8_t *ip = r->p;

	if (unlikely(r->captured < WIRE_IPV4))
		return r->length < WIRE_IPV4 ? DECODE_MALFORMED : DECODE_TRUNCATED;
	uint32_t header = (ip[0] & 15) * 4u, total = wire_get16(ip + 2);
	if (unlikely(total == 0)) // a segment that the card is still to cut up (TSO)
		total = r->length;
	if (unlikely(ip[0] >> 4 != 4 || header < WIRE_IPV4 || total < header || total > r->length))
		return DECODE_MALFORMED;
	p->ecn = ip[1] & 3;
	p->ip_id = wire_get16(ip + 4);
	if (unlikely((wire_get16(ip + 6) & WIRE_IP_FRAGMENT) != 0))
		return DECODE_FRAGMENT;
	if (ip[9] != WIRE_PROTO_TCP && ip[9] != WIRE_PROTO_UDP)
		return DECODE_NOT_TCP;
	struct endpoint src = {0, ENDPOINT_IPV4 | wire_get32(ip + 12)};
	struct endpoint dst = {0, ENDPOINT_IPV4 | wire_get32(ip + 16)};
	r->length = total; // without the padding of a short frame
	if (r->captured > total)
		r->captured = total;
	if (unlikely(!take(r, header)))
		return DECODE_TRUNCATED;
	return likely(ip[9] == WIRE_PROTO_TCP) ? decode_tcp(r, &src, &dst, p)
					       : decode_udp(r, &src, &dst, p);
}

// RFC 8200 section 4, RFC 4302 (authentication), RFC 6275 (mobility), RFC 7401 (HIP), RFC 5533 (shim6).
static bool ipv6_extension(uint8_t proto) {
	return proto == 0 || proto == 43 || proto == 44 || proto == 51 || proto == 60
		|| proto == 135 || proto == 139 || proto == 140;
}

static enum decode decode_ipv6(struct rest *r, struct packet *p) {
	const uint8_t *ip = r->p;

	if (r->captured < IPV6_HEADER)
		return r->length < IPV6_HEADER ? DECODE_MALFORMED : DECODE_TRUNCATED;
	uint32_t payload = wire_get16(ip + 4);
	if (payload == 0) // a jumbogram (RFC 2675), or a segment that the card is still to cut up
		payload = r->length - IPV6_HEADER;
	if (ip[0] >> 4 != 6 || payload > r->length - IPV6_HEADER)
		return DECODE_MALFORMED;
	struct endpoint src = {get64(ip + 8), get64(ip + 16)},
			dst = {get64(ip + 24), get64(ip + 32)};
	uint8_t proto = ip[6];

	p->ecn = ip[1] >> 4 & 3;
	p->ip_id = 0;
	take(r, IPV6_HEADER);
	r->length = payload;
	if (r->captured > payload)
		r->captured = payload;
	for (int i = 0; i < TAGS_MAX && ipv6_extension(proto); i++) {
		if (r->length < 8)
			return DECODE_MALFORMED;
		if (r->captured < 8)
			return DECODE_TRUNCATED;
		uint32_t size = proto == 44 ? 8
			: proto == 51	    ? (r->p[1] + 2u) * 4
					    : (r->p[1] + 1u) * 8;
		// Offset, or more to follow: an atomic fragment (RFC 6946) is a whole packet.
		if (proto == 44 && (wire_get16(r->p + 2) & 0xfff9u) != 0)
			return DECODE_FRAGMENT;
		if (size > r->length)
			return DECODE_MALFORMED;
		proto = r->p[0];
		if (!take(r, size))
			return DECODE_TRUNCATED;
	}
	return proto == WIRE_PROTO_TCP	  ? decode_tcp(r, &src, &dst, p)
		: proto == WIRE_PROTO_UDP ? decode_udp(r, &src, &dst, p)
					  : DECODE_NOT_TCP;
}

// By the first four bits, where nothing else says which IP it is.
static enum decode decode_ip(struct rest *r, struct packet *p) {
	if (r->captured == 0)
		return r->length == 0 ? DECODE_MALFORMED : DECODE_TRUNCATED;
	return r->p[0] >> 4 == 4    ? decode_ipv4(r, p)
		: r->p[0] >> 4 == 6 ? decode_ipv6(r, p)
				    : DECODE_NOT_IP;
}

// What follows an Ethernet type, behind VLAN tags, MPLS labels or PPPoE.
static enum decode decode_ethertype(struct rest *r, uint16_t type, struct packet *p) {
	for (int i = 0; i < TAGS_MAX; i++) {
		if (likely(type == WIRE_ETHERTYPE_IPV4))
			return decode_ipv4(r, p);
		if (type == WIRE_ETHERTYPE_IPV6)
			return decode_ipv6(r, p);
		if (type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ
			|| type == ETHERTYPE_QINQ_OLD) {
			if (!take(r, 4))
				return r->length < 4 ? DECODE_MALFORMED : DECODE_TRUNCATED;
			type = wire_get16(r->p - 2);
		} else if (type == ETHERTYPE_MPLS) {
			if (!take(r, 4))
				return r->length < 4 ? DECODE_MALFORMED : DECODE_TRUNCATED;
			if ((r->p[-2] & 1) != 0) // the last label
				return decode_ip(r, p);
		} else if (type == ETHERTYPE_PPPOE) {
			if (!take(r, 8))
				return r->length < 8 ? DECODE_MALFORMED : DECODE_TRUNCATED;
			uint16_t ppp = wire_get16(r->p - 2);
			type = ppp == 0x21    ? WIRE_ETHERTYPE_IPV4
				: ppp == 0x57 ? WIRE_ETHERTYPE_IPV6
					      : 0;
		} else {
			return DECODE_NOT_IP;
		}
	}
	return DECODE_NOT_IP;
}

// Nearly every frame: Ethernet, then IPv4 without options, then TCP. False: it must be looked at more closely.
static inline bool usual_frame(const struct frame *f, struct rest *r, struct packet *p) {
	const uint8_t *ip = f->data + WIRE_ETH;

	if (unlikely(f->link_type != LINK_ETHERNET || f->captured < WIRE_ETH + WIRE_IPV4
		    || wire_get16(f->data + 12) != WIRE_ETHERTYPE_IPV4 || ip[0] != 0x45
		    || ip[9] != WIRE_PROTO_TCP || (wire_get16(ip + 6) & WIRE_IP_FRAGMENT) != 0))
		return false;
	uint32_t total = wire_get16(ip + 2), captured = f->captured - WIRE_ETH;

	if (unlikely(total < WIRE_IPV4 || total > f->length - WIRE_ETH))
		return false;
	p->ecn = ip[1] & 3;
	p->ip_id = wire_get16(ip + 4);
	*r = (struct rest){ip + WIRE_IPV4, (captured < total ? captured : total) - WIRE_IPV4,
		total - WIRE_IPV4};
	return true;
}

enum decode decode_frame(const struct frame *f, struct packet *p) {
	struct rest r = {f->data, f->captured, f->length};
	uint32_t header, type_at;

	p->ts_ns = f->ts_ns;
	p->wire_bytes = f->length;
	if (likely(usual_frame(f, &r, p))) {
		const uint8_t *ip = f->data + WIRE_ETH;

		return decode_tcp(&r, &(struct endpoint){0, ENDPOINT_IPV4 | wire_get32(ip + 12)},
			&(struct endpoint){0, ENDPOINT_IPV4 | wire_get32(ip + 16)}, p);
	}
	switch (f->link_type) {
	case LINK_ETHERNET:
		header = WIRE_ETH;
		type_at = 12;
		break;
	case LINK_SLL:
		header = SLL_HEADER;
		type_at = 14;
		break;
	case LINK_SLL2:
		header = SLL2_HEADER;
		type_at = 0;
		break;
	case LINK_NULL: // a protocol family, in the byte order of whoever wrote it
	case LINK_LOOP:
		if (!take(&r, 4))
			return r.length < 4 ? DECODE_MALFORMED : DECODE_TRUNCATED;
		return decode_ip(&r, p);
	case LINK_RAW:
	case LINK_RAW_BSD:
	case LINK_RAW_OPENBSD:
	case LINK_IPV4:
	case LINK_IPV6:
		return decode_ip(&r, p);
	default:
		return DECODE_LINK_TYPE;
	}
	if (unlikely(!take(&r, header)))
		return r.length < header ? DECODE_MALFORMED : DECODE_TRUNCATED;
	return decode_ethertype(&r, wire_get16(f->data + type_at), p);
}
