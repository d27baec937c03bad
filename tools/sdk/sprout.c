// SPDX-License-Identifier: BSD-3-Clause
// Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013): a window that a link of unknown, varying
// rate drains within 100 ms, with a probability of 95 %.
//
//	belief    of the link's rate, in BINS values from 0 to 1000 packets/s        (section 3.1)
//	each 20 ms, a tick:
//	evolve    Brownian motion of SIGMA packets/s per root of a second, kept within the values;
//	          an outage, the rate 0, lasts and ends at 1 per s
//	observe   times the probability that a Poisson process of the rate brings what has arrived,
//	          or as much at least where nothing has queued
//	forecast  evolves for 5 ticks more without observing; the Poisson process of 100 ms brings
//	          fewer packets with a probability of 5 %                            (section 3.3)
//	window    the forecast
//
// At a steady rate the window is what 100 ms bring less 1.645 deviations: 24 of 41 packets at 5
// Mbit/s. Below some 3 Mbit/s that is too little for 40 ms of RTT: 42 % of 2 Mbit/s are used.
//
// What it takes from the interface: memory for the belief, a timer, the one-way delay, what happens
// to segments.
//
// Where it differs from the paper
//   - There the receiver observes and forecasts, and the sender has the forecast of 160 ms in 20 ms
//     steps with each packet. A receiver's half has 64 bytes here (on_arrival), which is no belief:
//     the sender observes ACKs, so that a queue on the way back is one of the link.
//   - There a tick in which the sender had nothing under way is not observed (time-to-next). Here
//     a one-way delay of less than 5 ms above the least says that nothing has queued.
//   - Losses are no signal, as there, but are sent again. A timeout changes nothing.
#include <weir/cc.h>

#define BINS 256
#define MOST 1000.0 // packets/s
#define TICK_NS 20000000
#define OUTAGE_END 1.0 // per s
#define REACH 30 // bins that a rate may move by in a tick, four deviations

struct config {
	double sigma, risk, horizon_ns;
};

static const struct param params[] = {
	{"sigma", "200", "deviation of the rate after a second, packets/s", UNIT_NONE,
		PARAM_F64(struct config, sigma), .min = 1, .max = 210},
	{"risk", "0.05", "probability that a packet waits longer than the horizon", UNIT_NONE,
		PARAM_F64(struct config, risk), .min = 0.001, .max = 0.999},
	{"horizon", "100ms", "time within which the link should drain the window", UNIT_TIME_NS,
		PARAM_F64(struct config, horizon_ns), .min = TICK_NS, .max = 4e8},
	PARAM_END,
};

struct belief {
	double p[BINS], later[BINS], next[BINS], none[BINS], part[BINS];
	double move[2 * REACH + 1], stay;
};

struct state {
	struct cc_flow *flow;
	double window_segs, mean_segs_s;
	int64_t least_ns, one_way_ns; // one way
	uint64_t rtt_min_ns, acked_ns;
	uint32_t arrived, inflight_segs;
	bool measured;
};
static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "state too large");

// exp(-x), x >= 0, by multiplications only: the same on every machine.
static double exp_of_minus(double x) {
	double y = x / 1024, power = 1 / (1 + y * (1 + y / 2 * (1 + y / 3)));

	for (int i = 0; i < 10; i++)
		power *= power;
	return power;
}

static double packets(int bin, double seconds) {
	return bin * MOST / (BINS - 1) * seconds;
}

static double given_window(const void *config) {
	(void)config;
	return 2;
}

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	const struct config *cfg = config;
	struct belief *b = flow->memory;
	double deviation = cfg->sigma * 0.1414213562 * (BINS - 1) / MOST, sum = 0;

	((struct state *)state)->flow = flow;
	for (int d = -REACH; d <= REACH; d++)
		sum += b->move[d + REACH] = exp_of_minus(d * d / (2 * deviation * deviation));
	for (int d = 0; d <= 2 * REACH; d++)
		b->move[d] /= sum;
	b->stay = exp_of_minus(OUTAGE_END * 0.02);
	for (int i = 0; i < BINS; i++) {
		b->p[i] = 1.0 / BINS;
		b->none[i] = exp_of_minus(packets(i, 0.02));
	}
}

