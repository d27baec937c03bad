// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of one TCP connection: the peer of our sender or of a kernel's.
//
// Payload is counted and discarded; only rcv_nxt and the out-of-order ranges beyond it are kept. An
// ACK is sent per `ack_every` full segments, or `ack_delay` after the first unacknowledged one (RFC
// 5681 section 4.2); at once for a segment out of order, a filled hole, a duplicate (with a DSACK,
// RFC 2883), a FIN, or a change of CE.
//
// Real hosts do more (receiver_acks.c): a card hands adjacent segments over as one (`gro`), and
// Linux acknowledges each segment at first and then adapts its delay (`acks: linux`).
//
// CE is echoed until CWR (RFC 3168), or as DCTCP needs it (RFC 8257 section 3.2): ECE says whether
// the packets an ACK acknowledges were marked; or counted (accecn.h). When CE changes, packets that
// wait for a delayed ACK are acknowledged first, with the old state, so that the sender can count
// marked bytes exactly, as in Linux.
#pragma once
#include "common/base/err.h"
#include "common/net/seg.h"
#include "sender/tcp/flow.h"

#include <stdbool.h>
#include <stdint.h>

enum receiver_state { RECEIVER_LISTEN, RECEIVER_OPEN, RECEIVER_CLOSED };

// State of receiver_window.c. Bytes and offsets.
struct receiver_window {
	uint64_t edge; // right edge of the window that the peer knows
	uint64_t space; // the largest window that the buffer allows
	uint64_t advertise; // the largest that is advertised, growing towards space
	uint64_t read, read_ns; // up to where the application has read, and when
	uint64_t measured, measured_ns; // where the present round trip began
	uint64_t before; // read in the round trip before
	uint64_t rtt_ns; // 0: unknown
	uint64_t update_ns; // an ACK is to open the window at this time; NEVER_NS: none
	uint32_t tsecr; // of the last sample
	uint64_t limit; // by the control (cc_ops.on_arrival)
	uint64_t control[CC_RECEIVER_BYTES / sizeof(uint64_t)]; // the control's own
};

// State of receiver_acks.c and receiver_window.c.
struct receiver_acks {
	// Segments that GRO holds; their ACK waits.
	uint64_t gro_end; // offset behind the last
	uint64_t gro_ns; // they are handed to TCP at this time; NEVER_NS: there are none
	uint32_t gro_bytes, gro_tsval;
	uint8_t gro_ecn;
	bool gro_now; // they are to be acknowledged at once
	bool gro_pushed; // one of them has PSH or is short
	bool gro_repeated; // one of them brought nothing new
	// acks: linux.
	bool compressed; // delack_ns is that of compressed SACKs
	uint8_t quick; // segments to be acknowledged at once
	bool grew; // the window, by data whose ACK is not decided
	uint8_t dup_acks; // sent with the present rcv_nxt
	uint16_t compressed_acks; // not sent since the last ACK
	uint64_t ato_ns; // 0: no data yet
	uint64_t data_ns; // when the last data came
	uint64_t dup_nxt; // rcv_nxt that dup_acks belongs to
	uint64_t syn_ack_ns; // when the SYN/ACK was sent; NEVER_NS: answered
	uint64_t rtt_ns; // of the handshake; 0: unknown
	struct receiver_window window;
};

// What decides about the short path, to be compared at once.
struct receiver_condition {
	uint8_t state; // enum receiver_state
	bool ts_ok, fin_seen;
	uint8_t modes; // enum receiver_mode
};

struct receiver {
	// A segment in order touches only the first cache line, holes the second, too. The timer is
	// touched when it is armed.
	_Alignas(64) uint64_t rcv_nxt; // offset of the next byte expected in order
	struct range *head; // the lowest of those out of order
	uint64_t delack_ns; // the ACK's deadline; NEVER_NS: none waits
	uint32_t irs; // the peer's initial sequence number
	uint32_t ack_delay_ns;
	uint32_t ts_recent, last_ack; // last_ack: Last.ACK.sent of RFC 7323
	uint32_t payload; // bytes of a full segment, the largest seen
	uint32_t id;
	uint16_t group_index;
	uint16_t window; // as advertised, scaled
	union {
		struct receiver_condition condition;
		struct receiver_condition; // its members are the receiver's
	};
	uint8_t pending; // full segments since the last ACK
	uint8_t ack_every;
	uint8_t sack_count; // number of ranges in `sack`
	bool sack_ok, ecn_echo; // ecn_echo: ACKs carry ECE
	bool dsack; // sack[0] is a duplicate report, to be sent once
	// Flags that decide about the short path: PSH only where it asks for an ACK.
	uint8_t flags_mask;
	bool delays; // a delayed ACK has armed the timer

