// SPDX-License-Identifier: BSD-3-Clause
// Copa's parameters, and the dialects that set them. copa.c explains them, under the numbers of its
// differences.
#pragma once
#include "sender/cc/cc.h"

enum mode { MODE_DEFAULT, MODE_COMPETITIVE, MODE_AUTO };
enum window { WINDOW_SENT, WINDOW_NOW };
enum ss_exit { EXIT_EMPTY, EXIT_SENT, EXIT_KEEP };
enum rtt { RTT_STANDING, RTT_LATEST };
enum pacing_rtt { PACING_STANDING, PACING_SRTT };

static const char *const mode_names[] = {"default", "competitive", "auto", NULL};
static const char *const window_names[] = {"sent", "now", NULL};
static const char *const exit_names[] = {"empty", "sent", "keep", NULL};
static const char *const rtt_names[] = {"standing", "latest", NULL};
static const char *const pacing_names[] = {"standing", "srtt", NULL};
static const char *const dialect_names[] = {
	"none", "paper", "genericcc", "mvfst", "datacenter", NULL};

static const struct cc_preset dialects[] = {
	{"none", (const char *const[]){NULL}},
	{"paper",
		(const char *const[]){"rtt_min_rtts", "0", "window", "now", "bias", "0",
			"slow_start_exit", "keep", "spread", "2", "velocity_rtts", "3",
			"velocity_reset", "no", "drain_cap", "0", "heavy_loss", "0%", "empty_segs",
			"0", "empty_rtts", "5", "min_cwnd", "1", NULL}},
	{"genericcc",
		(const char *const[]){"rtt_min_rtts", "20", "window", "now", "bias", "0",
			"slow_start_exit", "keep", "spread", "2", "velocity_rtts", "1",
			"drain_rtts", "1", "velocity_reset", "no", "drain_cap", "0", "heavy_loss",
			"30%", "backoff", "0.7", "empty_segs", "0", "empty_rtts", "4", NULL}},
	{"mvfst",
		(const char *const[]){"delta", "0.05", "rtt_min_rtts", "0", "dq", "latest",
			"window", "now", "bias", "0", "slow_start_exit", "keep", "spread", "2",
			"velocity_rtts", "3", "velocity_cap", "0", "drain_cap", "0", "heavy_loss",
			"0%", "pacing_rtt", "srtt", "empty_segs", "0", "empty_rtts", "5", NULL}},
	{"datacenter",
		(const char *const[]){"dq", "latest", "rate_rtt", "latest", "votes", "66.7%",
			"velocity_reset", "no", NULL}},
	{NULL, NULL},
};

struct config {
	double delta;
	int mode;
	double initial_segs, min_segs;
	double rtt_min_ns, rtt_min_window_ns, rtt_min_rtts;
	double standing_srtts;
	int window;
	double bias_segs;
	int slow_start_exit, dq, rate_rtt, pacing_rtt, dialect;
	bool loss_exit;
	double exit_gain, spread_gain, pacing_gain;
	double velocity_rtts, drain_rtts, votes;
	bool velocity_reset;
	double velocity_cap, drain_cap;
	double heavy_loss, backoff;
	double empty_spread, empty_segs, empty_rtts;
};

#define F64(field, lo, hi) PARAM_F64(struct config, field), .min = (lo), .max = (hi)

