// SPDX-License-Identifier: BSD-3-Clause
// The module that a congestion control of Linux is: its description, parameters and init.
#pragma once
#include <weir/cc.h>
#include <weir/linux/kernel.h>

// Calls its init; adds summary, license and parameters to the ops.
void module_load(struct cc_ops *ops);
// cc_ops.configure: sets the parameters and calls init again, as modprobe does.
const char *module_configure(const void *config);
