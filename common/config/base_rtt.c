// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/base_rtt.h"

#include "common/base/draw.h"
#include "common/base/ns.h"
#include "common/config/numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RTT_MAX_NS 6e10
#define INSIDE_LEAST                                                                               \
	0.01 // of the distribution in [min, max]; one draw in a hundred, or more, is not repeated
#define DRAWS_MAX 10000 // with such a chance not even one in 10^43 flows takes so many

// The parameters of all distributions.
struct spread {
	uint64_t min_ns, max_ns, mean_ns, sd_ns, unit_ns;
	double shape;
	struct numbers table;
};

struct law {
	struct base_rtt_law; // what --list shows
	// The draw, in ns, which may lie outside [min, max].
	double (*draw)(const struct spread *s, struct rng *rng);
	// Chance that a draw lies in [min, max]; NULL: it always does.
	double (*inside)(const struct spread *s);
};

#define MIN                                                                                        \
	{                                                                                          \
		"min", NULL, "least base RTT", UNIT_TIME_NS, PARAM_U64(struct spread, min_ns), 1,  \
			RTT_MAX_NS                                                                 \
	}
#define MAX(def)                                                                                   \
	{                                                                                          \
		"max", def, "largest base RTT", UNIT_TIME_NS, PARAM_U64(struct spread, max_ns), 1, \
			RTT_MAX_NS                                                                 \
	}
#define MEAN                                                                                       \
	{                                                                                          \
		"mean", NULL, "mean, before draws outside min and max are repeated", UNIT_TIME_NS, \
			PARAM_U64(struct spread, mean_ns), 1, RTT_MAX_NS                           \
	}
static const struct param between_params[] = {MIN, MAX(NULL), PARAM_END};
static const struct param normal_params[] = {
	MEAN,
	{"sd", NULL, "standard deviation", UNIT_TIME_NS, PARAM_U64(struct spread, sd_ns), 1,
		RTT_MAX_NS},
	MIN,
	MAX("60s"),
	PARAM_END,
};
static const struct param exponential_params[] = {MEAN, MIN, MAX("60s"), PARAM_END};
static const struct param pareto_params[] = {
	MIN,
	{"shape", "1.5", "exponent of the tail; 1 or less: no finite mean without max", UNIT_NONE,
		PARAM_F64(struct spread, shape), 0.01, 100},
	MAX("60s"),
	PARAM_END,
};
static const struct param table_params[] = {
	{"unit", "1ms", "what the number 1 in the file means", UNIT_TIME_NS,
		PARAM_U64(struct spread, unit_ns), 1, 1e9},
	PARAM_END,
};
static const struct param table_also[] = {
	CONFIG_FILE_PARAMS("base RTTs, each as likely as the others"), PARAM_END};

static double width_ns(const struct spread *s) {
	return (double)s->max_ns - (double)s->min_ns;
}

static double uniform_draw(const struct spread *s, struct rng *rng) {
	return (double)s->min_ns + width_ns(s) * rng_unit(rng);
}

static double log_uniform_draw(const struct spread *s, struct rng *rng) {
	return (double)s->min_ns
		* portable_pow((double)s->max_ns / (double)s->min_ns, rng_unit(rng));
}

static double normal_draw(const struct spread *s, struct rng *rng) {
	return (double)s->mean_ns + (double)s->sd_ns * draw_normal(rng);
}

static double normal_inside(const struct spread *s) {
	double mean = (double)s->mean_ns, sd = (double)s->sd_ns;

	return portable_normal_cdf(((double)s->max_ns - mean) / sd)
		- portable_normal_cdf(((double)s->min_ns - mean) / sd);
}

static double exponential_draw(const struct spread *s, struct rng *rng) {
	return (double)s->min_ns
		+ ((double)s->mean_ns - (double)s->min_ns) * quantile_exponential(rng_unit(rng));
}

static double exponential_inside(const struct spread *s) {
	return 1 - portable_exp(-width_ns(s) / ((double)s->mean_ns - (double)s->min_ns));
}

static double pareto_draw(const struct spread *s, struct rng *rng) {
	return (double)s->min_ns * quantile_pareto(rng_unit(rng), s->shape);
}

static double pareto_inside(const struct spread *s) {
	return 1 - portable_pow((double)s->min_ns / (double)s->max_ns, s->shape);
}

static double table_draw(const struct spread *s, struct rng *rng) {
	return numbers_quantile(&s->table, rng_unit(rng)) * (double)s->unit_ns;
}

