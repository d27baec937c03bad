// SPDX-License-Identifier: BSD-3-Clause
// Swift (Kumar and others: "Swift: Delay is Simple and Effective for Congestion Control in the
// Datacenter", SIGCOMM 2020, algorithm 1 and section 3.5): AIMD on the difference between the delay
// and a target.
//
//	target = base + base_target + fs
//	fs     = range (1/sqrt(cwnd) - 1/sqrt(max)) / (1/sqrt(min) - 1/sqrt(max))
//	         within [0, range]: smaller windows tolerate a longer queue
//
//	ACK, delay < target:   cwnd += ai acked / cwnd, or ai acked below one segment
//	ACK, else:             cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf), once per
//	                       RTT
//	loss:                  cwnd *= 1 - max_mdf, likewise
//	timeout:               likewise, and the smallest window from the 5th in a row on
//	cwnd < 1:              one segment every rtt / cwnd
//
// In equilibrium n flows of window W keep base_target + fs(W) queued: fs makes windows alike, since
// the larger one has the lower target.
//
// Where we differ from the paper, and why
//   - The target counts from the RTT of the empty path, `base_rtt` or the smallest that was
//     measured. The paper has one target for a fabric and adds a time per hop, which it learns from
//     the TTL.
//   - There is one window, the fabric's. The paper's second one, for delays in the receiving host,
//     needs time stamps of its card; a host has no such delay here.
//   - Values that the paper leaves open, or measures in its own network, are parameters.
//   - No slow start, as in the paper; an ECN echo is answered as a loss.
//   - Receivers acknowledge each segment, unless the group says otherwise. The paper's hosts do. A
//     window of one segment waits for a delayed ACK: 40 ms, which are beyond the target, so that it
//     would never grow above `min_cwnd`.
#include "sender/cc/cc.h"

#include <math.h>

struct config {
	double initial_segs, min_segs, max_segs;
	double base_rtt_ns, target_ns, ai_segs, beta, max_mdf;
	double fs_range_ns, fs_min_segs, fs_max_segs;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{"initial", "10", "initial window in segments (RFC 6928)", UNIT_NONE,
		F64(initial_segs, 1, 1000)},
	{"min_cwnd", "0.01", "smallest window in segments", UNIT_NONE, F64(min_segs, 1e-4, 100)},
	{"max_cwnd", "1e6", "largest window in segments", UNIT_NONE, F64(max_segs, 1, 1e6)},
	{"base_rtt", "0s",
		"RTT of the empty path, if it is known; 0s: the smallest that was measured",
		UNIT_TIME_NS, F64(base_rtt_ns, 0, 1e10)},
	{"base_target", "25us", "queueing delay that large windows keep", UNIT_TIME_NS,
		F64(target_ns, 1, 1e9)},
	{"ai", "1", "segments per round trip added below the target", UNIT_NONE,
		F64(ai_segs, 1e-3, 1000)},
	{"beta", "0.8", "reduction by this times the excess over the delay", UNIT_NONE,
		F64(beta, 0.01, 1)},
	{"max_mdf", "0.5", "largest part of the window that a reduction takes", UNIT_NONE,
		F64(max_mdf, 0.01, 0.99)},
	{"fs_range", "125us", "what the smallest windows may queue beyond that; 0s: nothing",
		UNIT_TIME_NS, F64(fs_range_ns, 0, 1e9)},
	{"fs_min_cwnd", "0.1", "windows up to this have all of fs_range", UNIT_NONE,
		F64(fs_min_segs, 1e-4, 1e3)},
	{"fs_max_cwnd", "100", "windows from this on have nothing of it", UNIT_NONE,
		F64(fs_max_segs, 1, 1e6)},
	PARAM_END,
};

#define TIMEOUTS_RESET 5

struct swift {
	double cwnd_segs; // out's is never below 1
	double undo_segs; // before the last loss
	uint64_t decrease_ns, rtt_ns; // the last reduction's time, the last RTT
	float target_ns;
	uint32_t mss_bits;
	uint8_t timeouts; // in a row
	bool reduced; // ever
};
static_assert(sizeof(struct swift) <= CC_STATE_MAX_BYTES, "state too large");

