// SPDX-License-Identifier: BSD-3-Clause
// DualPI2: two queues, a short one for L4S traffic and a longer one for Classic traffic, whose
// marks and drops are coupled so that flows of both kinds get equal rates (RFC 9332, appendix A).
// dualpi2_law.h has the control law.
//
//	enqueue   ECT(1) and CE join the L4S queue, Not-ECT and ECT(0) the classic one; both share
//	          one limit
//	dequeue   the scheduler chooses a queue that has packets:
//	          L4S      marked with p_L = max(p'_L, k p'); p'_L is a ramp over the time the
//	                   packet waited: 0 up to `threshold`, 1 from threshold + range on
//	                   overload: dropped with p'^2, else marked
//	          classic  with p'^2, Not-ECT is dropped, ECT(0) marked
//	                   overload: both are dropped
//
//	scheduler: wrr      weighted round robin: while both wait, the classic queue gets
//	                    `classic_share` of the bytes. L4S bytes add share, classic bytes
//	                    subtract 1 - share; above 0 the classic queue is served
//	scheduler: ts_fifo  the longest wait, that of L4S packets prolonged by `shift` (time-shifted
//	                    FIFO)
//
//	threshold: 800us         by the time that a packet waited; range: 0 makes a step of it, as
//	                         in Linux
//	threshold: 5pkt, 10kB    a step: marked if more waits in the L4S queue than this, the packet
//	                         included
//	classify: l4s_ect        as above (RFC 9331); any_ect: ECT(0) joins the L4S queue too, as
//	                         for DCTCP
//	l4s_dscp: 45             packets with this DSCP join the L4S queue too, whatever their ECN
//	                         field is (sections 2.3 and 2.5.1.1), such as 45, NQB. What is not
//	                         L4S by its ECN field gets there the signals of a Classic control,
//	                         with (p_L / k)^2: Not-ECT is dropped, ECT(0) marked
//
// A lone packet of the L4S queue is not marked by the ramp (`min_pkts`, the RFC's Th_len): on slow
// links one packet takes longer than the threshold.
//
// Where we differ from the RFC, and why:
// - The limit counts the packets that wait and the one that arrives; the RFC keeps one more MTU
//   free.
// - Only packets that are sent count for the round robin, as in Linux; the RFC leaves the scheduler
//   open. A share of 1/16 protects Classic traffic at little cost in L4S delay; Linux has 10 %.
// Linux also never signals while less than two full-sized frames wait; the RFC does not have this
// rule.
#include "switch/aqm/bursts.h"
#include "switch/aqm/dualpi2_law.h"
#include "switch/aqm/mark.h"
#include "switch/aqm/ring.h"

#include <errno.h>

#define UPDATE_MIN_NS NS_PER_US

enum { DUALPI2_WRR, DUALPI2_TS_FIFO };
enum { DUALPI2_L4S_ECT, DUALPI2_ANY_ECT };

struct dualpi2 {
	struct limit limit, threshold;
	struct dualpi2_law law;
	uint64_t range_ns, min_pkts, shift_ns;
	double classic_share;
	int scheduler, classify;
	uint64_t l4s_dscp; // 0: none
	const struct pkt_owner *owner;

	struct aqm_limit max;
	bool sojourn; // the threshold is a time
	uint64_t threshold_ns;
	struct aqm_limit length; // of the L4S queue that is not marked
	struct dualpi2_state state;
	struct pkt_ring l4s, classic;
	double l4s_sum, classic_sum; // of probabilities
	double by_dscp_sum; // of those of Classic packets in the L4S queue
	double native; // p'_L of the last L4S packet
	double credit_bytes; // of the classic queue
};

static const char *const overload_names[] = {"drop", "overflow", NULL};
static const char *const scheduler_names[] = {"wrr", "ts_fifo", NULL};
static const char *const classify_names[] = {"l4s_ect", "any_ect", NULL};
static const char *const dscp_words[] = {"no", NULL};

