// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/wheel.h"

#include "common/base/ns.h"
#include "common/base/rng.h"
#include "test.h"

#include <inttypes.h>
#include <string.h>

#define SLOT_NS (UINT64_C(1) << WHEEL_SLOT_SHIFT)
#define LEVEL1_NS (SLOT_NS * WHEEL_SLOTS)
#define LEVEL2_NS (LEVEL1_NS * WHEEL_SLOTS)
#define EPOCH_NS (LEVEL2_NS * WHEEL_SLOTS)

static struct wheel wheel;

// The oracle: timers in an array, by expiry and then by order of arming.
#define TIMERS_MAX 600

struct entry {
	struct timer timer;
	uint64_t expires_ns;
	bool armed;
};

static struct entry entries[TIMERS_MAX];
static struct entry *sorted[TIMERS_MAX];
static uint32_t sorted_count;

static void setup(uint64_t now_ns) {
	wheel_init(&wheel, now_ns);
	memset(entries, 0, sizeof(entries));
	sorted_count = 0;
}

static void arm(struct entry *e, uint64_t expires_ns) {
	uint32_t at = sorted_count;

	for (; at > 0 && sorted[at - 1]->expires_ns > expires_ns; at--)
		sorted[at] = sorted[at - 1];
	sorted[at] = e;
	sorted_count++;
	e->expires_ns = expires_ns;
	e->armed = true;
	wheel_arm(&wheel, &e->timer, expires_ns);
}

// Pops one from both and compares; NULL when neither has one due.
static struct entry *pop(uint64_t now_ns) {
	bool maybe = wheel_due(&wheel, now_ns);
	struct timer *t = wheel_pop(&wheel, now_ns);
	bool due = sorted_count > 0 && sorted[0]->expires_ns <= now_ns;

	// ck_assert writes to a pipe each time: too slow here.
	if (t != NULL && !maybe)
		ck_abort_msg("wheel_due knows of no timer at %" PRIu64, now_ns);
	if ((t != NULL) != due)
		ck_abort_msg("%s at %" PRIu64, due ? "nothing" : "a timer", now_ns);
	if (!due)
		return NULL;
	struct entry *e = sorted[0];
	if (t != &e->timer || t->expires_ns != e->expires_ns)
		ck_abort_msg("%" PRIu64 " popped, not %" PRIu64, t->expires_ns, e->expires_ns);
	sorted_count--;
	memmove(&sorted[0], &sorted[1], sorted_count * sizeof(struct entry *));
	e->armed = false;
	if (wheel.armed != sorted_count)
		ck_abort_msg("%" PRIu64 " armed, not %" PRIu32, wheel.armed, sorted_count);
	return e;
}

static void cancel(struct entry *e) {
	uint32_t at = 0;

	while (sorted[at] != e)
		at++;
	sorted_count--;
	memmove(&sorted[at], &sorted[at + 1], (sorted_count - at) * sizeof(struct entry *));
	e->armed = false;
	wheel_cancel(&wheel, &e->timer);
}

static void check_next(uint64_t limit_ns) {
	uint64_t first_ns = wheel_first_ns(&wheel);

	if (first_ns != (sorted_count == 0 ? NEVER_NS : sorted[0]->expires_ns))
		ck_abort_msg("first %" PRIu64 " of %u", first_ns, sorted_count);
	uint64_t next_ns = wheel_next_ns(&wheel, limit_ns);

	uint64_t true_ns = sorted_count == 0	    ? NEVER_NS
		: sorted[0]->expires_ns <= limit_ns ? sorted[0]->expires_ns
						    : limit_ns + 1;
	if (next_ns != true_ns)
		ck_abort_msg("next %" PRIu64 ", not %" PRIu64, next_ns, true_ns);
}

static uint64_t below(struct rng *r, uint64_t n) {
	return rng_u64(r) % n;
}

