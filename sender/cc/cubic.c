// SPDX-License-Identifier: BSD-3-Clause
// CUBIC (RFC 9438) with HyStart++ (RFC 9406): the window.
//
// A congestion event, once per window (4.6, 4.7), windows in segments:
//
//	W_max      = cwnd < W_max ? cwnd (1 + beta) / 2 : cwnd     fast convergence; else cwnd
//	cwnd_prior = cwnd
//	ssthresh   = max(beta cwnd, 2);  cwnd = max(beta cwnd, 2), or 1 after an ECN echo
//
// Congestion avoidance is a stage that starts with the first ACK after recovery or slow start:
// t = 0, cwnd_epoch = W_est = cwnd, K = cbrt((W_max - cwnd_epoch) / C). If it follows a timeout,
// or cwnd_epoch >= W_max, then W_max = cwnd_epoch and K = 0 (4.8, 4.10). For each ACK (4.2-4.5):
//
//	W_cubic(t) = C (t - K)^3 + W_max
//	target     = W_cubic(t + srtt), not less than cwnd, not more than 1.5 cwnd
//	W_est     += alpha acked / cwnd
//	alpha      = W_est < cwnd_prior ? 3 (1 - beta) / (1 + beta) : 1    reno_alpha: rising
//	cwnd       = W_est                              if W_cubic(t) < W_est (Reno-friendly)
//	cwnd      += acked (target - cwnd) / cwnd       else (concave below W_max, convex above)
//
// With beta 0.7 and C 0.4, a loss at W_max = 100 gives K = 4.217 s, at 1000 9.086 s.
//
// Slow start: cwnd += min(acked, L). The first one is HyStart++'s, in rounds that end with the ACK
// of the first segment sent in them, minRTT being the smallest RTT of a round of >= 8 samples:
//
//	slow start:    minRTT >= last round's + clamp(last round's / 8, 4 ms, 16 ms)
//	               -> conservative slow start (CSS), baseline = minRTT
//	CSS:           cwnd += min(acked, L) / 4
//	               minRTT < baseline -> slow start;  5 rounds -> avoidance, ssthresh = cwnd
//
// `slow_start: hystart` is Linux's (tcp_cubic.c; Ha, Rhee: "Taming the Elephants: New TCP Slow
// Start", Computer Networks
// 2011) instead, in every slow start, from 16 segments on; delay_min is the smallest RTT of the
// flow:
//
//	ACK train:  ACKs, at most 2 ms apart, for more than (delay_min + d) / 2 since the first of
//	            the round, or, if the host paces the flow (`pacing: srtt | fq`), delay_min + d,
//	            as pacing may stretch it by half an RTT;
//	            d = min(1 ms, 256 KiB / pacing rate), the pacing rate 2 cwnd / srtt
//	delay:      smallest RTT of a round, of more than 8 samples, > delay_min + clamp(delay_min /
//	            8, 4 ms, 16 ms)
//	either ->   avoidance, ssthresh = cwnd
//
// It may have ended too early: until the first reduction, and after a timeout until the next, cwnd
// grows there by at least acked / 20 (5 % per round trip), as in Linux.
//
// A timeout (4.8): ssthresh as above, cwnd = 1. Idle for an RTO or more: cwnd = min(cwnd, initial).
// Spurious loss (4.9): if cwnd is lower than before the reduction, cwnd, ssthresh and the curve are
// restored.
// The window grows only on ACKs that advance the cumulative ACK, never in fast recovery.
// t is stopped while the window does not limit sending, idle time included (5.8).
//
// Where we differ from the RFCs, and why
//   - beta cwnd, as in Linux, where 4.6 says flight_size and permits cwnd if it cannot grow beyond
//     the data in flight. Here it cannot, because growth needs a full window, and our pipe already
//     excludes SACKed segments (newreno.c has the argument).
//   - (target - cwnd) / cwnd counts per acknowledged segment, not per ACK: the curve is that of
//     the RFC's ACK per segment, and delayed ACKs do not halve its growth.
//   - The Reno-friendly region never lowers cwnd: W_est may exceed W_cubic(t) and yet be below a
//     cwnd that has followed W_cubic(t + srtt).
//   - L = 8 as RFC 9406 4.2 has it without pacing, but 1 after a timeout (RFC 3465 2.3).
//   - A timeout in fast recovery, which has reduced already, leaves ssthresh alone, as in Linux.
//   - `reno_alpha: constant` never raises alpha to 1: that is RFC 8312 and Linux (6.18).
//   - `slow_start: hystart++` is the default: 4.10 says SHOULD, and Linux has its HyStart, from
//     which RFC 9406's is derived, on. Without it slow start overshoots a buffer by its size,
//     thousands of segments at once; `classic` is for comparisons with such stacks.
//   - Windows are real numbers. In a host with ticks (`hz`, as `host: linux` has them) they are
//     whole segments, and avoidance is Linux's: cubic_ticks.h. What an undo restores of the curve
//     is then nothing: a new stage begins.
//   - The cube root is Newton's, in additions and divisions: the same bits with any libm.
#include "common/base/f64.h"
#include "common/base/portable_math.h"
#include "sender/cc/cubic_ticks.h"
#include "sender/cc/slow_start.h"

