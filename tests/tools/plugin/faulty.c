// SPDX-License-Identifier: BSD-3-Clause
// Three controls, written from weir/cc.h alone, with the faults that authors make: one in each
// build, -DCONTROL=RENO|CUBIC|PACED -DFAULT=n. FAULT 0 is the control without one. faults.py names
// them all.
//
//	RENO   RFC 5681 with byte counting: weir new cc's control
//	CUBIC  the same with the curve of RFC 9438 in avoidance
//	PACED  pacing by the largest delivery rate of ten round trips; window of two BDP
#include <math.h>
#include <weir/cc.h>

enum control { RENO, CUBIC, PACED };
#define IS(control) (CONTROL == (control))
#define F(n) (FAULT == (n))

#define UNSET_SEGS 1e9
#define MIN_SEGS 2.0
#define INITIAL_SEGS 10.0
#define PACED_MIN_SEGS 4.0
#define BETA (IS(CUBIC) ? 0.7 : 0.5)
#define C 0.4 // of CUBIC, segments per s^3
#define ROUNDS 10 // of the maximum of delivery rates
#define STARTUP_GAIN 2.89
#define CYCLE 8
#define MIN_RTT_NS (F(27) ? UINT64_C(0) : UINT64_C(10000000000)) // that it holds

struct config {
	double unused;
};

static const struct param params[] = {
	{"unused", "0", "nothing", UNIT_NONE, PARAM_F64(struct config, unused), .min = 0, .max = 1},
	PARAM_END,
};

struct state {
	double ssthresh_segs, prior_cwnd_segs, prior_ssthresh_segs;
	bool episode, timeout, reduced, dead;
	uint64_t next_bytes; // F(5)
	unsigned losses; // F(7)
	// CUBIC
	bool stage;
	double w_max_segs, w_est_segs, k_s;
	uint64_t epoch_ns, last_ns;
	// PACED
	double mss_bits, full_bps;
	union {
		double rate_bps[ROUNDS];
		uint64_t loss_ns[5]; // F(7), not paced
	};
	uint64_t min_rtt_ns, min_rtt_at_ns, next_round_segs;
	unsigned round, full_rounds;
	bool drained;
};
static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "a flow has no more room");

static double remembered_segs; // F(16): ssthresh of whichever flow was last
static struct state shared; // F(15)

static double at_least(double a, double b) {
	return a > b ? a : b;
}

static double given_window(const void *config) {
	(void)config;
	return INITIAL_SEGS;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct state *s = F(15) ? &shared : state;

	s->ssthresh_segs = F(16) && remembered_segs > 0 ? remembered_segs : UNSET_SEGS;
	s->mss_bits = 8.0 * mss_bytes;
	s->min_rtt_ns = F(28) ? 0 : rtt_ns > 0 ? rtt_ns : 1000000000;
	s->min_rtt_at_ns = s->last_ns = now_ns;
	out->cwnd_segs = INITIAL_SEGS;
	out->pacing_bps = 0;
	(void)config;
}

// Slow start for `acked` segments; returns those left for congestion avoidance.
static double slow_start(struct state *s, double acked, struct cc_out *out) {
	double limit = s->timeout ? 1 : 2, step = acked < limit ? acked : limit, room;

	if (F(14))
		step = 1;
	if (out->cwnd_segs >= s->ssthresh_segs)
		return acked;
	room = s->ssthresh_segs - out->cwnd_segs;
	out->cwnd_segs += step < room ? step : room;
	return step < room ? 0 : step - room;
}

static void start_stage(struct state *s, uint64_t now_ns, double cwnd) {
	if (s->timeout || cwnd >= s->w_max_segs)
		s->w_max_segs = cwnd;
	s->k_s = cbrt((s->w_max_segs - cwnd) / C);
	s->w_est_segs = cwnd;
	if (!F(22) || s->epoch_ns == 0)
		s->epoch_ns = now_ns;
	s->stage = true;
}

// Congestion avoidance by the curve.
static void cubic(struct state *s, const struct cc_ack *ack, double acked, struct cc_out *out) {
	double cwnd = out->cwnd_segs, t_s, d_s, target;
	uint64_t t_ns;

	if (!s->stage)
		start_stage(s, ack->now_ns, cwnd);
	t_ns = ack->now_ns - s->epoch_ns + ack->srtt_ns;
	if (F(19))
		t_ns = (uint32_t)t_ns;
	t_s = (double)t_ns * (F(20) ? 1e-6 : 1e-9);
	d_s = t_s - s->k_s;
	s->w_est_segs += 3 * (1 - BETA) / (1 + BETA) * acked / cwnd;
	target = at_least(at_least(C * d_s * d_s * d_s + s->w_max_segs, s->w_est_segs), cwnd);
	if (target > 1.5 * cwnd && !F(20) && !F(21))
		target = 1.5 * cwnd;
	out->cwnd_segs += acked * (target - cwnd) / cwnd;
}

