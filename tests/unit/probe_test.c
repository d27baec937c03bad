// SPDX-License-Identifier: BSD-3-Clause
// The estimate of source/probe.c by hand (Copa, NSDI 2018, appendix), and the probes of flows on a
// path of 10 ms each way.
#include "link.h"
#include "sender/source/probe.h"
#include "sender/workload/workload.h"

#include <math.h>

#define NEAR(got, want) ck_assert_double_eq_tol(got, want, 1e-9 * (want))

static const struct probe_config COPA = {.delta = 0.5, .size_bytes = 1448000};

static void add_all(struct probe *p, const uint64_t *rtt_ms, uint32_t n, uint64_t gap_ns) {
	uint64_t min_ns = NEVER_NS;

	for (uint32_t i = 0; i < n; i++) {
		min_ns = min_u64(min_ns, rtt_ms[i] * MS);
		probe_add(p, rtt_ms[i] * MS, 20 * MS, min_ns, S + i * gap_ns);
	}
}

// A window of srtt/2 = 10 ms holds a probe and, with 10 ms between them, the one before.
TEST(standing_rtt_is_the_smallest_of_half_an_srtt) {
	static const uint64_t rtt_ms[] = {24, 20, 26, 25, 28, 21};
	static const uint64_t near_ms[] = {24, 20, 20, 25, 25, 21},
			      mid_ms[] = {24, 20, 20, 20, 25, 21};
	struct probe p = {0}, q = {0};

	add_all(&p, rtt_ms, 6, 10 * MS);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(p.sample[i].standing_ns, near_ms[i] * MS);
	add_all(&q, rtt_ms, 6, 5 * MS); // two before it
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(q.sample[i].standing_ns, mid_ms[i] * MS);
}

// The median of {20, 20, 21, 24, 25, 25} ms is 22.5 ms, of five of them 21 ms: dq = 2.5 and 1 ms.
// lambda = 1 / (0.5 dq) = 800 and 2000 segments of 1448 bytes per second; 1000 of them take 1.25
// and 0.5 s.
TEST(the_estimate_by_hand) {
	static const uint64_t even[] = {24, 20, 26, 25, 28, 21}, odd[] = {21, 20, 25, 24, 25};
	struct probe p = {0}, q = {0};
	struct probe_estimate e;

	add_all(&p, even, 6, 10 * MS);
	probe_delays(&COPA, &p, &e);
	probe_rate(&COPA, 1448, &e);
	NEAR(e.rtt_min_ns, 20e6);
	NEAR(e.dq_ns, 2.5e6);
	NEAR(e.rate_bps, 800 * 1448 * 8);
	NEAR(e.completion_ns, 2 * 22.5e6 + 1.25e9);
	add_all(&q, odd, 5, 11 * MS); // each alone in its window
	probe_delays(&COPA, &q, &e);
	NEAR(e.dq_ns, 4e6); // 24 ms
	q.sample[3].standing_ns = 20 * MS;
	probe_delays(&COPA, &q, &e);
	probe_rate(&COPA, 1448, &e);
	NEAR(e.dq_ns, 1e6);
	NEAR(e.rate_bps, 2000 * 1448 * 8);
	NEAR(e.completion_ns, 2 * 21e6 + 0.5e9);
}

TEST(a_known_rtt_min_wins) {
	static const uint64_t rtt_ms[] = {24, 24, 24};
	struct probe_config known = COPA;
	struct probe p = {0};
	struct probe_estimate e;

	add_all(&p, rtt_ms, 3, 10 * MS);
	probe_delays(&COPA, &p, &e);
	probe_rate(&COPA, 1448, &e);
	ck_assert_double_eq(e.dq_ns, 0);
	ck_assert(isinf(e.rate_bps));
	NEAR(e.completion_ns, 48e6);
	known.rtt_min_ns = 20 * MS;
	probe_delays(&known, &p, &e);
	NEAR(e.dq_ns, 4e6);
	known.rtt_min_ns = 30 * MS; // larger than what was measured
	probe_delays(&known, &p, &e);
	ck_assert_double_eq(e.dq_ns, 0);
}

TEST(no_more_probes_than_there_is_room_for) {
	struct probe p = {0};

	for (uint32_t i = 0; i < 2 * PROBE_MAX; i++)
		probe_add(&p, (i < PROBE_MAX ? 30 : 20) * MS, 20 * MS, 20 * MS, i * MS);
	ck_assert_uint_eq(p.count, PROBE_MAX);
	ck_assert_uint_eq(p.sample[PROBE_MAX - 1].rtt_ns, 30 * MS);
}

static const struct workload_count *counted(const struct link *l) {
	return l->tx.workloads->group[0];
}

// Probes begin when the connection is open, one byte each, and each is answered at once although
// two are acknowledged together otherwise.
TEST(probes_of_flows) {
	struct link *l = LINK(.group = "{cc: fixed, count: 3, ack_every: 2, source: {probe: "
				       "{count: 5, interval: 4ms}}}");

	l->oracle = false;
	link_run(l, S);
	ck_assert_uint_eq(counted(l)->probes, 3);
	ck_assert_uint_eq(counted(l)->finished, 15);
	ck_assert_uint_eq(l->tx.done, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct probe *p = &counted(l)->probe[i];

		ck_assert_uint_eq(p->count, 5);
		ck_assert_uint_eq(p->rtt_min_ns, 20 * MS);
		for (uint32_t k = 0; k < 5; k++) {
			ck_assert_uint_eq(p->sample[k].rtt_ns, 20 * MS);
			ck_assert_uint_eq(p->sample[k].now_ns, (40 + 4 * k) * MS);
		}
		ck_assert_uint_eq(l->rx.receiver[i].rcv_nxt, 5);
	}
	for (uint64_t i = 0; i < l->data_count; i++)
		ck_assert_uint_le(l->data[i].seg.len, 1);
}

// A probe that was sent twice has no valid RTT (Karn); the others have theirs.
TEST(lost_probes_do_not_count) {
	struct link *l = LINK(.group = "{cc: fixed, source: {probe: {count: 8, interval: 30ms}}}",
		.lose = 1 << 2 | 1 << 6);

	l->oracle = false;
	link_run(l, 5 * S);
	ck_assert_uint_eq(counted(l)->finished, 8);
	ck_assert_uint_ge(counted(l)->probe[0].count, 5);
	ck_assert_uint_le(counted(l)->probe[0].count, 6);
	for (uint32_t k = 0; k < counted(l)->probe[0].count; k++)
		ck_assert_uint_eq(counted(l)->probe[0].sample[k].rtt_ns, 20 * MS);
}
