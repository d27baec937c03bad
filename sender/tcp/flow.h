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
// The files: accept.c (the peer's segments); handshake.c; transmit.c; bursts.h (how many segments
// leave at once); pacer.h (when); rtx_timer.c (timeouts and probes); ack.c, sample.c (ACKs); loss.c
// (scoreboard and RACK-TLP); relost.c (lost retransmissions); spurious.c (undo of spurious
// reductions); marks.c and accecn.h (ECN feedback); writes.c (short segments); path_mtu.c and
// mtu_probe.c (smaller and larger ones); send_buffer.h (what the application has written);
// service.h (what a control has beside its state).
#pragma once
#include "common/base/field.h"
#include "common/base/likely.h"
#include "common/base/ns.h"
#include "common/base/u64.h"
#include "common/base/wheel.h"
#include "common/net/resent.h"
#include "common/net/seg.h"
#include "sender/cc/cc.h"
#include "sender/endpoint/endpoint.h"
#include "sender/endpoint/segs.h"
#include "sender/tcp/accecn.h"
#include "sender/tcp/rtt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_NONE UINT32_MAX
#define FLOW_ENDLESS UINT64_MAX // bytes of a flow, or its segments: as many as it can send

enum flow_state { FLOW_WAITING, FLOW_SYN_SENT, FLOW_OPEN, FLOW_DONE, FLOW_FAILED };
enum flow_ca { FLOW_CA_OPEN, FLOW_CA_RECOVERY, FLOW_CA_LOSS }; // as enum tel_ca_state
enum flow_frto { FRTO_OFF, FRTO_RETRANSMITTED, FRTO_NEW }; // RFC 5682: the last segment sent
enum flow_rtx { RTX_NONE, RTX_RTO, RTX_TLP, RTX_REO, RTX_PERSIST }; // purpose of the timer

// Totals since the start; the summary subtracts a copy taken at the end of the warm-up. The first
// four change with every ACK. Classic feedback repeats an echo until CWR: then ce_segs are at least
// so many, one per echo. lost_segs is Linux's tp->lost.
#define FLOW_COUNTERS(V)                                                                           \
	V(uint64_t, acked_bytes, COUNT_ALWAYS, "B", "payload acknowledged in sequence",            \
		.source = "interval.acked_bytes")                                                  \
	V(uint64_t, sent_segs, COUNT_ALWAYS, "segment",                                            \
		"segments with payload sent, retransmissions included; no SYN, FIN or bare ACK",   \
		.source = "interval.sent_segs")                                                    \
	V(uint64_t, rtt_sum_ns, COUNT_INNER, "", "")                                               \
	V(uint64_t, rtt_samples, COUNT_INNER, "", "")                                              \
	V(uint64_t, retransmits, COUNT_TCP, "segment", "of sent_segs, those sent before",          \
		.source = "interval.retransmits")                                                  \
	V(uint64_t, lost_segs, COUNT_OURS, "segment",                                              \
		"times the sender declared one of these lost, those taken back too",               \
		.source = "interval.lost_segs")                                                    \
	V(uint64_t, drops, COUNT_VIRTUAL, "packet",                                                \
		"packets with payload that the forward paths dropped, counted when they are",      \
		.source = "interval.drops")                                                        \
	V(uint32_t, cwnd_reductions, COUNT_OURS, "",                                               \
		"window reductions, one per episode, timeouts among them",                         \
		.source = "interval.cwnd_reductions")                                              \
	V(uint32_t, timeouts, COUNT_OURS, "", "retransmission timeouts of open connections",       \
		.source = "events: timeout")                                                       \
	V(uint32_t, spurious, COUNT_TCP, "segment",                                                \
		"of retransmits, those that the receiver reports as duplicates (DSACK)",           \
		.source = "events: spurious")                                                      \
	V(uint32_t, spurious_timeouts, COUNT_OURS, "", "timeouts whose reduction was undone",      \
		.source = "events: undo")                                                          \
	V(uint32_t, spurious_recoveries, COUNT_OURS, "", "recoveries whose reduction was undone",  \
		.source = "events: undo")                                                          \
	V(uint32_t, ecn_echoes, COUNT_OURS, "", "of cwnd_reductions, those by ECN",                \
		.source = "events: reduction with detail 1")                                       \
	V(uint64_t, ce_segs, COUNT_ALWAYS, "segment",                                              \
		"segments of which the peer says that they arrived with CE")
