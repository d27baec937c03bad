// SPDX-License-Identifier: BSD-3-Clause
// Takes the samples that watch.h judges: the lcore's counters, the drivers', the kernel's. All of it on
// the control thread.
#pragma once
#include "common/live/dpdk.h"

#include "common/live/clock.h"
#include "common/live/port.h"
#include "common/live/watch.h"
#include "common/telemetry/telemetry.h"

struct watch_probe {
	// Set up by the program; of the watch, `self` and `packets`.
	struct watch *watch;
	struct watch_lcore *lcore;
	uint32_t index; // of it among the process's lcores
	struct clock *clock; // the process's; the first lcore's probe looks after it
	const struct port *port[LIVE_PORTS_MAX]; // watch->ports of them
	bool other[LIVE_PORTS_MAX]; // another lcore looks after this one
	int queue[LIVE_PORTS_MAX]; // that the lcore receives from; -1: none
	// The probe's own.
	int stat_fd, sched_fd, status_fd; // of /proc; -1: not there
	uint64_t begun_waited_ns, begun_steal_ns; // before the run
	uint64_t preempted, begun_preempted; // switches the lcore's thread did not ask for
	uint64_t no_buffer; // that drivers did not find
	struct watch_sample sample; // the last
};

// Before the lcore runs. `pkt_ns`: more than a packet takes of a turn; where the kernel transmits, its
// work is allowed for.
void watch_probe_init(
	struct watch_probe *p, const struct live_process *process, uint32_t ports, uint64_t pkt_ns);
// Disciplines the clock and takes a sample; every 100 ms, and once more after the lcore has ended.
void watch_probe_sample(struct watch_probe *p, bool last);
// "host": what the machine did to the lcore, and "clock"; their names begin with prefix.
void watch_probe_json(const struct watch_probe *p, const char *prefix, struct json *j);
// "host" alone.
void watch_host_json(const struct watch_probe *p, const char *prefix, struct json *j);
// What became of a stream's records; nothing of one that had none.
void watch_stream_json(struct json *j, const char *name, const struct tel *t);
void watch_probe_fini(struct watch_probe *p);
