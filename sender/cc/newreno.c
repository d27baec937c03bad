// SPDX-License-Identifier: BSD-3-Clause
// NewReno with SACK (RFC 5681, 6582, 6675) and appropriate byte counting (RFC 3465): the window.
//
//	slow start, cwnd < ssthresh:  cwnd += min(acked, L)
//	avoidance:                    cwnd += acked / cwnd           (1 segment per round trip)
//	loss or ECN echo:             ssthresh = cwnd = max(cwnd / 2, 2)    once per window
//	timeout:                      ssthresh likewise, cwnd = 1
//	idle for an RTO or more:      cwnd = min(cwnd, initial window)
//	spurious loss:                cwnd and ssthresh as before, if that is more (RFC 4015)
//
// The transport detects losses (RACK-TLP, DupThresh), delimits episodes (the `recover` rule of RFC
// 6582) and moves to the new window (PRR, RFC 9937); this file only computes the window. Windows
// are real numbers, so congestion avoidance needs no counter of its own.
//
// The window grows only if it was the limit (RFC 2861: an unused window was never tested), on ACKs
// that advance the cumulative ACK, and never in fast recovery.
//
// Where we differ from the RFCs, and why
//   - Initial window 10 (RFC 6928), a parameter. Fractional windows instead of bytes or counters.
//   - `halve: cwnd` is the default, as in Linux; RFC 5681 (4) halves FlightSize. The RFC's reason
//     is a cwnd grown beyond the data in flight, which cannot happen here as growth needs a full
//     window. Our pipe, on the other hand, already excludes SACKed segments when a loss is
//     detected: three or more, and half a window if a burst of losses is detected late. Halving it
//     would reduce small windows twice. `halve: flight` is the RFC's rule.
//   - A timeout inside an episode that has halved already (a lost retransmission, a repeated
//     timeout) leaves ssthresh alone, as in Linux; RFC 5681 section 3.1 asks this for repeated
//     timeouts only.
//   - L = 2 (RFC 3465's upper bound; 0: unlimited, as in Linux, which trusts its pacing); L = 1 in
//     the slow start after a timeout, where one ACK may cover segments that were mostly delivered
//     before the timeout (RFC 3465 section 2.3).
//   - The restart window after idling replaces cwnd at once (RFC 5681 section 4.1); Linux decays it
//     by half per RTO. `idle_restart: no` keeps the window.
#include "sender/cc/reno.h"

static const char *const halve_names[] = {"cwnd", "flight", NULL};
enum halve { HALVE_CWND, HALVE_FLIGHT };

struct config {
	struct slow_start slow_start;
	int halve;
};

static const struct param params[] = {
	SLOW_START_INITIAL(struct config, slow_start),
	SLOW_START_ABC_LIMIT(struct config, slow_start, "2", "RFC 3465"),
	{"halve", "cwnd", "what a loss halves: cwnd (Linux) or flight (RFC 5681)", UNIT_NONE,
		PARAM_ENUM(struct config, halve, halve_names)},
	SLOW_START_IDLE_RESTART(struct config, slow_start),
	PARAM_END,
};

static_assert(sizeof(struct reno) <= CC_STATE_MAX_BYTES, "state too large");
static_assert(offsetof(struct config, slow_start) == 0, "reno.h finds it there");

static void newreno_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;

	reno_init(state, &cfg->slow_start, out);
}

static void newreno_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;

	reno_on_ack(state, &cfg->slow_start, ack, out);
}

static double half(const struct config *cfg, const struct cc_loss *loss, const struct cc_out *out) {
	return (cfg->halve == HALVE_FLIGHT ? loss->inflight_segs : out->cwnd_segs) / 2;
}

static void newreno_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	reno_on_loss(state, half(config, loss, out), out);
}

static void newreno_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	reno_on_rto(state, half(config, loss, out), loss, out);
}

static void newreno_observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct reno *r = state;

	out[0] = (float)r->ssthresh_segs;
}

const struct cc_ops cc_newreno = {
	.name = "newreno",
	.alias = "reno",
	.summary = "NewReno with SACK and byte counting (RFC 5681, 6582, 6675, 3465)",
	.reference = "RFC 5681, 6582, 6675 (NewReno with SACK), RFC 3465 (byte counting)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct reno),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs"},
	.given_window = reno_given_window,
	.init = newreno_init,
	.on_ack = newreno_on_ack,
	.on_loss = newreno_on_loss,
	.on_rto = newreno_on_rto,
	.on_spurious = reno_on_spurious,
	.on_idle = reno_on_idle,
	.observe = newreno_observe,
	.mode = reno_mode,
	.modes = {RENO_MODES(CC_MODE_TEXT)},
	.ssthresh = reno_ssthresh,
};
