// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a frame: nothing is read outside it, and what was read can be written and read
// again.
#include "common/net/wire_ip.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

static uint8_t written[WIRE_HEADER_MAX + UINT16_MAX];

static bool same_addr(const struct wire_addr *a, const struct wire_addr *b) {
	return memcmp(&a->src_mac, &b->src_mac, sizeof(a->src_mac)) == 0
		&& memcmp(&a->dst_mac, &b->dst_mac, sizeof(a->dst_mac)) == 0
		&& a->src_ip == b->src_ip && a->dst_ip == b->dst_ip && a->src_port == b->src_port
		&& a->dst_port == b->dst_port && a->ipv6 == b->ipv6;
}

// SACK blocks may be lost for want of room: options were packed closer than we write them.
static void check_tcp(const uint8_t *frame, const struct wire_info *info) {
	struct wire_info reparsed;
	struct seg got;
	struct seg seg;

	if (wire_parse_tcp(frame, info, true, &seg) != WIRE_OK
		&& wire_parse_tcp(frame, info, false, &seg) != WIRE_OK)
		return;
	REQUIRE(seg.sack_count <= SEG_SACK_MAX);
	size_t header = wire_tcp_header(&seg);
	REQUIRE(header >= WIRE_TCP && header <= WIRE_TCP + 40 && header % 4 == 0);
	uint32_t ip = wire_ip_header(info->addr.ipv6);
	if (ip + header + seg.len > UINT16_MAX)
		return;
	REQUIRE(wire_write_tcp(written, &info->addr, info->ecn, 1, &seg) == WIRE_ETH + ip + header);
	memset(written + WIRE_ETH + ip + header, 0, seg.len);
	REQUIRE(wire_parse(written, wire_tcp_frame(&seg, ip), &reparsed) == WIRE_OK);
	REQUIRE(same_addr(&reparsed.addr, &info->addr));
	REQUIRE(reparsed.ecn == info->ecn);
	REQUIRE(wire_parse_tcp(written, &reparsed, true, &got) == WIRE_OK);
	REQUIRE(got.sack_count <= seg.sack_count);
	REQUIRE(memcmp(got.sack, seg.sack, got.sack_count * sizeof(got.sack[0])) == 0);
	REQUIRE(got.seq == seg.seq && got.ack == seg.ack && got.len == seg.len);
	REQUIRE(got.flags == seg.flags && got.window == seg.window);
	// An AccECN option may lose fields for want of room, and one without a field is not
	// written.
	REQUIRE((got.options | SEG_OPT_ACCECN) == (seg.options | SEG_OPT_ACCECN));
	if ((got.options & SEG_OPT_ACCECN) != 0)
		REQUIRE(got.options == seg.options && got.ecn_fields > 0
			&& got.ecn_fields <= seg.ecn_fields);
	REQUIRE(got.tsval == seg.tsval && got.tsecr == seg.tsecr);
	REQUIRE(got.mss == seg.mss && got.wscale == seg.wscale);
}

// The short way knows nothing that the long one does not.
static void check_plain(const uint8_t *frame, size_t size) {
	struct wire_info plain_info, info;
	struct seg plain, seg;

	for (int verify = 0; verify < 2; verify++) {
		if (!wire_parse_plain(frame, size, verify, &plain_info, &plain))
			continue;
		REQUIRE(wire_parse(frame, size, &info) == WIRE_OK);
		REQUIRE(wire_parse_tcp(frame, &info, verify, &seg) == WIRE_OK);
		REQUIRE(same_addr(&plain_info.addr, &info.addr));
		REQUIRE(memcmp(&plain, &seg, offsetof(struct seg, sack)) == 0);
	}
}

// Of a good frame addresses alone are those that all of it has.
static void check_addr(const uint8_t *frame, size_t size) {
	struct wire_addr a;
	struct wire_info info;

	if (!wire_read_addr(frame, size, &a) || wire_parse(frame, size, &info) != WIRE_OK)
		return;
	REQUIRE(!info.fragment && (info.proto == WIRE_PROTO_TCP || info.proto == WIRE_PROTO_UDP));
	REQUIRE(a.src_ip == info.addr.src_ip && a.dst_ip == info.addr.dst_ip);
	REQUIRE(a.ipv6 == info.addr.ipv6);
	REQUIRE(info.ip_len < wire_ip_header(a.ipv6) + 4
		|| (a.src_port == info.addr.src_port && a.dst_port == info.addr.dst_port));
}

