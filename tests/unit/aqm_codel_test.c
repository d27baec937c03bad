// SPDX-License-Identifier: BSD-3-Clause
// CoDel's rules one by one, at exact nanoseconds; codel_vectors_test.c has its law and ns-3's
// scenarios.
#include "switch_test.h"

#include <math.h>

#define TICK 1024ull // ns of the Linux law

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 100 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
};

// A queue that never gets short and whose packets have always waited long enough: dequeue every
// step_ns from 10 s on, and put each packet back. Writes when the n-th drop came.
static void overload(const char *params, uint64_t step_ns, uint64_t *drop_ns, uint32_t drops) {
	struct pkt *pkts = pkts_new(8, 1000);
	struct aqm_bench b;
	uint32_t seen = 0;

	ck_assert_msg(aqm_open(&b, "codel", params, &env) == 0, "%s", b.err.msg);
	for (int i = 0; i < 8; i++)
		b.ops->enqueue(b.q, &pkts[i], 0, &b.drops);
	for (uint64_t t = 10000 * MS / step_ns * step_ns; seen < drops; t += step_ns) {
		struct pkt *p = b.ops->dequeue(b.q, t, &b.drops);

		NEED(p != NULL && t < 60000 * MS);
		b.ops->enqueue(b.q, p, 0, &b.drops);
		while ((p = pkt_list_pop(&b.drops)) != NULL) {
			NEED(p->drop_reason == DROP_AQM);
			if (seen < drops)
				drop_ns[seen++] = t;
			b.ops->enqueue(b.q, p, 0, &b.drops);
		}
	}
	aqm_close(&b);
	test_close(pkts);
}

// Linux drops after first_above, not at it.
TEST(the_first_drop) {
	uint64_t start = 10000 * MS / TICK * TICK, drop_ns;

	overload("{limit: 100pkt}", US, &drop_ns, 1);
	ck_assert_uint_eq(drop_ns, 10100 * MS); // above since 10 s
	overload("{limit: 100pkt, law: linux}", TICK, &drop_ns, 1);
	ck_assert_uint_eq((drop_ns - start) / TICK, 97656 + 1);
}

// The 16-bit Newton step is within 1 % of 1/sqrt(count) from the tenth drop on.
TEST(linux_law_approaches_the_square_root) {
	static uint64_t drop_ns[3001];

	overload("{limit: 100pkt, law: linux}", TICK, drop_ns, 3001);
	for (uint32_t n = 10; n <= 3000; n++) {
		double ticks = (double)(drop_ns[n] - drop_ns[n - 1]) / (double)TICK;

		ck_assert_double_eq_tol(ticks * sqrt(n) / 97656.0, 1.0, 0.012);
	}
}

// 20 packets at once, taken at 2 target, then 2 interval later, again, and at twice that time.
static void four_dequeues(
	const char *params, uint32_t left[4], uint32_t drops[4], uint32_t marks[4], uint8_t ecn) {
	static const uint64_t at_ns[4] = {10 * MS, 210 * MS, 210 * MS, 420 * MS};
	struct pkt *pkts = pkts_new(20, 1000);
	struct aqm_bench b;
	uint32_t marked = 0;

	ck_assert_msg(aqm_open(&b, "codel", params, &env) == 0, "%s", b.err.msg);
	for (int i = 0; i < 20; i++) {
		pkts[i].ecn = ecn;
		aqm_put(&b, &pkts[i], 0);
	}
	for (int i = 0; i < 4; i++) {
		struct pkt *p = aqm_take(&b, at_ns[i]);

		marked += (p->flags & PKT_MARKED) != 0;
		ck_assert((p->ecn == ECN_CE) == ((p->flags & PKT_MARKED) != 0));
		left[i] = (uint32_t)b.ops->backlog(b.q).pkts;
		drops[i] = b.drops.count;
		marks[i] = marked;
	}
	aqm_close(&b);
	test_close(pkts);
}

