// SPDX-License-Identifier: BSD-3-Clause
// A delay that repeats: a packet that arrives at time t waits delays[i], where i is the part of the
// period that t lies in,
//
//	i = floor(n * (t mod period) / period)   of n delays
//
// and leaves no earlier than the packet before it. So no packet waits longer than the largest delay
// D of the list, and where a delay falls by d, the packets of up to d leave together: this is how
// networks gather ACKs, or serve a queue late. A period as long as the run is a delay over time.
//
// It is what CCAC lets a network do (Arun et al., SIGCOMM 2021, section 4): behind a link of rate
// C, the service is that of the link, late by at most D.
//
// `from` shifts the pattern: its first delay begins at that time, and again each period after it,
// and before it.
#include "switch/stage/delay_wheel.h"

#include "common/base/units.h"
#include "common/config/config.h"

#include <errno.h>
#include <string.h>

#define DELAYS_MAX 64
#define DELAY_MAX_NS 60e9

struct periodic {
	struct delay_wheel wheel;
	uint64_t period_ns, from_ns;

	uint64_t delay_ns[DELAYS_MAX], min_ns, max_ns;
	uint32_t count;
};

static const struct param params[] = {
	{"period", NULL, "after which the delays begin again", UNIT_TIME_NS,
		PARAM_U64(struct periodic, period_ns), 1e3, 1e15},
	{"from", "0s", "when the first of the delays begins, and each period after", UNIT_TIME_NS,
		PARAM_U64(struct periodic, from_ns), 0, 1e15},
	PARAM_END,
};

static const struct param also[] = {
	{"delays", NULL, "of the period's parts, equally long: 0ms 20ms 5ms; 1 to 64", UNIT_NONE,
		PARAM_SCALAR},
	PARAM_END,
};

// The next delay of the text; NULL: there is none.
static const char *next_delay(const char *text, char word[static 32]) {
	size_t length;

	text += strspn(text, " ");
	length = strcspn(text, " ");
	if (length == 0)
		return NULL;
	snprintf(word, 32, "%.*s", (int)length, text);
	return text + length;
}

static int periodic_configure(void *self, struct config_node *node, struct err *err) {
	struct periodic *d = self;
	const struct config_node *named = node == NULL ? NULL : config_get(node, "delays");
	const char *text = named == NULL ? NULL : config_text(named);
	char word[32];
	double ns;

	if (named == NULL)
		return err_set(err, -EINVAL, "periodic_delay: delays is required: 0ms 20ms");
	d->min_ns = UINT64_MAX;
	while (text != NULL && (text = next_delay(text, word)) != NULL) {
		if (unit_parse(word, UNIT_TIME_NS, &ns) < 0 || ns < 0 || ns > DELAY_MAX_NS
			|| d->count == DELAYS_MAX)
			return config_err(named, -EINVAL, err,
				"delays: 1 to %d delays of 0s to 60s, such as 0ms 20ms; not '%s'",
				DELAYS_MAX, word);
		d->delay_ns[d->count++] = (uint64_t)(ns + 0.5);
		d->min_ns = time_min(d->min_ns, d->delay_ns[d->count - 1]);
		d->max_ns = time_max(d->max_ns, d->delay_ns[d->count - 1]);
	}
	return d->count > 0
		? 0
		: config_err(named, -EINVAL, err, "delays: at least one, such as 0ms 20ms");
}

static int periodic_init(void *self, const struct stage_env *env, struct err *err) {
	struct periodic *d = self;

	delay_wheel_init(&d->wheel, env);
	d->wheel.in_order = true;
	return 0;
}

static uint64_t delay_at(const struct periodic *d, uint64_t t_ns) {
	uint64_t into_ns =
		(t_ns % d->period_ns + d->period_ns - d->from_ns % d->period_ns) % d->period_ns;

	return d->delay_ns[into_ns * d->count / d->period_ns]; // below 2^57
}

static void periodic_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct periodic *d = self;

	for (uint32_t i = 0; i < n; i++)
		delay_wheel_push(&d->wheel, pkts[i], delay_at(d, pkts[i]->arrival_ns), drops);
}

static uint64_t periodic_min_ns(const void *self) {
	const struct periodic *d = self;

	return d->min_ns;
}

static uint64_t periodic_max_ns(const void *self) {
	const struct periodic *d = self;

	return d->max_ns + delay_wheel_extra_ns(&d->wheel);
}

const struct stage_ops stage_periodic_delay = {
	.name = "periodic_delay",
	.summary = "a list of delays that repeats, in order: late service, gathered ACKs",
	.reference = "Arun et al., SIGCOMM 2021, section 4",
	.params = params,
	.state_size = sizeof(struct periodic),
	.init = periodic_init,
	.push = periodic_push,
	.pop = delay_wheel_pop,
	.next_ns = delay_wheel_next_ns,
	.backlog = delay_wheel_backlog,
	.config = &(const struct stage_config){.also = also, .configure = periodic_configure},
	.delay = &(const struct stage_delay){.min_ns = periodic_min_ns, .max_ns = periodic_max_ns},
};
