// SPDX-License-Identifier: BSD-3-Clause
// The sending side of one TCP connection (RFC 9293).
//
// A flow's data is synthetic zeros in segments of `payload` bytes, numbered from 0; only the last
// one may be shorter. All accounting is in segment numbers; sequence numbers exist in the headers
// only. After the last data segment comes the FIN, a segment of its own.
//
//	            una                    nxt
//	  acked      |  sent, not acked     |   not sent
//	-------------+----------------------+------------------> segment number
//	               SACKED? LOST? RETRANS?
//
//	pipe (inflight) = nxt - una - sacked - lost + retrans
//
// The connection: handshake.c, flow.c (what is believed, what is sent), pacer.h (when), rtx_timer.c (what if no
// ACK comes), ack.c (what an ACK means), loss.c (the scoreboard and RACK-TLP), spurious.c (was a reduction for
// nothing?).
#pragma once
#include "common/base/ns.h"
#include "common/base/wheel.h"
#include "common/net/seg.h"
#include "sender/cc/cc.h"
#include "sender/group.h"
#include "sender/tcp/rtt.h"
#include "sender/tcp/segs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;

enum flow_state { FLOW_WAITING, FLOW_SYN_SENT, FLOW_OPEN, FLOW_DONE, FLOW_FAILED };
enum flow_ca { FLOW_CA_OPEN, FLOW_CA_RECOVERY, FLOW_CA_LOSS }; // as enum tel_ca_state
enum flow_frto { FRTO_OFF, FRTO_RETRANSMITTED, FRTO_NEW }; // RFC 5682: what was sent last
enum flow_rtx { RTX_NONE, RTX_RTO, RTX_TLP, RTX_REO, RTX_PERSIST }; // what the timer is for

enum host_timer_kind { TIMER_PACE, TIMER_RTX, TIMER_DELACK };
struct host_timer {
	struct timer t;
	uint8_t kind; // enum host_timer_kind
	bool armed;
};

// Totals since the start; the summary subtracts a copy taken at the end of the warm-up. The first
// four change with every ACK.
struct flow_count {
	uint64_t acked_bytes;
	uint64_t sent_segs; // retransmissions included
	uint64_t rtt_sum_ns;
	uint64_t rtt_samples;
	uint64_t retransmits;
	uint64_t lost_segs; // marks, those that an undo took back too: Linux's tp->lost
	uint64_t drops; // data packets the forward path dropped; 0 live, where nobody can tell
	uint32_t halvings; // window reductions: one per episode
	uint32_t timeouts;
	uint32_t spurious; // retransmissions the receiver had already (DSACK)
	uint32_t spurious_timeouts, spurious_recoveries; // reductions that were taken back
	uint32_t ecn_echoes; // reductions by ECN among the halvings
};

// In the order of use: an ACK that brings no news but progress, and the segments it lets out, touch
// the first six cache lines and the algorithm's state, nothing else. With 50 000 flows each line is
// a miss.
struct flow {
	// 1. What the ACK is compared with.
	_Alignas(64) uint8_t state; // enum flow_state
	uint8_t ca, rtx_kind, cc_mode;
	bool sack_ok, ts_ok, ecn_ok;
	bool ecn_cwr; // tell the peer that we reduced
	bool ecn_episode; // this recovery answers an ECN echo
	bool cwnd_blocked;
	uint8_t seen_count;
	uint8_t snd_wscale;
	uint8_t timeouts; // in a row, until progress
	uint8_t probes; // of a closed window, in a row
	uint16_t backoff; // the RTO is doubled this often, until a round trip is measured
	uint16_t group;
	uint32_t id;
	uint32_t payload; // bytes per full segment
	uint32_t iss, rcv_nxt, ts_recent;
	uint64_t una_bytes; // offset of the highest ACK; the FIN counts one
	uint64_t wnd_bytes; // offset of the right edge of the peer's window
	uint32_t prr_out;

