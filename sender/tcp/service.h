// SPDX-License-Identifier: BSD-3-Clause
// What a control has beside its state (cc_ops.open): a timer, memory, random numbers, notes, and
// what happens to each segment. A flow whose control asks for none of it has none, and pays
// nothing.
#pragma once
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/flow.h"

#include <stdalign.h>

struct flow_service {
	struct cc_flow flow; // the control's
	struct host_timer timer;
	struct endpoint *endpoint;
	uint64_t now_ns; // of the present call
	struct seg_ring packets; // what on_packet reports of segments in flight
	bool probing; // what is sent now is a tail loss probe
	// Segments that the present ACK acknowledges, until it is known which of them have a mark.
	uint32_t acked;
	uint64_t acked_first, acked_last;
	alignas(max_align_t) char memory[]; // cc_ops.memory_bytes
};

// Bytes of a flow's service with this control; of the memory that flows share; 0: none.
size_t service_bytes(const struct group *g);
size_t service_shared_bytes(const struct groups *gs);
// Before the control's init.
void service_open(struct endpoint *e, struct flow *f, uint64_t now_ns);
void service_close(struct endpoint *e, struct flow *f);
// Reports to on_packet what the ACK has acknowledged.
void service_acked(struct flow *f, enum cc_ce ce, uint64_t now_ns);
void service_timer(struct endpoint *e, struct host_timer *t, uint64_t now_ns);
