// SPDX-License-Identifier: BSD-3-Clause
// PCC Allegro (Dong, Li, Zarchy, Godfrey, Schapira: "PCC: Re-architecting Congestion Control for
// Consistent High Performance", NSDI 2015): tries two rates near its own, twice, and moves to where
// both trials were better.
//
//	u(x) = T sigmoid(L - 0.05) - x L,  T = x (1 - L),  sigmoid(y) = 1 / (1 + e^(alpha y)),  alpha = 100
//	       x: the rate in Mbit/s, L: the share of lost segments of a monitor interval                  (section 2.2)
//
// Monitor intervals (monitor.h) last 1.7 to 2.2 round trips, drawn at random (3.1).
//
// STARTING   the rate doubles per result until the utility falls; then back to the last rate that raised it
// DECIDING   two pairs of intervals, of r (1 + eps) and r (1 - eps), each pair in an order drawn at random.
//            Both pairs are for the same side -> ADJUSTING from there, eps = 0.01
//            else: eps += 0.01, up to 0.05, and again
// ADJUSTING  r_n = r_(n-1) (1 + n 0.01 dir), n = 1, 2 ... until the utility falls -> back to r_(n-1), DECIDING
//
// Loss below 5 % hardly counts, beyond it the sigmoid falls from 1 to 0 within some percent: the
// utility collapses.
//
// Where we differ from the paper and the authors' code (PCC-Uspace), and why
//   - STARTING and ADJUSTING wait for a result before the next change; the paper's next interval is under way when a result
//     arrives. Otherwise the rate is four times the link's when the first result says so.
//   - STARTING tries a rate again whose utility fell, and ends when it falls twice; and an interval has 50 segments at least,
//     10 in the paper. With one of 10 segments lost at random the utility collapses, and the flow stays where it began: at
//     100 Mbit/s, 30 ms and 3 % it got 0.11 of the link.
//   - While results are awaited, r is sent.
//   - A timeout halves the rate and decides again; not once more if its retransmission is lost too, which was not sent at
//     that rate: where a link was down for a minute it would begin with 1/256. ECN echoes are ignored.
//   - A result of less than half of its rate is not one: the application, or the receiver, was the limit.
//   - The window is two round trips of the rate: it only bounds what a dead path collects.
//   - alpha is 100, which the paper's theorem wants for up to 46 flows: max(2.2 (n - 1), 100).
#include "sender/cc/cc_draw.h"
#include "sender/cc/monitor.h"
#include "sender/cc/power.h"

struct config {
	double initial_segs, min_bps;
	double alpha, tolerated, step;
	uint64_t steps_max;
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
	{.name = "alpha", .def = "100", .help = "steepness of the sigmoid", F64(alpha, 1, 1e4)},
	{.name = "tolerated",
		.def = "5%",
		.help = "share of lost segments at the middle of the sigmoid",
		.unit = UNIT_RATIO,
		F64(tolerated, 0, 1)},
	{.name = "epsilon",
		.def = "0.01",
		.help = "smallest change of the rate that is tried",
		F64(step, 1e-4, 0.1)},
	{.name = "epsilon_max",
		.def = "5",
		.help = "and how many of these at most",
		.unit = UNIT_NONE,
		PARAM_U64(struct config, steps_max),
		.min = 1,
		.max = 9},
	PARAM_END,
};

#define SEGS_MIN 4.0 // of the window: receivers with delayed ACKs keep sending them
#define INTERVAL_RTTS_MIN 1.7
#define INTERVAL_RTTS_SPREAD 0.5
#define PROBES 4
#define N_MAX 100

enum mode { MODE_STARTING, MODE_DECIDING, MODE_ADJUSTING };
enum tag { TAG_WAIT, TAG_TRY, TAG_UP, TAG_DOWN };

struct pcc {
	struct monitors q;
	float rate_mbps; // ADJUSTING, STARTING: the one that is tried
	float last_u; // the result to beat
	float u[2]; // DECIDING: of this pair's rates, above and below
	uint32_t mss_bytes, seed;
	uint8_t mode;
	uint8_t sent, known; // intervals of this state with a tag, and results
	uint8_t order; // a bit per pair: the rate above comes first
	int8_t votes, dir;
	uint8_t eps, n; // in steps of `epsilon`; STARTING: n results in a row were worse
};
static_assert(sizeof(struct pcc) <= CC_STATE_MAX_BYTES, "state too large");

