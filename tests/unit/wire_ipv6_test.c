// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/address.h"
#include "common/net/headers.h"
#include "common/net/wire_ip.h"
#include "test.h"

#include <string.h>

static const struct wire_addr addr = {
	{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}, 0xc6120001, 0xc6130001, 40000, 5001, true};
static uint8_t frame[2048];

static size_t build(const struct seg *seg, uint8_t tos) {
	memset(frame, 0, sizeof(frame));
	ck_assert_uint_eq(wire_write_tcp(frame, &addr, tos, 7, seg),
		WIRE_ETH + WIRE_IPV6 + wire_tcp_header(seg));
	return wire_tcp_frame(seg, WIRE_IPV6);
}

TEST(segment_is_read_as_it_was_written) {
	const struct seg seg = {.seq = 1,
		.ack = 2,
		.tsval = 3,
		.tsecr = 4,
		.len = 1428,
		.window = 5,
		.flags = SEG_ACK,
		.options = SEG_OPT_TS};
	struct wire_info info;
	struct seg got;
	size_t len = build(&seg, 45 << 2 | ECN_CE);

	ck_assert_uint_eq(len, 1514);
	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_OK);
	ck_assert_mem_eq(&got, &seg, offsetof(struct seg, sack));
	ck_assert(info.ip_len == 1500 && info.l4_offset == 54);
	ck_assert(info.ecn == ECN_CE && info.dscp == 45);
	ck_assert(info.addr.ipv6 && info.addr.src_ip == addr.src_ip
		&& info.addr.dst_ip == addr.dst_ip && info.addr.src_port == addr.src_port
		&& info.addr.dst_port == addr.dst_port);
	struct pkt_headers h = headers_read(frame, len);
	ck_assert(h.seq == 1 && h.seq_count == 1428 && h.dscp == 45);
	frame[len - 1] = 1;
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_BAD_CHECKSUM);
	ck_assert_int_eq(wire_parse(frame, len - 1, &info), WIRE_TRUNCATED);
}

// 74 bytes and more of headers: no frame is padded.
TEST(short_frames_are_not_padded) {
	const struct seg ack = {.flags = SEG_ACK}, one = {.flags = SEG_ACK, .len = 1};

	ck_assert_uint_eq(wire_tcp_frame(&ack, WIRE_IPV4), 60);
	ck_assert_uint_eq(wire_tcp_frame(&ack, WIRE_IPV6), 74);
	ck_assert_uint_eq(wire_tcp_frame(&one, WIRE_IPV6), 75);
}

// A switch, and an lcore that hands frames over, know the flow of it by the numbers of IPv4.
TEST(flow_has_the_numbers_of_ipv4) {
	size_t len = build(&(struct seg){.flags = SEG_ACK}, 0);
	struct wire_flow flow;
	struct wire_addr a;

	wire_read_flow(frame, len, &flow);
	ck_assert(flow.ipv6 && flow.src == addr.src_ip && flow.dst == addr.dst_ip);
	ck_assert(flow.src_port == 40000 && flow.dst_port == 5001);
	ck_assert(wire_read_addr(frame, len, &a) && a.ipv6 && a.src_ip == addr.src_ip
		&& a.dst_ip == addr.dst_ip && a.src_port == 40000 && a.dst_port == 5001);
	frame[WIRE_ETH + 8] = 0xfd; // another network
	wire_read_flow(frame, len, &flow);
	ck_assert_uint_ne(flow.src, addr.src_ip);
	ck_assert(!wire_read_addr(frame, len, &a));
}

TEST(ce_is_set_in_the_traffic_class) {
	size_t len = build(&(struct seg){.flags = SEG_ACK}, 63 << 2 | ECN_ECT0);
	struct wire_info info;
	struct seg got;

	wire_set_ecn(frame, len, ECN_CE);
	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_OK);
	ck_assert(info.ecn == ECN_CE && info.dscp == 63);
}

// What IPv6 asks of a link at least is what a report says at least.
TEST(path_mtu_is_read_from_packet_too_big) {
	size_t len = build(&(struct seg){.flags = SEG_ACK}, 0);
	uint8_t *icmp = frame + WIRE_ETH + WIRE_IPV6;
	struct wire_info info;

	frame[WIRE_ETH + 6] = WIRE_PROTO_ICMPV6;
	memset(icmp, 0, 20);
	icmp[0] = 2;
	for (int k = 0; k < 2; k++) {
		uint16_t mtu = k == 0 ? 1400 : 600, sum;

		icmp[6] = (uint8_t)(mtu >> 8);
		icmp[7] = (uint8_t)mtu;
		icmp[2] = icmp[3] = 0;
		sum = wire_fold(
			wire_sum(icmp, 20, wire_frame_sum(frame, true) + WIRE_PROTO_ICMPV6 + 20));
		icmp[2] = (uint8_t)(sum >> 8);
		icmp[3] = (uint8_t)sum;
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_uint_eq(wire_path_mtu(frame, len, &info), k == 0 ? 1400 : 1280);
	}
	icmp[7] ^= 1;
	ck_assert_uint_eq(wire_path_mtu(frame, len, &info), 0);
}

TEST(address_is_written_as_text) {
	char text[ADDRESS_HOST_SIZE];

	address_host_text(addr.src_ip, true, text);
	ck_assert_str_eq(text, "2001:2::c612:1");
	address_host_text(addr.src_ip, false, text);
	ck_assert_str_eq(text, "198.18.0.1");
}
