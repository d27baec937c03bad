// SPDX-License-Identifier: BSD-3-Clause
// RED: Random Early Detection (Floyd and Jacobson: Random Early Detection Gateways for Congestion
// Avoidance, IEEE/ACM Transactions on Networking, 1993), its gentle variant (Floyd, 2000), and
// Adaptive RED (Floyd, Gummadi and Shenker, 2001).
//
//	every arrival    queue not empty   avg += weight (queue - avg)
//	                 empty             avg *= (1 - weight)^m, m mean packets could have been
//	                                   sent meanwhile
//	avg < min        nothing happens
//	min <= avg < max p_b = max_p (avg - min) / (max - min); the n-th packet since the last drop
//	                 is dropped with p_b / (1 - n p_b), so that the gaps between drops are
//	                 uniform
//	avg >= max       dropped; `gentle`: p_b rises from max_p to 1 at 2 max
//	ECN              marked instead; `harddrop`: only while avg < max (RFC 3168, section 7)
//	adaptive         every interval: avg above the middle fifth of [min, max] and max_p <= 0.5:
//	                 max_p += min(0.01, max_p / 4); below it and max_p >= 0.01: max_p *= 0.9
//
// Defaults not given follow ARED: min = max(5 packets, target * rate / 2), max = 3 min, weight =
// 1 - exp(-1 / rate) with the rate in packets per second.
//
// Where we differ from the papers, and why:
// - The count of packets begins with 0 after a drop, so that the gap is uniform on 1 ... 1 / p_b as
//   section 7 of the 1993 paper derives. In its figure 2 it begins with 1, which from p_b = 0.5 on
//   would drop every packet.
// - The frame on the wire is not in the queue: a queue is idle from the moment its last packet
//   begins to be sent.
// - Small packets are dropped as often as large ones, also with thresholds in bytes (RFC 7141,
//   section 2.2); the 1993 paper leaves it open.
// - The average is a double: no weight or queue length is too small or too large for it.
// - max_p changes at multiples of `interval`, computed at the next arrival; in between the average
//   does not change.
#include "common/base/portable_math.h"
#include "common/base/rng.h"
#include "switch/aqm/bursts.h"
#include "switch/aqm/mark.h"
#include "switch/aqm/ring.h"

#include <errno.h>
#include <float.h>
#include <math.h>

#define RED_MIN_PKTS 5
#define RED_MAX_P_TOP 0.5
#define RED_MAX_P_BOTTOM 0.01
#define RED_MAX_P_STEP 0.01
#define RED_MAX_P_FACTOR 0.9

struct red {
	struct aqm_ring q;
	struct limit limit, min, max;
	double weight, max_p;
	bool gentle, ecn, harddrop, adaptive;
	uint64_t target_ns, interval_ns;
	uint64_t mean_bytes;

	bool bytes; // thresholds and average are in bytes, else in packets
	uint32_t overhead_bytes; // that the bytes count per packet
	double low, high; // thresholds
	double unit; // a mean packet, in bytes or packets
	double log_keep; // log(1 - weight)
	double packet_ns; // time on the wire of a mean packet

	double avg;
	double count; // packets since the last drop, -1: none
	uint64_t empty_ns; // when the queue became empty, or the last arrival at an empty queue
	uint64_t next_ns; // of max_p's changes
	struct rng rng;
	bool drew; // a packet was subject to a draw
};
AQM_RING_FIRST(struct red);

