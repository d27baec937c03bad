// SPDX-License-Identifier: BSD-3-Clause
// A group scan against the flows counted one by one, whatever its steps.
#include "link.h"
#include "sender/host/scan.h"

#define GROUPS                                                                                     \
	"{name: short, count: 7, cc: newreno, stagger: 1ms, source: {size: {bytes: 60000B}}}, "    \
	"{name: long, count: 20, cc: {fixed: {cwnd: 10, rate: 8Mbit}}}, "                          \
	"{name: later, count: 5, cc: copa, start: 10s}"

static void whole(struct group_scan *s, const struct host *h, uint32_t step) {
	uint32_t steps = 1;

	group_scan_begin(s, h);
	while (group_scan_step(s, step))
		steps++;
	ck_assert_uint_eq(steps, (h->flows + step - 1) / step);
}

TEST(counts_what_there_is) {
	struct link *l = LINK(.group = GROUPS, .seed = 3, .loss = 0.02);
	const struct group_scan_sum *g;
	struct group_scan s;
	uint64_t acked = 0, srtt_ns = 0, retransmits = 0;

	link_run(l, 5 * S);
	whole(&s, &l->tx, 4);
	ck_assert_uint_eq(s.group[0].done, 7);
	ck_assert_uint_eq(s.group[0].acked_bytes, 7 * 60000);
	ck_assert_uint_eq(s.group[0].measured, 0);
	g = &s.group[1];
	ck_assert_uint_eq(g->open, 20);
	ck_assert_uint_eq(g->measured, 20);
	ck_assert_double_eq(g->cwnd_segs, 20 * 10);
	ck_assert_double_eq(g->pacing_bps, 20 * 8e6);
	for (uint32_t i = 7; i < 27; i++) {
		acked += l->tx.flow[i].count.acked_bytes;
		retransmits += l->tx.flow[i].count.retransmits;
		srtt_ns += l->tx.flow[i].rtt.srtt_ns;
	}
	ck_assert_uint_gt(retransmits, 0);
	ck_assert_uint_eq(g->acked_bytes, acked);
	ck_assert_uint_eq(g->retransmits, retransmits);
	ck_assert_uint_eq(g->srtt_ns, srtt_ns);
	ck_assert_uint_eq(s.group[2].waiting, 5);
	ck_assert_uint_eq(s.group[2].open + s.group[2].measured + s.group[2].acked_bytes, 0);
}

TEST(steps_of_any_size_find_the_same) {
	struct link *l = LINK(.group = GROUPS, .seed = 4, .loss = 0.05);
	struct group_scan all, some;

	link_run(l, 300 * MS);
	whole(&all, &l->tx, 1000);
	for (uint32_t step = 1; step <= 33; step++) {
		whole(&some, &l->tx, step);
		ck_assert_mem_eq(all.group, some.group, sizeof(all.group));
	}
}

TEST(no_flows_are_seen_at_once) {
	const struct host none = {0};
	struct group_scan s;

	group_scan_begin(&s, &none);
	ck_assert(!group_scan_step(&s, 16));
}

TEST(failed_flows_are_counted) {
	struct link *l = LINK(.group = "{cc: newreno, count: 3, retries: 1, rto_max: 1s}",
		.loss = 1.0, .lose_syn = UINT64_MAX);
	struct group_scan s;

	link_finish(l, 1000 * S);
	whole(&s, &l->tx, 2);
	ck_assert_uint_eq(s.group[0].failed, 3);
	ck_assert_uint_eq(s.group[0].open, 0);
}
