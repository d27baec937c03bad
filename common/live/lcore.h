// SPDX-License-Identifier: BSD-3-Clause
// An lcore of a live program: its loop, the same in both programs.
//
//	iteration      frames are received; the clock is read; the program works and transmits
//	housekeeping   every 256 iterations: the lcore stands still for DPDK's interrupt thread if that waits,
//	               follows the clock and its ports, answers the control thread, looks whether the
//	               warm-up or the run is over
//
// A program supplies one struct lcore_ops and has a struct lcore first in the struct of its own lcore. The
// first lcore looks after what there is one of: the clock, the start of the run.
//
// The clock is read after frames were received, so that nothing arrives before it was sent, and no packet
// leaves early.
#pragma once
#include "common/live/dpdk.h"

#include "common/live/clock.h"
#include "common/live/control.h"
#include "common/live/port.h"
#include "common/live/watch.h"
#include "common/telemetry/telemetry.h"

#include <stdatomic.h>

#define LCORE_HOUSEKEEPING 256 // iterations

struct lcore;

struct lcore_ops {
	// The lcore's life: lcore_loop with these ops, and what comes before and after it.
	void (*loop)(struct lcore *l);
	// A burst from each port and from other lcores; the frames that came.
	uint32_t (*receive)(struct lcore *l);
	// What follows from them and from the time, l->now_ns; transmits what is due.
	void (*run)(struct lcore *l, uint32_t nb_rx);
	// What else there is to do between iterations. True: it took as long as it took, which is no stall.
	bool (*housekeep)(struct lcore *l);
	// The run starts now, l->start_ns is set (may be NULL).
	void (*start)(struct lcore *l);
	// The warm-up is over: figures start anew.
	void (*measure)(struct lcore *l);
	// Answers the question l->request. False: not yet, lcore_answered says when.
	bool (*answer)(struct lcore *l);
	// Counts what the program alone knows: no_buffer, not_taken.
	void (*observe)(const struct lcore *l, struct watch_count *c);
};

// What an lcore's iterations took.
struct lcore_load {
	uint64_t iterations, busy_ns, iteration_max_ns;
	uint64_t quiesced, quiesced_max_ns; // stood still for DPDK's interrupt thread
};

struct lcore {
	// Set up before the loop.
	struct lcore *const *all; // of the process, the first of them
	uint32_t lcores, index; // in it
	const struct lcore_ops *ops;
	struct port *port[LIVE_PORTS_MAX];
	uint32_t ports;
	bool owns_port[LIVE_PORTS_MAX]; // looks after its link and its clock
	int rx_queue[LIVE_PORTS_MAX]; // of the port, that it receives from; -1: none
	uint64_t duration_ns, warmup_ns;
	uint64_t interval_ns; // 0: no records of intervals
	struct tel tel[TEL_STREAM_COUNT]; // its own rings, of the streams that are on:
	struct tel *stream[TEL_STREAM_COUNT];
	uint32_t streams;

	// The loop's own.
	struct clock clock;
	uint64_t now_ns; // of this iteration
	uint64_t lead_ns; // that it is ahead of the clock (a port that keeps packets' times)
	bool busy; // this iteration does something
	struct lcore_load load;
	uint64_t start_ns; // duration and warm-up count from here; NEVER_NS: not yet
	uint64_t measure_ns; // end of the warm-up; NEVER_NS once it is over
	uint64_t measured_ns; // when it was over
	uint64_t interval_next_ns;
	uint64_t loop_ns; // when the loop began
	uint64_t published; // records of all streams
	struct watch_lcore watch;
	bool ended; // the duration is over

	// Shared with other threads.
	struct control_box box;
	int request; // the question in it
	bool answering; // later than at once
	_Atomic uint64_t begun_ns; // of the first lcore: start_ns of all; NEVER_NS: not yet
	_Atomic bool stop; // of the first lcore: all are to end
	_Atomic bool running, done; // running: or has run
};

// Before the loop: no traffic yet.
void lcore_init(struct lcore *l, struct lcore *const *all, uint32_t lcores, uint32_t index,
	const struct lcore_ops *ops);
// Duration and warm-up count from now, or from when another lcore began.
void lcore_start(struct lcore *l);
// They count from this moment, which the program knows beforehand.
void lcore_start_at(struct lcore *l, uint64_t start_ns);
// Figures start anew, now.
void lcore_measure(struct lcore *l);
// The question in its box is answered.
void lcore_answered(struct lcore *l);
// Has an interval ended? The next one then ends later than now.
bool lcore_interval_over(struct lcore *l);

// The loop's parts.
// Takes over the ports as DPDK's interrupt thread left them; is there for questions from now on.
void lcore_begin(struct lcore *l);
bool lcore_housekeeping(struct lcore *l); // false: the run is over
void lcore_leave(struct lcore *l);
// Its ports are as drivers, which may have connected or disconnected them, left them.
void lcore_handle_ports(struct lcore *l);
void lcore_publish_all(struct lcore *l);
// DPDK's interrupt thread does what it has to; ports are followed. lcore_housekeeping does it too.
void lcore_follow_ports(struct lcore *l);
// Counters for other threads.
void lcore_show(struct lcore *l);

// Makes this iteration's records visible.
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

// The clock within an iteration: what is due by now may be done.
static inline void lcore_advance(struct lcore *l) {
	uint64_t now_ns = clock_now(&l->clock) + l->lead_ns;

	l->load.busy_ns += time_since(now_ns, l->now_ns);
	l->now_ns = time_max(now_ns, l->now_ns);
}

// One iteration. Inlined with the program's ops, whose functions it then calls directly.
static inline __attribute__((always_inline)) void lcore_iterate(
	struct lcore *l, const struct lcore_ops *ops) {
	uint32_t nb_rx = ops->receive(l);
	uint64_t clock_ns = clock_now(&l->clock), now_ns = clock_ns + l->lead_ns;

	if (l->busy) { // the iteration before was, until now
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

// An lcore's life: until the duration is over, `stop` or a signal.
static inline __attribute__((always_inline)) void lcore_loop(
	struct lcore *l, const struct lcore_ops *ops) {
	lcore_begin(l);
	do {
		for (int i = 0; i < LCORE_HOUSEKEEPING; i++)
			lcore_iterate(l, ops);
	} while (lcore_housekeeping(l));
	lcore_leave(l);
}
