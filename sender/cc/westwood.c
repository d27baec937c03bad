// SPDX-License-Identifier: BSD-3-Clause
// TCP Westwood+ (Mascolo, Casetti, Gerla, Sanadidi, Wang: "TCP Westwood: Bandwidth Estimation for
// Enhanced Transport over Wireless Links", MOBICOM 2001; Grieco, Mascolo: "Performance Evaluation
// and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control", CCR 2004), with the
// constants of Linux (tcp_westwood.c): Reno that falls to the measured bandwidth-delay product
// instead of half the window, so that losses without a queue cost little.
//
//	sample  = segments acknowledged / time    at the first ACK later than max(RTT, 50 ms) since
//	                                          the last sample
//	low     = 7/8 low + 1/8 sample            (both filters start with the first sample)
//	BWE     = 7/8 BWE + 1/8 low
//	RTTmin  = smallest RTT since the start or the last timeout
//
//	loss or ECN echo:  ssthresh = max(BWE RTTmin, 2), cwnd = min(cwnd, ssthresh)
//	timeout:           ssthresh likewise, cwnd = 1, RTTmin is measured again
//	everything else:   as Reno (reno.h)
//
// In the model of Grieco and Mascolo (2004) the throughput is sqrt((1 - p) / (p RTT Tq)), Tq being
// the mean queueing delay: without a queue random losses do not bound it, where Reno is bounded by
// sqrt(3 / (2 p)) / RTT.
//
// Where we differ from Linux and the papers, and why
//   - Linux halves as Reno at a loss and takes BWE RTTmin when the episode is over, even if that is
//     more than the window before: `dialect: linux`. By default the window moves to it at once
//     (PRR), as in the papers, and never upwards.
//   - Linux counts RTTs in whole ticks, rounded up, and so does a host with ticks (`hz`): RTTmin,
//     and with it the window, is then too large.
//   - A loss before the first sample halves the window, as Reno; Linux falls to two segments.
//   - Segments are counted as they are acknowledged, cumulatively or by SACK; Linux, and `dialect:
//     linux`, count a duplicate ACK as one segment, and what SACKs acknowledged only with the
//     cumulative ACK that ends the episode: BWE is too small as the window is set.
//   - Windows and rates are real numbers, but in a host with ticks, where windows are whole
//     segments. L = 2, as newreno.c has it; Linux has no limit.
#include "common/base/f64.h"
#include "common/base/jiffies.h"
#include "sender/cc/reno.h"

static const char *const dialect_names[] = {"paper", "linux", NULL};
enum dialect { DIALECT_PAPER, DIALECT_LINUX };

struct config {
	struct slow_start slow_start;
	int dialect;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"dialect", "paper",
		"paper: a loss makes the window BWE RTTmin at once, and never larger; "
		"linux: it halves the window, which is BWE RTTmin when the episode is over",
		UNIT_NONE, PARAM_ENUM(struct config, dialect, dialect_names)},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

#define SAMPLE_MIN_NS (50 * NS_PER_MS) // shorter ones would measure bursts
#define KEPT (7.0 / 8)
#define NO_RTT UINT64_MAX

struct westwood {
	struct reno reno;
	double low, bwe; // segments per second; 0: none yet
	uint64_t start_ns; // of the present sample
	uint64_t rtt_ns, min_ns;
	uint64_t acked_segs; // of the present sample
	uint32_t counted_segs; // for duplicate ACKs, not yet acknowledged cumulatively
	uint32_t mss_bytes;
	bool falls; // to BWE RTTmin, when fast recovery is over
};
static_assert(sizeof(struct westwood) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct westwood);

static void westwood_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct westwood *w = state;

	*w = (struct westwood){.start_ns = now_ns, .min_ns = NO_RTT, .mss_bytes = mss_bytes};
	reno_init(&w->reno, &cfg->slow_start, out);
}

