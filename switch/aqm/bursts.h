// SPDX-License-Identifier: BSD-3-Clause
// Generates a discipline's operations for bursts from those for packets: the link's loops over
// arrivals and departures with the discipline inlined, so that a packet costs no call. The results
// are the same.
//
//	static struct serialiser_queue fifo_queue(void *self) {...}
//	AQM_BURSTS(fifo)
//
// makes fifo_enqueue_burst and fifo_dequeue_burst from the functions in struct serialiser_queue
// (serialiser/serialiser.h).
#pragma once
#include "switch/aqm.h"
#include "switch/serialiser/serialiser.h"

#define AQM_BURSTS(name)                                                                           \
	__attribute__((flatten)) static void name##_enqueue_burst(void *self,                      \
		struct serialiser *serialiser, struct pkt *const *pkts, uint32_t n,                \
		struct pkt_list *drops) {                                                          \
		serialiser_push(serialiser, name##_queue(self), pkts, n, drops);                   \
	}                                                                                          \
	__attribute__((flatten)) static uint32_t name##_dequeue_burst(void *self,                  \
		struct serialiser *serialiser, uint64_t now_ns, struct pkt **pkts, uint32_t max,   \
		struct pkt_list *drops) {                                                          \
		return serialiser_send(serialiser, name##_queue(self), now_ns, pkts, max, drops);  \
	}
