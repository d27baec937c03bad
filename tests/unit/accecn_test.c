// SPDX-License-Identifier: BSD-3-Clause
// AccECN against RFC 9768: its handshake tables, the decoding of ACE (appendix A.2), the option's
// bytes, and what hosts count of the marks of a path.
#include "cc_transport.h"
#include "common/net/wire.h"
#include "common/net/wire_accecn.h"
#include "sender/tcp/accecn.h"

#include <math.h>

#define GROUP "{cc: dctcp, ecn_feedback: accecn, source: {size: {bytes: 2MB}}"

// Table 2: AE CWR ECE of the answer to a SYN with 111. 111 and 000 are no ECN, 001 is classic; 101
// is reserved, and AccECN to those who do not know for what (section 3.1.3).
TEST(the_table_of_the_syn_ack) {
	static const enum accecn_mode mode[8] = {ACCECN_NO_ECN, ACCECN_CLASSIC, ACCECN_ON,
		ACCECN_ON, ACCECN_ON, ACCECN_ON, ACCECN_ON, ACCECN_NO_ECN};

	for (uint8_t ace = 0; ace < 8; ace++)
		ck_assert_int_eq(accecn_of_syn_ack(ace), mode[ace]);
	ck_assert_uint_eq(accecn_handshake_ace(ECN_NOT_ECT), 2);
	ck_assert_uint_eq(accecn_handshake_ace(ECN_ECT1), 3);
	ck_assert_uint_eq(accecn_handshake_ace(ECN_ECT0), 4);
	ck_assert_uint_eq(accecn_handshake_ace(ECN_CE), 6);
}

// Section 3.1.3: 000 is no ECN, 011 classic; whatever else a client of the future sends counts as
// 111.
TEST(the_syn) {
	for (uint8_t ace = 0; ace < 8; ace++)
		ck_assert_int_eq(accecn_of_syn(ace),
			ace == 0	   ? ACCECN_NO_ECN
				: ace == 3 ? ACCECN_CLASSIC
					   : ACCECN_ON);
}

TEST(ace_is_three_flags) {
	struct seg s = {.flags = SEG_ACK | SEG_PSH, .options = SEG_OPT_TS};

	for (uint32_t ace = 0; ace < 16; ace++) {
		seg_set_ace(&s, ace);
		ck_assert_uint_eq(seg_ace(&s), ace & 7);
		ck_assert_uint_eq((s.options & SEG_OPT_AE) != 0, (ace & 4) != 0);
		ck_assert_uint_eq((s.flags & SEG_CWR) != 0, (ace & 2) != 0);
		ck_assert_uint_eq((s.flags & SEG_ECE) != 0, (ace & 1) != 0);
		ck_assert_uint_eq(s.flags & (SEG_ACK | SEG_PSH), SEG_ACK | SEG_PSH);
		ck_assert_uint_eq(s.options & SEG_OPT_TS, SEG_OPT_TS);
	}
}

// One ACK, to a sender that knows `cep` packets; `ceb` < 0: without the option, else bytes that are
// new.
static uint32_t decode(uint32_t cep, uint32_t ace, uint32_t acked, int64_t ceb) {
	struct accecn_sender s = {.cep = cep, .ceb = 0xfffff0, .ceb_known = true};
	struct seg ack = {.flags = SEG_ACK};
	uint32_t marks;

	seg_set_ace(&ack, ace);
	if (ceb >= 0) {
		ack.options |= SEG_OPT_ACCECN0;
		ack.ecn_fields = 3;
		ack.ecn_bytes[SEG_ECN_CEB] = (uint32_t)(0xfffff0 + ceb) & ACCECN_BYTES_MASK;
	}
	marks = accecn_marks(&s, &ack, acked, 1000);
	ck_assert_uint_eq(s.cep, cep + marks);
	ck_assert_uint_eq(s.cep & 7, ace);
	return marks;
}

