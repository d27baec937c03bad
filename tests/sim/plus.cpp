// SPDX-License-Identifier: BSD-3-Clause
// A congestion control in C++, with a parameter of each type that needs no text.
#include <weir/cc.h>

namespace {
enum class phase { start, grow };
const char *const modes[] = {"slow", "fast", nullptr};
struct config {
	double initial_segs, beta;
	int mode;
	uint64_t every_ns;
	bool on;
};
const struct param params[] = {
	{"initial", "10", "initial window", UNIT_NONE, PARAM_F64(config, initial_segs), 1, 1000},
	{"beta", "50%", "what a loss leaves", UNIT_RATIO, PARAM_F64(config, beta), 0.01, 1},
	{"mode", "slow", "how", UNIT_NONE, PARAM_ENUM(config, mode, modes)},
	{"every", "10ms", "when", UNIT_TIME_NS, PARAM_U64(config, every_ns), 0, 1e12},
	{"on", "yes", "whether", UNIT_NONE, PARAM_BOOL(config, on)},
	PARAM_END};

double given_window(const void *c) { return static_cast<const config *>(c)->initial_segs; }
void init(void *, const void *c, uint32_t, uint64_t, uint64_t, cc_out *out) {
	out->cwnd_segs = static_cast<const config *>(c)->initial_segs;
	out->pacing_bps = 0;
}
void on_ack(void *, const void *, const cc_ack *ack, cc_out *out) {
	out->cwnd_segs += ack->acked_segs / out->cwnd_segs;
}
void on_loss(void *, const void *c, const cc_loss *, cc_out *out) {
	const double less = out->cwnd_segs * static_cast<const config *>(c)->beta;
	out->cwnd_segs = less < 2 ? 2 : less;
}
void on_rto(void *, const void *, const cc_loss *, cc_out *out) { out->cwnd_segs = 1; }

const cc_ops ops = {.name = "plus", .summary = "in C++", .params = params,
	.config_size = sizeof(config), .prr = true, .given_window = given_window, .init = init,
	.on_ack = on_ack, .on_loss = on_loss, .on_rto = on_rto};
} // namespace

CC_PLUGIN(ops);
