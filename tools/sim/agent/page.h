// SPDX-License-Identifier: BSD-3-Clause
// The memory that weir-sim and a Python process share, and who may touch it when: weir-sim fills it
// in and writes a byte into a pipe; Python answers in it and writes a byte into the other one.
// Never do both use it at once. weir/control/page.py is the other side.
#pragma once
#include "sender/cc/cc.h"
#include "tools/sim/agent/measurements.h"

#define AGENT_VERSION 1
#define AGENT_SLOTS 65536 // memory that is never touched costs nothing
#define AGENT_PARAMS 24
#define AGENT_TEXT_BYTES 32768
#define AGENT_LINES_BYTES 8192

// What Python is asked for. AGENT_OPEN: what the class in `text` is; its answer is text, too. Those
// from AGENT_INIT on are calls for the flow of `slot`. Nobody waits for an answer to AGENT_END.
enum agent_call {
	AGENT_OPEN,
	AGENT_END,
	AGENT_INIT,
	AGENT_ACK,
	AGENT_LOSS,
	AGENT_RTO,
	AGENT_SPURIOUS,
	AGENT_IDLE,
};

struct agent_decision {
	double cwnd_segs, pacing_bps; // as in struct cc_out
	double ssthresh_segs; // for the transport's `pacing: srtt`
	double observed[CC_OBSERVED];
	uint64_t mode;
};

// A flow. What follows `m` is the bridge's own.
struct agent_slot {
	struct agent_decision decision;
	struct measurements m;
	uint64_t start_ns; // of the interval
	double rtt_sum_ns;
	const void *state; // the control's state in the flow; NULL: no flow has had this slot
};

struct agent_page {
	uint32_t version; // AGENT_VERSION
	uint32_t slots_offset, slot_bytes, record_offset; // of slot[], of one of them, of its m
	uint32_t call; // enum agent_call
	uint32_t of; // number of the class, in the order of AGENT_OPEN
	uint32_t slot; // of the flow
	uint32_t slots; // that are in use
	uint32_t failed; // Python: `text` says why
	uint32_t cpu; // 1 + the CPU that both are on; 0: any
	double params[AGENT_PARAMS]; // AGENT_INIT: the values of the class's parameters
	char lines[AGENT_LINES_BYTES]; // MEASUREMENT_LINES
	char text[AGENT_TEXT_BYTES];
	_Alignas(64) struct agent_slot slot_of[AGENT_SLOTS];
};

static_assert(sizeof(MEASUREMENT_LINES) <= AGENT_LINES_BYTES, "the lines fit");
static_assert(offsetof(struct agent_page, params) == 40, "as in weir/control/page.py");
