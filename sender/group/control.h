// SPDX-License-Identifier: BSD-3-Clause
// The congestion control of a group: one of ours, a plug-in, or none.
#pragma once
#include "sender/group/group.h"

struct run_list;

// All of ours; a plug-in if the name of its file was asked for.
void controls_list(struct run_list *l);
// Reads the key `cc` of a group, whose stack and source are known.
int group_control(struct group *g, struct config_node *node, struct err *err);
// Reads a value of `cc` alone, such as {plugin: FILE.so, rmax: 1Gbit}. The caller frees the config,
// into which the parameters may point, and the group's cc_config, after an error too.
int group_control_text(struct group *g, const char *value, struct config **config, struct err *err);
