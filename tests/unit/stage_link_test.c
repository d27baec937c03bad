// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

#include <math.h>

static void open_link(struct stage_bench *b, const char *text) {
	ck_assert_msg(stage_open(b, text) == 0, "%s", b->err.msg);
	ck_assert_ptr_eq(b->ops, &stage_link);
}

// 1514 B + FCS is 1538 B on the wire: 1230.4 ns at 10 Gbit/s. The fraction is carried.
TEST(ten_gigabit_ethernet_to_the_nanosecond) {
	static const uint64_t out_ns[] = {1230, 2460, 3691, 4921, 6152};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(6, 1518);

	open_link(&b, "{link: {rate: 10Gbit, queue: {fifo: {limit: 100pkt}}}}");
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	for (int i = 0; i < 5; i++)
		stage_put(&b, &pkts[i], 0);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(b.ops->next_ns(b.st), out_ns[i]);
		ck_assert_ptr_null(stage_take(&b, out_ns[i] - 1));
		ck_assert_ptr_eq(stage_take(&b, out_ns[i]), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, out_ns[i]);
		ck_assert_ptr_null(stage_take(&b, out_ns[i]));
	}
	// Idle: the next starts when it comes, at a whole nanosecond.
	stage_put(&b, &pkts[5], 10000);
	ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[5]);
	ck_assert_uint_eq(pkts[5].arrival_ns, 11230);
}

TEST(overhead_counts_on_top_of_the_frame_without_fcs) {
	static const struct {
		const char *text;
		uint64_t bytes; // of a frame of 1004 B with FCS
	} cases[] = {
		{"{link: {rate: 8Gbit, queue: {fifo: {limit: 9pkt}}}}", 1024},
		{"{link: {rate: 8Gbit, overhead: 0B, queue: {fifo: {limit: 9pkt}}}}", 1000},
		{"{link: {rate: 8Gbit, overhead: 4B, queue: {fifo: {limit: 9pkt}}}}", 1004},
	};

	for (int i = 0; i < 3; i++) {
		struct stage_bench b = {0};
		struct pkt p = {.size_bytes = 1004};

		open_link(&b, cases[i].text);
		stage_put(&b, &p, 0);
		ck_assert_uint_eq(b.ops->next_ns(b.st), cases[i].bytes); // 1 ns per byte
		stage_take(&b, NEVER_NS);
		stage_close(&b);
	}
}

// RFC 2684, 5.2 and ITU-T I.363.5: 18 bytes on top of the frame without FCS, in cells of 48 of 53
// bytes.
TEST(framing_decides_what_a_frame_takes) {
	static const struct {
		const char *framing;
		uint16_t size_bytes; // with FCS
		uint64_t bytes;
	} cases[] = {
		{"framing: ethernet", 1518, 1538},
		{"framing: none", 1518, 1514},
		{"framing: ip", 1518, 1500},
		{"framing: ip, overhead: 4B", 1518, 1504}, // what mahimahi counts
		{"framing: docsis", 1518, 1518},
		{"framing: docsis", 64, 64},
		{"framing: docsis", 50, 64},
		{"framing: atm", 1518, 32 * 53}, // 1532 bytes
		{"framing: atm", 34, 53}, // 48 bytes
		{"framing: atm", 35, 2 * 53},
		{"framing: atm, overhead: 10B", 42, 53},
		{"framing: atm, overhead: 10B", 43, 2 * 53},
		{"framing: atm, overhead: 10B", 64, 2 * 53},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};
		struct pkt p = {.size_bytes = cases[i].size_bytes};
		char text[128];

		snprintf(text, sizeof(text),
			"{link: {rate: 8Gbit, %s, queue: {fifo: {limit: 9pkt}}}}",
			cases[i].framing);
		open_link(&b, text);
		stage_put(&b, &p, 0);
		ck_assert_msg(b.ops->next_ns(b.st) == cases[i].bytes, "%s: %u bytes take %llu",
			cases[i].framing, p.size_bytes,
			(unsigned long long)b.ops->next_ns(b.st)); // 1 ns per byte
		struct stats_totals half = link_totals(b.st, cases[i].bytes / 2);
		ck_assert_double_eq_tol(half.wire_bits, 8.0 * (double)(cases[i].bytes / 2), 1e-6);
		stage_take(&b, NEVER_NS);
		ck_assert_double_eq_tol(
			link_totals(b.st, 5000).wire_bits, 8.0 * (double)cases[i].bytes, 1e-6);
		stage_close(&b);
	}
}