TEST(mark_scenario_marks_once_per_dequeue) {
	static const char *const laws[] = {
		"{limit: 100pkt, ecn: yes}", "{limit: 100pkt, ecn: yes, law: linux}"};
	uint32_t left[4], drops[4], marks[4];

	for (int i = 0; i < 2; i++) {
		four_dequeues(laws[i], left, drops, marks, ECN_ECT0);
		ck_assert_uint_eq(drops[3], 0);
		ck_assert_uint_eq(left[3], 16); // each dequeue takes exactly one
		ck_assert_uint_eq(marks[0], 0);
		ck_assert_uint_eq(marks[1], 1);
		ck_assert_uint_eq(marks[2], 1);
		ck_assert_uint_eq(marks[3], 2); // though two drop times have passed
	}
	// Not ECN capable: dropped as before. ECN off: ECN capable packets are dropped too.
	four_dequeues(laws[0], left, drops, marks, ECN_NOT_ECT);
	ck_assert_uint_eq(drops[3], 3);
	ck_assert_uint_eq(marks[3], 0);
	four_dequeues("{limit: 100pkt}", left, drops, marks, ECN_ECT1);
	ck_assert_uint_eq(drops[3], 3);
	ck_assert_uint_eq(marks[3], 0);
}

TEST(packets_that_carry_ce_count_as_marked_by_others) {
	struct pkt *pkts = pkts_new(4, 1000);
	struct aqm_bench b;

	ck_assert_int_eq(
		aqm_open(&b, "codel", "{limit: 10pkt, ecn: yes, ce_threshold: 2ms}", &env), 0);
	pkts[0].ecn = pkts[1].ecn = ECN_CE;
	for (int i = 0; i < 2; i++)
		aqm_put(&b, &pkts[i], 0);
	ck_assert_ptr_eq(aqm_take(&b, 3 * MS), &pkts[0]);
	ck_assert_uint_eq(pkts[0].flags & PKT_MARKED, 0);
	ck_assert_uint_eq(pkts[0].ecn, ECN_CE);
}

TEST(ce_threshold_marks_whatever_the_law_does) {
	struct pkt *pkts = pkts_new(4, 1000);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 10pkt, ce_threshold: 2ms}", &env), 0);
	for (int i = 0; i < 4; i++) {
		pkts[i].ecn = i == 2 ? ECN_NOT_ECT : ECN_ECT1;
		aqm_put(&b, &pkts[i], 0);
	}
	ck_assert_uint_eq(aqm_take(&b, 2 * MS)->ecn, ECN_ECT1); // not above it
	ck_assert_uint_eq(aqm_take(&b, 2 * MS + 1)->ecn, ECN_CE);
	ck_assert_uint_eq(aqm_take(&b, 2 * MS + 1)->ecn, ECN_NOT_ECT);
	ck_assert_uint_eq(aqm_take(&b, 3 * MS)->flags & PKT_MARKED, PKT_MARKED);
	ck_assert_uint_eq(b.drops.count, 0);
}

TEST(an_empty_queue_ends_dropping) {
	struct pkt *pkts = pkts_new(10, 1518);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt}", &env), 0);
	for (int i = 0; i < 5; i++)
		aqm_put(&b, &pkts[i], 0);
	aqm_take(&b, 50 * MS); // above since 50 ms
	aqm_take(&b, 150 * MS); // enters: drops one, delivers one
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_double_eq(aqm_observed(&b, 0), 1.0);
	ck_assert_ptr_nonnull(aqm_take(&b, 150 * MS)); // one is left
	ck_assert_ptr_nonnull(aqm_take(&b, 10000 * MS)); // the last is never dropped
	ck_assert_double_eq(aqm_observed(&b, 0), 0.0);
	ck_assert_ptr_null(aqm_take(&b, 10000 * MS));
	// A burst long after: above must last a whole interval again.
	for (int i = 5; i < 10; i++)
		aqm_put(&b, &pkts[i], 20000 * MS);
	ck_assert_ptr_nonnull(aqm_take(&b, 20050 * MS));
	ck_assert_ptr_nonnull(aqm_take(&b, 20149 * MS));
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_ptr_nonnull(aqm_take(&b, 20150 * MS));
	ck_assert_uint_eq(b.drops.count, 2);
}