static const struct param params[] = {
	{"limit", "250ms", "of both queues together, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct dualpi2, limit), 1e-6, 1e15},
	DUALPI2_LAW_PARAMS(struct dualpi2, overload_names),
	{"threshold", "800us", "of the L4S queue, from which its packets are marked", UNIT_NONE,
		PARAM_LIMIT(struct dualpi2, threshold), 1e-6, 1e15},
	{"range", "400us", "above a threshold in time, until all are marked; 0: a step",
		UNIT_TIME_NS, PARAM_U64(struct dualpi2, range_ns), 0, 1e10, .live = true},
	{"min_pkts", "1", "waiting L4S packets that the threshold does not mark", UNIT_NONE,
		PARAM_U64(struct dualpi2, min_pkts), 0, 1e6, .live = true},
	{"scheduler", "wrr", "weighted round robin, or a time-shifted FIFO", UNIT_NONE,
		PARAM_ENUM(struct dualpi2, scheduler, scheduler_names)},
	{"classic_share", "6.25%", "wrr: of the bytes, while both queues have packets; 0: none",
		UNIT_RATIO, PARAM_F64(struct dualpi2, classic_share), 0, 1, .live = true},
	{"shift", "50ms", "ts_fifo: time by which L4S packets pass the others", UNIT_TIME_NS,
		PARAM_U64(struct dualpi2, shift_ns), 0, 1e10, .live = true},
	{"classify", "l4s_ect", "what joins the L4S queue: ECT(1) and CE, or ECT(0) too", UNIT_NONE,
		PARAM_ENUM(struct dualpi2, classify, classify_names)},
	{"l4s_dscp", "no", "packets with this DSCP join the L4S queue, too", UNIT_NONE,
		PARAM_U64(struct dualpi2, l4s_dscp), 1, 63, .choices = dscp_words},
	PARAM_END,
};

static int dualpi2_init(void *self, const struct aqm_env *env, struct err *err) {
	struct dualpi2 *d = self;

	if (d->law.update_ns > 0 && d->law.update_ns < UPDATE_MIN_NS)
		return err_set(err, -EINVAL, "update: %llu ns is less than 1us",
			(unsigned long long)d->law.update_ns);
	d->owner = env->owner;
	dualpi2_law_init(&d->law);
	dualpi2_state_init(&d->law, &d->state, env->seed);
	d->sojourn = d->threshold.kind == LIMIT_TIME;
	if (!d->sojourn) {
		int rc = aqm_limit_known("threshold", &d->threshold, env,
			"a threshold such as 5pkt, 10kB or 1ms", err);

		if (rc < 0)
			return rc;
	}
	d->threshold_ns = d->sojourn ? (uint64_t)d->threshold.value : 0;
	d->length = aqm_limit_resolve(&d->threshold, env);
	return aqm_limit_init(&d->max, &d->limit, env, err);
}

static void dualpi2_fini(void *self) {
	struct dualpi2 *d = self;

	pkt_ring_fini(&d->l4s);
	pkt_ring_fini(&d->classic);
}

static inline const struct pkt *dualpi2_oldest(const struct pkt_ring *r) {
	return r->count == 0 ? NULL : pkt_ring_head(r);
}

static inline void dualpi2_pass_time(struct dualpi2 *d, uint64_t now_ns) {
	if (unlikely(d->state.next_ns <= now_ns))
		dualpi2_advance(&d->law, &d->state, dualpi2_oldest(&d->l4s),
			dualpi2_oldest(&d->classic), now_ns);
}

static inline struct backlog dualpi2_waiting(const struct dualpi2 *d) {
	return (struct backlog){
		.pkts = (uint64_t)d->l4s.count + d->classic.count,
		.bytes = d->l4s.bytes + d->classic.bytes,
	};
}

// By its ECN field.
static inline bool dualpi2_is_l4s(const struct dualpi2 *d, const struct pkt *p) {
	return (p->ecn & ECN_ECT1) != 0
		|| (d->classify == DUALPI2_ANY_ECT && p->ecn != ECN_NOT_ECT);
}

static inline bool dualpi2_joins_l4s(const struct dualpi2 *d, const struct pkt *p) {
	return dualpi2_is_l4s(d, p)
		|| (unlikely(d->l4s_dscp > 0) && pkt_headers(d->owner, p).dscp == d->l4s_dscp);
}

static void dualpi2_enqueue(void *self, struct pkt *p, uint64_t now_ns, struct pkt_list *drops) {
	struct dualpi2 *d = self;
	struct backlog in = dualpi2_waiting(d);

	dualpi2_pass_time(d, now_ns);
	p->arrival_ns = now_ns;
	if (unlikely(!aqm_limit_fits(&d->max, in.pkts, in.bytes, p->size_bytes)))
		pkt_drop(drops, p, DROP_QUEUE_FULL);
	else if (unlikely(!pkt_ring_push(dualpi2_joins_l4s(d, p) ? &d->l4s : &d->classic, p)))
		pkt_drop(drops, p, DROP_NO_MBUF);
}

// Whether the classic queue is next. Both have packets.
static inline bool dualpi2_classic_first(const struct dualpi2 *d) {
	if (d->scheduler == DUALPI2_WRR)
		return d->credit_bytes > 0;
	return pkt_ring_head(&d->classic)->arrival_ns + d->shift_ns
		< pkt_ring_head(&d->l4s)->arrival_ns;
}

// p'_L of a packet that was just taken off its queue.
static inline double dualpi2_native(const struct dualpi2 *d, const struct pkt *p, uint64_t now_ns) {
	const struct pkt_ring *q = &d->l4s;
	uint64_t waited_ns = time_since(now_ns, p->arrival_ns), above_ns;

	if (q->count < d->min_pkts)
		return 0;
	if (!d->sojourn)
		return aqm_limit_fits(&d->length, q->count, q->bytes, p->size_bytes) ? 0 : 1;
	if (waited_ns <= d->threshold_ns)
		return 0;
	above_ns = waited_ns - d->threshold_ns;
	return above_ns >= d->range_ns ? 1 : (double)above_ns / (double)d->range_ns;
}

static inline double dualpi2_l4s_prob(const struct dualpi2 *d) {
	double p = d->native > d->state.coupled ? d->native : d->state.coupled;

	return p < 1 ? p : 1;
}

// A Classic packet in the L4S queue. Its control answers p as an L4S one answers k sqrt(p).
__attribute__((noinline)) static bool dualpi2_by_dscp_passes(struct dualpi2 *d, struct pkt *p) {
	double root = dualpi2_l4s_prob(d) / (d->law.coupling > 1 ? d->law.coupling : 1);

	if (!dualpi2_signals(&d->law, &d->state, &d->by_dscp_sum, root * root))
		return true;
	return aqm_mark(p);
}

// These two mark a packet; false: it is to be dropped.
static inline bool dualpi2_l4s_passes(struct dualpi2 *d, struct pkt *p, uint64_t now_ns) {
	struct dualpi2_state *s = &d->state;

	if (unlikely(s->l4s_overload)) {
		if (dualpi2_signals(&d->law, s, &d->l4s_sum, s->classic))
			return false;
		aqm_mark(p);
		return true;
	}
	d->native = dualpi2_native(d, p, now_ns);
	if (unlikely(d->l4s_dscp > 0) && !dualpi2_is_l4s(d, p))
		return dualpi2_by_dscp_passes(d, p);
	if (dualpi2_signals(&d->law, s, &d->l4s_sum, dualpi2_l4s_prob(d)))
		aqm_mark(p);
	return true;
}

static inline bool dualpi2_classic_passes(struct dualpi2 *d, struct pkt *p) {
	struct dualpi2_state *s = &d->state;

	if (likely(!dualpi2_signals(&d->law, s, &d->classic_sum, s->classic)))
		return true;
	return !s->classic_overload && aqm_mark(p);
}

static struct pkt *dualpi2_dequeue(void *self, uint64_t now_ns, struct pkt_list *drops) {
	struct dualpi2 *d = self;

	dualpi2_pass_time(d, now_ns);
	while (d->l4s.count > 0 || d->classic.count > 0) {
		bool both = d->l4s.count > 0 && d->classic.count > 0;
		bool classic = both ? dualpi2_classic_first(d) : d->l4s.count == 0;
		struct pkt *p = pkt_ring_pop(classic ? &d->classic : &d->l4s);

		if (likely(classic ? dualpi2_classic_passes(d, p)
				   : dualpi2_l4s_passes(d, p, now_ns))) {
			if (both)
				d->credit_bytes +=
					p->size_bytes * (d->classic_share - (classic ? 1 : 0));
			return p;
		}
		pkt_drop(drops, p, DROP_AQM);
	}
	return NULL;
}

static uint64_t dualpi2_enqueue_all(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct dualpi2 *d = self;
	uint64_t before = dualpi2_waiting(d).bytes;

	for (uint32_t i = 0; i < n; i++)
		dualpi2_enqueue(d, pkts[i], pkts[i]->arrival_ns, drops);
	return dualpi2_waiting(d).bytes - before;
}

static inline struct serialiser_queue dualpi2_queue(void *self) {
	return (struct serialiser_queue){.q = self,
		.enqueue = dualpi2_enqueue,
		.dequeue = dualpi2_dequeue,
		.enqueue_all = dualpi2_enqueue_all};
}
AQM_BURSTS(dualpi2)

static void dualpi2_changed(void *self) {
	struct dualpi2 *d = self;

	dualpi2_law_update(&d->law);
}

static struct backlog dualpi2_backlog(const void *self) {
	const struct dualpi2 *d = self;

	return dualpi2_waiting(d);
}

static struct aqm_limit dualpi2_limit(const void *self) {
	const struct dualpi2 *d = self;

	return d->max;
}

static void dualpi2_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct dualpi2 *d = self;

	out[0] = d->state.prob;
	out[1] = d->state.classic;
	out[2] = dualpi2_l4s_prob(d);
	out[3] = d->credit_bytes;
}

static bool dualpi2_reads_headers(const void *self) {
	const struct dualpi2 *d = self;

	return d->l4s_dscp > 0;
}

static bool dualpi2_random(const void *self) {
	const struct dualpi2 *d = self;

	return d->state.drew;
}

const struct aqm_ops aqm_dualpi2 = {
	.name = "dualpi2",
	.summary = "coupled queues for L4S and Classic traffic (RFC 9332)",
	.reference = "RFC 9332 (Dual-Queue Coupled AQM), appendix A",
	.params = params,
	.state_size = sizeof(struct dualpi2),
	.observed = {"base_probability", "classic_probability", "l4s_probability",
		"classic_credit_bytes"},
	.init = dualpi2_init,
	.fini = dualpi2_fini,
	.enqueue = dualpi2_enqueue,
	.dequeue = dualpi2_dequeue,
	.enqueue_burst = dualpi2_enqueue_burst,
	.dequeue_burst = dualpi2_dequeue_burst,
	.update = dualpi2_changed,
	.backlog = dualpi2_backlog,
	.limit = dualpi2_limit,
	.observe = dualpi2_observe,
	.headers = dualpi2_reads_headers,
	.random = dualpi2_random,
	.rng = offsetof(struct dualpi2, state.rng),
};
