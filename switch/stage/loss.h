// SPDX-License-Identifier: BSD-3-Clause
// What the loss stages share: a model says of each unit whether it is lost, and the others pass in
// no time.
//
//	unit: packet   each packet is a unit
//	unit: burst    a unit is a run of packets of one flow with none of another flow between
//	               them, each at most `burst_gap` after the one before, and 65536 bytes of
//	               frames at most in all
//
// A burst is what a host hands over at once: with segmentation offload that is up to 64 KiB, which
// Linux's netem at a sending host sees as one packet and loses as one. The same loss rate is then
// about half as many loss events for TCP. With `burst_gap: 0ns` packets are of one burst if they
// have the same arrival: an unpaced window in virtual time, or the frames that one iteration of a
// live switch received. Behind a link frames are a serialisation time apart: 12304 ns for 1514 B at
// 1 Gbit/s.
#pragma once
#include "common/base/rng.h"
#include "switch/stage/instant.h"

#define LOSS_BURST_BYTES 65536 // Linux's GSO_LEGACY_MAX_SIZE

enum loss_unit { LOSS_PACKET, LOSS_BURST };
extern const char *const loss_unit_names[];

// The first member of a loss stage's state.
struct loss_stage {
	struct instant pass;
	int unit;
	uint64_t burst_gap_ns;

	struct rng rng;
	bool random; // a packet was subject to a draw
	bool lost; // what became of the present burst
	bool begun; // there is one
	uint32_t burst_flow, burst_bytes;
	uint64_t burst_last_ns; // its last packet
};

// Rows of a stage's parameter table; T.loss is its struct loss_stage.
#define LOSS_UNIT_PARAMS(T)                                                                        \
	{"unit", "packet", "what is lost or passes as one: packets, or bursts of a flow",          \
		UNIT_NONE, PARAM_ENUM(T, loss.unit, loss_unit_names)},                             \
	{                                                                                          \
		"burst_gap", "0ns", "the longest time between two packets of a burst",             \
			UNIT_TIME_NS, PARAM_U64(T, loss.burst_gap_ns), 0, 60e9                     \
	}

// For init: the model's generator is that of its stage.
static inline void loss_begin(struct loss_stage *l, const struct stage_env *env) {
	l->pass.env = env;
	rng_init(&l->rng, env->run_seed, env->name);
}

// Whether p is of the present burst; if not, it begins one.
static inline bool loss_same_burst(struct loss_stage *l, const struct pkt *p) {
	bool same = l->begun && p->flow_id == l->burst_flow
		&& p->arrival_ns - l->burst_last_ns <= l->burst_gap_ns
		&& l->burst_bytes + p->size_bytes <= LOSS_BURST_BYTES;

	l->burst_bytes = p->size_bytes + (same ? l->burst_bytes : 0);
	l->burst_flow = p->flow_id;
	l->burst_last_ns = p->arrival_ns;
	l->begun = true;
	return same;
}

// A stage's push: asks the model once per unit. `lost` should be a constant.
static inline __attribute__((always_inline)) void loss_push_all(struct loss_stage *l,
	struct pkt *const *pkts, uint32_t n, struct pkt_list *drops, bool (*lost)(void *self)) {
	for (uint32_t i = 0; i < n; i++) {
		if (l->unit == LOSS_PACKET || !loss_same_burst(l, pkts[i]))
			l->lost = lost(l);
		if (l->lost)
			stage_drop(l->pass.env, drops, pkts[i], DROP_LOSS);
		else
			instant_pass(&l->pass, pkts[i]);
	}
}

static inline bool loss_random(const void *self) {
	const struct loss_stage *l = self;

	return l->random;
}

static inline bool loss_flows(const void *self) {
	const struct loss_stage *l = self;

	return l->unit == LOSS_BURST;
}
