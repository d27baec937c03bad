// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/run/sections.h"

#include "common/pcap/fields.h"
#include "common/run/fields.h"
#include "common/run/live_fields.h"
#include "common/run/numbers.h"
#include "sender/fields.h"
#include "sender/host/fields.h"
#include "switch/fields.h"
#include "switch/path/fields.h"
#include "tools/pcap/fields.h"
#include "tools/sim/guest/fields.h"
#include "tools/sim/run/fields.h"

#include <assert.h>
#include <string.h>

// V(class, its base, place, over, fields, definition)
#define SECTIONS(V)                                                                                \
	V(Group, Section, "groups", MEASURED, GROUP_FIELDS,                                        \
		"A group's flows in the measured time.")                                           \
	V(Flows, Section, "flows", END, FLOWS_FIELDS, "Flows by their state at the end.")          \
	V(Transfers, Section, "transfers", MEASURED, TRANSFERS_FIELDS,                             \
		"Transfers of a schedule; the completion times are of those "                      \
		"that began when measured.")                                                       \
	V(Probe, Section, "probe", MEASURED, PROBE_FIELDS, "What probes found of the path.")       \
	V(Back, Section, "back", MEASURED, BACK_FIELDS, "What the side that was opened has sent.") \
	V(IpFlow, Section, "ip_flows", MEASURED, IP_FLOW_FIELDS,                                   \
		"A direction of a 5-tuple of guests that is no flow of the config, "               \
		"in the measured time.")                                                           \
	V(BaseRtt, Section, "base_rtt", RUN, BASE_RTT_FIELDS,                                      \
		"The base RTTs that were drawn for a group's flows.")                              \
	V(Link, Section, "links", MEASURED, LINK_FIELDS, "A link in the measured time.")           \
	V(Cards, Section, "cards", MEASURED, CARDS_FIELDS,                                         \
		"The network cards of hosts of a side, or kind, for what arrives.")                \
	V(Measured, Section, "measured", MEASURED, MEASURED_FIELDS,                                \
		"What the measured time cost.")                                                    \
	V(Packets, Section, "ledger", RUN, PACKETS_FIELDS, "A number of packets and their bytes.") \
	V(PathLedger, Section, NULL, RUN, PATH_LEDGER_FIELDS,                                      \
		"The account of a path: in + duplicated = out + inside + drops by reason.")        \
	V(PathsLedger, Section, NULL, RUN, PATHS_LEDGER_FIELDS, "The account of each path.")       \
	V(SimulationLedger, PathsLedger, "ledger", RUN, SIMULATION_LEDGER_FIELDS,                  \
		"The account of every packet of a simulation.")                                    \
	V(Hosts, Section, "ledger.hosts", RUN, HOSTS_FIELDS,                                       \
		"Packets that each side sent and received, and those with a wrong checksum.")      \
	V(SwitchLedger, PathsLedger, "ledger.switch", RUN, SWITCH_LEDGER_FIELDS,                   \
		"The account of every frame of a live switch.")                                    \
	V(Ledger, Section, NULL, RUN, LEDGER_FIELDS, "Whether the account balances.")              \
	V(Segments, Section, "segments", RUN, SEGMENTS_FIELDS, "All packets of the sender.")       \
	V(Receivers, Section, "receivers", RUN, RECEIVERS_FIELDS, "What the receivers counted.")   \
	V(Records, Section, "telemetry", RUN, RECORDS_FIELDS, "The records of a stream.")          \
	V(Telemetry, Section, "telemetry", RUN, TELEMETRY_FIELDS,                                  \
		"What was recorded; a stream of two programs has theirs behind its name.")         \
	V(Memory, Section, "memory", RUN, MEMORY_FIELDS,                                           \
		"The most that was in use at once; packets, at the ends of the run's steps.")      \
	V(Stop, Section, "stop", RUN, STOP_FIELDS, "How a stop rule ended the run.")               \
	V(StopInterval, Section, "stop.interval", RUN, STOP_INTERVAL_FIELDS,                       \
		"How well the metric is known where the rule has a confidence.")                   \
	V(Branch, Section, "branch", RUN, BRANCH_FIELDS,                                           \
		"Where a branch comes from, and its changes.")                                     \
	V(Source, Section, "sources", RUN, SOURCE_FIELDS, "A capture that was a path's traffic.")  \
	V(LiveSource, Source, "sources", RUN, LIVE_SOURCE_FIELDS,                                  \
		"A capture that a live switch sent as a path's traffic.")                          \
	V(Guests, Section, "guests", RUN, GUESTS_FIELDS, "Linux kernels among the hosts.")         \
	V(Kernel, Section, NULL, RUN, KERNEL_FIELDS,                                               \
		"A kernel, and the numbers of the guests that ran it.")                            \
	V(Program, Section, "programs", RUN, PROGRAM_FIELDS, "A program that ran in a guest.")     \
	V(Capture, Section, "capture", RUN, CAPTURE_FIELDS, "A capture that the run wrote.")       \
	V(Emulation, Section, "emulation", MEASURED, EMULATION_FIELDS,                             \
		"How exact a live run was: delays and rates of the switch, pacing of the sender.") \
	V(Lateness, Section, NULL, MEASURED, LATENESS_FIELDS, "How late packets left.")            \
	V(PortEmulation, Lateness, "emulation.ports", MEASURED, PORT_EMULATION_FIELDS,             \
		"How exact a port was.")                                                           \
	V(PacingLateness, Section, NULL, MEASURED, PACING_LATENESS_FIELDS,                         \
		"How late paced segments left.")                                                   \
	V(PacingRate, Section, "emulation.pacing_rate", MEASURED, PACING_RATE_FIELDS,              \
		"By which part flows were off their pacing rates.")                                \
	V(Host, Section, "host", RUN, HOST_FIELDS, "What the machine did to an lcore.")            \
	V(Clock, Section, "clock", RUN, CLOCK_FIELDS, "The TSC beside CLOCK_MONOTONIC.")           \
	V(Port, Section, "ports", RUN, PORT_FIELDS, "A port as its driver and the kernel count.")  \
	V(SwitchPort, Port, "ports", RUN, SWITCH_PORT_FIELDS,                                      \
		"A port of the switch; its path begins behind it.")                                \
	V(SenderPort, Port, "sender_ports", RUN, SENDER_PORT_FIELDS, "A port of the sender.")      \
	V(Lcore, Section, "lcore", RUN, LCORE_FIELDS, "An lcore's work.")                          \
	V(SwitchLcore, Lcore, "lcores", RUN, SWITCH_LCORE_FIELDS,                                  \
		"An lcore of several of the switch.")                                              \
	V(SenderLcore, Lcore, "sender_lcore", RUN, SENDER_LCORE_FIELDS,                            \
		"The first lcore of the sender, with what the process uses.")                      \
	V(SenderLcores, Lcore, "sender_lcores", RUN, SENDER_LCORES_FIELDS,                         \
		"An lcore of several of the sender.")                                              \
	V(KernelPort, Section, "ports.kernel", RUN, KERNEL_PORT_FIELDS,                            \
		"Super-frames of a port at a kernel's interface.")                                 \
	V(Handover, Section, "lcores.handover", RUN, HANDOVER_FIELDS,                              \
		"Frames given to another lcore.")                                                  \
	V(Pool, Section, "pool", RUN, POOL_FIELDS, "The switch's buffers.")                        \
	V(Captured, Section, "captured", RUN, CAPTURED_FIELDS, "The capture that was analysed.")   \
	V(Point, Section, "captured.points", RUN, POINT_FIELDS,                                    \
		"A place where packets were captured.")                                            \
	V(LinkType, Section, NULL, RUN, LINK_TYPE_FIELDS,                                          \
		"Packets of a link type that is not read.")                                        \
	V(CapturedGroup, Section, NULL, MEASURED, CAPTURED_GROUP_FIELDS,                           \
		"Flows of a capture, as its packets show them.")                                   \
	V(CaptureLedger, Section, NULL, RUN, CAPTURE_LEDGER_FIELDS,                                \
		"The account of each packet that was read.")                                       \
	V(CapturesLedger, Section, NULL, RUN, CAPTURES_LEDGER_FIELDS,                              \
		"The account of each packet of both captures.")                                    \
	V(Matched, Section, "matched", MEASURED, MATCHED_FIELDS,                                   \
		"Packets of one capture found in another.")                                        \
	V(MatchedFlow, Section, NULL, MEASURED, MATCHED_FLOW_FIELDS,                               \
		"The packets of a flow of one capture found in another.")                          \
	V(Apart, Section, NULL, RUN, APART_FIELDS, "Packets of several segments, and these.")      \
	V(Stages, Section, NULL, RUN, STAGES_FIELDS, "A path's stages, in order.")                 \
	V(Fact, Section, NULL, RUN, FACT_FIELDS,                                                   \
		"What a reader must know beside the figures: a cause, what is known of it, "       \
		"and a sentence.")                                                                 \
	V(Why, Section, NULL, MEASURED, WHY_FIELDS, "Why no queue stood at a link.")               \
	V(Limits, Section, NULL, END, LIMITS_FIELDS,                                               \
		"What keeps the flows from sending more at the end: "                              \
		"how many flows have each limit.")

