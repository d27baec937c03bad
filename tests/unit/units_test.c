// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/units.h"

#include "test.h"

#include <errno.h>
#include <string.h>

struct sample {
	const char *text;
	enum unit unit;
	double value;
};

// What users write, and exactly what it means.
static const struct sample good[] = {
	{"20ms", UNIT_TIME_NS, 2e7},
	{"20 ms", UNIT_TIME_NS, 2e7},
	{"0", UNIT_TIME_NS, 0},
	{"0s", UNIT_TIME_NS, 0},
	{"0.0", UNIT_TIME_NS, 0},
	{"1ns", UNIT_TIME_NS, 1},
	{"0.1us", UNIT_TIME_NS, 100},
	{".5ms", UNIT_TIME_NS, 5e5},
	{"1.1s", UNIT_TIME_NS, 1100000000},
	{"2min", UNIT_TIME_NS, 120e9},
	{"20min", UNIT_TIME_NS, 1200e9},
	{"3h", UNIT_TIME_NS, 10800e9},
	{"0.1min", UNIT_TIME_NS, 6e9},
	{"1.5h", UNIT_TIME_NS, 5400e9},
	{"1e3us", UNIT_TIME_NS, 1e6},
	{"1E-3us", UNIT_TIME_NS, 1},
	{"1bit", UNIT_RATE_BPS, 1},
	{"0", UNIT_RATE_BPS, 0},
	{"33.3kbit", UNIT_RATE_BPS, 33300},
	{"100Mbit", UNIT_RATE_BPS, 1e8},
	{"25Gbit", UNIT_RATE_BPS, 25e9},
	{"1.2Tbit", UNIT_RATE_BPS, 1.2e12},
	{"64", UNIT_BYTES, 64},
	{"64B", UNIT_BYTES, 64},
	{"1.5kB", UNIT_BYTES, 1500},
	{"375MB", UNIT_BYTES, 375e6},
	{"2GB", UNIT_BYTES, 2e9},
	{"1TB", UNIT_BYTES, 1e12},
	{"1.5MiB", UNIT_BYTES, 1572864},
	{"64KiB", UNIT_BYTES, 65536},
	{"1GiB", UNIT_BYTES, 1073741824},
	{"1TiB", UNIT_BYTES, 1099511627776},
	{"0.74%", UNIT_RATIO, 0.0074},
	{"0.0074", UNIT_RATIO, 0.0074},
	{"0.01%", UNIT_RATIO, 1e-4},
	{"100%", UNIT_RATIO, 1},
	{"1e-4", UNIT_RATIO, 1e-4},
	{"64", UNIT_NONE, 64},
	{"0.5", UNIT_NONE, 0.5},
	{"1e6", UNIT_NONE, 1e6},
	{"2.5e+3", UNIT_NONE, 2500},
	{"007", UNIT_NONE, 7},
	{"50Mbps", UNIT_RATE_BPS, 50e6},
	{"100mbit", UNIT_RATE_BPS, 1e8},
	{"10Mb/s", UNIT_RATE_BPS, 1e7},
	{"1 Gbps", UNIT_RATE_BPS, 1e9},
	{"10M", UNIT_RATE_BPS, 1e7},
	{"10m", UNIT_RATE_BPS, 1e7},
	{"2.5Gbit/s", UNIT_RATE_BPS, 2.5e9},
	{"64Kbps", UNIT_RATE_BPS, 64e3},
	{"9600bps", UNIT_RATE_BPS, 9600},
	{"1 minute", UNIT_TIME_NS, 60e9},
	{"20m", UNIT_TIME_NS, 1200e9},
	{"30 seconds", UNIT_TIME_NS, 30e9},
	{"5sec", UNIT_TIME_NS, 5e9},
	{"20msec", UNIT_TIME_NS, 2e7},
	{"7\u00b5s", UNIT_TIME_NS, 7e3},
	{"2 hours", UNIT_TIME_NS, 7200e9},
	{"30d", UNIT_TIME_NS, 2592000e9},
	{"1.5 days", UNIT_TIME_NS, 129600e9},
	{"2w", UNIT_TIME_NS, 1209600e9},
	{"1 week", UNIT_TIME_NS, 604800e9},
	{"1h30m", UNIT_TIME_NS, 5400e9},
	{"1 hour 30 minutes", UNIT_TIME_NS, 5400e9},
	{"2m.5s", UNIT_TIME_NS, 120.5e9},
	{"1s 500ms250us", UNIT_TIME_NS, 1500250e3},
	{"1e0s1e0s", UNIT_TIME_NS, 2e9},
	{"1500 bytes", UNIT_BYTES, 1500},
	{"64KB", UNIT_BYTES, 64e3},
};

