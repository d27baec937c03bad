// SPDX-License-Identifier: BSD-3-Clause
// The fields of weir-sim's summary (common/base/field.h).
#pragma once
#include "sender/host/fields.h"

#define MEASURED_FIELDS(V)                                                                         \
	V(NUMBER, wall_s, "s", cost->measured_wall_s, "time that this part took")                  \
	V(NUMBER, cpu_s, "s", cost->measured_cpu_s, "processor time of this part, with guests",    \
		.null = "a browser has no clock of it")                                            \
	V(NUMBER, virtual_s, "s", (double)(s->now_ns - s->run->warmup_ns) / 1e9,                   \
		"virtual_s - warmup_s")                                                            \
	V(COUNT, data_segs, "segment", cost->measured_segs,                                        \
		"acceptable segments with payload that arrived at receivers")

#define STOP_FIELDS(V)                                                                             \
	V(TEXT, metric, "", stop->names, "what had to settle")                                     \
	V(NUMBER, change, "", stop->change,                                                        \
		"of the config: the metric has settled if it moves by less, relative to itself",   \
		.source = "config.yaml")                                                           \
	V(NUMBER, over_s, "s", (double)stop->over_ns / 1e9, "of the config: for how long",         \
		.source = "config.yaml")                                                           \
	V(NUMBER, moved, "", stop->moved,                                                          \
		"by how much the metric moved in that time, relative to what it was",              \
		.over = OVER_END, .null = "it could not be measured, or the rule has an interval") \
	V(FLAG, settled, "", stop->settled, "")                                                    \
	V(NUMBER, at_s, "s", (double)s->now_ns / 1e9, "when the run ended")                        \
	V(PART, interval, "StopInterval", write_interval(stop, j), "", .absent = "")

#define STOP_INTERVAL_FIELDS(V)                                                                    \
	V(NUMBER, confidence, "", stop->confidence, "of the config", .source = "config.yaml")      \
	V(NUMBER, half_width, "", stop->half_width,                                                \
		"of the metric's confidence interval by batch means, relative to the metric",      \
		.over = OVER_END, .null = "there are too few batches")

#define HOSTS_FIELDS(V)                                                                            \
	V(COUNT, sender_tx, "packet", s->sender.count.tx_segs, "packets that the senders sent")    \
	V(COUNT, sender_rx, "packet", s->sender.count.rx_segs,                                     \
		"packets that they received, with right checksums")                                \
	V(COUNT, receiver_tx, "packet", s->receiver.count.tx_segs,                                 \
		"packets that the receivers sent")                                                 \
	V(COUNT, receiver_rx, "packet", s->receiver.count.rx_segs,                                 \
		"packets that they received, with right checksums")                                \
	V(COUNT, receiver_checksum_errors, "packet", s->side[FLOWS_REVERSE].checksum_errors,       \
		"packets that arrived at receivers with a wrong checksum")                         \
	V(COUNT, sender_checksum_errors, "packet", s->side[FLOWS_FORWARD].checksum_errors,         \
		"packets that arrived at senders with a wrong checksum")

#define CARDS_FIELDS(V)                                                                            \
	V(COUNT, hosts, "", kind->count, "of this side and kind", .source = "config.yaml")         \
	V(COUNT, packets, "packet", f.count.pkts, "packets that their cards took")                 \
	V(COUNT, interrupts, "", f.count.interrupts, "interrupts of all their cards")              \
	V(NUMBER, packets_per_interrupt, "packet",                                                 \
		(double)f.count.pkts / (double)f.count.interrupts, "packets / interrupts",         \
		.null = "there was none")                                                          \
	V(NUMBER, segs_per_handover, "segment", joined,                                            \
		"data segments that GRO handed to TCP at a time, mean",                            \
		.null = "no GRO, or no data")                                                      \
	V(COUNT, drops, "packet", f.count.drops, "packets that found a card's ring full")          \
	V(SHARE, busy, "", f.busy,                                                                 \
		"part of the time for which a processor worked on packets, mean of the hosts",     \
		.null = "the hosts have no cpu")                                                   \
	V(SHARE, busy_max, "", f.busy_max, "the same of the busiest host",                         \
		.null = "the hosts have no cpu")

#define SIMULATION_LEDGER_FIELDS(V)                                                                \
	V(PART, hosts, "Hosts", write_hosts(s, j), "")                                             \
	V(COUNT, inside, "packet", s->pools.inside, "packets in paths and on their way to hosts",  \
		.over = OVER_END)

#define MEMORY_FIELDS(V)                                                                           \
	V(COUNT, packets_max, "packet", s->pools.inside_max,                                       \
		"most packets inside, as counted at the ends of windows")                          \
	V(COUNT, segments_max, "segment", s->sender.arena.used_max,                                \
		"most places of scoreboards used")

