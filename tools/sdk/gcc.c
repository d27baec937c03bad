// SPDX-License-Identifier: BSD-3-Clause
// Google Congestion Control: a rate for interactive media by the gradient of the delay, as
// libwebrtc has it (modules/congestion_controller/goog_cc), and not as draft-ietf-rmcat-gcc-02.
//
// group     packets sent within 5 ms, and those that arrive within 5 ms of the one before with
//           less delay, for at most 100 ms (inter_arrival_delta.cc)
// smooth    what groups' delays have grown by in all, gain 0.1 (trendline_estimator.cc)
// T         = min(groups, 60) gain trend: slope of a line through smooth of 20 groups; gain 4
// overuse   T > threshold for 10 ms of sending and two groups, trend not falling
// underuse  T < -threshold
// threshold += k (|T| - threshold) dt, from 12.5, within 6 and 600; k is k_down = 0.039 per ms
//           where |T| is below it, k_up = 0.0087 above, 0 from 15 above on; dt at most 100 ms
//
// each 50 ms, the interval of feedback (aimd_rate_control.cc)
// overuse   rate = 0.85 acked - 5 kbit/s, once per RTT (10 to 200 ms), or if acked < rate / 2;
//           without an acked rate, half. Then hold until the next normal one
// underuse  hold
// normal    rate *= 1.08 per s; if a capacity is known, += packet / 2 / (RTT + 100 ms) per s, at
//           least 4 kbit/s per s; not beyond 1.5 acked + 10 kbit/s
// capacity  average of acked at overuse, gain 0.05; unknown again beyond 3 deviations
// acked     Bayesian average of what comes in 150 ms (bitrate_estimator.cc)
// losses    of 20 packets or more: above 10 % rate *= 1 - part / 2, once per RTT + 300 ms; below
//           2 % at most 1.08 times the least rate of the last second and 1 kbit/s
//           (send_side_bandwidth_estimation.cc; section 6 of the draft has 1.05)
//
// The draft compares a Kalman filter's gradient, in ms per group, with 12.5 ms. The code of that
// time (overuse_detector.cc) compared 60 times as much, and this one is of the same size: a queue
// that grows by 1/20 of the time. Taken literally (at 1 Mbit/s, a group each 12 ms, gain: 0.2) a
// growing queue is no overuse, and one of 300 ms stays full. Its K_u 0.01 and K_d 0.00018 (k_up,
// k_down) let the threshold rise beside NewReno, and not fall: NewReno has 1 % of 2 Mbit/s then,
// and GCC 9 % with the code's, in a queue of 300 ms.
//
// What it costs: a slow rise is overuse only when it is 6 / 240 = 1/40 beyond the link's C. Until
// then n flows queue (RTT + 100 ms) (exp(C / n / 15.36 Mbit/s) - 1): 0.13 s for one at 10 Mbit/s
// and 50 ms. A queue of less stays full, as 2 to 10 % of losses are no matter.
//
// What it takes from the interface: the one-way delay, memory, a timer, what happens to segments.
//
// Where it differs from libwebrtc
//   - No probes, by which that finds a rate within a second: it takes 1.08 per s.
//   - Losses are not answered by LossBasedBweV2, but by the older rule above.
//   - Each ACK is feedback of its newest segment. Losses are sent again, as the transport is TCP's.
//     A timeout takes a fifth of the rate, as 3 s without feedback do there.
//   - The window is twice what the rate has in flight; pacing is the rate, there 2.5 times it.
#include <weir/cc.h>

#define MS 1000000.0
#define KBIT 1000.0
#define TICK_NS 50000000
#define TICK_GROWTH 1.0038554 // 1.08^(1/20)
#define SECOND 20 // in ticks
#define WINDOW 20 // groups

struct config {
	double gain, k_up, k_down, start_bps, rmin_bps, rmax_bps;
};

static const struct param params[] = {
	{"gain", "4", "factor of the gradient (kDefaultTrendlineThresholdGain)", UNIT_NONE,
		PARAM_F64(struct config, gain), .min = 0.01, .max = 100},
	{"k_up", "0.0087", "gain by which the threshold rises (K_u), per ms", UNIT_NONE,
		PARAM_F64(struct config, k_up), .min = 0, .max = 0.01},
	{"k_down", "0.039", "gain by which it falls (K_d), per ms", UNIT_NONE,
		PARAM_F64(struct config, k_down), .min = 0, .max = 0.1},
	{"start", "300kbit", "first rate", UNIT_RATE_BPS, PARAM_F64(struct config, start_bps),
		.min = 1e3, .max = 1e12},
	{"rmin", "5kbit", "smallest rate (kCongestionControllerMinBitrate)", UNIT_RATE_BPS,
		PARAM_F64(struct config, rmin_bps), .min = 1e3, .max = 1e12},
	{"rmax", "1Gbit", "largest rate (kDefaultMaxBitrate)", UNIT_RATE_BPS,
		PARAM_F64(struct config, rmax_bps), .min = 1e3, .max = 1e12},
	PARAM_END,
};

