// SPDX-License-Identifier: BSD-3-Clause
// The definition of all telemetry records: these lists make the C structs, their static checks and
// the JSON schema in each file's header. Fields are ordered by size, largest first, so that there
// is no padding. A new field is a line here, and one where records are filled; the record's size
// follows. Files contain their own schema, by which readers find the fields.
//
//	F(ctype, dtype, name, unit, meaning)
//	N(ctype, dtype, name, unit, meaning)    all bits set, TEL_UNKNOWN(ctype): it is not known
//
// The unit of an enumerated field is the name of its list below, which makes the enum and whose
// names are in the schema. A number never changes its meaning, because files contain it.
//
//	V(CONSTANT, number, name, meaning)
#pragma once
#include "common/base/pkt.h"

#include <stdint.h>

#define TEL_PACKET_EVENT_VALUES(V)                                                                 \
	V(TEL_ENQUEUE, 1, "enqueue", "a queue took it")                                            \
	V(TEL_DEQUEUE, 2, "dequeue", "it left a queue")                                            \
	V(TEL_DROP, 3, "drop", "for the record's reason")                                          \
	V(TEL_MARK, 4, "mark", "CE was set")                                                       \
	V(TEL_DEPART, 5, "depart", "live: it left by a port")                                      \
	V(TEL_CORRUPT, 6, "corrupt", "a bit of it was flipped")                                    \
	V(TEL_DUPLICATE, 7, "duplicate", "it is a copy, made now")

#define TEL_ARRIVAL_VALUES(V)                                                                      \
	V(TEL_ARRIVED, 1, "packet", "a packet entered the path")                                   \
	V(TEL_CHANGED, 2, "change", "a parameter was changed")                                     \
	V(TEL_END, 3, "end", "the path was served until then")                                     \
	V(TEL_HEADERS, 4, "headers", "of the next packet, if a stage of the path reads them")      \
	V(TEL_ACK, 5, "ack", "that too, if the packet is an ACK and nothing else")                 \
	V(TEL_SACK, 6, "sack", "a block of that ACK")

#define TEL_FLOW_EVENT_VALUES(V)                                                                   \
	V(TEL_OPEN, 1, "open", "the handshake is done")                                            \
	V(TEL_CLOSE, 2, "close", "all was acknowledged")                                           \
	V(TEL_RESET, 3, "reset", "by either end")                                                  \
	V(TEL_GAVE_UP, 4, "gave_up", "too many timeouts")                                          \
	V(TEL_STILL_OPEN, 5, "still_open", "at the end of the run")                                \
	V(TEL_IDLE, 6, "idle", "capture: no packet for longer than the idle time")                 \
	V(TEL_REPLACED, 7, "replaced", "capture: its addresses and ports were used again")         \
	V(TEL_EVICTED, 8, "evicted", "capture: too many flows at once, it was quiet longest")      \
	V(TEL_HALF_OPEN, 9, "half_open", "capture: no packet but SYNs and resets to them")

#define TEL_CA_STATE_VALUES(V)                                                                     \
	V(TEL_CA_OPEN, 0, "open", "nothing is taken for lost")                                     \
	V(TEL_CA_RECOVERY, 1, "recovery", "after a loss or an ECN echo")                           \
	V(TEL_CA_LOSS, 2, "loss", "after a timeout")