static const struct param params[] = {
	{"dialect", "none", "sets the parameters that a source has otherwise (copa.c has the list)",
		UNIT_NONE, PARAM_ENUM(struct config, dialect, dialect_names)},
	{"delta", "0.5", "1/delta segments are kept queued; smaller is more aggressive", UNIT_NONE,
		F64(delta, 0.001, 100), .live = true},
	{"mode", "default", "delay only, AIMD on 1/delta, or by the nearly-empty test", UNIT_NONE,
		PARAM_ENUM(struct config, mode, mode_names), .live = true},
	{"initial", "10", "initial window in segments (RFC 6928)", UNIT_NONE,
		F64(initial_segs, 1, 1000)},
	{"min_cwnd", "2", "smallest window in segments", UNIT_NONE, F64(min_segs, 1, 1000)},
	{"rtt_min", "0s", "RTTmin, if the RTT of the empty path is known; 0s: measured",
		UNIT_TIME_NS, F64(rtt_min_ns, 0, 4e9)},
	{"rtt_min_window", "10s", "RTTmin is the smallest RTT of this time, at least", UNIT_TIME_NS,
		F64(rtt_min_window_ns, 1e6, 1e15)},
	{"rtt_min_rtts", "100", "and of this many RTTmin; 0: the time alone", UNIT_NONE,
		F64(rtt_min_rtts, 0, 1e6)},
	{"standing", "0.5", "RTTstanding is the smallest RTT of this many srtt", UNIT_NONE,
		F64(standing_srtts, 0.01, 10)},
	{"dq", "standing", "dq is RTTstanding or the latest RTT, less RTTmin", UNIT_NONE,
		PARAM_ENUM(struct config, dq, rtt_names)},
	{"rate_rtt", "standing", "the RTT that lambda divides the window by", UNIT_NONE,
		PARAM_ENUM(struct config, rate_rtt, rtt_names)},
	{"pacing_rtt", "standing", "the RTT in which pacing_gain cwnd are paced", UNIT_NONE,
		PARAM_ENUM(struct config, pacing_rtt, pacing_names)},
	{"pacing_gain", "2", "windows paced in an RTT; 2 in slow start", UNIT_NONE,
		F64(pacing_gain, 1, 10)},
	{"window", "sent", "lambda's window: when the acked segment was sent, or now", UNIT_NONE,
		PARAM_ENUM(struct config, window, window_names)},
	{"bias", "0.5", "segments lambda subtracts from it, as whole segments are sent", UNIT_NONE,
		F64(bias_segs, 0, 1)},
	{"slow_start_exit", "empty",
		"window after slow start: of the acked segment's sending, "
		"of that what needs no queue, or kept",
		UNIT_NONE, PARAM_ENUM(struct config, slow_start_exit, exit_names)},
	{"loss_exit", "no", "a loss ends slow start", UNIT_NONE,
		PARAM_BOOL(struct config, loss_exit)},
	{"exit_gain", "0.95", "and unless it is kept this part of it", UNIT_NONE,
		F64(exit_gain, 0.1, 1)},
	{"spread", "1.1", "pacing gain in the two round trips after slow start; 2: as always",
		UNIT_NONE, F64(spread_gain, 1, 2)},
	{"velocity_rtts", "6", "further round trips upward before velocity doubles", UNIT_NONE,
		F64(velocity_rtts, 1, 200)},
	{"drain_rtts", "3", "and downward", UNIT_NONE, F64(drain_rtts, 1, 200)},
	{"votes", "0%", "a direction needs more than this part of a round trip's ACKs; 0%: by cwnd",
		UNIT_RATIO, F64(votes, 0, 0.999)},
	{"velocity_reset", "yes", "reset velocity at once when the needed direction opposes it",
		UNIT_NONE, PARAM_BOOL(struct config, velocity_reset)},
	{"velocity_cap", "1", "velocity is at most this times delta cwnd; 0: no cap", UNIT_NONE,
		F64(velocity_cap, 0, 1000)},
	{"drain_cap", "0.67", "downwards at most this times lambda/lambda_t - 1; 0: no cap",
		UNIT_NONE, F64(drain_cap, 0, 1000)},
	{"heavy_loss", "10%",
		"loss rate over two round trips beyond which it is congestion; 0: none", UNIT_RATIO,
		F64(heavy_loss, 0, 1)},
	{"backoff", "0.5", "window factor on heavy loss and on an ECN echo", UNIT_NONE,
		F64(backoff, 0.1, 1)},
	{"empty_spread", "10%", "nearly empty: dq up to this part of RTTmax - RTTmin", UNIT_RATIO,
		F64(empty_spread, 0, 1)},
	{"empty_segs", "0.25", "nearly empty: own queue up to this many segments", UNIT_NONE,
		F64(empty_segs, 0, 100)},
	{"empty_rtts", "8", "auto: competitive after this many round trips without an empty queue",
		UNIT_NONE, F64(empty_rtts, 1, 200)},
	PARAM_END,
};
