// SPDX-License-Identifier: BSD-3-Clause
// Every telemetry record, once: these lists make the C structs, their static checks and the JSON
// schema in each file's header. Fields are written largest first so that there is no padding. A new field
// is a line here, and one where records are filled; the size of the record follows. Files hold their own
// schema: those from before it are still read, without the field.
//
//	F(ctype, dtype, name, unit, meaning)
//
// Numbers that stand for something have the name of their list below as unit, and the schema has the names.
// They make the enums too. A number keeps its meaning for good: files hold it.
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
	V(TEL_DEPART, 5, "depart", "live: it left by a port")

#define TEL_ARRIVAL_VALUES(V)                                                                      \
	V(TEL_ARRIVED, 1, "packet", "a packet entered the path")                                   \
	V(TEL_CHANGED, 2, "change", "a parameter was changed")                                     \
	V(TEL_END, 3, "end", "the path was served until then")

#define TEL_FLOW_EVENT_VALUES(V)                                                                   \
	V(TEL_OPEN, 1, "open", "the handshake is done")                                            \
	V(TEL_CLOSE, 2, "close", "all was acknowledged")                                           \
	V(TEL_RESET, 3, "reset", "by either end")                                                  \
	V(TEL_GAVE_UP, 4, "gave_up", "nobody answered")                                            \
	V(TEL_STILL_OPEN, 5, "still_open", "at the end of the run")

#define TEL_CA_STATE_VALUES(V)                                                                     \
	V(TEL_CA_OPEN, 0, "open", "nothing is taken for lost")                                     \
	V(TEL_CA_RECOVERY, 1, "recovery", "after a loss or an ECN echo")                           \
	V(TEL_CA_LOSS, 2, "loss", "after a timeout")

#define TEL_EVENT_VALUES(V)                                                                           \
	V(TEL_EV_REDUCTION, 1, "reduction",                                                           \
		"of a window; before, value: cwnd in segments; detail: 1 if by ECN")                  \
	V(TEL_EV_TIMEOUT, 2, "timeout", "before, value: cwnd in segments")                            \
	V(TEL_EV_RECOVERED, 3, "recovered", "value: cwnd in segments")                                \
	V(TEL_EV_SLOW_START_END, 4, "slow_start_end", "value: cwnd in segments")                      \
	V(TEL_EV_CC_MODE, 5, "cc_mode", "before, value: the algorithm's mode")                        \
	V(TEL_EV_PARAM, 6, "parameter",                                                               \
		"group: link; before, value: in the parameter's unit; detail: schedule entry")        \
	V(TEL_EV_SPURIOUS, 7, "spurious", "a retransmission that was not needed (DSACK)")             \
	V(TEL_EV_PORT, 8, "port", "live: group: port; value: 1 up, 0 down")                           \
	V(TEL_EV_OBSERVED, 9, "observed",                                                             \
		"each interval, by who `detail` numbers; group: link, 255: no link; value to value4") \
	V(TEL_EV_UNDO, 10, "undo",                                                                    \
		"a reduction is taken back; before, value: cwnd in segments; detail: enum tel_undo")

// E(enum, list of its values)
#define TEL_ENUMS(E)                                                                               \
	E(ecn, ECN_VALUES)                                                                         \
	E(drop_reason, DROP_REASON_VALUES)                                                         \
	E(tel_packet_event, TEL_PACKET_EVENT_VALUES)                                               \
	E(tel_arrival, TEL_ARRIVAL_VALUES)                                                         \
	E(tel_flow_event, TEL_FLOW_EVENT_VALUES)                                                   \
	E(tel_ca_state, TEL_CA_STATE_VALUES)                                                       \
	E(tel_event, TEL_EVENT_VALUES)

