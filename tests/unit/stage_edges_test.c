// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

static void open_edges(struct stage_bench *b, const char *text) {
	ck_assert_msg(stage_open(b, text) == 0, "%s", b->err.msg);
}

static void put(struct stage_bench *b, struct pkt *p, uint32_t flow, uint64_t arrival_ns) {
	p->flow_id = flow;
	stage_put(b, p, arrival_ns);
}

// Two edges at 1 ns per byte, 1000 B on the wire each. By hand:
//
//	edge 0: packets 0 (0-1000), 2 (1000-2000), 4 (2000-3000)
//	edge 1: packets 1 (0-1000), 3 (1000-2000); idle; 5 (2500-3500)
TEST(edges_serialise_their_own_flows_only) {
	static const struct {
		uint32_t flow;
		uint64_t in_ns, out_ns;
	} want[] = {{0, 0, 1000}, {1, 0, 1000}, {2, 0, 2000}, {7, 300, 2000}, {0, 1999, 3000},
		{1, 2500, 3500}};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(6, 980);

	open_edges(&b, "{edges: {count: 2, rate: 8Gbit}}");
	ck_assert(b.ops->delay == NULL); // no lookahead
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	for (int i = 0; i < 6; i++)
		put(&b, &pkts[i], want[i].flow, want[i].in_ns);
	double seen[AQM_OBSERVED] = {0};
	b.ops->observer->observe(b.st, seen);
	ck_assert_double_eq(seen[0], 2); // at 2500 four have departed
	ck_assert_double_eq(seen[1], 2 * 980);
	for (int i = 0; i < 6; i++) { // ties leave in order of arrival
		ck_assert_uint_eq(b.ops->next_ns(b.st), want[i].out_ns);
		ck_assert_ptr_null(stage_take(&b, want[i].out_ns - 1));
		ck_assert_ptr_eq(stage_take(&b, want[i].out_ns), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, want[i].out_ns);
	}
	ck_assert_ptr_null(stage_take(&b, NEVER_NS));
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	ck_assert_double_eq(b.ops->capacity->busy(b.st, 2500), 1); // edge 0
	ck_assert_double_eq(b.ops->capacity->busy(b.st, 4000), 0.75); // each of them
}

TEST(a_short_frame_overtakes_a_long_one_of_another_edge) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 980);
	static const uint32_t order[] = {1, 0, 2};
	static const uint64_t out_ns[] = {400, 1000, 1100};

	open_edges(&b, "{edges: {count: 3, rate: 8Gbit}}");
	pkts[1].size_bytes = 80; // 100 B on the wire
	pkts[2].size_bytes = 80;
	put(&b, &pkts[0], 0, 0);
	put(&b, &pkts[1], 1, 300);
	put(&b, &pkts[2], 3, 350); // behind the long one
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[order[i]]);
		ck_assert_uint_eq(pkts[order[i]].arrival_ns, out_ns[i]);
	}
}

// 1514 B + FCS is 1538 B on the wire: 492.16 ns at 25 Gbit/s. Each edge carries its own fraction.
TEST(twenty_five_gigabit_to_the_nanosecond) {
	static const uint64_t out_ns[] = {492, 984, 1476, 1968, 2460, 2952, 3445};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(9, 1518);

	open_edges(&b, "{edges: {count: 10, rate: 25Gbit}}");
	for (int i = 0; i < 7; i++)
		put(&b, &pkts[i], 13, 0);
	put(&b, &pkts[7], 4, 3000);
	for (int i = 0; i < 7; i++) {
		ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, out_ns[i]);
	}
	ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[7]);
	ck_assert_uint_eq(pkts[7].arrival_ns, 3492);
	put(&b, &pkts[8], 13, 5000); // idle since 3445.12: a whole nanosecond
	ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[8]);
	ck_assert_uint_eq(pkts[8].arrival_ns, 5492);
}

