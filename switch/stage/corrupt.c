// SPDX-License-Identifier: BSD-3-Clause
// Corruption: each packet is damaged with probability `rate`, independent of all others. It goes
// on, takes its place in queues, and is discarded by the host that finds its checksum wrong (RFC
// 9293, section 3.1): to TCP a loss, but not one that a queue made.
//
// The stage sets PKT_CORRUPT. Live, and in captures, that flips one bit of the frame
// (net/corrupt.h), which the checksum of TCP, UDP or ICMP catches; in virtual time, where segments
// travel decoded, the receiving host counts a checksum error and discards the segment.
#include "common/base/rng.h"
#include "switch/stage/instant.h"

struct corrupt {
	struct instant pass;
	double rate;

	uint64_t threshold;
	struct rng rng;
	bool random; // a packet was subject to a draw
};

static const struct param params[] = {
	{"rate", NULL, "share of packets that get a flipped bit", UNIT_RATIO,
		PARAM_F64(struct corrupt, rate), 0, 1, .live = true},
	PARAM_END,
};

static void corrupt_update(void *self, uint64_t now_ns) {
	struct corrupt *c = self;

	c->threshold = rng_threshold(c->rate);
	c->random |= c->rate > 0;
}

static int corrupt_init(void *self, const struct stage_env *env, struct err *err) {
	struct corrupt *c = self;

	c->pass.env = env;
	rng_init(&c->rng, env->run_seed, env->name);
	corrupt_update(self, 0);
	return 0;
}

static void corrupt_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct corrupt *c = self;

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = pkts[i];

		if (rng_under(rng_u64(&c->rng), c->threshold)) {
			p->flags |= PKT_CORRUPT;
			stage_trace(c->pass.env, TEL_CORRUPT, p, p->arrival_ns, 0);
		}
		instant_pass(&c->pass, p);
	}
}

static bool corrupt_random(const void *self) {
	const struct corrupt *c = self;

	return c->random;
}

const struct stage_ops stage_corrupt = {
	.name = "corrupt",
	.summary = "flips a bit of some packets, which the receiver's checksum catches",
	.params = params,
	.state_size = sizeof(struct corrupt),
	.init = corrupt_init,
	.push = corrupt_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.update = corrupt_update},
	.needs = &(const struct stage_needs){.random = corrupt_random,
		.rng = offsetof(struct corrupt, rng)},
};
