// SPDX-License-Identifier: BSD-3-Clause
// TCP Illinois (Liu, Basar, Srikant: "TCP-Illinois: A Loss- and Delay-Based Congestion Control
// Algorithm for High-Speed Networks", Performance Evaluation 2008) with the constants of Linux
// (tcp_illinois.c): Reno whose growth and reduction follow the queueing delay. Losses decide when
// the window falls, delays by how much, and how fast it grows again.
//
//	da = mean RTT of the last round trip - smallest RTT ever
//	dm = largest RTT ever - smallest RTT ever
//	d1 = dm / 100,  d2 = dm / 10,  d3 = 8 dm / 10
//
//	alpha = 10                                                     da <= d1
//	        10 (dm - d1) / (dm - d1 + (da - d1) (10 - 0.3) / 0.3)  else: 10 at d1, 0.3 at dm
//	beta  = 1/8                                                    da <= d2
//	        1/2                                                    da >= d3
//	        between them linear in da
//
//	avoidance:         cwnd += alpha passed / cwnd      passed: segments that the ACK's number
//	                                                    passed
//	loss or ECN echo:  cwnd = ssthresh = max((1 - beta) cwnd, 2)
//	everything else:   as Reno (reno.h)
//
// Once da was above d1, alpha is 10 again only after five round trips at or below d1 (theta). Below
// 15 segments alpha is 1 and beta 1/2, as after a timeout until the next round trip is over. At the
// start alpha is 10 and beta 1/2.
//
// As in Linux, an ACK counts with all segments that its number passes, those included that SACK had
// reported before: the ACK that ends a recovery raises the window by up to alpha segments. And no
// round trip ends in a recovery: what it was and the recovery are one, with one mean RTT.
//
// Where we differ from Linux and the paper, and why
//   - A round trip ends with the ACK of the first segment sent in it, as in vegas.c; Linux
//     remembers a sequence number.
//   - The five round trips are in a row, as in the paper; Linux counts them even if others lie
//     between.
//   - Linux counts in microseconds and fixed point (alpha, beta in 1/128, 1/64); here they are real
//     numbers.
//   - cwnd grows only if it was the limit (RFC 2861). L = 2, as newreno.c has it; Linux has no
//     limit.
#include "sender/cc/reno.h"

struct config {
	struct slow_start slow_start;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

#define ALPHA_MIN 0.3
#define ALPHA_MAX 10.0
#define ALPHA_BASE 1.0
#define BETA_MIN 0.125
#define BETA_MAX 0.5
#define WINDOW_MIN_SEGS 15.0 // below it, as Reno
#define THETA 5
#define NO_RTT UINT64_MAX

struct illinois {
	struct reno reno;
	double alpha, beta;
	uint64_t min_ns, max_ns; // of the connection
	uint64_t sum_ns; // of this round trip's samples
	uint64_t round_ns; // segments sent from here on end the round trip
	double da_ns; // of the last round trip
	uint32_t samples; // of this round trip
	uint32_t grown; // whole windows: segments acknowledged since it grew
	uint32_t low; // round trips at or below d1, since one was above it
	bool above; // da was above d1
};
static_assert(sizeof(struct illinois) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct illinois);

static void start_round(struct illinois *s, uint64_t now_ns) {
	s->round_ns = now_ns;
	s->sum_ns = 0;
	s->samples = 0;
}

static void illinois_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct illinois *s = state;

	*s = (struct illinois){.alpha = ALPHA_MAX, .beta = BETA_MAX, .min_ns = NO_RTT};
	start_round(s, now_ns);
	reno_init(&s->reno, &cfg->slow_start, out);
}

