// SPDX-License-Identifier: BSD-3-Clause
#include "switch/stage/flow_delays.h"
#include "switch_test.h"

TEST(departure_is_arrival_plus_delay_to_the_nanosecond) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 1000);

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 10ms}}"), 0);
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 10 * MS);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	stage_put(&b, &pkts[0], 5);
	stage_put(&b, &pkts[1], 5);
	stage_put(&b, &pkts[2], 7);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 10 * MS + 5);
	ck_assert_ptr_null(stage_take(&b, 10 * MS + 4));
	ck_assert_ptr_eq(stage_take(&b, 10 * MS + 5), &pkts[0]);
	ck_assert_ptr_eq(stage_take(&b, 10 * MS + 5), &pkts[1]);
	ck_assert_ptr_null(stage_take(&b, 10 * MS + 5)); // no time passes
	// However late it is taken, it left at its own time.
	ck_assert_ptr_eq(stage_take(&b, 500 * MS), &pkts[2]);
	ck_assert_uint_eq(pkts[2].arrival_ns, 10 * MS + 7);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
}

TEST(classes_have_their_own_extra_delay) {
	static const uint64_t extra[] = {20 * MS, 0, 5 * MS};
	struct stage_bench b = {.env = {.class_extra_ns = extra, .class_count = 3}};
	struct pkt *pkts = pkts_new(4, 1000);
	// Packet 3 is of no known class and waits as class 0 does.
	static const uint32_t order[] = {1, 2, 0, 3};
	static const uint64_t at_ns[] = {10 * MS, 15 * MS, 30 * MS, 30 * MS};

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 10ms}}"), 0);
	for (uint16_t i = 0; i < 4; i++) {
		pkts[i].delay_class = i;
		stage_put(&b, &pkts[i], 0);
	}
	for (int i = 0; i < 4; i++) {
		ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[order[i]]);
		ck_assert_uint_eq(pkts[order[i]].arrival_ns, at_ns[i]);
	}
}

// Group 1 has the flows 4 to 6, each with a delay of its own; those of the others are alike.
TEST(flows_have_their_own_extra_delay) {
	static const uint64_t extra[] = {20 * MS, 0, 5 * MS};
	static uint64_t own[] = {1 * MS, 30 * MS, 2 * MS};
	static const struct flow_delays flows = {
		.extra_ns = own, .count = 3, .group[1] = {.first = 4, .flows = 3}};
	static const struct {
		uint16_t group;
		uint32_t flow;
		uint64_t at_ns;
	} sent[] = {
		{1, 4, 11 * MS},
		{1, 6, 12 * MS},
		{1, 7, 11 * MS}, // of no flow of the group: as one of them, (7 - 4) % 3
		{2, 4, 15 * MS},
		{0, 5, 30 * MS},
		{1, 5, 40 * MS},
	};
	static const char *const stages[] = {
		"{delay: {delay: 10ms}}", "{jitter: {mean: 10ms, spread: 0ms}}"};

	for (size_t k = 0; k < sizeof(stages) / sizeof(stages[0]); k++) {
		struct stage_bench b = {.env = {.name = "reverse.x",
						.class_extra_ns = extra,
						.class_count = 3,
						.flow_delays = &flows}};
		struct pkt *pkts = pkts_new(6, 1000);

		ck_assert_int_eq(stage_open(&b, stages[k]), 0);
		ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 40 * MS);
		ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 10 * MS);
		for (uint32_t i = 0; i < 6; i++) {
			pkts[i].delay_class = sent[i].group;
			pkts[i].flow_id = sent[i].flow;
			stage_put(&b, &pkts[i], 0);
		}
		for (uint64_t last_ns = 0, i = 0; i < 6; i++) {
			struct pkt *p = stage_take(&b, NEVER_NS);

			ck_assert_uint_eq(p->arrival_ns, sent[p - pkts].at_ns);
			ck_assert_uint_ge(p->arrival_ns, last_ns);
			last_ns = p->arrival_ns;
		}
		stage_close(&b);
		test_close(pkts);
	}
}