// The examples of the appendix and of section 3.2.2.5.2: ACE that went up by 2 is 10 if the ACK
// covers ten packets, and 2 if it covers nine; less than eight packets cannot hide a cycle.
TEST(ace_without_the_option) {
	ck_assert_uint_eq(decode(5, 5, 2, -1), 0);
	ck_assert_uint_eq(decode(5, 7, 2, -1), 2);
	ck_assert_uint_eq(decode(5, 0, 4, -1), 3); // 5 to 8
	ck_assert_uint_eq(decode(28, 2, 7, -1), 6); // 28 mod 8 = 4; to 34
	ck_assert_uint_eq(decode(5, 7, 9, -1), 2);
	ck_assert_uint_eq(decode(5, 7, 10, -1), 10);
	ck_assert_uint_eq(decode(5, 5, 8, -1), 8);
	ck_assert_uint_eq(decode(5, 5, 7, -1), 0);
	ck_assert_uint_eq(decode(5, 7, 44, -1), 42);
	ck_assert_uint_eq(decode(UINT32_MAX - 1, 1, 5, -1), 3); // of the counter itself
}

// The bytes say how often ACE went round, also when the last packet was short and when the 24 bits
// wrap.
TEST(ace_with_the_option) {
	for (uint32_t acked = 1; acked <= 44; acked++) {
		for (uint32_t marks = 0; marks <= acked; marks++) {
			if (acked < 8 && marks > 7)
				continue;
			uint32_t ace = (5 + marks) & 7;

			ck_assert_uint_eq(decode(5, ace, acked, marks * 1000), marks);
			// Three of the packets were short.
			if (marks > 3)
				ck_assert_uint_eq(
					decode(5, ace, acked, marks * 1000 - 2500), marks);
			if (marks > 0)
				ck_assert_uint_eq(decode(5, ace, acked, marks * 1000 - 990), marks);
		}
	}
}

// The examples of appendix A.2.2 in packets of 1000 bytes: the bytes of one packet cannot have come
// without a mark; two marks of 500 bytes on average are likelier than ten of 100, and seven of 999
// than fifteen of 466.
TEST(the_examples_with_the_option) {
	ck_assert_uint_eq(decode(5, 5, 8, 1000), 8);
	ck_assert_uint_eq(decode(5, 7, 10, 1000), 2);
	ck_assert_uint_eq(decode(5, 4, 15, 6990), 7);
}

// Bytes of packets that were not acknowledged yet, or that came twice, do not make more marks than
// packets.
TEST(no_more_marks_than_packets) {
	ck_assert_uint_eq(decode(5, 7, 10, 40000), 10);
	ck_assert_uint_eq(decode(5, 7, 9, 40000), 2);
}

// Section 3.2.3.2.3 and appendix A.2: bytes are compared with those of the ACK before. If that one
// had no option, they may be of marks that ACE told already, and the most is assumed.
TEST(bytes_count_from_the_ack_before) {
	struct accecn_sender s = {.cep = 5, .ceb = 1000, .ceb_known = true};
	struct seg ack = {.flags = SEG_ACK};

	seg_set_ace(&ack, 5);
	ck_assert_uint_eq(accecn_marks(&s, &ack, 2, 1000), 0);
	ack.options |= SEG_OPT_ACCECN0;
	ack.ecn_fields = 3;
	ack.ecn_bytes[SEG_ECN_CEB] = 1000;
	ck_assert_uint_eq(accecn_marks(&s, &ack, 8, 1000), 8);
	ck_assert_uint_eq(accecn_marks(&s, &ack, 8, 1000), 0); // the second in a row that has it
}

// An option that is longer than those we know has three fields, as far as we know.
TEST(longer_options) {
	static const uint8_t bytes[17] = {172, 17, 0, 0, 1, 0, 0, 2, 0, 0, 3, 9, 9, 9, 9, 9, 9};
	struct seg s = {.mss = 1460};

	wire_parse_accecn(bytes, sizeof(bytes), &s);
	ck_assert_uint_eq(s.ecn_fields, 3);
	ck_assert_uint_eq(s.ecn_bytes[SEG_ECN_E1B], 3);
	ck_assert_uint_eq(s.mss, 1460);
}

// Of two options in a header the first counts: together they would claim a field that neither has.
TEST(second_option_is_ignored) {
	static const uint8_t none[] = {172, 2}, e1b[] = {174, 5, 0, 0, 9};
	struct seg s = {0};

	wire_parse_accecn(none, sizeof(none), &s);
	wire_parse_accecn(e1b, sizeof(e1b), &s);
	ck_assert_uint_eq(s.options & SEG_OPT_ACCECN, SEG_OPT_ACCECN0);
	ck_assert_uint_eq(s.ecn_fields, 0);
}

