// SPDX-License-Identifier: BSD-3-Clause
// A host: many connections, one timing wheel, one output. The same object runs live and in virtual
// time.
//
// A host holds sending flows, or receivers, or both, each addressed by its index. The caller
// delivers segments with host_rx, lets time pass with host_run, and gets segments through the
// output callback, in order of time.
//
// Several hosts can share the flows, one lcore each: of n hosts (shards), host i % n holds flow i
// and its receiver at index i / n. A flow's number, start and size do not depend on the number of
// hosts.
#pragma once
#include "common/base/json.h"
#include "common/base/likely.h"
#include "common/base/wheel.h"
#include "common/net/flow_addr.h"
#include "common/telemetry/telemetry.h"
#include "sender/endpoint/endpoint.h"
#include "sender/group/group.h"
#include "sender/group/network.h"
#include "sender/tcp/loss.h"
#include "sender/tcp/receiver.h"
#include "sender/workload/workload.h"

struct host {
	union {
		struct endpoint endpoint;
		struct endpoint; // its members are the host's
	};
	// What the side that was opened has sent on each flow's connections, as programs in guests
	// do: now, then at the end of the warm-up; the caller's. Of a kernel only some are known.
	// NULL: the peers send no payload.
	struct flow_count *back;
	uint32_t cc_bytes; // of the largest algorithm's state
	struct workloads own_workloads;
	uint64_t fetched_slot, fetched_far; // cursors of host_fetch_timers
	struct host_timer closing; // the next time at which a group ends connections
	uint64_t closed_ns; // those up to this time have been ended
};

// Segments of the windows that flows are given, whatever the network holds (cc_ops.given_window),
// where these are large.
uint64_t host_window_segs(const struct groups *gs);
// Records that the scoreboards of all flows never exceed, whatever the network does, if their peers
// are receivers of the groups. A flow's segments are those of its peer's window, in a ring of the
// next power of two. A ring finds no room only if each aligned block of its size holds a part of
// another ring: with such a block for each flow, and one more, for a ring that moves has its old
// place meanwhile, there is a free one.
uint64_t host_peer_window_segs(const struct groups *gs);
// For host.c: records of the scoreboard; ranges of what receivers may have out of order; a flow's
// state of a transport beside TCP.
uint64_t host_arena_segs(const struct groups *gs, const struct host_env *env);
uint64_t host_ranges(const struct groups *gs, const struct host_env *env);
uint32_t host_connection_bytes(const struct groups *gs);
// Bytes that host_init would allocate.
uint64_t host_bytes(const struct groups *gs, const struct host_env *env);
int host_init(struct host *h, const struct groups *gs, const struct host_env *env, struct err *err);
void host_fini(struct host *h);
// Sizes come from what the config can lead to. If that was too little all the same, the figures
// show Weir's limits and not the network's, and the run has failed: -ENOSPC and a sentence.
int host_had_memory(const struct host *h, struct err *err);
#define HOST_NO_FIGURES "the figures are not the network's: %s"

// A segment for the flow or receiver at `index` arrives. `ecn` is the packet's codepoint.
void host_rx_flow(
	struct host *h, uint32_t index, const struct seg *seg, uint8_t ecn, uint64_t now_ns);
void host_rx_receiver(
	struct host *h, uint32_t index, const struct seg *seg, uint8_t ecn, uint64_t now_ns);
// A router has dropped the packet of flow `index` with this sequence number: the next link takes
// packets of `mtu` bytes. As flow_too_big.
uint32_t host_too_big(struct host *h, uint32_t index, uint32_t seq, uint32_t mtu, uint64_t now_ns);
// Packets with data of flow `index`, and `back` of its peer's, were dropped on their way. The
// caller knows; the flow does not.
static inline void host_dropped(struct host *h, uint32_t index, uint32_t packets, uint32_t back) {
	h->flow[index].count.drops += packets;
	if (h->back != NULL)
		h->back[index].drops += back;
}
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
// The same for `n` of the flows, or for as many as are left from `first` on; returns the next one.
// Live: a few at a time, beginning with the first, because with all at once paced segments would be
// late. The figures then start at the mean of those times.
uint32_t host_measure_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns);
// One TEL_INTERVAL record per flow that is or was open in the interval that ends now.
void host_interval(struct host *h, uint64_t now_ns);
// The same for a few of the flows, as with host_measure_some.
uint32_t host_interval_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns);
// One TEL_FLOWS record per flow that has not ended.
void host_still_open(struct host *h, uint64_t now_ns);
// Resets `n` of the open connections, flows first and then receivers, from the `first` on: for a
// host that ends before its peers do. Its own state stays as it was.
void host_reset_some(struct host *h, uint32_t first, uint32_t n, uint64_t now_ns);
// Begins the random streams of all flows anew (changes.c).
void host_reseed(struct host *h, uint64_t seed);
// Lets a group, of which no flow has started, start at another time that is not past. The caller
// then changes g->start_ns. The host has all flows.
void host_move_start(struct host *h, const struct group *g, uint64_t start_ns);
// Of all flows since host_measure.
struct host_figures {
	double goodput_bps, first_group_bps;
	double jfi; // Jain's index of their goodputs; NaN: nothing was acknowledged
	double cwnd_reductions_per_s, drops_per_s;
};
struct host_figures host_figures(const struct host *h, uint64_t now_ns);
// How well the pacer keeps a rate: of flows that were to send at a constant one (an algorithm
// without state asks for nothing else) and did so for a second or more since host_measure, the
// difference between the rate at which they sent and that, as a part of it.
struct host_conformance {
	uint32_t flows;
	double p99, worst;
	// The same without the pacing slots that were missed and not made up for.
	double p99_present, worst_present;
};
struct host_conformance host_conformance(const struct host *const *hosts, uint32_t n);
// "groups": [...] and "jfi" of the summary, of all hosts that share the groups.
void host_summary(const struct host *const *hosts, uint32_t n, struct json *j, uint64_t now_ns);
// What receivers of several hosts have counted, and how many are open or done: FIELD_UNKNOWN in
// virtual time.
struct receivers_sum {
	struct receiver_count count;
	uint64_t open, done, refused;
};
// Adds what the host's receivers have counted; writes "receivers" (fields.h).
void host_receivers(const struct host *h, struct receivers_sum *sum);
void host_receivers_write(const struct receivers_sum *sum, struct json *j);
// What keeps the flows of all hosts that share the groups from sending more, at this moment: "all
// 10 flows were limited by their receive window", with the cause that most have and the number of
// flows of each. False: there are no flows.
bool host_limits(const struct host *const *hosts, uint32_t n, struct fact *limits);

// Fetch into the cache what a segment for `index` will touch: first the connection, a little later
// what it points to.
static inline __attribute__((always_inline)) void host_fetch_flow(
	const struct host *h, uint32_t index) {
	const char *f = (const char *)&h->flow[index];

	for (size_t line = 0; line <= FLOW_HOT_BYTES; line += 64)
		prefetch_write(f + line);
	for (size_t line = FLOW_HOT_BYTES + 64;
		line < offsetof(struct flow, cc_state) + h->cc_bytes; line += 64)
		prefetch_write(f + line);
}

static inline __attribute__((always_inline)) void host_fetch_segs(
	const struct host *h, uint32_t index, const struct seg *seg) {
	const struct flow *f = &h->flow[index];

	if (unlikely(seg->sack_count > 0)) {
		loss_fetch(f, seg);
		return;
	}
	// Of two acknowledged segments the second is read.
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
