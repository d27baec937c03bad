// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/wire_ip.h"

#include "common/base/rng.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

// A connection of Linux 6 over veth, byte for byte (tcpdump, offloads off), and its ping.
static const char kernel_arp_request[] =
	"ffffffffffff020000000001080600010800060400010200000000010a0900010000000000000a090002";
static const char kernel_arp_reply[] =
	"020000000001020000000002080600010800060400020200000000020a0900020200000000010a090001";
static const char kernel_syn[] =
	"02000000000202000000000108004500003ce6064000400640a10a0900010a090002"
	"9fc61389c66099ef00000000a002faf07da80000020405b40402080a819a2615000000000103030a";
static const char kernel_syn_ack[] =
	"02000000000102000000000208004500003c00004000400626a80a0900020a090001"
	"13899fc6bc7517a7c66099f0a012fe88104c0000020405b40402080a8f8b060b819a26150103030a";
static const char kernel_ack[] =
	"020000000001020000000002080045000034907b4000400696340a0900020a090001"
	"13899fc6bc7517a8c66099fc801000403d5700000101080a8f8b060b819a2616";
static const char kernel_fin[] =
	"020000000001020000000002080045000034907c4000400696330a0900020a090001"
	"13899fc6bc7517a8c66099fd801100403d5500000101080a8f8b060b819a2616";
static const char kernel_data[] =
	"020000000002020000000001080045000040e60840004006409b0a0900010a090002"
	"9fc61389c66099f0bc7517a88018003f9ac800000101080a819a26168f8b060b776569727765697277656972";
static const char kernel_echo[] =
	"020000000002020000000001080045000024dad3400040014bf10a0900010a090002"
	"08009a3751b700010001020304050607";

#define IP_A 0x0a090001u
#define IP_B 0x0a090002u

static const struct wire_mac mac_a = {{2, 0, 0, 0, 0, 1}};
static const struct wire_mac mac_b = {{2, 0, 0, 0, 0, 2}};
static const struct wire_addr addr = {
	{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}, IP_A, IP_B, 40000, 5001, false};

static uint8_t frame[2048];