// Up to one MTU may stand in the queue for ever.
TEST(the_last_mtu_is_never_dropped) {
	static const char *const laws[] = {"{limit: 10pkt}", "{limit: 10pkt, law: linux}"};

	for (int k = 0; k < 2; k++) {
		struct pkt *pkts = pkts_new(1000, 759);
		struct aqm_bench b;

		ck_assert_int_eq(aqm_open(&b, "codel", laws[k], &env), 0);
		aqm_put(&b, &pkts[0], 0);
		aqm_put(&b, &pkts[1], 0);
		for (uint64_t i = 2; i < 1000; i++) {
			aqm_put(&b, &pkts[i], i * 10 * MS);
			// 759 + 759 = MTU are left behind.
			ck_assert_ptr_nonnull(aqm_take(&b, i * 10 * MS + 9 * MS));
		}
		ck_assert_uint_eq(b.drops.count, 0);
		aqm_close(&b);
		test_close(pkts);
	}
}

// A dequeue every second with drop times every few microseconds.
TEST(one_dequeue_drops_a_bounded_number) {
	struct pkt *pkts = pkts_new(2000, 1000);
	struct aqm_bench b;

	ck_assert_int_eq(
		aqm_open(&b, "codel", "{limit: 3000pkt, target: 1us, interval: 10us}", &env), 0);
	for (int i = 0; i < 2000; i++)
		aqm_put(&b, &pkts[i], 0);
	aqm_take(&b, 1000 * MS);
	aqm_take(&b, 2000 * MS);
	ck_assert_uint_eq(b.drops.count, 1);
	aqm_take(&b, 3000 * MS);
	ck_assert_uint_eq(b.drops.count, 1 + 256);
	aqm_take(&b, 3000 * MS); // resumed from now: nothing is due
	ck_assert_uint_eq(b.drops.count, 1 + 256);
}

// Dropping again less than 16 intervals after drop_next goes on at about the old rate.
TEST(count_resumes_within_sixteen_intervals) {
	static const struct {
		uint64_t gap_ns; // from leaving the state to entering it again
		double count;
	} cases[] = {{200 * MS, 8}, {1500 * MS, 8}, {1700 * MS, 1}, {9000 * MS, 1}};

	for (int k = 0; k < 4; k++) {
		struct pkt *pkts = pkts_new(2000, 1000);
		struct aqm_bench b;
		uint64_t t = 1000 * MS;
		uint32_t n = 0;

		ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt}", &env), 0);
		for (; n < 90; n++)
			aqm_put(&b, &pkts[n], 0);
		for (; b.drops.count < 9; t += MS) {
			ck_assert_ptr_nonnull(aqm_take(&b, t));
			aqm_put(&b, &pkts[n++], 0);
		}
		ck_assert_double_eq(aqm_observed(&b, 0), 9.0); // count; 1 when it was entered
		// All that is inside at one instant: the last MTU ends the state.
		while (b.ops->backlog(b.q).pkts > 0)
			ck_assert_ptr_nonnull(aqm_take(&b, t));
		ck_assert_uint_eq(b.drops.count, 9);
		ck_assert_double_eq(aqm_observed(&b, 0), 0.0);
		for (int i = 0; i < 5; i++)
			aqm_put(&b, &pkts[n++], t);
		aqm_take(&b, t + cases[k].gap_ns - 100 * MS);
		aqm_take(&b, t + cases[k].gap_ns);
		ck_assert_uint_eq(b.drops.count, 10);
		ck_assert_double_eq(aqm_observed(&b, 0), cases[k].count);
		aqm_close(&b);
		test_close(pkts);
	}
}