static double pcc_given_window(const void *config) {
	return MONITOR_UNACKED_SEGS;
}

static void set_rate(struct pcc *p, const struct config *cfg, double rate_mbps) {
	p->rate_mbps = monitor_bounded(rate_mbps, cfg->min_bps);
}

static void decide(struct pcc *p, uint64_t now_ns) {
	p->mode = MODE_DECIDING;
	p->sent = p->known = 0;
	monitors_forget(&p->q, TAG_WAIT);
	p->votes = 0;
	p->order = (uint8_t)(cc_draw(p->seed, now_ns) >> 40 & 3);
}

static void start_interval(struct pcc *p, const struct config *cfg, uint64_t now_ns) {
	double rate = (double)p->rate_mbps;
	enum tag tag = TAG_WAIT;

	if (p->mode != MODE_DECIDING && p->sent == 0) {
		tag = TAG_TRY;
		p->sent = 1;
	} else if (p->mode == MODE_DECIDING && p->sent < PROBES) {
		bool up_first = (p->order >> p->sent / 2 & 1) != 0;

		tag = (p->sent % 2 == 0) == up_first ? TAG_UP : TAG_DOWN;
		rate *= tag == TAG_UP ? 1 + p->eps * cfg->step : 1 - p->eps * cfg->step;
		p->sent++;
	}
	monitors_start(&p->q, rate, (uint8_t)tag, now_ns);
}

static void pcc_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct pcc *p = state;

	*p = (struct pcc){
		.mss_bytes = mss_bytes,
		.seed = cc_seed(now_ns, mss_bytes),
		.last_u = -1e30f,
		.eps = 1,
	};
	set_rate(p, cfg, monitor_rate_mbps(cfg->initial_segs, mss_bytes, rtt_ns));
	start_interval(p, cfg, now_ns);
	monitor_set_out((double)p->rate_mbps, mss_bytes, rtt_ns,
		cfg->initial_segs > SEGS_MIN ? cfg->initial_segs : SEGS_MIN, out);
}

static double utility(const struct config *cfg, const struct monitor *m) {
	double x = (double)m->rate_mbps, loss = monitor_loss(m);
	double sigmoid = 1 / (1 + power_exp(cfg->alpha * (loss - cfg->tolerated)));

	return x * (1 - loss) * sigmoid - x * loss;
}

// The result of a pair's first or second interval, or of the last pair.
static bool vote(struct pcc *p, const struct config *cfg, const struct monitor *m, double u,
	uint64_t now_ns) {
	p->u[m->tag == TAG_DOWN] = (float)u;
	if (++p->known % 2 != 0)
		return false;
	p->votes = (int8_t)(p->votes + (p->u[0] > p->u[1]) - (p->u[0] < p->u[1]));
	if (p->known < PROBES)
		return false;
	if (p->votes == 2 || p->votes == -2) {
		p->dir = (int8_t)(p->votes / 2);
		set_rate(p, cfg, (double)p->rate_mbps * (1 + p->dir * p->eps * cfg->step));
		p->last_u = p->u[p->dir < 0];
		p->mode = MODE_ADJUSTING;
		p->eps = p->n = 1;
		p->sent = 0;
		set_rate(p, cfg, (double)p->rate_mbps * (1 + p->dir * p->n * cfg->step));
	} else {
		p->eps = (uint8_t)(p->eps + (p->eps < cfg->steps_max));
		decide(p, now_ns);
	}
	return true;
}

// The result of a rate that STARTING or ADJUSTING tries.
static void tried(struct pcc *p, const struct config *cfg, double u, uint64_t now_ns) {
	double rate = (double)p->rate_mbps;
	double factor = p->mode == MODE_STARTING ? 2 : 1 + p->dir * p->n * cfg->step;

	if (u <= (double)p->last_u && p->mode == MODE_STARTING && p->n == 0) {
		p->n = 1;
		p->sent = 0; // once more
		return;
	}
	p->n = p->mode == MODE_STARTING ? 0 : p->n;
	if (u <= (double)p->last_u) {
		set_rate(p, cfg, rate / factor);
		decide(p, now_ns);
		return;
	}
	p->last_u = (float)u;
	p->sent = 0;
	if (p->mode == MODE_ADJUSTING && p->n * cfg->step < 0.5) {
		p->n = (uint8_t)(p->n + (p->n < N_MAX));
		factor = 1 + p->dir * p->n * cfg->step;
	}
	set_rate(p, cfg, rate * factor);
}

