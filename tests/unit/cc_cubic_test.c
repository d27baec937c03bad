// SPDX-License-Identifier: BSD-3-Clause
#include "cc_test.h"

#include <math.h>
#include <stdlib.h>

enum { SLOW_START, CSS, RENO, CONCAVE, CONVEX, RECOVERY };
enum { SSTHRESH, W_MAX, K, W_EST };

static void ack_at(struct cc_bench *b, uint64_t now_ns, uint64_t rtt_ns, uint32_t segs) {
	struct cc_ack ack = cc_ack_of(b, now_ns, rtt_ns);

	ack.acked_segs = segs;
	cc_ack(b, &ack);
}

// An ACK per segment, evenly spaced, until then. Returns the time of the last.
static uint64_t ack_until(struct cc_bench *b, uint64_t now_ns, uint64_t rtt_ns, uint64_t end_ns) {
	for (;;) {
		uint64_t next_ns = now_ns + (uint64_t)((double)rtt_ns / b->out.cwnd_segs);

		if (next_ns > end_ns)
			return now_ns;
		now_ns = next_ns;
		ack_at(b, now_ns, rtt_ns, 1);
	}
}

#define OBS_EQ(b, i, value, tol) ck_assert_double_eq_tol(cc_observed(b, i), value, (tol) + 1e-9)

// The window after a loss is W_cubic(t) to within one segment, whatever the round trip.
static void follows_the_curve(const char *w_max, double k_s, uint64_t rtt_ns, double after_s) {
	const uint64_t start_ns = 1000 * MS;
	double w = atof(w_max);
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", w_max);
	cc_loss(&b, 0, (uint32_t)w, false);
	CWND_EQ(&b, 0.7 * w);
	ck_assert_int_eq(cc_mode(&b), RECOVERY);
	uint64_t now_ns = start_ns;

	ack_at(&b, start_ns, rtt_ns, 1);
	OBS_EQ(&b, K, k_s, 0.0005);
	OBS_EQ(&b, W_MAX, w, 0);
	for (double t_s = 0.25; t_s < k_s + after_s; t_s += 0.25) {
		double d = t_s - k_s, curve = 0.4 * d * d * d + w;

		now_ns = ack_until(&b, now_ns, rtt_ns, start_ns + (uint64_t)(t_s * 1e9));
		ck_assert_double_eq_tol(b.out.cwnd_segs, curve, 1.0);
		ck_assert_int_eq(cc_mode(&b), t_s < k_s ? CONCAVE : CONVEX);
	}
}

TEST(follows_the_cubic_curve) {
	follows_the_curve("100", 4.217, 50 * MS * 2, 0.5);
	follows_the_curve("1000", 9.086, 20 * MS, 0);
	follows_the_curve("1000", 9.086, 100 * MS, 3);
}

TEST(grows_by_half_per_round_trip_at_most) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "100", "c", "1000");
	cc_loss(&b, 0, 100, false);
	ack_at(&b, 1000 * MS, 100 * MS, 1); // K = cbrt(30 / 1000) = 0.31 s
	OBS_EQ(&b, K, 0.310723, 1e-6);
	b.out.cwnd_segs = 100;
	ack_at(&b, 3000 * MS, 100 * MS, 1); // the curve is at 5000
	CWND_EQ(&b, 100.5);
}

TEST(fast_convergence_aims_lower) {
	static const struct {
		const char *fast;
		double w_max;
	} cases[] = {{"yes", 70 * 0.85}, {"no", 70}};

	for (size_t i = 0; i < 2; i++) {
		struct cc_bench b;

		CC_OPEN(&b, "cubic", "initial", "100", "fast_convergence", cases[i].fast);
		cc_loss(&b, 0, 100, false);
		OBS_EQ(&b, W_MAX, 100, 0);
		cc_loss(&b, 100 * MS, 70, false); // below W_max: somebody else takes over
		CWND_EQ(&b, 49);
		OBS_EQ(&b, W_MAX, cases[i].w_max, 1e-5);
		ack_at(&b, 200 * MS, 100 * MS, 1);
		OBS_EQ(&b, K, cbrt((cases[i].w_max - 49) / 0.4), 1e-5);
	}
}

// RFC 9438 4.7: only a window below the last W_max is a sign that somebody takes over.
TEST(fast_convergence_leaves_a_window_of_w_max_alone) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_loss(&b, 0, 100, false);
	b.out.cwnd_segs = 100;
	cc_loss(&b, 1000 * MS, 100, false);
	OBS_EQ(&b, W_MAX, 100, 0);
	OBS_EQ(&b, SSTHRESH, 70, 1e-5);
}

