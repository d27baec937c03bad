// SPDX-License-Identifier: BSD-3-Clause
// Counters that are declared once. A list makes the members of a struct, their sums and
// differences, their names in JSON and their definitions: one more is one more line of the list.
//
//	V(type, name, source, unit, definition, recorded)
//
// The last three are those of common/run/numbers.h (`recorded` is its `source`).
//
//	#define FLOW_COUNTERS(V) V(uint64_t, acked_bytes, COUNT_ALWAYS, "B", ...) ...
//	struct flow_count { FLOW_COUNTERS(COUNTERS_MEMBER) };
//	FLOW_COUNTERS(COUNTERS_ADD)     sum->name += to->name - from->name
//	FLOW_COUNTERS(COUNTERS_JSON)    with `struct json *j` and `const bool *known`, by `source`
//	FLOW_COUNTERS(COUNTERS_NUMBER)  elements of a struct number[], with COUNTERS_PLACE and
//	                                COUNTERS_OVER
#pragma once

// Where a counter is known.
enum counter_source {
	COUNT_ALWAYS,
	COUNT_OURS, // our own stack: a kernel does not say it
	COUNT_VIRTUAL, // virtual time: nobody tells a live sender
	COUNT_INNER, // it is a part of other figures, and not written itself
	COUNTER_SOURCES
};

#define COUNTERS_MEMBER(type, name, ...) type name;
#define COUNTERS_ADD(type, name, ...) sum->name += to->name - from->name;
#define COUNTERS_SOURCE(source, ...) (source)
#define COUNTERS_JSON(type, name, ...)                                                             \
	if (COUNTERS_SOURCE(__VA_ARGS__, ) != COUNT_INNER)                                         \
		json_known(j, #name, known[COUNTERS_SOURCE(__VA_ARGS__, )], sum->name);
#define COUNTERS_NUMBER(type, name, source, unit, definition, recorded)                            \
	{(source) == COUNT_INNER ? NULL : COUNTERS_PLACE, #name, unit, definition, recorded,       \
		(source) == COUNT_OURS		    ? "of a kernel's flows"                        \
			: (source) == COUNT_VIRTUAL ? "live: the sender does not see them"         \
						    : "",                                          \
		COUNTERS_OVER},