struct flow_count {
	FLOW_COUNTERS(COUNTERS_MEMBER)
};

// A transfer that has begun.
struct flow_transfer {
	uint64_t start_ns; // by its schedule
	uint64_t gap_ns; // as drawn
	uint64_t bytes;
	// One connection for several: the number behind its last segment, and the offset behind its
	// last byte.
	uint64_t end_seg, end_bytes;
	uint32_t number; // in its schedule
};

// The search for the largest payload that arrives.
struct mtu_search {
	uint32_t low, high; // one that has arrived, the largest that may; 0: there was no search
	uint32_t size; // of the probe in flight; 0: none
	uint32_t seq; // where it begins
	uint32_t tries; // of this size, that were lost
	uint64_t behind; // the first segment sent after it
};

// What decides about the short path of ACKs, to be compared at once.
struct flow_condition {
	uint8_t state; // enum flow_state
	uint8_t ca; // enum flow_ca
	uint8_t seen_count; // of `seen`
	bool sack_ok, ts_ok;
	bool accecn; // its ECN feedback is AccECN
};

// Members are in the order of use. A segment that the pacer releases touches the first six cache
// lines; an ACK that only advances una, and the segments it releases, also the seventh and the
// algorithm's state. With 50 000 flows each line is a cache miss.
struct flow {
	// 1. When and how fast it sends.
	_Alignas(64) struct host_timer pace; // for the flow's start, then the next paced segment
	struct cc_out out; // the algorithm's decision
	uint64_t next_send_ns; // pacing: no segment before this time
	double next_send_frac; // of a nanosecond, beyond next_send_ns

	// 2. Values that an ACK is compared with.
	_Alignas(64) union {
		struct flow_condition condition;
		struct flow_condition; // its members are the flow's
	};
	uint8_t rtx_kind, cc_mode;
	bool ecn_ok;
	bool ecn_cwr; // the next new segment carries CWR
	bool ecn_episode; // this recovery answers an ECN echo
	bool cwnd_blocked;
	uint8_t snd_wscale;
	uint8_t timeouts; // in a row, until progress; of a closed window: unanswered probes
	uint8_t probes; // of a closed window, in a row
	bool classic_ecn; // ECN was agreed, and the peer only says that there was a mark (RFC 3168)
	uint16_t backoff; // number of times the RTO is doubled; reset by an RTT sample
	uint16_t group;
	bool echoing; // the last ACK had ECE
	uint8_t ace; // accecn: what its segments carry
	uint8_t ect; // the codepoint of its data packets
	bool rack_retrans : 1; // rack_seg was a retransmission
	bool reordering_seen : 1;
	bool tlp_retrans : 1; // the probe was a retransmission
	bool searches : 1; // for a larger MTU (mtu_probe.c)
	bool writes : 1; // several transfers share the connection: their last segments may be short
	bool buffered : 1; // `written` bounds what is sent (send_buffer.h)
	bool sampled : 1; // its control has on_sample, requests or a service
	bool packets : 1; // its control has on_packet
	uint32_t id;
	uint32_t payload; // bytes per full segment
	uint32_t iss, rcv_nxt, ts_recent;
	uint32_t prr_out;
	uint64_t una_bytes; // offset of the highest ACK; the FIN counts one
	uint64_t wnd_bytes; // offset of the right edge of the peer's window

	// 3. Scoreboard.
	_Alignas(64) uint64_t una;
	uint64_t nxt;
	uint64_t data_segs; // the FIN's number; UINT64_MAX: endless
	struct seg_ring ring;
	uint32_t sacked, lost, retrans;
	uint32_t unsent_lost; // lost and not yet retransmitted
	// No segment from this number on was ever retransmitted; UINT64_MAX: no short path.
	uint64_t rtx_end;

