// SPDX-License-Identifier: BSD-3-Clause
// The fields of weir-pcap's summaries (common/base/field.h).
#pragma once
#include "common/base/field.h"

#define JOB_FIELDS(V)                                                                              \
	V(NUMBER, warmup_s, "s", (double)job->settings.warmup_ns / 1e9, "")                        \
	V(NUMBER, wall_s, "s", job->wall_s, "")                                                    \
	V(NUMBER, cpu_s, "s", job->cpu_s, "")                                                      \
	V(PART, verdict, "", facts_json(verdict, j), "")

#define ANALYSIS_PARTS(V)                                                                          \
	V(PART, ledger, "CaptureLedger", write_ledger(a, j), "")                                   \
	V(PART, capture, "Captured", write_capture(a, j), "")                                      \
	V(PART, groups, "list[CapturedGroup]", write_groups(t, j, measured_s), "")                 \
	V(SHARE, jfi, "", jfi(sum, square_sum, t->count.flows), "", .null = "nothing was delivered")
#define ANALYSIS_FIELDS(V) JOB_FIELDS(V) ANALYSIS_PARTS(V)

#define CAPTURE_LEDGER_FIELDS(V)                                                                   \
	V(FLAG, balanced, "", analysis_balanced(a), "")                                            \
	V(PART, capture, "dict[str, Count]", write_read(a, j), "")

#define POINT_FIELDS(V)                                                                            \
	V(TEXT, name, "", name, "")                                                                \
	V(FLAG, read, "", p->point[i].read, "")                                                    \
	V(COUNT, tcp, "packet", p->point[i].packets, "TCP packets captured there")                 \
	V(COUNT, copies, "packet", p->point[i].copies, "of these, seen at another point before")

#define LINK_TYPE_FIELDS(V)                                                                        \
	V(COUNT, link_type, "", c->unread[i].link_type, "")                                        \
	V(TEXT, name, "", link_name(c->unread[i].link_type), "")                                   \
	V(COUNT, packets, "packet", c->unread[i].packets, "")

#define CAPTURED_FIELDS(V)                                                                         \
	V(COUNT, files, "", a->files, "files read as one capture")                                 \
	V(COUNT, packets, "packet", a->parts.read.packets, "packets read, of all kinds")           \
	V(COUNT, bytes, "B", a->parts.read.bytes, "their bytes on the wire")                       \
	V(COUNT, start_utc_ns, "ns", some ? a->order.first_ns : FIELD_UNKNOWN,                     \
		"earliest time of a packet", .null = "there is none")                              \
	V(NUMBER, duration_s, "s", some ? (double)duration_ns(a) / 1e9 : (double)NAN,              \
		"from the earliest to the latest time, without steps of the clock",                \
		.null = "there is none")                                                           \
	V(PART, points, "list[Point]", write_points(&a->points, j), "")                            \
	V(COUNT, connections, "", c->connections,                                                  \
		"TCP connections, those that began before the capture included")                   \
	V(COUNT, connections_max, "", c->live_max, "most connections that were followed at once")  \
	V(COUNT, flows, "flow", c->flows, "directions of connections that carried payload")        \
	V(COUNT, payload_bytes, "B", c->payload_bytes, "payload, retransmissions included")        \
	V(PART, ended, "dict[str, Count]", write_ended(c, j), "")                                  \
	V(COUNT, reordered, "packet", a->order.moved,                                              \
		"packets that were later in the file than their times, and were put into order")   \
	V(COUNT, backwards, "packet", c->backwards,                                                \
		"packets that were too late in the file to be put into order")                     \
	V(COUNT, clock_steps, "", a->order.steps, "times that the capture's clock was set back")   \
	V(COUNT, clock_step_max_ns, "ns", a->order.step_max_ns, "by how much at most")             \
	V(COUNT, duplicates, "packet", c->duplicates,                                              \
		"packets that were captured twice at one point")                                   \
	V(COUNT, recut, "packet", c->recut,                                                        \
		"packets left out: another point has their payload in packets of other lengths")   \
	V(COUNT, no_time, "packet", a->parts.read.no_time,                                         \
		"packets without a time: that of the packet before is taken")                      \
	V(COUNT, lengths_from_ip, "packet", a->decoded.lengths_from_ip,                            \
		"packets whose length is taken from the IP header: the capture does not say it")   \
	V(PART, tunnels, "dict[str, Count]", decode_tunnels(&a->decoded, j), "")                   \
	V(PART, unread_link_types, "list[LinkType]", decode_link_types(&a->decoded, j), "")        \
	V(COUNT, options_cut, "packet", a->options_cut,                                            \
		"packets whose TCP options were cut by the capture")                               \
	V(COUNT, options_bad, "packet", a->options_bad, "packets with wrong TCP options")          \
	V(COUNT, unknown_interface, "packet", a->parts.read.unknown_interface,                     \
		"packets of an interface that the file does not describe")                         \
	V(COUNT, other_blocks, "", a->parts.read.skipped_blocks,                                   \
		"blocks of pcapng files that hold no packets")                                     \
	V(COUNT, untracked, "segment", t->pool.refused,                                            \
		"segments forgotten before their ACK for lack of memory")                          \
	V(COUNT, sent_memory_bytes, "B", t->pool.used,                                             \
		"most memory that was used for segments waiting for their ACK")                    \
	V(COUNT, rtt_samples, "", t->rtt.total, "RTT samples")                                     \
	V(COUNT, rtt_p50_ns, "ns", t->rtt.total > 0 ? hist_quantile(&t->rtt, 0.5) : FIELD_UNKNOWN, \
		"half of the samples are at most this", .null = "there is none")                   \
	V(COUNT, rtt_p99_ns, "ns",                                                                 \
		t->rtt.total > 0 ? hist_quantile(&t->rtt, 0.99) : FIELD_UNKNOWN, "likewise, 99 %", \
		.null = "there is none")                                                           \
	V(PART, notes, "list[str]", write_notes(a, j), "")

