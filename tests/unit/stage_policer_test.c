// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"
#include "vectors.h"

static void open_policer(struct stage_bench *b, const char *text) {
	ck_assert_msg(stage_open(b, text) == 0, "%s: %s", text, b->err.msg);
}

static double observed(const struct stage_bench *b, int i) {
	double out[AQM_OBSERVED] = {0};

	b->ops->observer->observe(b->st, out);
	return out[i];
}

// The parameters of SCENARIOS in tests/vectors/token_bucket.py.
static const char *scenario(const char *name) {
	static const struct {
		const char *name, *text;
	} all[] = {
		{"ns3_burst", "rate: 48kbit, burst: 6000B"},
		{"ns3_equal_rate", "rate: 80kbit, burst: 10kB"},
		{"ns3_low_rate", "rate: 40kbit, burst: 5kB"},
		{"srtcm", "rate: 3000.001kbit, burst: 4000B, excess: 6000B"},
		{"srtcm_without_excess", "rate: 3000.001kbit, burst: 4000B"},
		{"trtcm",
			"meter: trtcm, rate: 2Mbit, burst: 3000B, peak: 3Mbit, peak_burst: 4000B"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].name, name) == 0)
			return all[i].text;
	}
	ck_abort_msg("%s", name);
	return NULL;
}

TEST(colors_and_tokens_are_those_of_the_rfcs) {
	struct stage_bench b = {0};
	struct vectors v;
	uint64_t yellow = 0, red = 0;
	char text[256];

	vectors_open(&v, "token_bucket");
	while (vectors_next(&v)) {
		if (v.begins) {
			if (b.st != NULL)
				stage_close(&b);
			b = (struct stage_bench){0};
			yellow = red = 0;
			snprintf(text, sizeof(text), "{policer: {%s}}", scenario(v.scenario));
			open_policer(&b, text);
		}
		struct pkt p = {.size_bytes = (uint16_t)(v.column[1] + 18)};
		uint64_t t_ns = (uint64_t)v.column[0];
		int color = (int)v.column[2];

		stage_put(&b, &p, t_ns);
		yellow += color == 1;
		red += color == 2;
		ck_assert_ptr_eq(stage_take(&b, t_ns), color == 2 ? NULL : &p);
		ck_assert_uint_eq(p.drop_reason, color == 2 ? DROP_POLICED : DROP_NONE);
		ck_assert(vectors_same(observed(&b, 0), v.column[3]));
		ck_assert(vectors_same(observed(&b, 1), v.column[4]));
		ck_assert_uint_eq((uint64_t)observed(&b, 2), yellow);
		ck_assert_uint_eq((uint64_t)observed(&b, 3), red);
		b.drops = (struct pkt_list){.count = b.drops.count, .bytes = b.drops.bytes};
	}
	ck_assert_uint_eq(v.rows, 5 + 11 + 11 + 3 * 300);
}

// 1 Gbit/s against 777 Mbit/s for a second: not a byte more than rate * time + burst, and less than
// a packet below.
TEST(long_run_rate_is_exact) {
	struct stage_bench b = {0};
	struct pkt p = {.size_bytes = 1518};
	uint64_t bytes = 0;

	open_policer(&b, "{policer: {rate: 777Mbit, burst: 10kB}}");
	for (uint64_t t_ns = 0; t_ns <= NS_PER_S; t_ns += 12000) {
		stage_put(&b, &p, t_ns);
		bytes += stage_take(&b, t_ns) != NULL ? 1500 : 0;
		b.drops = (struct pkt_list){.count = b.drops.count, .bytes = b.drops.bytes};
	}
	ck_assert_uint_le(bytes, 777000000 / 8 + 10000);
	ck_assert_uint_gt(bytes, 777000000 / 8 + 10000 - 1500 - 1500);
}

