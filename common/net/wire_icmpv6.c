// SPDX-License-Identifier: BSD-3-Clause
// Neighbour discovery (RFC 4861), ICMPv6 echo, and the path MTU that a router reports (RFC 4443,
// RFC 8201).
#include "common/net/wire_icmpv6.h"

#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#include <string.h>

#define HEADER 8u
#define TARGET 24u // header and target of a solicitation or an advertisement
#define LINK_ADDRESS 8u // an option: type, length 1, MAC address
#define TOO_BIG 2
#define ECHO_REQUEST 128
#define ECHO_REPLY 129
#define SOLICITATION 135
#define ADVERTISEMENT 136
#define SOURCE_ADDRESS 1
#define TARGET_ADDRESS 2
#define SOLICITED_OVERRIDE 0x60000000u
#define IPV6_MTU_MIN 1280u // RFC 8200 section 5
#define HOP_LIMIT 255 // no router has passed it on (RFC 4861 section 7.1)

static_assert(WIRE_NEIGHBOUR == WIRE_ETH + WIRE_IPV6 + TARGET + LINK_ADDRESS, "the whole frame");

static uint32_t pseudo_sum(const uint8_t *frame, size_t size) {
	return wire_frame_sum(frame, true) + WIRE_PROTO_ICMPV6 + (uint32_t)size;
}

// A whole ICMPv6 message of that type, of code 0, with a good checksum, without extension headers;
// its size, 0: none.
static size_t message_size(
	const uint8_t *frame, size_t len, const struct wire_info *info, uint8_t type) {
	const uint8_t *icmp = frame + WIRE_ETH + WIRE_IPV6;

	if (!info->addr.ipv6 || info->proto != WIRE_PROTO_ICMPV6 || info->fragment
		|| info->l4_offset != WIRE_ETH + WIRE_IPV6 || info->ip_len < WIRE_IPV6 + HEADER
		|| len < (size_t)WIRE_ETH + info->ip_len)
		return 0;
	size_t size = info->ip_len - (size_t)WIRE_IPV6;
	bool good = icmp[0] == type && icmp[1] == 0
		&& wire_fold(wire_sum(icmp, size, pseudo_sum(frame, size))) == 0;
	return good ? size : 0;
}

uint32_t wire_icmpv6_mtu(const uint8_t *frame, size_t len, const struct wire_info *info) {
	uint32_t mtu;

	if (message_size(frame, len, info, TOO_BIG) == 0)
		return 0;
	mtu = wire_get32(frame + WIRE_ETH + WIRE_IPV6 + 4);
	return mtu > IPV6_MTU_MIN ? mtu : IPV6_MTU_MIN;
}

// The addresses change places, which adds up to the same; the type is one more.
bool wire_icmpv6_echo(uint8_t *frame, size_t len, const struct wire_info *info) {
	uint8_t *ip = frame + WIRE_ETH, *icmp = ip + WIRE_IPV6, address[16];
	size_t size = message_size(frame, len, info, ECHO_REQUEST);

	if (size == 0 || (frame[0] & 1) != 0)
		return false;
	memcpy(frame, info->addr.src_mac.b, 6);
	memcpy(frame + 6, info->addr.dst_mac.b, 6);
	memcpy(address, ip + 8, sizeof(address));
	memcpy(ip + 8, ip + 24, sizeof(address));
	memcpy(ip + 24, address, sizeof(address));
	icmp[0] = ECHO_REPLY;
	wire_put16(icmp + 2, 0);
	wire_put16(icmp + 2, wire_fold(wire_sum(icmp, size, pseudo_sum(frame, size))));
	return true;
}