#define TEL_EVENT_VALUES(V)                                                                        \
	V(TEL_EV_REDUCTION, 1, "reduction",                                                        \
		"of a window; before, value: cwnd in segments; detail: 1 if by ECN")               \
	V(TEL_EV_TIMEOUT, 2, "timeout", "before, value: cwnd in segments")                         \
	V(TEL_EV_RECOVERED, 3, "recovered",                                                        \
		"value: cwnd in segments; of a capture what is in flight")                         \
	V(TEL_EV_SLOW_START_END, 4, "slow_start_end", "value: cwnd in segments")                   \
	V(TEL_EV_CC_MODE, 5, "cc_mode", "before, value: the algorithm's mode")                     \
	V(TEL_EV_PARAM, 6, "parameter",                                                            \
		"group: link; before, value: in the parameter's unit; detail: schedule entry")     \
	V(TEL_EV_SPURIOUS, 7, "spurious", "a retransmission that was not needed (DSACK)")          \
	V(TEL_EV_PORT, 8, "port", "live: group: port; value: 1 up, 0 down")                        \
	V(TEL_EV_OBSERVED, 9, "observed",                                                          \
		"each interval; detail: observer; group: link, 255: no link; value to value4")     \
	V(TEL_EV_UNDO, 10, "undo",                                                                 \
		"a reduction is taken back; before, value: cwnd in segments; detail: "             \
		"enum tel_undo")                                                                   \
	V(TEL_EV_ZERO_WINDOW, 11, "zero_window",                                                   \
		"capture: the receiver's window opens again; value: ns for which it was closed")   \
	V(TEL_EV_PROBE, 12, "probe",                                                               \
		"before: RTTmin, value: dq, value3: completion time, all in ns; value2: rate in "  \
		"bit/s, 0: no limit; detail: probes answered")                                     \
	V(TEL_EV_BASE_RTT, 13, "base_rtt",                                                         \
		"a flow opens whose group draws base RTTs; value: its own, in ns")                 \
	V(TEL_EV_PATH_MTU, 14, "path_mtu",                                                         \
		"before, value: payload of a full segment, in bytes; detail: 0: a router has "     \
		"said so (ICMP), 1: a black hole, 2: a larger one has arrived")                    \
	V(TEL_EV_NOTE, 15, "note",                                                                 \
		"of a control; detail: which of its notes; before, value: its own")

// E(enum, list of its values)
#define TEL_ENUMS(E)                                                                               \
	E(ecn, ECN_VALUES)                                                                         \
	E(drop_reason, DROP_REASON_VALUES)                                                         \
	E(tel_packet_event, TEL_PACKET_EVENT_VALUES)                                               \
	E(tel_arrival, TEL_ARRIVAL_VALUES)                                                         \
	E(tel_flow_event, TEL_FLOW_EVENT_VALUES)                                                   \
	E(tel_ca_state, TEL_CA_STATE_VALUES)                                                       \
	E(tel_event, TEL_EVENT_VALUES)

// One record per packet event at a link, and per packet that another stage drops (level 3; level 2:
// a subset of flows).
#define TEL_PACKETS(F, N)                                                                          \
	F(uint64_t, "<u8", ts_ns, "ns", "when it happened, in theoretical time")                   \
	F(uint64_t, "<u8", sojourn_ns, "ns",                                                       \
		"time in the queue; depart: how late the packet left")                             \
	F(uint64_t, "<u8", queue_bytes, "B", "backlog after the event")                            \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", pkt_id, "", "counts packets into the path, modulo 2^32")                \
	F(uint16_t, "<u2", size_bytes, "B", "frame with FCS")                                      \
	F(uint8_t, "|u1", event, "tel_packet_event", "what happened")                              \
	F(uint8_t, "|u1", reason, "drop_reason", "why it was dropped")                             \
	F(uint8_t, "|u1", link, "", "index of the link in the summary; 255: not a link")           \
	F(uint8_t, "|u1", ecn, "ecn", "ECN bits after the event")                                  \
	F(uint8_t, "|u1", path, "", "index of the path in the config")                             \
	F(uint8_t, "|u1", stage, "", "index of the stage in its path; 255: behind the last")

// The congestion control's view after an ACK (level 3; level 2: a subset of flows).
#define TEL_CC(F, N)                                                                               \
	F(uint64_t, "<u8", ts_ns, "ns", "time")                                                    \
	F(uint64_t, "<u8", rtt_ns, "ns", "sample of this ACK, 0 if none")                          \
	F(uint64_t, "<u8", srtt_ns, "ns", "smoothed RTT (RFC 6298)")                               \
	F(uint64_t, "<u8", rtt_min_ns, "ns", "smallest RTT of the connection")                     \
	N(uint64_t, "<u8", lost_segs, "segment",                                                   \
		"times one was declared lost since the start, those taken back too")               \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(float, "<f4", cwnd_segs, "segment", "congestion window")                                 \
	F(uint32_t, "<u4", inflight_segs, "segment", "pipe after this ACK")                        \
	F(float, "<f4", pacing_bps, "bit/s", "pacing rate of the payload, 0 if not paced")         \
	F(float, "<f4", delivery_bps, "bit/s", "delivery rate sample, 0 if none")                  \
	F(float, "<f4", obs0, "", "the algorithm's own, named in observers")                       \
	F(float, "<f4", obs1, "", "the algorithm's own")                                           \
	F(float, "<f4", obs2, "", "the algorithm's own")                                           \
	F(float, "<f4", obs3, "", "the algorithm's own")                                           \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", state, "tel_ca_state", "what it recovers from")                          \
	F(uint8_t, "|u1", app_limited, "", "1: the delivery rate sample is app-limited")

