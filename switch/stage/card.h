// SPDX-License-Identifier: BSD-3-Clause
// The stage that a config's `hosts` put at the end of a path.
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
// All cards of a stage since card_measure.
struct card_figures {
	struct card_count count;
	// Shares of the time for which a processor worked on packets: the mean, and of the busiest.
	// NaN: processors take no time.
	double busy, busy_max;
};
void card_measure(void *state, uint64_t now_ns);
struct card_figures card_figures(const void *state, uint64_t now_ns);