// 1000 B at 8 Mbit/s are 1 ms. Down from 0.25 ms to 10 ms, then at half the rate.
TEST(link_that_is_down_waits_and_recovers) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(4, 1004);

	open_link(&b, "{link: {rate: 8Mbit, overhead: 0B, queue: {fifo: {limit: 2pkt}}}}");
	stage_put(&b, &pkts[0], 0);
	b.ops->figures->serve(b.st, 250 * US, &b.drops);
	stage_live(&b, "rate", "0", 250 * US);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	ck_assert_double_eq_tol(link_totals(b.st, 5 * MS).wire_bits, 2000, 1e-6);
	stage_put(&b, &pkts[1], 5 * MS);
	stage_put(&b, &pkts[2], 6 * MS);
	stage_put(&b, &pkts[3], 7 * MS);
	ck_assert_ptr_eq(b.drops.head, &pkts[3]); // the queue's limit
	ck_assert_ptr_null(stage_take(&b, NEVER_NS - 1));
	stage_conserved(&b);
	b.ops->figures->serve(b.st, 10 * MS, &b.drops);
	stage_live(&b, "rate", "4Mbit", 10 * MS);
	b.ops->figures->serve(b.st, 10 * MS, &b.drops);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_ptr_eq(stage_take(&b, NEVER_NS - 1), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, 11500 * US + i * 2 * MS);
	}

	struct stats_totals end = link_totals(b.st, 20 * MS);
	const struct stats_peak *run = link_run(b.st, 20 * MS);

	ck_assert_uint_eq(end.down_ns, 9750 * US);
	ck_assert_uint_eq((uint64_t)(end.capacity / NS_PER_S), 2000 + 40000);
	ck_assert_uint_eq(run->rate_min_bps, 0);
	ck_assert_uint_eq(run->rate_max_bps, 8000000);
}

// The first packet is dequeued when the link comes up, and not when the next packet arrives.
TEST(link_that_is_down_from_the_start_begins_when_it_comes_up) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2, 1004);

	open_link(&b, "{link: {rate: 0, overhead: 0B, queue: {fifo: {limit: 9pkt}}}}");
	stage_put(&b, &pkts[0], MS);
	stage_put(&b, &pkts[1], 2 * MS);
	ck_assert_uint_eq(b.ops->next_ns(b.st), NEVER_NS);
	stage_live(&b, "rate", "8Mbit", 5 * MS);
	b.ops->figures->serve(b.st, 5 * MS, &b.drops);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 6 * MS);
	ck_assert_ptr_eq(stage_take(&b, 6 * MS), &pkts[0]);
	ck_assert_uint_eq(link_peak(b.st, STATS_RUN)->sojourn_ns, 4 * MS);
	ck_assert_ptr_eq(stage_take(&b, 7 * MS), &pkts[1]);
	ck_assert_uint_eq(link_totals(b.st, 7 * MS).down_ns, 5 * MS);
}

