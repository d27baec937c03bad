// SPDX-License-Identifier: BSD-3-Clause
// Compound TCP (Sridharan, Tan, Bansal, Thaler: draft-sridharan-tcpm-ctcp-02, 2008; Tan, Song,
// Zhang, Sridharan: "A Compound TCP Approach for High-speed and Long Distance Networks", INFOCOM
// 2006): the window of Reno plus a second one that grows fast while no queue is seen, and goes when
// there is one.
//
//	win     = cwnd + dwnd                       dwnd, the delay window, is 0 in slow start
//	baseRTT   smallest RTT of the connection
//	RTT       mean of this round trip's samples; a round trip ends with the ACK of the first
//	          segment sent in it
//	diff    = win (1 - baseRTT / RTT)           segments of ours that wait in the queue
//
//	slow start, cwnd < ssthresh:  cwnd += min(acked, L)
//	avoidance:                    cwnd += acked / win
//	end of a round trip:          diff < gamma:  dwnd += max(alpha win^k - 1, 0)
//	                                             if win is at least low_window
//	                              else:          dwnd = max(dwnd - zeta diff, 0)
//	loss or ECN echo:             dwnd = max(win (1 - beta) - cwnd / 2, 0),
//	                              cwnd = ssthresh = cwnd / 2
//	timeout:                      dwnd = 0, ssthresh = win / 2, cwnd = 1
//	spurious loss:                cwnd, dwnd and ssthresh as before, if that is more (reno.h)
//
// Without a queue win grows by alpha win^k per round trip. Between losses with the probability p it
// goes from (1 - beta) W to W with W^(2 - k) = alpha (2 - k) / (p (1 - (1 - beta)^(2 - k))): W is
// in proportion to p^-0.8, where Reno's is to p^-0.5. When a queue stands dwnd is 0, and what
// remains is Reno.
//
// The formulas and constants are as the two are quoted elsewhere; their text was not at hand, so no
// sections are named.
//
// Where we differ from the draft and the paper, and why
//   - gamma is constant. A later gamma that adapts to short buffers is left out: it needs a memory
//     of the queue at each loss.
//   - low_window is compared with the whole window: under random losses cwnd alone stays small
//     however large win is.
//   - ssthresh after a timeout is half of the whole window, as RFC 5681 has half of what was in
//     flight. After a pause it is at least 3/4 of the whole window (RFC 2861), and dwnd is 0.
//   - The windows grow only if they were the limit (RFC 2861). L = 2, as newreno.c has it.
#include "common/base/portable_math.h"
#include "sender/cc/reno.h"

#include <math.h>

struct config {
	struct slow_start slow_start;
	double alpha, beta, k, zeta;
	double gamma_segs, low_segs;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"alpha", "0.125", "the window grows by alpha win^k per round trip without a queue",
		UNIT_NONE, PARAM_F64(struct config, alpha), 0, 10},
	{"beta", "0.5", "part of the window that a loss takes, if dwnd leaves it as much",
		UNIT_NONE, PARAM_F64(struct config, beta), 0.01, 0.99},
	{"k", "0.75", "exponent of that growth", UNIT_NONE, PARAM_F64(struct config, k), 0, 1},
	{"zeta", "1", "part of the queued segments by which dwnd shrinks", UNIT_NONE,
		PARAM_F64(struct config, zeta), 0, 100},
	{"gamma", "30", "shrink dwnd when as many segments are queued", UNIT_NONE,
		PARAM_F64(struct config, gamma_segs), 0, 1e6},
	{"low_window", "38", "dwnd grows from this window on, in segments", UNIT_NONE,
		PARAM_F64(struct config, low_segs), 0, 1e6},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

#define NO_RTT UINT64_MAX

struct compound {
	struct reno reno; // of cwnd
	struct cc_out reno_out; // cwnd itself; cc_out of the flow is win
	double dwnd_segs, prior_dwnd_segs; // now, before the last reduction
	double diff_segs; // at the end of the last round trip
	uint64_t base_ns; // of the connection
	uint64_t sum_ns; // of this round trip's samples
	uint64_t round_ns; // segments sent from here on end the round trip
	uint32_t samples; // of this round trip
};
static_assert(sizeof(struct compound) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct compound);

static void start_round(struct compound *c, uint64_t now_ns) {
	c->round_ns = now_ns;
	c->sum_ns = 0;
	c->samples = 0;
}

static void set_window(const struct compound *c, struct cc_out *out) {
	out->cwnd_segs = c->reno_out.cwnd_segs + c->dwnd_segs;
}

