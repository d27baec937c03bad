// SPDX-License-Identifier: BSD-3-Clause
// Between the files that write --list.
#pragma once
#include "common/run/run_list.h"

// How an entry was asked for: not, by its kind (or all were), or by its name.
enum list_asked { ASKED_NOT, ASKED_KIND, ASKED_NAME };
enum list_asked list_asked(
	struct run_list *l, const char *kind, const char *name, const char *alias);
// An entry's object, which the caller ends.
void list_json_entry(struct run_list *l, const char *kind, const char *name, const char *summary);
// The head of an entry's own page. `reference`: NULL: none.
void list_page_head(
	FILE *out, const char *kind, const char *name, const char *summary, const char *reference);
