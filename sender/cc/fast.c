// SPDX-License-Identifier: BSD-3-Clause
// FAST TCP (Wei, Jin, Low, Hegde: "FAST TCP: Motivation, Architecture, Algorithms, Performance",
// IEEE/ACM Transactions on Networking 14(6), 2006; Jin, Wei, Low, INFOCOM 2004): a window that
// follows the queueing delay, with steps that are large far from the equilibrium and small near it.
//
//	baseRTT  smallest RTT of the connection
//	RTT      moving average: per ACK, RTT += min(3 / cwnd, 1/4) (sample - RTT)
//	queued = cwnd (1 - baseRTT / RTT)       segments of ours that wait in the queue
//
//	avoidance          every second round trip: cwnd = min(2 cwnd, (1 - gamma) cwnd + gamma
//	                   (baseRTT / RTT cwnd + alpha)), which is cwnd + gamma (alpha - queued); at
//	                   least 2 segments; ssthresh = cwnd
//	slow start         cwnd += min(acked, L); ends when queued > alpha: ssthresh = cwnd
//	loss or ECN echo   cwnd = ssthresh = cwnd / 2, as Reno; timeout and spurious loss also as
//	                   Reno (reno.h)
//
// In equilibrium each flow has alpha segments in the queue: n flows keep n alpha, and get equal
// rates, whatever their round trips. The window changes only in every second round trip because a
// round trip passes before the delay shows the last change. The step does not scale with the path:
// the papers take alpha = 200 for links of 1 Gbit/s. A flow that starts while others have a queue
// takes that for part of baseRTT and gets more than its share, as Vegas's.
//
// The law and the weight are as the papers are quoted elsewhere; their text was not at hand, so no
// sections are named.
//
// Where we differ from the papers, and why
//   - Slow start is Reno's, and ends by a rule of ours: when the flow has put more than alpha
//     segments into the queue. The law alone would add at most gamma alpha segments per step and
//     take long to fill a long path.
//   - The papers spread a change of the window over a round trip (burstiness control). Here it
//     applies at once, and nothing is paced unless the group has `pacing: srtt`.
//   - During recovery and after a timeout the law rests, and the two round trips are counted from
//     their end.
//   - cwnd grows only if it was the limit (RFC 2861). It may always shrink. L = 2, as newreno.c has
//     it.
#include "sender/cc/reno.h"

struct config {
	struct slow_start slow_start;
	double alpha_segs, gamma;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"alpha", "20", "segments that each flow keeps queued; 200 at 1 Gbit/s", UNIT_NONE,
		PARAM_F64(struct config, alpha_segs), 1, 1e6},
	{"gamma", "0.5", "part of the way to the target that one step goes", UNIT_NONE,
		PARAM_F64(struct config, gamma), 0.01, 1},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

#define WEIGHT_SEGS 3.0 // per ACK: most of the average is of the last round trip
#define WEIGHT_MAX 0.25 // in small windows
#define NO_RTT UINT64_MAX

struct fast {
	struct reno reno;
	double rtt_ns; // moving average; 0: none yet
	uint64_t base_ns;
	uint64_t round_ns; // segments sent from here on end the round trip
	bool second; // this round trip is the one that shows the last change
	bool open; // neither in recovery nor after a timeout, as of the last ACK
};
static_assert(sizeof(struct fast) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct fast);

static void start_rounds(struct fast *f, uint64_t now_ns) {
	f->round_ns = now_ns;
	f->second = false;
}

static void fast_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct fast *f = state;

	*f = (struct fast){.base_ns = NO_RTT, .open = true};
	start_rounds(f, now_ns);
	reno_init(&f->reno, &cfg->slow_start, out);
}

static void measure(struct fast *f, const struct cc_ack *ack, double cwnd_segs) {
	double weight = WEIGHT_SEGS / cwnd_segs, sample = (double)ack->rtt_ns;

	if (ack->rtt_ns == 0)
		return;
	if (ack->rtt_ns < f->base_ns)
		f->base_ns = ack->rtt_ns;
	if (f->rtt_ns <= 0)
		f->rtt_ns = sample;
	f->rtt_ns += (weight < WEIGHT_MAX ? weight : WEIGHT_MAX) * (sample - f->rtt_ns);
}

static double queued_segs(const struct fast *f, double cwnd_segs) {
	return f->rtt_ns > 0 ? cwnd_segs * (1 - (double)f->base_ns / f->rtt_ns) : 0;
}

static void step(struct fast *f, const struct config *cfg, bool may_grow, struct cc_out *out) {
	double cwnd = out->cwnd_segs;
	double next = cwnd + cfg->gamma * (cfg->alpha_segs - queued_segs(f, cwnd));

	if (f->rtt_ns <= 0 || (next > cwnd && !may_grow))
		return;
	next = next < 2 * cwnd ? next : 2 * cwnd;
	out->cwnd_segs = next > SSTHRESH_MIN_SEGS ? next : SSTHRESH_MIN_SEGS;
	f->reno.ssthresh_segs =
		out->cwnd_segs; // less is slow start, and only a pause or a timeout gives that
}

static void control(
	struct fast *f, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	struct reno *r = &f->reno;
	bool may_grow = reno_may_grow(r, ack);

	if (out->cwnd_segs < r->ssthresh_segs) {
		if (queued_segs(f, out->cwnd_segs) <= cfg->alpha_segs) {
			if (may_grow)
				reno_slow_start(r, &cfg->slow_start, ack->acked_segs, out);
			return;
		}
		r->ssthresh_segs = out->cwnd_segs;
		start_rounds(f, ack->now_ns);
	}
	r->timeout = false;
	if (ack->acked_segs == 0 || ack->sent_ns < f->round_ns)
		return;
	if (f->second)
		step(f, cfg, may_grow, out);
	f->second = !f->second;
	f->round_ns = ack->now_ns;
}

static void fast_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct fast *f = state;
	bool open = !ack->in_recovery && !ack->in_loss;

	measure(f, ack, out->cwnd_segs);
	if (open && !f->open)
		start_rounds(f, ack->now_ns);
	f->open = open;
	if (open)
		control(f, cfg, ack, out);
	else
		reno_on_ack(&f->reno, &cfg->slow_start, ack, out);
	f->reno.slow_start = out->cwnd_segs < f->reno.ssthresh_segs;
}

static void fast_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct fast *f = state;

	reno_on_loss(&f->reno, out->cwnd_segs / 2, out);
	start_rounds(f, loss->now_ns); // an ECN echo begins no recovery
}

static void fast_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct fast *f = state;

	reno_on_rto(&f->reno, out->cwnd_segs / 2, loss, out);
}

static void fast_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct fast *f = state;

	out[0] = (float)f->reno.ssthresh_segs;
	out[1] = f->base_ns == NO_RTT ? 0 : (float)f->base_ns;
	out[2] = (float)f->rtt_ns;
}

const struct cc_ops cc_fast = {
	.name = "fast",
	.summary = "FAST TCP: each flow keeps alpha segments queued (ToN 2006)",
	.reference = "Wei, Jin, Low, Hegde: FAST TCP: Motivation, Architecture, Algorithms, "
		     "Performance, IEEE/ACM Transactions on Networking 14(6), 2006",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct fast),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs", "base_rtt_ns", "rtt_ns"},
	.given_window = reno_given_window,
	.init = fast_init,
	.on_ack = fast_on_ack,
	.on_loss = fast_on_loss,
	.on_rto = fast_on_rto,
	.on_spurious = reno_on_spurious,
	.on_idle = reno_on_idle,
	.observe = fast_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
