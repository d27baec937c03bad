// SPDX-License-Identifier: BSD-3-Clause
// Super-frames: cut into the packets that a host would have sent, and joined again to what they
// were.
#include "common/net/super_frame.h"

#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"
#include "test.h"

#include <string.h>

#define SIZE 1000u
#define ROOM 70000
#define PACKETS 80
#define TOS 2 // ECT(0)

static const struct wire_addr ipv4 = {
	.src_mac = {{2, 0, 0, 0, 0, 1}},
	.dst_mac = {{2, 0, 0, 0, 0, 2}},
	.src_ip = 0xc6120001,
	.dst_ip = 0xc6130001,
	.src_port = 1000,
	.dst_port = 5001,
};
static uint8_t whole[ROOM], packet[PACKETS][1200];
static uint32_t length[PACKETS];

static struct wire_addr of_family(bool ipv6) {
	struct wire_addr a = ipv4;

	a.ipv6 = ipv6;
	return a;
}

static void put_payload(uint8_t *payload, uint32_t from, uint32_t len) {
	for (uint32_t i = 0; i < len; i++)
		payload[i] = (uint8_t)((from + i) * 7);
}

static void make_partial(uint8_t *frame, uint32_t len) {
	uint32_t l4, at = super_frame_sum_at(frame, len, &l4);
	struct wire_walk w = wire_walk(frame, len);
	uint32_t sum = wire_sum(frame + w.ip + (w.ipv6 ? 8 : 12), w.ipv6 ? 32 : 8,
		w.proto + (uint32_t)(w.end - w.l4));

	wire_put16(frame + l4 + at, (uint16_t)~wire_fold(sum));
}

static struct seg segment(uint32_t seq, uint16_t len, uint8_t flags) {
	return (struct seg){.seq = seq,
		.ack = 77,
		.len = len,
		.flags = (uint8_t)(SEG_ACK | flags),
		.window = 500,
		.options = SEG_OPT_TS,
		.tsval = 3,
		.tsecr = 4};
}

// A frame of TCP from `from` on, with a partial sum; its length.
static uint32_t tcp_frame(
	uint8_t *frame, bool ipv6, uint32_t from, uint32_t len, uint8_t flags, uint16_t id) {
	struct seg seg = segment(5000 + from, (uint16_t)len, flags);
	struct wire_addr addr = of_family(ipv6);
	uint32_t header = (uint32_t)wire_write_tcp(frame, &addr, TOS, id, &seg);

	put_payload(frame + header, from, len);
	make_partial(frame, header + len);
	return header + len;
}

static uint32_t udp_frame(uint8_t *frame, bool ipv6, uint32_t len) {
	struct seg seg = {.len = (uint16_t)len, .options = SEG_OPT_UDP};
	struct wire_addr addr = of_family(ipv6);

	wire_write_udp(frame, &addr, TOS, 9, &seg);
	uint32_t header = WIRE_ETH + wire_ip_header(ipv6) + WIRE_UDP;
	put_payload(frame + header, 0, len);
	make_partial(frame, header + len);
	return header + len;
}

static uint32_t cut_all(uint32_t len, uint32_t size, bool cwr_first) {
	struct super_frame f;
	uint32_t n = 0;

	ck_assert(super_frame_read(&f, whole, len, size));
	f.cwr_first = cwr_first;
	for (uint32_t offset = 0; f.header + offset < f.len; offset += size) {
		ck_assert_uint_lt(n, PACKETS);
		length[n] = super_frame_cut(&f, offset, packet[n]);
		n++;
	}
	return n;
}

