// SPDX-License-Identifier: BSD-3-Clause
// CAKE's ACK filter: which ACK makes which redundant, how many stay, and that a sender learns the
// same with it.
#include "common/net/headers.h"
#include "switch/aqm/ack_filter.h"
#include "switch_test.h"

#define PATIENT "target: 1000s, interval: 1000s" // COBALT does nothing

static struct seg ack_of(uint32_t number) {
	return (struct seg){.ack = number, .flags = SEG_ACK};
}

static struct pkt_headers read(const struct seg *seg) {
	struct pkt_headers h = {0};

	headers_of_ack(&h, seg);
	return h;
}

#define SACKS(n, ...) .sack_count = (n), .sack = {__VA_ARGS__}
#define ACK(n) .ack = (n), .flags = SEG_ACK

// RFC 2018, 2883, 3168, 7323 say what an ACK tells.
TEST(a_newer_ack_covers_what_it_tells_too) {
	static const struct {
		const char *name;
		bool covered;
		struct seg older, newer;
	} cases[] = {
		{"a higher number", true, {ACK(1000)}, {ACK(2000)}},
		{"modulo 2^32", true, {ACK(0xffffff00)}, {ACK(100)}},
		{"a lower number", false, {ACK(2000)}, {ACK(1000)}},
		{"a duplicate ACK tells of a loss", false, {ACK(1000)}, {ACK(1000)}},
		{"data", false, {ACK(1000), .len = 1}, {ACK(2000)}},
		{"by data: it could be lost with it", false, {ACK(1000)}, {ACK(2000), .len = 1}},
		{"SYN", false, {.ack = 1000, .flags = SEG_ACK | SEG_SYN}, {ACK(2000)}},
		{"FIN", false, {.ack = 1000, .flags = SEG_ACK | SEG_FIN}, {ACK(2000)}},
		{"RST", false, {.ack = 1000, .flags = SEG_ACK | SEG_RST}, {ACK(2000)}},
		{"PSH", false, {.ack = 1000, .flags = SEG_ACK | SEG_PSH}, {ACK(2000)}},
		{"no ACK", false, {.ack = 1000}, {ACK(2000)}},
		{"an echo of CE", false, {.ack = 1000, .flags = SEG_ACK | SEG_ECE}, {ACK(2000)}},
		{"an echo that begins", false, {ACK(1000)},
			{.ack = 2000, .flags = SEG_ACK | SEG_ECE}},
		{"an echo that goes on", true, {.ack = 1000, .flags = SEG_ACK | SEG_ECE},
			{.ack = 2000, .flags = SEG_ACK | SEG_ECE}},
		{"AccECN's counter", false, {ACK(1000), .options = SEG_OPT_AE}, {ACK(2000)}},
		{"AccECN's option", false, {ACK(1000), .options = SEG_OPT_ACCECN0}, {ACK(2000)}},
		{"timestamps", true, {ACK(1000), .options = SEG_OPT_TS, .tsval = 5},
			{ACK(2000), .options = SEG_OPT_TS, .tsval = 5}},
		{"an earlier timestamp", false, {ACK(1000), .options = SEG_OPT_TS, .tsval = 5},
			{ACK(2000), .options = SEG_OPT_TS, .tsval = 4}},
		{"timestamps for none", false, {ACK(1000)},
			{ACK(2000), .options = SEG_OPT_TS, .tsval = 4}},
		{"a block that has grown", true, {ACK(1000), SACKS(1, {3000, 4000})},
			{ACK(1000), SACKS(1, {3000, 5000})}},
		{"the same block", false, {ACK(1000), SACKS(1, {3000, 4000})},
			{ACK(1000), SACKS(1, {3000, 4000})}},
		{"a second block", true, {ACK(1000), SACKS(1, {3000, 4000})},
			{ACK(1000), SACKS(2, {6000, 7000}, {3000, 4000})}},
		{"a block for another", false, {ACK(1000), SACKS(1, {3000, 4000})},
			{ACK(1000), SACKS(1, {6000, 7000})}},
		{"a block below the number", true, {ACK(1000), SACKS(1, {3000, 4000})},
			{ACK(4000)}},
		{"a block above it", false, {ACK(1000), SACKS(1, {3000, 4001})}, {ACK(4000)}},
		{"the second block is missing", false,
			{ACK(1000), SACKS(2, {6000, 7000}, {3000, 4000})},
			{ACK(2000), SACKS(1, {6000, 8000})}},
		{"a D-SACK below the number", false, {ACK(4000), SACKS(1, {1000, 2000})},
			{ACK(5000)}},
		{"a D-SACK of a block", false, {ACK(1000), SACKS(2, {3000, 4000}, {3000, 6000})},
			{ACK(7000)}},
		{"by a D-SACK", true, {ACK(1000)}, {ACK(5000), SACKS(1, {1000, 2000})}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pkt_headers older = read(&cases[i].older), newer = read(&cases[i].newer);

		ck_assert_msg(
			ack_filter_covers(&newer, &older) == cases[i].covered, "%s", cases[i].name);
	}
}

// Packets whose segments stand in a table, by the packet's number.
static struct seg segs[4096];
static struct pkt *first;

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	return read(&segs[p - first]);
}

