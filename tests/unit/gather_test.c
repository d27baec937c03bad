// SPDX-License-Identifier: BSD-3-Clause
// When packets arrived by the stamps of a card whose ticks are our nanoseconds.
#include "switch/live/lcore.h"

#include "test.h"

#define STAMPED 1
#define OFFSET offsetof(struct rte_mbuf, dynfield1)

static struct switch_lcore lcore;
static struct switch_port out;
static struct path path;
static struct port from;

// A frame that an iteration at now_ns received; tick 0: without a stamp.
static uint64_t arrival(uint64_t tick, uint64_t now_ns) {
	static struct rte_mbuf frame;
	struct rte_mbuf *m = &frame;
	struct pkt pkt, *p = &pkt;

	lcore.lcore.now_ns = now_ns;
	m->ol_flags = tick > 0 ? STAMPED : 0;
	*RTE_MBUF_DYNFIELD(m, OFFSET, rte_mbuf_timestamp_t *) = tick;
	switch_set_arrivals(&lcore, &from, &out, &m, 1, &p);
	return p->arrival_ns;
}

static void reset(uint64_t served_ns, uint64_t behind_ns) {
	from.stamp = (struct stamp){.rx = true,
		.rx_flag = STAMPED,
		.offset = OFFSET,
		.clock = {.known = true, .line.rate = UINT64_C(1) << TICKS_SHIFT}};
	path.stage[0].after_ns = behind_ns;
	out.path = &path;
	out.egress.port = &from;
	lcore.gather.served_ns = served_ns;
	lcore.gather.stepped_ns = 0;
}

TEST(a_stamp_is_neither_before_the_last_one_nor_in_the_future) {
	reset(900, 0);
	ck_assert_uint_eq(arrival(950, 1000), 950);
	ck_assert_uint_eq(arrival(940, 1000), 950);
	ck_assert_uint_eq(arrival(2000, 1000), 1000);
	ck_assert_uint_eq(arrival(0, 1100), 1100);
	ck_assert_uint_eq(arrival(1050, 1100), 1100); // the frame without a stamp was before it
	from.stamp.clock.known = false; // somebody has set the card's clock
	ck_assert_uint_eq(arrival(1, 1200), 1200);
	from.stamp.clock.known = true;
	ck_assert_uint_eq(arrival(1150, 1300), 1200);
}

// A queue has decided by the time up to which it was served: what the card got before, but the
// switch did not, arrives after that. What only a delay has seen is still to be decided.
TEST(a_stamp_is_not_before_what_was_decided) {
	reset(900, 0);
	ck_assert_uint_eq(arrival(850, 1000), 901);
	reset(900, 100);
	ck_assert_uint_eq(arrival(850, 1000), 850);
	lcore.gather.stepped_ns = 870;
	ck_assert_uint_eq(arrival(860, 1000), 871);
	reset(900, 100);
	path.tail_ns = 100; // a card that sends by stamps is given packets before their time
	from.lead_ns = 60;
	from.stamp.tx = true;
	ck_assert_uint_eq(arrival(850, 1000), 861);
	from.lead_ns = 0;
}
