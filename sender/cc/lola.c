// SPDX-License-Identifier: BSD-3-Clause
// TCP LoLa (Hock, Neumeister, Zitterbart, Bless: "TCP LoLa: Congestion Control for Low Latencies
// and High Throughput", LCN 2017): keeps the queueing delay between two bounds whatever the number
// of flows, and lets each flow build the same part of the queue.
//
// For each RTT sample, all flows with the same constants:
//
//	RTTnow = smallest RTT of the last 40 ms (tmeasure)                          (4)
//	RTTmin = min(RTTmin, RTTnow)                                               (5)
//	Qdelay = RTTnow - RTTmin                                                   (6)
//	Qdata  = Qdelay cwnd / RTTnow            our part of the queue             (7)
//
// SLOW START          cwnd += acked;  RTT - RTTmin > 2 Qlow -> CUBIC INCREASE
// CUBIC INCREASE      cwnd = C (t - K)^3 + cwnd_max, t since the last reduction     (1)
//                     Qdelay > Qlow -> FAIR FLOW BALANCING
// FAIR FLOW BALANCING X = (t / phi)^3 bytes, t in ms since its start                (2)
//                     Qdata < X: cwnd += X - Qdata;  Qdelay > Qtarget -> HOLD
// HOLD                cwnd as it is, for tsync = 250 ms -> TAILORED DECREASE
// TAILORED DECREASE   cwnd_max = cwnd
//                     K    = cbrt((cwnd_max - gamma RTTmin cwnd_max / RTTnow) / C)  (3)
//                     cwnd = (cwnd - Qdata) gamma -> CUBIC INCREASE
//
// (cwnd - Qdata) gamma is gamma RTTmin cwnd / RTTnow, so (1) starts at the reduced window. X grows
// for all flows alike, and a flow that has less than X queued takes it: after a few rounds all have
// the same part. One flow needs phi cbrt(Qtarget rate) ms to fill the queue: 6.4 s at 10 Gbit/s,
// and n flows cbrt(n) times less.
//
// If the queue was not seen nearly empty in 100 decreases, RTTmin no longer holds, and is measured
// again.
//
// What the paper leaves open, and what we do
//   - How often (2) is applied. Qdata shows a growth only after a round trip, and RTTnow after up
//     to tmeasure more. Applied to each ACK it would be added many times over, so it is applied
//     once per srtt + tmeasure.
//   - The state after slow start has no reduction before it: K = 0, cwnd_max = cwnd.
//   - After a decrease Qdelay is that of before, for a round trip; and other flows, which saw
//     Qtarget up to a difference in RTT later, still have their part queued. FAIR FLOW BALANCING
//     that starts then has a longer t, and so a larger X. Hence it starts at the earliest with the
//     ACK of a segment sent since, and tsync after the decrease. With 21 and 101 ms at 10 Gbit/s
//     the nearer flow got 0.66 of the link without the second condition.
//   - (2) at most doubles the window at once, as slow start. X of the paper's constants is far
//     below a window; with a small phi, and a limit of the queue below Qtarget, it grew to
//     thousands of times what the network held.
//   - FAIR FLOW BALANCING is not left when the queue gets shorter than Qlow (a flow ended): X takes
//     what is free.
//   - Nearly empty is Qdelay <= Qlow / 2.
//   - Loss. It is for slow start only in the paper. Here it leaves `backoff` of the window, with
//     cwnd_max and K to match, and a timeout starts slow start again. An ECN echo counts as a loss.
//     After a spurious one, state and window are as before.
//   - Pacing: the paper's senders used Linux's fq. Hence its 2 cwnd / srtt in slow start and 1.2
//     cwnd / srtt later, where srtt is RTTmin + Qtarget at most: after a link was down for a minute
//     a flow crept for more than two.
//   - Windows are real numbers. (The authors' kernel module v1.5 has other constants: Qlow 0.5 ms,
//     gamma 927/1024, X in packets of (t / 75 ms)^3, 5 segments at least.)
#include "common/base/minmax.h"
#include "common/base/portable_math.h"
#include "sender/cc/cc.h"

