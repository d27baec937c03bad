// SPDX-License-Identifier: BSD-3-Clause
// What a connection sees of its host: a clock's wheel, a way out, memory, records, and the
// application above it. Transports (tcp/, udp/) include this and nothing else of the host.
#pragma once
#include "common/base/field.h"
#include "common/base/ns.h"
#include "common/base/pkt.h"
#include "common/base/wheel.h"
#include "common/net/seg.h"
#include "common/telemetry/telemetry.h"
#include "sender/endpoint/ranges.h"
#include "sender/endpoint/segs.h"
#include "sender/group/group.h"

#include <stdbool.h>
#include <stdint.h>

struct cc_ack;
struct endpoint;
struct flow;
struct gro_card;
struct network_empty;
struct receiver;
struct receiver_acks;
struct workloads;

enum host_timer_kind {
	TIMER_PACE,
	TIMER_RTX,
	TIMER_DELACK,
	TIMER_WORKLOAD,
	TIMER_TRANSPORT, // `pace` of a flow of another transport
	TIMER_TRANSPORT_RECEIVER, // `delack` of a receiver of it
	TIMER_CLOSING,
	TIMER_CONTROL // of a flow's control (tcp/service.h)
};
struct host_timer {
	struct timer t;
	uint8_t kind; // enum host_timer_kind
	bool armed;
};

// `n` segments of the same length leave, `seg` the first, each `len` bytes of sequence space behind
// the one before. `id` is the flow's or the receiver's number. The callee copies the segment.
// `due_ns`: when it is to leave; if `paced`, the time of its pacing slot. In virtual time that is
// now, so that it never decreases; live it may be in the past.
typedef void host_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced);

struct host_env {
	host_output *output;
	void *ctx;
	uint64_t seed;
	uint64_t start_ns; // the clock's value at the start of the run
	bool virtual_time; // a timer is served at its own time, not at that of the call
	uint64_t pipe_segs; // segments the network can hold, all links and delays together
	uint64_t segs_per_s; // it can carry; sizes the scoreboard
	uint64_t segs_least; // of the scoreboard, whatever the network holds
	uint64_t duration_ns; // of the run
	uint32_t receivers; // how many receivers to hold; 0: none
	bool flows; // hold the groups' flows?
	uint32_t shard_id, shards; // of the hosts that share the flows; 0 of 0: there is only one
	// Addresses of the flows in telemetry: the first sending one, the peer's. 0: those of
	// flow_addr.h.
	uint32_t src_ip, dst_ip;
	uint16_t dst_port;
	// The network of each group without its queues, for the completion times to compare with;
	// NULL: not known.
	const struct network_empty *empty;
	// Telemetry; NULL: off.
	struct tel *tel_cc, *tel_flows, *tel_interval, *tel_events, *tel_transfers;
	const struct tel_run *tel_run;
};

struct host_count {
	uint64_t tx_segs, rx_segs;
	uint64_t data_tx_segs; // with payload or FIN, retransmissions included
	uint64_t rx_bad; // unacceptable: old ACKs, PAWS, outside the window
	uint64_t seg_refused; // a flow could not send: the segment arena was full
};

// The application of flows whose source has a schedule (workload/). Other flows never call it.
struct endpoint_app {
	// A flow's connection is open; something was acknowledged, with an RTT sample or 0; it is
	// closed in both directions, or has failed.
	void (*opened)(struct endpoint *e, struct flow *f, uint64_t now_ns);
	void (*acked)(struct endpoint *e, struct flow *f, uint64_t rtt_ns, uint64_t now_ns);
	void (*closed)(struct endpoint *e, struct flow *f, uint64_t now_ns);
};

#define RECEIVER_COUNTERS(V)                                                                       \
	V(uint64_t, bytes, COUNT_ALWAYS, "B", "payload that arrived in sequence")                  \
	V(uint64_t, segs, COUNT_ALWAYS, "segment",                                                 \
		"acceptable segments with payload that arrived")                                   \
	V(uint64_t, acks, COUNT_ALWAYS, "packet", "ACKs sent")                                     \
	V(uint64_t, duplicate_segs, COUNT_ALWAYS, "segment",                                       \
		"of the segments, those with nothing new")                                         \
	V(uint64_t, out_of_order_segs, COUNT_ALWAYS, "segment",                                    \
		"of the segments, those above a hole")                                             \
	V(uint64_t, ce_segs, COUNT_ALWAYS, "segment", "of the segments, those with CE")
struct receiver_count {
	RECEIVER_COUNTERS(COUNTERS_MEMBER)
};

struct endpoint {
	struct host_env env;
	const struct groups *groups;
	struct wheel wheel;
	struct seg_arena arena;
	struct flow *flow;
	uint32_t flows;
	// Of each flow, connection_bytes for the state of a transport beside TCP or the service of
	// its control, zeroed; NULL: there is none.
	char *connection;
	uint32_t connection_bytes;
	struct receiver *receiver;
	struct receiver_acks *receiver_acks; // of each receiver, if any has modes; else NULL
	const struct hosts_side *gro_hosts; // whose cards have GRO; NULL: there are none
	struct gro_card *gro_card; // of each of them, receiver_gro.c
	uint32_t receivers; // those of flows first
	// Connections that ended well, of receivers that were given to others since.
	uint64_t renewed_done;
	struct range_pool ranges;
	const struct endpoint_app *app;
	struct workloads *workloads;
	uint32_t open, waiting, done, failed; // flows
	// Set by the caller: an ACK releases nothing of a paced flow, its timer does.
	bool tx_backpressure;
	// Set by the caller: what had arrived by then was processed; NEVER_NS: all was.
	uint64_t heard_ns;
	struct host_count count;
	struct receiver_count received; // by all receivers
	uint64_t measure_ns; // start of the summary's figures
	char *shared; // memory that controls share; NULL: none do
};

// How many of `flows` flows host `shard_id` of `shards` holds.
static inline uint32_t host_shard_flows(uint32_t flows, uint32_t shard_id, uint32_t shards) {
	return shards <= 1 ? flows : (flows + shards - 1 - shard_id) / shards;
}
// Index of flow `id` and of its receiver in the host that holds them.
static inline uint32_t endpoint_index(const struct endpoint *e, uint32_t id) {
	return e->env.shards <= 1 ? id : id / e->env.shards;
}

static inline void *endpoint_connection(const struct endpoint *e, uint32_t id) {
	return e->connection + (size_t)endpoint_index(e, id) * e->connection_bytes;
}

static inline void endpoint_arm(struct endpoint *e, struct host_timer *t, uint64_t expires_ns) {
	if (t->armed)
		wheel_cancel(&e->wheel, &t->t);
	t->armed = true;
	wheel_arm(&e->wheel, &t->t, expires_ns);
}

static inline void endpoint_cancel(struct endpoint *e, struct host_timer *t) {
	if (t->armed)
		wheel_cancel(&e->wheel, &t->t);
	t->armed = false;
}

static inline void endpoint_send(
	struct endpoint *e, uint32_t id, const struct seg *seg, uint8_t ecn, uint64_t now_ns) {
	e->count.tx_segs++;
	e->env.output(e->env.ctx, id, seg, 1, ecn, now_ns, false);
}

// Telemetry (host/records.c).
void endpoint_event(struct endpoint *e, const struct flow *f, enum tel_event event, double before,
	double value, uint32_t detail, uint64_t now_ns);
void endpoint_cc_record(struct endpoint *e, const struct flow *f, const struct cc_ack *ack);
void endpoint_flow_record(struct endpoint *e, const struct flow *f, uint8_t event, uint64_t now_ns);
