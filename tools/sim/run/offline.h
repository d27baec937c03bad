// SPDX-License-Identifier: BSD-3-Clause
// The paths of a config without hosts, in virtual time, fed with captures: any traffic through any
// discipline.
//
//	capture -> path_push -> path_pop -> --pcap
//
// Virtual time begins with the first frame of all captures. What departs keeps its bytes, but for
// CE, and is stamped with the time of the captures. The run ends when the captures have and the
// paths are empty, at its duration at the latest.
#pragma once
#include "common/run/run.h"
#include "switch/path/arrivals.h"
#include "switch/path/capture.h"
#include "switch/path/path.h"
#include "switch/path/schedule.h"

#define OFFLINE_ORDERS 20 // a packet with its bytes takes at most 2^19 bytes

struct offline {
	struct run *run;
	struct paths paths;
	struct schedule schedule;
	struct arrivals source[PATHS_MAX]; // of path i; without a path: it has none
	struct capture *capture; // NULL: none
	bool reads_headers; // a path does
	struct tel tel[TEL_STREAM_COUNT];
	uint64_t base_ns; // of the captures' time, when virtual time begins
	uint64_t now_ns, interval_start_ns, next_interval_ns;
	uint64_t last_ns; // when the last packet left
	bool measuring, ended;
	double wall_s; // duration, filled in by main.c, which reads the clock
	// Packets by their size, 2^order bytes, and the memory they come from.
	struct pkt_list free[OFFLINE_ORDERS];
	void **chunk;
	size_t chunks;
	uint8_t *fresh; // in the last chunk
	size_t fresh_bytes;
	uint64_t no_memory; // packets that were dropped for that
};

// Does a path of the config have a capture as its source?
bool offline_wanted(struct config *c);
// On error nothing needs freeing.
int offline_init(struct offline *o, struct run *run, struct err *err);
// `pcap`: file for the departures, or NULL.
int offline_open(struct offline *o, const char *pcap, struct err *err);
// Until `until_ns` (at most the duration), or until all has left: o->ended. -EIO: a capture is
// damaged.
int offline_run(struct offline *o, uint64_t until_ns, struct err *err);
int offline_close(struct offline *o, struct err *err);
// summary.json; false if the ledger does not balance.
bool offline_summary(struct offline *o, FILE *out, const struct facts *verdict);
void offline_fini(struct offline *o);