static size_t load(const char *hex) {
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len; i++) {
		char byte[3] = {hex[2 * i], hex[2 * i + 1], 0};
		frame[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return len;
}

// A segment as a frame with its payload; returns the length on the wire.
static size_t build(const struct seg *seg, uint8_t ecn) {
	memset(frame, 0, sizeof(frame));
	ck_assert_uint_eq(wire_write_tcp(frame, &addr, ecn, 7, seg),
		WIRE_ETH + WIRE_IPV4 + wire_tcp_header(seg));
	return wire_tcp_frame(seg, WIRE_IPV4);
}

static void check_seg(const struct seg *got, const struct seg *want) {
	ck_assert_uint_eq(got->seq, want->seq);
	ck_assert_uint_eq(got->ack, want->ack);
	ck_assert_uint_eq(got->len, want->len);
	ck_assert_uint_eq(got->window, want->window);
	ck_assert_uint_eq(got->flags, want->flags);
	ck_assert_uint_eq(got->options, want->options);
	ck_assert_uint_eq(got->tsval, want->tsval);
	ck_assert_uint_eq(got->tsecr, want->tsecr);
	ck_assert_uint_eq(got->mss, want->mss);
	ck_assert_uint_eq(got->wscale, want->wscale);
	ck_assert_uint_eq(got->sack_count, want->sack_count);
	for (uint32_t i = 0; i < want->sack_count; i++) {
		ck_assert_uint_eq(got->sack[i].start, want->sack[i].start);
		ck_assert_uint_eq(got->sack[i].end, want->sack[i].end);
	}
}

TEST(sum_of_rfc1071) {
	static const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	ck_assert_uint_eq(wire_sum(bytes, 8, 0), 0xddf2);
	ck_assert_uint_eq(wire_fold(wire_sum(bytes, 8, 0)), 0x220d);
	// In pieces, and an odd one at the end is padded with a zero.
	ck_assert_uint_eq(wire_fold(wire_sum(bytes + 2, 6, wire_sum(bytes, 2, 0))), 0x220d);
	ck_assert_uint_eq(wire_fold(wire_sum(bytes, 3, 0)), (uint16_t)~0xf201);
	ck_assert_uint_eq(wire_fold(0), 0xffff);
	ck_assert_uint_eq(wire_fold(UINT32_MAX), 0);
}

TEST(sum_agrees_with_the_definition) {
	uint8_t bytes[300];
	struct rng r;

	rng_init(&r, 1, "sum");
	for (int n = 0; n < 2000; n++) {
		size_t at = rng_u64(&r) % 8;
		size_t len = rng_u64(&r) % (sizeof(bytes) - at);
		uint32_t sum = 0;
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = n % 3 ? (uint8_t)rng_u64(&r) : n % 2 ? 0xff : 0;
		for (size_t i = 0; i < len; i++)
			sum += (uint32_t)bytes[at + i] << (i % 2 ? 0 : 8);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		ck_assert_uint_eq(wire_fold(wire_sum(bytes + at, len, 0)), (uint16_t)~sum);
	}
}

// RFC 1624 section 4: equation 2 of RFC 1141 would give 0xffff.
TEST(replace_of_rfc1624) {
	ck_assert_uint_eq(wire_csum_replace(0xdd2f, 0x5555, 0x3285), 0x0000);
	ck_assert_uint_eq(wire_csum_replace(0x0000, 0x3285, 0x5555), 0xdd2f);
}

// Over all identifications the checksum takes all values, the two zeros' neighbours included.
TEST(set_ecn_keeps_the_checksum_of_a_full_sum) {
	const struct seg seg = {.flags = SEG_ACK, .len = 1448, .options = SEG_OPT_TS};
	uint32_t zeros = 0, wrong = 0;

	for (uint32_t id = 0; id < 0x10000; id++) {
		for (uint8_t from = 0; from < 4; from++) {
			uint8_t fresh[WIRE_HEADER_MAX] = {0};
			uint8_t to = (uint8_t)((from + 1 + id % 3) % 4);
			wire_write_tcp(frame, &addr, from, (uint16_t)id, &seg);
			wire_write_tcp(fresh, &addr, to, (uint16_t)id, &seg);
			wire_set_ecn(frame, WIRE_HEADER_MAX, to);
			wrong += memcmp(frame, fresh, WIRE_ETH + WIRE_IPV4) != 0;
			zeros += fresh[24] == 0 && fresh[25] == 0;
		}
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(zeros, 0);
}

// Ethernet, up to two VLAN tags, IPv4 or IPv6: a queue that marks must see ECT there too, or it
// drops.
TEST(ecn_behind_vlan_tags_and_of_ipv6) {
	static const char tag[] = "8100a005", outer[] = "88a80064",
			  macs[] = "020000000002020000000001";
	static const char ipv4[] = "080045b800287b0000004006";
	static const char ipv6[] = "86dd6b8abcde00140640";
	char text[200];

	for (int tags = 0; tags < 3; tags++) {
		for (int six = 0; six < 2; six++) {
			snprintf(text, sizeof(text), "%s%s%s%s%060d", macs, tags == 2 ? outer : "",
				tags > 0 ? tag : "", six ? ipv6 : ipv4, 0);
			size_t len = load(text), ip = WIRE_ETH + 4 * (size_t)tags;
			uint8_t before[64], at = six ? 4 : 0;

			ck_assert_uint_eq(wire_ecn(frame, len), six ? (0x8a >> 4 & 3) : (0xb8 & 3));
			memcpy(before, frame, len);
			for (uint8_t ecn = 0; ecn < 4; ecn++) {
				wire_set_ecn(frame, len, ecn);
				ck_assert_uint_eq(wire_ecn(frame, len), ecn);
				before[ip + 1] =
					(uint8_t)((before[ip + 1] & ~(3 << at)) | ecn << at);
				if (!six) // the checksum is set_ecn_keeps_the_checksum's
					memcpy(before + ip + 10, frame + ip + 10, 2);
				ck_assert_mem_eq(frame, before, len);
			}
			// Cut within the header: not touched.
			ck_assert_uint_eq(wire_ecn_any(frame, ip + 19), ECN_NOT_ECT);
			wire_set_ecn(frame, ip + 19, ECN_ECT0);
			ck_assert_mem_eq(frame, before, len);
		}
	}
}

TEST(set_ecn_leaves_dscp) {
	struct wire_info info;
	size_t len = load(kernel_data);

	frame[15] = 0xb8 | ECN_ECT0; // expedited forwarding
	uint16_t csum = wire_csum_replace(0x409b, 0x4500, 0x4500 | 0xb8 | ECN_ECT0);
	frame[24] = (uint8_t)(csum >> 8);
	frame[25] = (uint8_t)csum;
	wire_set_ecn(frame, len, ECN_CE);
	ck_assert_uint_eq(frame[15], 0xb8 | ECN_CE);
	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_uint_eq(info.ecn, ECN_CE);
}

// Parsing the kernel's frames and writing what was read gives the kernel's bytes.
TEST(writes_what_the_kernel_writes) {
	const char *const frames[] = {kernel_syn, kernel_syn_ack, kernel_ack, kernel_fin};

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct wire_info info;
		struct seg seg;
		uint8_t ours[WIRE_HEADER_MAX];
		size_t len = load(frames[i]);
		uint16_t ip_id = (uint16_t)(frame[18] << 8 | frame[19]);

		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &seg), WIRE_OK);
		ck_assert_uint_eq(wire_write_tcp(ours, &info.addr, info.ecn, ip_id, &seg), len);
		ck_assert_mem_eq(ours, frame, len);
	}
}

TEST(reads_the_kernels_syn) {
	const struct seg want = {.seq = 0xc66099ef,
		.tsval = 0x819a2615,
		.window = 64240,
		.flags = SEG_SYN,
		.options = SEG_OPT_TS | SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK,
		.wscale = 10,
		.mss = 1460};
	struct wire_info info;
	struct seg seg;
	size_t len = load(kernel_syn);

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_uint_eq(info.ethertype, WIRE_ETHERTYPE_IPV4);
	ck_assert_uint_eq(info.proto, WIRE_PROTO_TCP);
	ck_assert_uint_eq(info.ip_len, 60);
	ck_assert_uint_eq(info.l4_offset, 34);
	ck_assert(!info.fragment);
	ck_assert_mem_eq(&info.addr.src_mac, &mac_a, 6);
	ck_assert_mem_eq(&info.addr.dst_mac, &mac_b, 6);
	ck_assert_uint_eq(info.addr.src_ip, IP_A);
	ck_assert_uint_eq(info.addr.dst_ip, IP_B);
	ck_assert_uint_eq(info.addr.src_port, 40902);
	ck_assert_uint_eq(info.addr.dst_port, 5001);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &seg), WIRE_OK);
	check_seg(&seg, &want);
}

