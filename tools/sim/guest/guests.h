// SPDX-License-Identifier: BSD-3-Clause
// The Linux guests of a run, and how they take part in its windows.
//
// A group whose stack or peer is a kernel's has guests of its own at that side; flow i of the group
// is on guest i % hosts. All guests of a side have the same address: a frame's flow is known by the
// sender's port, as in common/net/flow_addr.h. A packet from a guest carries its frame, unchanged
// but for ECN marks of the path; one from our transport is encoded when it arrives at a guest, and
// a frame is decoded when it arrives at our transport.
//
// What the guests of one side do in a window depends only on packets that arrive in it. Guests of
// both sides run at the same time where both paths have a delay, each on one of the threads; the
// results are merged by (time, guest, number) and do not depend on the threads.
#pragma once
#include "common/config/flows.h"
#include "tools/sim/guest/guest.h"

#include <stdbool.h>
#include <stdint.h>

#define GUESTS_MAX 120 // two pool numbers each, of 256
#define GUESTS_WINDOW_NS (5 * UINT64_C(1000000)) // longest window with guests

struct sim;
struct json;
struct guests;

// Plans the guests of the run's groups. *out stays NULL if there are none.
int guests_init(struct guests **out, struct sim *s, uint64_t pipe_segs, struct err *err);
// Refuses a run for which this machine lacks something: the kernel, memory in /dev/shm, ... -EINVAL
// with a sentence. Nothing is started or written. `gs` may be NULL.
int guests_check(const struct guests *gs, struct err *err);
// Starts and boots them. -EINTR: run_stop.
int guests_boot(struct guests *gs, struct err *err);
// Runs one side, our host and its guests, to the end of a window; what goes wrong with a guest ends
// the run (sim.failed).
void guests_feed(struct guests *gs, enum flows_direction side, uint64_t last_ns);
// The length of windows in which both sides may run at once: where there is one path in each
// direction, the shorter delay. 0: one side runs after the other.
uint64_t guests_both_ns(const struct guests *gs);
void guests_feed_both(struct guests *gs, uint64_t last_ns);
// For sim.c: before our transport puts a packet of that time into a path, the guests' earlier
// frames go into it.
void guests_emit(struct guests *gs, enum flows_direction side, uint64_t until_ns);
// When one of them has something to do; NEVER_NS: only a packet can wake them.
uint64_t guests_next_ns(const struct guests *gs);
// Writes the frame of a packet that a guest has sent, as far as there is room, with what the paths
// have done to it:
// its ECN bits, a flipped bit. Returns its size without FCS; 0: no guest has sent it.
uint32_t guests_frame(const struct pkt *p, uint8_t *bytes, uint32_t room);
// What the guests' kernels have printed goes into the run folder: after a failure.
void guests_keep_logs(const struct guests *gs, const char *run_folder);
// "guests": {release, package, options, count, tx_frames, rx_frames, ...}
void guests_summary(const struct guests *gs, struct json *j);
void guests_free(struct guests *gs);
