// SPDX-License-Identifier: BSD-3-Clause
// PCC Vivace (Dong and others: "PCC Vivace: Online-Learning Congestion Control", NSDI 2018): tries
// two rates near its own, and moves towards the one with the larger utility, by gradient ascent.
//
//	u(x) = x^0.9 - b x max(0, dRTT/dt) - c x L      x in Mbit/s, L the share of lost segments of a monitor interval
//	       b = 900 (0 with `utility: loss`), c = 11.35; |dRTT/dt| < 0.01 counts as 0      (section 4.1, 5)
//
// Monitor intervals (monitor.h) last a round trip.
//
// STARTING  the rate doubles per result until the utility falls; then back to the last rate that raised it
// PROBING   one interval of r (1 + eps) and one of r (1 - eps), eps = 0.05, in an order drawn at random
//           gamma = (u(r (1 + eps)) - u(r (1 - eps))) / (2 eps r)
//           r    += theta gamma m(tau), at most omega r in size                            (section 4.3)
//           theta = 1; tau: steps in this direction; m = tau up to 3, 2 tau - 3 beyond
//           omega = 0.05 + 0.1 k; k: the fewest that the last step would have fitted in; 0 on a change of direction
//
// With b = 0 the gradient is 0.9 x^-0.1 - 11.35 L, zero at 100 Mbit/s for a random loss of 5 %. It
// does not bear as much:
// each of two intervals has its own share of losses, which decides the sign before the gradient's
// mean is zero. In the mean of five seeds (100 Mbit/s, 30 ms, 60 s) it has 0.96 of the link at 1 %,
// 0.65 at 3 % and 0.35 at 5 %.
//
// Where we differ from the paper and the authors' code (PCC-Uspace), and why
//   - STARTING waits for the result of a doubling before the next: otherwise the rate is four times the link's when the
//     first result says so. It costs a round trip per doubling.
//   - STARTING tries a rate again whose utility fell, and ends when it falls twice: one random loss is no reason.
//   - An interval has 50 segments at least (monitor.h).
//   - While results are awaited, r is sent.
//   - Mbit is 10^6 bit, 2^20 in their code; and their code has m = ((tau + 1) / 2)^1.2, a least step and a least rate of
//     0.5 Mbit/s, 25 % of a fair share of 2 Mbit/s. Here the least rate is `min_rate`, and there is no least step.
//   - A timeout halves the rate and starts PROBING again; one of its retransmission, which was not sent at that rate, does
//     not: where a link was down for a minute it would begin with 1/256. ECN echoes are ignored.
//   - A result of less than half of its rate is not one: the application, or the receiver, was the limit.
//   - The window is two round trips of the rate: it only bounds what a dead path collects.
#include "sender/cc/cc_draw.h"
#include "sender/cc/monitor.h"
#include "sender/cc/power.h"

static const char *const utility_names[] = {"latency", "loss", NULL};
enum utility { UTILITY_LATENCY, UTILITY_LOSS };

struct config {
	double initial_segs, min_bps;
	int utility;
	double exponent, b, c, epsilon, theta, omega, omega_step, slope_min;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{.name = "initial",
		.def = "10",
		.help = "segments per round trip at the start",
		F64(initial_segs, 1, 1000)},
	{.name = "min_rate",
		.def = "100kbit",
		.help = "smallest rate",
		.unit = UNIT_RATE_BPS,
		F64(min_bps, 1000, 1e12)},
	{.name = "utility",
		.def = "latency",
		.help = "what is to be large: with the growth of the RTT in it, or with loss alone",
		PARAM_ENUM(struct config, utility, utility_names)},
	{.name = "exponent",
		.def = "0.9",
		.help = "of the rate in the utility",
		F64(exponent, 0.1, 1)},
	{.name = "b", .def = "900", .help = "weight of dRTT/dt", F64(b, 0, 1e6)},
	{.name = "c",
		.def = "11.35",
		.help = "weight of the share of lost segments",
		F64(c, 0, 1e6)},
	{.name = "epsilon",
		.def = "0.05",
		.help = "how far from its rate it probes",
		F64(epsilon, 0.001, 0.5)},
	{.name = "theta",
		.def = "1",
		.help = "Mbit/s of a step per unit of the gradient",
		F64(theta, 1e-6, 1e6)},
	{.name = "omega",
		.def = "0.05",
		.help = "largest first step, of the rate",
		F64(omega, 1e-4, 10)},
	{.name = "omega_step",
		.def = "0.1",
		.help = "and as much more for each step that was cut",
		F64(omega_step, 0, 10)},
	{.name = "slope_min",
		.def = "0.01",
		.help = "a smaller dRTT/dt is noise",
		F64(slope_min, 0, 1)},
	PARAM_END,
};