	// 4. Window, delivery rate (draft-cheng-iccrg-delivery-rate-estimation-02).
	_Alignas(64) double cwnd_segs; // the algorithm's, or PRR's on the way to it
	uint64_t cwnd_limited_nxt; // sending was limited by the window up to this segment number
	uint64_t last_send_ns;
	uint64_t stop_ns; // no new data from then on; 0: `keep`
	uint64_t delivered;
	uint64_t delivered_ns, first_tx_ns;
	uint64_t app_limited; // delivered count until which samples are app-limited; 0: none

	// 5. RTT, the retransmission timer's deadline.
	_Alignas(64) struct rtt rtt;
	uint64_t rtx_deadline_ns, rtx_base_ns; // RTO counts from the last progress
	uint64_t tlp_end; // a tail loss probe is outstanding until una passes this; 0: none
	uint64_t owed_ns; // time of missed pacing slots still to be made up for

	// 6. The timer, totals.
	_Alignas(64) struct host_timer rtx; // RTO, TLP, RACK reordering, persist: the earliest
	struct flow_count count;

	// 7. RACK (RFC 8985); a small state of the algorithm is in the same line.
	_Alignas(64) uint64_t rack_sent_ns;
	uint64_t rack_seg; // newest segment delivered, by time sent
	uint64_t rack_rtt_ns;
	uint64_t interval_rtt_max_ns;

	_Alignas(16) uint8_t cc_state[CC_STATE_MAX_BYTES];

	// The rest of RACK: short of una until an ACK that the short path does not take.
	uint64_t rack_scan; // originals before this are acked, lost or retransmitted
	uint64_t fack; // highest segment delivered, plus one

	// Of pacing slots since the warm-up: missed, less made up for.
	int64_t missed_ns;

	// Retransmission. Lost segments that are not yet retransmitted are at rtx_hint or above, or
	// in the tree `relost` (relost.c), as their retransmission was lost.
	uint64_t rtx_hint;
	uint32_t relost; // the link to its root; 0: it is empty
	uint64_t recover; // episode ends when una reaches this
	uint64_t retrans_head, retrans_tail; // in order of transmission; UINT64_MAX: empty
	uint64_t dsack_round; // reo_wnd grows once per round: until una passes this
	uint32_t reo_wnd_mult, reo_wnd_persist;
	uint32_t reordering; // segments that overtook another, at most: Linux's tp->reordering
	uint32_t prr_delivered, prr_flight;
	// spurious.c: undo of the last episode's reduction.
	uint64_t undo_from; // una at the episode's start; UNDO_NONE: no undo
	uint32_t undo_retrans; // segments retransmitted in it, less those reported by D-SACKs
	uint32_t undo_tsval; // timestamp of its first retransmission
	bool undo_sent; // undo_tsval is valid
	bool undo_timeout; // it began with a timeout
	uint8_t frto; // enum flow_frto
	bool ecn_loss; // the algorithm was informed of a loss in this ECN episode
	bool gave_up; // FLOW_FAILED: after too many timeouts; else it was reset
	uint64_t probe_end; // offset up to which window probes have carried data
	uint64_t challenge_ns; // no unacceptable segment is answered before this time
	uint32_t dupacks; // duplicate ACKs in a row, from a peer without SACK
	struct seg_sack seen[SEG_SACK_MAX]; // blocks of the last ACK, already processed
	struct resent resent;

	uint64_t total_bytes; // when data_segs is known
	uint64_t start_ns;
	struct flow_count at_measure, at_interval;
	// Of payload: by the connections before this one, and in all before reports were forgotten
	// (flow_forget).
	uint64_t before_delivered_bytes, least_delivered_bytes;
	uint64_t interval_delivered_bytes; // since the start, up to the last interval's end
	uint64_t measure_delivered_bytes; // up to the end of the warm-up
	uint64_t measure_send_ns; // last_send_ns at the end of the warm-up

