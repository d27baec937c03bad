// SPDX-License-Identifier: BSD-3-Clause
// The loss models against theory, each over a million packets: the rate, the lengths of bursts and
// the gaps between them, and short patterns.
//
// An oracle gives the chances of patterns: a chain of hidden states, each with a chance of loss.
// Patterns are taken so far apart that they are independent.
#include "statistics.h"
#include "switch_test.h"

#define PKTS 1000000
#define PATTERN 5 // packets
#define APART 200 // packets from one pattern to the next

static uint8_t gone[PKTS]; // which packets were lost

// One packet after the other passes a stage; `gap_ns` apart.
static void lose(const char *text, uint32_t n, uint64_t gap_ns) {
	struct stage_bench b = {.env = {.name = "forward.loss", .run_seed = 1}};

	ck_assert_msg(stage_open(&b, text) == 0, "%s", b.err.msg);
	for (uint32_t i = 0; i < n; i++) {
		struct pkt one = {.size_bytes = 1000, .arrival_ns = i * gap_ns}, *p = &one;
		struct pkt *left = NULL;

		b.ops->push(b.st, &p, 1, &b.drops);
		b.ops->pop(b.st, i * gap_ns, &left, 1, &b.drops);
		gone[i] = left == NULL;
		NEED(gone[i] == (b.drops.count == 1) && one.arrival_ns == i * gap_ns);
		if (gone[i])
			NEED(pkt_list_pop(&b.drops)->drop_reason == DROP_LOSS);
	}
	stage_close(&b);
}

struct chain {
	int states;
	double move[4][4]; // from, to
	double lost[4];
	double fraction[4]; // in the long run
};

// One step of the chain from `from`.
static void chain_step(const struct chain *c, const double *from, double *to) {
	for (int k = 0; k < c->states; k++) {
		to[k] = 0;
		for (int i = 0; i < c->states; i++)
			to[k] += from[i] * c->move[i][k];
	}
}

static void chain_settle(struct chain *c) {
	double to[4] = {0};

	c->fraction[0] = 1;
	for (int i = 0; i < 100000; i++) {
		chain_step(c, c->fraction, to);
		memcpy(c->fraction, to, sizeof(to));
	}
}

static double chain_rate(const struct chain *c) {
	double rate = 0;

	for (int i = 0; i < c->states; i++)
		rate += c->fraction[i] * c->lost[i];
	return rate;
}

// The chance of a pattern of losses: bit 0 is the first packet.
static double chain_pattern(const struct chain *c, uint32_t pattern, int packets) {
	double at[4], to[4] = {0}, sum = 0;

	memcpy(at, c->fraction, sizeof(at));
	for (int k = 0; k < packets; k++) {
		for (int i = 0; i < c->states; i++)
			at[i] *= (pattern >> k & 1) != 0 ? c->lost[i] : 1 - c->lost[i];
		if (k + 1 == packets)
			break;
		chain_step(c, at, to);
		memcpy(at, to, sizeof(to));
	}
	for (int i = 0; i < c->states; i++)
		sum += at[i];
	return sum;
}

// Patterns of several packets, and the rate over all of them: its variance is the sum of all
// covariances.
static void as_the_chain(struct chain *c) {
	uint64_t count[1 << PATTERN] = {0}, losses = 0;
	double chance[1 << PATTERN], at[4], to[4] = {0};

	chain_settle(c);
	for (uint32_t i = 0; i + PATTERN <= PKTS; i += APART) {
		uint32_t pattern = 0;

		for (uint32_t k = 0; k < PATTERN; k++)
			pattern |= (uint32_t)gone[i + k] << k;
		count[pattern]++;
	}
	for (uint32_t i = 0; i < 1 << PATTERN; i++)
		chance[i] = chain_pattern(c, i, PATTERN);
	ck_assert_double_gt(bins_p(count, chance, 1 << PATTERN), P_LEAST);

	double rate = chain_rate(c), variance = rate * (1 - rate);
	for (int i = 0; i < c->states; i++)
		at[i] = c->fraction[i] * c->lost[i];
	for (int lag = 1; lag < 2000; lag++) {
		double both = 0;

		chain_step(c, at, to);
		memcpy(at, to, sizeof(to));
		for (int i = 0; i < c->states; i++)
			both += at[i] * c->lost[i];
		variance += 2 * (both - rate * rate);
	}
	for (uint32_t i = 0; i < PKTS; i++)
		losses += gone[i];
	double z = ((double)losses / PKTS - rate) / sqrt(variance / PKTS);
	ck_assert_msg(normal_p(z) > P_LEAST, "rate %g, not %g: %.1f standard deviations",
		(double)losses / PKTS, rate, z);
}

