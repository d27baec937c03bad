// SPDX-License-Identifier: BSD-3-Clause
// Bursts of an offloading host and fq's pacing: exact sizes and times. Linux 6.12's
// tcp_tso_autosize, tcp_tso_should_defer and tcp_update_skb_after_send.
#include "link.h"

#define PAYLOAD 1448u
#define OPEN (20 * MS)

// How many segments left at the time of number `first`, from it on.
static uint64_t burst_at(const struct link *l, uint64_t first) {
	uint64_t n = 0;

	while (first + n < l->data_count && l->data[first + n].t_ns == l->data[first].t_ns)
		n++;
	return n;
}

TEST(a_burst_takes_one_slot) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 1000, rate: 11.584Mbit}}, tso: 4, tlp: no}");

	hand_ack_at(l, 0, OPEN); // opens the window
	link_run(l, 120 * MS);
	ck_assert_uint_eq(l->data_count, 104);
	for (uint64_t i = 0; i < 104; i++)
		SENT(l, i, i, OPEN + i / 4 * 4 * MS); // 1448 B at 1448 kbyte/s: 1 ms each
}

// rate / 8 / 1024 / 1448 B; with an RTT of 20 ms the RTT adds nothing.
TEST(size_is_a_millisecond_at_the_rate) {
	static const struct {
		const char *group;
		uint64_t size;
	} cases[] = {
		{"{cc: {fixed: {cwnd: 1000, rate: 1Mbit}}, tso: linux}", 1}, // as BBR's
		{"{cc: {fixed: {cwnd: 1000, rate: 2Mbit}}, tso: linux}", 2},
		{"{cc: {fixed: {cwnd: 1000, rate: 100Mbit}}, tso: linux}", 8},
		{"{cc: {fixed: {cwnd: 1000, rate: 10Gbit}}, tso: linux}", 45}, // 64 KB
		{"{cc: {fixed: {cwnd: 1000, rate: 10Gbit}}, mss: 512B, tso: linux}", 130},
		// Unpaced Reno's rate counts too: 2 * 512 segments in 20 ms.
		{"{cc: {newreno: {initial: 512}}, pacing: srtt, tso: linux}", 45},
		{"{cc: {newreno: {initial: 128}}, pacing: srtt, tso: linux}", 12},
		// Prague's are of 0.25 ms, or a segment.
		{"{cc: {prague: {initial: 512}}, tso: linux}", 12},
		{"{cc: {prague: {initial: 128}}, tso: linux}", 3},
		{"{cc: {prague: {initial: 10}}, tso: linux}", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link *l = HAND(.group = cases[i].group);

		hand_ack_at(l, 0, OPEN);
		link_run(l, OPEN + 50 * MS);
		ck_assert_uint_eq(burst_at(l, 0), cases[i].size);
		link_close(l);
	}
}

// 64 KB below 512 us of round trip, half of it below 1024 us.
TEST(short_round_trips_have_large_bursts) {
	static const struct {
		uint64_t delay_ns, size;
	} cases[] = {{250 * US, 45}, {400 * US, 22}, {700 * US, 11}};

	for (int i = 0; i < 3; i++) {
		struct link *l = LINK(.group = "{cc: {fixed: {cwnd: 1000, rate: 2Mbit}}, "
					       "rwnd: 10MB, tso: linux}",
			.delay_ns = cases[i].delay_ns);

		link_run(l, 10 * MS);
		ck_assert_uint_eq(burst_at(l, 0), cases[i].size);
		link_close(l);
	}
}

TEST(a_burst_takes_half_the_window) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 10, rate: 11.584Mbit}}, tso: 64, tlp: no}");

	hand_ack_at(l, 0, OPEN);
	link_run(l, OPEN + 15 * MS);
	SENT(l, 4, 4, OPEN);
	SENT(l, 5, 5, OPEN + 5 * MS);
	ck_assert_uint_eq(l->data_count, 10);
}

TEST(small_bursts_wait_for_acks_that_come_soon) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 24, rate: 0bit}}, tso: 4, tlp: no}");

	hand_ack_at(l, 0, OPEN);
	ck_assert_uint_eq(l->data_count, 24);
	hand_ack_at(l, 2, OPEN + 20 * MS);
	ck_assert_uint_eq(l->data_count, 26); // nothing was written for a millisecond
	hand_ack_at(l, 4, OPEN + 20 * MS + 100 * US);
	ck_assert_uint_eq(l->data_count, 26); // waits for two more
	hand_ack_at(l, 6, OPEN + 20 * MS + 200 * US);
	ck_assert_uint_eq(l->data_count, 30);
	ck_assert_uint_eq(burst_at(l, 26), 4);
	hand_ack_at(l, 23, OPEN + 20 * MS + 300 * US);
	ck_assert_uint_eq(l->data_count, 46); // a whole number of bursts; the last one waits
	hand_ack_at(l, 24, OPEN + 20 * MS + 400 * US);
	ck_assert_uint_eq(l->data_count, 48); // the next ACK is due 19.6 ms later
}

