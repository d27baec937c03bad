// SPDX-License-Identifier: BSD-3-Clause
// CAKE's tins against Linux's sch_cake: the DSCPs that choose them, their targets, who is served.
#include "switch/aqm/cake_tins.h"
#include "switch_test.h"

#define RATE_BPS 20000000u
#define FRAME_NS 607200u // 1518 B at RATE_BPS
#define PATIENT "target: 1000s, interval: 1000s" // COBALT does nothing

enum { BE = 0, LE = 1, CS1 = 8, AF11 = 10, CS2 = 16, AF21 = 18, CS3 = 24, AF33 = 30, CS4 = 32 };
enum { AF41 = 34, CS5 = 40, VA = 44, EF = 46, CS6 = 48, CS7 = 56, TOS4 = 4, OTHER = 63 };

static struct pkt_headers dscp_is_flow(void *ctx, const struct pkt *p) {
	return (struct pkt_headers){.dscp = (uint8_t)(p->flow_id & 63)};
}

static const struct pkt_owner owner = {.headers = dscp_is_flow};

static const struct aqm_env env = {
	.rate_bps = RATE_BPS, .base_rtt_ns = 20 * MS, .mtu_bytes = MTU, .seed = 1, .owner = &owner};

static struct cake_tins *open_tins(struct aqm_bench *b, const char *params) {
	ck_assert_msg(aqm_open(b, "cake", params, &env) == 0, "%s", b->err.msg);
	return ((struct cake *)b->q)->tins;
}

static void put(struct aqm_bench *b, struct pkt **next, uint32_t flow, uint64_t now_ns) {
	struct pkt *p = (*next)++;

	p->flow_id = flow;
	p->size_bytes = MTU;
	aqm_put(b, p, now_ns);
}

TEST(a_dscp_has_its_tin) {
	static const struct {
		const char *params;
		struct {
			uint8_t dscp, tin;
		} of[20];
	} modes[] = {
		{"{diffserv: diffserv3}",
			{{BE, 0}, {LE, 1}, {CS1, 1}, {AF11, 0}, {CS2, 0}, {AF41, 0}, {CS4, 0},
				{CS5, 0}, {TOS4, 2}, {VA, 2}, {EF, 2}, {CS6, 2}, {CS7, 2},
				{OTHER, 0}}},
		{"{diffserv: diffserv4}",
			{{BE, 0}, {LE, 1}, {CS1, 1}, {AF11, 0}, {CS2, 2}, {AF21, 2}, {CS3, 2},
				{AF33, 2}, {AF41, 2}, {TOS4, 2}, {CS4, 3}, {CS5, 3}, {VA, 3},
				{EF, 3}, {CS6, 3}, {CS7, 3}, {OTHER, 0}}},
		{"{diffserv: diffserv8}",
			{{LE, 0}, {CS1, 1}, {AF11, 1}, {BE, 2}, {OTHER, 2}, {CS3, 3}, {AF33, 3},
				{AF41, 3}, {AF21, 4}, {TOS4, 4}, {CS2, 5}, {CS4, 6}, {CS5, 6},
				{VA, 6}, {EF, 6}, {CS6, 7}, {CS7, 7}}},
		{"{diffserv: precedence}",
			{{BE, 0}, {LE, 0}, {CS1, 1}, {AF11, 1}, {CS2, 2}, {CS3, 3}, {CS4, 4},
				{CS5, 5}, {EF, 5}, {CS6, 6}, {CS7, 7}, {OTHER, 7}}},
	};

	for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
		struct pkt *pkts = pkts_new(20, MTU), *next = pkts;
		struct aqm_bench b;
		struct cake_tins *t = open_tins(&b, modes[m].params);

		for (uint32_t i = 0; i < 20 && (i == 0 || modes[m].of[i].dscp > 0); i++) {
			const struct cake *tin = t->tin[modes[m].of[i].tin];
			uint64_t before = tin->fq.all.pkts;

			put(&b, &next, modes[m].of[i].dscp, 0);
			ck_assert_msg(tin->fq.all.pkts == before + 1, "%s: DSCP %u",
				modes[m].params, modes[m].of[i].dscp);
		}
		aqm_close(&b);
		test_close(pkts);
	}
}

// target = max(target, 1.5 frames), interval = max(interval + what was added, 2 targets). Besides,
// a queue of four frames is not above target.
TEST(a_tin_has_the_targets_of_its_rate) {
	static const uint64_t shift[] = {0, 4, 1, 2};
	struct aqm_bench b;
	struct cake_tins *t = open_tins(&b, "{diffserv: diffserv4}");

	ck_assert_uint_eq(t->count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t frame_ns = (uint64_t)FRAME_NS << shift[i];
		uint64_t target_ns = time_max(5 * MS, frame_ns * 3 / 2);
		const struct cobalt_law *l = &t->tin[i]->law;

		ck_assert_uint_eq(t->rate_bps[i], RATE_BPS >> shift[i]);
		ck_assert_uint_eq(l->target_ns, target_ns);
		ck_assert_uint_eq(l->interval_ns, 95 * MS + target_ns);
		ck_assert_uint_eq(l->above_ns, time_max(target_ns, 4 * frame_ns));
	}
	aqm_close(&b);
	t = open_tins(&b, "{diffserv: diffserv3, interval: 10ms}");
	ck_assert_uint_eq(t->tin[1]->law.interval_ns, 2 * (FRAME_NS << 4) * 3 / 2);
	ck_assert_uint_eq(t->rate_bps[2], RATE_BPS / 4);
	aqm_close(&b);
	t = open_tins(&b, "{diffserv: precedence}");
	ck_assert_uint_eq(t->rate_bps[2], RATE_BPS / 64 * 49);
}

