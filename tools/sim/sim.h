// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: two hosts and two paths, no clock.
//
//	sender --forward--> receiver --reverse--> sender
//
// There is no event queue. Time advances in windows [T, W) that end no later than the first event in them plus the
// minimum delay of one path, the "cut". Packets that leave the cut within a window were sent before it, so they are
// known, and one component after the other can be run through the whole window, each in order of time: host behind
// the cut, other path, other host, cut. The result is that of an event queue, to the nanosecond and for any window,
// at a fraction of the cost: each component's state stays in the cache while it runs, and packets are passed in order.
#pragma once
#include "common/run/run.h"
#include "sender/group.h"
#include "sender/host.h"
#include "switch/capture.h"
#include "switch/path.h"
#include "switch/schedule.h"

// A pool has packets of one size. Data and ACKs have separate pools, so that the few ACKs in flight stay in the
// cache. A segment with SACK blocks or SYN options needs a second cache line.
enum sim_pool_kind { POOL_FORWARD, POOL_REVERSE, POOL_LARGE, POOLS };
struct sim_pool {
	char *base;
	struct pkt **free; // a stack: the packet freed last is used next, from the cache
	uint64_t frees;
	uint64_t size, next; // objects; those from `next` on were never used
	size_t object; // bytes
};

// A host's packets enter its path in bursts of this size.
#define SIM_BURST 64
struct sim_burst {
	struct pkt *pkt[SIM_BURST];
	uint32_t count;
};

// The cost of the run: wall-clock time of all of it, and figures since the end of the warm-up.
struct sim_cost {
	double wall_s;
	double measured_wall_s, measured_cpu_s; // 0: the warm-up has not ended
	uint64_t measured_segs; // sim_data_segs in that time
};

struct sim {
	struct run *run;
	struct groups groups;
	struct paths paths;
	struct path *forward, *reverse;
	struct schedule schedule;
	struct host sender, receiver;
	struct sim_pool pool[POOLS];
	uint64_t inside, inside_max; // packets
	uint64_t unsent; // packets that were dropped because a pool was empty
	struct sim_burst burst[POOL_REVERSE + 1]; // per path, empty between windows
	struct capture *capture; // NULL: none
	struct tel tel[TEL_STREAM_COUNT];
	uint64_t now_ns; // all events before this time are done
	uint64_t next_interval_ns;
	bool measuring;
	struct sim_cost cost; // filled in by the caller, who has a clock
};

// Reads the config's sections and allocates all memory. On error there is nothing to free.
int sim_init(struct sim *s, struct run *run, struct err *err);
// Opens the telemetry streams, in the run folder or only for the digest. `pcap`: file or NULL.
int sim_open(struct sim *s, const char *pcap, struct err *err);
// Runs until `until_ns` (at most the duration) or until the stop rule ends it.
void sim_run(struct sim *s, uint64_t until_ns);
// Writes the last records and closes the files; on error err has the sentence about the first file that failed.
int sim_close(struct sim *s, struct err *err);
// Data segments that have arrived at a receiver.
uint64_t sim_data_segs(const struct sim *s);

// Writes summary.json. False: the packet counts do not add up.
bool sim_summary(struct sim *s, FILE *out, const char *verdict);
void sim_fini(struct sim *s);

// Parts that other summaries have too. Program, version, title, seed and digest, of streams that are closed.
void summary_head(struct json *j, const struct run *run, const struct tel *tel);
// Records of each of the TEL_STREAM_COUNT streams.
void summary_telemetry(struct json *j, const struct run *run, const struct tel *tel);
// Utilisation (0..1) of the forward link since the start or the warm-up; NaN without a link.
double sim_utilisation(struct sim *s);

// sim.c: the hosts' output callbacks, which put segments into the paths.
host_output sim_sender_output, sim_receiver_output;
