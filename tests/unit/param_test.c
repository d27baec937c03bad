// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/param.h"

#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const law_names[] = {"exact", "linux", NULL};
static const char *const burst_words[] = {"no", "linux", NULL};

struct all {
	uint64_t rate_bps, delay_ns, size_bytes, count, seed, open, burst;
	double ratio, gain;
	struct limit limit, some;
	int law;
	bool ecn;
	char title[PARAM_TEXT_SIZE];
};

static const struct param table[] = {
	{"rate", "1Gbit", "", UNIT_RATE_BPS, PARAM_U64(struct all, rate_bps), 1e3, 1e12},
	{"delay", "10ms", "", UNIT_TIME_NS, PARAM_U64(struct all, delay_ns), 0, 1e12},
	{"size", "1514B", "", UNIT_BYTES, PARAM_U64(struct all, size_bytes), 64, 9000},
	{"count", "1", "", UNIT_NONE, PARAM_U64(struct all, count), 1, 1e6},
	{"seed", "1", "", UNIT_NONE, PARAM_U64(struct all, seed), 0, 0x1p64},
	{"open", "1", "", UNIT_NONE, PARAM_U64(struct all, open), 1, INFINITY},
	{"burst", "linux", "", UNIT_NONE, PARAM_U64(struct all, burst), 2, 64,
		.choices = burst_words},
	{"ratio", "0.74%", "", UNIT_RATIO, PARAM_F64(struct all, ratio), 0, 1},
	{"gain", "0.5", "", UNIT_NONE, PARAM_F64(struct all, gain), 0.001, 10},
	{"limit", "1BDP", "", UNIT_NONE, PARAM_LIMIT(struct all, limit), 1, 1e12},
	{"some", "0pkt", "", UNIT_NONE, PARAM_LIMIT(struct all, some), 0, INFINITY},
	{"law", "linux", "", UNIT_NONE, PARAM_ENUM(struct all, law, law_names)},
	{"ecn", "no", "", UNIT_NONE, PARAM_BOOL(struct all, ecn)},
	{"title", "", "", UNIT_NONE, PARAM_TEXT(struct all, title)},
	PARAM_END,
};

static void set(struct all *a, const char *name, const char *text) {
	struct err err = {""};

	ck_assert_msg(param_set(param_find(table, name), a, text, &err) == 0, "%s", err.msg);
}

static void check_get(const struct all *a, const char *name, const char *want) {
	char text[PARAM_TEXT_SIZE];

	param_get(param_find(table, name), a, text, sizeof(text));
	ck_assert_str_eq(text, want);
}

TEST(finds_by_name) {
	ck_assert_ptr_eq(param_find(table, "rate"), &table[0]);
	ck_assert_ptr_null(param_find(table, "rat"));
	ck_assert_ptr_null(param_find(table, ""));
}

