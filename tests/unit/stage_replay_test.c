// SPDX-License-Identifier: BSD-3-Clause
#include "trace_link.h"

#include <math.h>

static int open_with(struct stage_bench *b, const char *trace, const char *params) {
	return trace_link_open(b, "replay", trace, params);
}

static void open_link(struct stage_bench *b, const char *trace, const char *params) {
	ck_assert_msg(open_with(b, trace, params) == 0, "%s", b->err.msg);
}

// TheaterQ's units: us, ns, bit/s, share of 2^32 - 1, packets. 1000 B at 8 Mbit/s take 1 ms.
TEST(steps_change_rate_and_delay_and_loop) {
	// The fourth has half of it sent when the link goes down: 1 ms is left at half the rate.
	// The sixth is on the wire from 10.5 ms, half of it when the rate doubles.
	static const uint64_t want_us[] = {1500, 2500, 3500, 9200, 11200, 12500};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(6, 1004);

	open_link(&b,
		"KEEP,LATENCY,RATE,LOSS,LIMIT\n"
		"3500,500000,8000000,0,0\n"
		"# an outage\n"
		"4ms, 500us, 0, 0, 0\n"
		"4000,700000,4Mbit,0%,0\n",
		", overhead: 0B");
	for (int i = 0; i < 6; i++)
		stage_put(&b, &pkts[i], 0);
	for (int i = 0; i < 6; i++) {
		ck_assert_ptr_null(stage_take(&b, want_us[i] * US - 1));
		ck_assert_ptr_eq(stage_take(&b, want_us[i] * US), &pkts[i]);
	}
	struct stats_totals t = trace_link_totals(&b, 3 * 11500 * US);
	ck_assert_uint_eq(t.down_ns, 3 * 4 * MS);
	ck_assert_uint_eq((uint64_t)(t.capacity / NS_PER_S), 3 * (28000 + 16000));
}

// At the end the last line stays.
TEST(hold_keeps_the_last_step) {
	struct stage_bench b = {0};

	open_link(&b, "1ms,0,8Mbit,0,0\n1ms,0,1Mbit,0,0\n", ", end: hold");
	ck_assert_uint_eq((uint64_t)(trace_link_totals(&b, 1001 * MS).capacity / NS_PER_S),
		8000 + 1000 * 1000);
}

TEST(packets_never_overtake_when_the_delay_falls) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 1004);

	open_link(&b, "2ms,10ms,8Mbit,0,0\n1s,1ms,8Mbit,0,0\n", ", overhead: 0B");
	for (int i = 0; i < 3; i++)
		stage_put(&b, &pkts[i], 0);
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), MS);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 10 * MS);
	ck_assert_ptr_eq(stage_take(&b, 11 * MS), &pkts[0]);
	ck_assert_ptr_null(stage_take(&b, 12 * MS - 1));
	ck_assert_ptr_eq(stage_take(&b, 12 * MS), &pkts[1]);
	ck_assert_ptr_eq(stage_take(&b, 12 * MS), &pkts[2]); // 4 ms, but for the two before it
}

// Virtual time asks for what leaves until 11 ms before a packet of 1.5 ms comes. The step of 2 ms
// has not begun for that one: half of it is sent at the first rate.
TEST(taken_ahead_by_the_least_delay) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2, 1004);

	open_link(&b, "2ms,10ms,8Mbit,0,0\n1s,10ms,4Mbit,0,0\n", ", overhead: 0B");
	stage_put(&b, &pkts[0], 0);
	ck_assert_ptr_eq(stage_take(&b, 11 * MS), &pkts[0]);
	ck_assert_ptr_null(stage_take(&b, 11 * MS));
	stage_put(&b, &pkts[1], 1500 * US);
	ck_assert_ptr_null(stage_take(&b, 13 * MS - 1));
	ck_assert_ptr_eq(stage_take(&b, 13 * MS), &pkts[1]);
}

