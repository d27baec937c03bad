// SPDX-License-Identifier: BSD-3-Clause
// Statistics of the queue and the wire of a stage that serialises. All of them are exact in
// theoretical time, however late the stage is served. A stage has one struct stage_stats, calls the
// functions under "Events", and returns it by stage_ops.figures; the functions under "Reading" are
// for the users of the statistics.
//
// Backlog over time costs one addition per event: the integral up to t is
// q(t) t - sum of t_i over arrivals + sum of t_i over departures from the queue, modulo 2^64 for
// packets (10^6 of them for five hours), 2^128 for bytes.
#pragma once
#include "common/base/field.h"
#include "common/base/hist.h"
#include "common/base/likely.h"
#include "common/base/ns.h"
#include "common/base/pkt.h"
#include "common/base/u64.h"

__extension__ typedef unsigned __int128 stats_u128;

// What a link has counted, as its summary and /weir/links have it: frames sent, FCS included, at
// the end of their transmission; packets dropped and marked by its queue.
#define LINK_COUNTERS(V)                                                                           \
	V(uint64_t, out_pkts, COUNT_ALWAYS, "packet", "frames whose transmission ended",           \
		.source = "links.out_pkts")                                                        \
	V(uint64_t, out_bytes, COUNT_ALWAYS, "B", "their bytes, FCS included, no preamble or gap", \
		.source = "links.out_bytes")                                                       \
	V(uint64_t, drops, COUNT_ALWAYS, "packet", "dropped by the link's queue",                  \
		.source = "links.drops")                                                           \
	V(uint64_t, marks, COUNT_ALWAYS, "packet", "CE set by the link's queue",                   \
		.source = "links.marks")

struct link_count {
	LINK_COUNTERS(COUNTERS_MEMBER)
};

// Totals since the start; figures are differences of two of these.
struct stats_totals {
	uint64_t at_ns;
	struct link_count count;
	uint64_t dequeued; // packets from the queue to the wire
	uint64_t sojourn_ns; // their times in the queue
	uint64_t queue_pkt_ns; // backlog integrated over time
	stats_u128 queue_byte_ns;
	stats_u128 capacity; // rate integrated over time, 1e-9 bit
	uint64_t down_ns; // time without a rate
	double wire_bits; // transmitted, overhead included; part of a frame counts
};

// Since `from` (both of the same stage).
struct stats_figures {
	double utilisation; // 0..1, relative to the rate at each time
	double rate_mean_bps;
	double queue_mean_pkts, queue_mean_bytes; // averaged over time
	double sojourn_mean_ns; // averaged over packets
};

// Maxima since the last restart, for the run and for the interval.
enum stats_window { STATS_RUN, STATS_INTERVAL, STATS_WINDOWS };
struct stats_peak {
	uint64_t queue_pkts;
	uint64_t sojourn_ns;
	uint64_t rate_min_bps, rate_max_bps; // STATS_RUN: of rates that applied for some time
	bool rates; // there was one
	struct stats_totals from; // totals at the restart
};

struct stage_stats {
	// The queue, without the frame on the wire. Counters that follow from others are not
	// stored.
	uint64_t queue_pkts, queue_bytes;
	uint64_t moment_pkts; // sum over arrivals - sum over departures of n_i t_i
	stats_u128 moment_bytes;
	uint64_t peak_pkts, peak_ns; // since a window was restarted or read
	// Frames given to the wire, FCS included, and their times in the queue.
	uint64_t sent, sent_bytes;
	uint64_t sojourn_ns;
	struct link_count count; // its out_pkts and out_bytes are those of stats_totals
	uint64_t rate_bps; // since rate_since_ns, added to `capacity` later
	uint64_t rate_since_ns;
	stats_u128 capacity;
	bool varies; // the rate changes by itself: interval records have its mean
	bool slots; // the capacity comes by stats_slot, and rate_bps is only a name for it
	uint64_t down_ns; // before rate_since_ns
	uint64_t padding_bytes; // that frames were filled up with (framing.h)
	// The wire; filled in by the stage's figures().
	uint64_t extra_bytes; // on the wire per frame besides its size, modulo 2^64
	uint64_t wire_pkts, wire_bytes; // frames on it
	double unsent_bits; // of the last of these frames

