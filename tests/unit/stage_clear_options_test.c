// SPDX-License-Identifier: BSD-3-Clause
// TCP options cleared in frames and in decoded segments, which must be the same; checksums added up
// byte by byte.
#include "common/net/clear.h"
#include "common/net/wire.h"
#include "switch_test.h"

static const struct wire_addr addr = {
	.src_ip = 0xc6120001, .dst_ip = 0xc6130001, .src_port = 10000, .dst_port = 5001};

static uint32_t words(const uint8_t *p, size_t len) {
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	return sum;
}

// RFC 9293, section 3.1: over the pseudo header and the segment; IPv4 without options.
static bool sum_good(const uint8_t *frame) {
	uint32_t tcp_len = ((uint32_t)frame[16] << 8 | frame[17]) - 20;
	uint32_t sum = words(frame + 26, 8) + 6 + tcp_len + words(frame + 34, tcp_len);

	while (sum > 0xffff)
		sum = (sum >> 16) + (sum & 0xffff);
	return sum == 0xffff;
}

// The flags with which packets leave the stage.
static uint8_t flags_of(const char *text) {
	struct stage_bench b = {0};
	struct pkt p = {.size_bytes = 100, .flags = PKT_POLL_END};

	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	stage_put(&b, &p, 7);
	ck_assert_ptr_eq(stage_take(&b, 7), &p);
	ck_assert_uint_eq(p.arrival_ns, 7);
	ck_assert_uint_eq(p.flags & PKT_POLL_END, PKT_POLL_END);
	stage_close(&b);
	return (uint8_t)(p.flags & ~PKT_POLL_END);
}

TEST(each_option_on_each_kind_of_segment) {
	ck_assert_uint_eq(flags_of("{clear_options: {}}"), 0);
	ck_assert_uint_eq(flags_of("{clear_options: {accecn: syn}}"), PKT_CLEAR_ACCECN_SYN);
	ck_assert_uint_eq(flags_of("{clear_options: {accecn: later}}"), PKT_CLEAR_ACCECN);
	ck_assert_uint_eq(flags_of("{clear_options: {sack: syn}}"), PKT_CLEAR_SACK_SYN);
	ck_assert_uint_eq(flags_of("{clear_options: {sack: later}}"), PKT_CLEAR_SACK);
	ck_assert_uint_eq(flags_of("{clear_options: {accecn: all, sack: all}}"), PKT_CLEARED);
}

TEST(a_change_applies_from_the_next_packet_on) {
	struct stage_bench b = {0};
	struct pkt p[2] = {{.size_bytes = 100}, {.size_bytes = 100}};

	ck_assert_int_eq(stage_open(&b, "{clear_options: {}}"), 0);
	stage_put(&b, &p[0], 0);
	stage_live(&b, "accecn", "all", 0);
	stage_put(&b, &p[1], 0);
	ck_assert_uint_eq(stage_take(&b, 0)->flags, 0);
	ck_assert_uint_eq(stage_take(&b, 0)->flags, PKT_CLEAR_ACCECN_SYN | PKT_CLEAR_ACCECN);
}

// A SYN/ACK with all its options, and an ACK with timestamps, two SACK blocks and byte counters.
static struct seg segment(bool syn) {
	struct seg s = {.seq = 0xfffffff0,
		.ack = 77,
		.tsval = 0x12345678,
		.tsecr = 0x9abcdef0,
		.window = 65535,
		.flags = syn ? SEG_SYN | SEG_ACK : SEG_ACK,
		.options = SEG_OPT_TS | SEG_OPT_ACCECN0,
		.ecn_bytes = {1, 0xabcdef, 3},
		.ecn_fields = 3};

	if (syn) {
		s.options |= SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK;
		s.mss = 1460;
		s.wscale = 7;
	} else {
		s.sack_count = 1;
		s.sack[0] = (struct seg_sack){1000, 2001};
	}
	return s;
}

static void same_segment(const struct seg *a, const struct seg *b) {
	ck_assert_mem_eq(a, b, offsetof(struct seg, sack));
	ck_assert_mem_eq(a->sack, b->sack, a->sack_count * sizeof(a->sack[0]));
	if ((a->options & SEG_OPT_ACCECN) != 0) {
		ck_assert_uint_eq(a->ecn_fields, b->ecn_fields);
		ck_assert_mem_eq(a->ecn_bytes, b->ecn_bytes, sizeof(a->ecn_bytes));
	}
}