// Packets dropped for the limit do not change when CoDel drops (RFC 8289, section 5.4).
TEST(limit_drops_do_not_touch_the_law) {
	static const char *const laws[] = {"{limit: 40pkt}", "{limit: 40pkt, law: linux}"};

	for (int k = 0; k < 2; k++) {
		struct pkt *pkts[2] = {pkts_new(5000, 1000), pkts_new(5000, 1000)};
		struct pkt *extra = pkts_new(5000, 1000);
		struct aqm_bench b[2];
		uint32_t n = 0;

		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(aqm_open(&b[i], "codel", laws[k], &env), 0);
		for (uint64_t t = 0; t < 2000 * MS; t += MS) {
			struct pkt *got[2];
			bool fill = b[0].ops->backlog(b[0].q).pkts < 40;

			for (int i = 0; i < 2 && fill; i++)
				aqm_put(&b[i], &pkts[i][n], t);
			n += fill;
			// The second queue is also offered what does not fit.
			if (b[1].ops->backlog(b[1].q).pkts == 40) {
				aqm_put(&b[1], &extra[t / MS], t);
				ck_assert_uint_eq(extra[t / MS].drop_reason, DROP_QUEUE_FULL);
			}
			if (t % (2 * MS) != 0)
				continue;
			for (int i = 0; i < 2; i++)
				got[i] = aqm_take(&b[i], t);
			NEED(got[0]->id == got[1]->id);
		}
		uint32_t aqm[2] = {0};
		for (int i = 0; i < 2; i++) {
			for (struct pkt *p; (p = pkt_list_pop(&b[i].drops)) != NULL;)
				aqm[i] += p->drop_reason == DROP_AQM;
			aqm_close(&b[i]);
		}
		ck_assert_uint_gt(aqm[0], 10);
		ck_assert_uint_eq(aqm[0], aqm[1]);
		test_close(pkts[0]);
		test_close(pkts[1]);
		test_close(extra);
	}
}

// The Linux law's clock wraps every 4398 s: a run of one overload across the wrap.
TEST(linux_clock_wraps) {
	struct pkt *pkts = pkts_new(64, 1000);
	uint64_t wrap_ns = TICK << 32;
	struct aqm_bench b;
	uint64_t last_ns = 0;
	uint32_t drops = 0;

	ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt, law: linux}", &env), 0);
	for (int i = 0; i < 64; i++)
		b.ops->enqueue(b.q, &pkts[i], wrap_ns - 1000 * MS, &b.drops);
	for (uint64_t t = wrap_ns - 500 * MS; t < wrap_ns + 500 * MS; t += MS) {
		struct pkt *p = b.ops->dequeue(b.q, t, &b.drops);

		b.ops->enqueue(b.q, p, t - 500 * MS, &b.drops);
		while ((p = pkt_list_pop(&b.drops)) != NULL) {
			NEED(drops == 0 || t - last_ns < 102 * MS);
			last_ns = t;
			drops++;
			b.ops->enqueue(b.q, p, t - 500 * MS, &b.drops);
		}
	}
	// 0.9 s after the first drop: 26 by the table's trend (10 after 0.477 s).
	ck_assert_uint_ge(drops, 24);
	ck_assert_uint_le(drops, 30);
}

TEST(random_load_conserves_packets) {
	static const char *const params[] = {"{limit: 30pkt}", "{limit: 20000B, law: linux}",
		"{limit: 50pkt, ecn: yes, ce_threshold: 1ms, target: 2ms, interval: 20ms}"};

	for (int k = 0; k < 3; k++) {
		struct pkt *pkts = pkts_new(20000, 0);
		struct aqm_bench b;
		struct rng rng;
		uint64_t t = 0;
		uint32_t n = 0;

		rng_init(&rng, (uint64_t)k, "codel");
		ck_assert_int_eq(aqm_open(&b, "codel", params[k], &env), 0);
		while (n < 20000) {
			t += rng_u64(&rng) % MS;
			if (rng_u64(&rng) % 100 < 55) {
				pkts[n].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
				pkts[n].ecn = rng_u64(&rng) & 3;
				aqm_put(&b, &pkts[n++], t);
			} else {
				aqm_take(&b, t);
			}
		}
		ck_assert_uint_gt(b.drops.count, 100);
		aqm_close(&b);
		test_close(pkts);
	}
}

