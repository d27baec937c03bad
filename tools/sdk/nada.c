// SPDX-License-Identifier: BSD-3-Clause
// NADA (RFC 8698): a rate for interactive media from one aggregate signal of delay and loss.
//
//	x     = d + DLOSS (p / PLRREF)^2                                    (section 4.2)
//	d     = queueing delay, one way; smallest of 15 samples (min filter), warped if there were
//	        losses of late and it is above QTH: QTH exp(-LAMBDA (d - QTH) / QTH)
//	p     = part of the packets lost in the last LOGWIN, smoothed by ALPHA
//
//	each DELTA, of the time since the last update, T = TAU              (section 4.3)
//	no loss and no queueing delay above QEPS in the last LOGWIN, accelerated ramp-up:
//	      rate = max(rate, (1 + min(GAMMA_MAX, QBOUND / (rtt + DELTA + DFILT))) received rate)
//	else, gradual update:
//	      offset = x - PRIO XREF RMAX / rate
//	      rate  -= KAPPA DELTA / T offset / T rate + KAPPA ETA (x - x before) / T rate
//
// In equilibrium x = PRIO XREF RMAX / rate: the queue is as long as that says, and flows at one
// bottleneck get rates in proportion to their PRIO (section 6.1).
//
// What it takes from the interface: a timer, what happens to each segment, the one-way delay, more
// memory than a state has, notes.
//
// Where it differs from the RFC
//   - The sender calculates what the RFC's receiver does and reports: it has the receiver's
//     timestamps, and knows which segments are acknowledged and lost.
//   - Lost segments are sent again, as part of the rate: the transport is TCP's. Of ECN marks it
//     knows nothing.
//   - The transport's window is twice what the rate has in flight, so that the rate limits. A
//     retransmission timeout is the absence of feedback: the rate goes to RMIN (section 5.3 leaves
//     that open).
#include <weir/cc.h>

#define MS 1000000.0
#define DELTA_NS 100000000 // 100 ms, the interval of feedback
#define TAU_MS 500.0
#define KAPPA 0.5
#define ETA 2.0
#define QEPS_MS 10.0
#define QBOUND_MS 50.0
#define DFILT_MS 120.0
#define GAMMA_MAX 0.5
#define QTH_MS 50.0
#define LAMBDA 0.5
#define PLRREF 0.01
#define DLOSS_MS 10.0
#define ALPHA 0.1
#define MULTILOSS 7.0
#define TAPS 15
#define SLOT_NS 5000000 // the last LOGWIN, 500 ms, in slots of 5 ms
#define SLOTS 100

struct config {
	double prio, xref_ns, rmin_bps, rmax_bps;
};

static const struct param params[] = {
	{"prio", "1", "weight of the flow (PRIO)", UNIT_NONE, PARAM_F64(struct config, prio),
		.min = 0.01, .max = 100},
	{"xref", "10ms", "reference of the congestion signal (XREF)", UNIT_TIME_NS,
		PARAM_F64(struct config, xref_ns), .min = 1e5, .max = 1e9},
	{"rmin", "150kbit", "smallest rate (RMIN)", UNIT_RATE_BPS,
		PARAM_F64(struct config, rmin_bps), .min = 1e3, .max = 1e12},
	{"rmax", "1.5Mbit", "largest rate (RMAX)", UNIT_RATE_BPS,
		PARAM_F64(struct config, rmax_bps), .min = 1e3, .max = 1e12},
	PARAM_END,
};

// What happened in one slot of LOGWIN.
struct slot {
	uint64_t number; // of the slot, since time 0; else what it holds is out of date
	uint32_t acked_bytes, acked_segs, lost_segs;
	float delay_ms; // the longest queueing delay
};

struct state {
	struct cc_flow *flow;
	double mss_bits, rate_bps, x_ms, loss, delay_ms;
	double received_bps, offset_ms; // of the last update, for notes
	int64_t base_ns, delay_ns[TAPS]; // one way, with the difference of the clocks
	uint64_t samples, updated_ns, srtt_ns;
	double loss_gap_segs, last_gap_segs; // segments between losses: mean, and since the last
	bool ramp;
};
static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "state too large");

enum note { NOTE_RECEIVED, NOTE_OFFSET, NOTE_RAMP };

static double given_window(const void *config) {
	(void)config;
	return 4;
}

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	struct state *s = state;

	s->flow = flow;
	(void)config;
}

static double clip(const struct config *cfg, double bps) {
	bps = bps < cfg->rmax_bps ? bps : cfg->rmax_bps;
	return bps > cfg->rmin_bps ? bps : cfg->rmin_bps;
}

static void answer(const struct state *s, struct cc_out *out) {
	double segs = 2 * s->rate_bps * (double)s->srtt_ns / 1e9 / s->mss_bits;

	out->pacing_bps = s->rate_bps;
	out->cwnd_segs = segs > 4 ? segs : 4;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->mss_bits = mss_bytes * 8;
	s->rate_bps = cfg->rmin_bps;
	s->srtt_ns = rtt_ns;
	s->updated_ns = now_ns;
	s->ramp = true;
	s->flow->timer(s->flow, DELTA_NS);
	answer(s, out);
}

// The slot of now, emptied if it was of an earlier time.
static struct slot *slot_at(const struct state *s, uint64_t now_ns) {
	struct slot *slots = s->flow->memory, *slot = &slots[now_ns / SLOT_NS % SLOTS];

	if (slot->number != now_ns / SLOT_NS)
		*slot = (struct slot){.number = now_ns / SLOT_NS};
	return slot;
}

