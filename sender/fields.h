// SPDX-License-Identifier: BSD-3-Clause
// The fields of weir-sender's summary (common/base/field.h).
#pragma once
#include "common/base/field.h"

// A port's counters. COUNT_ALWAYS: in the summary by this name; COUNT_INNER: not, or by another.
#define SENDER_COUNTERS(V)                                                                         \
	V(uint64_t, rx_frames, COUNT_ALWAYS, "frame", "frames received")                           \
	V(uint64_t, rx_bytes, COUNT_ALWAYS, "B", "their bytes")                                    \
	V(uint64_t, rx_tcp, COUNT_ALWAYS, "frame", "of these, delivered to the host")              \
	V(uint64_t, rx_arp, COUNT_ALWAYS, "frame", "of these, ARP")                                \
	V(uint64_t, rx_echo, COUNT_ALWAYS, "frame", "of these, pings")                             \
	V(uint64_t, rx_too_big, COUNT_ALWAYS, "frame",                                             \
		"ICMP 'fragmentation needed': a router dropped our frame")                         \
	V(uint64_t, rx_other, COUNT_ALWAYS, "frame",                                               \
		"of an unknown protocol, or for another destination")                              \
	V(uint64_t, rx_outside, COUNT_ALWAYS, "frame",                                             \
		"from addresses outside the test ranges: not answered")                            \
	V(uint64_t, rx_reset, COUNT_ALWAYS, "frame", "TCP segments of no connection")              \
	V(uint64_t, rx_malformed, COUNT_ALWAYS, "frame", "frames that cannot be read")             \
	V(uint64_t, tx_own, COUNT_INNER, "frame", "ARP, ping and resets")                          \
	V(uint64_t, tx_wanted, COUNT_ALWAYS, "frame", "ARP, ping, resets and the host's segments") \
	V(uint64_t, no_mbuf, COUNT_ALWAYS, "frame", "frames not sent for lack of a buffer")        \
	/* Filled in by sender_count_port, from the queue and the rings. */                        \
	V(uint64_t, tx_frames, COUNT_INNER, "frame", "taken by the port")                          \
	V(uint64_t, tx_bytes, COUNT_INNER, "B", "their bytes")                                     \
	V(uint64_t, tx_dropped, COUNT_ALWAYS, "frame",                                             \
		"refused by the port for too long, or no room in the queue")                       \
	V(uint64_t, tx_too_long, COUNT_ALWAYS, "frame",                                            \
		"dropped: longer than the MTU of the port's interface")                            \
	V(uint64_t, tx_waiting, COUNT_INNER, "frame", "in the queue and in rings to this lcore")   \
	/* Between lcores; 0 with one lcore. */                                                    \
	V(uint64_t, rx_given, COUNT_INNER, "frame", "given to the flow's lcore")                   \
	V(uint64_t, rx_got, COUNT_INNER, "frame", "got from other lcores")                         \
	V(uint64_t, rx_no_room, COUNT_INNER, "frame",                                              \
		"dropped: the ring to the other lcore was full")                                   \
	V(uint64_t, rx_not_taken, COUNT_INNER, "frame",                                            \
		"dropped by other lcores: the ring to this one was full")                          \
	V(uint64_t, rx_waiting, COUNT_INNER, "frame", "in rings to this lcore")                    \
	V(uint64_t, tx_given, COUNT_INNER, "frame", "given to the queue's owner")                  \
	V(uint64_t, tx_got, COUNT_INNER, "frame", "got as the queue's owner")

#define SENDER_HEAD(V)                                                                             \
	V(PART, limits, "Limits", write_limits(hosts, live->lcores, j), "", .absent = "")          \
	V(PART, faults, "", write_faults(app, j), "")                                              \
	V(PART, ledger, "Ledger", write_ledger(j, balanced), "")