// Section 3.2.3: kind, length, EE0B, ECEB, EE1B; kind 174 has the first and the last exchanged.
TEST(the_option_on_the_wire) {
	static const uint8_t first[] = {172, 11, 0x12, 0x34, 0x56, 0, 0, 7, 0xff, 0xff, 0xfe, 1};
	static const uint8_t second[] = {174, 11, 0xff, 0xff, 0xfe, 0, 0, 7, 0x12, 0x34, 0x56, 1};
	struct seg s = {
		.options = SEG_OPT_ACCECN0, .ecn_fields = 3, .ecn_bytes = {0x123456, 7, 0xfffffe}};
	uint8_t bytes[WIRE_ACCECN_MAX];

	wire_put_accecn(bytes, &s, 3);
	ck_assert_mem_eq(bytes, first, 12);
	s.options = SEG_OPT_ACCECN1;
	wire_put_accecn(bytes, &s, 3);
	ck_assert_mem_eq(bytes, second, 12);
	ck_assert_uint_eq(wire_accecn_fields(&s, 12), 3);
	ck_assert_uint_eq(wire_accecn_fields(&s, 11), 3);
	ck_assert_uint_eq(wire_accecn_fields(&s, 8), 2);
	ck_assert_uint_eq(wire_accecn_fields(&s, 4), 0);
	ck_assert_uint_eq(wire_accecn_fields(&s, 0), 0);
	ck_assert_uint_eq(wire_accecn_size(2), 8);
	for (uint8_t size = 2; size <= 12; size++) {
		struct seg got = {0};

		wire_parse_accecn(second, size, &got);
		ck_assert_uint_eq(got.ecn_fields, size < 5 ? 0 : size < 8 ? 1 : size < 11 ? 2 : 3);
		ck_assert_uint_eq(got.ecn_bytes[SEG_ECN_E1B], size < 5 ? 0 : 0xfffffe);
		ck_assert_uint_eq(got.ecn_bytes[SEG_ECN_CEB], size < 8 ? 0 : 7);
		ck_assert_uint_eq(got.ecn_bytes[SEG_ECN_E0B], size < 11 ? 0 : 0x123456);
		ck_assert_uint_eq(seg_has_ceb(&got), size >= 8);
	}
}

// A whole frame, with SACK blocks that leave room for three, two and no fields.
TEST(frames_survive_the_wire) {
	static const uint8_t fields[] = {3, 3, 2, 0};
	static const struct wire_addr addr = {
		.src_ip = 1, .dst_ip = 2, .src_port = 3, .dst_port = 4};

	for (uint8_t sacks = 0; sacks <= 3; sacks++) {
		struct seg got,
			s = {.flags = SEG_ACK,
				.options = SEG_OPT_TS | SEG_OPT_ACCECN1,
				.sack_count = sacks,
				.ecn_fields = 3,
				.ecn_bytes = {1, 0x102030, 0xfedcba}};
		uint8_t frame[WIRE_HEADER_MAX] = {0};
		struct wire_info info;

		seg_set_ace(&s, 4);
		size_t len = wire_write_tcp(frame, &addr, 0, 1, &s);
		ck_assert_uint_eq(len, WIRE_ETH + WIRE_IPV4 + wire_tcp_header(&s));
		ck_assert(!wire_parse_plain(frame, len, true, &info, &got));
		ck_assert_int_eq(wire_parse(frame, len, &info), WIRE_OK);
		ck_assert_int_eq(wire_parse_tcp(frame, &info, true, &got), WIRE_OK);
		ck_assert_uint_eq(seg_ace(&got), 4);
		ck_assert_uint_eq(got.sack_count, sacks);
		ck_assert_uint_eq(got.flags, SEG_ACK);
		ck_assert_uint_eq((got.options & SEG_OPT_ACCECN) != 0, fields[sacks] > 0);
		ck_assert_uint_eq(got.ecn_fields, fields[sacks]);
		if (fields[sacks] >= 2) {
			ck_assert_uint_eq(got.ecn_bytes[SEG_ECN_E1B], 0xfedcba);
			ck_assert_uint_eq(got.ecn_bytes[SEG_ECN_CEB], 0x102030);
		}
	}
}

