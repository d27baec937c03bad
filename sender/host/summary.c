// SPDX-License-Identifier: BSD-3-Clause
// What a host's flows did since the warm-up, per group.
#include "sender/host/fields.h"

#include "common/base/hist.h"
#include "sender/host/workloads.h"

#include <math.h>

// Jain's index (sum x)^2 / (n sum x^2) over flows that have begun; NaN when all are zero.
struct jain {
	double sum, squares;
	uint64_t n;
};

static double jain_index(const struct jain *j) {
	return j->sum * j->sum / ((double)j->n * j->squares);
}

static double rtt_mean_ns(const struct flow_count *c) {
	return c->rtt_samples == 0 ? (double)NAN : (double)c->rtt_sum_ns / (double)c->rtt_samples;
}

// What was sent again over what was sent for the first time; NaN when that is nothing.
static double rtx_overhead(const struct flow_count *c) {
	return c->sent_segs == c->retransmits
		? (double)NAN
		: (double)c->retransmits / (double)(c->sent_segs - c->retransmits);
}

struct group_sum {
	struct flow_count c;
	struct jain jain;
};

static void add_flow(
	struct flow_count *sum, const struct flow_count *to, const struct flow_count *from) {
	FLOW_COUNTERS(COUNTERS_ADD)
}

static void sum_flow(struct group_sum *s, struct jain *all, const struct flow *f, double seconds) {
	double bps = (double)(flow_delivered_bytes(f) - f->measure_delivered_bytes) * 8 / seconds;

	add_flow(&s->c, &f->count, &f->at_measure);
	if (f->state == FLOW_WAITING)
		return; // one that has not begun is no unfairness
	s->jain.sum += bps;
	s->jain.squares += bps * bps;
	s->jain.n++;
	all->sum += bps;
	all->squares += bps * bps;
	all->n++;
}

