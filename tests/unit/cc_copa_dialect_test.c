// SPDX-License-Identifier: BSD-3-Clause
// Copa's dialects through the transport: what they set, and the steps of mvfst's CopaTest.
#include "cc_transport.h"

enum { VELOCITY, DELTA, DQ };
enum { SLOW_START, DEFAULT };

#define T0 (20 * MS)

// Acknowledges each segment in flight one round trip after it left, all at once.
static uint64_t round_of(struct link *l, uint64_t sent_ns, uint64_t rtt_ns) {
	uint64_t to = link_flow(l)->nxt;

	for (uint64_t i = link_flow(l)->una + 1; i <= to; i++)
		hand_ack_at(l, i, sent_ns + rtt_ns);
	return sent_ns + rtt_ns;
}

START_TEST(a_dialect_sets_what_was_not_written) {
	struct link *mvfst = LINK(.group = "{cc: {copa: {dialect: mvfst}}}");
	struct link *own = LINK(.group = "{cc: {copa: {delta: 0.2, dialect: mvfst}}}");
	struct link *paper = LINK(.group = "{cc: {copa: {dialect: paper}}}");

	link_run(mvfst, 21 * MS);
	link_run(own, 21 * MS);
	link_run(paper, 21 * MS);
	OBSERVED_EQ(mvfst, DELTA, 0.05);
	OBSERVED_EQ(own, DELTA, 0.2);
	OBSERVED_EQ(paper, DELTA, 0.5);
	link_close(mvfst);
	link_close(own);
	link_close(paper);
}
END_TEST

// CopaTest: RTTmin 50 ms, then a latest RTT of 150 ms: 1 / (0.5 x 10) leaves 9.8 of 10 segments.
START_TEST(slow_start_ends_as_in_mvfst) {
	struct link *l = HAND(.group = "{cc: {copa: {dialect: mvfst, delta: 0.5, initial: 9}}, "
				       "ack_every: 1, tlp: no, pacing: off}");

	hand_ack_at(l, 1, T0 + 50 * MS);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	CWND_EQ(l, 10);
	hand_ack_at(l, 2, T0 + 150 * MS);
	ck_assert_int_eq(cc_mode(l), DEFAULT);
	OBSERVED_EQ(l, DQ, 100e6);
	CWND_EQ(l, 9.8);
	link_close(l);
}
END_TEST

// CopaTest's TestVelocity with its threshold of 4: in one direction v is 1 five times, then 2, 4, 8; a decision the other
// way resets it.
START_TEST(velocity_grows_as_in_mvfst) {
	static const double expected[] = {1, 1, 1, 1, 1, 2, 4, 8};
	struct link *l = HAND(.group = "{cc: {copa: {dialect: mvfst, delta: 0.5, velocity_rtts: 4, "
				       "initial: 10}}, ack_every: 1, tlp: no, pacing: off}");
	uint64_t t_ns = round_of(l, T0, 50 * MS);

	t_ns = round_of(l, t_ns, 150 * MS);
	ck_assert_int_eq(cc_mode(l), DEFAULT);
	t_ns = round_of(l, t_ns, 150 * MS); // down
	for (int i = 0; i < 8; i++) {
		t_ns = round_of(l, t_ns, 50 * MS);
		ck_assert_double_eq(cc_observed(l, VELOCITY), expected[i]);
	}
	round_of(l, t_ns, 150 * MS);
	ck_assert_double_eq(cc_observed(l, VELOCITY), 1);
	link_close(l);
}
END_TEST

// genericCC has no waiting time: v doubles with the first repetition.
START_TEST(velocity_grows_as_in_genericcc) {
	struct link *l =
		HAND(.group = "{cc: {copa: {dialect: genericcc, initial: 60, standing: 0.01}}, "
			      "mss: 512B, ack_every: 1, tlp: no, pacing: off}");
	uint64_t t_ns = round_of(l, T0, 50 * MS);

	t_ns = round_of(l, t_ns, 150 * MS);
	for (double v = 2; v <= 8; v *= 2) {
		t_ns = round_of(l, t_ns, 150 * MS);
		ck_assert_double_eq(cc_observed(l, VELOCITY), v);
	}
	link_close(l);
}
END_TEST

START_TEST(losses_end_slow_start_only_here) {
	static const char *const groups[] = {
		"{cc: copa, ack_every: 1, tlp: no}",
		"{cc: {copa: {dialect: paper}}, ack_every: 1, tlp: no}",
		"{cc: {copa: {dialect: genericcc}}, ack_every: 1, tlp: no}",
		"{cc: {copa: {dialect: mvfst}}, ack_every: 1, tlp: no}",
	};

	for (int i = 0; i < 4; i++) {
		struct link *l = HAND(.group = groups[i]);

		for (uint64_t to = 2; to <= 5; to++)
			hand_sack_at(l, 0, 1, to, T0 + 50 * MS + to);
		ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
		ck_assert_int_eq(cc_mode(l), i == 0 ? DEFAULT : SLOW_START);
		link_close(l);
	}
}
END_TEST

TEST_MAIN(a_dialect_sets_what_was_not_written, slow_start_ends_as_in_mvfst,
	velocity_grows_as_in_mvfst, velocity_grows_as_in_genericcc, losses_end_slow_start_only_here)