// At 500 half of packet 0 is sent; the rest, packet 1 behind it and packet 2 go at 2 ns per byte.
TEST(a_new_rate_applies_to_the_unsent_part_and_to_what_waits) {
	static const uint64_t out_ns[] = {1500, 3500, 5500};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 980);

	open_edges(&b, "{edges: {count: 1, rate: 8Gbit}}");
	put(&b, &pkts[0], 0, 0);
	put(&b, &pkts[1], 0, 0);
	stage_live(&b, "rate", "4Gbit", 500);
	put(&b, &pkts[2], 0, 600);
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, out_ns[i]);
	}
}

// Two frames may wait behind the one on the wire, whichever unit says so: bytes are those of
// frames, a time counts what is on the wire.
TEST(each_edge_has_its_own_limit) {
	static const char *const limits[] = {"2pkt", "1960B", "2us"};
	static const struct aqm_limit all[] = {{.bytes = UINT64_MAX, .pkts = 4},
		{.bytes = 3920, .pkts = UINT64_MAX}, {.bytes = 4000, .pkts = UINT64_MAX}};
	static const struct {
		uint32_t flow;
		uint64_t in_ns;
		bool kept;
	} want[] = {{0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 999, false}, {1, 999, true},
		{0, 1000, true}, {0, 1500, false}};

	for (int k = 0; k < 3; k++) {
		struct stage_bench b = {0};
		struct pkt *pkts = pkts_new(7, 980); // 1000 ns each
		char text[64];

		snprintf(text, sizeof(text), "{edges: {count: 2, rate: 8Gbit, limit: %s}}",
			limits[k]);
		open_edges(&b, text);
		for (uint32_t i = 0, dropped = 0; i < 7; i++) {
			put(&b, &pkts[i], want[i].flow, want[i].in_ns);
			dropped += !want[i].kept;
			ck_assert_uint_eq(b.drops.count, dropped);
		}
		ck_assert_uint_eq(pkts[3].drop_reason, DROP_QUEUE_FULL);
		ck_assert_uint_eq(b.ops->capacity->limit(b.st).pkts, all[k].pkts);
		ck_assert_uint_eq(b.ops->capacity->limit(b.st).bytes, all[k].bytes);
		ck_assert_uint_eq(b.ops->capacity->rate_bps(b.st), 16000000000);
		for (int i = 0; i < 5; i++)
			ck_assert_ptr_nonnull(stage_take(&b, NEVER_NS));
		ck_assert_ptr_null(stage_take(&b, NEVER_NS));
		stage_close(&b);
		test_close(pkts);
	}
}

#define MANY 100000
#define CHANGE_EVERY 7001

// The rate changes now and then, before the i-th packet.
static void change(struct stage_bench *b, uint32_t i, uint64_t t_ns) {
	static const char *const rates[] = {"3Gbit", "100Gbit", "25Gbit"};

	if (i % CHANGE_EVERY != CHANGE_EVERY - 1)
		return;
	if (b->ops == &stage_link)
		link_serve(b->st, t_ns, &b->drops);
	stage_live(b, "rate", rates[i / CHANGE_EVERY % 3], t_ns);
}

// The i-th packet of a load that is the same each time it is made: bursts of one flow, mostly.
static uint64_t load_next(struct rng *rng, struct pkt *p, uint32_t i, uint64_t t_ns) {
	uint64_t draw = rng_u64(rng);

	*p = (struct pkt){.id = i,
		.flow_id = i == 0 || draw % 4 == 0 ? (uint32_t)(draw >> 32) : p[-1].flow_id,
		.size_bytes = draw % 3 == 0 ? 64 : 1518,
		.arrival_ns = t_ns + (draw % 5 == 0 ? (draw >> 8) % 4000 : 0)};
	return p->arrival_ns;
}