enum usage { NORMAL, OVERUSE, UNDERUSE };

struct group { // of packets, in ms
	double first_sent, sent, first_arrival, arrival;
};

// What is in the flow's memory.
struct detector {
	struct group now, before;
	double arrivals[WINDOW], delays[WINDOW]; // the delays are smooth
	double delay, smooth, trend, scaled; // scaled: T
	double threshold, overuse_ms, adapted_ms;
	uint32_t groups, overuses;
	bool open, pair; // there is a group; there is one before it
	enum usage usage;
	uint32_t ticks;
	double past_bps[SECOND]; // the rate at each of the last ticks
};

struct state {
	struct cc_flow *flow;
	double mss_bits, delay_bps, rate_bps; // by the delay; by losses, too
	double acked_kbps, acked_var, bits, window_ms, arrival_ms; // acked: negative: unknown
	double capacity_kbps, capacity_var, loss; // capacity: 0: unknown
	int64_t one_way_ns; // with the difference of the clocks
	uint64_t changed_ns, cut_ns, srtt_ns, seen_ns;
	uint32_t acked_segs, lost_segs;
	bool one_way, fresh, hold;
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
	return 4;
}

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	((struct state *)state)->flow = flow;
	(void)config;
}

static void answer(const struct state *s, const struct config *cfg, struct cc_out *out) {
	double bps = clamp(s->rate_bps, cfg->rmin_bps, cfg->rmax_bps);

	out->pacing_bps = bps;
	out->cwnd_segs = most(4, 2 * bps * (double)s->srtt_ns / 1e9 / s->mss_bits);
}

static void forget(struct detector *d) {
	*d = (struct detector){.threshold = 12.5, .overuse_ms = -1};
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->mss_bits = mss_bytes * 8;
	s->delay_bps = s->rate_bps = cfg->start_bps;
	s->acked_kbps = -1;
	s->acked_var = 50;
	s->arrival_ms = -1;
	s->capacity_var = 0.4;
	s->srtt_ns = rtt_ns;
	s->changed_ns = s->seen_ns = now_ns;
	forget(s->flow->memory);
	s->flow->timer(s->flow, TICK_NS);
	answer(s, cfg, out);
}

static void adapt(struct detector *d, const struct config *cfg, double now_ms) {
	double size = d->scaled < 0 ? -d->scaled : d->scaled;
	double elapsed_ms = d->groups > 2 ? least(100, now_ms - d->adapted_ms) : 0;

	d->adapted_ms = now_ms;
	if (size > d->threshold + 15)
		return;
	d->threshold += (size < d->threshold ? cfg->k_down : cfg->k_up) * (size - d->threshold)
		* elapsed_ms;
	d->threshold = clamp(d->threshold, 6, 600);
}

static void detect(
	struct detector *d, const struct config *cfg, double trend, double sent_ms, double now_ms) {
	d->scaled = least(d->groups, 60) * trend * cfg->gain;
	if (d->scaled > d->threshold) {
		d->overuse_ms = d->overuse_ms < 0 ? sent_ms / 2 : d->overuse_ms + sent_ms;
		d->overuses++;
		if (d->overuse_ms > 10 && d->overuses > 1 && trend >= d->trend) {
			d->overuse_ms = d->overuses = 0;
			d->usage = OVERUSE;
		}
	} else {
		d->overuse_ms = -1;
		d->overuses = 0;
		d->usage = d->scaled < -d->threshold ? UNDERUSE : NORMAL;
	}
	d->trend = trend;
	adapt(d, cfg, now_ms);
}

static double slope(const struct detector *d) {
	double x = 0, y = 0, above = 0, below = 0;

	for (int i = 0; i < WINDOW; i++) {
		x += d->arrivals[i] / WINDOW;
		y += d->delays[i] / WINDOW;
	}
	for (int i = 0; i < WINDOW; i++) {
		above += (d->arrivals[i] - x) * (d->delays[i] - y);
		below += (d->arrivals[i] - x) * (d->arrivals[i] - x);
	}
	return below > 0 ? above / below : d->trend;
}