// The connections' other direction, if the side that was opened has sent something.
static void write_back(struct json *j, const struct host *h, uint32_t group, double seconds) {
	const struct group *g = &h->groups->group[group];
	struct flow_count total = {0}, *sum = &total;

	for (uint32_t i = 0; h->back != NULL && i < g->count; i++) {
		const struct flow_count *to = &h->back[g->first + i], *from = to + h->flows;

		FLOW_COUNTERS(COUNTERS_ADD)
	}
	if (sum->sent_segs == 0)
		return;
	json_object(j, "back");
	BACK_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

// What was drawn, where the flows have base RTTs of their own.
static void write_base_rtt(struct json *j, const struct host *h, uint32_t group) {
	const struct base_rtt_group *g = &h->groups->base_rtts.group[group];

	if (!base_rtts_drawn(&h->groups->base_rtts, group))
		return;
	json_object(j, "base_rtt");
	BASE_RTT_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

// The names of its modes 0, 1, ... as records have them; "": without one.
static void write_names(struct json *j, const char *key, const char *const *names, size_t count) {
	while (count > 0 && names[count - 1] == NULL)
		count--;
	json_array(j, key);
	for (size_t i = 0; i < count; i++)
		json_text(j, NULL, names[i] != NULL ? names[i] : "");
	json_close(j, ']');
}

static void write_modes(struct json *j, const struct cc_ops *cc) {
	write_names(j, "modes", cc != NULL ? cc->modes : NULL, cc != NULL ? CC_MODES : 0);
}

// The same of its notes.
static void write_notes(struct json *j, const struct cc_ops *cc) {
	write_names(j, "notes", cc != NULL ? cc->notes : NULL, cc != NULL ? CC_NOTES : 0);
}

static const char *stack_name(const struct stack *s) {
	return s->quic != NULL ? s->quic : s->guest ? "linux" : "weir";
}

static void write_group(struct json *j, const struct host *const *hosts, uint32_t n, uint32_t group,
	const struct group_sum *s, uint64_t now_ns) {
	const struct host *h = hosts[0];
	const struct group *g = &h->groups->group[group];
	const struct flow_count *sum = &s->c;
	double seconds = (double)time_since(now_ns, h->measure_ns) / 1e9;
	bool kernels = g->stack.guest || g->peer.guest;
	const bool known[COUNTER_SOURCES] = {[COUNT_ALWAYS] = true,
		[COUNT_OURS] = !g->stack.guest,
		[COUNT_TCP] = g->stack.quic == NULL,
		[COUNT_VIRTUAL] = h->env.virtual_time};

	json_object(j, NULL);
	GROUP_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

struct host_figures host_figures(const struct host *h, uint64_t now_ns) {
	double seconds = (double)time_since(now_ns, h->measure_ns) / 1e9;
	struct group_sum first = {0}, others = {0};
	struct jain all = {0};

	for (uint32_t i = 0; i < h->flows; i++)
		sum_flow(h->flow[i].group == 0 ? &first : &others, &all, &h->flow[i], seconds);
	return (struct host_figures){
		.goodput_bps = all.sum,
		.first_group_bps = first.jain.sum,
		.jfi = jain_index(&all),
		.cwnd_reductions_per_s =
			(double)(first.c.cwnd_reductions + others.c.cwnd_reductions) / seconds,
		.drops_per_s = (double)(first.c.drops + others.c.drops) / seconds,
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

		if (g->cc == NULL || g->cc->state_size > 0 || g->pacing == PACING_OFF
			|| f->out.pacing_bps <= 0 || f->state != FLOW_OPEN
			|| present_ns < (int64_t)NS_PER_S)
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

static void write_flows(const struct host *const *hosts, uint32_t n, struct json *j) {
	uint64_t waiting = 0, open = 0, done = 0, failed = 0;

	for (uint32_t i = 0; i < n; i++) {
		waiting += hosts[i]->waiting;
		open += hosts[i]->open;
		done += hosts[i]->done;
		failed += hosts[i]->failed;
	}
	json_object(j, "flows");
	FLOWS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_segments(const struct host *const *hosts, uint32_t n, struct json *j) {
	struct host_count c = {0};

	for (uint32_t i = 0; i < n; i++) {
		c.tx_segs += hosts[i]->count.tx_segs;
		c.rx_segs += hosts[i]->count.rx_segs;
		c.rx_bad += hosts[i]->count.rx_bad;
		c.seg_refused += hosts[i]->count.seg_refused;
	}
	json_object(j, "segments");
	SEGMENTS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_groups(struct json *j, const struct host *const *hosts, uint32_t n,
	const struct group_sum *sum, uint64_t now_ns) {
	json_array(j, "groups");
	for (uint32_t g = 0; g < hosts[0]->groups->count; g++)
		write_group(j, hosts, n, g, &sum[g], now_ns);
	json_close(j, ']');
}

void host_summary(const struct host *const *hosts, uint32_t n, struct json *j, uint64_t now_ns) {
	struct group_sum sum[GROUPS_MAX] = {0};
	struct jain all = {0};

	for (uint32_t k = 0; k < n; k++) {
		const struct host *h = hosts[k];
		double seconds = (double)time_since(now_ns, h->measure_ns) / 1e9;

		for (uint32_t i = 0; i < h->flows; i++)
			sum_flow(&sum[h->flow[i].group], &all, &h->flow[i], seconds);
	}
	HOST_SUMMARY_FIELDS(FIELD_JSON)
}

void host_receivers(const struct host *h, struct receivers_sum *all) {
	const struct receiver_count none = {0}, *from = &none, *to = &h->received;
	struct receiver_count *sum = &all->count;

	RECEIVER_COUNTERS(COUNTERS_ADD)
	all->refused += h->ranges.refused;
}

void host_receivers_write(const struct receivers_sum *s, struct json *j) {
	const bool known[COUNTER_SOURCES] = {[COUNT_ALWAYS] = true};
	const struct receiver_count *sum = &s->count;

	json_object(j, "receivers");
	RECEIVERS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}
