// SPDX-License-Identifier: BSD-3-Clause
// Periodic loss: after the first `after` packets, the last `lost` of every `every` packets are
// dropped. Nothing is random: the models of TCP's throughput assume such losses (Mathis, Semke,
// Mahdavi, Ott: The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 27(3),
// 1997, section 2).
#include "switch/stage/loss.h"

#include <errno.h>

struct periodic {
	struct loss_stage loss;
	uint64_t every, lost, after;

	uint64_t left; // packets before the first period
	uint64_t seen; // packets of the present period
};

static const struct param params[] = {
	{"every", NULL, "packets in a period", UNIT_NONE, PARAM_U64(struct periodic, every), 1,
		1e15},
	{"lost", "1", "packets at the end of each period that are lost", UNIT_NONE,
		PARAM_U64(struct periodic, lost), 0, 1e15},
	{"after", "0", "packets that pass before the first period", UNIT_NONE,
		PARAM_U64(struct periodic, after), 0, 1e15},
	LOSS_UNIT_PARAMS(struct periodic),
	PARAM_END,
};

static int periodic_init(void *self, const struct stage_env *env, struct err *err) {
	struct periodic *p = self;

	if (p->lost > p->every)
		return err_set(err, -EINVAL, "lost: %llu of every %llu packets are too many",
			(unsigned long long)p->lost, (unsigned long long)p->every);
	loss_begin(&p->loss, env);
	p->left = p->after;
	return 0;
}

static bool periodic_lost(void *self) {
	struct periodic *p = self;

	if (p->left > 0) {
		p->left--;
		return false;
	}
	p->seen = p->seen < p->every ? p->seen + 1 : 1;
	return p->seen > p->every - p->lost;
}

static void periodic_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	loss_push_all(self, pkts, n, drops, periodic_lost);
}

const struct stage_ops stage_loss_periodic = {
	.name = "loss_periodic",
	.summary = "every n-th packet is lost, or a run of them",
	.params = params,
	.state_size = sizeof(struct periodic),
	.init = periodic_init,
	.push = periodic_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.needs = &(const struct stage_needs){.flows = loss_flows},
};
