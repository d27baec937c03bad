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
	{.name = "dialect",
		.def = "none",
		.help = "sets the parameters that a source has otherwise (copa.c has the list)",
		PARAM_ENUM(struct config, dialect, dialect_names)},
	{.name = "delta",
		.def = "0.5",
		.help = "1/delta segments are kept queued; smaller is more aggressive",
		F64(delta, 0.001, 100),
		.live = true},
	{.name = "mode",
		.def = "default",
		.help = "delay only, AIMD on 1/delta, or by the nearly-empty test",
		PARAM_ENUM(struct config, mode, mode_names),
		.live = true},
	{.name = "initial",
		.def = "10",
		.help = "initial window in segments (RFC 6928)",
		F64(initial_segs, 1, 1000)},
	{.name = "min_cwnd",
		.def = "2",
		.help = "smallest window in segments",
		F64(min_segs, 1, 1000)},
	{.name = "rtt_min",
		.def = "0s",
		.help = "RTTmin, if the RTT of the empty path is known; 0s: measured",
		.unit = UNIT_TIME_NS,
		F64(rtt_min_ns, 0, 4e9)},
	{.name = "rtt_min_window",
		.def = "10s",
		.help = "RTTmin is the smallest RTT of this time, at least",
		.unit = UNIT_TIME_NS,
		F64(rtt_min_window_ns, 1e6, 1e15)},
	{.name = "rtt_min_rtts",
		.def = "100",
		.help = "and of this many RTTmin; 0: the time alone",
		F64(rtt_min_rtts, 0, 1e6)},
	{.name = "standing",
		.def = "0.5",
		.help = "RTTstanding is the smallest RTT of this many srtt",
		F64(standing_srtts, 0.01, 10)},
	{.name = "dq",
		.def = "standing",
		.help = "dq is RTTstanding or the latest RTT, less RTTmin",
		PARAM_ENUM(struct config, dq, rtt_names)},
	{.name = "rate_rtt",
		.def = "standing",
		.help = "the RTT that lambda divides the window by",
		PARAM_ENUM(struct config, rate_rtt, rtt_names)},
	{.name = "pacing_rtt",
		.def = "standing",
		.help = "the RTT in which pacing_gain cwnd are paced",
		PARAM_ENUM(struct config, pacing_rtt, pacing_names)},
	{.name = "pacing_gain",
		.def = "2",
		.help = "windows paced in an RTT; 2 in slow start",
		F64(pacing_gain, 1, 10)},
	{.name = "window",
		.def = "sent",
		.help = "lambda's window: when the acked segment was sent, or now",
		PARAM_ENUM(struct config, window, window_names)},
	{.name = "bias",
		.def = "0.5",
		.help = "segments lambda subtracts from it, as whole segments are sent",
		F64(bias_segs, 0, 1)},
	{.name = "slow_start_exit",
		.def = "empty",
		.help = "window after slow start: of the acked segment's sending, "
			"of that what needs no queue, or kept",
		PARAM_ENUM(struct config, slow_start_exit, exit_names)},
	{.name = "loss_exit",
		.def = "no",
		.help = "a loss ends slow start",
		PARAM_BOOL(struct config, loss_exit)},
	{.name = "exit_gain",
		.def = "0.95",
		.help = "and unless it is kept this part of it",
		F64(exit_gain, 0.1, 1)},
	{.name = "spread",
		.def = "1.1",
		.help = "pacing gain in the two round trips after slow start; 2: as always",
		F64(spread_gain, 1, 2)},
	{.name = "velocity_rtts",
		.def = "6",
		.help = "further round trips upward before velocity doubles",
		F64(velocity_rtts, 1, 200)},
	{.name = "drain_rtts", .def = "3", .help = "and downward", F64(drain_rtts, 1, 200)},
	{.name = "votes",
		.def = "0%",
		.help = "a direction needs more than this part of a round trip's ACKs; 0%: by cwnd",
		.unit = UNIT_RATIO,
		F64(votes, 0, 0.999)},
	{.name = "velocity_reset",
		.def = "yes",
		.help = "reset velocity at once when the needed direction opposes it",
		PARAM_BOOL(struct config, velocity_reset)},
	{.name = "velocity_cap",
		.def = "1",
		.help = "velocity is at most this times delta cwnd; 0: no cap",
		F64(velocity_cap, 0, 1000)},
	{.name = "drain_cap",
		.def = "0.67",
		.help = "downwards at most this times lambda/lambda_t - 1; 0: no cap",
		F64(drain_cap, 0, 1000)},
	{.name = "heavy_loss",
		.def = "10%",
		.help = "loss rate over two round trips beyond which it is congestion; 0: none",
		.unit = UNIT_RATIO,
		F64(heavy_loss, 0, 1)},
	{.name = "backoff",
		.def = "0.5",
		.help = "window factor on heavy loss and on an ECN echo",
		F64(backoff, 0.1, 1)},
	{.name = "empty_spread",
		.def = "10%",
		.help = "nearly empty: dq up to this part of RTTmax - RTTmin",
		.unit = UNIT_RATIO,
		F64(empty_spread, 0, 1)},
	{.name = "empty_segs",
		.def = "0.25",
		.help = "nearly empty: own queue up to this many segments",
		F64(empty_segs, 0, 100)},
	{.name = "empty_rtts",
		.def = "8",
		.help = "auto: competitive after this many round trips without an empty queue",
		F64(empty_rtts, 1, 200)},
	PARAM_END,
};
