// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/headers.h"
#include "common/net/wire.h"
#include "test.h"

#include <string.h>

static size_t write_tcp(uint8_t *frame, const struct seg *seg) {
	struct wire_addr a = {.src_ip = 1, .dst_ip = 2, .src_port = 3, .dst_port = 4};
	size_t head = wire_write_tcp(frame, &a, 45 << 2 | ECN_ECT0, 0, seg);

	memset(frame + head, 0, seg->len);
	return head + seg->len;
}

TEST(tcp_in_ipv4) {
	struct seg seg = {.seq = 0xfffffff0, .len = 1400, .flags = SEG_ACK, .options = SEG_OPT_TS};
	uint8_t frame[2000] = {0};
	size_t len = write_tcp(frame, &seg);
	struct pkt_headers h = headers_read(frame, len);

	ck_assert_uint_eq(h.seq, 0xfffffff0);
	ck_assert_uint_eq(h.seq_count, 1400);
	ck_assert(!h.syn);
	ck_assert_uint_eq(h.dscp, 45);
	ck_assert_uint_eq(wire_ecn_any(frame, len), ECN_ECT0);
	// The headers are enough, to the last option or not.
	h = headers_read(frame, WIRE_ETH + WIRE_IPV4 + WIRE_TCP);
	ck_assert_uint_eq(h.seq_count, 1400);
	h = headers_read(frame, WIRE_ETH + WIRE_IPV4 + WIRE_TCP - 1);
	ck_assert(h.seq == 0 && h.seq_count == 0);
	h = headers_read(frame, 13);
	ck_assert(h.seq == 0 && h.seq_count == 0);

	seg = (struct seg){.seq = 7, .len = 10, .flags = SEG_ACK | SEG_FIN};
	ck_assert_uint_eq(headers_read(frame, write_tcp(frame, &seg)).seq_count, 11);
	seg = (struct seg){.seq = 7, .flags = SEG_SYN, .options = SEG_OPT_MSS, .mss = 1460};
	len = write_tcp(frame, &seg);
	h = headers_read(frame, 60); // with its padding
	ck_assert_uint_eq(h.seq, 7);
	ck_assert_uint_eq(h.seq_count, 0);
	ck_assert(h.syn);
}

TEST(anything_else) {
	struct seg seg = {.seq = 5, .len = 10};
	uint8_t frame[2000] = {0};
	size_t len = write_tcp(frame, &seg);
	struct pkt_headers h;

	frame[WIRE_ETH + 6] = 0x20; // more fragments follow
	h = headers_read(frame, len);
	ck_assert(h.seq == 0 && h.seq_count == 0 && !h.syn);
	frame[WIRE_ETH + 6] = 0;
	frame[WIRE_ETH + 9] = WIRE_PROTO_UDP;
	h = headers_read(frame, len);
	ck_assert(h.seq == 0 && h.seq_count == 0 && !h.syn);
	frame[WIRE_ETH + 9] = WIRE_PROTO_TCP;
	ck_assert_uint_eq(headers_read(frame, len).seq, 5);
	frame[12] = 0x86; // IPv6
	frame[13] = 0xdd;
	h = headers_read(frame, len);
	ck_assert(h.seq == 0 && h.seq_count == 0 && !h.syn);
}

// As written by wire.h and as Linux writes it: other options make it more than an ACK.
TEST(an_ack_and_nothing_else) {
	struct seg seg = {.seq = 5,
		.ack = 77,
		.flags = SEG_ACK | SEG_ECE,
		.options = SEG_OPT_TS,
		.tsval = 99,
		.sack_count = 3,
		.sack = {{100, 200}, {300, 400}, {500, 600}}};
	uint8_t frame[2000] = {0};
	size_t len = write_tcp(frame, &seg), tcp = WIRE_ETH + WIRE_IPV4;
	struct pkt_headers h = headers_read(frame, len);

	ck_assert(h.pure_ack && h.timestamps);
	ck_assert_uint_eq(h.ack, 77);
	ck_assert_uint_eq(h.tsval, 99);
	ck_assert_uint_eq(h.ace, 1);
	ck_assert_uint_eq(h.sacks, 3);
	ck_assert_uint_eq(h.sack[1].start, 300);
	ck_assert_uint_eq(h.sack[2].end, 600);
	ck_assert(!headers_read(frame, len - 1).pure_ack); // cut off in its options
	seg.len = 1;
	ck_assert(!headers_read(frame, write_tcp(frame, &seg)).pure_ack);
	seg.len = 0;
	seg.flags = SEG_ACK | SEG_FIN;
	ck_assert(!headers_read(frame, write_tcp(frame, &seg)).pure_ack);
	seg = (struct seg){
		.ack = 77, .flags = SEG_ACK, .options = SEG_OPT_ACCECN0, .ecn_fields = 3};
	ck_assert(!headers_read(frame, write_tcp(frame, &seg)).pure_ack);
	seg.options = 0;
	len = write_tcp(frame, &seg);
	h = headers_read(frame, len);
	ck_assert(h.pure_ack && !h.timestamps && h.tsval == 0 && h.sacks == 0);
	frame[tcp + 12] =
		6 << 4; // four bytes of options that are neither: SACK permitted, on no SYN
	frame[WIRE_ETH + 3] += 4;
	memcpy(frame + len, "\4\2\1\1", 4);
	ck_assert(!headers_read(frame, 60).pure_ack);
}

// Puts so many tags before the type; the length with them.
static size_t tag(uint8_t *frame, size_t len, uint32_t tags) {
	static const uint8_t tag[][WIRE_TAG] = {{0x81, 0, 0, 5}, {0x88, 0xa8, 0xe0, 7}};

	for (uint32_t i = 0; i < tags; i++, len += WIRE_TAG) {
		memmove(frame + 12 + WIRE_TAG, frame + 12, len - 12);
		memcpy(frame + 12, tag[i], WIRE_TAG);
	}
	return len;
}

// Of IPv4 and IPv6, TCP and UDP, without a tag, with one (802.1Q) and with two (802.1ad).
TEST(behind_vlan_tags) {
	for (uint32_t tags = 0; tags <= 2; tags++) {
		for (int ipv6 = 0; ipv6 <= 1; ipv6++) {
			struct wire_addr a = {.src_ip = 1, .dst_ip = 2, .ipv6 = ipv6 == 1};
			struct seg seg = {.seq = 5, .ack = 77, .flags = SEG_ACK};
			uint8_t frame[200] = {0};
			size_t len = wire_write_tcp(frame, &a, 46 << 2 | ECN_CE, 0, &seg);
			struct pkt_headers h = headers_read(frame, tag(frame, len, tags));

			ck_assert_uint_eq(h.dscp, 46);
			ck_assert(h.seq == 5 && h.seq_count == 0 && h.pure_ack && h.ack == 77);
			seg = (struct seg){.len = 40, .options = SEG_OPT_UDP};
			len = tag(frame, wire_write_udp(frame, &a, 8 << 2, 0, &seg), tags);
			h = headers_read(frame, len);
			ck_assert(h.dscp == 8 && h.seq == 0 && h.seq_count == 0 && !h.pure_ack);
			// Cut off within the IP header there is nothing to read.
			len = WIRE_ETH + tags * WIRE_TAG + WIRE_IPV4 - 1;
			ck_assert_uint_eq(headers_read(frame, len).dscp, 0);
		}
	}
}