	// Of a source with a schedule (workload.h).
	struct flow_count at_open; // totals of the flow's connections before this one
	struct flow_transfer *transfer; // the transfers that have begun, a ring
	uint32_t workload; // the host's, by number
	uint32_t next_free; // FLOW_NONE: none
	uint8_t transfers, transfer_first, transfer_room; // in the ring
	uint64_t write_seg, write_bytes; // where the oldest of them begins (writes.c)
	bool keep; // no FIN behind the last segment: more transfers may follow on this connection
	bool peer_closed; // its FIN has arrived
	struct mtu_search search;
	uint32_t path_mtu; // the smallest that a router has reported; 0: none has
	struct accecn_sender marks; // accecn
	uint64_t written; // buffered: the number behind the last segment in the buffer
	uint64_t buffer_bytes; // its size
	struct flow_service *service; // service.h; NULL: its control asks for none
};
#define FLOW_HOT_BYTES 384
static_assert(sizeof(void *) < sizeof(uint64_t)
		|| offsetof(struct flow, count.retransmits) == FLOW_HOT_BYTES,
	"six lines");

static inline const struct group *flow_group(const struct endpoint *e, const struct flow *f) {
	return &e->groups->group[f->group];
}

// What the algorithm calls its mode, after each of its decisions.
static inline void flow_note_mode(const struct endpoint *e, struct flow *f) {
	const struct group *g = flow_group(e, f);

	if (g->cc->mode != NULL)
		f->cc_mode = g->cc->mode(f->cc_state, g->cc_config);
}

void flow_init(struct endpoint *e, struct flow *f, uint32_t id, uint16_t group, uint64_t start_ns,
	uint64_t bytes);
// Processes a segment from the peer.
void flow_rx(struct endpoint *e, struct flow *f, const struct seg *seg, uint64_t now_ns);
void flow_timer(struct endpoint *e, struct flow *f, enum host_timer_kind kind, uint64_t now_ns);

// Minimum time between answers to unacceptable segments (RFC 5961 section 7; Linux:
// tcp_invalid_ratelimit).
#define CHALLENGE_GAP_NS (500 * NS_PER_MS)

#define FLOW_OUR_WINDOW 65535 // the peer is expected to send only its FIN

// From so many duplicate ACKs or SACKed segments on, a hole is a loss and not reordering (RFC 5681,
// RFC 8985).
#define FLOW_DUP_THRESH 3

#define MSS_DEFAULT 536 // RFC 9293 section 3.7.1: without the option
#define MSS_MIN 88 // room for all TCP options and some payload

// Payload of a full segment: of the MSS of the peer's SYN, or the group's if that is smaller.
static inline uint32_t mss_payload(const struct group *g, const struct seg *syn, bool timestamps) {
	uint32_t mss = (syn->options & SEG_OPT_MSS) != 0 ? syn->mss : MSS_DEFAULT;

	mss = mss < MSS_MIN ? MSS_MIN : mss < g->mss ? mss : (uint32_t)g->mss;
	return mss - (timestamps ? 12u : 0u);
}

// Timestamp option's clock: 1 ms ticks (RFC 7323 section 5.4 allows 1 ms to 1 s).
static inline uint32_t flow_tsval(uint64_t now_ns) {
	return (uint32_t)(now_ns / NS_PER_MS) + 1;
}

static inline uint32_t flow_inflight(const struct flow *f) {
	return (uint32_t)(f->nxt - f->una) - f->sacked - f->lost + f->retrans;
}

// Number of segments for which the window has room; negative: the window has shrunk.
static inline int64_t flow_window_room(const struct flow *f) {
	return (int64_t)f->cwnd_segs - flow_inflight(f);
}

// Whether all segments are acknowledged and none was sent for an RTO: the window may be out of date
// (RFC 5681 4.1). For some controls it suffices that the application had nothing to send (Linux:
// CA_EVENT_TX_START with app_limited).
static inline bool flow_idle(const struct group *g, const struct flow *f, uint64_t now_ns) {
	return f->una == f->nxt
		&& ((f->nxt > 0 && now_ns - f->last_send_ns >= f->rtt.rto_ns)
			|| (g->cc->any_idle && f->app_limited != 0));
}

