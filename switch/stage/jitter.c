// SPDX-License-Identifier: BSD-3-Clause
// Random delay. A packet's delay is drawn on its arrival:
//
//	delay = mean + spread * x, not below 0 and not above `max`
//
//	uniform   x between -1 and 1
//	normal    x of mean 0 and standard deviation 1
//	pareto    x = (P - E[P]) / sd(P), of mean 0 and standard deviation 1, from Pareto's P >= 1
//	          with Pr(P > t) = t^-shape; Linux's netem has shape 3
//	table     x = v / scale, v one of the numbers of a file, each as likely as the others. Scale
//	          8192 is that of netem's tables (tc-netem, iproute2); with spread 1us, mean 0ms and
//	          scale 1 the file has delays in us
//
// Correlation: with `half_life` the delays are no longer independent. A normal number y follows the
// time between arrivals, an exponential moving average whose weight halves once per half-life:
//
//	y = a y + sqrt(1 - a^2) z,  a = 2^(-time since the last arrival / half_life)
//
// with a standard normal z. So y is standard normal at any time, with correlation a, and x is the
// quantile of the distribution at Phi(y): each delay has the distribution that is written, and
// packets close together have nearly the same. Order mostly survives, since delays rarely fall
// faster than time passes. (DPDS, arXiv 2606.17716, calls it adaptive delay correlation; a plain
// average of independent delays would have a smaller spread the longer the half-life.)
//
// A share `ahead` of the packets passes at once, as with netem's `reorder`. `gap: n` is netem's too
// (tc-netem(8)): after each of these the next n - 1 packets are delayed, and only then packets may
// be ahead again, so that with `ahead: 100%` every n-th is. On average one of n - 1 + 1 / ahead
// packets is. netem's correlation of these draws is left out.
//
// `reordering: forbidden`: a packet leaves no earlier than the one before it (delay_wheel.h).
#include "switch/stage/delay_wheel.h"

#include "common/base/draw.h"
#include "common/config/numbers.h"

#include <errno.h>

#define MAX_SPREADS                                                                                \
	20 // `max` if none is given: mean + so many; of a table: mean + its largest number
#define DELAY_MAX_NS 60e9
#define LONGEST_NS ((1 + MAX_SPREADS) * DELAY_MAX_NS) // of any distribution

enum distribution { UNIFORM, NORMAL, PARETO, TABLE };
static const char *const distribution_names[] = {"uniform", "normal", "pareto", "table", NULL};
enum reordering { ALLOWED, FORBIDDEN };
static const char *const reordering_names[] = {"allowed", "forbidden", NULL};

struct jitter {
	struct delay_wheel wheel;
	uint64_t mean_ns, spread_ns, max_ns, half_life_ns;
	int distribution, reordering;
	double shape, scale, ahead;
	uint64_t gap;

	struct numbers table;
	double pareto_mean, pareto_sd;
	uint64_t longest_ns; // that a delay may be
	uint64_t ahead_threshold;
	uint64_t delayed; // packets since the last that was ahead
	double y;
	uint64_t arrival_ns; // of the packet before, 0 at first
	bool begun, random;
	struct rng rng;
};

static const struct param params[] = {
	{"mean", NULL, "mean of the delay, before it is cut at 0 and max", UNIT_TIME_NS,
		PARAM_U64(struct jitter, mean_ns), 0, DELAY_MAX_NS, .live = true},
	{"spread", NULL, "standard deviation; uniform: half of the width; table: one unit",
		UNIT_TIME_NS, PARAM_U64(struct jitter, spread_ns), 0, DELAY_MAX_NS, .live = true},
	{"distribution", "normal", "of independent delays", UNIT_NONE,
		PARAM_ENUM(struct jitter, distribution, distribution_names)},
	{"half_life", "0ns", "after which the correlation of two delays is a half; 0: independent",
		UNIT_TIME_NS, PARAM_U64(struct jitter, half_life_ns), 0, DELAY_MAX_NS,
		.live = true},
	{"reordering", "allowed", "whether packets may overtake others", UNIT_NONE,
		PARAM_ENUM(struct jitter, reordering, reordering_names)},
	{"ahead", "0%", "share of packets that pass without delay", UNIT_RATIO,
		PARAM_F64(struct jitter, ahead), 0, 1, .live = true},
	{"gap", "1", "packets from one that is ahead to the first that may be the next", UNIT_NONE,
		PARAM_U64(struct jitter, gap), 1, 1e6, .live = true},
	{"max", "0ns", "longest delay; 0: mean + 20 spread; table: + its largest", UNIT_TIME_NS,
		PARAM_U64(struct jitter, max_ns), 0, DELAY_MAX_NS},
	{"shape", "3", "pareto: exponent of the tail", UNIT_NONE, PARAM_F64(struct jitter, shape),
		2.01, 100},
	{"scale", "8192", "table: number in the file that is one spread", UNIT_NONE,
		PARAM_F64(struct jitter, scale), 1e-9, 1e12},
	PARAM_END,
};

