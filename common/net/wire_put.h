// SPDX-License-Identifier: BSD-3-Clause
// Stores in the wire's byte order; each returns what follows. For the files that write frames.
#pragma once
#include "common/net/wire.h"

#include <assert.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "get and put swap bytes");

static inline uint8_t *wire_put16(uint8_t *p, uint32_t v) {
	uint16_t be = __builtin_bswap16((uint16_t)v);

	memcpy(p, &be, sizeof(be));
	return p + sizeof(be);
}

static inline uint8_t *wire_put32(uint8_t *p, uint32_t v) {
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *wire_put64(uint8_t *p, uint64_t v) {
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *wire_put_eth(
	uint8_t *p, const struct wire_mac *dst, const struct wire_mac *src, uint16_t ethertype) {
	memcpy(p, dst->b, 6);
	memcpy(p + 6, src->b, 6);
	return wire_put16(p + 12, ethertype);
}

#define WIRE_IPV6_NET UINT64_C(0x2001000200000000) // 2001:2::/96, of which the rest is zero

static inline uint8_t *wire_put_ipv6_address(uint8_t *p, uint32_t ip) {
	return wire_put64(wire_put64(p, WIRE_IPV6_NET), ip);
}

// What the addresses add to the checksum of a pseudo header (RFC 9293 section 3.1, RFC 8200 section
// 8.1).
static inline uint64_t wire_addr_sum(const struct wire_addr *a) {
	return (uint64_t)a->src_ip + a->dst_ip + (a->ipv6 ? 2 * (WIRE_IPV6_NET >> 32) : 0);
}

// Ethernet and IP headers of a packet whose payload has so many bytes; returns what follows.
uint8_t *wire_put_ip(uint8_t *p, const struct wire_addr *addr, uint8_t proto, uint8_t tos,
	uint16_t ip_id, uint32_t payload);
// The header of IPv6 alone.
uint8_t *wire_put_ipv6(
	uint8_t *p, const struct wire_addr *addr, uint8_t proto, uint8_t tos, uint32_t payload);