// The MAC address in an option of that type; else that of the frame's source.
static struct wire_mac link_address(
	const uint8_t *icmp, size_t size, uint8_t type, const struct wire_mac *source) {
	struct wire_mac mac = *source;

	for (size_t at = TARGET; at + LINK_ADDRESS <= size && icmp[at + 1] > 0;
		at += 8u * icmp[at + 1]) {
		if (icmp[at] == type && icmp[at + 1] == 1)
			memcpy(mac.b, icmp + at + 2, sizeof(mac.b));
	}
	return mac;
}

// A host that asks whether another has the address that it wants (RFC 4862) has none.
static bool is_unspecified(const uint8_t *address) {
	static const uint8_t none[16];

	return memcmp(address, none, sizeof(none)) == 0;
}

bool wire_parse_neighbour(
	const uint8_t *frame, size_t len, const struct wire_info *info, struct wire_arp *arp) {
	const uint8_t *icmp = frame + WIRE_ETH + WIRE_IPV6;
	size_t size = message_size(frame, len, info, SOLICITATION);
	uint32_t target;

	arp->request = size > 0;
	if (size == 0)
		size = message_size(frame, len, info, ADVERTISEMENT);
	if (size < TARGET || frame[WIRE_ETH + 7] != HOP_LIMIT)
		return false;
	target = wire_get_ipv6_address(icmp + HEADER);
	arp->sender_mac = link_address(
		icmp, size, arp->request ? SOURCE_ADDRESS : TARGET_ADDRESS, &info->addr.src_mac);
	arp->sender_ip = arp->request ? info->addr.src_ip : target;
	arp->target_ip = arp->request ? target : info->addr.dst_ip;
	return !is_unspecified(frame + WIRE_ETH + 8) && (arp->sender_mac.b[0] & 1) == 0;
}

// Writes the option with a MAC address, and the checksum of all of it.
static void put_end(uint8_t *frame, uint8_t type, const struct wire_mac *mac) {
	uint8_t *icmp = frame + WIRE_ETH + WIRE_IPV6;
	const size_t size = TARGET + LINK_ADDRESS;

	icmp[TARGET] = type;
	icmp[TARGET + 1] = 1;
	memcpy(icmp + TARGET + 2, mac->b, sizeof(mac->b));
	wire_put16(icmp + 2, wire_fold(wire_sum(icmp, size, pseudo_sum(frame, size))));
}

// To the group of the target's solicited nodes, ff02::1:ff00:0/104 (RFC 4291 section 2.7.1).
void wire_write_solicitation(uint8_t *buf, const struct wire_arp *arp) {
	uint32_t group = 0xff000000u | arp->target_ip;
	struct wire_mac to = {{0x33, 0x33}};
	uint8_t *p;

	wire_put32(to.b + 2, group);
	p = wire_put_eth(buf, &to, &arp->sender_mac, WIRE_ETHERTYPE_IPV6);
	p = wire_put32(p, 6u << 28);
	p = wire_put32(p, (TARGET + LINK_ADDRESS) << 16 | WIRE_PROTO_ICMPV6 << 8 | HOP_LIMIT);
	p = wire_put_ipv6_address(p, arp->sender_ip);
	p = wire_put64(wire_put64(p, UINT64_C(0xff02) << 48), UINT64_C(1) << 32 | group);
	p = wire_put64(p, (uint64_t)SOLICITATION << 56);
	wire_put_ipv6_address(p, arp->target_ip);
	put_end(buf, SOURCE_ADDRESS, &arp->sender_mac);
}

void wire_advertise(uint8_t *frame, const struct wire_mac *mac) {
	uint8_t *ip = frame + WIRE_ETH, *icmp = ip + WIRE_IPV6;

	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, mac->b, 6);
	wire_put16(ip + 4, TARGET + LINK_ADDRESS);
	memcpy(ip + 24, ip + 8, 16);
	memcpy(ip + 8, icmp + HEADER, 16);
	wire_put32(icmp, (uint32_t)ADVERTISEMENT << 24);
	wire_put32(icmp + 4, SOLICITED_OVERRIDE);
	put_end(frame, TARGET_ADDRESS, mac);
}