// A busy link against exact integers: packet n leaves at floor(n * bits * 1e9 / rate).
static void busy(uint64_t rate_bps, uint32_t n, uint16_t size_bytes) {
	struct stage_bench b = {0};
	struct pkt pkts[2] = {{.size_bytes = size_bytes}, {.size_bytes = size_bytes}};
	char text[100];
	uint64_t out_ns = 0;

	snprintf(text, sizeof(text), "{link: {rate: %.9fkbit, queue: {fifo: {limit: 9pkt}}}}",
		(double)rate_bps / 1e3);
	open_link(&b, text);
	ck_assert_uint_eq(stage_link.capacity->rate_bps(b.st), rate_bps);
	struct pkt *one = &pkts[0], *p = NULL;

	b.ops->push(b.st, &one, 1, &b.drops);
	for (uint32_t i = 1; i <= n; i++) {
		one = &pkts[i & 1];
		b.ops->push(b.st, &one, 1, &b.drops);
		b.ops->pop(b.st, NEVER_NS, &p, 1, &b.drops);
		NEED(p == &pkts[(i - 1) & 1]);
		out_ns = p->arrival_ns;
		pkts[(i - 1) & 1].arrival_ns = out_ns;
	}
	stats_u128 bits = (stats_u128)n * 8 * (size_bytes + 20u);
	double exact_ns = (double)(bits * NS_PER_S / rate_bps);
	ck_assert_double_le(fabs((double)out_ns - exact_ns), 1.0 + exact_ns * 1e-10);
	stage_close(&b);
}

TEST(rate_is_exact_over_ten_million_packets) {
	busy(9999999967, 10000000, 1518);
}

TEST(rate_is_exact_from_one_kilobit_to_one_terabit) {
	busy(1000, 100000, 1518);
	busy(1009, 100000, 64);
	busy(99999989, 300000, 777);
	busy(25000000000, 300000, 64);
	busy(999999999989, 1000000, 64);
	busy(1000000000000, 1000000, 1518);
}

TEST(a_departure_comes_before_an_arrival_at_the_same_time) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(4, 980); // 1000 B on the wire: 1000 ns

	open_link(&b, "{link: {rate: 8Gbit, queue: {fifo: {limit: 1pkt}}}}");
	stage_put(&b, &pkts[0], 0); // on the wire until 1000
	stage_put(&b, &pkts[1], 0); // fills the queue, which excludes the wire
	stage_put(&b, &pkts[2], 1000); // room was made at 1000
	ck_assert_uint_eq(b.drops.count, 0);
	stage_put(&b, &pkts[3], 1999);
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_uint_eq(pkts[3].drop_reason, DROP_QUEUE_FULL);
	for (uint64_t i = 0; i < 3; i++) {
		ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[i]);
		ck_assert_uint_eq(pkts[i].arrival_ns, 1000 * (i + 1));
	}
}

// 1000 B on the wire each, at 1 ns per byte, from 400 on at 2, from 2000 on at 1/2:
//
//	packet 0: 400 B by 400, the other 600 B by 1600
//	packet 1: 200 B by 2000, the other 800 B by 2400
//	packet 2: 1000 B by 2900
// A port that takes nothing leaves no room; the frame on the wire stays there.
TEST(without_room_no_frame_is_taken) {
	static const char *const queues[] = {"fifo: {limit: 9pkt}", "codel: {limit: 9pkt}"};

	for (uint32_t i = 0; i < 4; i++) {
		struct stage_bench b = {0};
		struct pkt *pkts = pkts_new(2, 1518), *taken = NULL;
		char text[96];

		snprintf(text, sizeof(text), "{link: {rate: 1Gbit, queue: {%s}}}", queues[i % 2]);
		open_link(&b, text);
		for (uint32_t k = 0; k <= i / 2; k++)
			stage_put(&b, &pkts[k], 0);
		ck_assert_uint_eq(b.ops->pop(b.st, MS, &taken, 0, &b.drops), 0);
		ck_assert_ptr_null(taken);
		for (uint32_t k = 0; k <= i / 2; k++)
			ck_assert_ptr_eq(stage_take(&b, MS), &pkts[k]);
		stage_close(&b);
		test_close(pkts);
	}
}

