// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a frame: nothing is read outside it, and what was read can be written and read
// again.
#include "fuzz.h"

#include "common/net/wire_ip.h"

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
	NEED(seg.sack_count <= SEG_SACK_MAX);
	size_t header = wire_tcp_header(&seg);
	NEED(header >= WIRE_TCP && header <= WIRE_TCP + 40 && header % 4 == 0);
	uint32_t ip = wire_ip_header(info->addr.ipv6);
	if (ip + header + seg.len > UINT16_MAX)
		return;
	NEED(wire_write_tcp(written, &info->addr, info->ecn, 1, &seg) == WIRE_ETH + ip + header);
	memset(written + WIRE_ETH + ip + header, 0, seg.len);
	NEED(wire_parse(written, wire_tcp_frame(&seg, ip), &reparsed) == WIRE_OK);
	NEED(same_addr(&reparsed.addr, &info->addr));
	NEED(reparsed.ecn == info->ecn);
	NEED(wire_parse_tcp(written, &reparsed, true, &got) == WIRE_OK);
	NEED(got.sack_count <= seg.sack_count);
	NEED(memcmp(got.sack, seg.sack, got.sack_count * sizeof(got.sack[0])) == 0);
	NEED(got.seq == seg.seq && got.ack == seg.ack && got.len == seg.len);
	NEED(got.flags == seg.flags && got.window == seg.window);
	// An AccECN option may lose fields for want of room, and one without a field is not
	// written.
	NEED((got.options | SEG_OPT_ACCECN) == (seg.options | SEG_OPT_ACCECN));
	if ((got.options & SEG_OPT_ACCECN) != 0)
		NEED(got.options == seg.options && got.ecn_fields > 0
			&& got.ecn_fields <= seg.ecn_fields);
	NEED(got.tsval == seg.tsval && got.tsecr == seg.tsecr);
	NEED(got.mss == seg.mss && got.wscale == seg.wscale);
}

// The short way knows nothing that the long one does not.
static void check_plain(const uint8_t *frame, size_t size) {
	struct wire_info plain_info, info;
	struct seg plain, seg;

	for (int verify = 0; verify < 2; verify++) {
		if (!wire_parse_plain(frame, size, verify, &plain_info, &plain))
			continue;
		NEED(wire_parse(frame, size, &info) == WIRE_OK);
		NEED(wire_parse_tcp(frame, &info, verify, &seg) == WIRE_OK);
		NEED(same_addr(&plain_info.addr, &info.addr));
		NEED(memcmp(&plain, &seg, offsetof(struct seg, sack)) == 0);
	}
}

