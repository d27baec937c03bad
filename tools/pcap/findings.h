// SPDX-License-Identifier: BSD-3-Clause
// What a reader of an analysis must know of the capture, because figures may be wrong or say less
// than they seem to.
#pragma once
#include "tools/pcap/analysis.h"

#define FINDINGS_VALUES(V)                                                                         \
	V(FINDING_NO_TCP, "no_tcp")                                                                \
	V(FINDING_CLOCK, "clock_steps")                                                            \
	V(FINDING_BACKWARDS, "backwards")                                                          \
	V(FINDING_REORDERED, "reordered")                                                          \
	V(FINDING_NO_TIME, "no_time")                                                              \
	V(FINDING_MALFORMED, "malformed")                                                          \
	V(FINDING_TRUNCATED, "truncated")                                                          \
	V(FINDING_OPTIONS, "options_cut")                                                          \
	V(FINDING_FRAGMENTS, "fragments")                                                          \
	V(FINDING_LINK_TYPE, "link_type")                                                          \
	V(FINDING_BEGUN, "begun_before")                                                           \
	V(FINDING_ONE_SIDED, "one_sided")                                                          \
	V(FINDING_MIDDLE, "middle")                                                                \
	V(FINDING_UNCAPTURED, "uncaptured")                                                        \
	V(FINDING_UNTRACKED, "untracked")                                                          \
	V(FINDING_EVICTED, "evicted")
#define FINDING_ENUM_(constant, name) constant,
enum finding_cause { FINDINGS_VALUES(FINDING_ENUM_) FINDINGS_COUNT };

struct finding {
	enum finding_cause cause;
	uint64_t count, of; // of what there is in all; 0: that says nothing
	char sentence[256];
};

struct findings {
	struct finding finding[FINDINGS_COUNT];
	uint32_t count;
};

void findings_make(const struct analysis *a, struct findings *f);
// The section `verdicts`; and all sentences as one text, "ok" if there are none.
void findings_write(const struct findings *f, struct json *j);
void findings_verdict(const struct analysis *a, const struct findings *f, char *text, size_t size);
