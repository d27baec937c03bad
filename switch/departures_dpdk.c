// SPDX-License-Identifier: BSD-3-Clause
// Each departure compared with its theoretical time: the switch's emulation error.
#include "path_dpdk.h"

// One record per packet: when it should have left, and how late it did.
static void record_departures(struct switch_live *s, const struct switch_port *out,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	for (uint32_t i = 0; i < n; i++) {
		uint64_t late_ns = time_since(sent_ns, d[i].due_ns);
		struct tel_packets *r;

		if (!tel_flow_sampled(out->path->tel_run, d[i].flow_id)
			|| (r = tel_put(&s->tel_packets)) == NULL)
			continue;
		*r = (struct tel_packets){
			.ts_ns = d[i].due_ns,
			.flow_id = d[i].flow_id,
			.pkt_id = d[i].id,
			.queue_bytes = 0,
			.sojourn_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
			.size_bytes = d[i].size_bytes,
			.event = TEL_DEPART,
			.link = out->last_link,
			.ecn = d[i].ecn,
			.path = out->path->index,
			.stage = UINT8_MAX,
		};
	}
}

// The slot's point joins the line.
static void trend_fold(struct switch_trend *t) {
	if (t->n == 0)
		t->first_due_ns = t->due_ns;
	double x = (double)time_since(t->due_ns, t->first_due_ns) * 1e-9;
	double y = (double)t->late_ns;
	t->n += 1;
	t->x += x;
	t->y += y;
	t->xx += x * x;
	t->xy += x * y;
}

static void trend_add(struct switch_trend *t, uint64_t due_ns, uint64_t late_ns) {
	uint64_t slot = due_ns >> SWITCH_TREND_SHIFT;

	if (slot == t->slot && late_ns >= t->late_ns)
		return;
	if (slot != t->slot && t->slot > 0)
		trend_fold(t);
	t->slot = slot;
	t->due_ns = due_ns;
	t->late_ns = late_ns;
}

void switch_note_departures(struct switch_live *s, struct switch_port *out,
	const struct switch_departure *d, uint32_t n, uint64_t sent_ns) {
	uint64_t sum_ns = 0, max_ns = 0, late = 0, early = 0;

	if (n == 0)
		return;
	bool disturbed = watch_disturbed(&s->watch, (uint32_t)(out - s->port), d[0].due_ns);
	struct hist *h = disturbed ? &out->late_disturbed : &out->late;
	uint64_t patience_ns = s->watch.late_ns;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t late_ns = time_since(sent_ns, d[i].due_ns);

		hist_count(h, late_ns);
		sum_ns += late_ns;
		max_ns = time_max(max_ns, late_ns);
		late += late_ns > patience_ns;
		early += sent_ns < d[i].due_ns;
	}
	hist_counted(h, n, sum_ns, max_ns);
	out->early += early;
	if (!disturbed) {
		watch_left(&s->watch, n, late, max_ns);
		trend_add(&out->trend, d[0].due_ns, time_since(sent_ns, d[0].due_ns));
	}
	if (s->tel_packets.ring != NULL)
		record_departures(s, out, d, n, sent_ns);
}

// The port answers for these; as far as the lcore knows they leave at their times.
void switch_note_scheduled(struct switch_live *s, struct switch_port *out,
	const struct switch_departure *d, uint32_t n) {
	out->scheduled += n;
	if (s->tel_packets.ring != NULL)
		record_departures(s, out, d, n, 0);
}
