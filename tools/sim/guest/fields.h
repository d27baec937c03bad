// SPDX-License-Identifier: BSD-3-Clause
// The fields of guests in summaries (common/base/field.h).
#pragma once
#include "common/base/field.h"

#define IP_FLOW_FIELDS(V)                                                                          \
	V(COUNT, group, "", group, "")                                                             \
	V(TEXT, direction, "", forward ? "forward" : "reverse", "")                                \
	V(TEXT, protocol, "", protocol_text(f->key.proto, number), "")                             \
	V(TEXT, src, "", address_text(f, true, src), "")                                           \
	V(COUNT, src_port, "", port_number(f->key.src_port), "", .null = "the protocol has none")  \
	V(TEXT, dst, "", address_text(f, false, dst), "")                                          \
	V(COUNT, dst_port, "", port_number(f->key.dst_port), "", .null = "the protocol has none")  \
	V(COUNT, flow_id, "", f->id, "")                                                           \
	V(NUMBER, goodput_bps, "bit/s", seconds > 0 ? (double)c->received_bytes * 8 / seconds : 0, \
		"8 * received_bytes / measured time", .source = "ip_flows.received_bytes")         \
	V(COUNT, sent_pkts, "packet", c->sent_pkts, "packets that entered the first path",         \
		.source = "ip_flows.sent_pkts")                                                    \
	V(COUNT, sent_bytes, "B", c->sent_bytes,                                                   \
		"their payload, behind the IP header and that of UDP",                             \
		.source = "ip_flows.sent_bytes")                                                   \
	V(COUNT, received_pkts, "packet", c->received_pkts, "packets that left the last path",     \
		.source = "ip_flows.received_pkts")                                                \
	V(COUNT, received_bytes, "B", c->received_bytes, "their payload",                          \
		.source = "ip_flows.received_bytes")                                               \
	V(COUNT, drops, "packet", c->drops, "packets that the paths dropped",                      \
		.source = "ip_flows.drops")                                                        \
	V(COUNT, ce_pkts, "packet", c->ce_pkts, "of those received, with CE",                      \
		.source = "ip_flows.ce_pkts")                                                      \
	V(COUNT, delay_min_ns, "ns", some ? c->delay_min_ns : FIELD_UNKNOWN,                       \
		"shortest time from the first path to behind the last one",                        \
		.source = "ip_flows.delay_min_ns", .null = "none was received")                    \
	V(COUNT, delay_mean_ns, "ns", some ? c->delay_sum_ns / c->received_pkts : FIELD_UNKNOWN,   \
		"mean of it", .source = "ip_flows.delay_mean_ns", .null = "none was received")     \
	V(COUNT, delay_max_ns, "ns", some ? c->delay_max_ns : FIELD_UNKNOWN, "longest",            \
		.source = "ip_flows.delay_max_ns", .null = "none was received")                    \
	V(NOTHING, rtt_mean_ns, "ns", , "only the program knows it", .null = "always")             \
	V(NOTHING, retransmits, "", , "likewise", .null = "always")                                \
	V(NOTHING, cwnd_reductions, "", , "likewise", .null = "always")

#define KERNEL_FIELDS(V)                                                                           \
	V(TEXT, name, "", k->name, "")                                                             \
	V(TEXT, release, "", k->release, "")                                                       \
	V(TEXT, package, "", k->package, "")                                                       \
	V(TEXT, version, "", k->version, "")                                                       \
	V(TEXT, options, "", k->options, "")                                                       \
	V(PART, guests, "list[Count]", write_guests(gs, i, j), "")

#define GUESTS_FIELDS(V)                                                                           \
	V(TEXT, release, "", only != NULL ? only->release : NULL, "",                              \
		.null = "several kernels: so are the next three")                                  \
	V(TEXT, package, "", only != NULL ? only->package : NULL, "", .null = "")                  \
	V(TEXT, version, "", only != NULL ? only->version : NULL, "", .null = "")                  \
	V(TEXT, options, "", only != NULL ? only->options : NULL, "", .null = "")                  \
	V(PART, kernels, "list[Kernel]", guests_kernels_summary(gs, j), "", .absent = "")          \
	V(COUNT, count, "guest", gs->count, "guests of the run")                                   \
	V(COUNT, tx_frames, "frame", sum.tx, "frames that they sent")                              \
	V(COUNT, rx_frames, "frame", rx, "frames that they received")                              \
	V(COUNT, other_frames, "frame", sum.other, "frames that they sent besides, of no flow")    \
	V(COUNT, interrupts, "", interrupts, "interrupts of their cards")                          \
	V(COUNT, runs, "", runs, "times that one was let run")                                     \
	V(PART, programs, "list[Program]", programs_summary(gs, j), "", .absent = "")

#define PROGRAM_FIELDS(V)                                                                          \
	V(COUNT, guest, "", index, "")                                                             \
	V(COUNT, group, "", group, "")                                                             \
	V(TEXT, side, "", sender ? "stack" : "peer", "")                                           \
	V(TEXT, run, "", p->run, "")                                                               \
	V(TEXT, output, "", output, "")                                                            \
	V(TEXT, files, "", has_files(p) ? files : NULL, "", .null = "it left none")                \
	V(COUNT, status, "", p->ended ? exit_status(p->status) : FIELD_UNKNOWN,                    \
		"its exit status, or 128 and a signal's number", .null = "it had not ended")       \
	V(COUNT, ended_ns, "ns", p->ended ? p->ended_ns : FIELD_UNKNOWN, "when it ended",          \
		.null = "it had not ended")
