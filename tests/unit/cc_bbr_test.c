// SPDX-License-Identifier: BSD-3-Clause
#include "cc_test.h"

enum { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };
enum { BW, MIN_RTT, GAIN, EXTRA };

#define RTT (10 * MS)
#define BW_BPS 80e6 // 100 segments of 1000 bytes per round trip
#define BDP 100
#define HIGH 2.88671875
#define DRAIN_GAIN 0.34375

static void open_bbr(struct cc_bench *b, const char *const *set) {
	cc_open(b, "bbr", set);
	b->now_ns = 1000 * MS;
	b->next = (struct cc_ack){.delivery_bps = BW_BPS, .rtt_ns = RTT, .inflight_segs = BDP};
}

// An ACK at now + after; `round`: its segment was sent after all before were delivered.
static void step(struct cc_bench *b, uint64_t after_ns, uint32_t acked, bool round) {
	cc_step(b, after_ns, acked, round ? b->delivered : 0);
}

static const char *const no_extra[] = {"extra_acked_gain", "0", NULL};

static void check(const struct cc_bench *b, int want, double gain) {
	ck_assert_int_eq(cc_mode(b), want);
	NEAR(cc_observed(b, GAIN), gain);
	NEAR(b->out.pacing_bps, 0.99 * gain * cc_observed(b, BW));
}

// Rounds of the same rate until the pipe is full and drained.
static void to_probe_bw(struct cc_bench *b) {
	for (int i = 0; i < 4; i++)
		step(b, RTT, BDP, true);
	ck_assert_int_eq(cc_mode(b), PROBE_BW);
}

static void open_probe_bw(struct cc_bench *b, const char *const *set) {
	open_bbr(b, set);
	to_probe_bw(b);
}

// To the phase of gain 1.25.
static void to_probing_up(struct cc_bench *b) {
	for (int i = 0; i < 20 && cc_observed(b, GAIN) < 1.2; i++)
		step(b, RTT + 1, 1, false);
}

// To a phase of gain 1, and there ACKs in bursts of 100 segments, more than the rate explains.
static void aggregated(struct cc_bench *b, int bursts) {
	b->next.inflight_segs = 180;
	while (cc_observed(b, GAIN) > 1.1 || cc_observed(b, GAIN) < 0.9)
		step(b, RTT + 1, 1, false);
	for (int i = 0; i < bursts; i++)
		step(b, MS / 10, 100, false);
}

// Nothing in flight but the four segments of PROBE_RTT, 10 s after the smallest round trip.
static void to_probe_rtt(struct cc_bench *b) {
	b->next.rtt_ns = RTT + 1;
	b->next.inflight_segs = 4;
	step(b, 10100 * MS, 10, true);
	check(b, PROBE_RTT, 1);
}

TEST(starts_as_if_the_round_trip_were_a_millisecond) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	CWND_EQ(&b, 10);
	NEAR(b.out.pacing_bps, HIGH * 10 * 8000 / 1e-3);
	ck_assert(!b.ops->prr);
	b.next.delivery_bps = 0; // no rate yet: from the window and the first RTT
	step(&b, RTT, 1, true);
	NEAR(b.out.pacing_bps, HIGH * 10 * 8000 / 10e-3);
}

// The first window leaves at 2.89 windows per round trip of the handshake, as in Linux
// (bbr_init_pacing_rate_from_rtt), and the first ACK, which may be delayed, does not change that.
TEST(paces_the_first_window_by_the_round_trip_of_the_handshake) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	b.ops->init(b.state, b.config, MSS, 20 * MS, 0, &b.out);
	NEAR(b.out.pacing_bps, HIGH * 10 * 8000 / 20e-3);
	b.next.delivery_bps = 0;
	b.next.rtt_ns = 5 * MS;
	step(&b, RTT, 1, true);
	NEAR(b.out.pacing_bps, HIGH * 10 * 8000 / 20e-3);
}

