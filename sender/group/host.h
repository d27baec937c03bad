// SPDX-License-Identifier: BSD-3-Clause
// A group's `host`: one word for parameters that together make a kind of host.
#pragma once
#include "sender/group/group.h"

extern const char *const group_host_names[];
// Adds to a group's map what its `host` stands for, where it does not say otherwise.
void group_host(struct config_node *node);
// Sets what follows from the parameters of its hosts.
void group_host_modes(struct group *g);
// What the sender takes for granted of its receiver's echo, since only AccECN is negotiated. A
// kernel echoes as DCTCP does if that is its control, else as RFC 3168.
int group_feedback(struct group *g, struct config_node *node, struct err *err);