#define RUN_FIELDS(V)                                                                              \
	V(SEED, seed, "", run->seed, "of the config or the command line", .source = "config.yaml") \
	V(TEXT, digest, "", digest_text(tel, digest), "")                                          \
	V(FLAG, seed_used, "", random, "")                                                         \
	V(NUMBER, virtual_s, "s", (double)now_ns / 1e9, "length of the run in its own time")       \
	V(NUMBER, warmup_s, "s", (double)run->warmup_ns / 1e9, "length of the warm-up",            \
		.source = "config.yaml")                                                           \
	V(NUMBER, wall_s, "s", wall_s, "time that it took")

#define SIMULATION_HEAD(V)                                                                         \
	RUN_FIELDS(V)                                                                              \
	V(COUNT, threads, "thread", s->threads, "that it had")                                     \
	V(NUMBER, two_threads_s, "s", pipeline_two_s(s->pipeline),                                 \
		"of wall_s; in the rest one was faster")                                           \
	V(PART, measured, "Measured", write_measured(s, j), "", .null = "")                        \
	V(PART, verdict, "", facts_json(verdict, j), "")                                           \
	V(PART, stop, "Stop", write_stop(s, j), "", .absent = "")                                  \
	V(PART, branch, "Branch", write_branch(s, j), "", .absent = "it is none")                  \
	V(PART, ledger, "SimulationLedger", write_ledger(s, j, balanced), "")                      \
	V(PART, links, "dict[str, Link]", paths_summary(&s->paths, j, now_ns), "")                 \
	V(PART, cards, "dict[str, Cards]", write_cards(s, j), "",                                  \
		.absent = "no hosts, or Linux guests, or without moderation, cpu and GRO")         \
	V(PART, why, "list[Why]", paths_why(&s->paths, j, now_ns), "")                             \
	V(PART, limits, "Limits", write_limits(s, j), "", .absent = "")

#define SIMULATION_TAIL(V)                                                                         \
	V(PART, receivers, "Receivers", write_receivers(s, j), "")                                 \
	V(PART, ip_flows, "list[IpFlow]", guests_summary(s->guests, j, seconds), "", .absent = "") \
	V(PART, guests, "Guests", (void)0, "", .absent = "")                                       \
	V(PART, telemetry, "", run_summary_telemetry(run->telemetry_level, tel, j), "")            \
	V(PART, capture, "Capture", capture_summary(s->capture, j), "", .absent = "")              \
	V(PART, memory, "Memory", write_memory(s, j), "")

#define SIMULATION_FIELDS(V) SIMULATION_HEAD(V) HOST_SUMMARY_FIELDS(V) SIMULATION_TAIL(V)

#define OFFLINE_FIELDS(V)                                                                          \
	RUN_FIELDS(V)                                                                              \
	V(PART, verdict, "", facts_json(verdict, j), "")                                           \
	V(PART, sources, "dict[str, Source]", write_sources(o, j), "")                             \
	V(PART, ledger, "PathsLedger", paths_ledger_only(&o->paths, j, balanced), "")              \
	V(PART, links, "dict[str, Link]", paths_summary(&o->paths, j, now_ns), "")                 \
	V(PART, why, "list[Why]", paths_why(&o->paths, j, now_ns), "")                             \
	V(PART, telemetry, "", run_summary_telemetry(run->telemetry_level, tel, j), "")            \
	V(PART, capture, "Capture", capture_summary(o->capture, j), "", .absent = "")

#define REPLAY_FIELDS(V)                                                                           \
	V(TEXT, replay, "", r->name, "")                                                           \
	V(SEED, seed, "", r->run->seed, "")                                                        \
	V(NUMBER, virtual_s, "s", (double)r->now_ns / 1e9, "")                                     \
	V(NUMBER, wall_s, "s", r->wall_s, "")                                                      \
	V(PART, verdict, "", facts_json(verdict, j), "")                                           \
	V(COUNT, arrivals, "frame", r->arrivals, "")                                               \
	V(COUNT, changes, "", r->changes, "")                                                      \
	V(PART, stages, "list[Stages]", write_stages(r, j), "")                                    \
	V(PART, drop_reasons, "list[str]", write_drop_reasons(j), "")                              \
	V(PART, ledger, "PathsLedger", paths_ledger_only(&r->paths, j, balanced), "")              \
	V(PART, links, "dict[str, Link]", paths_summary(&r->paths, j, r->now_ns), "")              \
	V(PART, telemetry, "", run_summary_telemetry(r->run->telemetry_level, tel, j), "")

// The stages of a path, in order.
#define STAGES_FIELDS(V)                                                                           \
	V(TEXT, path, "", p->name, "")                                                             \
	V(PART, stages, "list[str]", write_names(p, j), "")