// RFC 9438 4.9: cwnd, ssthresh, W_max, K, W_est and the epoch are as they were, and the curve goes
// on.
static void goes_on_after(bool timeout) {
	struct cc_bench b, same;
	uint64_t now_ns = 1000 * MS;
	const int observed[] = {SSTHRESH, W_MAX, K, W_EST};

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_loss(&b, 0, 100, false);
	for (int i = 0; i < 20; i++, now_ns += 10 * MS)
		ack_at(&b, now_ns, 100 * MS, 5);
	same = b;
	if (timeout)
		cc_rto(&b, now_ns, 70);
	else
		cc_loss(&b, now_ns, 70, false);
	ck_assert_double_lt(b.out.cwnd_segs, same.out.cwnd_segs);
	OBS_EQ(&b, SSTHRESH, 0.7 * same.out.cwnd_segs, 1e-4);
	b.ops->on_spurious(b.state, b.config, now_ns + MS, &b.out);
	ck_assert_double_eq(b.out.cwnd_segs, same.out.cwnd_segs);
	for (int i = 0; i < 4; i++)
		OBS_EQ(&b, observed[i], cc_observed(&same, observed[i]), 0);
	for (int i = 0; i < 600; i++) { // through W_max and beyond
		now_ns += 10 * MS;
		ack_at(&b, now_ns, 100 * MS, 5);
		ack_at(&same, now_ns, 100 * MS, 5);
		ck_assert_double_eq(b.out.cwnd_segs, same.out.cwnd_segs);
		ck_assert_int_eq(cc_mode(&b), cc_mode(&same));
	}
	ck_assert_int_eq(cc_mode(&b), CONVEX);
}

TEST(a_spurious_reduction_changes_nothing_of_the_curve) {
	goes_on_after(false);
	goes_on_after(true);
}

TEST(a_spurious_reduction_in_slow_start_goes_on_doubling) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "10", "slow_start", "classic");
	cc_rto(&b, 1000 * MS, 10);
	CWND_EQ(&b, 1);
	OBS_EQ(&b, SSTHRESH, 7, 1e-5);
	b.ops->on_spurious(b.state, b.config, 1001 * MS, &b.out);
	CWND_EQ(&b, 10);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	for (int i = 1; i <= 5; i++) { // two per ACK, not one as after a timeout
		ack_at(&b, 1002 * MS, 100 * MS, 2);
		CWND_EQ(&b, 10 + 2 * i);
	}
	b.out.cwnd_segs = 50; // beyond what it was: growth since then stays
	b.ops->on_spurious(b.state, b.config, 1003 * MS, &b.out);
	CWND_EQ(&b, 50);
}

// W_max 20, 10 ms: the curve needs 2.5 s, Reno with alpha 0.529 less; alpha 1 from cwnd_prior on.
TEST(is_no_slower_than_reno_at_a_small_bdp) {
	double alpha = 3 * 0.3 / 1.7, w = 14;
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "20");
	cc_loss(&b, 0, 20, false);
	ack_at(&b, 1000 * MS, 10 * MS, 0);
	CWND_EQ(&b, 14);
	for (int i = 0; i < 1000; i++) {
		ack_at(&b, (uint64_t)(1001 + i) * MS, 10 * MS, 1);
		w += (w >= 20 ? 1 : alpha) / w;
		if (i > 40) { // by then Reno is ahead of the curve for good
			ck_assert_int_eq(cc_mode(&b), RENO);
			ck_assert_double_eq_tol(b.out.cwnd_segs, w, 0.1);
		}
	}
	ck_assert_double_gt(w, 40);

	CC_OPEN(&b, "cubic", "initial", "20", "reno_friendly", "no");
	cc_loss(&b, 0, 20, false);
	for (int i = 0; i < 1000; i++)
		ack_at(&b, (uint64_t)(1001 + i) * MS, 10 * MS, 1);
	ck_assert_double_lt(b.out.cwnd_segs, 20);

	// RFC 8312 and Linux: alpha stays what it is.
	CC_OPEN(&b, "cubic", "initial", "20", "reno_alpha", "constant");
	cc_loss(&b, 0, 20, false);
	ack_at(&b, 1000 * MS, 10 * MS, 0);
	w = 14;
	for (int i = 0; i < 1000; i++) {
		ack_at(&b, (uint64_t)(1001 + i) * MS, 10 * MS, 1);
		w += alpha / w;
	}
	ck_assert_int_eq(cc_mode(&b), RENO);
	ck_assert_double_eq_tol(b.out.cwnd_segs, w, 0.2);
	ck_assert_double_lt(w, 36);
}

TEST(delayed_acks_change_little) {
	struct cc_bench b[2];

	for (uint32_t every = 1; every <= 2; every++) {
		struct cc_bench *x = &b[every - 1];

		CC_OPEN(x, "cubic", "initial", "100");
		cc_loss(x, 0, 100, false);
		for (uint64_t i = 1; i <= 2000; i++)
			if (i % every == 0)
				ack_at(x, i * MS, 100 * MS, every);
	}
	ck_assert_double_eq_tol(b[0].out.cwnd_segs, b[1].out.cwnd_segs, 0.1);
}

