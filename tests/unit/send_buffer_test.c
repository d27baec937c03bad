// SPDX-License-Identifier: BSD-3-Clause
// A send buffer of limited size: what is in it, when the application writes again, and what a
// control is told of it. Numbers are Linux's rules by hand: a socket buffer of the largest size
// holds 45 segments of 1448 bytes, and 896 bytes of its own.
#include "link.h"

#define GROUP "cc: {fixed: {cwnd: 1000}}, tlp: no, tso: 20, wmem: 200000B"
#define LARGE "{" GROUP "}"

// The whole of a first window, and an ACK that opens the peer's.
static struct link *sent_all(const char *group) {
	struct link *l = HAND(.group = group);

	ck_assert_uint_eq(l->data_count, 45); // the window of a SYN/ACK is not scaled
	ck_assert_uint_eq(link_flow(l)->written, 180); // 3 * (45 * 1448 + 896) < 200000
	hand_ack_at(l, 1, 40 * MS);
	return l;
}

// n segments in bursts of 20 are n * 1448 + 896 n / 20 bytes: 133352 for 89, 131904 for 88. A third
// of 200000 is free at 133333.
TEST(the_application_writes_again_once_a_third_is_free) {
	struct link *l = sent_all(LARGE);
	struct flow *f = link_flow(l);

	ck_assert_uint_eq(l->data_count, 180);
	hand_ack_at(l, 91, 60 * MS);
	ck_assert_uint_eq(l->data_count, 180);
	ck_assert_uint_eq(f->app_limited, 0);
	hand_ack_at(l, 92, 61 * MS); // one socket buffer more is 197960
	ck_assert_uint_eq(l->data_count, 270);
	ck_assert_uint_eq(f->written, 270);
	ck_assert_uint_eq(f->app_limited, 92 + 88 + 1);
	ck_assert_uint_eq(l->data[268].seg.flags & SEG_PSH, 0);
	ck_assert_uint_eq(l->data[269].seg.flags & SEG_PSH, SEG_PSH); // nothing follows it
	ck_assert_uint_eq(flow_seg(f, 180)->flags & SENT_APP_LIMITED, SENT_APP_LIMITED);
	ck_assert_uint_eq(flow_seg(f, 179)->flags & SENT_APP_LIMITED, 0);
	hand_ack_at(l, 181, 81 * MS);
	ck_assert_uint_ne(f->app_limited, 92 + 88 + 1);
}

// Each segment is a socket buffer by itself: 4 * (1448 + 896) are 9376 bytes, of 16384.
TEST(bursts_of_one_segment_fill_it_sooner) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000}}, tlp: no, wmem: 16384B}");

	ck_assert_uint_eq(l->data_count, 45);
	hand_ack_at(l, 40, 40 * MS);
	ck_assert_uint_eq(l->data_count, 45);
	hand_ack_at(l, 41, 41 * MS);
	ck_assert_uint_eq(l->data_count, 90);
}

// Their data stay, what is around it does not: 6 * 1448 + 896 are 9584 bytes.
TEST(sacked_segments_are_one_socket_buffer) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 1000}}, tlp: no, wmem: 16384B}");

	hand_ack_at(l, 38, 40 * MS);
	hand_sack_at(l, 38, 40, 45, 41 * MS); // 7 * 1448 + 2 * 896 are 11928, of 10922 at most
	ck_assert_uint_eq(link_flow(l)->written, 45);
	hand_sack_at(l, 39, 40, 45, 42 * MS);
	ck_assert_uint_eq(link_flow(l)->written, 90);
}

// Nothing leaves the buffer before it is acknowledged in sequence.
TEST(what_is_sacked_stays_in_it) {
	struct link *l = sent_all(LARGE);

	hand_sack_at(l, 1, 2, 180, 60 * MS);
	ck_assert_uint_eq(l->data_count, 181);
	ck_assert_uint_eq(l->data[180].index, 1); // sent again
	ck_assert_uint_eq(link_flow(l)->written, 180);
	hand_ack_at(l, 180, 80 * MS);
	ck_assert_uint_gt(l->data_count, 181);
}

// With all of it sent the window is the limit: 88 segments are in flight at both writes.
TEST(a_write_into_a_full_window_limits_nothing) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 88}}, tlp: no, wmem: 200000B, tso: 20}");
	struct flow *f = link_flow(l);

	hand_ack_at(l, 45, 40 * MS);
	hand_ack_at(l, 91, 60 * MS);
	ck_assert_uint_eq(f->written, 180);
	hand_ack_at(l, 92, 61 * MS);
	ck_assert_uint_eq(f->written, 270);
	ck_assert_uint_eq(f->nxt, 180);
	ck_assert_uint_eq(f->app_limited, 0);
}

// Nor does one that finds data.
TEST(a_write_before_the_end_of_data_limits_nothing) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 65}}, tlp: no, tso: 20, wmem: 200000B}");
	struct flow *f = link_flow(l);

	for (uint64_t i = 1; i < 40; i++) {
		hand_ack_at(l, 20 * i, (20 + 20 * i) * MS);
		NEED(f->app_limited == 0 && f->nxt == 20 * i + 65);
	}
}