TEST(reads_the_kernels_data) {
	struct wire_info info;
	struct seg seg;
	size_t len = load(kernel_data);

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &seg), WIRE_OK);
	ck_assert_uint_eq(seg.len, 12);
	ck_assert_uint_eq(seg.flags, SEG_ACK | SEG_PSH);
	frame[len - 1] ^= 1; // payload
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &seg), WIRE_BAD_CHECKSUM);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_OK);
}

TEST(padding_is_not_payload) {
	struct wire_info info;
	struct seg seg;
	size_t len = load(kernel_ack);

	memset(frame + len, 0xaa, 20);
	ck_assert_int_eq(wire_parse(frame, len + 20, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &seg), WIRE_OK);
	ck_assert_uint_eq(seg.len, 0);
}

TEST(sizes) {
	struct seg seg = {.flags = SEG_ACK};

	ck_assert_uint_eq(wire_tcp_header(&seg), 20);
	ck_assert_uint_eq(wire_tcp_frame(&seg, WIRE_IPV4), 60);
	seg.options = SEG_OPT_TS;
	seg.len = 1448;
	ck_assert_uint_eq(wire_tcp_frame(&seg, WIRE_IPV4), 1514);
	seg.sack_count = 3;
	ck_assert_uint_eq(wire_tcp_header(&seg), 60);
	seg.sack_count = 4; // a fourth has no room beside timestamps
	ck_assert_uint_eq(wire_tcp_header(&seg), 60);
	seg.options = 0;
	ck_assert_uint_eq(wire_tcp_header(&seg), 56);
	seg.options = SEG_OPT_TS | SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK;
	seg.sack_count = UINT8_MAX;
	ck_assert_uint_eq(wire_tcp_header(&seg), 60);
}

// Every set of options: what is written parses back, in whole words, within the header's bounds.
TEST(segments_survive_the_wire) {
	struct rng r;

	rng_init(&r, 1, "wire");
	for (uint32_t n = 0; n < 3000; n++) {
		struct wire_info info;
		struct seg got;
		struct seg seg = {.seq = (uint32_t)rng_u64(&r),
			.ack = (uint32_t)rng_u64(&r),
			.len = (uint16_t)(rng_u64(&r) % 1400),
			.window = (uint16_t)rng_u64(&r),
			.flags = (uint8_t)rng_u64(&r),
			.options = n % 16,
			.sack_count = (n / 16) % 5};
		uint8_t only_syn = SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK;

		if (!(seg.flags & SEG_SYN))
			seg.options &= (uint8_t)~only_syn;
		if (seg.options & SEG_OPT_TS) {
			seg.tsval = (uint32_t)rng_u64(&r);
			seg.tsecr = (uint32_t)rng_u64(&r);
		}
		seg.mss = seg.options & SEG_OPT_MSS ? (uint16_t)rng_u64(&r) : 0;
		seg.wscale = seg.options & SEG_OPT_WSCALE ? rng_u64(&r) % 15 : 0;
		for (uint32_t i = 0; i < seg.sack_count; i++) {
			seg.sack[i].start = (uint32_t)rng_u64(&r);
			seg.sack[i].end = (uint32_t)rng_u64(&r);
		}
		uint8_t ecn = n % 4;
		size_t len = build(&seg, ecn);
		ck_assert_uint_le(wire_tcp_header(&seg), 60);
		while (seg.sack_count > 0 && wire_tcp_header(&seg) < 20 + 8u * seg.sack_count + 4)
			seg.sack_count--;
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_mem_eq(&info.addr, &addr, sizeof(addr));
		ck_assert_uint_eq(info.ecn, ecn);
		ck_assert_uint_eq(wire_ecn(frame, len), ecn);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_OK);
		if (got.sack_count < seg.sack_count) { // left out for want of room
			ck_assert_uint_gt(wire_tcp_header(&seg) + 8, 60);
			seg.sack_count = got.sack_count;
		}
		check_seg(&got, &seg);
	}
}

// Options of the kernel's SYN, then ill-formed ones; each is 4 bytes padded with end-of-list.
TEST(odd_options) {
	static const struct {
		uint8_t bytes[4];
		enum wire_status status;
	} cases[] = {
		{{1, 1, 1, 1}, WIRE_OK},
		{{0, 2, 0, 9}, WIRE_OK}, // nothing counts after the end
		{{254, 4, 1, 2}, WIRE_OK}, // unknown
		{{3, 4, 7, 0}, WIRE_OK}, // window scale of a wrong length
		{{2, 3, 5, 0}, WIRE_OK}, // MSS likewise
		{{8, 2, 0, 0}, WIRE_OK}, // timestamps likewise
		{{5, 2, 0, 0}, WIRE_OK}, // SACK without a block
		{{1, 1, 1, 2}, WIRE_BAD_HEADER}, // no room for a length
		{{2, 0, 0, 0}, WIRE_BAD_HEADER},
		{{2, 1, 0, 0}, WIRE_BAD_HEADER},
		{{2, 5, 5, 0xb4}, WIRE_BAD_HEADER},
		{{8, 10, 0, 0}, WIRE_BAD_HEADER},
	};
	const struct seg syn = {.flags = SEG_SYN, .options = SEG_OPT_MSS, .mss = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_info info;
		struct seg seg;
		size_t len = build(&syn, 0);
		memcpy(frame + 54, cases[i].bytes, 4);
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), cases[i].status);
		ck_assert_uint_eq(seg.options, 0);
		ck_assert_uint_eq(seg.sack_count, 0);
	}
}

