// SPDX-License-Identifier: BSD-3-Clause
// Wire codecs: Ethernet II, ARP (RFC 826), IPv4 (RFC 791), IPv6 (RFC 8200) with neighbour discovery
// (RFC 4861), ICMP echo (RFC 792, RFC 4443), TCP (RFC 9293) with MSS, window scale and timestamps
// (RFC 7323), SACK (RFC 2018), AccECN (RFC 9768), UDP (RFC 768). Pure: bytes in, structs out.
//
// Hosts have IPv4 addresses, and in IPv6 the same ones in the last 32 bits of 2001:2::/96, which is
// set aside for benchmarks as 198.18.0.0/15 is (RFC 5180): 198.18.0.1 is 2001:2::c612:1. So an
// address is one number everywhere, with a word beside it that says which protocol it is of.
//
// wire.c has the per-packet part of TCP, wire_udp.c UDP, wire_ipv6.c the header of IPv6, wire_any.c
// what a switch reads of any frame, wire_arp_icmp.c and wire_icmpv6.c the rest.
//
// Addresses and ports are in host byte order everywhere outside these files; MAC addresses are six
// bytes in wire order. Frames exclude the FCS; struct pkt.size_bytes includes it (+ WIRE_FCS).
#pragma once
#include "common/base/likely.h"
#include "common/net/seg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_FCS 4u
#define WIRE_ETH 14u
#define WIRE_TAG 4u // of a VLAN
#define WIRE_IPV4 20u
#define WIRE_IPV6 40u
#define WIRE_TCP 20u
#define WIRE_UDP 8u
#define WIRE_UDP_NUMBERS 8u // seq and ack, the first bytes of a datagram's payload
#define WIRE_MIN_FRAME 60u // without FCS
#define WIRE_OVERHEAD 20u // preamble, start delimiter and inter-frame gap
#define WIRE_HEADER_MAX (WIRE_ETH + WIRE_IPV6 + WIRE_TCP + 40u)
#define WIRE_HEADER_PLAIN (WIRE_ETH + WIRE_IPV4 + WIRE_TCP + 12u) // timestamps, no other option

#define WIRE_ETHERTYPE_IPV4 0x0800
#define WIRE_ETHERTYPE_ARP 0x0806
#define WIRE_ETHERTYPE_IPV6 0x86dd
#define WIRE_ETHERTYPE_VLAN 0x8100 // IEEE 802.1Q
#define WIRE_ETHERTYPE_QINQ 0x88a8 // the outer tag of two, IEEE 802.1ad
#define WIRE_PROTO_ICMP 1
#define WIRE_PROTO_TCP 6
#define WIRE_PROTO_UDP 17
#define WIRE_PROTO_ICMPV6 58

struct wire_mac {
	uint8_t b[6];
};

// The 5-tuple's addresses with the frame's ends: everything a connection's header needs.
struct wire_addr {
	struct wire_mac src_mac, dst_mac;
	uint32_t src_ip, dst_ip;
	uint16_t src_port, dst_port;
	bool ipv6; // the addresses are the last 32 bits of those; 0: one outside 2001:2::/96
};

// The other direction's.
static inline struct wire_addr wire_addr_back(const struct wire_addr *a) {
	return (struct wire_addr){
		a->dst_mac, a->src_mac, a->dst_ip, a->src_ip, a->dst_port, a->src_port, a->ipv6};
}

// Bytes of an IP header without options.
static inline uint32_t wire_ip_header(bool ipv6) {
	return ipv6 ? WIRE_IPV6 : WIRE_IPV4;
}

// What an Ethernet frame holds, as far as a switch or a host must know.
struct wire_info {
	struct wire_addr addr; // ports 0 unless TCP or UDP and not a later fragment
	uint16_t ethertype;
	uint8_t proto; // of IPv6 that behind the extension headers; 0: not IP
	uint8_t ecn, dscp; // 0 unless IP
	uint32_t ip_len; // with the IP header; the frame may be padded beyond it
	uint16_t l4_offset; // from the start of the frame
	bool fragment;
};

enum wire_status { WIRE_OK, WIRE_TRUNCATED, WIRE_BAD_HEADER, WIRE_BAD_CHECKSUM };