static const struct sample bad[] = {
	{"", UNIT_NONE, 0},
	{" 1", UNIT_NONE, 0},
	{"1 ", UNIT_NONE, 0},
	{"-1", UNIT_NONE, 0},
	{"+1", UNIT_NONE, 0},
	{"0x10", UNIT_NONE, 0},
	{"nan", UNIT_NONE, 0},
	{"inf", UNIT_NONE, 0},
	{"1e", UNIT_NONE, 0},
	{"1e+", UNIT_NONE, 0},
	{"e3", UNIT_NONE, 0},
	{"1e999", UNIT_NONE, 0},
	{"1e-999", UNIT_NONE, 0},
	{"1e99999999999", UNIT_NONE, 0},
	{".", UNIT_NONE, 0},
	{"1.", UNIT_NONE, 0},
	{"1..2", UNIT_NONE, 0},
	{"1.2.3", UNIT_NONE, 0},
	{"1,5", UNIT_NONE, 0},
	{"1s", UNIT_NONE, 0},
	{"10", UNIT_TIME_NS, 0},
	{"0.1", UNIT_TIME_NS, 0},
	{"10Gbit", UNIT_TIME_NS, 0},
	{"-20ms", UNIT_TIME_NS, 0},
	{"20 ms ", UNIT_TIME_NS, 0},
	{"20  ms", UNIT_TIME_NS, 0},
	{"20\tms", UNIT_TIME_NS, 0},
	{"20mS", UNIT_TIME_NS, 0},
	{"ms", UNIT_TIME_NS, 0},
	{"1h30", UNIT_TIME_NS, 0},
	{"30 1h", UNIT_TIME_NS, 0},
	{"1h 30m ", UNIT_TIME_NS, 0},
	{"1h  30m", UNIT_TIME_NS, 0},
	{"1h-30m", UNIT_TIME_NS, 0},
	{"1h30M", UNIT_TIME_NS, 0},
	{"1h1.s", UNIT_TIME_NS, 0},
	{"1e999s", UNIT_TIME_NS, 0},
	{"infs", UNIT_TIME_NS, 0},
	{"10Gbitt", UNIT_RATE_BPS, 0},
	{"10 Gbit x", UNIT_RATE_BPS, 0},
	{"10Gbit ", UNIT_RATE_BPS, 0},
	{"1Gbit500Mbit", UNIT_RATE_BPS, 0},
	{"10GBit/s", UNIT_RATE_BPS, 0},
	{"10", UNIT_RATE_BPS, 0},
	{"10MB/s", UNIT_RATE_BPS, 0}, // bytes
	{"10MBps", UNIT_RATE_BPS, 0},
	{"1Kib", UNIT_BYTES, 0},
	{"1 ", UNIT_BYTES, 0},
	{"10%%", UNIT_RATIO, 0},
	{"10 percent", UNIT_RATIO, 0},
};

TEST(reads_exactly) {
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		double v = -1;
		ck_assert_msg(unit_parse(good[i].text, good[i].unit, &v) == 0, "%s", good[i].text);
		ck_assert_msg(v == good[i].value, "%s: %.17g", good[i].text, v);
	}
}

TEST(refuses_what_is_not_wholly_a_number) {
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		double v = -1;
		ck_assert_msg(
			unit_parse(bad[i].text, bad[i].unit, &v) == -EINVAL, "'%s'", bad[i].text);
		ck_assert_msg(v == -1, "'%s' wrote %g", bad[i].text, v);
	}
}