// A flow opens, closes, fails or is still open at the end.
#define TEL_FLOWS(F, N)                                                                            \
	F(uint64_t, "<u8", ts_ns, "ns", "time")                                                    \
	F(uint64_t, "<u8", start_ns, "ns", "when its first SYN was sent")                          \
	F(uint64_t, "<u8", acked_bytes, "B", "payload acknowledged")                               \
	F(uint64_t, "<u8", sent_segs, "segment", "data segments sent, retransmissions included")   \
	F(uint64_t, "<u8", retransmits, "segment", "of these, retransmissions")                    \
	F(uint64_t, "<u8", srtt_ns, "ns", "smoothed RTT at that time")                             \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", src_ip, "", "IPv4 address of the sender, host order")                   \
	F(uint32_t, "<u4", dst_ip, "", "IPv4 address of the receiver, host order")                 \
	N(uint32_t, "<u4", cwnd_reductions, "", "window reductions")                               \
	N(uint32_t, "<u4", timeouts, "", "retransmission timeouts")                                \
	F(uint16_t, "<u2", src_port, "", "TCP port of the sender")                                 \
	F(uint16_t, "<u2", dst_port, "", "TCP port of the receiver")                               \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", event, "tel_flow_event", "what happened")

// A flow in one interval (level 1).
#define TEL_INTERVAL(F, N)                                                                         \
	F(uint64_t, "<u8", ts_ns, "ns", "end of the interval")                                     \
	F(uint64_t, "<u8", acked_bytes, "B", "payload acknowledged in the interval")               \
	F(uint64_t, "<u8", delivered_bytes, "B",                                                   \
		"payload newly acknowledged in the interval, in sequence or by SACK")              \
	F(uint64_t, "<u8", rtt_mean_ns, "ns", "mean of the RTT samples")                           \
	F(uint64_t, "<u8", rtt_max_ns, "ns", "largest of them")                                    \
	F(uint64_t, "<u8", sent_segs, "segment", "data segments sent, retransmissions included")   \
	F(uint64_t, "<u8", retransmits, "segment", "of these, retransmissions")                    \
	N(uint64_t, "<u8", lost_segs, "segment",                                                   \
		"times one was declared lost, those taken back too")                               \
	N(uint64_t, "<u8", drops, "packet", "data packets the forward path dropped")               \
	F(uint64_t, "<u8", rtt_samples, "", "RTT samples")                                         \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(float, "<f4", cwnd_segs, "segment", "congestion window at the end")                      \
	F(float, "<f4", pacing_bps, "bit/s", "pacing rate at the end")                             \
	F(uint32_t, "<u4", inflight_segs, "segment", "pipe at the end")                            \
	N(uint32_t, "<u4", cwnd_reductions, "", "window reductions")                               \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", state, "tel_ca_state", "what it recovers from")                          \
	F(uint8_t, "|u1", cc_state, "", "the algorithm's own")