// No more is sent because the window has no room.
static inline void flow_window_limits(struct flow *f) {
	f->cwnd_blocked = true;
	f->cwnd_limited_nxt = f->nxt;
}

// Rate samples are limited by the application until all that is in flight is delivered.
static inline void flow_app_limits(struct flow *f) {
	f->app_limited = f->delivered + flow_inflight(f) + 1;
}

// No more is sent because no new segment may be, perhaps as there is no more data.
static inline void flow_source_limits(struct flow *f) {
	if (f->nxt >= f->data_segs)
		flow_app_limits(f);
	f->owed_ns = 0;
}

// Time of a segment's last transmission. Its record keeps 48 bits, enough for an age of 78 hours.
static inline uint64_t flow_sent_ns(const struct seg_rec *r, uint64_t now_ns) {
	return now_ns - ((now_ns - r->sent_ns) & SENT_NS_MASK);
}

static inline struct seg_rec *flow_seg(const struct flow *f, uint64_t index) {
	return seg_at(&f->ring, index);
}

static inline struct seg_sample *flow_sample(const struct flow *f, uint64_t index) {
	return seg_sample_at(&f->ring, index);
}

static inline struct seg_links *flow_links(const struct flow *f, uint64_t index) {
	return seg_links_at(&f->ring, index);
}

// writes.c, for flows with `writes`: of segments of data.
__attribute__((cold)) uint64_t writes_offset(const struct flow *f, uint64_t index);
__attribute__((cold)) uint32_t writes_len(const struct flow *f, uint64_t index);
// The segment that starts at an offset or, if none does, that includes it (`up`: the next one).
__attribute__((cold)) uint64_t writes_segment(const struct flow *f, uint64_t offset, bool up);
__attribute__((cold)) uint64_t writes_sacked_bytes(const struct flow *f);

// Offset of a segment's first byte; of data_segs: the FIN's.
static inline uint64_t flow_offset(const struct flow *f, uint64_t index) {
	if (unlikely(f->writes) && index < f->data_segs)
		return writes_offset(f, index);
	return index < f->data_segs ? index * f->payload : f->total_bytes + (index - f->data_segs);
}

static inline uint32_t flow_seq(const struct flow *f, uint64_t index) {
	return f->iss + 1 + (uint32_t)flow_offset(f, index);
}

// Payload of a segment; the last may be shorter, the FIN has none.
static inline uint32_t flow_len(const struct flow *f, uint64_t index) {
	if (unlikely(f->writes) && index < f->data_segs)
		return writes_len(f, index);
	if (index + 1 < f->data_segs)
		return f->payload;
	return index == f->data_segs ? 0 : (uint32_t)(f->total_bytes - index * f->payload);
}

// Offset of the first byte that was never sent. Probes may have sent the first bytes of the next
// segment.
static inline uint64_t flow_sent_bytes(const struct flow *f) {
	uint64_t whole = flow_offset(f, f->nxt);

	return whole > f->probe_end ? whole : f->probe_end;
}

// Whether something has not been sent: data, or the FIN.
static inline bool flow_unsent(const struct flow *f) {
	return f->nxt + f->keep <= f->data_segs;
}

// SND.NXT.
static inline uint32_t flow_seq_nxt(const struct flow *f) {
	return f->iss + 1 + (uint32_t)flow_sent_bytes(f);
}

// Fills in the header fields that all segments of the connection share.
static inline void flow_header(const struct flow *f, struct seg *s, uint32_t seq, uint16_t len,
	uint8_t flags, uint64_t now_ns) {
	seg_header(s, seq, f->rcv_nxt, len, FLOW_OUR_WINDOW, flags, f->ts_ok, flow_tsval(now_ns),
		f->ts_recent);
	if (f->accecn)
		seg_set_ace(s, f->ace);
}

// Bytes by which an ACK is ahead of una; negative: a later ACK has overtaken it.
static inline int32_t flow_ack_ahead(const struct flow *f, const struct seg *s) {
	return seq_diff(s->ack, f->iss + 1 + (uint32_t)f->una_bytes);
}

