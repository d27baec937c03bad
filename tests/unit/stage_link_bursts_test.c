// SPDX-License-Identifier: BSD-3-Clause
// Two links of one kind: one gets and gives its packets in bursts, the other one by one. They agree
// on every packet, figure and record, also if the first takes bursts that it is not served for.
#include "switch_test.h"

#define BURST 40
#define BURSTS 2000
struct twins {
	struct stage_bench b[2];
	struct pkt *pkts[2];
	struct tel tel[2];
	struct tel_packets record[2][4 * BURST * BURSTS];
	bool defers; // where it can be
	uint32_t deferred; // packets
};

static void twins_open(struct twins *w, const char *text, bool traced) {
	for (int i = 0; i < 2; i++) {
		w->b[i] = (struct stage_bench){0};
		tel_memory(&w->tel[i], w->record[i], 4 * BURST * BURSTS);
		w->b[i].env.tel_packets = traced ? &w->tel[i] : NULL;
		ck_assert_msg(stage_open(&w->b[i], text) == 0, "%s", w->b[i].err.msg);
		w->pkts[i] = pkts_new(BURST * BURSTS, 0);
	}
}

static void twins_close(struct twins *w) {
	for (int i = 0; i < 2; i++) {
		stage_close(&w->b[i]);
		test_close(w->pkts[i]);
	}
}

static void twins_put(struct twins *w, uint32_t first, uint32_t n) {
	struct stage_bench *one = &w->b[1], *all = &w->b[0];
	struct pkt *pkts[BURST];

	for (uint32_t i = 0; i < n; i++) {
		pkts[i] = &w->pkts[0][first + i];
		w->pkts[1][first + i] = *pkts[i];
		all->in_pkts++;
		all->in_bytes += pkts[i]->size_bytes;
		stage_put(one, &w->pkts[1][first + i], pkts[i]->arrival_ns);
	}
	if (w->defers && all->ops->figures->defer(all->st, pkts, n))
		w->deferred += n;
	else
		all->ops->push(all->st, pkts, n, &all->drops);
	stage_conserved(all);
}

// Returns how many of `max` have left.
static uint32_t twins_take(struct twins *w, uint64_t now_ns, uint32_t max) {
	struct stage_bench *all = &w->b[0];
	struct pkt *pkts[BURST], *p;
	uint32_t n = all->ops->pop(all->st, now_ns, pkts, max, &all->drops);

	for (uint32_t i = 0; i < n; i++) {
		p = stage_take(&w->b[1], now_ns);
		NEED(p != NULL && p->id == pkts[i]->id && p->arrival_ns == pkts[i]->arrival_ns);
		NEED(p->ecn == pkts[i]->ecn && p->flags == pkts[i]->flags);
		all->out_pkts++;
		all->out_bytes += pkts[i]->size_bytes;
	}
	NEED(n == max || stage_take(&w->b[1], now_ns) == NULL);
	stage_conserved(all);
	return n;
}

static void twins_agree(struct twins *w, uint64_t now_ns) {
	struct stage_bench *a = &w->b[0], *b = &w->b[1];

	for (int i = 0; w->defers && i < 2; i++)
		link_serve(w->b[i].st, now_ns, &w->b[i].drops);

	struct stats_totals x = link_totals(a->st, now_ns), y = link_totals(b->st, now_ns);
	const struct stage_stats *p = a->ops->figures->read(a->st, now_ns);
	const struct stage_stats *q = b->ops->figures->read(b->st, now_ns);
	struct pkt *one, *other;

	NEED(same_totals(&x, &y));
	NEED(p->queue_pkts == q->queue_pkts && p->queue_bytes == q->queue_bytes);
	NEED(a->ops->next_ns(a->st) == b->ops->next_ns(b->st));
	for (enum stats_window v = STATS_RUN; v < STATS_WINDOWS; v++) {
		NEED(link_peak(a->st, v)->queue_pkts == link_peak(b->st, v)->queue_pkts);
		NEED(link_peak(a->st, v)->sojourn_ns == link_peak(b->st, v)->sojourn_ns);
	}
	while ((one = pkt_list_pop(&a->drops)) != NULL) {
		other = pkt_list_pop(&b->drops);
		NEED(other != NULL && one->id == other->id);
		NEED(one->drop_reason == other->drop_reason);
		for (int i = 0; i < 2; i++) {
			w->b[i].in_pkts--; // stage_conserved counts what is on the list
			w->b[i].in_bytes -= one->size_bytes;
		}
	}
	NEED(pkt_list_pop(&b->drops) == NULL);
}

