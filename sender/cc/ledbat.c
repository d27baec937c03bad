// SPDX-License-Identifier: BSD-3-Clause
// LEDBAT (RFC 6817): a control for background transfers, which keeps the queueing delay at a target
// and gives way to loss-based flows when they keep more than that in the queue.
//
//	base     = smallest delay of the last 10 minutes, kept as minima of whole minutes (2.4.2)
//	current  = smallest of the last 4 delays (MIN filter)
//	off      = 1 - (current - base) / target
//
//	each ACK:          cwnd += gain off acked / cwnd
//	then               cwnd = min(cwnd, flight + ALLOWED_INCREASE), flight as it was before it
//	                   cwnd = max(cwnd, MIN_CWND)
//	loss or ECN echo:  cwnd = max(cwnd / 2, MIN_CWND)    once per window
//	timeout:           cwnd = 1
//
// With gain 1 and an empty queue it grows by a segment per round trip, like Reno in congestion
// avoidance; with twice the target in the queue it shrinks as fast. Near the target it is a
// first-order loop: the distance to it falls by 1/e in target / transmission time round trips.
//
// Where we differ from the RFC, and why
//   - The RFC measures the one-way delay, by timestamps of the receiver; `delay: one_way` does,
//     in steps of 1 ms, and the drift of the receiver's clock is not corrected (RFC, appendix
//     A.2). By default it measures round-trip times, so a queue on the way back counts too, as
//     does the wait of a delayed ACK.
//   - A minute without a sample takes its place in the history and leaves it empty; the RFC's code
//     moves the history on by one place at the next sample, however long that took.
//   - The ACK that shows a loss to be spurious gives the window back (RFC 4015), which its flight
//     does not limit: that is of the reduced window.
//   - cwnd never grows in fast recovery or on ACKs that do not advance the cumulative ACK
//     (RFC 5681); it may shrink.
//   - Windows are real numbers. There is no slow start, as in the RFC's pseudocode.
//
// Known and not corrected, as in the RFC: a flow that starts while another keeps the target takes
// that queue for the path and adds its own; and a flow alone for longer than the history takes its
// own queue for the path.
#include "sender/cc/cc.h"

#define MINUTE_NS (60 * NS_PER_S)
#define HISTORY_MAX 10
#define FILTER_MAX 8
#define NO_DELAY UINT64_MAX
#define ONE_WAY_ZERO ((uint64_t)1 << 62) // the clocks' difference may be negative

static const char *const delay_names[] = {"rtt", "one_way", NULL};
enum delay { DELAY_RTT, DELAY_ONE_WAY };

struct config {
	double initial_segs, min_segs, target_ns, gain, allowed_segs;
	uint64_t history, filter;
	int delay;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{"initial", "2", "initial window in segments (INIT_CWND)", UNIT_NONE,
		F64(initial_segs, 1, 1000)},
	{"min_cwnd", "2", "smallest window in segments, but after a timeout (MIN_CWND)", UNIT_NONE,
		F64(min_segs, 1, 1000)},
	{"target", "100ms", "queueing delay it keeps (TARGET); the RFC allows 100 ms at most",
		UNIT_TIME_NS, F64(target_ns, 1e3, 1e8)},
	{"gain", "1",
		"segments per round trip added to an empty queue (GAIN); the RFC allows 1 "
		"at most, RFC 7928, section 5.4, wants 10 with a target of 5 ms",
		UNIT_NONE, F64(gain, 0.001, 10)},
	{"allowed_increase", "1", "how far the window may exceed the data in flight, in segments",
		UNIT_NONE, F64(allowed_segs, 0.001, 1000)},
	{"base_history", "10", "minutes for which the base delay is kept (BASE_HISTORY)", UNIT_NONE,
		PARAM_U64(struct config, history), 1, HISTORY_MAX},
	{"current_filter", "4",
		"samples of which the smallest is the current delay (CURRENT_FILTER)", UNIT_NONE,
		PARAM_U64(struct config, filter), 1, FILTER_MAX},
	{"delay", "rtt",
		"what is measured: the round trip, or one way by the receiver's timestamps",
		UNIT_NONE, PARAM_ENUM(struct config, delay, delay_names)},
	PARAM_END,
};

struct ledbat {
	uint64_t minute; // of the newest entry of base_ns
	uint64_t base_ns[HISTORY_MAX]; // minima, by minute modulo the history
	uint64_t current_ns[FILTER_MAX]; // the last samples
	double undo_segs; // the window before the last reduction
	uint32_t samples; // ever, modulo the filter: where the next one goes
	bool measured;
	bool undone; // the flight before the next ACK is that of the reduced window
};
static_assert(sizeof(struct ledbat) <= CC_STATE_MAX_BYTES, "state too large");

