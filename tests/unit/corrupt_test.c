// SPDX-License-Identifier: BSD-3-Clause
// A flipped bit: one, where a checksum finds it, and everywhere there.
#include "common/net/corrupt.h"

#include "common/base/rng.h"
#include "common/net/wire.h"
#include "test.h"

#include <string.h>

static const struct wire_addr addr = {
	.src_mac = {{2, 0, 0, 0, 0, 1}},
	.dst_mac = {{2, 0, 0, 0, 0, 2}},
	.src_ip = 0xc6120001,
	.dst_ip = 0xc6130001,
	.src_port = 1000,
	.dst_port = 5001,
};

// The bit in which two frames differ; they do in one.
static size_t flipped(const uint8_t *a, const uint8_t *b, size_t len) {
	size_t bit = SIZE_MAX;

	for (size_t i = 0; i < 8 * len; i++) {
		if (((a[i / 8] ^ b[i / 8]) >> i % 8 & 1) == 0)
			continue;
		ck_assert_uint_eq(bit, SIZE_MAX);
		bit = i;
	}
	ck_assert_uint_ne(bit, SIZE_MAX);
	return bit;
}

TEST(tcp_finds_each_bit) {
	struct seg seg = {.seq = 1, .ack = 2, .len = 100, .flags = SEG_ACK, .window = 1000};
	uint8_t good[256] = {0}, bad[256];
	size_t header = wire_write_tcp(good, &addr, 2, 7, &seg), len = header + seg.len;
	uint32_t bits = 8 * (uint32_t)(len - 34 - 14);
	struct wire_info info;
	struct seg read;

	memset(good + len, 0xff, 20); // behind the end of the packet
	ck_assert_int_eq(wire_parse(good, len + 20, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(good, &info, true, &read), WIRE_OK);
	for (uint32_t draw = 0; draw < bits; draw++) {
		memcpy(bad, good, sizeof(bad));
		corrupt_frame(bad, len + 20, draw);
		ck_assert_uint_eq(flipped(good, bad, sizeof(bad)), (34 + 14) * 8 + draw);
		ck_assert_int_eq(wire_parse(bad, len + 20, &info), WIRE_OK);
		ck_assert_int_ne(wire_parse_tcp(bad, &info, true, &read), WIRE_OK);
	}
	memcpy(bad, good, sizeof(bad));
	corrupt_frame(bad, len + 20, bits);
	ck_assert_uint_eq(flipped(good, bad, sizeof(bad)), (34 + 14) * 8);
	// Of a capture that has the headers alone.
	memcpy(bad, good, sizeof(bad));
	corrupt_frame(bad, header, bits - 1);
	ck_assert_uint_lt(flipped(good, bad, sizeof(bad)), 8 * header);
}

// The first and the last bit that may be flipped in frames of other kinds.
TEST(other_frames_keep_their_headers) {
	static const struct {
		const char *what;
		uint8_t at12[30]; // from the ethertype on
		uint32_t len, first, last; // bytes
	} cases[] = {
		{"UDP", {8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17}, 60, 34 + 8, 45},
		{"ICMP", {8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, 1}, 60, 34 + 2, 45},
		{"IP options", {8, 0, 0x46, 0, 0, 60, 0, 0, 0, 0, 64, 6}, 100, 38 + 14, 73},
		{"later fragment", {8, 0, 0x45, 0, 0, 32, 0, 0, 0x20, 1, 64, 6}, 60, 34, 45},
		{"first fragment", {8, 0, 0x45, 0, 0, 60, 0, 0, 0x20, 0, 64, 6}, 100, 48, 73},
		{"VLAN", {0x81, 0, 0, 5, 8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6}, 100, 52, 77},
		{"two tags",
			{0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6},
			100, 56, 81},
		{"IPv6", {0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 6}, 120, 54 + 14, 93},
		{"ARP", {8, 6, 0, 1}, 60, 14, 59},
		{"a header longer than the packet", {8, 0, 0x4f, 0, 0, 32, 0, 0, 0, 0, 64, 6}, 60,
			14, 59},
		{"cut", {8, 0, 0x45}, 20, 14, 19},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t bits = 8 * (cases[i].last + 1 - cases[i].first);
		uint8_t good[128] = {0}, bad[128];

		memcpy(good + 12, cases[i].at12, sizeof(cases[i].at12));
		for (int end = 0; end < 2; end++) {
			memcpy(bad, good, sizeof(bad));
			corrupt_frame(bad, cases[i].len, end > 0 ? bits - 1 : bits);
			size_t bit = flipped(good, bad, sizeof(bad));
			ck_assert_msg(bit == (end > 0 ? 8 * cases[i].last + 7 : 8 * cases[i].first),
				"%s: bit %zu of byte %zu", cases[i].what, bit % 8, bit / 8);
		}
	}
}

TEST(a_frame_of_nothing_stays) {
	uint8_t frame[1] = {9};

	corrupt_frame(frame, 0, 5);
	ck_assert_uint_eq(frame[0], 9);
}
