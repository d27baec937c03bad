// SPDX-License-Identifier: BSD-3-Clause
// A discipline's operations for bursts, made of those for packets: the link's loops over arrivals and departures
// with the discipline inlined, so that a packet costs no call. They do the same by construction.
//
//	AQM_BURSTS(fifo, fifo_enqueue_all)
//
// makes fifo_enqueue_burst and fifo_dequeue_burst of fifo_enqueue and fifo_dequeue. The second argument may be
// NULL (struct wire_queue in stage/wire.h says what it is).
#pragma once
#include "switch/aqm/aqm.h"
#include "switch/stage/wire.h"

#define AQM_BURSTS(name, all)                                                                      \
	__attribute__((flatten)) static void name##_enqueue_burst(void *self, struct wire *wire,   \
		struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {                     \
		wire_push(wire, (struct wire_queue){self, name##_enqueue, name##_dequeue, all},    \
			pkts, n, drops);                                                           \
	}                                                                                          \
	__attribute__((flatten)) static uint32_t name##_dequeue_burst(void *self,                  \
		struct wire *wire, uint64_t now_ns, struct pkt **pkts, uint32_t max,               \
		struct pkt_list *drops) {                                                          \
		return wire_send(wire,                                                             \
			(struct wire_queue){self, name##_enqueue, name##_dequeue, all}, now_ns,    \
			pkts, max, drops);                                                         \
	}