#include <math.h>

static const char *const reno_alpha_names[] = {"rising", "constant", NULL};
enum reno_alpha { ALPHA_RISING, ALPHA_CONSTANT };
static const char *const slow_start_names[] = {"hystart++", "hystart", "classic", NULL};
enum slow_start_kind { SLOW_START_PLUS, SLOW_START_LINUX, SLOW_START_CLASSIC };

struct config {
	struct slow_start slow_start;
	double beta;
	double c;
	int reno_alpha, kind;
	bool fast_convergence;
	bool reno_friendly;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "8", "RFC 9406"),
	{"beta", "0.7", "factor a congestion event leaves of the window", UNIT_NONE,
		PARAM_F64(struct config, beta), 0.1, 0.99},
	{"c", "0.4", "steepness of the curve, segments per s^3", UNIT_NONE,
		PARAM_F64(struct config, c), 0.001, 1000},
	{"fast_convergence", "yes", "aim lower after a loss below the last W_max (RFC 9438 4.7)",
		UNIT_NONE, PARAM_BOOL(struct config, fast_convergence)},
	{"reno_friendly", "yes", "never grow slower than Reno would (RFC 9438 4.3)", UNIT_NONE,
		PARAM_BOOL(struct config, reno_friendly)},
	{"reno_alpha", "rising",
		"Reno's growth: rising to 1 at the last window (RFC 9438), "
		"or constant (Linux)",
		UNIT_NONE, PARAM_ENUM(struct config, reno_alpha, reno_alpha_names)},
	{"slow_start", "hystart++",
		"what ends it before a loss: hystart++ (RFC 9406), "
		"hystart (Linux), classic: nothing",
		UNIT_NONE, PARAM_ENUM(struct config, kind, slow_start_names)},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

#define TARGET_GROWTH_MAX 1.5 // per round trip (4.4)
#define BETA_UNITS 1024 // BICTCP_BETA_SCALE

// RFC 9406 section 4.3
#define MIN_RTT_THRESH_NS (4 * NS_PER_MS)
#define MAX_RTT_THRESH_NS (16 * NS_PER_MS)
#define MIN_RTT_DIVISOR 8
#define N_RTT_SAMPLE 8
#define CSS_GROWTH_DIVISOR 4
#define CSS_ROUNDS 5
#define NO_RTT UINT64_MAX

// Linux's HyStart; its bounds of the delay and its number of samples are those above.
#define LOW_WINDOW_SEGS 16
#define ACK_TRAIN_GAP_NS (2 * NS_PER_MS)
#define ACK_DELAY_MAX_NS 1e6
#define ACK_DELAY_BYTES (4.0 * 65536)
#define UNREDUCED_GROWTH 0.05

