// SPDX-License-Identifier: BSD-3-Clause
// The stage that a config's `hosts` put at the end of a path.
#pragma once
#include "common/config/hosts.h"
#include "switch/stage.h"

extern const struct stage_ops stage_card;
// Sets the parameters of a new state, before init. The side lives as long as the stage.
void card_configure(void *state, const struct hosts_side *side);
