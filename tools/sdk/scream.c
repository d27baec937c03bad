// SPDX-License-Identifier: BSD-3-Clause
// SCReAM version 2 (draft-johansson-ccwg-rfc8298bis-screamv2, the text at 00d8f51 of
// github.com/IngJohEricsson/draft-johansson-ccwg-scream-bis; it obsoletes RFC 8298): a reference
// window for interactive media, and a target bitrate from it. In segments:
//
//	each 25 ms, or RTT if that is less, one answer to what came since:
//	loss    ref *= 0.7
//	mark    ref *= 0.8, with l4s 1 - alpha / 2 / r     r = max(1, rtt / 25 ms)
//	qdelay  ref *= 1 - alpha_v / 2 / r                 alpha_v = qdelay_avg / (target/2) - 1
//	        one way; the average falls to a smaller sample at once, and rises by 1/4
//	alpha   the part of marked segments, gain 1/8 up and 1/128 down
//
//	each ACK   ref += acked and unmarked / ref * min(1, rtt / 25 ms) * near(1/4) * calm
//	                  * (1 + (0.02 ref) * part of 100 RTTs since congestion * near)
//	near  = (8 (ref - ref_i) / ref_i)^2, from 0.1 to 1: slow at ref_i, where congestion began
//	calm  = 1 - dev / th, at least 0.1, with `steady`: dev follows qdelay / 25 ms, gain 1/64
//	ref is at most 1.5 times what was in flight
//
//	bitrate = 8 ref / rtt / 1.2, less for few segments;   pacing = 1.5 bitrate
//	window  = ref (1.5 + 1.5 max(0, 1 - dev / th)): large frames leave at once
//	target  = 60 to 400 ms: mean + deviation of the last queueing delays, 1.5 times with losses,
//	          as beside flows that fill the queue
//
// So a flow that always has data keeps a queue of target / 2, and a marking queue (l4s) gives it
// two marks per round trip.
//
// What it takes from the interface: the one-way delay, memory for the delays' history, a timer,
// marks of each ACK.
//
// Where it differs from the text
//   - The transport is TCP's: it finds losses, once per window (on_loss), and sends again. A mark
//     without l4s is answered once per window, too. A timeout leaves the smallest window.
//   - There is no media queue to look at: the bitrate is what `media: {fraction: 0.67}` makes of
//     the pacing rate. Pacing is not relaxed near the largest bitrate.
//   - The base delay is the smallest of the connection: no drift of clocks is looked for.
//   - Below the smallest bitrate it does not pace.
#include <weir/cc.h>

#define MS 1000000.0
#define VIRTUAL_RTT (25 * MS)
#define BETA_LOSS 0.7
#define BETA_ECN 0.8
#define MIN_WINDOW_BYTES 3000.0
#define TARGET_MOST (400 * MS)
#define MUL_INCREASE 0.02
#define HEAD_ROOM 1.5
#define POST_CONGESTION_RTTS 100
#define PACING_HEAD_ROOM 1.5
#define OVERHEAD 1.5 // REF_WND_OVERHEAD_MIN, and what _MAX is above it
#define HISTORY_NS 50000000 // between two of the delays in it
#define HISTORY 200
#define SHORT_HISTORY 50

struct config {
	double target_ns, rmin_bps, rmax_bps;
	bool l4s, steady;
};

static const struct param params[] = {
	{"target", "60ms", "least target of the queueing delay (QDELAY_TARGET_LO)", UNIT_TIME_NS,
		PARAM_F64(struct config, target_ns), .min = 1e6, .max = 4e8},
	{"rmin", "150kbit", "smallest bitrate (TARGET_BITRATE_MIN)", UNIT_RATE_BPS,
		PARAM_F64(struct config, rmin_bps), .min = 1e3, .max = 1e12},
	{"rmax", "1.5Mbit", "largest bitrate (TARGET_BITRATE_MAX)", UNIT_RATE_BPS,
		PARAM_F64(struct config, rmax_bps), .min = 1e3, .max = 1e12},
	{"l4s", "no", "answers marks in proportion (IS_L4S)", UNIT_NONE,
		PARAM_BOOL(struct config, l4s)},
	{"steady", "no", "grows little while the delay varies, as an option of the text", UNIT_NONE,
		PARAM_BOOL(struct config, steady)},
	PARAM_END,
};

struct state {
	struct cc_flow *flow; // its memory: the last queueing delays, in ms
	double mss_bits, ref, ref_i, ref_min, bitrate_bps, rtt, rtt_min;
	double qdelay, qdelay_avg, target, dev, alpha, loss_rate; // ns
	int64_t base_ns;
	uint64_t samples, kept, reacted_ns, congested_ns, inflexion_ns; // times; 0: never
	uint64_t alpha_ns, avg_ns, flight_ns;
	uint32_t acked, marked, flight, flight_before;
	bool lost, ce, lossy;
};
static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "state too large");

