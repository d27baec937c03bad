// SPDX-License-Identifier: BSD-3-Clause
// The pacer: the time at which a flow's next segment may be sent, and how lateness is made up for.
#pragma once
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/flow.h"

#include <math.h>

#define PACER_CATCH_UP_NS NS_PER_MS // a late loop makes up for this much at once
// `pacing: srtt` paces any window as Linux does (tcp_update_pacing_rate): at this many windows per
// srtt, or unacknowledged segments if they are more, so that the pacer is never the limit, not even
// in recovery. Below half of ssthresh, where the window doubles each round trip, the gain is
// PACER_SS_GAIN.
#define PACER_SS_GAIN 2.0
#define PACER_CA_GAIN 1.2

// The rate of tcp_update_pacing_rate, in payload bits per second; 0: the RTT is not known yet.
static inline double pacer_window_bps(const struct group *g, const struct flow *f) {
	double gain = PACER_CA_GAIN, segs;

	if (f->rtt.srtt_ns == 0)
		return 0;
	if (g->cc->ssthresh != NULL
		&& f->cwnd_segs < g->cc->ssthresh(f->cc_state, g->cc_config) / 2)
		gain = PACER_SS_GAIN;
	segs = fmax(f->cwnd_segs, (double)(f->nxt - f->una));
	return gain * segs * f->payload * 8e9 / (double)f->rtt.srtt_ns;
}

// Payload bits per second; 0: not paced.
static inline double pacer_bps(const struct group *g, const struct flow *f) {
	if (g->pacing == PACING_OFF)
		return 0;
	return g->pacing == PACING_CC || f->out.pacing_bps > 0 ? f->out.pacing_bps
							       : pacer_window_bps(g, f);
}

// Whether there is a next segment that waits for its pacing slot or for the port; then the timer is
// armed.
static inline bool pacer_holds(
	struct endpoint *e, struct flow *f, bool retransmit, uint64_t now_ns) {
	if (f->next_send_ns <= now_ns && !e->tx_backpressure)
		return false;
	if (!retransmit && f->nxt > f->data_segs)
		return false;
	if (!f->pace.armed)
		endpoint_arm(e, &f->pace, time_max(f->next_send_ns, now_ns));
	return true;
}

// To be called when the pacer is late by more than PACER_CATCH_UP_NS; returns the time from which
// gaps count now.
uint64_t pacer_miss(struct flow *f, uint64_t due_ns, uint64_t now_ns, double gap_ns);
// Moves the next pacing slot forward by a part of owed_ns.
void pacer_make_up(struct flow *f, uint64_t now_ns, uint64_t gap_ns);

// Data of so many full segments, which was due at due_ns, is sent at now_ns: sets the next pacing
// slot. Returns the time from which its gap counts.
static inline uint64_t pacer_sent(
	struct flow *f, double bps, double segs, uint64_t due_ns, uint64_t now_ns) {
	double gap = segs * f->payload * 8e9 / bps, ahead = gap + f->next_send_frac;
	int64_t whole = (int64_t)ahead; // signed: x86 converts unsigned numbers in five steps

	f->next_send_frac = ahead - (double)whole;
	if (time_since(now_ns, due_ns) > PACER_CATCH_UP_NS)
		due_ns = pacer_miss(f, due_ns, now_ns, gap);
	f->next_send_ns = due_ns + (uint64_t)whole;
	if (f->owed_ns > 0)
		pacer_make_up(f, now_ns, (uint64_t)whole);
	return due_ns;
}

// The same with the rules of `pacing: fq` (bursts.c).
__attribute__((cold)) uint64_t pacer_fq(
	struct flow *f, double bps, double segs, uint64_t due_ns, uint64_t now_ns);
static inline uint64_t pacer_slot(const struct group *g, struct flow *f, double bps, double segs,
	uint64_t due_ns, uint64_t now_ns) {
	return unlikely(g->pacing == PACING_FQ) ? pacer_fq(f, bps, segs, due_ns, now_ns)
						: pacer_sent(f, bps, segs, due_ns, now_ns);
}