	// 2. Scoreboard.
	_Alignas(64) uint64_t una;
	uint64_t nxt;
	uint64_t data_segs; // the FIN's number; UINT64_MAX: endless
	struct seg_ring ring;
	uint32_t sacked, lost, retrans;
	uint32_t unsent_lost; // lost and not yet sent again
	uint64_t rtx_end; // none from this number on was ever sent again

	// 3. Delivery rate (draft-cheng-iccrg-delivery-rate-estimation-02), RTT.
	_Alignas(64) uint64_t delivered;
	uint64_t delivered_ns, first_tx_ns;
	uint64_t app_limited; // delivered count until which samples are app-limited; 0: none
	struct rtt rtt;

	// 4. Window and pacing.
	_Alignas(
		64) double cwnd_segs; // what may be in flight: the algorithm's, or PRR's on the way there
	struct cc_out out; // the algorithm's decision
	uint64_t next_send_ns; // pacing: not before
	uint64_t cwnd_limited_nxt; // window held sending back up to this segment number
	uint64_t last_send_ns;
	uint64_t stop_ns;
	uint64_t tlp_end; // the probe is out until una passes this; 0: none

	// 5. RACK (RFC 8985), the retransmission timer's deadline.
	_Alignas(64) uint64_t rack_sent_ns;
	uint64_t rack_seg; // newest segment delivered, by time sent
	uint64_t rack_rtt_ns;
	uint64_t rack_scan; // originals before this are acked, lost or sent again
	uint64_t fack; // highest segment delivered, plus one
	uint64_t rtx_deadline_ns, rtx_base_ns; // RTO counts from the last progress
	uint32_t interval_rtt_max_ns;
	bool rack_retrans; // that newest segment had been sent before
	bool reordering_seen;
	bool tlp_retrans; // the probe was a retransmission

	// 6. The timer, totals.
	_Alignas(64) struct host_timer rtx; // RTO, TLP, RACK reordering, persist: the earliest
	struct flow_count count;

	_Alignas(64) uint8_t cc_state[CC_STATE_MAX_BYTES];

	struct host_timer pace; // waits for the start, then for the next paced segment
	double next_send_frac; // of a nanosecond, beyond next_send_ns
	uint64_t owed_ns; // turns of the pacer that were missed and are to be made up for

	// Repair. Segments to send again are from here on, or in [again, again_end): repairs lost once more.
	uint64_t rtx_hint;
	uint64_t again, again_end;
	uint64_t recover; // episode ends when una reaches this
	uint64_t retrans_head, retrans_tail; // in order of transmission; UINT64_MAX: empty
	uint64_t dsack_round; // reo_wnd grows once per round: until una passes this
	uint32_t reo_wnd_mult, reo_wnd_persist;
	uint32_t prr_delivered, prr_flight;
	// spurious.c: the last episode's reduction may be taken back.
	uint64_t undo_from; // una at its start; UNDO_NONE: it may not
	uint32_t undo_retrans; // segments sent again in it, but for those that D-SACKs reported
	uint32_t undo_tsval; // timestamp of the first of them
	bool undo_sent; // there is one
	bool undo_timeout; // it began with a timeout
	uint8_t frto; // enum flow_frto
	uint64_t
		probe_end; // up to this offset probes of a window below a segment have carried data
	uint64_t challenge_ns; // not before this is an unacceptable segment answered again
	uint32_t dupacks; // peers without SACK
	struct seg_sack seen[SEG_SACK_MAX]; // blocks of the last ACK: nothing new inside

	uint64_t total_bytes; // when data_segs is known
	uint64_t start_ns;
	struct flow_count at_measure, at_interval;
	uint64_t interval_delivered_bytes; // since the start, up to the last interval's end
	uint64_t measure_send_ns; // last_send_ns at the end of the warm-up
	int64_t missed_ns; // since then, turns of the pacer; below 0: it made up for more than it missed
};
#define FLOW_HOT_BYTES 384
static_assert(offsetof(struct flow, count.retransmits) == FLOW_HOT_BYTES, "six lines");

void flow_init(struct host *h, struct flow *f, uint32_t id, uint16_t group, uint64_t start_ns,
	uint64_t bytes);
