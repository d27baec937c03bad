// SPDX-License-Identifier: BSD-3-Clause
// Delays by the time of arrival, what leaves together where one falls, and what is refused.
#include "switch_test.h"

static uint64_t departure_ns(struct stage_bench *b, uint64_t t_ns) {
	struct pkt one = {.size_bytes = 1000};

	stage_put(b, &one, t_ns);
	NEED(stage_take(b, t_ns + NS_PER_S) == &one);
	return one.arrival_ns;
}

// Of a period of 30 ms each delay has 10 ms.
TEST(each_part_of_the_period_has_its_delay) {
	struct stage_bench b = {.env = {.name = "forward.periodic_delay"}};

	ck_assert_int_eq(
		stage_open(&b, "{periodic_delay: {period: 30ms, delays: 1ms 20ms 0ms}}"), 0);
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 0);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 20 * MS);
	ck_assert_uint_eq(departure_ns(&b, 0), 1 * MS);
	ck_assert_uint_eq(departure_ns(&b, 10 * MS - 1), 11 * MS - 1);
	ck_assert_uint_eq(departure_ns(&b, 10 * MS), 30 * MS);
	ck_assert_uint_eq(departure_ns(&b, 40 * MS), 60 * MS);
	ck_assert_uint_eq(departure_ns(&b, 300 * MS + 29 * MS), 329 * MS);
}

TEST(from_shifts_the_pattern) {
	struct stage_bench b = {.env = {.name = "forward.periodic_delay"}};

	ck_assert_int_eq(
		stage_open(&b, "{periodic_delay: {period: 10ms, from: 93ms, delays: 4ms 0ms}}"), 0);
	ck_assert_uint_eq(departure_ns(&b, 2 * MS), 2 * MS); // before from, too
	ck_assert_uint_eq(departure_ns(&b, 3 * MS), 7 * MS);
	ck_assert_uint_eq(departure_ns(&b, 98 * MS - 1), 102 * MS - 1);
	ck_assert_uint_eq(departure_ns(&b, 108 * MS), 108 * MS);
}

// A packet each millisecond; the delay falls from 20 ms to 0 at 50 ms. The last one before it
// leaves at 49 + 20 ms, and with it all that arrive until then.
TEST(where_a_delay_falls_packets_leave_together) {
	struct stage_bench b = {.env = {.name = "forward.periodic_delay"}};
	enum { N = 100 };
	struct pkt *pkts = pkts_new(N, 1000);
	uint32_t together = 0;

	ck_assert_int_eq(stage_open(&b, "{periodic_delay: {period: 100ms, delays: 20ms 0ms}}"), 0);
	for (uint64_t i = 0; i < N; i++)
		stage_put(&b, &pkts[i], i * MS);
	for (uint64_t i = 0; i < N; i++) {
		NEED(stage_take(&b, NS_PER_S) == &pkts[i]);
		together += pkts[i].arrival_ns == 69 * MS;
	}
	ck_assert_uint_eq(together, 21);
	ck_assert_uint_eq(pkts[70].arrival_ns, 70 * MS);
}

TEST(what_is_no_list_of_delays_is_refused) {
	static const char *const texts[] = {"{periodic_delay: {period: 1ms}}",
		"{periodic_delay: {period: 1ms, delays: 5}}",
		"{periodic_delay: {period: 1ms, delays: 1ms 61s}}",
		"{periodic_delay: {period: 1ms, delays: ''}}",
		"{periodic_delay: {period: 1ms, delays: [1ms]}}",
		"{periodic_delay: {period: 0ms, delays: 1ms}}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct stage_bench b = {.env = {.name = "forward.periodic_delay"}};

		ck_assert_msg(stage_open(&b, texts[i]) < 0, "%s", texts[i]);
		stage_close(&b);
	}
}