// The flows of a server's port, as their packets show them.
#define CAPTURED_GROUP_FIELDS(V)                                                                   \
	V(TEXT, name, "", name, "")                                                                \
	V(NOTHING, cc, "", , "packets do not say it", .null = "always")                            \
	V(COUNT, flows, "flow", g->flows, "")                                                      \
	V(NUMBER, goodput_bps, "bit/s",                                                            \
		measured_s > 0 ? (double)g->acked_bytes * 8 / measured_s : (double)NAN, "",        \
		.null = "no time")                                                                 \
	V(SHARE, jfi, "", jfi(g->goodput_sum, g->goodput_square_sum, g->flows), "",                \
		.null = "nothing was delivered")                                                   \
	V(NUMBER, rtt_mean_ns, "ns",                                                               \
		g->rtt_samples > 0 ? (double)(g->rtt_sum_ns / g->rtt_samples) : (double)NAN, "",   \
		.null = "no sample")                                                               \
	V(COUNT, acked_bytes, "B", g->acked_bytes, "")                                             \
	V(COUNT, sent_segs, "segment", g->sent_segs, "")                                           \
	V(COUNT, retransmits, "segment", g->retransmits, "")                                       \
	V(COUNT, spurious, "segment", g->spurious, "")                                             \
	/* A loss that turns out to be spurious is taken away, also one of the warm-up. */         \
	V(COUNT, lost_segs, "segment", (int64_t)g->lost_segs > 0 ? g->lost_segs : 0, "")           \
	V(COUNT, out_of_order, "segment", g->out_of_order, "")                                     \
	V(COUNT, duplicates, "segment", g->duplicates, "")                                         \
	V(COUNT, cwnd_reductions, "", g->reductions, "")                                           \
	V(COUNT, timeouts, "", g->timeouts, "")

#define COMPARISON_PARTS(V)                                                                        \
	V(PART, ledger, "CapturesLedger", write_ledger(c, j), "")                                  \
	V(PART, links, "dict[str, Matched]", write_paths(m, j), "")                                \
	V(PART, backwards, "dict[str, Count]", write_backwards(c, j),                              \
		"packets with an earlier time than the one before them, by capture")               \
	V(PART, taken_apart, "dict[str, Apart]", write_apart(c, j),                                \
		"packets compared as the several segments they consist of, by capture")            \
	V(COUNT, forgotten, "packet", m->forgotten, "")                                            \
	V(COUNT, flows_seen, "flow", m->flows, "")                                                 \
	V(PART, flows, "list[MatchedFlow]", write_flows(m, j), "")
