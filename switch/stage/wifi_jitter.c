// SPDX-License-Identifier: BSD-3-Clause
// The jitter of a Wi-Fi link: a packet waits for the medium, mostly shortly, at times long, and no
// packet overtakes another, so that those behind a long wait leave with it.
//
//	wait = short + long
//	short = n * short_interval - u   n of Poisson's distribution with mean short_count; u
//	                                 uniform below short_interval, 0 where n is 0
//	long  = n * long_interval - u    n of Poisson's with mean long_count; u uniform below
//	                                 long_interval, 0 where n is 0 or 1; of a share of the
//	                                 packets, else 0
//	share = (jitter - short_interval * short_count) / long_mean, in [0, 1]
//
// With jitter: 7ms one packet in 14 has a long wait, and the mean of all waits is 6.84 ms. Where
// packets come densely most of them stand behind a long wait of another one, and wait longer.
//
// Source: the simulator of picoquic (picoquictest/sim_link.c, "bad" Wi-Fi), with which
// draft-huitema-ccwg-c4-test was run; its constants are the defaults. It divides by 84 ms, though
// its long waits have a mean of 86 ms.
//
// Where we differ: `max` bounds a wait, as memory is sized for it. picoquic's waits reach 200 ms
// once in ten thousand long ones.
#include "switch/stage/delay_wheel.h"

#include "common/base/draw.h"

struct wifi_jitter {
	struct delay_wheel wheel;
	uint64_t jitter_ns, short_ns, long_ns, long_mean_ns, max_ns;
	double short_count, long_count;

	uint64_t long_threshold;
	struct rng rng;
};

static const struct param params[] = {
	{"jitter", "7ms", "how bad the link is; about the mean of all waits. 0ms: none waits",
		UNIT_TIME_NS, PARAM_U64(struct wifi_jitter, jitter_ns), 0, 60e9, .live = true},
	{"short_interval", "1ms", "a short wait is a number of these", UNIT_TIME_NS,
		PARAM_U64(struct wifi_jitter, short_ns), 1, 1e9},
	{"short_count", "1", "mean of that number", UNIT_NONE,
		PARAM_F64(struct wifi_jitter, short_count), 0.001, 500},
	{"long_interval", "7500us", "a long wait is a number of these", UNIT_TIME_NS,
		PARAM_U64(struct wifi_jitter, long_ns), 1, 1e9},
	{"long_count", "12", "mean of that number", UNIT_NONE,
		PARAM_F64(struct wifi_jitter, long_count), 0.001, 500},
	{"long_mean", "84ms", "jitter beyond the short waits that makes all waits long",
		UNIT_TIME_NS, PARAM_U64(struct wifi_jitter, long_mean_ns), 1, 60e9},
	{"max", "250ms", "longest wait", UNIT_TIME_NS, PARAM_U64(struct wifi_jitter, max_ns), 1,
		60e9},
	PARAM_END,
};

static void wifi_update(void *self, uint64_t now_ns) {
	struct wifi_jitter *w = self;
	double beyond_ns = (double)w->jitter_ns - (double)w->short_ns * w->short_count;

	w->long_threshold = rng_threshold(fmax(beyond_ns, 0) / (double)w->long_mean_ns);
}

static int wifi_init(void *self, const struct stage_env *env, struct err *err) {
	struct wifi_jitter *w = self;

	delay_wheel_init(&w->wheel, env);
	w->wheel.in_order = true;
	rng_init(&w->rng, env->run_seed, env->name);
	wifi_update(self, 0);
	return 0;
}

// A number of intervals, less a part of one where there are more than `whole`.
static uint64_t some_ns(struct rng *rng, double count, uint64_t interval_ns, uint32_t whole) {
	uint64_t n = quantile_poisson(rng_unit(rng), count);
	uint64_t less_ns = (uint64_t)(rng_unit(rng) * (double)interval_ns);

	return n * interval_ns - (n > whole ? less_ns : 0);
}

// As many numbers are drawn, whatever they decide.
static uint64_t wifi_wait_ns(struct wifi_jitter *w) {
	uint64_t wait_ns = some_ns(&w->rng, w->short_count, w->short_ns, 0);
	uint64_t long_ns = some_ns(&w->rng, w->long_count, w->long_ns, 1);

	if (rng_under(rng_u64(&w->rng), w->long_threshold))
		wait_ns += long_ns;
	return w->jitter_ns > 0 ? time_min(wait_ns, w->max_ns) : 0;
}

static void wifi_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct wifi_jitter *w = self;

	for (uint32_t i = 0; i < n; i++)
		delay_wheel_push(&w->wheel, pkts[i], wifi_wait_ns(w), drops);
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

	return w->jitter_ns > 0;
}

const struct stage_ops stage_wifi_jitter = {
	.name = "wifi_jitter",
	.summary = "waits for a shared medium, mostly short, at times long, in order",
	.reference = "draft-huitema-ccwg-c4-test, by the simulator of picoquic",
	.params = params,
	.state_size = sizeof(struct wifi_jitter),
	.init = wifi_init,
	.push = wifi_push,
	.pop = delay_wheel_pop,
	.next_ns = delay_wheel_next_ns,
	.backlog = delay_wheel_backlog,
	.config = &(const struct stage_config){.update = wifi_update},
	.delay = &(const struct stage_delay){.min_ns = wifi_min_ns, .max_ns = wifi_max_ns},
	.needs = &(const struct stage_needs){.random = wifi_random,
		.rng = offsetof(struct wifi_jitter, rng)},
};
