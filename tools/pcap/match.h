// SPDX-License-Identifier: BSD-3-Clause
// Finds the packets of two captures on both sides of a bottleneck again: delays, losses, marks and
// reordering of any switch, seen from outside. Each capture may hold both directions: a packet goes
// from the side that saw it first to the other. Packets are the same if all is the same that a
// switch or router leaves as it is: addresses, ports, IP identification, the TCP header with
// timestamps and SACK blocks, and of the payload what both sides captured; but not TTL, ECN bits
// and checksums. Two equal ones on their way at once are ambiguous: the first that went in is taken
// for the first that came out, and counted.
#pragma once
#include "common/base/hist.h"
#include "common/telemetry/telemetry.h"
#include "tools/pcap/decode.h"
#include "tools/pcap/table.h"

struct match_limits {
	uint32_t packets; // on their way at once: a power of two
	uint32_t flows;
	uint64_t lost_ns; // a packet that was not seen again for so long was lost
	uint64_t interval_ns;
};

// The captured part of a payload: of all of it, and of its beginning, for a side that captured
// less.
#define MATCH_PARTS 3
struct match_payload {
	uint32_t captured, whole;
	uint32_t part[MATCH_PARTS];
};

// A packet that one side saw.
struct match_pending {
	uint64_t digest; // of its headers
	struct match_payload payload;
	uint64_t ts_ns;
	uint32_t next; // of the same bucket, older
	uint32_t flow; // TABLE_NONE: it was seen again, the place is free
	uint16_t size_bytes;
	uint8_t side;
	uint8_t ecn;
};

// One direction of a connection.
struct match_flow {
	struct flow_key key;
	uint32_t hash;
	uint8_t from; // which end of `key` sends
	uint8_t side; // where its packets go in, as far as is known
	uint64_t seen, matched, lost, unjudged, marked, reordered, ambiguous;
	uint64_t delay_sum_ns, delay_min_ns, delay_max_ns;
	uint64_t last_in_ns; // when the packet that went in last, of those that came out, went in
};

// From one side to the other.
struct match_path {
	uint64_t in, matched, lost, unjudged, marked, reordered, ambiguous, bytes;
	uint64_t delay_min_ns;
	struct hist delay;
	// In the present interval.
	struct {
		uint64_t bytes, delay_sum_ns, delay_max_ns;
		uint32_t pkts, drops, marks;
	} now;
};

struct match {
	struct match_limits limits;
	struct match_pending *pending; // a ring, in the order of time
	uint32_t head, tail; // count up
	uint32_t *bucket;
	struct table table;
	struct match_flow *flow;
	uint32_t flows;
	struct match_path path[2]; // 0: from the first capture to the second
	uint64_t first_ns[2], last_ns[2]; // of each capture; NEVER_NS: no packet
	uint64_t start_ns, interval_end_ns;
	uint64_t forgotten; // given up early, for lack of memory: not judged
	uint64_t without_flow; // of more flows than there is room for
	struct tel *tel;
};

int match_init(
	struct match *m, const struct match_limits *limits, struct tel *tel, struct err *err);
void match_fini(struct match *m);
// A TCP or UDP packet that side 0 or 1 saw; both sides' in the order of time.
void match_packet(struct match *m, uint32_t side, const struct packet *p);
// When each capture begins and ends is known then: packets that the other one cannot have seen are
// not judged.
void match_end(struct match *m);