// One record per packet event at a link, and per packet that another stage drops (level 3; level 2: a
// subset of flows).
#define TEL_PACKETS(F)                                                                             \
	F(uint64_t, "<u8", ts_ns, "ns", "when it happened, in theoretical time")                   \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", pkt_id, "", "counts packets into the path")                             \
	F(uint32_t, "<u4", queue_bytes, "B", "backlog after the event")                            \
	F(uint32_t, "<u4", sojourn_ns, "ns",                                                       \
		"time in the queue; depart: how late the packet left; saturates")                  \
	F(uint16_t, "<u2", size_bytes, "B", "frame with FCS")                                      \
	F(uint8_t, "|u1", event, "tel_packet_event", "what happened")                              \
	F(uint8_t, "|u1", reason, "drop_reason", "why it was dropped")                             \
	F(uint8_t, "|u1", link, "", "index of the link in the summary; 255: not a link")           \
	F(uint8_t, "|u1", ecn, "ecn", "ECN bits after the event")                                  \
	F(uint8_t, "|u1", path, "", "index of the path in the config")                             \
	F(uint8_t, "|u1", stage, "", "index of the stage in its path; 255: behind the last")

// The congestion control's view after an ACK (level 3; level 2: a subset of flows).
#define TEL_CC(F)                                                                                  \
	F(uint64_t, "<u8", ts_ns, "ns", "time")                                                    \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", rtt_ns, "ns", "sample of this ACK, 0 if none")                          \
	F(uint32_t, "<u4", srtt_ns, "ns", "smoothed RTT (RFC 6298)")                               \
	F(uint32_t, "<u4", rtt_min_ns, "ns", "smallest RTT of the connection")                     \
	F(float, "<f4", cwnd_segs, "segment", "congestion window")                                 \
	F(uint32_t, "<u4", inflight_segs, "segment", "pipe after this ACK")                        \
	F(float, "<f4", pacing_bps, "bit/s", "pacing rate of the payload, 0 if not paced")         \
	F(float, "<f4", delivery_bps, "bit/s", "delivery rate sample, 0 if none")                  \
	F(uint32_t, "<u4", lost_segs, "segment",                                                   \
		"times one was declared lost since the start, those taken back too")               \
	F(uint8_t, "|u1", state, "tel_ca_state", "what it recovers from")                          \
	F(uint8_t, "|u1", app_limited, "", "1: the delivery rate sample is app-limited")           \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(float, "<f4", obs0, "", "the algorithm's own, named in observers")                       \
	F(float, "<f4", obs1, "", "the algorithm's own")                                           \
	F(float, "<f4", obs2, "", "the algorithm's own")                                           \
	F(float, "<f4", obs3, "", "the algorithm's own")

// A flow opens, closes, fails or is still open at the end.
#define TEL_FLOWS(F)                                                                               \
	F(uint64_t, "<u8", ts_ns, "ns", "time")                                                    \
	F(uint64_t, "<u8", start_ns, "ns", "when its first SYN was sent")                          \
	F(uint64_t, "<u8", acked_bytes, "B", "payload acknowledged")                               \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", src_ip, "", "IPv4 address of the sender, host order")                   \
	F(uint32_t, "<u4", dst_ip, "", "IPv4 address of the receiver, host order")                 \
	F(uint32_t, "<u4", sent_segs, "segment",                                                   \
		"data segments sent, retransmissions included; saturates")                         \
	F(uint32_t, "<u4", retransmits, "segment", "of these, retransmissions; saturates")         \
	F(uint32_t, "<u4", halvings, "", "window reductions")                                      \
	F(uint32_t, "<u4", timeouts, "", "retransmission timeouts")                                \
	F(uint32_t, "<u4", srtt_ns, "ns", "smoothed RTT at that time")                             \
	F(uint16_t, "<u2", src_port, "", "TCP port of the sender")                                 \
	F(uint16_t, "<u2", dst_port, "", "TCP port of the receiver")                               \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint8_t, "|u1", event, "tel_flow_event", "what happened")

