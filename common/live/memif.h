// SPDX-License-Identifier: BSD-3-Clause
// Where memif ports meet: a socket to which only the user may connect.
//
// The driver's own default is an abstract address, which has no owner. Here `socket=NAME` is
// NAME.memif in DPDK's runtime folder (/var/run/dpdk, or $XDG_RUNTIME_DIR/dpdk), for both sides.
// A path, or `socket-abstract`, is left as it is, for peers that are other programs.
#pragma once
#include "common/live/live.h"

#include <stddef.h>

// A device's arguments as its driver gets them. The socket that a killed server left behind is
// removed, so that a new one can be made. -E2BIG: they do not fit.
int memif_args(const struct live_dev *dev, char *args, size_t size);
