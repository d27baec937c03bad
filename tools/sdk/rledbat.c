// SPDX-License-Identifier: BSD-3-Clause
// rLEDBAT (RFC 9840): the receiver limits the window that it offers, so that a download stays in
// the background, whatever the sender's control is. Here that is NewReno (RFC 5681).
//
//	delay   the receiver's clock less the segment's timestamp, the smallest of 4 samples
//	queue   delay less the smallest of the connection
//	window += bytes                       until the queue is 3/4 of the target; from then on
//	window += (target - queue) / target * bytes * mss / window         (RFC 6817, GAIN 1)
//	window /= 2                           once per round trip with a segment sent again
//
// What was offered is not taken back: the window shrinks as data arrives (section 4.1). The window
// is at most twice what arrived in a round trip, and ten segments. An ACK can only shrink it by
// whole units of the window scale: the group needs a `rwnd` of some MB, or the window stays.
//
// What it takes from the interface: on_arrival, and nothing else that NewReno does not.
//
// Where it differs from the RFC: the base delay does not expire after ten minutes; a segment
// that was overtaken counts as sent again; there are no slowdowns (LEDBAT++).
#include <weir/cc.h>

#define FILTER 4
#define INITIAL_SEGS 10

struct config {
	double target_ns;
};

static const struct param params[] = {
	{"target", "60ms", "queueing delay that the receiver keeps", UNIT_TIME_NS,
		PARAM_F64(struct config, target_ns), .min = 1e6, .max = 1e9},
	PARAM_END,
};

// ---- At the receiver ----

struct receiver {
	double window; // bytes
	int32_t base_ms, delay_ms[FILTER]; // with the difference of the two clocks
	uint32_t samples, mss, arrived, arrived_before, round_ts, halved_ts;
	bool started; // slow start is over
};
static_assert(sizeof(struct receiver) <= CC_RECEIVER_BYTES, "state too large");

static double queue_ms(struct receiver *r, const struct cc_arrival *a) {
	int32_t delay = (int32_t)(a->now_ts - a->tsval), least = delay;

	if (r->samples == 0 || delay < r->base_ms)
		r->base_ms = delay;
	r->delay_ms[r->samples++ % FILTER] = delay;
	for (uint32_t i = 0; i < FILTER && i < r->samples; i++)
		least = r->delay_ms[i] < least ? r->delay_ms[i] : least;
	return least - r->base_ms;
}

static uint64_t on_arrival(void *receiver, const void *config, const struct cc_arrival *a) {
	double target = ((const struct config *)config)->target_ns / 1e6, queue, most;
	struct receiver *r = receiver;
	uint32_t rtt = a->now_ts - a->tsecr;

	if (a->tsval == 0)
		return UINT64_MAX;
	r->mss = a->bytes > r->mss ? a->bytes : r->mss;
	if (r->window == 0)
		r->window = INITIAL_SEGS * r->mss;
	queue = queue_ms(r, a);
	r->started |= queue >= 0.75 * target || a->late;
	if (a->tsecr != 0 && a->now_ts - r->round_ts >= rtt) {
		r->arrived_before = r->arrived;
		r->arrived = 0;
		r->round_ts = a->now_ts;
	}
	r->arrived += a->bytes;
	if (a->late && a->now_ts - r->halved_ts >= rtt) {
		r->window /= 2;
		r->halved_ts = a->now_ts;
	} else if (!r->started) {
		r->window += a->bytes;
	} else {
		r->window += (target - queue) / target * a->bytes * r->mss / r->window;
	}
	most = 2.0 * (r->arrived > r->arrived_before ? r->arrived : r->arrived_before)
		+ INITIAL_SEGS * r->mss;
	r->window = r->window < most ? r->window : most;
	r->window = r->window > 2 * r->mss ? r->window : 2 * r->mss;
	return (uint64_t)r->window;
}

// ---- At the sender ----

struct state {
	double ssthresh;
};

static double given_window(const void *config) {
	(void)config;
	return INITIAL_SEGS;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	((struct state *)state)->ssthresh = 1e9;
	*out = (struct cc_out){.cwnd_segs = INITIAL_SEGS};
	(void)config, (void)mss_bytes, (void)rtt_ns, (void)now_ns;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct state *s = state;

	if (!ack->in_sequence || !ack->cwnd_limited || ack->in_recovery)
		return;
	out->cwnd_segs +=
		out->cwnd_segs < s->ssthresh ? ack->acked_segs : ack->acked_segs / out->cwnd_segs;
	(void)config;
}

static void halve(struct state *s, const struct cc_loss *loss) {
	s->ssthresh = loss->inflight_segs > 4 ? loss->inflight_segs / 2.0 : 2;
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	halve(state, loss);
	out->cwnd_segs = ((struct state *)state)->ssthresh;
	(void)config;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	if (!loss->repeated)
		halve(state, loss);
	out->cwnd_segs = 1;
	(void)config;
}

static const struct cc_ops ops = {
	.name = "rledbat",
	.summary = "rLEDBAT: a receiver that keeps a download in the background (RFC 9840)",
	.reference = "RFC 9840 (rLEDBAT)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.prr = true,
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.on_arrival = on_arrival,
};

CC_PLUGIN(ops);