// As in Linux (bbr_init takes tcp_min_rtt). A SYN is sent in less time than a segment, so at 5 ms
// and 100 Mbit/s it is 2 % below what data can measure, and the window 2 segments smaller until
// RTprop expires.
TEST(the_round_trip_of_the_handshake_is_the_first_rtprop) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	b.ops->init(b.state, b.config, MSS, 20 * MS, b.now_ns, &b.out);
	b.next.rtt_ns = 21 * MS;
	step(&b, 21 * MS, 1, true);
	NEAR(cc_observed(&b, MIN_RTT), 20e6);
	b.next.rtt_ns = 19 * MS;
	step(&b, 19 * MS, 1, true);
	NEAR(cc_observed(&b, MIN_RTT), 19e6);
}

TEST(startup_ends_after_three_rounds_without_growth) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	b.next.inflight_segs = 250;
	for (int i = 0; i < 8; i++) { // 25 % each is enough
		step(&b, RTT, 10, true);
		check(&b, STARTUP, HIGH);
		b.next.delivery_bps *= 1.25;
	}
	b.next.delivery_bps *= 0.99; // 23.75 % is not: the first of three
	for (int i = 0; i < 2; i++) {
		step(&b, RTT, 10, true);
		step(&b, 0, 10, false); // not a round
		check(&b, STARTUP, HIGH);
	}
	b.next.app_limited = true; // says nothing about the pipe
	step(&b, RTT, 10, true);
	check(&b, STARTUP, HIGH);
	b.next.app_limited = false;
	b.next.inflight_segs = 10000;
	step(&b, RTT, 10, true);
	check(&b, DRAIN, DRAIN_GAIN);
}

// DRAIN ends at BDP + 3 quanta: 0.34 x 79.2 Mbit/s paces 3 segments in 1/1024 s; made even.
TEST(drain_ends_with_the_queue) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	b.next.inflight_segs = 300;
	for (int i = 0; i < 4; i++)
		step(&b, RTT, BDP, true);
	check(&b, DRAIN, DRAIN_GAIN);
	b.next.inflight_segs = 140;
	step(&b, MS, 10, false);
	check(&b, DRAIN, DRAIN_GAIN);
	b.next.inflight_segs = BDP;
	step(&b, MS, 10, false);
	ck_assert_int_eq(cc_mode(&b), PROBE_BW);
}

TEST(gains_cycle_in_order_a_round_trip_each) {
	static const double want[] = {1.25, 0.75, 1, 1, 1, 1, 1, 1};
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	b.next.inflight_segs = 140; // 1.25 BDP and the quanta are reached, 0.75 never drains
	to_probing_up(&b);
	for (int i = 0; i < 24; i++) {
		check(&b, PROBE_BW, want[i % 8]);
		step(&b, RTT, 1, false); // not longer than RTprop
		check(&b, PROBE_BW, want[i % 8]);
		step(&b, 1, 30, false);
	}
}

TEST(probing_up_waits_for_its_queue_or_a_loss) {
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	to_probing_up(&b);
	for (int i = 0; i < 5; i++) {
		step(&b, RTT + 1, 1, false);
		check(&b, PROBE_BW, 1.25); // 100 in flight, not 125
	}
	b.next.lost_segs = 1;
	step(&b, RTT, 1, false);
	check(&b, PROBE_BW, 0.75);
	b.next.lost_segs = 0;
	step(&b, 1, 1, false); // drained already: no need for a whole round trip
	check(&b, PROBE_BW, 1);
}

// bbr_packets_in_net_at_edt: 1.25 BDP, three quanta of 12 segments (99 Mbit/s for 1/1024 s) and two
// more are 164 in flight. The quantum of the next slot counts; what BtlBw delivers until then, 10
// segments in 1 ms, does not.
TEST(probing_up_ends_with_what_leaves_next) {
	static const struct {
		uint64_t wait_ns;
		uint32_t enough; // in flight before the ACK
	} cases[] = {{0, 152}, {MS, 162}, {MS / 10 - 1, 152}, {MS / 10, 153}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cc_bench b;

		open_probe_bw(&b, NULL);
		to_probing_up(&b);
		b.wait_ns = cases[i].wait_ns;
		b.next.inflight_segs = cases[i].enough - 2; // and the one acknowledged
		step(&b, RTT + 1, 1, false);
		check(&b, PROBE_BW, 1.25);
		b.next.inflight_segs++;
		step(&b, RTT + 1, 1, false);
		check(&b, PROBE_BW, 0.75);
	}
}

