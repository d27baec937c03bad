// SPDX-License-Identifier: BSD-3-Clause
// An lcore's counters for the watch (watch.h), and the times in which its packets were disturbed.
//
// A stall is an iteration that took 20 us longer than twice the average time of its packets:
// something else used the CPU. It makes packets late and fills rings: packets due before the lcore
// is idle again count as disturbed by it, for a limited time. A pause for DPDK's interrupt thread
// (quiesce.h; `quiesced` in the summary, and a port's fault has the reason) and a full port disturb
// packets in the same way. Interruptions shorter than 20 us are not counted; an idle polling loop
// on a virtual machine saw them for 0.2 % of the time.
#pragma once
#include "common/base/hist.h"
#include "common/base/ns.h"
#include "common/config/live.h"

#include <stdatomic.h>

// An iteration that takes this much longer than its work was interrupted.
#define WATCH_STALL_NS (20 * NS_PER_US)
// The work that gathered during a stall should be done within this many times its length: an lcore
// that needs longer is more than four fifths busy, and itself too slow.
#define WATCH_BACKLOG 4

// A port as the lcore sees it. Totals since the start.
struct watch_port {
	uint64_t full_ns; // time during which packets waited for it
	uint64_t dropped; // because the port took none for too long
};

// An lcore's counters: totals since the start, all of 64 bits, so that they can be published word
// by word.
struct watch_count {
	uint64_t now_ns;
	uint64_t begun_ns; // the run's start; NEVER_NS: not yet
	uint64_t iterations, iteration_max_ns, busy_ns;
	uint64_t stalls, stalled_ns; // interrupted iterations
	uint64_t pkts, late_pkts; // packets that left undisturbed; the late ones of them
	uint64_t no_buffer; // packets dropped for lack of a buffer
	uint64_t lost; // telemetry records that were dropped
	uint64_t not_taken; // frames dropped by other lcores: the ring to this one was full
	uint64_t handed_over, handover_dropped; // frames given to other lcores; dropped, ring full
	struct watch_port port[LIVE_PORTS_MAX];
};
#define WATCH_WORDS (sizeof(struct watch_count) / sizeof(uint64_t))

struct watch_lcore {
	// Set up before the loop.
	uint32_t ports;
	uint64_t pkt_ns_max; // allowed time per packet until it has been measured
	uint64_t late_ns; // a packet that leaves later than this is late
	// Used by the lcore only.
	uint64_t began_ns; // when the present iteration began
	uint64_t moved; // packets received or transmitted in it
	uint64_t pkt_ns; // allowed time per packet: twice the measured average
	uint64_t work_ns, work_pkts; // time and packets of uninterrupted iterations
	uint64_t stalled_until_ns; // packets due before this may be late because of a stall
	uint64_t full_until_ns[LIVE_PORTS_MAX]; // the same for a full port
	uint64_t full_since_ns[LIVE_PORTS_MAX]; // full_ns is counted up to here; NEVER_NS: not full
	uint64_t full_from_ns[LIVE_PORTS_MAX]; // since when packets have waited for the port
	struct watch_count count;
	struct hist stall; // lengths of all stalls
	struct hist idle; // lengths of idle iterations
	// For other threads: a copy of `count`, and the maxima since the last sample.
	_Atomic uint64_t shown[WATCH_WORDS];
	_Atomic uint64_t stall_max_ns, stall_at_ns, late_max_ns, waiting_max[LIVE_PORTS_MAX];
	_Atomic int tid; // the thread's id; 0: not running yet
};

void watch_lcore_init(struct watch_lcore *w, uint32_t ports, uint64_t pkt_ns_max, uint64_t late_ns);
// Counts a stall from from_ns to to_ns.
void watch_stall(struct watch_lcore *w, uint64_t from_ns, uint64_t to_ns);
// The quantile q of the lateness, in ns, of packets due at random moments of idle iterations: the
// best that polling can do on this host.
uint64_t watch_floor_ns(const struct watch_lcore *w, double q);
// Publishes the counters for other threads.
void watch_show(struct watch_lcore *w, uint64_t now_ns);
void watch_shown(const struct watch_lcore *w, struct watch_count *count);

// Accounts for the time from the last call to now_ns, within an iteration or to the next.
static inline void watch_time(struct watch_lcore *w, uint64_t now_ns) {
	uint64_t took_ns = time_since(now_ns, w->began_ns);

	if (__builtin_expect(took_ns > WATCH_STALL_NS + w->moved * w->pkt_ns, 0)) {
		watch_stall(w, w->began_ns, now_ns);
	} else if (w->moved > 0) {
		w->work_ns += took_ns;
		w->work_pkts += w->moved;
	}
	w->began_ns = now_ns;
	w->moved = 0;
}

// To be called after other work than packets, which may take long and is not a stall.
static inline void watch_resume(struct watch_lcore *w, uint64_t now_ns) {
	w->began_ns = now_ns;
	w->moved = 0;
}

// The iteration that ends at now_ns was idle: the work left by an earlier stall is done.
static inline void watch_idle(struct watch_lcore *w, uint64_t now_ns) {
	w->stalled_until_ns = time_min(w->stalled_until_ns, w->began_ns);
	hist_add(&w->idle, time_since(now_ns, w->began_ns));
}

// The lcore was quiesced: packets are late as after a stall, but neither the host nor the lcore is
// at fault.
static inline void watch_quiesced(struct watch_lcore *w, uint64_t from_ns, uint64_t to_ns) {
	w->stalled_until_ns =
		time_max(w->stalled_until_ns, to_ns + WATCH_BACKLOG * (to_ns - from_ns));
	w->began_ns = to_ns;
}

static inline void watch_max(_Atomic uint64_t *max, uint64_t v) {
	if (v > atomic_load_explicit(max, memory_order_relaxed))
		atomic_store_explicit(max, v, memory_order_relaxed);
}

// Packets due before this time on the port may have been disturbed by a stall or because the port
// was full.
static inline uint64_t watch_disturbed_ns(const struct watch_lcore *w, uint32_t port) {
	return time_max(w->stalled_until_ns, w->full_until_ns[port]);
}

// Whether a packet due at due_ns may have been disturbed.
static inline bool watch_disturbed(const struct watch_lcore *w, uint32_t port, uint64_t due_ns) {
	return due_ns < watch_disturbed_ns(w, port);
}

// Counts `pkts` packets that left undisturbed, `late` of them by more than w->late_ns, at most by
// late_max_ns.
static inline void watch_left(
	struct watch_lcore *w, uint64_t pkts, uint64_t late, uint64_t late_max_ns) {
	w->count.pkts += pkts;
	w->count.late_pkts += late;
	watch_max(&w->late_max_ns, late_max_ns);
}

// Counts the time for which `waiting` packets could not be given to a port.
static inline void watch_waiting(
	struct watch_lcore *w, uint32_t port, uint64_t waiting, uint64_t now_ns) {
	uint64_t *since_ns = &w->full_since_ns[port];

	if (waiting > 0) {
		watch_max(&w->waiting_max[port], waiting);
		w->full_until_ns[port] = now_ns;
		if (*since_ns == NEVER_NS)
			*since_ns = w->full_from_ns[port] = now_ns;
	} else if (*since_ns != NEVER_NS) {
		w->count.port[port].full_ns += time_since(now_ns, *since_ns);
		// The packets that gathered are sent to it now, which delays the other ports.
		w->stalled_until_ns = time_max(w->stalled_until_ns,
			now_ns + WATCH_BACKLOG * time_since(now_ns, w->full_from_ns[port]));
		*since_ns = NEVER_NS;
	}
}