#define RUNS_MAX 4000

// Runs of packets that were lost, or that were not, have the lengths of a geometric distribution
// that ends with chance `end` after each packet.
static void runs_are_geometric(bool lost, double end) {
	static uint64_t count[RUNS_MAX];
	static double chance[RUNS_MAX];
	uint32_t length = 0;
	double left = 1;

	memset(count, 0, sizeof(count));
	for (uint32_t i = 1; i < PKTS; i++) {
		bool begins = gone[i] == lost && gone[i - 1] != lost;

		if (gone[i] == lost) {
			length = begins ? 1 : length + (length > 0);
		} else if (length > 0) {
			count[length < RUNS_MAX ? length - 1 : RUNS_MAX - 1]++;
			length = 0;
		}
	}
	for (uint32_t i = 0; i < RUNS_MAX; i++) {
		chance[i] = i + 1 < RUNS_MAX ? left * end : left;
		left -= chance[i];
	}
	ck_assert_double_gt(bins_p(count, chance, RUNS_MAX), P_LEAST);
}

TEST(bernoulli_losses_are_independent) {
	static const double rates[] = {0.0001, 0.0074, 0.3};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct chain c = {.states = 1, .move = {{1}}, .lost = {rates[i]}};
		char text[64];

		snprintf(text, sizeof(text), "{loss: {rate: %g}}", rates[i]);
		lose(text, PKTS, 1);
		as_the_chain(&c);
		runs_are_geometric(true, 1 - rates[i]);
		runs_are_geometric(false, rates[i]);
	}
}

// Gilbert: rate p / (p + r), bursts of 1 / r on average, gaps of 1 / p.
TEST(gilbert_bursts_and_gaps_are_geometric) {
	struct chain c = {
		.states = 2,
		.move = {{0.99, 0.01}, {0.25, 0.75}},
		.lost = {0, 1},
	};

	lose("{loss_gilbert: {p: 1%, r: 25%}}", PKTS, 1);
	as_the_chain(&c);
	ck_assert_double_eq_tol(chain_rate(&c), 0.01 / 0.26, 1e-12);
	runs_are_geometric(true, 0.25);
	runs_are_geometric(false, 0.01);
}

TEST(gilbert_elliott_loses_in_both_states) {
	struct chain c = {
		.states = 2,
		.move = {{0.95, 0.05}, {0.1, 0.9}},
		.lost = {0.02, 0.6},
	};

	lose("{loss_gilbert: {p: 5%, r: 10%, h: 40%, k: 98%}}", PKTS, 1);
	as_the_chain(&c);
	ck_assert_double_eq_tol(
		chain_rate(&c), 0.02 * 0.1 / 0.15 + 0.6 * 0.05 / 0.15, 1e-12); // Elliott 1963
}

// The formulas are those at the head of loss_markov.c, from Salsano and others.
TEST(four_states_are_those_of_the_general_and_intuitive_model) {
	double p13 = 0.01, p31 = 0.2, p32 = 0.3, p23 = 0.4, p14 = 0.005;
	struct chain c = {
		.states = 4,
		.move =
			{
				{1 - p13 - p14, 0, p13, p14},
				{0, 1 - p23, p23, 0},
				{p31, p32, 1 - p31 - p32, 0},
				{1, 0, 0, 0},
			},
		.lost = {0, 0, 1, 1},
	};
	double q1 = 1 / (1 + p13 / p31 + p13 * p32 / (p31 * p23) + p14);

	lose("{loss_markov: {p13: 1%, p31: 20%, p32: 30%, p23: 40%, p14: 0.5%}}", PKTS, 1);
	as_the_chain(&c);
	ck_assert_double_eq_tol(c.fraction[0], q1, 1e-12);
	ck_assert_double_eq_tol(chain_rate(&c), q1 * (p13 / p31 + p14), 1e-12);
	ck_assert_double_eq_tol(c.fraction[1], q1 * p13 / p31 * p32 / p23, 1e-12);
}