// The quantum does not count where the gain takes segments out of flight: BDP and three quanta of
// 7, made even, in 0.75; of 3 in DRAIN.
TEST(draining_ends_with_what_is_left_at_the_next_slot) {
	for (uint32_t waits = 0; waits < 2; waits++) {
		struct cc_bench b;

		open_probe_bw(&b, NULL);
		to_probing_up(&b);
		b.next.inflight_segs = 200;
		step(&b, RTT + 1, 1, false);
		check(&b, PROBE_BW, 0.75);
		b.wait_ns = waits * MS;
		b.next.inflight_segs = 122 + waits * 10;
		step(&b, 1, 1, false);
		check(&b, PROBE_BW, 0.75);
		b.next.inflight_segs--;
		step(&b, 1, 1, false);
		check(&b, PROBE_BW, 1);

		open_bbr(&b, NULL);
		b.wait_ns = waits * MS;
		b.next.inflight_segs = 300;
		for (int i = 0; i < 4; i++)
			step(&b, RTT, BDP, true);
		b.next.inflight_segs = 111 + waits * 10;
		step(&b, MS, 10, false);
		check(&b, DRAIN, DRAIN_GAIN);
		b.next.inflight_segs--;
		step(&b, MS, 10, false);
		ck_assert_int_eq(cc_mode(&b), PROBE_BW);
	}
}

TEST(the_first_phase_is_any_but_draining) {
	int seen[8] = {0};

	for (uint64_t i = 0; i < 200; i++) {
		struct cc_bench b;
		int phase = 0;

		open_bbr(&b, NULL);
		b.now_ns += i * 12345;
		to_probe_bw(&b);
		ck_assert_double_ge(cc_observed(&b, GAIN), 1);
		b.next.inflight_segs = 200;
		while (cc_observed(&b, GAIN) > 0.8) { // to the next 0.75
			step(&b, RTT + 1, 1, false);
			phase++;
		}
		ck_assert_int_le(phase, 7);
		seen[phase]++;
	}
	for (int i = 1; i <= 7; i++)
		ck_assert_int_gt(seen[i], 10);
}

// 2 BDP and three times 9 segments, 1/1024 s at 0.99 x 80 Mbit/s, rounded up to even.
TEST(the_window_is_two_bdp_and_three_quanta) {
	struct cc_bench b;

	open_probe_bw(&b, no_extra);
	aggregated(&b, 4);
	CWND_EQ(&b, 228);

	// 9.91 segments of 0.99 x 82 Mbit/s in 1/1024 s; 10.15 in 1 ms.
	open_bbr(&b, no_extra);
	b.next.delivery_bps = 82e6;
	to_probe_bw(&b);
	aggregated(&b, 4);
	CWND_EQ(&b, 205 + 27);

	// 400 segments in 0.4 ms are 396 more than the rate explains; the window bounds them.
	open_probe_bw(&b, NULL);
	aggregated(&b, 4);
	ck_assert_double_gt(cc_observed(&b, EXTRA), 200);
	ck_assert_double_gt(b.out.cwnd_segs, 428);
}

TEST(the_largest_rate_lasts_ten_rounds) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	step(&b, RTT, 10, true);
	b.next.delivery_bps = BW_BPS / 2;
	for (int i = 0; i < 10; i++) {
		step(&b, RTT, 10, true);
		NEAR(cc_observed(&b, BW), BW_BPS);
	}
	step(&b, RTT, 10, true);
	NEAR(cc_observed(&b, BW), BW_BPS / 2);
	b.next.app_limited = true;
	b.next.delivery_bps = BW_BPS / 4;
	for (int i = 0; i < 30; i++)
		step(&b, RTT, 10, true);
	NEAR(cc_observed(&b, BW), BW_BPS / 2); // they can only raise it
	b.next.delivery_bps = BW_BPS;
	step(&b, RTT, 10, true);
	NEAR(cc_observed(&b, BW), BW_BPS);
}

