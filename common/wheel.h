// SPDX-License-Identifier: BSD-3-Clause
// Hierarchical timing wheel with exact order.
//
// Three levels of 1024 slots: 512 ns, 0.52 ms and 0.54 s wide, so the horizon is 550 s; a later
// timer waits in the last slot and is filed again. Timers are handed out by exact expiry, ties in
// the order they were armed, whatever the slot width: a slot is sorted when it is opened.
// Arming is O(1); a timer beyond 0.5 ms is moved once or twice on its way down. There is no
// cancel: the owner keeps its own deadline and ignores, or arms again, a timer that fires early.
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define WHEEL_LEVELS 3
#define WHEEL_SLOTS 1024
#define WHEEL_SLOT_SHIFT 9 // 512 ns

// Intrusive; owned by the wheel from wheel_arm until wheel_pop returns it.
struct timer {
	struct timer *next;
	uint64_t expires_ns;
};

struct wheel_slot {
	struct timer *head;
	struct timer *tail;
};

struct wheel {
	uint64_t now_slot; // level 0 slot that is open
	struct timer *ready; // sorted, from the open slot and before
	uint64_t armed; // timers inside
	uint64_t map[WHEEL_LEVELS][WHEEL_SLOTS / 64]; // which slots are not empty
	struct wheel_slot slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, uint64_t now_ns);
// Files t to fire at expires_ns; a time in the past fires next, in order of its expiry.
void wheel_arm(struct wheel *w, struct timer *t, uint64_t expires_ns);
// The earliest timer with expires_ns <= now_ns, or NULL.
struct timer *wheel_pop(struct wheel *w, uint64_t now_ns);
// Exact expiry of the earliest timer if it is at or before limit_ns, else limit_ns + 1 at most;
// NEVER_NS when the wheel is empty. Never later than the true next expiry.
uint64_t wheel_next_ns(struct wheel *w, uint64_t limit_ns);
