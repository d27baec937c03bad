// SPDX-License-Identifier: BSD-3-Clause
// The header page of a ring or a file; private to telemetry/.
#pragma once
#include "common/telemetry/telemetry.h"

// Fills the TEL_HEADER_SIZE bytes at h for a stream that has no records yet.
void tel_header_fill(struct tel_header *h, enum tel_stream s, const struct tel_run *run);