#define SEGS_MIN 4.0 // of the window: receivers with delayed ACKs keep sending them
#define TAU_MAX 100

enum mode { MODE_STARTING, MODE_PROBING };
enum tag { TAG_WAIT, TAG_START, TAG_UP, TAG_DOWN };

struct vivace {
	struct monitors q;
	float rate_mbps;
	float last_u; // STARTING: the best result so far
	float u[2]; // PROBING: of the rate above, of the one below
	uint32_t mss_bytes, seed;
	uint8_t mode;
	uint8_t sent, known; // probes of this step, and results
	bool up_first;
	int8_t dir;
	uint8_t tau, k; // STARTING: tau results in a row were worse
};
static_assert(sizeof(struct vivace) <= CC_STATE_MAX_BYTES, "state too large");

static double vivace_given_window(const void *config) {
	return MONITOR_UNACKED_SEGS;
}

static void set_rate(struct vivace *v, const struct config *cfg, double rate_mbps) {
	v->rate_mbps = monitor_bounded(rate_mbps, cfg->min_bps);
}

// From now on: a new step of PROBING.
static void start_step(struct vivace *v, uint64_t now_ns) {
	v->mode = MODE_PROBING;
	v->sent = v->known = 0;
	monitors_forget(&v->q, TAG_WAIT);
	v->up_first = (cc_draw(v->seed, now_ns) >> 40 & 1) != 0;
}

// The next interval, by the state.
static void start_interval(struct vivace *v, const struct config *cfg, uint64_t now_ns) {
	double rate = (double)v->rate_mbps;
	enum tag tag = TAG_WAIT;

	if (v->mode == MODE_STARTING && v->sent == 0) {
		tag = TAG_START;
		v->sent = 1;
	} else if (v->mode == MODE_PROBING && v->sent < 2) {
		tag = (v->sent == 0) == v->up_first ? TAG_UP : TAG_DOWN;
		rate *= tag == TAG_UP ? 1 + cfg->epsilon : 1 - cfg->epsilon;
		v->sent++;
	}
	monitors_start(&v->q, rate, (uint8_t)tag, now_ns);
}

static void vivace_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct vivace *v = state;

	*v = (struct vivace){
		.mss_bytes = mss_bytes,
		.seed = cc_seed(now_ns, mss_bytes),
		.last_u = -1e30f,
	};
	set_rate(v, cfg, monitor_rate_mbps(cfg->initial_segs, mss_bytes, rtt_ns));
	start_interval(v, cfg, now_ns);
	monitor_set_out((double)v->rate_mbps, mss_bytes, rtt_ns,
		cfg->initial_segs > SEGS_MIN ? cfg->initial_segs : SEGS_MIN, out);
}

static double utility(const struct config *cfg, const struct monitor *m) {
	double x = (double)m->rate_mbps, slope = monitor_slope(m);

	if (slope < cfg->slope_min || cfg->utility == UTILITY_LOSS)
		slope = 0;
	return power_of(x, cfg->exponent) - cfg->b * x * slope - cfg->c * x * monitor_loss(m);
}

static void starting(struct vivace *v, const struct config *cfg, const struct monitor *m, double u,
	uint64_t now_ns) {
	if (u > (double)v->last_u) {
		set_rate(v, cfg, 2 * (double)m->rate_mbps);
		v->sent = 0;
	} else if (v->tau++ == 0) {
		v->sent = 0; // once more
		return;
	} else {
		set_rate(v, cfg, (double)m->rate_mbps / 2);
		start_step(v, now_ns);
	}
	v->tau = 0;
	v->last_u = (float)u;
}

