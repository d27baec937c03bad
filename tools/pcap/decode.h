// SPDX-License-Identifier: BSD-3-Clause
// From a captured frame to its TCP segment: link layer with VLAN tags, tunnels, IPv4 and IPv6 with
// extension headers, as much of the TCP header as was captured. Of a UDP datagram: its ports and
// payload. In a tunnel the innermost segment is the one that is read. Checksums are not verified: a
// host that offloads them captures wrong ones.
#pragma once
#include "common/base/json.h"
#include "common/net/seg.h"
#include "common/pcap/reader.h"

#include <stdbool.h>
#include <stdint.h>

// What became of a frame. Every one of a capture is counted under exactly one of these.
#define DECODE_VALUES(V)                                                                           \
	V(DECODE_TCP, "tcp", "analysed")                                                           \
	V(DECODE_NOT_IP, "not_ip", "ARP, LLDP, ...")                                               \
	V(DECODE_UDP, "udp", "compared, not analysed")                                             \
	V(DECODE_NOT_TCP, "not_tcp", "ICMP, SCTP, ...")                                            \
	V(DECODE_ENCRYPTED, "encrypted", "ESP, MACsec, 802.11 with a key: nothing to read")        \
	V(DECODE_FRAGMENT, "fragments", "IP fragments, which hold no whole segment")               \
	V(DECODE_TRUNCATED, "truncated", "the snap length ends before the TCP or UDP header does") \
	V(DECODE_MALFORMED, "malformed", "lengths that contradict each other")                     \
	V(DECODE_LINK_TYPE, "link_type", "of a link type that is not read")
#define DECODE_ENUM_(constant, name, meaning) constant,
enum decode { DECODE_VALUES(DECODE_ENUM_) DECODE_COUNT };

// What carried the packet, or hides what it carries.
#define TUNNEL_VALUES(V)                                                                           \
	V(TUNNEL_NONE, "none")                                                                     \
	V(TUNNEL_VXLAN, "VXLAN")                                                                   \
	V(TUNNEL_GENEVE, "Geneve")                                                                 \
	V(TUNNEL_GRE, "GRE")                                                                       \
	V(TUNNEL_ERSPAN, "ERSPAN")                                                                 \
	V(TUNNEL_IP_IN_IP, "IP in IP")                                                             \
	V(TUNNEL_GTP, "GTP-U")                                                                     \
	V(TUNNEL_TEREDO, "Teredo")                                                                 \
	V(TUNNEL_ETHERIP, "Ethernet in IP")                                                        \
	V(TUNNEL_MPLS_IN_IP, "MPLS in IP")                                                         \
	V(TUNNEL_WIREGUARD, "WireGuard")                                                           \
	V(TUNNEL_OPENVPN, "OpenVPN")                                                               \
	V(TUNNEL_ESP, "IPsec ESP")                                                                 \
	V(TUNNEL_MACSEC, "MACsec")                                                                 \
	V(TUNNEL_WIFI, "802.11 with a key")
#define TUNNEL_ENUM_(constant, name) constant,
enum tunnel { TUNNEL_VALUES(TUNNEL_ENUM_) TUNNEL_COUNT };
#define TUNNEL_ENCRYPTED TUNNEL_WIREGUARD // this one and those behind it

// One end of a connection: an IPv4 address as IPv6 has it (::ffff:192.0.2.1), both halves in host
// order.
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
	// Not decode_frame's:
	uint64_t first_ns; // when it was seen first, if it is a copy
	uint64_t alike_ns; // data: when such a one was seen at its point before; 0: it was not
	uint16_t point; // where it was captured
	uint16_t epoch; // of the clock
	uint8_t copy; // enum copy
	uint8_t others; // COPY_OTHER: at how many points but the first it was seen so far
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
	uint8_t tunnel; // enum tunnel, the innermost
	bool ipv4; // both ends of `key`
	bool length_from_ip; // the frame's was lost with what was cut off
	struct seg seg; // TCP only; len is not used: see payload
};

// Options that cannot be read are left out, the rest of the segment is good.
enum decode_options {
	DECODE_OPTIONS_WHOLE,
	DECODE_OPTIONS_CUT, // the snap length ends within them
	DECODE_OPTIONS_BAD, // their lengths are wrong
};

// DECODE_TCP, DECODE_UDP: *p is filled in; else only times, sizes and `tunnel`.
enum decode decode_frame(const struct frame *f, struct packet *p);

#define DECODE_UNREAD_MAX 8u

// The packets of captures, by what became of them.
struct decode_count {
	uint64_t what[DECODE_COUNT];
	uint64_t tunnel[TUNNEL_COUNT]; // of those not in TUNNEL_NONE
	uint64_t lengths_from_ip;
	struct decode_unread {
		uint16_t link_type;
		uint64_t packets;
	} unread[DECODE_UNREAD_MAX]; // the first link types that are not read
	uint32_t unread_count;
};

// decode_frame, and counts.
enum decode decode_counted(const struct frame *f, struct packet *p, struct decode_count *c);
uint64_t decode_total(const struct decode_count *c);
// Packets whose content is encrypted.
uint64_t decode_encrypted(const struct decode_count *c);
// The headings of a ledger, into an open object; what was read of what is not on it: facts beside
// it.
void decode_ledger(const struct decode_count *c, struct json *j);
void decode_tunnels(const struct decode_count *c, struct json *j);
void decode_link_types(const struct decode_count *c, struct json *j);
// Nothing that can be analysed was found, and here is why: a sentence; false: link types and
// tunnels are not the reason.
bool decode_why_nothing(const struct decode_count *c, char *text, size_t size);