static double alpha_of(struct illinois *s, double da, double dm) {
	double d1 = dm / 100;

	if (da > d1) {
		s->above = true;
		s->low = 0;
		return ALPHA_MAX * (dm - d1)
			/ (dm - d1 + (da - d1) * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
	}
	if (s->above && ++s->low < THETA)
		return s->alpha;
	s->above = false;
	s->low = 0;
	return ALPHA_MAX;
}

static double beta_of(double da, double dm) {
	double d2 = dm / 10, d3 = 8 * dm / 10;

	if (da <= d2)
		return BETA_MIN;
	if (da >= d3)
		return BETA_MAX;
	return BETA_MIN + (BETA_MAX - BETA_MIN) * (da - d2) / (d3 - d2);
}

static void end_round(struct illinois *s, double cwnd_segs) {
	double dm;

	if (cwnd_segs < WINDOW_MIN_SEGS) {
		s->alpha = ALPHA_BASE;
		s->beta = BETA_MAX;
		return;
	}
	if (s->samples == 0)
		return;
	dm = (double)(s->max_ns - s->min_ns);
	s->da_ns = (double)s->sum_ns / s->samples - (double)s->min_ns;
	s->alpha = alpha_of(s, s->da_ns, dm);
	s->beta = beta_of(s->da_ns, dm);
}

// Linux's window is whole segments, and grows by one once alpha times what has been acknowledged
// since is a window.
static void grow(struct illinois *s, double acked, struct cc_out *out) {
	double whole = floor(out->cwnd_segs), delta;

	if (!s->reno.whole) {
		out->cwnd_segs += s->alpha * acked / out->cwnd_segs;
		return;
	}
	s->grown += (uint32_t)acked;
	delta = floor(s->alpha * s->grown);
	if (delta < whole)
		return;
	out->cwnd_segs = whole + floor(delta / whole);
	s->grown = 0;
}

static void illinois_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct illinois *s = state;
	struct reno *r = &s->reno;

	if (ack->rtt_ns > 0) {
		s->min_ns = ack->rtt_ns < s->min_ns ? ack->rtt_ns : s->min_ns;
		s->max_ns = ack->rtt_ns > s->max_ns ? ack->rtt_ns : s->max_ns;
		s->sum_ns += ack->rtt_ns;
		s->samples++;
	}
	// Until a recovery is over its samples add to those of the round trip that it interrupted.
	if (ack->in_sequence && !ack->in_recovery && !ack->in_loss && ack->sent_ns >= s->round_ns) {
		end_round(s, out->cwnd_segs);
		start_round(s, ack->now_ns);
	}
	if (reno_may_grow(r, ack)) {
		bool avoidance = out->cwnd_segs >= r->ssthresh_segs;
		double acked = reno_slow_start(r, &cfg->slow_start, ack->acked_segs, out);

		grow(s, avoidance ? ack->passed_segs : acked, out);
	}
	r->slow_start = out->cwnd_segs < r->ssthresh_segs;
}

static void illinois_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct illinois *s = state;

	reno_on_loss(&s->reno, reno_less(&s->reno, s->beta, out), out);
	s->grown = 0;
}

static void illinois_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct illinois *s = state;

	reno_on_rto(&s->reno, reno_less(&s->reno, s->beta, out), loss, out);
	s->grown = 0;
	s->alpha = ALPHA_BASE;
	s->beta = BETA_MAX;
	s->above = false;
	s->low = 0;
	start_round(s, loss->now_ns);
}

static void illinois_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct illinois *s = state;

	out[0] = (float)s->reno.ssthresh_segs;
	out[1] = (float)s->alpha;
	out[2] = (float)s->beta;
	out[3] = (float)s->da_ns;
}

const struct cc_ops cc_illinois = {
	.name = "illinois",
	.summary = "Illinois: losses say when, delays how much (Performance Evaluation 2008)",
	.reference =
		"Liu, Basar, Srikant: TCP-Illinois: A Loss- and Delay-Based Congestion Control "
		"Algorithm for High-Speed Networks, Performance Evaluation 2008",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct illinois),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs", "alpha", "beta", "da_ns"},
	.given_window = reno_given_window,
	.init = illinois_init,
	.on_ack = illinois_on_ack,
	.on_loss = illinois_on_loss,
	.on_rto = illinois_on_rto,
	.on_spurious = reno_on_spurious,
	.on_idle = reno_on_idle,
	.observe = illinois_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
