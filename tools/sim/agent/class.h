// SPDX-License-Identifier: BSD-3-Clause
// A class in Python as a congestion control: what it answers to AGENT_OPEN, as struct cc_ops. The
// answer is lines of fields with tabs between them:
//
//	class  name summary reference prr ecn answers_in_on_ack codepoint feedback ack_each any_idle
//	       has_ssthresh together calls
//	observed  name...
//	modes  name...
//	param  name kind default min max unit help choice...
//	import path
#pragma once
#include "tools/sim/agent/page.h"

#define AGENT_CLASSES 16
#define AGENT_IMPORTS 32

union agent_value {
	double number;
	uint64_t whole;
	bool yes;
	int choice;
};

// The config of a control: the keys that all of them have, then the class's own.
struct agent_config {
	uint64_t every; // enum agent_every, or nanoseconds
	union agent_value value[AGENT_PARAMS];
};

enum agent_every { AGENT_EVERY_ACK, AGENT_EVERY_RTT };

struct agent_class {
	struct cc_ops ops; // without functions
	struct param params[AGENT_PARAMS + 2]; // `every` first, PARAM_END last
	const char *imports[AGENT_IMPORTS + 1]; // files beside its own, up to a NULL
	uint32_t number, nb_params, nb_imports;
	uint32_t calls; // bit 1 << enum agent_call: it wants to be called
	bool has_ssthresh;
	bool together; // all flows are called at once, at multiples of `every`
	uint64_t next_step_ns; // together: when they are called next
};

// Reads an answer, which is changed and must last. False with a sentence.
bool agent_class_read(struct agent_class *c, char *answer, char *error, size_t error_size);
// The values of the class's parameters as numbers: no and yes are 0 and 1, a choice its place.
void agent_class_values(
	const struct agent_class *c, const struct agent_config *config, double *values);