TEST(syn_options_count_on_a_syn_only) {
	struct seg seg = {.flags = SEG_SYN,
		.options = SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK,
		.mss = 1460,
		.wscale = 200};
	struct wire_info info;
	struct seg got;
	size_t len = build(&seg, 0);

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_OK);
	ck_assert_uint_eq(got.options, seg.options);
	ck_assert_uint_eq(got.wscale, 14); // RFC 7323 section 2.3
	frame[47] = SEG_ACK;
	ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &got), WIRE_OK);
	ck_assert_uint_eq(got.options, 0);
}

static void check_status(size_t at, uint8_t value, enum wire_status status) {
	struct wire_info info;
	size_t len = load(kernel_data);

	frame[at] = value;
	ck_assert_int_eq(wire_parse(frame, len, &info), status);
}

TEST(bad_ip_headers) {
	struct wire_info info;
	size_t len = load(kernel_data);

	for (size_t n = 0; n < len; n++)
		ck_assert_int_eq(wire_parse(frame, n, &info), WIRE_TRUNCATED);
	check_status(14, 0x65, WIRE_BAD_HEADER); // version 6
	check_status(14, 0x44, WIRE_BAD_HEADER); // 16 bytes of header
	check_status(14, 0x4f, WIRE_BAD_CHECKSUM); // 60, which is in the frame, but not true
	check_status(17, 19, WIRE_BAD_HEADER); // total length below the header's
	check_status(17, 65, WIRE_TRUNCATED); // and beyond the frame
	check_status(22, 63, WIRE_BAD_CHECKSUM); // a TTL lowered without care
	check_status(12, 0x86, WIRE_OK); // some other ethertype: nothing to check
}

TEST(bad_tcp_headers) {
	struct wire_info info;
	struct seg seg;
	size_t len = load(kernel_data);

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	frame[46] = 0x40; // 16 bytes of header
	ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_BAD_HEADER);
	frame[46] = 0xf0; // 60, more than there is
	ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_TRUNCATED);
	info.ip_len = 39;
	ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_TRUNCATED);
	info.proto = WIRE_PROTO_UDP;
	ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_BAD_HEADER);
}

// More-fragments: ports are there. A later fragment: none. Neither is a segment.
TEST(fragments) {
	static const uint16_t flags[] = {0x2000, 0x0010, 0x2010};

	for (size_t i = 0; i < 3; i++) {
		struct wire_info info;
		struct seg seg;
		size_t len = load(kernel_data);
		uint16_t csum = wire_csum_replace(0x409b, 0x4000, flags[i]);
		frame[20] = (uint8_t)(flags[i] >> 8);
		frame[21] = (uint8_t)flags[i];
		frame[24] = (uint8_t)(csum >> 8);
		frame[25] = (uint8_t)csum;
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert(info.fragment);
		ck_assert_uint_eq(info.addr.dst_port, i == 0 ? 5001 : 0);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_BAD_HEADER);
	}
}

// A first fragment has ports, but is no segment.
TEST(addresses_are_read_of_whole_segments_alone) {
	static const struct {
		size_t at;
		uint8_t value;
	} others[] = {{12, 0x86}, {14, 0x46}, {23, WIRE_PROTO_ICMP}, {20, 0x20}, {21, 0x10}};
	size_t len = load(kernel_data);
	struct wire_addr a;

	ck_assert(wire_read_addr(frame, len, &a));
	ck_assert_uint_eq(a.src_ip, IP_A);
	ck_assert_uint_eq(a.dst_ip, IP_B);
	ck_assert_uint_eq(a.src_port, 40902);
	ck_assert_uint_eq(a.dst_port, 5001);
	ck_assert(wire_read_addr(frame, WIRE_ETH + WIRE_IPV4 + WIRE_TCP, &a));
	ck_assert(!wire_read_addr(frame, WIRE_ETH + WIRE_IPV4 + WIRE_TCP - 1, &a));
	frame[23] = WIRE_PROTO_UDP;
	ck_assert(wire_read_addr(frame, len, &a));
	ck_assert_uint_eq(a.src_port, 40902);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		load(kernel_data);
		frame[others[i].at] = others[i].value;
		ck_assert(!wire_read_addr(frame, len, &a));
	}
}

TEST(arp_as_the_kernel_speaks_it) {
	const struct wire_arp request = {true, mac_a, IP_A, IP_B};
	const struct wire_arp reply = {false, mac_b, IP_B, IP_A};
	uint8_t ours[WIRE_MIN_FRAME];
	struct wire_arp arp;

	size_t len = load(kernel_arp_request);
	ck_assert_int_eq(wire_parse_arp(frame, len, &arp), WIRE_OK);
	ck_assert_int_eq(arp.request, true);
	ck_assert_mem_eq(&arp.sender_mac, &mac_a, 6);
	ck_assert_uint_eq(arp.sender_ip, IP_A);
	ck_assert_uint_eq(arp.target_ip, IP_B);
	ck_assert_uint_eq(wire_write_arp(ours, &request, NULL), 60);
	ck_assert_mem_eq(ours, frame, len);

	len = load(kernel_arp_reply);
	ck_assert_int_eq(wire_parse_arp(frame, len, &arp), WIRE_OK);
	ck_assert_int_eq(arp.request, false);
	ck_assert_uint_eq(wire_write_arp(ours, &reply, &mac_a), 60);
	ck_assert_mem_eq(ours, frame, len);
	for (size_t n = 0; n < len; n++)
		ck_assert_int_eq(wire_parse_arp(frame, n, &arp), WIRE_TRUNCATED);
	for (size_t at = 12; at < 22; at++) { // ethertype up to operation
		load(kernel_arp_reply);
		frame[at] ^= 4;
		ck_assert_int_eq(wire_parse_arp(frame, len, &arp), WIRE_BAD_HEADER);
	}
}

