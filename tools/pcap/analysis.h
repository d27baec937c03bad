// SPDX-License-Identifier: BSD-3-Clause
// The analysis of captures, with an account of every packet:
//
//	parts      files, in the order of time       points     interfaces: which are read
//	decode     frames to segments                order      late packets, steps of the clock
//	copies     a packet seen twice counts once   track      connections
#pragma once
#include "common/base/json.h"
#include "tools/pcap/copies.h"
#include "tools/pcap/order.h"
#include "tools/pcap/points.h"
#include "tools/pcap/track.h"

#define ANALYSIS_NOTES_MAX 16

struct analysis {
	struct track track;
	struct parts parts;
	struct points points;
	struct order order;
	struct copies copies;
	struct decode_count decoded;
	uint64_t options_cut, options_bad; // of those analysed
	uint64_t copied; // TCP packets that were seen at another point before
	uint64_t other_interfaces; // packets of those that are not read
	uint32_t files;
	uint32_t notes;
	char note[ANALYSIS_NOTES_MAX][320]; // sentences: a file that is cut off, ...
};

// Called from time to time with what was read of the file; false ends the analysis there.
typedef bool analysis_progress_fn(void *of, const struct analysis *a);

int analysis_init(struct analysis *a, const struct track_limits *limits, struct tel *tel,
	const struct tel_run *tel_run, struct err *err);
// Looks at all files, which are the caller's until the end. `interfaces`: those that are read, with
// commas; "": all. 0 or -errno with a sentence: one is not a capture.
int analysis_open(struct analysis *a, const char *const *files, uint32_t count,
	const char *interfaces, struct err *err);
// Reads them. 0; 1: `progress` (may be NULL) ended it; -errno with a sentence: one cannot be read,
// or it has no such interface. A file that ends in the middle of a record is analysed up to there,
// and a note says so.
int analysis_read(struct analysis *a, analysis_progress_fn *progress, void *of, struct err *err);
// `rc`, or if that is 0 -EIO with a sentence: there is no TCP, for what was captured cannot be
// read.
int analysis_found(const struct analysis *a, const char *file, int rc, struct err *err);
void analysis_fini(struct analysis *a);
// Does every packet that was read appear under exactly one heading?
bool analysis_balanced(const struct analysis *a);
// The sections of the summary: ledger, capture, groups.
void analysis_summary(const struct analysis *a, struct json *j);
