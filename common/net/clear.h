// SPDX-License-Identifier: BSD-3-Clause
// TCP options that a path cleared, as PKT_CLEARED of a packet's flags says.
#pragma once
#include "common/base/pkt.h"
#include "common/net/seg.h"

// Puts NOPs in the place of the options and adjusts the checksum of TCP: one that was right stays
// right, one that was wrong stays wrong. An Ethernet frame of which `len` bytes are there; anything
// but TCP with its whole header stays as it is.
void clear_frame(uint8_t *frame, size_t len, uint8_t flags);
// The segment as its receiver decodes it from such a frame. Touches the common part alone (seg.h):
// a segment without large options may end there.
void clear_seg(struct seg *s, uint8_t flags);