// A limit of 2 in the first step, 3 in the second; the frame on the wire is not in the queue.
TEST(limit_is_of_the_step) {
	static const uint32_t drops[] = {0, 0, 0, 1, 1, 2, 3, 4};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(8, 1004);

	open_link(&b, "100us,0,8Mbit,0,2\n1s,0,8Mbit,0,3\n", ", overhead: 0B");
	for (int i = 0; i < 8; i++) {
		stage_put(&b, &pkts[i], i < 4 ? 0 : 200 * US);
		ck_assert_uint_eq(b.drops.count, drops[i]);
	}
	ck_assert_uint_eq(pkts[3].drop_reason, DROP_QUEUE_FULL);
	ck_assert_uint_eq(trace_link_totals(&b, 300 * US).count.drops, 4);
	// The frame that leaves at 1 ms has made room for one that comes at that time.
	stage_put(&b, &pkts[0], MS);
	ck_assert_uint_eq(b.drops.count, 4);
}

// 10 % and none, in turn: 1000 packets a step over 100 steps; five standard deviations are 335 of
// 5000.
TEST(loss_is_of_the_step) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(100000, 104);
	uint32_t lost = 0;

	open_link(&b, "1s,0,1Gbit,429496730,0\n1s,0,1Gbit,0,0\n", "");
	ck_assert(!b.ops->needs->random(b.st));
	for (uint32_t i = 0; i < 100000; i++) {
		stage_put(&b, &pkts[i], i * MS + 1);
		lost += pkts[i].drop_reason == DROP_LOSS;
		NEED(pkts[i].drop_reason == DROP_NONE || i / 1000 % 2 == 0);
		stage_take(&b, i * MS + 1);
	}
	ck_assert(b.ops->needs->random(b.st));
	ck_assert_uint_ge(lost, 5000 - 335);
	ck_assert_uint_le(lost, 5000 + 335);
}

// The same rates by hand on a constant link: bit for bit the same departures, whether polled or
// not.
TEST(departures_are_those_of_a_link_that_is_changed) {
	static const char *const rates[] = {"10Mbit", "0", "3Mbit", "20Mbit", "1Mbit"};
	static const uint64_t keep_us[] = {7001, 3003, 2999, 1500, 8123};
	struct pkt *a = pkts_new(3000, 0), *c = pkts_new(3000, 0);
	struct stage_bench b = {0}, plain = {0};
	char trace[256] = "";
	uint64_t t_ns = 0, change_ns = 0;
	struct rng rng;
	uint32_t step = 0;

	for (int i = 0; i < 5; i++)
		snprintf(trace + strlen(trace), sizeof(trace) - strlen(trace), "%u,0,%s,0,0\n",
			(uint32_t)keep_us[i], rates[i]);
	open_link(&b, trace, ", queue: {codel: {limit: 100pkt}}");
	ck_assert_int_eq(
		stage_open(&plain, "{link: {rate: 10Mbit, queue: {codel: {limit: 100pkt}}}}"), 0);
	rng_init(&rng, 5, "arrivals");
	change_ns = keep_us[0] * US;
	for (uint32_t i = 0; i < 3000; i++) {
		t_ns += rng_u64(&rng) % (3 * MS);
		a[i].size_bytes = c[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
		for (; change_ns <= t_ns; change_ns += keep_us[step] * US) {
			plain.ops->figures->serve(plain.st, change_ns, &plain.drops);
			step = (step + 1) % 5;
			stage_live(&plain, "rate", rates[step], change_ns);
			plain.ops->figures->serve(plain.st, change_ns, &plain.drops);
		}
		stage_put(&b, &a[i], t_ns);
		stage_put(&plain, &c[i], t_ns);
		if (i % 7 == 0)
			for (struct pkt *p; (p = stage_take(&b, t_ns)) != NULL;)
				;
	}
	for (struct pkt *p; (p = stage_take(&b, t_ns)) != NULL;)
		;
	for (struct pkt *p; (p = stage_take(&plain, t_ns)) != NULL;)
		;
	ck_assert_uint_gt(b.drops.count, 0);
	ck_assert_uint_eq(b.out_pkts, plain.out_pkts);
	for (uint32_t i = 0; i < 3000; i++)
		NEED(a[i].arrival_ns == c[i].arrival_ns && a[i].drop_reason == c[i].drop_reason);

	struct stats_totals x = trace_link_totals(&b, t_ns), y = trace_link_totals(&plain, t_ns);
	ck_assert(
		x.capacity == y.capacity && x.down_ns == y.down_ns && x.sojourn_ns == y.sojourn_ns);
}

TEST(idle_link_passes_over_rounds) {
	struct stage_bench b = {0};
	uint64_t rounds = 1000000000;

	open_link(&b, "1ms,0,8Mbit,0,0\n2ms,0,0,0,0\n", "");
	struct stats_totals t = trace_link_totals(&b, rounds * 3 * MS);
	ck_assert_uint_eq((uint64_t)(t.capacity / NS_PER_S), rounds * 8000);
	ck_assert_uint_eq(t.down_ns, rounds * 2 * MS);
	const struct stats_peak *run =
		stats_run(b.ops->figures->read(b.st, rounds * 3 * MS), rounds * 3 * MS);
	ck_assert_uint_eq(run->rate_min_bps, 0);
	ck_assert_uint_eq(run->rate_max_bps, 8000000);
}

// Columns by name, in any order and unit, with units in the file or not; what is left out is 0.
TEST(columns_have_names_and_units) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 1004);

	open_link(&b,
		"# two steps of 1.5 ms and 2.5 ms\n"
		"rate_Mbps, at_ms, delay_us\n"
		"8,0,100.5\n"
		"4Mbit,1.5,2ms\n"
		"4\n",
		", overhead: 0B");
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 100500);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 2 * MS);
	for (int i = 0; i < 3; i++)
		stage_put(&b, &pkts[i], 0);
	// The second has half of it sent when the rate halves; the third is sent in a second round,
	// whose delay is less than that of the packet before it.
	static const uint64_t want_ns[] = {MS + 100500, 2500 * US + 2 * MS, 4500 * US};
	for (int i = 0; i < 3; i++) {
		ck_assert_ptr_null(stage_take(&b, want_ns[i] - 1));
		ck_assert_ptr_eq(stage_take(&b, want_ns[i]), &pkts[i]);
	}
	struct stats_totals t = trace_link_totals(&b, 4 * MS);
	ck_assert_uint_eq((uint64_t)(t.capacity / NS_PER_S), 8 * 1500 + 4 * 2500);
}

