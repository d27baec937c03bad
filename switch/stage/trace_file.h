// SPDX-License-Identifier: BSD-3-Clause
// Files with the rate of a link over time. trace_file.c has the formats.
#pragma once
#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum trace_format { TRACE_MAHIMAHI, TRACE_STEPS };

// From the one before, or the start of a round, to at_ns: rate and more (steps); or at at_ns a
// packet may leave (mahimahi, which has nothing else).
struct trace_step {
	uint64_t at_ns;
	uint64_t rate_bps; // 0: down
	uint64_t delay_ns;
	uint64_t loss; // rng_threshold of the share that is lost
	uint64_t limit_pkts; // 0: none
};

struct trace_file {
	struct trace_step *step; // steps
	uint64_t *at_ns; // mahimahi
	size_t count; // at least 1
	uint64_t period_ns; // of a round, above 0
};

// Reads `text`, which ends with a 0; `path` is for messages. unit_ns: of a time in a mahimahi file.
// On error nothing needs freeing.
int trace_file_read(struct trace_file *t, enum trace_format format, uint64_t unit_ns,
	const char *path, const char *text, struct err *err);
void trace_file_free(struct trace_file *t);
