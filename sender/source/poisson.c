// SPDX-License-Identifier: BSD-3-Clause
// Flows that arrive as a Poisson process: the open loop of studies of flow completion times.
//
//	time between two arrivals   exponential, of mean `interval`
//	size                        drawn from `sizes`
//	offered load                mean size / interval
//
// Instead of the interval the load may be given, in payload bits per second: interval = mean size /
// load.
//
// Arrivals do not wait for the network. Each opens a connection of its own on a flow of the group
// that has none. `count` is thus the largest number of connections at a time; a transfer that
// arrives when all flows are busy waits for the first to end, and its completion time counts from
// its arrival. The summary counts those that waited.
#include "sender/source/sizes.h"
#include "sender/source/source.h"

#include <errno.h>

#define INTERVAL_NS_MIN                                                                            \
	100 // arrivals that wait are drawn again at the end of the run, to be counted

struct poisson {
	uint64_t interval_ns;
	uint64_t load_bps;
	struct sizes sizes;
	double mean_ns; // between arrivals
};

static const struct param params[] = {
	{"interval", "0s", "mean time between two arrivals; 0s: from load", UNIT_TIME_NS,
		PARAM_U64(struct poisson, interval_ns), 0, 1e14},
	{"load", "0bit", "payload offered on average; 0: from interval", UNIT_RATE_BPS,
		PARAM_U64(struct poisson, load_bps), 0, 1e12},
	PARAM_END,
};

static const struct param also[] = {SIZES_PARAM, PARAM_END};

static int poisson_configure(void *config, struct config_node *node, struct err *err) {
	struct poisson *p = config;
	int rc;

	if ((p->interval_ns == 0) == (p->load_bps == 0))
		return config_err(node, -EINVAL, err,
			"poisson: either interval or load says how often flows arrive, e.g. "
			"load: 8Gbit");
	if ((rc = sizes_read(&p->sizes, node, err)) < 0)
		return rc;
	p->mean_ns = p->interval_ns > 0 ? (double)p->interval_ns
					: sizes_mean(&p->sizes) * 8e9 / (double)p->load_bps;
	if (p->mean_ns < INTERVAL_NS_MIN)
		return config_err(node, -ERANGE, err,
			"poisson: a flow each %.3g ns on average; 100 ns is the least", p->mean_ns);
	return 0;
}

static void poisson_fini(void *config) {
	struct poisson *p = config;

	sizes_fini(&p->sizes);
}

static void poisson_next(const void *config, void *state, struct rng *rng,
	const struct source_seen *seen, struct transfer *t) {
	const struct poisson *p = config;

	t->gap_ns = source_exponential_ns(rng, p->mean_ns);
	t->bytes = sizes_draw(&p->sizes, rng);
}

const struct source_ops source_poisson = {
	.name = "poisson",
	.summary = "transfers arrive as a Poisson process, each on a connection of its own",
	.params = params,
	.also = also,
	.config_size = sizeof(struct poisson),
	.kind = SOURCE_ARRIVALS,
	.random = true,
	.configure = poisson_configure,
	.fini = poisson_fini,
	.next = poisson_next,
};
