// SPDX-License-Identifier: BSD-3-Clause
// The parameters of BBR version 3, with the draft's names in brackets. bbr3.c has the algorithm.
#pragma once
#include "sender/cc/cc.h"

struct config {
	double initial_segs, loss_thresh, beta, headroom, margin;
	double min_rtt_window_ns, probe_rtt_interval_ns, probe_rtt_ns, wait_ns, reno_rounds;
};

#define F64(field, low, high) PARAM_F64(struct config, field), .min = (low), .max = (high)

static const struct param params[] = {
	{.name = "initial",
		.def = "10",
		.help = "initial window in segments (RFC 6928)",
		F64(initial_segs, 4, 1000)},
	{.name = "loss_thresh",
		.def = "2%",
		.help = "part of a flight that may be lost while it probes (LossThresh)",
		.unit = UNIT_RATIO,
		F64(loss_thresh, 0, 0.9)},
	{.name = "beta",
		.def = "0.7",
		.help = "least part of a bound that a round with losses leaves (Beta)",
		F64(beta, 0.1, 1)},
	{.name = "headroom",
		.def = "0.15",
		.help = "part of inflight_longterm left to others while it cruises (Headroom)",
		F64(headroom, 0, 0.9)},
	{.name = "pacing_margin",
		.def = "1%",
		.help = "pace this much below the rate, so that no queue stays",
		.unit = UNIT_RATIO,
		F64(margin, 0, 0.5)},
	{.name = "min_rtt_window",
		.def = "10s",
		.help = "window of min_rtt (MinRTTFilterLen)",
		.unit = UNIT_TIME_NS,
		F64(min_rtt_window_ns, 1e8, 1e12)},
	{.name = "probe_rtt_interval",
		.def = "5s",
		.help = "time without a lower RTT before ProbeRTT (ProbeRTTInterval)",
		.unit = UNIT_TIME_NS,
		F64(probe_rtt_interval_ns, 1e8, 1e12)},
	{.name = "probe_rtt",
		.def = "200ms",
		.help = "least time of ProbeRTT (ProbeRTTDuration)",
		.unit = UNIT_TIME_NS,
		F64(probe_rtt_ns, 1e6, 1e10)},
	{.name = "probe_wait",
		.def = "2s",
		.help = "least time between two probes for bandwidth; up to half as much more by chance",
		.unit = UNIT_TIME_NS,
		F64(wait_ns, 1e6, 1e11)},
	{.name = "reno_rounds",
		.def = "63",
		.help = "most rounds between two probes, for the sake of Reno flows",
		F64(reno_rounds, 2, 1e4)},
	PARAM_END,
};
