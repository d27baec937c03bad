// SPDX-License-Identifier: BSD-3-Clause
// Prague (draft-briscoe-iccrg-prague-congestion-control-03; requirements: RFC 9331, section 4.3):
// DCTCP for the Internet, the Scalable control beside which DualPI2 was designed.
//
//	RTT_virt = max(srtt, rtt_virt)                           5 ms behave as 25 ms
//	M      = marked / acknowledged segments of an observation window, at least RTT_virt long
//	alpha  = (1 - g) alpha + g M                             at its end; 1 until the first mark
//	ACK:   cwnd += unmarked (srtt / RTT_virt)^2 / cwnd       also while it reduces
//	ECE:   cwnd = ssthresh = max(cwnd (1 - alpha / 2), 2)    once per RTT_virt
//	loss:  cwnd = ssthresh = max(cwnd / 2, 2)                once per window
//	slow start and timeouts as Reno (reno.h)
//	pacing: 2 cwnd / srtt in slow start, then 1.2 cwnd / srtt; a host with TSO sends bursts of
//	        0.25 ms
//
// With a marking probability p that changes little, growth and reductions are in balance at W = 2
// (1 - p) / p segments per RTT_virt: the rate falls with p itself, where Reno's falls with its
// root.
//
// The group's `ecn:` is ect1 by default, which puts it into the L4S queue of DualPI2; without ECN
// it is Reno with a slower growth on short paths (rtt_virt: 0 turns that off). The receiver counts
// marks (`ecn_feedback: accecn`, RFC 9768). If it has only classic feedback (RFC 3168), this is
// Reno whose packets are ECT(0) (RFC 9331, sections 4.2 and 4.3).
//
// Where we differ from the draft, and why
//   - RTT_virt holds from the first ACK on; Linux begins with it after some rounds, which short
//     flows would not reach.
//   - There is no fall-back to Reno's reduction at bottlenecks with Classic ECN, nor for RTTs that
//     vary.
//   - Windows are real numbers of at least two segments, not of less than one.
//   - Pacing at 1.2 instead of 1: the transport lets a window grow only if it was the limit.
//   - Segments are counted, not bytes. Retransmissions are not ECN capable (RFC 3168).
#include "sender/cc/marks.h"
#include "sender/cc/reno.h"

#define PACING_SLOW_START 2.0
#define PACING_AVOIDANCE 1.2

struct config {
	struct slow_start slow_start;
	double g, alpha;
	uint64_t rtt_virt_ns;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"g", "0.0625", "weight of a window's share of marks in alpha", UNIT_NONE,
		PARAM_F64(struct config, g), 1e-4, 1},
	{"alpha", "1", "alpha until something was marked", UNIT_NONE,
		PARAM_F64(struct config, alpha), 0, 1},
	{"rtt_virt", "25ms",
		"flows of shorter RTTs grow and reduce as one of this; 0: each by its own",
		UNIT_TIME_NS, PARAM_U64(struct config, rtt_virt_ns), 0, 1e10},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

struct prague {
	struct reno reno;
	struct marks marks;
	uint64_t rtt_virt_ns; // as of the last ACK
	uint64_t reduce_ns; // from here on a mark reduces
	uint32_t mss_bits;
	bool repairs; // this episode has a loss
};
static_assert(sizeof(struct prague) <= CC_STATE_MAX_BYTES, "state too large");
RENO_FIRST(struct prague);

static uint64_t rtt_virt_ns(const struct config *cfg, uint64_t srtt_ns) {
	return time_max(srtt_ns, cfg->rtt_virt_ns);
}

static void set_pacing(const struct prague *r, uint64_t srtt_ns, struct cc_out *out) {
	bool slow_start = out->cwnd_segs < r->reno.ssthresh_segs;
	double gain = slow_start ? PACING_SLOW_START : PACING_AVOIDANCE;

	if (srtt_ns > 0)
		out->pacing_bps = gain * out->cwnd_segs * r->mss_bits * 1e9 / (double)srtt_ns;
}

static void prague_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct prague *r = state;

	*r = (struct prague){
		.marks.alpha = cfg->alpha,
		.marks.hold = true,
		.mss_bits = 8 * mss_bytes,
		.rtt_virt_ns = rtt_virt_ns(cfg, rtt_ns),
		.marks.window_ns = now_ns,
	};
	reno_init(&r->reno, &cfg->slow_start, out);
	set_pacing(r, rtt_ns, out);
}

static void grow(
	struct prague *r, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	double ratio = ack->classic_ecn ? 1 : (double)ack->srtt_ns / (double)r->rtt_virt_ns;
	double unmarked = (double)ack->acked_segs - ack->ce_segs;

	unmarked = reno_slow_start(&r->reno, &cfg->slow_start, unmarked, out);
	out->cwnd_segs += unmarked * ratio * ratio / out->cwnd_segs;
}

static void prague_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct prague *r = state;

	if (!ack->in_recovery)
		r->repairs = r->reno.episode = false;
	if (ack->in_recovery && ack->lost_segs > 0 && !r->repairs) { // after an ECN echo
		r->repairs = true;
		reno_on_loss(&r->reno, out->cwnd_segs / 2, out);
	}
	r->rtt_virt_ns = rtt_virt_ns(cfg, ack->srtt_ns);
	marks_observe(&r->marks, cfg->g, false, r->rtt_virt_ns, ack);
	if (ack->ce_segs > 0 && ack->now_ns >= r->reduce_ns) {
		r->reduce_ns = ack->now_ns + r->rtt_virt_ns;
		reno_on_loss(&r->reno, out->cwnd_segs * (1 - r->marks.alpha / 2), out);
	}
	if (ack->in_sequence && ack->cwnd_limited && !r->repairs && r->rtt_virt_ns > 0)
		grow(r, cfg, ack, out);
	r->reno.slow_start = out->cwnd_segs < r->reno.ssthresh_segs;
	set_pacing(r, ack->srtt_ns, out);
}

static void prague_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct prague *r = state;

	// prague_on_ack answers it: the transport's windows last for an RTT, not RTT_virt.
	if (loss->ecn && !loss->classic_ecn)
		return;
	r->repairs = true;
	reno_on_loss(&r->reno, out->cwnd_segs / 2, out);
}

static void prague_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct prague *r = state;

	reno_on_rto(&r->reno, out->cwnd_segs / 2, loss, out);
}

static void prague_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct prague *r = state;

	reno_on_spurious(r, config, now_ns, out);
	r->repairs = false;
}

static void prague_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct prague *r = state;

	out[0] = (float)r->reno.ssthresh_segs;
	out[1] = (float)r->marks.alpha;
	out[2] = r->marks.last_m;
	out[3] = (float)r->rtt_virt_ns;
}

const struct cc_ops cc_prague = {
	.name = "prague",
	.summary = "Prague, the Scalable control of L4S (RFC 9331); ecn: ect1 by default",
	.reference = "draft-briscoe-iccrg-prague-congestion-control; RFC 9331 (L4S)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct prague),
	.ecn = true,
	.answers_in_on_ack = true,
	.codepoint = CC_ECN_ECT1,
	.burst_ns = 250 * NS_PER_US,
	.feedback = CC_FEEDBACK_ACCECN,
	.observed = {"ssthresh_segs", "alpha", "marked", "rtt_virt_ns"},
	.given_window = reno_given_window,
	.init = prague_init,
	.on_ack = prague_on_ack,
	.on_loss = prague_on_loss,
	.on_rto = prague_on_rto,
	.on_spurious = prague_on_spurious,
	.on_idle = reno_on_idle,
	.observe = prague_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
