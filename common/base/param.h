// SPDX-License-Identifier: BSD-3-Clause
// Typed parameters: one table per plug-in serves the config file, `-o key=value`, run-time
// changes, `--list`, `--print-config` and the error messages.
#pragma once
#include "common/base/err.h"
#include "common/base/units.h"
#include "common/weir/param.h"

// For error messages, as unit_example().
#define PARAM_LIMIT_EXAMPLE "a limit such as 375MB, 1000pkt, 50ms or 1BDP"

// The i-th suffix of a limit that is no unit ("pkt", "BDP"), and the i-th word for no or yes; NULL:
// there are no more.
const char *param_limit_suffix(size_t i);
const char *param_bool_word(size_t i);
const struct param *param_find(const struct param *table, const char *name);
// Sets one field of obj from text. 0, -EINVAL (not of this type) or -ERANGE; the sentence starts
// with the parameter's name, the caller puts the place before it.
int param_set(const struct param *p, void *obj, const char *value, struct err *err);
// Whether a number, in the base of the unit, is legal.
bool param_in_range(const struct param *p, double v);
// Sets every field that has a default.
int param_defaults(const struct param *table, void *obj, struct err *err);
// Whether a legal text is another spelling ("10Mbps", "Tail", "30" of seconds) of what param_get()
// writes.
bool param_is_other(const struct param *p, const char *text);
// The field's current value in config syntax.
void param_get(const struct param *p, const void *obj, char *text, size_t size);