#define MANY 200000

// One group of a thousand flows, each with its own delay: lines begin small and grow.
TEST(many_flows_leave_in_the_order_of_a_sorted_list) {
	static const uint64_t none[1];
	static uint64_t own[1000];
	static struct want want[MANY];
	static const struct flow_delays flows = {
		.extra_ns = own, .count = 1000, .group[0] = {.first = 0, .flows = 1000}};
	struct stage_bench b = {
		.env = {.class_extra_ns = none, .class_count = 1, .flow_delays = &flows}};
	struct pkt *pkts = pkts_new(MANY, 100);
	struct rng rng;
	uint64_t t = 0;

	rng_init(&rng, 1, "flows");
	for (uint32_t i = 0; i < 1000; i++)
		own[i] = rng_u64(&rng) % 200000;
	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 1us}}"), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		t += rng_u64(&rng) % 4;
		// Half of all are of ten flows.
		pkts[i].flow_id = (uint32_t)(rng_u64(&rng) % (i % 2 == 0 ? 10 : 1000));
		want[i] = (struct want){t + 1000 + own[pkts[i].flow_id], t, i};
		stage_put(&b, &pkts[i], t);
	}
	qsort(want, MANY, sizeof(want[0]), want_order);
	for (uint32_t i = 0; i < MANY; i++) {
		struct pkt *p = stage_take(&b, NEVER_NS);

		NEED(p->id == want[i].id && p->arrival_ns == want[i].out_ns);
	}
	ck_assert_uint_eq(b.drops.count, 0);
}

TEST(many_classes_leave_in_the_order_of_a_sorted_list) {
	static uint64_t extra[300];
	static struct want want[MANY];
	struct pkt *pkts = pkts_new(MANY, 100);
	struct rng rng;
	uint32_t next = 0;

	for (uint32_t classes = 1; classes <= 300; classes = classes * 3 + 1) {
		struct stage_bench b = {.env = {.class_extra_ns = extra, .class_count = classes}};
		uint64_t t = 0;

		rng_init(&rng, classes, "delay");
		for (uint32_t i = 0; i < classes; i++)
			extra[i] = rng_u64(&rng) % 2000; // small: many ties
		ck_assert_int_eq(stage_open(&b, "{delay: {delay: 1us}}"), 0);
		for (uint32_t i = 0; i < MANY; i++) {
			t += rng_u64(&rng) % 4;
			pkts[i].delay_class = (uint16_t)(rng_u64(&rng) % classes);
			want[i] = (struct want){t + 1000 + extra[pkts[i].delay_class], t, i};
		}
		qsort(want, MANY, sizeof(want[0]), want_order);
		next = 0;
		t = 0;
		rng_init(&rng, classes, "delay");
		for (uint32_t i = 0; i < classes; i++)
			rng_u64(&rng);
		for (uint32_t i = 0; i < MANY; i++) {
			t += rng_u64(&rng) % 4;
			rng_u64(&rng);
			stage_put(&b, &pkts[i], t);
			// Taken now and then, so that lines run empty and fill again.
			if (i % 5000 < 2500)
				continue;
			for (struct pkt *p; (p = stage_take(&b, t)) != NULL; next++)
				NEED(p->id == want[next].id && p->arrival_ns == want[next].out_ns);
		}
		for (struct pkt *p; (p = stage_take(&b, NEVER_NS)) != NULL; next++)
			NEED(p->id == want[next].id && p->arrival_ns == want[next].out_ns);
		ck_assert_uint_eq(next, MANY);
		stage_close(&b);
	}
}