// A trace of 1 us steps, and what a packet meets on it by its definition. Rates are whole bits per
// ns; a packet takes 997 bytes of the wire.
#define STEPS 5000u
#define PKTS 20000u
struct fine {
	uint32_t rate[STEPS], delay_ns[STEPS];
	bool lost[STEPS];
};

static char *fine_trace(struct fine *f, struct rng *rng) {
	char *text = malloc(64 * (STEPS + 2)), *at = text;

	at += sprintf(at, "at_us,rate_bps,delay_ns,loss\n");
	for (uint32_t i = 0; i < STEPS; i++) {
		f->rate[i] = (uint32_t)(rng_u64(rng) % 100);
		f->delay_ns[i] = (uint32_t)(1000 + rng_u64(rng) % 1000);
		f->lost[i] = rng_u64(rng) % 10 == 0;
		at += sprintf(at, "%u,%u%s,%u,%d\n", i, f->rate[i],
			f->rate[i] > 0 ? "000000000" : "", f->delay_ns[i], f->lost[i]);
	}
	sprintf(at, "%u\n", STEPS);
	return text;
}

// The end of a packet that begins at t, and the step that it is of: a frame whose last bit leaves
// in the nanosecond in which a step ends is of that step.
static double fine_sent(const struct fine *f, double t, uint32_t *step) {
	double bits = 997 * 8;

	for (*step = (uint32_t)(t / 1000);; ++*step) {
		double rate = f->rate[*step % STEPS], edge = 1000 * ((double)*step + 1);

		if (t + bits / rate < edge + 1)
			return t + bits / rate;
		bits -= (edge - t) * rate;
		t = edge;
	}
}

