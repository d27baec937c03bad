// SPDX-License-Identifier: BSD-3-Clause
// A link with two states, good and bad, each with a rate: a continuous-time Markov chain. It begins
// in the good state, and stays in a state for a random time with a given mean: exponential, or
// (`distribution: geometric`) a geometric number of slots.
//
//	exponential  t = -mean * ln(u)                                    u uniform in (0, 1]
//	geometric    n = ceil(ln(u) / ln(1 - slot / mean)), t = n * slot
//
// In the long run the share of time in the good state is good_mean / (good_mean + bad_mean). A bad
// rate of 0 makes outages: the Gilbert channel (Gilbert, "Capacity of a Burst-Noise Channel", 1960)
// with packets that wait.
//
// Both durations of a cycle are drawn from the stage's own random stream, in turn, so that the
// times of all changes follow from the seed and nothing else.
#include "switch/stage/stepped.h"

#include "common/base/portable_math.h"
#include "common/base/rng.h"
#include "common/base/u64.h"

#include <errno.h>
#include <math.h>

enum distribution { EXPONENTIAL, GEOMETRIC };
static const char *const distribution_names[] = {"exponential", "geometric", NULL};

struct markov_link {
	struct stepped stepped;
	uint64_t good_bps, bad_bps;
	uint64_t good_mean_ns, bad_mean_ns;
	int distribution;
	uint64_t slot_ns;

	bool bad;
	struct rng rng;
};

static const struct param params[] = {
	{"good", NULL, "rate in the good state", UNIT_RATE_BPS,
		PARAM_U64(struct markov_link, good_bps), 1e3, 1e12},
	{"bad", NULL, "rate in the bad state; 0: the link is down", UNIT_RATE_BPS,
		PARAM_U64(struct markov_link, bad_bps), 1e3, 1e12, .zero = true},
	// Each change costs time even if no packet comes, hence the least mean.
	{"good_mean", "1s", "mean time in the good state", UNIT_TIME_NS,
		PARAM_U64(struct markov_link, good_mean_ns), 1e5, 1e15},
	{"bad_mean", "100ms", "mean time in the bad state", UNIT_TIME_NS,
		PARAM_U64(struct markov_link, bad_mean_ns), 1e5, 1e15},
	{"distribution", "exponential", "of the times in a state", UNIT_NONE,
		PARAM_ENUM(struct markov_link, distribution, distribution_names)},
	{"slot", "1ms", "geometric: times are whole numbers of it", UNIT_TIME_NS,
		PARAM_U64(struct markov_link, slot_ns), 1e4, 1e15},
	FRAMING_PARAM(struct markov_link, stepped.link.serialiser.framing, "ethernet",
		"what a frame is carried in"),
	PARAM_END,
};

static const struct param also[] = {LINK_QUEUE_PARAM, FRAMING_OVERHEAD_PARAM, PARAM_END};

static uint64_t markov_time_ns(struct markov_link *l, uint64_t mean_ns) {
	double log_u = portable_log(1.0 - rng_unit(&l->rng)), mean = (double)mean_ns;

	if (l->distribution == EXPONENTIAL)
		return (uint64_t)(-mean * log_u) + 1;
	if (l->slot_ns == mean_ns)
		return mean_ns;
	return l->slot_ns
		* max_u64((uint64_t)ceil(log_u / portable_log1p(-(double)l->slot_ns / mean)), 1);
}

static void markov_step(struct stepped *s, uint64_t now_ns) {
	struct markov_link *l = (struct markov_link *)s;

	l->bad = now_ns > 0 && !l->bad;
	s->rate_bps = l->bad ? l->bad_bps : l->good_bps;
	s->change_ns = now_ns + markov_time_ns(l, l->bad ? l->bad_mean_ns : l->good_mean_ns);
}

static int markov_init(void *self, const struct stage_env *env, struct err *err) {
	struct markov_link *l = self;

	if (l->distribution == GEOMETRIC
		&& (l->slot_ns > l->good_mean_ns || l->slot_ns > l->bad_mean_ns))
		return err_set(err, -EINVAL, "slot: longer than the mean time in a state");
	rng_init(&l->rng, env->run_seed, env->name);
	l->stepped.step = markov_step;
	return stepped_begin(&l->stepped, env, l->good_bps, err);
}

static uint64_t markov_rate_bps(const void *self) {
	const struct markov_link *l = self;

	return max_u64(l->good_bps, l->bad_bps);
}

const struct stage_ops stage_markov_link = {
	.name = "markov_link",
	.summary = "a queue and a wire that is in a good or in a bad state",
	.reference = "Gilbert, Capacity of a Burst-Noise Channel, 1960",
	.params = params,
	.state_size = sizeof(struct markov_link),
	.init = markov_init,
	.fini = link_fini,
	.push = stepped_push,
	.pop = stepped_pop,
	.next_ns = stepped_next_ns,
	.backlog = link_backlog,
	.config =
		&(const struct stage_config){
			.also = also, .configure = link_configure, .queue = link_part},
	.capacity =
		&(const struct stage_capacity){.limit = link_limit, .rate_bps = markov_rate_bps},
	.figures = &(const struct stage_figures){.serve = stepped_serve, .read = link_figures},
	.observer = &link_observer,
	.needs = &(const struct stage_needs){.random = stage_always,
		.rng = offsetof(struct markov_link, rng),
		.flows = link_flows,
		.headers = link_headers},
};
