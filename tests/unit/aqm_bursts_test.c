// SPDX-License-Identifier: BSD-3-Clause
// A discipline's operations for bursts give what its operations for packets give, on wires that
// compare.
#include "switch/serialiser/serialiser.h"
#include "switch_test.h"

#define BURST 40
#define BURSTS 1000
#define PKTS (BURST * BURSTS)

struct side {
	struct aqm_bench b;
	struct serialiser serialiser;
	struct stage_env env;
	struct pkt *pkts;
	struct pkt_list drops;
	uint64_t history; // hash of what has left, and when
};

// To who asks, each packet is an ACK of more than the one before it.
static struct pkt_headers an_ack(void *ctx, const struct pkt *p) {
	return (struct pkt_headers){.pure_ack = true, .ack = p->id};
}

static void side_open(struct side *s, const char *name, const char *params) {
	static const struct pkt_owner owner = {.headers = an_ack};
	static const struct aqm_env env = {
		.rate_bps = 3700000000, .base_rtt_ns = MS, .mtu_bytes = MTU, .owner = &owner};

	*s = (struct side){.pkts = pkts_new(PKTS, 0)};
	ck_assert_msg(aqm_open(&s->b, name, params, &env) == 0, "%s", s->b.err.msg);
	s->serialiser.env = &s->env;
	s->serialiser.framing.extra_bytes = 20;
	serialiser_rate(&s->serialiser, 0, env.rate_bps);
}

static void side_close(struct side *s) {
	aqm_close(&s->b);
	pkt_ring_fini(&s->serialiser.out);
	test_close(s->pkts);
}

static void left(struct side *s, struct pkt *const *pkts, uint32_t n) {
	for (uint32_t i = 0; i < n; i++)
		s->history = rng_mix(
			s->history ^ pkts[i]->id ^ pkts[i]->arrival_ns << 20 ^ pkts[i]->ecn);
}

static void in_bursts(struct side *s, struct pkt *const *pkts, uint32_t n, uint64_t now_ns) {
	struct pkt *out[BURST];
	uint32_t got;

	if (n > 0)
		s->b.ops->enqueue_burst(s->b.q, &s->serialiser, pkts, n, &s->drops);
	while ((got = serialiser_pop_out(&s->serialiser, now_ns, out, BURST)) > 0)
		left(s, out, got);
	while (serialiser_due(&s->serialiser, now_ns))
		left(s, out,
			s->b.ops->dequeue_burst(
				s->b.q, &s->serialiser, now_ns, out, BURST, &s->drops));
}

static void packet_by_packet(struct side *s, struct pkt *const *pkts, uint32_t n, uint64_t now_ns) {
	struct serialiser_queue q = {
		.q = s->b.q, .enqueue = s->b.ops->enqueue, .dequeue = s->b.ops->dequeue};
	struct pkt *out;

	for (uint32_t i = 0; i < n; i++)
		serialiser_push(&s->serialiser, q, pkts + i, 1, &s->drops);
	while (serialiser_pop_out(&s->serialiser, now_ns, &out, 1) > 0)
		left(s, &out, 1);
	while (serialiser_due(&s->serialiser, now_ns)) {
		serialiser_send(&s->serialiser, q, now_ns, &out, 1, &s->drops);
		left(s, &out, 1);
	}
}

static void agree(struct side s[2], uint64_t now_ns) {
	struct stats_totals x = stats_totals(serialiser_figures(&s[0].serialiser, now_ns), now_ns);
	struct stats_totals y = stats_totals(serialiser_figures(&s[1].serialiser, now_ns), now_ns);
	struct backlog a = s[0].b.ops->backlog(s[0].b.q), b = s[1].b.ops->backlog(s[1].b.q);

	NEED(same_totals(&x, &y));
	NEED(a.pkts == b.pkts && a.bytes == b.bytes);
	NEED(s[0].history == s[1].history);
	NEED(s[0].drops.count == s[1].drops.count);
}