static void compound_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct compound *c = state;

	*c = (struct compound){.base_ns = NO_RTT};
	start_round(c, now_ns);
	reno_init(&c->reno, &cfg->slow_start, out);
	c->reno_out = *out;
}

static void measure(struct compound *c, const struct cc_ack *ack) {
	if (ack->rtt_ns == 0)
		return;
	if (ack->rtt_ns < c->base_ns)
		c->base_ns = ack->rtt_ns;
	c->sum_ns += ack->rtt_ns;
	c->samples++;
}

static void end_round(struct compound *c, const struct config *cfg, bool may_grow, double win) {
	double rtt;

	if (c->samples == 0)
		return;
	rtt = (double)c->sum_ns / c->samples;
	c->diff_segs = win * (1 - (double)c->base_ns / rtt);
	if (c->diff_segs >= cfg->gamma_segs)
		c->dwnd_segs = fmax(c->dwnd_segs - cfg->zeta * c->diff_segs, 0);
	else if (may_grow && win >= cfg->low_segs)
		c->dwnd_segs += fmax(cfg->alpha * portable_pow(win, cfg->k) - 1, 0);
}

static void compound_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct compound *c = state;
	struct reno *r = &c->reno;
	double win = out->cwnd_segs;
	bool may_grow = reno_may_grow(r, ack);
	bool avoidance = c->reno_out.cwnd_segs >= r->ssthresh_segs;

	measure(c, ack);
	if (may_grow) {
		double left = reno_slow_start(r, &cfg->slow_start, ack->acked_segs, &c->reno_out);

		c->reno_out.cwnd_segs += left / win;
	}
	// Until a recovery is over its samples add to those of the round trip that it interrupted.
	if (ack->in_sequence && !ack->in_recovery && !ack->in_loss && ack->sent_ns >= c->round_ns) {
		if (avoidance)
			end_round(c, cfg, may_grow, win);
		start_round(c, ack->now_ns);
	}
	set_window(c, out);
	r->slow_start = c->reno_out.cwnd_segs < r->ssthresh_segs;
}

static void compound_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct compound *c = state;
	double half = c->reno_out.cwnd_segs / 2;

	c->prior_dwnd_segs = c->dwnd_segs;
	c->dwnd_segs = fmax(out->cwnd_segs * (1 - cfg->beta) - half, 0);
	reno_on_loss(&c->reno, half, &c->reno_out);
	set_window(c, out);
}

static void compound_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct compound *c = state;

	if (!c->reno.episode && !loss->repeated)
		c->prior_dwnd_segs = c->dwnd_segs;
	reno_on_rto(&c->reno, out->cwnd_segs / 2, loss, &c->reno_out);
	c->dwnd_segs = 0;
	start_round(c, loss->now_ns);
	set_window(c, out);
}

static void compound_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct compound *c = state;

	reno_on_spurious(c, config, now_ns, &c->reno_out);
	c->dwnd_segs = fmax(c->dwnd_segs, c->prior_dwnd_segs);
	set_window(c, out);
}

static void compound_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct compound *c = state;

	if (!cfg->slow_start.idle_restart)
		return;
	c->reno.ssthresh_segs = fmax(c->reno.ssthresh_segs, 0.75 * out->cwnd_segs);
	c->dwnd_segs = 0;
	slow_start_idle(&cfg->slow_start, &c->reno_out);
	start_round(c, now_ns);
	set_window(c, out);
}

static void compound_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct compound *c = state;

	out[0] = (float)c->reno.ssthresh_segs;
	out[1] = (float)c->dwnd_segs;
	out[2] = (float)c->diff_segs;
	out[3] = c->base_ns == NO_RTT ? 0 : (float)c->base_ns;
}

const struct cc_ops cc_compound = {
	.name = "compound",
	.summary = "Compound: Reno's window plus one that follows the delay (INFOCOM 2006)",
	.reference = "Sridharan, Tan, Bansal, Thaler: Compound TCP: A New TCP Congestion Control "
		     "for High-Speed and Long Distance Networks, draft-sridharan-tcpm-ctcp-02",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct compound),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs", "dwnd_segs", "diff_segs", "base_rtt_ns"},
	.given_window = reno_given_window,
	.init = compound_init,
	.on_ack = compound_on_ack,
	.on_loss = compound_on_loss,
	.on_rto = compound_on_rto,
	.on_spurious = compound_on_spurious,
	.on_idle = compound_on_idle,
	.observe = compound_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