// Joins the first `n` packets; the number that a frame holds.
static uint32_t join(uint32_t n, uint8_t *joined, uint32_t *len) {
	struct joint j[PACKETS];
	uint32_t k = 1, payload;

	for (uint32_t i = 0; i < n; i++)
		joint_read(&j[i], packet[i], length[i], true);
	payload = j[0].payload;
	for (; k < n && joint_same_flow(&j[0], &j[k])
		&& joint_follows(&j[0], &j[k - 1], &j[k], payload);
		k++)
		payload += j[k].payload;
	*len = joint_header(&j[0], &j[k - 1], payload, joined);
	for (uint32_t i = 0; i < k; i++) {
		memcpy(joined + *len, packet[i] + j[i].header, j[i].payload);
		*len += j[i].payload;
	}
	return k;
}

// The whole sum of a packet is good.
static void check_sum(const uint8_t *frame, uint32_t len) {
	uint8_t filled[1200];
	struct wire_walk w = wire_walk(frame, len);

	memcpy(filled, frame, len);
	super_frame_fill_sum(filled, len);
	ck_assert_uint_eq(
		wire_fold(wire_sum(filled + w.ip + (w.ipv6 ? 8 : 12), w.ipv6 ? 32 : 8,
			wire_sum(filled + w.l4, w.end - w.l4, w.proto + (uint32_t)(w.end - w.l4)))),
		0);
}

TEST(packets_of_tcp_are_what_a_host_would_have_sent_and_join_again) {
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t len = tcp_frame(whole, ipv6, 0, 3500, SEG_PSH | SEG_ECE, 40), joined_len;
		uint8_t expected[1200], joined[ROOM];

		ck_assert_uint_eq(cut_all(len, SIZE, false), 4);
		for (uint32_t i = 0; i < 4; i++) {
			uint8_t flags = i == 3 ? SEG_PSH | SEG_ECE : SEG_ECE;
			uint32_t want = tcp_frame(expected, ipv6, i * SIZE, i < 3 ? SIZE : 500,
				flags, (uint16_t)(40 + i));

			ck_assert_uint_eq(length[i], want);
			ck_assert_mem_eq(packet[i], expected, want);
			check_sum(packet[i], want);
		}
		ck_assert_uint_eq(join(4, joined, &joined_len), 4);
		ck_assert_uint_eq(joined_len, len);
		ck_assert_mem_eq(joined, whole, len);
	}
}

TEST(datagrams_are_cut_and_join_again) {
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t len = udp_frame(whole, ipv6, 3500), joined_len;
		uint8_t joined[ROOM];

		ck_assert_uint_eq(cut_all(len, SIZE, false), 4);
		for (uint32_t i = 0; i < 4; i++) {
			const uint8_t *udp = packet[i] + WIRE_ETH + wire_ip_header(ipv6);

			ck_assert_uint_eq(wire_get16(udp + 4), i < 3 ? 1008 : 508);
			check_sum(packet[i], length[i]);
		}
		ck_assert_uint_eq(join(4, joined, &joined_len), 4);
		ck_assert_uint_eq(joined_len, len);
		ck_assert_mem_eq(joined, whole, len);
	}
}

// The kernel's sign for a payload of more than 65535 bytes: lengths of 0, and in IPv6 an option.
TEST(big_tcp_is_cut) {
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		uint32_t ip = WIRE_ETH + wire_ip_header(ipv6),
			 tcp = tcp_frame(whole, ipv6, 0, 0, 0, 1);

		if (ipv6) {
			static const uint8_t jumbo[8] = {
				WIRE_PROTO_TCP, 0, 0xc2, 4, 0, 1, 0x0d, 0xa8};

			memmove(whole + ip + 8, whole + ip, tcp - ip);
			memcpy(whole + ip, jumbo, sizeof(jumbo));
			whole[WIRE_ETH + 6] = 0;
			tcp += 8;
		}
		wire_put16(whole + WIRE_ETH + (ipv6 ? 4 : 2), 0);
		put_payload(whole + tcp, 0, 69000);
		ck_assert_uint_eq(cut_all(tcp + 69000, SIZE, false), 69);
		for (uint32_t i = 0; i < 69; i++) {
			uint8_t expected[1200];
			uint32_t want =
				tcp_frame(expected, ipv6, i * SIZE, SIZE, 0, (uint16_t)(1 + i));

			ck_assert_uint_eq(length[i], want);
			ck_assert_mem_eq(packet[i], expected, want);
		}
	}
}

