// SPDX-License-Identifier: BSD-3-Clause
// PCC Vivace (Dong and others: "PCC Vivace: Online-Learning Congestion Control", NSDI 2018): tries
// two rates near its own, and moves towards the one with the larger utility, by gradient ascent.
//
//	u(x) = x^0.9 - b x max(0, dRTT/dt) - c x L
//	       x in Mbit/s, L the share of lost segments of a monitor interval
//	       b = 900 (0 with `utility: loss`), c = 11.35; |dRTT/dt| < 0.01 counts as 0
//	       (sections 4.1 and 5)
//
// Monitor intervals (monitor.h) last a round trip.
//
// STARTING  the rate doubles per result until the utility falls; then back to the last rate that
//           raised it
// PROBING   one interval of r (1 + eps) and one of r (1 - eps), eps = 0.05, in an order drawn at
//           random
//           gamma = (u(r (1 + eps)) - u(r (1 - eps))) / (2 eps r)
//           r    += theta gamma m(tau), at most omega r in size (section 4.3)
//           theta = 1; tau: steps in this direction; m = tau up to 3, 2 tau - 3 beyond
//           omega = 0.05 + 0.1 k; k: the fewest that the last step would have fitted in;
//           0 on a change of direction
//
// With b = 0 the gradient is 0.9 x^-0.1 - 11.35 L, zero at 100 Mbit/s for a random loss of 5 %. It
// does not bear as much:
// each of two intervals has its own share of losses, which decides the sign before the gradient's
// mean is zero. In the mean of five seeds (100 Mbit/s, 30 ms, 60 s) it has 0.96 of the link at 1 %,
// 0.65 at 3 % and 0.35 at 5 %.
//
// Where we differ from the paper and the authors' code (PCC-Uspace), and why
//   - STARTING waits for the result of a doubling before the next: otherwise the rate is four times
//     the link's when the first result says so. It costs a round trip per doubling.
//   - STARTING tries a rate again whose utility fell, and ends when it falls twice: one random loss
//     is no reason.
//   - An interval has 50 segments at least (monitor.h).
//   - While results are awaited, r is sent.
//   - Mbit is 10^6 bit, 2^20 in their code; and their code has m = ((tau + 1) / 2)^1.2, a least
//     step and a least rate of 0.5 Mbit/s, 25 % of a fair share of 2 Mbit/s. Here the least rate is
//     `min_rate`, and there is no least step.
//   - A timeout halves the rate and starts PROBING again; one of its retransmission, which was not
//     sent at that rate, does not: where a link was down for a minute it would begin with 1/256.
//     ECN echoes are ignored.
//   - A result of less than half of its rate is not one: the application, or the receiver, was the
//     limit.
//   - The window is two round trips of the rate: it only bounds what a dead path collects.
#include "common/base/portable_math.h"
#include "sender/cc/trials.h"

static const char *const utility_names[] = {"latency", "loss", NULL};
enum utility { UTILITY_LATENCY, UTILITY_LOSS };

struct config {
	struct trials_config trials;
	int utility;
	double exponent, b, c, theta, omega, omega_step, slope_min;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	TRIALS_PARAMS,
	{"utility", "latency",
		"what is to be large: with the growth of the RTT in it, or with loss alone",
		UNIT_NONE, PARAM_ENUM(struct config, utility, utility_names)},
	{"exponent", "0.9", "of the rate in the utility", UNIT_NONE, F64(exponent, 0.1, 1)},
	{"b", "900", "weight of dRTT/dt", UNIT_NONE, F64(b, 0, 1e6)},
	{"c", "11.35", "weight of the share of lost segments", UNIT_NONE, F64(c, 0, 1e6)},
	{"epsilon", "0.05", "how far from its rate it probes", UNIT_NONE,
		F64(trials.epsilon, 0.001, 0.5)},
	{"theta", "1", "Mbit/s of a step per unit of the gradient", UNIT_NONE,
		F64(theta, 1e-6, 1e6)},
	{"omega", "0.05", "largest first step, of the rate", UNIT_NONE, F64(omega, 1e-4, 10)},
	{"omega_step", "0.1", "and as much more for each step that was cut", UNIT_NONE,
		F64(omega_step, 0, 10)},
	{"slope_min", "0.01", "a smaller dRTT/dt is noise", UNIT_NONE, F64(slope_min, 0, 1)},
	PARAM_END,
};

