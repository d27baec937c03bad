// SPDX-License-Identifier: BSD-3-Clause
// PCC Allegro (Dong, Li, Zarchy, Godfrey, Schapira: "PCC: Re-architecting Congestion Control for
// Consistent High Performance", NSDI 2015): tries two rates near its own, twice, and moves to where
// both trials were better.
//
//	u(x) = T sigmoid(L - 0.05) - x L,  T = x (1 - L),  sigmoid(y) = 1 / (1 + e^(alpha y))
//	       alpha = 100; x: the rate in Mbit/s, L: the share of lost segments of a monitor
//	       interval (section 2.2)
//
// Monitor intervals (monitor.h) last 1.7 to 2.2 round trips, drawn at random (3.1).
//
// STARTING   the rate doubles per result until the utility falls; then back to the last rate that
//            raised it
// DECIDING   two pairs of intervals, of r (1 + eps) and r (1 - eps), each pair in an order drawn at
//            random. Both pairs are for the same side -> ADJUSTING from there, eps = 0.01
//            else: eps += 0.01, up to 0.05, and again
// ADJUSTING  r_n = r_(n-1) (1 + n 0.01 dir), n = 1, 2 ... until the utility falls -> back to
//            r_(n-1), DECIDING
//
// Loss below 5 % hardly counts, beyond it the sigmoid falls from 1 to 0 within some percent: the
// utility collapses.
//
// Where we differ from the paper and the authors' code (PCC-Uspace), and why
//   - STARTING and ADJUSTING wait for a result before the next change; the paper's next interval is
//     under way when a result arrives. Otherwise the rate is four times the link's when the first
//     result says so.
//   - STARTING tries a rate again whose utility fell, and ends when it falls twice; and an interval
//     has 50 segments at least, 10 in the paper. With one of 10 segments lost at random the utility
//     collapses, and the flow stays where it began: at 100 Mbit/s, 30 ms and 3 % it got 0.11 of the
//     link.
//   - While results are awaited, r is sent.
//   - A timeout halves the rate and decides again; not once more if its retransmission is lost too,
//     which was not sent at that rate: where a link was down for a minute it would begin with
//     1/256. ECN echoes are ignored.
//   - A result of less than half of its rate is not one: the application, or the receiver, was the
//     limit.
//   - The window is two round trips of the rate: it only bounds what a dead path collects.
//   - alpha is 100, which the paper's theorem wants for up to 46 flows: max(2.2 (n - 1), 100).
#include "common/base/portable_math.h"
#include "sender/cc/trials.h"

struct config {
	struct trials_config trials;
	double alpha, tolerated;
	uint64_t steps_max;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	TRIALS_PARAMS,
	{"alpha", "100", "steepness of the sigmoid", UNIT_NONE, F64(alpha, 1, 1e4)},
	{"tolerated", "5%", "share of lost segments at the middle of the sigmoid", UNIT_RATIO,
		F64(tolerated, 0, 1)},
	{"epsilon", "0.01", "smallest change of the rate that is tried", UNIT_NONE,
		F64(trials.epsilon, 1e-4, 0.1)},
	{"epsilon_max", "5", "and how many of these at most", UNIT_NONE,
		PARAM_U64(struct config, steps_max), 1, 9},
	PARAM_END,
};

#define PROBES 4
#define N_MAX 100

// DECIDING is the PROBING of trials.h.
#define MODES(V) TRIALS_MODES(V) V(MODE_ADJUSTING, "adjusting")
enum { MODE_ADJUSTING = TRIALS_MORE };

static double utility(const struct config *cfg, const struct monitor *m) {
	double x = (double)m->rate_mbps, loss = monitor_loss(m);
	double sigmoid = 1 / (1 + portable_exp(cfg->alpha * (loss - cfg->tolerated)));

	return x * (1 - loss) * sigmoid - x * loss;
}

// The result of a pair's first or second interval, or of the last pair.
static bool vote(struct trials *t, const struct config *cfg, const struct monitor *m, double u,
	uint64_t now_ns) {
	double step = cfg->trials.epsilon;

	if (t->known == 0)
		t->tally = 0;
	t->u[m->tag == TRIALS_DOWN] = (float)u;
	if (++t->known % 2 != 0)
		return false;
	t->tally = (int8_t)(t->tally + (t->u[0] > t->u[1]) - (t->u[0] < t->u[1]));
	if (t->known < PROBES)
		return false;
	if (t->tally == 2 || t->tally == -2) {
		t->dir = (int8_t)(t->tally / 2);
		trials_set_rate(t, cfg, (double)t->rate_mbps * (1 + t->dir * t->eps * step));
		t->last_u = t->u[t->dir < 0];
		t->mode = MODE_ADJUSTING;
		t->eps = t->step = 1;
		t->sent = 0;
		trials_set_rate(t, cfg, (double)t->rate_mbps * (1 + t->dir * t->step * step));
	} else {
		t->eps = (uint8_t)(t->eps + (t->eps < cfg->steps_max));
		trials_probe(t, now_ns);
	}
	return true;
}

// The result of a rate that STARTING or ADJUSTING tries.
static void tried(struct trials *t, const struct config *cfg, double u, uint64_t now_ns) {
	bool starting = t->mode == TRIALS_STARTING;
	double rate = (double)t->rate_mbps, step = cfg->trials.epsilon;
	double factor = starting ? 2 : 1 + t->dir * t->step * step;

	if (u <= (double)t->last_u && starting && t->step == 0) {
		t->step = 1;
		t->sent = 0; // once more
		return;
	}
	t->step = starting ? 0 : t->step;
	if (u <= (double)t->last_u) {
		trials_set_rate(t, cfg, rate / factor);
		trials_probe(t, now_ns);
		return;
	}
	t->last_u = (float)u;
	t->sent = 0;
	if (!starting && t->step * step < 0.5) {
		t->step = (uint8_t)(t->step + (t->step < N_MAX));
		factor = 1 + t->dir * t->step * step;
	}
	trials_set_rate(t, cfg, rate * factor);
}

static bool pcc_result(
	struct trials *t, const void *config, const struct monitor *m, uint64_t now_ns) {
	const struct config *cfg = config;
	double u = utility(cfg, m);

	if (m->tag != TRIALS_TRY)
		return vote(t, cfg, m, u, now_ns);
	tried(t, cfg, u, now_ns);
	return true;
}

static const struct trials_rules rules = {
	.rtts_min = 1.7,
	.rtts_spread = 0.5,
	.probes = PROBES,
	.result = pcc_result,
};

static void pcc_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct trials *t = state;

	*t = (struct trials){0};
	trials_init(t, &rules, config, mss_bytes, rtt_ns, now_ns, out);
}

static void pcc_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct trials *t = state;

	out[0] = t->rate_mbps;
	out[1] = t->last_u;
	out[2] = t->dir * (float)t->step;
	out[3] = t->eps;
}

const struct cc_ops cc_pcc = {
	.name = "pcc",
	.summary = "PCC Allegro: moves to the rate whose trials had the larger utility (NSDI 2015)",
	.reference = "Dong, Li, Zarchy, Godfrey, Schapira: PCC: Re-architecting Congestion "
		     "Control for Consistent High Performance, NSDI 2015",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct trials),
	.observed = {"rate_mbps", "utility", "n", "epsilon"},
	.given_window = trials_given_window,
	.init = pcc_init,
	.on_ack = trials_on_ack,
	.on_loss = trials_on_loss,
	.on_rto = trials_on_rto,
	.on_idle = trials_on_idle,
	.observe = pcc_observe,
	.mode = trials_mode,
	.modes = {MODES(CC_MODE_TEXT)},
};
