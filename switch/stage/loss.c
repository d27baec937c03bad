// SPDX-License-Identifier: BSD-3-Clause
// Random loss: each packet is dropped with probability `rate`, independent of all others
// (Bernoulli). The others leave at the time of their arrival.
//
// There is one draw per packet at any rate, so that runs with different rates use the same draws: a packet lost
// at 1 % is also lost at 2 %.
#include "switch/stage/stage.h"

#include "common/base/rng.h"

struct loss {
	double rate;

	const struct stage_env *env;
	uint64_t threshold;
	bool random; // a packet was subject to a draw
	struct rng rng;
	struct pkt_list out;
};

static const struct param params[] = {
	{"rate", NULL, "share of packets that are lost", UNIT_RATIO, PARAM_F64(struct loss, rate),
		0, 1, .live = true},
	PARAM_END,
};

static void loss_update(void *self, uint64_t now_ns) {
	struct loss *l = self;

	l->threshold = rng_threshold(l->rate);
	l->random |= l->rate > 0;
}

static int loss_init(void *self, const struct stage_env *env, struct err *err) {
	struct loss *l = self;

	l->env = env;
	rng_init(&l->rng, env->run_seed, env->name);
	loss_update(self, 0);
	return 0;
}

static void loss_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct loss *l = self;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t draw = rng_u64(&l->rng);

		if (draw < l->threshold || l->threshold == UINT64_MAX)
			stage_drop(l->env, drops, pkts[i], DROP_LOSS);
		else
			pkt_list_push(&l->out, pkts[i]);
	}
}

static uint32_t loss_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct loss *l = self;
	uint32_t n = 0;

	while (n < max && l->out.head != NULL && l->out.head->arrival_ns <= now_ns)
		pkts[n++] = pkt_list_pop(&l->out);
	return n;
}

static uint64_t loss_next_ns(const void *self) {
	const struct loss *l = self;

	return l->out.head == NULL ? NEVER_NS : l->out.head->arrival_ns;
}

static bool loss_random(const void *self) {
	const struct loss *l = self;

	return l->random;
}

static struct backlog loss_backlog(const void *self) {
	const struct loss *l = self;

	return (struct backlog){.pkts = l->out.count, .bytes = l->out.bytes};
}

const struct stage_ops stage_loss = {
	.name = "loss",
	.summary = "independent random loss",
	.params = params,
	.state_size = sizeof(struct loss),
	.random = loss_random,
	.init = loss_init,
	.push = loss_push,
	.pop = loss_pop,
	.next_ns = loss_next_ns,
	.backlog = loss_backlog,
	.update = loss_update,
};
