// SPDX-License-Identifier: BSD-3-Clause
#include "trace_link.h"

static int open_with(struct stage_bench *b, const char *trace, const char *params) {
	return trace_link_open(b, "mahimahi_link", trace, params);
}

static void open_link(struct stage_bench *b, const char *trace, const char *params) {
	ck_assert_msg(open_with(b, trace, params) == 0, "%s", b->err.msg);
}

// A frame of n + 18 bytes carries an IP packet of n.
TEST(small_packets_share_an_opportunity_and_large_ones_wait) {
	static const uint16_t bytes[] = {500, 500, 500, 1000, 1000, 3000, 100};
	static const uint64_t out_ms[] = {2, 2, 2, 5, 7, 11, 11};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(7, 0);

	open_link(&b, "2\n5\n7\n11\n11\n20\n", "");
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	for (int i = 0; i < 7; i++) {
		pkts[i].size_bytes = (uint16_t)(bytes[i] + 18);
		stage_put(&b, &pkts[i], 0);
	}
	ck_assert_uint_eq(b.ops->next_ns(b.st), 2 * MS);
	for (int i = 0; i < 7; i++) {
		ck_assert_ptr_null(stage_take(&b, out_ms[i] * MS - 1));
		ck_assert_ptr_eq(stage_take(&b, out_ms[i] * MS), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, out_ms[i] * MS);
	}
	// Five opportunities up to then, all of them used up but the last.
	ck_assert_uint_eq(
		(uint64_t)(trace_link_totals(&b, 11 * MS).capacity / (8 * NS_PER_S)), 5 * 1500);
}

// What is unused when the queue is empty is lost; an arrival at the time of an opportunity is too
// late for it.
TEST(unused_opportunities_are_lost) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 1518);

	open_link(&b, "1\n1\n2\n4\n", "");
	stage_put(&b, &pkts[0], MS);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 2 * MS);
	ck_assert_ptr_eq(stage_take(&b, 2 * MS), &pkts[0]);
	stage_put(&b, &pkts[1], 3 * MS);
	stage_put(&b, &pkts[2], 3 * MS);
	ck_assert_ptr_eq(stage_take(&b, 4 * MS), &pkts[1]);
	ck_assert_ptr_null(stage_take(&b, 5 * MS - 1));
	ck_assert_ptr_eq(stage_take(&b, 5 * MS), &pkts[2]); // the next round
}

// Pushed together: the second comes at the time of the first opportunity, which has room for both.
TEST(burst_is_taken_at_its_packets_times) {
	struct pkt p[2] = {
		{.size_bytes = 718, .arrival_ns = MS / 2}, {.size_bytes = 718, .arrival_ns = MS}};
	struct pkt *pkts[] = {&p[0], &p[1]};
	struct stage_bench b = {0};

	open_link(&b, "1\n2\n", "");
	b.ops->push(b.st, pkts, 2, &b.drops);
	b.ops->pop(b.st, 2 * MS, pkts, 2, &b.drops);
	ck_assert_uint_eq(p[0].arrival_ns, MS);
	ck_assert_uint_eq(p[1].arrival_ns, 2 * MS);
}

TEST(hold_ends_it_and_long_gaps_count_as_down) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 1518);

	open_link(&b, "1\n500\n2000\n", ", end: hold");
	for (int i = 0; i < 3; i++)
		stage_put(&b, &pkts[i], 0);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(stage_take(&b, 2000 * MS), &pkts[i]);
	ck_assert_uint_eq(trace_link_totals(&b, 2000 * MS).down_ns, 1500 * MS);
	stage_put(&b, &pkts[0], 2500 * MS);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	ck_assert_ptr_null(stage_take(&b, NEVER_NS - 1));
	ck_assert_uint_eq(trace_link_totals(&b, 5000 * MS).down_ns, 4500 * MS);
	ck_assert_uint_eq(
		(uint64_t)(trace_link_totals(&b, 5000 * MS).capacity / (8 * NS_PER_S)), 3 * 1500);
}

// An idle link is at once a million years later, with the opportunities and outages of all the
// rounds.
TEST(idle_link_passes_over_rounds) {
	struct stage_bench b = {0};
	struct pkt p = {.size_bytes = 1518};
	uint64_t rounds = 10000000000;

	open_link(&b, "1\n3\n", ", outage: 1ms");
	struct stats_totals t = trace_link_totals(&b, rounds * 3 * MS);
	ck_assert(t.capacity == (stats_u128)rounds * 2 * 1500 * 8 * NS_PER_S);
	ck_assert_uint_eq(t.down_ns, rounds * 2 * MS);
	stage_put(&b, &p, rounds * 3 * MS + 1);
	ck_assert_uint_eq(b.ops->next_ns(b.st), rounds * 3 * MS + MS);
}

