// SPDX-License-Identifier: BSD-3-Clause
// An lcore of a live program: its loop, the same in both programs.
//
//	iteration      receives frames, reads the clock, does the program's work, transmits
//	housekeeping   every 256 iterations: waits while another thread holds the lcores
//	               (quiesce.h), follows the clock and the links of its ports, answers the
//	               control thread, ends the warm-up and the run
//
// A program supplies a struct lcore_ops, and its own struct for an lcore begins with a struct
// lcore. The first lcore disciplines the clock and starts the run.
//
// The clock is read after frames were received, so that no frame arrives before it was sent, and
// none leaves early.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/base/clock.h"
#include "common/live/lcore/control.h"
#include "common/live/port/port.h"
#include "common/telemetry/telemetry.h"
#include "common/watch/lcore.h"

#include <stdatomic.h>

#define LCORE_HOUSEKEEPING 256 // iterations

struct lcore;

struct lcore_ops {
	// The lcore's main function: calls lcore_loop with these ops, between its own preparations
	// and clean-up.
	void (*loop)(struct lcore *l);
	// Receives a burst from each port and from other lcores; returns the number of frames.
	uint32_t (*receive)(struct lcore *l);
	// Processes these frames and the timers due at l->now_ns; transmits frames that are due.
	void (*run)(struct lcore *l, uint32_t nb_rx);
	// The program's own work between iterations. True: it may have taken long, and is not
	// counted as a stall.
	bool (*housekeep)(struct lcore *l);
	// The run starts now; l->start_ns is set. May be NULL.
	void (*start)(struct lcore *l);
	// The warm-up is over: resets the figures.
	void (*measure)(struct lcore *l);
	// Answers l->box.request. False: the answer takes longer; the program calls lcore_answered
	// when it is there.
	bool (*answer)(struct lcore *l);
	// Fills in the counters that only the program has: no_buffer, not_taken.
	void (*observe)(const struct lcore *l, struct watch_count *c);
};

// Time used by an lcore's iterations.
struct lcore_load {
	uint64_t iterations, busy_ns, iteration_max_ns;
	uint64_t quiesced, quiesced_max_ns; // pauses for DPDK's interrupt thread
};

struct lcore {
	// Set up before the loop.
	struct lcore *const *all; // all lcores of the process
	uint32_t lcores, index; // the number of lcores; this lcore's index in `all`
	const struct lcore_ops *ops;
	struct port *port[LIVE_PORTS_MAX];
	uint32_t ports;
	bool owns_port[LIVE_PORTS_MAX]; // this lcore watches the port's link and clock
	int rx_queue[LIVE_PORTS_MAX]; // the port's queue from which this lcore receives; -1: none
	uint64_t duration_ns, warmup_ns;
	uint64_t interval_ns; // 0: no records of intervals
	struct tel tel[TEL_STREAM_COUNT]; // this lcore's rings; `stream` points to those in use
	struct tel *stream[TEL_STREAM_COUNT];
	uint32_t streams;

	// Used by the loop only.
	struct clock clock;
	uint64_t now_ns; // of this iteration
	uint64_t lead_ns; // added to the clock, for a port that transmits at given times
	bool busy; // this iteration has work
	struct lcore_load load;
	uint64_t start_ns; // duration and warm-up count from here; NEVER_NS: not yet
	uint64_t measure_ns; // end of the warm-up; NEVER_NS once it is over
	uint64_t measured_ns; // when it was over
	uint64_t interval_next_ns;
	uint64_t loop_ns; // when the loop began
	uint64_t published; // records published, of all streams
	struct watch_lcore watch;
	bool ended; // the duration is over, or the program has nothing more to do

	// Shared with other threads.
	struct control_box box;
	bool answering; // a request is being answered over several iterations
	_Atomic uint64_t begun_ns; // in the first lcore: start_ns of all; NEVER_NS: not yet
	_Atomic bool stop; // in the first lcore: all lcores are to end
	_Atomic bool running, done; // `running` stays set when the loop has ended
};

// Initialises the lcore before its loop; there is no traffic yet.
void lcore_init(struct lcore *l, struct lcore *const *all, uint32_t lcores, uint32_t index,
	const struct lcore_ops *ops);
// Starts the run: duration and warm-up count from now, or from the time at which another lcore
// started it.
void lcore_start(struct lcore *l);
// The same with a start time that the program has chosen beforehand.
void lcore_start_at(struct lcore *l, uint64_t start_ns);
// Resets the figures now.
void lcore_measure(struct lcore *l);
// The request in the lcore's box is answered.
void lcore_answered(struct lcore *l);
// Whether an interval has ended; moves interval_next_ns beyond now.
bool lcore_interval_over(struct lcore *l);

// The parts of the loop. lcore_begin starts to use the ports and to answer requests.
void lcore_begin(struct lcore *l);
bool lcore_housekeeping(struct lcore *l); // false: the run is over
void lcore_leave(struct lcore *l);
// Reads the state of its ports, which drivers' handlers may have connected or disconnected.
void lcore_handle_ports(struct lcore *l);
void lcore_publish_all(struct lcore *l);
// Waits for DPDK's interrupt thread if it holds the lcores, and follows the ports' links; part of
// lcore_housekeeping.
// True: it held them. A thread that runs several lcores then has to call lcore_handle_ports for
// each of them.
bool lcore_follow_ports(struct lcore *l);
// Publishes the counters for other threads.
void lcore_show(struct lcore *l);

// Publishes this iteration's telemetry records.
static inline void lcore_publish(struct lcore *l) {
	uint64_t records = 0;

	for (uint32_t i = 0; i < l->streams; i++)
		records += l->stream[i]->head;
	if (records == l->published)
		return;
	l->published = records;
	for (uint32_t i = 0; i < l->streams; i++)
		tel_publish(l->stream[i]);
}

// Reads the clock within an iteration and advances now_ns.
static inline void lcore_advance(struct lcore *l) {
	uint64_t now_ns = clock_now(&l->clock) + l->lead_ns;

	l->load.busy_ns += time_since(now_ns, l->now_ns);
	l->now_ns = time_max(now_ns, l->now_ns);
}

// One iteration. Inlined with constant ops, so that the program's functions are called directly.
static inline __attribute__((always_inline)) void lcore_iterate(
	struct lcore *l, const struct lcore_ops *ops) {
	uint32_t nb_rx = ops->receive(l);
	uint64_t clock_ns = clock_now(&l->clock), now_ns = clock_ns + l->lead_ns;

	if (l->busy) { // of the iteration before, which ends now
		uint64_t took_ns = time_since(now_ns, l->now_ns);

		l->load.busy_ns += took_ns;
		l->load.iteration_max_ns = time_max(l->load.iteration_max_ns, took_ns);
	} else {
		watch_idle(&l->watch, clock_ns);
	}
	l->now_ns = time_max(now_ns, l->now_ns);
	l->busy = nb_rx > 0;
	watch_time(&l->watch, clock_ns);
	l->watch.moved = nb_rx;
	ops->run(l, nb_rx);
	lcore_publish(l);
	l->load.iterations++;
}

// Runs iterations until the duration is over, `stop` is set or a signal arrives.
static inline __attribute__((always_inline)) void lcore_loop(
	struct lcore *l, const struct lcore_ops *ops) {
	lcore_begin(l);
	do {
		for (int i = 0; i < LCORE_HOUSEKEEPING; i++)
			lcore_iterate(l, ops);
	} while (lcore_housekeeping(l));
	lcore_leave(l);
}
