// SPDX-License-Identifier: BSD-3-Clause
#include "switch/serialiser/wire.h"

#include <assert.h>

void wire_rate(struct wire *w, uint64_t now_ns, uint64_t rate_bps) {
	struct pkt *p = w->sending;

	if (rate_bps == 0 && p != NULL) {
		assert(!wire_due(w, now_ns));
		w->unsent = serial_unsent(
			w->free, now_ns, framing_bytes(&w->framing, p->size_bytes), w->byte_ns);
		w->halted = p;
		w->sending = NULL;
	}
	w->down = rate_bps == 0;
	stats_rate(&w->stats, now_ns, rate_bps);
	if (w->down)
		return;

	uint64_t byte_ns = serial_byte_ns(rate_bps);

	if (w->halted != NULL) {
		w->free = serial_at(now_ns) + serial_rescaled(w->unsent, w->byte_ns, byte_ns);
		w->sending = w->halted;
		w->halted = NULL;
	} else if (p != NULL) {
		w->free = serial_changed_end(w->free, now_ns,
			framing_bytes(&w->framing, p->size_bytes), w->byte_ns, byte_ns);
	}
	w->byte_ns = byte_ns;
}

struct stage_stats *wire_figures(struct wire *w, uint64_t now_ns) {
	struct stage_stats *s = &w->stats;
	const struct pkt *p = w->sending != NULL ? w->sending : w->halted;

	s->extra_bytes = w->framing.extra_bytes;
	s->wire_pkts = p != NULL;
	s->wire_bytes = p != NULL ? p->size_bytes : 0;
	s->unsent_bits = 0;
	if (w->sending != NULL)
		s->unsent_bits =
			(double)time_since(serial_ns(w->free), now_ns) * (double)s->rate_bps / 1e9;
	else if (p != NULL)
		s->unsent_bits = 8.0 * (double)framing_bytes(&w->framing, p->size_bytes)
			* (double)w->unsent
			/ (double)serial_end(
				0, framing_bytes(&w->framing, p->size_bytes), w->byte_ns);
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