TEST(a_new_rate_applies_to_the_unsent_part_of_the_frame_on_the_wire) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 980);
	static const uint64_t out_ns[] = {1600, 2400, 2900};

	open_link(&b, "{link: {rate: 8Gbit, queue: {fifo: {limit: 9pkt}}}}");
	for (int i = 0; i < 3; i++)
		stage_put(&b, &pkts[i], 0);
	link_serve(b.st, 400, &b.drops);
	stage_live(&b, "rate", "4Gbit", 400);
	link_serve(b.st, 2000, &b.drops);
	stage_live(&b, "rate", "16Gbit", 2000);
	// Half a frame is on the wire, all of whose time was used.
	struct stats_totals zero = {0}, to = link_totals(b.st, 2100);
	ck_assert_double_eq_tol(to.wire_bits, 8.0 * (400 + 800 + 200), 1e-9);
	ck_assert_double_eq_tol(stats_figures(&zero, &to).utilisation, 1, 1e-12);
	for (int i = 0; i < 3; i++) {
		stage_take(&b, NEVER_NS);
		ck_assert_uint_eq(pkts[i].arrival_ns, out_ns[i]);
	}
	// Sent 3000 B; could have sent 400 + 1600/2 + 1500*2 = 4200 B by 3500.
	to = link_totals(b.st, 3500);
	ck_assert_double_eq_tol(stats_figures(&zero, &to).utilisation, 3000.0 / 4200.0, 1e-12);
	ck_assert_double_eq_tol(stats_figures(&zero, &to).rate_mean_bps, 4200.0 * 8 / 3500e-9, 1);
	ck_assert_uint_eq(
		link_run(b.st, 2000)->rate_max_bps, 8000000000); // 16 Gbit/s have not yet begun
	ck_assert_uint_eq(link_run(b.st, 3500)->rate_min_bps, 4000000000);
	ck_assert_uint_eq(link_run(b.st, 3500)->rate_max_bps, 16000000000);
	link_restart(b.st, STATS_RUN, 3500);
	ck_assert_uint_eq(link_run(b.st, 4000)->rate_min_bps, 16000000000);
}

// 1538 B at 1 kbit/s take 12.304 s. After 200 ms 25 B of them are sent; the other 1513 B take
// 121.04 us.
TEST(a_frame_that_began_at_a_kilobit_ends_at_the_new_rate) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2, 1518);

	open_link(&b, "{link: {rate: 1kbit, queue: {fifo: {limit: 9pkt}}}}");
	for (int i = 0; i < 2; i++)
		stage_put(&b, &pkts[i], 0);
	link_serve(b.st, 200 * MS, &b.drops);
	stage_live(&b, "rate", "100Mbit", 200 * MS);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 200 * MS + 121040);
	ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[0]);
	ck_assert_ptr_eq(stage_take(&b, NEVER_NS), &pkts[1]);
	ck_assert_uint_eq(pkts[0].arrival_ns, 200 * MS + 121040);
	ck_assert_uint_eq(pkts[1].arrival_ns, 200 * MS + 121040 + 123040);
}