#define MODES(V)                                                                                   \
	V(MODE_SLOW_START, "slow_start")                                                           \
	V(MODE_CSS, "css")                                                                         \
	V(MODE_RENO, "reno")                                                                       \
	V(MODE_CONCAVE, "concave")                                                                 \
	V(MODE_CONVEX, "convex")                                                                   \
	V(MODE_RECOVERY, "recovery")
enum mode { MODES(CC_MODE_CONSTANT) };

// The state that a reduction changes and an undo (4.9) restores.
struct curve {
	double ssthresh_segs;
	double w_max_segs;
	double prior_segs; // cwnd_prior
	double w_est_segs;
	double k_s;
	uint64_t epoch_ns; // t = 0, moved by the time that does not count
};

struct cubic {
	struct curve now;
	uint64_t last_ns; // time of the last ACK that could grow the window

	uint64_t round_ns; // HyStart++: segments sent from here on end the round
	uint64_t last_min_ns, now_min_ns, baseline_ns;
	uint64_t delay_min_ns, train_ns; // Linux's: smallest RTT; the last ACK of the train
	uint32_t mss_bytes;
	uint32_t tick_ns; // of the host's clock; 0: it is exact
	uint8_t samples; // of this round, up to N_RTT_SAMPLE
	uint8_t css_rounds;

	bool stage; // in congestion avoidance, epoch_ns and k_s hold
	bool episode; // reduced already; ends with fast recovery
	bool timeout; // until the slow start after it is over, and the next stage has begun
	bool reduced; // since the start or the last timeout; as in Linux, an undo leaves it
	uint8_t mode;

	// As of before the last reduction. With ticks an undo begins a new stage, and needs no
	// curve; their avoidance goes by `ticks` instead of by the curve's k_s, epoch_ns and
	// w_est_segs.
	bool undo_stage;
	double undo_cwnd_segs, undo_ssthresh_segs;
	union {
		struct curve undo;
		struct cubic_ticks ticks;
	};
};
static_assert(sizeof(struct cubic) <= CC_STATE_MAX_BYTES, "state too large");

static double w_cubic(const struct cubic *r, const struct config *cfg, double t_s) {
	double d = t_s - r->now.k_s;

	return cfg->c * d * d * d + r->now.w_max_segs;
}

static double cubic_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->slow_start.initial_segs;
}

static void cubic_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct cubic *r = state;

	*r = (struct cubic){
		.now.ssthresh_segs = SSTHRESH_UNSET_SEGS,
		.last_ns = now_ns,
		.round_ns = now_ns,
		.last_min_ns = NO_RTT,
		.now_min_ns = NO_RTT,
		.delay_min_ns = NO_RTT,
		.train_ns = now_ns,
		.mss_bytes = mss_bytes,
		.mode = MODE_SLOW_START,
	};
	out->cwnd_segs = cfg->slow_start.initial_segs;
	out->pacing_bps = 0;
}

static void start_css(struct cubic *r) {
	r->mode = MODE_CSS;
	r->baseline_ns = r->now_min_ns;
	r->css_rounds = 0;
}

static uint64_t delay_threshold_ns(uint64_t rtt_ns) {
	uint64_t thresh_ns = rtt_ns / MIN_RTT_DIVISOR;

	return thresh_ns < MIN_RTT_THRESH_NS	? MIN_RTT_THRESH_NS
		: thresh_ns > MAX_RTT_THRESH_NS ? MAX_RTT_THRESH_NS
						: thresh_ns;
}