// Three drops from 1.1 s on: the fourth would be due 100 ms / sqrt(1, 2, 3) later, at 1 328 445 704
// ns. The queue drains, and dropping begins again `since_ns` after that: with which count?
static double count_after(uint64_t since_ns) {
	const uint64_t due_ns = UINT64_C(1328445704);
	struct pkt *pkts = pkts_new(100, 1000);
	struct aqm_bench b;
	double count;
	uint32_t n = 0;

	ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt}", &env), 0);
	for (; n < 20; n++)
		aqm_put(&b, &pkts[n], 0);
	aqm_take(&b, 1000 * MS);
	aqm_take(&b, 1100 * MS);
	aqm_take(&b, 1200 * MS);
	aqm_take(&b, UINT64_C(1270710678));
	ck_assert_uint_eq(b.drops.count, 3);
	ck_assert_double_eq(aqm_observed(&b, 1), 1.0); // it drops
	ck_assert_double_eq(aqm_observed(&b, 2), 57735026.0); // the fourth drop is so far
	ck_assert_double_eq(aqm_observed(&b, 3), 1.0); // count when it began to
	ck_assert_double_eq(aqm_observed(&b, 0), 3.0);
	while (b.ops->backlog(b.q).pkts > 0)
		aqm_take(&b, UINT64_C(1270710678));
	ck_assert_double_eq(aqm_observed(&b, 0), 0.0);
	for (; n < 30; n++)
		aqm_put(&b, &pkts[n], due_ns + since_ns - 200 * MS);
	aqm_take(&b, due_ns + since_ns - 100 * MS);
	aqm_take(&b, due_ns + since_ns);
	ck_assert_uint_eq(b.drops.count, 4);
	count = aqm_observed(&b, 0);
	aqm_close(&b);
	test_close(pkts);
	return count;
}

// RFC 8289 section 5.6: "delta > 1 && now - drop_next < 16 interval"; what was dropped since the
// state was entered last is 2 here, which is enough.
TEST(count_resumes_to_the_nanosecond) {
	ck_assert_double_eq(count_after(300 * MS), 2.0);
	ck_assert_double_eq(count_after(1600 * MS - 1), 2.0);
	ck_assert_double_eq(count_after(1600 * MS), 1.0);
}

// Section 5.5: "sojourn_time < TARGET" is good.
TEST(target_itself_is_above) {
	for (uint64_t less = 0; less < 2; less++) {
		struct pkt *pkts = pkts_new(10, 1000);
		struct aqm_bench b;

		ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt}", &env), 0);
		for (int i = 0; i < 10; i++)
			aqm_put(&b, &pkts[i], 0);
		aqm_take(&b, 5 * MS - less);
		aqm_take(&b, 105 * MS);
		ck_assert_uint_eq(b.drops.count, 1 - less);
		aqm_close(&b);
		test_close(pkts);
	}
}

// Marks keep the law's schedule too: one that comes late does not put off the next.
TEST(late_mark_keeps_the_schedule) {
	struct pkt *pkts = pkts_new(20, 1000);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt, ecn: yes}", &env), 0);
	for (int i = 0; i < 20; i++) {
		pkts[i].ecn = ECN_ECT0;
		aqm_put(&b, &pkts[i], 0);
	}
	aqm_take(&b, 1000 * MS);
	ck_assert_uint_eq(aqm_take(&b, 1100 * MS)->ecn, ECN_CE);
	ck_assert_uint_eq(aqm_take(&b, 1230 * MS)->ecn, ECN_CE); // due at 1200
	ck_assert_uint_eq(aqm_take(&b, UINT64_C(1270710677))->ecn, ECN_ECT0);
	ck_assert_uint_eq(aqm_take(&b, UINT64_C(1270710678))->ecn, ECN_CE);
}

// The drop that leaves one MTU ends the state at once.
TEST(dropping_ends_with_the_drop_that_empties_the_queue) {
	struct pkt *pkts = pkts_new(20, 1000);
	struct aqm_bench b;

	ck_assert_int_eq(aqm_open(&b, "codel", "{limit: 100pkt}", &env), 0);
	for (int i = 0; i < 7; i++)
		aqm_put(&b, &pkts[i], 0);
	aqm_take(&b, 1000 * MS);
	aqm_take(&b, 1100 * MS); // drops one, takes one
	ck_assert_double_eq(aqm_observed(&b, 0), 1.0);
	aqm_take(&b, 1101 * MS);
	ck_assert_ptr_nonnull(aqm_take(&b, 1200 * MS)); // drops the last but two
	ck_assert_uint_eq(b.drops.count, 2);
	ck_assert_uint_eq(b.ops->backlog(b.q).pkts, 1);
	ck_assert_double_eq(aqm_observed(&b, 0), 0.0);
}
