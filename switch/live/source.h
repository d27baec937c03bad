// SPDX-License-Identifier: BSD-3-Clause
// A capture as the arrivals of a live path, at its own times (switch/path/arrivals.h).
//
//	file -> thread of its own -> ring of frames -> lcore of the path -> path_push
//
// A thread, which may wait for the disk, reads ahead and puts whole frames into the ring. In each
// iteration the lcore takes those that are due by now and pushes them with their own times as
// arrivals, not with that of the iteration:
// so a path decides about them as in virtual time. A frame that the thread brought only after the
// lcore had served its path beyond the frame's time is late. It is sent all the same, and counted.
//
// Times count from the first frame of all captures, and the run begins when the ports behind the
// paths are up. What was not captured of a frame's payload is zeros. A frame that is longer than a
// port can send is left out.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/lcore/ring.h"
#include "common/live/port/port.h"
#include "switch/path/arrivals.h"

#include <pthread.h>
#include <sched.h>

#define SOURCE_FRAMES 16384 // that are read ahead: a millisecond of 64 B frames at 10 Gbit/s
#define SOURCE_BURST 64
#define SOURCE_BUFFERS (SOURCE_FRAMES + 2 * SOURCE_BURST)

struct live_app;
struct run;

struct switch_source {
	// The thread's, until it has ended.
	struct arrivals arrivals;
	uint64_t base_ns; // of the capture's time, when the run begins
	struct rte_mempool *pool;
	uint64_t padded; // frames that were captured in part
	cpu_set_t cpus; // on which it may run; empty: any
	int rc; // of reading; < 0: err has the sentence
	struct err err;
	pthread_t thread;
	bool running;
	_Atomic bool read; // the last frame is in the ring

	// A frame's mbuf has its flow_id and its arrival_ns, which counts from base_ns.
	struct lcore_ring ring;

	// The lcore's.
	struct rte_mbuf *burst[SOURCE_BURST]; // taken off the ring
	uint32_t nb_burst, next;
	uint64_t served_ns; // the iteration before
	struct pkt_count pushed;
	uint64_t late, late_max_ns; // packets
};

// Reads the captures that paths have as their sources, up to the first frame. source: one of each
// path. Packets of more than `mtu` bytes are left out if they do not fit a buffer.
int switch_sources_open(
	struct switch_source *source, struct paths *paths, uint64_t mtu, struct err *err);
// Begins to read ahead; returns when the rings are as full as they will be.
int switch_sources_start(struct live_app *live, struct err *err);
// Ends the threads; what no path has got did not arrive.
void switch_sources_stop(struct switch_source *source);
void switch_sources_close(struct switch_source *source);
// Whether all frames of this path's capture have been pushed.
bool switch_source_ended(const struct switch_source *source);
// The next frame, if it is due by now_ns; *due_ns is when it arrives. NULL: none is.
struct rte_mbuf *switch_source_due(
	struct switch_source *source, uint64_t start_ns, uint64_t now_ns, uint64_t *due_ns);
// Once the threads have ended: -errno and a sentence if a capture could not be read.
int switch_sources_outcome(
	const struct switch_source *source, const struct run *run, struct err *err);
// A sentence about frames that were late or left out; the second: of the first path with one.
// False: there is none.
bool switch_source_fault(const struct switch_source *source, struct fact *fault);
// "sources" of the summary.
void switch_sources_summary(const struct switch_source *source, struct json *j);