// Reads Ethernet and, for IP, its header (IPv4's checksum is verified) and the ports. Of a frame
// that is not good *info says nothing.
enum wire_status wire_parse(const uint8_t *frame, size_t len, struct wire_info *info);
// The same for a frame that is known to be good (wire_ip.h), or of which only the first `len`
// bytes, WIRE_ETH or more, are known: what lies beyond them is not read.
void wire_read(const uint8_t *frame, size_t len, struct wire_info *info);
// Reads the TCP segment behind a frame that wire_parse found good. `verify` checks the TCP checksum
// too. Unknown options are passed over, MSS, window scale and SACK-permitted but on a SYN too; a
// window scale above 14 is read as 14 (RFC 7323). An option that runs out of its bounds is
// WIRE_BAD_HEADER. Only what sack_count says of seg->sack is meaningful.
enum wire_status wire_parse_tcp(
	const uint8_t *frame, const struct wire_info *info, bool verify, struct seg *seg);

// The same for a TCP header alone, of which `size` bytes are there, WIRE_TCP or more: a capture may
// end within its options. WIRE_BAD_HEADER: an option runs out of them; what precedes it was read.
// seg->len is 0.
enum wire_status wire_parse_tcp_header(const uint8_t *tcp, size_t size, struct seg *seg);

// Bytes of TCP header (options included) that the segment needs. SACK blocks that do not fit into
// 40 bytes of options are left out: with timestamps the fourth; then fields of the AccECN option.
size_t wire_tcp_header(const struct seg *seg);
// Frame length without FCS (never below 60) of a segment, or of a datagram, behind an IP header of
// `ip` bytes.
size_t wire_tcp_frame_any(const struct seg *seg, uint32_t ip);
// With timestamps alone, as nearly all are, it is longer than the least.
static inline size_t wire_tcp_frame_usual(const struct seg *seg, uint32_t ip) {
	return WIRE_ETH + ip + WIRE_TCP + 12 + (size_t)seg->len;
}
static inline size_t wire_tcp_frame(const struct seg *seg, uint32_t ip) {
	if (likely(seg->options == SEG_OPT_TS && seg->sack_count == 0))
		return wire_tcp_frame_usual(seg, ip);
	return wire_tcp_frame_any(seg, ip);
}
// Writes Ethernet, IP and TCP headers with checksums; `tos` is DSCP * 4 + ECN; the payload is
// seg->len zero bytes, which the caller provides (they add nothing to a checksum) and which this
// function does not touch, and likewise the padding of a short frame. `buf` has WIRE_HEADER_MAX
// bytes; header and payload fit into an IP packet. IPv6 has no ip_id, and a flow label by the
// addresses (RFC 6437). Returns the header length.
size_t wire_write_tcp(uint8_t *buf, const struct wire_addr *addr, uint8_t tos, uint16_t ip_id,
	const struct seg *seg);

// The same for a datagram (SEG_OPT_UDP). Its payload is seg->len bytes, of which the first are seq
// and ack, or these alone if len is 0. They count as header.
size_t wire_write_udp(uint8_t *buf, const struct wire_addr *addr, uint8_t tos, uint16_t ip_id,
	const struct seg *seg);
// Reads the datagram behind a frame that wire_parse found good; seg->len is its payload.
enum wire_status wire_parse_udp(
	const uint8_t *frame, const struct wire_info *info, bool verify, struct seg *seg);

// What the frames of one connection have in common, for a sender of many: nearly every segment
// carries timestamps and no other option.
struct wire_template {
	struct wire_addr addr;
	uint64_t eth[2]; // the frame's first 16 bytes: Ethernet, and IPv4 to the TOS
};
void wire_template_init(struct wire_template *t, const struct wire_addr *addr);
// Other ends of a connection between the same MAC addresses.
static inline void wire_template_ends(struct wire_template *t, uint32_t src_ip, uint16_t src_port,
	uint32_t dst_ip, uint16_t dst_port, bool ipv6) {
	t->addr.src_ip = src_ip;
	t->addr.dst_ip = dst_ip;
	t->addr.src_port = src_port;
	t->addr.dst_port = dst_port;
	t->addr.ipv6 = ipv6;
}
static inline bool wire_is_plain(const struct seg *seg) {
	return seg->options == SEG_OPT_TS && seg->sack_count == 0;
}
// wire_write_tcp for such a segment in IPv4: the same bytes, WIRE_HEADER_PLAIN of them.
void wire_write_plain(uint8_t *buf, const struct wire_template *t, uint8_t tos, uint16_t ip_id,
	const struct seg *seg);
// wire_parse and wire_parse_tcp in one for a good frame of such a segment, in IPv4 without options.
// False:
// it is another, or not good, and these two say what it is.
bool wire_parse_plain(
	const uint8_t *frame, size_t len, bool verify, struct wire_info *info, struct seg *seg);
