// SPDX-License-Identifier: BSD-3-Clause
// Reads files with the rate of a link over time. Lines that begin with # and empty lines are left
// out.
//
// mahimahi (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015;
// mm-link(1)): a line has a whole number, the time at which a packet may leave, in ms or in a given
// unit. Times never fall; a time that is written twice is two packets. A round ends with the last
// time.
//
// steps, with a header (what `weir trace import` writes): columns by name, in any order.
//
//	at_us,rate_bps,delay_us,loss,limit_pkts
//	0,40000000,20000,0,500
//	2000000,5Mbit,35ms,1%,500
//	2100000
//
// A line holds from its time, at 1 ns or later steps, to that of the next; the last line has only a
// time, when the round ends. The first time is 0. After _ stands the unit of numbers without one: a
// time's, a rate's. at and rate are required; what is left out is 0. A rate of 0: the link is down.
//
// steps, without that header (TheaterQ's SIMPLE format, arXiv 2510.27057):
// KEEP,LATENCY,RATE,LOSS,LIMIT: how long it holds in us, delay in ns, rate in bit/s, loss as a
// share of 2^32 - 1, limit of the queue in packets. Any of them may have a unit instead, as in a
// config: 100ms,20ms,10Mbit,0.1%,1000. As TheaterQ does, lines that do not begin with a digit are
// left out. Where we differ: a rate of 0 is a link that is down, and TheaterQ's is one without a
// rate.
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

// What a step has. In a header `_` and a unit follow the name of a time or of a rate.
enum field { TIME, DELAY, RATE, LOSS, LIMIT, FIELDS };
static const struct {
	const char *name;
	enum unit unit;
	double max;
} fields[FIELDS] = {
	[TIME] = {"at", UNIT_TIME_NS, (double)TIME_MAX_NS},
	[DELAY] = {"delay", UNIT_TIME_NS, DELAY_MAX_NS},
	[RATE] = {"rate", UNIT_RATE_BPS, RATE_MAX_BPS},
	[LOSS] = {"loss", UNIT_RATIO, 1},
	[LIMIT] = {"limit_pkts", UNIT_NONE, LIMIT_MAX_PKTS},
};

struct column {
	char name[16];
	enum field field;
	double bare; // a number without a unit is in so many of the base
};
struct layout {
	bool begins; // times are those at which steps begin, and not how long they hold
	int count;
	struct column column[FIELDS];
};
static const struct layout theaterq = {
	.count = FIELDS,
	.column = {{"KEEP", TIME, 1e3}, {"LATENCY", DELAY, 1}, {"RATE", RATE, 1},
		{"LOSS", LOSS, 1.0 / UINT32_MAX}, {"LIMIT", LIMIT, 1}},
};

static char *next_column(char **rest) {
	char *text = strsep(rest, ",");

	while (text != NULL && isspace((unsigned char)*text))
		text++;
	return text;
}

// Whether the text names a column of this field; then *bare is that of its unit.
static bool field_named(enum field f, const char *text, double *bare) {
	size_t len = strlen(fields[f].name);
	enum unit unit = fields[f].unit;
	char one[LINE_SIZE + 1];

	*bare = 1;
	if (unit != UNIT_TIME_NS && unit != UNIT_RATE_BPS)
		return strcmp(text, fields[f].name) == 0;
	if (strncmp(text, fields[f].name, len) != 0 || text[len] != '_')
		return false;
	snprintf(one, sizeof(one), "1%s", text + len + 1);
	return unit_parse(one, unit, bare) == 0;
}

static int header_column(const struct reader *r, struct layout *l, const char *text) {
	struct column c;
	int f = 0;

	while (f < FIELDS && !field_named((enum field)f, text, &c.bare))
		f++;
	if (f == FIELDS)
		return line_error(r,
			"'%.40s' is not a column: there are at_us, rate_bps, delay_us, loss, "
			"limit_pkts",
			text);
	for (int i = 0; i < l->count; i++) {
		if (l->column[i].field == (enum field)f)
			return line_error(r, "two columns are %s", fields[f].name);
	}
	c.field = (enum field)f;
	snprintf(c.name, sizeof(c.name), "%s", text);
	l->column[l->count++] = c; // there is room for one of each field
	return 0;
}

// A line that does not begin with a digit: the names of columns, or nothing.
static int steps_header(struct reader *r, struct layout *l, bool first) {
	char *rest = r->text, *text;
	bool rate = false;
	int rc = 0;

	if (strstr(r->text, "at_") == NULL)
		return 0;
	if (!first)
		return line_error(r, "a header behind the first step");
	*l = (struct layout){.begins = true};
	while (rc == 0 && (text = next_column(&rest)) != NULL)
		rc = header_column(r, l, text);
	for (int i = 0; i < l->count; i++)
		rate |= l->column[i].field == RATE;
	return rc < 0 || rate ? rc : line_error(r, "no column is a rate, such as rate_bps");
}

