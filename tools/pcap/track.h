// SPDX-License-Identifier: BSD-3-Clause
// Follows every TCP connection of a capture in both directions, in one pass and in memory of fixed
// size. A flow is a direction that carries payload. README.md defines what is measured.
//
//	track.c       finds a packet's connection, opens and ends connections
//	track_syn.c   how they begin
//	track_data.c  what a packet says of the direction it was sent in: new, retransmitted,
//	              reordered, duplicate
//	track_ack.c   what it says of the other direction: acknowledged, SACKed, RTT, window
//	track_out.c   records of telemetry, and sums over all flows
#pragma once
#include "common/base/hist.h"
#include "common/net/resent.h"
#include "common/telemetry/telemetry.h"
#include "sender/tcp/rtt.h"
#include "tools/pcap/decode.h"
#include "tools/pcap/sent.h"
#include "tools/pcap/table.h"

#define TRACK_GROUPS_MAX 32u
#define TRACK_BURST_GAP_NS 50000u // segments that are closer belong to one burst
#define TRACK_REORDER_NS 3000000u // without any RTT sample: what tshark takes
#define TRACK_RTO_MIN_NS 200000000u // what Linux adds to srtt at least
#define TRACK_MIDDLE                                                                               \
	20u // a part of the handshake that is longer than this part of the whole is a path's
#define TRACK_CLOSED_NS (10 * NS_PER_S) // how long a closed connection is kept for late packets
#define TRACK_SEQ_MAX                                                                              \
	(1 << 30) // farther off no sequence number can be (RFC 7323: the largest window)

struct track_limits {
	uint32_t connections; // at once
	size_t sent_bytes; // memory of unacknowledged segments
	uint64_t idle_ns; // a connection without packets for so long has ended
	uint64_t interval_ns;
	uint64_t warmup_ns; // left out of measured_bytes
	uint32_t level; // of telemetry
};

// What few packets change, or what is read at the end only.
struct track_rare {
	uint32_t id; // flow; TEL_NO_FLOW: no payload so far
	uint8_t group;
	uint8_t sacked_count; // of `sacked`
	uint64_t sent_bytes, acked_bytes, measured_bytes, rtt_sum_ns;
	uint32_t sent_segs, retransmits, lost_segs, reductions;
	struct {
		uint32_t retransmits, lost_segs, reductions;
	} interval; // of the present one
	uint32_t rtt_samples, inflight_max;
	uint32_t ect, ce;
	uint32_t recover; // DIR_RECOVERY and DIR_LOSS end here
	uint64_t uncaptured_bytes, retransmit_bytes;
	uint64_t first_data_ns, first_ack_ns, zero_window_ns, zero_since_ns;
	uint32_t spurious, dsack_spurious, lost_before, out_of_order, duplicates;
	uint32_t ecn_reductions, timeouts, tail_probes, rtt_sack_samples, bursts;
	uint32_t duplicate_acks, sack_acks, dsacks, ece, zero_windows, keep_alives, out_of_window,
		untracked, syns;
	uint32_t isn;
	struct seg_sack sacked[SEG_SACK_MAX]; // the blocks of the last ACK
	uint64_t rtt_min_ns, rtt_max_ns; // the first: NEVER_NS minus the smallest sample
	uint32_t stretch_acks, window_min, window_max, window_limited;
	// Of what was sent again: D-SACKs, and duplicates that the network had made before the
	// capture.
	uint32_t resent_dsacks, resent_duplicates;
	struct resent resent;
} __attribute__((aligned(64)));
#define TRACK_RARE_HOT_BYTES 320
static_assert(offsetof(struct track_rare, resent_dsacks) <= TRACK_RARE_HOT_BYTES, "five lines");

#define DIR_KNOWN 0x01 // a packet of this direction was seen
#define DIR_ACKED 0x02 // una comes from an ACK
#define DIR_SYN 0x04
#define DIR_FIN 0x08
#define DIR_RECOVERY 0x10 // a reduction was inferred, up to `recover`
#define DIR_LOSS 0x20 // likewise a timeout
#define DIR_ZERO 0x40 // the receiver's window is closed
#define DIR_SACK 0x80 // something is SACKed, or duplicate ACKs came, since una advanced
#define DIR_ANSWERED 0x100 // its SYN was acknowledged
#define DIR_FLOW 0x200 // it has carried payload
#define DIR_TOUCHED 0x400 // something changed in the present interval
#define DIR_PROBED 0x800 // the byte at nxt was sent into a closed window
#define DIR_SYN_ACKED 0x1000 // a SYN-ACK answered its SYN, which was not seen yet: `isn` is known
#define DIR_CROSSED                                                                                \
	0x2000 // its SYN crossed the other's (RFC 9293 figure 8): its SYN-ACK is no retransmission

#define WSCALE_UNKNOWN 0x80 // this bit of a wscale: the SYNs that agree on it were not seen

