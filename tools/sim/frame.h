// SPDX-License-Identifier: BSD-3-Clause
// Bytes of packets in virtual time, where someone asks for them: captures, guests. A segment
// travels decoded and is encoded here. A packet of a pool of frames has its frame behind the
// segment's header, without FCS, padded to the shortest: its length is that of the packet less the
// FCS. Behind it is room for what its pool's owner keeps of it.
#pragma once
#include "common/net/seg.h"
#include "sender/group/group.h"
#include "tools/sim/pool.h"

#define FRAME_ROOM 1536
#define FRAME_OWNER_SIZE 64
#define FRAME_PKT_SIZE (SIM_PKT_SIZE + FRAME_ROOM + FRAME_OWNER_SIZE)

static inline bool frame_is_whole(const struct pkt *p) {
	return p->pool >= POOL_FRAMES;
}
static inline uint8_t *frame_bytes(struct pkt *p) {
	return (uint8_t *)p + SIM_PKT_SIZE;
}
static inline const uint8_t *frame_bytes_const(const struct pkt *p) {
	return (const uint8_t *)p + SIM_PKT_SIZE;
}
static inline void *frame_owner(struct pkt *p) {
	return frame_bytes(p) + FRAME_ROOM;
}

// Writes the packet's frame as it is now, with what paths have done to it, at most `room` bytes;
// its length into *length. Returns how many bytes it has written: of a segment the headers, the
// payload is zeros. `group`: the segment's.
uint32_t frame_write(const struct pkt *p, const struct group *group, uint8_t *bytes, uint32_t room,
	uint32_t *length);
