// SPDX-License-Identifier: BSD-3-Clause
// When a flow's next segment may leave: at which rate, and how lateness is made up for.
#pragma once
#include "sender/tcp/flow.h"

#include <math.h>

#define PACER_CATCH_UP_NS NS_PER_MS // a late loop makes up for this much at once
#define PACER_OWED_NS_MAX (200 * NS_PER_MS) // and for this much by and by: Linux's least RTO
// `pacing: srtt` spreads any window as Linux does (tcp_update_pacing_rate): this many windows per srtt,
// so that the pacer is never the limit. Below half of ssthresh the window doubles each round trip.
#define PACER_SS_GAIN 2.0
#define PACER_CA_GAIN 1.2

// Payload bits per second; 0: not paced.
static inline double pacer_bps(const struct group *g, const struct flow *f) {
	double gain = PACER_CA_GAIN;

	if (g->pacing == PACING_CC || f->out.pacing_bps > 0)
		return g->pacing == PACING_OFF ? 0 : f->out.pacing_bps;
	if (g->pacing == PACING_OFF || f->rtt.srtt_ns == 0)
		return 0;
	if (g->cc->ssthresh != NULL && f->cwnd_segs < g->cc->ssthresh(f->cc_state) / 2)
		gain = PACER_SS_GAIN;
	return gain * f->cwnd_segs * f->payload * 8e9 / (double)f->rtt.srtt_ns;
}

// Where a pacer that is late goes on from: from when it was due, unless that is long ago. Then it misses
// turns, but keeps its step: flows that the same stall held up are not to go in step afterwards. The
// turns it missed are owed to it.
static inline uint64_t pacer_from(struct flow *f, uint64_t due_ns, uint64_t now_ns, double gap_ns) {
	uint64_t late_ns = time_since(now_ns, due_ns);

	if (late_ns <= PACER_CATCH_UP_NS)
		return due_ns;
	double gaps = floor((double)late_ns / gap_ns) - floor((double)PACER_CATCH_UP_NS / gap_ns);
	uint64_t missed_ns = (uint64_t)(gaps * gap_ns);
	f->missed_ns += (int64_t)missed_ns;
	f->owed_ns = time_min(f->owed_ns + missed_ns, PACER_OWED_NS_MAX);
	return due_ns + missed_ns;
}

// Makes up for missed turns by Linux's rule for lateness (tcp_update_skb_after_send): it is taken off
// the gap. Where Linux takes half at most and forgets the rest, it is always a quarter here, as often as
// there is something owed: a flow keeps its step, and a lcore that was half busy has time for it.
static inline void pacer_make_up(struct flow *f, uint64_t now_ns, uint64_t gap_ns) {
	uint64_t off_ns = time_min(f->owed_ns, gap_ns / 4);

	if (f->next_send_ns <= now_ns + off_ns) // not in addition to what is sent at once
		return;
	f->next_send_ns -= off_ns;
	f->owed_ns -= off_ns;
	f->missed_ns -= (int64_t)off_ns;
}

// A segment that was due then is sent: when the next one may go. Returns where its gap counts from.
static inline uint64_t pacer_sent(struct flow *f, double bps, uint64_t due_ns, uint64_t now_ns) {
	double gap = f->payload * 8e9 / bps, ahead = gap + f->next_send_frac;
	uint64_t whole = (uint64_t)ahead;

	f->next_send_frac = ahead - (double)whole;
	due_ns = pacer_from(f, due_ns, now_ns, gap);
	f->next_send_ns = due_ns + whole;
	if (f->owed_ns > 0)
		pacer_make_up(f, now_ns, whole);
	return due_ns;
}