// Section 3.2.1: bytes of payload by codepoint, those of Not-ECT packets in none; each packet with
// CE adds one to r.cep, also if it has no payload.
TEST(bytes_are_counted_by_codepoint) {
	struct accecn_counters c = accecn_counters_init();

	accecn_count(&c, ECN_ECT0, 100);
	accecn_count(&c, ECN_ECT1, 1000);
	accecn_count(&c, ECN_NOT_ECT, 10000);
	ck_assert_uint_eq(c.cep, 5);
	accecn_count(&c, ECN_CE, 100000);
	accecn_count(&c, ECN_CE, 0);
	ck_assert_uint_eq(c.cep, 7);
	ck_assert_uint_eq(c.bytes[SEG_ECN_E0B], 1 + 100);
	ck_assert_uint_eq(c.bytes[SEG_ECN_E1B], 1 + 1000);
	ck_assert_uint_eq(c.bytes[SEG_ECN_CEB], 100000);
}

// The handshake of two hosts: 111, 010 (the SYN was Not-ECT), 010 of the SYN/ACK; then 5 from the
// sender of data.
TEST(hosts_agree) {
	struct link *l = LINK(.group = GROUP "}");

	link_run(l, S);
	ck_assert_uint_eq(seg_ace(&l->ctl[0].seg), 7);
	ck_assert_uint_eq(seg_ace(&l->acks[0].seg), 2);
	ck_assert(seg_has_ceb(&l->acks[0].seg));
	ck_assert_uint_eq(seg_ace(&l->ctl[1].seg), 2);
	ck_assert_uint_eq(seg_ace(&l->data[0].seg), 5);
	ck_assert_uint_eq(seg_ace(&l->acks[1].seg), 5);
	ck_assert_uint_eq(l->acks[1].seg.ecn_bytes[SEG_ECN_E0B], 1 + 2 * link_flow(l)->payload);
	ck_assert_uint_eq(l->acks[1].seg.ecn_bytes[SEG_ECN_CEB], 0);
	ck_assert_uint_eq(l->acks[1].seg.ecn_bytes[SEG_ECN_E1B], 1);
	ck_assert(link_flow(l)->accecn);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 0);
}

// A peer that only knows RFC 3168 answers 001, one without ECN 000.
TEST(peers_without_it) {
	for (uint8_t ace = 0; ace <= 1; ace++) {
		struct link *l = LINK(.group = GROUP "}", .hand = true);
		struct seg s = {.flags = SEG_SYN | SEG_ACK, .window = 65535};

		link_run(l, MS);
		s.ack = l->ctl[0].seg.seq + 1;
		seg_set_ace(&s, ace);
		flow_rx(&l->tx.endpoint, link_flow(l), &s, 20 * MS);
		ck_assert_int_eq(link_flow(l)->state, FLOW_OPEN);
		ck_assert(!link_flow(l)->accecn);
		ck_assert_uint_eq(link_flow(l)->ecn_ok, ace);
		ck_assert_uint_eq(seg_ace(&l->data[0].seg), 0);
		ck_assert_uint_eq(l->data[0].ecn, ace ? ECN_ECT0 : ECN_NOT_ECT);
		link_close(l);
	}
}

