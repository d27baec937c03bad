// SPDX-License-Identifier: BSD-3-Clause
// Numbers with units, without rounding errors of decimal fractions.
//
// A number is kept as decimal digits and an exponent; the unit's factor is multiplied into the
// digits, and strtod() then rounds once. So "20ms" is 2e7 and "0.74%" is the double nearest to
// 0.0074, not 0.74 / 100.
#include "common/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DIGITS_MAX 64 // of a number as written
#define FACTOR_DIGITS 13 // of the largest `times` below
#define EXPONENT_MAX 9999

// value = number * times * 10^exponent
struct suffix {
	const char *text;
	uint64_t times;
	int exponent;
};

// unit_format() chooses among all rows of a table; on a tie the first.
static const struct suffix suffixes_none[] = {{"", 1, 0}, {NULL, 0, 0}};
static const struct suffix suffixes_time[] = {{"s", 1, 9}, {"ms", 1, 6}, {"us", 1, 3}, {"ns", 1, 0},
	{"min", 6, 10}, {"h", 36, 11}, {NULL, 0, 0}};
static const struct suffix suffixes_rate[] = {{"bit", 1, 0}, {"kbit", 1, 3}, {"Mbit", 1, 6},
	{"Gbit", 1, 9}, {"Tbit", 1, 12}, {NULL, 0, 0}};
static const struct suffix suffixes_bytes[] = {{"B", 1, 0}, {"kB", 1, 3}, {"MB", 1, 6},
	{"GB", 1, 9}, {"TB", 1, 12}, {"KiB", UINT64_C(1) << 10, 0}, {"MiB", UINT64_C(1) << 20, 0},
	{"GiB", UINT64_C(1) << 30, 0}, {"TiB", UINT64_C(1) << 40, 0}, {NULL, 0, 0}};
static const struct suffix suffixes_ratio[] = {{"%", 1, -2}, {"", 1, 0}, {NULL, 0, 0}};

// What people and other tools write besides: tc ("100mbit"), iperf ("10M"), providers ("50Mbps"). A
// capital B would be bytes.
#define RATE_ALSO(prefix, exponent)                                                                \
	{prefix, 1, exponent}, {prefix "bit", 1, exponent}, {prefix "bits", 1, exponent},          \
		{prefix "bps", 1, exponent}, {prefix "b/s", 1, exponent},                          \
		{prefix "bit/s", 1, exponent}, {                                                   \
		prefix "bits/s", 1, exponent                                                       \
	}
static const struct suffix also_rate[] = {{"bits", 1, 0}, {"bps", 1, 0}, {"b/s", 1, 0},
	{"bit/s", 1, 0}, {"bits/s", 1, 0}, RATE_ALSO("k", 3), RATE_ALSO("K", 3), RATE_ALSO("m", 6),
	RATE_ALSO("M", 6), RATE_ALSO("g", 9), RATE_ALSO("G", 9), RATE_ALSO("t", 12),
	RATE_ALSO("T", 12), {NULL, 0, 0}};
static const struct suffix also_time[] = {{"sec", 1, 9}, {"secs", 1, 9}, {"second", 1, 9},
	{"seconds", 1, 9}, {"msec", 1, 6}, {"msecs", 1, 6}, {"millisecond", 1, 6},
	{"milliseconds", 1, 6}, {"usec", 1, 3}, {"usecs", 1, 3}, {"microsecond", 1, 3},
	{"microseconds", 1, 3}, {"\u00b5s", 1, 3}, {"\u03bcs", 1, 3}, {"nsec", 1, 0},
	{"nsecs", 1, 0}, {"nanosecond", 1, 0}, {"nanoseconds", 1, 0}, {"m", 6, 10}, {"mins", 6, 10},
	{"minute", 6, 10}, {"minutes", 6, 10}, {"hr", 36, 11}, {"hrs", 36, 11}, {"hour", 36, 11},
	{"hours", 36, 11}, {"d", 864, 11}, {"day", 864, 11}, {"days", 864, 11}, {"w", 6048, 11},
	{"week", 6048, 11}, {"weeks", 6048, 11}, {NULL, 0, 0}};

