// SPDX-License-Identifier: BSD-3-Clause
// Duplication: a share of packets leaves twice, at the time of its arrival, the copy right behind
// the packet.
//
//	x(i) = x(i - 1)                  with probability `correlation`
//	x(i) = 1 with probability rate   otherwise, independent of all before
//
// x(i): packet i leaves twice. So P(x = 1) = rate whatever the correlation is, and the correlation
// of x(i) and x(i + k) is correlation^k. There are two draws per packet at any rate, so that runs
// with different rates use the same draws.
//
// A copy is a packet of its own from here on: it waits, is lost, marked or damaged by itself. Its
// number in telemetry is its original's with a bit set: the highest one by a path's first stage of
// this kind, the next one by its second. The ledger counts it as `duplicated`: in + duplicated =
// out + drops + inside.
//
// Where we differ from Linux's netem (sch_netem.c, netem_enqueue), and why:
// - There the copy goes through the whole of netem again, and its original's loss and duplication
//   are one decision: of a packet that is to be both duplicated and lost, one is left. Here stages
//   stand in the order of the config, and those behind this one see two packets, each with draws of
//   its own.
// - netem's correlation is a weighted mean of uniform numbers, compared with the rate: its numbers
//   are not uniform then, and the share of duplicates is not the rate.
#include "common/base/rng.h"
#include "switch/stage/instant.h"

struct duplicate {
	struct instant pass;
	double rate, correlation;

	uint64_t threshold, stays;
	struct rng rng;
	bool random; // a packet was subject to a draw
	bool twice; // the last packet left twice
};

static const struct param params[] = {
	{"rate", NULL, "share of packets that leave twice", UNIT_RATIO,
		PARAM_F64(struct duplicate, rate), 0, 1, .live = true},
	{"correlation", "0%", "of successive decisions: how often one is that of the packet before",
		UNIT_RATIO, PARAM_F64(struct duplicate, correlation), 0, 1, .live = true},
	PARAM_END,
};

static void duplicate_update(void *self, uint64_t now_ns) {
	struct duplicate *d = self;

	d->threshold = rng_threshold(d->rate);
	d->stays = rng_threshold(d->correlation);
	d->random |= d->rate > 0;
}

static int duplicate_init(void *self, const struct stage_env *env, struct err *err) {
	struct duplicate *d = self;

	d->pass.env = env;
	rng_init(&d->rng, env->run_seed, env->name);
	duplicate_update(self, 0);
	// The first packet has none before it.
	d->twice = rng_under(rng_u64(&d->rng), d->threshold);
	return 0;
}

static void duplicate_push(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct duplicate *d = self;

	for (uint32_t i = 0; i < n; i++) {
		bool stays = rng_under(rng_u64(&d->rng), d->stays);
		bool twice = rng_under(rng_u64(&d->rng), d->threshold);
		struct pkt *copy;

		d->twice = stays ? d->twice : twice;
		copy = d->twice ? stage_copy(d->pass.env, pkts[i]) : NULL;
		instant_pass(&d->pass, pkts[i]);
		if (copy != NULL)
			instant_pass(&d->pass, copy);
	}
}

static bool duplicate_random(const void *self) {
	const struct duplicate *d = self;

	return d->random;
}

const struct stage_ops stage_duplicate = {
	.name = "duplicate",
	.summary = "a share of packets leaves twice",
	.params = params,
	.state_size = sizeof(struct duplicate),
	.init = duplicate_init,
	.push = duplicate_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.update = duplicate_update},
	.needs = &(const struct stage_needs){.copies = true,
		.random = duplicate_random,
		.rng = offsetof(struct duplicate, rng)},
};