// Every mark is counted once, by whatever ACKs it comes back: of two segments, of 44 (GRO), with
// ACKs lost.
TEST(all_marks_are_counted) {
	static const struct {
		const char *group;
		double ack_loss;
	} cases[] = {
		{GROUP "}", 0},
		{GROUP ", ack_every: 1}", 0},
		{GROUP ", ack_every: 16}", 0},
		{GROUP ", gro: 5ms}", 0},
		{GROUP ", host: linux}", 0},
		{GROUP "}", 0.3},
		{GROUP ", gro: 5ms}", 0.3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = LINK(.group = cases[i].group, .ack_loss = cases[i].ack_loss,
			.mark = 0xf0f3fffcaf0c1234, .seed = 3);
		const struct flow *f = link_flow(l);

		link_run(l, 60 * S);
		ck_assert_int_eq(f->state, FLOW_DONE);
		// Of packets that a lost ACK has sent again, none is ECN capable.
		ck_assert_uint_le(l->rx.received.ce_segs, 37);
		ck_assert_uint_ge(l->rx.received.ce_segs, cases[i].ack_loss > 0 ? 30 : 37);
		ck_assert_uint_eq(f->count.ce_segs, l->rx.received.ce_segs);
		link_close(l);
	}
}

// Section 3.2.3.2.3: without the option, on the SYN/ACK or later or at all, ACE alone says the same
// while ACKs are of less than eight packets. The sender does the same at the same times. With the
// third mark, which comes when the reaction to the first two is over, ACE is 000: such an ACK looks
// like one of a connection without ECN.
TEST(ace_needs_no_option) {
	static const uint8_t clear[] = {
		PKT_CLEAR_ACCECN_SYN, PKT_CLEAR_ACCECN, PKT_CLEAR_ACCECN_SYN | PKT_CLEAR_ACCECN};
	static const char *const groups[] = {GROUP "}", GROUP ", ack_every: 1}"};

	for (size_t i = 0; i < 2 * sizeof(clear); i++) {
		struct link *l = LINK(.group = groups[i % 2], .mark = 0x1000000000000003);
		struct link *c = LINK(.group = groups[i % 2], .mark = 0x1000000000000003,
			.clear = clear[i / 2]);

		link_run(l, 60 * S);
		link_run(c, 60 * S);
		ck_assert_int_eq(link_flow(c)->state, FLOW_DONE);
		ck_assert_uint_eq(link_flow(c)->count.ce_segs, 3);
		ck_assert_uint_eq(l->data_count, c->data_count);
		for (uint64_t k = 0; k < l->data_count; k++) {
			NEED(l->data[k].t_ns == c->data[k].t_ns);
			NEED(l->data[k].index == c->data[k].index);
		}
		link_close(l);
		link_close(c);
	}
}

// A connection by hand that has agreed on AccECN.
static struct link *agreed(void) {
	struct link *l = LINK(.group = "{cc: {dctcp: {initial: 10}}, ecn_feedback: accecn, "
				       "ack_every: 1, rto_min: 10s, tlp: no}",
		.hand = true);
	struct seg s = hand_syn_ack(l, HAND_RTT);

	link_run(l, 0);
	seg_set_ace(&s, 2);
	hand_feed(l, &s, HAND_RTT);
	ck_assert(link_flow(l)->accecn);
	return l;
}

static void feed_cep(struct link *l, struct seg s, uint32_t cep, uint64_t now_ns) {
	seg_set_ace(&s, cep & 7);
	hand_feed(l, &s, now_ns);
}

// The counter of an ACK that another has overtaken is behind what is known already: read as a newer
// one it would have gone round. Its SACK block is news, though. One has an older acknowledgement
// number, the other an older timestamp.
TEST(an_overtaken_ack_counts_no_marks) {
	struct link *l = agreed();
	struct seg s;

	feed_cep(l, hand_ack(l, 3, 40 * MS), 5 + 2, 40 * MS);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 2);
	s = hand_ack(l, 1, 40 * MS);
	hand_sack(l, &s, 5, 6);
	feed_cep(l, s, 5 + 1, 40 * MS + 1);
	ck_assert_uint_eq(link_flow(l)->sacked, 1);
	s = hand_ack(l, 3, 39 * MS);
	hand_sack(l, &s, 6, 7);
	feed_cep(l, s, 5 + 1, 40 * MS + 2);
	ck_assert_uint_eq(link_flow(l)->sacked, 2);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 2);
	feed_cep(l, hand_ack(l, 7, 41 * MS), 5 + 3, 41 * MS);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 3);
}

// An ACK may tell marks of segments that others have acknowledged: all are counted, but of its own
// segments no more than all are marked. An average of marks beyond 1 would turn a reduction into a
// window below zero.
TEST(not_more_than_all_segments_are_marked) {
	struct link *l = agreed();

	feed_cep(l, hand_ack(l, 1, 40 * MS), 5 + 2, 40 * MS);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 2);
	OBSERVED_EQ(l, 2, 1); // M
}

enum peer { PEER_NONE = 0, PEER_CLASSIC = 1, PEER_ACCECN = 2 }; // ACE of its SYN/ACK