TEST(probes_the_round_trip_every_ten_seconds) {
	struct cc_bench b;
	uint64_t end_ns;

	open_probe_bw(&b, NULL);
	b.next.rtt_ns = RTT + MS;
	end_ns = 1010 * MS + 10000 * MS; // 10 s after the first sample, that was the smallest
	while (b.now_ns + 50 * MS <= end_ns) {
		step(&b, 50 * MS, BDP, true);
		ck_assert_int_eq(cc_mode(&b), PROBE_BW);
	}
	NEAR(cc_observed(&b, MIN_RTT), (double)RTT);
	step(&b, end_ns + 1 - b.now_ns, BDP, true);
	check(&b, PROBE_RTT, 1);
	NEAR(cc_observed(&b, MIN_RTT), (double)(RTT + MS));
	CWND_EQ(&b, 4);
	step(&b, 300 * MS, 50, true); // 200 ms count from 4 in flight on
	check(&b, PROBE_RTT, 1);
	b.next.inflight_segs = 4;
	step(&b, 10 * MS, 50, false);
	b.next.rtt_ns = RTT;
	b.next.delivery_bps = BW_BPS / 25;
	for (int i = 0; i < 20; i++) {
		step(&b, 10 * MS, 4, true);
		check(&b, PROBE_RTT, 1);
		CWND_EQ(&b, 4);
	}
	step(&b, 1, 4, true);
	ck_assert_int_eq(cc_mode(&b), PROBE_BW);
	ck_assert_double_ge(b.out.cwnd_segs, 2 * BDP); // restored at once
	NEAR(cc_observed(&b, MIN_RTT), (double)RTT);
	NEAR(cc_observed(&b, BW), BW_BPS); // the 22 rounds at 4 segments did not count
}

TEST(conserves_packets_for_a_round_then_restores) {
	struct cc_bench b;
	double before;

	open_probe_bw(&b, NULL);
	before = b.out.cwnd_segs;
	cc_loss(&b, b.now_ns, 150, false);
	CWND_EQ(&b, before);
	b.next.in_recovery = true;
	b.next.lost_segs = 20;
	b.next.inflight_segs = 80;
	step(&b, MS, 2, false);
	CWND_EQ(&b, 82);
	b.next.lost_segs = 0;
	b.next.inflight_segs = 79;
	step(&b, MS, 3, false);
	CWND_EQ(&b, 82);
	step(&b, MS, 3, true); // the next round: towards the target again
	CWND_EQ(&b, 85);
	b.next.in_recovery = false;
	step(&b, MS, 1, false);
	ck_assert_double_ge(b.out.cwnd_segs, before);
}

TEST(an_echo_of_congestion_changes_nothing) {
	struct cc_bench b;
	double before;

	open_probe_bw(&b, NULL);
	before = b.out.cwnd_segs;
	cc_loss(&b, b.now_ns, 150, true);
	b.next.in_recovery = true;
	step(&b, MS, 1, false);
	ck_assert_double_ge(b.out.cwnd_segs, before);
}

TEST(a_timeout_leaves_one_segment_until_all_is_repaired) {
	struct cc_bench b;
	double before;

	open_probe_bw(&b, NULL);
	before = b.out.cwnd_segs;
	cc_rto(&b, b.now_ns, 10);
	CWND_EQ(&b, 1);
	b.next.in_loss = true;
	step(&b, RTT, 1, true);
	CWND_EQ(&b, 4);
	step(&b, RTT, 8, true);
	CWND_EQ(&b, 12);
	b.next.in_loss = false;
	step(&b, RTT, 1, true); // the tenth
	ck_assert_double_ge(b.out.cwnd_segs, before);
}