static double least(double a, double b) {
	return a < b ? a : b;
}

static double most(double a, double b) {
	return a > b ? a : b;
}

static double clamp(double x, double low, double high) {
	return most(low, least(high, x));
}

static double given_window(const void *config) {
	(void)config;
	return 10;
}

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	((struct state *)state)->flow = flow;
	(void)config;
}

// qdelay_dev_norm_th
static double calm_most(const struct state *s) {
	return most(0.05, 0.1 * (1 - 10 * least(1, 1 / s->ref)));
}

static double calm(const struct state *s) {
	return most(0, (calm_most(s) - s->dev) / calm_most(s));
}

static double steady(const struct state *s, const struct config *cfg) {
	return cfg->steady ? most(0.1, calm(s)) : 1;
}

static double near(const struct state *s) {
	double scale = 8 * (s->ref - s->ref_i) / s->ref_i;

	return clamp(scale * scale, 0.1, 1);
}

static void answer(struct state *s, const struct config *cfg, struct cc_out *out) {
	double few = 1 - clamp(1 / s->ref - 0.1, 0, 0.2);
	double bps = few / 1.2 * s->ref * s->mss_bits * 1e9 / s->rtt;

	s->bitrate_bps = clamp(bps, cfg->rmin_bps, cfg->rmax_bps);
	out->pacing_bps = PACING_HEAD_ROOM * s->bitrate_bps;
	out->cwnd_segs = most(2, s->ref * OVERHEAD * (1 + calm(s)));
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->mss_bits = mss_bytes * 8;
	s->ref = s->ref_min = most(2, MIN_WINDOW_BYTES / mss_bytes);
	s->ref_i = 1;
	s->rtt = s->rtt_min = rtt_ns > 0 ? (double)rtt_ns : VIRTUAL_RTT;
	s->target = cfg->target_ns;
	s->alpha_ns = s->avg_ns = s->flight_ns = now_ns;
	s->flow->timer(s->flow, HISTORY_NS);
	answer(s, cfg, out);
}

static void on_sample(void *state, const void *config, const struct cc_sample *sample) {
	struct state *s = state;

	if (!sample->one_way)
		return;
	if (s->samples++ == 0 || sample->one_way_ns < s->base_ns)
		s->base_ns = sample->one_way_ns;
	s->qdelay = (double)(sample->one_way_ns - s->base_ns);
	(void)config;
}

static double root(double x) {
	double y = x > 1 ? x : 1;

	for (int i = 0; i < 40; i++)
		y = (y + x / y) / 2;
	return y;
}

// adjust_qdelay_target; the history is of delays in parts of the least target.
static void on_timer(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;
	float *history = s->flow->memory;
	double sum = 0, squares = 0, recent = 0, count, variance, found;

	history[s->kept++ % HISTORY] = (float)(s->qdelay / cfg->target_ns);
	count = least(HISTORY, (double)s->kept);
	for (int i = 0; i < (int)count; i++) {
		sum += (double)history[i];
		squares += (double)history[i] * (double)history[i];
	}
	for (uint64_t i = 1; i <= SHORT_HISTORY && i <= s->kept; i++)
		recent += (double)history[(s->kept - i) % HISTORY];
	variance = most(0, squares / count - sum / count * (sum / count));
	found = (recent / least(SHORT_HISTORY, (double)s->kept) + root(variance)) * cfg->target_ns;
	// The part of round trips with losses, over some hundred of them.
	s->loss_rate += (s->lossy - s->loss_rate) * least(1, HISTORY_NS / s->rtt) / 100;
	s->lossy = false;
	if (s->loss_rate > 0.002)
		s->target = 1.5 * found;
	else if (variance < 0.2)
		s->target = found;
	else
		s->target = found < cfg->target_ns ? most(s->target / 2, found) : s->target * 0.9;
	s->target = clamp(s->target, cfg->target_ns, TARGET_MOST);
	s->flow->timer(s->flow, HISTORY_NS);
	(void)now_ns, (void)out;
}