// What a flow did in one interval (level 1).
#define TEL_INTERVAL(F)                                                                            \
	F(uint64_t, "<u8", ts_ns, "ns", "end of the interval")                                     \
	F(uint64_t, "<u8", acked_bytes, "B", "payload acknowledged in the interval")               \
	F(uint64_t, "<u8", delivered_bytes, "B",                                                   \
		"payload newly acknowledged in the interval, in sequence or by SACK")              \
	F(uint32_t, "<u4", flow_id, "", "flow")                                                    \
	F(uint32_t, "<u4", sent_segs, "segment", "data segments sent, retransmissions included")   \
	F(uint32_t, "<u4", retransmits, "segment", "of these, retransmissions")                    \
	F(uint32_t, "<u4", lost_segs, "segment",                                                   \
		"times one was declared lost, those taken back too")                               \
	F(uint32_t, "<u4", rtt_samples, "", "RTT samples")                                         \
	F(uint32_t, "<u4", rtt_mean_ns, "ns", "mean of them")                                      \
	F(uint32_t, "<u4", rtt_max_ns, "ns", "largest of them")                                    \
	F(float, "<f4", cwnd_segs, "segment", "congestion window at the end")                      \
	F(float, "<f4", pacing_bps, "bit/s", "pacing rate at the end")                             \
	F(uint32_t, "<u4", inflight_segs, "segment", "pipe at the end")                            \
	F(uint16_t, "<u2", group, "", "flow group")                                                \
	F(uint16_t, "<u2", halvings, "", "window reductions")                                      \
	F(uint8_t, "|u1", state, "tel_ca_state", "what it recovers from")                          \
	F(uint8_t, "|u1", cc_state, "", "the algorithm's own")                                     \
	F(uint16_t, "<u2", drops, "packet",                                                        \
		"data packets the forward path dropped; beyond 65535 in the next record; 0 live")

// What a link did in one interval (level 1).
#define TEL_LINKS(F)                                                                               \
	F(uint64_t, "<u8", ts_ns, "ns", "end of the interval")                                     \
	F(uint64_t, "<u8", out_bytes, "B", "frames sent, FCS included")                            \
	F(uint64_t, "<u8", rate_bps, "bit/s", "configured rate at the end")                        \
	F(uint32_t, "<u4", link, "", "index of the link in the summary")                           \
	F(uint32_t, "<u4", out_pkts, "packet", "packets sent")                                     \
	F(uint32_t, "<u4", drops, "packet", "dropped by the queue")                                \
	F(uint32_t, "<u4", marks, "packet", "CE set by the queue")                                 \
	F(uint32_t, "<u4", queue_pkts, "packet", "backlog at the end")                             \
	F(uint32_t, "<u4", queue_max_pkts, "packet", "largest backlog")                            \
	F(float, "<f4", queue_mean_pkts, "packet", "backlog averaged over time")                   \
	F(float, "<f4", queue_mean_bytes, "B", "backlog averaged over time")                       \
	F(uint32_t, "<u4", sojourn_mean_ns, "ns", "mean time in the queue")                        \
	F(uint32_t, "<u4", sojourn_max_ns, "ns", "longest time in the queue")

// Rare things (level 1): window reductions, mode switches, changes of a link or the config, a queue's state.
#define TEL_EVENTS(F)                                                                              \
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

// All that decides what a path does, in the order in which it came (telemetry.arrivals): `weir replay`
// puts it through the same path again.
#define TEL_ARRIVALS(F)                                                                            \
	F(uint64_t, "<u8", ts_ns, "ns", "theoretical arrival; when it changed; the end")           \
	F(double, "<f8", value, "", "change: new value, in the parameter's unit; else 0")          \
	F(uint32_t, "<u4", flow_id, "",                                                            \
		"flow; change: xxh32 of the parameter's name; 2^32-1: none")                       \
	F(uint32_t, "<u4", pkt_id, "", "counts packets into the path; else of the next packet")    \
	F(uint16_t, "<u2", size_bytes, "B", "frame with FCS")                                      \
	F(uint16_t, "<u2", delay_class, "", "flow group")                                          \
	F(uint8_t, "|u1", event, "tel_arrival", "what came")                                       \
	F(uint8_t, "|u1", path, "", "index of the path in the config")                             \
	F(uint8_t, "|u1", ecn, "ecn", "ECN bits on arrival")                                       \
	F(uint8_t, "|u1", param, "",                                                               \
		"change: which of the path's parameters, as the recorder counts them")

// S(stream, STREAM)
#define TEL_STREAMS(S)                                                                             \
	S(packets, PACKETS)                                                                        \
	S(cc, CC)                                                                                  \
	S(flows, FLOWS)                                                                            \
	S(interval, INTERVAL)                                                                      \
	S(links, LINKS)                                                                            \
	S(events, EVENTS)                                                                          \
	S(arrivals, ARRIVALS)