// RFC 1812 section 3.3.2: else one frame makes us send to everybody.
TEST(arp_that_claims_a_group_address_is_not_believed) {
	struct wire_arp arp;
	size_t len = load(kernel_arp_reply);

	frame[WIRE_ETH + 8] |= 1;
	ck_assert_int_eq(wire_parse_arp(frame, len, &arp), WIRE_BAD_HEADER);
	memset(frame + WIRE_ETH + 8, 0xff, 6);
	ck_assert_int_eq(wire_parse_arp(frame, len, &arp), WIRE_BAD_HEADER);
}

TEST(echo_reply_as_the_kernel_answers) {
	struct wire_info info;
	size_t len = load(kernel_echo);

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert(wire_echo_reply(frame, len, &info));
	ck_assert_mem_eq(frame, &mac_a, 6);
	ck_assert_mem_eq(frame + 6, &mac_b, 6);
	// The kernel's ICMP part; its IP header had another identification.
	ck_assert_uint_eq(frame[34] << 8 | frame[35], 0x0000);
	ck_assert_uint_eq(frame[36] << 8 | frame[37], 0xa237);
	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_uint_eq(info.addr.src_ip, IP_B);
	ck_assert_uint_eq(info.addr.dst_ip, IP_A);
	ck_assert(!wire_echo_reply(frame, len, &info)); // a reply is no request
}