// A result. True: the rate may have changed, so that a new interval starts at once.
static bool learn(
	struct pcc *p, const struct config *cfg, const struct monitor *m, uint64_t now_ns) {
	double u;

	if (m->tag == TAG_WAIT || m->acked + m->lost == 0
		|| (m->tag == TAG_TRY) == (p->mode == MODE_DECIDING))
		return false;
	if (!monitor_used(m, p->q.m[0].start_ns, p->mss_bytes)) { // try again
		if (monitor_overloads(m))
			set_rate(p, cfg, (double)p->rate_mbps / 2);
		if (p->mode == MODE_DECIDING)
			decide(p, now_ns);
		else
			p->sent = 0;
		return true;
	}
	u = utility(cfg, m);
	if (m->tag != TAG_TRY)
		return vote(p, cfg, m, u, now_ns);
	tried(p, cfg, u, now_ns);
	return true;
}

static void pcc_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct pcc *p = state;
	const struct monitor *now;
	struct monitor done;
	double age_ns, least_ns, rtts;
	bool next = false;

	monitors_ack(&p->q, ack);
	while (monitors_done(&p->q, ack, &done))
		next |= learn(p, cfg, &done, ack->now_ns);
	now = monitors_now(&p->q);
	age_ns = (double)(ack->now_ns - now->start_ns);
	least_ns = monitors_least_ns(&p->q, p->mss_bytes);
	rtts = INTERVAL_RTTS_MIN
		+ INTERVAL_RTTS_SPREAD * (double)(cc_draw(p->seed, now->start_ns) >> 11) * 0x1p-53;
	next |= age_ns >= rtts * (double)ack->srtt_ns && age_ns >= least_ns;
	if (next && p->q.count < MONITORS)
		start_interval(p, cfg, ack->now_ns);
	monitor_set_out(
		(double)monitors_now(&p->q)->rate_mbps, p->mss_bytes, ack->srtt_ns, SEGS_MIN, out);
}

static void pcc_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	// It is part of an interval's result.
}

static void restart(struct pcc *p, const struct config *cfg, uint64_t now_ns) {
	p->q.count = 0;
	p->eps = 1;
	decide(p, now_ns);
	start_interval(p, cfg, now_ns);
}

static void pcc_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct pcc *p = state;

	if (!loss->repeated)
		set_rate(p, cfg, (double)p->rate_mbps / 2);
	restart(p, cfg, loss->now_ns);
	out->pacing_bps = (double)p->rate_mbps * 1e6;
	out->cwnd_segs = SEGS_MIN;
}

static void pcc_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	restart(state, config, now_ns);
}

static void pcc_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct pcc *p = state;

	out[0] = p->rate_mbps;
	out[1] = p->last_u;
	out[2] = p->dir * (float)p->n;
	out[3] = p->eps;
}

// 0 starting, 1 deciding, 2 adjusting.
static uint8_t pcc_mode(const void *state) {
	const struct pcc *p = state;

	return p->mode;
}

const struct cc_ops cc_pcc = {
	.name = "pcc",
	.summary = "PCC Allegro: moves to the rate whose trials had the larger utility (NSDI 2015)",
	.reference = "Dong, Li, Zarchy, Godfrey, Schapira: PCC: Re-architecting Congestion "
		     "Control for Consistent High Performance, NSDI 2015",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct pcc),
	.observed = {"rate_mbps", "utility", "n", "epsilon"},
	.given_window = pcc_given_window,
	.init = pcc_init,
	.on_ack = pcc_on_ack,
	.on_loss = pcc_on_loss,
	.on_rto = pcc_on_rto,
	.on_idle = pcc_on_idle,
	.observe = pcc_observe,
	.mode = pcc_mode,
};