// HyStart++ after this ACK's growth (RFC 9406 4.2): the mode, and ssthresh at the end of CSS.
static void hystart(struct cubic *r, const struct cc_ack *ack, double cwnd_segs) {
	if (ack->rtt_ns > 0) {
		if (ack->rtt_ns < r->now_min_ns)
			r->now_min_ns = ack->rtt_ns;
		r->samples = (uint8_t)(r->samples + (r->samples < N_RTT_SAMPLE));
	}
	if (r->samples >= N_RTT_SAMPLE && r->now_min_ns != NO_RTT) {
		if (r->mode == MODE_CSS) {
			if (r->now_min_ns < r->baseline_ns)
				r->mode = MODE_SLOW_START;
		} else if (r->last_min_ns != NO_RTT) {
			uint64_t thresh_ns = delay_threshold_ns(r->last_min_ns);

			if (r->now_min_ns >= r->last_min_ns + thresh_ns)
				start_css(r);
		}
	}
	if (ack->sent_ns < r->round_ns)
		return;
	// The round is over; the round in which CSS began counts as one of CSS.
	r->round_ns = ack->now_ns;
	r->last_min_ns = r->now_min_ns;
	r->now_min_ns = NO_RTT;
	r->samples = 0;
	if (r->mode == MODE_CSS && ++r->css_rounds >= CSS_ROUNDS)
		r->now.ssthresh_segs = r->now.prior_segs = cwnd_segs;
}

// Linux's HyStart, before this ACK's growth: whether slow start is over.
static bool linux_hystart(struct cubic *r, const struct cc_ack *ack, double cwnd_segs) {
	double srtt_ns = (double)ack->srtt_ns, delay_ns, limit_ns;

	if (ack->rtt_ns == 0)
		return false;
	if (ack->rtt_ns < r->delay_min_ns)
		r->delay_min_ns = ack->rtt_ns;
	if (ack->sent_ns >= r->round_ns) {
		r->round_ns = r->train_ns = ack->now_ns;
		r->now_min_ns = NO_RTT;
		r->samples = 0;
	}
	if (cwnd_segs < LOW_WINDOW_SEGS)
		return false;
	if (ack->now_ns - r->train_ns <= ACK_TRAIN_GAP_NS) {
		delay_ns = min_f64(ACK_DELAY_BYTES * srtt_ns / (2 * cwnd_segs * r->mss_bytes),
			ACK_DELAY_MAX_NS);
		limit_ns = (double)r->delay_min_ns + delay_ns;
		if (!ack->host_paced)
			limit_ns /= 2;
		r->train_ns = ack->now_ns;
		if ((double)(ack->now_ns - r->round_ns) > limit_ns)
			return true;
	}
	if (ack->rtt_ns < r->now_min_ns)
		r->now_min_ns = ack->rtt_ns;
	if (r->samples < N_RTT_SAMPLE) {
		r->samples++;
		return false;
	}
	return r->now_min_ns > r->delay_min_ns + delay_threshold_ns(r->delay_min_ns);
}

// Returns the number of acknowledged segments that slow start did not use, for congestion
// avoidance.
static double slow_start(
	struct cubic *r, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	bool first = cfg->kind == SLOW_START_PLUS && r->now.ssthresh_segs >= SSTHRESH_UNSET_SEGS;
	double step = slow_start_step(&cfg->slow_start, ack->acked_segs, r->timeout), left;

	r->stage = false;
	if (!first)
		r->mode = MODE_SLOW_START;
	if (cfg->kind == SLOW_START_LINUX && linux_hystart(r, ack, out->cwnd_segs)) {
		r->now.ssthresh_segs = r->now.prior_segs = out->cwnd_segs;
		return ack->acked_segs;
	}
	if (!ack->cwnd_limited)
		step = 0;
	if (r->mode == MODE_CSS)
		step /= CSS_GROWTH_DIVISOR;
	left = slow_start_grow(step, r->now.ssthresh_segs, out);
	if (first)
		hystart(r, ack, out->cwnd_segs);
	return left;
}

static void start_stage(struct cubic *r, const struct config *cfg, uint64_t now_ns, double cwnd) {
	if (r->timeout || cwnd >= r->now.w_max_segs)
		r->now.w_max_segs = cwnd;
	r->now.k_s = portable_cbrt((r->now.w_max_segs - cwnd) / cfg->c);
	r->now.w_est_segs = cwnd;
	r->now.epoch_ns = now_ns;
	r->stage = true;
	r->timeout = false;
}