static double ledbat_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs > cfg->min_segs ? cfg->initial_segs : cfg->min_segs;
}

static void ledbat_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct ledbat *l = state;

	*l = (struct ledbat){.minute = now_ns / MINUTE_NS};
	for (int i = 0; i < HISTORY_MAX; i++)
		l->base_ns[i] = NO_DELAY;
	for (int i = 0; i < FILTER_MAX; i++)
		l->current_ns[i] = NO_DELAY;
	out->cwnd_segs = cfg->initial_segs;
	out->pacing_bps = 0;
}

static uint64_t smallest(const uint64_t *ns, uint64_t n) {
	uint64_t min_ns = NO_DELAY;

	for (uint64_t i = 0; i < n; i++)
		min_ns = ns[i] < min_ns ? ns[i] : min_ns;
	return min_ns;
}

static void measure(
	struct ledbat *l, const struct config *cfg, uint64_t delay_ns, uint64_t now_ns) {
	uint64_t minute = now_ns / MINUTE_NS, *base;

	for (uint64_t i = 0; i < cfg->history && l->minute < minute; i++)
		l->base_ns[++l->minute % cfg->history] = NO_DELAY;
	l->minute = minute;
	base = &l->base_ns[minute % cfg->history];
	*base = delay_ns < *base ? delay_ns : *base;
	l->current_ns[l->samples] = delay_ns;
	l->samples = (l->samples + 1) % (uint32_t)cfg->filter;
	l->measured = true;
}

static double queueing_ns(const struct ledbat *l, const struct config *cfg) {
	if (!l->measured)
		return 0;
	return (double)(smallest(l->current_ns, cfg->filter) - smallest(l->base_ns, cfg->history));
}

static void ledbat_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct ledbat *l = state;
	double off, cwnd, allowed = ack->prior_inflight_segs + cfg->allowed_segs;

	if (ack->rtt_ns > 0 && cfg->delay == DELAY_RTT)
		measure(l, cfg, ack->rtt_ns, ack->now_ns);
	off = 1 - queueing_ns(l, cfg) / cfg->target_ns;
	if (off > 0 && (!ack->in_sequence || ack->in_recovery))
		return;
	cwnd = out->cwnd_segs + cfg->gain * off * ack->acked_segs / out->cwnd_segs;
	if (cwnd > allowed && !ack->in_recovery && !l->undone)
		cwnd = allowed;
	l->undone = false;
	out->cwnd_segs = cwnd > cfg->min_segs ? cwnd : cfg->min_segs;
}

static bool ledbat_wants(const void *config) {
	const struct config *cfg = config;

	return cfg->delay == DELAY_ONE_WAY;
}

static void ledbat_on_sample(void *state, const void *config, const struct cc_sample *sample) {
	if (sample->one_way)
		measure(state, config, (uint64_t)sample->one_way_ns + ONE_WAY_ZERO, sample->now_ns);
}

static void ledbat_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct config *cfg = config;
	struct ledbat *l = state;
	double half = out->cwnd_segs / 2;

	l->undo_segs = out->cwnd_segs;
	half = half > cfg->min_segs ? half : cfg->min_segs;
	out->cwnd_segs = half < out->cwnd_segs ? half : out->cwnd_segs;
}

static void ledbat_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct ledbat *l = state;

	if (!loss->repeated)
		l->undo_segs = out->cwnd_segs;
	out->cwnd_segs = 1;
}

static void ledbat_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct ledbat *l = state;

	if (l->undo_segs > out->cwnd_segs)
		out->cwnd_segs = l->undo_segs;
	l->undone = true;
}

static void ledbat_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct config *cfg = config;
	const struct ledbat *l = state;

	int64_t zero = cfg->delay == DELAY_ONE_WAY ? ONE_WAY_ZERO : 0;

	if (!l->measured)
		return;
	out[0] = (float)queueing_ns(l, cfg);
	out[1] = (float)((int64_t)smallest(l->base_ns, cfg->history) - zero);
}

const struct cc_ops cc_ledbat = {
	.name = "ledbat",
	.summary = "LEDBAT: a queueing delay of 100 ms at most, gives way to others (RFC 6817)",
	.reference = "RFC 6817 (LEDBAT)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct ledbat),
	.prr = true,
	.ecn = true,
	.observed = {"qdelay_ns", "base_ns"},
	.given_window = ledbat_given_window,
	.init = ledbat_init,
	.on_ack = ledbat_on_ack,
	.on_loss = ledbat_on_loss,
	.on_rto = ledbat_on_rto,
	.on_spurious = ledbat_on_spurious,
	.observe = ledbat_observe,
	.on_sample = ledbat_on_sample,
	.wants = ledbat_wants,
};