// A link in one interval (level 1).
#define TEL_LINKS(F, N)                                                                            \
	F(uint64_t, "<u8", ts_ns, "ns", "end of the interval")                                     \
	F(uint64_t, "<u8", out_bytes, "B", "frames sent, FCS included")                            \
	F(uint64_t, "<u8", rate_bps, "bit/s", "configured rate at the end")                        \
	F(uint64_t, "<u8", sojourn_mean_ns, "ns", "mean time in the queue")                        \
	F(uint64_t, "<u8", sojourn_max_ns, "ns", "longest time in the queue")                      \
	F(uint64_t, "<u8", out_pkts, "packet", "packets sent")                                     \
	F(uint64_t, "<u8", drops, "packet", "dropped by the queue")                                \
	F(uint64_t, "<u8", marks, "packet", "CE set by the queue")                                 \
	F(uint32_t, "<u4", link, "", "index of the link in the summary")                           \
	F(uint32_t, "<u4", queue_pkts, "packet", "backlog at the end")                             \
	F(uint32_t, "<u4", queue_max_pkts, "packet", "largest backlog")                            \
	F(float, "<f4", queue_mean_pkts, "packet", "backlog averaged over time")                   \
	F(float, "<f4", queue_mean_bytes, "B", "backlog averaged over time")

// Rare events (level 1): window reductions, mode switches, changes of a link or the config, a
// queue's state.
#define TEL_EVENTS(F, N)                                                                           \
	F(uint64_t, "<u8", ts_ns, "ns", "time")                                                    \
	F(double, "<f8", value, "", "new value, in the event's unit")                              \
	F(uint32_t, "<u4", flow_id, "", "flow; 2^32-1: none")                                      \
	F(uint32_t, "<u4", detail, "", "the event's own")                                          \
	F(float, "<f4", before, "", "old value")                                                   \
	F(float, "<f4", value2, "", "observed: the second number")                                 \
	F(float, "<f4", value3, "", "observed: the third")                                         \
	F(float, "<f4", value4, "", "observed: the fourth")                                        \
	F(uint16_t, "<u2", event, "tel_event", "what happened")                                    \
	F(uint16_t, "<u2", group, "", "flow group; a link's or a port's index for its events")     \
	F(uint8_t, "|u1", path, "", "observed: index of the path in the config")                   \
	F(uint8_t, "|u1", stage, "", "observed: index of the stage in its path")

// All input of a path in order (telemetry.arrivals): packets, changes and the end. `weir replay`
// feeds it to the same path again.
#define TEL_ARRIVALS(F, N)                                                                         \
	F(uint64_t, "<u8", ts_ns, "ns", "theoretical arrival; when it changed; the end")           \
	F(double, "<f8", value, "",                                                                \
		"change: new value, in the parameter's unit; packet: its hosts, source * 65536 + " \
		"destination; ack: TSval; sack: end; else 0")                                      \
	F(uint32_t, "<u4", flow_id, "",                                                            \
		"flow; change: xxh32 of the parameter's name; headers: TCP sequence number; ack: " \
		"acknowledgment number; sack: start; 2^32-1: none")                                \
	F(uint32_t, "<u4", pkt_id, "", "counts packets into the path; else of the next packet")    \
	F(uint16_t, "<u2", size_bytes, "B", "frame with FCS; headers: TCP payload and FIN")        \
	F(uint16_t, "<u2", delay_class, "",                                                        \
		"flow group; headers: 1 if SYN is set; ack: 1 if it has timestamps")               \
	F(uint8_t, "|u1", event, "tel_arrival", "what came")                                       \
	F(uint8_t, "|u1", path, "", "index of the path in the config")                             \
	F(uint8_t, "|u1", ecn, "ecn", "ECN bits on arrival")                                       \
	F(uint8_t, "|u1", param, "",                                                               \
		"change: which of the path's parameters, as the recorder counts them; headers: "   \
		"DSCP; ack: AE, CWR and ECE")