// Departures within 1 ns, with the delay of the step in which a packet has been sent, and losses
// exactly those of the step in which it arrives.
TEST(each_microsecond_has_its_own_rate_delay_and_loss) {
	struct fine *f = calloc(1, sizeof(*f));
	struct pkt *pkts = pkts_new(PKTS, 1001);
	uint64_t *in_ns = calloc(PKTS, sizeof(*in_ns)), t_ns = 0;
	struct stage_bench b = {0};
	double sent = 0, out = 0;
	uint32_t step;
	struct rng rng;

	rng_init(&rng, 1, "trace");
	char *text = fine_trace(f, &rng);
	open_link(&b, text, ", overhead: 0B, queue: {fifo: {limit: 100000pkt}}");
	for (uint32_t i = 0; i < PKTS; i++) {
		in_ns[i] = t_ns += rng_u64(&rng) % 400;
		stage_put(&b, &pkts[i], t_ns);
		stage_take(&b, t_ns);
	}
	while (stage_take(&b, t_ns + NS_PER_S) != NULL)
		;
	ck_assert_uint_eq(b.out_pkts + b.drops.count, PKTS);
	for (uint32_t i = 0; i < PKTS; i++) {
		bool lost = f->lost[in_ns[i] / 1000 % STEPS];

		NEED((pkts[i].drop_reason == DROP_LOSS) == lost);
		if (lost)
			continue;
		sent = fine_sent(f, fmax(sent, (double)in_ns[i]), &step);
		out = fmax(out, sent + f->delay_ns[step % STEPS]);
		NEED(fabs((double)pkts[i].arrival_ns - out) < 1.001);
	}
	stage_close(&b);
	free(text);
	free(in_ns);
	test_close(pkts);
	free(f);
}

TEST(mistakes_have_a_line) {
	static const struct {
		const char *trace, *sentence;
	} cases[] = {
		{"1000,0,8000000,0\n", ":1: 4 columns, not the five KEEP,LATENCY,RATE,LOSS,LIMIT"},
		{"1000,0,8000000,0,0,0,0,0,0\n",
			":1: 9 columns, not the five KEEP,LATENCY,RATE,LOSS,LIMIT"},
		{"KEEP\n1ms,0,1Mbit,0,0\n0,0,8000000,0,0\n", ":3: KEEP: a step that lasts no time"},
		{"1ms,0,8Mbyte,0,0\n",
			":1: RATE: '8Mbyte' is not a number or a rate such as 10Gbit"},
		{"1ms,0,8Mbit,0,1pkt\n", ":1: LIMIT: '1pkt' is not a number"},
		{"1ms,0,500,0,0\n", ":1: RATE: not 0 and below 1kbit"},
		{"1ms,61s,8Mbit,0,0\n", ":1: LATENCY: 61s is out of range"},
		{"1ms,0,8Mbit,101%,0\n", ":1: LOSS: 101% is out of range"},
		{"1ms,0,0,0,0\n", ": no step has a rate"},
		{"KEEP,LATENCY,RATE,LOSS,LIMIT\n", ": no steps in it"},
		{"at_us,rate_bps,jitter_us\n",
			":1: 'jitter_us' is not a column: there are at_us, rate_bps, "
			"delay_us, loss, limit_pkts"},
		{"at_us,rate_bps,at_ms\n", ":1: two columns are at"},
		{"at_us,rate_bps,delay_us,loss,limit_pkts,at_ms\n", ":1: two columns are at"},
		{"at_us,delay_us\n", ":1: no column is a rate, such as rate_bps"},
		{"at_us,rate_bps\n0,8Mbit,1\n", ":2: 3 columns, and the header has 2"},
		{"at_us,rate_bps\n5,8Mbit\n", ":2: the first time is 0, and this one is not"},
		{"at_us,rate_bps\n0,8Mbit\n0,9Mbit\n",
			":3: times rise from line to line, and this one does not"},
		{"at_us,rate_bps\n0,8Mbit\n9\n10,1Mbit\n",
			":4: behind the line that has only a time"},
		{"at_us,rate_bps\n0,8Mbit\n",
			":2: the last line has only a time, that of the end, and this has more"},
		{"1,0,8000000,0,0\nat_us,rate_bps\n", ":2: a header behind the first step"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};
		char want[256];

		ck_assert_int_lt(open_with(&b, cases[i].trace, ""), 0);
		snprintf(
			want, sizeof(want), "test:1:17: file: %s%s", trace_file, cases[i].sentence);
		ck_assert_str_eq(b.err.msg, want);
		stage_close(&b);
	}
}
