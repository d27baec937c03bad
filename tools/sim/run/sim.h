// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: two hosts and the paths between them, no clock. There is no event queue: nodes run
// one after the other through windows of time (topology.h).
#pragma once
#include "common/run/run.h"
#include "sender/group/group.h"
#include "sender/host/host.h"
#include "switch/path/capture.h"
#include "switch/path/path.h"
#include "switch/path/schedule.h"
#include "tools/sim/records.h"
#include "tools/sim/segments.h"
#include "tools/sim/side.h"
#include "tools/sim/topology.h"

#include <sys/types.h>

struct guests;
struct pipeline;

// The cost of the run: wall-clock time of all of it, and figures since the end of the warm-up.
struct sim_cost {
	double wall_s;
	double measured_wall_s, measured_cpu_s; // 0: the warm-up has not ended
	uint64_t measured_segs; // sim_data_segs in that time
};

#define BRANCHES_MAX 256

struct branch {
	const char *name; // of its folder
	struct config_node *changes; // a map of the config
	struct schedule schedule; // the trunk's and its changes
	pid_t process; // while it runs; 0: before and after
};

struct branches {
	uint64_t at_ns; // NEVER_NS: there are none
	uint32_t count;
	struct branch *branch;
	bool ended; // those that run were told to end
};

struct sim {
	struct run *run;
	struct hosts hosts;
	struct groups groups;
	struct network_empty empty[GROUPS_MAX];
	struct paths paths;
	struct schedule schedule;
	struct schedule_others others;
	struct branches branches;
	_Alignas(64) struct host sender; // apart from what another thread writes
	_Alignas(64) struct host receiver;
	struct side
		side[FLOWS_DIRECTIONS]; // the hosts as nodes, by the direction in which they send
	struct topology topology;
	struct pipeline *pipeline; // pipeline.h; NULL: one thread
	uint32_t threads;
	_Alignas(64) struct pools pools;
	struct pool pool[POOL_FRAMES]; // of our hosts
	struct pools *pools_of[FLOWS_DIRECTIONS]; // where the paths' packets are counted
	// Data packets of each flow that it is not told of yet: those of its own, then its peer's.
	uint32_t *dropped;
	_Atomic bool any_dropped; // set by either thread
	struct segments segments;
	struct records records; // at level 2
	_Alignas(64) struct capture *capture; // NULL: none
	struct tel tel[TEL_STREAM_COUNT];
	uint64_t now_ns; // all events before this time are done
	uint64_t interval_start_ns, next_interval_ns;
	bool measuring;
	struct sim_cost cost; // filled in by main.c, which reads the clock
	struct guests *guests; // guest/guests.h; NULL: none
	int failed; // what ended sim_run early: 0, or a negative errno with `err`
	struct err err;
};

// Reads the config's sections and allocates all memory. On error there is nothing to free.
int sim_init(struct sim *s, struct run *run, struct err *err);
// Opens the telemetry streams, in the run folder or only for the digest. `pcap`: file or NULL.
int sim_open(struct sim *s, const char *pcap, struct err *err);
// Asks for a number of threads, after sim_open and before the first run; 0: what pays. There are
// one or two; where there are fewer than asked for, a warning says why.
int sim_threads(struct sim *s, uint32_t asked, struct err *err);
// Runs until `until_ns` (at most the duration) or until the stop rule ends it. The order of records
// of several paths in packets.ring depends on where a run stands still, so whoever runs one does it
// in steps that end at sim_step_ns, while sim_goes_on.
void sim_run(struct sim *s, uint64_t until_ns);
uint64_t sim_step_ns(const struct sim *s);
bool sim_goes_on(const struct sim *s);
// Writes the last records and closes the files; on error err has the sentence about the first file
// that failed.
int sim_close(struct sim *s, struct err *err);
// A run for which the memory was too small has failed: -ENOSPC and a sentence.
int sim_had_memory(const struct sim *s, struct err *err);
// Data segments that have arrived at a receiver.
uint64_t sim_data_segs(const struct sim *s);

// Writes summary.json. False: the packet counts do not add up.
bool sim_summary(struct sim *s, FILE *out, const struct facts *verdict);
void sim_fini(struct sim *s);

// branches.c
// Reads the config's section, and checks it; before memory is sized.
int branches_read(struct sim *s, struct err *err);
void branches_fini(struct branches *b);
// Refuses what a process that is forked does not have: guests, and controls in threads or processes
// of their own. Once all of the config is read.
int branches_check(const struct sim *s, struct err *err);
// Before their time: runs all branches, at most so many at a time (0: one for each processor), and
// waits for them. Returns 0 in the trunk, and 1 in a branch, which then goes on; -errno and a
// sentence in a trunk of which a branch failed, and in a branch that cannot begin.
int branches_run(struct sim *s, uint32_t most, struct err *err);
void branches_list(struct run_list *l);

// Parts that other summaries have too. Program, version, title, seed and digest, of streams that
// are closed.
const char *digest_text(const struct tel *tel, char text[17]);
// Utilisation (0..1) of the first group's first link since the start or the warm-up; NaN without a
// link.
double sim_utilisation(struct sim *s);

// changes.c: fills s->others.
void sim_others(struct sim *s);
// setup.c: refuses a schedule after which packets come back without delay.
int sim_delays_stay(const struct schedule *schedule, struct err *err);
// sim.c: the owner of all packets. A copy comes from the pool of its original; a flow is told of
// its data that was dropped.
struct pkt_owner sim_owner(struct sim *s);