	_Alignas(64) struct range *tail;
	uint32_t root; // of the tree of the ranges
	uint32_t range_bytes; // of all ranges; a window is below 2^30
	struct seg_sack sack[SEG_SACK_MAX]; // most recent first
	uint64_t fin; // offset of the FIN; UINT64_MAX: not seen
	uint64_t challenge_ns; // no unacceptable segment is answered before this time

	struct host_timer delack;
	bool ecn_ok, ce_last, window_scaled;
	uint8_t wscale;
	uint32_t datagrams; // of UDP, that have arrived
	struct receiver_acks *acks; // NULL: no receiver of the host has such modes
	uint8_t ce_pending; // packets with CE since the last ACK
	struct accecn_counters marks; // RECEIVER_ACCECN
};

#define RECEIVER_HOT_BYTES 64
#define RECEIVER_HOLE_BYTES 64 // the line after the hot one
static_assert(sizeof(void *) < sizeof(uint64_t)
		|| (offsetof(struct receiver, tail) == RECEIVER_HOT_BYTES
			&& offsetof(struct receiver, delack)
				== RECEIVER_HOT_BYTES + RECEIVER_HOLE_BYTES),
	"a line, and one");

// Our initial sequence number: arbitrary, but easy to recognise in traces.
static inline uint32_t receiver_iss(const struct receiver *r) {
	return (r->id + 1) * 0x85ebca6bu;
}

static inline bool receiver_accecn(const struct receiver *r) {
	return (r->modes & RECEIVER_ACCECN) != 0;
}

// Whether all data and the FIN have been received.
static inline bool receiver_done(const struct receiver *r) {
	return r->fin_seen && r->rcv_nxt == r->fin;
}

// Low 32 bits of the sequence number at an offset; the FIN counts one.
static inline uint32_t receiver_seq(const struct receiver *r, uint64_t offset) {
	return r->irs + 1 + (uint32_t)offset;
}

static inline const struct group *receiver_group(
	const struct endpoint *e, const struct receiver *r) {
	return &e->groups->group[r->group_index];
}

void receiver_init(struct receiver *r, uint32_t id, const struct groups *gs, uint16_t group);
void receiver_rx(struct endpoint *e, struct receiver *r, const struct seg *seg, uint8_t ecn,
	uint64_t now_ns);
void receiver_timer(struct endpoint *e, struct receiver *r, uint64_t now_ns);
// Whether the connection has ended, with a FIN or a reset.
bool receiver_over(const struct receiver *r);
// Whether the segment begins the peer's next connection. After a reset any SYN does that is not the
// old one. After a FIN its number must be beyond the old connection's, or its timestamp newer (RFC
// 9293 section 3.10.7.4, MAY-2; RFC 6191 section 2): another may be old or forged.
bool receiver_renewed_by(const struct receiver *r, const struct seg *s);
// Resets a receiver for a new connection. Its totals continue; h counts the old connection if it
// was done.
void receiver_renew(struct endpoint *e, struct receiver *r, uint16_t group);
// Number of a host's connections that received all data and the FIN, including those of renewed
// receivers.
uint64_t receivers_done(const struct endpoint *e);
// Sends a reset if the connection is open; its state does not change.
void receiver_reset(struct endpoint *e, const struct receiver *r, uint64_t now_ns);

// Closes our direction of an open connection; what the peer sends is still received. The FIN is in
// every ACK until it is acknowledged.
void receiver_close(struct endpoint *e, struct receiver *r, uint64_t now_ns);

// For receiver_acks.c.
void receiver_send_ack(struct endpoint *e, struct receiver *r, uint64_t now_ns);
// Acknowledges `segs` full segments, or data shorter than one: at once if `now` or if ack_every of
// them have arrived, else delayed.
void receiver_ack_fixed(
	struct endpoint *e, struct receiver *r, uint32_t segs, bool now, uint64_t now_ns);

