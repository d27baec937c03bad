// SPDX-License-Identifier: BSD-3-Clause
// TIMELY (Mittal and others: "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM
// 2015, algorithm 1): a rate that follows the gradient of the RTT.
//
// Each completion of a segment of 64 KB, with its RTT:
//
//	rtt_diff  = (1 - alpha) rtt_diff + alpha (rtt - last rtt)
//	gradient  = rtt_diff / minRTT
//
//	queueing < T_low:      rate += delta
//	queueing > T_high:     rate *= 1 - beta (1 - (minRTT + T_high) / rtt)
//	gradient <= 0:         rate += N delta,  N = 5 from the fifth such completion in a row on,
//	                                         else 1
//	else:                  rate *= 1 - beta gradient
//
// The rate is paced; the window is twice what it sends in a round trip.
//
// Where we differ from the paper, and why
//   - T_low and T_high count from minRTT: 30 and 480 us where the paper has RTTs of 50 and 500 us
//     on a fabric of 20 us. minRTT is `base_rtt`, or the smallest that was measured.
//   - RTTs are those of the last packet of 64 KB, from its own transmission on; the paper subtracts
//     the time in which its card sends the segment.
//   - A completion halves the rate at most: the first RTTs of a queue are several minRTT apart, and
//     1 - beta gradient would be negative.
//   - The fabric of the paper loses nothing. Here a loss or ECN echo halves the rate once per
//     window, a timeout too, and until the losses are repaired the rate does not grow.
//   - A flow starts with 10 segments per round trip (`initial`), not with its share of the card's
//     rate.
//   - cwnd_limited says nothing of a paced flow; the rate does not grow while the application
//     limits it.
#include "sender/cc/cc.h"

struct config {
	double initial_segs, base_rtt_ns, low_ns, high_ns;
	double alpha, beta, delta_bps, hai, segment_bytes, min_bps;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{"initial", "10", "segments of the first round trip (RFC 6928)", UNIT_NONE,
		F64(initial_segs, 1, 1000)},
	{"base_rtt", "0s",
		"RTT of the empty path, if it is known; 0s: the smallest that was measured",
		UNIT_TIME_NS, F64(base_rtt_ns, 0, 1e10)},
	{"t_low", "30us", "queueing delay below which the rate grows whatever the gradient (T_low)",
		UNIT_TIME_NS, F64(low_ns, 0, 1e9)},
	{"t_high", "480us", "queueing delay above which it falls whatever the gradient (T_high)",
		UNIT_TIME_NS, F64(high_ns, 0, 1e9)},
	{"alpha", "0.875", "weight of the newest difference of RTTs", UNIT_NONE,
		F64(alpha, 0.001, 1)},
	{"beta", "0.8", "weight of reductions", UNIT_NONE, F64(beta, 0.001, 1)},
	{"delta", "10Mbit", "rate added by a completion", UNIT_RATE_BPS, F64(delta_bps, 1e3, 1e12)},
	{"hai", "5", "completions without a rising RTT before steps of as many delta", UNIT_NONE,
		F64(hai, 1, 255)},
	{"segment", "64kB", "data per completion", UNIT_BYTES, F64(segment_bytes, 1, 1e9)},
	{"min_rate", "100kbit", "least rate", UNIT_RATE_BPS, F64(min_bps, 1e3, 1e12)},
	PARAM_END,
};

#define LEAST_FACTOR 0.5 // of the rate, that one completion leaves
#define LEAST_SEGS 4.0 // of the window: receivers with delayed ACKs keep sending them
#define NOMINAL_RTT_NS 1e6 // used if the handshake measured none

struct timely {
	double rate_bps, undo_bps;
	double rtt_diff_ns;
	uint64_t rtt_ns; // of the last completion; 0: none
	double acked_bytes; // of the present segment
	uint32_t mss_bytes;
	float gradient;
	uint8_t falling; // completions in a row without a rising RTT
};
static_assert(sizeof(struct timely) <= CC_STATE_MAX_BYTES, "state too large");

static double timely_given_window(const void *config) {
	const struct config *cfg = config;

	return 2 * cfg->initial_segs;
}

