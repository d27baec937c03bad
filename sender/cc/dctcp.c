// SPDX-License-Identifier: BSD-3-Clause
// DCTCP (RFC 8257; Alizadeh and others: Data Center TCP (DCTCP), SIGCOMM 2010): Reno that reduces
// its window by the share of the packets that were marked.
//
//	M      = marked / acknowledged segments of an observation window, about a round trip
//	alpha  = (1 - g) alpha + g M                             at its end (3.3); first 1 (4.2)
//	ECE:   cwnd = ssthresh = max(cwnd (1 - alpha / 2), 2)    once per window of data
//	loss:  cwnd = ssthresh = max(cwnd / 2, 2)                likewise (3.5); after an ECE of the
//	                                                         window half of what is in flight
//	                                                         then (RFC 5681, equation 4)
//	otherwise as Reno (reno.h): slow start, cwnd += acked / cwnd, timeouts
//
// An observation window ends with the ACK of the first segment sent after the last one ended. M is
// exact only if the receiver reports each change of CE at once (3.2): `ecn_feedback` of the group
// is `dctcp` unless it says otherwise (`accecn` is exact also if ACKs are lost).
// The group's `ecn:` is ect0 unless it says otherwise. Off, this is Reno, as where ECN was not
// agreed, or where the peer has only classic feedback (RFC 3168), which does not say how many
// packets were marked. The echo of RFC 8257 is not negotiated: the sender takes what its group says
// of the receiver for granted.
//
// In the model of the SIGCOMM paper (equation 7) N flows of equal RTT oscillate with
// alpha = sqrt(2 / W), W = (C RTT + K) / N segments, for a step at K, and the queue swings by N W
// alpha / 2 segments below K + N. Ours has 0.82 to 0.92 of that alpha for one to four flows
// (tests/sim/test_dctcp.py), because the pipe already shrinks while the last marks are on their
// way.
//
// Where we differ from the RFC, and why
//   - Segments are counted, not bytes; SACKed ones too. They are all of one size, but for the last
//     one.
//   - The ACK that ends an observation window and starts a reduction reduces by the alpha before
//     it: the transport reports a reduction before the ACK that causes it. The next one knows the
//     new alpha.
//   - cwnd and alpha are real numbers, so that a small alpha still reduces. On hosts that count in
//     ticks (`hz`) they are Linux's: alpha has 1024 steps (marks.h), and the window's cut is whole
//     segments. Behind CoDel at 100 Mbit/s and 20 ms these hosts get three times as many marks, as
//     Linux does.
//   - SYNs and retransmissions are not ECN capable (RFC 3168), of which section 3.6 leaves the
//     first open.
#include "sender/cc/marks.h"
#include "sender/cc/reno.h"

struct config {
	struct slow_start slow_start;
	double g, alpha;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"g", "0.0625", "weight of a window's share of marks in alpha (RFC 8257 4.2: 1/16)",
		UNIT_NONE, PARAM_F64(struct config, g), 1e-4, 1},
	{"alpha", "1", "alpha before anything was marked: 1 is careful, 0 keeps the first windows",
		UNIT_NONE, PARAM_F64(struct config, alpha), 0, 1},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

struct dctcp {
	struct reno reno;
	struct marks marks;
	bool echoed; // this episode has answered an echo, and no loss yet
};
static_assert(sizeof(struct dctcp) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct dctcp);

static void dctcp_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct dctcp *d = state;

	*d = (struct dctcp){.marks.alpha = cfg->alpha, .marks.window_ns = now_ns};
	reno_init(&d->reno, &cfg->slow_start, out);
}

static void dctcp_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct dctcp *d = state;

	d->echoed = d->echoed && ack->in_recovery;
	if (d->echoed && ack->lost_segs > 0) {
		d->echoed = false;
		reno_on_loss(&d->reno, fmin(ack->prior_inflight_segs / 2.0, out->cwnd_segs), out);
	}
	marks_observe(&d->marks, cfg->g, ack->tick_ns > 0, 0, ack);
	reno_on_ack(&d->reno, &cfg->slow_start, ack, out);
}

static void dctcp_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct dctcp *d = state;
	bool counted = loss->ecn && !loss->classic_ecn;
	double cut = counted ? d->marks.alpha / 2 : 0.5;

	d->echoed = counted;
	reno_on_loss(&d->reno, reno_less(&d->reno, cut, out), out);
}

static void dctcp_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct dctcp *d = state;

	reno_on_rto(&d->reno, out->cwnd_segs / 2, loss, out);
}

static void dctcp_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct dctcp *d = state;

	out[0] = (float)d->reno.ssthresh_segs;
	out[1] = (float)d->marks.alpha;
	out[2] = d->marks.last_m;
}

const struct cc_ops cc_dctcp = {
	.name = "dctcp",
	.summary = "DCTCP: reduces by the share of marked packets (RFC 8257); ecn: ect0 by default",
	.reference = "RFC 8257 (DCTCP); Alizadeh and others: Data Center TCP, SIGCOMM 2010",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct dctcp),
	.prr = true,
	.ecn = true,
	.answers_in_on_ack = true,
	.codepoint = CC_ECN_ECT0,
	.feedback = CC_FEEDBACK_DCTCP,
	.observed = {"ssthresh_segs", "alpha", "marked"},
	.given_window = reno_given_window,
	.init = dctcp_init,
	.on_ack = dctcp_on_ack,
	.on_loss = dctcp_on_loss,
	.on_rto = dctcp_on_rto,
	.on_spurious = reno_on_spurious,
	.on_idle = reno_on_idle,
	.observe = dctcp_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
