// SPDX-License-Identifier: BSD-3-Clause
// The fields of a capture that a run has written (common/base/field.h).
#pragma once
#include "common/base/field.h"

#define CAPTURE_FIELDS(V)                                                                          \
	V(TEXT, file, "", w->name, "")                                                             \
	V(COUNT, packets, "packet", w->file.count.packets, "packets written")                      \
	V(COUNT, bytes, "B", w->file.count.bytes, "bytes written")                                 \
	V(COUNT, lost, "packet", w->file.count.lost, "packets not written for lack of room")       \
	V(COUNT, out_of_order, "packet", w->out_of_order,                                          \
		"packets with an earlier time than one before them")                               \
	V(COUNT, rotated_away, "packet", w->file.count.removed,                                    \
		"packets of files that were removed when later ones were begun")                   \
	V(TEXT, ended_by, "", pcapng_error(&w->file), "", .null = "nothing went wrong")
