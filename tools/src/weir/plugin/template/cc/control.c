// NAME: a congestion control for Weir.
//
// It begins as NewReno (RFC 5681, 6582) in full, so that it runs at once and gives exactly what
// `cc: newreno` gives: change it from here. Of the RFCs:
//
//	slow start, cwnd < ssthresh:  cwnd += min(acked, 2)
//	avoidance:                    cwnd += acked / cwnd              1 segment per round trip
//	loss or ECN echo:             ssthresh = cwnd = max(cwnd / 2, 2)   once per window
//	timeout:                      ssthresh likewise, cwnd = 1
//	idle for an RTO or more:      cwnd = min(cwnd, initial)
//	spurious loss:                cwnd and ssthresh as before, if that is more
//
// The transport finds losses, delimits episodes, moves to a smaller window step by step, paces and
// retransmits. A control only answers {cwnd, pacing rate}. What each measurement means stands in
// weir/cc.h.
#include <weir/cc.h>

// The parameters: `cc: {plugin: ./NAME.so, initial: 20}`. One per group of flows; read-only.
struct config {
	double initial_segs;
	double beta; // what a loss leaves of the window
};

static const struct param params[] = {
	{"initial", "10", "initial and restart window in segments (RFC 6928)", UNIT_NONE,
		PARAM_F64(struct config, initial_segs), .min = 1, .max = 1000},
	{"beta", "50%", "what a loss leaves of the window", UNIT_RATIO,
		PARAM_F64(struct config, beta), .min = 0.01, .max = 1},
	PARAM_END,
};

// One per flow, zeroed before init, in the flow's own memory: no pointers into it may be kept.
struct state {
	double ssthresh_segs;
	double prior_cwnd_segs, prior_ssthresh_segs; // before the last reduction
	bool episode; // reduced already; ends with fast recovery
	bool timeout; // until the slow start after it is over
	bool slow_start;
};

#define SSTHRESH_UNSET_SEGS 1e9
#define SSTHRESH_MIN_SEGS 2.0

static double given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->ssthresh_segs = SSTHRESH_UNSET_SEGS;
	s->slow_start = true;
	out->cwnd_segs = cfg->initial_segs;
	out->pacing_bps = 0; // not paced
	(void)mss_bytes, (void)rtt_ns, (void)now_ns;
}

// Slow start for `acked` segments; returns those left for congestion avoidance.
static double slow_start(struct state *s, double acked, struct cc_out *out) {
	double limit = s->timeout ? 1 : 2; // RFC 3465 section 2.3
	double step = acked < limit ? acked : limit, room = s->ssthresh_segs - out->cwnd_segs;

	if (out->cwnd_segs + step <= s->ssthresh_segs) {
		out->cwnd_segs += step;
		return 0;
	}
	out->cwnd_segs = s->ssthresh_segs;
	return step - room;
}

static void grow(struct state *s, double acked, struct cc_out *out) {
	if (out->cwnd_segs < s->ssthresh_segs) {
		acked = slow_start(s, acked, out);
		if (acked <= 0)
			return;
	}
	s->timeout = false;
	out->cwnd_segs += acked / out->cwnd_segs;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct state *s = state;

	if (!ack->in_recovery)
		s->episode = false;
	// An unused window was never tested (RFC 2861).
	if (ack->in_sequence && ack->cwnd_limited && !ack->in_recovery)
		grow(s, ack->acked_segs, out);
	s->slow_start = out->cwnd_segs < s->ssthresh_segs;
	(void)config;
}

// Sets ssthresh, and remembers what a spurious loss gives back.
static void lower(struct state *s, const struct config *cfg, const struct cc_out *out) {
	double segs = out->cwnd_segs * cfg->beta;

	s->prior_cwnd_segs = out->cwnd_segs;
	s->prior_ssthresh_segs = s->ssthresh_segs;
	s->ssthresh_segs = segs > SSTHRESH_MIN_SEGS ? segs : SSTHRESH_MIN_SEGS;
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	lower(s, config, out);
	s->episode = true;
	s->timeout = s->slow_start = false;
	out->cwnd_segs = s->ssthresh_segs;
	(void)loss;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	if (!s->episode && !loss->repeated)
		lower(s, config, out);
	s->episode = s->timeout = true;
	out->cwnd_segs = 1;
}

static void on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	if (s->prior_cwnd_segs > out->cwnd_segs)
		out->cwnd_segs = s->prior_cwnd_segs;
	if (s->prior_ssthresh_segs > s->ssthresh_segs)
		s->ssthresh_segs = s->prior_ssthresh_segs;
	s->episode = s->timeout = false;
	(void)config, (void)now_ns;
}

static void on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct config *cfg = config;

	if (out->cwnd_segs > cfg->initial_segs)
		out->cwnd_segs = cfg->initial_segs;
	(void)state, (void)now_ns, (void)idle_ns;
}

// For plots: obs0 to obs3 of the `cc` records, under the names in `observed`.
static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;

	values[0] = (float)s->ssthresh_segs;
	(void)config;
}

#define MODES(V)                                                                                   \
	V(MODE_SLOW_START, "slow_start")                                                           \
	V(MODE_AVOIDANCE, "avoidance")                                                             \
	V(MODE_RECOVERY, "recovery")                                                               \
	V(MODE_TIMEOUT, "timeout")
enum mode { MODES(CC_MODE_CONSTANT) };

// A change of the mode is an event.
static uint8_t mode(const void *state, const void *config) {
	const struct state *s = state;

	(void)config;
	if (s->timeout)
		return MODE_TIMEOUT;
	if (s->episode)
		return MODE_RECOVERY;
	return s->slow_start ? MODE_SLOW_START : MODE_AVOIDANCE;
}

static double ssthresh(const void *state, const void *config) {
	const struct state *s = state;

	(void)config;
	return s->ssthresh_segs;
}

static_assert(sizeof(struct state) <= CC_STATE_MAX_BYTES, "a flow has no more room");

static const struct cc_ops ops = {
	.name = "NAME",
	.summary = "NewReno, to be changed",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.prr = true,
	.ecn = true,
	.observed = {"ssthresh_segs"},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.on_spurious = on_spurious,
	.on_idle = on_idle,
	.observe = observe,
	.mode = mode,
	.modes = {MODES(CC_MODE_TEXT)},
	.ssthresh = ssthresh,
};

CC_PLUGIN(ops);