struct config {
	double initial_segs, min_segs;
	double qlow_ns, qtarget_ns;
	uint64_t sync_ns, measure_ns;
	double gamma, phi_ms, c, backoff;
	uint64_t decreases;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{"initial", "10", "initial window in segments (RFC 6928)", UNIT_NONE,
		F64(initial_segs, 1, 1000)},
	{"min_cwnd", "2", "smallest window in segments", UNIT_NONE, F64(min_segs, 1, 1000)},
	{"qlow", "1ms",
		"queueing delay up to which the window grows freely; "
		"the same for all flows",
		UNIT_TIME_NS, F64(qlow_ns, 1e3, 1e10)},
	{"qtarget", "5ms", "queueing delay at which all hold; the same for all flows", UNIT_TIME_NS,
		F64(qtarget_ns, 1e3, 1e10)},
	{"hold", "250ms", "time until the decrease, in which all flows see the queue (tsync)",
		UNIT_TIME_NS, PARAM_U64(struct config, sync_ns), 0, 1e11},
	{"measure", "40ms", "RTTnow is the smallest RTT of this time (tmeasure)", UNIT_TIME_NS,
		PARAM_U64(struct config, measure_ns), 1, 1e10},
	{"gamma", "0.9501953125",
		"part of the bandwidth-delay product a decrease leaves (973/1024)", UNIT_NONE,
		F64(gamma, 0.1, 1)},
	{"phi", "35", "X is (ms / phi)^3 bytes", UNIT_NONE, F64(phi_ms, 0.1, 10000)},
	{"c", "0.4", "steepness of the cubic increase, segments per s^3", UNIT_NONE,
		F64(c, 0.001, 1000)},
	{"backoff", "0.7", "window factor on a loss or an ECN echo", UNIT_NONE,
		F64(backoff, 0.1, 1)},
	{"decreases", "100",
		"decreases without a nearly empty queue after which "
		"RTTmin is measured again",
		UNIT_NONE, PARAM_U64(struct config, decreases), 1, 1e9},
	PARAM_END,
};

#define PACING_SLOW_START 2.0
#define PACING 1.2
#define GROWTH_MAX 1.5 // of the window per ACK in CUBIC INCREASE, as in RFC 9438
#define NO_RTT UINT64_MAX

#define MODES(V)                                                                                   \
	V(MODE_SLOW_START, "slow_start")                                                           \
	V(MODE_CUBIC, "cubic")                                                                     \
	V(MODE_FAIR, "fair")                                                                       \
	V(MODE_HOLD, "hold")
enum mode { MODES(CC_MODE_CONSTANT) };

// What a loss or a timeout changes besides the window.
struct phase {
	uint64_t start_ns; // of CUBIC INCREASE's t, FAIR FLOW BALANCING's t, or HOLD
	uint64_t after_ns; // CUBIC INCREASE: samples of segments sent from here on count
	double cwnd_max_segs, k_s;
	uint8_t mode;
};

struct lola {
	struct minmax now; // RTTnow
	uint64_t min_ns; // RTTmin
	uint64_t next_ns; // FAIR FLOW BALANCING: the next growth
	uint64_t last_ns; // last ACK
	struct phase phase, undo; // now, and before the last loss or timeout
	double undo_segs; // the window then
	float qdelay_ns, qdata_segs, x_segs;
	uint32_t mss_bytes;
	uint32_t far; // decreases since the queue was nearly empty
	bool measured; // RTTnow has a sample
};
static_assert(sizeof(struct lola) <= CC_STATE_MAX_BYTES, "state too large");

static double lola_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs > cfg->min_segs ? cfg->initial_segs : cfg->min_segs;
}

static void lola_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct lola *l = state;

	*l = (struct lola){.min_ns = NO_RTT, .mss_bytes = mss_bytes, .last_ns = now_ns};
	out->cwnd_segs = lola_given_window(config);
	out->pacing_bps = 0;
}