// 64 digits are read, the 65th is refused: nothing is cut off in silence.
TEST(refuses_absurdly_long_numbers) {
	char text[80];
	double v;

	memset(text, '1', sizeof(text));
	text[64] = '\0';
	ck_assert_int_eq(unit_parse(text, UNIT_NONE, &v), 0);
	ck_assert_double_eq(v, 1.1111111111111111e63);
	text[64] = '1';
	text[65] = '\0';
	ck_assert_int_eq(unit_parse(text, UNIT_NONE, &v), -EINVAL);
}

TEST(formats_shortest_with_a_unit) {
	static const struct sample want[] = {
		{"20ms", UNIT_TIME_NS, 2e7},
		{"100ms", UNIT_TIME_NS, 1e8},
		{"0s", UNIT_TIME_NS, 0},
		{"1s", UNIT_TIME_NS, 1e9},
		{"1.5s", UNIT_TIME_NS, 1.5e9},
		{"60s", UNIT_TIME_NS, 60e9},
		{"1000s", UNIT_TIME_NS, 1e12},
		{"1h", UNIT_TIME_NS, 3600e9},
		{"123456789ns", UNIT_TIME_NS, 123456789},
		{"0bit", UNIT_RATE_BPS, 0},
		{"500bit", UNIT_RATE_BPS, 500},
		{"1kbit", UNIT_RATE_BPS, 1e3},
		{"2.5Gbit", UNIT_RATE_BPS, 2.5e9},
		{"1Tbit", UNIT_RATE_BPS, 1e12},
		{"64B", UNIT_BYTES, 64},
		{"1500B", UNIT_BYTES, 1500},
		{"1514B", UNIT_BYTES, 1514},
		{"64KiB", UNIT_BYTES, 65536},
		{"375MB", UNIT_BYTES, 375e6},
		{"0", UNIT_RATIO, 0},
		{"1", UNIT_RATIO, 1},
		{"0.74%", UNIT_RATIO, 0.0074},
		{"50%", UNIT_RATIO, 0.5},
		{"1e-9", UNIT_RATIO, 1e-9},
		{"64", UNIT_NONE, 64},
		{"0.5", UNIT_NONE, 0.5},
		{"1e300", UNIT_NONE, 1e300},
	};
	char text[32];

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		unit_format(want[i].value, want[i].unit, text, sizeof(text));
		ck_assert_str_eq(text, want[i].text);
	}
}

// A multiplicative congruential generator is random enough here.
static uint64_t draw(uint64_t *state) {
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state ^ (*state >> 29);
}

static void check_round_trip(double value) {
	char text[32];
	double back;

	for (enum unit u = UNIT_NONE; u <= UNIT_RATIO; u++) {
		unit_format(value, u, text, sizeof(text));
		ck_assert_msg(unit_parse(text, u, &back) == 0, "%.17g -> '%s'", value, text);
		ck_assert_msg(back == value, "%.17g -> '%s' -> %.17g", value, text, back);
	}
}

TEST(formatted_values_read_back_the_same) {
	uint64_t state = 1;

	for (int i = 0; i < 300; i++) {
		union {
			uint64_t bits;
			double value;
		} any = {.bits = draw(&state) & INT64_MAX};
		if (any.value <= 1.7e308) // not infinite, not NaN
			check_round_trip(any.value);
		check_round_trip((double)(draw(&state) >> (draw(&state) & 63)));
		check_round_trip((double)(draw(&state) % 100000) / 1000);
	}
	check_round_trip(5e-324);
	check_round_trip(1.7976931348623157e308);
}

TEST(examples_are_of_their_unit) {
	double v;

	for (enum unit u = UNIT_NONE; u <= UNIT_RATIO; u++) {
		const char *text = strrchr(unit_example(u), ' ') + 1;
		ck_assert_int_eq(unit_parse(text, u, &v), 0);
	}
}

TEST(large_binary_sizes_keep_all_digits) {
	double v;

	ck_assert_int_eq(unit_parse("99TiB", UNIT_BYTES, &v), 0);
	ck_assert_double_eq(v, 99.0 * 0x1p40); // 15 digits: 2 and the factor's 13
}