static void on_packet(void *state, const void *config, const struct cc_packet *packet) {
	struct state *s = state;
	struct slot *slot = slot_at(s, packet->now_ns);

	if (packet->event == CC_PACKET_ACKED) {
		slot->acked_bytes += packet->bytes;
		slot->acked_segs++;
		s->last_gap_segs++;
	} else if (packet->event == CC_PACKET_LOST) {
		slot->lost_segs++;
		s->loss_gap_segs = s->loss_gap_segs == 0
			? s->last_gap_segs
			: s->loss_gap_segs + ALPHA * (s->last_gap_segs - s->loss_gap_segs);
		s->last_gap_segs = 0;
	}
	(void)config;
}

static void on_sample(void *state, const void *config, const struct cc_sample *sample) {
	struct state *s = state;
	struct slot *slot = slot_at(s, sample->now_ns);
	int64_t least = sample->one_way_ns;

	if (!sample->one_way)
		return;
	if (s->samples == 0 || least < s->base_ns)
		s->base_ns = least;
	s->delay_ns[s->samples++ % TAPS] = sample->one_way_ns;
	for (uint64_t i = 0; i < TAPS && i < s->samples; i++)
		least = s->delay_ns[i] < least ? s->delay_ns[i] : least;
	s->delay_ms = (double)(least - s->base_ns) / MS;
	s->srtt_ns = sample->srtt_ns;
	if (s->delay_ms > slot->delay_ms)
		slot->delay_ms = (float)s->delay_ms;
	(void)config;
}

// exp(-x), x >= 0, by multiplications only: the same on every machine.
static double exp_of_minus(double x) {
	double y = x / 1024, power = 1 / (1 + y * (1 + y / 2 * (1 + y / 3)));

	for (int i = 0; i < 10; i++)
		power *= power;
	return power;
}

// The aggregate signal of what happened in LOGWIN.
static double signal_ms(struct state *s, double acked, double lost) {
	double part = acked + lost > 0 ? lost / (acked + lost) : 0, d = s->delay_ms;
	bool lossy = s->loss_gap_segs > 0 && s->last_gap_segs < MULTILOSS * s->loss_gap_segs;

	s->loss += ALPHA * (part - s->loss);
	if (d > QTH_MS && lossy)
		d = QTH_MS * exp_of_minus(LAMBDA * (d - QTH_MS) / QTH_MS);
	return d + DLOSS_MS * (s->loss / PLRREF) * (s->loss / PLRREF);
}

static void update(struct state *s, const struct config *cfg, double x_ms, double elapsed_ms) {
	double rtt_ms = (double)s->srtt_ns / MS, gamma = QBOUND_MS / (rtt_ms + 100 + DFILT_MS);
	double rate = s->rate_bps;

	if (s->ramp) {
		gamma = 1 + (gamma < GAMMA_MAX ? gamma : GAMMA_MAX);
		rate = rate > gamma * s->received_bps ? rate : gamma * s->received_bps;
	} else {
		s->offset_ms = x_ms - cfg->prio * cfg->xref_ns / MS * cfg->rmax_bps / rate;
		rate -= KAPPA * (elapsed_ms / TAU_MS) * (s->offset_ms / TAU_MS) * s->rate_bps
			+ KAPPA * ETA * ((x_ms - s->x_ms) / TAU_MS) * s->rate_bps;
	}
	s->x_ms = x_ms;
	s->rate_bps = clip(cfg, rate);
}

static void on_timer(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;
	const struct slot *slots = s->flow->memory;
	double bytes = 0, acked = 0, lost = 0, longest_ms = 0, before = s->received_bps;
	bool ramp = s->ramp;

	for (int i = 0; i < SLOTS; i++) {
		if (slots[i].number + SLOTS <= now_ns / SLOT_NS)
			continue;
		bytes += slots[i].acked_bytes;
		acked += slots[i].acked_segs;
		lost += slots[i].lost_segs;
		longest_ms =
			slots[i].delay_ms > longest_ms ? (double)slots[i].delay_ms : longest_ms;
	}
	s->received_bps = bytes * 8 * 1e9 / (SLOTS * (double)SLOT_NS);
	s->ramp = lost == 0 && longest_ms < QEPS_MS;
	if (s->ramp != ramp)
		s->flow->note(s->flow, NOTE_RAMP, ramp, s->ramp);
	update(s, config, signal_ms(s, acked, lost), (double)(now_ns - s->updated_ns) / MS);
	s->flow->note(s->flow, NOTE_RECEIVED, before, s->received_bps);
	s->flow->note(s->flow, NOTE_OFFSET, 0, s->offset_ms);
	s->updated_ns = now_ns;
	s->flow->timer(s->flow, DELTA_NS);
	answer(s, out);
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	(void)config, (void)ack;
	answer(state, out);
}

// Losses are part of the signal.
static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	(void)state, (void)config, (void)loss, (void)out;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->rate_bps = cfg->rmin_bps;
	answer(s, out);
	(void)loss;
}

static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;

	values[0] = (float)s->rate_bps;
	values[1] = (float)s->x_ms;
	values[2] = (float)s->delay_ms;
	values[3] = (float)s->loss;
	(void)config;
}

static const struct cc_ops ops = {
	.name = "nada",
	.summary = "NADA: a rate for interactive media, by delay and loss (RFC 8698)",
	.reference = "RFC 8698 (NADA)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.ack_each = true,
	.observed = {"rate_bps", "x_ms", "qdelay_ms", "loss"},
	.notes = {[NOTE_RECEIVED] = "received_bps",
		[NOTE_OFFSET] = "offset_ms",
		[NOTE_RAMP] = "ramp_up"},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.observe = observe,
	.on_sample = on_sample,
	.memory_bytes = SLOTS * sizeof(struct slot),
	.open = open_flow,
	.on_timer = on_timer,
	.on_packet = on_packet,
};

CC_PLUGIN(ops);