// RFC 1191 section 4: type 3, code 4, the MTU in the last half of the header's second word.
TEST(fragmentation_needed_tells_the_mtu) {
	static const struct {
		uint8_t type, code;
		uint16_t mtu;
		uint32_t expected;
	} cases[] = {{3, 4, 1400, 1400}, {3, 4, 0, 68}, {3, 3, 1400, 0}, {8, 4, 1400, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_info info;
		size_t len = load(kernel_echo);

		memset(frame + 34, 0, len - 34);
		frame[34] = cases[i].type;
		frame[35] = cases[i].code;
		frame[40] = (uint8_t)(cases[i].mtu >> 8);
		frame[41] = (uint8_t)cases[i].mtu;
		uint16_t sum = wire_fold(wire_sum(frame + 34, len - 34, 0));
		frame[36] = (uint8_t)(sum >> 8);
		frame[37] = (uint8_t)sum;
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_uint_eq(wire_path_mtu(frame, len, &info), cases[i].expected);
		frame[41] ^= 1; // a wrong checksum
		ck_assert_uint_eq(wire_path_mtu(frame, len, &info), 0);
	}
}

// All zero but the type: RFC 1624's update would write 0x0000, which does not verify.
TEST(echo_reply_of_zeros) {
	struct wire_info info;
	size_t len = load(kernel_echo);

	memset(frame + 34, 0, len - 34);
	frame[34] = 8;
	frame[36] = 0xf7;
	frame[37] = 0xff;
	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert(wire_echo_reply(frame, len, &info));
	ck_assert_uint_eq(frame[36] << 8 | frame[37], 0xffff);
}

TEST(no_echo_for_bad_requests) {
	struct wire_info info;
	size_t len = load(kernel_echo);

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	frame[len - 1] ^= 1;
	ck_assert(!wire_echo_reply(frame, len, &info));
	load(kernel_echo);
	memset(frame, 0xff, 6);
	ck_assert(!wire_echo_reply(frame, len, &info));
	load(kernel_echo);
	ck_assert(!wire_echo_reply(frame, len - 1, &info));
	info.fragment = true;
	ck_assert(!wire_echo_reply(frame, len, &info));
}

// The short way for segments with timestamps alone writes the same bytes, whosever template it was.
TEST(template_writes_the_same_bytes) {
	static uint8_t plain[WIRE_HEADER_PLAIN];
	struct wire_template t;
	struct rng r;

	rng_init(&r, 2, "wire");
	wire_template_init(&t, &addr);
	for (uint32_t n = 0; n < 20000; n++) {
		struct seg seg = {.seq = (uint32_t)rng_u64(&r),
			.ack = (uint32_t)rng_u64(&r),
			.tsval = (uint32_t)rng_u64(&r),
			.tsecr = (uint32_t)rng_u64(&r),
			.len = (uint16_t)(rng_u64(&r) % 1449),
			.window = (uint16_t)rng_u64(&r),
			.flags = (uint8_t)rng_u64(&r),
			.options = SEG_OPT_TS};
		struct wire_addr ends = addr;
		uint16_t ip_id = (uint16_t)rng_u64(&r);
		uint8_t ecn = n % 4;

		if (n % 3 > 0) { // the same flow again, or another
			ends.src_ip = (uint32_t)rng_u64(&r);
			ends.dst_ip = (uint32_t)rng_u64(&r);
			ends.src_port = (uint16_t)rng_u64(&r);
			ends.dst_port = (uint16_t)rng_u64(&r);
		}
		ck_assert(wire_is_plain(&seg));
		wire_template_ends(
			&t, ends.src_ip, ends.src_port, ends.dst_ip, ends.dst_port, false);
		ck_assert_mem_eq(
			&t.addr, &ends, offsetof(struct wire_addr, ipv6)); // padding follows
		ck_assert(t.addr.ipv6 == ends.ipv6);
		wire_write_plain(plain, &t, ecn, ip_id, &seg);
		ck_assert_uint_eq(
			wire_write_tcp(frame, &ends, ecn, ip_id, &seg), WIRE_HEADER_PLAIN);
		ck_assert_mem_eq(plain, frame, WIRE_HEADER_PLAIN);
	}
}

// What it must get right: sums that are 0 modulo 0xffff have a zero of two forms.
TEST(template_checksum_of_zero) {
	static uint8_t plain[WIRE_HEADER_PLAIN];
	struct wire_template t;

	wire_template_init(&t, &addr);
	for (uint32_t value = 0; value <= UINT16_MAX; value++) {
		struct seg seg = {.flags = SEG_ACK, .options = SEG_OPT_TS, .tsecr = value};

		wire_write_plain(plain, &t, 0, (uint16_t)value, &seg);
		wire_write_tcp(frame, &addr, 0, (uint16_t)value, &seg);
		ck_assert_mem_eq(plain, frame, WIRE_HEADER_PLAIN);
	}
}

// Of the kernel's segments, and of those that are broken in any one bit: the short way says the
// same as the long one, or leaves it to that.
TEST(plain_parse_agrees) {
	static const char *const captured[] = {
		kernel_syn, kernel_syn_ack, kernel_ack, kernel_fin, kernel_data, kernel_echo};
	uint32_t taken = 0;

	for (uint32_t i = 0; i < 6; i++) {
		size_t len = load(captured[i]);

		for (size_t bit = 0; bit <= 8 * len; bit++) {
			struct wire_info info = {0}, plain_info = {0};
			struct seg seg, plain = {0};
			bool verify = bit % 3 > 0;

			load(captured[i]);
			if (bit < 8 * len)
				frame[bit / 8] ^= (uint8_t)(1u << (bit % 8));
			if (!wire_parse_plain(frame, len, verify, &plain_info, &plain))
				continue;
			taken++;
			ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
			ck_assert_int_eq(wire_parse_tcp(frame, &info, verify, &seg), WIRE_OK);
			ck_assert_mem_eq(&plain_info, &info, sizeof(info));
			check_seg(&plain, &seg);
			ck_assert(wire_is_plain(&seg));
		}
	}
	ck_assert_uint_ge(taken, 3 + 3 * 12 * 8); // each as it was, and with other MAC addresses
}

TEST(plain_parse_leaves_the_rest) {
	struct wire_info info;
	struct seg seg;
	size_t len = load(kernel_data);

	ck_assert(wire_parse_plain(frame, len, true, &info, &seg));
	ck_assert(!wire_parse_plain(frame, len - 1, true, &info, &seg)); // truncated
	frame[len - 1] ^= 1;
	ck_assert(!wire_parse_plain(frame, len, true, &info, &seg)); // checksum
	ck_assert(wire_parse_plain(frame, len, false, &info, &seg));
	ck_assert(!wire_parse_plain(frame, load(kernel_syn), true, &info, &seg));
	ck_assert(!wire_parse_plain(frame, load(kernel_arp_reply), true, &info, &seg));
	ck_assert(!wire_parse_plain(frame, load(kernel_echo), true, &info, &seg));
}

// Whose payload of zeros is not added up: any bit of it, and of the TCP header, still breaks the
// sum.
TEST(zeros_are_verified) {
	const struct seg sent = {.flags = SEG_ACK, .options = SEG_OPT_TS, .seq = 7, .len = 1448};
	size_t len = build(&sent, 0);
	struct wire_info info;
	struct seg seg;

	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &seg), WIRE_OK);
	ck_assert(wire_parse_plain(frame, len, true, &info, &seg));
	check_seg(&seg, &sent);
	for (size_t bit = 8 * (WIRE_ETH + WIRE_IPV4); bit < 8 * len; bit++) {
		uint8_t *at = &frame[bit / 8], mask = (uint8_t)(1u << (bit % 8));

		*at ^= mask;
		ck_assert(!wire_parse_plain(frame, len, true, &info, &seg));
		*at ^= mask;
	}
}

// RFC 2018 section 3: 8 bytes for each block, 2 before them. One block is a whole report; one of 12
// bytes is none.
TEST(sack_option_is_of_whole_blocks) {
	for (uint8_t size = 2; size <= 34; size++) {
		const struct seg plain = {.flags = SEG_ACK, .len = 40};
		struct wire_info info;
		struct seg seg;
		size_t len = build(&plain, 0);

		frame[46] = 0xf0; // 40 bytes of options
		memset(frame + 54, 0, 40);
		frame[54] = 5;
		frame[55] = size;
		if (size > 2)
			frame[56] = 0x12;
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), WIRE_OK);
		ck_assert_uint_eq(seg.sack_count, size % 8 == 2 ? size / 8 : 0);
		ck_assert_uint_eq(seg.sack[0].start, seg.sack_count > 0 ? 0x12000000 : 0);
	}
}

