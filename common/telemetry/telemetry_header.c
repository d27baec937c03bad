// SPDX-License-Identifier: BSD-3-Clause
// The header page of a ring or a file with its schema, made from the lists in schema.h.
#include "common/telemetry/telemetry_header.h"

#include <string.h>
#include <unistd.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little endian");

#define VALUE_ROW_(constant, number, name, meaning) {name, number},
#define VALUES_(enumeration, LIST)                                                                 \
	static const struct tel_value values_##enumeration[] = {LIST(VALUE_ROW_){NULL, 0}};
TEL_ENUMS(VALUES_)

static const struct {
	const char *name;
	const struct tel_value *values;
} enums[] = {
#define ENUM_ROW_(enumeration, LIST) {#enumeration, values_##enumeration},
	TEL_ENUMS(ENUM_ROW_)};

#define FIELD_ROW_(ctype, dtype, name, unit, meaning)                                              \
	{#name, dtype, unit, meaning, sizeof(ctype), false},
#define NULLABLE_ROW_(ctype, dtype, name, unit, meaning)                                           \
	{#name, dtype, unit, meaning, sizeof(ctype), true},
// Without padding a field's offset is the sum of the sizes before it.
#define FIELDS_(stream, STREAM)                                                                    \
	static const struct tel_field fields_##stream[] = {TEL_##STREAM(FIELD_ROW_, NULLABLE_ROW_)};
TEL_STREAMS(FIELDS_)

static const struct {
	const char *name;
	const struct tel_field *fields;
	size_t field_count;
	uint32_t record_size;
} streams[] = {
#define STREAM_ROW_(stream, STREAM)                                                                \
	{#stream, fields_##stream, sizeof(fields_##stream) / sizeof(fields_##stream[0]),           \
		sizeof(struct tel_##stream)},
	TEL_STREAMS(STREAM_ROW_)};

const char *tel_stream_name(enum tel_stream s) {
	return streams[s].name;
}

const char *tel_stream_summary(enum tel_stream s) {
	static const char *const summaries[TEL_STREAM_COUNT] = {
		[TEL_STREAM_PACKETS] =
			"each packet at a link and each drop (level 3; 2: some flows)",
		[TEL_STREAM_CC] =
			"a flow's congestion control after each ACK (level 3; 2: some flows)",
		[TEL_STREAM_FLOWS] = "each flow that opens, ends or is still open (level 1)",
		[TEL_STREAM_INTERVAL] = "each flow in each interval (level 1)",
		[TEL_STREAM_LINKS] = "each link in each interval (level 1)",
		[TEL_STREAM_EVENTS] = "rare events: window reductions, changes (level 1)",
		[TEL_STREAM_ARRIVALS] = "all that enters a path (arrivals: yes), for weir replay",
		[TEL_STREAM_CAPTURED] = "capture: each direction of each TCP connection",
		[TEL_STREAM_LOSSES] = "capture: a direction's losses",
		[TEL_STREAM_DELAYS] = "capture: a direction's times",
		[TEL_STREAM_SEGMENTS] =
			"each segment (captures, segments: yes; level 3; 2: some flows)",
		[TEL_STREAM_TRANSFERS] = "each transfer of a source with a schedule (level 1)",
		[TEL_STREAM_IP_FLOWS] = "guests: each 5-tuple but TCP in each interval (level 1)",
	};

	return summaries[s];
}

size_t tel_field_count(enum tel_stream s) {
	return streams[s].field_count;
}

const struct tel_field *tel_field(enum tel_stream s, size_t i) {
	return &streams[s].fields[i];
}

const struct tel_value *tel_field_values(const struct tel_field *f) {
	for (size_t i = 0; i < sizeof(enums) / sizeof(enums[0]); i++) {
		if (strcmp(enums[i].name, f->unit) == 0)
			return enums[i].values;
	}
	return NULL;
}

uint32_t tel_record_size(enum tel_stream s) {
	return streams[s].record_size;
}

__attribute__((format(printf, 4, 5))) static size_t append(
	char *buf, size_t size, size_t len, const char *fmt, ...) {
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(len < size ? buf + len : NULL, len < size ? size - len : 0, fmt, ap);
	va_end(ap);
	return len + (n > 0 ? (size_t)n : 0);
}

// Appends the names of a field's numbers, if it has any.
static size_t append_values(char *buf, size_t size, size_t len, const struct tel_field *f) {
	const struct tel_value *values = tel_field_values(f);

	for (const struct tel_value *v = values; v != NULL && v->name != NULL; v++)
		len = append(buf, size, len, "%s\"%s\": %u", v == values ? ", \"values\": {" : ", ",
			v->name, v->number);
	return values != NULL ? append(buf, size, len, "}") : len;
}

uint32_t tel_observer_number(const struct tel_run *run, enum tel_stream s, const char *name) {
	uint32_t number = 0;

	for (uint32_t i = 0; run != NULL && i < run->observers; i++) {
		if (run->observer[i].stream != s)
			continue;
		if (strcmp(run->observer[i].name, name) == 0)
			return number;
		number++;
	}
	return UINT32_MAX;
}

void tel_observer(struct tel_run *run, enum tel_stream s, const char *name,
	const char *const observed[TEL_OBSERVED]) {
	if (observed[0] == NULL || tel_observer_number(run, s, name) != UINT32_MAX)
		return;
	assert(run->observers < TEL_OBSERVERS_MAX);
	struct tel_observer *o = &run->observer[run->observers++];
	*o = (struct tel_observer){.name = name, .stream = s};
	memcpy(o->observed, observed, sizeof(o->observed));
}

static size_t append_observers(
	char *buf, size_t size, size_t len, const struct tel_run *run, enum tel_stream s) {
	uint32_t number = 0;

	for (const struct tel_observer *o = run->observer; o < run->observer + run->observers;
		o++) {
		if (o->stream != s)
			continue;
		len = append(buf, size, len, "%s{\"number\":%u,\"name\":\"%s\",\"observed\":[",
			number == 0 ? "" : ",", number, o->name);
		number++;
		for (uint32_t i = 0; i < TEL_OBSERVED && o->observed[i] != NULL; i++)
			len = append(buf, size, len, "%s\"%s\"", i == 0 ? "" : ",", o->observed[i]);
		len = append(buf, size, len, "]}");
	}
	return len;
}

size_t tel_schema_json(const struct tel_run *run, enum tel_stream s, char *buf, size_t size) {
	size_t offset = 0;
	size_t len = append(buf, size, 0,
		"{\"stream\": \"%s\", \"record_size\": %u, "
		"\"gap\": \"ts_ns 2^64-1: the next 8 bytes count records lost here\", "
		"\"fields\": [",
		streams[s].name, streams[s].record_size);

	// Without spaces here and in the observers: with the names of all controls' values, a page
	// must hold it.
	for (size_t i = 0; i < streams[s].field_count; i++) {
		const struct tel_field *f = &streams[s].fields[i];
		len = append(buf, size, len,
			"%s{\"name\":\"%s\",\"dtype\":\"%s\",\"offset\":%zu,"
			"\"unit\":\"%s\",\"meaning\":\"%s\"",
			i == 0 ? "" : ",", f->name, f->dtype, offset, f->unit, f->meaning);
		if (f->nullable)
			len = append(buf, size, len, ",\"unknown\":%llu",
				(unsigned long long)UINT64_MAX >> (64 - 8 * f->size));
		len = append_values(buf, size, len, f);
		len = append(buf, size, len, "}");
		offset += f->size;
	}
	len = append(buf, size, len, "], \"observers\": [");
	len = append_observers(buf, size, len, run, s);
	return append(buf, size, len, "]}");
}

void tel_header_fill(struct tel_header *h, enum tel_stream s, const struct tel_run *run) {
	char *schema = (char *)h + TEL_SCHEMA_OFFSET;

	memset(h, 0, TEL_HEADER_SIZE);
	memcpy(h->magic, TEL_MAGIC, sizeof(h->magic));
	h->endian = TEL_ENDIAN;
	h->version = TEL_VERSION;
	h->header_size = TEL_HEADER_SIZE;
	h->record_size = streams[s].record_size;
	h->stream = s;
	h->seed = run->seed;
	h->config_hash = run->config_hash;
	h->virtual_time = run->virtual_time;
	if (!run->virtual_time) {
		h->tsc_hz = run->tsc_hz;
		h->tsc_start = run->tsc_start;
		h->utc_start_ns = run->utc_start_ns;
		h->writer_pid = (uint32_t)getpid();
		memcpy(h->run_id, run->run_id, sizeof(h->run_id));
	}
	h->schema_offset = TEL_SCHEMA_OFFSET;
	h->schema_size =
		(uint32_t)tel_schema_json(run, s, schema, TEL_HEADER_SIZE - TEL_SCHEMA_OFFSET);
	assert(h->schema_size < TEL_HEADER_SIZE - TEL_SCHEMA_OFFSET);
}
