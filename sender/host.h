// SPDX-License-Identifier: BSD-3-Clause
// A host: many connections, one timing wheel, one output. The same object runs live and in virtual
// time.
//
// A host holds sending flows, or receivers, or both, each addressed by its index. The caller
// delivers segments with host_rx, lets time pass with host_run, and gets segments through the
// output callback, in order of time.
//
// Several hosts can share the flows, one lcore each: of n hosts (shards), host i % n holds flow i and its
// receiver at index i / n. A flow's number, start and size do not depend on the number of hosts.
#pragma once
#include "common/base/json.h"
#include "common/base/likely.h"
#include "common/base/wheel.h"
#include "common/net/flow_addr.h"
#include "common/telemetry/telemetry.h"
#include "sender/group.h"
#include "sender/network.h"
#include "sender/tcp/flow.h"
#include "sender/tcp/receiver.h"
#include "sender/workload.h"

// `n` segments of the same length leave, `seg` the first, each `len` bytes of sequence space behind
// the one before. `id` is the flow's or the receiver's number. The callee copies the segment.
// `due_ns`: when it is to leave; if `paced`, the time of its pacing slot. In virtual time that is now, so that
// it never decreases; live it may be in the past.
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
	// Addresses of the flows in telemetry: the first sending one, the peer's. 0: those of flow_addr.h.
	uint32_t src_ip, dst_ip;
	uint16_t dst_port;
	// The network of each group without its queues, for the completion times to compare with; NULL: not known.
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

// What the side that was opened has sent on a flow's connections: programs in guests do.
struct flow_back {
	uint64_t acked_bytes, sent_segs, retransmits, rtt_sum_ns, rtt_samples;
};

struct host {
	struct host_env env;
	const struct groups *groups;
	struct wheel wheel;
	struct seg_arena arena;
	struct flow *flow;
	uint32_t flows;
	// Of each flow now, then of each at the end of the warm-up; the caller's. NULL: the peers send no payload.
	struct flow_back *back;
	uint32_t cc_bytes; // of the largest algorithm's state
	struct receiver *receiver;
	struct receiver_acks *receiver_acks; // of each receiver, if any has modes; else NULL
	uint32_t receivers; // those of flows first
	// Connections that ended well, of receivers that were given to others since.
	uint64_t renewed_done;
	struct range_pool ranges;
	struct workloads workloads;
	uint32_t open, waiting, done, failed; // flows
	uint64_t fetched_slot, fetched_far; // cursors of host_fetch_timers
	bool tx_backpressure; // set by the caller: an ACK releases nothing of a paced flow, its timer does
	// Set by the caller: what had arrived by then was processed; NEVER_NS: all was.
	uint64_t heard_ns;
	struct host_count count;
	uint64_t measure_ns; // start of the summary's figures
	struct host_timer closing; // closing.c: the next time at which a group ends connections
	uint64_t closed_ns; // those up to this time have been ended
};

// Segments of the windows that flows are given, whatever the network holds (cc_ops.given_window), where these
// are large.
uint64_t host_window_segs(const struct groups *gs);
// Records that the scoreboards of all flows never exceed, whatever the network does, if their peers are receivers of the
// groups. A flow's segments are those of its peer's window, in a ring of the next power of two. A ring finds no room only
// if each aligned block of its size holds a part of another ring: with such a block for each flow, and one more, for a ring
// that moves has its old place meanwhile, there is a free one.
uint64_t host_peer_window_segs(const struct groups *gs);
// Bytes that host_init would allocate.
uint64_t host_bytes(const struct groups *gs, const struct host_env *env);
int host_init(struct host *h, const struct groups *gs, const struct host_env *env, struct err *err);
void host_fini(struct host *h);
// Sizes come from what the config can lead to. If that was too little all the same, the figures show Weir's
// limits and not the network's, and the run has failed: -ENOSPC and a sentence.
int host_had_memory(const struct host *h, struct err *err);
#define HOST_NO_FIGURES "the figures are not the network's: %s"

// How many of `flows` flows host `shard_id` of `shards` holds.
static inline uint32_t host_shard_flows(uint32_t flows, uint32_t shard_id, uint32_t shards) {
	return shards <= 1 ? flows : (flows + shards - 1 - shard_id) / shards;
}
// Index of flow `id` and of its receiver in the host that holds them.
static inline uint32_t host_index(const struct host *h, uint32_t id) {
	return h->env.shards <= 1 ? id : id / h->env.shards;
}

// A segment for the flow or receiver at `index` arrives. `ecn` is the packet's codepoint.
void host_rx_flow(
	struct host *h, uint32_t index, const struct seg *seg, uint8_t ecn, uint64_t now_ns);
void host_rx_receiver(
	struct host *h, uint32_t index, const struct seg *seg, uint8_t ecn, uint64_t now_ns);
// Fires timers with expiry <= now_ns, in exact order: `max` of them at most.
void host_fire_due(struct host *h, uint64_t now_ns, uint32_t max);
static inline void host_run_some(struct host *h, uint64_t now_ns, uint32_t max) {
	if (wheel_due(&h->wheel, now_ns))
		host_fire_due(h, now_ns, max);
}
static inline void host_run(struct host *h, uint64_t now_ns) {
	host_run_some(h, now_ns, UINT32_MAX);
}
// When the next timer is due (never later than that); NEVER_NS: none.
uint64_t host_next_ns(struct host *h, uint64_t limit_ns);