// Each feedback that a group asks for against each answer: what the SYN asks for, the codepoint of
// data, what is left of a window of 11 segments after a mark, and the marks counted. After one mark
// a classic peer repeats its echo in all three ACKs of two segments, one with DCTCP's feedback says
// so of six segments, a counter of one. Alpha is 0: whoever knows how many were marked does not
// reduce; who knows only that there was one halves (RFC 9331, sections 4.2 and 4.3). A peer without
// ECN gets no ECT, and what looks like an echo is none: three ACKs let the window grow by 6.
TEST(each_feedback_against_each_peer) {
	static const struct {
		const char *cc, *feedback;
		uint8_t syn;
		enum peer peer;
		uint8_t ect;
		double left;
		uint64_t marks;
	} cases[] = {
		{"prague: {alpha: 0}", "cc", 7, PEER_ACCECN, ECN_ECT1, 11, 1},
		{"prague: {alpha: 0}", "cc", 7, PEER_CLASSIC, ECN_ECT0, 5.5, 1},
		{"prague: {alpha: 0}", "cc", 7, PEER_NONE, ECN_NOT_ECT, 17, 0},
		{"prague: {alpha: 0}", "dctcp", 3, PEER_CLASSIC, ECN_ECT1, 11, 6},
		{"prague: {alpha: 0}", "dctcp", 3, PEER_NONE, ECN_NOT_ECT, 17, 0},
		{"prague: {alpha: 0}", "dctcp", 3, PEER_ACCECN, ECN_NOT_ECT, 17, 0},
		{"prague: {alpha: 0}", "classic", 3, PEER_CLASSIC, ECN_ECT0, 5.5, 1},
		{"prague: {alpha: 0}", "classic", 3, PEER_NONE, ECN_NOT_ECT, 17, 0},
		{"dctcp: {alpha: 0}", "cc", 3, PEER_CLASSIC, ECN_ECT0, 11, 6},
		{"dctcp: {alpha: 0}", "cc", 3, PEER_NONE, ECN_NOT_ECT, 17, 0},
		{"dctcp: {alpha: 0}", "accecn", 7, PEER_ACCECN, ECN_ECT0, 11, 1},
		{"dctcp: {alpha: 0}", "accecn", 7, PEER_CLASSIC, ECN_ECT0, 5.5, 1},
		{"dctcp: {alpha: 0}", "accecn", 7, PEER_NONE, ECN_NOT_ECT, 17, 0},
		{"dctcp: {alpha: 0}", "classic", 3, PEER_CLASSIC, ECN_ECT0, 5.5, 1},
		{"newreno: {}", "cc", 3, PEER_CLASSIC, ECN_ECT0, 5.5, 1},
		{"newreno: {}", "cc", 3, PEER_NONE, ECN_NOT_ECT, 17, 0},
		{"newreno: {}", "accecn", 7, PEER_ACCECN, ECN_ECT0, 5.5, 1},
		{"newreno: {}", "accecn", 7, PEER_CLASSIC, ECN_ECT0, 5.5, 1},
		{"newreno: {}", "dctcp", 3, PEER_CLASSIC, ECN_ECT0, 5.5, 6},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char group[200];
		struct link *l;
		struct seg s;

		snprintf(group, sizeof(group),
			"{cc: {%s}, ecn_feedback: %s, ecn: %s, ack_every: 1, rto_min: 10s, "
			"tlp: no, pacing: off}",
			cases[i].cc, cases[i].feedback, cases[i].cc[0] == 'p' ? "ect1" : "ect0");
		l = LINK(.group = group, .hand = true);
		link_run(l, 0);
		ck_assert_uint_eq(seg_ace(&l->ctl[0].seg), cases[i].syn);
		s = hand_syn_ack(l, HAND_RTT);
		seg_set_ace(&s, cases[i].peer);
		hand_feed(l, &s, HAND_RTT);
		ck_assert_uint_eq(l->data[0].ecn, cases[i].ect);
		for (uint64_t una = 1; una <= 7; una += 2) {
			bool marked = una > 1, counter = link_flow(l)->accecn;

			s = hand_ack(l, una, 40 * MS + una);
			seg_set_ace(&s, counter ? (uint8_t)(5 + marked) : marked);
			hand_feed(l, &s, 40 * MS + una);
		}
		// Unmarked segments let the windows of a counter grow.
		ck_assert_msg(fabs(link_flow(l)->out.cwnd_segs - cases[i].left) < 0.5,
			"case %zu: a window of %g, not %g", i, link_flow(l)->out.cwnd_segs,
			cases[i].left);
		ck_assert_msg(link_flow(l)->count.ce_segs == cases[i].marks, "case %zu: %llu marks",
			i, (unsigned long long)link_flow(l)->count.ce_segs);
		link_close(l);
	}
}