static void avoid(struct state *s, const struct cc_ack *ack, double acked, struct cc_out *out) {
	uint64_t bytes = ack->delivered_segs * (uint64_t)(s->mss_bits / 8);

	if (IS(CUBIC)) {
		cubic(s, ack, acked, out);
		s->timeout = false;
		return;
	}
	s->timeout = false;
	if (F(13))
		acked *= acked;
	if (F(14))
		acked = 1;
	if (F(17)) // a share of the round trip that is over
		acked *= (double)(ack->rtt_ns) / (double)(ack->rtt_ns);
	if (F(5)) { // one segment for each window of bytes, counted in 32 bits
		if ((uint32_t)bytes < s->next_bytes)
			return;
		s->next_bytes = (uint32_t)bytes + (uint64_t)(out->cwnd_segs * s->mss_bits / 8);
		out->cwnd_segs += 1;
		return;
	}
	out->cwnd_segs += acked / out->cwnd_segs;
}

static void window(struct state *s, const struct cc_ack *ack, struct cc_out *out) {
	bool limited = ack->cwnd_limited || F(6), counts = ack->in_sequence && limited;
	double acked = ack->acked_segs;

	if (F(15))
		s = &shared;
	if (!ack->in_recovery)
		s->episode = false;
	if (F(9))
		out->cwnd_segs = at_least(out->cwnd_segs * pow(BETA, ack->ce_segs), MIN_SEGS);
	if (F(3) && ack->in_recovery)
		out->cwnd_segs += acked;
	if (counts && !ack->in_recovery && !s->dead && !(F(2) && s->timeout)) {
		acked = slow_start(s, acked, out);
		if (acked > 0)
			avoid(s, ack, acked, out);
	} else if (!limited && !F(21)) {
		s->epoch_ns += ack->now_ns - s->last_ns; // t stands still (RFC 9438 5.8)
	}
	s->last_ns = ack->now_ns;
}

// Whether the losses are five within 150 ms.
static bool five_losses(struct state *s, uint64_t now_ns) {
	uint64_t *oldest = &s->loss_ns[s->losses++ % 5], since_ns = *oldest;

	*oldest = now_ns;
	return since_ns > 0 && now_ns - since_ns < 150000000;
}

static void lower(struct state *s, const struct cc_loss *loss, const struct cc_out *out) {
	double segs = (F(4) ? loss->lost_segs : out->cwnd_segs) * BETA;

	if (F(18)) // the share that got through
		segs = out->cwnd_segs * (1 - (double)loss->lost_segs / loss->inflight_segs / 2);
	s->prior_cwnd_segs = out->cwnd_segs;
	s->prior_ssthresh_segs = s->ssthresh_segs;
	s->w_max_segs =
		out->cwnd_segs < s->w_max_segs ? out->cwnd_segs * (1 + BETA) / 2 : out->cwnd_segs;
	s->ssthresh_segs = F(18) && segs != segs ? MIN_SEGS : at_least(segs, MIN_SEGS);
	if (F(12) && segs < 4) // too small to be a threshold
		s->ssthresh_segs = UNSET_SEGS;
	s->stage = false;
	remembered_segs = s->ssthresh_segs;
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = F(15) ? &shared : state;

	(void)config;
	if (IS(PACED) || (F(8) && loss->ecn) || (F(1) && s->reduced))
		return;
	lower(s, loss, out);
	s->reduced = s->episode = true;
	s->timeout = false;
	out->cwnd_segs = s->ssthresh_segs < UNSET_SEGS ? s->ssthresh_segs : out->cwnd_segs;
	if (F(7) && five_losses(s, loss->now_ns)) {
		s->dead = true;
		out->cwnd_segs = 1;
	}
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = F(15) ? &shared : state;

	if (!s->episode && !loss->repeated)
		lower(s, loss, out);
	s->episode = s->timeout = true;
	out->cwnd_segs = 1;
	if (F(29)) // one segment a second, until a larger rate is seen
		out->pacing_bps = s->mss_bits;
	(void)config;
}