static void avoid(struct cubic *r, const struct config *cfg, const struct cc_ack *ack, double acked,
	struct cc_out *out) {
	double alpha = 3 * (1 - cfg->beta) / (1 + cfg->beta), cwnd = out->cwnd_segs, t_s, now,
	       target;

	if (!r->stage)
		start_stage(r, cfg, ack->now_ns, cwnd);
	else if (!ack->cwnd_limited)
		r->now.epoch_ns += ack->now_ns - r->last_ns;
	t_s = (double)(ack->now_ns - r->now.epoch_ns) * 1e-9;
	now = w_cubic(r, cfg, t_s);
	if (cfg->reno_alpha == ALPHA_RISING && r->now.w_est_segs >= r->now.prior_segs)
		alpha = 1;
	if (ack->cwnd_limited)
		r->now.w_est_segs += alpha * acked / cwnd;
	if (cfg->reno_friendly && now < r->now.w_est_segs) {
		r->mode = MODE_RENO;
		out->cwnd_segs = max_f64(cwnd, r->now.w_est_segs);
		return;
	}
	r->mode = t_s < r->now.k_s ? MODE_CONCAVE : MODE_CONVEX;
	if (!ack->cwnd_limited)
		return;
	target = w_cubic(r, cfg, t_s + (double)ack->srtt_ns * 1e-9);
	target = min_f64(max_f64(target, cwnd), TARGET_GROWTH_MAX * cwnd);
	out->cwnd_segs += acked * (target - cwnd) / cwnd;
}

// In a kernel with ticks: windows are whole segments, and time goes on while the window does not
// limit.
static void avoid_in_ticks(struct cubic *r, const struct config *cfg, const struct cc_ack *ack,
	double acked, struct cc_out *out) {
	struct cubic_ticks *t = &r->ticks;
	uint32_t cwnd = (uint32_t)out->cwnd_segs, segs = (uint32_t)acked;

	if (!ack->cwnd_limited)
		return;
	cubic_ticks_update(t, cfg->c, cfg->beta, r->now.w_max_segs, r->stage,
		cfg->kind == SLOW_START_LINUX && !r->reduced, ack->now_ns, r->tick_ns,
		ack->rtt_min_ns, cwnd, segs);
	r->stage = true;
	r->timeout = false;
	r->now.w_est_segs = t->w_est;
	r->now.k_s = t->k / CUBIC_TIME_UNITS;
	r->mode = t->w_est > cwnd ? MODE_RENO : cwnd < t->origin ? MODE_CONCAVE : MODE_CONVEX;
	out->cwnd_segs = cubic_ticks_grow(t, cwnd, segs);
}

static void cubic_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct cubic *r = state;

	if (r->tick_ns != ack->tick_ns) { // the first ACK
		r->tick_ns = (uint32_t)ack->tick_ns;
		r->ticks = (struct cubic_ticks){0};
	}
	if (!ack->in_recovery)
		r->episode = false;
	if (!ack->in_recovery && ack->in_sequence) {
		double acked = ack->acked_segs;

		if (acked > 0 && out->cwnd_segs < r->now.ssthresh_segs)
			acked = slow_start(r, cfg, ack, out);
		if (ack->acked_segs > 0 && out->cwnd_segs >= r->now.ssthresh_segs) {
			bool early =
				cfg->kind == SLOW_START_LINUX && !r->reduced && ack->cwnd_limited;
			double least = early ? out->cwnd_segs + UNREDUCED_GROWTH * acked : 0;

			if (ack->tick_ns > 0) {
				avoid_in_ticks(r, cfg, ack, acked, out);
			} else {
				avoid(r, cfg, ack, acked, out);
				out->cwnd_segs = max_f64(out->cwnd_segs, least);
			}
		}
		r->last_ns = ack->now_ns;
	}
}

// What a congestion event leaves of the window.
static double reduced_segs(const struct cubic *r, const struct config *cfg, double cwnd) {
	if (r->tick_ns == 0)
		return cfg->beta * cwnd;
	return floor(floor(cwnd) * round(cfg->beta * BETA_UNITS) / BETA_UNITS);
}