// The peer echoes again after an answer: another mark at least. The echo that ends begins anew.
TEST(classic_echoes_are_counted_one_by_one) {
	struct link *l = HAND(.group = "{cc: newreno, ecn: ect0, ack_every: 1, tlp: no}");

	for (uint64_t una = 1; una <= 8; una++) {
		struct seg s = hand_ack(l, una, 40 * MS + una);

		s.flags |= (una & 2) != 0 ? SEG_ECE : 0; // 2, 3, 6, 7
		hand_feed(l, &s, 40 * MS + una);
	}
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 2);
}

// Section 3.2.2.4, of a path that clears both: the first feedback has no option and ACE 000. No
// data is ECN capable from then on, and marks are not answered.
TEST(zeroed_feedback_without_the_option) {
	struct link *l = HAND(.group = GROUP "}", .hand = true);
	struct seg s = hand_ack(l, 1, 3 * HAND_RTT);

	if (!link_flow(l)->accecn) { // hand_open answers with classic ECN
		link_flow(l)->accecn = true;
		link_flow(l)->marks = (struct accecn_sender){.cep = 5, .first = true};
	}
	seg_set_ace(&s, 0);
	hand_feed(l, &s, 3 * HAND_RTT);
	ck_assert(!link_flow(l)->ecn_ok);
}

// Section 3.2.2.5.1: the first mark is acknowledged at once, further ones by two at the latest.
TEST(marks_are_acknowledged_soon) {
	struct link *l = LINK(.group = GROUP ", ack_every: 64, ack_delay: 200ms}", .mark = 0x3f20);
	const uint32_t first = link_flow(l)->iss + 1, payload = 1448;
	uint32_t cep = 5, ack = 1;

	link_run(l, S);
	ck_assert_uint_eq(l->acks[1].seg.ack, first + 6 * payload); // segment 5 is marked
	ck_assert_uint_eq(seg_ace(&l->acks[1].seg), 6);
	ck_assert_uint_eq(l->acks[2].seg.ack, first + 9 * payload); // segments 8 to 13
	ck_assert_uint_eq(seg_ace(&l->acks[2].seg), 7);
	for (; ack < l->acks_count; ack++) {
		uint32_t d = (seg_ace(&l->acks[ack].seg) - cep) & 7;

		ck_assert_uint_le(d, 2);
		cep += d;
	}
	ck_assert_uint_eq(cep, 5 + 7);
}

// With holes there are two SACK blocks, so that the option has room for the bytes with CE.
TEST(sack_blocks_leave_room) {
	struct link *l = LINK(.group = GROUP "}", .lose = 0xaaa000, .mark = 0x5555550);
	uint32_t most = 0;

	link_run(l, 20 * S);
	ck_assert_int_eq(link_flow(l)->state, FLOW_DONE);
	for (uint32_t i = 0; i < l->acks_count; i++) {
		ck_assert(seg_has_ceb(&l->acks[i].seg));
		most = l->acks[i].seg.sack_count > most ? l->acks[i].seg.sack_count : most;
		ck_assert_uint_le(wire_tcp_header(&l->acks[i].seg), 60);
	}
	ck_assert_uint_eq(most, 2);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, l->rx.received.ce_segs);
}

// RFC 9768 section 3.1.4.1: two SYNs ask for AccECN, the next one for nothing.
TEST(the_third_syn_is_without_ecn) {
	for (uint32_t lost = 1; lost <= 2; lost++) {
		struct link *l = LINK(.group = GROUP "}", .lose_syn = lost == 1 ? 1 : 3);

		link_run(l, 60 * S);
		ck_assert_uint_eq(l->syn_count, lost + 1);
		for (uint32_t k = 0; k <= lost; k++)
			ck_assert_uint_eq(seg_ace(&l->ctl[k].seg), k < 2 ? 7 : 0);
		ck_assert_uint_eq(seg_ace(&l->acks[0].seg), lost == 1 ? 2 : 0);
		ck_assert_int_eq(link_flow(l)->state, FLOW_DONE);
		ck_assert_uint_eq(link_flow(l)->accecn, lost == 1);
		ck_assert_uint_eq(l->data[0].ecn, lost == 1 ? ECN_ECT0 : ECN_NOT_ECT);
		ck_assert_uint_eq(seg_ace(&l->data[0].seg), lost == 1 ? 5 : 0);
		link_close(l);
	}
}