TEST(late_packets_are_overtaken) {
	struct stage_bench b = {.env = {.run_seed = 7}};
	struct pkt *pkts = pkts_new(MANY, 100);
	uint64_t last_ns = 0;
	uint32_t late = 0, n = 0;

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 1ms, late: 2%, late_by: 50us}}"), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		stage_put(&b, &pkts[i], i * US);
		for (struct pkt *p; (p = stage_take(&b, i * US)) != NULL; n++) {
			uint64_t took_ns = p->arrival_ns - p->id * US;

			NEED(took_ns == MS || took_ns == MS + 50 * US);
			NEED(p->arrival_ns >= last_ns);
			last_ns = p->arrival_ns;
			late += took_ns != MS;
		}
	}
	// 2 % of the 199000 or so that have left; five standard deviations are 313.
	ck_assert_uint_ge(n, MANY - 1100);
	ck_assert_uint_ge(late, n / 50 - 313);
	ck_assert_uint_le(late, n / 50 + 313);
}

// Packets come at 0, 1, 5 and 10 ms; the delay falls from 10 to 2 ms at 3 ms and to 1 ms at 5.5 ms.
TEST(a_lower_delay_does_as_on_decrease_says) {
	static const struct {
		const char *how;
		uint64_t out_us[4]; // packet by packet
		uint32_t order[4];
	} cases[] = {
		{"reorder", {10000, 11000, 7000, 11000}, {2, 0, 1, 3}},
		{"fifo", {10000, 11000, 11000, 11000}, {0, 1, 2, 3}},
		{"step", {3000, 3000, 6000, 11000}, {0, 1, 2, 3}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};
		struct pkt *pkts = pkts_new(4, 100);
		char text[80];

		snprintf(text, sizeof(text), "{delay: {delay: 10ms, on_decrease: %s}}",
			cases[i].how);
		ck_assert_int_eq(stage_open(&b, text), 0);
		stage_put(&b, &pkts[0], 0);
		stage_put(&b, &pkts[1], MS);
		stage_live(&b, "delay", "2ms", 3 * MS);
		ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 2 * MS);
		stage_conserved(&b);
		stage_put(&b, &pkts[2], 5 * MS);
		stage_live(&b, "delay", "1ms", 5 * MS + 500 * US);
		stage_put(&b, &pkts[3], 10 * MS);
		for (int k = 0; k < 4; k++) {
			const struct pkt *p = &pkts[cases[i].order[k]];

			ck_assert_ptr_eq(stage_take(&b, NEVER_NS), p);
			ck_assert_uint_eq(p->arrival_ns, cases[i].out_us[p->id] * US);
		}
		ck_assert_ptr_null(stage_take(&b, NEVER_NS));
		stage_close(&b);
		test_close(pkts);
	}
}

// One packet per 100 us, 50 -> 5 ms at 100 ms: who leaves when, and how many at most in one
// nanosecond.
TEST(a_lowered_delay_releases_no_pipe_at_once) {
	static const struct {
		const char *how;
		uint32_t together;
	} cases[] = {{"reorder", 2}, {"fifo", 451}, {"step", 451}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};
		struct pkt *pkts = pkts_new(2000, 100);
		uint64_t last_ns = 0;
		uint32_t together = 0, most = 0;
		char text[80];

		snprintf(text, sizeof(text), "{delay: {delay: 50ms, on_decrease: %s}}",
			cases[i].how);
		ck_assert_int_eq(stage_open(&b, text), 0);
		for (uint32_t k = 0; k < 2000; k++) {
			if (k == 1000)
				stage_live(&b, "delay", "5ms", 100 * MS);
			stage_put(&b, &pkts[k], k * 100 * US);
		}
		for (struct pkt *p; (p = stage_take(&b, NEVER_NS)) != NULL;) {
			NEED(p->arrival_ns >= last_ns);
			together = p->arrival_ns == last_ns ? together + 1 : 1;
			last_ns = p->arrival_ns;
			most = together > most ? together : most;
			if (i == 0)
				NEED(p->arrival_ns
					== p->id * 100 * US + (p->id < 1000 ? 50 : 5) * MS);
		}
		ck_assert_uint_eq(most, cases[i].together);
		stage_close(&b);
		test_close(pkts);
	}
}

