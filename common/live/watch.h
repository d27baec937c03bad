// SPDX-License-Identifier: BSD-3-Clause
// Says which part of a live run fell behind, if any did, and when.
//
// The lcore counts (struct watch_lcore) and shows its counters to other threads every few hundred
// turns. About every 100 ms the control thread takes a sample of them and of what the kernel and the
// drivers count (struct watch_sample). What happened between two samples is judged here, by shares:
//
//	host       turns were interrupted for 2 % of the time or more, or for 1 ms at once
//	port       packets waited for a port that took too little, 10 % of the time or more
//	lcore      1 % of the packets that neither of these disturbed left late, or frames were lost before
//	           they were received
//	pool       there was no buffer for a packet
//	port       frames were lost before one of several lcores received them, and the driver does not say whose
//	telemetry  records were lost
//	clock      the clock was more than 10 us from the kernel's
//
// Each lcore is judged by itself, by a struct watch of its own.
//
// A stall is a turn that took 20 us longer than twice what its packets take on average: between two
// readings of the clock something else had the CPU. It makes packets late and fills rings: what was due
// until the lcore has nothing to do again is its doing, if that is not too long. A pause for DPDK's
// interrupt thread does the same (intr.h; `quiesced` in the summary, and a port's fault says why), and
// a port that was full. A polling loop that does nothing sees what is shorter than 20 us too; on a
// virtual machine it was 0.2 % of the time.
//
// Findings of a kind less than a second apart are one episode, and each episode becomes a sentence.
#pragma once
#include "common/base/hist.h"
#include "common/base/json.h"
#include "common/base/ns.h"
#include "common/live/live.h"

#include <stdatomic.h>

#define WATCH_STALL_NS (20 * NS_PER_US) // a turn that takes longer than its work was interrupted
// What gathered during a stall is done within so many times its length: a lcore that needs longer is more
// than four fifths busy, and too slow itself.
#define WATCH_BACKLOG 4
#define WATCH_EPISODES_MAX 40
#define WATCH_SENTENCE_SIZE 256

// A port as the lcore sees it. Totals since the start.
struct watch_port {
	uint64_t full_ns; // time during which packets waited for it
	uint64_t dropped; // because it took none for too long
};

// What an lcore counts. Totals since the start, all of them 64 bits: shown word by word.
struct watch_count {
	uint64_t now_ns;
	uint64_t begun_ns; // the run's start; NEVER_NS: not yet
	uint64_t turns, busy_ns;
	uint64_t stalls, stalled_ns; // interrupted turns
	uint64_t pkts, late_pkts; // that left undisturbed; of these late
	uint64_t no_buffer; // packets dropped for want of one
	uint64_t lost; // telemetry records
	uint64_t not_taken; // frames that other lcores could not hand to it
	struct watch_port port[LIVE_PORTS_MAX];
};
#define WATCH_WORDS (sizeof(struct watch_count) / sizeof(uint64_t))

struct watch_lcore {
	// Set up before the loop.
	uint32_t ports;
	uint64_t pkt_ns_max; // what a turn may take per packet it moves, before that is known
	uint64_t late_ns; // a packet that leaves later than this is late
	// The lcore's own.
	uint64_t turn_ns; // when the present turn began
	uint64_t moved; // packets it received or transmitted
	uint64_t pkt_ns; // what it may take for each of them: twice what they took on average
	uint64_t work_ns, work_pkts; // of turns that were not interrupted
	uint64_t stalled_until_ns; // what is due before this may be late because of a stall
	uint64_t full_until_ns[LIVE_PORTS_MAX]; // the same of a port that was full
	uint64_t full_since_ns[LIVE_PORTS_MAX]; // shown since; NEVER_NS: it takes all
	uint64_t full_from_ns[LIVE_PORTS_MAX]; // since when something does
	struct watch_count count;
	struct hist stall; // lengths of all of them
	struct hist idle; // of turns that found nothing to do
	// For other threads: a copy of count, and the worst since they last looked.
	_Atomic uint64_t shown[WATCH_WORDS];
	_Atomic uint64_t stall_max_ns, stall_at_ns, late_max_ns, waiting_max[LIVE_PORTS_MAX];
	_Atomic int tid; // of the thread; 0: not running yet
};

void watch_lcore_init(struct watch_lcore *w, uint32_t ports, uint64_t pkt_ns_max, uint64_t late_ns);
// The time from from_ns to to_ns is missing.
void watch_stall(struct watch_lcore *w, uint64_t from_ns, uint64_t to_ns);
// How late a packet would leave a lcore that has nothing else to do, at any moment of its idle turns:
// what polling can do on this host, a quantile.
uint64_t watch_floor_ns(const struct watch_lcore *w, double q);
// Makes the counters visible to other threads.
void watch_show(struct watch_lcore *w, uint64_t now_ns);
void watch_shown(const struct watch_lcore *w, struct watch_count *count);

// Time goes on from the last call to now_ns, within a turn or to the next.
static inline void watch_time(struct watch_lcore *w, uint64_t now_ns) {
	uint64_t took_ns = time_since(now_ns, w->turn_ns);

	if (__builtin_expect(took_ns > WATCH_STALL_NS + w->moved * w->pkt_ns, 0)) {
		watch_stall(w, w->turn_ns, now_ns);
	} else if (w->moved > 0) {
		w->work_ns += took_ns;
		w->work_pkts += w->moved;
	}
	w->turn_ns = now_ns;
	w->moved = 0;
}