static void open_filter(struct aqm_bench *b, const char *filter, struct pkt *pkts) {
	static const struct pkt_owner owner = {.headers = headers};
	const struct aqm_env env = {.rate_bps = 1000000,
		.base_rtt_ns = 100 * MS,
		.mtu_bytes = MTU,
		.seed = 1,
		.owner = &owner};
	char params[200];

	first = pkts;
	snprintf(params, sizeof(params),
		"{isolation: hosts, limit: 1GB, ack_filter: %s, " PATIENT "}", filter);
	ck_assert_msg(aqm_open(b, "cake", params, &env) == 0, "%s", b->err.msg);
	ck_assert_int_eq(b->ops->headers(b->q), strcmp(filter, "no") != 0);
}

// Ten ACKs of each of two flows, and in their middle data: what is left, in order.
TEST(so_many_acks_stay) {
	static const struct {
		const char *filter;
		uint32_t left[8];
		uint32_t count;
	} cases[] = {
		// The newest two of each flow, and the two before the data.
		{"filter", {6, 8, 10, 16, 17, 18, 19}, 7},
		{"aggressive", {8, 10, 18, 19}, 4},
	};

	for (size_t k = 0; k < 2; k++) {
		struct pkt *pkts = pkts_new(20, 70), *p;
		struct aqm_bench b;
		uint32_t n = 0;

		open_filter(&b, cases[k].filter, pkts);
		for (uint32_t i = 0; i < 20; i++) {
			pkts[i].flow_id = i % 2;
			segs[i] = ack_of(1000 * (i + 1));
			segs[i].len = i == 10;
			aqm_put(&b, &pkts[i], 0);
		}
		ck_assert_uint_eq(b.drops.count, 20 - cases[k].count);
		for (p = b.drops.head; p != NULL; p = p->next)
			ck_assert_uint_eq(p->drop_reason, DROP_ACK_FILTER);
		for (; (p = aqm_take(&b, MS)) != NULL; n++)
			ck_assert_uint_eq((uint32_t)(p - pkts), cases[k].left[n]);
		ck_assert_uint_eq(n, cases[k].count);
		aqm_close(&b);
		test_close(pkts);
	}
}

enum { SEGS = 600 }; // of 100 bytes

// A receiver that acknowledges each segment that arrives: with the block it belongs to first, then
// others (RFC 2018), and before them what has arrived twice (RFC 2883).
struct receiver {
	bool has[SEGS + 1];
	uint32_t next, tsval;
	bool ece;
};

static struct seg_sack block_at(const struct receiver *r, uint32_t at) {
	uint32_t start = at, end = at;

	while (start > r->next && r->has[start - 1])
		start--;
	while (r->has[end])
		end++;
	return (struct seg_sack){100 * start, 100 * end};
}

static struct seg arrives(struct receiver *r, uint32_t at) {
	bool twice = r->has[at];
	struct seg s = ack_of(0);