TEST(a_full_line_drops_with_a_reason_of_its_own) {
	struct stage_bench b = {.env = {.max_pkts = 3}};
	struct pkt *pkts = pkts_new(5, 100);

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 1ms}}"), 0);
	for (int i = 0; i < 4; i++)
		stage_put(&b, &pkts[i], 0);
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_uint_eq(pkts[3].drop_reason, DROP_DELAY_FULL);
	ck_assert_ptr_eq(stage_take(&b, MS), &pkts[0]);
	stage_put(&b, &pkts[4], MS);
	ck_assert_uint_eq(b.drops.count, 1);
}

TEST(what_has_left_makes_room_though_nobody_took_it) {
	struct stage_bench b = {.env = {.max_pkts = 3}};
	struct pkt *pkts = pkts_new(7, 100);

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 10ns}}"), 0);
	for (uint32_t i = 0; i < 6; i++)
		stage_put(&b, &pkts[i], i * 4); // 0, 4, 8 | 12 (0 left at 10), 16, 20
	ck_assert_uint_eq(b.drops.count, 0);
	stage_put(&b, &pkts[6], 20); // 12, 16 and 20 are inside
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 10);
	ck_assert_ptr_null(stage_take(&b, 9));
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert_ptr_eq(stage_take(&b, 1000), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, i * 4 + 10);
	}
}

TEST(no_delay_passes_packets_in_no_time) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2, 100);

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 0}}"), 0);
	for (int i = 0; i < 2; i++) {
		stage_put(&b, &pkts[i], 42);
		ck_assert_ptr_eq(stage_take(&b, 42), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, 42);
	}
}

#define BURST 48
#define BURSTS 20000

// Two of one kind: the first gets and gives its packets in bursts, the second one by one.
struct twins {
	struct stage_bench all, one;
	struct pkt *pkts, *copy;
};

static void twins_put(struct twins *w, struct pkt *pkts, uint32_t n) {
	struct pkt *burst[BURST];

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *copy = &w->copy[&pkts[i] - w->pkts];

		burst[i] = &pkts[i];
		w->all.in_pkts++;
		w->all.in_bytes += pkts[i].size_bytes;
		*copy = pkts[i];
		stage_put(&w->one, copy, copy->arrival_ns);
	}
	w->all.ops->push(w->all.st, burst, n, &w->all.drops);
	stage_conserved(&w->all);
}

static void twins_same(const struct twins *w, const struct pkt *a, const struct pkt *b) {
	NEED(b == &w->copy[a - w->pkts]);
	NEED(a->arrival_ns == b->arrival_ns && a->drop_reason == b->drop_reason);
}

// How many of at most `max` have left.
static uint32_t twins_take(struct twins *w, uint64_t now_ns, uint32_t max) {
	struct pkt *burst[BURST];
	uint32_t n = w->all.ops->pop(w->all.st, now_ns, burst, max, &w->all.drops);

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = stage_take(&w->one, now_ns);

		NEED(p != NULL);
		twins_same(w, burst[i], p);
		w->all.out_pkts++;
		w->all.out_bytes += p->size_bytes;
	}
	NEED(n == max || stage_take(&w->one, now_ns) == NULL);
	NEED(w->all.ops->next_ns(w->all.st) == w->one.ops->next_ns(w->one.st));
	stage_conserved(&w->all);
	return n;
}

static void twins_live(struct twins *w, const char *param, const char *value, uint64_t t_ns) {
	stage_live(&w->all, param, value, t_ns);
	stage_live(&w->one, param, value, t_ns);
}

