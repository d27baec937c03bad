// SPDX-License-Identifier: BSD-3-Clause
// Public: the interface of congestion controls, those within Weir and plug-ins (`cc: {plugin:
// ./mine.so}`). One file per algorithm, one ops table at its bottom; a plug-in's file ends with
// CC_PLUGIN(ops).
//
// An algorithm is a state machine: from ACKs, losses and timeouts, each with its time, it computes
// a window and a pacing rate. It never reads a clock, allocates, logs or touches a packet, so it
// runs unchanged on DPDK and in virtual time.
//
// Windows are in segments and fractional: at high BDP an integer step truncates v/(delta*cwnd) to
// 0. Rates are payload bits per second.
#pragma once
#include "param.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CC_STATE_MAX_BYTES 256
#define CC_OBSERVED 4
#define CC_MODES 16
#define CC_NOTES 16
// One list of modes, V(constant, name), makes the constants and their names:
//	enum mode { MODES(CC_MODE_CONSTANT) };
//	.modes = {MODES(CC_MODE_TEXT)},
#define CC_MODE_CONSTANT(constant, name) constant,
#define CC_MODE_TEXT(constant, name) [constant] = name,

// The transport's measurements for an ACK.
struct cc_ack {
	uint64_t now_ns;
	uint64_t rtt_ns; // of the newest segment it acknowledged; 0: no valid sample (Karn)
	uint64_t srtt_ns; // RFC 6298, gain 1/8
	uint64_t rtt_min_ns; // smallest RTT of the connection
	uint64_t sent_ns; // transmission time of that newest segment
	uint64_t tick_ns; // of the host's clock, for what Linux counts in ticks; 0: it is exact
	double cwnd_at_send; // window when it was sent, segments
	uint32_t acked_segs; // newly acknowledged, cumulatively or by SACK
	uint32_t passed_segs; // that una passed, also those which SACK had acknowledged before
	uint32_t lost_segs; // newly declared lost
	uint32_t ce_segs; // that arrived with CE; classic_ecn: 0, it is not known
	uint32_t inflight_segs; // pipe after this ACK
	uint32_t prior_inflight_segs; // and before it
	uint64_t delivered_segs; // since the start, after this ACK
	uint64_t prior_delivered_segs; // when the newest acknowledged segment was sent
	// Rate sample (draft-cheng-iccrg-delivery-rate-estimation); 0: none; cc_ops.rate.
	double delivery_bps;
	uint64_t interval_ns; // length of the rate sample; 0: none
	uint64_t next_send_ns; // the next pacing slot; now_ns or earlier: at once
	bool app_limited; // the sample is limited by the application
	bool cwnd_limited; // sending was limited by the window, not by pacing or the application
	bool host_paced; // by the host, whatever the algorithm does: pacing: srtt or fq
	bool in_sequence; // it advances una: only then may a window grow (RFC 5681 3.1)
	bool in_recovery; // fast recovery, after on_loss
	bool in_loss; // recovery by slow start, after on_rto
	// The peer says that there was a mark, not how many: on_loss is all there is.
	bool classic_ecn;
	// The application had limited sending when the last of lost_segs left.
	bool lost_app_limited;
};

// The connection, as it is before the transport acts: for controls that count themselves what
// struct cc_ack has not, such as Linux's (weir/linux).
struct cc_sample {
	uint64_t now_ns;
	uint64_t una_segs,
		nxt_segs; // the first segment not acknowledged in sequence; the next new one
	uint64_t delivered_segs, prior_delivered_segs; // as in cc_ack
	uint64_t lost_segs; // declared lost since the start
	uint64_t rtt_ns; // as in cc_ack; 0: none
	uint64_t srtt_ns, rtt_min_ns;
	uint64_t rto_ns; // the retransmission timeout, not backed off
	double cwnd_segs; // the window in effect: in recovery PRR's, on its way to the control's
	uint32_t passed_segs; // that una passed
	uint32_t ce_segs; // as in cc_ack
	uint32_t sacked_segs; // of una to nxt
	uint32_t inflight_segs; // pipe
	uint32_t peer_tsval, peer_tsecr; // timestamps of the ACK; 0: it has none
	bool ack; // an ACK has arrived; else a timer has expired, or sending begins after a pause
	bool predicted; // it has no SACK block and no other flag, outside of episodes
	bool ece; // it echoes a mark
	bool cwnd_limited, host_paced; // as in cc_ack
	// Since version 4. The one-way delay of the newest segment acknowledged, by the receiver's
	// timestamp: with the difference of the two clocks, which nobody knows, and in steps of the
	// receiver's clock, 1 ms.
	bool one_way; // it is known
	int64_t one_way_ns;
};

