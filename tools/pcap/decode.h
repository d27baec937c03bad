// SPDX-License-Identifier: BSD-3-Clause
// From a captured frame to its TCP segment: link layer with VLAN tags, IPv4 and IPv6 with extension headers, as much
// of the TCP header as was captured. Of a UDP datagram: its ports and payload. Checksums are not verified: a host that offloads them captures wrong ones.
#pragma once
#include "common/net/seg.h"
#include "common/pcap/reader.h"

#include <stdbool.h>
#include <stdint.h>

// What became of a frame. Every one of a capture is counted under exactly one of these.
#define DECODE_VALUES(V)                                                                           \
	V(DECODE_TCP, "tcp", "analysed")                                                           \
	V(DECODE_NOT_IP, "not_ip", "ARP, LLDP, MPLS, ...")                                         \
	V(DECODE_UDP, "udp", "compared, not analysed")                                             \
	V(DECODE_NOT_TCP, "not_tcp", "ICMP, tunnels, ...")                                         \
	V(DECODE_FRAGMENT, "fragments", "IP fragments, which hold no whole segment")               \
	V(DECODE_TRUNCATED, "truncated", "the snap length ends before the TCP or UDP header does") \
	V(DECODE_MALFORMED, "malformed", "lengths that contradict each other")                     \
	V(DECODE_LINK_TYPE, "link_type", "of a link type that is not read")
#define DECODE_ENUM_(constant, name, meaning) constant,
enum decode { DECODE_VALUES(DECODE_ENUM_) DECODE_COUNT };

// One end of a connection: an IPv4 address as IPv6 has it (::ffff:192.0.2.1), both halves in host order.
struct endpoint {
	uint64_t high, low;
};
#define ENDPOINT_IPV4 UINT64_C(0xffff00000000)

static inline bool endpoint_is_ipv4(const struct endpoint *e) {
	return e->high == 0 && e->low >> 32 == 0xffff;
}

// A connection's two ends, in an order that does not depend on the direction.
struct flow_key {
	struct endpoint end[2];
	uint16_t port[2];
	uint32_t udp; // 1 or 0
};

struct packet {
	uint64_t ts_ns;
	struct flow_key key;
	uint32_t hash;
	uint32_t payload; // bytes of the segment, whether or not they were captured
	uint32_t captured; // of them
	const uint8_t *data; // these, in the frame
	uint32_t wire_bytes;
	uint16_t ip_id; // 0: none (IPv6)
	uint8_t ecn;
	uint8_t from; // which end of `key` sent it
	uint8_t options; // enum decode_options
	bool ipv4; // both ends of `key`
	struct seg seg; // TCP only; len is not used: see payload
};

// Options that cannot be read are left out, the rest of the segment is good.
enum decode_options {
	DECODE_OPTIONS_WHOLE,
	DECODE_OPTIONS_CUT, // the snap length ends within them
	DECODE_OPTIONS_BAD, // their lengths are wrong
};

// DECODE_TCP, DECODE_UDP: *p is filled in.
enum decode decode_frame(const struct frame *f, struct packet *p);
