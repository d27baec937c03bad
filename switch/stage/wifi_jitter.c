// SPDX-License-Identifier: BSD-3-Clause
// The jitter of a Wi-Fi link: a station waits for the medium, mostly shortly, at times long, and
// what has come meanwhile leaves as one aggregate.
//
//	wait = n * short_interval   n of Poisson's distribution with mean short_count, usually
//	wait = n * long_interval    n of Poisson's with mean long_count, else
//
// The share of long waits follows from `mean`, the mean of all: with S = short_interval *
// short_count and L = long_interval * long_count it is (mean - S) / (L - S). A mean below S has
// short waits alone, of mean / short_interval on average. No wait is above `max`.
//
// A packet that arrives while none waits draws a wait and leaves at its end; those that arrive
// until then leave with it. Where packets come densely, most of them come during long waits, and their
// mean delay is above `mean`.
//
// Source: the Wi-Fi scenarios of draft-huitema-ccwg-c4-test and of picoquic's simulator, which make
// a link's jitter of two Poisson counts, of intervals of 1 ms and of 7.5 ms. What we assumed, since
// the text was not at hand when this was written: the means of the counts (1, and 12 of 90 ms), how
// their shares follow from the mean, and that one wait holds all that arrives during it. A draw for
// each packet would with order kept make nearly all waits long ones.
#include "switch/stage/delay_wheel.h"

#include "common/base/draw.h"

#include <errno.h>

struct wifi_jitter {
	struct delay_wheel wheel;
	uint64_t mean_ns, short_ns, long_ns, max_ns;
	double short_count, long_count;

	uint64_t long_threshold;
	double few; // mean count of a short wait
	struct rng rng;
};

static const struct param params[] = {
	{"mean", "7ms", "mean of all waits", UNIT_TIME_NS, PARAM_U64(struct wifi_jitter, mean_ns),
		0, 60e9, .live = true},
	{"short_interval", "1ms", "a short wait is a number of these", UNIT_TIME_NS,
		PARAM_U64(struct wifi_jitter, short_ns), 1, 1e9},
	{"short_count", "1", "mean of that number", UNIT_NONE,
		PARAM_F64(struct wifi_jitter, short_count), 0.001, 500},
	{"long_interval", "7500us", "a long wait is a number of these", UNIT_TIME_NS,
		PARAM_U64(struct wifi_jitter, long_ns), 1, 1e9},
	{"long_count", "12", "mean of that number", UNIT_NONE,
		PARAM_F64(struct wifi_jitter, long_count), 0.001, 500},
	{"max", "250ms", "longest wait", UNIT_TIME_NS, PARAM_U64(struct wifi_jitter, max_ns), 1,
		60e9},
	PARAM_END,
};

static void wifi_update(void *self, uint64_t now_ns) {
	struct wifi_jitter *w = self;
	double mean_ns = (double)w->mean_ns, few_ns = (double)w->short_ns * w->short_count;
	double many_ns = (double)w->long_ns * w->long_count;

	w->few = fmin(mean_ns / (double)w->short_ns, w->short_count);
	w->long_threshold = rng_threshold(fmin(fmax(mean_ns - few_ns, 0) / (many_ns - few_ns), 1));
}

static int wifi_init(void *self, const struct stage_env *env, struct err *err) {
	struct wifi_jitter *w = self;

	if ((double)w->long_ns * w->long_count <= (double)w->short_ns * w->short_count)
		return err_set(
			err, -EINVAL, "long_interval, long_count: no longer than short waits");
	delay_wheel_init(&w->wheel, env);
	w->wheel.in_order = true;
	rng_init(&w->rng, env->run_seed, env->name);
	wifi_update(self, 0);
	return 0;
}

// Two numbers are drawn, whatever they decide.
static uint64_t wifi_wait_ns(struct wifi_jitter *w) {
	bool is_long = rng_under(rng_u64(&w->rng), w->long_threshold);
	double u = rng_unit(&w->rng);
	uint32_t count = quantile_poisson(u, is_long ? w->long_count : w->few);

	return time_min(count * (is_long ? w->long_ns : w->short_ns), w->max_ns);
}

static void wifi_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct wifi_jitter *w = self;

	for (uint32_t i = 0; i < n; i++) {
		bool waits = pkts[i]->arrival_ns < w->wheel.release_ns;

		delay_wheel_push(&w->wheel, pkts[i], waits ? 0 : wifi_wait_ns(w), drops);
	}
}

static uint64_t wifi_min_ns(const void *self) {
	return 0;
}

static uint64_t wifi_max_ns(const void *self) {
	const struct wifi_jitter *w = self;

	return w->max_ns + delay_wheel_extra_ns(&w->wheel);
}

static bool wifi_random(const void *self) {
	const struct wifi_jitter *w = self;

	return w->mean_ns > 0;
}

const struct stage_ops stage_wifi_jitter = {
	.name = "wifi_jitter",
	.summary = "waits for a shared medium, mostly short, and aggregates behind them",
	.reference = "draft-huitema-ccwg-c4-test, in part",
	.params = params,
	.state_size = sizeof(struct wifi_jitter),
	.init = wifi_init,
	.push = wifi_push,
	.pop = delay_wheel_pop,
	.next_ns = delay_wheel_next_ns,
	.backlog = delay_wheel_backlog,
	.config = &(const struct stage_config){.update = wifi_update},
	.delay = &(const struct stage_delay){.min_ns = wifi_min_ns, .max_ns = wifi_max_ns},
	.needs = &(const struct stage_needs){.random = wifi_random},
};
