// SPDX-License-Identifier: BSD-3-Clause
// TCP Vegas (Brakmo, O'Malley, Peterson: "TCP Vegas: New Techniques for Congestion Detection and
// Avoidance", SIGCOMM
// 1994) as Linux has it (tcp_vegas.c).
//
//	baseRTT  smallest RTT since the flow last had nothing in flight: as it began, after it was
//	         idle, and in a small window's fast recovery (CA_EVENT_TX_START)
//	RTT      smallest RTT of this round trip; a round ends with the ACK of the first segment
//	         sent in it
//	diff   = trunc(cwnd (RTT - baseRTT) / baseRTT)      segments of ours that wait in the queue
//
// At the end of a round with more than two samples, else it grows as Reno:
//
//	slow start   diff > gamma:  cwnd = min(cwnd, trunc(cwnd baseRTT / RTT) + 1),
//	                            ssthresh = min(ssthresh, cwnd)
//	             else, and within a round:  cwnd += min(acked, L)
//	avoidance    diff < alpha:  cwnd += 1
//	             diff > beta:   cwnd -= 1, ssthresh = min(ssthresh, cwnd)
//	then         cwnd = max(cwnd, 2), ssthresh = max(ssthresh, 3/4 cwnd)
//
// Loss, ECN echo, timeout: as Reno (reno.h). Until such an episode is over, Vegas does nothing
// else.
//
// With alpha 2 and beta 4 a flow keeps 2 to 5 segments queued: `diff > 4` is 5 or more, since diff
// is truncated. A flow that starts while others have a queue takes that for part of baseRTT and
// gets more than its share.
//
// Where we differ from Linux and the paper, and why
//   - The paper doubles cwnd every second round trip and compares the rates in between; Linux every
//     round trip, and looks at its end. The paper's early retransmissions are RACK's and the tail
//     loss probe's work here.
//   - cwnd grows only if it was the limit (RFC 2861); Linux does not ask. It may always shrink.
//   - Linux counts in microseconds and adds one, so that no RTT is 0.
//   - L = 2, as newreno.c has it; Linux has no limit.
#include "sender/cc/reno.h"

#include <math.h>

struct config {
	struct slow_start slow_start;
	double alpha_segs, beta_segs, gamma_segs;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"alpha", "2", "grow while fewer segments are queued", UNIT_NONE,
		PARAM_F64(struct config, alpha_segs), 0, 1e6},
	{"beta", "4", "shrink while more segments are queued", UNIT_NONE,
		PARAM_F64(struct config, beta_segs), 0, 1e6},
	{"gamma", "1", "leave slow start when more segments are queued", UNIT_NONE,
		PARAM_F64(struct config, gamma_segs), 0, 1e6},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

#define SAMPLES_MIN 3 // with fewer, one delayed ACK would decide
#define NO_RTT UINT64_MAX

struct vegas {
	struct reno reno;
	uint64_t base_ns, min_ns; // of the connection, of this round
	uint64_t round_ns; // segments sent from here on end the round
	uint32_t samples; // of this round
	float diff_segs; // at the end of the last one
	bool open; // neither in recovery nor after a timeout, as of the last ACK
};
static_assert(sizeof(struct vegas) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct vegas);

static void start_round(struct vegas *v, uint64_t now_ns) {
	v->round_ns = now_ns;
	v->min_ns = NO_RTT;
	v->samples = 0;
}

// The path may have changed.
static void forget(struct vegas *v, uint64_t now_ns) {
	v->base_ns = NO_RTT;
	start_round(v, now_ns);
}

static void vegas_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct vegas *v = state;

	*v = (struct vegas){.open = true};
	forget(v, now_ns);
	reno_init(&v->reno, &cfg->slow_start, out);
}

static void measure(struct vegas *v, const struct cc_ack *ack) {
	if (ack->rtt_ns == 0)
		return;
	if (ack->rtt_ns < v->base_ns)
		v->base_ns = ack->rtt_ns;
	if (ack->rtt_ns < v->min_ns)
		v->min_ns = ack->rtt_ns;
	v->samples++;
}