static void measure(struct state *s, const struct cc_ack *ack) {
	double part,
		gap = clamp((s->qdelay - VIRTUAL_RTT / 4) / VIRTUAL_RTT, 0, 1.5 * calm_most(s));

	s->rtt = ack->srtt_ns > 0 ? (double)ack->srtt_ns : s->rtt;
	s->acked += ack->acked_segs;
	s->marked += ack->ce_segs;
	if ((double)(ack->now_ns - s->alpha_ns) >= least(10 * MS, s->rtt) && s->acked > 0) {
		part = (double)s->marked / s->acked;
		s->alpha += part >= s->alpha ? (part - s->alpha) / 8 : -s->alpha / 128;
		s->acked = s->marked = 0;
		s->alpha_ns = ack->now_ns;
	}
	if ((double)(ack->now_ns - s->avg_ns) >= least(VIRTUAL_RTT, s->rtt)) {
		s->qdelay_avg = s->qdelay < s->qdelay_avg
			? s->qdelay
			: s->qdelay_avg + (s->qdelay - s->qdelay_avg) / 4;
		s->dev += (gap - s->dev) / 64;
		s->avg_ns = ack->now_ns;
	}
	if ((double)(ack->now_ns - s->flight_ns) >= s->rtt) {
		s->flight_before = s->flight;
		s->flight = 0;
		s->flight_ns = ack->now_ns;
	}
	s->flight = ack->prior_inflight_segs > s->flight ? ack->prior_inflight_segs : s->flight;
}

// The part of ref that marks take in L4S mode.
static double l4s_backoff(
	struct state *s, const struct config *cfg, double scale, uint64_t now_ns) {
	double backoff = s->alpha / 2 / most(1, s->rtt / VIRTUAL_RTT);

	if (s->qdelay < s->target / 4)
		backoff *= most(0.25, scale) * steady(s, cfg);
	if ((double)(now_ns - s->reacted_ns) > 100 * most(VIRTUAL_RTT, s->rtt))
		s->ref = least(s->ref, most(s->ref_min, s->flight_before));
	return backoff;
}

static void reduce(struct state *s, const struct config *cfg, uint64_t now_ns) {
	double above = clamp((s->qdelay_avg - s->target / 2) / (s->target / 2), 0, 1);
	double scale = near(s);

	if (s->lost || s->ce)
		s->congested_ns = now_ns;
	if ((double)(now_ns - s->reacted_ns) < least(VIRTUAL_RTT, s->rtt)
		|| (!s->lost && !s->ce && above == 0))
		return;
	if ((double)(now_ns - s->inflexion_ns) > 10 * s->rtt) {
		s->inflexion_ns = now_ns;
		s->ref_i = s->ref;
	}
	if (s->lost)
		s->ref *= BETA_LOSS;
	else if (s->ce && cfg->l4s)
		s->ref *= 1 - l4s_backoff(s, cfg, scale, now_ns);
	else if (s->ce)
		s->ref *= BETA_ECN;
	else
		s->ref *= 1 - above / 2 / most(1, s->rtt / VIRTUAL_RTT);
	s->ref = most(s->ref_min, s->ref);
	s->reacted_ns = now_ns;
	s->lost = s->ce = false;
}

static void increase(struct state *s, const struct config *cfg, const struct cc_ack *ack) {
	double long_ns = POST_CONGESTION_RTTS * most(VIRTUAL_RTT, s->rtt), scale = near(s);
	double since = least(1, (double)(ack->now_ns - s->congested_ns) / long_ns);
	double flight = s->flight > s->flight_before ? s->flight : s->flight_before;
	double more = (double)(ack->acked_segs - ack->ce_segs) * least(1, 1 / s->ref);

	more *= least(1, s->rtt / VIRTUAL_RTT) * most(0.25, scale) * steady(s, cfg);
	more *= 1 + MUL_INCREASE * s->ref * since * scale;
	if (s->ref + more <= 1 + HEAD_ROOM * flight && s->bitrate_bps < cfg->rmax_bps)
		s->ref += more;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	measure(s, ack);
	s->ce |= cfg->l4s && ack->ce_segs > 0;
	reduce(s, cfg, ack->now_ns);
	increase(s, cfg, ack);
	answer(s, cfg, out);
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	if (!loss->ecn)
		s->lost = s->lossy = true;
	else if (!cfg->l4s || loss->classic_ecn)
		s->ce = true;
	reduce(s, cfg, loss->now_ns);
	answer(s, cfg, out);
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	s->ref = s->ref_min;
	s->lossy = true;
	answer(s, config, out);
	(void)loss;
}

static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;

	values[0] = (float)s->ref;
	values[1] = (float)(s->qdelay_avg / MS);
	values[2] = (float)(s->target / MS);
	values[3] = (float)s->alpha;
	(void)config;
}

static const struct cc_ops ops = {
	.name = "scream",
	.summary = "SCReAM v2: a window and a bitrate for interactive media, by delay, loss, L4S",
	.reference = "draft-johansson-ccwg-rfc8298bis-screamv2 (SCReAM)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.ecn = true,
	.answers_in_on_ack = true,
	.feedback = CC_FEEDBACK_ACCECN,
	.ack_each = true,
	.observed = {"ref_segs", "qdelay_ms", "target_ms", "l4s_alpha"},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.observe = observe,
	.on_sample = on_sample,
	.memory_bytes = HISTORY * sizeof(float),
	.open = open_flow,
	.on_timer = on_timer,
};

CC_PLUGIN(ops);