// One direction of a TCP connection in a capture that carried payload, or its client's if none did;
// written when it has ended. tools/pcap/README.md defines every number. A file's header has room
// for some forty fields, so the direction's losses are in `losses` and its times in `delays`, under
// the same flow_id.
#define TEL_CAPTURED(F, N)                                                                         \
	F(uint64_t, "<u8", ts_ns, "ns", "its last packet")                                         \
	F(uint64_t, "<u8", start_ns, "ns", "its first packet, in either direction")                \
	F(uint64_t, "<u8", src_high, "", "sender's IPv6 address, upper half")                      \
	F(uint64_t, "<u8", src_low, "", "lower half; IPv4: ::ffff:a.b.c.d")                        \
	F(uint64_t, "<u8", dst_high, "", "receiver's")                                             \
	F(uint64_t, "<u8", dst_low, "", "receiver's")                                              \
	F(uint64_t, "<u8", sent_bytes, "B", "payload sent, retransmissions included")              \
	F(uint64_t, "<u8", acked_bytes, "B", "payload acknowledged")                               \
	F(uint64_t, "<u8", measured_bytes, "B", "of these, after the warm-up")                     \
	F(uint64_t, "<u8", uncaptured_bytes, "B", "acknowledged, but in no packet of the capture") \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", connection, "", "TCP connection, in the order of first packets")        \
	F(uint32_t, "<u4", packets, "packet", "all of this direction")                             \
	F(uint32_t, "<u4", sent_segs, "segment",                                                   \
		"with payload, retransmissions included, duplicates not")                          \
	F(uint32_t, "<u4", inflight_max_bytes, "B", "most bytes in flight")                        \
	F(float, "<f4", inflight_mean_bytes, "B", "bytes in flight after each segment, mean")      \
	F(uint32_t, "<u4", keep_alives, "packet", "keep-alives and window probes")                 \
	F(uint32_t, "<u4", bursts, "", "runs of segments less than 50 us apart, of two or more")   \
	F(uint32_t, "<u4", burst_max_segs, "segment", "longest of them")                           \
	F(uint32_t, "<u4", out_of_window, "packet", "with an impossible sequence or ACK number")   \
	F(uint16_t, "<u2", src_port, "", "TCP port of the sender")                                 \
	F(uint16_t, "<u2", dst_port, "", "TCP port of the receiver")                               \
	F(uint16_t, "<u2", mss, "B", "largest payload, at most what the receiver's SYN allows")    \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", event, "tel_flow_event", "what ended it")                                \
	F(uint8_t, "|u1", options, "",                                                             \
		"1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 its SYN was seen, "               \
		"32 the other")                                                                    \
	F(uint8_t, "|u1", client, "", "1: its sender opened the connection")

// Losses, retransmissions, and the receiver's reports about them, of a captured flow.
#define TEL_LOSSES(F, N)                                                                           \
	F(uint64_t, "<u8", ts_ns, "ns", "its last packet")                                         \
	F(uint64_t, "<u8", retransmit_bytes, "B", "of these, seen before")                         \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", sent_segs, "segment",                                                   \
		"with payload, retransmissions included, duplicates not")                          \
	F(uint32_t, "<u4", retransmits, "segment", "of these, retransmissions")                    \
	F(uint32_t, "<u4", spurious, "segment",                                                    \
		"retransmissions of what was acknowledged or SACKed, or that a "                   \
		"DSACK reports")                                                                   \
	F(uint32_t, "<u4", lost_segs, "segment", "inferred: retransmissions that were needed")     \
	F(uint32_t, "<u4", lost_before, "segment", "of these, the original was never captured")    \
	F(uint32_t, "<u4", out_of_order, "segment", "reordered before the capture")                \
	F(uint32_t, "<u4", duplicates, "packet", "captured twice or duplicated by the network")    \
	F(uint32_t, "<u4", cwnd_reductions, "",                                                    \
		"window reductions inferred, timeouts not among them")                             \
	F(uint32_t, "<u4", ecn_reductions, "", "of these, by CWR")                                 \
	F(uint32_t, "<u4", timeouts, "", "retransmission timeouts inferred")                       \
	F(uint32_t, "<u4", tail_probes, "", "tail loss probes inferred (RFC 8985)")                \
	F(uint32_t, "<u4", duplicate_acks, "packet", "RFC 5681 section 2")                         \
	F(uint32_t, "<u4", sack_acks, "packet", "with SACK blocks")                                \
	F(uint32_t, "<u4", dsacks, "packet", "of these, with a DSACK (RFC 2883)")                  \
	F(uint32_t, "<u4", ect, "packet", "sent with ECT(0) or ECT(1)")                            \
	F(uint32_t, "<u4", ce, "packet", "seen with CE")                                           \
	F(uint32_t, "<u4", ece, "packet", "ACKs with ECE")                                         \
	F(uint32_t, "<u4", untracked, "segment", "forgotten before their ACK: no memory")          \
	F(uint16_t, "<u2", group, "", "flow group")