static const struct law laws[] = {
	{{"uniform", "base RTTs between min and max, each as likely", between_params, NULL},
		uniform_draw, NULL},
	{{"log_uniform", "base RTTs whose logarithm is uniform: as many from 1 to 10 as to 100 ms",
		 between_params, NULL},
		log_uniform_draw, NULL},
	{{"normal", "normal base RTTs", normal_params, NULL}, normal_draw, normal_inside},
	{{"exponential", "base RTTs of min and an exponential time, together of this mean",
		 exponential_params, NULL},
		exponential_draw, exponential_inside},
	{{"pareto", "base RTTs with a heavy tail: P(X > x) = (min / x)^shape", pareto_params, NULL},
		pareto_draw, pareto_inside},
	{{"table", "measured base RTTs from a file, each as likely as the others", table_params,
		 table_also},
		table_draw, NULL},
};
#define LAWS (sizeof(laws) / sizeof(laws[0]))

const struct base_rtt_law *base_rtt_law(size_t i) {
	return i < LAWS ? (const struct base_rtt_law *)&laws[i] : NULL;
}

// The bounds of a table are its own.
static int table_bounds(struct spread *s, struct config_node *params, struct err *err) {
	double least_ns, most_ns;
	int rc = numbers_read(&s->table, params, err);

	if (rc < 0)
		return rc;
	least_ns = s->table.value[0] * (double)s->unit_ns;
	most_ns = s->table.value[s->table.count - 1] * (double)s->unit_ns;
	if (least_ns < 1 || most_ns > RTT_MAX_NS)
		return config_err(config_get(params, "file"), -ERANGE, err,
			"file: base RTTs of %g to %g ms are not in [1ns, 60s]", least_ns / 1e6,
			most_ns / 1e6);
	s->min_ns = (uint64_t)least_ns;
	s->max_ns = (uint64_t)most_ns + 1;
	return 0;
}

// Whether the values go together.
static int spread_check(const struct spread *s, const struct law *law, struct config_node *params,
	struct err *err) {
	if (s->min_ns > s->max_ns)
		return config_err(config_get(params, "max"), -EINVAL, err,
			"%s: max: %g ms is less than min, %g ms", law->name,
			(double)s->max_ns / 1e6, (double)s->min_ns / 1e6);
	if (law->draw == exponential_draw && s->mean_ns <= s->min_ns)
		return config_err(config_get(params, "mean"), -EINVAL, err,
			"%s: mean: %g ms is not more than min, %g ms", law->name,
			(double)s->mean_ns / 1e6, (double)s->min_ns / 1e6);
	if (law->inside != NULL && !(law->inside(s) >= INSIDE_LEAST))
		return config_err(params, -EINVAL, err,
			"%s: less than 1 %% of the draws would lie between min, %g ms, and max, "
			"%g ms",
			law->name, (double)s->min_ns / 1e6, (double)s->max_ns / 1e6);
	return 0;
}

static struct config_name nth_law(size_t i) {
	return (struct config_name){i < LAWS ? laws[i].name : NULL, NULL};
}

static int spread_read(
	struct spread *s, const struct law **law, struct config_node *node, struct err *err) {
	struct config_node *params;
	const char *name;
	size_t which;
	int rc = config_plugin(node, "base_rtt", &name, &params, err);

	if (rc < 0)
		return rc;
	if ((rc = config_registered(node, "base_rtt", "a distribution", nth_law, &which, err)) < 0)
		return rc;
	*law = &laws[which];
	rc = config_params(params, (*law)->name, (*law)->params, (*law)->also, s, err);
	if (rc == 0 && (*law)->also != NULL)
		rc = table_bounds(s, params, err);
	return rc < 0 ? rc : spread_check(s, *law, params, err);
}

// The draw of the flow with this number in its group. `group`: what no other group is called.
static uint64_t draw_ns(const struct spread *s, const struct law *law, uint64_t seed,
	const char *group, uint32_t number) {
	double least_ns = (double)s->min_ns, most_ns = (double)s->max_ns, rtt_ns = least_ns;
	char name[PARAM_TEXT_SIZE + 40];
	struct rng rng;

	snprintf(name, sizeof(name), "flows.%s.base_rtt.%u", group, number);
	rng_init(&rng, seed, name);
	for (uint32_t i = 0; i < DRAWS_MAX; i++) {
		rtt_ns = law->draw(s, &rng);
		if (rtt_ns >= least_ns && rtt_ns <= most_ns)
			break;
	}
	return (uint64_t)(fmin(fmax(rtt_ns, least_ns), most_ns) + 0.5);
}

static int ns_order(const void *pa, const void *pb) {
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a > b) - (a < b);
}

// Least, median and largest of a group's flows.
static int group_range(struct base_rtt_group *g, const uint64_t *flow_ns, struct err *err) {
	size_t bytes = g->flows * sizeof(*flow_ns);
	uint64_t *sorted = malloc(bytes);

	if (sorted == NULL)
		return err_set(err, -ENOMEM, "base_rtt: no memory for %u flows", g->flows);
	memcpy(sorted, flow_ns + g->first, bytes);
	qsort(sorted, g->flows, sizeof(*sorted), ns_order);
	g->min_ns = sorted[0];
	g->median_ns = sorted[(g->flows - 1) / 2];
	g->max_ns = sorted[g->flows - 1];
	free(sorted);
	return 0;
}

