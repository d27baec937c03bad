// SPDX-License-Identifier: BSD-3-Clause
// CoDel against tests/vectors: its law for counts of 1 to 1000 in both dialects, and the six tests
// of ns-3.
#include "switch/aqm/codel_law.h"
#include "switch_test.h"
#include "vectors.h"

#define INTERVAL_NS (100 * MS)
#define PACKET_BYTES 1000

static struct codel_law law_of(int law) {
	struct codel_law l = {.law = law, .target_ns = 5 * MS, .interval_ns = INTERVAL_NS};

	codel_law_init(&l, MTU);
	return l;
}

TEST(the_time_to_the_next_drop) {
	struct codel_state s = {0};
	uint64_t since = 0;
	struct vectors v;

	vectors_open(&v, "codel_law");
	while (vectors_next(&v)) {
		bool linux_law = strcmp(v.scenario, "linux") == 0;
		struct codel_law l = law_of(linux_law ? CODEL_LINUX : CODEL_EXACT);
		uint64_t next;

		since = v.begins ? 0 : since;
		codel_set_count(&l, &s, (uint32_t)v.column[0]);
		next = codel_next(&l, &s, 0);
		since += next;
		ck_assert_uint_eq(next, (uint64_t)v.column[2]);
		if (linux_law) {
			ck_assert_uint_eq(s.inv_sqrt, (uint64_t)v.column[1]);
			ck_assert_uint_eq(since, (uint64_t)v.column[3]);
		} else { // each is rounded down
			ck_assert_double_le((double)since, v.column[3]);
			ck_assert_double_ge((double)since, v.column[3] - v.column[0]);
		}
	}
	ck_assert_uint_eq(v.rows, 2000);
}

// The discipline drops at these times, if it is asked often enough. Linux drops after first_above,
// not at it.
TEST(the_discipline_keeps_the_law) {
	static const char *const params[] = {"{limit: 100pkt}", "{limit: 100pkt, law: linux}"};
	struct aqm_env env = {.rate_bps = 100000000, .base_rtt_ns = 100 * MS, .mtu_bytes = MTU};
	uint64_t first_ns = 0;
	struct aqm_bench b = {0};
	struct pkt *pkts = pkts_new(8, PACKET_BYTES);
	struct vectors v;
	uint64_t t_ns = 0, step_ns = US;

	vectors_open(&v, "codel_law");
	while (vectors_next(&v)) {
		bool linux_law = strcmp(v.scenario, "linux") == 0;
		struct pkt *p;

		if (v.begins) {
			if (b.ops != NULL)
				aqm_close(&b);
			ck_assert_int_eq(aqm_open(&b, "codel", params[linux_law], &env), 0);
			for (int i = 0; i < 8; i++)
				b.ops->enqueue(b.q, &pkts[i], 0, &b.drops);
			step_ns = linux_law ? 1024 : US;
			t_ns = 10000 * MS / step_ns * step_ns;
		}
		// The first row needs the first drop too.
		for (int n = v.begins ? 2 : 1; n > 0; n--) {
			while (b.drops.count == 0) {
				p = b.ops->dequeue(b.q, t_ns, &b.drops);
				NEED(p != NULL);
				b.ops->enqueue(b.q, p, 0, &b.drops);
				t_ns += step_ns;
			}
			NEED(b.drops.count == 1);
			b.ops->enqueue(b.q, pkt_list_pop(&b.drops), 0, &b.drops);
			first_ns = n == 2 ? t_ns : first_ns;
		}
		double since = (double)(t_ns - first_ns) / (linux_law ? 1024 : 1);
		if (linux_law)
			ck_assert_double_eq(since, v.column[3]);
		else
			ck_assert_double_le(fabs(since - v.column[3]), (double)US);
	}
}

TEST(newton_steps) {
	struct vectors v;

	vectors_open(&v, "codel_newton");
	while (vectors_next(&v))
		ck_assert_uint_eq(codel_newton((uint16_t)v.column[0], (uint32_t)v.column[1]),
			(uint64_t)v.column[2]);
	ck_assert_uint_eq(v.rows, 64);
}

TEST(control_law) {
	struct codel_law l = law_of(CODEL_LINUX);
	struct vectors v;

	vectors_open(&v, "codel_control_law");
	while (vectors_next(&v)) {
		struct codel_state s = {.inv_sqrt = (uint16_t)v.column[1]};

		ck_assert_uint_eq(codel_next(&l, &s, (uint64_t)v.column[0]), (uint64_t)v.column[2]);
	}
	ck_assert_uint_eq(v.rows, 201 * 8);
}

enum {
	LAW,
	LIMIT,
	TARGET,
	INTERVAL,
	ECN,
	CE_THRESHOLD,
	TIME,
	PUT,
	CODEPOINT,
	TAKE,
	LEFT,
	DROPS,
	MARKS
};

static void open_scenario(struct aqm_bench *b, const double *c, const struct aqm_env *env) {
	char params[256];

	snprintf(params, sizeof(params),
		"{limit: %.0fpkt, target: %.0fns, interval: %.0fns, ecn: %s, ce_threshold: %.0fns, "
		"law: %s}",
		c[LIMIT], c[TARGET], c[INTERVAL], c[ECN] > 0 ? "yes" : "no", c[CE_THRESHOLD],
		c[LAW] > 0 ? "linux" : "exact");
	ck_assert_msg(aqm_open(b, "codel", params, env) == 0, "%s", b->err.msg);
}

TEST(scenarios_of_ns3) {
	struct aqm_env env = {.rate_bps = 100000000, .base_rtt_ns = 100 * MS, .mtu_bytes = 1500};
	struct pkt *pkts = pkts_new(10000, PACKET_BYTES), *next = pkts;
	struct aqm_bench b = {0};
	uint64_t marks = 0;
	struct vectors v;

	vectors_open(&v, "codel_scenarios");
	while (vectors_next(&v)) {
		const double *c = v.column;
		uint64_t now_ns = (uint64_t)c[TIME];

		if (v.begins) {
			if (b.ops != NULL)
				aqm_close(&b);
			open_scenario(&b, c, &env);
			marks = 0;
		}
		for (int i = 0; i < (int)c[PUT]; i++) {
			next->ecn = (uint8_t)c[CODEPOINT];
			aqm_put(&b, next++, now_ns);
		}
		for (int i = 0; i < (int)c[TAKE]; i++) {
			const struct pkt *p = aqm_take(&b, now_ns);

			marks += p != NULL && (p->flags & PKT_MARKED) != 0;
		}
		ck_assert_msg(b.ops->backlog(b.q).pkts == (uint64_t)c[LEFT]
				&& b.drops.count == (uint64_t)c[DROPS]
				&& marks == (uint64_t)c[MARKS],
			"%s at %.0f ns: %llu left, %u drops, %llu marks", v.scenario, c[TIME],
			(unsigned long long)b.ops->backlog(b.q).pkts, b.drops.count,
			(unsigned long long)marks);
	}
}
