// SPDX-License-Identifier: BSD-3-Clause
// Records of some flows' packets (telemetry level 2) in the order of time, whichever thread a path
// runs on and whenever its stages are looked at: they are kept up to the next boundary and sorted.
#pragma once
#include "common/config/flows.h"
#include "common/telemetry/telemetry.h"

struct records {
	struct tel kept[FLOWS_DIRECTIONS]; // of each thread; all zero: the stream takes them itself
	struct tel *stream;
};

int records_init(struct records *r, struct tel *stream, const struct tel_run *run, struct err *err);
// Moves those before now_ns, of which there will be no more, to the stream. -ENOSPC: there were
// more than memory is reserved for.
int records_move(struct records *r, uint64_t now_ns, struct err *err);
void records_fini(struct records *r);