// The effects of any congestion event, except on the window itself.
static void reduce(struct cubic *r, const struct config *cfg, double cwnd) {
	bool lower = cfg->fast_convergence && cwnd < r->now.w_max_segs;

	if (r->tick_ns == 0)
		r->undo = r->now;
	else
		r->ticks.grown = 0;
	r->undo_ssthresh_segs = r->now.ssthresh_segs;
	r->undo_cwnd_segs = cwnd;
	r->undo_stage = r->stage;
	r->now.w_max_segs = lower ? cwnd * (1 + cfg->beta) / 2 : cwnd;
	r->now.prior_segs = cwnd;
	r->reduced = true;
	r->now.ssthresh_segs = max_f64(reduced_segs(r, cfg, cwnd), SSTHRESH_MIN_SEGS);
	if (r->tick_ns > 0)
		r->now.w_max_segs = floor(r->now.w_max_segs);
}

static void cubic_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct cubic *r = state;
	double cwnd = out->cwnd_segs;

	reduce(r, cfg, cwnd);
	r->episode = true;
	r->stage = r->timeout = false;
	r->mode = MODE_RECOVERY;
	out->cwnd_segs = max_f64(reduced_segs(r, cfg, cwnd), loss->ecn ? 1 : SSTHRESH_MIN_SEGS);
}

static void cubic_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct cubic *r = state;

	if (!r->episode && !loss->repeated)
		reduce(r, config, out->cwnd_segs);
	r->episode = true;
	r->timeout = true;
	r->stage = false;
	r->mode = MODE_SLOW_START;
	r->delay_min_ns = NO_RTT; // as in Linux
	r->reduced = false;
	if (r->tick_ns > 0)
		r->now.w_max_segs = 0;
	out->cwnd_segs = 1;
}

static void cubic_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct cubic *r = state;

	if (out->cwnd_segs >= r->undo_cwnd_segs)
		return;
	out->cwnd_segs = r->undo_cwnd_segs;
	if (r->tick_ns > 0) { // Linux's goes on with a new stage
		r->now.ssthresh_segs = max_f64(r->now.ssthresh_segs, r->undo_ssthresh_segs);
		r->stage = false;
	} else {
		r->now = r->undo;
		r->stage = r->undo_stage;
	}
	r->episode = r->timeout = false;
	r->mode = r->stage ? MODE_CONCAVE : MODE_SLOW_START; // until the next ACK
}

static void cubic_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct cubic *r = state;

	r->now.epoch_ns += now_ns - r->last_ns;
	r->last_ns = now_ns;
	if (r->tick_ns > 0)
		r->ticks.epoch += idle_ns / r->tick_ns;
	if (slow_start_idle(&cfg->slow_start, out))
		r->stage = false;
}

static void cubic_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct cubic *r = state;

	out[0] = (float)r->now.ssthresh_segs;
	out[1] = (float)r->now.w_max_segs;
	out[2] = (float)r->now.k_s;
	out[3] = (float)r->now.w_est_segs;
}

static uint8_t cubic_mode(const void *state, const void *config) {
	const struct cubic *r = state;

	return r->mode;
}

static double cubic_ssthresh(const void *state, const void *config) {
	const struct cubic *r = state;

	return r->now.ssthresh_segs;
}

const struct cc_ops cc_cubic = {
	.name = "cubic",
	.summary = "CUBIC with HyStart++ (RFC 9438, 9406)",
	.reference = "RFC 9438 (CUBIC), RFC 9406 (HyStart++)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct cubic),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs", "w_max_segs", "k_s", "w_est_segs"},
	.given_window = cubic_given_window,
	.init = cubic_init,
	.on_ack = cubic_on_ack,
	.on_loss = cubic_on_loss,
	.on_rto = cubic_on_rto,
	.on_spurious = cubic_on_spurious,
	.on_idle = cubic_on_idle,
	.observe = cubic_observe,
	.mode = cubic_mode,
	.modes = {MODES(CC_MODE_TEXT)},
	.ssthresh = cubic_ssthresh,
};