// A bucket of 1500 bytes, empty after the first packet.
static uint8_t second_packet(const char *actions, uint8_t ecn, bool *out, uint64_t *marks) {
	static struct tel_packets record[8];
	struct tel packets;
	struct stage_bench b = {0};
	struct pkt p[2] = {{.size_bytes = 1518}, {.size_bytes = 1518, .ecn = ecn}};
	char text[256];

	tel_memory(&packets, record, 8);
	b.env.tel_packets = &packets;
	snprintf(text, sizeof(text), "{policer: {rate: 1Mbit, burst: 1500B, %s}}", actions);
	open_policer(&b, text);
	stage_put(&b, &p[0], 0);
	ck_assert_ptr_eq(stage_take(&b, 0), &p[0]);
	stage_put(&b, &p[1], 0);
	*out = stage_take(&b, 0) != NULL;
	*marks = 0;
	for (uint64_t i = 0; i < packets.written; i++)
		*marks += record[i].event == TEL_MARK;
	stage_close(&b);
	return p[1].ecn;
}

TEST(actions_pass_mark_or_drop) {
	static const struct {
		const char *actions;
		uint8_t ecn, ecn_after;
		bool out, marked;
	} cases[] = {
		{"red: drop", ECN_ECT0, ECN_ECT0, false, false},
		{"red: pass", ECN_ECT0, ECN_ECT0, true, false},
		{"red: mark", ECN_ECT0, ECN_CE, true, true},
		{"red: mark", ECN_ECT1, ECN_CE, true, true},
		{"red: mark", ECN_CE, ECN_CE, true, false},
		{"red: mark", ECN_NOT_ECT, ECN_NOT_ECT, false, false},
		{"excess: 1500B", ECN_ECT0, ECN_ECT0, true, false},
		{"excess: 1500B, yellow: mark", ECN_ECT0, ECN_CE, true, true},
		{"excess: 1500B, yellow: drop", ECN_ECT0, ECN_ECT0, false, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t marks;
		bool out;

		ck_assert_uint_eq(second_packet(cases[i].actions, cases[i].ecn, &out, &marks),
			cases[i].ecn_after);
		ck_assert_msg(out == cases[i].out, "%s, %u", cases[i].actions, cases[i].ecn);
		ck_assert_uint_eq(marks, cases[i].marked);
	}
}

// Tokens up to the change come at the old rate: 1 ms at 8 Mbit/s and 1 ms at 16 Mbit/s are 3000
// bytes.
TEST(rate_changes_while_running) {
	struct stage_bench b = {0};
	struct pkt p[4] = {{.size_bytes = 5018}, {.size_bytes = 3018}, {.size_bytes = 19}};

	open_policer(&b, "{policer: {rate: 8Mbit, burst: 5kB}}");
	stage_put(&b, &p[0], 0);
	stage_live(&b, "rate", "16Mbit", MS);
	stage_put(&b, &p[1], 2 * MS);
	ck_assert_double_eq(observed(&b, 0), 0);
	stage_put(&b, &p[2], 2 * MS);
	ck_assert_ptr_eq(b.drops.head, &p[2]);
}

TEST(mistakes_are_refused) {
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"{policer: {rate: 1Mbit, burst: 1499B}}",
			"burst: no packet of 1500 bytes, the largest, would ever pass"},
		{"{policer: {rate: 1Mbit, meter: trtcm}}",
			"peak: trtcm needs a peak rate that is not below the rate (RFC 2698, 2)"},
		{"{policer: {rate: 1Mbit, meter: trtcm, peak: 2Mbit, peak_burst: 100B}}",
			"peak_burst: no packet of 1500 bytes, the largest, would ever pass"},
		{"{policer: {rate: 1Mbit, meter: trtcm, peak: 2Mbit, excess: 9kB}}",
			"excess: trtcm has none; srtcm has an excess burst"},
		{"{policer: {rate: 1Mbit, peak: 2Mbit}}",
			"peak: srtcm has one rate; trtcm has a peak rate"},
		{"{policer: {rate: 1Mbit, burst: 2GB}}",
			"test:1:32: burst: 2GB is not in [0B, 1GB]"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};

		ck_assert_int_lt(stage_open(&b, cases[i].text), 0);
		ck_assert_str_eq(b.err.msg, cases[i].sentence);
		stage_close(&b);
	}
}
