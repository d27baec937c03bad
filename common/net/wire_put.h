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

static inline uint8_t *wire_put_eth(
	uint8_t *p, const struct wire_mac *dst, const struct wire_mac *src, uint16_t ethertype) {
	memcpy(p, dst->b, 6);
	memcpy(p + 6, src->b, 6);
	return wire_put16(p + 12, ethertype);
}