// Returns how many were dropped.
static uint64_t twins_play(struct twins *w, const char *text, uint64_t gap_ns, bool traced) {
	static const char *const rates[] = {"3.7Gbit", "900Mbit", "40Gbit", "1Tbit"};
	struct rng rng;
	uint64_t t = 0;
	uint32_t in = 0;

	twins_open(w, text, traced);
	rng_init(&rng, 1, text);
	for (uint32_t k = 0; k < BURSTS; k++) {
		uint32_t n = 1 + (uint32_t)(rng_u64(&rng) % BURST);
		bool together = rng_u64(&rng) % 3 > 0; // all at one moment?
		bool small = rng_u64(&rng) % 2 > 0;

		t += rng_u64(&rng) % 4 == 0 ? 0 : rng_u64(&rng) % (n * gap_ns);
		for (uint32_t i = 0; i < n; i++) {
			struct pkt *p = &w->pkts[0][in + i];

			if (i > 0 && !together && rng_u64(&rng) % 2 == 0)
				t += rng_u64(&rng) % gap_ns;
			p->arrival_ns = t;
			p->size_bytes = small ? 64 : (uint16_t)(64 + rng_u64(&rng) % 1455);
			p->ecn = rng_u64(&rng) & 3;
		}
		twins_put(w, in, n);
		if (!w->defers || k % 4 == 0)
			twins_agree(w, t);
		in += n;
		switch (rng_u64(&rng) % 8) {
		case 0: // not all that is due
			twins_take(w, t, 1 + (uint32_t)(rng_u64(&rng) % BURST));
			break;
		case 1: // further than the next arrival
			while (twins_take(w, t + gap_ns, BURST) == BURST)
				continue;
			break;
		case 2:
			for (int i = 0; i < 2; i++)
				link_serve(w->b[i].st, t, &w->b[i].drops);
			break;
		case 3:
			while (twins_take(w, t, BURST) == BURST)
				continue;
			if (k % 100 < 4) {
				stage_live(&w->b[0], "rate", rates[k % 4], t);
				stage_live(&w->b[1], "rate", rates[k % 4], t);
			}
			if (k % 5 == 0) {
				link_restart(w->b[0].st, STATS_RUN, t);
				link_restart(w->b[1].st, STATS_RUN, t);
			}
			break;
		default:
			while (twins_take(w, t, BURST) == BURST)
				continue;
		}
		if (!w->defers || k % 4 == 0)
			twins_agree(w, t);
	}
	twins_agree(w, t);
	uint64_t drops = link_totals(w->b[0].st, t).count.drops;
	while (twins_take(w, NEVER_NS, BURST) == BURST)
		continue;
	twins_agree(w, t);
	NEED(memcmp(link_sojourn(w->b[0].st), link_sojourn(w->b[1].st), sizeof(struct hist)) == 0);
	NEED(w->tel[0].written == w->tel[1].written && (w->tel[0].written > in) == traced);
	NEED(memcmp(w->record[0], w->record[1], w->tel[0].written * sizeof(w->record[0][0])) == 0);
	twins_close(w);
	return drops;
}

TEST(a_burst_is_its_packets_one_by_one) {
	static const struct {
		const char *text;
		uint64_t gap_ns;
	} cases[] = {
		{"{link: {rate: 3.7Gbit, queue: {fifo: {limit: 40kB}}}}", 2000},
		{"{link: {rate: 3.7Gbit, queue: {fifo: {limit: 50us}}}}", 2000},
		{"{link: {rate: 3.7Gbit, queue: {fifo: {limit: 50pkt}}}}", 2000},
		{"{link: {rate: 3.7Gbit, queue: {fifo: {limit: 40kB, drop: head}}}}", 2000},
		{"{link: {rate: 3.7Gbit, queue: {codel: {limit: 50pkt, target: 5us,"
		 " interval: 100us}}}}",
			2000},
		{"{link: {rate: 3.7Gbit, queue: {codel: {limit: 40kB, target: 5us, interval: 100us,"
		 " law: linux, ecn: yes, ce_threshold: 60us}}}}",
			2000},
		// Nearly all of a burst is dropped.
		{"{link: {rate: 900Mbit, queue: {fifo: {limit: 3pkt}}}}", 1000},
		{"{link: {rate: 900Mbit, queue: {codel: {limit: 5kB, target: 5us}}}}", 1000},
		// A small frame takes less than a nanosecond.
		{"{link: {rate: 1Tbit, overhead: 0B, queue: {fifo: {limit: 30pkt}}}}", 3},
	};
	static struct twins w;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_uint_gt(twins_play(&w, cases[i].text, cases[i].gap_ns, false), 100);
		ck_assert_uint_gt(twins_play(&w, cases[i].text, cases[i].gap_ns, true), 100);
	}
}

TEST(a_busy_link_takes_packets_without_being_served) {
	static const char *const texts[] = {
		"{link: {rate: 900Mbit, queue: {fifo: {limit: 400kB}}}}",
		"{link: {rate: 900Mbit, queue: {fifo: {limit: 90pkt, drop: head}}}}",
		"{link: {rate: 2Gbit, framing: ip, queue: {fifo: {limit: 3ms}}}}",
	};
	static struct twins w;

	w.defers = true;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		w.deferred = 0;
		twins_play(&w, texts[i], 4000, false);
		ck_assert_uint_gt(w.deferred, 1000);
		ck_assert_uint_lt(w.deferred, BURSTS * BURST / 2);
		w.deferred = 0;
		twins_play(&w, texts[i], 4000, true);
		ck_assert_uint_eq(w.deferred, 0); // each packet is recorded in order
	}
	// What a discipline does when a packet leaves may change what the next ones find.
	twins_play(&w, "{link: {rate: 900Mbit, queue: {codel: {limit: 90pkt, target: 5us}}}}", 2000,
		false);
	ck_assert_uint_eq(w.deferred, 0);
}