static void end_group(struct detector *d, const struct config *cfg) {
	double sent_ms = d->now.sent - d->before.sent;
	double arrived_ms = d->now.arrival - d->before.arrival;
	uint32_t place = d->groups % WINDOW;

	d->groups++;
	d->delay += arrived_ms - sent_ms;
	d->smooth = 0.9 * d->smooth + 0.1 * d->delay;
	d->arrivals[place] = d->now.arrival;
	d->delays[place] = d->smooth;
	if (d->groups > 1)
		detect(d, cfg, d->groups < WINDOW ? d->trend : slope(d), sent_ms, d->now.arrival);
}

// A packet that was sent and has arrived at these times, in ms.
static void measure(struct detector *d, const struct config *cfg, double sent, double arrival) {
	struct group *now = &d->now;
	double arrived_ms = arrival - now->arrival, delay_ms = arrived_ms - (sent - now->sent);
	bool burst = delay_ms < 0 && arrived_ms <= 5 && arrival - now->first_arrival < 100;

	if (d->open && sent < now->first_sent)
		return;
	if (d->open && (burst || sent - now->first_sent <= 5)) {
		now->sent = most(now->sent, sent);
		now->arrival = arrival;
		return;
	}
	if (d->pair && now->arrival >= d->before.arrival)
		end_group(d, cfg);
	d->pair = d->open;
	d->before = *now;
	d->open = true;
	*now = (struct group){sent, sent, arrival, arrival};
}

// What was acknowledged, by the times of arrival.
static void measure_acked(struct state *s, double arrival_ms) {
	double span_ms = s->acked_kbps < 0 ? 500 : 150, kbps, off, var;
	double elapsed_ms = s->arrival_ms < 0 ? 0 : most(0, arrival_ms - s->arrival_ms);

	s->window_ms += elapsed_ms;
	if (elapsed_ms > span_ms) {
		s->bits = 0;
		s->window_ms -= span_ms * (double)(uint64_t)(s->window_ms / span_ms);
	}
	s->arrival_ms = arrival_ms;
	if (s->window_ms < span_ms)
		return;
	kbps = s->bits / span_ms;
	s->window_ms -= span_ms;
	s->bits = 0;
	if (s->acked_kbps < 0) {
		s->acked_kbps = kbps;
		return;
	}
	off = 10 * (kbps - s->acked_kbps) / most(1, s->acked_kbps);
	var = s->acked_var + 5;
	s->acked_kbps = (off * off * s->acked_kbps + var * kbps) / (off * off + var);
	s->acked_var = off * off * var / (off * off + var);
}

static void on_packet(void *state, const void *config, const struct cc_packet *packet) {
	struct state *s = state;

	if (packet->event == CC_PACKET_ACKED) {
		s->bits += packet->bytes * 8;
		s->acked_segs++;
	} else if (packet->event == CC_PACKET_LOST) {
		s->lost_segs++;
	}
	(void)config;
}

static void on_sample(void *state, const void *config, const struct cc_sample *sample) {
	struct state *s = state;

	s->one_way = sample->one_way;
	s->one_way_ns = sample->one_way_ns;
	(void)config;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct state *s = state;
	struct detector *d = s->flow->memory;
	double sent_ms = (double)ack->sent_ns / MS;
	double arrival_ms = (double)((int64_t)ack->sent_ns + s->one_way_ns) / MS;

	if (s->one_way && ack->acked_segs > 0) {
		if ((double)(ack->now_ns - s->seen_ns) > 2000 * MS)
			forget(d);
		measure(d, config, sent_ms, arrival_ms);
		measure_acked(s, arrival_ms);
		s->seen_ns = ack->now_ns;
		s->fresh = true;
	}
	s->one_way = false;
	s->srtt_ns = ack->srtt_ns;
	answer(s, config, out);
}

// Whether acked is more than three deviations from the capacity that is known.
static bool far(const struct state *s) {
	double off = s->acked_kbps - s->capacity_kbps;

	return off * off > 9 * s->capacity_var * s->capacity_kbps;
}

static void increase(struct state *s, uint64_t now_ns) {
	double most_bps = (1.5 * s->acked_kbps + 10) * KBIT, bps = s->delay_bps;
	double frame_bits = bps / 30, packets = (double)(uint64_t)(frame_bits / 9600) + 1;
	double response_ms = 2 * ((double)s->srtt_ns / MS + 100), elapsed_ns;

	if (s->capacity_kbps > 0 && s->acked_kbps > s->capacity_kbps && far(s))
		s->capacity_kbps = 0;
	elapsed_ns = (double)(now_ns - s->changed_ns);
	s->changed_ns = now_ns;
	if (elapsed_ns == 0 || (s->acked_kbps >= 0 && bps >= most_bps))
		return;
	if (s->capacity_kbps > 0)
		bps += most(4 * KBIT, frame_bits / packets * 1000 / response_ms) * elapsed_ns / 1e9;
	else
		for (double done = 0; done < least(elapsed_ns, 1e9); done += TICK_NS)
			bps = most(bps * TICK_GROWTH, bps + KBIT);
	s->delay_bps = s->acked_kbps >= 0 ? least(bps, most_bps) : bps;
}

