// SPDX-License-Identifier: BSD-3-Clause
// When a run has shown what it has to show (CoreScale, IMC 2021, section 3.2).
//
// The run ends when a metric M, taken from the end of the warm-up to now, has moved by less than
// `change` against its value `over` earlier:
//
//	|M(t) - M(t - over)| < change * M(t - over)
//
// M is looked at STOP_TICKS times per `over`, at exact times of the run: tick k is at
// warm-up + k * over / STOP_TICKS. The first that can end the run is k = STOP_TICKS + 1. A metric
// that was 0 has not settled. The run's duration is the maximum.
//
// Where we differ from the paper: it does not say how often it looked; we say 20 times per `over`.
#pragma once
#include "common/base/ns.h"
#include "common/config/config.h"

#define STOP_TICKS 20

// M: goodput of all flows, Jain's index of the flows' goodputs, window reductions and packets
// dropped by the forward path per second.
enum stop_metric { STOP_NONE, STOP_GOODPUT, STOP_JFI, STOP_CWND_REDUCTIONS, STOP_DROPS };

struct stop {
	int metric; // enum stop_metric
	double change;
	uint64_t over_ns;

	uint64_t start_ns; // end of the warm-up
	uint64_t ticks; // behind us
	uint64_t next_ns; // of the next tick; NEVER_NS: no rule, or settled
	double past[STOP_TICKS]; // M at tick k is in [k % STOP_TICKS]
	double moved; // |M(t) - M(t - over)| / M(t - over) at the last tick; NaN: not yet known
	bool settled; // at start_ns + ticks * over / STOP_TICKS
};

// When tick `k` is.
static inline uint64_t stop_tick_ns(uint64_t start_ns, uint64_t over_ns, uint64_t k) {
	return start_ns + k * over_ns / STOP_TICKS;
}
extern const struct param stop_params[];
// Reads the config's `stop` section; without one there is no rule.
int stop_init(struct stop *s, struct config_node *root, uint64_t warmup_ns, struct err *err);
// M at next_ns; true: the run ends here.
bool stop_put(struct stop *s, double m);
// "goodput", ...
const char *stop_metric_name(const struct stop *s);