// The summary's figures start now.
void host_measure(struct host *h, uint64_t now_ns);
// The same for `n` of the flows, or for as many as are left from `first` on; returns the next one. Live: a few at a
// time, beginning with the first, because with all at once paced segments would be late. The figures then start at
// the mean of those times.
uint32_t host_measure_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns);
// One TEL_INTERVAL record per flow that is or was open in the interval that ends now.
void host_interval(struct host *h, uint64_t now_ns);
// The same for a few of the flows, as with host_measure_some.
uint32_t host_interval_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns);
// One TEL_FLOWS record per flow that has not ended.
void host_still_open(struct host *h, uint64_t now_ns);
// Resets `n` of the open connections, flows first and then receivers, from the `first` on: for a host that
// ends before its peers do. Its own state stays as it was.
void host_reset_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns);
// Of all flows since host_measure.
struct host_figures {
	double goodput_bps;
	double jfi; // Jain's index of their goodputs; NaN: nothing was acknowledged
	double cwnd_reductions_per_s, drops_per_s;
};
struct host_figures host_figures(const struct host *h, uint64_t now_ns);
// How well the pacer keeps a rate: of flows that were to send at a constant one (an algorithm without
// state asks for nothing else) and did so for a second or more since host_measure, the difference
// between the rate at which they sent and that, as a part of it.
struct host_conformance {
	uint32_t flows;
	double p99, worst;
	// The same without the pacing slots that were missed and not made up for.
	double p99_present, worst_present;
};
struct host_conformance host_conformance(const struct host *const *hosts, uint32_t n);
// "groups": [...] and "jfi" of the summary, of all hosts that share the groups.
void host_summary(const struct host *const *hosts, uint32_t n, struct json *j, uint64_t now_ns);
// What keeps the flows of all hosts that share the groups from sending more, at this moment: "all 10 flows were
// limited by their receive window". False: there are no flows.
bool host_limits(const struct host *const *hosts, uint32_t n, char *text, size_t size);

// For flow.c and receiver.c.
void host_arm(struct host *h, struct host_timer *t, uint64_t expires_ns);
void host_cancel(struct host *h, struct host_timer *t);
void host_event(struct host *h, const struct flow *f, enum tel_event event, double before,
	double value, uint32_t detail, uint64_t now_ns);
void host_cc_record(struct host *h, const struct flow *f, const struct cc_ack *ack);
void host_flow_record(struct host *h, const struct flow *f, uint8_t event, uint64_t now_ns);

static inline const struct group *flow_group(const struct host *h, const struct flow *f) {
	return &h->groups->group[f->group];
}

static inline const struct group *receiver_group(const struct host *h, const struct receiver *r) {
	return &h->groups->group[r->group_index];
}

// What the algorithm calls its mode, after each of its decisions.
static inline void flow_note_mode(const struct host *h, struct flow *f) {
	const struct cc_ops *cc = flow_group(h, f)->cc;

	if (cc->mode != NULL)
		f->cc_mode = cc->mode(f->cc_state);
}

// Fetch into the cache what a segment for `index` will touch: first the connection, a little later
// what it points to.
static inline __attribute__((always_inline)) void host_fetch_flow(
	const struct host *h, uint32_t index) {
	const char *f = (const char *)&h->flow[index];

	for (size_t line = 0; line < FLOW_HOT_BYTES; line += 64)
		prefetch_write(f + line);
	for (size_t line = 0; line < h->cc_bytes; line += 64)
		prefetch_write(f + offsetof(struct flow, cc_state) + line);
}

static inline __attribute__((always_inline)) void host_fetch_segs(
	const struct host *h, uint32_t index, const struct seg *seg) {
	const struct flow *f = &h->flow[index];

	if (unlikely(seg->sack_count > 0)) {
		loss_fetch(f, seg);
		return;
	}
	// Of two acknowledged segments the second is read; two are sent, maybe in two lines.
	prefetch_write(flow_seg(f, f->una + 1));
	prefetch_write(flow_seg(f, f->nxt));
	prefetch_write(flow_seg(f, f->nxt + 1));
}

// The same for what timers will touch in the next microseconds.
void host_fetch_timers(struct host *h, uint64_t now_ns);

static inline __attribute__((always_inline)) void host_fetch_receiver(
	const struct host *h, uint32_t index) {
	const char *r = (const char *)&h->receiver[index];

	for (size_t line = 0; line < RECEIVER_HOT_BYTES; line += 64)
		prefetch_write(r + line);
}

static inline __attribute__((always_inline)) void host_fetch_ranges(
	const struct host *h, uint32_t index) {
	const struct receiver *r = &h->receiver[index];

	if (r->head == NULL)
		return;
	prefetch_write((const char *)r + RECEIVER_HOT_BYTES);
	prefetch_write(r->head);
	prefetch_write(r->tail);
}

static inline void host_send(
	struct host *h, uint32_t id, const struct seg *seg, uint8_t ecn, uint64_t now_ns) {
	h->count.tx_segs++;
	h->env.output(h->env.ctx, id, seg, 1, ecn, now_ns, false);
}