// receiver_acks.c, for receivers with RECEIVER_HOST modes.
// Bytes of all receivers' state; 0: no group needs it.
uint64_t receivers_acks_bytes(const struct groups *gs, uint32_t receivers);
int receivers_acks_init(struct endpoint *e, struct err *err);
void receivers_acks_fini(struct endpoint *e);
void receiver_acks_reset(struct receiver *r);
// A segment of an open connection arrives: the first one gives the RTT of the handshake.
void receiver_answered(struct receiver *r, uint64_t now_ns);
// An ACK was sent.
void receiver_ack_sent(struct receiver *r);
// After it was processed up to `end`: decides about its ACK. `now`: it wants one at once;
// `repeated`: it brought nothing.
void receiver_ack_host(struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t end,
	uint8_t ecn, bool now, bool repeated, uint64_t now_ns);
// For receiver_gro.c: arms the timer; decides about the ACK of data that reaches TCP as one
// segment.
void receiver_acks_arm(struct endpoint *e, struct receiver *r);
void receiver_acks_decide(struct endpoint *e, struct receiver *r, uint32_t bytes, bool now,
	bool pushed, bool repeated, uint64_t now_ns);
// The timer of held segments and delayed ACKs.
void receiver_host_timer(struct endpoint *e, struct receiver *r, uint64_t now_ns);

// receiver_gro.c, for receivers with RECEIVER_GRO.
int receivers_gro_init(struct endpoint *e); // -ENOMEM
void receivers_gro_fini(struct endpoint *e);
// Segments that the cards of a kind of hosts handed over at a time since receivers_gro_measure, the
// mean; NaN: there were none.
void receivers_gro_measure(struct endpoint *e);
double receivers_gro_mean(const struct endpoint *e, const struct hosts_kind *kind);
// Before a segment [start, ...) is processed: hands over what GRO holds if the segment does not
// continue it.
void receiver_gro_break(struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t start,
	uint8_t ecn, uint64_t now_ns);
// After it was processed up to `end`.
void receiver_gro_take(struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t end,
	uint8_t ecn, bool now, bool pushed, bool repeated, uint64_t now_ns);
// Hands over what it holds of the flow.
void receiver_gro_flush(struct endpoint *e, struct receiver *r, uint64_t now_ns);
// The card of flow number `flow` of a group has handed over the last packet of a poll.
void receivers_gro_poll_end(struct endpoint *e, uint32_t group, uint32_t flow, uint64_t now_ns);

// receiver_window.c, for receivers with RECEIVER_WINDOW.
// The largest window that a group's receivers may advertise, in bytes.
uint64_t receiver_window_max(const struct group *g);
// `seg_bytes`: payload of the peer's full segments. What the window then holds, the SYN-ACK offers.
void receiver_window_init(struct receiver *r, const struct group *g, uint32_t seg_bytes);
// The application reads until now. To be called before data arrives.
void receiver_window_read(const struct endpoint *e, struct receiver *r, uint64_t now_ns);
// A segment was taken: measures the round trip and adapts the buffer. `late`: as in cc_arrival.
void receiver_window_data(const struct endpoint *e, struct receiver *r, const struct seg *s,
	bool late, uint8_t ecn, uint64_t now_ns);
// Before an ACK is sent: sets its window.
void receiver_window_set(const struct endpoint *e, struct receiver *r, uint64_t now_ns);
// When an ACK is due only to open the window; NEVER_NS: none is.
uint64_t receiver_window_update_ns(const struct endpoint *e, struct receiver *r, uint64_t now_ns);

// receiver_sack.c
// Data in order: moves rcv_nxt to the offset `end`, and over ranges that it reaches.
void receiver_in_order(struct endpoint *e, struct receiver *r, uint64_t end);
// Data out of order: merges [start, end) into the ranges. False: all of it had been received
// before.
bool receiver_out_of_order(struct endpoint *e, struct receiver *r, uint64_t start, uint64_t end);
// Both report [start, end) as a duplicate in the next ACK; the second counts a segment, too.
void receiver_report_repeated(struct receiver *r, uint64_t start, uint64_t end);
void receiver_report_duplicate(
	struct endpoint *e, struct receiver *r, uint64_t start, uint64_t end);
// Adds a FIN beyond a hole to the blocks of an ACK that has room for `room` blocks.
void receiver_report_fin(const struct receiver *r, struct seg *s, uint32_t room);
void receiver_drop_ranges(struct endpoint *e, struct receiver *r);
