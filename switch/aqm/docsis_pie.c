// SPDX-License-Identifier: BSD-3-Clause
// DOCSIS-PIE: the PIE of cable modems (RFC 8034, appendix A), with its constants as defaults.
// pie_law.h has RFC 8033's.
//
//	every interval   delay = bytes waiting / rate
//	                 burst protection: probability = 0, allowance -= interval; else as PIE, but
//	                 the step is doubled from a probability of 0.1 on, times 8 from 1 and times
//	                 32 from 10 on; at most 0.02 from 0.1 on; both delays below 5 ms:
//	                 probability *= 0.98; delay above 200 ms:
//	                 probability += 0.02; kept within [0, 0.85 * 1024 / 64]
//	every arrival    p = min(0.85, probability * size / 1024) is added to a sum; no drop below
//	                 0.85 of the sum, one from 8.5 on, in between with p; none while PIE of
//	                 RFC 8033 drops none
//	INACTIVE         no drops until a third of the limit waits, then QUIESCENT
//	QUIESCENT        the first drop begins the burst protection: ACTIVE; quiet for 1 s: INACTIVE
//	ACTIVE           quiet: QUIESCENT (probability 0, both delays below half the target, no
//	                 allowance)
//
// Where we differ from the RFC, and why:
// - Traffic has one rate, the link's at the start or `rate`: the modem's two token buckets are not
//   part of a queue.
// - Updates happen at multiples of `update` and are computed at the next packet, as in pie_law.h.
// There is no ECN (section 4.7).
#include "switch/aqm/bursts.h"
#include "switch/aqm/pie_law.h"
#include "switch/aqm/ring.h"

#include <math.h>

#define BURST_RESET_NS NS_PER_S
#define MEAN_BYTES 1024
#define PROB_MAX (PIE_ACCU_LOW * MEAN_BYTES / 64)
#define DELAY_LOW_NS (5 * NS_PER_MS)
#define DELAY_HIGH_NS (200 * NS_PER_MS)

enum { DOCSIS_INACTIVE, DOCSIS_QUIESCENT, DOCSIS_ACTIVE };

struct docsis_pie {
	struct aqm_ring q;
	struct limit limit;
	uint64_t target_ns, update_ns, max_burst_ns, rate_bps;
	double alpha, beta;

	uint32_t overhead_bytes;
	double prob, accu;
	uint64_t delay_ns; // at the last update
	uint64_t burst_ns; // what is left of the protection
	uint64_t quiet_ns; // since when it has been quiet
	uint64_t next_ns; // of updates
	int state;
	struct rng rng;
	bool drew;
};
AQM_RING_FIRST(struct docsis_pie);

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct docsis_pie, limit), 1e-6, 1e15},
	{"target", "10ms", "queueing delay that it aims at", UNIT_TIME_NS,
		PARAM_U64(struct docsis_pie, target_ns), 1e3, 1e10},
	{"update", "16ms", "time between updates of the probability", UNIT_TIME_NS,
		PARAM_U64(struct docsis_pie, update_ns), 1e3, 1e10},
	{"max_burst", "142ms", "nothing is dropped for so long after the first drop", UNIT_TIME_NS,
		PARAM_U64(struct docsis_pie, max_burst_ns), 0, 1e12},
	{"alpha", "0.25", "gain of the delay above the target, in 1/s", UNIT_NONE,
		PARAM_F64(struct docsis_pie, alpha), 1e-6, 1e6},
	{"beta", "2.5", "gain of the delay since the last update, in 1/s", UNIT_NONE,
		PARAM_F64(struct docsis_pie, beta), 0, 1e6},
	{"rate", "0", "maximum sustained rate; 0: the link's at the start", UNIT_RATE_BPS,
		PARAM_U64(struct docsis_pie, rate_bps), 0, 1e12},
	PARAM_END,
};

static int docsis_pie_init(void *self, const struct aqm_env *env, struct err *err) {
	struct docsis_pie *d = self;

	if (d->rate_bps == 0) {
		int rc = aqm_rate_known("rate", env, err);

		if (rc < 0)
			return rc;
		d->rate_bps = env->rate_bps;
	}
	d->overhead_bytes = env->overhead_bytes;
	d->next_ns = d->update_ns;
	rng_init(&d->rng, env->seed, "docsis_pie");
	return aqm_ring_init(&d->q, &d->limit, env, err);
}

static double docsis_scale(double prob) {
	return prob < 0.1 ? pie_scale(prob) : prob < 1 ? 0.5 : prob < 10 ? 0.125 : 0.03125;
}

static bool docsis_quiet(const struct docsis_pie *d, uint64_t delay_ns) {
	return delay_ns < d->target_ns / 2 && d->delay_ns < d->target_ns / 2 && d->prob <= 0
		&& d->burst_ns == 0;
}

// Appendix A.2: calculate_drop_prob, its first part.
static void docsis_probability(struct docsis_pie *d, uint64_t delay_ns) {
	if (d->burst_ns > 0) {
		d->prob = 0;
		d->burst_ns = time_since(d->burst_ns, d->update_ns);
		return;
	}

	double p = d->alpha * pie_diff_s(delay_ns, d->target_ns)
		+ d->beta * pie_diff_s(delay_ns, d->delay_ns);

	p /= docsis_scale(d->prob);
	if (d->prob >= 0.1 && p > 0.02)
		p = 0.02;
	d->prob += p;
	if (delay_ns < DELAY_LOW_NS && d->delay_ns < DELAY_LOW_NS)
		d->prob *= 0.98;
	else if (delay_ns > DELAY_HIGH_NS)
		d->prob += 0.02;
	d->prob = d->prob < 0 ? 0 : d->prob > PROB_MAX ? PROB_MAX : d->prob;
}