// A busy link whose rate changes 200000 times, between any two of six decades, sends to the
// nanosecond what the integral of the rate allows: floor of the time at which n * 8 * bytes bits
// fit into it.
TEST(many_changes_lose_no_part_of_a_nanosecond) {
	static const char *const text[] = {"1Mbit", "7Mbit", "100Mbit", "3Gbit", "1Tbit"};
	static const double rate_bps[] = {1e6, 7e6, 1e8, 3e9, 1e12};
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(2, 1480);
	struct rng rng;
	uint64_t t_ns = 0, now = 0;
	long double unsent = 8.0L * 1500; // bits of the frame on the wire
	uint32_t changes = 0;

	open_link(&b, "{link: {rate: 1Mbit, queue: {fifo: {limit: 9pkt}}}}");
	rng_init(&rng, 1, "rates");
	stage_put(&b, &pkts[0], 0);
	while (changes < 200000) {
		long double bit_ns = 1e9L / (long double)rate_bps[now];
		uint64_t gap_ns = 1 + rng_u64(&rng) % (uint64_t)(bit_ns * 2000 + 100);

		if ((long double)gap_ns < unsent * bit_ns - 1) { // in the frame
			t_ns += gap_ns;
			unsent -= (long double)gap_ns / bit_ns;
			now = rng_u64(&rng) % 5;
			link_serve(b.st, t_ns, &b.drops);
			stage_live(&b, "rate", text[now], t_ns);
			changes++;
			continue;
		}
		long double end_ns = (long double)t_ns + unsent * bit_ns;
		struct pkt *p = stage_take(&b, NEVER_NS);
		NEED(p != NULL && (long double)p->arrival_ns <= end_ns + 1e-3L);
		NEED((long double)p->arrival_ns + 1 >= end_ns - 1e-3L);
		// The link is idle until then: the next begins at a whole nanosecond.
		t_ns = p->arrival_ns + 1;
		unsent = 8.0L * 1500;
		stage_put(&b, p, t_ns);
	}
}

// A burst of four at 1000, 1 us per packet, by hand:
// queue: 3 from 1000 to 2000, 2 to 3000, 1 to 4000, 0 to 5000. Idle before and after.
TEST(figures_by_hand) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(4, 980);
	struct stats_totals zero = {0};

	open_link(&b, "{link: {rate: 8Gbit, queue: {fifo: {limit: 2pkt}}}}");
	for (int i = 0; i < 4; i++)
		stage_put(&b, &pkts[i], 1000); // the fourth finds two queued
	ck_assert_uint_eq(b.drops.count, 1);

	// In the middle: half of the second packet is sent.
	link_serve(b.st, 2500, &b.drops);
	struct stats_totals mid = link_totals(b.st, 2500);
	struct stats_figures f = stats_figures(&zero, &mid);
	ck_assert_uint_eq(mid.count.out_pkts, 1);
	ck_assert_uint_eq(mid.count.out_bytes, 980);
	ck_assert_double_eq_tol(f.utilisation, 1500.0 / 2500.0, 1e-12);
	ck_assert_double_eq_tol(f.queue_mean_pkts, (2 * 1000.0 + 500.0) / 2500.0, 1e-12);
	ck_assert_double_eq_tol(f.sojourn_mean_ns, (0 + 1000) / 2.0, 1e-12);
	link_restart(b.st, STATS_RUN, 2500);
	ck_assert_uint_eq(link_peak(b.st, STATS_RUN)->queue_pkts, 1);
	ck_assert_uint_eq(link_peak(b.st, STATS_INTERVAL)->queue_pkts, 2);
	ck_assert_uint_eq(link_sojourn(b.st)->total, 0);

	// From there to long after the last packet left at 4000.
	link_serve(b.st, 5000, &b.drops);
	struct stats_totals end = link_totals(b.st, 5000);
	f = stats_figures(&link_peak(b.st, STATS_RUN)->from, &end);
	ck_assert_uint_eq(end.count.out_pkts - mid.count.out_pkts, 2);
	ck_assert_uint_eq(end.count.drops, 1);
	ck_assert_double_eq_tol(f.utilisation, 1500.0 / 2500.0, 1e-12);
	ck_assert_double_eq_tol(f.queue_mean_pkts, 500.0 / 2500.0, 1e-12);
	ck_assert_double_eq_tol(f.queue_mean_bytes, 500.0 * 980 / 2500.0, 1e-9);
	ck_assert_double_eq_tol(f.sojourn_mean_ns, 2000, 1e-12);
	ck_assert_uint_eq(link_sojourn(b.st)->max, 2000);
	// Served, but still on the link until taken.
	ck_assert_uint_eq(b.ops->backlog(b.st).pkts, 3);
	ck_assert_uint_eq(b.ops->next_ns(b.st), 2000);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(stage_take(&b, 5000), &pkts[i]);
}