// A header of 20 to 60 bytes in a segment of 20 bytes and more, each at its edge.
TEST(tcp_header_is_within_its_segment) {
	const struct seg plain = {.flags = SEG_ACK, .len = 40};

	for (uint32_t words = 0; words < 16; words++) {
		for (uint16_t tcp_len = 0; tcp_len <= 60; tcp_len++) {
			struct wire_info info;
			struct seg seg = {0};
			size_t len = build(&plain, 0);
			enum wire_status want = tcp_len < 20 ? WIRE_TRUNCATED
				: words < 5		     ? WIRE_BAD_HEADER
				: 4 * words > tcp_len	     ? WIRE_TRUNCATED
							     : WIRE_OK;

			ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
			frame[46] = (uint8_t)(words << 4);
			info.ip_len = (uint16_t)(20 + tcp_len);
			ck_assert_int_eq(wire_parse_tcp(frame, &info, false, &seg), want);
			ck_assert_uint_eq(seg.len, want == WIRE_OK ? tcp_len - 4 * words : 0);
		}
	}
}

// The same flow behind any number of tags; of IPv6 another one for each address and port, in both
// directions alike.
TEST(flows_of_ipv4_and_ipv6_behind_vlan_tags) {
	static const char tag[] = "8100a005", outer[] = "88a80064",
			  macs[] = "020000000002020000000001";
	static const char ipv4[] = "0800450000280000000040060000c6120001c6130001";
	static const char ipv6[] = "86dd6000000000140640";
	static const char one[] = "20010db8000000000000000000000001",
			  two[] = "20010db8000000000000000000000002";
	static const char tcp[] = "9c4013890000000000000000501000000000ffff";
	struct wire_flow v4[3], v6[3], back;
	char text[300];

	for (int tags = 0; tags < 3; tags++) {
		const char *before = tags > 0 ? tag : "", *first = tags == 2 ? outer : "";

		snprintf(text, sizeof(text), "%s%s%s%s%s", macs, first, before, ipv4, tcp);
		wire_read_flow(frame, load(text), &v4[tags]);
		snprintf(text, sizeof(text), "%s%s%s%s%s%s%s", macs, first, before, ipv6, one, two,
			tcp);
		wire_read_flow(frame, load(text), &v6[tags]);
		ck_assert_mem_eq(&v4[tags], &v4[0], sizeof(v4[0]));
		ck_assert_mem_eq(&v6[tags], &v6[0], sizeof(v6[0]));
	}
	ck_assert_uint_eq(v4[0].src, 0xc6120001);
	ck_assert_uint_eq(v4[0].dst, 0xc6130001);
	for (int six = 0; six < 2; six++) {
		const struct wire_flow *f = six ? v6 : v4;

		ck_assert_uint_eq(f->src_port, 40000);
		ck_assert_uint_eq(f->dst_port, 5001);
		ck_assert_uint_eq(f->proto, WIRE_PROTO_TCP);
		ck_assert_int_eq(f->ipv6, six);
	}
	ck_assert_uint_ne(v6[0].src, v6[0].dst);
	snprintf(text, sizeof(text), "%s%s%s", macs, ipv4, tcp);
	size_t len = load(text);
	frame[WIRE_ETH + 6] = 0x20; // more fragments
	wire_read_flow(frame, len, &back);
	ck_assert_uint_eq(back.src_port + back.dst_port, 0);
	snprintf(text, sizeof(text), "%s%s%s%s%s", macs, ipv6, two, one, tcp);
	wire_read_flow(frame, load(text), &back);
	ck_assert_uint_eq(back.src, v6[0].dst);
	ck_assert_uint_eq(back.dst, v6[0].src);
}

// Options before the transport header are passed over; fragments have no ports.
TEST(ports_are_behind_the_extension_headers_of_ipv6) {
	static const struct {
		const char *next, *headers; // of IPv6, and what comes before TCP
		uint16_t src_port;
	} cases[] = {
		{"06", "", 40000}, {"00", "0600010400000000", 40000},
		{"00", "3c000104000000000601010400000000010c000000000000", 40000},
		{"2c", "0600000100000007", 0}, // the first of several fragments
		{"2c", "0600000900000007", 0}, {"3b", "", 0}, // no next header
		{"00", "06ff010400000000", 0}, // longer than the packet
	};
	char text[400];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_flow f;
		size_t payload = strlen(cases[i].headers) / 2 + 20, len;

		snprintf(text, sizeof(text),
			"02000000000202000000000186dd60000000%04zx%s40%064d%s9c401389%032d",
			payload, cases[i].next, 0, cases[i].headers, 0);
		len = load(text);
		wire_read_flow(frame, len, &f);
		ck_assert_uint_eq(f.src_port, cases[i].src_port);
		ck_assert_uint_eq(f.dst_port, cases[i].src_port > 0 ? 5001 : 0);
		for (size_t cut = 0; cut < len; cut++) { // no byte beyond it is read
			uint8_t *exact = malloc(cut + 1);

			memcpy(exact, frame, cut);
			wire_read_flow(exact, cut, &f);
			free(exact);
		}
	}
}

TEST(ports_are_in_the_first_four_bytes_behind_ip) {
	for (uint8_t len = 20; len <= 25; len++) {
		const struct seg plain = {.flags = SEG_ACK};
		struct wire_info info;

		build(&plain, 0);
		frame[17] = len; // of IP
		wire_read(frame, sizeof(frame), &info);
		ck_assert_uint_eq(info.addr.src_port, len < 24 ? 0 : 40000);
		ck_assert_uint_eq(info.addr.dst_port, len < 24 ? 0 : 5001);
	}
}

