// SPDX-License-Identifier: BSD-3-Clause
// Virtual time: two hosts and two paths, no clock.
//
//	sender --forward--> receiver --reverse--> sender
//
// There is no event queue. Time advances in windows [T, W) that end no later than the first event in
// them plus the least delay of one path, the "cut". What leaves the cut within a window was sent before
// it, so everything is known and one component after the other can be run through the whole window, in
// order of time inside each: host behind the cut, other path, other host, cut. The result is that of an event queue,
// to the nanosecond and whatever the window, at a fraction of its cost: each component's state is
// warm while it runs, and packets pass between them in order.
#pragma once
#include "common/run/run.h"
#include "sender/group.h"
#include "sender/host.h"
#include "switch/path.h"
#include "switch/schedule.h"

struct sim_pcap;

// Packets of one size. Data and ACKs have pools of their own: there are few ACKs in flight, and
// they stay in the cache. A segment with SACK blocks or SYN options needs a second cache line.
enum sim_pool_kind { POOL_FORWARD, POOL_REVERSE, POOL_LARGE, POOLS };
struct sim_pool {
	char *base;
	struct pkt **free; // a stack: last freed, first handed out, so that packets stay warm
	uint64_t frees;
	uint64_t size, next; // objects; never handed out yet from `next` on
	size_t object; // bytes
};

// What a host sends goes into its path in bursts.
#define SIM_BURST 64
struct sim_burst {
	struct pkt *pkt[SIM_BURST];
	uint32_t count;
};

// What the run took: wall clock of all of it; and since the end of the warm-up.
struct sim_cost {
	double wall_s;
	double measured_wall_s, measured_cpu_s; // 0: the warm-up has not ended
	uint64_t measured_segs; // sim_data_segs in that time
};

struct sim {
	struct run *run;
	struct groups groups;
	struct paths paths;
	struct path *forward, *reverse;
	struct schedule schedule;
	struct host sender, receiver;
	struct sim_pool pool[POOLS];
	uint64_t inside, inside_max; // packets
	uint64_t unsent; // packets that were dropped because a pool was empty
	struct sim_burst burst[POOL_REVERSE + 1]; // per path, empty between windows
	struct sim_pcap *pcap; // NULL: none
	struct tel tel[TEL_STREAM_COUNT];
	uint64_t now_ns; // everything before this is done
	uint64_t next_interval_ns;
	bool measuring;
	struct sim_cost cost; // by whoever has a clock
};

// Reads the config's sections and sizes everything. On error nothing needs freeing.
int sim_init(struct sim *s, struct run *run, struct err *err);
// Opens the telemetry streams, in the run folder or only for the digest. `pcap`: file or NULL.
int sim_open(struct sim *s, const char *pcap, struct err *err);
// Runs until `until_ns` (at most the duration) or until the stop rule ends it.
void sim_run(struct sim *s, uint64_t until_ns);
// Last records, files closed; the sentence of the first file that could not be written.
int sim_close(struct sim *s, struct err *err);
// Data segments that have arrived at a receiver.
uint64_t sim_data_segs(const struct sim *s);

// summary.json; false if the ledger does not balance.
bool sim_summary(struct sim *s, FILE *out, const char *verdict);
void sim_fini(struct sim *s);
// Share of the forward link's capacity used since the start or the warm-up; NaN without a link.
double sim_utilisation(struct sim *s);

// pcap.c: packets as the sender's port sees them, in both directions.
// Can `path` become a capture? Without `force` none that is there is overwritten.
int sim_pcap_check(const char *path, bool force, struct err *err);
struct sim_pcap *sim_pcap_open(const char *path, struct err *err);
void sim_pcap_write(struct sim_pcap *p, const struct pkt *pkt, const struct seg *seg, uint8_t ecn,
	uint64_t t_ns, bool to_receiver);
int sim_pcap_close(struct sim_pcap *p, struct err *err); // NULL is fine