// Segments by which an ACK adds to the sample. Linux's count: a duplicate ACK is one segment,
// whatever it brings, until a cumulative one tells the sum (westwood_acked_count). So at the end of
// an episode BWE misses what SACKs have acknowledged.
static uint32_t counted_segs(
	struct westwood *w, const struct config *cfg, const struct cc_ack *ack) {
	uint32_t segs = ack->passed_segs, more;

	if (cfg->dialect != DIALECT_LINUX)
		return ack->acked_segs;
	if (segs == 0) {
		w->counted_segs++;
		return 1;
	}
	if (segs == 1)
		return 1;
	more = segs > w->counted_segs ? segs - w->counted_segs : 1;
	w->counted_segs = segs > w->counted_segs ? 0 : w->counted_segs - segs;
	return more;
}

static void measure(struct westwood *w, const struct config *cfg, const struct cc_ack *ack) {
	uint64_t now_ns = jiffies_ns(ack->tick_ns, ack->now_ns), time_ns = now_ns - w->start_ns;
	uint64_t least_ns = jiffies_ns(ack->tick_ns, SAMPLE_MIN_NS);

	if (ack->rtt_ns > 0) {
		w->rtt_ns = jiffies_up_ns(ack->tick_ns, ack->rtt_ns);
		w->min_ns = w->rtt_ns < w->min_ns ? w->rtt_ns : w->min_ns;
	}
	if (w->rtt_ns > 0 && time_ns > w->rtt_ns && time_ns > least_ns) {
		double sample = (double)w->acked_segs * 1e9 / (double)time_ns;

		w->low = w->bwe > 0 ? KEPT * w->low + (1 - KEPT) * sample : sample;
		w->bwe = w->bwe > 0 ? KEPT * w->bwe + (1 - KEPT) * w->low : sample;
		w->start_ns = now_ns;
		w->acked_segs = 0;
	}
	w->acked_segs += counted_segs(w, cfg, ack);
}

static double bdp_segs(const struct westwood *w, const struct cc_out *out) {
	if (w->bwe <= 0 || w->min_ns == NO_RTT)
		return out->cwnd_segs / 2;
	return w->bwe * (double)w->min_ns * 1e-9;
}

static double whole(const struct westwood *w, double segs) {
	return w->reno.whole ? floor(segs) : segs;
}

static void westwood_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct westwood *w = state;

	measure(w, cfg, ack);
	if (w->falls && !ack->in_recovery) {
		w->falls = false;
		w->reno.ssthresh_segs = max_f64(whole(w, bdp_segs(w, out)), SSTHRESH_MIN_SEGS);
		out->cwnd_segs = w->reno.ssthresh_segs;
	}
	reno_on_ack(&w->reno, &cfg->slow_start, ack, out);
}

static void westwood_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct westwood *w = state;
	const struct config *cfg = config;
	double before = out->cwnd_segs;

	if (cfg->dialect == DIALECT_LINUX) {
		reno_on_loss(&w->reno, before / 2, out);
		w->falls = true;
		return;
	}
	reno_on_loss(&w->reno, bdp_segs(w, out), out);
	out->cwnd_segs = before < out->cwnd_segs ? before : out->cwnd_segs;
}

static void westwood_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct westwood *w = state;

	reno_on_rto(&w->reno, bdp_segs(w, out), loss, out);
	w->falls = false;
	w->min_ns = NO_RTT;
}

static void westwood_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct westwood *w = state;

	reno_on_spurious(w, config, now_ns, out);
	w->falls = false;
}

static void westwood_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct westwood *w = state;

	out[0] = (float)w->reno.ssthresh_segs;
	out[1] = (float)(w->bwe * w->mss_bytes * 8);
	out[2] = w->min_ns == NO_RTT ? 0 : (float)w->min_ns;
}

const struct cc_ops cc_westwood = {
	.name = "westwood",
	.summary = "Westwood+: Reno that falls to the measured bandwidth-delay product (CCR 2004)",
	.reference =
		"Grieco, Mascolo: Performance Evaluation and Comparison of Westwood+, New Reno, "
		"and Vegas TCP Congestion Control, CCR 2004",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct westwood),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs", "bwe_bps", "rtt_min_ns"},
	.given_window = reno_given_window,
	.init = westwood_init,
	.on_ack = westwood_on_ack,
	.on_loss = westwood_on_loss,
	.on_rto = westwood_on_rto,
	.on_spurious = westwood_on_spurious,
	.on_idle = reno_on_idle,
	.observe = westwood_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