static const struct suffix also_bytes[] = {
	{"byte", 1, 0}, {"bytes", 1, 0}, {"KB", 1, 3}, {NULL, 0, 0}};

static const struct suffix *const also[] = {
	[UNIT_NONE] = NULL,
	[UNIT_TIME_NS] = also_time,
	[UNIT_RATE_BPS] = also_rate,
	[UNIT_BYTES] = also_bytes,
	[UNIT_RATIO] = NULL,
};

static const struct suffix *const suffixes[] = {
	[UNIT_NONE] = suffixes_none,
	[UNIT_TIME_NS] = suffixes_time,
	[UNIT_RATE_BPS] = suffixes_rate,
	[UNIT_BYTES] = suffixes_bytes,
	[UNIT_RATIO] = suffixes_ratio,
};

struct decimal {
	uint8_t digit[DIGITS_MAX + FACTOR_DIGITS];
	int count;
	int exponent; // value = digits * 10^exponent
};

static bool is_digit(char c) {
	return c >= '0' && c <= '9';
}

// Reads "12.5e-3"; returns the rest of the text, or NULL if there is no number.
static const char *decimal_read(const char *s, struct decimal *d) {
	bool point = false;
	int exponent = 0;

	memset(d, 0, sizeof(*d));
	for (; is_digit(*s) || (*s == '.' && !point && is_digit(s[1])); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		if (d->count == DIGITS_MAX)
			return NULL;
		d->digit[d->count++] = (uint8_t)(*s - '0');
		d->exponent -= point;
	}
	if (d->count == 0)
		return NULL;
	if (*s != 'e' && *s != 'E')
		return s;
	const char *e = s + 1;
	bool negative = *e == '-';
	if (*e == '-' || *e == '+')
		e++;
	if (!is_digit(*e))
		return s;
	for (; is_digit(*e); e++) {
		exponent = exponent * 10 + (*e - '0');
		if (exponent > EXPONENT_MAX)
			return NULL;
	}
	d->exponent += negative ? -exponent : exponent;
	return e;
}

static void decimal_multiply(struct decimal *d, uint64_t times) {
	uint64_t carry = 0;
	int extra = times > 1 ? FACTOR_DIGITS : 0;

	memmove(d->digit + extra, d->digit, (size_t)d->count);
	memset(d->digit, 0, (size_t)extra);
	d->count += extra;
	for (int i = d->count - 1; i >= 0; i--) {
		carry += d->digit[i] * times;
		d->digit[i] = (uint8_t)(carry % 10);
		carry /= 10;
	}
}

// The nearest double; -EINVAL if a number other than 0 would become 0 or infinity.
static int decimal_value(const struct decimal *d, double *value) {
	char text[DIGITS_MAX + FACTOR_DIGITS + 16];
	bool zero = true;

	for (int i = 0; i < d->count; i++) {
		text[i] = (char)('0' + d->digit[i]);
		zero = zero && d->digit[i] == 0;
	}
	snprintf(text + d->count, sizeof(text) - (size_t)d->count, "e%d", d->exponent);
	double v = strtod(text, NULL);
	if (!isfinite(v) || (v <= 0) != zero)
		return -EINVAL;
	*value = v;
	return 0;
}

static const struct suffix *suffix_find(const struct suffix *table, const char *text, size_t len) {
	for (const struct suffix *x = table; x != NULL && x->text != NULL; x++) {
		if (strlen(x->text) == len && memcmp(x->text, text, len) == 0)
			return x;
	}
	return NULL;
}

// Reads a number with its unit, of "1h30m" the hour; returns the rest of the text, or NULL if there
// is no such number.
static const char *part_read(const char *text, enum unit unit, double *value) {
	struct decimal d;
	const char *rest = decimal_read(text, &d);

	if (rest == NULL)
		return NULL;
	if (*rest == ' ' && rest[1] != '\0')
		rest++;
	size_t len = unit == UNIT_TIME_NS ? strcspn(rest, " .0123456789") : strlen(rest);
	const struct suffix *x = suffix_find(suffixes[unit], rest, len);
	if (x == NULL)
		x = suffix_find(also[unit], rest, len);
	if (x == NULL)
		return NULL;
	decimal_multiply(&d, x->times);
	d.exponent += x->exponent;
	return decimal_value(&d, value) < 0 ? NULL : rest + len;
}

