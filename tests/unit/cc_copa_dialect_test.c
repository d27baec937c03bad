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

TEST(a_dialect_sets_what_was_not_written) {
	struct link *mvfst = LINK(.group = "{cc: {copa: {dialect: mvfst}}}");
	struct link *own = LINK(.group = "{cc: {copa: {delta: 0.2, dialect: mvfst}}}");
	struct link *paper = LINK(.group = "{cc: {copa: {dialect: paper}}}");

	link_run(mvfst, 21 * MS);
	link_run(own, 21 * MS);
	link_run(paper, 21 * MS);
	OBSERVED_EQ(mvfst, DELTA, 0.05);
	OBSERVED_EQ(own, DELTA, 0.2);
	OBSERVED_EQ(paper, DELTA, 0.5);
}

// CopaTest: RTTmin 50 ms, then a latest RTT of 150 ms: 1 / (0.5 x 10) leaves 9.8 of 10 segments.
TEST(slow_start_ends_as_in_mvfst) {
	struct link *l = HAND(.group = "{cc: {copa: {dialect: mvfst, delta: 0.5, initial: 9}}, "
				       "ack_every: 1, tlp: no, pacing: off}");

	hand_ack_at(l, 1, T0 + 50 * MS);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	CWND_EQ(l, 10);
	hand_ack_at(l, 2, T0 + 150 * MS);
	ck_assert_int_eq(cc_mode(l), DEFAULT);
	OBSERVED_EQ(l, DQ, 100e6);
	CWND_EQ(l, 9.8);
}

// CopaTest's TestVelocity with its threshold of 4: in one direction v is 1 five times, then 2, 4,
// 8; a decision the other way resets it.
TEST(velocity_grows_as_in_mvfst) {
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
}

// genericCC has no waiting time: v doubles with the first repetition.
TEST(velocity_grows_as_in_genericcc) {
	struct link *l =
		HAND(.group = "{cc: {copa: {dialect: genericcc, initial: 60, standing: 0.01}}, "
			      "mss: 512B, ack_every: 1, tlp: no, pacing: off}");
	uint64_t t_ns = round_of(l, T0, 50 * MS);

	t_ns = round_of(l, t_ns, 150 * MS);
	for (double v = 2; v <= 8; v *= 2) {
		t_ns = round_of(l, t_ns, 150 * MS);
		ck_assert_double_eq(cc_observed(l, VELOCITY), v);
	}
}

// A single loss may be random: it ends slow start only where that is asked for.
TEST(a_loss_ends_slow_start_where_it_is_asked_for) {
	static const char *const groups[] = {
		"{cc: {copa: {loss_exit: yes}}, ack_every: 1, tlp: no}",
		"{cc: copa, ack_every: 1, tlp: no}",
		"{cc: {copa: {dialect: paper}}, ack_every: 1, tlp: no}",
		"{cc: {copa: {dialect: genericcc}}, ack_every: 1, tlp: no}",
		"{cc: {copa: {dialect: mvfst}}, ack_every: 1, tlp: no}",
	};

	for (int i = 0; i < 5; i++) {
		struct link *l = HAND(.group = groups[i]);

		for (uint64_t to = 2; to <= 5; to++)
			hand_sack_at(l, 0, 1, to, T0 + 50 * MS + to);
		ck_assert_uint_eq(link_flow(l)->count.lost_segs, 1);
		ck_assert_int_eq(cc_mode(l), i == 0 ? DEFAULT : SLOW_START);
		link_close(l);
	}
}

#define DATACENTER(more)                                                                           \
	"{cc: {copa: {dialect: datacenter, " more "}}, mss: 512B, ack_every: 1, tlp: no, pacing: " \
	"off}"

// Section 5.5: the propagation delay is known. A flow whose first packet met 20 ms of queue knows
// it: with 10 segments, (10 - 1/2) 20 ms > 2 x 70 ms, so slow start ends and this ACK takes 1 /
// (0.5 x 10).
TEST(a_known_rtt_min_counts_from_the_first_packet) {
	struct link *known = HAND(.group = DATACENTER("rtt_min: 50ms"));
	struct link *measured = HAND(.group = DATACENTER("initial: 10"));

	hand_ack_at(known, 1, T0 + 70 * MS);
	OBSERVED_EQ(known, DQ, 20e6);
	CWND_EQ(known, 9.8);
	hand_ack_at(measured, 1, T0 + 70 * MS);
	OBSERVED_EQ(measured, DQ, 0);
	CWND_EQ(measured, 11);
}