	r->has[at] = true;
	while (r->has[r->next])
		r->next++;
	s.ack = 100 * r->next;
	s.options = SEG_OPT_TS;
	s.tsval = r->tsval++ / 4;
	s.flags = (uint8_t)(SEG_ACK | (r->ece ? SEG_ECE : 0));
	if (twice)
		s.sack[s.sack_count++] = (struct seg_sack){100 * at, 100 * at + 100};
	if (at >= r->next)
		s.sack[s.sack_count++] = block_at(r, at);
	for (uint32_t i = r->next; i < SEGS && s.sack_count < 3; i++) {
		struct seg_sack block = block_at(r, i);

		if (!r->has[i])
			continue;
		if (at < i || 100 * at >= block.end)
			s.sack[s.sack_count++] = block;
		i = block.end / 100;
	}
	return s;
}

// What a sender has learned.
struct sender {
	bool has[SEGS];
	uint32_t ack, dsacks, echoes;
	uint32_t marked_bytes; // acknowledged by ACKs that echo CE (RFC 8257)
	uint8_t ece;
};

static void learn(struct sender *x, const struct seg *s) {
	if (seq_diff(s->ack, x->ack) > 0) {
		x->marked_bytes += (s->flags & SEG_ECE) != 0 ? s->ack - x->ack : 0;
		x->ack = s->ack;
	}
	for (uint32_t i = 0; i < s->ack / 100; i++)
		x->has[i] = true;
	for (uint32_t b = 0; b < s->sack_count; b++) {
		bool below = s->sack[b].start < s->ack;
		bool in_next = s->sack_count > b + 1 && s->sack[b].start >= s->sack[b + 1].start
			&& s->sack[b].end <= s->sack[b + 1].end;

		x->dsacks += b == 0 && (below || in_next);
		for (uint32_t i = s->sack[b].start / 100; i < s->sack[b].end / 100; i++)
			x->has[i] = true;
	}
	x->echoes += (s->flags & SEG_ECE) != x->ece;
	x->ece = s->flags & SEG_ECE;
}

// Segments come in any order, some twice, with CE at times; the uplink carries fewer ACKs than
// there are. At each moment when the queue is empty the sender knows what it would know without a
// filter.
static void same_knowledge(const char *filter, uint64_t seed) {
	struct pkt *pkts = pkts_new(4096, 70), *p;
	struct sender with = {0}, without = {0};
	struct receiver r = {0};
	struct aqm_bench b;
	struct rng rng;
	uint32_t n = 0, emptied = 0;

	rng_init(&rng, seed, "ack_filter");
	open_filter(&b, filter, pkts);
	while (r.next < SEGS && n < 4000) {
		uint64_t draw = rng_u64(&rng);
		uint32_t at = r.next + (uint32_t)((draw >> 8) % 12);

		if (draw % 16 == 0)
			at = (uint32_t)((draw >> 16) % (r.next + 1));
		r.ece ^= draw % 61 == 0;
		if (at >= SEGS)
			continue;
		segs[n] = arrives(&r, at);
		learn(&without, &segs[n]);
		aqm_put(&b, &pkts[n++], 0);
		for (uint64_t take = draw >> 40; take % 3 == 0 || take % 97 == 1; take /= 3) {
			p = aqm_take(&b, MS);
			if (p != NULL)
				learn(&with, &segs[p - pkts]);
			if (p == NULL || take % 97 != 1)
				break;
		}
		if (draw % 101 == 0) {
			while ((p = aqm_take(&b, MS)) != NULL)
				learn(&with, &segs[p - pkts]);
			NEED(memcmp(&with, &without, sizeof(with)) == 0);
			emptied++;
		}
	}
	while ((p = aqm_take(&b, MS)) != NULL)
		learn(&with, &segs[p - pkts]);
	ck_assert_mem_eq(&with, &without, sizeof(with));
	ck_assert_uint_eq(with.ack, 100 * SEGS);
	ck_assert_uint_gt(b.drops.count, n / 10); // it did something
	ck_assert_uint_gt(with.dsacks, 10);
	ck_assert_uint_gt(with.echoes, 5);
	ck_assert_uint_gt(with.marked_bytes, 1000);
	ck_assert_uint_gt(emptied, 5);
	aqm_close(&b);
	test_close(pkts);
}

TEST(a_sender_learns_the_same) {
	for (uint64_t seed = 1; seed <= 50; seed++) {
		same_knowledge("filter", seed);
		same_knowledge("aggressive", seed);
	}
}
