// SPDX-License-Identifier: BSD-3-Clause
// What a host's flows did since the warm-up, per group.
#include "host.h"

// Jain's index (sum x)^2 / (n sum x^2) over flows; NaN when all are zero.
struct jain {
	double sum, squares;
	uint64_t n;
};

static double jain_index(const struct jain *j) {
	return j->sum * j->sum / ((double)j->n * j->squares);
}

struct group_sum {
	struct flow_count c;
	struct jain jain;
};

static void sum_flow(struct group_sum *s, struct jain *all, const struct flow *f, double seconds) {
	const struct flow_count *c = &f->count, *o = &f->at_measure;
	double bps = (double)(c->acked_bytes - o->acked_bytes) * 8 / seconds;

	s->c.acked_bytes += c->acked_bytes - o->acked_bytes;
	s->c.sent_segs += c->sent_segs - o->sent_segs;
	s->c.retransmits += c->retransmits - o->retransmits;
	s->c.lost_segs += c->lost_segs - o->lost_segs;
	s->c.drops += c->drops - o->drops;
	s->c.rtt_sum_ns += c->rtt_sum_ns - o->rtt_sum_ns;
	s->c.rtt_samples += c->rtt_samples - o->rtt_samples;
	s->c.halvings += c->halvings - o->halvings;
	s->c.timeouts += c->timeouts - o->timeouts;
	s->c.spurious += c->spurious - o->spurious;
	s->c.ecn_echoes += c->ecn_echoes - o->ecn_echoes;
	s->jain.sum += bps;
	s->jain.squares += bps * bps;
	s->jain.n++;
	all->sum += bps;
	all->squares += bps * bps;
	all->n++;
}

static void write_group(
	struct json *j, const struct group *g, const struct group_sum *s, bool virtual_time) {
	double rtt_ns =
		s->c.rtt_samples == 0 ? 0 : (double)s->c.rtt_sum_ns / (double)s->c.rtt_samples;

	json_object(j, NULL);
	json_text(j, "name", g->name);
	json_text(j, "cc", g->cc->name);
	json_u64(j, "flows", g->count);
	json_f64(j, "goodput_bps", s->jain.sum);
	json_f64(j, "jfi", jain_index(&s->jain));
	json_f64(j, "rtt_mean_ns", rtt_ns);
	json_u64(j, "acked_bytes", s->c.acked_bytes);
	json_u64(j, "sent_segs", s->c.sent_segs);
	json_u64(j, "lost_segs", s->c.lost_segs);
	if (virtual_time)
		json_u64(j, "drops", s->c.drops);
	json_u64(j, "retransmits", s->c.retransmits);
	json_f64(j, "rtx_overhead",
		s->c.sent_segs == 0 ? 0 : (double)s->c.retransmits / (double)s->c.sent_segs);
	json_u64(j, "spurious", s->c.spurious);
	json_u64(j, "halvings", s->c.halvings);
	json_u64(j, "ecn_echoes", s->c.ecn_echoes);
	json_u64(j, "timeouts", s->c.timeouts);
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
		.halvings_per_s = (double)s.c.halvings / seconds,
		.drops_per_s = (double)s.c.drops / seconds,
	};
}

void host_summary(const struct host *h, struct json *j, uint64_t now_ns) {
	double seconds = (double)time_since(now_ns, h->measure_ns) / 1e9;
	struct jain all = {0};

	json_array(j, "groups");
	for (uint32_t g = 0; g < h->groups->count; g++) {
		const struct group *group = &h->groups->group[g];
		struct group_sum s = {0};

		for (uint32_t i = 0; i < group->count; i++)
			sum_flow(&s, &all, &h->flow[group->first + i], seconds);
		write_group(j, group, &s, h->env.virtual_time);
	}
	json_close(j, ']');
	json_f64(j, "jfi", jain_index(&all));
	json_object(j, "flows");
	json_u64(j, "waiting", h->waiting);
	json_u64(j, "open", h->open);
	json_u64(j, "done", h->done);
	json_u64(j, "failed", h->failed);
	json_close(j, '}');
	json_object(j, "segments");
	json_u64(j, "sent", h->count.tx_segs);
	json_u64(j, "received", h->count.rx_segs);
	json_u64(j, "unacceptable", h->count.rx_bad);
	json_u64(j, "refused", h->count.seg_refused);
	json_close(j, '}');
}
