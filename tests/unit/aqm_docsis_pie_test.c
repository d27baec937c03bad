// SPDX-License-Identifier: BSD-3-Clause
// DOCSIS-PIE against tests/vectors/docsis_pie.csv (RFC 8034's formulas), and its three states.
#include "switch_test.h"
#include "vectors.h"

#define UPDATE (16 * MS)
#define PROBABILITY 0
#define DELAY 1
#define ALLOWANCE 2
#define STATE 3

enum { INACTIVE, QUIESCENT, ACTIVE };

// 100 B take 1 ms.
static const struct aqm_env env = {
	.rate_bps = 800000,
	.base_rtt_ns = 50 * MS,
	.mtu_bytes = 1500,
	.seed = 1,
};

static void open_docsis(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "docsis_pie", params, &env) == 0, "%s", b->err.msg);
}

TEST(probability_is_that_of_the_rfc) {
	struct pkt *p = pkts_new(1, 1000);
	struct aqm_bench b = {0};
	struct vectors v;
	uint64_t now_ns = 0;

	vectors_open(&v, "docsis_pie");
	while (vectors_next(&v)) {
		if (v.begins) {
			if (b.q != NULL)
				aqm_close(&b);
			open_docsis(&b, "{limit: 100pkt}");
			now_ns = 1000 * UPDATE;
			ck_assert_ptr_null(b.ops->dequeue(b.q, now_ns, &b.drops));
		}
		// One packet that takes so long to send; a lone packet is never dropped.
		p->size_bytes = (uint16_t)(v.column[1] / MS * 100);
		if (p->size_bytes > 0)
			b.ops->enqueue(b.q, p, now_ns, &b.drops);
		NEED(b.drops.count == 0);
		now_ns += UPDATE;
		NEED((b.ops->dequeue(b.q, now_ns, &b.drops) != NULL) == (p->size_bytes > 0));
		NEED(aqm_observed(&b, DELAY) == v.column[1]);
		if (!vectors_same(aqm_observed(&b, PROBABILITY), v.column[2]))
			ck_abort_msg("%s, update %g: %.17g is not %.17g", v.scenario, v.column[0],
				aqm_observed(&b, PROBABILITY), v.column[2]);
	}
}

// Section 4.3: nothing is dropped until a third of the limit waits; the first drop begins the burst
// protection.
TEST(the_first_drop_begins_the_burst_protection) {
	struct pkt *pkts = pkts_new(2000, 1000);
	uint64_t t_ns = 1600 * MS, drop_ns;
	struct aqm_bench b;
	uint32_t n = 0;

	open_docsis(&b, "{limit: 300pkt}");
	for (; n < 99; n++)
		aqm_put(&b, &pkts[n], t_ns);
	for (int i = 0; i < 100; i++) { // a delay of 990 ms, probability above 1
		t_ns += UPDATE;
		ck_assert_ptr_nonnull(aqm_take(&b, t_ns));
		aqm_put(&b, &pkts[n++], t_ns);
	}
	ck_assert_double_gt(aqm_observed(&b, PROBABILITY), 1);
	ck_assert_uint_eq(b.drops.count, 0);
	ck_assert_double_eq(aqm_observed(&b, STATE), INACTIVE);

	aqm_put(&b, &pkts[n++], t_ns); // finds 99
	aqm_put(&b, &pkts[n++], t_ns); // finds a third
	ck_assert_double_ge(aqm_observed(&b, STATE), QUIESCENT);
	while (b.drops.count == 0)
		aqm_put(&b, &pkts[n++], t_ns);
	drop_ns = t_ns;
	ck_assert_double_eq(aqm_observed(&b, STATE), ACTIVE);
	ck_assert_double_eq(aqm_observed(&b, ALLOWANCE), 142.0 * MS);
	for (; t_ns < drop_ns + 9 * UPDATE; t_ns += MS) {
		aqm_take(&b, t_ns);
		aqm_put(&b, &pkts[n++], t_ns);
		NEED(b.drops.count == 1);
		NEED(t_ns < drop_ns + UPDATE || aqm_observed(&b, PROBABILITY) <= 0);
	}
	// Nine updates, 144 ms: it is over.
	for (; t_ns < drop_ns + 3000 * MS; t_ns += 4 * MS) {
		aqm_take(&b, t_ns);
		aqm_put(&b, &pkts[n++], t_ns);
	}
	ck_assert_uint_gt(b.drops.count, 10);

	// Quiet: quiescent, and after more than a second of it inactive.
	while (aqm_take(&b, t_ns) != NULL)
		;
	t_ns = t_ns / UPDATE * UPDATE;
	while (aqm_observed(&b, STATE) > QUIESCENT)
		aqm_take(&b, t_ns += UPDATE);
	ck_assert_double_eq(aqm_observed(&b, PROBABILITY), 0);
	aqm_take(&b, t_ns + 62 * UPDATE); // 992 ms
	ck_assert_double_eq(aqm_observed(&b, STATE), QUIESCENT);
	aqm_take(&b, t_ns + 63 * UPDATE); // 1008 ms
	ck_assert_double_eq(aqm_observed(&b, STATE), INACTIVE);
}

// Section 4.6: the probability of a packet is proportional to its size, up to 0.85.
TEST(small_packets_are_dropped_less) {
	static const uint16_t sizes[] = {64, 512, 1024};
	static const uint32_t least[] = {136, 17, 9} /* 0.85 / 0.1 * 1024 / size */;

	for (int k = 0; k < 3; k++) {
		struct pkt *pkts = pkts_new(400, 1000);
		struct aqm_bench b;
		uint32_t n = 50;

		// One update, at 10 s: probability = 0.1 = alpha * 100 ms / 2048.
		open_docsis(
			&b, "{limit: 120pkt, update: 10s, beta: 0, alpha: 2048, rate: 3636363bit}");
		for (uint32_t i = 0; i < n; i++)
			b.ops->enqueue(b.q, &pkts[i], 1, &b.drops);
		b.ops->dequeue(b.q, 10000 * MS, &b.drops);
		ck_assert_double_eq_tol(aqm_observed(&b, PROBABILITY), 0.1, 1e-3);
		for (; b.drops.count == 0; n++) {
			NEED(n < 400);
			pkts[n].size_bytes = sizes[k];
			b.ops->enqueue(b.q, &pkts[n], 10000 * MS, &b.drops);
			if (b.drops.count == 0)
				b.ops->dequeue(b.q, 10000 * MS, &b.drops);
		}
		ck_assert_uint_ge(n - 50, least[k]);
		aqm_close(&b);
		test_close(pkts);
	}
}