TEST(a_frame_says_what_the_segment_does) {
	for (uint32_t i = 0; i < 2 * 32; i++) {
		uint8_t frame[200] = {0}, before[200],
			flags = (uint8_t)(i / 2 * PKT_CLEAR_ACCECN_SYN);
		struct seg s = segment(i % 2 == 0), back;
		struct wire_info info;
		size_t len = wire_write_tcp(frame, &addr, 2, 9, &s);

		memcpy(before, frame, len);
		ck_assert(sum_good(frame));
		clear_frame(frame, len, flags);
		clear_seg(&s, flags);
		ck_assert(sum_good(frame));
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &back), WIRE_OK);
		same_segment(&back, &s);
		// Nothing but options and the checksum has changed, and what has changed are NOPs.
		for (size_t k = 0; k < len; k++) {
			bool sum = k == 14 + 20 + 16 || k == 14 + 20 + 17;

			ck_assert(frame[k] == before[k] || sum
				|| (k >= 14 + 20 + 20 && frame[k] == 1));
		}
	}
}

// By hand, with the option at an odd place: NOP, AccECN (174) of 8 bytes, SACK permitted, EOL.
TEST(options_at_odd_places) {
	static const uint8_t options[] = {1, 174, 8, 1, 2, 3, 4, 5, 6, 4, 2, 0};
	static const uint8_t want[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 2, 0};
	struct seg s = {.flags = SEG_SYN | SEG_ACK};
	uint8_t frame[200] = {0}, copy[200];
	size_t at = 14 + 20 + 20;

	wire_write_tcp(frame, &addr, 0, 9, &s);
	frame[17] = (uint8_t)(40 + sizeof(options));
	frame[14 + 20 + 12] = 8 << 4;
	memcpy(frame + at, options, sizeof(options));
	frame[14 + 20 + 16] = frame[14 + 20 + 17] = 0;
	uint32_t sum = words(frame + 26, 8) + 6 + 32 + words(frame + 34, 32);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = ~((sum >> 16) + sum);
	frame[14 + 20 + 16] = (uint8_t)(sum >> 8);
	frame[14 + 20 + 17] = (uint8_t)sum;
	ck_assert(sum_good(frame));
	memcpy(copy, frame, sizeof(frame));
	clear_frame(frame, at + sizeof(options), PKT_CLEAR_ACCECN);
	ck_assert_mem_eq(frame, copy, sizeof(frame)); // it is a SYN
	clear_frame(frame, at + sizeof(options) - 1, PKT_CLEAR_ACCECN_SYN);
	ck_assert_mem_eq(frame, copy, sizeof(frame)); // not all of its header is there
	clear_frame(frame, at + sizeof(options), PKT_CLEAR_ACCECN_SYN);
	ck_assert(sum_good(frame));
	ck_assert_mem_eq(frame + at, want, sizeof(want));

	// The same behind two VLAN tags; the pseudo header does not have them.
	uint8_t tagged[208];

	memcpy(tagged, copy, 12);
	memcpy(tagged + 12, (const uint8_t[]){0x88, 0xa8, 0, 1, 0x81, 0, 0, 2}, 8);
	memcpy(tagged + 20, copy + 12, sizeof(copy) - 12);
	clear_frame(tagged, at + 8 + sizeof(options), PKT_CLEAR_ACCECN_SYN);
	ck_assert_mem_eq(tagged + 20, frame + 12, sizeof(frame) - 12);

	// A wrong checksum stays wrong by as much; a fragment behind the first has no TCP header; a
	// length that is too long ends the list.
	memcpy(frame, copy, sizeof(frame));
	frame[14 + 20 + 17] ^= 4;
	clear_frame(frame, at + sizeof(options), PKT_CLEAR_ACCECN_SYN);
	ck_assert(!sum_good(frame));
	memcpy(frame, copy, sizeof(frame));
	frame[14 + 7] = 9;
	clear_frame(frame, at + sizeof(options), PKT_CLEARED);
	ck_assert_mem_eq(frame + 14 + 20, copy + 14 + 20, 32);
	memcpy(frame, copy, sizeof(frame));
	frame[at + 2] = 12;
	memcpy(copy, frame, sizeof(frame));
	clear_frame(frame, at + sizeof(options), PKT_CLEARED);
	ck_assert_mem_eq(frame, copy, sizeof(frame));
	frame[14 + 9] = copy[14 + 9] = 17; // UDP
	clear_frame(frame, at + sizeof(options), PKT_CLEARED);
	ck_assert_mem_eq(frame, copy, sizeof(frame));
}

// In virtual time a segment without large options is the common part alone, and what follows is
// another packet's.
TEST(nothing_behind_the_common_part_is_touched) {
	struct seg s, was;

	memset(&s, 0xa5, sizeof(s));
	s.options = SEG_OPT_TS;
	was = s;
	was.sack_count = 0;
	clear_seg(&s, PKT_CLEARED);
	ck_assert_mem_eq(&s, &was, sizeof(s));
}

TEST(datagrams_have_no_options) {
	struct seg s = {.options = SEG_OPT_UDP, .len = 100}, was = s;

	clear_seg(&s, PKT_CLEARED);
	ck_assert_mem_eq(&s, &was, sizeof(s));
}
