// SPDX-License-Identifier: BSD-3-Clause
// The definition of every number that a run reports: one line each, in one place. `weir-sim --list
// number` lists them, tools/docs/reference/numbers.md is their page, and
// tests/swarm/second_opinion.py computes each a second time from what was recorded.
//
//	D(place, name, unit, over, definition, source, unknown)
//
// place       where it stands: a part of summary.json, or `report`: the tables and figures, by the
//             tools alone
// over        the time that counts, a list of its own below
// definition  what is counted, how, and what is left out
// source      what was recorded of it; "": only packets, or nothing recorded, tells it
// unknown     what is null, and a dash where a person reads it; "": it is always known
//
// V(CONSTANT, name, meaning)
// Counters of flows and receivers have their definitions in their own lists
// (common/base/counters.h).
#pragma once

#define NUMBER_TIMES(V)                                                                             \
	V(NUMBER_MEASURED, "measured",                                                              \
		"from the end of the warm-up to the end of the run; an interval counts if it "      \
		"began then, a transfer too")                                                       \
	V(NUMBER_RUN, "run", "the whole run, warm-up included: accounts of what became of things")  \
	V(NUMBER_END, "end", "at the end of the run")                                               \
	V(NUMBER_INTERVAL, "interval",                                                              \
		"between two ends of intervals: each telemetry.interval, the end of the warm-up, "  \
		"the end of the run")                                                               \
	V(NUMBER_WINDOW, "window",                                                                  \
		"a whole number of intervals; the last window ends with the run")                   \
	V(NUMBER_FLOW, "flow",                                                                      \
		"of a capture: from a flow's first payload to its last ACK, or from the warm-up's " \
		"end if that is later")

#define NUMBERS_OF_FLOWS(D)                                                                        \
	D("groups", "flows", "", RUN, "flows of the group in the config", "config.yaml", "")       \
	D("groups", "goodput_bps", "bit/s", MEASURED,                                              \
		"8 * payload newly acknowledged, in sequence or by SACK, / measured time; sum "    \
		"over flows",                                                                      \
		"interval.delivered_bytes", "")                                                    \
	D("groups", "jfi", "", MEASURED,                                                           \
		"Jain's index (sum x)^2 / (n sum x^2) of the goodput x of the n flows that have "  \
		"begun; one that has begun and got nothing counts 0, one that has not begun does " \
		"not count",                                                                       \
		"interval.delivered_bytes, flows", "nothing was delivered")                        \
	D("groups", "rtt_mean_ns", "ns", MEASURED,                                                 \
		"mean of all RTT samples of the group's flows: sum / number, not a mean of means", \
		"interval.rtt_mean_ns weighed by interval.rtt_samples", "no sample")               \
	D("groups", "rtx_overhead", "", MEASURED,                                                  \
		"retransmits / (sent_segs - retransmits): resent "                                 \
		"over sent for the first time, which in the end is over acknowledged",             \
		"interval.retransmits, interval.sent_segs", "nothing was sent for the first time") \
	D("", "jfi", "", MEASURED, "as that of a group, of all flows", "as that of a group",       \
		"nothing was delivered")                                                           \
	D("flows", "waiting", "flow", END, "flows that have not begun, or wait to begin", "", "")  \
	D("flows", "open", "flow", END, "flows that are connecting or open", "flows: still_open",  \
		"")                                                                                \
	D("flows", "done", "flow", END, "flows whose last connection was closed", "flows: close",  \
		"")                                                                                \
	D("flows", "failed", "flow", END, "flows whose last connection was reset or given up",     \
		"flows: reset, gave_up", "")