// The history of a run: who left when, who was dropped in which order, all figures and records.
#define LOAD 20000
struct history {
	uint32_t outs, drops;
	uint64_t out_ns[LOAD];
	uint32_t out_id[LOAD], drop_id[LOAD];
	uint8_t drop_reason[LOAD], ecn[LOAD];
	uint64_t marks;
	struct hist sojourn;
	uint64_t peak_pkts, peak_ns;
	uint32_t records;
	struct tel_packets record[4 * LOAD];
	struct stats_totals end; // 500 ns after the last arrival; has padding: last
};

enum polling { POLL_EAGER, POLL_LATE, POLL_RANDOM, POLL_NEVER };

static void drain(struct stage_bench *b, uint64_t now_ns, struct history *h) {
	for (struct pkt *p; (p = stage_take(b, now_ns)) != NULL;) {
		h->out_ns[h->outs] = p->arrival_ns;
		h->ecn[h->outs] = p->ecn;
		NEED((p->flags & PKT_MARKED) == 0);
		h->out_id[h->outs++] = p->id;
	}
}

static void play(const char *text, enum polling polling, struct history *h) {
	static struct tel tel;
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(LOAD, 0);
	struct rng rng, when;
	uint64_t t = 0;

	memset(h, 0, sizeof(*h));
	tel_memory(&tel, h->record, 4 * LOAD);
	b.env.tel_packets = &tel;
	open_link(&b, text);
	rng_init(&rng, 1, "load");
	rng_init(&when, polling, "polls");
	for (uint32_t i = 0; i < LOAD; i++) {
		uint64_t gap_ns = rng_u64(&rng) % 5 == 0 ? rng_u64(&rng) % 8000 : 0;

		pkts[i].size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
		pkts[i].ecn = rng_u64(&rng) & 3;
		// Any number of polls up to the arrival of the next packet.
		if (polling == POLL_EAGER) {
			for (uint64_t k = t; k < t + gap_ns; k += 97)
				drain(&b, k, h);
			drain(&b, t + gap_ns, h);
		} else if (polling == POLL_RANDOM && rng_u64(&when) % 3 == 0) {
			drain(&b, t + rng_u64(&when) % (gap_ns + 1), h);
		} else if (polling == POLL_LATE && i % 1000 == 999) {
			drain(&b, t, h);
		}
		t += gap_ns;
		stage_put(&b, &pkts[i], t);
	}
	link_serve(b.st, t + 500, &b.drops);
	h->end = link_totals(b.st, t + 500);
	h->peak_pkts = link_peak(b.st, STATS_RUN)->queue_pkts;
	h->peak_ns = link_peak(b.st, STATS_INTERVAL)->sojourn_ns;
	drain(&b, NEVER_NS, h);
	h->sojourn = *link_sojourn(b.st);
	h->marks = link_totals(b.st, t).count.marks;
	h->records = (uint32_t)tel.written;
	for (struct pkt *p; (p = pkt_list_pop(&b.drops)) != NULL;) {
		h->drop_reason[h->drops] = p->drop_reason;
		h->drop_id[h->drops++] = p->id;
	}
	stage_close(&b);
	test_close(pkts);
}

static bool same(const struct history *a, const struct history *b) {
	return memcmp(a, b, offsetof(struct history, end)) == 0 && same_totals(&a->end, &b->end);
}

