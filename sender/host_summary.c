// SPDX-License-Identifier: BSD-3-Clause
// What a host's flows did since the warm-up, per group.
#include "common/base/hist.h"
#include "sender/host_workloads.h"

#include <math.h>

// Jain's index (sum x)^2 / (n sum x^2) over flows that have begun; NaN when all are zero.
struct jain {
	double sum, squares;
	uint64_t n;
};

static double jain_index(const struct jain *j) {
	return j->sum * j->sum / ((double)j->n * j->squares);
}

// What was sent again over what was sent for the first time; NaN when that is nothing.
static double rtx_overhead(uint64_t sent_segs, uint64_t retransmits) {
	return sent_segs == retransmits ? (double)NAN
					: (double)retransmits / (double)(sent_segs - retransmits);
}

struct group_sum {
	struct flow_count c;
	struct jain jain;
};

static void sum_flow(struct group_sum *s, struct jain *all, const struct flow *f, double seconds) {
	const struct flow_count *c = &f->count, *o = &f->at_measure;
	double bps = (double)(flow_delivered_bytes(f) - f->measure_delivered_bytes) * 8 / seconds;

	s->c.acked_bytes += c->acked_bytes - o->acked_bytes;
	s->c.sent_segs += c->sent_segs - o->sent_segs;
	s->c.retransmits += c->retransmits - o->retransmits;
	s->c.lost_segs += c->lost_segs - o->lost_segs;
	s->c.drops += c->drops - o->drops;
	s->c.rtt_sum_ns += c->rtt_sum_ns - o->rtt_sum_ns;
	s->c.rtt_samples += c->rtt_samples - o->rtt_samples;
	s->c.cwnd_reductions += c->cwnd_reductions - o->cwnd_reductions;
	s->c.timeouts += c->timeouts - o->timeouts;
	s->c.spurious += c->spurious - o->spurious;
	s->c.ecn_echoes += c->ecn_echoes - o->ecn_echoes;
	s->c.ce_segs += c->ce_segs - o->ce_segs;
	s->c.spurious_timeouts += c->spurious_timeouts - o->spurious_timeouts;
	s->c.spurious_recoveries += c->spurious_recoveries - o->spurious_recoveries;
	if (f->state == FLOW_WAITING)
		return; // one that has not begun is no unfairness
	s->jain.sum += bps;
	s->jain.squares += bps * bps;
	s->jain.n++;
	all->sum += bps;
	all->squares += bps * bps;
	all->n++;
}

// Leaves the object open.
static void write_group(
	struct json *j, const struct group *g, const struct group_sum *s, bool virtual_time) {
	bool ours =
		!g->stack.guest; // a kernel does not say what it takes for lost, nor why its window falls

	json_object(j, NULL);
	json_text(j, "name", g->name);
	json_text(j, "cc", g->cc->name);
	if (g->stack.guest || g->peer.guest) {
		json_text(j, "stack", g->stack.guest ? "linux" : "weir");
		json_text(j, "peer", g->peer.guest ? "linux" : "weir");
	}
	json_u64(j, "flows", g->count);
	json_f64(j, "goodput_bps", s->jain.sum);
	json_f64(j, "jfi", jain_index(&s->jain));
	json_f64(j, "rtt_mean_ns",
		s->c.rtt_samples == 0 ? (double)NAN
				      : (double)s->c.rtt_sum_ns / (double)s->c.rtt_samples);
	json_u64(j, "acked_bytes", s->c.acked_bytes);
	json_u64(j, "sent_segs", s->c.sent_segs);
	json_known(j, "lost_segs", ours, s->c.lost_segs);
	json_known(j, "drops", virtual_time, s->c.drops);
	json_u64(j, "retransmits", s->c.retransmits);
	json_f64(j, "rtx_overhead", rtx_overhead(s->c.sent_segs, s->c.retransmits));
	json_u64(j, "spurious", s->c.spurious);
	json_known(j, "cwnd_reductions", ours, s->c.cwnd_reductions);
	json_known(j, "ecn_echoes", ours, s->c.ecn_echoes);
	json_u64(j, "ce_segs", s->c.ce_segs);
	json_known(j, "timeouts", ours, s->c.timeouts);
	json_known(j, "spurious_timeouts", ours, s->c.spurious_timeouts);
	json_known(j, "spurious_recoveries", ours, s->c.spurious_recoveries);
}

// The connections' other direction, if the side that was opened has sent something.
static void write_back(struct json *j, const struct host *h, uint32_t group, double seconds) {
	const struct group *g = &h->groups->group[group];
	struct flow_back sum = {0};

	for (uint32_t i = 0; h->back != NULL && i < g->count; i++) {
		const struct flow_back *b = &h->back[g->first + i], *o = b + h->flows;

		sum.acked_bytes += b->acked_bytes - o->acked_bytes;
		sum.sent_segs += b->sent_segs - o->sent_segs;
		sum.retransmits += b->retransmits - o->retransmits;
		sum.rtt_sum_ns += b->rtt_sum_ns - o->rtt_sum_ns;
		sum.rtt_samples += b->rtt_samples - o->rtt_samples;
	}
	if (sum.sent_segs == 0)
		return;
	json_object(j, "back");
	json_f64(j, "goodput_bps", (double)sum.acked_bytes * 8 / seconds);
	json_f64(j, "rtt_mean_ns",
		sum.rtt_samples == 0 ? (double)NAN
				     : (double)sum.rtt_sum_ns / (double)sum.rtt_samples);
	json_u64(j, "acked_bytes", sum.acked_bytes);
	json_u64(j, "sent_segs", sum.sent_segs);
	json_u64(j, "retransmits", sum.retransmits);
	json_f64(j, "rtx_overhead", rtx_overhead(sum.sent_segs, sum.retransmits));
	json_close(j, '}');
}

