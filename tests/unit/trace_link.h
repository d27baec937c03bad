// SPDX-License-Identifier: BSD-3-Clause
// Links that read a trace from a file: what their tests share.
#pragma once
#include "switch_test.h"

#include <stdio.h>

static char trace_file[64]; // the last one; it is gone

// Opens a link with a long queue on a file of this text.
static inline int trace_link_open(
	struct stage_bench *b, const char *name, const char *trace, const char *params) {
	char config[512];

	snprintf(trace_file, sizeof(trace_file), "/tmp/weir-trace-XXXXXX");
	FILE *f = fdopen(mkstemp(trace_file), "w");
	ck_assert_ptr_nonnull(f);
	fputs(trace, f);
	fclose(f);
	snprintf(config, sizeof(config), "{%s: {file: %s%s}}", name, trace_file, params);
	b->env.base_rtt_ns = 10 * NS_PER_S;
	int rc = stage_open(b, config);
	remove(trace_file);
	return rc;
}

static inline struct stats_totals trace_link_totals(struct stage_bench *b, uint64_t now_ns) {
	b->ops->figures->serve(b->st, now_ns, &b->drops);
	return stats_totals(b->ops->figures->read(b->st, now_ns), now_ns);
}
