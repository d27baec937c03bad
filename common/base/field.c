// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/field.h"

void field_count(struct json *j, const struct field *f, uint64_t v) {
	if (f->absent == NULL || v != FIELD_UNKNOWN)
		json_known(j, f->name, v != FIELD_UNKNOWN, v);
}

// What may be absent is absent as NaN, and null as infinity.
void field_number(struct json *j, const struct field *f, double v) {
	if (f->absent == NULL || !isnan(v))
		json_f64(j, f->name, v);
}

void field_text(struct json *j, const struct field *f, const char *v) {
	if (v != NULL)
		json_text(j, f->name, v);
	else if (f->absent == NULL)
		json_null(j, f->name);
}