#define PKTS 5000
#define ROUNDS 40

// Bytes of each opportunity one after the other, as mahimahi's manual has it.
static void expect(const struct pkt *in, const uint64_t *arrival_ns, uint64_t *out_ns,
	const uint64_t *at_ns, uint32_t count, uint64_t bytes) {
	uint32_t head = 0, sent = 0;

	for (uint32_t i = 0; i < ROUNDS * count && head < PKTS; i++) {
		uint64_t t_ns = i / count * at_ns[count - 1] + at_ns[i % count];

		for (uint64_t left = bytes;
			left > 0 && head < PKTS && (sent > 0 || arrival_ns[head] < t_ns); left--) {
			if (++sent == in[head].size_bytes - 18u) {
				out_ns[head++] = t_ns;
				sent = 0;
			}
		}
	}
}

// Random packets and times against bytes counted one by one; polled each packet, or once at the
// end.
static void against_reference(uint64_t seed, bool poll) {
	static uint64_t arrival_ns[PKTS], want_ns[PKTS], at_ns[100];
	struct pkt *pkts = pkts_new(PKTS, 0);
	struct stage_bench b = {0};
	struct rng rng;
	char trace[2000] = "";
	uint64_t t_ns = 0, ms = 0;
	uint32_t n = 0;

	rng_init(&rng, seed, "trace");
	for (int i = 0; i < 100; i++) {
		ms += rng_u64(&rng) % 4;
		at_ns[i] = ms * MS;
		snprintf(
			trace + strlen(trace), sizeof(trace) - strlen(trace), "%u\n", (uint32_t)ms);
	}
	open_link(&b, trace, ", bytes: 777B, queue: {fifo: {limit: 100000pkt}}");
	for (uint32_t i = 0; i < PKTS; i++) {
		t_ns += rng_u64(&rng) % (2 * MS);
		arrival_ns[i] = t_ns;
		pkts[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1400);
	}
	memset(want_ns, 0xff, sizeof(want_ns));
	expect(pkts, arrival_ns, want_ns, at_ns, 100, 777);
	for (uint32_t i = 0; i < PKTS; i++) {
		stage_put(&b, &pkts[i], arrival_ns[i]);
		for (struct pkt *p; poll && (p = stage_take(&b, arrival_ns[i])) != NULL; n++)
			NEED(p == &pkts[n] && p->arrival_ns == want_ns[n]);
	}
	for (struct pkt *p; n < PKTS && want_ns[n] != UINT64_MAX; n++) {
		NEED(b.ops->next_ns(b.st) <= want_ns[n]);
		p = stage_take(&b, want_ns[n]);
		NEED(p == &pkts[n] && p->arrival_ns == want_ns[n]);
	}
	ck_assert_uint_gt(n, PKTS / 4);
	stage_close(&b);
	test_close(pkts);
}

TEST(departures_are_those_of_bytes_counted_one_by_one) {
	for (uint64_t seed = 1; seed <= 4; seed++) {
		against_reference(seed, true);
		against_reference(seed, false);
	}
}

TEST(mistakes_have_a_line) {
	static const struct {
		const char *trace, *params, *sentence;
	} cases[] = {
		{"1\n2\nx\n", "", ":3: 'x' is not a time: a line has one whole number"},
		{"1\n\n# no line\n-2\n", "", ":4: '-2' is not a time: a line has one whole number"},
		{"5\n4\n", "", ":2: times never fall, and this one does"},
		{"1 2\n", "", ":1: '1 2' is not a time: a line has one whole number"},
		{"1\n1000000001\n", "", ":2: 1000000001 is later than 10^6 s"},
		{"", "", ": no times in it"},
		{"0\n0\n", "", ": all times are 0"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};
		char want[256];

		ck_assert_int_lt(open_with(&b, cases[i].trace, cases[i].params), 0);
		snprintf(
			want, sizeof(want), "test:1:24: file: %s%s", trace_file, cases[i].sentence);
		ck_assert_str_eq(b.err.msg, want);
		stage_close(&b);
	}
	struct stage_bench b = {0};
	ck_assert_int_lt(stage_open(&b, "{mahimahi_link: {file: /nowhere/x}}"), 0);
	ck_assert_str_eq(b.err.msg,
		"test:1:24: file: /nowhere/x: cannot be read: No such file or directory");
	stage_close(&b);
	b = (struct stage_bench){0};
	ck_assert_int_lt(open_with(&b, "1\n", ", digest: 0"), 0);
	ck_assert_ptr_nonnull(strstr(b.err.msg, "it is another file; leave digest out to use it"));
}
