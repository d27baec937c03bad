// SPDX-License-Identifier: BSD-3-Clause
// The file into which a ring is drained; private to telemetry/. t->io_errno keeps the first error
// of a write.
#pragma once
#include "common/telemetry/telemetry.h"

// Opens t->path and writes its header page. 0 or -errno with a sentence.
int tel_file_open(struct tel *t, enum tel_stream s, const struct tel_run *run, struct err *err);
// Copies the records of the file at `path`, which has as many as t->file says, behind the header.
int tel_file_copy(struct tel *t, const char *path, struct err *err);
// Appends slots to the file; records that do not fit on the disk are lost as a whole.
// has_gaps: there may be gap records among them. direct: with O_DIRECT, past the page cache, if
// that works.
void tel_file_append(
	struct tel *t, const uint8_t *records, uint64_t count, bool has_gaps, bool direct);
// Writes the counters t->file as the set of this epoch.
void tel_file_publish(struct tel *t, uint64_t epoch);
// Closes the file; its bytes do not depend on how often it was published.
void tel_file_close(struct tel *t);
// Ends O_DIRECT writes.
void tel_direct_close(struct tel *t);