// A segment from the peer.
void flow_rx(struct host *h, struct flow *f, const struct seg *seg, uint64_t now_ns);
void flow_timer(struct host *h, struct flow *f, enum host_timer_kind kind, uint64_t now_ns);

// Unacceptable segments are answered no more often (RFC 5961 section 7; Linux: tcp_invalid_ratelimit).
#define CHALLENGE_GAP_NS (500 * NS_PER_MS)

#define FLOW_OUR_WINDOW 65535 // nothing is expected from the peer but its FIN

// Timestamp option's clock: 1 ms ticks (RFC 7323 section 5.4 allows 1 ms to 1 s).
static inline uint32_t flow_tsval(uint64_t now_ns) {
	return (uint32_t)(now_ns / NS_PER_MS) + 1;
}

static inline uint32_t flow_inflight(const struct flow *f) {
	return (uint32_t)(f->nxt - f->una) - f->sacked - f->lost + f->retrans;
}

// When a segment was sent last: its record keeps 48 bits, enough for an age of 78 hours.
static inline uint64_t flow_sent_ns(const struct seg_rec *r, uint64_t now_ns) {
	return now_ns - ((now_ns - r->sent_ns) & SENT_NS_MASK);
}

static inline struct seg_rec *flow_seg(const struct flow *f, uint64_t index) {
	return seg_at(&f->ring, index);
}

// Offset of a segment's first byte; of data_segs: the FIN's.
static inline uint64_t flow_offset(const struct flow *f, uint64_t index) {
	return index < f->data_segs ? index * f->payload : f->total_bytes + (index - f->data_segs);
}

static inline uint32_t flow_seq(const struct flow *f, uint64_t index) {
	return f->iss + 1 + (uint32_t)flow_offset(f, index);
}

// Payload of a segment; the last may be shorter, the FIN has none.
static inline uint32_t flow_len(const struct flow *f, uint64_t index) {
	if (index + 1 < f->data_segs)
		return f->payload;
	return index == f->data_segs ? 0 : (uint32_t)(f->total_bytes - index * f->payload);
}

// Offset of the first byte that was never sent: the next segment's, or in it, where probes have begun it.
static inline uint64_t flow_sent_bytes(const struct flow *f) {
	uint64_t whole = flow_offset(f, f->nxt);

	return whole > f->probe_end ? whole : f->probe_end;
}

// SND.NXT.
static inline uint32_t flow_seq_nxt(const struct flow *f) {
	return f->iss + 1 + (uint32_t)flow_sent_bytes(f);
}

// The header fields every segment of the connection shares.
static inline void flow_header(const struct flow *f, struct seg *s, uint32_t seq, uint16_t len,
	uint8_t flags, uint64_t now_ns) {
	seg_header(s, seq, f->rcv_nxt, len, FLOW_OUR_WINDOW, flags, f->ts_ok, flow_tsval(now_ns),
		f->ts_recent);
}

// How far an ACK is ahead of una, in bytes; below 0: another overtook it.
static inline int32_t flow_ack_ahead(const struct flow *f, const struct seg *s) {
	return seq_diff(s->ack, f->iss + 1 + (uint32_t)f->una_bytes);
}

// flow.c, for the files below.
// Sends what window and pacer allow; `due_ns`: when the pacer would have, else now_ns. Was anything
// sent? flow_arm_rtx follows.
bool flow_send(struct host *h, struct flow *f, uint64_t now_ns, uint64_t due_ns);
// A tail loss probe: new data if the window allows, else the last segment again. Like all that Linux sends it
// takes its gap of the pacer's time.
void flow_send_probe(struct host *h, struct flow *f, uint64_t now_ns);
// The lowest lost segment that was not sent again yet; there is one.
uint64_t flow_next_lost(struct flow *f);
// `due_ns`: as of when it leaves; `paced`: the pacer chose that.
void flow_transmit(struct host *h, struct flow *f, uint64_t index, uint64_t due_ns, bool paced,
	uint64_t now_ns);
void flow_end(
	struct host *h, struct flow *f, enum flow_state state, uint8_t event, uint64_t now_ns);