static void measure(struct lola *l, const struct config *cfg, const struct cc_ack *ack,
	const struct cc_out *out) {
	uint64_t now_ns = ack->rtt_ns;

	if (l->measured)
		now_ns = minmax_running_min(&l->now, cfg->measure_ns, ack->now_ns, ack->rtt_ns);
	else
		minmax_reset(&l->now, ack->now_ns, ack->rtt_ns);
	l->measured = true;
	if (now_ns < l->min_ns)
		l->min_ns = now_ns;
	l->qdelay_ns = (float)(now_ns - l->min_ns);
	l->qdata_segs = l->qdelay_ns * (float)out->cwnd_segs / (float)now_ns;
	if ((double)l->qdelay_ns <= cfg->qlow_ns / 2)
		l->far = 0;
}

static void start(struct lola *l, enum mode mode, uint64_t now_ns) {
	l->phase.mode = (uint8_t)mode;
	l->phase.start_ns = l->last_ns = now_ns;
}

// A reduction to `left` segments: from there on (1).
static void reduce(struct lola *l, const struct config *cfg, double left, uint64_t now_ns,
	struct cc_out *out) {
	l->phase.cwnd_max_segs = out->cwnd_segs;
	out->cwnd_segs = left > cfg->min_segs ? left : cfg->min_segs;
	l->phase.k_s = portable_cbrt((l->phase.cwnd_max_segs - out->cwnd_segs) / cfg->c);
	l->phase.after_ns = now_ns + (cfg->sync_ns > l->min_ns ? cfg->sync_ns - l->min_ns : 0);
	l->x_segs = 0;
	start(l, MODE_CUBIC, now_ns);
}

static void decrease(
	struct lola *l, const struct config *cfg, uint64_t now_ns, struct cc_out *out) {
	double left = (out->cwnd_segs - (double)l->qdata_segs) * cfg->gamma;

	reduce(l, cfg, left, now_ns, out);
	if (++l->far >= cfg->decreases) {
		l->far = 0;
		l->min_ns = NO_RTT;
	}
}

static void grow_cubic(
	struct lola *l, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	double t_s, target, cwnd = out->cwnd_segs;

	if (!ack->cwnd_limited || ack->in_recovery)
		l->phase.start_ns += ack->now_ns - l->last_ns; // this time does not count
	t_s = (double)(ack->now_ns - l->phase.start_ns) * 1e-9 - l->phase.k_s;
	target = cfg->c * t_s * t_s * t_s + l->phase.cwnd_max_segs;
	target = target < GROWTH_MAX * cwnd ? target : GROWTH_MAX * cwnd;
	if (target > cwnd)
		out->cwnd_segs = target;
}

static void balance(
	struct lola *l, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	double t = (double)(ack->now_ns - l->phase.start_ns) * 1e-6 / cfg->phi_ms;
	double x_segs = t * t * t / l->mss_bytes, lacking = x_segs - (double)l->qdata_segs;

	l->x_segs = (float)x_segs;
	if (lacking <= 0 || ack->now_ns < l->next_ns || !ack->cwnd_limited || ack->in_recovery)
		return;
	l->next_ns = ack->now_ns + ack->srtt_ns + cfg->measure_ns;
	out->cwnd_segs += lacking < out->cwnd_segs ? lacking : out->cwnd_segs;
}

// The state machine's transitions by a sample of the queue.
static void move_on(
	struct lola *l, const struct config *cfg, const struct cc_ack *ack, struct cc_out *out) {
	double qdelay_ns = (double)l->qdelay_ns;

	if (l->phase.mode == MODE_SLOW_START
		&& (double)(ack->rtt_ns - l->min_ns) > 2 * cfg->qlow_ns) {
		l->phase.cwnd_max_segs = out->cwnd_segs;
		l->phase.k_s = 0;
		l->phase.after_ns = 0;
		start(l, MODE_CUBIC, ack->now_ns);
	}
	if (l->phase.mode == MODE_CUBIC && ack->sent_ns >= l->phase.after_ns
		&& qdelay_ns > cfg->qlow_ns) {
		l->next_ns = ack->now_ns;
		start(l, MODE_FAIR, ack->now_ns);
	}
	if (l->phase.mode == MODE_FAIR && qdelay_ns > cfg->qtarget_ns)
		start(l, MODE_HOLD, ack->now_ns);
	if (l->phase.mode == MODE_HOLD && ack->now_ns - l->phase.start_ns >= cfg->sync_ns)
		decrease(l, cfg, ack->now_ns, out);
}

