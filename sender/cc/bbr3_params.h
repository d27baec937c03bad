// SPDX-License-Identifier: BSD-3-Clause
// The parameters of BBR version 3, with the draft's names in brackets. bbr3.c has the algorithm.
#pragma once
#include "sender/cc/cc.h"

struct config {
	double initial_segs, loss_thresh, beta, headroom, margin;
	double min_rtt_window_ns, probe_rtt_interval_ns, probe_rtt_ns, wait_ns, reno_rounds;
	double startup_gain, drain_gain, down_gain, up_gain; // of pacing
	double cwnd_gain, up_cwnd_gain, probe_rtt_gain; // of the window
	double full_growth, full_rounds, startup_losses, drain_rounds, extra_rounds;
	double min_segs, offload_quanta;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{"initial", "10", "initial window in segments (RFC 6928)", UNIT_NONE,
		F64(initial_segs, 4, 1000)},
	{"loss_thresh", "2%", "part of a flight that may be lost while it probes (LossThresh)",
		UNIT_RATIO, F64(loss_thresh, 0, 0.9)},
	{"beta", "0.7", "least part of a bound that a round with losses leaves (Beta)", UNIT_NONE,
		F64(beta, 0.1, 1)},
	{"headroom", "0.15", "part of inflight_longterm left to others while it cruises (Headroom)",
		UNIT_NONE, F64(headroom, 0, 0.9)},
	{"pacing_margin", "1%", "pace this much below the rate, so that no queue stays", UNIT_RATIO,
		F64(margin, 0, 0.5)},
	{"min_rtt_window", "10s", "window of min_rtt (MinRTTFilterLen)", UNIT_TIME_NS,
		F64(min_rtt_window_ns, 1e8, 1e12)},
	{"probe_rtt_interval", "5s", "time without a lower RTT before ProbeRTT (ProbeRTTInterval)",
		UNIT_TIME_NS, F64(probe_rtt_interval_ns, 1e8, 1e12)},
	{"probe_rtt", "200ms", "least time of ProbeRTT (ProbeRTTDuration)", UNIT_TIME_NS,
		F64(probe_rtt_ns, 1e6, 1e10)},
	{"probe_wait", "2s",
		"least time between two probes for bandwidth; "
		"up to half as much more by chance",
		UNIT_TIME_NS, F64(wait_ns, 1e6, 1e11)},
	{"reno_rounds", "63", "most rounds between two probes, for the sake of Reno flows",
		UNIT_NONE, F64(reno_rounds, 2, 1e4)},
	{"startup_gain", "2.77", "pacing in Startup over bw; 4 ln 2 (StartupPacingGain)", UNIT_NONE,
		F64(startup_gain, 1, 10)},
	{"drain_gain", "0.5", "pacing in Drain over bw (DrainPacingGain)", UNIT_NONE,
		F64(drain_gain, 0.05, 1)},
	{"down_gain", "0.9", "pacing in DOWN over bw (ProbeDownPacingGain)", UNIT_NONE,
		F64(down_gain, 0.05, 1)},
	{"up_gain", "1.25", "pacing in UP over bw (section 5.3.3.4)", UNIT_NONE,
		F64(up_gain, 1, 10)},
	{"cwnd_gain", "2", "window over bw min_rtt but in UP and ProbeRTT (DefaultCwndGain)",
		UNIT_NONE, F64(cwnd_gain, 1, 10)},
	{"up_cwnd_gain", "2.25", "window in UP over bw min_rtt (section 5.3.3.4)", UNIT_NONE,
		F64(up_cwnd_gain, 1, 10)},
	{"probe_rtt_gain", "0.5", "window in ProbeRTT over bw min_rtt (ProbeRTTCwndGain)",
		UNIT_NONE, F64(probe_rtt_gain, 0.05, 1)},
	{"full_growth", "1.25",
		"a round whose rate grew by less than this factor may have filled the pipe",
		UNIT_NONE, F64(full_growth, 1, 10)},
	{"full_rounds", "3", "so many such rounds mean that the pipe is full", UNIT_NONE,
		F64(full_rounds, 1, 100)},
	{"startup_losses", "6", "losses in a round that may end Startup (StartupFullLossCnt)",
		UNIT_NONE, F64(startup_losses, 1, 200)},
	{"drain_rounds", "3", "Drain ends after more rounds than these, whatever is in flight",
		UNIT_NONE, F64(drain_rounds, 1, 200)},
	{"extra_rounds", "10",
		"rounds for which the largest aggregation is kept (ExtraAckedFilterLen)", UNIT_NONE,
		F64(extra_rounds, 1, 1000)},
	{"min_window", "4", "least window in segments (MinPipeCwnd)", UNIT_NONE,
		F64(min_segs, 1, 100)},
	{"offload_quanta", "3", "the window holds this many quanta at least (offload_budget)",
		UNIT_NONE, F64(offload_quanta, 0, 100)},
	PARAM_END,
};