// Of a good frame addresses alone are those that all of it has.
static void check_addr(const uint8_t *frame, size_t size) {
	struct wire_addr a;
	struct wire_info info;

	if (!wire_read_addr(frame, size, &a) || wire_parse(frame, size, &info) != WIRE_OK)
		return;
	NEED(!info.fragment && (info.proto == WIRE_PROTO_TCP || info.proto == WIRE_PROTO_UDP));
	NEED(a.src_ip == info.addr.src_ip && a.dst_ip == info.addr.dst_ip);
	NEED(a.ipv6 == info.addr.ipv6);
	NEED(info.ip_len < wire_ip_header(a.ipv6) + 4
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
	NEED(f.ipv6 == info->addr.ipv6 && f.proto == info->proto);
	// Of addresses outside 2001:2::/96 the switch has a hash, the hosts have nothing.
	NEED(f.src == info->addr.src_ip || (f.ipv6 && info->addr.src_ip == 0));
	NEED(f.dst == info->addr.dst_ip || (f.ipv6 && info->addr.dst_ip == 0));
	NEED(f.src_port == (ports ? info->addr.src_port : 0));
	NEED(f.dst_port == (ports ? info->addr.dst_port : 0));
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
	NEED(wire_parse(written, wire_tcp_frame(&seg, ip), &reparsed) == WIRE_OK);
	NEED(same_addr(&reparsed.addr, &info->addr));
	NEED(wire_parse_udp(written, &reparsed, true, &got) == WIRE_OK);
	NEED(got.seq == seg.seq && got.ack == seg.ack && got.len == seg.len);
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
	NEED(wire_parse(frame, size, &reparsed) == WIRE_OK);
	NEED(reparsed.addr.src_ip == info->addr.dst_ip);
	NEED(reparsed.addr.dst_ip == info->addr.src_ip);
	size_t icmp = info->ip_len - (size_t)wire_ip_header(ipv6);
	uint32_t pseudo =
		ipv6 ? wire_frame_sum(frame, true) + WIRE_PROTO_ICMPV6 + (uint32_t)icmp : 0;
	NEED(wire_fold(wire_sum(frame + info->l4_offset, icmp, pseudo)) == 0);
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
	NEED(wire_parse(written, WIRE_NEIGHBOUR, &reparsed) == WIRE_OK);
	NEED(wire_parse_neighbour(written, WIRE_NEIGHBOUR, &reparsed, &back));
	NEED(!back.request && back.sender_ip == arp.target_ip);
	NEED(memcmp(&back.sender_mac, &mac, sizeof(mac)) == 0);
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
	NEED(n == wire_too_big_size(about.addr.ipv6, about.ip_len));
	NEED(wire_parse(answer, n, &w) == WIRE_OK);
	NEED(memcmp(&w.addr.dst_mac, &about.addr.src_mac, sizeof(w.addr.dst_mac)) == 0);
	NEED(w.addr.src_ip == about.addr.dst_ip && w.addr.dst_ip == about.addr.src_ip);
	NEED(wire_path_mtu(answer, n, &w) == 1400);
	NEED(wire_write_too_big(written, answer, n, 1400) == 0);
	bool tcp = wire_too_big_quote(answer, n, &w, &q);
	NEED(tcp == (about.proto == WIRE_PROTO_TCP) || about.addr.ipv6);
	if (!tcp || about.ip_len < wire_ip_header(about.addr.ipv6) + 8)
		return;
	q.addr.src_mac = about.addr.src_mac;
	q.addr.dst_mac = about.addr.dst_mac;
	NEED(same_addr(&q.addr, &about.addr));
	NEED(q.seq == wire_get32(frame + about.l4_offset + 4));
}

static void check_ip(uint8_t *frame, size_t size) {
	struct wire_info info;
	struct wire_info reparsed;

	if (wire_parse(frame, size, &info) == WIRE_BAD_CHECKSUM) {
		repair_ipv4(frame);
		NEED(wire_parse(frame, size, &info) == WIRE_OK);
	}
	bool good = wire_parse(frame, size, &info) == WIRE_OK;
	if (good && info.ip_len == 0)
		wire_set_ecn(frame, size, wire_ecn(frame, size));
	if (!good || info.ip_len == 0)
		return;
	NEED(wire_ecn(frame, size) == info.ecn);
	NEED(wire_ecn_any(frame, size) == info.ecn);
	NEED(info.l4_offset <= WIRE_ETH + (size_t)info.ip_len);
	NEED(WIRE_ETH + (size_t)info.ip_len <= size);
	check_tcp(frame, &info);
	check_udp(frame, &info);
	check_addr(frame, size);
	check_flow(frame, size, &info);
	check_plain(frame, size);
	check_neighbour(frame, size, &info);
	wire_path_mtu(frame, size, &info);
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		wire_set_ecn(frame, size, ecn);
		NEED(wire_parse(frame, size, &reparsed) == WIRE_OK);
		NEED(reparsed.ecn == ecn);
	}
	check_echo(frame, size, &info);
}

static void check_arp(const uint8_t *frame, size_t size) {
	const struct wire_mac target = {{2, 0, 0, 0, 0, 9}};
	struct wire_arp reparsed;
	struct wire_arp arp;

	if (wire_parse_arp(frame, size, &arp) != WIRE_OK)
		return;
	NEED(wire_write_arp(written, &arp, &target) == WIRE_MIN_FRAME);
	NEED(wire_parse_arp(written, WIRE_MIN_FRAME, &reparsed) == WIRE_OK);
	NEED(reparsed.request == arp.request);
	NEED(memcmp(&reparsed.sender_mac, &arp.sender_mac, sizeof(arp.sender_mac)) == 0);
	NEED(reparsed.sender_ip == arp.sender_ip && reparsed.target_ip == arp.target_ip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	// A copy of its exact size, so that the sanitizer sees a read beyond it.
	uint8_t *frame = calloc(1, size > 0 ? size : 1);
	struct wire_flow flow;

	NEED(frame != NULL);
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
