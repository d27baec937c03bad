// SPDX-License-Identifier: BSD-3-Clause
// Writes JSON to a stream: commas, nesting and escapes. Numbers print so that they read back the
// same; NaN and infinity become null.
#pragma once
#include "common/base/hist.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *out;
	int depth;
	bool first; // no comma before the next value
};

void json_begin(struct json *j, FILE *out); // starts the top-level object
void json_end(struct json *j); // ends it, with a newline
// In an object name the value; in an array pass NULL.
void json_object(struct json *j, const char *name);
void json_array(struct json *j, const char *name);
void json_close(struct json *j, char bracket); // '}' or ']'
void json_u64(struct json *j, const char *name, uint64_t v);
void json_f64(struct json *j, const char *name, double v);
void json_bool(struct json *j, const char *name, bool v);
void json_text(struct json *j, const char *name, const char *v);
void json_null(struct json *j, const char *name);
void json_known(
	struct json *j, const char *name, bool known, uint64_t v); // null if it is not known
// [[upper end of a bucket in ns, share of samples up to it], ...], the buckets that have samples.
void json_cdf(struct json *j, const char *name, const struct hist *h);
