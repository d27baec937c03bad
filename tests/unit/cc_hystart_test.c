// SPDX-License-Identifier: BSD-3-Clause
// Linux's HyStart in CUBIC, through the transport: the nanosecond at which slow start ends. Base RTT 100 ms.
#include "cc_transport.h"

enum { SSTHRESH };

#define T0 (20 * MS)
#define RTT (100 * MS)
#define CUBIC(initial)                                                                             \
	"{cc: {cubic: {slow_start: hystart, initial: " initial ", abc_limit: 1}}, mss: 512B, "     \
	"ack_every: 1, tlp: no, rto_min: 10s}"

static bool in_slow_start(struct link *l) {
	return cc_observed(l, SSTHRESH) > 1e8;
}

// A train of ACKs 2 ms apart ends it when it lasted more than (100 ms + 1 ms) / 2; one of 2 ms and 1 ns is none.
START_TEST(a_train_of_half_the_rtt_ends_slow_start) {
	for (uint64_t late = 0; late <= 1; late++) {
		struct link *l = HAND(.group = CUBIC("100"));
		uint64_t t_ns = T0 + RTT;

		hand_ack_at(l, 1, t_ns); // delay_min, and the round begins
		for (uint64_t i = 1; i <= 25; i++) {
			hand_ack_at(l, 1 + i, t_ns + i * (2 * MS + late));
			ck_assert(in_slow_start(l));
		}
		hand_ack_at(l, 27, t_ns + 50500000 + 25 * late);
		ck_assert(in_slow_start(l)); // not more than it
		hand_ack_at(l, 28, t_ns + 50500001 + 25 * late);
		ck_assert(in_slow_start(l) == (late == 1));
		if (late == 0)
			OBSERVED_EQ(l, SSTHRESH, 100 + 27); // cwnd before this ACK
		link_close(l);
	}
}
END_TEST

// The ninth sample decides if eight before it were as late: more than 100 ms + 100 ms / 8.
START_TEST(a_round_that_is_an_eighth_later_ends_slow_start) {
	for (uint64_t more = 0; more <= 1; more++) {
		struct link *l = HAND(.group = CUBIC("40"));
		uint64_t flight = link_flow(l)->nxt, sent_ns, t_ns = T0 + RTT;

		hand_ack_at(l, 1, t_ns);
		hand_ack_at(l, flight, t_ns + 50 * MS); // no train
		ck_assert_uint_gt(link_flow(l)->nxt, flight + 12);
		sent_ns = t_ns + 50 * MS;
		// Of the segments sent there; the one sent at the first ACK ends the round before.
		t_ns = sent_ns + RTT + 12500000 + more;
		hand_ack_at(l, flight + 3, t_ns);
		for (uint64_t i = 1; i <= 8; i++) {
			ck_assert(in_slow_start(l));
			hand_ack_at(l, flight + 3 + i, t_ns);
		}
		ck_assert(in_slow_start(l) == (more == 0));
		link_close(l);
	}
}
END_TEST

// Base RTT 10 ms: a train of 6 ms would be long enough. It begins with a window of 14, which is too small to look, so
// that it has a gap once the window is 16 (as in Linux).
START_TEST(below_sixteen_segments_nothing_ends_it) {
	struct link *l = HAND(.group = CUBIC("13"));
	uint64_t t_ns = T0 + 10 * MS;

	hand_ack_at(l, 1, t_ns);
	for (uint64_t i = 1; i <= 6; i++) {
		CWND_EQ(l, 13 + (double)i);
		hand_ack_at(l, 1 + i, t_ns + i * 2 * MS);
		ck_assert(in_slow_start(l));
	}
	link_close(l);
}
END_TEST

START_TEST(hystart_no_is_classic) {
	struct link *l =
		HAND(.group = "{cc: {cubic: {slow_start: hystart, hystart: no, initial: 100, "
			      "abc_limit: 1}}, mss: 512B, ack_every: 1, tlp: no}");

	for (uint64_t i = 0; i < 60; i++)
		hand_ack_at(l, 1 + i, T0 + RTT + i * 2 * MS);
	ck_assert(in_slow_start(l));
	link_close(l);
}
END_TEST

TEST_MAIN(a_train_of_half_the_rtt_ends_slow_start, a_round_that_is_an_eighth_later_ends_slow_start,
	below_sixteen_segments_nothing_ends_it, hystart_no_is_classic)
