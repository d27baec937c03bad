// SPDX-License-Identifier: BSD-3-Clause
// Counters that are declared once. A list of V(type, name, source) makes the members of a struct, their
// sums and differences, and their names in JSON: one more is one more line of the list.
//
//	#define FLOW_COUNTERS(V) V(uint64_t, acked_bytes, COUNT_ALWAYS) ...
//	struct flow_count { FLOW_COUNTERS(COUNTERS_MEMBER) };
//	FLOW_COUNTERS(COUNTERS_ADD)     sum->name += to->name - from->name
//	FLOW_COUNTERS(COUNTERS_JSON)    with `struct json *j` and `const bool *known`, by `source`
#pragma once

// Where a counter is known.
enum counter_source {
	COUNT_ALWAYS,
	COUNT_OURS, // our own stack: a kernel does not say it
	COUNT_VIRTUAL, // virtual time: nobody tells a live sender
	COUNT_INNER, // it is a part of other figures, and not written itself
	COUNTER_SOURCES
};

#define COUNTERS_MEMBER(type, name, source) type name;
#define COUNTERS_ADD(type, name, source) sum->name += to->name - from->name;
#define COUNTERS_JSON(type, name, source)                                                          \
	if ((source) != COUNT_INNER)                                                               \
		json_known(j, #name, known[source], sum->name);
