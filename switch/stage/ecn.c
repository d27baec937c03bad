// SPDX-License-Identifier: BSD-3-Clause
// Changes the two ECN bits of the IP header, as routers on the way do that treat the old TOS byte
// as a whole or know only parts of RFC 3168. A parameter per codepoint says what it becomes; by
// default it stays:
//
//	bleaching                      {ecn: {ect0: not_ect, ect1: not_ect, ce: not_ect}}: no ECN
//	                               behind this place
//	marks are erased               {ecn: {ce: ect0}}
//	the L4S identifier is lost     {ecn: {ect1: ect0}}
//	everything is marked           {ecn: {ect0: ce, ect1: ce}}
//
// How often each is seen on the Internet: B. Trammell and others: Enabling Internet-Wide Deployment
// of Explicit Congestion Notification, PAM 2015; H. Lim and others: A Fresh Look at ECN Traversal
// in the Wild, arXiv 2208.14523.
//
// A bleached packet may still be dropped by a queue behind this stage that would have marked it.
// The TCP header does not change: the ends negotiate ECN as before (RFC 3168, section 6.1.1).
#include "common/base/rng.h"
#include "switch/stage/instant.h"

// In the order of the codepoints.
static const char *const ecn_names[] = {"not_ect", "ect1", "ect0", "ce", NULL};
static_assert(ECN_NOT_ECT == 0 && ECN_ECT1 == 1 && ECN_ECT0 == 2 && ECN_CE == 3, "as named");

struct ecn_stage {
	struct instant pass;
	int becomes[4]; // by codepoint
	double fraction;

	uint64_t threshold;
	struct rng rng;
	bool random; // a packet was subject to a draw
};

#define ECN_PARAM(name, codepoint, help)                                                           \
	{                                                                                          \
		name, name, help, UNIT_NONE,                                                       \
			.type = PARAM_TYPE_ENUM,                                                   \
			.offset = offsetof(struct ecn_stage, becomes) + (codepoint) * sizeof(int), \
			.choices = ecn_names, .live = true                                         \
	}

static const struct param params[] = {
	ECN_PARAM("not_ect", ECN_NOT_ECT, "what packets become that are not ECN capable"),
	ECN_PARAM("ect0", ECN_ECT0, "what ECT(0) becomes"),
	ECN_PARAM("ect1", ECN_ECT1, "what ECT(1) becomes"),
	ECN_PARAM("ce", ECN_CE, "what CE becomes: marks of the queues before"),
	{"fraction", "100%", "of the packets that this applies to, drawn for each", UNIT_RATIO,
		PARAM_F64(struct ecn_stage, fraction), 0, 1, .live = true},
	PARAM_END,
};

static void ecn_update(void *self, uint64_t now_ns) {
	struct ecn_stage *e = self;

	e->threshold = rng_threshold(e->fraction);
	e->random |= e->fraction > 0 && e->fraction < 1;
}

static int ecn_init(void *self, const struct stage_env *env, struct err *err) {
	struct ecn_stage *e = self;

	e->pass.env = env;
	rng_init(&e->rng, env->run_seed, env->name);
	ecn_update(self, 0);
	return 0;
}

static void ecn_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct ecn_stage *e = self;

	for (uint32_t i = 0; i < n; i++) {
		if (rng_under(rng_u64(&e->rng), e->threshold))
			pkts[i]->ecn = (uint8_t)e->becomes[pkts[i]->ecn & 3];
		instant_pass(&e->pass, pkts[i]);
	}
}

static bool ecn_random(const void *self) {
	const struct ecn_stage *e = self;

	return e->random;
}

const struct stage_ops stage_ecn = {
	.name = "ecn",
	.summary = "changes ECN bits, as some routers do",
	.reference = "RFC 3168; Trammell and others 2015; Lim and others 2022",
	.params = params,
	.state_size = sizeof(struct ecn_stage),
	.init = ecn_init,
	.push = ecn_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.update = ecn_update},
	.needs = &(const struct stage_needs){.random = ecn_random,
		.rng = offsetof(struct ecn_stage, rng)},
};