// After work that is not packets' and may take long: it is not a stall.
static inline void watch_resume(struct watch_lcore *w, uint64_t now_ns) {
	w->turn_ns = now_ns;
	w->moved = 0;
}

// The turn that ends at now_ns found nothing to do: what a stall before it had left is done.
static inline void watch_idle(struct watch_lcore *w, uint64_t now_ns) {
	w->stalled_until_ns = time_min(w->stalled_until_ns, w->turn_ns);
	hist_add(&w->idle, time_since(now_ns, w->turn_ns));
}

// The lcore stood still for DPDK's interrupt thread: what was due is late as after a stall, but it is no
// fault of the host's, nor of the lcore's.
static inline void watch_stood(struct watch_lcore *w, uint64_t from_ns, uint64_t to_ns) {
	w->stalled_until_ns =
		time_max(w->stalled_until_ns, to_ns + WATCH_BACKLOG * (to_ns - from_ns));
	w->turn_ns = to_ns;
}

static inline void watch_max(_Atomic uint64_t *max, uint64_t v) {
	if (v > atomic_load_explicit(max, memory_order_relaxed))
		atomic_store_explicit(max, v, memory_order_relaxed);
}

// What was due before this on a port may have been disturbed by a stall or by the port, full.
static inline uint64_t watch_disturbed_ns(const struct watch_lcore *w, uint32_t port) {
	return time_max(w->stalled_until_ns, w->full_until_ns[port]);
}

// Was a packet that was due then?
static inline bool watch_disturbed(const struct watch_lcore *w, uint32_t port, uint64_t due_ns) {
	return due_ns < watch_disturbed_ns(w, port);
}

// `pkts` left undisturbed, `late` of them by more than w->late_ns and the latest by late_max_ns.
static inline void watch_left(
	struct watch_lcore *w, uint64_t pkts, uint64_t late, uint64_t late_max_ns) {
	w->count.pkts += pkts;
	w->count.late_pkts += late;
	watch_max(&w->late_max_ns, late_max_ns);
}

// `waiting` packets could not be given to a port.
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
		// What gathered is given to it now, and holds the other ports up.
		w->stalled_until_ns = time_max(w->stalled_until_ns,
			now_ns + WATCH_BACKLOG * time_since(now_ns, w->full_from_ns[port]));
		*since_ns = NEVER_NS;
	}
}

// All that is known at a moment. Totals since the start, but for the worst.
struct watch_sample {
	struct watch_count count;
	uint64_t stall_max_ns, stall_at_ns, late_max_ns; // since the sample before
	uint64_t waiting_max[LIVE_PORTS_MAX];
	uint64_t waited_ns; // the lcore's thread was ready to run and another one ran
	uint64_t steal_ns; // the hypervisor ran something else on the lcore's CPU
	uint64_t missed; // frames that were lost before they were received
	uint64_t port_missed
		[LIVE_PORTS_MAX]; // likewise, but which of several lcores was late is not known
	int64_t clock_offset_ns; // now
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
	uint64_t span_ns, busy_ns; // of the findings; of that, busy
	uint64_t worst, worst_at_ns; // ns late or missing, or packets waiting
	uint64_t count; // packets dropped or lost, records lost
	uint64_t pkts, late_pkts;
	uint64_t waited_ns, steal_ns;
};

struct watch {
	// Set up before the run.
	const char *self; // "switch"
	const char *packets; // what it sends: "packets", "paced packets"
	uint32_t cpu;
	bool several; // the program has other lcores beside this
	const char *port_name[LIVE_PORTS_MAX];
	uint32_t ports;
	// Found.
	bool begun;
	struct watch_sample last;
	uint64_t excused_until_ns; // a stall's after-effects
	struct watch_episode episode[WATCH_EPISODES_MAX];
	uint32_t episodes;
};

// The next sample. False: it is less than 50 ms after the one before and not the last, and was left
// out; the worst go on to the next one.
bool watch_add(struct watch *w, const struct watch_sample *s, bool last);
// Puts the worst first. No samples after that.
void watch_finish(struct watch *w);
// An episode's sentence. Times count from the run's start.
void watch_sentence(
	const struct watch *w, const struct watch_episode *e, char text[WATCH_SENTENCE_SIZE]);
// `outcome` unless it is "ok" and something fell behind on one of the lcores: then the worst one's
// sentence, in `text`.
const char *watch_verdict(const struct watch *w, uint32_t lcores, const char *outcome,
	char text[WATCH_SENTENCE_SIZE]);
// "verdicts": [...] of all lcores.
void watch_json(const struct watch *w, uint32_t lcores, struct json *j);
const char *watch_cause_name(enum watch_cause cause);

// What /proc says. Time in ns the hypervisor stole from a CPU (/proc/stat), and a thread waited for
// one (schedstat); how often it lost it without asking (status). 0 where the text does not say.
uint64_t watch_parse_steal(const char *stat, uint32_t cpu, uint64_t ticks_per_s);
uint64_t watch_parse_waited(const char *schedstat);
uint64_t watch_parse_preempted(const char *status);
