// SPDX-License-Identifier: BSD-3-Clause
// Lateness of the pacer: the pacing slots it misses, and how it makes up for them.
#include "sender/tcp/pacer.h"

#include <math.h>

#define OWED_NS_MAX (200 * NS_PER_MS) // at most this much is made up for: Linux's minimum RTO
#define FQ_UNPACED_SEGS 10

// Skips whole pacing slots and keeps the flow's phase, so that flows delayed by the same stall are
// not synchronised afterwards. The skipped time is added to owed_ns.
uint64_t pacer_miss(struct flow *f, uint64_t due_ns, uint64_t now_ns, double gap_ns) {
	double late_ns = (double)time_since(now_ns, due_ns);
	double gaps = floor(late_ns / gap_ns) - floor((double)PACER_CATCH_UP_NS / gap_ns);
	uint64_t missed_ns = (uint64_t)(gaps * gap_ns);

	f->missed_ns += (int64_t)missed_ns;
	f->owed_ns = time_min(f->owed_ns + missed_ns, OWED_NS_MAX);
	return due_ns + missed_ns;
}

// As in Linux (tcp_update_skb_after_send), lateness shortens the following gaps. Linux shortens one
// gap by half at most and forgets the rest; here each gap is a quarter shorter until owed_ns is 0:
// the rate rises by a third at most, which an lcore that was half busy can handle.
void pacer_make_up(struct flow *f, uint64_t now_ns, uint64_t gap_ns) {
	uint64_t off_ns = time_min(f->owed_ns, gap_ns / 4);

	if (f->next_send_ns <= now_ns + off_ns) // the next one is sent at once
		return;
	f->next_send_ns -= off_ns;
	f->owed_ns -= off_ns;
	f->missed_ns -= (int64_t)off_ns;
}

// A burst that left after its slot makes the next gap shorter.
uint64_t pacer_fq(struct flow *f, double bps, double segs, uint64_t due_ns, uint64_t now_ns) {
	uint64_t late_ns = f->next_send_ns > 0 ? time_since(due_ns, f->next_send_ns) : 0, from_ns;

	if (f->count.sent_segs < FQ_UNPACED_SEGS)
		return due_ns;
	from_ns = pacer_sent(f, bps, segs, due_ns, now_ns);
	if (late_ns > 0)
		f->next_send_ns -= time_min(late_ns, (f->next_send_ns - from_ns) / 2);
	return from_ns;
}