// Two intervals of 4 rounds that lose 2 of 3 segments, the second at 1 / slower of the first's
// rate.
static void police(struct cc_bench *b, double slower) {
	b->next.delivery_bps = 2 * BW_BPS;
	b->next.lost_segs = 200;
	step(b, RTT, BDP, true); // begins the first interval, of which this round is the first
	ck_assert_double_ge(cc_observed(b, BW), 2 * BW_BPS);
	for (int interval = 0; interval < 2; interval++) {
		for (int round = interval == 0; round < 4; round++) {
			ck_assert_double_ge(cc_observed(b, BW), 2 * BW_BPS);
			b->next.lost_segs = round == 3 ? 200 : 0;
			step(b, interval == 0 ? RTT : (uint64_t)((double)RTT * slower), BDP, true);
		}
	}
	b->next.lost_segs = 0;
}

TEST(uses_a_policers_rate_for_48_rounds) {
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	police(&b, 1);
	NEAR(cc_observed(&b, BW), BW_BPS); // what was delivered, not the samples
	for (int i = 0; i < 47; i++) {
		step(&b, RTT + 1, BDP, true);
		check(&b, PROBE_BW, 1);
	}
	step(&b, RTT, BDP, true);
	NEAR(cc_observed(&b, BW), 2 * BW_BPS);
}

TEST(takes_no_other_loss_for_a_policer) {
	static const char *const off[] = {"policer", "no", NULL};
	struct cc_bench b;

	open_probe_bw(&b, off);
	police(&b, 1);
	NEAR(cc_observed(&b, BW), 2 * BW_BPS);

	open_probe_bw(&b, NULL);
	police(&b, 1.2); // rates differ by more than 1/8
	NEAR(cc_observed(&b, BW), 2 * BW_BPS);

	open_probe_bw(&b, NULL);
	b.next.delivery_bps = 2 * BW_BPS;
	for (int i = 0; i < 40; i++) { // 15 of 100, below 50/256
		b.next.lost_segs = 15;
		step(&b, RTT, BDP, true);
	}
	NEAR(cc_observed(&b, BW), 2 * BW_BPS);
}

// A policer's interval, in rounds: the last loses `lost` of its segments, none before it does.
static void interval(struct cc_bench *b, int rounds, uint32_t lost) {
	for (int i = 1; i <= rounds; i++) {
		b->next.lost_segs = i == rounds ? lost : 0;
		step(b, RTT, BDP, true);
	}
	b->next.lost_segs = 0;
}

// To the first loss, which begins an interval that its own round belongs to.
static void to_policed(struct cc_bench *b) {
	open_probe_bw(b, NULL);
	b->next.delivery_bps = 2 * BW_BPS;
	interval(b, 1, 200);
}

TEST(a_policers_interval_has_4_to_16_rounds) {
	struct cc_bench b;

	to_policed(&b);
	interval(&b, 15, 800); // the sixteenth, which ends it in a loss
	interval(&b, 16, 800);
	NEAR(cc_observed(&b, BW), BW_BPS);

	to_policed(&b);
	interval(&b, 15, 800);
	interval(&b, 17, 800); // one too long says nothing, and begins nothing but itself
	ck_assert_double_gt(cc_observed(&b, BW), 1.5 * BW_BPS);
	interval(&b, 4, 800);
	ck_assert_double_gt(cc_observed(&b, BW), 1.5 * BW_BPS);

	to_policed(&b);
	interval(&b, 2, 800); // the third round: too early for an end
	interval(&b, 1, 800); // the fourth
	interval(&b, 3, 800);
	ck_assert_double_gt(cc_observed(&b, BW), 1.5 * BW_BPS);
	interval(&b, 1, 800);
	NEAR(cc_observed(&b, BW), BW_BPS);
}

TEST(a_policers_interval_loses_50_of_256_at_least) {
	struct cc_bench b;

	// 400 segments delivered in each of two intervals of four rounds.
	for (uint32_t lost = 78; lost <= 79; lost++) { // 78.125
		to_policed(&b);
		interval(&b, 3, lost);
		interval(&b, 4, lost);
		ck_assert_int_eq(cc_observed(&b, BW) < 1.5 * BW_BPS, lost == 79);
	}
}

