// SPDX-License-Identifier: BSD-3-Clause
// What Linux does with an ACK beyond the RFCs, in hosts that are its (those with ticks, `hz`).
#pragma once
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"

// SACKs raise the window too, once a segment has been overtaken by more than three others
// (tcp_may_raise_cwnd).
static inline bool kernel_may_raise(
	const struct endpoint *e, const struct flow *f, const struct delivery *d) {
	return f->reordering > FLOW_DUP_THRESH && d->acked > 0 && flow_group(e, f)->tick_ns > 0;
}

// The RTT that a control gets of an ACK for what was sent again: the timestamp's, in whole
// milliseconds and so up to one too short (tcp_ack_update_rtt). 0: none, as by Karn's rule.
static inline uint64_t kernel_rtt_ns(
	const struct endpoint *e, const struct flow *f, const struct delivery *d) {
	if (flow_group(e, f)->tick_ns == 0 || !d->advanced || d->acked == 0 || d->tsecr == 0)
		return 0;
	return time_max((uint64_t)(flow_tsval(d->now_ns) - d->tsecr) * NS_PER_MS, NS_PER_MS);
}
