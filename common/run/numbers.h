// SPDX-License-Identifier: BSD-3-Clause
// The numbers of reports and figures that the tools make, and no summary has: rows of a field's
// list without a value (common/base/field.h). tools/docs/reference/numbers.md is the page of all
// numbers, and tests/swarm/second_opinion.py computes each a second time from what was recorded.
#pragma once
#include "common/base/field.h"

#define REPORT_NUMBERS(V)                                                                          \
	V(NUMBER, goodput_share, "", ,                                                             \
		"a group's goodput over that of all groups, both directions", .source = "groups")  \
	V(NUMBER, flow.goodput_bps, "bit/s", ,                                                     \
		"of one flow, as of a group: over the whole measured time, "                       \
		"however long it was there",                                                       \
		.source = "interval.delivered_bytes")                                              \
	V(NUMBER, flow.rtt_p50_ns, "ns", ,                                                         \
		"percentile of intervals' mean RTTs, each weighed by its samples, within 0.05 %",  \
		.source = "interval.rtt_mean_ns", .null = "no sample")                             \
	V(NUMBER, interval.goodput_bps, "bit/s", , "8 * delivered_bytes / length of the interval", \
		.over = OVER_INTERVAL, .source = "interval.delivered_bytes")                       \
	V(NUMBER, window.goodput_bps, "bit/s", ,                                                   \
		"8 * delivered_bytes of a flow in the window / length of the window, in windows "  \
		"in which the flow has records",                                                   \
		.over = OVER_WINDOW, .source = "interval.delivered_bytes")                         \
	V(NUMBER, window.jfi, "", ,                                                                \
		"Jain's index of window.goodput_bps over the flows that have records in it",       \
		.over = OVER_WINDOW, .source = "interval.delivered_bytes",                         \
		.null = "nothing was delivered in it")                                             \
	V(NUMBER, window.rtt_mean_ns, "ns", , "mean of the samples in the window",                 \
		.over = OVER_WINDOW,                                                               \
		.source = "interval.rtt_mean_ns weighed by interval.rtt_samples",                  \
		.null = "no sample")                                                               \
	V(NUMBER, events_per_s, "1/s", ,                                                           \
		"events in a bin over its length; a bin is a whole number of intervals, "          \
		"the last ends with the run",                                                      \
		.over = OVER_INTERVAL, .source = "links.drops, links.marks, events")               \
	V(NUMBER, completion, "ns", ,                                                              \
		"as of transfers, exact, by group and size; a percentile is the smallest value "   \
		"that so many do not exceed",                                                      \
		.source = "transfers", .null = "none finished")                                    \
	V(NUMBER, unfinished, "transfer", ,                                                        \
		"began in the measured time, by group and size, and did not finish: "              \
		"percentiles are those of the others",                                             \
		.over = OVER_END, .source = "transfers")                                           \
	V(NUMBER, mathis_c, "", ,                                                                  \
		"least squares of goodput = C mss / (RTT sqrt p) over flows, "                     \
		"p = losses / sent_segs",                                                          \
		.source = "interval", .null = "no flow to fit")

#define CAPTURE_NUMBERS(V)                                                                         \
	V(NUMBER, flow.goodput_bps, "bit/s", , "8 * payload acknowledged / the flow's own time",   \
		.over = OVER_FLOW, .source = "captured, delays", .null = "no data")                \
	V(NUMBER, groups.goodput_bps, "bit/s", ,                                                   \
		"8 * payload acknowledged / measured time of the capture", .source = "captured",   \
		.null = "no time")
