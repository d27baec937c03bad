// SPDX-License-Identifier: BSD-3-Clause
// The socket through which memif ports connect: only the same user may connect to it.
//
// The driver's default is an abstract address, which has no owner. Here `socket=NAME` is
// NAME.memif in DPDK's runtime folder (/var/run/dpdk, or $XDG_RUNTIME_DIR/dpdk), for both sides.
// A path, or `socket-abstract`, is not changed, for peers other than Weir.
#pragma once
#include "common/config/live.h"

#include <stddef.h>

// Writes a device's arguments for its driver into `args`. Removes the socket that a killed server
// left behind, so that a new one can be made. -E2BIG: the arguments do not fit.
int memif_args(const struct live_dev *dev, char *args, size_t size);