// Returns how many were dropped.
static uint32_t twins_play(struct twins *w, const struct stage_env *env, struct rng *rng) {
	static const char *const delays[] = {"10us", "100us", "0ms", "60us"};
	static const char *const lates[] = {"0%", "2%", "0%", "30%"};
	uint64_t t = 0;
	uint32_t in = 0;

	w->all = w->one = (struct stage_bench){.env = *env};
	ck_assert_int_eq(stage_open(&w->all, "{delay: {delay: 60us, late_by: 20us}}"), 0);
	ck_assert_int_eq(stage_open(&w->one, "{delay: {delay: 60us, late_by: 20us}}"), 0);
	for (uint32_t k = 0; k < BURSTS; k++) {
		uint32_t n = 1 + (uint32_t)(rng_u64(rng) % BURST);
		bool together = rng_u64(rng) % 2 == 0;

		for (uint32_t i = 0; i < n; i++) {
			struct pkt *p = &w->pkts[in + i];

			t += together ? 0 : rng_u64(rng) % 1000;
			p->arrival_ns = t;
			p->size_bytes = (uint16_t)(64 + rng_u64(rng) % 1455);
			p->delay_class = (uint16_t)(rng_u64(rng) % (env->class_count + 1));
		}
		twins_put(w, &w->pkts[in], n);
		in += n;
		if (k % 300 == 0)
			twins_live(w, "delay", delays[k / 300 % 4], t);
		if (k % 700 == 0)
			twins_live(w, "late", lates[k / 700 % 4], t);
		t += rng_u64(rng) % 20000;
		if (rng_u64(rng) % 4 == 0) // not all that is due
			twins_take(w, t, 1 + (uint32_t)(rng_u64(rng) % BURST));
		else if (rng_u64(rng) % 4 > 0)
			while (twins_take(w, t, BURST) == BURST)
				continue;
	}
	while (twins_take(w, NEVER_NS, BURST) == BURST)
		continue;
	uint32_t drops = w->all.drops.count;
	ck_assert_uint_eq(w->all.out_pkts + drops, in);
	for (struct pkt *a; (a = pkt_list_pop(&w->all.drops)) != NULL;)
		twins_same(w, a, pkt_list_pop(&w->one.drops));
	ck_assert_ptr_null(w->one.drops.head);
	stage_close(&w->all);
	stage_close(&w->one);
	return drops;
}

TEST(a_burst_is_its_packets_one_by_one) {
	static const uint64_t extra[] = {20 * US, 0, 5 * US, 5 * US, 90 * US};
	static const uint32_t classes[] = {0, 1, 2, 5};
	struct twins w = {.pkts = pkts_new(BURST * BURSTS, 0), .copy = pkts_new(BURST * BURSTS, 0)};
	struct rng rng;

	rng_init(&rng, 1, "bursts");
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		struct stage_env env = {.class_extra_ns = extra, .class_count = classes[i]};

		ck_assert_uint_eq(twins_play(&w, &env, &rng), 0);
		env.max_pkts = 150;
		ck_assert_uint_gt(twins_play(&w, &env, &rng), 1000);
	}
	test_close(w.pkts);
	test_close(w.copy);
}

// What comes after the step waits for nothing but its own delay.
TEST(step_leaves_no_wait_behind) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2, 100);

	ck_assert_int_eq(stage_open(&b, "{delay: {delay: 50ms, on_decrease: step}}"), 0);
	stage_put(&b, &pkts[0], 0);
	stage_live(&b, "delay", "5ms", 10 * MS);
	stage_put(&b, &pkts[1], 11 * MS);
	ck_assert_ptr_eq(stage_take(&b, 16 * MS), &pkts[0]);
	ck_assert_ptr_eq(stage_take(&b, 16 * MS), &pkts[1]);
	ck_assert_uint_eq(pkts[0].arrival_ns, 10 * MS);
	ck_assert_uint_eq(pkts[1].arrival_ns, 16 * MS);
}