// 65 packets of 1000 bytes and their header are more than an IP packet may have.
TEST(joined_frames_have_at_most_64_kib) {
	uint8_t joined[ROOM];
	uint32_t len;

	for (uint32_t i = 0; i < 66; i++)
		length[i] = tcp_frame(packet[i], false, i * SIZE, SIZE, 0, (uint16_t)i);
	ck_assert_uint_eq(join(66, joined, &len), 65);
	ck_assert_uint_eq(len, WIRE_HEADER_PLAIN + 65 * SIZE);
}

// RFC 3168: the sender reduces once. RFC 9768: CWR is one of the bits of a counter.
TEST(cwr_is_on_the_first_packet_or_with_accecn_on_all) {
	for (int first = 0; first < 2; first++) {
		uint8_t joined[ROOM];
		uint32_t len = tcp_frame(whole, false, 0, 3000, SEG_CWR, 1);

		ck_assert_uint_eq(cut_all(len, SIZE, first == 1), 3);
		for (uint32_t i = 0; i < 3; i++)
			ck_assert_uint_eq((packet[i][WIRE_ETH + WIRE_IPV4 + 13] & SEG_CWR) != 0,
				i == 0 || first == 0);
		ck_assert_uint_eq(join(3, joined, &len), first ? 1 : 3);
	}
}

// One byte of the second packet is another: they are of one flow, but do not join.
TEST(what_differs_is_not_joined) {
	static const struct {
		const char *what;
		uint32_t ipv4, ipv6; // where; 0: it has none
		uint8_t bits;
		bool same_flow;
	} change[] = {
		{"CE", 15, 15, 1, true},
		{"DSCP", 15, 14, 4, true},
		{"TTL", 22, 21, 1, true},
		{"DF", 20, 0, 0x40, true},
		{"fragment", 21, 0, 1, true},
		{"flow label", 0, 17, 1, true},
		{"MAC address", 11, 11, 1, true},
		{"sequence number", 34 + 7, 54 + 7, 1, true},
		{"acknowledgement", 34 + 11, 54 + 11, 1, true},
		{"AE", 34 + 12, 54 + 12, 1, true},
		{"ECE", 34 + 13, 54 + 13, SEG_ECE, true},
		{"CWR", 34 + 13, 54 + 13, SEG_CWR, true},
		{"FIN", 34 + 13, 54 + 13, SEG_FIN, true},
		{"window", 34 + 15, 54 + 15, 1, true},
		{"timestamp", 34 + 27, 54 + 27, 1, true},
		{"address", 29, 37, 1, false},
		{"port", 35, 55, 1, false},
		{"protocol", 23, 20, 1, false},
	};

	for (size_t c = 0; c < sizeof(change) / sizeof(change[0]); c++) {
		for (int ipv6 = 0; ipv6 < 2; ipv6++) {
			uint32_t at = ipv6 ? change[c].ipv6 : change[c].ipv4;
			struct joint first, second;

			length[0] = tcp_frame(packet[0], ipv6, 0, SIZE, 0, 1);
			length[1] = tcp_frame(packet[1], ipv6, SIZE, SIZE, 0, 2);
			joint_read(&first, packet[0], length[0], true);
			joint_read(&second, packet[1], length[1], true);
			ck_assert(joint_follows(&first, &first, &second, SIZE));
			if (at == 0)
				continue;
			packet[1][at] ^= change[c].bits;
			joint_read(&second, packet[1], length[1], true);
			ck_assert_msg(joint_same_flow(&first, &second) == change[c].same_flow,
				"%s, IPv6 %d: flow", change[c].what, ipv6);
			ck_assert_msg(!change[c].same_flow
					|| !joint_follows(&first, &first, &second, SIZE),
				"%s, IPv6 %d: joined", change[c].what, ipv6);
		}
	}
}