static void play(const char *name, const char *params) {
	static struct side s[2];
	struct pkt *pkts[2][BURST];
	struct rng rng;
	uint64_t t_ns = 0;

	side_open(&s[0], name, params);
	side_open(&s[1], name, params);
	rng_init(&rng, 1, params);
	for (uint32_t k = 0; k < BURSTS; k++) {
		uint32_t n = 1 + (uint32_t)(rng_u64(&rng) % BURST);
		bool together = rng_u64(&rng) % 2 > 0; // all at one moment?

		t_ns += rng_u64(&rng) % (n * UINT64_C(3200));
		for (uint32_t i = 0; i < n; i++) {
			t_ns += together ? 0 : rng_u64(&rng) % 2000;
			pkts[0][i] = &s[0].pkts[k * BURST + i];
			pkts[1][i] = &s[1].pkts[k * BURST + i];
			pkts[0][i]->arrival_ns = t_ns;
			pkts[0][i]->size_bytes = (uint16_t)(64 + rng_u64(&rng) % 1455);
			pkts[0][i]->ecn = rng_u64(&rng) & 3;
			pkts[0][i]->flow_id = (uint32_t)pkts[0][i]->size_bytes % 11;
			*pkts[1][i] = *pkts[0][i];
		}
		in_bursts(&s[0], pkts[0], n, t_ns);
		packet_by_packet(&s[1], pkts[1], n, t_ns);
		agree(s, t_ns);
	}
	in_bursts(&s[0], NULL, 0, NEVER_NS);
	packet_by_packet(&s[1], NULL, 0, NEVER_NS);
	agree(s, t_ns);
	ck_assert_uint_gt(s[0].drops.count, 100);
	side_close(&s[0]);
	side_close(&s[1]);
}

TEST(bursts_give_the_history_of_packets) {
	static const struct {
		const char *name, *params;
	} cases[] = {
		{"fifo", "{limit: 50pkt}"},
		{"fifo", "{limit: 40kB, drop: head}"},
		{"fifo", "{limit: 3pkt}"},
		{"codel", "{limit: 50pkt, target: 5us, interval: 100us}"},
		{"codel",
			"{limit: 40kB, target: 5us, interval: 100us, law: linux, ecn: yes, "
			"ce_threshold: 60us}"},
		{"cobalt", "{limit: 50pkt, target: 15us, interval: 100us}"},
		{"cobalt", "{limit: 9kB, target: 15us, interval: 100us, ecn: no}"},
		{"pie",
			"{limit: 50pkt, target: 10us, update: 10us, max_burst: 50us, alpha: 1000, "
			"beta: 10000, ecn: yes}"},
		{"pie", "{limit: 40kB, target: 10us, update: 10us, derandomise: no}"},
		{"docsis_pie",
			"{limit: 50pkt, target: 10us, update: 10us, max_burst: 50us, alpha: 1000}"},
		{"red", "{limit: 50pkt, min: 5pkt, weight: 0.1, ecn: yes}"},
		{"red", "{limit: 40kB, min: 5us, weight: 0.1, adaptive: yes, interval: 100us}"},
		{"step", "{limit: 50pkt, threshold: 10pkt}"},
		{"step", "{limit: 50pkt, threshold: 20us, others: drop}"},
		{"dualpi2", "{limit: 50pkt, update: 10us, target: 5us, alpha: 100, beta: 1000}"},
		{"dualpi2",
			"{limit: 40kB, update: 10us, target: 5us, alpha: 100, beta: 1000, "
			"derandomise: no, scheduler: ts_fifo, shift: 10us, threshold: 5pkt}"},
		{"drr", "{limit: 50pkt}"},
		{"drr", "{limit: 3pkt, buckets: 5}"},
		{"fq_codel", "{limit: 50pkt, target: 5us, interval: 100us}"},
		{"fq_codel",
			"{limit: 40kB, buckets: 5, quantum: 300B, target: 5us, interval: 100us, "
			"law: linux, ce_threshold: 60us}"},
		{"fq_pie",
			"{limit: 200pkt, target: 10us, update: 10us, max_burst: 50us, alpha: 1000, "
			"beta: 10000, ecn: yes}"},
		{"fq_pie",
			"{limit: 40kB, buckets: 5, target: 10us, update: 10us, derandomise: no}"},
		{"cake", "{limit: 50pkt, target: 15us, interval: 100us}"},
		{"cake",
			"{limit: 40kB, isolation: flows, buckets: 8, quantum: 300B, target: 15us, "
			"interval: 100us}"},
		{"cake", "{ack_filter: filter, target: 15us, interval: 100us}"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		play(cases[i].name, cases[i].params);
}