// The latest RTT in lambda too: 2 segments in 150 ms, 50 ms of them empty: 2 x 100 ms <= 2 x 150
// ms. By RTTstanding of 50 ms they would be too fast.
TEST(lambda_is_of_the_latest_rtt) {
	struct link *l =
		HAND(.group = DATACENTER("rtt_min: 50ms, initial: 2, bias: 0, standing: 10"));
	struct link *standing = HAND(.group = DATACENTER("rtt_min: 50ms, initial: 2, bias: 0, "
							 "standing: 10, rate_rtt: standing"));

	hand_ack_at(l, 1, T0 + 50 * MS);
	hand_ack_at(l, 2, T0 + 150 * MS);
	ck_assert_int_eq(cc_mode(l), SLOW_START);
	CWND_EQ(l, 4);
	hand_ack_at(standing, 1, T0 + 50 * MS);
	hand_ack_at(standing, 2, T0 + 150 * MS);
	ck_assert_int_eq(cc_mode(standing), DEFAULT);
}

// A round trip of 100 ms for the first `early` segments in flight and of 110 ms for the rest, which
// say down: with 30 segments 29.5 x 10 ms > 2 x 110 ms.
static void divided_round(struct link *l, uint64_t *sent_ns, uint64_t *late_ns, uint64_t early) {
	uint64_t to = link_flow(l)->nxt, from = link_flow(l)->una;

	*sent_ns += 100 * MS;
	*late_ns += 110 * MS;
	for (uint64_t i = from + 1; i <= to; i++)
		hand_ack_at(l, i, i - from <= early ? *sent_ns : *late_ns);
}

// After a round with one ACK that says down, which ends slow start, eight rounds of which `part` of
// `parts` and `more` ACKs say up.
static double largest_velocity(const char *group, uint64_t part, uint64_t parts, int more) {
	struct link *l = HAND(.group = group);
	uint64_t sent_ns = T0, late_ns = T0;
	double velocity = 0, v;

	divided_round(l, &sent_ns, &late_ns, link_flow(l)->nxt - 1);
	ck_assert_int_eq(cc_mode(l), DEFAULT);
	for (int i = 0; i < 8; i++) {
		uint64_t n = link_flow(l)->nxt - link_flow(l)->una;

		divided_round(l, &sent_ns, &late_ns, n * part / parts + (uint64_t)more);
		v = cc_observed(l, VELOCITY);
		velocity = v > velocity ? v : velocity;
	}
	link_close(l);
	return velocity;
}

// More than two thirds of a round trip's ACKs make a direction, two thirds do not.
TEST(a_direction_needs_two_thirds_of_the_acks) {
	const char *group = DATACENTER("rtt_min: 100ms, initial: 30, slow_start_exit: sent, "
				       "exit_gain: 1, drain_cap: 0, velocity_rtts: 3");

	ck_assert_double_eq(
		largest_velocity(group, 2, 3, 0), 1); // says up as often as the rule allows
	ck_assert_double_ge(largest_velocity(group, 2, 3, 1), 8);
	ck_assert_double_eq(largest_velocity(group, 1, 3, 0), 1); // and down
	ck_assert_double_ge(largest_velocity(group, 1, 3, -1), 4);
}

// More than the given part: where that is a half, 15 of 30 ACKs that say up and 15 that say down
// make none. A large delta keeps the window from changing.
TEST(half_of_the_acks_are_no_direction) {
	const char *group = DATACENTER("votes: 50%, delta: 100, rtt_min: 100ms, initial: 31, "
				       "slow_start_exit: sent, exit_gain: 1, drain_cap: 0, "
				       "velocity_cap: 0, velocity_rtts: 3");

	ck_assert_double_eq(largest_velocity(group, 1, 2, 0), 1);
	ck_assert_double_ge(largest_velocity(group, 1, 2, 1), 8);
}