// Times and windows of a captured flow.
#define TEL_DELAYS(F, N)                                                                           \
	F(uint64_t, "<u8", ts_ns, "ns", "its last packet")                                         \
	F(uint64_t, "<u8", data_ns, "ns", "from the first packet with payload to the last ACK")    \
	F(uint64_t, "<u8", zero_window_ns, "ns", "for which the receiver's window was closed")     \
	F(uint64_t, "<u8", gap_max_ns, "ns", "longest time between two packets with payload")      \
	F(uint64_t, "<u8", ack_gap_max_ns, "ns", "longest time between two ACKs that advance")     \
	F(uint64_t, "<u8", ack_gap_mean_ns, "ns", "mean of it")                                    \
	F(uint64_t, "<u8", rtt_mean_ns, "ns", "of the RTT samples by sequence number")             \
	F(uint64_t, "<u8", rtt_min_ns, "ns", "smallest")                                           \
	F(uint64_t, "<u8", rtt_max_ns, "ns", "largest")                                            \
	F(uint64_t, "<u8", srtt_ns, "ns", "smoothed (RFC 6298), the handshake's included")         \
	F(uint64_t, "<u8", tsrtt_mean_ns, "ns", "of the RTT samples by timestamps (RFC 7323)")     \
	F(uint64_t, "<u8", tsrtt_min_ns, "ns", "smallest")                                         \
	F(uint64_t, "<u8", tsrtt_max_ns, "ns", "largest")                                          \
	F(uint64_t, "<u8", syn_rtt_ns, "ns", "from SYN to SYN-ACK, 0 if none")                     \
	F(uint64_t, "<u8", syn_ack_rtt_ns, "ns", "from SYN-ACK to its ACK, 0 if none")             \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", rtt_samples, "", "RTT samples by sequence number")                      \
	F(uint32_t, "<u4", rtt_sack_samples, "", "of these, by SACK")                              \
	F(uint32_t, "<u4", tsrtt_samples, "", "RTT samples by timestamps (RFC 7323)")              \
	F(uint32_t, "<u4", syns, "packet", "SYNs of the client, and SYN-ACKs")                     \
	F(uint32_t, "<u4", acks, "packet", "ACKs that advance")                                    \
	F(uint32_t, "<u4", stretch_acks, "packet", "ACKs of more than two full segments")          \
	F(uint32_t, "<u4", zero_windows, "", "times that the receiver closed its window")          \
	N(uint32_t, "<u4", window_limited, "segment", "after which no other fits")                 \
	N(uint32_t, "<u4", window_min_bytes, "B", "smallest window advertised")                    \
	N(uint32_t, "<u4", window_max_bytes, "B", "largest")                                       \
	F(uint16_t, "<u2", group, "", "flow group")

// Every TCP packet of a capture, or of a run's flows at their sender (telemetry.segments); level 3;
// level 2: of a subset of flows.
#define TEL_SEGMENTS(F, N)                                                                         \
	F(uint64_t, "<u8", ts_ns, "ns", "capture time")                                            \
	F(uint64_t, "<u8", rtt_ns, "ns", "capture: sample that this ACK gives, 0 if none")         \
	F(uint32_t, "<u4", flow_id, "", "flow; 2^32-1: the connection had carried no payload")     \
	F(uint32_t, "<u4", seq, "", "sequence number, from the connection's first")                \
	F(uint32_t, "<u4", ack, "", "acknowledgement number, likewise")                            \
	N(uint32_t, "<u4", window_bytes, "B", "window, scaled")                                    \
	N(uint32_t, "<u4", sack_start, "", "first SACK block, as ack")                             \
	N(uint32_t, "<u4", sack_end, "", "behind it")                                              \
	F(uint32_t, "<u4", payload_bytes, "B", "payload")                                          \
	F(uint32_t, "<u4", inflight_bytes, "B", "data: bytes in flight with this segment")         \
	F(uint16_t, "<u2", kind, "",                                                               \
		"1 retransmission, 2 spurious, 4 out of order, 8 duplicate, 16 after a gap, "      \
		"32 keep-alive, 64 duplicate ACK, 128 zero window, 256 SACK, 512 DSACK")           \
	F(uint8_t, "|u1", flags, "", "of the TCP header")                                          \
	F(uint8_t, "|u1", ecn, "ecn", "ECN bits")                                                  \
	F(uint8_t, "|u1", forward, "", "1: of the flow's sender, 0: of its receiver")