// What tells the flows of packets apart, of IPv4 and IPv6, with up to two VLAN tags before it. All
// zero: neither.
struct wire_flow {
	uint32_t src,
		dst; // IPv4 addresses, or the last 32 bits of 2001:2::/96; of other IPv6 a hash
	// 0 unless TCP or UDP, and of fragments: the later ones have no ports, and those of a
	// packet are one flow.
	uint16_t src_port, dst_port;
	uint8_t proto; // of IPv6 that behind the extension headers
	bool ipv6;
};
void wire_read_flow(const uint8_t *frame, size_t len, struct wire_flow *flow);

// How long a frame is without padding and FCS as its IPv4 or IPv6 header says, of which at least 20
// bytes are there; 0:
// it does not say.
size_t wire_length(const uint8_t *frame, size_t len);
// The ECN bits of IPv4 or IPv6, with up to two VLAN tags before it; ECN_NOT_ECT of any other frame.
// wire_ecn (wire_ip.h) is the same, faster for untagged IPv4.
uint8_t wire_ecn_any(const uint8_t *frame, size_t len);
// VLAN tags in front of an IP header, up to two.
uint32_t wire_tags(const uint8_t *frame, size_t len);
// The MTU of the host that sent a SYN, by its MSS option; 0: it has none, or the frame is no SYN.
uint32_t wire_syn_mtu(const uint8_t *frame, size_t len);
// Sets the ECN bits where wire_ecn found them, and repairs the checksum of an IPv4 header (RFC
// 1624).
void wire_set_ecn(uint8_t *frame, size_t len, uint8_t ecn);

struct wire_arp {
	bool request; // else a reply
	struct wire_mac sender_mac;
	uint32_t sender_ip;
	uint32_t target_ip;
};
enum wire_status wire_parse_arp(const uint8_t *frame, size_t len, struct wire_arp *arp);
// Writes a 60-byte ARP frame: a broadcast request (target_mac is not read), or a reply to target.
size_t wire_write_arp(uint8_t *buf, const struct wire_arp *arp, const struct wire_mac *target_mac);
// Neighbour discovery, which is ARP in IPv6: reads a solicitation or an advertisement. An address
// outside 2001:2::/96 is 0. False: it is none.
bool wire_parse_neighbour(
	const uint8_t *frame, size_t len, const struct wire_info *info, struct wire_arp *arp);
// Writes a solicitation of WIRE_NEIGHBOUR bytes.
#define WIRE_NEIGHBOUR 86u
void wire_write_solicitation(uint8_t *buf, const struct wire_arp *arp);
// Turns a solicitation in place into the advertisement of its target at `mac`. `frame` has room for
// WIRE_NEIGHBOUR bytes, which the answer has.
void wire_advertise(uint8_t *frame, const struct wire_mac *mac);
// The MTU of the next hop that an ICMP "fragmentation needed" (RFC 1191) or an ICMPv6 "packet too
// big" (RFC 8201) reports; 0: it is none.
uint32_t wire_path_mtu(const uint8_t *frame, size_t len, const struct wire_info *info);
// That answer to a frame without VLAN tags: its size, at most WIRE_TOO_BIG_MAX; 0: the frame gets
// none. `frame` and `buf` do not overlap.
#define WIRE_TOO_BIG_MAX (WIRE_ETH + 1280u)
size_t wire_write_too_big(uint8_t *buf, const uint8_t *frame, size_t len, uint32_t mtu);
// Its size for a packet of ip_len bytes.
uint32_t wire_too_big_size(bool ipv6, uint32_t ip_len);
// The TCP segment that such an answer is about, of the message in which wire_path_mtu found an MTU.
// False: of no such segment.
struct wire_quote {
	struct wire_addr addr; // its sender's, without MAC addresses
	uint32_t seq;
};
bool wire_too_big_quote(
	const uint8_t *frame, size_t len, const struct wire_info *info, struct wire_quote *q);
// Turns an ICMP echo request in place into its reply; false if it is none.
bool wire_echo_reply(uint8_t *frame, size_t len, const struct wire_info *info);

// Internet checksum (RFC 1071), in host byte order throughout. Adds bytes to a partial sum; only
// the last piece may be of odd length.
uint32_t wire_sum(const void *bytes, size_t len, uint32_t sum);
// Folds a sum and complements it: the checksum to write; 0 over bytes that hold a good one.
uint16_t wire_fold(uint32_t sum);
// The checksum after one 16-bit word of what it covers has changed (RFC 1624, equation 3).
uint16_t wire_csum_replace(uint16_t csum, uint16_t was, uint16_t is);
