// SPDX-License-Identifier: BSD-3-Clause
// Reads files with the rate of a link over time. Lines that begin with # and empty lines are left
// out.
//
// mahimahi (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015;
// mm-link(1)): a line has a whole number, the time at which a packet may leave, in ms or in a given
// unit. Times never fall; a time that is written twice is two packets. A round ends with the last
// time.
//
// theaterq (TheaterQ's SIMPLE format, arXiv 2510.27057): a line has KEEP,LATENCY,RATE,LOSS,LIMIT:
// how long it holds in us, delay in ns, rate in bit/s, loss as a share of 2^32 - 1, limit of the
// queue in packets. Any of them may have a unit instead, as in a config:
// 100ms,20ms,10Mbit,0.1%,1000. As TheaterQ does, lines that do not begin with a digit are left out.
// Where we differ: a rate of 0 is a link that is down, and TheaterQ's is one without a rate.
#include "switch/stage/trace_file.h"

#include "common/base/ns.h"
#include "common/base/rng.h"
#include "common/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_NS (UINT64_C(1000000) * NS_PER_S)
#define RATE_MIN_BPS 1000.0
#define RATE_MAX_BPS 1e12
#define DELAY_MAX_NS 60e9
#define LIMIT_MAX_PKTS 1e9
#define COLUMNS 5
#define LINE_SIZE 256

struct reader {
	const char *path;
	const char *at; // the rest of the text
	uint32_t line;
	char text[LINE_SIZE]; // of this line
	struct err *err;
};