// V(class, its base, kind, place, fields, definition)
#define KINDS(V)                                                                                   \
	V(Summary, Section, NULL, NULL, SUMMARY_FIELDS, "The members of every kind of summary.")   \
	V(Simulation, Summary, "simulation", "", SIMULATION_FIELDS,                                \
		"weir-sim: flows in virtual time.")                                                \
	V(Offline, Summary, "offline", NULL, OFFLINE_FIELDS,                                       \
		"weir-sim: captures as the traffic of paths.")                                     \
	V(Replay, Summary, "replay", NULL, REPLAY_FIELDS,                                          \
		"weir-sim --replay: what entered a live switch once more.")                        \
	V(Analysis, Summary, "analysis", NULL, ANALYSIS_FIELDS, "weir-pcap analyze.")              \
	V(Comparison, Summary, "comparison", NULL, COMPARISON_FIELDS, "weir-pcap compare.")        \
	V(LiveProgram, Summary, "", NULL, LIVE_FIELDS,                                             \
		"The members of both live programs' summaries.")                                   \
	V(Switch, LiveProgram, "switch", NULL, SWITCH_FIELDS, "weir-switch.")                      \
	V(Sender, LiveProgram, "sender", NULL, SENDER_FIELDS,                                      \
		"weir-sender: the flows' side, their receivers', or both.")