TEST(it_grows_with_the_window) {
	static const struct {
		const char *group;
		uint64_t bytes;
	} cases[] = {
		{"{cc: {fixed: {cwnd: 2}}, wmem: 4MiB}", UINT64_C(2) * 10 * 4352},
		{"{cc: {fixed: {cwnd: 100}}, wmem: 4MiB}", UINT64_C(2) * 100 * 4352},
		{"{cc: {fixed: {cwnd: 1000}}, wmem: 4MiB}", 4194304},
		{"{cc: {fixed: {cwnd: 2}}, wmem: 4MiB, mss: 536B}", UINT64_C(2) * 10 * 2304},
		{"{cc: {fixed: {cwnd: 2}}, wmem: 4MiB, mss: 1408B}", UINT64_C(2) * 10 * 2304},
		{"{cc: {fixed: {cwnd: 2}}, wmem: 4MiB, mss: 1409B}", UINT64_C(2) * 10 * 4352},
		{"{cc: {fixed: {cwnd: 2}}, host: linux, hz: 0}", UINT64_C(2) * 10 * 4352},
		{"{cc: {fixed: {cwnd: 2}}}", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = LINK(.group = cases[i].group);

		link_run(l, 30 * MS);
		ck_assert_uint_eq(link_flow(l)->buffered, cases[i].bytes > 0);
		ck_assert_uint_eq(link_flow(l)->buffer_bytes, cases[i].bytes);
		link_close(l);
	}
}

// As long as it may grow it limits nothing: each packet leaves when it does without a buffer. A
// window of 1280 segments is 2 * 1280 * 4352 bytes of buffer, more than 4 MiB; two thirds of these
// are 2.8 MB, half as much again as the window.
TEST(below_its_limit_no_packet_moves) {
	static const char *const groups[][2] = {
		{"{cc: newreno}", "{cc: newreno, wmem: 4MiB}"},
		{"{cc: newreno, tso: linux, acks: linux}",
			"{cc: newreno, tso: linux, acks: linux, wmem: 4MiB}"},
		{"{cc: bbr, tso: linux}", "{cc: bbr, tso: linux, wmem: 4MiB}"},
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		struct link *ideal = LINK(.group = groups[i][0]), *l = LINK(.group = groups[i][1]);

		for (uint64_t ms = 1; ms <= 165; ms++) {
			link_run(ideal, ms * MS);
			link_run(l, ms * MS);
			NEED(l->data_count == ideal->data_count);
			NEED(i < 2 || link_flow(l)->app_limited <= 1);
		}
		ck_assert_uint_gt(l->data_count, 1000);
		for (uint64_t k = 0; k < min_u64(l->data_count, LINK_LOG); k++) {
			NEED(l->data[k].t_ns == ideal->data[k].t_ns);
			NEED(l->data[k].index == ideal->data[k].index);
		}
		link_close(ideal);
		link_close(l);
	}
}

// The application closes: what it has written is sent, and the FIN behind it.
TEST(what_was_written_before_the_stop_is_sent) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 100}}, tlp: no, tso: 20, wmem: 200000B, "
			      "stop: 50ms}");

	hand_ack_at(l, 1, 40 * MS);
	ck_assert_uint_eq(l->data_count, 101);
	hand_ack_at(l, 101, 60 * MS);
	ck_assert_uint_eq(l->data_count, 181);
	ck_assert_uint_eq(link_flow(l)->total_bytes, 180 * 1448);
	ck_assert_uint_eq(l->data[180].seg.flags & SEG_FIN, SEG_FIN);
	hand_ack_at(l, 181, 80 * MS);
	ck_assert_int_eq(link_flow(l)->state, FLOW_DONE);
}

// Segments of another size are the same bytes: 180 * 1448 of 500 are 521 whole ones.
TEST(a_smaller_path_mtu_changes_no_write) {
	struct link *l = HAND(.group = LARGE);
	struct flow *f = link_flow(l);

	ck_assert_uint_eq(host_too_big(&l->tx, 0, flow_seq(f, 9), 552, l->now_ns), 552);
	ck_assert_uint_eq(f->written, 521);
	link_check(l);
}

// All of a transfer is written in the end, whatever happens on the way.
TEST(transfers_end) {
	static const char *const groups[] = {
		"{cc: newreno, wmem: 8192B, source: {size: {bytes: 300001B}}}",
		"{cc: cubic, host: linux, wmem: 50kB, source: {size: {bytes: 1MB}}}",
		"{cc: bbr, sack: no, timestamps: no, wmem: 30kB, source: {size: {bytes: 300kB}}}",
	};

	for (uint64_t seed = 0; seed < 60; seed++) {
		struct link *l = LINK(.group = groups[seed % 3], .seed = seed, .loss = 0.03,
			.ack_loss = 0.1, .reorder = 0.02, .late_ns = 5 * MS);

		link_finish(l, 1000 * S);
		link_complete(l);
		link_close(l);
	}
}
