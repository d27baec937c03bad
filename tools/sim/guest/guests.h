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

struct facts;
struct groups;
struct guests;
struct json;
struct node;
struct pools;
struct run;
struct side;
struct tel;

// What guests are among; all outlives them.
struct guests_env {
	struct run *run;
	const struct groups *groups;
	struct side *side; // the two hosts, by the direction in which they send
	struct pools *pools;
	uint64_t pipe_segs; // that the network can hold
};

// Plans the guests of the run's groups. *out stays NULL if there are none; all other functions take
// that for guests that do nothing.
int guests_init(struct guests **out, const struct guests_env *env, struct err *err);
// The node of a side: its host and its guests. Without guests: `host`.
struct node *guests_node(struct guests *gs, enum flows_direction side, struct node *host);
// Whether the run's seed decides something: each guest has one of its own.
bool guests_random(const struct guests *gs);
// Refuses a run for which this machine lacks something: the kernel, memory in /dev/shm, ... -EINVAL
// with a sentence. Nothing is started or written.
int guests_check(struct guests *gs, struct err *err);
// Starts and boots them. -EINTR: run_stop.
int guests_boot(struct guests *gs, struct err *err);
// What the guests' kernels have printed goes into the run folder: after a failure.
void guests_keep_logs(const struct guests *gs, const char *run_folder);
// "ip_flows" and "guests": {release, package, options, kernels, count, tx_frames, rx_frames, ...};
// `seconds` since the start or the warm-up.
void guests_summary(const struct guests *gs, struct json *j, double seconds);
// Adds what makes a guest another host than an ordinary one.
void guests_faults(const struct guests *gs, struct facts *verdict);
// Packets that are of no flow of the config (ip_flows.h): whether there may be some; one that was
// dropped in a path; the end of an interval; from now on they are measured.
bool guests_send_any(const struct guests *gs);
void guests_dropped(struct guests *gs, const struct pkt *p);
void guests_interval(struct guests *gs, struct tel *tel, uint64_t now_ns);
void guests_measure(struct guests *gs);
void guests_free(struct guests *gs);