#define NUMBERS_OF_TRANSFERS(D)                                                                    \
	D("transfers", "begun", "transfer", RUN, "transfers that have begun on a flow",            \
		"transfers", "")                                                                   \
	D("transfers", "finished", "transfer", RUN, "of these, all payload was acknowledged",      \
		"transfers: close", "")                                                            \
	D("transfers", "failed", "transfer", RUN, "of these, their connection failed",             \
		"transfers: gave_up", "")                                                          \
	D("transfers", "unfinished", "transfer", END, "of these, neither",                         \
		"transfers: still_open with a flow", "")                                           \
	D("transfers", "waited", "transfer", RUN, "times one had to wait for a free flow", "", "") \
	D("transfers", "waiting", "transfer", END, "due, without a free flow",                     \
		"transfers: still_open without a flow", "")                                        \
	D("transfers", "skipped", "transfer", RUN, "due, and more than a connection keeps", "",    \
		"")                                                                                \
	D("transfers", "measured", "transfer", MEASURED,                                           \
		"transfers that began in that time and finished: those below", "transfers: close", \
		"")                                                                                \
	D("transfers", "completion_mean_ns", "ns", MEASURED,                                       \
		"mean time from a transfer's place in the schedule to the ACK of its last byte, "  \
		"of those that finished; in overload these are the survivors",                     \
		"transfers.ts_ns - transfers.start_ns", "absent: none finished")                   \
	D("transfers", "completion_p50_ns", "ns", MEASURED,                                        \
		"its smallest value that half of them do not exceed, within 1/64",                 \
		"transfers.ts_ns - transfers.start_ns", "absent: none finished")                   \
	D("transfers", "completion_p95_ns", "ns", MEASURED, "likewise, 95 %",                      \
		"transfers.ts_ns - transfers.start_ns", "absent: none finished")                   \
	D("transfers", "completion_p99_ns", "ns", MEASURED, "likewise, 99 %",                      \
		"transfers.ts_ns - transfers.start_ns", "absent: none finished")                   \
	D("transfers", "slowdown_mean", "", MEASURED,                                              \
		"mean of that time over the one on an empty path", "transfers.ideal_ns",           \
		"absent: the path's rate is not known")                                            \
	D("probe", "flows", "flow", MEASURED, "flows of which a probe was answered", "", "")       \
	D("probe", "answered", "probe", MEASURED, "probes answered, up to 64 of a flow", "", "")   \
	D("probe", "rtt_min_ns", "ns", MEASURED,                                                   \
		"mean over flows of the connection's smallest RTT, handshake included",            \
		"events: probe", "absent: none was answered")                                      \
	D("probe", "dq_ns", "ns", MEASURED,                                                        \
		"mean over flows of the median of standing RTT less rtt_min_ns", "events: probe",  \
		"absent: none was answered")                                                       \
	D("probe", "rate_bps", "bit/s", MEASURED, "payload of a segment / (delta dq_ns)",          \
		"events: probe", "no queue limits it")                                             \
	D("probe", "completion_ns", "ns", MEASURED,                                                \
		"2 (rtt_min_ns + dq_ns) + size_bytes at rate_bps", "events: probe",                \
		"absent: none was answered")                                                       \
	D("probe", "delta", "", RUN, "Copa's, of the config", "config.yaml", "")                   \
	D("probe", "size_bytes", "B", RUN, "of the transfer estimated, of the config",             \
		"config.yaml", "")                                                                 \
	D("back", "goodput_bps", "bit/s", MEASURED,                                                \
		"8 * payload that the side that was opened got acknowledged / measured time", "",  \
		"")                                                                                \
	D("back", "rtt_mean_ns", "ns", MEASURED, "mean of that side's samples", "", "no sample")   \
	D("back", "acked_bytes", "B", MEASURED, "payload acknowledged to that side", "", "")       \
	D("back", "sent_segs", "segment", MEASURED, "segments with payload that it sent", "", "")  \
	D("back", "retransmits", "segment", MEASURED, "of these, sent before", "", "")             \
	D("back", "rtx_overhead", "", MEASURED, "likewise", "", "")                                \
	D("ip_flows", "goodput_bps", "bit/s", MEASURED, "8 * received_bytes / measured time",      \
		"ip_flows.received_bytes", "")                                                     \
	D("ip_flows", "sent_pkts", "packet", MEASURED, "packets that entered the first path",      \
		"ip_flows.sent_pkts", "")                                                          \
	D("ip_flows", "sent_bytes", "B", MEASURED,                                                 \
		"their payload, behind the IP header and that of UDP", "ip_flows.sent_bytes", "")  \
	D("ip_flows", "received_pkts", "packet", MEASURED, "packets that left the last path",      \
		"ip_flows.received_pkts", "")                                                      \
	D("ip_flows", "received_bytes", "B", MEASURED, "their payload", "ip_flows.received_bytes", \
		"")                                                                                \
	D("ip_flows", "drops", "packet", MEASURED, "packets that the paths dropped",               \
		"ip_flows.drops", "")                                                              \
	D("ip_flows", "ce_pkts", "packet", MEASURED, "of those received, with CE",                 \
		"ip_flows.ce_pkts", "")                                                            \
	D("ip_flows", "delay_min_ns", "ns", MEASURED,                                              \
		"shortest time from the first path to behind the last one",                        \
		"ip_flows.delay_min_ns", "none was received")                                      \
	D("ip_flows", "delay_mean_ns", "ns", MEASURED, "mean of it", "ip_flows.delay_mean_ns",     \
		"none was received")                                                               \
	D("ip_flows", "delay_max_ns", "ns", MEASURED, "longest", "ip_flows.delay_max_ns",          \
		"none was received")                                                               \
	D("ip_flows", "rtt_mean_ns", "ns", MEASURED, "only the program knows it", "", "always")    \
	D("ip_flows", "retransmits", "", MEASURED, "likewise", "", "always")                       \
	D("ip_flows", "cwnd_reductions", "", MEASURED, "likewise", "", "always")                   \
	D("base_rtt", "min_ns", "ns", RUN, "smallest base RTT that was drawn", "events: base_rtt", \
		"")                                                                                \
	D("base_rtt", "median_ns", "ns", RUN, "the middle one", "events: base_rtt", "")            \
	D("base_rtt", "max_ns", "ns", RUN, "largest", "events: base_rtt", "")

