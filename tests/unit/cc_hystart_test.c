// SPDX-License-Identifier: BSD-3-Clause
// Linux's HyStart in CUBIC, through the transport: the nanosecond at which slow start ends. Base
// RTT 100 ms.
#include "cc_transport.h"

enum { SSTHRESH };

#define T0 (20 * MS)
#define RTT (100 * MS)
#define CUBIC(initial, more)                                                                       \
	"{cc: {cubic: {slow_start: hystart, initial: " initial ", abc_limit: 1}}, mss: 512B, "     \
	"ack_every: 1, tlp: no, rto_min: 10s" more "}"

static bool in_slow_start(struct link *l) {
	return cc_observed(l, SSTHRESH) > 1e8;
}

// A train of ACKs 2 ms apart ends it when it lasted more than (100 ms + 1 ms) / 2; one of 2 ms and
// 1 ns is none.
TEST(a_train_of_half_the_rtt_ends_slow_start) {
	for (uint64_t late = 0; late <= 1; late++) {
		struct link *l = HAND(.group = CUBIC("100", ""));
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

// Of a flow that its host paces, pacing may have made the train: it takes more than 100 ms + 1 ms.
TEST(where_the_host_paces_it_takes_a_whole_rtt) {
	static const char *const groups[] = {
		CUBIC("100", ", pacing: srtt"), CUBIC("100", ", pacing: fq")};

	for (size_t g = 0; g < 2; g++) {
		struct link *l = HAND(.group = groups[g]);
		uint64_t t_ns = T0 + RTT;

		hand_ack_at(l, 1, t_ns);
		for (uint64_t i = 1; i <= 50; i++) {
			hand_ack_at(l, 1 + i, t_ns + i * 2 * MS);
			ck_assert(in_slow_start(l));
		}
		hand_ack_at(l, 52, t_ns + RTT + MS);
		ck_assert(in_slow_start(l)); // not more than it
		hand_ack_at(l, 53, t_ns + RTT + MS + 1);
		ck_assert(!in_slow_start(l));
		link_close(l);
	}
}

// The ninth sample decides if eight before it were as late: more than 100 ms + 100 ms / 8.
TEST(a_round_that_is_an_eighth_later_ends_slow_start) {
	for (uint64_t more = 0; more <= 1; more++) {
		struct link *l = HAND(.group = CUBIC("40", ""));
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

// Base RTT 10 ms: a train of 6 ms would be long enough. It begins with a window of 14, which is too
// small to look, so that it has a gap once the window is 16 (as in Linux).
TEST(below_sixteen_segments_nothing_ends_it) {
	struct link *l = HAND(.group = CUBIC("13", ""));
	uint64_t t_ns = T0 + 10 * MS;

	hand_ack_at(l, 1, t_ns);
	for (uint64_t i = 1; i <= 6; i++) {
		CWND_EQ(l, 13 + (double)i);
		hand_ack_at(l, 1 + i, t_ns + i * 2 * MS);
		ck_assert(in_slow_start(l));
	}
}

// ACKs of one segment each, from *t_ns on, until their train has ended slow start; returns the last
// one's number.
static uint64_t end_by_train(struct link *l, uint64_t *t_ns) {
	uint64_t una = 1;

	hand_ack_at(l, una, *t_ns);
	while (in_slow_start(l))
		hand_ack_at(l, ++una, *t_ns += 2 * MS);
	return una;
}

// Once it has ended, 5 % per round trip or more, as the curve alone would wait for seconds; after a
// loss the curve.
TEST(until_the_first_reduction_the_window_grows_by_a_twentieth) {
	struct link *l = HAND(.group = CUBIC("100", ""));
	uint64_t t_ns = T0 + RTT, una = end_by_train(l, &t_ns);
	double before;

	before = cwnd(l);
	for (int i = 0; i < 20; i++)
		hand_ack_at(l, ++una, t_ns += MS);
	CWND_EQ(l, before + 1);
	hand_sack_at(l, una, una + 1, una + 5, t_ns += MS);
	una = link_flow(l)->nxt;
	hand_ack_at(l, una, t_ns += RTT);
	ck_assert_int_eq(link_flow(l)->ca, FLOW_CA_OPEN);
	OBSERVED_EQ(l, SSTHRESH, 0.7 * (before + 1));
	before = cwnd(l);
	for (int i = 0; i < 20; i++)
		hand_ack_at(l, ++una, t_ns += MS);
	ck_assert_double_lt(cwnd(l), before + 20 * 0.04);
}

// 160 segments: the last ones find room in the window, so that it does not grow.
TEST(unless_it_is_not_the_limit) {
	struct link *l = HAND(.group = CUBIC("100", ", source: {size: {bytes: 80000B}}"));
	uint64_t t_ns = T0 + RTT;
	double before;

	end_by_train(l, &t_ns);
	hand_ack_at(l, 140, t_ns += MS);
	hand_ack_at(l, 157, t_ns += MS);
	before = cwnd(l);
	hand_ack_at(l, 158, t_ns += MS);
	hand_ack_at(l, 159, t_ns += MS);
	CWND_EQ(l, before);
}

// A timeout forgets what was too much. 14 segments grow by 0.05 for each acknowledged one, Reno's
// by 0.53 / 14.
TEST(after_a_timeout_too) {
	struct link *l =
		HAND(.group = "{cc: {cubic: {slow_start: hystart, initial: 20, abc_limit: "
			      "1}}, mss: 512B, ack_every: 1, tlp: no, timestamps: no, frto: no}");
	uint64_t t_ns = 400 * MS, una = 0;

	link_run(l, t_ns);
	ck_assert_uint_eq(link_flow(l)->count.timeouts, 1);
	OBSERVED_EQ(l, SSTHRESH, 14);
	while (cwnd(l) < 14)
		hand_ack_at(l, ++una, t_ns += MS);
	una = link_flow(l)->nxt;
	hand_ack_at(l, una, t_ns += 20 * MS);
	for (int i = 0; i < 10; i++) {
		double before = cwnd(l);

		hand_ack_at(l, ++una, t_ns += MS);
		CWND_EQ(l, before + 0.05);
	}
}

TEST(classic_goes_on) {
	struct link *l = HAND(.group = "{cc: {cubic: {slow_start: classic, initial: 100, "
				       "abc_limit: 1}}, mss: 512B, ack_every: 1, tlp: no}");

	for (uint64_t i = 0; i < 60; i++)
		hand_ack_at(l, 1 + i, T0 + RTT + i * 2 * MS);
	ck_assert(in_slow_start(l));
}