#define TAU_MAX 100

static double utility(const struct config *cfg, const struct monitor *m) {
	double x = (double)m->rate_mbps, slope = monitor_slope(m);

	if (slope < cfg->slope_min || cfg->utility == UTILITY_LOSS)
		slope = 0;
	return portable_pow(x, cfg->exponent) - cfg->b * x * slope - cfg->c * x * monitor_loss(m);
}

static void starting(struct trials *t, const struct config *cfg, const struct monitor *m, double u,
	uint64_t now_ns) {
	if (u > (double)t->last_u) {
		trials_set_rate(t, cfg, 2 * (double)m->rate_mbps);
		t->sent = 0;
	} else if (t->step++ == 0) {
		t->sent = 0; // once more
		return;
	} else {
		trials_set_rate(t, cfg, (double)m->rate_mbps / 2);
		trials_probe(t, now_ns);
	}
	t->step = 0;
	t->last_u = (float)u;
}

// One step of the ascent.
static void climb(struct trials *t, const struct config *cfg, uint64_t now_ns) {
	double rate = (double)t->rate_mbps, step, limit;
	double gradient = ((double)t->u[0] - (double)t->u[1]) / (2 * cfg->trials.epsilon * rate);
	int8_t dir = gradient < 0 ? -1 : 1;

	if (dir != t->dir) {
		t->step = 0;
		t->tally = 0;
		t->dir = dir;
	}
	t->step = (uint8_t)(t->step + (t->step < TAU_MAX));
	step = cfg->theta * gradient * (t->step <= 3 ? t->step : 2 * t->step - 3);
	limit = (cfg->omega + t->tally * cfg->omega_step) * rate;
	if (step * dir > limit) {
		step = dir * limit;
		t->tally = (int8_t)(t->tally + (t->tally < TAU_MAX));
	} else {
		while (t->tally > 0
			&& step * dir <= (cfg->omega + (t->tally - 1) * cfg->omega_step) * rate)
			t->tally--;
	}
	trials_set_rate(t, cfg, rate + step);
	trials_probe(t, now_ns);
}

static bool vivace_result(
	struct trials *t, const void *config, const struct monitor *m, uint64_t now_ns) {
	const struct config *cfg = config;
	double u = utility(cfg, m);

	if (m->tag == TRIALS_TRY) {
		starting(t, cfg, m, u, now_ns);
		return true;
	}
	t->last_u = (float)u;
	t->u[m->tag == TRIALS_DOWN] = (float)u;
	if (++t->known < 2)
		return false;
	climb(t, cfg, now_ns);
	return true;
}

static const struct trials_rules rules = {
	.rtts_min = 1,
	.probes = 2,
	.result = vivace_result,
};

static void vivace_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct trials *t = state;

	*t = (struct trials){0};
	trials_init(t, &rules, config, mss_bytes, rtt_ns, now_ns, out);
}

static void vivace_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct trials *t = state;

	out[0] = t->rate_mbps;
	out[1] = t->last_u;
	out[2] = t->dir * (float)t->step;
	out[3] = t->tally;
}

const struct cc_ops cc_vivace = {
	.name = "vivace",
	.summary = "PCC Vivace: gradient ascent on a utility of rate, delay and loss (NSDI 2018)",
	.reference = "Dong and others: PCC Vivace: Online-Learning Congestion Control, NSDI 2018",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct trials),
	.observed = {"rate_mbps", "utility", "tau", "k"},
	.given_window = trials_given_window,
	.init = vivace_init,
	.on_ack = trials_on_ack,
	.on_loss = trials_on_loss,
	.on_rto = trials_on_rto,
	.on_idle = trials_on_idle,
	.observe = vivace_observe,
	.mode = trials_mode,
	.modes = {TRIALS_MODES(CC_MODE_TEXT)},
};