static void docsis_update(struct docsis_pie *d, uint64_t delay_ns) {
	docsis_probability(d, delay_ns);
	if (!docsis_quiet(d, delay_ns)) {
		d->quiet_ns = 0;
	} else if (d->state == DOCSIS_ACTIVE) {
		d->state = DOCSIS_QUIESCENT;
		d->quiet_ns = 0;
	} else if (d->state == DOCSIS_QUIESCENT) {
		d->quiet_ns += d->update_ns;
		if (d->quiet_ns > BURST_RESET_NS)
			d->state = DOCSIS_INACTIVE;
	}
	d->delay_ns = delay_ns;
}

static uint64_t docsis_bytes(const struct docsis_pie *d) {
	return d->q.q.bytes + (uint64_t)d->q.q.count * d->overhead_bytes;
}

__attribute__((noinline)) static void docsis_catch_up(struct docsis_pie *d, uint64_t now_ns) {
	uint64_t delay_ns = (uint64_t)((double)docsis_bytes(d) * 8e9 / (double)d->rate_bps);

	for (uint32_t n = 0; d->next_ns <= now_ns; n++) {
		bool rests = d->q.q.count == 0 && d->prob <= 0 && d->delay_ns == 0
			&& d->burst_ns == 0 && d->state == DOCSIS_INACTIVE;

		if (rests || n == PIE_UPDATES_MAX)
			d->next_ns += (now_ns - d->next_ns) / d->update_ns * d->update_ns;
		else
			docsis_update(d, delay_ns);
		d->next_ns += d->update_ns;
	}
}

static inline void docsis_advance(struct docsis_pie *d, uint64_t now_ns) {
	if (unlikely(d->next_ns <= now_ns))
		docsis_catch_up(d, now_ns);
}

static bool docsis_third(const struct docsis_pie *d) {
	const struct pkt_ring *q = &d->q.q;
	const struct aqm_limit *max = &d->q.max;

	return q->count >= max->pkts / 3
		|| q->bytes + (uint64_t)q->count * max->overhead_bytes >= max->bytes / 3;
}

// Appendix A.3: drop_early.
static inline bool docsis_hits(struct docsis_pie *d, const struct pkt *p) {
	if (d->burst_ns > 0)
		return false;
	if (d->prob <= 0)
		d->accu = 0;
	if (d->state == DOCSIS_INACTIVE) {
		if (!docsis_third(d))
			return false;
		d->state = DOCSIS_QUIESCENT;
		d->quiet_ns = 0;
	}

	double prob = fmin(d->prob * p->size_bytes / MEAN_BYTES, PIE_ACCU_LOW);

	d->accu += prob;
	if ((d->delay_ns < d->target_ns / 2 && d->prob < 0.2) || d->q.q.bytes <= 2 * MEAN_BYTES
		|| d->accu < PIE_ACCU_LOW)
		return false;
	if (d->accu < PIE_ACCU_HIGH) {
		d->drew = true;
		if (rng_unit(&d->rng) > prob)
			return false;
	}
	d->accu = 0;
	if (d->state == DOCSIS_QUIESCENT) {
		d->state = DOCSIS_ACTIVE;
		d->burst_ns = d->max_burst_ns;
	}
	return true;
}

static void docsis_pie_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct docsis_pie *d = self;

	docsis_advance(d, now_ns);
	if (unlikely(!aqm_ring_fits(&d->q, p))) {
		d->accu = 0;
		pkt_drop(drops, p, DROP_QUEUE_FULL);
	} else if (unlikely(docsis_hits(d, p))) {
		pkt_drop(drops, p, DROP_AQM);
	} else {
		aqm_ring_put(&d->q, p, drops);
	}
}

static struct pkt *docsis_pie_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct docsis_pie *d = self;

	docsis_advance(d, now_ns);
	return aqm_ring_get(&d->q);
}

static inline struct serialiser_queue docsis_pie_queue(void *self) {
	return (struct serialiser_queue){
		.q = self, .enqueue = docsis_pie_enqueue, .dequeue = docsis_pie_dequeue};
}
AQM_BURSTS(docsis_pie)

// As after the last update. The state: 0 inactive, 1 quiescent, 2 active.
static void docsis_pie_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct docsis_pie *d = self;

	out[0] = d->prob;
	out[1] = (double)d->delay_ns;
	out[2] = (double)d->burst_ns;
	out[3] = d->state;
}

static bool docsis_pie_random(const void *self) {
	const struct docsis_pie *d = self;

	return d->drew;
}

const struct aqm_ops aqm_docsis_pie = {
	.name = "docsis_pie",
	.summary = "the PIE of cable modems (RFC 8034)",
	.reference = "RFC 8034 (DOCSIS-PIE)",
	.params = params,
	.state_size = sizeof(struct docsis_pie),
	.observed = {"drop_probability", "delay_ns", "burst_allowance_ns", "state"},
	.init = docsis_pie_init,
	.fini = aqm_ring_fini,
	.enqueue = docsis_pie_enqueue,
	.dequeue = docsis_pie_dequeue,
	.enqueue_burst = docsis_pie_enqueue_burst,
	.dequeue_burst = docsis_pie_dequeue_burst,
	.backlog = aqm_ring_backlog,
	.limit = aqm_ring_limit,
	.observe = docsis_pie_observe,
	.random = docsis_pie_random,
	.rng = offsetof(struct docsis_pie, rng),
};