// What happened to a segment.
enum cc_packet_event {
	CC_PACKET_SENT, // it has left; retransmissions too
	CC_PACKET_ACKED, // cumulatively or by SACK; before on_ack
	CC_PACKET_LOST, // declared lost; before on_loss, on_rto and on_ack
	// It counts as in flight again: the loss was spurious, and it was not sent again. Before
	// on_spurious.
	CC_PACKET_RESTORED,
};
// Whether it arrived with CE, as far as an ACK tells. A count of marks (AccECN) tells it where none
// or all of what the ACK acknowledges has one, such as one segment. Classic feedback never does.
enum cc_ce { CC_CE_UNKNOWN, CC_CE_NO, CC_CE_YES };
struct cc_packet {
	uint64_t now_ns;
	uint64_t number; // of the segment, from 0
	uint64_t sent_ns; // its last transmission
	// Of the connection when it was sent last.
	uint64_t delivered_segs, lost_segs;
	uint32_t inflight_segs; // itself included
	uint32_t bytes; // payload
	enum cc_packet_event event;
	bool retransmission; // it was sent before
	bool probe; // as a tail loss probe
	bool app_limited; // the application had limited sending when it left
	// Of CC_PACKET_ACKED; since version 5.
	enum cc_ce ce;
};

// A segment of data that has arrived at the receiver.
#define CC_RECEIVER_BYTES 64
struct cc_arrival {
	uint64_t now_ns;
	uint32_t bytes; // payload
	uint32_t now_ts; // the receiver's timestamp now; all of them are in ms
	uint32_t tsval, tsecr; // its own, and the one that it echoes; 0: it has none
	bool late; // there was a hole below, or it came twice: sent again, or overtaken
	bool ce;
};