	struct stats_peak peak[STATS_WINDOWS];
	// Only its buckets are used, since STATS_RUN was restarted; stats_sojourn has the rest.
	struct hist sojourn;
};

// Events, in the order of their times.

// n packets of `bytes` arrived at t_ns. Call stats_longest after the packets that the queue refused
// were dropped.
static inline void stats_arrived(struct stage_stats *s, uint64_t t_ns, uint32_t n, uint64_t bytes) {
	s->queue_pkts += n;
	s->queue_bytes += bytes;
	s->moment_pkts += t_ns * n;
	s->moment_bytes += (stats_u128)t_ns * bytes;
}

static inline void stats_longest(struct stage_stats *s) {
	s->peak_pkts = max_u64(s->peak_pkts, s->queue_pkts);
}

// n of the queue's packets, of `bytes`, were dropped at t_ns.
static inline void stats_dropped(struct stage_stats *s, uint64_t t_ns, uint32_t n, uint64_t bytes) {
	s->queue_pkts -= n;
	s->queue_bytes -= bytes;
	s->moment_pkts -= t_ns * n;
	s->moment_bytes -= (stats_u128)t_ns * bytes;
	s->count.drops += n;
}

// Counts a burst of packets from the queue to the wire: stats_begin, stats_sent for each packet at
// its time, stats_end.
struct stats_burst {
	uint32_t pkts;
	uint64_t bytes;
	uint64_t moment_pkts; // sum of the packets' times
	stats_u128 moment_bytes; // sum of time * size
	uint64_t sojourn_ns, peak_ns;
};

static inline struct stats_burst stats_begin(const struct stage_stats *s) {
	return (struct stats_burst){.peak_ns = s->peak_ns};
}

static inline void stats_sent(
	struct stage_stats *s, struct stats_burst *b, const struct pkt *p, uint64_t t_ns) {
	uint64_t sojourn_ns =
		t_ns - p->arrival_ns; // not negative: it arrived before the wire was free

	b->pkts++;
	b->bytes += p->size_bytes;
	b->moment_pkts += t_ns;
	b->moment_bytes += (stats_u128)t_ns * p->size_bytes;
	b->sojourn_ns += sojourn_ns;
	if (sojourn_ns > b->peak_ns)
		b->peak_ns = sojourn_ns;
	hist_count(&s->sojourn, sojourn_ns);
}

static inline void stats_end(struct stage_stats *s, const struct stats_burst *b) {
	s->queue_pkts -= b->pkts;
	s->queue_bytes -= b->bytes;
	s->moment_pkts -= b->moment_pkts;
	s->moment_bytes -= b->moment_bytes;
	s->sent += b->pkts;
	s->sent_bytes += b->bytes;
	s->sojourn_ns += b->sojourn_ns;
	s->peak_ns = b->peak_ns;
}

// The rate changes at now_ns; also called for the initial rate.
void stats_rate(struct stage_stats *s, uint64_t now_ns, uint64_t rate_bps);

// Capacity for `bytes` comes at one moment.
static inline void stats_slot(struct stage_stats *s, uint64_t bytes) {
	s->capacity += (stats_u128)bytes * 8 * NS_PER_S;
}

// An idle link passes over `ns` that have this capacity and are without a rate for down_ns.
static inline void stats_skip(
	struct stage_stats *s, uint64_t ns, stats_u128 skipped, uint64_t down_ns) {
	s->capacity += skipped;
	s->down_ns += down_ns;
	s->rate_since_ns += ns;
}

// Reading.

struct stats_totals stats_totals(const struct stage_stats *s, uint64_t now_ns);
struct stats_figures stats_figures(const struct stats_totals *from, const struct stats_totals *to);
// What was counted between the two.
static inline struct link_count stats_count(
	const struct stats_totals *before, const struct stats_totals *after) {
	const struct link_count *from = &before->count, *to = &after->count;
	struct link_count since = {0}, *sum = &since;

	LINK_COUNTERS(COUNTERS_ADD)
	return since;
}
const struct stats_peak *stats_peak(struct stage_stats *s, enum stats_window w);
// Peaks and rates of the run up to now_ns.
const struct stats_peak *stats_run(struct stage_stats *s, uint64_t now_ns);
void stats_restart(struct stage_stats *s, enum stats_window w, uint64_t now_ns);
// Times in the queue since STATS_RUN was restarted.
const struct hist *stats_sojourn(struct stage_stats *s);
