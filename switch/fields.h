// SPDX-License-Identifier: BSD-3-Clause
// The fields of weir-switch's summary (common/base/field.h).
#pragma once
#include "common/base/field.h"

#define SWITCH_LEDGER_FIELDS(V)                                                                    \
	V(COUNT, received, "frame", sum.rx,                                                        \
		"received + replayed + copied + duplicated = transmitted + "                       \
		"inside + drops by reason")                                                        \
	V(COUNT, replayed, "frame", app->lcore->sources > 0 ? sum.replayed : FIELD_UNKNOWN,        \
		"frames of captures that entered paths", .absent = "no path has a capture")        \
	V(COUNT, copied, "frame", sum.copies,                                                      \
		"frames copied because several ports are to have them")                            \
	V(COUNT, duplicated, "frame", sum.duplicated, "frames duplicated by stages")               \
	V(COUNT, transmitted, "frame", sum.tx, "frames sent by ports")                             \
	V(COUNT, inside, "frame", switch_inside(app->lcore).pkts, "frames in paths and rings",     \
		.over = OVER_END)                                                                  \
	V(PART, drops, "dict[str, Count]", write_drops(sum.drop, j), "")

#define SWITCH_FIELDS(V)                                                                           \
	V(PART, faults, "", write_faults(app, j), "")                                              \
	V(PART, sources, "dict[str, LiveSource]", write_sources(app, j), "", .absent = "")         \
	V(PART, ledger, "SwitchLedger", write_ledger(app, j, balanced), "")                        \
	V(PART, links, "dict[str, Link]", paths_summary(&app->paths, j, live_end_ns(live)), "")    \
	V(PART, why, "list[Why]", paths_why(&app->paths, j, live_end_ns(live)), "")                \
	V(PART, capture, "Capture", capture_summary(app->capture, j), "", .absent = "")            \
	V(PART, emulation, "", write_emulation(app, j), "")                                        \
	V(PART, host, "Host", watch_sampler_json(app->live.sampler, "", j), "")                    \
	V(PART, clock, "Clock", (void)0, "")                                                       \
	V(PART, ports, "list[SwitchPort]", write_ports(app, j), "")                                \
	V(PART, lcore, "Lcore", write_lcores(app, j), "")                                          \
	V(PART, lcores, "list[SwitchLcore]", (void)0, "", .absent = "")                            \
	V(PART, pool, "Pool", write_pool(app, j), "")                                              \
	V(TEXT, eal, "", app->live.eal.args, "")

#define SWITCH_PORT_FIELDS(V)                                                                      \
	V(TEXT, path, "", p->path != NULL ? p->path->name : "", "")                                \
	V(FLAG, rx_timestamps, "", port->stamp.rx && port->stamp.clock.known, "")                  \
	V(FLAG, tx_timestamps, "", stamp_holds(&port->stamp), "")                                  \
	V(FLAG, up, "", port->was_up, "")                                                          \
	V(COUNT, rx_pkts, "frame", rx.pkts, "frames received")                                     \
	V(COUNT, rx_bytes, "B", rx.bytes, "their bytes")                                           \
	V(COUNT, tx_pkts, "frame", p->egress.tx.pkts - unsent, "frames sent")                      \
	V(COUNT, tx_bytes, "B", unsent == 0 ? p->egress.tx.bytes : FIELD_UNKNOWN, "their bytes",   \
		.null = "the driver does not say of how many bytes the unsent ones are")           \
	V(COUNT, tx_dropped, "frame", dropped,                                                     \
		"frames dropped because the port did not take them for too long")                  \
	V(COUNT, tx_too_long, "frame", p->egress.too_long.pkts,                                    \
		"frames dropped because they are longer than the MTU of the port's interface")     \
	V(COUNT, tx_unsent, "frame", unsent, "frames that the driver took and did not send")

#define SWITCH_LCORE_FIELDS(V)                                                                     \
	V(COUNT, received, "frame", received(s),                                                   \
		"frames received from ports, those given to other lcores too")                     \
	V(PART, host, "Host", watch_host_json(&app->live.sampler[i], "", j), "")                   \
	V(PART, ports, "list[str]", write_owned(app, i, j), "")                                    \
	V(PART, handover, "list[Handover]", write_handover(app, s, j), "")

#define HANDOVER_FIELDS(V)                                                                         \
	V(COUNT, to_cpu, "", app->config.process.lcore[i], "")                                     \
	V(COUNT, given, "frame", s->ring[i].nb_handed, "frames given to that lcore")               \
	V(COUNT, dropped, "frame", atomic_load(&s->ring[i].dropped),                               \
		"frames for which its ring had no room")

#define POOL_FIELDS(V)                                                                             \
	V(COUNT, buffers, "", app->buffers, "buffers for frames")                                  \
	V(COUNT, bytes, "B", app->live.eal.memory_bytes, "memory of DPDK: these and its own")      \
	V(FLAG, hugepages, "", app->live.eal.hugepages, "")                                        \
	V(PART, quotas, "dict[str, Count]", write_quotas(app, j),                                  \
		"packets that a path, or a port without one, may hold")