TEST(defaults_fill_every_field) {
	struct all a;
	struct err err = {""};

	memset(&a, 0xff, sizeof(a));
	ck_assert_msg(param_defaults(table, &a, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(a.rate_bps, 1000000000);
	ck_assert_uint_eq(a.delay_ns, 10000000);
	ck_assert_uint_eq(a.size_bytes, 1514);
	ck_assert(a.ratio == 0.0074);
	ck_assert_int_eq(a.limit.kind, LIMIT_BDP);
	ck_assert(a.limit.value == 1);
	ck_assert_int_eq(a.law, 1);
	ck_assert(!a.ecn);
	ck_assert_str_eq(a.title, "");
	for (const struct param *p = table; p->name != NULL; p++)
		check_get(&a, p->name, p->def);
}

TEST(bools) {
	static const char *const yes[] = {"yes", "true", "on", "True", "ON"};
	static const char *const no[] = {"no", "false", "off", "False", "OFF"};
	struct all a = {0};

	for (size_t i = 0; i < 5; i++) {
		set(&a, "ecn", yes[i]);
		ck_assert(a.ecn);
		check_get(&a, "ecn", "yes");
		set(&a, "ecn", no[i]);
		ck_assert(!a.ecn);
		check_get(&a, "ecn", "no");
	}
}

TEST(limits_in_every_unit) {
	static const struct {
		const char *text, *back;
		enum limit_kind kind;
		double value;
	} limits[] = {
		{"375MB", "375MB", LIMIT_BYTES, 375e6},
		{"64KiB", "64KiB", LIMIT_BYTES, 65536},
		{"1B", "1B", LIMIT_BYTES, 1},
		{"1000pkt", "1000pkt", LIMIT_PACKETS, 1000},
		{"1000 pkt", "1000pkt", LIMIT_PACKETS, 1000},
		{"1000p", "1000pkt", LIMIT_PACKETS, 1000},
		{"1e3p", "1000pkt", LIMIT_PACKETS, 1000},
		{"50ms", "50ms", LIMIT_TIME, 5e7},
		{"1BDP", "1BDP", LIMIT_BDP, 1},
		{"1.5 BDP", "1.5BDP", LIMIT_BDP, 1.5},
		{"0.001BDP", "0.001BDP", LIMIT_BDP, 0.001},
	};
	struct all a = {0};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		set(&a, "limit", limits[i].text);
		ck_assert_int_eq(a.limit.kind, limits[i].kind);
		ck_assert(a.limit.value == limits[i].value);
		check_get(&a, "limit", limits[i].back);
	}
	set(&a, "some", "0BDP");
	ck_assert(a.some.value == 0);
}

TEST(integers_keep_all_64_bits) {
	struct all a = {0};

	set(&a, "seed", "18446744073709551615");
	ck_assert_uint_eq(a.seed, UINT64_MAX);
	check_get(&a, "seed", "18446744073709551615");
	set(&a, "seed", "9007199254740993"); // 2^53 + 1, not a double
	ck_assert_uint_eq(a.seed, UINT64_C(9007199254740993));
	set(&a, "seed", "1e3");
	ck_assert_uint_eq(a.seed, 1000);
	set(&a, "delay", "33.3333us"); // rounded to a nanosecond
	ck_assert_uint_eq(a.delay_ns, 33333);
	set(&a, "delay", "1.5ns");
	ck_assert_uint_eq(a.delay_ns, 2);
}

TEST(words_stand_for_the_first_numbers) {
	struct all a = {0};

	set(&a, "burst", "linux");
	ck_assert_uint_eq(a.burst, 1);
	check_get(&a, "burst", "linux");
	set(&a, "burst", "no");
	ck_assert_uint_eq(a.burst, 0);
	check_get(&a, "burst", "no");
	set(&a, "burst", "2");
	ck_assert_uint_eq(a.burst, 2);
	check_get(&a, "burst", "2");
}

TEST(bounds_are_inclusive) {
	struct all a = {0};

	set(&a, "rate", "1kbit");
	set(&a, "rate", "1Tbit");
	set(&a, "size", "64");
	set(&a, "size", "9kB");
	set(&a, "ratio", "100%");
	set(&a, "ratio", "0");
	set(&a, "limit", "1TB");
	set(&a, "limit", "1ns");
}

static const struct {
	const char *name, *text;
	int rc;
	const char *sentence;
} bad[] = {
	{"rate", "10Gbitt", -EINVAL, "rate: '10Gbitt' is not a rate such as 10Gbit"},
	{"rate", "", -EINVAL, "rate: '' is not a rate such as 10Gbit"},
	{"rate", "500bit", -ERANGE, "rate: 500bit is not in [1kbit, 1Tbit]"},
	{"rate", "1.1Tbit", -ERANGE, "rate: 1.1Tbit is not in [1kbit, 1Tbit]"},
	{"rate", "0.1bit", -ERANGE, "rate: 0.1bit is too small to be told from 0"},
	{"delay", "10", -EINVAL, "delay: '10' is not a time such as 20ms"},
	{"delay", "1h", -ERANGE, "delay: 1h is not in [0s, 1000s]"},
	{"size", "1500b", -EINVAL, "size: '1500b' is not a size such as 375MB"},
	{"size", "63", -ERANGE, "size: 63 is not in [64B, 9kB]"},
	{"count", "2.5", -EINVAL, "count: '2.5' is not a whole number"},
	{"count", "-1", -EINVAL, "count: '-1' is not a number such as 64"},
	{"count", "0", -ERANGE, "count: 0 is not in [1, 1000000]"},
	{"seed", "18446744073709551616", -ERANGE,
		"seed: 18446744073709551616 does not fit in 64 bits"},
	{"open", "0", -ERANGE, "open: 0 is less than 1"},
	{"open", "1e30", -ERANGE, "open: 1e30 does not fit in 64 bits"},
	{"ratio", "1%%", -EINVAL, "ratio: '1%%' is not a ratio such as 0.1%"},
	{"ratio", "101%", -ERANGE, "ratio: 101% is not in [0, 1]"},
	{"gain", "11", -ERANGE, "gain: 11 is not in [0.001, 10]"},
	{"limit", "1000", -EINVAL,
		"limit: '1000' is not a limit such as 375MB, 1000pkt, 50ms or 1BDP"},
	{"limit", "10Gbit", -EINVAL,
		"limit: '10Gbit' is not a limit such as 375MB, 1000pkt, 50ms or 1BDP"},
	{"limit", "pkt", -EINVAL,
		"limit: 'pkt' is not a limit such as 375MB, 1000pkt, 50ms or 1BDP"},
	{"limit", "1.5pkt", -EINVAL, "limit: '1.5pkt' is not a whole number of packets"},
	{"limit", "0pkt", -ERANGE, "limit: 0pkt is not in [1pkt, 1000000000000pkt]"},
	{"limit", "2TB", -ERANGE, "limit: 2TB is not in [1B, 1TB]"},
	{"limit", "1h", -ERANGE, "limit: 1h is not in [1ns, 1000s]"},
	{"limit", "0BDP", -ERANGE, "limit: 0BDP is not above 0BDP"},
	{"burst", "1", -ERANGE, "burst: 1 is not in [2, 64]"},
	{"burst", "yes", -EINVAL, "burst: 'yes' is not one of no, linux, nor a number such as 64"},
	{"law", "linus", -EINVAL, "law: 'linus' is not one of exact, linux"},
	{"ecn", "maybe", -EINVAL, "ecn: 'maybe' is neither yes nor no"},
};

TEST(errors_are_one_sentence_and_change_nothing) {
	struct all a, before;
	struct err err;

	ck_assert_int_eq(param_defaults(table, &a, &err), 0);
	memcpy(&before, &a, sizeof(a));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = param_set(param_find(table, bad[i].name), &a, bad[i].text, &err);
		ck_assert_str_eq(err.msg, bad[i].sentence);
		ck_assert_int_eq(rc, bad[i].rc);
		ck_assert_mem_eq(&a, &before, sizeof(a));
	}
}

