// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/flow_addr.h"
#include "common/net/wire.h"
#include "test.h"

#include <string.h>

static uint8_t frame[WIRE_HEADER_MAX + 1448];

static size_t too_big(uint8_t *buf, bool ipv6, uint32_t mtu) {
	const struct wire_addr a = {.src_ip = FLOW_ADDR_SENDER,
		.dst_ip = FLOW_ADDR_RECEIVER,
		.src_port = 10007,
		.dst_port = 5001,
		.src_mac = {{2, 0, 0, 0, 0, 1}},
		.dst_mac = {{2, 0, 0, 0, 0, 2}},
		.ipv6 = ipv6};
	const struct seg seg = {
		.seq = 0xfedcba98, .len = 1448, .flags = SEG_ACK, .options = SEG_OPT_TS};
	size_t header = wire_write_tcp(frame, &a, 0, 1, &seg);

	return wire_write_too_big(buf, frame, header + 1448, mtu);
}

// What is written is read: who is meant, by which segment, and the MTU; checksums are good. IPv4's
// is as long as RFC 792 has it, that of IPv6 as long as its least MTU.
TEST(the_answer_names_the_segment) {
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint8_t buf[WIRE_TOO_BIG_MAX];
		size_t size = too_big(buf, ipv6, 1400);
		struct wire_info w;
		struct wire_quote q;

		ck_assert_uint_eq(size, ipv6 ? WIRE_TOO_BIG_MAX : 70);
		ck_assert_uint_eq(size, wire_too_big_size(ipv6, 1540));
		ck_assert_int_eq(wire_parse(buf, size, &w), WIRE_OK);
		ck_assert_uint_eq(w.addr.dst_ip, FLOW_ADDR_SENDER);
		ck_assert_uint_eq(w.addr.src_ip, FLOW_ADDR_RECEIVER);
		ck_assert_uint_eq(w.addr.dst_mac.b[5], 1);
		ck_assert_uint_eq(wire_path_mtu(buf, size, &w), 1400);
		ck_assert(wire_too_big_quote(buf, size, &w, &q));
		ck_assert_uint_eq(q.seq, 0xfedcba98);
		ck_assert_uint_eq(q.addr.src_ip, FLOW_ADDR_SENDER);
		ck_assert_uint_eq(q.addr.dst_ip, FLOW_ADDR_RECEIVER);
		ck_assert_uint_eq(q.addr.src_port, 10007);
		ck_assert_uint_eq(q.addr.dst_port, 5001);
		ck_assert(q.addr.ipv6 == ipv6);
		for (size_t len = w.l4_offset; len < size && len < w.l4_offset + 36u; len++)
			ck_assert(!wire_too_big_quote(buf, len, &w, &q));
	}
}

// An error is not answered by another, nor is what came to a group, nor what is behind a fragment.
TEST(some_frames_get_no_answer) {
	uint8_t buf[WIRE_TOO_BIG_MAX], second[WIRE_TOO_BIG_MAX];
	size_t size = too_big(buf, false, 1400);

	ck_assert_uint_eq(wire_write_too_big(second, buf, size, 60), 0);
	ck_assert_uint_eq(wire_write_too_big(second, buf, 20, 60), 0);
	size = too_big(buf, true, 1400);
	ck_assert_uint_eq(wire_write_too_big(second, buf, size, 60), 0);
	memset(buf, 0xff, sizeof(buf));
	ck_assert_uint_eq(wire_write_too_big(second, buf, sizeof(buf), 60), 0);
	ck_assert_uint_eq(too_big(buf, false, 1400), 70);
	frame[WIRE_ETH + 7] = 1; // of 8 bytes in front
	ck_assert_uint_eq(wire_write_too_big(second, frame, sizeof(frame), 1400), 0);
}

// As `ping -M do` asks for.
TEST(a_large_echo_is_answered) {
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint8_t buf[WIRE_TOO_BIG_MAX];
		struct wire_info w;
		struct wire_quote q;
		size_t size = too_big(buf, ipv6, 1400), l4 = WIRE_ETH + wire_ip_header(ipv6);

		frame[WIRE_ETH + (ipv6 ? 6 : 9)] = ipv6 ? WIRE_PROTO_ICMPV6 : WIRE_PROTO_ICMP;
		frame[l4] = ipv6 ? 128 : 8;
		ck_assert_uint_eq(wire_write_too_big(buf, frame, sizeof(frame), 1400), size);
		wire_read(buf, size, &w);
		ck_assert_uint_eq(wire_path_mtu(buf, size, &w), 1400);
		ck_assert(!wire_too_big_quote(buf, size, &w, &q));
		frame[l4] = 3; // destination unreachable, time exceeded
		ck_assert_uint_eq(wire_write_too_big(buf, frame, sizeof(frame), 1400), 0);
	}
}
