// SPDX-License-Identifier: BSD-3-Clause
// A field of a summary stands in one list: its JSON, its definition in --list and the types that
// Python reads summaries by (`weir-sim --list types`) follow from it.
//
//	V(TYPE, name, unit, value, definition, ...)
//
// TYPE        one of FIELD_TYPES
// unit        of a PART, its type in Python
// value       an expression with the variables of the function that writes the section; of a
//             PART, the statement that writes it
// definition  what is counted, how, and what is left out; "": the name says it, and --list does not
// ...         members of struct field, as in .null = "no sample"
//
//	#define LINK_FIELDS(V) V(COUNT, drops, "packet", n->drops, "dropped by the queue") ...
//	LINK_FIELDS(FIELD_JSON)         writes them to `struct json *j`
//	LINK_FIELDS(FIELD_DESCRIBE)     elements of a struct field[]
//
// Counters are fields that also make the members of a struct, their sums and differences:
//
//	V(type, name, source, unit, definition, ...)
//
//	#define FLOW_COUNTERS(V) V(uint64_t, acked_bytes, COUNT_ALWAYS, "B", ...) ...
//	struct flow_count { FLOW_COUNTERS(COUNTERS_MEMBER) };
//	FLOW_COUNTERS(COUNTERS_ADD)     sum->name += to->name - from->name
//
// A list of fields has them as FLOW_COUNTERS(V##_COUNTER): V(FIELD_JSON) then needs `sum` and
// `const bool *known`, by source.
#pragma once
#include "common/base/json.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

// V(TYPE, its name in Python)
#define FIELD_TYPES(V)                                                                             \
	V(COUNT, "Count") /* uint64_t */                                                           \
	V(SEED, "Seed") /* uint64_t, any */                                                        \
	V(NUMBER, "Number") /* double, 0 or more */                                                \
	V(SIGNED, "Signed") /* double */                                                           \
	V(SHARE, "Share") /* double, 0 to 1 */                                                     \
	V(FLAG, "bool")                                                                            \
	V(TEXT, "str")                                                                             \
	V(CDF, "Cdf") /* const struct hist * */                                                    \
	V(NOTHING, "None")                                                                         \
	V(PART, NULL)
#define FIELD_TYPE_CONSTANT_(type, python) FIELD_##type,
enum field_type { FIELD_TYPES(FIELD_TYPE_CONSTANT_) };

#define FIELD_UNKNOWN UINT64_MAX // a COUNT that is null; a NUMBER is NaN then, a TEXT NULL

// The time that counts for a number.
#define FIELD_TIMES(V)                                                                             \
	V(OF_SECTION, "", "") /* that of the field's section */                                    \
	V(MEASURED, "measured",                                                                    \
		"from the end of the warm-up to the end of the run; an interval counts if it "     \
		"began then, a transfer too")                                                      \
	V(RUN, "run", "the whole run, warm-up included: accounts of what became of things")        \
	V(END, "end", "at the end of the run")                                                     \
	V(INTERVAL, "interval",                                                                    \
		"between two ends of intervals: each telemetry.interval, the end of the warm-up, " \
		"the end of the run")                                                              \
	V(WINDOW, "window", "a whole number of intervals; the last window ends with the run")      \
	V(FLOW, "flow",                                                                            \
		"of a capture: from a flow's first payload to its last ACK, or from the "          \
		"warm-up's end if that is later")
#define FIELD_TIME_CONSTANT_(constant, name, meaning) OVER_##constant,
enum field_time { FIELD_TIMES(FIELD_TIME_CONSTANT_) };

struct field {
	const char *name; // NULL: it is a part of other figures, and not shown
	enum field_type type;
	const char *unit, *definition;
	enum field_time over;
	const char *source; // what was recorded of it; NULL: nothing recorded tells it
	const char *null; // when it is null, and a dash where a person reads it; NULL: never
	const char *absent; // when it is not written; NULL: always is
	const char *python; // its name there, if that is another; NULL: the same
};

// What a section of a summary has.
struct section {
	const char *type, *base; // classes in Python
	const char *kind; // of a whole summary; "": of a part
	const char *place; // before the names of its fields in --list; NULL: not listed
	const char *definition;
	enum field_time over;
	const struct field *field;
	size_t fields;
};

#define FIELD_DESCRIBE(type_, name_, unit_, value_, ...)                                           \
	{.name = #name_, .type = FIELD_##type_, .unit = unit_, .definition = __VA_ARGS__},
// Of a class that has only some of a list's fields.
#define FIELD_DESCRIBE_OPTIONAL(type_, name_, unit_, value_, ...)                                  \
	{.name = #name_,                                                                           \
		.type = FIELD_##type_,                                                             \
		.unit = unit_,                                                                     \
		.absent = "",                                                                      \
		.definition = __VA_ARGS__},
#define FIELD_JSON(type_, name_, unit_, value_, ...)                                               \
	FIELD_JSON_##type_((value_), (&(const struct field)FIELD_JSON_FIELD_(name_, __VA_ARGS__)))
#define FIELD_JSON_FIELD_(name_, ...)                                                              \
	{ .name = #name_, .definition = __VA_ARGS__ }
#define FIELD_JSON_COUNT(value_, f_) field_count(j, f_, value_);
#define FIELD_JSON_SEED(value_, f_) json_u64(j, (f_)->name, value_);
#define FIELD_JSON_NUMBER(value_, f_) field_number(j, f_, value_);
#define FIELD_JSON_SIGNED(value_, f_) field_number(j, f_, value_);
#define FIELD_JSON_SHARE(value_, f_) field_number(j, f_, value_);
#define FIELD_JSON_FLAG(value_, f_) json_bool(j, (f_)->name, value_);
#define FIELD_JSON_TEXT(value_, f_) field_text(j, f_, value_);
#define FIELD_JSON_CDF(value_, f_) json_cdf(j, (f_)->name, value_);
#define FIELD_JSON_NOTHING(value_, f_) json_null(j, (f_)->name);
#define FIELD_JSON_PART(value_, f_) value_;

void field_count(struct json *j, const struct field *f, uint64_t v);
void field_number(struct json *j, const struct field *f, double v);
void field_text(struct json *j, const struct field *f, const char *v);

// Where a counter is known.
enum counter_source {
	COUNT_ALWAYS,
	COUNT_OURS, // our own stack: a kernel does not say it
	COUNT_TCP, // a QUIC stack's program keeps it to itself
	COUNT_VIRTUAL, // virtual time: nobody tells a live sender
	COUNT_INNER, // it is a part of other figures, and not written itself
	COUNTER_SOURCES
};

#define COUNTERS_MEMBER(type, name, ...) type name;
#define COUNTERS_ADD(type, name, ...) sum->name += to->name - from->name;
#define FIELD_JSON_COUNTER(type_, name_, source_, ...)                                             \
	if ((source_) != COUNT_INNER)                                                              \
		json_known(j, #name_, known[source_], sum->name_);
#define FIELD_DESCRIBE_COUNTER(type_, name_, source_, unit_, ...)                                  \
	{.name = (source_) == COUNT_INNER ? NULL : #name_,                                         \
		.type = FIELD_COUNT,                                                               \
		.unit = unit_,                                                                     \
		.null = (source_) == COUNT_OURS	     ? "of a kernel's flows"                       \
			: (source_) == COUNT_TCP     ? "of a QUIC stack's flows"                   \
			: (source_) == COUNT_VIRTUAL ? "live: the sender does not see them"        \
						     : NULL,                                       \
		.definition = __VA_ARGS__},
