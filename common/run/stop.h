// SPDX-License-Identifier: BSD-3-Clause
// When a run has shown what it has to show.
//
// The run's duration is the maximum. It ends before, when all metrics of the rule have settled. A
// metric M is taken from the end of the warm-up to now. STOP_TICKS times per `over` it is looked
// at, at exact times of the run: tick k is at warm-up + k * over / STOP_TICKS. There are two rules:
//
// - by change (CoreScale, IMC 2021, section 3.2): M has moved by less than `change` against its
//   value `over` earlier,
//
//	|M(t) - M(t - over)| < change * M(t - over)
//
//   The first tick that can end the run is k = STOP_TICKS + 1. A metric that was 0 has not settled.
//
// - with `confidence`, by batch means (batch_means.h): half the width of M's confidence interval is
//   at most `change` * M. What lies between two ticks is an observation; the rule looks after each
//   whole batch, first at k = BATCHES_MIN, which is `over` after the warm-up.
//
// A rule that looks again and again ends runs that seem better known than they are. So the share of
// runs whose interval has the true mean is lower than `confidence` where `over` is short beside the
// time in which the metric forgets its past. tests/sim/test_stop.py measures it.
//
// Where we differ from the paper: it does not say how often it looked; we say 20 times per `over`.
#pragma once
#include "common/base/ns.h"
#include "common/config/config.h"
#include "common/run/batch_means.h"

#include <assert.h>

#define STOP_TICKS 20
static_assert(STOP_TICKS == BATCHES_MIN, "so that no rule ends a run before `over`");

// Of all flows: goodput, Jain's index of the flows' goodputs, window reductions and packets that
// the forward path dropped, per second. Of the first group: its share of all goodput; the mean time
// that packets are in the queue of the first link that they pass.
#define STOP_METRICS(V)                                                                            \
	V(STOP_GOODPUT, "goodput")                                                                 \
	V(STOP_JFI, "jfi")                                                                         \
	V(STOP_CWND_REDUCTIONS, "cwnd_reductions")                                                 \
	V(STOP_DROPS, "drops")                                                                     \
	V(STOP_SHARE, "share")                                                                     \
	V(STOP_DELAY, "delay")
#define STOP_METRIC_ENUM(id, name) id,
enum stop_metric { STOP_METRICS(STOP_METRIC_ENUM) STOP_METRICS_COUNT };

// Sums from the end of the warm-up to now; M = num / den.
struct stop_sum {
	double num, den;
};

struct stop {
	uint32_t metrics; // 1 << enum stop_metric of each that must settle; 0: there is no rule
	char names[PARAM_TEXT_SIZE]; // of these
	double change;
	double confidence; // 0: by change
	uint64_t over_ns;

	uint64_t start_ns; // end of the warm-up
	uint64_t ticks; // behind us
	uint64_t next_ns; // of the next tick; NEVER_NS: no rule, or settled
	double past[STOP_TICKS][STOP_METRICS_COUNT]; // M at tick k is in [k % STOP_TICKS]
	struct stop_sum last[STOP_METRICS_COUNT]; // at the last tick
	struct batch_means means[STOP_METRICS_COUNT];
	// The largest of all metrics at the last tick; NaN: not yet known, or the other rule.
	double moved; // |M(t) - M(t - over)| / M(t - over)
	double half_width; // of the interval, as a part of M
	bool settled; // at start_ns + ticks * over / STOP_TICKS
};

// When tick `k` is.
static inline uint64_t stop_tick_ns(uint64_t start_ns, uint64_t over_ns, uint64_t k) {
	return start_ns + k * over_ns / STOP_TICKS;
}
static inline bool stop_uses(const struct stop *s, enum stop_metric metric) {
	return (s->metrics & UINT32_C(1) << metric) != 0;
}
extern const struct param stop_params[], stop_metric_params[];
// Reads the config's `stop` section; without one there is no rule.
int stop_init(struct stop *s, struct config_node *root, uint64_t warmup_ns, struct err *err);
// The metrics at next_ns; true: the run ends here.
bool stop_put(struct stop *s, const struct stop_sum sum[STOP_METRICS_COUNT]);