// The switch tells flows apart by what the hosts read, too.
static void check_flow(const uint8_t *frame, size_t size, const struct wire_info *info) {
	struct wire_flow f;
	bool ports = !info->fragment
		&& (info->proto == WIRE_PROTO_TCP || info->proto == WIRE_PROTO_UDP)
		&& WIRE_ETH + (size_t)info->ip_len >= (size_t)info->l4_offset + 4;

	wire_read_flow(frame, size, &f);
	if (info->addr.ipv6 && info->ip_len == WIRE_IPV6)
		return; // a jumbogram, of which a host reads the header alone
	REQUIRE(f.ipv6 == info->addr.ipv6 && f.proto == info->proto);
	// Of addresses outside 2001:2::/96 the switch has a hash, the hosts have nothing.
	REQUIRE(f.src == info->addr.src_ip || (f.ipv6 && info->addr.src_ip == 0));
	REQUIRE(f.dst == info->addr.dst_ip || (f.ipv6 && info->addr.dst_ip == 0));
	REQUIRE(f.src_port == (ports ? info->addr.src_port : 0));
	REQUIRE(f.dst_port == (ports ? info->addr.dst_port : 0));
}

// Any datagram can be written again, its payload zeros.
static void check_udp(const uint8_t *frame, const struct wire_info *info) {
	struct wire_info reparsed;
	struct seg got;
	struct seg seg;
	uint32_t ip = wire_ip_header(info->addr.ipv6);

	if (wire_parse_udp(frame, info, false, &seg) != WIRE_OK
		|| ip + WIRE_UDP + seg.len > UINT16_MAX)
		return;
	size_t header = wire_write_udp(written, &info->addr, info->ecn, 1, &seg);
	memset(written + header, 0, WIRE_ETH + ip + WIRE_UDP + seg.len - header);
	REQUIRE(wire_parse(written, wire_tcp_frame(&seg, ip), &reparsed) == WIRE_OK);
	REQUIRE(same_addr(&reparsed.addr, &info->addr));
	REQUIRE(wire_parse_udp(written, &reparsed, true, &got) == WIRE_OK);
	REQUIRE(got.seq == seg.seq && got.ack == seg.ack && got.len == seg.len);
}

// Gives a good checksum to an IPv4 header: few inputs have one.
static void repair_ipv4(uint8_t *frame) {
	size_t header = (size_t)(frame[WIRE_ETH] & 15) * 4;

	frame[24] = frame[25] = 0;
	uint16_t csum = wire_fold(wire_sum(frame + WIRE_ETH, header, 0));
	frame[24] = (uint8_t)(csum >> 8);
	frame[25] = (uint8_t)csum;
}

// The answer to an echo goes back to its sender, with a good checksum.
static void check_echo(uint8_t *frame, size_t size, const struct wire_info *info) {
	struct wire_info reparsed;
	bool ipv6 = info->addr.ipv6;

	if (!wire_echo_reply(frame, size, info))
		return;
	REQUIRE(wire_parse(frame, size, &reparsed) == WIRE_OK);
	REQUIRE(reparsed.addr.src_ip == info->addr.dst_ip);
	REQUIRE(reparsed.addr.dst_ip == info->addr.src_ip);
	size_t icmp = info->ip_len - (size_t)wire_ip_header(ipv6);
	uint32_t pseudo =
		ipv6 ? wire_frame_sum(frame, true) + WIRE_PROTO_ICMPV6 + (uint32_t)icmp : 0;
	REQUIRE(wire_fold(wire_sum(frame + info->l4_offset, icmp, pseudo)) == 0);
}

// The answer to a solicitation is an advertisement of its target.
static void check_neighbour(const uint8_t *frame, size_t size, const struct wire_info *info) {
	static const struct wire_mac mac = {{2, 0, 0, 0, 0, 9}};
	struct wire_arp arp;
	struct wire_arp back;
	struct wire_info reparsed;

	if (!wire_parse_neighbour(frame, size, info, &arp) || !arp.request || arp.target_ip == 0)
		return;
	memcpy(written, frame, size < WIRE_NEIGHBOUR ? size : WIRE_NEIGHBOUR);
	wire_advertise(written, &mac);
	REQUIRE(wire_parse(written, WIRE_NEIGHBOUR, &reparsed) == WIRE_OK);
	REQUIRE(wire_parse_neighbour(written, WIRE_NEIGHBOUR, &reparsed, &back));
	REQUIRE(!back.request && back.sender_ip == arp.target_ip);
	REQUIRE(memcmp(&back.sender_mac, &mac, sizeof(mac)) == 0);
}

