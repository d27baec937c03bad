// SPDX-License-Identifier: BSD-3-Clause
// Handovers at their times: outage, losses and delays on both sides of each.
#include "switch_test.h"

#define SLOTS 10000

static void open_at(struct stage_bench *b, const char *params) {
	char text[256];

	b->env.name = "forward.leo_handover";
	b->env.run_seed = 1;
	snprintf(text, sizeof(text), "{leo_handover: {%s}}", params);
	ck_assert_msg(stage_open(b, text) == 0, "%s", b->err.msg);
}

// A delay of 20 ms; from 500 ms on every second 50 ms of outage, then 100 ms in which all is lost.
TEST(an_outage_holds_packets_and_losses_follow) {
	static const struct {
		uint64_t in_ns, out_ns; // 0: lost
	} cases[] = {
		{0, 20 * MS},
		{500 * MS - 1, 520 * MS - 1},
		{500 * MS, 570 * MS},
		{550 * MS - 1, 570 * MS},
		{550 * MS, 0},
		{650 * MS - 1, 0},
		{650 * MS, 670 * MS},
		{1500 * MS - 1, 1520 * MS - 1},
		{1500 * MS, 1570 * MS},
		{7525 * MS, 7570 * MS},
	};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(10, 1000);

	open_at(&b,
		"period: 1s, offset: 500ms, delay: 20ms, spread: 0ms, outage: 50ms, loss: 100%, "
		"settling: 100ms");
	ck_assert_uint_eq(b.ops->delay->min_ns(b.st), 20 * MS);
	ck_assert_uint_eq(b.ops->delay->max_ns(b.st), 70 * MS);
	ck_assert(!b.ops->needs->random(b.st));
	for (int i = 0; i < 10; i++) {
		stage_put(&b, &pkts[i], cases[i].in_ns);
		ck_assert_uint_eq(pkts[i].drop_reason == DROP_LOSS, cases[i].out_ns == 0);
		if (cases[i].out_ns == 0)
			continue;
		ck_assert_uint_eq(b.ops->next_ns(b.st), cases[i].out_ns);
		ck_assert_ptr_null(stage_take(&b, cases[i].out_ns - 1));
		ck_assert_ptr_eq(stage_take(&b, cases[i].out_ns), &pkts[i]);
	}
	ck_assert(b.ops->needs->random(b.st));
}

// A packet in the middle of each slot of 100 ms: its delay.
static void delays_of(struct stage_bench *b, uint64_t *delay_ns) {
	for (uint64_t i = 0; i < SLOTS; i++) {
		struct pkt one = {.size_bytes = 1000};
		uint64_t t_ns = i * 100 * MS + 50 * MS;

		stage_put(b, &one, t_ns);
		NEED(stage_take(b, t_ns + 45 * MS) == &one);
		delay_ns[i] = one.arrival_ns - t_ns;
	}
}

// Uniform between 10 and 40 ms: mean and variance within five standard deviations. Traffic and its
// losses leave the delays as they are.
TEST(each_handover_draws_a_delay) {
	static uint64_t one[SLOTS], two[SLOTS];
	struct stage_bench b = {0}, lossy = {0};
	double mean = 0, square = 0;

	open_at(&b,
		"period: 100ms, offset: 0ms, delay: 10ms, spread: 30ms, outage: 0ms, loss: 0%, "
		"settling: 0ms");
	delays_of(&b, one);
	open_at(&lossy,
		"period: 100ms, offset: 0ms, delay: 10ms, spread: 30ms, outage: 0ms, loss: 50%, "
		"settling: 40ms");
	for (int i = 0; i < 1000; i++) {
		struct pkt p = {.size_bytes = 1000};

		stage_put(&lossy, &p, i * 10 * US);
		stage_take(&lossy, i * 10 * US + 45 * MS);
	}
	ck_assert_double_eq_tol(lossy.drops.count, 500, 5 * sqrt(250));
	delays_of(&lossy, two);
	for (int i = 0; i < SLOTS; i++) {
		double ms = (double)one[i] / 1e6;

		NEED(one[i] == two[i] && ms >= 10 && ms <= 40);
		mean += ms / SLOTS;
		square += ms * ms / SLOTS;
	}
	ck_assert_double_eq_tol(mean, 25, 5 * 30 / sqrt(12.0 * SLOTS));
	ck_assert_double_eq_tol(square - mean * mean, 75, 5 * 75 * sqrt(0.8 / SLOTS));
}

// A packet just before a handover to a shorter delay holds up those after it.
TEST(none_overtakes_another) {
	struct stage_bench b = {0};
	uint64_t before_ns = 0, ties = 0;

	open_at(&b,
		"period: 100ms, offset: 0ms, delay: 10ms, spread: 500ms, outage: 0ms, loss: 0%, "
		"settling: 0ms");
	struct pkt *pkts = pkts_new(10000, 1000);
	for (uint32_t i = 0; i < 10000; i++)
		stage_put(&b, &pkts[i], i * MS);
	for (uint32_t i = 0; i < 10000; i++) {
		NEED(stage_take(&b, 100 * NS_PER_S) == &pkts[i] && pkts[i].arrival_ns >= before_ns);
		ties += pkts[i].arrival_ns == before_ns;
		before_ns = pkts[i].arrival_ns;
	}
	ck_assert_uint_gt(ties, 100);
}

TEST(an_outage_and_what_follows_fit_into_a_period) {
	struct stage_bench b = {0};

	ck_assert_int_lt(stage_open(&b, "{leo_handover: {period: 1s, outage: 900ms}}"), 0);
	ck_assert_str_eq(b.err.msg, "outage, settling: together longer than the period");
}
