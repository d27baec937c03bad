// SPDX-License-Identifier: BSD-3-Clause
// Writes JSON (RFC 8259), one value per line, two spaces per level.
#include "common/base/json.h"

#include "common/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void put_text(struct json *j, const char *text) {
	uint32_t c = 0;

	fputc('"', j->out);
	while (*text != '\0') {
		size_t n = utf8_read(text, &c);
		if (n == 0)
			fputs("\\ufffd", j->out); // JSON is UTF-8; a command line need not be
		else if (c == '"' || c == '\\')
			fprintf(j->out, "\\%c", (char)c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(j->out, "\\u%04x", c);
		else
			fprintf(j->out, "%.*s", (int)n, text);
		text += n == 0 ? 1 : n;
	}
	fputc('"', j->out);
}

static void put_indent(const struct json *j) {
	fprintf(j->out, "\n%*s", 2 * j->depth, "");
}

static void put_name(struct json *j, const char *name) {
	if (!j->first)
		fputc(',', j->out);
	put_indent(j);
	j->first = false;
	if (name != NULL) {
		put_text(j, name);
		fputs(": ", j->out);
	}
}

static void open_bracket(struct json *j, char bracket) {
	fputc(bracket, j->out);
	j->depth++;
	j->first = true;
}

void json_begin(struct json *j, FILE *out) {
	*j = (struct json){.out = out};
	open_bracket(j, '{');
}

void json_end(struct json *j) {
	json_close(j, '}');
	fputc('\n', j->out);
}

void json_object(struct json *j, const char *name) {
	put_name(j, name);
	open_bracket(j, '{');
}

void json_array(struct json *j, const char *name) {
	put_name(j, name);
	open_bracket(j, '[');
}

void json_close(struct json *j, char bracket) {
	j->depth--;
	if (!j->first)
		put_indent(j);
	fputc(bracket, j->out);
	j->first = false;
}

void json_u64(struct json *j, const char *name, uint64_t v) {
	put_name(j, name);
	fprintf(j->out, "%" PRIu64, v);
}

// The fewest digits that read back to the same double.
void json_f64(struct json *j, const char *name, double v) {
	char text[40];

	if (!isfinite(v)) {
		json_null(j, name);
		return;
	}
	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, v);
		double back = strtod(text, NULL);
		if (back >= v && back <= v)
			break;
	}
	put_name(j, name);
	fputs(text, j->out);
}

void json_bool(struct json *j, const char *name, bool v) {
	put_name(j, name);
	fputs(v ? "true" : "false", j->out);
}

void json_text(struct json *j, const char *name, const char *v) {
	put_name(j, name);
	put_text(j, v);
}

void json_null(struct json *j, const char *name) {
	put_name(j, name);
	fputs("null", j->out);
}

void json_known(struct json *j, const char *name, bool known, uint64_t v) {
	if (known)
		json_u64(j, name, v);
	else
		json_null(j, name);
}

void json_cdf(struct json *j, const char *name, const struct hist *h) {
	uint64_t below = 0;

	json_array(j, name);
	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		if (h->count[i] == 0)
			continue;
		below += h->count[i];
		json_array(j, NULL);
		json_u64(j, NULL, i + 1 < HIST_BUCKETS ? hist_bucket_low(i + 1) - 1 : h->max);
		json_f64(j, NULL, (double)below / (double)h->total);
		json_close(j, ']');
	}
	json_close(j, ']');
}