static const struct param params[] = {
	{"limit", "1BDP", "queue size, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct red, limit), 1e-6, 1e15},
	{"min", "0pkt", "average from which on packets are dropped; 0: from target, or max / 3",
		UNIT_NONE, PARAM_LIMIT(struct red, min), 0, 1e15},
	{"max", "0pkt", "average at which max_p is reached; 0: 3 min", UNIT_NONE,
		PARAM_LIMIT(struct red, max), 0, 1e15},
	{"max_p", "10%", "drop probability at max", UNIT_RATIO, PARAM_F64(struct red, max_p), 1e-6,
		1, .live = true},
	{"weight", "0", "of the queue in its average; 0: from the rate", UNIT_NONE,
		PARAM_F64(struct red, weight), 0, 1},
	{"gentle", "yes", "above max the probability rises to 1 at 2 max, not at once", UNIT_NONE,
		PARAM_BOOL(struct red, gentle), .live = true},
	{"ecn", "no", "mark ECN capable packets instead of dropping them", UNIT_NONE,
		PARAM_BOOL(struct red, ecn), .live = true},
	{"harddrop", "no", "ecn: above max drop them nevertheless (RFC 3168); Linux's red marks",
		UNIT_NONE, PARAM_BOOL(struct red, harddrop), .live = true},
	{"adaptive", "no", "adapt max_p: ARED", UNIT_NONE, PARAM_BOOL(struct red, adaptive),
		.live = true},
	{"interval", "500ms", "between changes of max_p", UNIT_TIME_NS,
		PARAM_U64(struct red, interval_ns), 1e3, 1e12},
	{"target", "5ms", "average delay for which min and max are chosen", UNIT_TIME_NS,
		PARAM_U64(struct red, target_ns), 1, 1e12},
	{"mean_packet", "0B", "mean frame size; 0: the largest frame", UNIT_BYTES,
		PARAM_U64(struct red, mean_bytes), 0, 1e5},
	PARAM_END,
};

// A threshold in bytes or packets; 0: it is chosen.
static int red_threshold(struct red *r, const char *name, const struct limit *given,
	const struct aqm_env *env, double *value, bool *bytes, struct err *err) {
	struct aqm_limit l = aqm_limit_resolve(given, env);
	int rc;

	*value = 0;
	*bytes = given->kind != LIMIT_PACKETS;
	if (given->value <= 0)
		return 0;
	rc = aqm_limit_known(name, given, env, "a threshold such as 20pkt, 30kB or 5ms", err);
	if (rc < 0)
		return rc;
	*value = *bytes ? (double)l.bytes : (double)l.pkts;
	if (*bytes)
		r->overhead_bytes = l.overhead_bytes;
	return 0;
}

static int red_thresholds(struct red *r, const struct aqm_env *env, struct err *err) {
	bool low_bytes, high_bytes;
	int rc = red_threshold(r, "min", &r->min, env, &r->low, &low_bytes, err);

	if (rc == 0)
		rc = red_threshold(r, "max", &r->max, env, &r->high, &high_bytes, err);
	if (rc < 0)
		return rc;
	if (r->low > 0 && r->high > 0 && low_bytes != high_bytes)
		return err_set(err, -EINVAL,
			"max: give it in packets if min is, and in bytes, time or BDP if not");
	r->bytes = r->low > 0 ? low_bytes : r->high > 0 && high_bytes;
	r->unit = r->bytes ? (double)(r->mean_bytes + r->overhead_bytes) : 1;
	if (r->low <= 0 && r->high > 0)
		r->low = r->high / 3;
	if (r->low <= 0)
		r->low = fmax(RED_MIN_PKTS, (double)r->target_ns / r->packet_ns / 2);
	if (r->high <= 0)
		r->high = 3 * r->low;
	if (r->high <= r->low)
		return err_set(err, -EINVAL,
			"max: must be above min; a step at one length is the discipline 'step'");
	return 0;
}

static int red_init(void *self, const struct aqm_env *env, struct err *err) {
	struct red *r = self;
	int rc = aqm_rate_known("weight, min and max", env, err);

	if (rc < 0)
		return rc;
	if (r->mean_bytes == 0)
		r->mean_bytes = env->mtu_bytes;
	r->packet_ns = (double)(r->mean_bytes + env->overhead_bytes) * 8e9 / (double)env->rate_bps;
	if (r->weight <= 0)
		r->weight = 1 - portable_exp(-r->packet_ns / 1e9);
	r->log_keep = r->weight < 1 ? portable_log(1 - r->weight) : -DBL_MAX;
	r->count = -1;
	r->next_ns = r->interval_ns;
	rng_init(&r->rng, env->seed, "red");
	rc = red_thresholds(r, env, err);
	return rc < 0 ? rc : aqm_ring_init(&r->q, &r->limit, env, err);
}

// The changes of max_p up to now_ns.
__attribute__((noinline)) static void red_adapt(struct red *r, uint64_t now_ns) {
	double fifth = (r->high - r->low) / 5;
	bool changed = true;

	while (changed && r->next_ns <= now_ns) {
		changed = false;
		if (r->avg > r->low + 3 * fifth && r->max_p <= RED_MAX_P_TOP) {
			r->max_p += fmin(RED_MAX_P_STEP, r->max_p / 4);
			changed = true;
		} else if (r->avg < r->low + 2 * fifth && r->max_p >= RED_MAX_P_BOTTOM) {
			r->max_p *= RED_MAX_P_FACTOR;
			changed = true;
		}
		r->next_ns += r->interval_ns;
	}
	if (r->next_ns <= now_ns)
		r->next_ns += ((now_ns - r->next_ns) / r->interval_ns + 1) * r->interval_ns;
}

static inline void red_average(struct red *r, uint64_t now_ns) {
	const struct pkt_ring *q = &r->q.q;

	if (likely(q->count > 0)) {
		double queue = r->bytes
			? (double)(q->bytes + (uint64_t)q->count * r->overhead_bytes)
			: (double)q->count;
		r->avg += r->weight * (queue - r->avg);
	} else if (r->avg > 0) {
		double packets = (double)time_since(now_ns, r->empty_ns) / r->packet_ns;

		r->avg *= portable_exp(packets * r->log_keep);
	}
	if (q->count == 0)
		r->empty_ns = time_max(r->empty_ns, now_ns);
}

// p_b of the present average.
static inline double red_probability(const struct red *r) {
	if (r->avg < r->low)
		return 0;
	if (r->avg < r->high)
		return r->max_p * (r->avg - r->low) / (r->high - r->low);
	if (!r->gentle || r->avg >= 2 * r->high)
		return 1;
	return r->max_p + (1 - r->max_p) * (r->avg - r->high) / r->high;
}

static inline bool red_hits(struct red *r) {
	if (r->avg < r->low) {
		r->count = -1;
		return false;
	}

	double p = red_probability(r);

	r->count += 1;
	if (p < 1 && r->count * p < 1) {
		r->drew = true;
		if (rng_unit(&r->rng) >= p / (1 - r->count * p))
			return false;
	}
	r->count = -1;
	return true;
}

static inline bool red_marks(const struct red *r) {
	return r->ecn && (!r->harddrop || r->avg < r->high);
}

static void red_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct red *r = self;

	if (unlikely(r->adaptive && r->next_ns <= now_ns))
		red_adapt(r, now_ns);
	red_average(r, now_ns);
	if (unlikely(!aqm_ring_fits(&r->q, p))) {
		r->count = -1;
		pkt_drop(drops, p, DROP_QUEUE_FULL);
	} else if (unlikely(red_hits(r)) && !(red_marks(r) && aqm_mark(p))) {
		pkt_drop(drops, p, DROP_AQM);
	} else {
		aqm_ring_put(&r->q, p, drops);
	}
}