// Without p32 and p14 the four states are Gilbert's two; the first packet can be lost here, there
// it cannot.
TEST(two_of_the_four_states_are_gilberts) {
	lose("{loss_markov: {p13: 2%, p31: 50%}}", PKTS, 1);
	runs_are_geometric(true, 0.5);
	runs_are_geometric(false, 0.02);
}

TEST(chances_of_a_state_are_at_most_one) {
	static const char *const wrong[][2] = {
		{"{loss_markov: {p13: 60%, p31: 10%, p14: 50%}}",
			"p13 + p14 is 110 %: more than all leave a gap"},
		{"{loss_markov: {p13: 1%, p31: 60%, p32: 60%}}",
			"p31 + p32 is 120 %: more than all follow a loss"},
		{"{loss_periodic: {every: 3, lost: 4}}", "lost: 4 of every 3 packets are too many"},
		{"{loss_mask: {mask: 8001}}",
			"mask: '8001' is not 0x and up to 16 hexadecimal "
			"digits, such as 0x8001"},
		{"{loss_mask: {mask: 0x}}",
			"mask: '0x' is not 0x and up to 16 hexadecimal digits, such as 0x8001"},
		{"{loss_mask: {mask: 0x12345678123456781}}",
			"mask: '0x12345678123456781' is not 0x and up to 16 hexadecimal digits, "
			"such as 0x8001"},
		{"{loss_mask: {mask: 0x1g}}",
			"mask: '0x1g' is not 0x and up to 16 hexadecimal digits, such as 0x8001"},
		{"{loss_trace: {file: /nowhere/losses}}",
			"test:1:21: file: /nowhere/losses: cannot be read: "
			"No such file or directory"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct stage_bench b = {0};

		ck_assert_int_lt(stage_open(&b, wrong[i][0]), 0);
		ck_assert_str_eq(b.err.msg, wrong[i][1]);
		stage_close(&b);
	}
}

TEST(periods_lose_their_last_packets) {
	lose("{loss_periodic: {every: 10}}", 1000, 1);
	for (uint32_t i = 0; i < 1000; i++)
		NEED(gone[i] == (i % 10 == 9));
	lose("{loss_periodic: {every: 100, lost: 3, after: 7}}", PKTS, 1);
	for (uint32_t i = 0; i < PKTS; i++)
		NEED(gone[i] == (i >= 7 && (i - 7) % 100 >= 97));
	lose("{loss_periodic: {every: 1}}", 100, 1);
	lose("{loss_periodic: {every: 1, lost: 0}}", 100, 1);
	for (uint32_t i = 0; i < 100; i++)
		NEED(!gone[i]);
}

TEST(a_mask_names_the_packets) {
	uint64_t bits = 0x80000000000000a5;

	lose("{loss_mask: {mask: 0x80000000000000A5}}", 1000, 1);
	for (uint32_t i = 0; i < 1000; i++)
		NEED(gone[i] == (bits >> i % 64 & 1));
	lose("{loss_mask: {mask: 0x80000000000000a5, repeat: no}}", 1000, 1);
	for (uint32_t i = 0; i < 1000; i++)
		NEED(gone[i] == (i < 64 && (bits >> i & 1) != 0));
}

static const char *trace_file(const char *content, char text[256]) {
	static char name[64];

	snprintf(name, sizeof(name), "/tmp/weir-loss-XXXXXX");
	FILE *f = fdopen(mkstemp(name), "w");
	ck_assert_ptr_nonnull(f);
	fputs(content, f);
	fclose(f);
	snprintf(text, 256, "{loss_trace: {file: %s}}", name);
	return name;
}

TEST(a_trace_names_them_too) {
	static const uint8_t want[] = {0, 0, 1, 1, 0, 1, 0};
	char text[256], once[300];
	const char *name = trace_file("# recorded 1\n001\n 1 0 #0\n10", text);

	lose(text, 1000, 1);
	for (uint32_t i = 0; i < 1000; i++)
		NEED(gone[i] == want[i % 7]);
	snprintf(once, sizeof(once), "{loss_trace: {file: %s, repeat: no}}", name);
	lose(once, 1000, 1);
	for (uint32_t i = 0; i < 1000; i++)
		NEED(gone[i] == (i < 7 && want[i]));
	remove(name);
}

TEST(a_trace_of_something_else_is_refused) {
	static const char *const wrong[][2] = {
		{"01\n0# 2\n012", ":3: only 0, 1, blanks and comments"},
		{"# nothing\n", ":2: no packet in it"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct stage_bench b = {0};
		char text[256], want[256];
		const char *name = trace_file(wrong[i][0], text);

		ck_assert_int_lt(stage_open(&b, text), 0);
		snprintf(want, sizeof(want), "test:1:21: file: %s%s", name, wrong[i][1]);
		ck_assert_str_eq(b.err.msg, want);
		stage_close(&b);
		remove(name);
	}
}

// A long file: the memory for it grows.
TEST(a_trace_may_be_long) {
	char *content = malloc(PKTS + 1), text[256];
	struct rng rng;

	rng_init(&rng, 1, "trace");
	for (uint32_t i = 0; i < PKTS; i++)
		content[i] = (char)('0' + (rng_u64(&rng) & 1));
	content[PKTS] = '\0';
	const char *name = trace_file(content, text);
	lose(text, PKTS, 1);
	for (uint32_t i = 0; i < PKTS; i++)
		NEED(gone[i] == (content[i] == '1'));
	remove(name);
	free(content);
}

// Packets of two flows: what is a unit, with a loss of every second one.
TEST(a_burst_is_lost_or_passes_as_one) {
	static const struct {
		uint64_t at_ns;
		uint32_t flow;
		uint16_t bytes;
		uint8_t unit;
	} in[] = {
		{0, 1, 1000, 0}, // alone
		{1001, 1, 1000, 1}, // the gap is longer than 1000 ns
		{2001, 1, 1000, 1},
		{3001, 1, 1000, 1},
		{3001, 2, 1000, 2}, // another flow
		{3001, 1, 1000, 3}, // the first again
		{3001, 1, 60000, 3},
		{3001, 1, 4536, 3}, // 65536 B in all
		{3001, 1, 1, 4}, // more than that
		{4001, 1, 65535, 4},
		{4001, 1, 1, 5},
	};
	struct stage_bench b = {0};

	ck_assert_int_eq(
		stage_open(&b, "{loss_periodic: {every: 2, unit: burst, burst_gap: 1us}}"), 0);
	ck_assert(b.ops->needs->flows(b.st));
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		struct pkt one = {
			.flow_id = in[i].flow,
			.size_bytes = in[i].bytes,
			.arrival_ns = in[i].at_ns,
		};
		struct pkt *p = &one;

		b.ops->push(b.st, &p, 1, &b.drops);
		ck_assert_msg((b.drops.count > 0) == (in[i].unit % 2 == 1), "packet %zu", i);
		b.drops = (struct pkt_list){0};
		b.ops->pop(b.st, in[i].at_ns, &p, 1, &b.drops);
	}
}

// The same model with a burst as its unit: the rate of bursts is what it is for packets, and a
// burst has one fate.
TEST(every_model_can_lose_bursts) {
	static const char *const texts[] = {
		"{loss: {rate: 10%, unit: burst}}",
		"{loss_gilbert: {p: 5%, r: 45%, unit: burst}}",
		"{loss_markov: {p13: 5%, p31: 45%, unit: burst}}",
		"{loss_periodic: {every: 10, unit: burst}}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct stage_bench b = {.env = {.run_seed = 1}};
		uint32_t lost = 0;

		ck_assert_int_eq(stage_open(&b, texts[i]), 0);
		for (uint32_t k = 0; k < 100000; k++) {
			struct pkt pkts[4], *burst[4];

			for (uint32_t j = 0; j < 4; j++) {
				pkts[j] = (struct pkt){.size_bytes = 1518, .arrival_ns = k};
				burst[j] = &pkts[j];
			}
			b.ops->push(b.st, burst, 4, &b.drops);
			NEED(b.drops.count == 0 || b.drops.count == 4);
			lost += b.drops.count > 0;
			b.drops = (struct pkt_list){0};
			b.ops->pop(b.st, k, burst, 4, &b.drops);
		}
		// 10000; five standard deviations of Bernoulli are 474, of the chains 860.
		ck_assert_uint_ge(lost, 10000 - 860);
		ck_assert_uint_le(lost, 10000 + 860);
		stage_close(&b);
	}
}
