// SPDX-License-Identifier: BSD-3-Clause
// Public: tables of typed parameters. A table says of each parameter how it is written, what it is
// by default, what is legal, and where its value goes; the config file, `-o`, --list, the JSON
// Schema and the error messages all come from it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Numbers are stored in nanoseconds, bits per second, bytes, or as a fraction of 1.
enum unit { UNIT_NONE, UNIT_TIME_NS, UNIT_RATE_BPS, UNIT_BYTES, UNIT_RATIO };

enum param_type {
	// Whole numbers; times, rates and sizes are rounded to the nearest. With `choices`, these
	// words stand for 0, 1 and so on, and numbers begin above them. With `of`, a plug-in of
	// that kind may be written instead, {name: {...}}, which other code reads; the field then
	// has its default.
	PARAM_TYPE_U64,
	PARAM_TYPE_F64,
	PARAM_TYPE_BOOL, // yes/no/true/false/on/off
	PARAM_TYPE_ENUM, // stored as int: index into choices
	PARAM_TYPE_TEXT, // stored in a char[PARAM_TEXT_SIZE]
	PARAM_TYPE_LIMIT, // struct limit; a number without a unit is refused
	// The name of a file that is read, stored as struct param_file; "": none. Some tables of
	// Weir's own, with FILE:PART, have no field.
	PARAM_TYPE_FILE,
	// Keys that other code of Weir reads, and no congestion control has. Their tables describe
	// them, for --list and the JSON Schema; `def` "" is nothing at all.
	PARAM_TYPE_SCALAR, // one value
	PARAM_TYPE_PLUGIN, // a name or {name: {...}}: one of the kind `of`
	PARAM_TYPE_MAP, // with the keys of the table `of`
	PARAM_TYPE_LIST, // of min to max such maps; without `of`, of whole numbers in [min, max]
	PARAM_TYPE_PATHS, // a map of names to lists of plug-ins of the kind `of`
	PARAM_TYPE_NAMES, // a name, or a list of names: of paths, or with `choices` of these
};

#define PARAM_TEXT_SIZE 128

// A queue limit, in whichever unit it was written: "375MB", "1000pkt", "50ms", "1.5BDP".
enum limit_kind { LIMIT_BYTES, LIMIT_PACKETS, LIMIT_TIME, LIMIT_BDP };
struct limit {
	enum limit_kind kind;
	double value; // bytes, packets, nanoseconds or bandwidth-delay products
};

// What is in a file: `bytes` bytes and a 0 behind them; NULL: there is none. The run's folder has a
// copy of it.
struct param_file {
	const char *text;
	uint64_t bytes;
};

struct param {
	const char *name; // as written in the config file
	const char *def; // default, in config syntax; NULL: must be given
	const char *help;
	enum unit unit;
	enum param_type type;
	size_t offset;
	// Inclusive, in the unit; max may be HUGE_VAL. For a LIMIT: of its bytes, packets or
	// nanoseconds; a BDP multiple must only be above 0 (0 too if min is 0).
	double min, max;
	const char *const *choices; // ENUM, or words of a U64: names, ends with NULL
	bool zero; // 0 is legal too, below min
	bool live; // may be changed while running
	bool seconds; // a time: a number without a unit is one of seconds
	const char *of; // see enum param_type
};

#ifndef __cplusplus
#define PARAM_IS_(T, field, ctype) __builtin_types_compatible_p(__typeof__(((T *)0)->field), ctype)
#define PARAM_TYPE_(value) .type = (value)
#define PARAM_OFFSET_(value) .offset = (value)
#define PARAM_CHOICES_(names) .choices = (names)
#define PARAM_END                                                                                  \
	{ .name = NULL }
#else // has no designated initializers behind others: what follows is `min, max`, or nothing
#include <type_traits>
#define PARAM_IS_(T, field, ctype) std::is_same<decltype(T::field), ctype>::value
#define PARAM_TYPE_(value) value
#define PARAM_OFFSET_(value) value
#define PARAM_CHOICES_(names) 0, 0, names
#define PARAM_END                                                                                  \
	{}
#endif

#define PARAM_FIELD_(T, field, ctype)                                                              \
	PARAM_OFFSET_(offsetof(T, field) + 0 * sizeof(char[PARAM_IS_(T, field, ctype) ? 1 : -1]))
#define PARAM_U64(T, field) PARAM_TYPE_(PARAM_TYPE_U64), PARAM_FIELD_(T, field, uint64_t)
#define PARAM_F64(T, field) PARAM_TYPE_(PARAM_TYPE_F64), PARAM_FIELD_(T, field, double)
#define PARAM_BOOL(T, field) PARAM_TYPE_(PARAM_TYPE_BOOL), PARAM_FIELD_(T, field, bool)
#define PARAM_ENUM(T, field, names)                                                                \
	PARAM_TYPE_(PARAM_TYPE_ENUM), PARAM_FIELD_(T, field, int), PARAM_CHOICES_(names)
#define PARAM_TEXT(T, field)                                                                       \
	PARAM_TYPE_(PARAM_TYPE_TEXT), PARAM_FIELD_(T, field, char[PARAM_TEXT_SIZE])
#define PARAM_CONTENT(T, field)                                                                    \
	PARAM_TYPE_(PARAM_TYPE_FILE), PARAM_FIELD_(T, field, struct param_file)
#define PARAM_LIMIT(T, field) PARAM_TYPE_(PARAM_TYPE_LIMIT), PARAM_FIELD_(T, field, struct limit)
#define PARAM_SCALAR .type = PARAM_TYPE_SCALAR
#define PARAM_FILE .type = PARAM_TYPE_FILE
#define PARAM_PLUGIN(kind) .type = PARAM_TYPE_PLUGIN, .of = (kind)
#define PARAM_MAP(table) .type = PARAM_TYPE_MAP, .of = (table)
#define PARAM_LIST(table) .type = PARAM_TYPE_LIST, .of = (table)
#define PARAM_NAMES .type = PARAM_TYPE_NAMES
#define PARAM_PATHS(kind) .type = PARAM_TYPE_PATHS, .of = (kind)
