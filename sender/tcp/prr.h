// SPDX-License-Identifier: BSD-3-Clause
// Proportional rate reduction (RFC 9937): how the window of a flow in fast recovery moves to the
// algorithm's.
//
//	prr_delivered  segments delivered since recovery began, prr_out: sent since then
//	prr_flight     outstanding as it began, less what was delivered before (RecoverFS)
//	target         the algorithm's window (ssthresh)
//
//	pipe > target:  send = ceil(prr_delivered target / prr_flight) - prr_out
//	else:           send = min(target - pipe, max(prr_delivered - prr_out, newly delivered) + 1
//	                if `safe`)
//	cwnd = pipe + send
#pragma once
#include "sender/tcp/flow.h"

// An ACK in fast recovery: sets cwnd_segs. `safe`: it advances una and found no further loss, so
// that the repair makes progress. Before that no more is sent than was delivered, or
// retransmissions would keep the queue full that drops them.
static inline void prr_on_ack(struct flow *f, uint32_t newly_delivered, bool safe) {
	uint32_t pipe = flow_inflight(f), target = (uint32_t)f->out.cwnd_segs;
	uint32_t send = 0;

	f->prr_delivered += newly_delivered;
	if (newly_delivered > 0 && pipe > target) {
		uint64_t proportional =
			((uint64_t)f->prr_delivered * target + f->prr_flight - 1) / f->prr_flight;

		send = proportional > f->prr_out ? (uint32_t)proportional - f->prr_out : 0;
	} else if (newly_delivered > 0) {
		uint32_t limit = f->prr_delivered > f->prr_out ? f->prr_delivered - f->prr_out : 0;

		limit = (limit > newly_delivered ? limit : newly_delivered) + safe;
		send = target - pipe < limit ? target - pipe : limit;
	}
	// At least one segment: the fast retransmit or, if all were lost, one that elicits another
	// ACK.
	if (send == 0 && (f->prr_out == 0 || pipe == 0))
		send = 1;
	f->cwnd_segs = pipe + send;
}
