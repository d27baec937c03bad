// SPDX-License-Identifier: BSD-3-Clause
// The fields of summaries that several programs write (common/base/field.h).
#pragma once
#include "common/base/field.h"

// What every summary begins with, and has.
#define SUMMARY_HEAD(V)                                                                            \
	V(PART, schema, "Version", json_u64(j, "schema", RUN_SUMMARY_SCHEMA), "")                  \
	V(TEXT, kind, "", kind, "")                                                                \
	V(TEXT, program, "", r->options->program, "")                                              \
	V(TEXT, version, "", run_version(), "")                                                    \
	V(TEXT, title, "", r->title, "")

#define SUMMARY_FIELDS(V)                                                                          \
	SUMMARY_HEAD(V)                                                                            \
	V(NUMBER, wall_s, "s", , "time that it took")                                              \
	V(TEXT, verdict, "", , "the first of `verdicts`, or ok",                                   \
		.null = "nobody judged: what is imported")                                         \
	V(PART, verdicts, "list[Fact]", , "")                                                      \
	V(PART, telemetry, "Telemetry", , "")

#define BRANCH_FIELDS(V)                                                                           \
	V(TEXT, name, "", r->branch, "", .source = "config.yaml of its trunk")                     \
	V(TEXT, trunk, "", r->trunk_id, "run_id of the run that it left",                          \
		.source = "manifest.json of its trunk")                                            \
	V(NUMBER, at_s, "s", (double)r->branch_ns / 1e9, "when")                                   \
	V(PART, changes, "dict[str, str]", write_changes(r, j), "")

#define RECORDS_FIELDS(V)                                                                          \
	V(COUNT, records, "record", tel[i].head - tel_lost(&tel[i]), "of a stream",                \
		.source = "the ring's length")                                                     \
	V(COUNT, lost, "record", tel_lost(&tel[i]), "that had no room",                            \
		.source = "the ring's gap records")

#define TELEMETRY_FIELDS(V)                                                                        \
	V(COUNT, level, "", level, "of the config", .source = "config.yaml")                       \
	V(PART, streams, "dict[str, Records]", write_streams(tel, j), "")

// A fact's members (common/base/fact.h) are those that it has.
#define FACT_FIELDS(V)                                                                             \
	V(TEXT, cause, "", , "")                                                                   \
	V(TEXT, sentence, "", , "")                                                                \
	V(TEXT, program, "", , "of two that are shown as one", .absent = "")                       \
	V(TEXT, host, "", , "of several", .absent = "")                                            \
	V(TEXT, port, "", , "", .absent = "")                                                      \
	V(TEXT, path, "", , "", .absent = "")                                                      \
	V(COUNT, cpu, "", , "", .absent = "")                                                      \
	V(NUMBER, count, "", , "packets, frames or records", .absent = "")                         \
	V(NUMBER, of, "", , "of how many", .absent = "", .null = "")                               \
	V(SIGNED, from_s, "s", , "", .absent = "")                                                 \
	V(SIGNED, to_s, "s", , "", .absent = "")                                                   \
	V(NUMBER, bad_s, "s", , "for how long in that time", .absent = "")                         \
	V(NUMBER, down_s, "s", , "", .absent = "")                                                 \
	V(NUMBER, worst_s, "s", , "", .absent = "")                                                \
	V(SIGNED, worst_at_s, "s", , "", .absent = "")                                             \
	V(NUMBER, busy, "", , "", .absent = "")                                                    \
	V(COUNT, late_pkts, "packet", , "", .absent = "")                                          \
	V(COUNT, waiting_max, "packet", , "", .absent = "")                                        \
	V(COUNT, guest, "", , "", .absent = "")                                                    \
	V(COUNT, group, "", , "", .absent = "")                                                    \
	/* Of a guest's kernel, by /proc/net/netstat. */                                           \
	V(COUNT, tcp_memory_pressures, "", , "", .absent = "")                                     \
	V(COUNT, prune_called, "", , "", .absent = "")                                             \
	V(COUNT, rcv_pruned, "", , "", .absent = "")

#define LEDGER_FIELDS(V) V(FLAG, balanced, "", balanced, "")