static struct pkt *red_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct red *r = self;
	struct pkt *p = aqm_ring_get(&r->q);

	if (p != NULL && r->q.q.count == 0)
		r->empty_ns = now_ns;
	return p;
}

static inline struct serialiser_queue red_queue(void *self) {
	return (struct serialiser_queue){.q = self, .enqueue = red_enqueue, .dequeue = red_dequeue};
}
AQM_BURSTS(red)

// The average in mean packets, p_b, max_p as adapted, and the packets since the last drop.
static void red_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct red *r = self;

	out[0] = r->avg / r->unit;
	out[1] = red_probability(r);
	out[2] = r->max_p;
	out[3] = r->count;
}

static bool red_random(const void *self) {
	const struct red *r = self;

	return r->drew;
}

const struct aqm_ops aqm_red = {
	.name = "red",
	.summary = "Random Early Detection, gentle; Adaptive RED",
	.reference = "Floyd, Jacobson: Random Early Detection Gateways for Congestion Avoidance, "
		     "1993; Floyd, Gummadi, Shenker: Adaptive RED, 2001",
	.params = params,
	.state_size = sizeof(struct red),
	.observed = {"average_pkts", "drop_probability", "max_p", "count_pkts"},
	.init = red_init,
	.fini = aqm_ring_fini,
	.enqueue = red_enqueue,
	.dequeue = red_dequeue,
	.enqueue_burst = red_enqueue_burst,
	.dequeue_burst = red_dequeue_burst,
	.backlog = aqm_ring_backlog,
	.limit = aqm_ring_limit,
	.observe = red_observe,
	.random = red_random,
	.rng = offsetof(struct red, rng),
};