static double swift_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs;
}

static void set_out(struct swift *s, const struct config *cfg, double segs, struct cc_out *out) {
	s->cwnd_segs = fmin(fmax(segs, cfg->min_segs), cfg->max_segs);
	out->cwnd_segs = fmax(s->cwnd_segs, 1);
	out->pacing_bps = 0;
	if (s->cwnd_segs < 1 && s->rtt_ns > 0)
		out->pacing_bps = s->cwnd_segs * s->mss_bits * 1e9 / (double)s->rtt_ns;
}

static void swift_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct swift *s = state;

	*s = (struct swift){.rtt_ns = rtt_ns, .mss_bits = 8 * mss_bytes};
	set_out(s, cfg, cfg->initial_segs, out);
}

static double target_ns(const struct swift *s, const struct config *cfg, uint64_t rtt_min_ns) {
	double base_ns = cfg->base_rtt_ns > 0 ? cfg->base_rtt_ns : (double)rtt_min_ns;
	double least = 1 / sqrt(cfg->fs_max_segs), most = 1 / sqrt(cfg->fs_min_segs), part = 0;

	if (most > least)
		part = fmin(fmax((1 / sqrt(s->cwnd_segs) - least) / (most - least), 0), 1);
	return base_ns + cfg->target_ns + cfg->fs_range_ns * part;
}

static void reduce(struct swift *s, const struct config *cfg, double factor, uint64_t now_ns,
	struct cc_out *out) {
	if (s->reduced && now_ns - s->decrease_ns < s->rtt_ns)
		return;
	s->reduced = true;
	s->decrease_ns = now_ns;
	set_out(s, cfg, s->cwnd_segs * fmax(factor, 1 - cfg->max_mdf), out);
}

static void swift_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct swift *s = state;
	double delay_ns = (double)ack->rtt_ns, target;

	if (ack->acked_segs > 0)
		s->timeouts = 0;
	if (ack->rtt_ns == 0)
		return;
	s->rtt_ns = ack->rtt_ns;
	target = target_ns(s, cfg, ack->rtt_min_ns);
	s->target_ns = (float)target;
	if (delay_ns >= target) {
		reduce(s, cfg, 1 - cfg->beta * (delay_ns - target) / delay_ns, ack->now_ns, out);
	} else if (ack->cwnd_limited || s->cwnd_segs < 1) {
		double per_ack = s->cwnd_segs >= 1 ? cfg->ai_segs / s->cwnd_segs : cfg->ai_segs;

		set_out(s, cfg, s->cwnd_segs + per_ack * ack->acked_segs, out);
	}
}

static void swift_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct swift *s = state;

	s->timeouts = 0;
	s->undo_segs = s->cwnd_segs;
	reduce(s, config, 0, loss->now_ns, out);
}

static void swift_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct swift *s = state;

	if (!loss->repeated)
		s->undo_segs = s->cwnd_segs;
	s->timeouts = (uint8_t)(s->timeouts + (s->timeouts < UINT8_MAX));
	if (s->timeouts >= TIMEOUTS_RESET)
		set_out(s, cfg, cfg->min_segs, out);
	else
		reduce(s, cfg, 0, loss->now_ns, out);
}

static void swift_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct swift *s = state;

	set_out(s, config, fmax(s->cwnd_segs, s->undo_segs), out);
}

static void swift_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct swift *s = state;

	out[0] = (float)s->cwnd_segs;
	out[1] = s->target_ns;
}

const struct cc_ops cc_swift = {
	.name = "swift",
	.summary = "Swift: AIMD towards a target delay, windows below one segment (SIGCOMM 2020)",
	.reference = "Kumar and others: Swift: Delay is Simple and Effective for Congestion "
		     "Control in the Datacenter, SIGCOMM 2020",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct swift),
	.ecn = true,
	.ack_each = true,
	.observed = {"cwnd_segs", "target_ns"},
	.given_window = swift_given_window,
	.init = swift_init,
	.on_ack = swift_on_ack,
	.on_loss = swift_on_loss,
	.on_rto = swift_on_rto,
	.on_spurious = swift_on_spurious,
	.observe = swift_observe,
};
