// SPDX-License-Identifier: BSD-3-Clause
// What an lcore has captured, on its way to the control thread.
#pragma once
#include "common/base/likely.h"
#include "common/pcap/pcapng.h"
#include "switch/capture.h"

#include <stdatomic.h>

// What is known of a packet at an interface.
struct capture_record {
	uint64_t ts_ns, id, queue_ns;
	uint64_t lost; // at this interface, since the packet before
	uint32_t flow_id, length, captured;
	uint8_t interface, direction, path;
	uint8_t marked_by, dropped_by; // stages, counted from 1; 0: none
	uint8_t reason;
	bool queued;
};

struct capture_slot {
	struct capture_record record;
	uint8_t bytes[CAPTURE_SNAP];
};

// Single producer, single consumer. A full ring drops the newest and counts it.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): keeps producer and consumer apart
struct capture_ring {
	struct capture_slot *slot;
	uint64_t mask, limit; // limit: the first position that may not be free
	uint64_t lost
		[PCAPNG_INTERFACES_MAX]; // since the last packet of the interface that found room
	_Alignas(64) _Atomic uint64_t head;
	_Alignas(64) _Atomic uint64_t tail;
};

// The next slot of the producer, which makes it visible by moving `head` on. NULL: there is none, and the packet
// is counted as lost.
static inline struct capture_slot *ring_slot(struct capture_ring *r, uint32_t interface) {
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (unlikely(head == r->limit)) {
		r->limit = atomic_load_explicit(&r->tail, memory_order_acquire) + r->mask + 1;
		if (head == r->limit) {
			r->lost[interface]++;
			return NULL;
		}
	}
	return &r->slot[head & r->mask];
}
