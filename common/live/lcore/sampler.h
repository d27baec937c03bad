// SPDX-License-Identifier: BSD-3-Clause
// Takes the samples that common/watch/watch.h judges: counters of the lcore, the drivers and the
// kernel. All functions run on the control thread.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/lcore/lcore.h"
#include "common/watch/watch.h"

struct watch_sampler {
	struct watch *watch;
	struct lcore *lcore;
	int stat_fd, sched_fd, status_fd; // files of /proc; -1: not available
	uint64_t begun_waited_ns, begun_steal_ns; // before the run
	uint64_t preempted, begun_preempted; // involuntary context switches of the lcore's thread
	uint64_t no_buffer; // frames for which drivers found no buffer
	struct watch_sample sample; // the last
};

// To be called before the lcore runs, when its ports are known; the caller has set watch->self and
// watch->packets.
// `pkt_ns`: upper bound of an iteration's time per packet; the kernel's work is added for ports
// through which the kernel transmits.
void watch_sampler_init(struct watch_sampler *s, struct watch *watch, struct lcore *lcore,
	const struct live_process *process, uint64_t pkt_ns);
// Takes a sample, every 100 ms, and a last one after the lcore has ended. The first lcore's also
// disciplines the clock.
void watch_sampler_sample(struct watch_sampler *s, bool last);
// Writes "<prefix>host", the lcore's interruptions by the machine, and "<prefix>clock".
void watch_sampler_json(const struct watch_sampler *s, const char *prefix, struct json *j);
// Writes "<prefix>host" only.
void watch_host_json(const struct watch_sampler *s, const char *prefix, struct json *j);
void watch_sampler_fini(struct watch_sampler *s);
