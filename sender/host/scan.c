// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host/scan.h"

#include "common/base/likely.h"

#include <string.h>

void group_scan_add(struct group_scan_sum *sum, const struct group_scan_sum *to) {
	const struct group_scan_sum none = {0}, *from = &none;

	GROUP_SCAN_SUMS(COUNTERS_ADD)
}

void group_scan_begin(struct group_scan *s, const struct host *h) {
	memset(s, 0, sizeof(*s));
	s->host = h;
}

static void add_flow(struct group_scan_sum *g, const struct flow *f) {
	switch ((enum flow_state)f->state) {
	case FLOW_WAITING:
		g->waiting++;
		return;
	case FLOW_SYN_SENT:
	case FLOW_OPEN:
		g->open++;
		break;
	case FLOW_DONE:
		g->done++;
		break;
	case FLOW_FAILED:
		g->failed++;
		break;
	}
	g->acked_bytes += f->count.acked_bytes;
	g->sent_segs += f->count.sent_segs;
	g->retransmits += f->count.retransmits;
	g->timeouts += f->count.timeouts;
	if (f->state != FLOW_OPEN || f->rtt.srtt_ns == 0)
		return;
	g->measured++;
	g->srtt_ns += f->rtt.srtt_ns;
	g->cwnd_segs += f->out.cwnd_segs;
	g->pacing_bps += f->out.pacing_bps;
}

// Prefetches the fields of a flow that add_flow() reads.
static void fetch(const struct flow *f) {
	prefetch(&f->state);
	prefetch(&f->rtt);
	prefetch(&f->out);
	prefetch(&f->count);
	prefetch(&f->count.timeouts);
}

bool group_scan_step(struct group_scan *s, uint32_t n) {
	const struct host *h = s->host;
	uint32_t left = h->flows - s->next;

	n = n < left ? n : left;
	for (uint32_t i = 0; i < n; i++)
		fetch(&h->flow[s->next + i]);
	for (uint32_t i = 0; i < n; i++) {
		const struct flow *f = &h->flow[s->next + i];

		add_flow(&s->group[f->group], f);
	}
	s->next += n;
	return s->next < h->flows;
}
