// SPDX-License-Identifier: BSD-3-Clause
// Bursty loss: the Gilbert-Elliott model. A chain of two states; each packet may be lost, with the
// chance of the present state, and then the state may change:
//
//	good   lost with 1 - k (k = 100 %: none), then bad with p
//	bad    lost with 1 - h (h = 0 %: all), then good with r
//
// Long-run loss rate = (1 - k) r / (p + r) + (1 - h) p / (p + r). With h = 0 and k = 100 %
// (Gilbert) losses come in runs of 1/r packets on average, geometrically distributed, and 1/p
// packets pass between two runs. p + r = 100 % is independent loss of rate p.
//
// Letters and order (loss before change) are those of Linux's netem, `loss gemodel`, which takes
// 1-h and 1-k where h and k are wanted here.
//
// E. N. Gilbert: Capacity of a Burst-Noise Channel, BSTJ 39, 1960; E. O. Elliott: Estimates of
// Error Rates for Codes on Burst-Noise Channels, BSTJ 42, 1963.
//
// The first packet finds the good state. Two draws per packet, whatever the state, so that runs
// with other parameters use the same draws.
#include "switch/stage/loss.h"

struct gilbert {
	struct loss_stage loss;
	double p, r, h, k;

	uint64_t p_threshold, r_threshold, h_threshold, k_threshold;
	bool bad;
};

static const struct param params[] = {
	{"p", NULL, "chance that the good state turns bad after a packet", UNIT_RATIO,
		PARAM_F64(struct gilbert, p), 0, 1, .live = true},
	{"r", NULL, "chance that the bad state turns good after a packet", UNIT_RATIO,
		PARAM_F64(struct gilbert, r), 0, 1, .live = true},
	{"h", "0%", "share of packets that pass in the bad state", UNIT_RATIO,
		PARAM_F64(struct gilbert, h), 0, 1, .live = true},
	{"k", "100%", "share of packets that pass in the good state", UNIT_RATIO,
		PARAM_F64(struct gilbert, k), 0, 1, .live = true},
	LOSS_UNIT_PARAMS(struct gilbert),
	PARAM_END,
};

static void gilbert_update(void *self, uint64_t now_ns) {
	struct gilbert *g = self;

	g->p_threshold = rng_threshold(g->p);
	g->r_threshold = rng_threshold(g->r);
	g->h_threshold = rng_threshold(g->h);
	g->k_threshold = rng_threshold(g->k);
	g->loss.random |= g->p > 0 || g->k < 1;
}

static int gilbert_init(void *self, const struct stage_env *env, struct err *err) {
	struct gilbert *g = self;

	loss_begin(&g->loss, env);
	gilbert_update(self, 0);
	return 0;
}

static bool gilbert_lost(void *self) {
	struct gilbert *g = self;
	uint64_t fate = rng_u64(&g->loss.rng), change = rng_u64(&g->loss.rng);
	bool lost = !rng_under(fate, g->bad ? g->h_threshold : g->k_threshold);

	g->bad ^= rng_under(change, g->bad ? g->r_threshold : g->p_threshold);
	return lost;
}

static void gilbert_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	loss_push_all(self, pkts, n, drops, gilbert_lost);
}

const struct stage_ops stage_loss_gilbert = {
	.name = "loss_gilbert",
	.summary = "bursty loss: a good and a bad state (Gilbert-Elliott)",
	.reference = "Gilbert 1960; Elliott 1963; Linux netem's `loss gemodel`",
	.params = params,
	.state_size = sizeof(struct gilbert),
	.init = gilbert_init,
	.push = gilbert_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.update = gilbert_update},
	.needs = &(const struct stage_needs){.random = loss_random,
		.rng = offsetof(struct loss_stage, rng),
		.flows = loss_flows},
};