// Vegas's decision. True: it leaves the growth by this ACK to slow start.
static bool end_round(
	struct vegas *v, const struct config *cfg, bool may_grow, struct cc_out *out) {
	struct reno *r = &v->reno;
	double base = (double)v->base_ns, rtt = (double)v->min_ns, cwnd = out->cwnd_segs;
	double diff = trunc(cwnd * (rtt - base) / base);

	v->diff_segs = (float)diff;
	if (cwnd < r->ssthresh_segs && diff <= cfg->gamma_segs)
		return may_grow;
	if (cwnd < r->ssthresh_segs) {
		double target = trunc(cwnd * base / rtt) + 1;

		cwnd = target < cwnd ? target : cwnd;
		r->timeout = false;
	} else if (diff > cfg->beta_segs) {
		cwnd -= 1;
	} else if (diff < cfg->alpha_segs && may_grow) {
		cwnd += 1;
	}
	cwnd = cwnd < SSTHRESH_MIN_SEGS ? SSTHRESH_MIN_SEGS : cwnd;
	if (cwnd < out->cwnd_segs && cwnd < r->ssthresh_segs)
		r->ssthresh_segs = cwnd;
	if (r->ssthresh_segs < 0.75 * cwnd)
		r->ssthresh_segs = 0.75 * cwnd;
	out->cwnd_segs = cwnd;
	return false;
}

static void grow(
	struct vegas *v, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	struct reno *r = &v->reno;
	bool open = !ack->in_recovery && !ack->in_loss, may_grow = reno_may_grow(r, ack);

	if (!open) {
		v->open = false;
		reno_on_ack(r, &cfg->slow_start, ack, out);
		return;
	}
	if (!v->open) {
		v->open = true;
		start_round(v, ack->now_ns);
	}
	if (ack->acked_segs > 0 && ack->sent_ns >= v->round_ns) {
		bool enough = v->samples >= SAMPLES_MIN;

		if (enough ? end_round(v, cfg, may_grow, out) : may_grow) {
			double left = reno_slow_start(r, &cfg->slow_start, ack->acked_segs, out);

			reno_avoid(r, left, out);
		}
		start_round(v, ack->now_ns);
	} else if (may_grow && out->cwnd_segs < r->ssthresh_segs) {
		reno_slow_start(r, &cfg->slow_start, ack->acked_segs, out);
	}
	r->slow_start = out->cwnd_segs < r->ssthresh_segs;
}

static void vegas_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct vegas *v = state;

	measure(v, ack);
	grow(v, config, ack, out);
	if (ack->inflight_segs == 0)
		forget(v, ack->now_ns);
}

static void vegas_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct vegas *v = state;

	reno_on_loss(&v->reno, out->cwnd_segs / 2, out);
}

static void vegas_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct vegas *v = state;

	reno_on_rto(&v->reno, out->cwnd_segs / 2, loss, out);
}

static void vegas_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct vegas *v = state;

	forget(v, now_ns);
	slow_start_idle(&cfg->slow_start, out);
}

static void vegas_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct vegas *v = state;

	out[0] = (float)v->reno.ssthresh_segs;
	out[1] = v->diff_segs;
	out[2] = v->base_ns == NO_RTT ? 0 : (float)v->base_ns;
}

const struct cc_ops cc_vegas = {
	.name = "vegas",
	.summary = "Vegas as in Linux: keeps 2 to 4 segments queued (SIGCOMM 1994)",
	.reference = "Brakmo, O'Malley, Peterson: TCP Vegas: New Techniques for Congestion "
		     "Detection and Avoidance, SIGCOMM 1994",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct vegas),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs", "diff_segs", "base_rtt_ns"},
	.given_window = reno_given_window,
	.init = vegas_init,
	.on_ack = vegas_on_ack,
	.on_loss = vegas_on_loss,
	.on_rto = vegas_on_rto,
	.on_spurious = reno_on_spurious,
	.on_idle = vegas_on_idle,
	.observe = vegas_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
