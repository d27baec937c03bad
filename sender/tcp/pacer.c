// SPDX-License-Identifier: BSD-3-Clause
// A pacer that is late: which of its slots it misses, and how it makes up for them.
#include "sender/tcp/pacer.h"

#include <math.h>

#define OWED_NS_MAX (200 * NS_PER_MS) // what is made up for by and by: Linux's least RTO

// It misses pacing slots, but keeps its step: flows that the same stall held up are not to go in step
// afterwards. The slots it missed are owed to it.
uint64_t pacer_miss(struct flow *f, uint64_t due_ns, uint64_t now_ns, double gap_ns) {
	double late_ns = (double)time_since(now_ns, due_ns);
	double gaps = floor(late_ns / gap_ns) - floor((double)PACER_CATCH_UP_NS / gap_ns);
	uint64_t missed_ns = (uint64_t)(gaps * gap_ns);

	f->missed_ns += (int64_t)missed_ns;
	f->owed_ns = time_min(f->owed_ns + missed_ns, OWED_NS_MAX);
	return due_ns + missed_ns;
}

// Linux's rule for lateness (tcp_update_skb_after_send): it is taken off the gap. Where Linux takes half at
// most and forgets the rest, it is always a quarter here, as often as there is something owed: a flow keeps
// its step, and a lcore that was half busy has time for it.
void pacer_make_up(struct flow *f, uint64_t now_ns, uint64_t gap_ns) {
	uint64_t off_ns = time_min(f->owed_ns, gap_ns / 4);

	if (f->next_send_ns <= now_ns + off_ns) // not in addition to what is sent at once
		return;
	f->next_send_ns -= off_ns;
	f->owed_ns -= off_ns;
	f->missed_ns -= (int64_t)off_ns;
}
