// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/stop.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define METRIC_NAME(id, name) name,
static const char *const metrics[] = {"none", STOP_METRICS(METRIC_NAME) NULL};

const struct param stop_params[] = {
	{"change", "1%",
		"settled: it moved by less, or with confidence: the interval's half-width is less",
		UNIT_RATIO, PARAM_F64(struct stop, change), 1e-9, 1},
	{"over", "20min", "since this long ago; with confidence: measured at least this long",
		UNIT_TIME_NS, PARAM_U64(struct stop, over_ns), 1e6, 86400e9},
	{"confidence", "0%", "of the interval of its mean, by batch means; 0: by change",
		UNIT_RATIO, PARAM_F64(struct stop, confidence), 0.5, 0.999, .zero = true},
	PARAM_END,
};
const struct param stop_metric_params[] = {
	{"metric", "goodput", "what must settle, or a list of such; none: run to the end",
		UNIT_NONE, PARAM_NAMES, .choices = metrics},
	PARAM_END,
};

static uint64_t tick_ns(const struct stop *s, uint64_t k) {
	return stop_tick_ns(s->start_ns, s->over_ns, k);
}

struct chosen {
	int metric; // 0: none, else 1 + enum stop_metric
};

static int add_metric(struct stop *s, struct config_node *node, bool alone, struct err *err) {
	static const struct param one = {
		"metric", NULL, "", UNIT_NONE, PARAM_ENUM(struct chosen, metric, metrics)};
	const char *text = config_text(node);
	struct chosen chosen;
	struct err why;
	size_t used = strlen(s->names);

	if (text == NULL)
		return config_err(
			node, -EINVAL, err, "metric: a name is wanted, or a list of names");
	if (param_set(&one, &chosen, text, &why) < 0)
		return config_err(node, -EINVAL, err, "%s", why.msg);
	if (chosen.metric == 0 && !alone)
		return config_err(node, -EINVAL, err, "metric: none stands alone");
	if (chosen.metric == 0)
		return 0;
	if (stop_uses(s, (enum stop_metric)(chosen.metric - 1)))
		return config_err(node, -EINVAL, err, "metric: %s is there twice", text);
	s->metrics |= UINT32_C(1) << (chosen.metric - 1);
	snprintf(s->names + used, sizeof(s->names) - used, "%s%s", used > 0 ? ", " : "",
		metrics[chosen.metric]);
	return 0;
}

static int read_metrics(struct stop *s, struct config_node *section, struct err *err) {
	struct config_node *node = config_get(section, "metric");
	int rc = 0;

	if (node == NULL) {
		config_add(section, "metric", stop_metric_params[0].def);
		node = config_get(section, "metric");
	}
	if (config_kind(node) != CONFIG_LIST)
		return add_metric(s, node, true, err);
	if (config_count(node) == 0)
		return config_err(node, -EINVAL, err, "metric: the list is empty");
	for (size_t i = 0; rc == 0 && i < config_count(node); i++)
		rc = add_metric(s, config_at(node, i), false, err);
	if (rc == 0 && s->confidence > 0 && stop_uses(s, STOP_JFI))
		return config_err(node, -EINVAL, err,
			"metric: jfi has no confidence: Jain's index of a part of the run is not a "
			"part of that of the whole; leave out confidence");
	return rc;
}

int stop_init(struct stop *s, struct config_node *root, uint64_t warmup_ns, struct err *err) {
	struct config_node *section;
	int rc;

	memset(s, 0, sizeof(*s));
	s->start_ns = warmup_ns;
	s->next_ns = NEVER_NS;
	s->moved = s->half_width = (double)NAN;
	if (config_get(root, "stop") == NULL)
		return 0;
	section = config_section(root, "stop");
	rc = config_params(section, "stop", stop_params, stop_metric_params, s, err);
	if (rc == 0)
		rc = read_metrics(s, section, err);
	if (rc == 0 && s->metrics != 0)
		s->next_ns = tick_ns(s, 1);
	return rc;
}

// Returns |M(t) - M(t - over)| / M(t - over), which is NaN or infinite if that was 0.
static double moved(struct stop *s, int metric, const struct stop_sum *sum) {
	double *before = &s->past[s->ticks % STOP_TICKS][metric], value = sum->num / sum->den;
	double by = s->ticks > STOP_TICKS ? fabs(value - *before) / *before : (double)NAN;

	*before = value;
	return by;
}

static double half_width(struct stop *s, int metric, const struct stop_sum *sum) {
	struct stop_sum *last = &s->last[metric];

	batch_means_add(&s->means[metric], sum->num - last->num, sum->den - last->den);
	*last = *sum;
	return batch_means_half_width(&s->means[metric], s->confidence);
}

bool stop_put(struct stop *s, const struct stop_sum sum[STOP_METRICS_COUNT]) {
	double worst = 0;

	s->ticks++;
	for (int m = 0; m < STOP_METRICS_COUNT; m++) {
		if (!stop_uses(s, (enum stop_metric)m))
			continue;
		double own = s->confidence > 0 ? half_width(s, m, &sum[m]) : moved(s, m, &sum[m]);
		worst = isnan(own) || own > worst ? own : worst; // a NaN stays
	}
	*(s->confidence > 0 ? &s->half_width : &s->moved) = worst;
	s->settled = s->confidence > 0 ? worst <= s->change : worst < s->change;
	s->next_ns = s->settled ? NEVER_NS : tick_ns(s, s->ticks + 1);
	return s->settled;
}
