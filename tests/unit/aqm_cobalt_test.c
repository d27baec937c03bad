// SPDX-License-Identifier: BSD-3-Clause
// COBALT against tests/vectors/cobalt.csv, its published signal times and BLUE's probabilities.
#include "switch/aqm/cobalt_law.h"
#include "switch_test.h"
#include "vectors.h"

#include <math.h>

enum { PACKET, LAST, OVERFLOW }; // events of the table
enum { COUNT, DROPPING, SPACING, PROBABILITY }; // as observed

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 100 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
	.seed = 1,
};

static void open_cobalt(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "cobalt", params, &env) == 0, "%s", b->err.msg);
}

TEST(state_is_that_of_the_table) {
	struct cobalt_law law = {.target_ns = 5 * MS, .interval_ns = 100 * MS};
	struct cobalt_state s = {0};
	struct pkt p = {.size_bytes = 1000};
	struct vectors v;

	cobalt_law_init(&law, &env, "test");
	vectors_open(&v, "cobalt");
	while (vectors_next(&v)) {
		uint64_t now_ns = (uint64_t)v.column[2], sojourn_ns = (uint64_t)v.column[3];
		bool above = sojourn_ns > 5 * MS;

		if (v.begins)
			s = (struct cobalt_state){0};
		p.arrival_ns = now_ns - sojourn_ns;
		p.ecn = ECN_NOT_ECT;
		if (v.column[1] == OVERFLOW) {
			cobalt_overflow(&law, &s, p.arrival_ns, now_ns);
		} else {
			bool blue = s.blue > 0;
			bool drop = cobalt_judge(&law, &s, &p, above, now_ns);

			if (!blue)
				NEED(drop == (v.column[4] > 0));
			if (v.column[1] == LAST) {
				s.emptied = s.count > 0 || s.blue > 0;
				s.emptied_ns = now_ns;
			}
		}
		if (s.count != v.column[5] || (double)s.drop_next_ns != v.column[6]
			|| s.blue != v.column[7])
			ck_abort_msg("%s, step %g: count %u, drop_next %.0f, blue %u", v.scenario,
				v.column[0], s.count, (double)s.drop_next_ns, s.blue);
	}
	ck_assert_uint_gt(v.rows, 3000);
}

// A queue that never gets short and whose packets have always waited long enough: dequeue every
// step_ns from 10 s on, and put each packet back. Writes when the n-th signal came.
static void overload(
	const char *params, uint8_t ecn, uint64_t step_ns, uint64_t *signal_ns, uint32_t signals) {
	struct pkt *pkts = pkts_new(8, 1000);
	struct aqm_bench b;
	uint32_t seen = 0;

	open_cobalt(&b, params);
	for (int i = 0; i < 8; i++) {
		pkts[i].ecn = ecn;
		b.ops->enqueue(b.q, &pkts[i], 0, &b.drops);
	}
	for (uint64_t t = 10000 * MS; seen < signals; t += step_ns) {
		struct pkt *p = b.ops->dequeue(b.q, t, &b.drops);

		NEED(p != NULL && t < 60000 * MS);
		if ((p->flags & PKT_MARKED) != 0) {
			NEED(b.drops.count == 0 && ecn == ECN_ECT0);
			signal_ns[seen++] = t;
			p->flags = 0;
		}
		p->ecn = ecn;
		b.ops->enqueue(b.q, p, 0, &b.drops);
		while ((p = pkt_list_pop(&b.drops)) != NULL) {
			NEED(p->drop_reason == DROP_AQM && ecn == ECN_NOT_ECT);
			if (seen < signals)
				signal_ns[seen++] = t;
			b.ops->enqueue(b.q, p, 0, &b.drops);
		}
	}
	ck_assert(!b.ops->random(b.q));
	aqm_close(&b);
	test_close(pkts);
}