// A distance of any order of magnitude, often on an edge of a slot, a level or the horizon.
static uint64_t any_distance(struct rng *r) {
	static const uint64_t edges[] = {0, 1, SLOT_NS, LEVEL1_NS, LEVEL2_NS, EPOCH_NS};

	switch (below(r, 4)) {
	case 0:
		return edges[below(r, 6)] + below(r, 3);
	case 1:
		return below(r, SLOT_NS) & ~UINT64_C(7); // ties are likely
	default:
		return below(r, UINT64_C(1) << below(r, 42));
	}
}

// `jump` scales how far time moves in a step; 0: not at all, only what is overdue fires.
static void random_run(uint64_t seed, uint32_t steps, uint64_t jump_ns, bool far) {
	struct rng r;
	uint64_t now_ns;

	rng_init(&r, seed, "wheel");
	now_ns = far ? below(&r, 2 * EPOCH_NS) : below(&r, 4 * LEVEL1_NS);
	setup(now_ns);
	for (uint32_t step = 0; step < steps; step++) {
		for (uint64_t n = below(&r, 8); n > 0; n--) {
			struct entry *e = &entries[below(&r, TIMERS_MAX)];
			uint64_t d = any_distance(&r);
			if (!far)
				d %= 3 * LEVEL1_NS;
			if (!e->armed)
				arm(e, below(&r, 16) == 0 ? time_since(now_ns, d) : now_ns + d);
			else if (below(&r, 3) == 0)
				cancel(e);
		}
		if (jump_ns > 0 && below(&r, 2) == 0)
			now_ns += below(&r, 8) == 0 ? any_distance(&r) % (8 * jump_ns)
						    : below(&r, jump_ns);
		if (below(&r, 4) == 0)
			check_next(now_ns + below(&r, 2 * jump_ns + 1));
		for (uint64_t n = below(&r, 40); n > 0; n--) {
			struct entry *e = pop(now_ns);
			if (e == NULL)
				break;
			// Armed while its slot is being served, sometimes into that very slot.
			if (below(&r, 3) == 0)
				arm(e, now_ns + below(&r, below(&r, 2) ? SLOT_NS : LEVEL1_NS));
			else if (below(&r, 8) == 0)
				arm(e, e->expires_ns);
		}
	}
	while (sorted_count > 0) {
		now_ns = time_max(now_ns, sorted[0]->expires_ns);
		ck_assert_ptr_nonnull(pop(now_ns));
	}
	ck_assert_ptr_null(pop(NEVER_NS));
}

TEST(agrees_with_a_sorted_array) {
	static const uint64_t jumps[] = {0, 1, 100, SLOT_NS, 10 * SLOT_NS, LEVEL1_NS, 5 * LEVEL1_NS,
		LEVEL2_NS, 100 * LEVEL2_NS, EPOCH_NS};

	for (uint64_t seed = 0; seed < 20; seed++) {
		for (uint32_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
			random_run(seed, 1000, jumps[i], true);
			random_run(seed, 1000, jumps[i] % LEVEL1_NS, false);
		}
	}
}

TEST(never_early_and_exact_within_a_slot) {
	setup(0);
	arm(&entries[0], 5000 * SLOT_NS + 300);
	arm(&entries[1], 5000 * SLOT_NS + 100);
	arm(&entries[2], 5000 * SLOT_NS + 200);
	ck_assert_ptr_null(pop(5000 * SLOT_NS + 99));
	ck_assert_ptr_eq(pop(5000 * SLOT_NS + 100), &entries[1]);
	ck_assert_ptr_null(pop(5000 * SLOT_NS + 199));
	arm(&entries[3], 5000 * SLOT_NS + 250);
	arm(&entries[1], 5000 * SLOT_NS + 150);
	ck_assert_ptr_eq(pop(5001 * SLOT_NS), &entries[1]);
	ck_assert_ptr_eq(pop(5001 * SLOT_NS), &entries[2]);
	ck_assert_ptr_eq(pop(5001 * SLOT_NS), &entries[3]);
	ck_assert_ptr_eq(pop(5001 * SLOT_NS), &entries[0]);
	ck_assert_ptr_null(pop(5001 * SLOT_NS));
}