// At a pace of one long RTT hardly an ACK comes that would say it is over: no longer than LoLa lets
// it become counts.
static void set_pace(
	const struct lola *l, const struct config *cfg, uint64_t srtt_ns, struct cc_out *out) {
	double gain = l->phase.mode == MODE_SLOW_START ? PACING_SLOW_START : PACING;
	double most_ns = (double)l->min_ns + cfg->qtarget_ns; // without a sample longer than any
	double rtt_ns = (double)srtt_ns < most_ns ? (double)srtt_ns : most_ns;

	if (srtt_ns > 0)
		out->pacing_bps = gain * out->cwnd_segs * l->mss_bytes * 8e9 / rtt_ns;
}

static void lola_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct lola *l = state;

	if (ack->rtt_ns > 0) {
		measure(l, cfg, ack, out);
		move_on(l, cfg, ack, out);
	}
	if (l->phase.mode == MODE_SLOW_START && ack->cwnd_limited && !ack->in_recovery)
		out->cwnd_segs += ack->acked_segs;
	else if (l->phase.mode == MODE_CUBIC)
		grow_cubic(l, cfg, ack, out);
	else if (l->phase.mode == MODE_FAIR)
		balance(l, cfg, ack, out);
	l->last_ns = ack->now_ns;
	set_pace(l, cfg, ack->srtt_ns, out);
}

static void remember(struct lola *l, const struct cc_out *out) {
	l->undo_segs = out->cwnd_segs;
	l->undo = l->phase;
}

static void lola_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct lola *l = state;

	remember(l, out);
	reduce(l, cfg, cfg->backoff * out->cwnd_segs, loss->now_ns, out);
}

static void lola_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct lola *l = state;

	if (!loss->repeated)
		remember(l, out);
	start(l, MODE_SLOW_START, loss->now_ns);
	out->cwnd_segs = cfg->min_segs;
}

static void lola_on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct lola *l = state;

	if (l->undo_segs <= out->cwnd_segs)
		return;
	out->cwnd_segs = l->undo_segs;
	l->phase = l->undo;
}

static void lola_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	struct lola *l = state;
	double initial = lola_given_window(config);

	start(l, MODE_SLOW_START, now_ns);
	if (out->cwnd_segs > initial)
		out->cwnd_segs = initial;
}

static void lola_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct lola *l = state;

	out[0] = l->qdelay_ns;
	out[1] = l->qdata_segs;
	out[2] = l->x_segs;
	out[3] = (float)l->phase.k_s;
}

static uint8_t lola_mode(const void *state, const void *config) {
	const struct lola *l = state;

	return l->phase.mode;
}

const struct cc_ops cc_lola = {
	.name = "lola",
	.summary = "TCP LoLa: a bounded queueing delay, shared alike (LCN 2017)",
	.reference = "Hock, Neumeister, Zitterbart, Bless: TCP LoLa: Congestion Control for Low "
		     "Latencies and High Throughput, LCN 2017",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct lola),
	.prr = true,
	.ecn = true,
	.observed = {"qdelay_ns", "qdata_segs", "x_segs", "k_s"},
	.given_window = lola_given_window,
	.init = lola_init,
	.on_ack = lola_on_ack,
	.on_loss = lola_on_loss,
	.on_rto = lola_on_rto,
	.on_spurious = lola_on_spurious,
	.on_idle = lola_on_idle,
	.observe = lola_observe,
	.mode = lola_mode,
	.modes = {MODES(CC_MODE_TEXT)},
};
