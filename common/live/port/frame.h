// SPDX-License-Identifier: BSD-3-Clause
// What live.mtu asks of buffers and devices.
#pragma once
#include "common/config/live.h"

#include <stddef.h>
#include <stdint.h>

// Bytes of a buffer for frames whose packets have up to `mtu` bytes.
uint32_t frame_room(uint64_t mtu);
// Adds to a device's arguments `args` the size of the frames in its rings, unless the user has or
// the drivers' own size is enough. -E2BIG: they do not fit into `size` bytes.
int frame_args(const struct live_dev *dev, char *args, size_t size);