#define KIND_FIELDS_(type, base, kind, place, list, definition) FIELDS_(type, base, place, , list, )
#define FIELDS_(type, base, place, over, list, definition)                                         \
	static const struct field fields_of_##type[] = {list(FIELD_DESCRIBE)};
SECTIONS(FIELDS_)
KINDS(KIND_FIELDS_)
static const struct field report_fields[] = {REPORT_NUMBERS(FIELD_DESCRIBE)};
static const struct field capture_fields[] = {CAPTURE_NUMBERS(FIELD_DESCRIBE)};

#define COUNT_(array) array, sizeof(array) / sizeof((array)[0])
#define SECTION_(type, base, place, over, list, definition)                                        \
	{#type, #base, "", place, definition, OVER_##over, COUNT_(fields_of_##type)},
#define KIND_(type, base, kind, place, list, definition)                                           \
	{#type, #base, kind, place, definition, OVER_RUN, COUNT_(fields_of_##type)},
const struct section summary_sections[] = {
	KINDS(KIND_) SECTIONS(SECTION_){
		NULL, NULL, "", "report", "", OVER_MEASURED, COUNT_(report_fields)},
	{NULL, NULL, "", "capture", "", OVER_MEASURED, COUNT_(capture_fields)},
};
const size_t summary_sections_count = sizeof(summary_sections) / sizeof(summary_sections[0]);

#define TYPE_NAME_(type, python) [FIELD_##type] = python,
static const char *const type_names[] = {FIELD_TYPES(TYPE_NAME_)};

static void write_field(const struct field *f, FILE *out) {
	fprintf(out, "    %s: %s%s%s%s", f->python != NULL ? f->python : f->name,
		f->type == FIELD_PART ? f->unit : type_names[f->type],
		f->absent != NULL ? " | Absent" : "",
		f->null != NULL && f->type != FIELD_NOTHING ? " | None" : "",
		f->absent != NULL ? " = UNSET" : "");
	fprintf(out, f->definition[0] != '\0' ? "  # %s\n" : "\n", f->definition);
}

// V(class, its base, default of single members, definition, classes ...): any member of these
// classes, as the first one has it; none need be there.
#define UNIONS(V)                                                                                  \
	V(AnyLedger, Section, "None", "The account of packets of any kind of run.",                \
		"SimulationLedger", "PathsLedger", "SwitchLedger", "CaptureLedger",                \
		"CapturesLedger")                                                                  \
	V(AnyKind, Section, "None", "A summary of any kind, but for its ledger.", "Summary",       \
		"Simulation", "Offline", "Replay", "Analysis", "LiveProgram", "Switch", "Sender")  \
	V(AnyProgram, LiveProgram, "UNSET",                                                        \
		"The members of any live program, but for its ledger.", "Switch", "Sender")
#define UNION_(type, base, single, definition, ...)                                                \
	{#type, #base, single, definition, {__VA_ARGS__}},
static const struct any {
	const char *type, *base, *single, *definition, *of[9];
} unions[] = {UNIONS(UNION_)};

static const struct section *section_of(const char *type) {
	for (size_t i = 0; i < summary_sections_count; i++) {
		if (summary_sections[i].type != NULL && strcmp(summary_sections[i].type, type) == 0)
			return &summary_sections[i];
	}
	return NULL;
}

static bool is_written(const struct field *f) {
	return f->name != NULL && strcmp(f->name, "kind") != 0
		&& (f->type != FIELD_PART || f->unit[0] != '\0');
}

static void write_any(const struct any *u, const struct field *f, FILE *out) {
	const char *type = f->type == FIELD_PART ? f->unit : type_names[f->type];

	if (strcmp(u->single, "UNSET") == 0)
		fprintf(out, "    %s: %s | Absent%s = UNSET\n", f->name, type,
			f->null != NULL ? " | None" : "");
	else if (strncmp(type, "list[", 5) == 0 || strncmp(type, "dict[", 5) == 0)
		fprintf(out, "    %s: %s = %s\n", f->name, type, type[0] == 'l' ? "[]" : "{}");
	else
		fprintf(out, "    %s: %s | None = None\n", f->name, type);
}

static void write_union(const struct any *u, FILE *out) {
	const char *written[128] = {"ledger"}; // which is written by hand
	size_t n = 1;

	fprintf(out, "\n\nclass %s(%s, kw_only=True):\n    \"\"\"%s\"\"\"\n\n", u->type, u->base,
		u->definition);
	for (size_t i = 0; u->of[i] != NULL; i++) {
		const struct section *s = section_of(u->of[i]);

		for (size_t k = 0; k < s->fields; k++) {
			size_t w = 0;

			while (w < n && is_written(&s->field[k])
				&& strcmp(written[w], s->field[k].name) != 0)
				w++;
			if (w < n || !is_written(&s->field[k]))
				continue;
			assert(n < sizeof(written) / sizeof(written[0]));
			written[n++] = s->field[k].name;
			write_any(u, &s->field[k], out);
		}
	}
}

static void write_class(const struct section *s, FILE *out) {
	fprintf(out, "\n\nclass %s(%s, kw_only=True", s->type, s->base);
	if (s->kind == NULL)
		fputs(", tag_field=\"kind\"", out);
	else if (s->kind[0] != '\0')
		fprintf(out, ", tag=\"%s\"", s->kind);
	for (size_t i = 0; i < s->fields; i++) {
		if (s->field[i].python != NULL)
			fprintf(out, ", rename={\"%s\": \"%s\"}", s->field[i].python,
				s->field[i].name);
	}
	fprintf(out, "):\n    \"\"\"%s\"\"\"\n\n", s->definition);
	for (size_t i = 0; i < s->fields; i++) {
		if (is_written(&s->field[i]))
			write_field(&s->field[i], out);
	}
}

void sections_python(FILE *out) {
	fputs("# SPDX-License-Identifier: BSD-3-Clause\n"
	      "\"\"\"The sections of summaries, as types. `weir-sim --list types` has made "
	      "them.\"\"\"\n\n# fmt: off\n"
	      "from __future__ import annotations\n\n"
	      "from msgspec import UNSET\n\n"
	      "from weir.analysis.model_types import (\n",
		out);
	for (size_t i = 0; i < FIELD_PART; i++) {
		const char *name = type_names[i];

		if (name[0] >= 'A' && name[0] <= 'Z' && i != FIELD_NOTHING)
			fprintf(out, "    %s as %s,\n", name, name);
	}
	fputs("    Absent as Absent,\n    Section as Section,\n    Version as Version,\n)\n", out);
	for (size_t i = 0; i < summary_sections_count; i++) {
		if (summary_sections[i].type != NULL)
			write_class(&summary_sections[i], out);
	}
	for (size_t i = 0; i < sizeof(unions) / sizeof(unions[0]); i++)
		write_union(&unions[i], out);
}
