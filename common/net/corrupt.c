// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/corrupt.h"

#include "common/net/wire.h"
#include "common/net/wire_ip.h"

// The first byte of each transport header from which on a bit may be flipped: behind TCP's data
// offset and flags, behind UDP's header, behind ICMP's type, which a receiver looks at before the
// checksum.
#define TCP_FROM 14
#define UDP_FROM 8
#define OTHER_FROM 2

static size_t transport_from(uint8_t protocol) {
	return protocol == WIRE_PROTO_TCP    ? TCP_FROM
		: protocol == WIRE_PROTO_UDP ? UDP_FROM
					     : OTHER_FROM;
}

size_t corrupt_bit(const uint8_t *frame, size_t len, uint64_t draw) {
	struct wire_walk w = wire_walk(frame, len);
	size_t end = w.end < len ? w.end : len, from = WIRE_ETH;

	if (w.ip > 0) // the rest of a fragmented packet has no transport header
		from = w.l4 + (w.later ? 0 : transport_from(w.proto));
	if (from >= end) { // too short for what its header says
		from = w.ip < len ? w.ip : 0;
		end = len;
	}
	if (from >= end)
		return SIZE_MAX;
	return 8 * from + (size_t)(draw % (8 * (end - from)));
}

void corrupt_frame(uint8_t *frame, size_t len, uint64_t draw) {
	size_t bit = corrupt_bit(frame, len, draw);

	if (bit != SIZE_MAX)
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
}