static int column_read(
	const struct reader *r, const struct column *c, const char *text, double *value) {
	enum unit unit = fields[c->field].unit;
	uint64_t number;

	if (whole_number(text, &number))
		*value = (double)number * c->bare;
	else if (unit != UNIT_RATIO && unit_parse(text, UNIT_NONE, value) == 0)
		*value *= c->bare;
	else if (unit == UNIT_NONE || unit_parse(text, unit, value) < 0)
		return line_error(r, "%s: '%.40s' is not a number%s%s", c->name, text,
			unit != UNIT_NONE ? " or " : "",
			unit != UNIT_NONE ? unit_example(unit) : "");
	if (!(*value >= 0 && *value <= fields[c->field].max))
		return line_error(r, "%s: %.40s is out of range", c->name, text);
	return 0;
}

static int columns_error(const struct reader *r, const struct layout *l, int count) {
	if (!l->begins)
		return line_error(
			r, "%d columns, not the five KEEP,LATENCY,RATE,LOSS,LIMIT", count);
	return line_error(r, "%d columns, and the header has %d", count, l->count);
}

// The last line: when the round ends.
static int end_line(const struct reader *r, const struct layout *l, struct trace_step *step) {
	double time_ns;
	int at = 0, rc;

	while (l->column[at].field != TIME)
		at++;
	rc = column_read(r, &l->column[at], r->text, &time_ns);
	step->at_ns = rc == 0 ? (uint64_t)(time_ns + 0.5) : 0;
	return rc;
}

// One line as a step whose at_ns is the line's time.
static int step_line(struct reader *r, const struct layout *l, struct trace_step *step) {
	double value[FIELDS] = {0};
	char *rest = r->text;
	int count = 1, rc;

	for (const char *s = r->text; *s != '\0'; s++)
		count += *s == ',';
	if (count != l->count)
		return columns_error(r, l, count);
	for (int i = 0; i < count; i++) {
		const struct column *c = &l->column[i];

		if ((rc = column_read(r, c, next_column(&rest), &value[c->field])) < 0)
			return rc;
	}
	if (value[RATE] > 0 && value[RATE] < RATE_MIN_BPS)
		return line_error(r, "RATE: not 0 and below 1kbit");
	*step = (struct trace_step){
		.at_ns = (uint64_t)(value[TIME] + 0.5),
		.rate_bps = (uint64_t)(value[RATE] + 0.5),
		.delay_ns = (uint64_t)(value[DELAY] + 0.5),
		.loss = rng_threshold(value[LOSS]),
		.limit_pkts = (uint64_t)value[LIMIT],
	};
	return 0;
}

// A step ends where the next line begins, or so long after the one before.
static int step_add(
	struct trace_file *t, const struct reader *r, const struct layout *l, uint64_t time_ns) {
	uint64_t before_ns = t->period_ns;

	t->period_ns = l->begins ? time_ns : before_ns + time_ns;
	if (t->period_ns > TIME_MAX_NS)
		return line_error(r, "later than 10^6 s");
	if (l->begins && t->count == 0)
		return time_ns == 0 ? 0 : line_error(r, "the first time is 0, and this one is not");
	if (t->period_ns > before_ns)
		return 0;
	return l->begins ? line_error(r, "times rise from line to line, and this one does not")
			 : line_error(r, "KEEP: a step that lasts no time");
}

static int read_steps(struct trace_file *t, struct reader *r) {
	struct layout l = theaterq;
	bool rate = false, ended = false;
	size_t room = 0;
	int rc;

	while ((rc = next_line(r)) > 0) {
		struct trace_step step = {0}, *more;

		if (!isdigit((unsigned char)r->text[0])) {
			if ((rc = steps_header(r, &l, t->count == 0)) < 0)
				return rc;
			continue;
		}
		if (ended)
			return line_error(r, "behind the line that has only a time");
		ended = l.begins && strchr(r->text, ',') == NULL;
		if ((rc = ended ? end_line(r, &l, &step) : step_line(r, &l, &step)) < 0
			|| (rc = step_add(t, r, &l, step.at_ns)) < 0)
			return rc;
		if (l.begins && t->count > 0)
			t->step[t->count - 1].at_ns = t->period_ns;
		if (ended)
			continue;
		more = grown(t->step, t->count, &room, sizeof(*more));
		if (more == NULL)
			return err_set(r->err, -ENOMEM, "%s: no memory for it", r->path);
		t->step = more;
		step.at_ns = t->period_ns;
		t->step[t->count++] = step;
		rate |= step.rate_bps > 0;
	}
	if (rc == 0 && !rate)
		return err_set(r->err, -EINVAL, "%s: %s", r->path,
			t->count == 0 ? "no steps in it" : "no step has a rate");
	if (rc == 0 && l.begins && !ended)
		return line_error(
			r, "the last line has only a time, that of the end, and this has more");
	return rc;
}

int trace_file_read(struct trace_file *t, enum trace_format format, uint64_t unit_ns,
	const char *path, const char *text, struct err *err) {
	struct reader r = {.path = path, .at = text, .err = err};
	int rc;

	*t = (struct trace_file){0};
	rc = format == TRACE_MAHIMAHI ? read_mahimahi(t, &r, unit_ns) : read_steps(t, &r);
	if (rc < 0)
		trace_file_free(t);
	return rc;
}

void trace_file_free(struct trace_file *t) {
	free(t->step);
	free(t->at_ns);
	*t = (struct trace_file){0};
}