int unit_parse(const char *text, enum unit unit, double *value) {
	struct decimal d;
	const char *rest = decimal_read(text, &d);
	double sum = 0, part;

	if (rest == NULL)
		return -EINVAL;
	if (*rest == '\0' && unit != UNIT_NONE && unit != UNIT_RATIO) {
		// A number without a unit: bytes, or zero of anything.
		if (decimal_value(&d, &part) < 0 || (part > 0 && unit != UNIT_BYTES))
			return -EINVAL;
		*value = part;
		return 0;
	}
	for (rest = text; rest == text || *rest != '\0'; sum += part) {
		if (rest > text && *rest == ' ')
			rest++;
		rest = part_read(rest, unit, &part);
		if (rest == NULL || !isfinite(sum + part))
			return -EINVAL;
	}
	*value = sum;
	return 0;
}

// The cost of a text for unit_format: of each character, of a fraction, and most of "0.1s" and
// "1e-7".
static size_t text_cost(const char *text) {
	size_t cost = 2 * strlen(text) + (strchr(text, '.') != NULL);

	if ((text[0] == '0' && text[1] == '.') || strpbrk(text, "e") != NULL)
		cost += 64;
	return cost;
}

// "1e-07" -> "1e-7", "1e+20" -> "1e20"
static void exponent_trim(char *text) {
	char *e = strchr(text, 'e');

	if (e == NULL)
		return;
	char *to = e + 1, *from = e + 1;
	if (*from == '-')
		to++;
	from++;
	while (*from == '0' && from[1] != '\0')
		from++;
	memmove(to, from, strlen(from) + 1);
}

void unit_format(double value, enum unit unit, char *text, size_t size) {
	char best[64], trial[64];
	size_t best_cost = SIZE_MAX;
	double back;

	snprintf(best, sizeof(best), "%.17g", value);
	for (const struct suffix *x = suffixes[unit]; x->text != NULL; x++) {
		double number = value / unit_factor(unit, (size_t)(x - suffixes[unit]));
		for (int precision = 1; precision <= 17; precision++) {
			snprintf(trial, sizeof(trial) - 4, "%.*g", precision, number);
			exponent_trim(trial);
			memcpy(trial + strlen(trial), x->text, strlen(x->text) + 1);
			if (unit_parse(trial, unit, &back) < 0 || back < value || back > value)
				continue;
			if (text_cost(trial) < best_cost) {
				best_cost = text_cost(trial);
				memcpy(best, trial, sizeof(best));
			}
			if (strchr(trial, 'e') == NULL)
				break; // more digits would only be longer
		}
	}
	snprintf(text, size, "%s", best);
}

bool unit_is_other(const char *text, enum unit unit) {
	struct decimal d;
	double value;
	const char *suffix = decimal_read(text, &d);

	if (unit_parse(text, unit, &value) < 0 || *suffix == '\0')
		return false;
	suffix += *suffix == ' ';
	return suffix_find(suffixes[unit], suffix, strlen(suffix)) == NULL;
}

const char *unit_suffix(enum unit unit, size_t i) {
	for (size_t k = 0; suffixes[unit][k].text != NULL; k++) {
		if (k == i)
			return suffixes[unit][k].text;
		if (suffixes[unit][k + 1].text == NULL && also[unit] != NULL)
			return also[unit][i - k - 1].text;
	}
	return NULL;
}

double unit_factor(enum unit unit, size_t i) {
	char one[32];
	double factor = 0;

	snprintf(one, sizeof(one), "1%s", unit_suffix(unit, i));
	unit_parse(one, unit, &factor);
	return factor;
}

const char *unit_example(enum unit unit) {
	static const char *const examples[] = {
		[UNIT_NONE] = "a number such as 64",
		[UNIT_TIME_NS] = "a time such as 20ms",
		[UNIT_RATE_BPS] = "a rate such as 10Gbit",
		[UNIT_BYTES] = "a size such as 375MB",
		[UNIT_RATIO] = "a ratio such as 0.1%",
	};

	return examples[unit];
}
