// SPDX-License-Identifier: BSD-3-Clause
// Datagrams on the wire (RFC 768), their times against theory, and what the sender learns of them.
#include "common/net/wire.h"
#include "link.h"
#include "sender/udp/udp.h"
#include "statistics.h"

#define UDP_LINK(source, ...) LINK(.group = "{source: {udp: {" source "}}}", __VA_ARGS__)

static uint32_t words(const uint8_t *p, size_t len) {
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
	return sum;
}

// The checksum of RFC 768, added up byte by byte: over the pseudo header, the header and the
// payload.
static bool sum_good(const uint8_t *frame, size_t udp_len) {
	uint32_t sum = words(frame + 26, 8) + 17 + (uint32_t)udp_len + words(frame + 34, udp_len);

	while (sum > 0xffff)
		sum = (sum >> 16) + (sum & 0xffff);
	return sum == 0xffff;
}

TEST(a_datagram_is_written_and_read) {
	struct wire_addr a = {
		.src_ip = 0xc6120001, .dst_ip = 0xc6130001, .src_port = 10000, .dst_port = 5001};

	for (uint32_t len = 0; len < 1400; len += 7) {
		struct seg s = {.seq = 0xfffffff0 + len, .ack = len, .options = SEG_OPT_UDP}, back;
		uint8_t frame[1600] = {0};
		struct wire_info info;
		uint32_t payload = len > 8 ? len : 8;

		s.len = (uint16_t)(len > 8 ? len : 0); // 0: the numbers alone
		ck_assert_uint_eq(wire_write_udp(frame, &a, 46 << 2, 9, &s), 50);
		ck_assert_uint_eq(
			wire_tcp_frame(&s, WIRE_IPV4), 42 + payload < 60 ? 60 : 42 + payload);
		ck_assert_int_eq(wire_parse(frame, wire_tcp_frame(&s, WIRE_IPV4), &info), WIRE_OK);
		ck_assert_uint_eq(info.proto, 17);
		ck_assert_uint_eq(info.addr.src_port, 10000);
		ck_assert_uint_eq(frame[15], 46 << 2);
		ck_assert_uint_ne(words(frame + 40, 2), 0);
		ck_assert(sum_good(frame, 8 + payload));
		ck_assert_int_eq(wire_parse_udp(frame, &info, true, &back), WIRE_OK);
		ck_assert_uint_eq(back.seq, s.seq);
		ck_assert_uint_eq(back.ack, s.ack);
		ck_assert_uint_eq(back.len, payload);
		ck_assert_uint_eq(back.options, SEG_OPT_UDP);
		frame[45] ^= 1;
		ck_assert_int_eq(wire_parse_udp(frame, &info, true, &back), WIRE_BAD_CHECKSUM);
		frame[40] = frame[41] = 0; // RFC 768: there is none
		ck_assert_int_eq(wire_parse_udp(frame, &info, true, &back), WIRE_OK);
	}
}

// Its checksum would be 0, which says that there is none: all ones are sent (RFC 768).
TEST(a_sum_of_zero_is_written_as_ones) {
	struct wire_addr a = {.src_ip = 1, .dst_ip = 2};
	struct seg s = {.len = 100, .options = SEG_OPT_UDP};
	uint8_t frame[200] = {0};
	struct wire_info info;

	wire_write_udp(frame, &a, 0, 0, &s);
	s.seq = words(frame + 40, 2); // with it, the rest adds up to 0xffff
	wire_write_udp(frame, &a, 0, 0, &s);
	ck_assert_uint_eq(words(frame + 40, 2), 0xffff);
	ck_assert_int_eq(wire_parse(frame, 142, &info), WIRE_OK);
	frame[141] = 1; // so that a sum that is not checked would be noticed
	ck_assert_int_eq(wire_parse_udp(frame, &info, true, &s), WIRE_BAD_CHECKSUM);
	frame[141] = 0;
	ck_assert_int_eq(wire_parse_udp(frame, &info, true, &s), WIRE_OK);
}

TEST(a_bad_length_is_refused) {
	struct wire_addr a = {.src_ip = 1, .dst_ip = 2};
	struct seg s = {.len = 100, .options = SEG_OPT_UDP};
	uint8_t frame[200] = {0};
	struct wire_info info;

	wire_write_udp(frame, &a, 0, 0, &s);
	ck_assert_int_eq(wire_parse(frame, 142, &info), WIRE_OK);
	frame[39] = 109; // one more than there is
	ck_assert_int_eq(wire_parse_udp(frame, &info, false, &s), WIRE_BAD_HEADER);
	frame[39] = 15; // no room for the numbers
	ck_assert_int_eq(wire_parse_udp(frame, &info, false, &s), WIRE_BAD_HEADER);
	info.ip_len = 35;
	ck_assert_int_eq(wire_parse_udp(frame, &info, false, &s), WIRE_TRUNCATED);
	info.proto = WIRE_PROTO_TCP;
	ck_assert_int_eq(wire_parse_udp(frame, &info, false, &s), WIRE_BAD_HEADER);
}

