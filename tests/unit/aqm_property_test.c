// SPDX-License-Identifier: BSD-3-Clause
// What every queue discipline keeps to, over random arrivals and departures. The disciplines and
// their parameters are those of the registry.
//
// The ledger balances after each call; packets of a flow leave in order; the limit holds; a queue
// with packets gives one; times, sizes and ECN change only as aqm.h allows; the same seed gives the
// same packets.
#include "switch_test.h"

#define STEPS 30000
#define FLOWS 8 // of one ECN field each: disciplines may have a queue for each field

static const struct aqm_env env = {
	.rate_bps = 100000000,
	.base_rtt_ns = 20 * MS,
	.overhead_bytes = 20,
	.mtu_bytes = MTU,
	.seed = 7,
};

// Which times occur.
enum clock { CLOCK_STEADY, CLOCK_BURSTS, CLOCK_GAPS };

struct history {
	uint64_t hash;
	uint64_t out, drops, marks;
};

static uint64_t later(struct rng *rng, enum clock clock, uint64_t now_ns) {
	uint64_t draw = rng_u64(rng);

	switch (clock) {
	case CLOCK_STEADY: // as fast as the link, on average
		return now_ns + draw % (120 * US);
	case CLOCK_BURSTS: // often no time passes
		return draw % 8 > 0 ? now_ns : now_ns + rng_u64(rng) % MS;
	case CLOCK_GAPS: // up to an age
		return now_ns + (draw % 1000 > 0 ? draw % (100 * US) : UINT64_C(1) << (draw % 56));
	}
	return now_ns;
}

static void left(const struct pkt *p, const struct pkt *before, uint64_t now_ns, uint32_t *last) {
	NEED(p->id == before->id && p->size_bytes == before->size_bytes);
	NEED(p->arrival_ns == before->arrival_ns && p->arrival_ns <= now_ns);
	NEED(last[p->flow_id] <= p->id);
	last[p->flow_id] = p->id + 1;
	if ((p->flags & PKT_MARKED) != 0)
		NEED(p->ecn == ECN_CE && (before->ecn == ECN_ECT0 || before->ecn == ECN_ECT1));
	else
		NEED(p->ecn == before->ecn);
}

static void within_limit(const struct aqm_bench *b) {
	struct backlog in = b->ops->backlog(b->q);
	struct aqm_limit max = b->ops->limit(b->q);

	NEED(in.pkts <= max.pkts);
	NEED(in.bytes + in.pkts * max.overhead_bytes <= max.bytes);
	NEED((in.pkts == 0) == (in.bytes == 0));
}

static struct history play(const char *name, const char *params, enum clock clock, uint64_t seed) {
	struct pkt *pkts = pkts_new(STEPS, 0), *before = pkts_new(STEPS, 0);
	struct history h = {0};
	uint32_t last[FLOWS] = {0}, n = 0;
	uint64_t now_ns = 0;
	struct aqm_bench b;
	struct rng rng;

	rng_init(&rng, seed, "arrivals");
	ck_assert_msg(aqm_open(&b, name, params, &env) == 0, "%s %s: %s", name, params, b.err.msg);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint64_t busy = step / 1000 % 4; // of 100: the load changes

		now_ns = later(&rng, clock, now_ns);
		if (rng_u64(&rng) % 100 < 45 + 5 * busy) {
			struct pkt *p = &pkts[n];

			p->size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
			p->flow_id = (uint32_t)(rng_u64(&rng) % FLOWS);
			p->ecn = p->flow_id & 3;
			p->arrival_ns = now_ns;
			before[n++] = *p;
			aqm_put(&b, p, now_ns);
		} else {
			struct pkt *p = aqm_take(&b, now_ns);

			NEED(p != NULL || b.ops->backlog(b.q).pkts == 0);
			if (p != NULL) {
				left(p, &before[p->id], now_ns, last);
				h.marks += (p->flags & PKT_MARKED) != 0;
				h.hash = rng_mix(h.hash ^ p->id ^ (uint64_t)p->ecn << 32);
				h.out++;
			}
		}
		within_limit(&b);
	}
	for (const struct pkt *p = b.drops.head; p != NULL; p = p->next) {
		NEED(p->drop_reason == DROP_QUEUE_FULL || p->drop_reason == DROP_AQM);
		h.hash = rng_mix(h.hash ^ p->id ^ (uint64_t)p->drop_reason << 40);
		h.drops++;
	}
	// All that is inside comes out at one moment, however late; then there is nothing.
	while (b.ops->backlog(b.q).pkts > 0) {
		struct pkt *p = aqm_take(&b, UINT64_C(1) << 62);

		NEED(p != NULL || b.ops->backlog(b.q).pkts == 0);
		if (p != NULL)
			left(p, &before[p->id], UINT64_C(1) << 62, last);
	}
	ck_assert_ptr_null(aqm_take(&b, UINT64_C(1) << 62));
	ck_assert_uint_eq(b.in_pkts, b.out_pkts + b.drops.count);
	aqm_close(&b);
	test_close(pkts);
	test_close(before);
	return h;
}

static void twice(const char *name, const char *params, enum clock clock) {
	struct history a = play(name, params, clock, 1), b = play(name, params, clock, 1);

	ck_assert_msg(memcmp(&a, &b, sizeof(a)) == 0, "%s %s: not the same", name, params);
	ck_assert_uint_gt(a.out, 100);
	if (clock != CLOCK_GAPS)
		ck_assert_msg(a.drops > 0, "%s %s: nothing was dropped", name, params);
}

TEST(every_discipline_keeps_the_rules) {
	for (const struct aqm_ops *const *ops = aqm_all; *ops != NULL; ops++) {
		static const char *const limits[] = {"1pkt", "30pkt", "20kB", "2ms"};
		char params[128];

		for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
			for (int clock = CLOCK_STEADY; clock <= CLOCK_GAPS; clock++) {
				snprintf(params, sizeof(params), "{limit: %s}", limits[i]);
				twice((*ops)->name, params, (enum clock)clock);
			}
	}
}

// Each value of a parameter that has few, and both ends of the range of the others, where the
// discipline takes them.
static uint32_t values_of(const struct param *p, char text[4][64]) {
	char number[32];
	uint32_t n = 0;

	switch (p->type) {
	case PARAM_TYPE_BOOL:
		snprintf(text[n++], 64, "yes");
		snprintf(text[n++], 64, "no");
		break;
	case PARAM_TYPE_ENUM:
		for (; n < 4 && p->choices[n] != NULL; n++)
			snprintf(text[n], 64, "%s", p->choices[n]);
		break;
	case PARAM_TYPE_U64:
	case PARAM_TYPE_F64:
		for (int end = 0; end < 2; end++) {
			unit_format(end > 0 ? p->max : p->min, p->unit, number, sizeof(number));
			snprintf(text[n++], 64, "%s", number);
		}
		break;
	default:
		break;
	}
	return n;
}

TEST(every_value_of_a_parameter_keeps_them_too) {
	for (const struct aqm_ops *const *ops = aqm_all; *ops != NULL; ops++)
		for (const struct param *p = (*ops)->params; p->name != NULL; p++) {
			char text[4][64], params[512];
			uint32_t values = values_of(p, text);

			for (uint32_t i = 0; i < values; i++) {
				snprintf(params, sizeof(params), "{limit: 30pkt, %s: %s}", p->name,
					text[i]);
				play((*ops)->name, params, CLOCK_STEADY, 2);
				play((*ops)->name, params, CLOCK_GAPS, 2);
			}
		}
}