TEST(an_echo_of_congestion_reduces_too) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_loss(&b, 0, 100, true);
	CWND_EQ(&b, 70);
	CC_OPEN(&b, "cubic", "initial", "2");
	cc_loss(&b, 0, 2, true);
	CWND_EQ(&b, 1.4); // RFC 9438 4.6: one segment is enough
	OBS_EQ(&b, SSTHRESH, 2, 0);
	CC_OPEN(&b, "cubic", "initial", "2");
	cc_loss(&b, 0, 2, false);
	CWND_EQ(&b, 2);
}

TEST(a_timeout_starts_again_from_one) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "10");
	cc_rto(&b, 0, 10);
	CWND_EQ(&b, 1);
	OBS_EQ(&b, SSTHRESH, 7, 1e-6);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	ack_at(&b, 300 * MS, 100 * MS, 5); // L = 1 after a timeout
	CWND_EQ(&b, 2);
	for (int i = 0; i < 5; i++)
		ack_at(&b, 400 * MS, 100 * MS, 1);
	// Avoidance: K = 0 and W_max = the window (4.8), not the 10 that were lost.
	OBS_EQ(&b, K, 0, 0);
	OBS_EQ(&b, W_MAX, 7, 1e-6);
	CWND_EQ(&b, 7);
	ck_assert_int_eq(cc_mode(&b), CONVEX);
}

TEST(a_timeout_in_recovery_reduces_once) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_loss(&b, 0, 100, false);
	cc_rto(&b, 0, 40);
	CWND_EQ(&b, 1);
	OBS_EQ(&b, SSTHRESH, 70, 1e-5);
}

// Until something is acknowledged it is the same episode; afterwards it is not.
TEST(two_timeouts_in_an_episode_reduce_once) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_rto(&b, 0, 100);
	cc_rto(&b, 500 * MS, 100);
	OBS_EQ(&b, SSTHRESH, 70, 1e-5);
	ack_at(&b, 1000 * MS, 100 * MS, 69);
	cc_rto(&b, 2000 * MS, 2);
	OBS_EQ(&b, SSTHRESH, 2, 1e-5);
	ck_assert_double_eq(b.out.pacing_bps, 0);
}

TEST(holds_still_in_recovery) {
	struct cc_bench b;
	struct cc_ack ack;

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_loss(&b, 0, 100, false);
	ack = cc_ack_of(&b, 5000 * MS, 100 * MS);
	ack.in_recovery = true;
	cc_ack(&b, &ack);
	CWND_EQ(&b, 70);
	ck_assert_int_eq(cc_mode(&b), RECOVERY);
	ack_at(&b, 6000 * MS, 100 * MS, 1); // t = 0 is now, not the loss
	ck_assert_double_lt(b.out.cwnd_segs, 70.1);
}

// t stands still while the application, or silence, is the limit: the window does not jump.
TEST(time_that_was_not_used_does_not_count) {
	struct cc_bench b, c;
	struct cc_ack ack;
	uint64_t now_ns;

	CC_OPEN(&b, "cubic", "initial", "100", "idle_restart", "no");
	cc_loss(&b, 0, 100, false);
	ack_at(&b, 1000 * MS, 100 * MS, 1);
	now_ns = ack_until(&b, 1000 * MS, 100 * MS, 2000 * MS);
	c = b;
	ack_at(&c, now_ns + 1 * MS, 100 * MS, 1);

	struct cc_bench idle = b;

	idle.ops->on_idle(idle.state, idle.config, now_ns + 60000 * MS, 60000 * MS, &idle.out);
	ack_at(&idle, now_ns + 60001 * MS, 100 * MS, 1);
	CWND_EQ(&idle, c.out.cwnd_segs);

	ack = cc_ack_of(&b, now_ns + 60000 * MS, 100 * MS);
	ack.cwnd_limited = false;
	cc_ack(&b, &ack);
	ack_at(&b, now_ns + 60001 * MS, 100 * MS, 1);
	CWND_EQ(&b, c.out.cwnd_segs);
}

TEST(idling_restarts) {
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "10");
	ack_at(&b, 1 * MS, 100 * MS, 8);
	ack_at(&b, 2 * MS, 100 * MS, 9); // L = 8
	CWND_EQ(&b, 26);
	b.ops->on_idle(b.state, b.config, 1000 * MS, 500 * MS, &b.out);
	CWND_EQ(&b, 10);
}

