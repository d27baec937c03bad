// SPDX-License-Identifier: BSD-3-Clause
// The analysis of captures: files one behind the other, through decoder and tracker, with an account of every packet.
#pragma once
#include "common/base/json.h"
#include "tools/pcap/track.h"

#define ANALYSIS_NOTES_MAX 16

struct analysis {
	struct track track;
	struct reader reader;
	uint64_t decoded[DECODE_COUNT]; // packets, by what became of them
	struct reader_count read; // of all files
	uint64_t options_cut, options_bad; // of those analysed
	uint64_t first_ns, last_ns; // stamps of the first packet and of the last one
	bool begun;
	uint32_t files;
	uint32_t notes;
	char note[ANALYSIS_NOTES_MAX][320]; // sentences: a file that is cut off, ...
};

// Called from time to time with what was read of the file; false ends the analysis there.
typedef bool analysis_progress_fn(void *of, const struct analysis *a);

int analysis_init(struct analysis *a, const struct track_limits *limits, struct tel *tel,
	const struct tel_run *tel_run, struct err *err);
// Reads a->reader, which the caller has opened and closes; the next file begins where it ends. 0; 1: `progress` (may
// be NULL) ended it; -errno with a sentence: it cannot be read. A file that ends in the middle of a record is analysed
// up to there, and a note says so.
int analysis_read(struct analysis *a, analysis_progress_fn *progress, void *of, struct err *err);
void analysis_end(struct analysis *a);
void analysis_fini(struct analysis *a);
// Does every packet that was read appear under exactly one heading?
bool analysis_balanced(const struct analysis *a);
// The sections of the summary: ledger, capture, groups.
void analysis_summary(const struct analysis *a, struct json *j);
