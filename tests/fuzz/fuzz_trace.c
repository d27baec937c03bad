// SPDX-License-Identifier: BSD-3-Clause
// Any text as a file of steps, or, if its first byte is `m`, behind it as one of mahimahi's. Of
// what is read, times rise (mahimahi's: never fall) to the end of the round; what is not has a
// sentence.
#include "common/base/ns.h"
#include "switch/stage/trace_file.h"

#include "fuzz.h"

#include <stdbool.h>

static void steps_hold(const struct trace_file *t) {
	uint64_t before_ns = 0;

	for (size_t i = 0; i < t->count; i++) {
		NEED(t->step[i].at_ns > before_ns);
		before_ns = t->step[i].at_ns;
	}
	NEED(before_ns == t->period_ns);
}

static void times_hold(const struct trace_file *t) {
	for (size_t i = 1; i < t->count; i++)
		NEED(t->at_ns[i] >= t->at_ns[i - 1]);
	NEED(t->at_ns[t->count - 1] == t->period_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	bool mahimahi = size > 0 && data[0] == 'm';
	struct trace_file t;
	struct err err = {""};
	char *text = malloc(size + 1);

	NEED(text != NULL);
	memcpy(text, data + mahimahi, size - mahimahi);
	text[size - mahimahi] = '\0';
	if (trace_file_read(
		    &t, mahimahi ? TRACE_MAHIMAHI : TRACE_STEPS, NS_PER_MS, "fuzz", text, &err)
		== 0) {
		NEED(t.count > 0 && t.period_ns > 0);
		(mahimahi ? times_hold : steps_hold)(&t);
		trace_file_free(&t);
	} else {
		NEED(err.msg[0] != '\0' && strchr(err.msg, '\n') == NULL);
	}
	free(text);
	return 0;
}
