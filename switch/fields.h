// SPDX-License-Identifier: BSD-3-Clause
// The fields of weir-switch's summary (common/base/field.h).
#pragma once
#include "common/base/field.h"

#define SWITCH_LEDGER_FIELDS(V)                                                                       \
	V(COUNT, received, "frame", sum.rx,                                                           \
		"received + replayed + copied + duplicated = transmitted + inside + drops by reason") \
	V(COUNT, replayed, "frame", app->lcore->sources > 0 ? sum.replayed : FIELD_UNKNOWN,           \
		"frames of captures", .absent = "no path has a capture")                              \
	V(COUNT, copied, "frame", sum.copies,                                                         \
		"frames copied because several ports are to have them")                               \
	V(COUNT, duplicated, "frame", sum.duplicated, "frames duplicated by stages")                  \
	V(COUNT, transmitted, "frame", sum.tx, "frames sent by ports")                                \
	V(COUNT, inside, "frame", switch_inside(app->lcore).pkts, "frames in paths and rings",        \
		.over = OVER_END)                                                                     \
	V(PART, drops, "dict[str, Count]", write_drops(sum.drop, j), "")
