// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/stop.h"

#include <math.h>
#include <string.h>

static const char *const metrics[] = {"none", "goodput", "jfi", "cwnd_reductions", "drops", NULL};

const struct param stop_params[] = {
	{"metric", "goodput", "what must settle; none: run to the end", UNIT_NONE,
		PARAM_ENUM(struct stop, metric, metrics)},
	{"change", "1%", "settled: it moved by less than this", UNIT_RATIO,
		PARAM_F64(struct stop, change), 1e-9, 1},
	{"over", "20min", "since this long ago", UNIT_TIME_NS, PARAM_U64(struct stop, over_ns), 1e6,
		86400e9},
	PARAM_END,
};

static uint64_t tick_ns(const struct stop *s, uint64_t k) {
	return stop_tick_ns(s->start_ns, s->over_ns, k);
}

int stop_init(struct stop *s, struct config_node *root, uint64_t warmup_ns, struct err *err) {
	memset(s, 0, sizeof(*s));
	s->start_ns = warmup_ns;
	s->next_ns = NEVER_NS;
	s->moved = (double)NAN;
	if (config_get(root, "stop") == NULL)
		return 0;
	int rc = config_params(config_section(root, "stop"), "stop", stop_params, NULL, s, err);
	if (rc == 0 && s->metric != STOP_NONE)
		s->next_ns = tick_ns(s, 1);
	return rc;
}

bool stop_put(struct stop *s, double m) {
	double *before = &s->past[++s->ticks % STOP_TICKS];

	if (s->ticks > STOP_TICKS) {
		s->moved = fabs(m - *before) / *before; // NaN or infinite: it was 0
		s->settled = s->moved < s->change;
	}
	*before = m;
	s->next_ns = s->settled ? NEVER_NS : tick_ns(s, s->ticks + 1);
	return s->settled;
}

const char *stop_metric_name(const struct stop *s) {
	return metrics[s->metric];
}
