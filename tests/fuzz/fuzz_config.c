// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a config file and its overrides.
//
// The input is YAML up to the first NUL, then overrides, each ended by the next NUL. What loads
// must print, load back and print the same; what does not must say so in one line. A table of every
// type then reads each map of the tree.
#include "common/base/units.h"
#include "common/config/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const law_names[] = {"exact", "linux", NULL};

struct all {
	uint64_t rate_bps, delay_ns, count;
	double loss;
	struct limit limit;
	int law;
	bool ecn;
	char title[PARAM_TEXT_SIZE];
};

static const struct param table[] = {
	{"rate", "1Gbit", "", UNIT_RATE_BPS, PARAM_U64(struct all, rate_bps), 1e3, 1e12},
	{"delay", "0s", "", UNIT_TIME_NS, PARAM_U64(struct all, delay_ns), 0, 1e15},
	{"count", "1", "", UNIT_NONE, PARAM_U64(struct all, count), 0, 0x1p64},
	{"loss", "0%", "", UNIT_RATIO, PARAM_F64(struct all, loss), 0, HUGE_VAL},
	{"limit", "1BDP", "", UNIT_BYTES, PARAM_LIMIT(struct all, limit), 0, 1e15},
	{"law", "exact", "", UNIT_NONE, PARAM_ENUM(struct all, law, law_names)},
	{"ecn", "no", "", UNIT_NONE, PARAM_BOOL(struct all, ecn)},
	{"title", "", "", UNIT_NONE, PARAM_TEXT(struct all, title)},
	PARAM_END,
};
static const struct param also[] = {
	{"paths", NULL, "", UNIT_NONE, PARAM_PATHS("stage")},
	{"flows", NULL, "", UNIT_NONE, PARAM_LIST("flows")},
	{"link", NULL, "", UNIT_NONE, PARAM_MAP("link")},
	{"queue", NULL, "", UNIT_NONE, PARAM_PLUGIN("aqm")},
	{"cc", NULL, "", UNIT_NONE, PARAM_PLUGIN("cc")},
	PARAM_END,
};

// Kept in every build: an assert() may be compiled out.
static void check(bool holds) {
	if (!holds)
		abort();
}

static void check_sentence(const struct err *err) {
	check(err->msg[0] != '\0');
}

static char *print(const struct config *c, size_t *size) {
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	check(out != NULL);
	config_print(c, out);
	fclose(out);
	return text;
}

static void check_print(const struct config *c) {
	size_t size, second_size;
	struct err err = {""};
	char *text = print(c, &size);
	// Indentation may take what loaded beyond the size a file may have, not this size.
	struct config *back = config_parse("printed", text, size, &err);

	check(back != NULL);
	char *second = print(back, &second_size);
	check(size == second_size && memcmp(text, second, size) == 0);
	config_free(back);
	free(second);
	free(text);
}

static void check_scalar(const char *text) {
	char formatted[64];
	double value, back;

	for (enum unit u = UNIT_NONE; u <= UNIT_RATIO; u++) {
		if (unit_parse(text, u, &value) < 0)
			continue;
		check(isfinite(value) && value >= 0);
		unit_format(value, u, formatted, sizeof(formatted));
		check(unit_parse(formatted, u, &back) == 0 && back >= value && back <= value);
	}
}

static void check_params(struct config_node *map) {
	struct all a = {0}, b = {0};
	struct err err = {""};
	char text[PARAM_TEXT_SIZE];

	if (config_params(map, "section", table, also, &a, &err) < 0) {
		check_sentence(&err);
		return;
	}
	// What was read prints so that it reads the same; times above 2^53 ns are rounded.
	for (const struct param *p = table; p->name != NULL; p++) {
		param_get(p, &a, text, sizeof(text));
		check(param_set(p, &b, text, &err) == 0);
	}
	check(a.count == b.count && a.law == b.law && a.ecn == b.ecn);
	check(a.limit.kind == b.limit.kind && strcmp(a.title, b.title) == 0);
}

static void visit(struct config_node *n) {
	struct config_node *params;
	struct err err = {""};
	const char *name;

	check(config_place(n)[0] != '\0');
	if (config_text(n) != NULL)
		check_scalar(config_text(n));
	for (size_t i = 0; i < config_count(n); i++)
		visit(config_at(n, i));
	if (config_kind(n) == CONFIG_MAP && config_count(n) != 1)
		check_params(n);
	else if (config_plugin(n, "plug-in", &name, &params, &err) < 0)
		check_sentence(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct err err = {""};
	char *text = calloc(1, size + 1); // with the NUL that ends the last override

	check(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	size_t yaml = strlen(text);
	struct config *c = config_parse("fuzz.yaml", text, yaml, &err);
	if (c == NULL) {
		check_sentence(&err);
		free(text);
		return 0;
	}
	check_print(c);
	for (size_t at = yaml + 1; at < size; at += strlen(text + at) + 1) {
		if (config_override(c, text + at, &err) < 0)
			check_sentence(&err);
	}
	check_print(c);
	if (config_unused(c, &err) < 0)
		check_sentence(&err);
	visit(config_root(c));
	check(config_unused(c, &err) == 0);
	config_free(c);
	free(text);
	return 0;
}
