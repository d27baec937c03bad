// SPDX-License-Identifier: BSD-3-Clause
// Carries out the schedule of a source: begins its transfers on flows of its group, and records
// each.
//
//	SOURCE_ARRIVALS  one schedule for the group. A transfer opens a connection on the flow that
//	                 has been free the longest; without a free one it waits, first come, first
//	                 served.
//	SOURCE_PAUSES    one schedule per flow, which the flow's next transfer continues a pause
//	                 after the last one's end
//	SOURCE_WRITES    one schedule per flow, whatever becomes of its transfers
//
// A transfer ends when all of its payload is acknowledged. Its completion time counts from the time
// at which the schedule has it begin, so it includes the handshake and the wait for a free flow.
//
// **Connections.** Where each transfer has its own, a flow is used again as soon as its last
// connection is closed in both directions: the same addresses and ports, and sequence numbers that
// no packet of the old connection can have. **One connection.** Each transfer that shares a
// connection begins a segment of its own, as if it were written with PSH and sent at once; the last
// one is short (tcp/writes.c). It has PSH set, and the receiver acknowledges it at once: the
// application's answer, its next request, would carry this ACK.
//
// With several hosts (lcores), a transfer of a group belongs to the host of flow number n mod
// count, for the n-th transfer, and waits for a free flow there.
#pragma once
#include "common/base/hist.h"
#include "sender/endpoint/endpoint.h"
#include "sender/source/probe.h"
#include "sender/source/source.h"
#include "sender/tcp/flow.h"

// The random streams of all schedules begin anew.
void workloads_reseed(struct endpoint *e, uint64_t seed);

#define WORKLOAD_WRITES                                                                            \
	64 // unfinished transfers of a connection; what would be written beyond them is skipped

struct workload {
	struct host_timer timer; // for the next transfer
	uint16_t group;
	uint32_t flow; // index of its flow; SOURCE_ARRIVALS: of none
	uint32_t free_first, free_last; // flows without a transfer, the one free the longest first
	struct rng rng;
	_Alignas(8) uint8_t state[SOURCE_STATE_BYTES]; // the source's
	struct transfer next;
	uint64_t next_ns; // when it begins; NEVER_NS: not known yet, or there is none
	uint32_t number; // of the next
	uint64_t written_bytes;
	uint64_t last_bytes, last_ns,
		last_end_ns; // of the transfer that ended last, as source_seen has them
};

// The summary's figures of a group.
struct workload_count {
	uint64_t begun, finished, failed, skipped;
	uint64_t waited; // of those begun: for a free flow
	struct hist completion; // of finished ones that began since workloads_measure, in ns
	double slowdown_sum;
	uint64_t slowdowns;
	struct probe *probe; // of its flows on this host; NULL: its source does not probe
	uint32_t probes;
};

// All of a host's.
struct workloads {
	struct workload *workload;
	uint32_t count;
	struct flow_transfer *transfer; // of the flows
	uint64_t transfers; // how many of `transfer` have been given to flows
	struct workload_count *group[GROUPS_MAX]; // NULL: its source has no schedule
};

// Those of a host; of one that holds nothing, as that of an lcore without a port, none.
static inline const struct workloads *workloads_of(const struct endpoint *e) {
	static const struct workloads none;

	return e->workloads != NULL ? e->workloads : &none;
}
// The warm-up has ended: completion times and probes count from now on. What has begun, and what
// became of it, is an account of the whole run.
void workloads_measure(struct endpoint *e);
// Flows of the group on one host.
uint32_t workload_flows(const struct group *g, uint32_t shard_id, uint32_t shards);
// workload_memory.c
// How many transfers a flow of the group may have begun.
uint32_t workload_transfers(const struct group *g);
// Bytes that workloads_init allocates.
uint64_t workloads_bytes(const struct groups *gs, uint32_t shard_id, uint32_t shards);
int workloads_init(struct endpoint *e, struct err *err);
void workloads_fini(struct endpoint *e);
// A flow of the host was initialised.
void workload_add(struct endpoint *e, struct flow *f);
// All of them are: the schedules begin.
void workloads_begin(struct endpoint *e);
void workload_timer(struct endpoint *e, struct workload *w, uint64_t now_ns);
// What flows with a schedule call.
extern const struct endpoint_app workload_app;
// Records what is unfinished at the end of the run.
void workloads_still_open(struct endpoint *e, uint64_t now_ns);
// How many transfers of group `g` wait at now_ns for a flow of this host.
uint64_t workload_waiting(const struct endpoint *e, uint32_t g, uint64_t now_ns);

// workload_records.c
// The time that a transfer would take alone; 0: the config does not say.
uint64_t workload_ideal_ns(const struct endpoint *e, const struct flow *f, uint64_t bytes);
void workload_record(struct endpoint *e, uint16_t group, const struct flow *f,
	const struct flow_transfer *t, uint64_t ideal_ns, uint8_t event, uint64_t now_ns);

// workload_probes.c, for groups whose source probes.
uint64_t workload_probes_bytes(const struct groups *gs, uint32_t shard_id, uint32_t shards);
// False: no memory. Does nothing for groups that do not probe.
bool workload_probes_init(struct endpoint *e, uint32_t group);
// A probe of the flow was acknowledged, with an RTT sample or 0; `last`: no other follows. Records
// the estimate when all are acknowledged.
void workload_probe_acked(
	struct endpoint *e, struct flow *f, uint64_t rtt_ns, bool last, uint64_t now_ns);
