// SPDX-License-Identifier: BSD-3-Clause
// What --list shows of telemetry's streams and of the numbers of summaries and reports.
#include "common/base/field.h"
#include "common/run/columns.h"
#include "common/run/run_list_parts.h"

static void stream_json(struct run_list *l, enum tel_stream s) {
	struct json *j = &l->json;

	list_json_entry(l, "stream", tel_stream_name(s), tel_stream_summary(s));
	json_object(j, "fields");
	for (size_t i = 0; i < tel_field_count(s); i++) {
		const struct tel_field *f = tel_field(s, i);

		json_object(j, f->name);
		json_text(j, "dtype", f->dtype);
		json_text(j, "unit", f->unit);
		json_text(j, "meaning", f->meaning);
		if (tel_field_values(f) != NULL)
			json_object(j, "values");
		for (const struct tel_value *v = tel_field_values(f); v != NULL && v->name != NULL;
			v++)
			json_u64(j, v->name, v->number);
		if (tel_field_values(f) != NULL)
			json_close(j, '}');
		json_close(j, '}');
	}
	json_close(j, '}');
	json_close(j, '}');
}

static void stream_page(FILE *out, enum tel_stream s) {
	list_page_head(out, "stream", tel_stream_name(s), tel_stream_summary(s), NULL);
	fputs("  field                type   unit; below, its meaning\n", out);
	for (size_t i = 0; i < tel_field_count(s); i++) {
		const struct tel_field *f = tel_field(s, i);
		const struct tel_value *values = tel_field_values(f);
		char text[4096];
		size_t used = (size_t)snprintf(text, sizeof(text), "%s", f->meaning);

		fprintf(out, "  %-20s %-6s %s\n%*s", f->name, f->dtype,
			values != NULL ? "" : f->unit, 6, "");
		for (const struct tel_value *v = values;
			v != NULL && v->name != NULL && used < sizeof(text); v++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u %s",
				v == values ? ": " : ", ", v->number, v->name);
		columns_text(out, 6, 6, text);
	}
}

void run_list_streams(struct run_list *l) {
	for (enum tel_stream s = 0; s < TEL_STREAM_COUNT; s++) {
		enum list_asked how = list_asked(l, "stream", tel_stream_name(s), NULL);

		// A list of all that can be configured does not end with what is recorded.
		if (how == ASKED_NOT || (!l->as_json && (l->asked == NULL || l->asked[0] == '\0')))
			continue;
		if (l->as_json)
			stream_json(l, s);
		else if (how == ASKED_KIND)
			columns_named(l->out, 0, 12, tel_stream_name(s), tel_stream_summary(s));
		else
			stream_page(l->out, s);
		l->kind = "stream";
	}
}

#define TIME_(constant, name, meaning) [OVER_##constant] = {name, meaning},
static const struct { const char *name, *meaning; } times[] = {FIELD_TIMES(TIME_)};

// When it is null or absent, in words; "": never.
static const char *unknown(const struct field *f, char *text, size_t size) {
	snprintf(text, size, "%s%s%s%s", f->absent != NULL ? "absent: " : "",
		f->absent != NULL ? f->absent : "",
		f->absent != NULL && f->null != NULL ? "; null: " : "",
		f->null != NULL ? f->null : "");
	return text;
}

static void number_json(
	struct run_list *l, const struct field *f, enum field_time over, const char *name) {
	struct json *j = &l->json;
	char text[256];

	list_json_entry(l, "number", name, f->definition);
	json_text(j, "unit", f->unit);
	json_text(j, "over", times[over].name);
	json_text(j, "over_meaning", times[over].meaning);
	json_text(j, "source", f->source != NULL ? f->source : "");
	json_text(j, "unknown", unknown(f, text, sizeof(text)));
	json_close(j, '}');
}

static void number_page(FILE *out, const struct field *f, enum field_time over, const char *name) {
	char text[256];

	list_page_head(out, "number", name, f->definition, f->source);
	columns_named(out, 2, 7, "unit", f->unit[0] != '\0' ? f->unit : "none");
	snprintf(text, sizeof(text), "%s: %s", times[over].name, times[over].meaning);
	columns_named(out, 2, 7, "over", text);
	unknown(f, text, sizeof(text));
	columns_named(out, 2, 7, "null", text[0] != '\0' ? text : "never");
}

static void list_number(struct run_list *l, const struct section *s, const struct field *f) {
	bool all = l->asked == NULL || l->asked[0] == '\0';
	enum field_time over = f->over == OVER_OF_SECTION ? s->over : f->over;
	char name[64];

	if (s->place == NULL || f->name == NULL || f->definition[0] == '\0'
		|| f->type == FIELD_PART)
		return;
	snprintf(name, sizeof(name), "%s%s%s", s->place, s->place[0] != '\0' ? "." : "", f->name);
	enum list_asked how = list_asked(l, "number", name, NULL);

	if (how == ASKED_NOT || (all && !l->as_json)) // as streams
		return;
	if (l->as_json)
		number_json(l, f, over, name);
	else if (how == ASKED_KIND)
		columns_named(l->out, 0, 28, name, f->definition);
	else
		number_page(l->out, f, over, name);
	l->kind = "number";
}

void run_list_numbers(struct run_list *l, const struct section *section, size_t n) {
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < section[i].fields; k++)
			list_number(l, &section[i], &section[i].field[k]);
	}
}