// Packets of each DSCP that leave a saturated link in 6400 frames' time.
static void saturate(const char *params, const uint8_t *dscp, uint32_t n, uint32_t sent[64]) {
	struct pkt *pkts = pkts_new(20000, MTU), *next = pkts;
	struct aqm_bench b;

	open_tins(&b, params);
	memset(sent, 0, 64 * sizeof(*sent));
	for (uint32_t i = 0; i < n * 20; i++)
		put(&b, &next, dscp[i % n], 0);
	for (uint64_t k = 0; k < 6400; k++) {
		struct pkt *p = aqm_take(&b, k * FRAME_NS);

		sent[p->flow_id]++;
		put(&b, &next, p->flow_id, k * FRAME_NS);
	}
	aqm_close(&b);
	test_close(pkts);
}

#define ABOUT(a, b) ck_assert_uint_le((a) > (b) ? (a) - (b) : (b) - (a), 3)

TEST(a_tin_has_precedence_up_to_its_part) {
	uint32_t sent[64];

	saturate("{diffserv: diffserv4, " PATIENT "}", (const uint8_t[]){BE, CS1, AF41, EF}, 4,
		sent);
	ABOUT(sent[EF], 6400 / 4);
	ABOUT(sent[AF41], 6400 / 2);
	ABOUT(sent[CS1], 6400 / 16);
	ABOUT(sent[BE], 6400 * 3 / 16);

	saturate("{diffserv: diffserv3, " PATIENT "}", (const uint8_t[]){BE, EF}, 2, sent);
	ABOUT(sent[EF], 6400 / 4);
	ABOUT(sent[BE], 6400 * 3 / 4);

	// Both may send more than their parts, as nobody else has packets. Who is ahead of its part
	// counts from now on: CS1's turn comes 14 frames after its last one, when it would have to
	// wait for 2 more and EF for 3.
	saturate("{diffserv: diffserv4, " PATIENT "}", (const uint8_t[]){CS1, EF}, 2, sent);
	ABOUT(sent[EF], 6400 * 13 / 14);
	ABOUT(sent[CS1], 6400 / 14);

	// Parts that add up to more than the rate: what is left for the lowest is nothing.
	saturate("{diffserv: precedence, " PATIENT "}", (const uint8_t[]){BE, CS1, EF}, 3, sent);
	ABOUT(sent[EF], 6400 * 16807 / 32768);
	ABOUT(sent[BE], 0);
}

// A tin that was empty has its next packet at once if it had been served less than its part.
TEST(a_packet_of_a_waiting_tin_is_next) {
	struct pkt *pkts = pkts_new(100, MTU), *next = pkts;
	struct aqm_bench b;

	open_tins(&b, "{diffserv: diffserv4, " PATIENT "}");
	for (int i = 0; i < 50; i++)
		put(&b, &next, BE, 0);
	for (uint64_t k = 0; k < 10; k++)
		ck_assert_uint_eq(aqm_take(&b, k * FRAME_NS)->flow_id, BE);
	put(&b, &next, CS1, 10 * FRAME_NS);
	put(&b, &next, EF, 10 * FRAME_NS);
	put(&b, &next, EF, 10 * FRAME_NS);
	ck_assert_uint_eq(aqm_take(&b, 10 * FRAME_NS)->flow_id, EF);
	ck_assert_uint_eq(aqm_take(&b, 11 * FRAME_NS)->flow_id, CS1);
	for (uint64_t k = 12; k < 14; k++)
		ck_assert_uint_eq(aqm_take(&b, k * FRAME_NS)->flow_id, BE);
	ck_assert_uint_eq(aqm_take(&b, 14 * FRAME_NS)->flow_id, EF); // four frames after its first
}

// The limit is of all tins together, and the fattest queue of all loses its oldest packet.
TEST(the_limit_is_of_all_tins) {
	struct pkt *pkts = pkts_new(100, MTU), *next = pkts;
	struct aqm_bench b;

	open_tins(&b, "{diffserv: diffserv4, limit: 20pkt, " PATIENT "}");
	for (int i = 0; i < 12; i++)
		put(&b, &next, EF, 0);
	for (int i = 0; i < 8; i++)
		put(&b, &next, BE, 0);
	ck_assert_uint_eq(b.drops.count, 0);
	put(&b, &next, CS1, 0);
	ck_assert_uint_eq(b.drops.count, 1);
	ck_assert_ptr_eq(b.drops.head, pkts);
	ck_assert_uint_eq(b.ops->backlog(b.q).pkts, 20);
}

TEST(a_link_without_a_rate_is_refused) {
	struct aqm_env down = env;
	struct aqm_bench b;

	down.rate_bps = 0;
	ck_assert_int_lt(aqm_open(&b, "cake", "{diffserv: diffserv4}", &down), 0);
	ck_assert_str_eq(
		b.err.msg, "diffserv: the link's rate decides it, and that is 0 at the start");
	aqm_close(&b);
	ck_assert_int_eq(aqm_open(&b, "cake", "{diffserv: besteffort}", &down), 0);
}