// Kinds of a packet, bits of `kind` in `segments` records.
enum {
	KIND_RETRANSMIT = 1,
	KIND_SPURIOUS = 2,
	KIND_OUT_OF_ORDER = 4,
	KIND_DUPLICATE = 8,
	KIND_GAP = 16,
	KIND_KEEP_ALIVE = 32,
	KIND_DUPLICATE_ACK = 64,
	KIND_ZERO_WINDOW = 128,
	KIND_SACK = 256,
	KIND_DSACK = 512,
};

// A transfer of a source with a schedule: it ends, or is unfinished at the end of the run.
#define TEL_TRANSFERS(F, N)                                                                        \
	F(uint64_t, "<u8", ts_ns, "ns", "when all of it was acknowledged, or the run ended")       \
	F(uint64_t, "<u8", start_ns, "ns", "when it begins by its schedule")                       \
	F(uint64_t, "<u8", gap_ns, "ns",                                                           \
		"drawn: time from the arrival before, or length of the pause before it")           \
	N(uint64_t, "<u8", size_bytes, "B", "payload; of a transfer without an end: not known")    \
	F(uint64_t, "<u8", ideal_ns, "ns",                                                         \
		"completion time on an empty path: round trips and frames; 0: not known")          \
	F(uint32_t, "<u4", flow_id, "", "flow; 2^32-1: it waits for a free one")                   \
	F(uint32_t, "<u4", number, "", "place in the schedule of its group or flow, from 0")       \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", event, "tel_flow_event", "what happened")

// A direction of a 5-tuple of which guests send packets that are of no flow of their group, in an
// interval in which there are some: what is counted where they enter and leave paths.
#define TEL_IP_FLOWS(F, N)                                                                         \
	F(uint64_t, "<u8", ts_ns, "ns", "end of the interval")                                     \
	F(uint64_t, "<u8", sent_bytes, "B", "payload, behind the IP header and that of UDP")       \
	F(uint64_t, "<u8", received_bytes, "B", "payload that left the last path")                 \
	N(uint64_t, "<u8", delay_mean_ns, "ns", "one way, of the packets that left it")            \
	N(uint64_t, "<u8", delay_min_ns, "ns", "shortest")                                         \
	N(uint64_t, "<u8", delay_max_ns, "ns", "longest")                                          \
	F(uint32_t, "<u4", flow_id, "", "hash of the 5-tuple, the same in both directions")        \
	F(uint32_t, "<u4", sent_pkts, "packet", "that entered the first path")                     \
	F(uint32_t, "<u4", received_pkts, "packet", "that left the last path")                     \
	F(uint32_t, "<u4", ce_pkts, "packet", "of these, with CE")                                 \
	F(uint32_t, "<u4", drops, "packet", "dropped in the paths")                                \
	F(uint16_t, "<u2", src_port, "", "sender's; 0: it has none")                               \
	F(uint16_t, "<u2", dst_port, "", "receiver's; 0: it has none")                             \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", protocol, "", "number of the IP header")                                 \
	F(uint8_t, "|u1", forward, "", "1: of the group's stack, 0: of its peer")

// S(stream, STREAM)
#define TEL_STREAMS(S)                                                                             \
	S(packets, PACKETS)                                                                        \
	S(cc, CC)                                                                                  \
	S(flows, FLOWS)                                                                            \
	S(interval, INTERVAL)                                                                      \
	S(links, LINKS)                                                                            \
	S(events, EVENTS)                                                                          \
	S(arrivals, ARRIVALS)                                                                      \
	S(captured, CAPTURED)                                                                      \
	S(losses, LOSSES)                                                                          \
	S(delays, DELAYS)                                                                          \
	S(segments, SEGMENTS)                                                                      \
	S(transfers, TRANSFERS)                                                                    \
	S(ip_flows, IP_FLOWS)
