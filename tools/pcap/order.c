// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/order.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/base/ns.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define PLACES (2 * ORDER_PACKETS)
#define BYTES (PLACES * sizeof(struct packet))
static_assert(ORDER_PACKETS > READER_BATCH, "room for a batch beside those that wait");

static inline struct packet *place(const struct order *o, uint32_t i) {
	return &o->ring[i & (PLACES - 1)];
}

int order_init(struct order *o) {
	memset(o, 0, sizeof(*o));
	o->first_ns = NEVER_NS;
	o->ring = mem_map(BYTES);
	return o->ring != NULL ? 0 : -ENOMEM;
}

void order_fini(struct order *o) {
	mem_unmap(o->ring, BYTES);
	o->ring = NULL;
}

static bool near(uint64_t a_ns, uint64_t b_ns) {
	return time_since(a_ns, b_ns) <= ORDER_STEP_NS && time_since(b_ns, a_ns) <= ORDER_STEP_NS;
}

static void change_clock(struct order *o, uint64_t ahead_ns) {
	o->ahead_other_ns = o->ahead_ns;
	o->ahead_ns = ahead_ns;
	o->epoch++;
}

uint64_t order_time(struct order *o, uint64_t stamp_ns) {
	uint64_t now_ns = stamp_ns + o->ahead_ns;

	if (unlikely(o->first_ns == NEVER_NS)) {
		o->first_ns = o->last_ns = now_ns;
		return now_ns;
	}
	bool back = time_since(o->last_ns, now_ns) > ORDER_STEP_NS;
	bool forth = o->epoch > 0 && time_since(now_ns, o->last_ns) > ORDER_STEP_NS;
	if (unlikely(back || forth)) {
		uint64_t other_ns = stamp_ns + o->ahead_other_ns;

		if (back) {
			o->steps++;
			o->step_max_ns = time_max(o->step_max_ns, o->last_ns - now_ns);
		}
		if (o->epoch > 0 && near(other_ns, o->last_ns)) {
			change_clock(o, o->ahead_other_ns);
			now_ns = other_ns;
		} else if (back) {
			change_clock(o, o->last_ns + 1 - stamp_ns); // behind all that came before
			now_ns = o->last_ns + 1;
		}
	}
	o->first_ns = time_min(o->first_ns, now_ns);
	o->last_ns = time_max(o->last_ns, now_ns);
	return now_ns;
}

struct packet *order_room(const struct order *o) {
	return place(o, o->tail);
}

void order_add(struct order *o) {
	struct packet *p = place(o, o->tail);
	uint32_t i = o->tail++;

	p->epoch = o->epoch;
	if (likely(i == o->head || place(o, i - 1)->ts_ns <= p->ts_ns))
		return;
	struct packet late = *p;

	for (; i != o->head && place(o, i - 1)->ts_ns > late.ts_ns; i--)
		*place(o, i) = *place(o, i - 1);
	*place(o, i) = late;
	o->moved++;
}

uint32_t order_take(struct order *o, struct packet *packets, uint32_t max, bool all) {
	uint32_t waiting = o->tail - o->head, n = waiting;

	if (!all)
		n = waiting > ORDER_PACKETS ? waiting - ORDER_PACKETS : 0;
	n = n < max ? n : max;
	for (uint32_t i = 0; i < n; i++)
		packets[i] = *place(o, o->head++);
	return n;
}