// transmit.c, for the files below.
// Sends as many segments as window and pacer allow. `due_ns`: the time of the pacing slot, else
// now_ns. True: at least one was sent. The caller calls flow_arm_rtx afterwards.
bool flow_send(struct endpoint *e, struct flow *f, uint64_t now_ns, uint64_t due_ns);
// Sends a tail loss probe: new data if the window allows, else the last segment again. Uses a
// pacing slot, as in Linux.
void flow_send_probe(struct endpoint *e, struct flow *f, uint64_t now_ns);
// The lowest lost segment that is not yet retransmitted; the caller knows that one exists.
uint64_t flow_next_lost(struct flow *f);
// Sends segment `index`. `due_ns`: its transmission time; `paced`: that time is a pacing slot;
// `push`: with PSH.
void flow_transmit(struct endpoint *e, struct flow *f, uint64_t index, uint64_t due_ns, bool paced,
	bool push, uint64_t now_ns);

// accept.c
void flow_end(
	struct endpoint *e, struct flow *f, enum flow_state state, uint8_t event, uint64_t now_ns);
void flow_ack_now(struct endpoint *e, struct flow *f, uint64_t now_ns); // a bare ACK
void flow_answer_unknown(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns);
// Sends a reset if the flow is open; its state does not change.
void flow_reset(struct endpoint *e, const struct flow *f, uint64_t now_ns);

// handshake.c
// Sends the SYN or retransmits it.
void handshake_syn(struct endpoint *e, struct flow *f, uint64_t now_ns);
// Opens a new connection, of so many bytes, on a flow whose last one is over, or that has had none.
void flow_renew(struct endpoint *e, struct flow *f, uint64_t bytes, uint64_t now_ns);
// Processes a segment for a flow in FLOW_SYN_SENT.
void handshake_rx(struct endpoint *e, struct flow *f, const struct seg *seg, uint64_t now_ns);
// The time to wait for the answer to a SYN, with the retransmission timeout rto_ns.
uint64_t handshake_timeout_ns(const struct endpoint *e, const struct flow *f, uint64_t rto_ns);

// mtu_probe.c
void mtu_probe_ack(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns);
// Whether a D-SACK block reports the probe.
static inline bool mtu_probe_arrived(const struct flow *f, const struct seg_sack *b) {
	return f->searches && f->search.size > 0 && b->start == f->search.seq
		&& b->end - b->start == f->search.size;
}
// After each ACK that is not an expected one, of which a flow that searches has none.
static inline void flow_search(
	struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	if (unlikely(f->searches))
		mtu_probe_ack(e, f, s, now_ns);
}

// service.c
// Tells the flow's control, if it wants to know, what happened to a segment.
__attribute__((cold)) void service_packet(
	struct flow *f, uint64_t index, enum cc_packet_event event, uint64_t now_ns);
static inline void flow_packet(
	struct flow *f, uint64_t index, enum cc_packet_event event, uint64_t now_ns) {
	if (unlikely(f->packets))
		service_packet(f, index, event, now_ns);
}

// rtx_timer.c
// Starts, extends or stops the timer. To be called after each change of the flow's window, pacer or
// scoreboard.
void flow_arm_rtx(struct endpoint *e, struct flow *f, uint64_t now_ns);
void flow_rtx_timer(struct endpoint *e, struct flow *f, uint64_t now_ns);

// ack.c
bool flow_ack_acceptable(const struct flow *f, const struct seg *seg);
void flow_ack(struct endpoint *e, struct flow *f, const struct seg *seg, uint64_t now_ns);
// Does flow_rx's work for an ACK that only advances una. False: it is another kind of segment;
// nothing was done.
bool flow_ack_expected(struct endpoint *e, struct flow *f, const struct seg *seg, uint64_t now_ns);
void flow_reorder_timer(struct endpoint *e, struct flow *f, uint64_t now_ns); // RACK

// recovery.c
void flow_enter_loss(struct endpoint *e, struct flow *f, uint64_t now_ns); // after a timeout
