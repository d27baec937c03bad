// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/run_list.h"

#include "common/run/columns.h"
#include "common/run/run_list_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

// Words for people, and the names in JSON.
static const char *const type_names[] = {
	[PARAM_TYPE_U64] = "u64",
	[PARAM_TYPE_F64] = "f64",
	[PARAM_TYPE_BOOL] = "bool",
	[PARAM_TYPE_ENUM] = "enum",
	[PARAM_TYPE_TEXT] = "text",
	[PARAM_TYPE_LIMIT] = "limit",
	[PARAM_TYPE_SCALAR] = "scalar",
	[PARAM_TYPE_PLUGIN] = "plugin",
	[PARAM_TYPE_MAP] = "map",
	[PARAM_TYPE_LIST] = "list",
	[PARAM_TYPE_PATHS] = "paths",
	[PARAM_TYPE_NAMES] = "names",
	[PARAM_TYPE_FILE] = "file",
};
static const char *const unit_json[] = {
	[UNIT_NONE] = "",
	[UNIT_TIME_NS] = "ns",
	[UNIT_RATE_BPS] = "bit/s",
	[UNIT_BYTES] = "B",
	[UNIT_RATIO] = "ratio",
};
static const struct {
	const char *kind, *words;
} kind_words[] = {
	{"aqm", "queue discipline"},
	{"stage", "stage of a path"},
	{"path", "first item of a path"},
	{"cc", "congestion control"},
	{"source", "source of a flow's data"},
	{"stack", "TCP of a group's flows"},
	{"quic", "QUIC stack of a group's flows"},
	{"base_rtt", "distribution of base RTTs"},
	{"flows", "section of the config"},
	{"run", "section of the config"},
	{"live", "section of the config"},
	{"stream", "telemetry stream"},
	{"number", "number of a summary or a report"},
};

static const char *words_of(const char *kind) {
	for (size_t i = 0; i < sizeof(kind_words) / sizeof(kind_words[0]); i++) {
		if (strcmp(kind_words[i].kind, kind) == 0)
			return kind_words[i].words;
	}
	return kind;
}

static void format_choices(const struct param *p, char *text, size_t size) {
	size_t used = 0;

	for (int i = 0; p->choices[i] != NULL && used < size; i++)
		used += (size_t)snprintf(
			text + used, size - used, "%s%s", i == 0 ? "" : " or ", p->choices[i]);
}

static void format_numbers(const struct param *p, char *text, size_t size) {
	char min[64], max[64];

	if (p->choices != NULL && size > 64) { // words before the numbers
		format_choices(p, text, size - 64);
		strcat(text, " or ");
		size -= strlen(text);
		text += strlen(text);
	}
	unit_format(p->min, p->unit, min, sizeof(min));
	unit_format(p->max, p->unit, max, sizeof(max));
	if (isinf(p->max))
		snprintf(text, size, "%s or more", min);
	else
		snprintf(text, size, "%s%s to %s%s%s", p->zero ? "0 or " : "", min, max,
			p->of != NULL ? " or one of --list " : "", p->of != NULL ? p->of : "");
}

static void format_range(const struct param *p, char *text, size_t size) {
	text[0] = '\0';
	switch (p->type) {
	case PARAM_TYPE_BOOL:
		snprintf(text, size, "yes or no");
		return;
	case PARAM_TYPE_TEXT:
	case PARAM_TYPE_SCALAR:
	case PARAM_TYPE_FILE:
		snprintf(text, size, "text");
		return;
	case PARAM_TYPE_LIMIT:
		snprintf(text, size, "bytes, pkt, time or BDP");
		return;
	case PARAM_TYPE_ENUM:
		format_choices(p, text, size);
		return;
	case PARAM_TYPE_PLUGIN:
		snprintf(text, size, "one of --list %s", p->of);
		return;
	case PARAM_TYPE_MAP:
		snprintf(text, size, "see %s", p->of);
		return;
	case PARAM_TYPE_LIST:
		if (p->of != NULL)
			snprintf(text, size, "list of %s", p->of);
		else
			snprintf(text, size, "list of numbers");
		return;
	case PARAM_TYPE_PATHS:
		snprintf(text, size, "lists of --list %s", p->of);
		return;
	case PARAM_TYPE_NAMES:
		if (p->choices != NULL)
			format_choices(p, text, size);
		else
			snprintf(text, size, "names of paths");
		return;
	case PARAM_TYPE_U64:
	case PARAM_TYPE_F64:
		format_numbers(p, text, size);
		return;
	}
}

void run_list_begin(struct run_list *l, const struct run_options *opt, FILE *out) {
	*l = (struct run_list){
		.out = out, .as_json = opt->json, .asked = opt->list, .nearest_d = SIZE_MAX};
}

