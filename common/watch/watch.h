// SPDX-License-Identifier: BSD-3-Clause
// Finds which part of a live run fell behind, if any, and when.
//
// The lcore counts (watch_lcore.h) and publishes its counters every few hundred iterations. About
// every 100 ms the control thread takes a sample of them and of the kernel's and the drivers'
// counters (struct watch_sample). The interval between two samples is judged here:
//
//	host       iterations were interrupted for 2 % of the time or more, or for 1 ms at once
//	port       packets waited for a port that took too little, 10 % of the time or more
//	lcore      1 % of the packets that neither of these disturbed left late, or frames were lost
//	           before they were received
//	pool       there was no buffer for a packet
//	port       frames were lost before one of several lcores received them, and the driver does
//	           not say in which of their queues
//	telemetry  records were lost
//	clock      the clock was more than 10 us from the kernel's
//
// Each lcore is judged by itself, by a struct watch of its own.
//
// Findings of a kind less than a second apart are one episode, and each episode becomes a sentence.
#pragma once
#include "common/base/fact.h"
#include "common/watch/lcore.h"

#define WATCH_EPISODES_MAX 40

// All counters at one moment.
struct watch_sample {
	// Totals since the start, all of them 64 bits.
	struct watch_count count;
	uint64_t waited_ns; // the lcore's thread was ready to run and another one ran
	uint64_t steal_ns; // the hypervisor ran something else on the lcore's CPU
	uint64_t missed; // frames that were lost before they were received
	uint64_t port_missed[LIVE_PORTS_MAX]; // likewise, but the lcore at fault is not known
	// Maxima since the sample before.
	uint64_t stall_max_ns, stall_at_ns, late_max_ns;
	uint64_t waiting_max[LIVE_PORTS_MAX];
	// Present values.
	int64_t clock_offset_ns;
	bool port_up[LIVE_PORTS_MAX];
};

enum watch_cause {
	WATCH_HOST,
	WATCH_PORT,
	WATCH_LCORE,
	WATCH_POOL,
	WATCH_MISSED,
	WATCH_TELEMETRY,
	WATCH_CLOCK,
};

struct watch_episode {
	enum watch_cause cause;
	uint32_t port;
	uint64_t from_ns, to_ns; // on the run's clock
	uint64_t bad_ns; // host: stalled; port: full; else how long it was found
	uint64_t span_ns, busy_ns; // duration of the findings; the lcore's busy time in it
	uint64_t worst, worst_at_ns; // ns late or missing, or packets waiting
	uint64_t count; // packets dropped or lost, records lost
	uint64_t pkts, late_pkts;
	uint64_t waited_ns, steal_ns;
};

struct watch {
	// Set up before the run.
	const char *self; // "switch"
	const char *packets; // in sentences: "packets", "paced packets"
	uint32_t cpu;
	bool several; // the program has other lcores beside this
	bool untimed; // only losses are judged
	const char *port_name[LIVE_PORTS_MAX];
	// Who takes its frames: "the kernel behind interface veth1, port right,".
	const char *port_peer[LIVE_PORTS_MAX];
	uint32_t ports;
	// Findings.
	bool begun;
	struct watch_sample last;
	uint64_t excused_until_ns; // end of a stall's after-effects
	struct watch_episode episode[WATCH_EPISODES_MAX];
	uint32_t episodes;
};

// Adds a sample. False: it was ignored, because it is less than 50 ms after the one before and not
// the last; its maxima go into the next sample.
bool watch_add(struct watch *w, const struct watch_sample *s, bool last);
// Sorts the episodes, worst first. No samples may be added after that.
void watch_finish(struct watch *w);
// An episode as a fact. Times count from the run's start.
void watch_fact(const struct watch *w, const struct watch_episode *e, struct fact *f);
// Adds the episodes of all lcores, the worst first.
void watch_facts(const struct watch *w, uint32_t lcores, struct facts *all);

// The i-th number (from 1) after `name` in a text from /proc; 0: there is none.
uint64_t watch_number(const char *text, const char *name, uint32_t i);