static void set_rate(struct timely *t, const struct config *cfg, double rate_bps, double rtt_ns,
	struct cc_out *out) {
	double segs;

	t->rate_bps = rate_bps > cfg->min_bps ? rate_bps : cfg->min_bps;
	segs = 2 * t->rate_bps * rtt_ns * 1e-9 / (8.0 * t->mss_bytes);
	out->pacing_bps = t->rate_bps;
	out->cwnd_segs = segs > LEAST_SEGS ? segs : LEAST_SEGS;
}

static void timely_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct timely *t = state;
	double first_ns = rtt_ns > 0 ? (double)rtt_ns : NOMINAL_RTT_NS;

	*t = (struct timely){.mss_bytes = mss_bytes};
	set_rate(t, cfg, cfg->initial_segs * 8 * mss_bytes * 1e9 / first_ns, first_ns, out);
}

// Algorithm 1: the rate after a completion.
static double completed(struct timely *t, const struct config *cfg, double rtt_ns, double min_ns) {
	double gradient;

	if (t->rtt_ns > 0)
		t->rtt_diff_ns += cfg->alpha * (rtt_ns - (double)t->rtt_ns - t->rtt_diff_ns);
	gradient = t->rtt_diff_ns / min_ns;
	t->gradient = (float)gradient;
	t->falling = gradient > 0 ? 0 : (uint8_t)(t->falling + (t->falling < UINT8_MAX));
	if (rtt_ns < min_ns + cfg->low_ns)
		return t->rate_bps + cfg->delta_bps;
	if (rtt_ns > min_ns + cfg->high_ns)
		return t->rate_bps * (1 - cfg->beta * (1 - (min_ns + cfg->high_ns) / rtt_ns));
	if (gradient <= 0)
		return t->rate_bps + (t->falling >= cfg->hai ? cfg->hai : 1) * cfg->delta_bps;
	return t->rate_bps * (1 - cfg->beta * gradient);
}

static void timely_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct timely *t = state;
	double min_ns = cfg->base_rtt_ns > 0 ? cfg->base_rtt_ns : (double)ack->rtt_min_ns, rate;

	t->acked_bytes += (double)ack->acked_segs * t->mss_bytes;
	if (ack->rtt_ns == 0 || t->acked_bytes < cfg->segment_bytes)
		return;
	t->acked_bytes = 0;
	rate = completed(t, cfg, (double)ack->rtt_ns, min_ns);
	t->rtt_ns = ack->rtt_ns;
	if (rate > t->rate_bps && (ack->app_limited || ack->in_recovery))
		rate = t->rate_bps;
	if (rate < LEAST_FACTOR * t->rate_bps)
		rate = LEAST_FACTOR * t->rate_bps;
	set_rate(t, cfg, rate, (double)ack->srtt_ns, out);
}

static void halve(struct timely *t, const struct config *cfg, struct cc_out *out) {
	double cwnd_segs = out->cwnd_segs / 2;

	t->undo_bps = t->rate_bps;
	set_rate(t, cfg, t->rate_bps / 2, 0, out);
	out->cwnd_segs = cwnd_segs > LEAST_SEGS ? cwnd_segs : LEAST_SEGS;
}

static void timely_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	halve(state, config, out);
}

static void timely_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	if (!loss->repeated)
		halve(state, config, out);
}

static void timely_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct timely *t = state;
	double factor = t->undo_bps / t->rate_bps;

	if (factor <= 1)
		return;
	t->rate_bps = out->pacing_bps = t->undo_bps;
	out->cwnd_segs *= factor;
}

static void timely_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct timely *t = state;

	out[0] = (float)t->rate_bps;
	out[1] = t->gradient;
}

const struct cc_ops cc_timely = {
	.name = "timely",
	.summary = "TIMELY: a rate that follows the gradient of the RTT (SIGCOMM 2015)",
	.reference = "Mittal and others: TIMELY: RTT-based Congestion Control for the Datacenter, "
		     "SIGCOMM 2015",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct timely),
	.ecn = true,
	.observed = {"rate_bps", "gradient"},
	.given_window = timely_given_window,
	.init = timely_init,
	.on_ack = timely_on_ack,
	.on_loss = timely_on_loss,
	.on_rto = timely_on_rto,
	.on_spurious = timely_on_spurious,
	.observe = timely_observe,
};