void flow_ack_now(struct host *h, struct flow *f, uint64_t now_ns); // a bare ACK
// A reset, if it is open, which it stays for us.
void flow_reset(struct host *h, const struct flow *f, uint64_t now_ns);

// handshake.c
// Sends a SYN, the first or one more.
void handshake_syn(struct host *h, struct flow *f, uint64_t now_ns);
// A segment for a flow in FLOW_SYN_SENT.
void handshake_rx(struct host *h, struct flow *f, const struct seg *seg, uint64_t now_ns);
// How long a SYN may take to be answered, of that retransmission timeout.
uint64_t handshake_timeout_ns(const struct host *h, const struct flow *f, uint64_t rto_ns);

// rtx_timer.c
// Starts, extends or stops the timer, after whatever may have changed what it waits for.
void flow_arm_rtx(struct host *h, struct flow *f, uint64_t now_ns);
void flow_rtx_timer(struct host *h, struct flow *f, uint64_t now_ns);

// ack.c
bool flow_ack_acceptable(const struct flow *f, const struct seg *seg);
void flow_ack(struct host *h, struct flow *f, const struct seg *seg, uint64_t now_ns);
// Does flow_rx's work for the ACK that brings nothing but progress; false: it is another.
bool flow_ack_expected(struct host *h, struct flow *f, const struct seg *seg, uint64_t now_ns);
void flow_enter_loss(struct host *h, struct flow *f, uint64_t now_ns); // after a timeout
void flow_reorder_timer(struct host *h, struct flow *f, uint64_t now_ns); // RACK

// loss.c: one ACK's findings, filled by the scoreboard.
struct delivery {
	uint64_t now_ns;
	uint32_t tsecr; // 0: no timestamp
	uint32_t acked; // newly delivered segments
	uint32_t lost; // newly lost
	uint32_t prr; // delivered as PRR counts: `acked`, or by duplicate ACKs without SACK
	uint64_t prior_fack; // fack before this ACK
	uint64_t newest_ns; // when the newest delivered one was sent; 0: none delivered
	uint64_t newest_seg;
	bool newest_retrans;
	float newest_cwnd;
	// Rate sample.
	uint64_t prior_delivered, prior_ns, send_elapsed_ns;
	bool app_limited;
	bool dsack, reordered;
	bool advanced; // the cumulative ACK moved
	bool original; // a segment from before the episode that was never sent again was delivered
	bool all_duplicates; // of the episode, the last retransmission was reported as a duplicate
};

void loss_cumulative(struct host *h, struct flow *f, uint64_t una, struct delivery *d);
void loss_sack(struct flow *f, const struct seg *seg, struct delivery *d);
// Fetches into the cache what loss_sack and loss_detect will touch.
void loss_fetch(const struct flow *f, const struct seg *seg);
// RACK: marks what is lost; returns the nanoseconds until the next check is due, 0: none.
uint64_t loss_detect(struct flow *f, uint64_t now_ns, struct delivery *d);
void loss_mark(struct flow *f, uint64_t index);
void loss_on_timeout(struct flow *f, uint64_t now_ns);
void loss_retrans_push(struct flow *f, uint64_t index);
void loss_retrans_unlink(struct flow *f, uint64_t index);

// spurious.c
#define UNDO_NONE UINT64_MAX
// An episode begins with a reduction that may be taken back.
void spurious_start(struct flow *f, bool timeout, uint64_t now_ns);
void spurious_sent(struct flow *f, uint64_t now_ns); // a segment is sent again
// A D-SACK reports the segments of this block.
void spurious_duplicates(struct flow *f, const struct seg_sack *b, struct delivery *d);
// Takes the reduction back if this ACK proves it spurious.
void spurious_detect(struct host *h, struct flow *f, struct delivery *d);
// RFC 5682 section 3.1 step 2b: two new segments go before what is to be repaired.
static inline bool spurious_new_first(const struct flow *f) {
	return f->frto == FRTO_NEW && f->nxt < f->recover + 2;
}
