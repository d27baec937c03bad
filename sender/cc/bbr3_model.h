// SPDX-License-Identifier: BSD-3-Clause
// The state of BBR version 3 (bbr3.c), and what follows from it about the path: bandwidth, BDP,
// bounds of what is in flight, and whether a flight has lost too much.
#pragma once
#include "common/base/f64.h"
#include "common/base/minmax.h"
#include "sender/cc/bbr3_params.h"
#include "sender/cc/extra_acked.h"

#include <math.h>

#define NO_RTT INFINITY
#define EXTRA_UNIT 256

#define MODES(V)                                                                                   \
	V(MODE_STARTUP, "startup")                                                                 \
	V(MODE_DRAIN, "drain")                                                                     \
	V(MODE_DOWN, "down")                                                                       \
	V(MODE_CRUISE, "cruise")                                                                   \
	V(MODE_REFILL, "refill")                                                                   \
	V(MODE_UP, "up")                                                                           \
	V(MODE_PROBE_RTT, "probe_rtt")
enum mode { MODES(CC_MODE_CONSTANT) MODE_NONE };
enum ack_phase { NOT_PROBING, PROBE_STOPPING, REFILLING, PROBE_STARTING, PROBE_FEEDBACK };

// RTTs are kept as floats: any length, to a part in ten million.
struct bbr3 {
	float min_rtt_ns, probe_rtt_ns; // of 10 s, and since the last ProbeRTT
	uint64_t min_rtt_stamp_ns, probe_rtt_stamp_ns;
	uint64_t probe_rtt_done_ns; // 0: too much is in flight yet
	uint64_t cycle_ns; // when DOWN began
	uint64_t delivered; // by the last ACK
	uint64_t round_delivered, loss_round_delivered;
	uint64_t round_ns[2]; // when this round and the last one began
	struct extra_acked extra;
	struct minmax extra_max; // by round, in EXTRA_UNIT parts of a segment
	uint32_t round_lost[2], lost; // segments lost until then, and ever
	uint32_t limited_until; // samples of segments sent before this much is delivered, low bits
	float bw_bps[2]; // largest rate of this cycle, of the last one
	float bw_latest_bps, bw_short_bps; // INFINITY: no bound, so for the next three
	float inflight_latest, inflight_short, inflight_long;
	float undo_bw_short_bps, undo_short, undo_long;
	float full_bw_bps;
	float prior_segs; // window to restore
	// Segments acknowledged in UP, and how many add one to inflight_longterm.
	float up_acks, up_count;
	float wait_ns;
	uint32_t mss_bits, seed, rounds;
	uint16_t rounds_since_probe;
	uint8_t mode, ack_phase, full_rounds, up_rounds, loss_events, drain_rounds;
	uint8_t undo_mode; // which losses ended, Startup or UP; MODE_NONE: neither
	bool round_start : 1, loss_round_start : 1, loss_in_round : 1, loss_new : 1;
	bool full_now : 1, filled : 1, seen_rtt : 1, idle_restart : 1, probe_rtt_round : 1;
	bool probing : 1, recovery : 1, limited : 1, loss_limited : 1;
	bool probe_too_high : 1, probe_careful : 1; // prev_probe_too_high, prev_probe_precautionary
};
static_assert(sizeof(struct bbr3) <= CC_STATE_MAX_BYTES, "state too large");

static inline double bbr3_max_bw_bps(const struct bbr3 *b) {
	return (double)(b->bw_bps[0] > b->bw_bps[1] ? b->bw_bps[0] : b->bw_bps[1]);
}

static inline double bbr3_bw_bps(const struct bbr3 *b) {
	return min_f64(bbr3_max_bw_bps(b), (double)b->bw_short_bps);
}

static inline double bbr3_extra_segs(const struct bbr3 *b) {
	return (double)minmax_get(&b->extra_max) / EXTRA_UNIT;
}

static inline bool bbr3_in_probe_bw(const struct bbr3 *b) {
	return b->mode >= MODE_DOWN && b->mode <= MODE_UP;
}

static inline double bbr3_bdp_at(const struct bbr3 *b, const struct config *cfg, double bw_bps) {
	if (isinf((double)b->min_rtt_ns))
		return cfg->initial_segs;
	return bw_bps * (double)b->min_rtt_ns * 1e-9 / b->mss_bits;
}

static inline double bbr3_bdp_segs(const struct bbr3 *b, const struct config *cfg, double gain) {
	return bbr3_bdp_at(b, cfg, gain * bbr3_bw_bps(b));
}

// BBRQuantizationBudget
static inline double bbr3_budget(
	const struct bbr3 *b, const struct config *cfg, const struct cc_out *out, double segs) {
	double quantum = min_f64(out->pacing_bps * 1e-3, 65536 * 8) / b->mss_bits;

	segs = max_f64(max_f64(segs, cfg->offload_quanta * max_f64(quantum, 2)), cfg->min_segs);
	return b->mode == MODE_UP ? segs + 2 : segs;
}

static inline double bbr3_with_headroom(const struct bbr3 *b, const struct config *cfg) {
	double most = (double)b->inflight_long;

	return isinf(most) ? most : max_f64(most - max_f64(1, cfg->headroom * most), cfg->min_segs);
}

static inline double bbr3_target_segs(
	const struct bbr3 *b, const struct config *cfg, double cwnd_segs) {
	return min_f64(bbr3_bdp_segs(b, cfg, 1), cwnd_segs);
}

// Segments lost since the newest acknowledged one was sent.
static inline double bbr3_lost_since(const struct bbr3 *b, const struct cc_ack *ack) {
	double lost = b->lost - b->round_lost[0], in_round = b->round_lost[0] - b->round_lost[1];
	uint64_t span_ns = b->round_ns[0] - b->round_ns[1];

	if (ack->sent_ns >= b->round_ns[0] || span_ns == 0)
		return lost;
	return lost
		+ in_round * min_f64((double)(b->round_ns[0] - ack->sent_ns) / (double)span_ns, 1);
}

static inline double bbr3_tx_in_flight(const struct bbr3 *b, const struct cc_ack *ack) {
	return (double)(ack->delivered_segs - ack->prior_delivered_segs) + bbr3_lost_since(b, ack);
}

static inline bool bbr3_too_high(
	const struct bbr3 *b, const struct config *cfg, const struct cc_ack *ack) {
	return bbr3_lost_since(b, ack) > cfg->loss_thresh * bbr3_tx_in_flight(b, ack);
}