// What a flow's control has beside its state, from cc_ops.open until cc_ops.release. It does not
// move: a state may hold a pointer to it.
struct cc_flow {
	size_t bytes; // of this structure, which grows at its end
	uint32_t id; // of the flow
	// Of the flows that share memory: how many they are, and which of them it is.
	uint32_t shared_flows, shared_place;
	// To be written by the control: segments that leave at once, in one pacing slot; 0: as the
	// group's `tso` says.
	uint32_t burst_segs;
	uint64_t random; // of cc_random: differs by the run's seed, the flow and its connection
	void *memory; // cc_ops.memory_bytes, zeroed for each connection
	void *shared; // cc_ops.shared_bytes, zeroed when the run begins
	// Calls on_timer once, so long after the present call, 1 us at least; CC_TIMER_OFF: never.
	// It takes the place of what was set before.
	void (*timer)(struct cc_flow *flow, uint64_t after_ns);
	// Writes an event `note` into the run's folder (events.ring), with two numbers.
	// cc_ops.notes[which] is its name.
	void (*note)(struct cc_flow *flow, uint32_t which, double before, double value);
};
#define CC_TIMER_OFF UINT64_MAX
static inline uint64_t cc_random(struct cc_flow *flow) { // splitmix64
	uint64_t x = flow->random += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

struct cc_loss {
	uint64_t now_ns;
	uint32_t inflight_segs; // pipe when the loss was detected, lost segments included
	uint32_t lost_segs; // declared lost so far in this episode
	bool ecn; // an ECN echo, not a loss
	// As in cc_ack: the answer is that of a Classic control (RFC 9331 section 4.3).
	bool classic_ecn;
	bool repeated; // on_rto: the retransmission timed out too; ssthresh stays (RFC 5681 3.1)
	bool requested; // neither: the control has asked for it (CC_REQUEST_REDUCTION)
	bool probe; // the only loss, which a tail loss probe has repaired (RFC 8985 section 7.4.2)
};

// The algorithm's decisions; on a call it holds the last ones.
struct cc_out {
	double cwnd_segs; // never below 1; above 1e9 it is 1e9
	double pacing_bps; // 0: not paced, limited by the window only; else at least 1
};

// What a control may ask the transport for, after on_ack.
enum cc_request {
	// Rate samples of what is in flight are limited by the application, though it is the
	// control that holds back.
	CC_REQUEST_APP_LIMITED = 1,
	// An episode as after an ECN echo: on_loss, then PRR. Nothing happens in another one.
	CC_REQUEST_REDUCTION = 2,
};

// What the receiver must report of the packets marked CE.
enum cc_feedback {
	CC_FEEDBACK_CLASSIC, // that there was one, until CWR (RFC 3168)
	// How many: ECE of each ACK is CE of the packets it acknowledges (RFC 8257); not
	// negotiated.
	CC_FEEDBACK_DCTCP,
	CC_FEEDBACK_ACCECN, // how many: ACKs carry a counter of them (RFC 9768)
};

// The ECN codepoint of a flow's data packets.
enum cc_ecn { CC_ECN_OFF, CC_ECN_ECT0, CC_ECN_ECT1 };

// A set of parameters under one name: the value of the parameter `preset` that stands for it. A
// config's own values for these keys win.
struct cc_preset {
	const char *name;
	const char *const *set; // key, text, key, text ... NULL
};

// All members must be set, except those that may be NULL. New ones are added at the end, so that a
// plug-in compiled before them is loaded as if they were NULL.
struct cc_ops {
	const char *name;
	const char *alias; // what else it is called; NULL: nothing
	const char *summary; // one line, with the paper or RFC
	const char *reference; // the paper's authors and title, or the RFC, for --list; NULL: none
	const struct param *params;
	const char *preset; // the parameter that names one of `presets`; NULL: none
	const struct cc_preset *presets; // ends with a NULL name
	size_t config_size;
	size_t state_size; // <= CC_STATE_MAX_BYTES, zeroed by the caller
	bool prr; // the transport moves towards a reduced window by RFC 9937
	bool rate; // on_ack uses delivery_bps, which is else 0
	// It responds to ECN echoes; else a group may not ask for ECN, unless it allows that.
	bool ecn;
	// on_ack answers a loss after an ECN echo, or the echo itself. Another control's window may
	// fall in on_ack only for reasons of its own, such as the delay.
	bool answers_in_on_ack;
	enum cc_ecn codepoint; // of a group that does not say: for controls that live on marks
	// The receiver's echo it needs; it may get the classic one instead: classic_ecn.
	enum cc_feedback feedback;
	uint64_t burst_ns; // with `tso: linux`, of its rate; 0: the host's
	bool ack_each; // of a group that does not say: receivers acknowledge each segment
	bool any_idle; // on_idle, however short the pause was
	// on_ack uses cwnd_at_send, prior_delivered_segs or interval_ns, which else mean nothing.
	// Of a plug-in: in any case.
	bool samples;
	const char *observed[CC_OBSERVED]; // names of observe()'s numbers; NULL: unused
	const char *modes[CC_MODES]; // names of mode()'s numbers; NULL: without one

	// The larger of the initial and the minimum window, in segments; memory is sized for it.
	// INFINITY: no loss bounds the window, only the peer's.
	double (*given_window)(const void *config);
	// `mss_bytes`: of payload. `rtt_ns`: measured in the handshake; 0: none.
	void (*init)(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
		uint64_t now_ns, struct cc_out *out);
	// Called for each ACK that acknowledged segments or marked some lost, also in recovery.
	void (*on_ack)(
		void *state, const void *config, const struct cc_ack *ack, struct cc_out *out);
	// Once per episode: the first loss or ECN echo of a window (RFC 6582's `recover` rule).
	void (*on_loss)(
		void *state, const void *config, const struct cc_loss *loss, struct cc_out *out);
	// Each retransmission timeout: all outstanding segments count as lost.
	void (*on_rto)(
		void *state, const void *config, const struct cc_loss *loss, struct cc_out *out);
	// The losses reported by on_loss or on_rto since the last undo or the end of the last
	// episode were spurious (RFC 4015, RFC 9438 section 4.9): undoes the reduction; may be
	// NULL.
	void (*on_spurious)(void *state, const void *config, uint64_t now_ns, struct cc_out *out);
	// Sending starts again after at least one RTO of silence (any_idle: or as soon as the
	// application had left nothing in flight); may be NULL.
	void (*on_idle)(void *state, const void *config, uint64_t now_ns, uint64_t idle_ns,
		struct cc_out *out);
	// Internal values for plots: obs0 to obs3 of a `cc` record, zero before the call; may be
	// NULL.
	void (*observe)(const void *state, const void *config, float out[CC_OBSERVED]);
	// For the interval record; a change is an event. NULL: 0.
	uint8_t (*mode)(const void *state, const void *config);
	// The slow start threshold in segments, for `pacing: srtt`; NULL: no slow start of this
	// kind.
	double (*ssthresh)(const void *state, const void *config);

	// Since version 3, of plug-ins only; each may be NULL.
	const char *license; // of the compiled file, for those who pass it on, e.g. "GPL"
	// Once per group, before any init. Groups with other parameters have other static
	// variables, so that what follows from the parameters may be kept there. Returns NULL, or
	// why they are not usable.
	const char *(*configure)(const void *config);
	// Before all that follows from an ACK (on_spurious, on_loss, on_ack), before on_rto,
	// on_idle and what a timer finds to be lost.
	void (*on_sample)(void *state, const void *config, const struct cc_sample *sample);
	// After on_ack: a set of enum cc_request.
	uint32_t (*requests)(void *state, const void *config);
	// The flow has ended; its state is not used any more.
	void (*release)(void *state, const void *config);

	// Since version 4; each may be NULL or 0. All but shared_name, wants and notes need `open`.
	size_t memory_bytes; // of cc_flow.memory: for a state of more than CC_STATE_MAX_BYTES
	// cc_flow.shared is one for the flows of the same place in all groups with this control and
	// the same name: flow 0 of each, flow 1 of each. shared_name must be there, too.
	size_t shared_bytes;
	const char *(*shared_name)(const void *config);
	// Whether this config needs on_sample, requests, open and what follows from that, which
	// cost time; NULL: it does.
	bool (*wants)(const void *config);
	// Before init.
	void (*open)(void *state, const void *config, struct cc_flow *flow);
	void (*on_timer)(void *state, const void *config, uint64_t now_ns, struct cc_out *out);
	void (*on_packet)(void *state, const void *config, const struct cc_packet *packet);
	const char *notes[CC_NOTES]; // names of cc_flow.note's numbers

	// Since version 5; may be NULL. At the receiver, for each segment of data before its ACK:
	// returns the largest window to offer, in bytes, which takes nothing back that was offered.
	// `receiver` are CC_RECEIVER_BYTES, zero when the connection begins. The receiver may be
	// served by another thread than the flow.
	uint64_t (*on_arrival)(
		void *receiver, const void *config, const struct cc_arrival *arrival);
};

// The version of this header, and the oldest that plug-ins may have been compiled for. Both grow
// with a change that a plug-in compiled before it would not survive; such a plug-in is refused.
#define CC_ABI 5
#define CC_ABI_OLDEST 2
#define CC_OPS_BYTES_2 344 // of struct cc_ops in version 2
#define CC_OPS_BYTES_3 384
#define CC_OPS_BYTES_4 568

struct cc_plugin {
	uint32_t abi;
	uint32_t ops_size, ack_size, loss_size, out_size, param_size;
	const struct cc_ops *ops;
};

// What a plug-in exports: CC_PLUGIN(my_ops) at the end of its source.
#ifndef __cplusplus
#define CC_EXPORTED_ __attribute__((visibility("default")))
#else // where a constant is else local to its file, and a name has its type in it
#define CC_EXPORTED_ extern "C" __attribute__((visibility("default")))
extern "C" const struct cc_plugin weir_cc_plugin;
#endif
#define CC_PLUGIN(my_ops)                                                                          \
	CC_EXPORTED_ const struct cc_plugin weir_cc_plugin = {CC_ABI, sizeof(struct cc_ops),       \
		sizeof(struct cc_ack), sizeof(struct cc_loss), sizeof(struct cc_out),              \
		sizeof(struct param), &(my_ops)}

// A change of a size is a change of the version, and what has become longer has its old part as it
// was. With pointers of 32 bits there are no plug-ins.
static_assert(sizeof(void *) < sizeof(uint64_t)
		|| (sizeof(struct cc_ack) == 128 && sizeof(struct cc_loss) == 24
			&& sizeof(struct cc_out) == 16 && sizeof(struct param) == 80
			&& sizeof(struct cc_ops) == 576
			&& offsetof(struct cc_ops, license) == CC_OPS_BYTES_2
			&& offsetof(struct cc_ops, memory_bytes) == CC_OPS_BYTES_3
			&& offsetof(struct cc_ops, on_arrival) == CC_OPS_BYTES_4),
	"raise CC_ABI, and say the new sizes here");