// The first after `interval`, the n-th interval / sqrt(n) after the one before.
TEST(signals_come_after_interval_over_sqrt_count) {
	static uint64_t drop_ns[1000], mark_ns[1000];
	long double due_ns = 10000e6L;

	overload("{limit: 100pkt}", ECN_NOT_ECT, US, drop_ns, 1000);
	overload("{limit: 100pkt}", ECN_ECT0, US, mark_ns, 1000);
	for (uint32_t n = 1; n <= 1000; n++) {
		long double late_ns;

		due_ns += 100e6L / sqrtl(n);
		late_ns = (long double)drop_ns[n - 1] - due_ns;
		// Less than one step later; the law rounds each interval down to a nanosecond.
		ck_assert(late_ns >= -1.0L * n && late_ns < 1000.0L);
		ck_assert_uint_eq(mark_ns[n - 1], drop_ns[n - 1]);
	}
	// The first 2: 100 + 70.711 ms.
	ck_assert_uint_eq((drop_ns[1] - 10000 * MS + 500) / 1000, 170711);
}

// On a link so slow that several signals are due between two packets: drops catch up, a mark does
// not.
TEST(a_mark_ends_what_is_due) {
	struct pkt *pkts = pkts_new(100, 1000);
	struct aqm_bench b;

	for (int ecn = ECN_NOT_ECT; ecn <= ECN_ECT0; ecn += ECN_ECT0) {
		open_cobalt(&b, "{limit: 100pkt}");
		for (int i = 0; i < 100; i++) {
			pkts[i].ecn = (uint8_t)ecn;
			aqm_put(&b, &pkts[i], 0);
		}
		aqm_take(&b,
			1000 * MS); // the first signal is due at 1.1 s, then 1.1707, 1.2284, 1.2784
		ck_assert_uint_eq(b.drops.count, 0);
		struct pkt *p = aqm_take(&b, 1250 * MS);

		ck_assert_uint_eq(b.drops.count, ecn == ECN_ECT0 ? 0 : 3);
		ck_assert_int_eq((p->flags & PKT_MARKED) != 0, ecn == ECN_ECT0);
		ck_assert_double_eq(aqm_observed(&b, COUNT), ecn == ECN_ECT0 ? 2 : 4);
		aqm_take(&b, 1250 * MS + 1);
		// The schedule of marks goes on from 1.25 s: the next packet is marked too.
		ck_assert_double_eq(aqm_observed(&b, COUNT), ecn == ECN_ECT0 ? 3 : 4);
		ck_assert_double_eq(aqm_observed(&b, DROPPING), 1);
		aqm_take(&b, 1250 * MS + 2); // and then the next comes 57.7 ms later
		ck_assert_double_eq(aqm_observed(&b, COUNT), ecn == ECN_ECT0 ? 3 : 4);
		aqm_close(&b);
	}
}

// With `ecn: no` an ECN capable packet is dropped.
TEST(ecn_can_be_off) {
	struct pkt *pkts = pkts_new(100, 1000);
	struct aqm_bench b;

	open_cobalt(&b, "{limit: 100pkt, ecn: no}");
	for (int i = 0; i < 100; i++) {
		pkts[i].ecn = ECN_ECT0;
		aqm_put(&b, &pkts[i], 0);
	}
	aqm_take(&b, 1000 * MS);
	aqm_take(&b, 1100 * MS);
	ck_assert_uint_eq(b.drops.count, 1);
}

TEST(the_last_packet_is_not_dropped) {
	struct pkt *pkts = pkts_new(5, 1000);
	struct aqm_bench b;

	open_cobalt(&b, "{limit: 100pkt}");
	for (int i = 0; i < 5; i++)
		aqm_put(&b, &pkts[i], 0);
	ck_assert_ptr_eq(aqm_take(&b, 1000 * MS), &pkts[0]);
	ck_assert_ptr_eq(aqm_take(&b, 30000 * MS), &pkts[4]);
	ck_assert_uint_eq(b.drops.count, 3);
}

// Packets that leave every millisecond after one sojourn.
static uint32_t dropped_after(uint64_t sojourn_ns) {
	struct pkt *pkts = pkts_new(300, 1000);
	struct aqm_bench b;
	uint32_t dropped;

	open_cobalt(&b, "{limit: 100pkt}");
	for (uint64_t i = 0; i < 300; i++) {
		aqm_put(&b, &pkts[i], i * MS);
		if (i * MS >= sojourn_ns)
			aqm_take(&b, pkts[b.out_pkts + b.drops.count].arrival_ns + sojourn_ns);
	}
	dropped = b.drops.count;
	aqm_close(&b);
	test_close(pkts);
	return dropped;
}

