// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: two hosts and the paths between them, no clock.
//
//	sender --forward--> receiver --reverse--> sender
//
// There is no event queue. Time advances in windows [T, W) that end no later than the first event
// in them plus the delay of certain paths, those "ahead" (switch/path_route.h). Packets that leave
// these within a window were sent before it, so they are known, and one component after the other,
// host or path, can be run through the whole window, each in order of time. The result is that of
// an event queue, to the nanosecond and for any window, at a fraction of the cost: each component's
// state stays in the cache while it runs, and packets are passed in order.
//
// Each flow group has its own route, of one path in each direction or of several (network.c). A
// path that only one host sends to, and one whose packets all go to a host that gets none from
// elsewhere, has nothing between itself and the host. Between other components there are lists,
// from which the receiving one takes packets in order of time, those of one time in the order of
// the components that sent them.
#pragma once
#include "common/run/run.h"
#include "sender/group/group.h"
#include "sender/host/host.h"
#include "switch/capture.h"
#include "switch/path.h"
#include "switch/path_route.h"
#include "switch/schedule.h"
#include "tools/sim/guest/guests.h"

// A pool has packets of one size and one direction, forward ones in the even pools. Data and ACKs
// have separate pools, so that the few ACKs in flight stay in the cache. A segment with SACK blocks
// or SYN options needs a second cache line.
enum sim_pool_kind { POOL_FORWARD, POOL_REVERSE, POOL_LARGE, POOL_LARGE_REVERSE, POOLS };
struct sim_pool {
	char *base;
	struct pkt **free; // a stack: the packet freed last is used next, from the cache
	uint64_t frees;
	uint64_t size, next; // objects; those from `next` on were never used
	size_t object; // bytes
};

// A host's packets leave it in bursts of this size.
#define SIM_BURST 64
struct sim_burst {
	struct pkt *pkt[SIM_BURST];
	uint32_t count;
};

// One of the two hosts, by the direction in which it sends.
struct sim_side {
	struct sim_burst burst; // empty between windows
	// The one path it sends to, if no other component does; NULL: its packets go to lists.
	struct path *to;
	// The one path it gets packets from, if all of that path's go to it; NULL: it takes them
	// from lists.
	struct path *from;
	uint64_t listed, taken; // packets that it put into lists, and took from them
};

// Which component a step of a window concerns, and what it does.
enum sim_step_kind { STEP_HOST, STEP_ENTER, STEP_LEAVE };
struct sim_step {
	uint8_t kind, node;
};

// Packets between components.
struct sim_network {
	struct route_graph graph;
	struct route_order order;
	struct sim_step step[2 * NODES_MAX]; // of a window
	uint32_t steps;
	uint8_t next[FLOWS_DIRECTIONS][GROUPS_MAX][PATHS_MAX]; // component behind a path
	uint8_t first[FLOWS_DIRECTIONS][GROUPS_MAX]; // component behind a host
	struct pkt_list list[NODES_MAX][NODES_MAX]; // to, from; empty between windows
	uint64_t passed; // packets that went from one path to another
};

static inline enum flows_direction sim_direction(const struct pkt *p) {
	return p->pool % 2 == 0 ? FLOWS_FORWARD : FLOWS_REVERSE;
}

// The cost of the run: wall-clock time of all of it, and figures since the end of the warm-up.
struct sim_cost {
	double wall_s;
	double measured_wall_s, measured_cpu_s; // 0: the warm-up has not ended
	uint64_t measured_segs; // sim_data_segs in that time
};

struct sim {
	struct run *run;
	struct groups groups;
	struct network_empty empty[GROUPS_MAX];
	struct paths paths;
	struct schedule schedule;
	struct host sender, receiver;
	struct sim_network network;
	struct sim_side side[FLOWS_DIRECTIONS]; // by the direction in which it sends
	// One of each kind; then those of guests' frames (guests_pool).
	struct sim_pool pool[POOLS + 2 * GUESTS_MAX];
	uint64_t inside, inside_max; // packets
	// Packets that the receiver and the sender discarded, because a stage had flipped a bit.
	uint64_t checksum_errors[2];
	uint64_t unsent; // packets that were dropped because a pool was empty
	struct capture *capture; // NULL: none
	struct tel tel[TEL_STREAM_COUNT];
	uint64_t now_ns; // all events before this time are done
	uint64_t interval_start_ns, next_interval_ns;
	bool measuring;
	struct sim_cost cost; // filled in by main.c, which reads the clock
	struct guests *guests; // Linux kernels among the hosts; NULL: none
	int failed; // what ended sim_run early: 0, or a negative errno with `err`
	struct err err;
};

// Reads the config's sections and allocates all memory. On error there is nothing to free.
int sim_init(struct sim *s, struct run *run, struct err *err);
// Opens the telemetry streams, in the run folder or only for the digest. `pcap`: file or NULL.
int sim_open(struct sim *s, const char *pcap, struct err *err);
// Runs until `until_ns` (at most the duration) or until the stop rule ends it.
void sim_run(struct sim *s, uint64_t until_ns);
// Writes the last records and closes the files; on error err has the sentence about the first file
// that failed.
int sim_close(struct sim *s, struct err *err);
// Data segments that have arrived at a receiver.
uint64_t sim_data_segs(const struct sim *s);

// Writes summary.json. False: the packet counts do not add up.
bool sim_summary(struct sim *s, FILE *out, const struct facts *verdict);
void sim_fini(struct sim *s);

// Parts that other summaries have too. Program, version, title, seed and digest, of streams that
// are closed.
void summary_head(
	struct json *j, FILE *out, const char *kind, const struct run *run, const struct tel *tel);
// Utilisation (0..1) of the first group's first link since the start or the warm-up; NaN without a
// link.
double sim_utilisation(struct sim *s);

// network.c. Once the paths and the groups are there.
void sim_network_init(struct sim *s);
// The steps of the windows from now on, with the delays as they are.
void sim_network_order(struct sim *s);
// Puts the packets of a host into the lists of the paths that come first for them.
void sim_network_send(struct sim *s, enum flows_direction d);
// What has come to a component by way of lists, in order of time: at most `max` packets; fewer:
// there are no more.
uint32_t sim_network_take(struct sim *s, uint32_t node, struct pkt **pkts, uint32_t max);
// Puts into a path what has come to it.
void sim_network_enter(struct sim *s, struct path *p);
// Takes off a path what leaves it by last_ns, for the components behind it.
void sim_network_leave(struct sim *s, struct path *p, uint64_t last_ns);

// sim.c, for guests: packets from and to their pools, and in order of time into what comes first
// for a direction.
struct pkt *sim_pool_get(struct sim_pool *p, uint8_t number);
void sim_pool_put(struct sim *s, struct pkt *pkt);
void sim_send_frame(struct sim *s, enum flows_direction d, struct pkt *pkt);
void sim_flush(struct sim *s, enum flows_direction d);
// setup.c
int sim_pool_init(struct sim_pool *p, size_t object, uint64_t size, struct err *err);
capture_frame_fn sim_frame; // ctx: the sim, or NULL: of groups without DSCP

// sim.c: the owner of all packets. A copy comes from the pool of its original; a flow is told of
// its data that was dropped.
struct pkt_owner sim_owner(struct sim *s);
// sim.c: the hosts' output callbacks, which put segments into the paths.
host_output sim_sender_output, sim_receiver_output;