#define NUMBERS_OF_LINKS(D)                                                                        \
	D("links", "utilisation", "", MEASURED,                                                    \
		"bits on the wire, overhead and padding included, / capacity; a part of a frame "  \
		"counts",                                                                          \
		"links.out_bytes", "no capacity: the rate was 0")                                  \
	D("links", "queue_mean_pkts", "packet", MEASURED,                                          \
		"backlog averaged over time, without the frame on the wire",                       \
		"links.queue_mean_pkts weighed by the intervals' lengths", "")                     \
	D("links", "queue_mean_bytes", "B", MEASURED, "likewise, in bytes",                        \
		"links.queue_mean_bytes weighed by the intervals' lengths", "")                    \
	D("links", "queue_mean_ns", "ns", MEASURED,                                                \
		"mean time in the queue of the packets that left it",                              \
		"links.sojourn_mean_ns, packets.sojourn_ns", "none left it")                       \
	D("links", "queue_max_pkts", "packet", MEASURED, "largest backlog",                        \
		"links.queue_max_pkts", "")                                                        \
	D("links", "sojourn_p50_ns", "ns", MEASURED,                                               \
		"smallest time in the queue that half of the packets do not exceed, within 1/64",  \
		"packets.sojourn_ns", "none left it")                                              \
	D("links", "sojourn_p99_ns", "ns", MEASURED, "likewise, 99 %", "packets.sojourn_ns",       \
		"none left it")                                                                    \
	D("links", "sojourn_max_ns", "ns", MEASURED, "longest", "links.sojourn_max_ns",            \
		"none left it")                                                                    \
	D("links", "sojourn_cdf", "ns", MEASURED,                                                  \
		"[upper end of a bucket, share of packets up to it]", "packets.sojourn_ns", "")    \
	D("links", "out_pkts", "packet", MEASURED, "frames whose transmission ended",              \
		"links.out_pkts", "")                                                              \
	D("links", "out_bytes", "B", MEASURED, "their bytes, FCS included, no preamble or gap",    \
		"links.out_bytes", "")                                                             \
	D("links", "drops", "packet", MEASURED, "dropped by the link's queue", "links.drops", "")  \
	D("links", "marks", "packet", MEASURED, "CE set by the link's queue", "links.marks", "")   \
	D("links", "rate_bps", "bit/s", END, "the configured rate", "links.rate_bps", "")          \
	D("links", "rate_mean_bps", "bit/s", MEASURED, "capacity / measured time", "", "")         \
	D("links", "rate_min_bps", "bit/s", MEASURED,                                              \
		"smallest rate that applied for some time, 0 of an outage included",               \
		"events: parameter", "")                                                           \
	D("links", "rate_max_bps", "bit/s", MEASURED, "largest", "events: parameter", "")          \
	D("links", "down_ns", "ns", MEASURED, "time at rate 0", "events: parameter", "")

#define NUMBERS_OF_THE_RUN(D)                                                                      \
	D("", "seed", "", RUN, "of the config or the command line", "config.yaml", "")             \
	D("", "virtual_s", "s", RUN, "length of the run in its own time", "", "")                  \
	D("", "warmup_s", "s", RUN, "length of the warm-up", "config.yaml", "")                    \
	D("", "wall_s", "s", RUN, "time that it took", "", "")                                     \
	D("", "threads", "thread", RUN, "that it ran on", "", "")                                  \
	D("measured", "wall_s", "s", MEASURED, "time that this part took", "", "")                 \
	D("measured", "cpu_s", "s", MEASURED, "processor time that this part took", "", "")        \
	D("measured", "virtual_s", "s", MEASURED, "virtual_s - warmup_s", "", "")                  \
	D("measured", "data_segs", "segment", MEASURED,                                            \
		"acceptable segments with payload that arrived at receivers", "", "")              \
	D("ledger", "pkts", "packet", RUN,                                                         \
		"in + duplicated = out + inside + drops by reason, of each path", "packets: drop", \
		"")                                                                                \
	D("ledger", "bytes", "B", RUN, "the same account in bytes, FCS included", "", "")          \
	D("ledger", "inside", "packet", END, "packets in paths and on their way to hosts", "", "") \
	D("ledger", "hosts", "packet", RUN,                                                        \
		"packets that each side sent and received; with wrong checksums: apart", "", "")   \
	D("segments", "sent", "packet", RUN, "all packets of the sender, bare ACKs too", "", "")   \
	D("segments", "received", "packet", RUN, "that arrived at it", "", "")                     \
	D("segments", "unacceptable", "packet", RUN, "of these, outside windows or states", "",    \
		"")                                                                                \
	D("segments", "refused", "", RUN,                                                          \
		"times a segment waited for memory; a run with any is "                            \
		"not valid",                                                                       \
		"", "")                                                                            \
	D("receivers", "ranges_refused", "", RUN,                                                  \
		"ranges for which memory was missing; a run "                                      \
		"with any is not valid",                                                           \
		"", "")                                                                            \
	D("telemetry", "level", "", RUN, "of the config", "config.yaml", "")                       \
	D("telemetry", "records", "record", RUN, "of a stream", "the ring's length", "")           \
	D("telemetry", "lost", "record", RUN, "that had no room", "the ring's gap records", "")    \
	D("memory", "packets_max", "packet", RUN,                                                  \
		"most packets inside, of 512 times of the run and more", "", "")                   \
	D("memory", "segments_max", "segment", RUN, "most places of scoreboards used", "", "")     \
	D("stop", "change", "", RUN, "of the config: what counts as settled", "config.yaml", "")   \
	D("stop", "over_s", "s", RUN, "of the config: for how long", "config.yaml", "")            \
	D("stop", "moved", "", END, "by how much the metric moved in that time", "",               \
		"it could not be measured")                                                        \
	D("stop", "at_s", "s", RUN, "when the run ended", "", "")