static void evolve(struct belief *b, double p[BINS]) {
	for (int i = 0; i < BINS; i++)
		b->next[i] = 0;
	b->next[0] = p[0] * b->stay;
	for (int i = 0; i < BINS; i++) {
		double mass = i == 0 ? p[0] * (1 - b->stay) : p[i];

		for (int d = -REACH; d <= REACH; d++) {
			int to = i + d < 0 ? 0 : i + d;

			b->next[to < BINS ? to : BINS - 1] += mass * b->move[d + REACH];
		}
	}
	for (int i = 0; i < BINS; i++)
		p[i] = b->next[i];
}

static void observe_arrivals(struct belief *b, uint32_t arrived, bool queued) {
	double sum = 0;

	for (int i = 0; i < BINS; i++) {
		double likely = b->none[i], fewer = 0;

		for (uint32_t n = 1; n <= arrived; n++) {
			fewer += likely;
			likely *= packets(i, 0.02) / n;
		}
		sum += b->p[i] *= queued ? likely : fewer < 1 ? 1 - fewer : 0;
	}
	for (int i = 0; i < BINS; i++)
		b->p[i] = sum > 1e-300 ? b->p[i] / sum : 1.0 / BINS;
}

// How many packets the link brings within the horizon, but for the risk.
static double forecast(struct belief *b, const struct config *cfg) {
	int ticks = (int)(cfg->horizon_ns / TICK_NS), n = 0;
	double fewer = 0;

	for (int i = 0; i < BINS; i++)
		b->later[i] = b->p[i];
	for (int t = 0; t < ticks; t++)
		evolve(b, b->later);
	for (int i = 0; i < BINS; i++) {
		b->part[i] = b->later[i];
		for (int t = 0; t < ticks; t++)
			b->part[i] *= b->none[i];
		fewer += b->part[i];
	}
	for (; fewer < cfg->risk && n < 400; n++) {
		for (int i = 0; i < BINS; i++) {
			b->part[i] *= packets(i, ticks * 0.02) / (n + 1);
			fewer += b->part[i];
		}
	}
	return n;
}

static void answer(const struct state *s, struct cc_out *out) {
	out->pacing_bps = 0;
	out->cwnd_segs = s->window_segs > 2 ? s->window_segs : 2;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	s->flow->timer(s->flow, TICK_NS);
	answer(s, out);
	(void)config, (void)mss_bytes, (void)rtt_ns, (void)now_ns;
}

static void on_packet(void *state, const void *config, const struct cc_packet *packet) {
	struct state *s = state;

	s->arrived += packet->event == CC_PACKET_ACKED;
	(void)config;
}

static void on_sample(void *state, const void *config, const struct cc_sample *sample) {
	struct state *s = state;

	if (sample->one_way && (!s->measured || sample->one_way_ns < s->least_ns))
		s->least_ns = sample->one_way_ns;
	s->measured |= sample->one_way;
	s->one_way_ns = sample->one_way ? sample->one_way_ns : s->one_way_ns;
	s->rtt_min_ns = sample->rtt_min_ns;
	s->inflight_segs = sample->inflight_segs;
	s->acked_ns = sample->ack ? sample->now_ns : s->acked_ns;
	(void)config;
}

static void on_timer(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;
	struct belief *b = s->flow->memory;

	bool queued = s->arrived > 0
		? s->one_way_ns - s->least_ns > 5000000
		: s->inflight_segs > 0 && now_ns - s->acked_ns > s->rtt_min_ns + TICK_NS;

	evolve(b, b->p);
	observe_arrivals(b, s->arrived < 200 ? s->arrived : 200, queued);
	s->arrived = 0;
	s->mean_segs_s = 0;
	for (int i = 0; i < BINS; i++)
		s->mean_segs_s += b->p[i] * packets(i, 1);
	s->window_segs = forecast(b, config);
	s->flow->timer(s->flow, TICK_NS);
	answer(s, out);
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	(void)config, (void)ack;
	answer(state, out);
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	(void)state, (void)config, (void)loss, (void)out;
}

static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;

	values[0] = (float)s->window_segs;
	values[1] = (float)s->mean_segs_s;
	(void)config;
}

static const struct cc_ops ops = {
	.name = "sprout",
	.summary = "Sprout: a window that an unknown link drains in 100 ms, at 95 % (NSDI 2013)",
	.reference = "Winstein, Sivaraman, Balakrishnan, Stochastic Forecasts, NSDI 2013 (Sprout)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.ack_each = true,
	.observed = {"forecast_segs", "mean_segs_s"},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_loss,
	.observe = observe,
	.memory_bytes = sizeof(struct belief),
	.open = open_flow,
	.on_timer = on_timer,
	.on_packet = on_packet,
	.on_sample = on_sample,
};

CC_PLUGIN(ops);