// Timers with one expiry, armed when it was two levels, one level and no level away, and late.
TEST(ties_fire_in_the_order_of_arming) {
	uint64_t at_ns = EPOCH_NS + 3 * LEVEL2_NS + 7 * LEVEL1_NS + 9 * SLOT_NS + 5;
	const uint64_t away_ns[] = {EPOCH_NS, 2 * LEVEL2_NS, LEVEL2_NS, 5 * LEVEL1_NS, LEVEL1_NS,
		8 * SLOT_NS, SLOT_NS, 5, 4, 0};
	uint32_t n = 0;

	setup(0);
	for (uint32_t i = 0; i < sizeof(away_ns) / sizeof(away_ns[0]); i++) {
		ck_assert_ptr_null(pop(at_ns - away_ns[i] - 1));
		for (uint32_t k = 0; k < 30; k++)
			arm(&entries[n++], at_ns);
	}
	for (uint32_t i = 0; i < n; i++)
		ck_assert_ptr_eq(pop(at_ns), &entries[i]);
}

TEST(past_fires_next_in_order) {
	setup(1000 * LEVEL1_NS);
	arm(&entries[0], 999 * LEVEL1_NS);
	arm(&entries[1], 0);
	arm(&entries[2], 1000 * LEVEL1_NS);
	arm(&entries[3], 999 * LEVEL1_NS);
	ck_assert_uint_eq(wheel_next_ns(&wheel, 5), 0);
	ck_assert_ptr_eq(pop(1000 * LEVEL1_NS), &entries[1]);
	ck_assert_ptr_eq(pop(1000 * LEVEL1_NS), &entries[0]);
	ck_assert_ptr_eq(pop(1000 * LEVEL1_NS), &entries[3]);
	ck_assert_ptr_eq(pop(1000 * LEVEL1_NS), &entries[2]);
}

TEST(next_reads_ahead_to_its_limit_only) {
	setup(0);
	check_next(NEVER_NS);
	arm(&entries[0], 10 * NS_PER_MS);
	check_next(0);
	check_next(10 * NS_PER_MS - 1);
	check_next(10 * NS_PER_MS);
	check_next(NEVER_NS);
	// What is armed before the slot that was read ahead still comes first.
	arm(&entries[1], 9 * NS_PER_MS);
	arm(&entries[2], 3 * NS_PER_MS);
	check_next(2 * NS_PER_MS);
	check_next(NEVER_NS);
	ck_assert_ptr_null(pop(3 * NS_PER_MS - 1));
	ck_assert_ptr_eq(pop(3 * NS_PER_MS), &entries[2]);
	ck_assert_ptr_eq(pop(10 * NS_PER_MS), &entries[1]);
	ck_assert_ptr_eq(pop(10 * NS_PER_MS), &entries[0]);
	check_next(NEVER_NS);
}

// From each place a timer may be: head, middle, last and only one of `ready`, of a slot, of `far`.
TEST(cancelled_timers_do_not_fire) {
	const uint64_t places_ns[] = {0, SLOT_NS, LEVEL1_NS, LEVEL2_NS, EPOCH_NS};

	for (uint32_t place = 0; place < sizeof(places_ns) / sizeof(places_ns[0]); place++) {
		for (uint32_t without = 0; without < 16; without++) {
			setup(0);
			for (uint32_t i = 0; i < 4; i++)
				arm(&entries[i], places_ns[place] + i / 2);
			for (uint32_t i = 0; i < 4; i++) {
				if (without & 1u << i)
					cancel(&entries[i]);
			}
			arm(&entries[4], places_ns[place] + 1);
			check_next(EPOCH_NS + 2);
			while (pop(EPOCH_NS + 2) != NULL)
				;
			ck_assert_uint_eq(sorted_count, 0);
			check_next(NEVER_NS);
		}
	}
}