// One round of HyStart++: `n` ACKs with this RTT, the last closes it.
static void hystart_round(
	struct cc_bench *b, uint64_t *now_ns, uint64_t rtt_ns, int n, double step) {
	for (int i = 0; i < n; i++) {
		struct cc_ack ack = cc_ack_of(b, *now_ns, rtt_ns);
		double before = b->out.cwnd_segs;

		// All but the last were sent before the round began.
		ack.now_ns = *now_ns + (uint64_t)i;
		ack.sent_ns = i == n - 1 ? ack.now_ns : 0;
		cc_ack(b, &ack);
		if (step > 0)
			ck_assert_double_eq_tol(b->out.cwnd_segs - before, step, 1e-9);
	}
	*now_ns += 1000 * MS;
}

// The threshold is last / 8 within [4 ms, 16 ms].
TEST(hystart_exits_at_the_thresholds_of_rfc_9406) {
	static const struct {
		uint64_t base_ns, thresh_ns;
	} cases[] = {{8 * MS, 4 * MS}, {32 * MS, 4 * MS}, {64 * MS, 8 * MS}, {128 * MS, 16 * MS},
		{400 * MS, 16 * MS}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t rtt_ns = cases[i].base_ns + cases[i].thresh_ns, now_ns = 1000 * MS;
		struct cc_bench b;

		cc_open(&b, "cubic", NULL);
		hystart_round(&b, &now_ns, cases[i].base_ns, 10, 1);
		hystart_round(&b, &now_ns, rtt_ns - 1, 10, 1);
		ck_assert_int_eq(cc_mode(&b), SLOW_START);

		cc_open(&b, "cubic", NULL);
		now_ns = 1000 * MS;
		hystart_round(&b, &now_ns, cases[i].base_ns, 10, 1);
		hystart_round(&b, &now_ns, rtt_ns, 7, 1); // one sample too few
		ck_assert_int_eq(cc_mode(&b), SLOW_START);

		cc_open(&b, "cubic", NULL);
		now_ns = 1000 * MS;
		hystart_round(&b, &now_ns, cases[i].base_ns, 10, 1);
		hystart_round(&b, &now_ns, rtt_ns, 8, 1);
		ck_assert_int_eq(cc_mode(&b), CSS);
	}
}

TEST(hystart_ends_after_five_rounds_or_resumes) {
	uint64_t now_ns = 1000 * MS;
	struct cc_bench b;
	double cwnd;

	cc_open(&b, "cubic", NULL);
	hystart_round(&b, &now_ns, 40 * MS, 10, 1);
	hystart_round(&b, &now_ns, 50 * MS, 10, 0); // the first of CSS: its ninth ACK is slower
	ck_assert_int_eq(cc_mode(&b), CSS);
	CWND_EQ(&b, 10 + 10 + 8 + 0.5);
	hystart_round(&b, &now_ns, 51 * MS, 10, 0.25);
	hystart_round(&b, &now_ns, 49 * MS, 8, 0.25); // below the baseline: it was jitter
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
	hystart_round(&b, &now_ns, 56 * MS, 8, 1); // the rise begins again
	ck_assert_int_eq(cc_mode(&b), CSS);
	for (int i = 0; i < 3; i++)
		hystart_round(&b, &now_ns, 60 * MS, 8, 0.25);
	ck_assert_int_eq(cc_mode(&b), CSS);
	cwnd = b.out.cwnd_segs;
	hystart_round(&b, &now_ns, 60 * MS, 8, 0.25);
	ck_assert_int_eq(cc_mode(&b), CONVEX);
	CWND_EQ(&b, cwnd + 2);
	OBS_EQ(&b, SSTHRESH, cwnd + 2, 1e-5);
	OBS_EQ(&b, K, 0, 0);
}

TEST(hystart_only_in_the_first_slow_start) {
	uint64_t now_ns = 1000 * MS;
	struct cc_bench b;

	CC_OPEN(&b, "cubic", "initial", "100");
	cc_rto(&b, 0, 100);
	hystart_round(&b, &now_ns, 40 * MS, 10, 1);
	hystart_round(&b, &now_ns, 80 * MS, 10, 1);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);

	CC_OPEN(&b, "cubic", "slow_start", "classic");
	hystart_round(&b, &now_ns, 40 * MS, 10, 1);
	hystart_round(&b, &now_ns, 80 * MS, 10, 1);
	ck_assert_int_eq(cc_mode(&b), SLOW_START);
}

TEST(refuses_what_cannot_be) {
	struct cc_bench b;

	cc_open(&b, "cubic", NULL);
	ck_assert(b.ops->prr);
	ck_assert_int_eq(cc_set(&b, "beta", "1"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "c", "0"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "slow_start", "maybe"), -EINVAL);
}

TEST(a_repeated_timeout_reduces_no_further) {
	cc_check_repeated_timeout("cubic", 70);
}