TEST(history_does_not_depend_on_polling) {
	static const char *const links[] = {
		"{link: {rate: 3.7Gbit, queue: {fifo: {limit: 20kB}}}}",
		"{link: {rate: 3.7Gbit, queue: {fifo: {limit: 12pkt, drop: head}}}}",
		"{link: {rate: 3.7Gbit, queue: {codel: {limit: 80pkt, target: 5us, interval: 100us,"
		" ecn: yes, ce_threshold: 60us}}}}",
		"{link: {rate: 3.7Gbit, queue: {codel: {limit: 80pkt, target: 5us, interval: 100us,"
		" law: linux}}}}",
	};
	static struct history one, other;

	for (int i = 0; i < 4; i++) {
		play(links[i], POLL_EAGER, &one);
		ck_assert_uint_gt(one.drops, 100);
		ck_assert_uint_eq(one.outs + one.drops, LOAD);
		uint32_t refused = 0; // never queued; with head drop all are
		for (uint32_t k = 0; i != 1 && k < one.drops; k++)
			refused += one.drop_reason[k] == DROP_QUEUE_FULL;
		ck_assert_uint_eq(one.records, LOAD - refused + one.drops + one.outs + one.marks);
		for (enum polling p = POLL_LATE; p <= POLL_NEVER; p++) {
			play(links[i], p, &other);
			ck_assert_msg(same(&one, &other), "%s, polling %d", links[i], p);
		}
	}
}

// Each packet that comes in has one enqueue or drop, then one dequeue or drop; backlogs add up.
TEST(records_tell_the_whole_story) {
	static struct history h;
	uint64_t bytes = 0, last_ns = 0;
	uint32_t count[TEL_DEPART + 1] = {0};

	play("{link: {rate: 3.7Gbit, queue: {codel: {limit: 30kB, target: 5us, interval: 100us, "
	     "ecn: yes}}}}",
		POLL_LATE, &h);
	for (uint32_t i = 0; i < h.records; i++) {
		const struct tel_packets *r = &h.record[i];

		NEED(r->ts_ns >= last_ns);
		last_ns = r->ts_ns;
		count[r->event]++;
		if (r->event == TEL_ENQUEUE)
			bytes += r->size_bytes;
		else if (r->event == TEL_DEQUEUE || r->reason == DROP_AQM)
			bytes -= r->size_bytes;
		NEED(r->queue_bytes == bytes || r->event == TEL_MARK);
		NEED(r->event != TEL_ENQUEUE || r->sojourn_ns == 0);
		NEED((r->event == TEL_DROP) == (r->reason != DROP_NONE));
		NEED(r->event != TEL_MARK || r->ecn == ECN_CE);
	}
	ck_assert_uint_eq(count[TEL_DEQUEUE], h.outs);
	ck_assert_uint_eq(count[TEL_DROP], h.drops);
	ck_assert_uint_eq(count[TEL_MARK], h.marks);
	ck_assert_uint_gt(count[TEL_MARK], 10);
	ck_assert_uint_eq(bytes, 0);
}

// The integral of the backlog is the sum of all times in the queue (Little).
TEST(mean_backlog_agrees_with_sojourns) {
	static struct history h;

	play("{link: {rate: 3.7Gbit, queue: {fifo: {limit: 20kB}}}}", POLL_RANDOM, &h);
	uint64_t waited = 0, waited_bytes = 0;
	for (uint32_t i = 0; i < h.records; i++) {
		const struct tel_packets *r = &h.record[i];

		if (r->event == TEL_DEQUEUE && r->ts_ns <= h.end.at_ns) {
			waited += r->sojourn_ns;
			waited_bytes += (uint64_t)r->sojourn_ns * r->size_bytes;
		}
	}
	// What is still queued at the end adds a little to the integral.
	ck_assert_uint_eq(waited, h.end.sojourn_ns);
	ck_assert_double_eq_tol((double)h.end.queue_pkt_ns / (double)waited, 1, 2e-3);
	ck_assert_double_eq_tol((double)h.end.queue_byte_ns / (double)waited_bytes, 1, 2e-3);
	ck_assert(h.end.queue_pkt_ns >= waited);
}