static const struct param also[] = {
	{"file", "", "table: numbers, as netem's; relative to the config's folder", UNIT_NONE,
		PARAM_FILE},
	{"digest", "", "of the file, which is checked if it is given", UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};

static int jitter_configure(void *self, struct config_node *node, struct err *err) {
	struct jitter *j = self;
	const struct config_node *named = config_get(node, "file");

	j->pareto_mean = j->shape / (j->shape - 1);
	j->pareto_sd = sqrt(j->shape / (j->shape - 2)) / (j->shape - 1);
	if (j->distribution != TABLE && named == NULL)
		return 0;
	if (j->distribution != TABLE)
		return config_err(named, -EINVAL, err, "file: is for distribution: table alone");
	return numbers_read(&j->table, node, err);
}

static double limited(const struct jitter *j, double delay_ns) {
	double most_ns = (double)j->longest_ns;

	return delay_ns <= 0 ? 0 : delay_ns < most_ns ? delay_ns : most_ns;
}

// x at quantile u, between 0 and 1.
static double quantile(const struct jitter *j, double u) {
	switch (j->distribution) {
	case UNIFORM:
		return 2 * u - 1;
	case PARETO:
		return (quantile_pareto(u, j->shape) - j->pareto_mean) / j->pareto_sd;
	default:
		return numbers_quantile(&j->table, u) / j->scale;
	}
}

// The next y, at an arrival.
static double draw_correlated(struct jitter *j, uint64_t t_ns) {
	double z = draw_normal(&j->rng);
	double a = portable_exp(-M_LN2 * (double)(t_ns - j->arrival_ns) / (double)j->half_life_ns);

	j->y = j->begun ? a * j->y + sqrt(1 - a * a) * z : z;
	return j->y;
}

// One number is drawn per packet, whether or not it decides.
static bool draw_ahead(struct jitter *j) {
	bool drawn = rng_under(rng_u64(&j->rng), j->ahead_threshold);
	bool ahead = drawn && j->delayed + 1 >= j->gap;

	j->delayed = ahead ? 0 : j->delayed + 1;
	return ahead;
}

static uint64_t draw_delay_ns(struct jitter *j, uint64_t t_ns) {
	bool ahead = draw_ahead(j);
	double x, y;

	if (j->half_life_ns == 0) {
		x = j->distribution == NORMAL ? draw_normal(&j->rng)
					      : quantile(j, rng_unit(&j->rng));
	} else {
		y = draw_correlated(j, t_ns);
		// Phi(y) is 1 beyond 8.3 in double precision.
		x = j->distribution == NORMAL
			? y
			: quantile(j, fmin(portable_normal_cdf(y), 1 - 0x1.0p-53));
	}
	if (ahead)
		return 0;
	return (uint64_t)(limited(j, (double)j->mean_ns + (double)j->spread_ns * x) + 0.5);
}

// The bound of delays: as given, or one that cuts off what is very rare, and nothing of a table.
static uint64_t jitter_longest_ns(const struct jitter *j) {
	const struct numbers *table = &j->table;
	double largest;

	if (j->max_ns > 0)
		return j->max_ns;
	if (j->distribution != TABLE)
		return j->mean_ns + MAX_SPREADS * j->spread_ns;
	largest = (double)j->spread_ns * table->value[table->count - 1] / j->scale;
	return (uint64_t)ceil(fmin(fmax((double)j->mean_ns + largest, 0), LONGEST_NS));
}

static void jitter_update(void *self, uint64_t now_ns) {
	struct jitter *j = self;

	j->ahead_threshold = rng_threshold(j->ahead);
	j->longest_ns = jitter_longest_ns(j);
	j->random |= j->spread_ns > 0 || (j->ahead > 0 && j->ahead < 1);
}

static int jitter_init(void *self, const struct stage_env *env, struct err *err) {
	struct jitter *j = self;

	delay_wheel_init(&j->wheel, env);
	j->wheel.in_order = j->reordering == FORBIDDEN;
	rng_init(&j->rng, env->run_seed, env->name);
	jitter_update(self, 0);
	return 0;
}

static void jitter_fini(void *self) {
	struct jitter *j = self;

	numbers_fini(&j->table);
}

static void jitter_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct jitter *j = self;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t t_ns = pkts[i]->arrival_ns, delay_ns = draw_delay_ns(j, t_ns);

		j->arrival_ns = t_ns;
		j->begun = true;
		delay_wheel_push(&j->wheel, pkts[i], delay_ns, drops);
	}
}

static bool jitter_random(const void *self) {
	const struct jitter *j = self;

	return j->random;
}

// The shortest delay that may be drawn.
static uint64_t jitter_min_delay_ns(const void *self) {
	const struct jitter *j = self;
	double x = j->distribution == NORMAL ? -HUGE_VAL : quantile(j, 0), min_ns;

	if (j->ahead > 0)
		return 0;
	min_ns = (double)j->mean_ns + (j->spread_ns > 0 ? (double)j->spread_ns * x : 0);
	if (min_ns <= 0)
		return 0;
	return j->max_ns > 0 ? time_min((uint64_t)min_ns, j->max_ns) : (uint64_t)min_ns;
}

static uint64_t jitter_max_delay_ns(const void *self) {
	const struct jitter *j = self;

	return j->longest_ns + delay_wheel_extra_ns(&j->wheel);
}

const struct stage_ops stage_jitter = {
	.name = "jitter",
	.summary = "random delay, independent or correlated, with or without reordering",
	.params = params,
	.state_size = sizeof(struct jitter),
	.init = jitter_init,
	.fini = jitter_fini,
	.push = jitter_push,
	.pop = delay_wheel_pop,
	.next_ns = delay_wheel_next_ns,
	.backlog = delay_wheel_backlog,
	.config =
		&(const struct stage_config){
			.also = also, .configure = jitter_configure, .update = jitter_update},
	.delay = &(const struct stage_delay){.min_ns = jitter_min_delay_ns,
		.max_ns = jitter_max_delay_ns},
	.needs = &(const struct stage_needs){.random = jitter_random,
		.rng = offsetof(struct jitter, rng)},
};