// What the application or PROBE_RTT held back looks like a policer's even rate: the interval starts
// anew with the next loss.
TEST(a_policers_interval_is_free_of_limited_samples) {
	struct cc_bench b;

	to_policed(&b);
	interval(&b, 3, 200);
	interval(&b, 3, 0);
	b.next.app_limited = true;
	step(&b, RTT, BDP, true);
	b.next.app_limited = false;
	interval(&b, 1, 200); // would have been the end of the second
	ck_assert_double_gt(cc_observed(&b, BW), 1.5 * BW_BPS);
	interval(&b, 3, 200); // the first of a new pair
	ck_assert_double_gt(cc_observed(&b, BW), 1.5 * BW_BPS);
	interval(&b, 4, 200);
	NEAR(cc_observed(&b, BW), BW_BPS);
}

TEST(what_probe_rtt_sends_is_no_policers_interval) {
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	to_probe_rtt(&b);
	b.next.delivery_bps = BW_BPS / 25; // 4 segments per round trip
	for (int i = 0; i < 16; i++) { // a loss in each
		b.next.lost_segs = 2;
		step(&b, RTT + 1, 4, true);
		ck_assert_int_eq(cc_mode(&b), PROBE_RTT);
		NEAR(cc_observed(&b, BW), BW_BPS);
	}
}

TEST(a_spurious_reduction_gives_the_window_back_and_looks_for_the_pipe_anew) {
	struct cc_bench b;
	double before;

	open_probe_bw(&b, NULL);
	before = b.out.cwnd_segs;
	cc_rto(&b, b.now_ns, 100);
	CWND_EQ(&b, 1);
	cc_spurious(&b);
	CWND_EQ(&b, before);
	b.out.cwnd_segs = 50; // what happens later is not its business
	step(&b, MS, 1, false);
	CWND_EQ(&b, 51);

	// In recovery: conservation ends, and its end restores nothing more.
	open_probe_bw(&b, NULL);
	before = b.out.cwnd_segs;
	cc_loss(&b, b.now_ns, 100, false);
	b.next.in_recovery = true;
	b.next.inflight_segs = 50;
	step(&b, MS, 1, false);
	CWND_EQ(&b, 51);
	cc_spurious(&b);
	CWND_EQ(&b, before);
	b.next.in_recovery = false;
	b.out.cwnd_segs = 60;
	step(&b, MS, 1, false);
	CWND_EQ(&b, 61);

	// Without a reduction there is nothing to give back: prior_segs is of an older one.
	b.out.cwnd_segs = 30;
	cc_spurious(&b);
	CWND_EQ(&b, 30);

	// STARTUP counts its three rounds again: two were there.
	open_bbr(&b, NULL);
	b.next.inflight_segs = 10000;
	for (int i = 0; i < 3; i++)
		step(&b, RTT, 10, true);
	cc_loss(&b, b.now_ns, 100, false);
	cc_spurious(&b);
	for (int i = 0; i < 3; i++) { // the first is growth over nothing
		step(&b, RTT, 10, true);
		check(&b, STARTUP, HIGH);
	}
	step(&b, RTT, 10, true);
	check(&b, DRAIN, DRAIN_GAIN);

	// A policer's rate, found by losses that were none, is forgotten.
	open_probe_bw(&b, NULL);
	police(&b, 1);
	NEAR(cc_observed(&b, BW), BW_BPS);
	cc_spurious(&b);
	NEAR(cc_observed(&b, BW), 2 * BW_BPS);
}

TEST(a_policers_loss_counts_from_50_of_256_exactly) {
	struct cc_bench b;

	to_policed(&b);
	for (int round = 2; round <= 8; round++) {
		b.next.lost_segs = round == 4 || round == 8 ? 50 : 0;
		// 256 in each interval, of 30 ms.
		step(&b, round <= 4 ? RTT : RTT * 3 / 4, round == 4 ? 128 : 64, true);
	}
	ck_assert_double_lt(cc_observed(&b, BW), BW_BPS);
}

// 8 and 10 kbit/s: more than an eighth apart, but no more than 4 kbit/s. Their mean is the rate.
TEST(slow_policers_may_differ_by_4_kbit) {
	struct cc_bench b;

	to_policed(&b);
	for (int round = 2; round <= 8; round++) {
		b.next.lost_segs = round == 4 || round == 8 ? 10 : 0;
		step(&b, round <= 4 ? 1000 * MS : 800 * MS, 1, true);
	}
	NEAR(cc_observed(&b, BW), 9000);
}