// The rest of a socket buffer of 45 segments does not wait for a larger burst; in a burst that is
// allowed to be larger, segments of the next buffer join it.
TEST(the_rest_of_a_buffer_does_not_wait) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 42, rate: 0bit}}, tso: 4, tlp: no}");
	uint64_t at = OPEN + 20 * MS;

	hand_ack_at(l, 0, OPEN);
	hand_ack_at(l, 1, at);
	ck_assert_uint_eq(l->data_count, 43); // nothing was written for a millisecond
	hand_ack_at(l, 2, at + 100 * US);
	ck_assert_uint_eq(l->data_count, 43); // room for one of two
	hand_ack_at(l, 3, at + 200 * US);
	ck_assert_uint_eq(l->data_count, 45);
	hand_ack_at(l, 6, at + 300 * US);
	ck_assert_uint_eq(l->data_count, 45); // three of the next 45 wait for a fourth
	link_close(l);

	l = HAND(.group = "{cc: {fixed: {cwnd: 42, rate: 0bit}}, tso: 4, tlp: no}");
	hand_ack_at(l, 0, OPEN);
	hand_ack_at(l, 1, at);
	hand_ack_at(l, 4, at + 100 * US);
	ck_assert_uint_eq(l->data_count, 46);
	ck_assert_uint_eq(burst_at(l, 43), 3);
}

// Twice the window per round trip in slow start: 0.5 ms per segment with 20 segments in 20 ms.
TEST(fq_lets_ten_segments_go_and_paces_the_others) {
	struct link *l = HAND(.group = "{cc: {newreno: {initial: 20}}, pacing: fq, tlp: no}");

	hand_ack_at(l, 0, OPEN);
	link_run(l, OPEN + 15 * MS);
	ck_assert_uint_eq(l->data_count, 20);
	for (uint64_t i = 0; i < 10; i++)
		SENT(l, i, i, OPEN);
	for (uint64_t i = 10; i < 20; i++)
		SENT(l, i, i, OPEN + (i - 9) * 500 * US);
}

// After a pause the first gap is shorter by the time that the slot was late, by half at most.
TEST(fq_shortens_one_gap_after_a_pause) {
	struct link *l = HAND(.group = "{cc: {fixed: {cwnd: 12, rate: 11.584Mbit}}, pacing: fq, "
				       "tlp: no}");

	hand_ack_at(l, 0, OPEN);
	link_run(l, OPEN + 15 * MS);
	SENT(l, 9, 9, OPEN);
	SENT(l, 10, 10, OPEN + 1 * MS);
	SENT(l, 11, 11, OPEN + 2 * MS); // the next slot: OPEN + 3 ms
	hand_ack_at(l, 4, OPEN + 20 * MS);
	link_run(l, OPEN + 30 * MS);
	SENT(l, 12, 12, OPEN + 20 * MS);
	SENT(l, 13, 13, OPEN + 20 * MS + 500 * US);
	SENT(l, 14, 14, OPEN + 21 * MS + 500 * US);
}

// What was lost leaves again in bursts.
TEST(retransmissions_leave_in_bursts) {
	struct link *l =
		HAND(.group = "{cc: {fixed: {cwnd: 40, rate: 11.584Mbit}}, tso: 4, tlp: no}");

	hand_ack_at(l, 0, OPEN);
	link_run(l, OPEN + 60 * MS);
	ck_assert_uint_eq(l->data_count, 40);
	hand_sack_at(l, 0, 8, 40, OPEN + 61 * MS);
	link_run(l, OPEN + 70 * MS);
	for (uint64_t i = 0; i < 8; i++)
		SENT(l, 40 + i, i, OPEN + 61 * MS + i / 4 * 4 * MS);
	for (uint64_t i = 0; i < 48; i++) // the last of each burst is pushed
		ck_assert_int_eq((l->data[i].seg.flags & SEG_PSH) != 0, i % 4 == 3);
}

// A segment that leaves alone is not pushed, whatever it could have been; nor are those of a host
// without bursts.
TEST(a_segment_alone_is_not_pushed) {
	for (int tso = 0; tso < 2; tso++) {
		struct link *l = HAND(.group = tso ? "{cc: {fixed: {cwnd: 1}}, tso: 4, tlp: no}"
						   : "{cc: {fixed: {cwnd: 20}}, tso: no, tlp: no}");

		hand_ack_at(l, 0, OPEN);
		hand_ack_at(l, 1, OPEN + 20 * MS);
		ck_assert_uint_gt(l->data_count, 1);
		for (uint64_t i = 0; i < l->data_count; i++)
			ck_assert_int_eq(l->data[i].seg.flags & SEG_PSH, 0);
		link_close(l);
	}
}

// The burst of a flow that ends does not wait to be larger.
TEST(the_last_burst_does_not_wait) {
	struct link *l = LINK(.group = "{cc: newreno, tso: 64, pacing: fq, source: {"
				       "size: {bytes: 300001B}}}");

	link_finish(l, S);
	link_complete(l);
}