// Ranges are in the base of the unit (ns, bit/s, bytes); a max of null: no bound.
static void json_param(struct json *j, const struct param *p) {
	char range[192];

	format_range(p, range, sizeof(range));
	json_object(j, p->name);
	json_text(j, "type", type_names[p->type]);
	if (p->of != NULL)
		json_text(j, "of", p->of);
	json_text(j, "unit", unit_json[p->unit]);
	if (p->def != NULL)
		json_text(j, "default", p->def);
	else
		json_null(j, "default");
	json_f64(j, "min", p->min);
	json_f64(j, "max", p->max);
	json_text(j, "range", range); // min and max or the choices, in words
	if (p->zero)
		json_bool(j, "zero", true);
	if (p->seconds)
		json_bool(j, "seconds", true);
	json_array(j, "choices");
	for (int i = 0; p->choices != NULL && p->choices[i] != NULL; i++)
		json_text(j, NULL, p->choices[i]);
	for (size_t i = 0; p->type == PARAM_TYPE_BOOL && param_bool_word(i) != NULL; i++)
		json_text(j, NULL, param_bool_word(i));
	json_close(j, ']');
	json_bool(j, "live", p->live);
	json_text(j, "help", p->help);
	json_close(j, '}');
}

static void json_table(struct json *j, const struct param *table) {
	for (const struct param *p = table; p != NULL && p->name != NULL; p++)
		json_param(j, p);
}

void list_json_entry(struct run_list *l, const char *kind, const char *name, const char *summary) {
	bool other = l->kind == NULL || strcmp(l->kind, kind) != 0;
	struct json *j = &l->json;

	if (l->kind == NULL)
		json_begin(j, l->out);
	else if (other)
		json_close(j, '}');
	if (other)
		json_object(j, kind);
	json_object(j, name);
	json_text(j, "summary", summary);
}

static void json_names(struct json *j, const char *key, const char *const *names, size_t n) {
	json_array(j, key);
	for (size_t i = 0; i < n && names[i] != NULL; i++)
		json_text(j, NULL, names[i]);
	json_close(j, ']');
}

static void list_json(struct run_list *l, const struct run_listed *e) {
	struct json *j = &l->json;

	list_json_entry(l, e->kind, e->name, e->summary);
	if (e->alias != NULL)
		json_text(j, "alias", e->alias);
	if (e->reference != NULL)
		json_text(j, "reference", e->reference);
	json_object(j, "params");
	json_table(j, e->params);
	json_close(j, '}');
	if (e->also[0] != NULL) {
		json_object(j, "keys");
		json_table(j, e->also[0]);
		json_table(j, e->also[1]);
		json_close(j, '}');
	}
	json_names(j, "observed", e->observed, e->nb_observed);
	if (e->modes != NULL)
		json_names(j, "modes", e->modes, e->nb_modes);
	json_close(j, '}');
}

static const char *default_words(const struct param *p) {
	if (p->def == NULL)
		return "required";
	return p->def[0] == '\0' ? "-" : p->def;
}

// What it is in whole lines: name, default and range; below, its meaning.
static void rows(FILE *out, const struct param *table) {
	char range[192], meaning[512];

	for (const struct param *p = table; p != NULL && p->name != NULL; p++) {
		format_range(p, range, sizeof(range));
		int used = fprintf(out, "  %-18s %-14s ", p->name, default_words(p));
		columns_text(out, used, used, range);
		snprintf(meaning, sizeof(meaning), "%s%s", p->help, p->live ? " (live)" : "");
		fprintf(out, "%*s", 6, "");
		columns_text(out, 6, 6, meaning);
	}
}

