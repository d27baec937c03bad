// SPDX-License-Identifier: BSD-3-Clause
// The stages that a config's `hosts` put at the ends of a path.
#pragma once
#include "common/config/hosts.h"
#include "switch/stage.h"

extern const struct stage_ops stage_card;
// Sets the parameters of a new state, before init. The side lives as long as the stage.
void card_configure(void *state, const struct hosts_side *side);

struct card_count {
	uint64_t pkts; // that its processor has taken, or will
	uint64_t interrupts;
	uint64_t drops; // by its full ring
};
// The cards of a kind of hosts since card_measure.
struct card_figures {
	struct card_count count;
	// Shares of the time for which a processor worked on packets: the mean, and of the busiest.
	// NaN: processors take no time.
	double busy, busy_max;
};
void card_measure(void *state, uint64_t now_ns);
struct card_figures card_figures(const void *state, const struct hosts_kind *kind, uint64_t now_ns);

// Cards that send. One discipline for each of the side's kinds; both live as long as the stage.
extern const struct stage_ops stage_card_out;
void card_out_configure(
	void *state, const struct hosts_side *side, const struct aqm_ops *const *aqm);
