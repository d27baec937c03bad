// SPDX-License-Identifier: BSD-3-Clause
// A group's `host`: one word for parameters that together make a kind of host.
#pragma once
#include "common/config/config.h"

extern const char *const group_host_names[];
// Adds to a group's map what its `host` stands for, where it does not say otherwise.
void group_host(struct config_node *node);