#define SENDER_TAIL(V)                                                                             \
	V(PART, receivers, "Receivers", write_receivers(app, j), "", .absent = "")                 \
	V(PART, sender_ports, "list[SenderPort]", write_ports(app, j), "")                         \
	V(PART, emulation, "", write_emulation(app, hosts, j), "")                                 \
	V(PART, sender_host, "Host", watch_sampler_json(&app->live.sampler[0], "sender_", j), "")  \
	V(PART, sender_clock, "Clock", (void)0, "")                                                \
	V(PART, sender_lcore, "SenderLcore", write_lcores(app, j), "")                             \
	V(PART, sender_lcores, "list[SenderLcores]", (void)0, "", .absent = "")                    \
	V(PART, capture, "Capture", write_capture(app, j), "", .absent = "")
#define SENDER_FIELDS(V) SENDER_HEAD(V) HOST_SUMMARY_FIELDS(V##_OPTIONAL) SENDER_TAIL(V)

#define SENDER_PORT_FIELDS(V)                                                                      \
	V(TEXT, role, "", live_role_names[config->role], "")                                       \
	V(TEXT, ip, "", ip, "")                                                                    \
	SENDER_COUNTERS(V##_COUNTER)                                                               \
	V(COUNT, tx_frames, "frame", sum->tx_frames - unsent, "frames sent")                       \
	V(COUNT, tx_bytes, "B", unsent == 0 ? sum->tx_bytes : FIELD_UNKNOWN, "their bytes",        \
		.null = "the driver does not say of how many bytes the unsent ones are")           \
	V(COUNT, tx_unsent, "frame", unsent, "frames that the driver took and did not send")       \
	V(COUNT, waiting, "frame", sum->tx_waiting, "frames that wait for the port",               \
		.over = OVER_END)                                                                  \
	V(COUNT, handed_over, "frame", several ? sum->rx_given + sum->rx_no_room : FIELD_UNKNOWN,  \
		"frames received by another lcore than the flow's", .absent = "one lcore")         \
	V(COUNT, handover_dropped, "frame", several ? sum->rx_no_room : FIELD_UNKNOWN,             \
		"of these, dropped", .absent = "one lcore")                                        \
	V(COUNT, handover_waiting, "frame", several ? sum->rx_waiting : FIELD_UNKNOWN,             \
		"of these, still waiting", .absent = "one lcore")                                  \
	V(COUNT, sent_through_another, "frame", several ? sum->tx_given : FIELD_UNKNOWN,           \
		"frames given to the lcore that owns the port's queue", .absent = "one lcore")     \
	V(COUNT, connections_refused, "", refused, "connections for which there was no room")

#define PACING_RATE_FIELDS(V)                                                                      \
	V(COUNT, flows, "flow", c.flows, "paced flows that sent for a second or more")             \
	V(NUMBER, p99, "", some ? c.p99 : (double)NAN,                                             \
		"relative error of their rates that 99 % of them do not exceed",                   \
		.null = "no such flow")                                                            \
	V(NUMBER, worst, "", some ? c.worst : (double)NAN, "the largest", .null = "no such flow")  \
	V(NUMBER, undisturbed_p99, "", some ? c.p99_present : (double)NAN,                         \
		"likewise, without the pacing slots that were missed and not made up for",         \
		.null = "no such flow")                                                            \
	V(NUMBER, undisturbed_worst, "", some ? c.worst_present : (double)NAN, "the largest",      \
		.null = "no such flow")

#define SENDER_LCORE_FIELDS(V)                                                                     \
	V(COUNT, flows, "flow", app->lcore[k].sender.flows, "")                                    \
	V(FLAG, hugepages, "", app->live.eal.hugepages, "")                                        \
	V(COUNT, pool_bytes, "B", app->live.eal.memory_bytes,                                      \
		"memory of DPDK: buffers and its own")                                             \
	V(TEXT, eal, "", app->live.eal.args, "")

#define SENDER_LCORES_FIELDS(V)                                                                    \
	V(COUNT, flows, "flow", app->lcore[k].sender.flows, "")                                    \
	V(COUNT, stalls, "", w->count.stalls, "")                                                  \
	V(COUNT, stalled_ns, "ns", w->count.stalled_ns, "")                                        \
	V(COUNT, stall_max_ns, "ns", w->stall.total > 0 ? w->stall.max : FIELD_UNKNOWN, "",        \
		.null = "there was none")
