// SPDX-License-Identifier: BSD-3-Clause
// LIA, the coupled congestion control of Multipath TCP (RFC 6356): the subflows of a connection
// together take as much of a shared bottleneck as one TCP flow, and move to the better paths.
//
//	w = sum of w_i        a = w max(w_i / rtt_i^2) / (sum of w_i / rtt_i)^2      (section 4)
//
//	slow start, w_i < ssthresh:  w_i += acked
//	avoidance:                   w_i += min(a acked / w, acked / w_i)
//	loss or ECN echo:            ssthresh = w_i = max(w_i / 2, 2)    once per window
//	timeout:                     ssthresh likewise, w_i = 1
//	idle for an RTO or more:     w_i = min(w_i, initial)
//
// A subflow is a flow of a group; flow 0 of all groups that name the same connection are the
// subflows of one connection, flow 1 of each those of another, and so on:
//
//	flows:
//	  - {count: 10, path: left, cc: {plugin: ./lia.so, connection: a}}
//	  - {count: 10, path: right, cc: {plugin: ./lia.so, connection: a}}
//
// What it takes from the interface: memory that flows share (cc_ops.shared_bytes).
//
// Where it differs from the RFC
//   - Each subflow has data of its own: it is the control that is coupled, there is no scheduler.
//   - `a` is calculated with each ACK (section 4.1 does so once per window, to save time).
#include <weir/cc.h>

#define PATHS_MAX 64 // groups of a config, at most
#define SSTHRESH_UNSET_SEGS 1e9
#define SSTHRESH_MIN_SEGS 2.0

struct config {
	char connection[PARAM_TEXT_SIZE];
	double initial_segs;
};

static const struct param params[] = {
	{"connection", "", "the name of the connection; groups with the same one are coupled",
		UNIT_NONE, PARAM_TEXT(struct config, connection)},
	{"initial", "10", "initial and restart window in segments (RFC 6928)", UNIT_NONE,
		PARAM_F64(struct config, initial_segs), .min = 1, .max = 1000},
	PARAM_END,
};

// Of a subflow, in the memory of its connection; all zero: it is not open.
struct path {
	double cwnd_segs, rtt_ns;
};

struct state {
	struct path *paths; // of the connection
	uint32_t count, place; // of its subflows; which of them this one is
	double ssthresh_segs, prior_cwnd_segs, prior_ssthresh_segs;
	bool episode; // reduced already; ends with fast recovery
};

static double given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->initial_segs;
}

static const char *shared_name(const void *config) {
	const struct config *cfg = config;

	return cfg->connection;
}

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	struct state *s = state;

	s->paths = flow->shared;
	s->count = flow->shared_flows;
	s->place = flow->shared_place;
	(void)config;
}

// Publishes to the other subflows this one's window.
static void publish(const struct state *s, const struct cc_out *out) {
	s->paths[s->place].cwnd_segs = out->cwnd_segs;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;

	s->ssthresh_segs = SSTHRESH_UNSET_SEGS;
	out->cwnd_segs = cfg->initial_segs;
	out->pacing_bps = 0;
	s->paths[s->place].rtt_ns = rtt_ns > 0 ? (double)rtt_ns : 1e9;
	publish(s, out);
	(void)mss_bytes, (void)now_ns;
}

// What a segment that is acknowledged adds to the window in avoidance.
static double increase(const struct state *s, double cwnd_segs) {
	double best = 0, rates = 0, coupled;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct path *p = &s->paths[i];

		if (p->cwnd_segs == 0)
			continue;
		rates += p->cwnd_segs / p->rtt_ns;
		if (p->cwnd_segs / (p->rtt_ns * p->rtt_ns) > best)
			best = p->cwnd_segs / (p->rtt_ns * p->rtt_ns);
	}
	coupled = best / (rates * rates); // a / w
	return coupled < 1 / cwnd_segs ? coupled : 1 / cwnd_segs;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct state *s = state;
	double acked = ack->acked_segs;

	if (!ack->in_recovery)
		s->episode = false;
	if (ack->srtt_ns > 0)
		s->paths[s->place].rtt_ns = (double)ack->srtt_ns;
	if (ack->in_sequence && ack->cwnd_limited && !ack->in_recovery) {
		if (out->cwnd_segs < s->ssthresh_segs)
			out->cwnd_segs += acked;
		else
			out->cwnd_segs += acked * increase(s, out->cwnd_segs);
	}
	publish(s, out);
	(void)config;
}

static void lower(struct state *s, const struct cc_out *out) {
	double segs = out->cwnd_segs / 2;

	s->prior_cwnd_segs = out->cwnd_segs;
	s->prior_ssthresh_segs = s->ssthresh_segs;
	s->ssthresh_segs = segs > SSTHRESH_MIN_SEGS ? segs : SSTHRESH_MIN_SEGS;
	s->episode = true;
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	lower(s, out);
	out->cwnd_segs = s->ssthresh_segs;
	publish(s, out);
	(void)config, (void)loss;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	if (!s->episode && !loss->repeated)
		lower(s, out);
	out->cwnd_segs = 1;
	publish(s, out);
	(void)config;
}

static void on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	if (s->prior_cwnd_segs > out->cwnd_segs)
		out->cwnd_segs = s->prior_cwnd_segs;
	if (s->prior_ssthresh_segs > s->ssthresh_segs)
		s->ssthresh_segs = s->prior_ssthresh_segs;
	s->episode = false;
	publish(s, out);
	(void)config, (void)now_ns;
}

static void on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct config *cfg = config;

	if (out->cwnd_segs > cfg->initial_segs)
		out->cwnd_segs = cfg->initial_segs;
	publish(state, out);
	(void)now_ns, (void)idle_ns;
}

// A subflow that has ended counts no more.
static void release(void *state, const void *config) {
	const struct state *s = state;

	if (s->paths != NULL)
		s->paths[s->place] = (struct path){0};
	(void)config;
}

static const struct cc_ops ops = {
	.name = "lia",
	.summary = "LIA: the coupled control of Multipath TCP (RFC 6356)",
	.reference = "RFC 6356 (LIA)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.prr = true,
	.ecn = true,
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.on_spurious = on_spurious,
	.on_idle = on_idle,
	.release = release,
	.shared_bytes = PATHS_MAX * sizeof(struct path),
	.shared_name = shared_name,
	.open = open_flow,
};

CC_PLUGIN(ops);