// The variables of RFC 9293 section 3.3.1, as far as packets show them: every packet looks at both
// directions'.
struct track_snd {
	uint32_t nxt; // highest sequence number seen, plus one
	uint32_t una; // highest acknowledgement
	uint32_t window; // that the receiver advertised last, scaled
	uint32_t packets;
	uint16_t flags; // DIR_*
	uint8_t wscale; // of windows that this direction's sender advertises, see WSCALE_UNKNOWN
	uint8_t options; // of its SYN: SEG_OPT_*
};

// What a direction's segments change, and what the ACKs of them change. With many connections the
// memory that a packet touches is most of its cost: one cache line and track_flow's first for a
// segment, two more for an ACK.
struct track_dir {
	struct sent_ring ring; // una to nxt
	uint32_t tsval; // last
	uint64_t last_data_ns, gap_max_ns, inflight_sum;
	struct {
		uint64_t bytes;
		uint32_t segs, inflight_max_bytes;
	} sent; // in the present interval
	uint16_t mss, mss_allowed; // largest payload; the receiver's SYN option
	uint16_t burst, burst_max; // segments in the present one and in the longest

	uint64_t last_ack_ns; // of an ACK that advanced
	uint64_t ack_gap_max_ns;
	struct {
		uint64_t acked_bytes, delivered_bytes, rtt_sum_ns, rtt_max_ns;
		uint64_t rtt_min_ns; // NEVER_NS minus the smallest sample
		uint32_t rtt_samples;
	} back; // in the present interval

	struct rtt rtt;
	uint64_t tsrtt_sum_ns, tsrtt_min_ns, tsrtt_max_ns;
	uint32_t tsrtt_samples, acks;
} __attribute__((aligned(64)));
static_assert(offsetof(struct track_dir, last_ack_ns) == 64, "of segments: one cache line");
static_assert(offsetof(struct track_dir, rtt) == 128, "of ACKs: two more");
static_assert(sizeof(struct track_dir) == 192, "three cache lines");

#define FLOW_CLOSED 0x01 // FINs in both directions, or a reset
#define FLOW_RESET 0x02
#define FLOW_USED 0x04
#define FLOW_REFUSED 0x08 // a reset answered its SYN
#define FLOW_COPIED 0x20 // its packets were seen at several points: see track_opening.last
#define FLOW_IPV4 0x10 // `address` is all of its addresses

// Bits of track_flow.ecn: what the SYN asked for and the SYN-ACK agreed to; or AccECN (RFC 9768) is
// agreed.
#define TRACK_ECN_ASKED 1
#define TRACK_ECN_AGREED 2
#define TRACK_ECN_CLASSIC (TRACK_ECN_ASKED | TRACK_ECN_AGREED)
#define TRACK_ECN_ASKED_ACCURATE 4
#define TRACK_ECN_ACCURATE 8

struct track_flow {
	uint32_t address[2]; // the last 32 bits
	uint16_t port[2];
	uint8_t flags; // FLOW_*
	uint8_t client; // which end opened it; where no SYN was seen, by its port
	uint8_t ecn; // TRACK_ECN_*
	uint64_t last_ns;
	struct track_snd snd[2];
	struct track_dir dir[2];
};
static_assert(offsetof(struct track_flow, dir) == 64, "one cache line before the directions");

// A connection's name, and its beginning.
struct track_opening {
	struct flow_key key;
	uint32_t hash;
	uint32_t connection;
	// When the SYN and the SYN-ACK were seen, NEVER_NS: more than once; once they are answered,
	// the RTT; 0: none.
	uint64_t handshake_ns[2];
	uint64_t start_ns; // its first packet
	// The point at which each end's packets were seen last, which is nearest to the other; how
	// many they had seen by then; since when, NEVER_NS: none.
	uint16_t last[2];
	uint8_t last_others[2];
	uint64_t last_ns[2];
	uint16_t first[2]; // the point at which each end's data were seen first
};

struct track_group {
	uint16_t port; // of the servers; 0: all others
	uint32_t flows;
	// What came after the warm-up.
	uint64_t acked_bytes, sent_segs, retransmits, lost_segs, reductions, timeouts, spurious;
	uint64_t out_of_order, duplicates, rtt_sum_ns, rtt_samples;
	double goodput_sum, goodput_square_sum; // over flows, of measured bytes: for Jain's index
};

// What became of packets and connections, whole capture.
struct track_count {
	uint64_t packets, payload_bytes, connections, flows;
	uint64_t ended[TEL_HALF_OPEN + 1]; // connections, by tel_flow_event
	uint64_t backwards; // packets that are earlier than the one before
	uint64_t duplicates; // packets that were captured twice at one point
	uint64_t recut; // that another point has in other pieces
	// Connections whose SYNs were not seen, of which one direction was, and that were seen
	// between both ends.
	uint64_t begun_before, one_sided, middle;
	uint64_t uncaptured_flows; // of which data was acknowledged that is not in the capture
	uint64_t live_max; // connections at once
};

struct track_batch {
	struct packet packet[READER_BATCH];
	uint32_t place[READER_BATCH]; // of the connection, as far as it was known; TABLE_NONE: new
	uint32_t count;
};

