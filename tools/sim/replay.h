// SPDX-License-Identifier: BSD-3-Clause
// A recording of arrivals (telemetry.arrivals) through the same paths again, in virtual time: no hosts,
// no traffic but what was recorded, live or by weir-sim.
//
//	arrivals.ring -> path_push, path_set_again -> path_pop -> packets.ring
//
// The paths are those of the run's own config with its seed, so the links and the dice are the same. They
// are served once per burst of arrivals, not as often as they were: what comes out must not depend on it.
// The records of each stage then are those of the recorded run, bit for bit and in the same order; how
// the stages' records lie between each other is not. Departures from a path have no lateness here.
#pragma once
#include "common/run/run.h"
#include "sender/group.h"
#include "switch/live/plan.h"
#include "switch/path.h"

struct replay {
	struct run *run;
	const char *name; // of the recording
	const struct tel_header *header; // mapped
	size_t map_size;
	const struct tel_arrivals *record;
	uint64_t records;
	struct plan plan; // flow groups
	struct paths paths;
	struct stage_env exit[PATHS_MAX]; // who tells departures
	struct tel packets;
	struct pkt *base; // one per record at most, touched as far as the paths fill
	uint64_t fresh; // never used yet from here on
	struct pkt_list free;
	uint64_t now_ns, arrivals, changes, ends;
	double wall_s; // it took, by whoever has a clock
};

// Opens the recording and makes the paths. -EIO: it has holes or no end, which the sentence counts. On
// error nothing needs freeing.
int replay_init(struct replay *r, struct run *run, const char *file, struct err *err);
// Opens packets.ring in the run folder, at levels 2 and 3.
int replay_open(struct replay *r, struct err *err);
// To the end; -EIO: a record that no run of this config wrote, -EINTR: run_stop.
int replay_run(struct replay *r, struct err *err);
// Closes packets.ring.
int replay_close(struct replay *r, struct err *err);
// summary.json; false if the ledger does not balance. Figures are of the whole recording.
bool replay_summary(struct replay *r, FILE *out, const char *verdict);
void replay_fini(struct replay *r);