TEST(end_of_time_is_a_time) {
	setup(0);
	arm(&entries[0], NEVER_NS);
	arm(&entries[1], NEVER_NS - 1);
	check_next(1000 * EPOCH_NS);
	ck_assert_ptr_null(pop(NEVER_NS - 2));
	ck_assert_ptr_eq(pop(NEVER_NS - 1), &entries[1]);
	ck_assert_ptr_null(pop(NEVER_NS - 1));
	ck_assert_ptr_eq(pop(NEVER_NS), &entries[0]);
}

TEST(peek_shows_each_slot_once_and_moves_nothing) {
	uint64_t cursor = 0;

	setup(0);
	for (uint64_t i = 0; i < 4; i++)
		arm(&entries[i], (2 * i + 1) * SLOT_NS + i); // slots 1, 3, 5, 7
	arm(&entries[4], 3 * SLOT_NS); // behind entries[1] in its list
	arm(&entries[5], LEVEL1_NS); // filed one level up
	ck_assert_ptr_null(wheel_peek(&wheel, &cursor, SLOT_NS - 1));
	ck_assert_ptr_eq(wheel_peek(&wheel, &cursor, 4 * SLOT_NS), &entries[0].timer);
	struct timer *t = wheel_peek(&wheel, &cursor, 4 * SLOT_NS);
	ck_assert_ptr_eq(t, &entries[1].timer);
	ck_assert_ptr_eq(t->next, &entries[4].timer);
	ck_assert_ptr_null(wheel_peek(&wheel, &cursor, 4 * SLOT_NS));
	ck_assert_ptr_null(wheel_peek(&wheel, &cursor, 4 * SLOT_NS));
	// Time passes the third, unseen: what is open is not shown any more.
	for (uint32_t n = 0; n < 4; n++)
		ck_assert_ptr_nonnull(pop(5 * SLOT_NS + 2));
	ck_assert_ptr_null(pop(6 * SLOT_NS));
	ck_assert_ptr_eq(wheel_peek(&wheel, &cursor, 2 * LEVEL1_NS), &entries[3].timer);
	ck_assert_ptr_null(wheel_peek(&wheel, &cursor, 2 * LEVEL1_NS));
	ck_assert_ptr_eq(pop(2 * LEVEL1_NS), &entries[3]);
	ck_assert_ptr_eq(pop(2 * LEVEL1_NS), &entries[5]);
	ck_assert_ptr_null(pop(2 * LEVEL1_NS));
	// The next turn of level 0.
	arm(&entries[0], 2 * LEVEL1_NS + 4 * SLOT_NS);
	ck_assert_ptr_eq(wheel_peek(&wheel, &cursor, 3 * LEVEL1_NS), &entries[0].timer);
	ck_assert_ptr_null(wheel_peek(&wheel, &cursor, 3 * LEVEL1_NS));
}

// What has been taken out is its owner's: he may free it, and the wheel must not look at it again.
// Popping the first of a turn fetches the next turn's list ahead, one timer per pop.
TEST(cancelled_timer_is_not_touched_again) {
	setup(0);
	for (uint32_t i = 0; i < 6; i++)
		arm(&entries[i], LEVEL1_NS + i);
	for (uint32_t i = 6; i < 9; i++)
		arm(&entries[i], 2 * LEVEL1_NS + i);
	ck_assert_ptr_eq(pop(3 * LEVEL1_NS), &entries[0]);
	ck_assert_ptr_nonnull(wheel.ahead);
	struct entry *ahead = (struct entry *)(void *)wheel.ahead;

	ck_assert_ptr_eq(ahead, &entries[7]);
	cancel(ahead);
	memset(ahead, 0xa5, sizeof(*ahead)); // no address: whoever follows it dies
	for (uint32_t i = 1; i < 7; i++)
		ck_assert_ptr_eq(pop(3 * LEVEL1_NS), &entries[i]);
	ck_assert_ptr_eq(pop(3 * LEVEL1_NS), &entries[8]);
	check_next(NEVER_NS);
}