// Section 3.1.5: the first SYN/ACK decides. A late answer to the first SYN begins AccECN, and a
// client may send ECT then.
TEST(a_late_answer_still_agrees) {
	struct link *l = LINK(.group = GROUP "}", .hand = true);
	struct seg s = {.flags = SEG_SYN | SEG_ACK, .window = 65535};

	link_run(l, 10 * S);
	ck_assert_uint_ge(l->syn_count, 3);
	s.ack = l->ctl[0].seg.seq + 1;
	seg_set_ace(&s, 2);
	flow_rx(&l->tx.endpoint, link_flow(l), &s, 10 * S);
	ck_assert(link_flow(l)->accecn);
	ck_assert_uint_eq(l->data[0].ecn, ECN_ECT0);
}

// Section 3.2.2.4: the path clears the field of every ACK after the handshake.
TEST(a_path_that_clears_ace_ends_ecn) {
	struct link *l = LINK(.group = GROUP "}", .mark = UINT64_MAX);
	const struct flow *f = link_flow(l);
	uint64_t ect = 0;

	while (link_step(l, 20 * S)) {
		for (struct link_pkt *p = l->head; p != NULL; p = p->next) {
			if (!p->forward && (p->seg.flags & SEG_SYN) == 0)
				seg_set_ace(&p->seg, 0);
		}
	}
	ck_assert_int_eq(f->state, FLOW_DONE);
	ck_assert_uint_le(l->data_count, LINK_LOG);
	for (uint64_t i = 0; i < l->data_count; i++) {
		ck_assert(l->data[i].ecn == ECN_NOT_ECT || i == ect);
		ect += l->data[i].ecn != ECN_NOT_ECT;
		ck_assert_uint_eq(seg_ace(&l->data[i].seg), 5);
	}
	ck_assert_uint_eq(ect, 10); // the initial window
	ck_assert_uint_eq(f->count.ce_segs, 0);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
}

// Section 3.2.2.3: the path turns the SYN's Not-ECT into ECT(0), ECT(1) or CE. Nothing is sent with
// ECT, but the marks of a path that does the same to data are answered.
TEST(a_path_that_changes_the_syn_gets_no_ect) {
	static const uint8_t changed[] = {ECN_ECT0, ECN_ECT1, ECN_CE};

	for (int i = 0; i < 3; i++) {
		struct link *l = LINK(.group = GROUP "}");
		const struct flow *f = link_flow(l);

		while (link_step(l, 20 * S)) {
			for (struct link_pkt *p = l->head; p != NULL; p = p->next) {
				if ((p->seg.flags & SEG_SYN) != 0 && p->forward)
					p->ecn = changed[i];
				else if (p->seg.len > 0
					&& p->seg.seq - f->iss - 1 == 5 * f->payload)
					p->ecn = ECN_CE;
			}
		}
		ck_assert_int_eq(f->state, FLOW_DONE);
		for (uint64_t k = 0; k < l->data_count; k++)
			ck_assert_uint_eq(l->data[k].ecn, ECN_NOT_ECT);
		ck_assert_uint_eq(f->count.ce_segs, 1);
		ck_assert_uint_eq(f->count.cwnd_reductions, 1);
		link_close(l);
	}
}

// A control that does not answer marks: they are counted, and no episode begins.
TEST(echoes_nobody_hears) {
	struct link *l = HAND(.group = "{cc: bbr, ecn: ect0, ecn_unheard: allow}");
	struct seg s = hand_ack(l, 1, 40 * MS);

	s.flags |= SEG_ECE;
	hand_feed(l, &s, 40 * MS);
	ck_assert(link_flow(l)->ecn_ok);
	ck_assert_uint_eq(link_flow(l)->count.ce_segs, 1);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_OPEN);
}