TEST(a_delay_of_the_target_is_accepted) {
	ck_assert_uint_eq(dropped_after(5 * MS), 0);
	ck_assert_uint_gt(dropped_after(5 * MS + 1), 1);
}

// BLUE steps back once per target while the queue is empty, whatever CoDel's count is.
TEST(blue_decays_while_the_queue_is_empty) {
	struct pkt *pkts = pkts_new(100, 1000);
	struct aqm_bench b;

	open_cobalt(&b, "{limit: 1pkt}");
	for (uint32_t i = 0; i < 10; i++)
		aqm_put(&b, &pkts[i], i * 5 * MS);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 9 / 256.0);
	aqm_take(&b, 50 * MS); // the next step may be at 50 ms
	aqm_put(&b, &pkts[10], 500 * MS);
	aqm_take(&b, 500 * MS);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 9 / 256.0 - 91 / 4096.0);
	ck_assert_double_eq(aqm_observed(&b, COUNT), 0);
	aqm_put(&b, &pkts[11], 600 * MS);
	aqm_take(&b, 600 * MS);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 9 / 256.0 - 111 / 4096.0);
	aqm_put(&b, &pkts[12], 5000 * MS);
	aqm_take(&b, 5000 * MS);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 0);
}

// Below four full-sized frames a queue is as short as it can be: at 1 Mbit/s 4 * 1538 B are 49.2
// ms.
TEST(four_frames_are_not_above_target) {
	struct aqm_env slow = env;
	struct pkt *pkts = pkts_new(2000, 1000);
	struct aqm_bench b;

	slow.rate_bps = 1000000;
	for (uint64_t sojourn_ms = 49; sojourn_ms <= 50; sojourn_ms++) {
		ck_assert_int_eq(aqm_open(&b, "cobalt", "{limit: 100pkt}", &slow), 0);
		for (uint64_t i = 0; i < 1000; i++) {
			aqm_put(&b, &pkts[i], i * MS);
			if (i >= sojourn_ms)
				aqm_take(&b, i * MS);
		}
		ck_assert_int_eq(b.drops.count > 0, sojourn_ms == 50);
		aqm_close(&b);
	}
}

// The limit is exceeded every 5 ms, as often as BLUE steps, or every 1 ms. Afterwards the queue is
// short but never empty, and what BLUE drops is a binomial share, whether or not packets are ECN
// capable.
TEST(blue_drops_its_share) {
	enum { N = 100000 };

	for (uint64_t step_ms = 1; step_ms <= 5; step_ms += 4) {
		struct pkt *pkts = pkts_new(N + 1000, 1000);
		uint64_t t_ns = 0;
		struct aqm_bench b;
		uint32_t n = 0;

		open_cobalt(&b, "{limit: 2pkt}");
		for (; n < 2 + 320 / step_ms; n++, t_ns += step_ms * MS)
			aqm_put(&b, &pkts[n], t_ns); // two fit
		ck_assert_uint_eq(b.drops.count, n - 2);
		ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 0.25);
		ck_assert(!b.ops->random(b.q));
		aqm_take(&b, t_ns);
		uint32_t before = b.drops.count, drawn = 0;

		for (uint32_t i = 0; i < N; i++) {
			pkts[n].ecn = i % 2 > 0 ? ECN_ECT0 : ECN_NOT_ECT;
			aqm_put(&b, &pkts[n++], t_ns);
			if (b.ops->backlog(b.q).pkts < 2)
				continue;
			drawn++;
			struct pkt *p = b.ops->dequeue(b.q, t_ns, &b.drops);
			b.out_pkts++;
			b.out_bytes += p->size_bytes;
			aqm_conserved(&b);
		}
		// Half of the time two are there; a packet that is then the last one stays,
		// whatever BLUE says, and a queue left empty waits for the next.
		double dropped = b.drops.count - before, mean = 0.25 * drawn;
		ck_assert_double_le(fabs(dropped - mean), 4 * sqrt(mean * 0.75));
		ck_assert(b.ops->random(b.q));
		aqm_close(&b);
		test_close(pkts);
	}
}