#define NUMBERS_OF_REPORTS(D)                                                                      \
	D("report", "share", "", MEASURED,                                                         \
		"a group's goodput over that of all groups, both directions", "groups", "")        \
	D("report", "flow.goodput_bps", "bit/s", MEASURED,                                         \
		"of one flow, as of a group: over the whole measured time, however long it was "   \
		"there",                                                                           \
		"interval.delivered_bytes", "")                                                    \
	D("report", "flow.rtt_p50_ns", "ns", MEASURED,                                             \
		"percentile of intervals' mean RTTs, each weighed by its samples, within 0.05 %",  \
		"interval.rtt_mean_ns", "no sample")                                               \
	D("report", "interval.goodput_bps", "bit/s", INTERVAL,                                     \
		"8 * delivered_bytes / length of the interval", "interval.delivered_bytes", "")    \
	D("report", "window.goodput_bps", "bit/s", WINDOW,                                         \
		"8 * delivered_bytes of a flow in the window / length of the window, in windows "  \
		"in which the flow has records",                                                   \
		"interval.delivered_bytes", "")                                                    \
	D("report", "window.jfi", "", WINDOW,                                                      \
		"Jain's index of window.goodput_bps over the flows that have records in it",       \
		"interval.delivered_bytes", "nothing was delivered in it")                         \
	D("report", "window.rtt_mean_ns", "ns", WINDOW, "mean of the samples in the window",       \
		"interval.rtt_mean_ns weighed by interval.rtt_samples", "no sample")               \
	D("report", "events_per_s", "1/s", INTERVAL,                                               \
		"events in a bin over its length; a bin is a whole number of intervals, the last " \
		"ends with the run",                                                               \
		"links.drops, links.marks, events", "")                                            \
	D("report", "completion", "ns", MEASURED,                                                  \
		"as of transfers, exact, by group and size; a percentile is the smallest value "   \
		"that so many do not exceed",                                                      \
		"transfers", "none finished")                                                      \
	D("report", "unfinished", "transfer", END,                                                 \
		"began in the measured time, by group and size, and did not finish: percentiles "  \
		"are those of the others",                                                         \
		"transfers", "")                                                                   \
	D("report", "mathis_c", "", MEASURED,                                                      \
		"least squares of goodput = C mss / (RTT sqrt p) over flows, p = losses / "        \
		"sent_segs",                                                                       \
		"interval", "no flow to fit")                                                      \
	D("capture", "flow.goodput_bps", "bit/s", FLOW,                                            \
		"8 * payload acknowledged / the flow's own time", "captured, delays", "no data")   \
	D("capture", "groups.goodput_bps", "bit/s", MEASURED,                                      \
		"8 * payload acknowledged / measured time of the capture", "captured", "no time")

#define NUMBERS(D)                                                                                 \
	NUMBERS_OF_FLOWS(D)                                                                        \
	NUMBERS_OF_TRANSFERS(D)                                                                    \
	NUMBERS_OF_LINKS(D) NUMBERS_OF_THE_RUN(D) NUMBERS_OF_REPORTS(D)

#define NUMBER_TIME_CONSTANT_(constant, name, meaning) constant,
enum number_time { NUMBER_TIMES(NUMBER_TIME_CONSTANT_) };
#undef NUMBER_TIME_CONSTANT_

struct number {
	const char *place, *name, *unit, *definition, *source, *unknown;
	enum number_time over;
};