// Live, a burst may be handed in after the link was served beyond its arrivals.
TEST(late_arrivals_keep_the_rate) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(3, 980);

	open_link(&b, "{link: {rate: 8Gbit, queue: {fifo: {limit: 9pkt}}}}");
	stage_put(&b, &pkts[0], 0);
	ck_assert_ptr_eq(stage_take(&b, 5000), &pkts[0]);
	stage_put(&b, &pkts[1], 500); // the wire is busy until 1000
	stage_put(&b, &pkts[2], 600);
	ck_assert_ptr_eq(stage_take(&b, 5000), &pkts[1]);
	ck_assert_ptr_eq(stage_take(&b, 5000), &pkts[2]);
	ck_assert_uint_eq(pkts[1].arrival_ns, 2000);
	ck_assert_uint_eq(pkts[2].arrival_ns, 3000);
}

TEST(bad_configs_are_refused) {
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"{link: {}}", "rate is required"},
		{"{link: {rate: 500bit}}", "500"},
		{"{link: {rate: 1Gbit, queue: {nosuch: {}}}}", "nosuch"},
		{"{link: {rate: 1Gbit, queue: {fifo: {limt: 3pkt}}}}", "limt"},
		{"{link: {rate: 1Gbit}}", "base RTT"},
		// A link that begins down made 3 bytes of a BDP.
		{"{link: {rate: 0, queue: {fifo: {limit: 5ms}}}}",
			"limit: a time needs a rate, but the link's is 0 at the start"},
		{"{link: {rate: 0, queue: {red: {limit: 100pkt}}}}",
			"weight, min and max: the link's rate decides it"},
		{"{link: {rate: 0, queue: {docsis_pie: {limit: 100pkt}}}}",
			"rate: the link's rate decides it"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage_bench b = {0};

		ck_assert_int_lt(stage_open(&b, cases[i].text), 0);
		ck_assert_msg(strstr(b.err.msg, cases[i].says) != NULL, "%s", b.err.msg);
		stage_close(&b);
	}
	struct stage_bench down = {.env = {.base_rtt_ns = 20 * MS}};

	ck_assert_int_lt(stage_open(&down, "{link: {rate: 0, queue: {fifo: {}}}}"), 0);
	ck_assert_msg(
		strstr(down.err.msg, "limit: a BDP needs a rate") != NULL, "%s", down.err.msg);
}

// 10 Gbit/s x 20 ms = 25 MB = 16254 full-sized frames of 1538 B; the one on the wire is not queued.
TEST(default_queue_is_one_bdp) {
	struct stage_bench b = {.env = {.base_rtt_ns = 20 * MS}};
	struct pkt *pkts = pkts_new(16300, 1518);

	open_link(&b, "{link: {rate: 10Gbit}}");
	for (int i = 0; i < 16300; i++)
		stage_put(&b, &pkts[i], 0);
	ck_assert_uint_eq(16300 - b.drops.count, 16254 + 1);
}

// Three frames of 1000 ns at once wait 0, 1000 and 2000 ns. A peak is that of its window alone.
TEST(waits_are_counted_and_their_peak_is_the_windows) {
	struct stage_bench b = {0};
	struct pkt *pkts = pkts_new(4, 980);

	open_link(&b, "{link: {rate: 8Gbit, queue: {fifo: {limit: 100pkt}}}}");
	for (int i = 0; i < 3; i++)
		stage_put(&b, &pkts[i], 0);
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(stage_take(&b, 3000), &pkts[i]);
	const struct hist *h = link_sojourn(b.st);

	ck_assert_uint_eq(h->total, 3);
	ck_assert_uint_eq(h->max, 2000);
	for (uint64_t ns = 0; ns <= 2000; ns += 1000)
		ck_assert_uint_eq(h->count[hist_bucket(ns)], 1);
	link_restart(b.st, STATS_INTERVAL, 5000);
	stage_put(&b, &pkts[3], 6000);
	ck_assert_ptr_eq(stage_take(&b, 7000), &pkts[3]);
	ck_assert_uint_eq(link_peak(b.st, STATS_INTERVAL)->sojourn_ns, 0);
	ck_assert_uint_eq(link_peak(b.st, STATS_RUN)->sojourn_ns, 2000);
}