static int no_longer(const struct base_rtt_group *g, struct config_node *node, uint64_t duration_ns,
	struct err *err) {
	if (duration_ns == 0 || g->max_ns < duration_ns)
		return 0;
	return config_err(node, -EINVAL, err,
		"base_rtt: %g ms, the longest that a flow of this group has, is not less than the "
		"run, %g ms; write a smaller max or a longer duration",
		(double)g->max_ns / 1e6, (double)duration_ns / 1e6);
}

static const char *name_of(struct config_node *group) {
	const struct config_node *named = config_get(group, "name");
	const char *name = named != NULL ? config_text(named) : NULL;

	return name != NULL ? name : "";
}

// What a group's draws are named by: its name, or its place in the list; from the second group of a
// name on, the place among them too. Otherwise two groups of one name would have the same draws.
static void stream_name(struct config_node *list, uint32_t group, char *out, size_t size) {
	const char *name = name_of(config_at(list, group));
	uint32_t nth = 1;

	for (uint32_t i = 0; i < group; i++)
		nth += strcmp(name_of(config_at(list, i)), name) == 0;
	if (name[0] == '\0')
		snprintf(out, size, "%u", group);
	else if (nth == 1)
		snprintf(out, size, "%s", name);
	else
		snprintf(out, size, "%s.%u", name, nth);
}

static struct config_node *distribution_of(struct config_node *list, uint32_t group) {
	struct config_node *node = config_get(config_at(list, group), "base_rtt");

	return node != NULL && config_kind(node) == CONFIG_MAP ? node : NULL;
}

// Refuses a group whose name is what another group's draws are named by: the second `a` and a group
// called `a.2`.
static int draws_of_its_own(struct config_node *list, uint32_t group, struct err *err) {
	char mine[PARAM_TEXT_SIZE + 12], other[PARAM_TEXT_SIZE + 12];

	stream_name(list, group, mine, sizeof(mine));
	for (uint32_t i = 0; i < group; i++) {
		stream_name(list, i, other, sizeof(other));
		if (distribution_of(list, i) != NULL && strcmp(other, mine) == 0)
			return config_err(distribution_of(list, group), -EINVAL, err,
				"base_rtt: the draws would be those of flows.%u, which are named "
				"'%s' too; write another name for this group",
				i, mine);
	}
	return 0;
}

// Draws for all flows of a group.
static int group_draw(struct base_rtts *b, uint32_t group, struct config_node *list,
	struct config_node *node, uint64_t seed, struct err *err) {
	struct base_rtt_group *g = &b->group[group];
	const struct law *law = NULL;
	struct spread s = {0};
	char name[PARAM_TEXT_SIZE + 12];
	int rc = spread_read(&s, &law, node, err);

	stream_name(list, group, name, sizeof(name));
	for (uint32_t i = 0; rc == 0 && i < g->flows; i++)
		b->flow_ns[g->first + i] = draw_ns(&s, law, seed, name, i);
	if (rc == 0) {
		g->law = law->name;
		g->least_ns = s.min_ns;
		rc = group_range(g, b->flow_ns, err);
	}
	numbers_fini(&s.table);
	return rc;
}

int base_rtts_init(struct base_rtts *b, const struct flows *f, struct config_node *list,
	uint64_t seed, uint64_t duration_ns, struct err *err) {
	uint32_t first = 0;
	int rc = 0;

	memset(b, 0, sizeof(*b));
	b->groups = f->groups;
	for (uint32_t g = 0; g < f->groups; g++) {
		uint64_t rtt_ns = f->base_rtt_ns[g];

		b->group[g] = (struct base_rtt_group){.least_ns = rtt_ns,
			.min_ns = rtt_ns,
			.median_ns = rtt_ns,
			.max_ns = rtt_ns,
			.first = first,
			.flows = f->group_count[g]};
		first += f->group_count[g];
	}
	for (uint32_t g = 0; rc == 0 && g < f->groups; g++) {
		struct config_node *node = distribution_of(list, g);

		if (node == NULL)
			continue;
		if ((rc = draws_of_its_own(list, g, err)) < 0)
			return rc;
		if (b->flow_ns == NULL)
			b->flow_ns = calloc(f->count, sizeof(*b->flow_ns));
		if (b->flow_ns == NULL)
			return err_set(err, -ENOMEM, "base_rtt: no memory for %u flows", f->count);
		rc = group_draw(b, g, list, node, seed, err);
		if (rc == 0)
			rc = no_longer(&b->group[g], node, duration_ns, err);
	}
	for (uint32_t i = 0; b->flow_ns != NULL && i < f->groups; i++) {
		for (uint32_t k = 0; b->group[i].law == NULL && k < b->group[i].flows; k++)
			b->flow_ns[b->group[i].first + k] = f->base_rtt_ns[i];
	}
	return rc;
}

void base_rtts_free(struct base_rtts *b) {
	free(b->flow_ns);
	memset(b, 0, sizeof(*b));
}
