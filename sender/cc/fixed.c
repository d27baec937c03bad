// SPDX-License-Identifier: BSD-3-Clause
// A constant window and a constant rate: the null congestion control.
//
// Window and rate do not depend on ACKs, losses, marks or timeouts; the transport still
// retransmits. Alone it shows the behaviour of path, transport and pacer (with a rate below the
// link's there is no queue; with a window of one bandwidth-delay product plus q packets there is a
// queue of q); beside another algorithm it is unresponsive cross traffic, with ECN if the group
// says `ecn_unheard: allow`. Both parameters may be changed during a run and apply from the next
// ACK on.
#include "sender/cc/cc.h"

struct config {
	double cwnd_segs;
	double rate_bps;
};

static const struct param params[] = {
	{"cwnd", "10", "window in segments", UNIT_NONE, PARAM_F64(struct config, cwnd_segs), 1, 1e7,
		.live = true},
	{"rate", "0", "pacing rate of the payload; 0: not paced, the window alone decides",
		UNIT_RATE_BPS, PARAM_F64(struct config, rate_bps), 0, 1e12, .live = true},
	PARAM_END,
};

static void set(const struct config *cfg, struct cc_out *out) {
	out->cwnd_segs = cfg->cwnd_segs;
	out->pacing_bps = cfg->rate_bps;
}

static double fixed_given_window(const void *config) {
	const struct config *cfg = config;

	return cfg->cwnd_segs;
}

static void fixed_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	set(config, out);
}

static void fixed_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	set(config, out);
}

static void fixed_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	set(config, out);
}

const struct cc_ops cc_fixed = {
	.name = "fixed",
	.summary = "constant window and rate; ignores everything",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = 0,
	.given_window = fixed_given_window,
	.init = fixed_init,
	.on_ack = fixed_on_ack,
	.on_loss = fixed_on_loss,
	.on_rto = fixed_on_loss,
};
