// SPDX-License-Identifier: BSD-3-Clause
// The delay of a path over low orbit: every `period` the network gives the terminal another
// satellite.
//
//	handover k at        offset + k * period
//	delay until k + 1    delay + spread * u[k]    u uniform in [0, 1), also before the first
//	arrival in [k, k + outage)   waits until the outage ends, and then has the new delay
//	arrival in [k + outage, k + outage + settling)   is lost with probability `loss`
//
// Packets never overtake one another when the delay falls.
//
// Source: Starlink reconfigures its links every 15 s, at 12, 27, 42 and 57 s past the minute, and
// RTTs step and losses gather there (Mohan et al., "A Multifaceted Look at Starlink Performance",
// WWW 2024; Garcia et al., "Multi-Timescale Evaluation of Starlink Throughput", LEO-NET 2023). The
// period is theirs; the sizes of steps, outages and losses differ between places and years, so the
// defaults are of their order and nothing more. A change of rate is a link's: see replay.
#include "switch/stage/delay_wheel.h"

#include "common/base/rng.h"

#include <errno.h>

struct leo_handover {
	struct delay_wheel wheel;
	uint64_t period_ns, offset_ns, delay_ns, spread_ns, outage_ns, settling_ns;
	double loss;

	uint64_t last_ns, next_ns; // handovers
	uint64_t present_ns; // delay
	bool begun; // there was a handover
	bool random; // a packet was subject to a draw
	uint64_t loss_threshold;
	struct rng delays, losses;
};

static const struct param params[] = {
	{"period", "15s", "from one handover to the next", UNIT_TIME_NS,
		PARAM_U64(struct leo_handover, period_ns), 1e8, 1e13},
	{"offset", "12s", "time of the first", UNIT_TIME_NS,
		PARAM_U64(struct leo_handover, offset_ns), 0, 1e13},
	{"delay", "15ms", "least one-way delay", UNIT_TIME_NS,
		PARAM_U64(struct leo_handover, delay_ns), 0, 60e9},
	{"spread", "15ms", "by how much it may be longer", UNIT_TIME_NS,
		PARAM_U64(struct leo_handover, spread_ns), 0, 60e9},
	{"outage", "50ms", "packets wait for so long at a handover", UNIT_TIME_NS,
		PARAM_U64(struct leo_handover, outage_ns), 0, 60e9},
	{"loss", "2%", "share of packets that are lost after it", UNIT_RATIO,
		PARAM_F64(struct leo_handover, loss), 0, 1},
	{"settling", "200ms", "for so long", UNIT_TIME_NS,
		PARAM_U64(struct leo_handover, settling_ns), 0, 60e9},
	PARAM_END,
};

static void leo_draw(struct leo_handover *l) {
	l->present_ns = l->delay_ns + (uint64_t)((double)l->spread_ns * rng_unit(&l->delays) + 0.5);
}

static int leo_init(void *self, const struct stage_env *env, struct err *err) {
	struct leo_handover *l = self;

	if (l->outage_ns + l->settling_ns > l->period_ns)
		return err_set(err, -EINVAL, "outage, settling: together longer than the period");
	delay_wheel_init(&l->wheel, env);
	l->wheel.in_order = true;
	rng_init(&l->delays, env->run_seed, env->name);
	// Losses have a generator of their own: traffic does not change the delays.
	rng_init(&l->losses, rng_u64(&l->delays), env->name);
	l->loss_threshold = rng_threshold(l->loss);
	l->next_ns = l->offset_ns;
	leo_draw(l);
	return 0;
}

// Makes the handovers up to t_ns.
static void leo_follow(struct leo_handover *l, uint64_t t_ns) {
	for (; l->next_ns <= t_ns; l->next_ns += l->period_ns) {
		l->last_ns = l->next_ns;
		l->begun = true;
		leo_draw(l);
	}
}

static bool leo_lost(struct leo_handover *l, uint64_t since_ns) {
	if (l->loss == 0 || since_ns < l->outage_ns || since_ns >= l->outage_ns + l->settling_ns)
		return false;
	l->random = true;
	return rng_under(rng_u64(&l->losses), l->loss_threshold);
}

static void leo_take(struct leo_handover *l, struct pkt *p, struct pkt_list *drops) {
	uint64_t since_ns, wait_ns = 0;

	leo_follow(l, p->arrival_ns);
	if (l->begun) {
		since_ns = p->arrival_ns - l->last_ns;
		wait_ns = time_since(l->outage_ns, since_ns);
		if (leo_lost(l, since_ns)) {
			stage_drop(l->wheel.env, drops, p, DROP_LOSS);
			return;
		}
	}
	delay_wheel_push(&l->wheel, p, wait_ns + l->present_ns, drops);
}

static void leo_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	for (uint32_t i = 0; i < n; i++)
		leo_take(self, pkts[i], drops);
}

static uint64_t leo_min_ns(const void *self) {
	const struct leo_handover *l = self;

	return l->delay_ns;
}

static uint64_t leo_max_ns(const void *self) {
	const struct leo_handover *l = self;

	return l->delay_ns + l->spread_ns + l->outage_ns + delay_wheel_extra_ns(&l->wheel);
}

static bool leo_random(const void *self) {
	const struct leo_handover *l = self;

	return l->random || l->spread_ns > 0;
}

const struct stage_ops stage_leo_handover = {
	.name = "leo_handover",
	.summary = "a delay that steps every 15 s, with a short outage and losses at each step",
	.reference = "Mohan et al., WWW 2024; Garcia et al., LEO-NET 2023",
	.params = params,
	.state_size = sizeof(struct leo_handover),
	.init = leo_init,
	.push = leo_push,
	.pop = delay_wheel_pop,
	.next_ns = delay_wheel_next_ns,
	.backlog = delay_wheel_backlog,
	.delay = &(const struct stage_delay){.min_ns = leo_min_ns, .max_ns = leo_max_ns},
	.needs = &(const struct stage_needs){.random = leo_random,
		.rng = offsetof(struct leo_handover, delays),
		.rng2 = offsetof(struct leo_handover, losses)},
};