static void decrease(struct state *s, uint64_t now_ns) {
	double bps = 0.85 * s->acked_kbps * KBIT;

	bps -= bps > 5 * KBIT ? 5 * KBIT : 0;
	if (s->acked_kbps < 0)
		bps = s->delay_bps / 2;
	else if (bps > s->delay_bps && s->capacity_kbps > 0)
		bps = 0.85 * s->capacity_kbps * KBIT;
	s->delay_bps = least(s->delay_bps, bps);
	s->changed_ns = now_ns;
	s->hold = true;
	if (s->acked_kbps < 0)
		return;
	if (s->capacity_kbps == 0 || (s->acked_kbps < s->capacity_kbps && far(s)))
		s->capacity_kbps = s->acked_kbps;
	s->capacity_kbps += 0.05 * (s->acked_kbps - s->capacity_kbps);
	bps = s->capacity_kbps - s->acked_kbps;
	s->capacity_var += 0.05 * (bps * bps / most(1, s->capacity_kbps) - s->capacity_var);
	s->capacity_var = clamp(s->capacity_var, 0.4, 2.5);
}

static void answer_delay(struct state *s, enum usage usage, uint64_t now_ns) {
	bool few = s->acked_kbps >= 0 && s->acked_kbps * KBIT < s->delay_bps / 2;
	double interval_ns = few ? 0 : clamp((double)s->srtt_ns, 10 * MS, 200 * MS);

	if (usage == OVERUSE && (double)(now_ns - s->changed_ns) >= interval_ns)
		decrease(s, now_ns);
	s->hold |= usage == UNDERUSE;
	if (usage != NORMAL)
		return;
	s->changed_ns = s->hold ? now_ns : s->changed_ns;
	s->hold = false;
	increase(s, now_ns);
}

static void answer_losses(struct state *s, uint64_t now_ns) {
	struct detector *d = s->flow->memory;
	uint32_t packets = s->acked_segs + s->lost_segs;
	double floor_bps = s->rate_bps;

	for (uint32_t i = 0; i < SECOND && i < d->ticks; i++)
		floor_bps = least(floor_bps, d->past_bps[i]);
	if (packets >= 20) {
		s->loss = (double)s->lost_segs / packets;
		s->acked_segs = s->lost_segs = 0;
		if (s->loss > 0.1 && now_ns - s->cut_ns >= 300000000 + s->srtt_ns) {
			s->rate_bps *= 1 - s->loss / 2;
			s->cut_ns = now_ns;
		}
	}
	if (s->loss <= 0.02)
		s->rate_bps = most(s->rate_bps, 1.08 * floor_bps + KBIT);
	s->rate_bps = least(s->rate_bps, s->delay_bps);
	d->past_bps[d->ticks++ % SECOND] = s->rate_bps;
}

static void on_timer(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->flow->timer(s->flow, TICK_NS);
	if (!s->fresh)
		return;
	s->fresh = false;
	answer_delay(s, ((struct detector *)s->flow->memory)->usage, now_ns);
	s->delay_bps = most(s->delay_bps, cfg->rmin_bps);
	answer_losses(s, now_ns);
	answer(s, cfg, out);
}

// Losses are answered by their part.
static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	(void)state, (void)config, (void)loss, (void)out;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->delay_bps = s->rate_bps = most(cfg->rmin_bps, 0.8 * s->rate_bps);
	answer(s, cfg, out);
	(void)loss;
}

static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;
	const struct detector *d = s->flow->memory;

	values[0] = (float)s->rate_bps;
	values[1] = (float)(s->acked_kbps * KBIT);
	values[2] = (float)d->scaled;
	values[3] = (float)d->threshold;
	(void)config;
}

static const struct cc_ops ops = {
	.name = "gcc",
	.summary = "GCC: a rate for interactive media by the delay's gradient, as libwebrtc's",
	.reference = "draft-ietf-rmcat-gcc (Google Congestion Control)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.ack_each = true,
	.observed = {"rate_bps", "acked_bps", "trend_ms", "threshold_ms"},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.observe = observe,
	.on_sample = on_sample,
	.memory_bytes = sizeof(struct detector),
	.open = open_flow,
	.on_timer = on_timer,
	.on_packet = on_packet,
};

CC_PLUGIN(ops);
