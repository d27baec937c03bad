// SPDX-License-Identifier: BSD-3-Clause
// Bursty loss: the General and Intuitive model, a Markov chain of four states. Each packet moves
// the chain, and its fate is that of the new state:
//
//	1  passes, in a gap between bursts      to 3 with p13, to 4 with p14
//	2  passes, within a burst               to 3 with p23
//	3  is lost, within a burst              to 1 with p31, to 2 with p32
//	4  is lost alone, in a gap              to 1
//
// In the long run, with q1 = 1 / (1 + p13/p31 + p13 p32 / (p31 p23) + p14), the shares of the
// states are
//
//	q3 = q1 p13 / p31,  q2 = q3 p32 / p23,  q4 = q1 p14,  loss rate = q3 + q4
//
// p32 = p14 = 0 is the Gilbert model. Parameters are those of Linux's netem, `loss state p13 p31
// p32 p23 p14`.
//
// S. Salsano, F. Ludovici, A. Ordine, D. Giannuzzi: Definition of a general and intuitive loss
// model for packet networks and its implementation in the Netem module in the Linux kernel,
// University of Rome, 2012.
//
// The chain begins in state 1. One draw per packet.
#include "switch/stage/loss.h"

#include <errno.h>

struct markov {
	struct loss_stage loss;
	double p13, p31, p32, p23, p14;

	uint64_t to4, to3; // from 1: the limits of a draw that leads there
	uint64_t to1, to2; // from 3, likewise
	uint64_t back; // from 2 to 3
	uint32_t state;
};

static const struct param params[] = {
	{"p13", NULL, "chance that a burst begins", UNIT_RATIO, PARAM_F64(struct markov, p13), 0,
		1},
	{"p31", NULL, "chance that a burst ends, after a loss", UNIT_RATIO,
		PARAM_F64(struct markov, p31), 0, 1},
	{"p32", "0%", "chance that a packet passes within a burst, after a loss", UNIT_RATIO,
		PARAM_F64(struct markov, p32), 0, 1},
	{"p23", "100%", "chance of the next loss within a burst, after one that passed", UNIT_RATIO,
		PARAM_F64(struct markov, p23), 0, 1},
	{"p14", "0%", "chance of a single loss between bursts", UNIT_RATIO,
		PARAM_F64(struct markov, p14), 0, 1},
	LOSS_UNIT_PARAMS(struct markov),
	PARAM_END,
};

static int markov_init(void *self, const struct stage_env *env, struct err *err) {
	struct markov *m = self;

	if (m->p13 + m->p14 > 1)
		return err_set(err, -EINVAL, "p13 + p14 is %g %%: more than all leave a gap",
			(m->p13 + m->p14) * 100);
	if (m->p31 + m->p32 > 1)
		return err_set(err, -EINVAL, "p31 + p32 is %g %%: more than all follow a loss",
			(m->p31 + m->p32) * 100);
	loss_begin(&m->loss, env);
	m->to4 = rng_threshold(m->p14);
	m->to3 = rng_threshold(m->p14 + m->p13);
	m->to2 = rng_threshold(m->p32);
	m->to1 = rng_threshold(m->p32 + m->p31);
	m->back = rng_threshold(m->p23);
	m->state = 1;
	m->loss.random = m->p13 + m->p14 > 0;
	return 0;
}

static bool markov_lost(void *self) {
	struct markov *m = self;
	uint64_t draw = rng_u64(&m->loss.rng);

	switch (m->state) {
	case 1:
		m->state = rng_under(draw, m->to4) ? 4 : rng_under(draw, m->to3) ? 3 : 1;
		break;
	case 2:
		m->state = rng_under(draw, m->back) ? 3 : 2;
		break;
	case 3:
		m->state = rng_under(draw, m->to2) ? 2 : rng_under(draw, m->to1) ? 1 : 3;
		break;
	default:
		m->state = 1;
	}
	return m->state > 2;
}

static void markov_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	loss_push_all(self, pkts, n, drops, markov_lost);
}

const struct stage_ops stage_loss_markov = {
	.name = "loss_markov",
	.summary = "bursty loss: a Markov chain of four states",
	.reference = "Salsano and others 2012; Linux netem's `loss state`",
	.params = params,
	.state_size = sizeof(struct markov),
	.init = markov_init,
	.push = markov_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.needs = &(const struct stage_needs){.random = loss_random,
		.rng = offsetof(struct loss_stage, rng),
		.flows = loss_flows},
};
