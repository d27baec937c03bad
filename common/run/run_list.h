// SPDX-License-Identifier: BSD-3-Clause
// --list: what there is, from the tables themselves. Rows for people; with --json an object of
// entries by kind and name, from which the Python side makes completion and the config's JSON
// Schema.
#pragma once
#include "common/base/json.h"
#include "common/config/live.h"
#include "common/run/run.h"
#include "common/telemetry/telemetry.h"

#include <stdbool.h>
#include <stdio.h>

struct section; // common/base/field.h

struct run_list {
	FILE *out;
	bool as_json;
	struct json json;
	const char *asked; // the kind or the name that the user wants to see; NULL or "": all
	const char *kind; // of the last entry that was shown; NULL: none was
	char nearest[32]; // the name most like what was asked for; "": none is
	size_t nearest_d;
	struct err why; // of what was asked for: it cannot be listed
	int rc;
};

// One plug-in, or one section of the config.
struct run_listed {
	const char *kind, *name, *summary;
	const char *alias; // what else it is called; NULL: nothing
	const char *reference; // paper or RFC; NULL: none
	const struct param *params; // NULL: none
	const struct param *also[2]; // keys that other code reads; NULL: no more
	// Names of the numbers it records, up to the first NULL, nb_observed at most.
	const char *const *observed;
	size_t nb_observed;
	const char *const
		*modes; // names of the modes 0, 1, ... of a control; NULL: none can have one
	size_t nb_modes;
};

void run_list_begin(struct run_list *l, const struct run_options *opt, FILE *out);
// Entries of one kind follow each other. Nothing is written of one that was not asked for; one
// whose name was asked for is written at length.
void run_list_entry(struct run_list *l, const struct run_listed *e);
// A plug-in of the user's, which was asked for by its file: written at length.
void run_list_plugin(struct run_list *l, const struct run_listed *e);
// The keys of the config's top level, `telemetry` and `stop`.
void run_list_run(struct run_list *l);
// The keys of `live` itself; those of live.switch or live.sender and of its ports.
void run_list_live(struct run_list *l);
void run_list_live_section(struct run_list *l, const struct live_section *s, const char *summary);
// The streams of telemetry with their fields.
void run_list_streams(struct run_list *l);
// The definitions of the fields of summaries and reports.
void run_list_numbers(struct run_list *l, const struct section *section, size_t n);
// In JSON: the suffixes of each unit, and what a number with each is multiplied by.
void run_list_units(struct run_list *l);
// -EINVAL and a sentence with the nearest name, or with `kinds`, those there are: nothing was
// shown.
int run_list_end(struct run_list *l, const char *kinds, struct err *err);
