// SPDX-License-Identifier: BSD-3-Clause
// Replays a recording of arrivals (telemetry.arrivals), made live or by weir-sim, through the same
// paths in virtual time. There are no hosts and no other traffic.
//
//	arrivals.ring -> path_push, path_set_recorded -> path_pop -> packets.ring
//
// The paths are made from the run's own config with its seed, so the links and the random streams
// are the same. They are served once per burst of arrivals, not as often as in the run: the result
// must not depend on it. The records of each stage are those of the recorded run, bit for bit and
// in the same order; the interleaving of different stages' records is not. Departures from a path
// have no lateness here.
#pragma once
#include "common/run/run.h"
#include "sender/group/group.h"
#include "switch/path/path.h"
#include "switch/path/switch_config.h"

struct replay {
	struct run *run;
	const char *name; // of the recording
	const struct tel_header *header; // mapped
	size_t map_size;
	const struct tel_arrivals *record;
	uint64_t records;
	struct switch_config config; // flow groups
	struct hosts hosts;
	struct paths paths;
	struct stage_env exit[PATHS_MAX]; // traces the departures of each path
	struct replay_headers {
		uint32_t pkt_id;
		struct pkt_headers read;
	} headers[PATHS_MAX]; // each path's last recorded ones
	struct tel packets;
	struct replay_pkt *base; // packets_max; pages are touched only when used
	uint64_t packets_max; // one per record, and its copies
	uint64_t fresh; // index of the first packet that was never used
	struct pkt_list free;
	uint64_t now_ns, arrivals, changes, ends;
	double wall_s; // duration, filled in by main.c, which reads the clock
};

// Opens the recording and makes the paths. -EIO: records are missing, as the sentence says. On
// error there is nothing to free.
int replay_init(struct replay *r, struct run *run, const char *file, struct err *err);
// Opens packets.ring in the run folder, at levels 2 and 3.
int replay_open(struct replay *r, struct err *err);
// Replays to the end: 0; -EIO: a record does not fit this config; -EINTR: run_stop.
int replay_run(struct replay *r, struct err *err);
// Closes packets.ring.
int replay_close(struct replay *r, struct err *err);
// Writes summary.json, with figures of the whole recording. False: the packet counts do not add up.
bool replay_summary(struct replay *r, FILE *out, const struct facts *verdict);
void replay_fini(struct replay *r);
