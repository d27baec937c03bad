// SPDX-License-Identifier: BSD-3-Clause
#include "switch/stage/wire.h"

void wire_rate(struct wire *w, uint64_t now_ns, uint64_t rate_bps) {
	uint64_t byte_ns = serial_byte_ns(rate_bps);

	if (w->sending != NULL)
		w->free = serial_changed_end(w->free, now_ns,
			w->sending->size_bytes + w->extra_bytes, w->byte_ns, byte_ns);
	w->byte_ns = byte_ns;
	stats_rate(&w->stats, now_ns, rate_bps);
}

struct stage_stats *wire_figures(struct wire *w, uint64_t now_ns) {
	struct stage_stats *s = &w->stats;

	s->extra_bytes = w->extra_bytes;
	s->wire_pkts = w->sending != NULL;
	s->wire_bytes = w->sending != NULL ? w->sending->size_bytes : 0;
	s->unsent_ns = w->sending != NULL ? (double)time_since(serial_ns(w->free), now_ns) : 0.0;
	return s;
}

// The packets were just sent, so they are in the cache and need no prefetch.
uint32_t wire_pop_out(struct wire *w, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	uint64_t bytes = 0;
	uint32_t n = 0;

	for (; n < max && n < w->out.count; n++) {
		struct pkt *p = w->out.slot[(w->out.head + n) & (w->out.slots - 1)];

		if (p->arrival_ns > now_ns)
			break;
		bytes += p->size_bytes;
		pkts[n] = p;
	}
	pkt_ring_skip(&w->out, n, bytes);
	return n;
}

void wire_dropped(struct wire *w, uint64_t t_ns, uint64_t given_bytes, struct pkt_list *drops) {
	uint64_t queue_bytes = w->stats.queue_bytes - given_bytes;

	for (const struct pkt *p = w->fresh.head; p != NULL; p = p->next) {
		queue_bytes -= p->size_bytes;
		stage_trace(w->env, TEL_DROP, p, t_ns, queue_bytes);
	}
	stats_dropped(&w->stats, t_ns, w->fresh.count, w->fresh.bytes);
	pkt_list_join(drops, &w->fresh);
}
