// SPDX-License-Identifier: BSD-3-Clause
// Typed parameters: text into fields and back, checked by the table.
#include "common/base/param.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *no, *yes;
} bool_words[] = {{"no", "yes"}, {"false", "true"}, {"off", "on"}};

static const struct {
	const char *text;
	enum limit_kind kind;
} limit_suffixes[] = {{"pkt", LIMIT_PACKETS}, {"p", LIMIT_PACKETS}, {"BDP", LIMIT_BDP},
	{"pkts", LIMIT_PACKETS}, {"packet", LIMIT_PACKETS}, {"packets", LIMIT_PACKETS},
	{"bdp", LIMIT_BDP}};
#define LIMIT_SUFFIXES_USUAL 3 // the others are rewritten

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *param_limit_suffix(size_t i) {
	return i < COUNT(limit_suffixes) ? limit_suffixes[i].text : NULL;
}

const char *param_bool_word(size_t i) {
	if (i >= 2 * COUNT(bool_words))
		return NULL;
	return i % 2 == 0 ? bool_words[i / 2].no : bool_words[i / 2].yes;
}

const struct param *param_find(const struct param *table, const char *name) {
	for (const struct param *p = table; p->name != NULL; p++) {
		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

static int range_error(const struct param *p, const char *text, const char *min, const char *max,
	struct err *err) {
	if (isinf(p->max))
		return err_set(err, -ERANGE, "%s: %.80s is less than %s", p->name, text, min);
	return err_set(err, -ERANGE, "%s: %.80s is not %sin [%s, %s]", p->name, text,
		p->zero ? "0 or " : "", min, max);
}

bool param_in_range(const struct param *p, double v) {
	return (v >= p->min && v <= p->max) || (p->zero && v >= 0 && v <= 0);
}

static int check_range(const struct param *p, double v, const char *text, struct err *err) {
	char min[64], max[64];

	if (param_in_range(p, v))
		return 0;
	unit_format(p->min, p->unit, min, sizeof(min));
	unit_format(p->max, p->unit, max, sizeof(max));
	return range_error(p, text, min, max, err);
}

static int number_parse(const struct param *p, const char *text, double *v, struct err *err) {
	if (p->seconds && unit_parse(text, UNIT_NONE, v) == 0) {
		*v *= 1e9;
		return 0;
	}
	if (unit_parse(text, p->unit, v) < 0)
		return err_set(err, -EINVAL, "%s: '%.80s' is not %s", p->name, text,
			unit_example(p->unit));
	return 0;
}

static int set_f64(const struct param *p, double *field, const char *text, struct err *err) {
	double v;
	int rc = number_parse(p, text, &v, err);

	if (rc == 0)
		rc = check_range(p, v, text, err);
	if (rc == 0)
		*field = v;
	return rc;
}

// All 64 bits of a plain integer (a seed), which a double cannot hold.
static bool integer_parse(const char *text, uint64_t *v) {
	char *end;

	for (const char *s = text; *s != '\0'; s++) {
		if (!isdigit((unsigned char)*s))
			return false;
	}
	errno = 0;
	*v = strtoull(text, &end, 10);
	return errno == 0 && end != text;
}

// "no, linux": all of them, as an error lists them.
static void choices_list(const struct param *p, char *all, size_t size) {
	size_t used = 0;

	all[0] = '\0';
	for (int i = 0; p->choices[i] != NULL; i++) {
		int n = snprintf(
			all + used, size - used, "%s%s", i == 0 ? "" : ", ", p->choices[i]);
		used = n < (int)(size - used) ? used + (size_t)n : size - 1;
	}
}

// The number that a word stands for; -1: it is none of the choices.
static int choice_find(const struct param *p, const char *text) {
	for (int i = 0; p->choices != NULL && p->choices[i] != NULL; i++) {
		if (strcasecmp(p->choices[i], text) == 0)
			return i;
	}
	return -1;
}

static int set_u64(const struct param *p, uint64_t *field, const char *text, struct err *err) {
	int word = choice_find(p, text), rc;
	char all[256];
	uint64_t exact;
	double v;

	if (word >= 0) {
		*field = (uint64_t)word;
		return 0;
	}
	if (p->choices != NULL && unit_parse(text, p->unit, &v) < 0) {
		choices_list(p, all, sizeof(all));
		return err_set(err, -EINVAL, "%s: '%.80s' is not one of %s, nor %s", p->name, text,
			all, unit_example(p->unit));
	}
	rc = number_parse(p, text, &v, err);
	if (rc < 0)
		return rc;
	double whole = rint(v);
	bool fraction = whole < v || whole > v;
	if (fraction && (p->unit == UNIT_NONE || p->unit == UNIT_RATIO))
		return err_set(err, -EINVAL, "%s: '%.80s' is not a whole number", p->name, text);
	if (v > 0 && whole <= 0)
		return err_set(
			err, -ERANGE, "%s: %.80s is too small to be told from 0", p->name, text);
	rc = check_range(p, whole, text, err);
	if (rc < 0)
		return rc;
	if (p->unit == UNIT_NONE && integer_parse(text, &exact))
		*field = exact;
	else if (whole < 0x1p64)
		*field = (uint64_t)whole;
	else
		return err_set(err, -ERANGE, "%s: %.80s does not fit in 64 bits", p->name, text);
	return 0;
}

static int set_bool(const struct param *p, bool *field, const char *text, struct err *err) {
	for (size_t i = 0; i < COUNT(bool_words); i++) {
		bool yes = strcasecmp(text, bool_words[i].yes) == 0;
		if (yes || strcasecmp(text, bool_words[i].no) == 0) {
			*field = yes;
			return 0;
		}
	}
	return err_set(err, -EINVAL, "%s: '%.80s' is neither yes nor no", p->name, text);
}

static int set_enum(const struct param *p, int *field, const char *text, struct err *err) {
	int word = choice_find(p, text);
	char all[256];

	if (word >= 0) {
		*field = word;
		return 0;
	}
	choices_list(p, all, sizeof(all));
	return err_set(err, -EINVAL, "%s: '%.80s' is not one of %s", p->name, text, all);
}

static int set_text(const struct param *p, char *field, const char *text, struct err *err) {
	size_t len = strlen(text);

	if (len >= PARAM_TEXT_SIZE)
		return err_set(err, -ERANGE, "%s: %zu bytes are more than the %d a text may have",
			p->name, len, PARAM_TEXT_SIZE - 1);
	memset(field, 0, PARAM_TEXT_SIZE);
	memcpy(field, text, len + 1);
	return 0;
}

// "12pkt" with suffix "pkt": 12. False if the text has another suffix, or no number before it.
static bool suffixed_parse(const char *text, const char *suffix, double *v) {
	char number[128];
	size_t len = strlen(text), suffix_len = strlen(suffix);

	if (len <= suffix_len || len - suffix_len >= sizeof(number)
		|| strcmp(text + len - suffix_len, suffix) != 0)
		return false;
	len -= suffix_len;
	if (len > 1 && text[len - 1] == ' ')
		len--;
	snprintf(number, sizeof(number), "%.*s", (int)len, text);
	return unit_parse(number, UNIT_NONE, v) == 0;
}

static bool limit_parse(const char *text, struct limit *limit) {
	double v;

	for (size_t i = 0; i < COUNT(limit_suffixes); i++) {
		if (suffixed_parse(text, limit_suffixes[i].text, &v)) {
			*limit = (struct limit){limit_suffixes[i].kind, v};
			return true;
		}
	}
	if (unit_parse(text, UNIT_NONE, &v) == 0)
		return false; // no unit
	else if (unit_parse(text, UNIT_BYTES, &v) == 0)
		*limit = (struct limit){LIMIT_BYTES, v};
	else if (unit_parse(text, UNIT_TIME_NS, &v) == 0)
		*limit = (struct limit){LIMIT_TIME, v};
	else
		return false;
	return true;
}

static void limit_format(const struct limit *limit, char *text, size_t size) {
	static const enum unit units[] = {[LIMIT_BYTES] = UNIT_BYTES, [LIMIT_TIME] = UNIT_TIME_NS};
	char number[32];

	if (limit->kind == LIMIT_BYTES || limit->kind == LIMIT_TIME) {
		unit_format(limit->value, units[limit->kind], text, size);
		return;
	}
	unit_format(limit->value, UNIT_NONE, number, sizeof(number));
	snprintf(text, size, "%s%s", number, limit->kind == LIMIT_BDP ? "BDP" : "pkt");
}

static int set_limit(
	const struct param *p, struct limit *field, const char *text, struct err *err) {
	struct limit limit;
	char min[64], max[64];

	if (!limit_parse(text, &limit))
		return err_set(
			err, -EINVAL, "%s: '%.80s' is not " PARAM_LIMIT_EXAMPLE, p->name, text);
	if (limit.kind == LIMIT_PACKETS && floor(limit.value) < limit.value)
		return err_set(err, -EINVAL, "%s: '%.80s' is not a whole number of packets",
			p->name, text);
	if (limit.kind == LIMIT_BDP) {
		if (limit.value <= 0 && p->min > 0)
			return err_set(err, -ERANGE, "%s: %.80s is not above 0BDP", p->name, text);
	} else if (limit.value < p->min || limit.value > p->max) {
		limit_format(&(struct limit){limit.kind, p->min}, min, sizeof(min));
		limit_format(&(struct limit){limit.kind, p->max}, max, sizeof(max));
		return range_error(p, text, min, max, err);
	}
	*field = limit;
	return 0;
}

int param_set(const struct param *p, void *obj, const char *value, struct err *err) {
	void *field = (char *)obj + p->offset;

	switch (p->type) {
	case PARAM_TYPE_U64:
		return set_u64(p, field, value, err);
	case PARAM_TYPE_F64:
		return set_f64(p, field, value, err);
	case PARAM_TYPE_BOOL:
		return set_bool(p, field, value, err);
	case PARAM_TYPE_ENUM:
		return set_enum(p, field, value, err);
	case PARAM_TYPE_TEXT:
		return set_text(p, field, value, err);
	case PARAM_TYPE_LIMIT:
		return set_limit(p, field, value, err);
	case PARAM_TYPE_FILE: // a config reads it (config_read_content)
		*(struct param_file *)field = (struct param_file){0};
		return value[0] == '\0'
			? 0
			: err_set(err, -EINVAL, "%s: a file needs a config", p->name);
	case PARAM_TYPE_SCALAR:
	case PARAM_TYPE_PLUGIN:
	case PARAM_TYPE_MAP:
	case PARAM_TYPE_LIST:
	case PARAM_TYPE_PATHS:
	case PARAM_TYPE_NAMES:
		break;
	}
	assert(false);
	return -EINVAL;
}

int param_defaults(const struct param *table, void *obj, struct err *err) {
	int rc;

	for (const struct param *p = table; p->name != NULL; p++) {
		if (p->def != NULL && (rc = param_set(p, obj, p->def, err)) < 0)
			return rc;
	}
	return 0;
}

bool param_is_other(const struct param *p, const char *text) {
	double v;
	int word = choice_find(p, text);

	if (word >= 0)
		return strcmp(p->choices[word], text) != 0;
	for (size_t i = LIMIT_SUFFIXES_USUAL;
		p->type == PARAM_TYPE_LIMIT && i < COUNT(limit_suffixes); i++) {
		if (suffixed_parse(text, limit_suffixes[i].text, &v))
			return true;
	}
	if (p->type == PARAM_TYPE_LIMIT)
		return unit_is_other(text, UNIT_BYTES) || unit_is_other(text, UNIT_TIME_NS);
	if (p->seconds && unit_parse(text, UNIT_NONE, &v) == 0)
		return v > 0;
	return (p->type == PARAM_TYPE_U64 || p->type == PARAM_TYPE_F64)
		&& unit_is_other(text, p->unit);
}

// The word that stands for a number; NULL: none does.
static const char *choice_word(const struct param *p, uint64_t value) {
	uint64_t i = 0;

	while (p->choices != NULL && p->choices[i] != NULL && i < value)
		i++;
	return p->choices != NULL && i == value ? p->choices[i] : NULL;
}

void param_get(const struct param *p, const void *obj, char *text, size_t size) {
	const void *field = (const char *)obj + p->offset;
	const char *word;

	switch (p->type) {
	case PARAM_TYPE_U64:
		word = choice_word(p, *(const uint64_t *)field);
		if (word != NULL)
			snprintf(text, size, "%s", word);
		else if (p->unit == UNIT_NONE)
			snprintf(text, size, "%" PRIu64, *(const uint64_t *)field);
		else
			unit_format((double)*(const uint64_t *)field, p->unit, text, size);
		return;
	case PARAM_TYPE_F64:
		unit_format(*(const double *)field, p->unit, text, size);
		return;
	case PARAM_TYPE_BOOL:
		snprintf(text, size, "%s", *(const bool *)field ? "yes" : "no");
		return;
	case PARAM_TYPE_ENUM:
		snprintf(text, size, "%s", p->choices[*(const int *)field]);
		return;
	case PARAM_TYPE_TEXT:
		snprintf(text, size, "%s", (const char *)field);
		return;
	case PARAM_TYPE_LIMIT:
		limit_format(field, text, size);
		return;
	case PARAM_TYPE_SCALAR:
	case PARAM_TYPE_PLUGIN:
	case PARAM_TYPE_MAP:
	case PARAM_TYPE_LIST:
	case PARAM_TYPE_PATHS:
	case PARAM_TYPE_NAMES:
	case PARAM_TYPE_FILE:
		break;
	}
	assert(false);
}