static void names_row(FILE *out, const char *what, const char *const *names, size_t n) {
	char text[600];
	size_t used = 0;

	for (size_t i = 0; i < n && names[i] != NULL && used < sizeof(text); i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", i == 0 ? "" : ", ", names[i]);
	if (used > 0)
		columns_named(out, 2, 9, what, text);
}

static void recorded_rows(FILE *out, const struct run_listed *e) {
	names_row(out, "observed:", e->observed, e->nb_observed);
	names_row(out, "modes:", e->modes, e->nb_modes);
}

// All kinds: a line for each, below a heading for each kind. One kind: with all parameters.
static void list_rows(struct run_list *l, const struct run_listed *e) {
	bool all = l->asked == NULL || l->asked[0] == '\0';

	if (l->kind == NULL || strcmp(l->kind, e->kind) != 0)
		fprintf(l->out, "%s%s (%s)%s\n", l->kind == NULL ? "" : "\n", words_of(e->kind),
			e->kind, all ? "" : ": parameter, default, range; below, its meaning");
	columns_named(l->out, all ? 2 : 0, 14, e->name, e->summary);
	if (all)
		return;
	rows(l->out, e->params);
	for (size_t i = 0; i < 2 && e->also[i] != NULL; i++)
		rows(l->out, e->also[i]);
	recorded_rows(l->out, e);
}

void list_page_head(
	FILE *out, const char *kind, const char *name, const char *summary, const char *reference) {
	int used = fprintf(out, "%s: ", name);

	columns_text(out, used, 2, summary);
	fprintf(out, "\n  what    %s (%s)\n", words_of(kind), kind);
	if (reference != NULL)
		columns_named(out, 2, 7, "source", reference);
	fputc('\n', out);
}

static bool has_rows(const struct param *table) {
	return table != NULL && table->name != NULL;
}

static void list_page(FILE *out, const struct run_listed *e) {
	list_page_head(out, e->kind, e->name, e->summary, e->reference);
	if (has_rows(e->params) || e->also[0] != NULL)
		fputs("  parameter          default        range; below, its meaning\n", out);
	else
		fputs("  It has no parameters.\n", out);
	rows(out, e->params);
	for (size_t i = 0; i < 2 && e->also[i] != NULL; i++)
		rows(out, e->also[i]);
	if ((e->nb_observed > 0 && e->observed[0] != NULL)
		|| (e->nb_modes > 0 && e->modes[0] != NULL))
		fputs("\n  It records:\n", out);
	recorded_rows(out, e);
}

static void note_nearest(struct run_list *l, const char *name) {
	const char *best = NULL;

	config_suggest(l->asked, name, &best, &l->nearest_d);
	if (best != NULL)
		snprintf(l->nearest, sizeof(l->nearest), "%s", best);
}

enum list_asked list_asked(
	struct run_list *l, const char *kind, const char *name, const char *alias) {
	if (l->asked == NULL || l->asked[0] == '\0' || strcasecmp(l->asked, kind) == 0)
		return ASKED_KIND;
	if (strcasecmp(l->asked, name) == 0 || (alias != NULL && strcasecmp(l->asked, alias) == 0))
		return ASKED_NAME;
	note_nearest(l, kind);
	note_nearest(l, name);
	return ASKED_NOT;
}

void run_list_entry(struct run_list *l, const struct run_listed *e) {
	enum list_asked how = list_asked(l, e->kind, e->name, e->alias);

	if (how == ASKED_NOT)
		return;
	if (l->as_json)
		list_json(l, e);
	else if (how == ASKED_KIND)
		list_rows(l, e);
	else
		list_page(l->out, e);
	l->kind = e->kind;
}

void run_list_plugin(struct run_list *l, const struct run_listed *e) {
	if (l->as_json)
		list_json(l, e);
	else
		list_page(l->out, e);
	l->kind = e->kind;
}

void run_list_live_section(struct run_list *l, const struct live_section *s, const char *summary) {
	char name[32], ports[40];

	snprintf(name, sizeof(name), "live.%s", s->name);
	snprintf(ports, sizeof(ports), "live.%s.ports", s->name);
	run_list_entry(l,
		&(struct run_listed){.kind = "live",
			.name = name,
			.summary = summary,
			.params = s->params,
			.also = {s->also}});
	run_list_entry(l,
		&(struct run_listed){.kind = "live",
			.name = ports,
			.summary = "one of its ports",
			.params = s->port_params,
			.also = {live_port_also}});
}

void run_list_live(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "live",
			.name = "live",
			.summary = "live runs: read by weir-switch and weir-sender",
			.params = live_root_params,
			.also = {live_also}});
}

void run_list_units(struct run_list *l) {
	struct json *j = &l->json;

	if (!l->as_json || list_asked(l, "unit", "unit", NULL) == ASKED_NOT)
		return;
	for (enum unit u = UNIT_NONE; u <= UNIT_RATIO; u++) {
		list_json_entry(l, "unit", unit_json[u], unit_example(u));
		l->kind = "unit";
		json_array(j, "suffixes");
		for (size_t i = 0; unit_suffix(u, i) != NULL; i++)
			json_text(j, NULL, unit_suffix(u, i));
		json_close(j, ']');
		json_array(j, "factors");
		for (size_t i = 0; unit_suffix(u, i) != NULL; i++)
			json_f64(j, NULL, unit_factor(u, i));
		json_close(j, ']');
		json_close(j, '}');
	}
	list_json_entry(l, "unit", "limit", PARAM_LIMIT_EXAMPLE);
	json_array(j, "suffixes");
	for (size_t i = 0; param_limit_suffix(i) != NULL; i++)
		json_text(j, NULL, param_limit_suffix(i));
	json_close(j, ']');
	json_close(j, '}');
}

int run_list_end(struct run_list *l, const char *kinds, struct err *err) {
	if (l->rc < 0)
		return err_set(err, l->rc, "list: %s", l->why.msg);
	if (l->kind == NULL && l->nearest[0] != '\0')
		return err_set(err, -EINVAL, "list: nothing is called '%s'; did you mean '%s'?",
			l->asked, l->nearest);
	if (l->kind == NULL)
		return err_set(err, -EINVAL, "list: '%s' is neither one of %s nor the name of one",
			l->asked, kinds);
	if (l->as_json) {
		json_close(&l->json, '}');
		json_end(&l->json);
	}
	return 0;
}
