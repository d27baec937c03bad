// SPDX-License-Identifier: BSD-3-Clause
// The fields of flows in summaries (common/base/field.h).
#pragma once
#include "sender/tcp/flow.h"
#include "sender/tcp/receiver.h"

#define GROUP_FIELDS(V)                                                                            \
	V(TEXT, name, "", g->name, "")                                                             \
	V(TEXT, cc, "", g->control, "")                                                            \
	V(PART, modes, "list[str]", write_modes(j, g->cc), "")                                     \
	V(PART, notes, "list[str]", write_notes(j, g->cc), "")                                     \
	V(TEXT, stack, "", kernels ? stack_name(&g->stack) : NULL, "",                             \
		.absent = "no kernel is among the hosts")                                          \
	V(TEXT, peer, "", kernels ? stack_name(&g->peer) : NULL, "",                               \
		.absent = "no kernel is among the hosts")                                          \
	V(COUNT, flows, "", g->count, "flows of the group in the config", .over = OVER_RUN,        \
		.source = "config.yaml")                                                           \
	V(NUMBER, goodput_bps, "bit/s", s->jain.sum,                                               \
		"8 * payload newly acknowledged, in sequence or by SACK, / measured time; "        \
		"sum over flows",                                                                  \
		.source = "interval.delivered_bytes")                                              \
	V(SHARE, jfi, "", jain_index(&s->jain),                                                    \
		"Jain's index (sum x)^2 / (n sum x^2) of the goodput x of the n flows that have "  \
		"begun; one that has begun and got nothing counts 0, "                             \
		"one that has not begun does not count",                                           \
		.source = "interval.delivered_bytes, flows", .null = "nothing was delivered")      \
	V(NUMBER, rtt_mean_ns, "ns", rtt_mean_ns(sum),                                             \
		"mean of all RTT samples of the group's flows: sum / number, not a mean of means", \
		.source = "interval.rtt_mean_ns weighed by interval.rtt_samples",                  \
		.null = "no sample")                                                               \
	FLOW_COUNTERS(V##_COUNTER)                                                                 \
	V(NUMBER, rtx_overhead, "", g->stack.quic != NULL ? (double)NAN : rtx_overhead(sum),       \
		"retransmits / (sent_segs - retransmits): resent over sent for the first time, "   \
		"which in the end is over acknowledged",                                           \
		.source = "interval.retransmits, interval.sent_segs",                              \
		.null = "nothing was sent for the first time; of a QUIC stack's flows")            \
	V(PART, base_rtt, "BaseRtt", write_base_rtt(j, h, group), "", .absent = "")                \
	V(PART, back, "Back", write_back(j, h, group, seconds), "", .absent = "")                  \
	V(PART, transfers, "Transfers", host_workloads_summary(hosts, n, group, j, now_ns), "",    \
		.absent = "")                                                                      \
	V(PART, probe, "Probe", (void)0, "", .absent = "")

#define HOST_SUMMARY_FIELDS(V)                                                                     \
	V(PART, groups, "list[Group]", write_groups(j, hosts, n, sum, now_ns), "")                 \
	V(SHARE, jfi, "", jain_index(&all), "as that of a group, of all flows",                    \
		.source = "as that of a group", .null = "nothing was delivered")                   \
	V(PART, flows, "Flows", write_flows(hosts, n, j), "")                                      \
	V(PART, segments, "Segments", write_segments(hosts, n, j), "")

// The connections' other direction.
#define BACK_FIELDS(V)                                                                             \
	V(TEXT, cc, "", g->peer.guest ? g->peer.cc : NULL, "", .absent = "not a kernel's")         \
	V(NUMBER, goodput_bps, "bit/s", (double)sum->acked_bytes * 8 / seconds,                    \
		"8 * payload that the side that was opened got acknowledged / measured time")      \
	V(NUMBER, rtt_mean_ns, "ns", rtt_mean_ns(sum), "mean of that side's samples",              \
		.null = "no sample")                                                               \
	V(COUNT, acked_bytes, "B", sum->acked_bytes, "payload acknowledged to that side")          \
	V(COUNT, sent_segs, "segment", sum->sent_segs, "segments with payload that it sent")       \
	V(COUNT, retransmits, "segment", sum->retransmits, "of these, sent before")                \
	V(COUNT, drops, "packet", sum->drops, "its packets with payload that paths dropped",       \
		.absent = "older runs: the group's drops have them")                               \
	V(NUMBER, rtx_overhead, "", rtx_overhead(sum), "likewise",                                 \
		.null = "nothing was sent for the first time")

#define BASE_RTT_FIELDS(V)                                                                         \
	V(TEXT, distribution, "", g->law, "")                                                      \
	V(COUNT, min_ns, "ns", g->min_ns, "smallest base RTT that was drawn",                      \
		.source = "events: base_rtt")                                                      \
	V(COUNT, median_ns, "ns", g->median_ns, "the middle one", .source = "events: base_rtt")    \
	V(COUNT, max_ns, "ns", g->max_ns, "largest", .source = "events: base_rtt")

#define FLOWS_FIELDS(V)                                                                            \
	V(COUNT, waiting, "flow", waiting, "flows that have not begun, or wait to begin")          \
	V(COUNT, open, "flow", open, "flows that are connecting or open",                          \
		.source = "flows: still_open")                                                     \
	V(COUNT, done, "flow", done, "flows whose last connection was closed",                     \
		.source = "flows: close")                                                          \
	V(COUNT, failed, "flow", failed, "flows whose last connection was reset or given up",      \
		.source = "flows: reset, gave_up")

#define SEGMENTS_FIELDS(V)                                                                         \
	V(COUNT, sent, "packet", c.tx_segs, "all packets of the sender, bare ACKs too")            \
	V(COUNT, received, "packet", c.rx_segs, "that arrived at it")                              \
	V(COUNT, unacceptable, "packet", c.rx_bad, "of these, outside windows or states")          \
	V(COUNT, refused, "", c.seg_refused,                                                       \
		"times a segment waited for memory; a run with any is not valid")

#define RECEIVERS_FIELDS(V)                                                                        \
	V(COUNT, open, "flow", s->open, "receivers whose connection is open", .over = OVER_END,    \
		.absent = "virtual time: flows.open has it")                                       \
	V(COUNT, done, "flow", s->done, "receivers whose connection has ended", .over = OVER_END,  \
		.absent = "virtual time: flows.done has it")                                       \
	RECEIVER_COUNTERS(V##_COUNTER)                                                             \
	V(COUNT, ranges_refused, "", s->refused,                                                   \
		"ranges for which memory was missing; a run with any is not valid")

#define TRANSFERS_FIELDS(V)                                                                        \
	V(COUNT, begun, "transfer", sum.begun, "transfers that have begun on a flow",              \
		.over = OVER_RUN, .source = "transfers")                                           \
	V(COUNT, finished, "transfer", sum.finished, "of these, all payload was acknowledged",     \
		.over = OVER_RUN, .source = "transfers: close")                                    \
	V(COUNT, failed, "transfer", sum.failed, "of these, their connection failed",              \
		.over = OVER_RUN, .source = "transfers: gave_up")                                  \
	V(COUNT, unfinished, "transfer", sum.begun - sum.finished - sum.failed,                    \
		"of these, neither", .over = OVER_END,                                             \
		.source = "transfers: still_open with a flow")                                     \
	V(COUNT, waited, "transfer", sum.waited, "times one had to wait for a free flow",          \
		.over = OVER_RUN)                                                                  \
	V(COUNT, waiting, "transfer", waiting, "due, without a free flow", .over = OVER_END,       \
		.source = "transfers: still_open without a flow")                                  \
	V(COUNT, skipped, "transfer", sum.skipped, "due, and more than a connection keeps",        \
		.over = OVER_RUN)                                                                  \
	V(COUNT, measured, "transfer", took->total,                                                \
		"transfers that began in that time and finished: those below",                     \
		.source = "transfers: close")                                                      \
	V(NUMBER, completion_mean_ns, "ns", some ? hist_mean(took) : (double)NAN,                  \
		"mean time from a transfer's place in the schedule to the ACK of its last byte, "  \
		"of those that finished; in overload these are the survivors",                     \
		.source = "transfers.ts_ns - transfers.start_ns", .absent = "none finished")       \
	V(NUMBER, completion_p50_ns, "ns", some ? (double)hist_quantile(took, 0.5) : (double)NAN,  \
		"its smallest value that half of them do not exceed, within 1/64",                 \
		.source = "transfers.ts_ns - transfers.start_ns", .absent = "none finished")       \
	V(NUMBER, completion_p95_ns, "ns", some ? (double)hist_quantile(took, 0.95) : (double)NAN, \
		"likewise, 95 %", .source = "transfers.ts_ns - transfers.start_ns",                \
		.absent = "none finished")                                                         \
	V(NUMBER, completion_p99_ns, "ns", some ? (double)hist_quantile(took, 0.99) : (double)NAN, \
		"likewise, 99 %", .source = "transfers.ts_ns - transfers.start_ns",                \
		.absent = "none finished")                                                         \
	V(NUMBER, slowdown_mean, "", sum.slowdown_sum / (double)sum.slowdowns,                     \
		"mean of that time over the one on an empty path", .source = "transfers.ideal_ns", \
		.absent = "the path's rate is not known")

#define PROBE_FIELDS(V)                                                                            \
	V(COUNT, flows, "flow", flows, "flows of which a probe was answered")                      \
	V(COUNT, answered, "probe", answered, "probes answered, up to 64 of a flow")               \
	V(NUMBER, rtt_min_ns, "ns", mean.rtt_min_ns,                                               \
		"mean over flows of the connection's smallest RTT, handshake included",            \
		.source = "events: probe", .absent = "none was answered")                          \
	V(NUMBER, dq_ns, "ns", mean.dq_ns,                                                         \
		"mean over flows of the median of standing RTT less rtt_min_ns",                   \
		.source = "events: probe", .absent = "none was answered")                          \
	V(NUMBER, delta, "", some ? c->delta : (double)NAN, "Copa's, of the config",               \
		.over = OVER_RUN, .source = "config.yaml", .absent = "none was answered")          \
	V(NUMBER, rate_bps, "bit/s", mean.rate_bps, "payload of a segment / (delta dq_ns)",        \
		.source = "events: probe", .absent = "none was answered",                          \
		.null = "no queue limits it")                                                      \
	V(COUNT, size_bytes, "B", some ? c->size_bytes : FIELD_UNKNOWN,                            \
		"of the transfer estimated, of the config", .over = OVER_RUN,                      \
		.source = "config.yaml", .absent = "none was answered")                            \
	V(NUMBER, completion_ns, "ns", mean.completion_ns,                                         \
		"2 (rtt_min_ns + dq_ns) + size_bytes at rate_bps", .source = "events: probe",      \
		.absent = "none was answered", .null = "no queue limits it")

// Facts about what limits the flows (limits.c).
#define LIMITS_FIELDS(V)                                                                           \
	V(TEXT, cause, "", , "the most frequent one")                                              \
	V(TEXT, sentence, "", , "")                                                                \
	V(COUNT, flows, "flow", , "")                                                              \
	V(COUNT, not_begun, "flow", , "")                                                          \
	V(COUNT, connecting, "flow", , "")                                                         \
	V(COUNT, ended, "flow", , "")                                                              \
	V(COUNT, failed, "flow", ,                                                                 \
		"gave up after timeouts; in older runs, those that were reset too")                \
	V(COUNT, no_data, "flow", , "")                                                            \
	V(COUNT, receive_window, "flow", , "")                                                     \
	V(COUNT, cwnd, "flow", , "")                                                               \
	V(COUNT, pacing, "flow", , "")                                                             \
	V(COUNT, udp, "flow", , "")                                                                \
	V(COUNT, reset, "flow", , "", .absent = "")                                                \
	V(COUNT, reset_by_program, "flow", , "of a program of the host, in a guest", .absent = "") \
	V(COUNT, send_buffer, "flow", , "", .absent = "")
