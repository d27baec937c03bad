// SPDX-License-Identifier: BSD-3-Clause
// Random loss: each packet is dropped with probability `rate`, independent of all others
// (Bernoulli). The others leave at the time of their arrival.
//
// There is one draw per packet at any rate, so that runs with different rates use the same draws: a
// packet lost at 1 % is also lost at 2 %. With `unit: burst` (loss.h) the same holds of bursts.
#include "switch/stage/loss.h"

const char *const loss_unit_names[] = {"packet", "burst", NULL};

struct loss {
	struct loss_stage loss;
	double rate;
	uint64_t threshold;
};

static const struct param params[] = {
	{"rate", NULL, "share of packets that are lost", UNIT_RATIO, PARAM_F64(struct loss, rate),
		0, 1, .live = true},
	LOSS_UNIT_PARAMS(struct loss),
	PARAM_END,
};

static void loss_update(void *self, uint64_t now_ns) {
	struct loss *l = self;

	l->threshold = rng_threshold(l->rate);
	l->loss.random |= l->rate > 0;
}

static int loss_init(void *self, const struct stage_env *env, struct err *err) {
	struct loss *l = self;

	loss_begin(&l->loss, env);
	loss_update(self, 0);
	return 0;
}

static bool loss_lost(void *self) {
	struct loss *l = self;

	return rng_under(rng_u64(&l->loss.rng), l->threshold);
}

static void loss_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	loss_push_all(self, pkts, n, drops, loss_lost);
}

const struct stage_ops stage_loss = {
	.name = "loss",
	.summary = "independent random loss",
	.params = params,
	.state_size = sizeof(struct loss),
	.init = loss_init,
	.push = loss_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.update = loss_update},
	.needs = &(const struct stage_needs){.random = loss_random,
		.rng = offsetof(struct loss_stage, rng),
		.flows = loss_flows},
};