// 7 Mbit/s of 1200 bytes: a datagram each 1371428.57 ns. After a million the time has not moved by
// a nanosecond.
TEST(the_rate_is_exact) {
	struct link *l = UDP_LINK("rate: 7Mbit", .delay_ns = 5 * MS);
	uint64_t n = 0;

	l->oracle = false;
	for (uint64_t until_ns = 0; until_ns <= 60 * S; until_ns += S) {
		link_run(l, until_ns);
		for (; n < l->data_count; n++) {
			const struct link_log *log = &l->data[n % LINK_LOG];

			ck_assert_uint_eq(log->t_ns, n * 9600 * 1000 / 7);
			ck_assert_uint_eq(log->seg.seq, n);
			ck_assert_uint_eq(log->seg.len, 1200);
		}
	}
	ck_assert_uint_eq(n, 60ull * 7000000 / 9600 + 1); // the one at 60 s too
	ck_assert_uint_eq(link_flow(l)->count.sent_segs, n);
}

static double exponential_cdf(double x, const void *mean) {
	return 1 - exp(-x / *(const double *)mean);
}

TEST(exponential_gaps_are_a_poisson_process) {
	struct link *l = UDP_LINK("rate: 12Mbit, gaps: exponential", .seed = 3);
	static double gap_ns[LINK_LOG];
	double mean = 9600e9 / 12e6;
	size_t n;

	l->oracle = false;
	link_run(l, 10 * S);
	n = l->data_count - 1;
	ck_assert_uint_gt(n, 12000);
	ck_assert_uint_lt(n, LINK_LOG - 1);
	for (size_t i = 0; i < n; i++)
		gap_ns[i] = (double)(l->data[i + 1].t_ns - l->data[i].t_ns);
	ck_assert_double_gt(ks_test(gap_ns, n, exponential_cdf, exponential_cdf, &mean), P_LEAST);
	// Poisson: the count's deviation is the root of its mean.
	ck_assert_double_gt(normal_p(((double)l->data_count - 12500) / sqrt(12500)), P_LEAST);
}

// Nothing slows it down, and the sender knows what arrived, at the latest a report's interval and
// the delay later.
TEST(loss_is_reported_and_ignored) {
	struct link *l = UDP_LINK("rate: 10Mbit", .loss = 0.2, .seed = 4);
	const struct flow *f = link_flow(l);

	l->oracle = false;
	link_run(l, 10 * S);
	ck_assert_uint_eq(l->data_count, 10 * 10000000 / 9600 + 1);
	ck_assert_uint_gt(l->died, 1900);
	uint64_t received = l->rx.received.segs, reported = f->count.acked_bytes / 1200;
	ck_assert_uint_le(reported, received);
	ck_assert_uint_ge(reported + 22, received); // 20 ms of 1042 a second
	ck_assert_uint_le(f->count.lost_segs, l->died);
	ck_assert_uint_ge(f->count.lost_segs + 15, l->died);
	ck_assert_uint_le(l->rx.received.acks, 10 * S / UDP_REPORT_NS);
}

// A report that a later one has overtaken changes nothing, and late datagrams take no loss back.
TEST(reports_may_come_in_any_order) {
	struct link *l = UDP_LINK("rate: 10Mbit", .hand = true);
	struct flow *f = link_flow(l);

	link_run(l, 100 * MS);
	hand_feed(l, &(struct seg){.seq = 50, .ack = 40, .options = SEG_OPT_UDP}, 101 * MS);
	ck_assert_uint_eq(f->count.acked_bytes, 40 * 1200);
	ck_assert_uint_eq(f->count.lost_segs, 10);
	hand_feed(l, &(struct seg){.seq = 30, .ack = 30, .options = SEG_OPT_UDP}, 102 * MS);
	ck_assert_uint_eq(f->count.acked_bytes, 40 * 1200);
	hand_feed(l, &(struct seg){.seq = 50, .ack = 45, .options = SEG_OPT_UDP}, 103 * MS);
	ck_assert_uint_eq(f->count.acked_bytes, 45 * 1200);
	ck_assert_uint_eq(f->count.lost_segs, 10);
	ck_assert_uint_eq(flow_inflight(f), f->nxt - 50);
}

TEST(it_stops) {
	struct link *l = LINK(.group = "{source: {udp: {rate: 9600kbit}}, start: 100ms, stop: 1s}");

	l->oracle = false;
	link_run(l, 2 * S);
	ck_assert_uint_eq(l->data_count, 900); // at 100 ms + k ms, before 1 s
	ck_assert_uint_eq(l->data[0].t_ns, 100 * MS);
	ck_assert_uint_eq(l->tx.done, 1);
	ck_assert_uint_eq(l->tx.open, 0);
	ck_assert_uint_eq(link_flow(l)->count.acked_bytes, 900 * 1200);
}

// A live loop that stood still sends what it missed at once, and the rate is what it was; after a
// long stall the datagrams of all but the last 200 ms are left out.
TEST(a_late_loop_keeps_the_rate) {
	struct link *l = UDP_LINK("rate: 9600kbit", .live = true);

	l->oracle = false;
	link_run(l, 100 * MS);
	ck_assert_uint_eq(l->data_count, 101);
	host_run(&l->tx, 150 * MS);
	ck_assert_uint_eq(l->data_count, 151);
	host_run(&l->tx, 1150 * MS);
	ck_assert_uint_le(l->data_count, 153);
	host_run(&l->tx, 1250 * MS);
	ck_assert_uint_le(l->data_count, 253);
	ck_assert_uint_ge(l->data_count, 251);
	l->now_ns = 1250 * MS;
}
