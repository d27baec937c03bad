// SPDX-License-Identifier: BSD-3-Clause
// A buffer has room for what stands before a frame in af_packet's rings (66 bytes), Ethernet's
// header and a tag, in whole KiB, as cards count them: 2 KiB for an MTU of 1500, which is also what
// the drivers of virtual devices begin with; 9 KiB for 9000.
//
// The driver of af_packet wants frames in blocks of whole pages and no gap between them, and none
// that is larger than a buffer.
#include "common/live/port/frame.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KIB 1024u
#define RING_HEADER 66

uint32_t frame_room(uint64_t mtu) {
	return ((uint32_t)mtu + RING_HEADER + WIRE_ETH + WIRE_TAG + KIB - 1) / KIB * KIB;
}

static bool has(const struct live_dev *dev, const char *argument) {
	return strstr(dev->text, argument) != NULL;
}

int frame_args(const struct live_dev *dev, char *args, size_t size) {
	uint32_t room = frame_room(dev->mtu), block = room * ((uint32_t)getpagesize() / KIB);
	size_t used = strlen(args);
	int n = 0;

	if (room == frame_room(LIVE_MTU))
		return 0;
	if (live_dev_is(dev, "net_af_packet") && !has(dev, ",framesz=") && !has(dev, ",blocksz="))
		n = snprintf(args + used, size - used, ",framesz=%u,blocksz=%u", room, block);
	else if (live_dev_is(dev, "net_memif") && !has(dev, ",bsize="))
		n = snprintf(args + used, size - used, ",bsize=%u", room);
	return n < (int)(size - used) ? 0 : -E2BIG;
}
