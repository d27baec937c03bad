// SPDX-License-Identifier: BSD-3-Clause
// The answer to a packet that is larger than the next link's MTU: ICMP "fragmentation needed" (RFC
// 1191), ICMPv6 "packet too big" (RFC 4443 section 3.2). It begins with the IP header of the packet
// and at least eight bytes behind that, which name its flow and its sequence number.
//
// A switch has no IP address: its answer comes from the packet's destination.
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define ICMP_HEADER 8u
#define ICMP_ECHO_REPLY 0
#define ICMP_ECHO 8
#define ICMPV6_ECHO 128
#define ICMPV6_ECHO_REPLY 129
#define QUOTED 8u // of what is behind an IPv4 header (RFC 792)
#define IPV6_MTU_MIN 1280u
#define IP_OFFSET 0x1fffu
#define TTL 64

uint32_t wire_too_big_size(bool ipv6, uint32_t ip_len) {
	uint32_t most = IPV6_MTU_MIN - WIRE_IPV6 - ICMP_HEADER;

	if (!ipv6)
		return WIRE_ETH + WIRE_IPV4 + ICMP_HEADER + WIRE_IPV4 + QUOTED;
	return WIRE_ETH + WIRE_IPV6 + ICMP_HEADER + (ip_len < most ? ip_len : most);
}

// Whether it may be answered: a message of ICMP only if it is an echo, so that no error is answered
// by another (RFC 1122 section 3.2.2, RFC 4443 section 2.4), nor a packet to a group, nor a later
// fragment of IPv4.
static bool may_answer(const uint8_t *frame, size_t len, const struct wire_info *w) {
	uint8_t request = w->addr.ipv6 ? ICMPV6_ECHO : ICMP_ECHO;
	uint8_t reply = w->addr.ipv6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY;

	if ((frame[0] & 1) != 0 || w->proto == 0 || w->ip_len == 0)
		return false;
	if (!w->addr.ipv6 && (wire_get16(frame + WIRE_ETH + 6) & IP_OFFSET) != 0)
		return false;
	if (w->proto != WIRE_PROTO_ICMP && w->proto != WIRE_PROTO_ICMPV6)
		return true;
	return w->l4_offset < len && (!w->addr.ipv6 || !w->fragment)
		&& (frame[w->l4_offset] == request || frame[w->l4_offset] == reply);
}

static uint8_t *put_ipv4(uint8_t *p, const uint8_t *ip, uint32_t payload) {
	uint8_t *header = p;

	p = wire_put32(p, 0x45u << 24 | (WIRE_IPV4 + payload));
	p = wire_put32(p, 0);
	p = wire_put32(p, TTL << 24 | WIRE_PROTO_ICMP << 16);
	memcpy(p, ip + 16, 4);
	memcpy(p + 4, ip + 12, 4);
	wire_put16(header + 10, wire_fold(wire_sum(header, WIRE_IPV4, 0)));
	return p + 8;
}

static uint8_t *put_ipv6(uint8_t *p, const uint8_t *ip, uint32_t payload) {
	p = wire_put32(p, 6u << 28);
	p = wire_put32(p, payload << 16 | WIRE_PROTO_ICMPV6 << 8 | TTL);
	memcpy(p, ip + 24, 16);
	memcpy(p + 16, ip + 8, 16);
	return p + 32;
}

size_t wire_write_too_big(uint8_t *buf, const uint8_t *frame, size_t len, uint32_t mtu) {
	const uint8_t *ip = frame + WIRE_ETH;
	struct wire_info w = {0};
	uint32_t size, payload;
	uint8_t *p, *icmp;

	if (len < WIRE_ETH + WIRE_IPV4 + QUOTED)
		return 0;
	wire_read(frame, len, &w);
	size = wire_too_big_size(w.addr.ipv6, w.ip_len);
	if (!may_answer(frame, len, &w) || w.l4_offset < WIRE_ETH + WIRE_IPV4
		|| (w.addr.ipv6 ? WIRE_ETH + w.ip_len > len : ip[0] != 0x45))
		return 0;
	memcpy(buf, frame + 6, 6);
	memcpy(buf + 6, frame, 6);
	p = wire_put16(buf + 12, w.ethertype);
	payload = size - WIRE_ETH - wire_ip_header(w.addr.ipv6);
	icmp = p = w.addr.ipv6 ? put_ipv6(p, ip, payload) : put_ipv4(p, ip, payload);
	p = wire_put32(p, w.addr.ipv6 ? 2u << 24 : 3u << 24 | 4u << 16);
	p = wire_put32(p, w.addr.ipv6 ? mtu : mtu & UINT16_MAX);
	memcpy(p, ip, payload - ICMP_HEADER);
	wire_put16(icmp + 2,
		wire_fold(wire_sum(icmp, payload,
			w.addr.ipv6 ? wire_frame_sum(buf, true) + WIRE_PROTO_ICMPV6 + payload
				    : 0)));
	return size;
}

bool wire_too_big_quote(
	const uint8_t *frame, size_t len, const struct wire_info *info, struct wire_quote *q) {
	const uint8_t *ip = frame + info->l4_offset + ICMP_HEADER;
	bool ipv6 = info->addr.ipv6;
	size_t header = wire_ip_header(ipv6);

	if (info->l4_offset + ICMP_HEADER + header + QUOTED > len
		|| (ipv6 ? ip[0] >> 4 != 6 : ip[0] != 0x45) || ip[ipv6 ? 6 : 9] != WIRE_PROTO_TCP)
		return false;
	q->addr = (struct wire_addr){.ipv6 = ipv6,
		.src_ip = ipv6 ? wire_get_ipv6_address(ip + 8) : wire_get32(ip + 12),
		.dst_ip = ipv6 ? wire_get_ipv6_address(ip + 24) : wire_get32(ip + 16),
		.src_port = wire_get16(ip + header),
		.dst_port = wire_get16(ip + header + 2)};
	q->seq = wire_get32(ip + header + 4);
	return true;
}