static void on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	if (IS(PACED))
		return;
	if (s->prior_cwnd_segs > out->cwnd_segs)
		out->cwnd_segs = s->prior_cwnd_segs;
	if (s->prior_ssthresh_segs > s->ssthresh_segs)
		s->ssthresh_segs = s->prior_ssthresh_segs;
	if (F(10))
		s->ssthresh_segs = UNSET_SEGS;
	s->episode = s->timeout = false;
	(void)config, (void)now_ns;
}

static void on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	struct state *s = state;

	if (F(11)) // back to where avoidance begins
		out->cwnd_segs = s->ssthresh_segs;
	else if (!IS(PACED) && out->cwnd_segs > INITIAL_SEGS && !F(21))
		out->cwnd_segs = INITIAL_SEGS;
	(void)config, (void)now_ns, (void)idle_ns;
}

// Returns the largest rate of the last rounds.
static double rate_of(const struct state *s) {
	double rate_bps = 0;

	for (unsigned i = 0; i < ROUNDS; i++)
		rate_bps = at_least(rate_bps, s->rate_bps[i]);
	return rate_bps;
}

static void sample_rate(struct state *s, const struct cc_ack *ack) {
	double *newest = &s->rate_bps[s->round % ROUNDS];

	if (ack->prior_delivered_segs >= s->next_round_segs) {
		s->next_round_segs = ack->delivered_segs;
		newest = &s->rate_bps[++s->round % ROUNDS];
		if (!F(26))
			*newest = 0;
		if (rate_of(s) >= 1.25 * s->full_bps) {
			s->full_bps = rate_of(s);
			s->full_rounds = 0;
		} else if (!ack->app_limited && s->full_rounds < 3) {
			s->full_rounds++;
		}
	}
	if (F(24)) // an average, of what the application sends, too
		for (unsigned i = 0; i < ROUNDS; i++)
			s->rate_bps[i] += (0.9 * ack->delivery_bps - s->rate_bps[i]) / 8;
	else if (!ack->app_limited || ack->delivery_bps > rate_of(s))
		*newest = at_least(*newest, ack->delivery_bps);
}

static void paced(struct state *s, const struct cc_ack *ack, struct cc_out *out) {
	uint64_t phase_ns = ack->now_ns / (s->min_rtt_ns + 1) % CYCLE;
	double gain = phase_ns == 0 ? 1.25 : phase_ns == 1 ? 0.75 : 1, rtt_s, target;

	if (ack->delivery_bps > 0)
		sample_rate(s, ack);
	if (ack->rtt_ns > 0
		&& (ack->rtt_ns < s->min_rtt_ns
			|| (!F(25) && ack->now_ns - s->min_rtt_at_ns > MIN_RTT_NS))) {
		s->min_rtt_ns = ack->rtt_ns;
		s->min_rtt_at_ns = ack->now_ns;
	}
	rtt_s = F(30) ? (double)(s->min_rtt_ns / 1000000) * 1e-3 : (double)s->min_rtt_ns * 1e-9;
	target = rate_of(s) * rtt_s / s->mss_bits;
	if (s->full_rounds < 3)
		gain = STARTUP_GAIN;
	else if (!s->drained)
		gain = 1 / STARTUP_GAIN;
	if (gain < 1 && ack->inflight_segs <= target)
		s->drained = true;
	target = at_least(target * (gain > 2 ? gain : 2), PACED_MIN_SEGS);
	out->cwnd_segs += ack->acked_segs;
	if (out->cwnd_segs > target && s->next_round_segs > 0)
		out->cwnd_segs = target;
	out->pacing_bps = gain * rate_of(s) / (F(23) ? 8 : 1);
	if (F(29) && s->timeout && ack->delivery_bps < s->full_bps)
		out->pacing_bps = s->mss_bits;
	else
		s->timeout = false;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	(IS(PACED) ? paced : window)(state, ack, out);
	(void)config;
}

static const struct cc_ops ops = {
	.name = "faulty",
	.summary = "a control with a fault, for tests",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.prr = true,
	.rate = IS(PACED),
	.samples = true,
	.ecn = !IS(PACED),
	.answers_in_on_ack = F(9),
	.feedback = F(9) ? CC_FEEDBACK_ACCECN : CC_FEEDBACK_CLASSIC,
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.on_spurious = on_spurious,
	.on_idle = on_idle,
};

CC_PLUGIN(ops);