#define COMPARISON_FIELDS(V) JOB_FIELDS(V) COMPARISON_PARTS(V)

#define CAPTURES_LEDGER_FIELDS(V)                                                                  \
	V(FLAG, balanced, "", compare_balanced(c), "")                                             \
	V(PART, captures, "dict[str, dict[str, Count]]", write_reads(c, j), "")

#define APART_FIELDS(V)                                                                            \
	V(COUNT, packets, "packet", c->side[side].apart, "")                                       \
	V(COUNT, segments, "segment", c->side[side].apart + c->side[side].parts, "")

#define MATCHED_COUNTS(V)                                                                          \
	V(COUNT, matched, "packet", p->matched, "of these, seen by the other capture later")       \
	V(COUNT, drops, "packet", p->lost, "of these, not seen by the other capture")              \
	V(COUNT, not_judged, "packet", p->unjudged,                                                \
		"of these, not seen by the other capture, which had not begun, had ended, or "     \
		"lacks the flow's direction")                                                      \
	V(COUNT, marks, "packet", p->marked, "matched packets that got CE in between")             \
	V(COUNT, reordered, "packet", p->reordered,                                                \
		"matched packets that came out behind one of their flow that had gone in later")   \
	V(COUNT, ambiguous, "packet", p->ambiguous,                                                \
		"matched packets of which an equal one was on its way too")

#define MATCHED_FIELDS(V)                                                                          \
	V(COUNT, in, "packet", p->in,                                                              \
		"packets that the capture on this side saw first; of several segments, "           \
		"the segments",                                                                    \
		.python = "entered")                                                               \
	MATCHED_COUNTS(V)                                                                          \
	V(COUNT, delay_min_ns, "ns", known ? least_ns : FIELD_UNKNOWN,                             \
		"shortest time from one capture to the other", .null = "none matched")             \
	V(NUMBER, delay_mean_ns, "ns", known ? hist_mean(&p->delay) : (double)NAN, "",             \
		.null = "none matched")                                                            \
	V(COUNT, delay_p50_ns, "ns", known ? p50_ns : FIELD_UNKNOWN, "", .null = "none matched")   \
	V(COUNT, delay_p99_ns, "ns", known ? p99_ns : FIELD_UNKNOWN, "", .null = "none matched")   \
	V(COUNT, delay_max_ns, "ns", known ? p->delay.max : FIELD_UNKNOWN, "",                     \
		.null = "none matched")                                                            \
	/* What is above the least delay was spent in queues. */                                   \
	V(NUMBER, queue_mean_ns, "ns",                                                             \
		known ? hist_mean(&p->delay) - (double)least_ns : (double)NAN,                     \
		"delay above the shortest one", .null = "none matched")                            \
	V(COUNT, sojourn_p50_ns, "ns", known ? time_since(p50_ns, least_ns) : FIELD_UNKNOWN, "",   \
		.null = "none matched")                                                            \
	V(COUNT, sojourn_p99_ns, "ns", known ? time_since(p99_ns, least_ns) : FIELD_UNKNOWN, "",   \
		.null = "none matched")                                                            \
	V(COUNT, sojourn_max_ns, "ns", known ? time_since(p->delay.max, least_ns) : FIELD_UNKNOWN, \
		"", .null = "none matched")

#define MATCHED_FLOW_FIELDS(V)                                                                     \
	V(TEXT, src, "", end[0], "")                                                               \
	V(TEXT, dst, "", end[1], "")                                                               \
	V(TEXT, proto, "", p->key.udp ? "udp" : "tcp", "")                                         \
	V(TEXT, path, "", path_names[p->side], "")                                                 \
	V(COUNT, packets, "packet", p->seen, "")                                                   \
	MATCHED_COUNTS(V)                                                                          \
	V(COUNT, delay_min_ns, "ns", known ? p->delay_min_ns : FIELD_UNKNOWN, "",                  \
		.null = "none matched")                                                            \
	V(NUMBER, delay_mean_ns, "ns", (double)p->delay_sum_ns / (double)p->matched, "",           \
		.null = "none matched")                                                            \
	V(COUNT, delay_max_ns, "ns", known ? p->delay_max_ns : FIELD_UNKNOWN, "",                  \
		.null = "none matched")