struct track {
	struct track_limits limits;
	struct table table;
	struct track_flow *flow;
	struct track_rare (*rare)[2];
	struct track_opening *opening;
	uint32_t *spare; // free places
	uint32_t spares, placed, live; // placed: never used beyond
	uint32_t sweep; // the place last looked at for idle connections
	uint32_t swept; // places that the present sweep has looked at
	uint64_t sweep_ns; // before this no connection expires
	uint64_t expires_ns; // the first to expire, as far as the present sweep has looked
	// Directions with something in the present interval: 2 * place + direction.
	uint32_t *touched;
	uint32_t touched_count;
	struct sent_pool pool;
	uint64_t start_ns, now_ns, interval_end_ns, last_ns;
	uint64_t step_ns; // when the clock was changed: of what was sent before there is no RTT
	uint16_t epoch; // of the last packet
	bool started;
	bool measuring; // the warm-up is over
	bool several; // points
	struct track_count count;
	struct track_group group[TRACK_GROUPS_MAX];
	uint32_t groups;
	struct hist rtt;
	struct track_batch batch[2]; // the one that is filled, and the one before
	uint32_t filled;
	struct tel *tel; // TEL_STREAM_COUNT streams, any of them off
	const struct tel_run *tel_run;
};

// 0 or -ENOMEM with a sentence. `tel` is an array of all streams, which outlives the tracker.
int track_init(struct track *t, const struct track_limits *limits, struct tel *tel,
	const struct tel_run *tel_run, struct err *err);
void track_fini(struct track *t);
// TCP packets in the order of the capture: the caller decodes up to READER_BATCH of them to
// track_room, calls track_fetch for each at once, and then track_packets. They are analysed with
// the call after that, or at the end.
static inline struct packet *track_room(struct track *t) {
	return t->batch[t->filled].packet;
}
static inline void track_fetch(const struct track *t, const struct packet *p) {
	__builtin_prefetch(table_home(&t->table, p->hash));
}
void track_packets(struct track *t, uint32_t n);
// The capture's end: all connections end as they are.
void track_end(struct track *t);

// Between the files of the tracker.

// A packet on its way through: the connection, its direction, and what is found out about it.
struct track_at {
	struct track *t;
	struct track_flow *f;
	uint32_t place;
	const struct packet *p;
	uint64_t now_ns; // from the start of the capture
	uint32_t d; // its direction
	uint16_t kind; // KIND_*
	uint64_t rtt_ns;
	uint32_t inflight;
};

static inline uint64_t track_relative(const struct track *t, uint64_t ts_ns) {
	return ts_ns > t->start_ns ? ts_ns - t->start_ns : 0;
}
static inline struct track_rare *track_rare(const struct track_at *a, uint32_t d) {
	return &a->t->rare[a->place][d];
}
// The direction's interval counters will be changed.
static inline void track_touch(struct track_at *a, uint32_t d) {
	struct track_snd *snd = &a->f->snd[d];

	if ((snd->flags & DIR_TOUCHED) == 0) {
		snd->flags |= DIR_TOUCHED;
		a->t->touched[a->t->touched_count++] = 2 * a->place + d;
	}
}
// Which end opened the connection that begins with this packet.
uint8_t track_client_of(const struct packet *p);
// Does a SYN on a connection that is there open another one?
bool track_reused(const struct track_at *a);
void track_syn(struct track_at *a);
// The ACK of a SYN or of a SYN-ACK that was not answered before.
void track_handshake(struct track_at *a);
// The packet was captured before, at the same point.
void track_duplicate(struct track_at *a);
// The shortest round trip of the whole path, as far as it is known: the handshake's two parts, or
// samples. Within it nothing is sent again.
uint64_t track_round_trip_ns(const struct track_at *a);
// A SYN-ACK leaves out what the other direction's SYN carried (RFC 7413): that is to be sent anew,
// not again.
void track_refused(struct track_at *a);
// May windows that direction d advertises be scaled, by a number that is not known?
static inline bool track_scale_known(const struct track_flow *f, uint32_t d) {
	return (f->snd[d].wscale & WSCALE_UNKNOWN) == 0;
}
// Was the packet seen at another point before, in other pieces?
bool track_recut(const struct track_at *a);
// The packet's payload and FIN, in its own direction.
void track_data(struct track_at *a);
// Its acknowledgement, of the other direction.
void track_ack(struct track_at *a);
// Counts an RTT sample of direction d by sequence number.
void track_rtt(
	struct track_at *a, uint32_t d, uint64_t rtt_ns, uint64_t oldest_rtt_ns, bool by_sack);
void track_event(const struct track_at *a, uint32_t d, enum tel_event event, double before,
	double value, uint32_t detail);
void track_segment(const struct track_at *a);
// The direction's first payload: it is a flow from now on.
void track_new_flow(struct track_at *a, uint32_t d);
// The records of all directions of the interval that ends, and the next one begins.
void track_flush(struct track *t);
void track_end_warmup(struct track *t);
// The records of a connection that has ended.
void track_flow_records(struct track *t, uint32_t place, enum tel_flow_event event);