// Behind PSH, behind a shorter packet and before a longer one there is another frame; after what
// was dropped, too.
TEST(frames_end_where_packets_do_not_follow) {
	uint8_t joined[ROOM];
	uint32_t len;

	length[0] = tcp_frame(packet[0], false, 0, SIZE, SEG_PSH, 1);
	length[1] = tcp_frame(packet[1], false, SIZE, SIZE, 0, 2);
	ck_assert_uint_eq(join(2, joined, &len), 1);
	length[0] = tcp_frame(packet[0], false, 0, SIZE, 0, 1);
	length[1] = tcp_frame(packet[1], false, SIZE, 500, 0, 2);
	length[2] = tcp_frame(packet[2], false, 1500, 500, 0, 3);
	ck_assert_uint_eq(join(3, joined, &len), 2);
	length[1] = tcp_frame(packet[1], false, SIZE, SIZE + 1, 0, 2);
	ck_assert_uint_eq(join(2, joined, &len), 1);
	length[1] = tcp_frame(packet[1], false, 2 * SIZE, SIZE, 0, 3);
	ck_assert_uint_eq(join(2, joined, &len), 1);
	length[1] = tcp_frame(packet[1], false, 0, SIZE, 0, 1); // a copy
	ck_assert_uint_eq(join(2, joined, &len), 1);
	length[1] = tcp_frame(packet[1], false, SIZE, 0, 0, 2); // an ACK alone
	ck_assert_uint_eq(join(2, joined, &len), 1);
	// Without DF identifications matter, and those of a joined frame are not kept.
	length[1] = tcp_frame(packet[1], false, SIZE, SIZE, 0, 2);
	packet[0][WIRE_ETH + 6] = packet[1][WIRE_ETH + 6] = 0;
	ck_assert_uint_eq(join(2, joined, &len), 1);
}

// A whole sum is verified; a wrong one would be believed in a joined frame.
TEST(packets_with_a_wrong_sum_leave_alone) {
	struct joint j;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		length[0] = tcp_frame(packet[0], ipv6, 0, SIZE, 0, 1);
		super_frame_fill_sum(packet[0], length[0]);
		joint_read(&j, packet[0], length[0], false);
		ck_assert(j.joins);
		packet[0][length[0] - 1] ^= 1;
		joint_read(&j, packet[0], length[0], false);
		ck_assert(!j.joins);
	}
}

// The order of a flow's packets is kept, of those that cannot be joined too.
TEST(packets_that_do_not_join_are_known_by_their_flow) {
	struct joint large, small;

	length[0] = udp_frame(packet[0], false, SIZE);
	length[1] = udp_frame(packet[1], false, 8);
	length[1] = WIRE_MIN_FRAME; // padded
	joint_read(&large, packet[0], length[0], true);
	joint_read(&small, packet[1], length[1], true);
	ck_assert(large.joins && !small.joins);
	ck_assert(joint_same_flow(&large, &small));
	length[0] = tcp_frame(packet[0], false, 0, SIZE, 0, 1);
	joint_read(&large, packet[0], length[0], true);
	ck_assert(!joint_same_flow(&large, &small)); // UDP between the same ports
	joint_read(&small, packet[1], WIRE_ETH, true);
	ck_assert(!joint_same_flow(&small, &small)); // no IP
}

TEST(frames_that_are_not_cut) {
	struct super_frame f;
	uint32_t len = tcp_frame(whole, false, 0, SIZE, 0, 1);

	ck_assert(!super_frame_read(&f, whole, len, 0)); // it is one packet
	ck_assert(!super_frame_read(&f, whole, WIRE_ETH, SIZE));
	ck_assert(!super_frame_read(&f, whole, WIRE_ETH + WIRE_IPV4 + 4, SIZE));
	whole[WIRE_ETH + 9] = WIRE_PROTO_ICMP;
	ck_assert(!super_frame_read(&f, whole, len, SIZE));
}