TEST(a_quarter_of_growth_is_enough) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	b.next.inflight_segs = 10000;
	step(&b, RTT, 10, true);
	b.next.delivery_bps = 1.25 * BW_BPS; // 100 Mbit/s: exact
	for (int i = 0; i < 3; i++) { // the first has grown
		step(&b, RTT, 10, true);
		check(&b, STARTUP, HIGH);
	}
	step(&b, RTT, 10, true);
	check(&b, DRAIN, DRAIN_GAIN);
}

TEST(probe_rtt_lasts_a_round_at_least) {
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	to_probe_rtt(&b);
	step(&b, 300 * MS, 4, false);
	check(&b, PROBE_RTT, 1);
	step(&b, MS, 4, true);
	ck_assert_int_eq(cc_mode(&b), PROBE_BW);
}

// 2 BDP, three quanta of 1.25 x 79.2 Mbit/s, which are 12 segments, and two more.
TEST(the_window_has_two_more_segments_while_probing_up) {
	struct cc_bench b;

	open_probe_bw(&b, no_extra);
	to_probing_up(&b);
	for (int i = 0; i < 4; i++)
		step(&b, MS / 10, 100, false);
	check(&b, PROBE_BW, 1.25);
	CWND_EQ(&b, 238);
}

TEST(a_timeout_in_recovery_restores_the_window_from_before_both) {
	struct cc_bench b;
	double before;

	open_probe_bw(&b, NULL);
	before = b.out.cwnd_segs;
	cc_loss(&b, b.now_ns, 150, false);
	b.next.in_recovery = true;
	b.next.inflight_segs = 50;
	step(&b, MS, 1, false);
	CWND_EQ(&b, 51);
	cc_rto(&b, b.now_ns, 50);
	b.next.in_recovery = false;
	b.next.in_loss = true;
	step(&b, RTT, 1, true);
	ck_assert_double_lt(b.out.cwnd_segs, 51);
	b.next.in_loss = false;
	step(&b, RTT, 1, true);
	ck_assert_double_ge(b.out.cwnd_segs, before);
}

// 2 BDP, 100 ms of BtlBw, which are 1000 segments, and three quanta of 9; even.
TEST(aggregation_counts_for_100_ms_at_most) {
	static const char *const ten[] = {"extra_acked_gain", "10", NULL};
	struct cc_bench b;

	open_probe_bw(&b, ten);
	aggregated(&b, 20);
	ck_assert_double_gt(cc_observed(&b, EXTRA), 200);
	CWND_EQ(&b, 1228);
}

TEST(aggregation_is_forgotten_after_ten_rounds) {
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	aggregated(&b, 20);
	ck_assert_double_gt(cc_observed(&b, EXTRA), 200);
	for (int i = 0; i < 5; i++) // until the rate has caught up with the 2000 segments
		step(&b, 5 * RTT, BDP, true);
	ck_assert_double_gt(cc_observed(&b, EXTRA), 200);
	for (int i = 0; i < 10; i++)
		step(&b, 5 * RTT, BDP, true);
	ck_assert_double_le(cc_observed(&b, EXTRA), BDP);
}

TEST(wakes_at_its_rate) {
	struct cc_bench b;

	open_probe_bw(&b, NULL);
	b.ops->on_idle(b.state, b.config, b.now_ns + 20000 * MS, 20000 * MS, &b.out);
	NEAR(b.out.pacing_bps, 0.99 * BW_BPS);
	step(&b, 20010 * MS, 1, true); // RTprop has expired, but silence has measured it
	ck_assert_int_eq(cc_mode(&b), PROBE_BW);
}

TEST(refuses_what_cannot_be) {
	struct cc_bench b;

	open_bbr(&b, NULL);
	ck_assert_int_eq(cc_set(&b, "initial", "3"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "probe_rtt", "0s"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "policer", "maybe"), -EINVAL);
}