__attribute__((format(printf, 2, 3))) static int line_error(
	const struct reader *r, const char *fmt, ...) {
	char why[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return err_set(r->err, -EINVAL, "%s:%u: %s", r->path, r->line, why);
}

// The next line with something on it, without blanks around it. 1; 0: there is none.
static int next_line(struct reader *r) {
	while (*r->at != '\0') {
		const char *from = r->at, *end = from + strcspn(from, "\n");

		r->at = *end == '\n' ? end + 1 : end;
		r->line++;
		while (from < end && isspace((unsigned char)*from))
			from++;
		while (end > from && isspace((unsigned char)end[-1]))
			end--;
		if (from == end || *from == '#')
			continue;
		if (end - from >= LINE_SIZE)
			return line_error(r, "longer than %d characters", LINE_SIZE - 1);
		memcpy(r->text, from, (size_t)(end - from));
		r->text[end - from] = '\0';
		return 1;
	}
	return 0;
}

static bool whole_number(const char *text, uint64_t *value) {
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

// Room for one more of `size` bytes; NULL: there is no memory.
static void *grown(void *array, size_t count, size_t *room, size_t size) {
	if (count < *room)
		return array;
	*room = *room == 0 ? 1024 : 2 * *room;
	return reallocarray(array, *room, size);
}

static int mahimahi_line(
	const struct reader *r, uint64_t unit_ns, uint64_t last_ns, uint64_t *at_ns) {
	uint64_t number;

	if (!whole_number(r->text, &number))
		return line_error(r, "'%.40s' is not a time: a line has one whole number", r->text);
	if (number > TIME_MAX_NS / unit_ns)
		return line_error(r, "%.40s is later than 10^6 s", r->text);
	*at_ns = number * unit_ns;
	return *at_ns >= last_ns ? 0 : line_error(r, "times never fall, and this one does");
}

static int read_mahimahi(struct trace_file *t, struct reader *r, uint64_t unit_ns) {
	size_t room = 0;
	uint64_t at_ns = 0;
	int rc;

	while ((rc = next_line(r)) > 0) {
		uint64_t *more = grown(t->at_ns, t->count, &room, sizeof(*more));

		if (more == NULL)
			return err_set(r->err, -ENOMEM, "%s: no memory for it", r->path);
		t->at_ns = more;
		if ((rc = mahimahi_line(r, unit_ns, at_ns, &at_ns)) < 0)
			return rc;
		t->at_ns[t->count++] = at_ns;
	}
	t->period_ns = at_ns;
	if (rc == 0 && at_ns == 0)
		return err_set(r->err, -EINVAL, "%s: %s", r->path,
			t->count == 0 ? "no times in it" : "all times are 0");
	return rc;
}

// A column as a number in the base of its unit.
struct column {
	const char *name;
	enum unit unit;
	double bare; // a number without a unit is in so many of the base
	double max;
};
static const struct column columns[COLUMNS] = {
	{"KEEP", UNIT_TIME_NS, 1e3, (double)TIME_MAX_NS},
	{"LATENCY", UNIT_TIME_NS, 1, DELAY_MAX_NS},
	{"RATE", UNIT_RATE_BPS, 1, RATE_MAX_BPS},
	{"LOSS", UNIT_RATIO, 1.0 / UINT32_MAX, 1},
	{"LIMIT", UNIT_NONE, 1, LIMIT_MAX_PKTS},
};

static int column_read(
	const struct reader *r, const struct column *c, const char *text, double *value) {
	uint64_t number;

	if (whole_number(text, &number))
		*value = (double)number * c->bare;
	else if (c->unit == UNIT_NONE || unit_parse(text, c->unit, value) < 0)
		return line_error(r, "%s: '%.40s' is not a number%s%s", c->name, text,
			c->unit != UNIT_NONE ? " or " : "",
			c->unit != UNIT_NONE ? unit_example(c->unit) : "");
	if (!(*value >= 0 && *value <= c->max))
		return line_error(r, "%s: %.40s is out of range", c->name, text);
	return 0;
}

static int theaterq_line(struct reader *r, struct trace_step *step) {
	double value[COLUMNS];
	char *rest = r->text;
	int count = 1, rc;

	for (const char *s = r->text; *s != '\0'; s++)
		count += *s == ',';
	if (count != COLUMNS)
		return line_error(
			r, "%d columns, not the five KEEP,LATENCY,RATE,LOSS,LIMIT", count);
	for (int i = 0; i < COLUMNS; i++) {
		char *text = strsep(&rest, ",");

		while (isspace((unsigned char)*text))
			text++;
		if ((rc = column_read(r, &columns[i], text, &value[i])) < 0)
			return rc;
	}
	if (value[0] < 1)
		return line_error(r, "KEEP: a step that lasts no time");
	if (value[2] > 0 && value[2] < RATE_MIN_BPS)
		return line_error(r, "RATE: not 0 and below 1kbit");
	*step = (struct trace_step){
		.at_ns = (uint64_t)(value[0] + 0.5),
		.rate_bps = (uint64_t)(value[2] + 0.5),
		.delay_ns = (uint64_t)(value[1] + 0.5),
		.loss = rng_threshold(value[3]),
		.limit_pkts = (uint64_t)value[4],
	};
	return 0;
}

static int read_theaterq(struct trace_file *t, struct reader *r) {
	bool rate = false;
	size_t room = 0;
	int rc;

	while ((rc = next_line(r)) > 0) {
		struct trace_step step, *more;

		if (!isdigit((unsigned char)r->text[0]))
			continue;
		if ((rc = theaterq_line(r, &step)) < 0)
			return rc;
		more = grown(t->step, t->count, &room, sizeof(*more));
		if (more == NULL)
			return err_set(r->err, -ENOMEM, "%s: no memory for it", r->path);
		t->step = more;
		t->period_ns += step.at_ns;
		if (t->period_ns > TIME_MAX_NS)
			return line_error(r, "later than 10^6 s");
		step.at_ns = t->period_ns;
		t->step[t->count++] = step;
		rate |= step.rate_bps > 0;
	}
	if (rc == 0 && !rate)
		return err_set(r->err, -EINVAL, "%s: %s", r->path,
			t->count == 0 ? "no steps in it" : "no step has a rate");
	return rc;
}

int trace_file_read(struct trace_file *t, enum trace_format format, uint64_t unit_ns,
	const char *path, const char *text, struct err *err) {
	struct reader r = {.path = path, .at = text, .err = err};
	int rc;

	*t = (struct trace_file){0};
	rc = format == TRACE_MAHIMAHI ? read_mahimahi(t, &r, unit_ns) : read_theaterq(t, &r);
	if (rc < 0)
		trace_file_free(t);
	return rc;
}

void trace_file_free(struct trace_file *t) {
	free(t->step);
	free(t->at_ns);
	*t = (struct trace_file){0};
}