// One step of the ascent.
static void climb(struct vivace *v, const struct config *cfg, uint64_t now_ns) {
	double rate = (double)v->rate_mbps, step, limit;
	double gradient = ((double)v->u[0] - (double)v->u[1]) / (2 * cfg->epsilon * rate);
	int8_t dir = gradient < 0 ? -1 : 1;

	if (dir != v->dir) {
		v->tau = v->k = 0;
		v->dir = dir;
	}
	v->tau = (uint8_t)(v->tau + (v->tau < TAU_MAX));
	step = cfg->theta * gradient * (v->tau <= 3 ? v->tau : 2 * v->tau - 3);
	limit = (cfg->omega + v->k * cfg->omega_step) * rate;
	if (step * dir > limit) {
		step = dir * limit;
		v->k = (uint8_t)(v->k + (v->k < TAU_MAX));
	} else {
		while (v->k > 0 && step * dir <= (cfg->omega + (v->k - 1) * cfg->omega_step) * rate)
			v->k--;
	}
	set_rate(v, cfg, rate + step);
	start_step(v, now_ns);
}

// A result. True: the rate may have changed, so that a new interval starts at once.
static bool learn(
	struct vivace *v, const struct config *cfg, const struct monitor *m, uint64_t now_ns) {
	double u;

	if (m->tag == TAG_WAIT || m->acked + m->lost == 0
		|| (m->tag == TAG_START) != (v->mode == MODE_STARTING))
		return false;
	if (!monitor_used(m, v->q.m[0].start_ns, v->mss_bytes)) { // try again
		if (monitor_overloads(m))
			set_rate(v, cfg, (double)v->rate_mbps / 2);
		if (v->mode == MODE_PROBING)
			start_step(v, now_ns);
		else
			v->sent = 0;
		return true;
	}
	u = utility(cfg, m);
	if (m->tag == TAG_START) {
		starting(v, cfg, m, u, now_ns);
		return true;
	}
	v->last_u = (float)u;
	v->u[m->tag == TAG_DOWN] = (float)u;
	if (++v->known < 2)
		return false;
	climb(v, cfg, now_ns);
	return true;
}

static void vivace_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct vivace *v = state;
	const struct monitor *now;
	double least_ns = monitors_least_ns(&v->q, v->mss_bytes);
	struct monitor done;
	bool next = false;

	monitors_ack(&v->q, ack);
	while (monitors_done(&v->q, ack, &done))
		next |= learn(v, cfg, &done, ack->now_ns);
	now = monitors_now(&v->q);
	next |= ack->now_ns - now->start_ns >= ack->srtt_ns
		&& (double)(ack->now_ns - now->start_ns) >= least_ns;
	if (next && v->q.count < MONITORS)
		start_interval(v, cfg, ack->now_ns);
	monitor_set_out(
		(double)monitors_now(&v->q)->rate_mbps, v->mss_bytes, ack->srtt_ns, SEGS_MIN, out);
}

static void vivace_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	// It is part of an interval's result.
}

static void restart(struct vivace *v, const struct config *cfg, uint64_t now_ns) {
	v->q.count = 0;
	start_step(v, now_ns);
	start_interval(v, cfg, now_ns);
}

static void vivace_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct vivace *v = state;

	if (!loss->repeated)
		set_rate(v, cfg, (double)v->rate_mbps / 2);
	restart(v, cfg, loss->now_ns);
	out->pacing_bps = (double)v->rate_mbps * 1e6;
	out->cwnd_segs = SEGS_MIN;
}

static void vivace_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	restart(state, config, now_ns);
}

static void vivace_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct vivace *v = state;

	out[0] = v->rate_mbps;
	out[1] = v->last_u;
	out[2] = v->dir * (float)v->tau;
	out[3] = v->k;
}

// 0 starting, 1 probing.
static uint8_t vivace_mode(const void *state) {
	const struct vivace *v = state;

	return v->mode;
}

const struct cc_ops cc_vivace = {
	.name = "vivace",
	.summary = "PCC Vivace: gradient ascent on a utility of rate, delay and loss (NSDI 2018)",
	.reference = "Dong and others: PCC Vivace: Online-Learning Congestion Control, NSDI 2018",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct vivace),
	.observed = {"rate_mbps", "utility", "tau", "k"},
	.given_window = vivace_given_window,
	.init = vivace_init,
	.on_ack = vivace_on_ack,
	.on_loss = vivace_on_loss,
	.on_rto = vivace_on_rto,
	.on_idle = vivace_on_idle,
	.observe = vivace_observe,
	.mode = vivace_mode,
};
