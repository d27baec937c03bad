// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/corrupt.h"

#include "common/net/wire.h"
#include "common/net/wire_ip.h"

#define VLAN 0x8100
#define VLAN_SERVICE 0x88a8
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_OFFSET 0x1fff
#define IPV6_HEADER 40
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
	size_t ip = 14, from, end = len;

	while (ip + 4 <= len && ip < 22
		&& (wire_get16(frame + ip - 2) == VLAN
			|| wire_get16(frame + ip - 2) == VLAN_SERVICE))
		ip += 4;
	from = ip;
	if (ip + WIRE_IPV4 <= len && wire_get16(frame + ip - 2) == WIRE_ETHERTYPE_IPV4) {
		// The rest of a fragmented packet has no transport header.
		bool first = (wire_get16(frame + ip + 6) & IPV4_OFFSET) == 0;

		from = ip + 4u * (frame[ip] & 15) + (first ? transport_from(frame[ip + 9]) : 0);
		end = ip + wire_get16(frame + ip + 2);
	} else if (ip + IPV6_HEADER <= len && wire_get16(frame + ip - 2) == ETHERTYPE_IPV6) {
		from = ip + IPV6_HEADER + transport_from(frame[ip + 6]);
		end = ip + IPV6_HEADER + wire_get16(frame + ip + 4);
	}
	end = end < len ? end : len;
	if (from >= end) { // too short for what its header says
		from = ip < len ? ip : 0;
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