// A payload of one byte's value is summed up like any other, unless the value is 0.
TEST(payload_of_equal_bytes_is_verified) {
	const struct seg two = {.flags = SEG_ACK, .len = 2};
	struct wire_info info;
	struct seg got;
	size_t len = build(&two, 0);
	uint16_t csum = wire_csum_replace(wire_get16(frame + 50), 0, 0x5555);

	frame[54] = frame[55] = 0x55;
	ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_BAD_CHECKSUM);
	frame[50] = (uint8_t)(csum >> 8);
	frame[51] = (uint8_t)csum;
	ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_OK);
}

// Headers that are no plain segment's, with an IP checksum that is right: a length that ends inside
// the TCP header, and a fragment. The long way says what they are.
TEST(plain_parse_leaves_short_segments_and_fragments) {
	static const struct {
		size_t at;
		uint16_t value;
	} cases[] = {{16, 51}, {20, 0x2000}, {20, 0x4001}};

	for (size_t i = 0; i < 3; i++) {
		size_t len = load(kernel_data);
		uint16_t was = wire_get16(frame + cases[i].at);
		uint16_t csum = wire_csum_replace(wire_get16(frame + 24), was, cases[i].value);
		struct wire_info info;
		struct seg seg;

		frame[cases[i].at] = (uint8_t)(cases[i].value >> 8);
		frame[cases[i].at + 1] = (uint8_t)cases[i].value;
		frame[24] = (uint8_t)(csum >> 8);
		frame[25] = (uint8_t)csum;
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_int_ne(wire_parse_tcp(frame, &info, false, &seg), WIRE_OK);
		ck_assert(!wire_parse_plain(frame, len, false, &info, &seg));
	}
}

TEST(ecn_of_a_bare_ip_header) {
	load(kernel_data);
	frame[15] = ECN_ECT0;
	ck_assert_uint_eq(wire_ecn_any(frame, 34), ECN_ECT0);
	ck_assert_uint_eq(wire_ecn_any(frame, 33), ECN_NOT_ECT);
}

// A frame behind one more VLAN tag; returns its length.
static size_t add_tag(size_t len) {
	static const uint8_t tag[] = {0x81, 0, 0, 5};

	memmove(frame + 16, frame + 12, len - 12);
	memcpy(frame + 12, tag, sizeof(tag));
	return len + sizeof(tag);
}

// A host that leaves checksums to its card has the sum of the addresses in their place; its frames
// were passed on without a word, and thrown away where they arrived.
TEST(checksums_that_a_card_would_fill_in) {
	static const char udp6[] =
		"02000000000202000000000186dd60000000000911402001" // one byte of payload
		"0db800000000000000000000000120010db8000000000000000000000002"
		"9c401389000900007700";
	size_t len = load(kernel_data);
	// 0a09 0001 0a09 0002, protocol 6, 44 bytes
	const uint16_t pseudo = 0x0a09 + 1 + 0x0a09 + 2 + 6 + 44;

	ck_assert_int_eq(wire_l4_sum(frame, len), WIRE_L4_FILLED);
	frame[50] = pseudo >> 8;
	frame[51] = pseudo & 0xff;
	ck_assert_int_eq(wire_l4_sum(frame, len), WIRE_L4_PARTIAL);
	ck_assert_int_eq(wire_l4_sum(frame, add_tag(len)), WIRE_L4_PARTIAL);
	ck_assert_int_eq(wire_l4_sum(frame, len), WIRE_L4_NONE); // cut
	ck_assert_int_eq(wire_l4_sum(frame, load(kernel_echo)), WIRE_L4_NONE);
	len = load(udp6);
	ck_assert_int_eq(wire_l4_sum(frame, len), WIRE_L4_FILLED);
	// 2001 0db8 1 2001 0db8 2, protocol 17, 9 bytes
	const uint32_t sum = 2 * (0x2001 + 0x0db8) + 1 + 2 + 17 + 9;
	frame[60] = (uint8_t)(sum >> 8);
	frame[61] = (uint8_t)sum;
	ck_assert_int_eq(wire_l4_sum(frame, len), WIRE_L4_PARTIAL);
}

// What a port received cut off was passed on if it was not IPv4 without a tag.
TEST(frames_that_are_cut_off) {
	static const char ipv6[] = "02000000000202000000000186dd6000000000083a40";
	char text[200];
	size_t len = load(kernel_data);

	ck_assert_int_eq(wire_check(frame, len), WIRE_OK);
	ck_assert_int_eq(wire_check(frame, len - 1), WIRE_TRUNCATED);
	len = add_tag(len);
	ck_assert_int_eq(wire_check(frame, len), WIRE_OK);
	ck_assert_int_eq(wire_check(frame, len - 1), WIRE_TRUNCATED);
	snprintf(text, sizeof(text), "%s%064d%016d", ipv6, 0, 0);
	len = load(text);
	ck_assert_int_eq(wire_check(frame, len), WIRE_OK);
	ck_assert_int_eq(wire_check(frame, len - 1), WIRE_TRUNCATED);
}

TEST(mtu_of_a_syns_host) {
	size_t len = load(kernel_syn);

	ck_assert_uint_eq(wire_tags(frame, len), 0);
	ck_assert_uint_eq(wire_syn_mtu(frame, len), 1500);
	len = add_tag(add_tag(len));
	ck_assert_uint_eq(wire_tags(frame, len), 2);
	ck_assert_uint_eq(wire_syn_mtu(frame, len), 1500);
	ck_assert_uint_eq(wire_syn_mtu(frame, len - 1), 0); // not all of its options
	ck_assert_uint_eq(wire_syn_mtu(frame, load(kernel_ack)), 0);
	ck_assert_uint_eq(wire_syn_mtu(frame, load(kernel_echo)), 0);
}