// What was drawn, where the flows have base RTTs of their own.
static void write_base_rtt(struct json *j, const struct base_rtt_group *g) {
	json_object(j, "base_rtt");
	json_text(j, "distribution", g->law);
	json_u64(j, "min_ns", g->min_ns);
	json_u64(j, "median_ns", g->median_ns);
	json_u64(j, "max_ns", g->max_ns);
	json_close(j, '}');
}

struct host_figures host_figures(const struct host *h, uint64_t now_ns) {
	double seconds = (double)time_since(now_ns, h->measure_ns) / 1e9;
	struct group_sum s = {0};
	struct jain all = {0};

	for (uint32_t i = 0; i < h->flows; i++)
		sum_flow(&s, &all, &h->flow[i], seconds);
	return (struct host_figures){
		.goodput_bps = all.sum,
		.jfi = jain_index(&all),
		.cwnd_reductions_per_s = (double)s.c.cwnd_reductions / seconds,
		.drops_per_s = (double)s.c.drops / seconds,
	};
}

// The part of its rate by which a flow is off that sent so many bits in this time.
static double rate_off(double bits, int64_t ns, double asked_bps) {
	return fabs(bits * 1e9 / (double)ns / asked_bps - 1);
}

static void add_rates(struct host_conformance *c, struct hist *ppb, struct hist *present_ppb,
	const struct host *h) {
	for (uint32_t i = 0; i < h->flows; i++) {
		const struct flow *f = &h->flow[i];
		const struct group *g = &h->groups->group[f->group];
		int64_t span_ns = (int64_t)time_since(f->last_send_ns, f->measure_send_ns);
		int64_t present_ns = span_ns - f->missed_ns;
		double bits =
			(double)(f->count.sent_segs - f->at_measure.sent_segs) * f->payload * 8;
		double off, present;

		if (g->cc->state_size > 0 || g->pacing == PACING_OFF || f->out.pacing_bps <= 0
			|| f->state != FLOW_OPEN || present_ns < (int64_t)NS_PER_S)
			continue;
		off = rate_off(bits, span_ns, f->out.pacing_bps);
		present = rate_off(bits, present_ns, f->out.pacing_bps);
		hist_add(ppb, (uint64_t)(off * 1e9));
		hist_add(present_ppb, (uint64_t)(present * 1e9));
		c->worst = fmax(c->worst, off);
		c->worst_present = fmax(c->worst_present, present);
		c->flows++;
	}
}

struct host_conformance host_conformance(const struct host *const *hosts, uint32_t n) {
	struct hist ppb = {0}, present_ppb = {0};
	struct host_conformance c = {0};

	for (uint32_t i = 0; i < n; i++)
		add_rates(&c, &ppb, &present_ppb, hosts[i]);
	c.p99 = fmin((double)hist_quantile(&ppb, 0.99) / 1e9, c.worst);
	c.p99_present = fmin((double)hist_quantile(&present_ppb, 0.99) / 1e9, c.worst_present);
	return c;
}

static void write_totals(const struct host *const *hosts, uint32_t n, struct json *j) {
	uint64_t waiting = 0, open = 0, done = 0, failed = 0;
	struct host_count c = {0};

	for (uint32_t i = 0; i < n; i++) {
		const struct host *h = hosts[i];

		waiting += h->waiting;
		open += h->open;
		done += h->done;
		failed += h->failed;
		c.tx_segs += h->count.tx_segs;
		c.rx_segs += h->count.rx_segs;
		c.rx_bad += h->count.rx_bad;
		c.seg_refused += h->count.seg_refused;
	}
	json_object(j, "flows");
	json_u64(j, "waiting", waiting);
	json_u64(j, "open", open);
	json_u64(j, "done", done);
	json_u64(j, "failed", failed);
	json_close(j, '}');
	json_object(j, "segments");
	json_u64(j, "sent", c.tx_segs);
	json_u64(j, "received", c.rx_segs);
	json_u64(j, "unacceptable", c.rx_bad);
	json_u64(j, "refused", c.seg_refused);
	json_close(j, '}');
}

void host_summary(const struct host *const *hosts, uint32_t n, struct json *j, uint64_t now_ns) {
	const struct groups *gs = hosts[0]->groups;
	struct group_sum sum[GROUPS_MAX] = {0};
	struct jain all = {0};

	for (uint32_t k = 0; k < n; k++) {
		const struct host *h = hosts[k];
		double seconds = (double)time_since(now_ns, h->measure_ns) / 1e9;

		for (uint32_t i = 0; i < h->flows; i++)
			sum_flow(&sum[h->flow[i].group], &all, &h->flow[i], seconds);
	}
	json_array(j, "groups");
	for (uint32_t g = 0; g < gs->count; g++) {
		write_group(j, &gs->group[g], &sum[g], hosts[0]->env.virtual_time);
		if (base_rtts_drawn(&gs->base_rtts, g))
			write_base_rtt(j, &gs->base_rtts.group[g]);
		write_back(j, hosts[0], g, (double)time_since(now_ns, hosts[0]->measure_ns) / 1e9);
		host_workloads_summary(hosts, n, g, j, now_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_f64(j, "jfi", jain_index(&all));
	write_totals(hosts, n, j);
}
