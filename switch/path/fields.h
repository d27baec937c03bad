// SPDX-License-Identifier: BSD-3-Clause
// The fields of paths in summaries (common/base/field.h).
#pragma once
#include "switch/serialiser/stats.h"

#define LINK_FIELDS(V)                                                                             \
	V(SHARE, utilisation, "", f.utilisation,                                                   \
		"bits on the wire, overhead and padding included, / capacity; "                    \
		"a part of a frame counts",                                                        \
		.source = "links.out_bytes", .null = "no capacity: the rate was 0")                \
	V(NUMBER, queue_mean_pkts, "packet", f.queue_mean_pkts,                                    \
		"backlog averaged over time, without the frame on the wire",                       \
		.source = "links.queue_mean_pkts weighed by the intervals' lengths")               \
	V(NUMBER, queue_mean_bytes, "B", f.queue_mean_bytes, "likewise, in bytes",                 \
		.source = "links.queue_mean_bytes weighed by the intervals' lengths")              \
	V(NUMBER, queue_mean_ns, "ns", timed ? f.sojourn_mean_ns : (double)NAN,                    \
		"mean time in the queue of the packets that left it",                              \
		.source = "links.sojourn_mean_ns, packets.sojourn_ns", .null = "none left it")     \
	V(COUNT, queue_max_pkts, "packet", peak->queue_pkts, "largest backlog",                    \
		.source = "links.queue_max_pkts")                                                  \
	V(NUMBER, sojourn_p50_ns, "ns", timed ? (double)hist_quantile(sojourn, 0.5) : (double)NAN, \
		"smallest time in the queue that half of the packets do not exceed, within 1/64",  \
		.source = "packets.sojourn_ns", .null = "none left it")                            \
	V(NUMBER, sojourn_p99_ns, "ns",                                                            \
		timed ? (double)hist_quantile(sojourn, 0.99) : (double)NAN, "likewise, 99 %",      \
		.source = "packets.sojourn_ns", .null = "none left it")                            \
	V(NUMBER, sojourn_max_ns, "ns", timed ? (double)sojourn->max : (double)NAN, "longest",     \
		.source = "links.sojourn_max_ns", .null = "none left it")                          \
	LINK_COUNTERS(V##_COUNTER)                                                                 \
	V(NUMBER, rate_bps, "bit/s", (double)st->rate_bps, "the configured rate",                  \
		.over = OVER_END, .source = "links.rate_bps")                                      \
	V(NUMBER, rate_mean_bps, "bit/s", f.rate_mean_bps, "capacity / measured time")             \
	V(NUMBER, rate_min_bps, "bit/s", st->slots ? (double)NAN : (double)peak->rate_min_bps,     \
		"smallest rate that applied for some time, 0 of an outage included",               \
		.source = "events: parameter", .null = "the link has opportunities, and no rate")  \
	V(NUMBER, rate_max_bps, "bit/s", st->slots ? (double)NAN : (double)peak->rate_max_bps,     \
		"largest", .source = "events: parameter", .null = "likewise")                      \
	V(COUNT, down_ns, "ns", to.down_ns - peak->from.down_ns, "time at rate 0",                 \
		.source = "events: parameter")                                                     \
	V(CDF, sojourn_cdf, "ns", sojourn, "[upper end of a bucket, share of packets up to it]",   \
		.source = "packets.sojourn_ns")

#define PACKETS_FIELDS(V)                                                                          \
	V(COUNT, pkts, "packet", pkts,                                                             \
		"in + duplicated = out + inside + drops by reason, of each path",                  \
		.source = "packets: drop")                                                         \
	V(COUNT, bytes, "B", bytes, "the same account in bytes, FCS included")

#define PATH_LEDGER_FIELDS(V)                                                                      \
	V(FLAG, balanced, "", path_balanced(p), "")                                                \
	V(PART, in, "Packets", json_count(j, "in", p->in.pkts, p->in.bytes), "",                   \
		.python = "entered")                                                               \
	V(PART, duplicated, "Packets",                                                             \
		json_count(j, "duplicated", p->copies.made.pkts, p->copies.made.bytes), "")        \
	V(PART, out, "Packets", json_count(j, "out", p->out.pkts, p->out.bytes), "")               \
	V(PART, inside, "Packets", json_count(j, "inside", inside.pkts, inside.bytes), "")         \
	V(PART, drops, "dict[str, Packets]", write_drops(p, j), "")

// A ledger that has only paths.
#define PATHS_LEDGER_FIELDS(V)                                                                     \
	V(FLAG, balanced, "", balanced, "")                                                        \
	V(PART, paths, "dict[str, PathLedger]", paths_ledger(ps, j), "")

#define SOURCE_FIELDS(V)                                                                           \
	V(TEXT, pcap, "", a->file, "")                                                             \
	V(COUNT, packets, "packet", a->count.packets, "packets that became traffic of the path")   \
	V(COUNT, bytes, "B", a->count.bytes, "their bytes, FCS included")                          \
	V(COUNT, filtered, "packet", a->count.filtered, "packets that the filter left out")        \
	V(COUNT, reordered, "packet", a->count.reordered,                                          \
		"packets with an earlier time than one before them: they arrive with that one")    \
	V(COUNT, step_back_max_ns, "ns", a->step_back_ns,                                          \
		"by how much the earliest of these is earlier")                                    \
	V(COUNT, lengths_from_ip, "packet", a->count.lengths_from_ip,                              \
		"cut packets whose length is taken from the IP header: "                           \
		"the capture does not say it")                                                     \
	V(COUNT, oversize, "packet", a->count.oversize,                                            \
		"of the packets, those longer than their hosts' MTU: "                             \
		"captured before a card segmented them")                                           \
	V(COUNT, too_long, "packet", a->count.too_long,                                            \
		"packets left out because they are longer than the longest frame")                 \
	V(COUNT, not_ethernet, "packet", a->count.not_ethernet,                                    \
		"packets left out because the interface they are of is not Ethernet")              \
	V(FLAG, ended, "", a->ended, "")

// What a live switch adds.
#define LIVE_SOURCE_FIELDS(V)                                                                      \
	V(COUNT, padded, "packet", s->padded,                                                      \
		"packets captured in part: what is missing is sent as zeros")                      \
	V(COUNT, late, "packet", s->late,                                                          \
		"packets that entered the path late: they were not read in time")                  \
	V(COUNT, late_max_ns, "ns", s->late_max_ns, "how late the latest of these was")

// Facts about a link (why.c).
#define WHY_FIELDS(V)                                                                              \
	V(TEXT, cause, "", , "")                                                                   \
	V(TEXT, sentence, "", , "")                                                                \
	V(TEXT, link, "", , "")                                                                    \
	V(SHARE, utilisation, "", , "of the link", .null = "")                                     \
	V(SHARE, dropped_elsewhere, "", , "by stages other than links", .absent = "")              \
	V(TEXT, bottleneck, "", , "another stage, which was busier", .absent = "")                 \
	V(SHARE, bottleneck_used, "", , "", .absent = "")                                          \
	V(SHARE, dropped, "", , "by the link's own queue", .absent = "")                           \
	V(SHARE, marked, "", , "", .absent = "")
