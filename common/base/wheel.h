// SPDX-License-Identifier: BSD-3-Clause
// Hierarchical timing wheel with exact order.
//
// Three levels of 1024 slots: 2.05 us, 2.1 ms and 2.1 s wide, 2200 s in all; a timer beyond the
// present 2200 s waits on a separate list. Timers expire in exact order, ties in the order of
// arming, because a slot is sorted when it is opened. Arming is O(1); a timer beyond the present
// 2.1 ms is moved once or twice on its way down. Cancelling is O(1) too, but for a deadline that
// only moves later it is cheaper to keep the deadline with the owner and to arm again when the
// timer fires early.
//
// Time moves forward with wheel_pop (to now_ns) and wheel_next_ns (to limit_ns at most). Arming
// before the wheel's time is correct but searches the open slot, so pass wheel_next_ns the time of
// the next other event as limit, not infinity.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WHEEL_LEVELS 3
#define WHEEL_SLOT_BITS 10
#define WHEEL_SLOTS (1 << WHEEL_SLOT_BITS)
#define WHEEL_SLOT_SHIFT 11 // 2.05 us

// Intrusive; owned by the wheel from wheel_arm until wheel_pop or wheel_cancel returns it.
struct timer {
	struct timer *next;
	_Alignas(uint64_t) // also with pointers of 32 bits, as struct pkt has it
		struct timer **link; // the pointer to this timer, while it is filed in a slot
	uint64_t expires_ns;
};

// A list in the order of arming; tail points to where the next one goes.
struct wheel_slot {
	struct timer *head;
	struct timer **tail;
};

// Contains pointers into itself: not to be moved after wheel_init. All fields are private.
struct wheel {
	uint64_t now_slot; // level 0 slot that is open, counted from time 0
	uint64_t next_slot; // the next filed slot, of any level, begins here or later
	uint64_t due_ns; // no timer is due before
	struct timer *ready; // sorted, from the open slot and before
	struct timer *ready_last;
	struct timer *ahead; // the next timer to be prefetched; NULL: none
	uint64_t armed; // timers inside
	uint64_t summary[WHEEL_LEVELS]; // which words of map are not 0
	uint64_t map[WHEEL_LEVELS][WHEEL_SLOTS / 64]; // which slots are not empty
	struct wheel_slot slot[WHEEL_LEVELS][WHEEL_SLOTS];
	struct wheel_slot far;
};

void wheel_init(struct wheel *w, uint64_t now_ns);
// Files t to fire at expires_ns; a time in the past fires next, in order of its expiry.
void wheel_arm(struct wheel *w, struct timer *t, uint64_t expires_ns);
// Removes an armed timer.
void wheel_cancel(struct wheel *w, struct timer *t);
// Whether a timer may have expires_ns <= now_ns. False: wheel_pop would return NULL.
static inline bool wheel_due(const struct wheel *w, uint64_t now_ns) {
	return w->due_ns <= now_ns;
}
// The earliest timer with expires_ns <= now_ns, or NULL.
struct timer *wheel_pop(struct wheel *w, uint64_t now_ns);
// Exact expiry of the earliest timer if it is at or before limit_ns, else limit_ns + 1; NEVER_NS
// when the wheel is empty.
uint64_t wheel_next_ns(struct wheel *w, uint64_t limit_ns);
// Exact expiry of the earliest timer; NEVER_NS: there is none. Does not move time, so it looks
// through a whole slot if none is open: for wheels with few timers per slot.
uint64_t wheel_first_ns(const struct wheel *w);
// No slot before this time holds a timer, except the open one.
static inline uint64_t wheel_slot_ns(const struct wheel *w) {
	return w->next_slot << WHEEL_SLOT_SHIFT;
}
// For prefetching: the timers, which stay armed, of the next filed slot after the open one that
// begins by until_ns.
// NULL: there is none, or it is not yet filed at level 0. *cursor belongs to the caller and is 0 at
// first: each slot is returned once.
struct timer *wheel_peek(const struct wheel *w, uint64_t *cursor, uint64_t until_ns);