TEST(texts_have_a_size) {
	struct all a = {0};
	struct err err;
	char text[PARAM_TEXT_SIZE + 1];

	memset(text, 'x', sizeof(text));
	text[PARAM_TEXT_SIZE - 1] = '\0';
	set(&a, "title", text);
	ck_assert_str_eq(a.title, text);
	text[PARAM_TEXT_SIZE - 1] = 'x';
	text[PARAM_TEXT_SIZE] = '\0';
	ck_assert_int_eq(param_set(param_find(table, "title"), &a, text, &err), -ERANGE);
	ck_assert_str_eq(err.msg, "title: 128 bytes are more than the 127 a text may have");
}

// What param_get writes, param_set reads to the same field.
TEST(random_values_round_trip) {
	uint64_t state = 1;
	char text[64];

	for (int i = 0; i < 300; i++) {
		struct all a = {0}, b = {0};
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		a.rate_bps = 1000 + (state >> 30) % 1000000000;
		a.delay_ns = state >> 34;
		a.seed = state;
		a.ratio = (double)(state >> 11) * 0x1p-53;
		a.limit =
			(struct limit){(enum limit_kind)(state >> 62), (double)(1 + (state >> 40))};
		for (size_t k = 0; k < 3; k++) {
			static const char *const names[] = {"rate", "delay", "seed"};
			param_get(param_find(table, names[k]), &a, text, sizeof(text));
			set(&b, names[k], text);
		}
		param_get(param_find(table, "ratio"), &a, text, sizeof(text));
		set(&b, "ratio", text);
		param_get(param_find(table, "limit"), &a, text, sizeof(text));
		set(&b, "limit", text);
		ck_assert_uint_eq(a.rate_bps, b.rate_bps);
		ck_assert_uint_eq(a.delay_ns, b.delay_ns);
		ck_assert_uint_eq(a.seed, b.seed);
		ck_assert(a.ratio == b.ratio);
		ck_assert_int_eq(a.limit.kind, b.limit.kind);
		ck_assert(a.limit.value == b.limit.value);
	}
}