// Oracle: as many link stages, their departures sorted.
static void oracle(struct want *want, struct pkt *pkts, uint32_t count, const char *link) {
	uint32_t n = 0;

	for (uint32_t k = 0; k < count; k++) {
		struct stage_bench b = {0};
		struct rng rng;
		uint64_t t_ns = 0;

		rng_init(&rng, count, "edges");
		ck_assert_int_eq(stage_open(&b, link), 0);
		for (uint32_t i = 0; i < MANY; i++) {
			t_ns = load_next(&rng, &pkts[i], i, t_ns);
			change(&b, i, t_ns);
			if (pkts[i].flow_id % count != k)
				continue;
			want[i].in_ns = t_ns;
			stage_put(&b, &pkts[i], t_ns);
		}
		for (struct pkt *p; (p = stage_take(&b, NEVER_NS)) != NULL; n++) {
			want[p->id].out_ns = p->arrival_ns;
			want[p->id].id = p->id;
		}
		NEED(b.drops.count == 0);
		stage_close(&b);
	}
	ck_assert_uint_eq(n, MANY);
	qsort(want, MANY, sizeof(want[0]), want_order);
}

// Taken at each arrival, now and then, or at the end: the same.
static void check_against(const struct want *want, struct pkt *pkts, uint32_t count, int every) {
	struct stage_bench b = {0};
	char text[96];
	struct rng rng;
	uint64_t t_ns = 0;
	uint32_t next = 0;

	snprintf(text, sizeof(text),
		"{edges: {count: %u, rate: 25Gbit, overhead: 20B, limit: 100000pkt}}", count);
	open_edges(&b, text);
	rng_init(&rng, count, "edges");
	for (uint32_t i = 0; i < MANY; i++) {
		t_ns = load_next(&rng, &pkts[i], i, t_ns);
		change(&b, i, t_ns);
		stage_put(&b, &pkts[i], t_ns);
		if (every == 0 || i % (uint32_t)every != 0)
			continue;
		for (struct pkt *p; (p = stage_take(&b, t_ns)) != NULL; next++)
			NEED(p->id == want[next].id && p->arrival_ns == want[next].out_ns);
		NEED(b.ops->next_ns(b.st) > t_ns);
	}
	for (struct pkt *p; (p = stage_take(&b, NEVER_NS)) != NULL; next++)
		NEED(p->id == want[next].id && p->arrival_ns == want[next].out_ns);
	ck_assert_uint_eq(next, MANY);
	ck_assert_uint_eq(b.drops.count, 0);
	ck_assert_uint_eq(b.ops->backlog(b.st).pkts, 0);
	ck_assert_uint_eq(b.ops->backlog(b.st).bytes, 0);
	stage_close(&b);
}

TEST(edges_are_links_side_by_side) {
	static struct want want[MANY];
	struct pkt *pkts = pkts_new(MANY, 0);
	static const uint32_t counts[] = {1, 2, 10, 33};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		oracle(want, pkts, counts[i],
			"{link: {rate: 25Gbit, overhead: 20B, queue: {fifo: {limit: 100000pkt}}}}");
		check_against(want, pkts, counts[i], 1);
		check_against(want, pkts, counts[i], 97);
		check_against(want, pkts, counts[i], 0);
	}
}

TEST(bad_parameters) {
	static const struct {
		const char *text, *sentence;
	} bad[] = {
		{"{edges: {count: 0, rate: 1Gbit}}", "test:1:17: count: 0 is not in [1, 1024]"},
		{"{edges: {count: 1025, rate: 1Gbit}}",
			"test:1:17: count: 1025 is not in [1, 1024]"},
		{"{edges: {count: 2, rate: 2Tbit}}",
			"test:1:26: rate: 2Tbit is not in [1kbit, 1Tbit]"},
		{"{edges: {count: 2, rate: 1Gbit, limit: 100B}}",
			"limit: no full-sized frame fits: it is 1518 B, the limit 100 B"},
		{"{edges: {rate: 1Gbit}}", "test:1:9: edges: count is required"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct stage_bench b = {0};

		ck_assert_int_lt(stage_open(&b, bad[i].text), 0);
		ck_assert_str_eq(b.err.msg, bad[i].sentence);
		stage_close(&b);
	}
}
