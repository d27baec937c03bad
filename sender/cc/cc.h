// SPDX-License-Identifier: BSD-3-Clause
// Congestion control: one file per algorithm, one ops table per file.
//
// An algorithm is a state machine. It is told what happened and when; it answers with a window
// and a pacing rate. It never reads a clock, allocates, logs or touches a packet, so it runs
// unchanged on DPDK and in virtual time.
//
// Windows are in segments and fractional: at high BDP an integer step truncates v/(delta*cwnd) to
// nothing. Rates are payload bits per second.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CC_STATE_MAX_BYTES 192
#define CC_OBSERVED 4

// What an ACK told. All of it is measured by the transport, once.
struct cc_ack {
	uint64_t now_ns;
	uint64_t rtt_ns; // of the newest segment it acknowledged; 0: no valid sample (Karn)
	uint64_t srtt_ns; // RFC 6298, gain 1/8
	uint64_t rtt_min_ns; // smallest RTT of the connection
	uint64_t sent_ns; // when that newest segment was sent
	double cwnd_at_send; // window when it was sent, segments
	uint32_t acked_segs; // newly acknowledged, cumulatively or by SACK
	uint32_t lost_segs; // newly declared lost
	uint32_t ce_segs; // acknowledged by ACKs that echo CE
	uint32_t inflight_segs; // pipe after this ACK
	uint32_t prior_inflight_segs; // and before it
	uint64_t delivered_segs; // since the start, after this ACK
	uint64_t prior_delivered_segs; // when the newest acknowledged segment was sent
	double delivery_bps; // rate sample (draft-cheng-iccrg-delivery-rate-estimation); 0: none; cc_ops.rate
	uint64_t interval_ns; // it was taken over; 0: none
	bool app_limited; // the sample is limited by the application
	bool cwnd_limited; // the window, not pacing or the application, held sending back
	bool in_sequence; // it advances the cumulative ACK: only then may a window grow (RFC 5681 3.1)
	bool in_recovery; // fast recovery: what on_loss told of is being repaired
	bool in_loss; // slow start repairs what on_rto told of
};

struct cc_loss {
	uint64_t now_ns;
	uint32_t inflight_segs; // pipe when it was detected, lost ones included
	uint32_t lost_segs; // declared lost so far in this episode
	bool ecn; // an ECN echo, not a loss
	bool repeated; // on_rto: the retransmission timed out too; ssthresh stays (RFC 5681 3.1)
};

// The algorithm's decisions; it may read what it decided last.
struct cc_out {
	double cwnd_segs; // never below 1
	double pacing_bps; // 0: not paced, the window alone decides
};

// All of it must be there but what may be NULL.
struct cc_ops {
	const char *name;
	const char *summary; // one line, with the paper or RFC
	const struct param *params;
	size_t config_size;
	size_t state_size; // <= CC_STATE_MAX_BYTES, zeroed by the caller
	bool prr; // the transport moves towards a reduced window by RFC 9937
	bool rate; // on_ack wants delivery_bps; else it may be 0
	bool ecn; // it answers ECN echoes; else a flow must not say that it does
	const char *observed[CC_OBSERVED]; // names of observe()'s numbers; NULL: unused

	// The largest window it starts with or never goes below, in segments: memory is sized for it.
	double (*given_window)(const void *config);
	// `rtt_ns`: of the handshake; 0: none was measured.
	void (*init)(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
		uint64_t now_ns, struct cc_out *out);
	// After every ACK that acknowledged or lost something, recovery included.
	void (*on_ack)(
		void *state, const void *config, const struct cc_ack *ack, struct cc_out *out);
	// Once per episode: the first loss or ECN echo of a window (RFC 6582's `recover` rule).
	void (*on_loss)(
		void *state, const void *config, const struct cc_loss *loss, struct cc_out *out);
	// Each retransmission timeout: all outstanding segments are taken for lost.
	void (*on_rto)(
		void *state, const void *config, const struct cc_loss *loss, struct cc_out *out);
	// What on_loss or on_rto was called for since the last undo or the last end of an episode was not
	// lost after all, only late (RFC 4015, RFC 9438 section 4.9): takes the reduction back; may be NULL.
	void (*on_spurious)(void *state, const void *config, uint64_t now_ns, struct cc_out *out);
	// Sending starts again after at least one RTO of silence; may be NULL.
	void (*on_idle)(void *state, const void *config, uint64_t now_ns, uint64_t idle_ns,
		struct cc_out *out);
	// The numbers worth plotting: obs0 to obs3 of a `cc` record, zero at first; may be NULL.
	void (*observe)(const void *state, const void *config, float out[CC_OBSERVED]);
	uint8_t (*mode)(const void *state); // a small number for the interval record; NULL: 0
	// The slow start threshold in segments, for `pacing: srtt`; NULL: no slow start of this kind.
	double (*ssthresh)(const void *state);
};

extern const struct cc_ops *const cc_all[]; // ends with NULL
const struct cc_ops *cc_find(const char *name);