// The answer to a packet that is too large goes to its sender, with the MTU, and names its segment;
// it gets no answer itself.
static void check_too_big(const uint8_t *frame, size_t size) {
	static uint8_t answer[WIRE_TOO_BIG_MAX];
	struct wire_info about;
	struct wire_info w;
	struct wire_quote q;
	size_t n = wire_write_too_big(answer, frame, size, 1400);

	if (n == 0)
		return;
	wire_read(frame, size, &about);
	REQUIRE(n == wire_too_big_size(about.addr.ipv6, about.ip_len));
	REQUIRE(wire_parse(answer, n, &w) == WIRE_OK);
	REQUIRE(memcmp(&w.addr.dst_mac, &about.addr.src_mac, sizeof(w.addr.dst_mac)) == 0);
	REQUIRE(w.addr.src_ip == about.addr.dst_ip && w.addr.dst_ip == about.addr.src_ip);
	REQUIRE(wire_path_mtu(answer, n, &w) == 1400);
	REQUIRE(wire_write_too_big(written, answer, n, 1400) == 0);
	bool tcp = wire_too_big_quote(answer, n, &w, &q);
	REQUIRE(tcp == (about.proto == WIRE_PROTO_TCP) || about.addr.ipv6);
	if (!tcp || about.ip_len < wire_ip_header(about.addr.ipv6) + 8)
		return;
	q.addr.src_mac = about.addr.src_mac;
	q.addr.dst_mac = about.addr.dst_mac;
	REQUIRE(same_addr(&q.addr, &about.addr));
	REQUIRE(q.seq == wire_get32(frame + about.l4_offset + 4));
}

static void check_ip(uint8_t *frame, size_t size) {
	struct wire_info info;
	struct wire_info reparsed;

	if (wire_parse(frame, size, &info) == WIRE_BAD_CHECKSUM) {
		repair_ipv4(frame);
		REQUIRE(wire_parse(frame, size, &info) == WIRE_OK);
	}
	bool good = wire_parse(frame, size, &info) == WIRE_OK;
	if (good && info.ip_len == 0)
		wire_set_ecn(frame, size, wire_ecn(frame, size));
	if (!good || info.ip_len == 0)
		return;
	REQUIRE(wire_ecn(frame, size) == info.ecn);
	REQUIRE(wire_ecn_any(frame, size) == info.ecn);
	REQUIRE(info.l4_offset <= WIRE_ETH + (size_t)info.ip_len);
	REQUIRE(WIRE_ETH + (size_t)info.ip_len <= size);
	check_tcp(frame, &info);
	check_udp(frame, &info);
	check_addr(frame, size);
	check_flow(frame, size, &info);
	check_plain(frame, size);
	check_neighbour(frame, size, &info);
	wire_path_mtu(frame, size, &info);
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		wire_set_ecn(frame, size, ecn);
		REQUIRE(wire_parse(frame, size, &reparsed) == WIRE_OK);
		REQUIRE(reparsed.ecn == ecn);
	}
	check_echo(frame, size, &info);
}

static void check_arp(const uint8_t *frame, size_t size) {
	const struct wire_mac target = {{2, 0, 0, 0, 0, 9}};
	struct wire_arp reparsed;
	struct wire_arp arp;

	if (wire_parse_arp(frame, size, &arp) != WIRE_OK)
		return;
	REQUIRE(wire_write_arp(written, &arp, &target) == WIRE_MIN_FRAME);
	REQUIRE(wire_parse_arp(written, WIRE_MIN_FRAME, &reparsed) == WIRE_OK);
	REQUIRE(reparsed.request == arp.request);
	REQUIRE(memcmp(&reparsed.sender_mac, &arp.sender_mac, sizeof(arp.sender_mac)) == 0);
	REQUIRE(reparsed.sender_ip == arp.sender_ip && reparsed.target_ip == arp.target_ip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	// A copy of its exact size, so that the sanitizer sees a read beyond it.
	uint8_t *frame = calloc(1, size > 0 ? size : 1);
	struct wire_flow flow;

	REQUIRE(frame != NULL);
	if (size > 0)
		memcpy(frame, data, size);
	struct wire_info cut;
	wire_read_flow(frame, size, &flow); // nothing is read outside the frame
	if (size >= WIRE_ETH)
		wire_read(frame, size, &cut);
	check_too_big(frame, size);
	check_arp(frame, size);
	check_addr(frame, size);
	check_ip(frame, size);
	free(frame);
	return 0;
}
