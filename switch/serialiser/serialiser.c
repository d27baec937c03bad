// SPDX-License-Identifier: BSD-3-Clause
#include "switch/serialiser/serialiser.h"

#include <assert.h>

void serialiser_rate(struct serialiser *s, uint64_t now_ns, uint64_t rate_bps) {
	struct pkt *p = s->sending;

	if (rate_bps == 0 && p != NULL) {
		assert(!serialiser_due(s, now_ns));
		s->unsent = serial_unsent(
			s->free, now_ns, framing_bytes(&s->framing, p->size_bytes), s->byte_ns);
		s->halted = p;
		s->sending = NULL;
	}
	s->down = rate_bps == 0;
	stats_rate(&s->stats, now_ns, rate_bps);
	if (s->down)
		return;

	uint64_t byte_ns = serial_byte_ns(rate_bps);

	if (s->halted != NULL) {
		s->free = serial_at(now_ns) + serial_rescaled(s->unsent, s->byte_ns, byte_ns);
		s->sending = s->halted;
		s->halted = NULL;
	} else if (p != NULL) {
		s->free = serial_changed_end(s->free, now_ns,
			framing_bytes(&s->framing, p->size_bytes), s->byte_ns, byte_ns);
	}
	s->byte_ns = byte_ns;
}

struct stage_stats *serialiser_figures(struct serialiser *s, uint64_t now_ns) {
	struct stage_stats *f = &s->stats;
	const struct pkt *p = s->sending != NULL ? s->sending : s->halted;

	f->extra_bytes = s->framing.extra_bytes;
	f->wire_pkts = p != NULL;
	f->wire_bytes = p != NULL ? p->size_bytes : 0;
	f->unsent_bits = 0;
	if (s->sending != NULL)
		f->unsent_bits =
			(double)time_since(serial_ns(s->free), now_ns) * (double)f->rate_bps / 1e9;
	else if (p != NULL)
		f->unsent_bits = 8.0 * (double)framing_bytes(&s->framing, p->size_bytes)
			* (double)s->unsent
			/ (double)serial_end(
				0, framing_bytes(&s->framing, p->size_bytes), s->byte_ns);
	return f;
}

// The packets were just sent, so they are in the cache and need no prefetch.
uint32_t serialiser_pop_out(
	struct serialiser *s, uint64_t now_ns, struct pkt **pkts, uint32_t max) {
	uint64_t bytes = 0;
	uint32_t n = 0;

	for (; n < max && n < s->out.count; n++) {
		struct pkt *p = s->out.slot[(s->out.head + n) & (s->out.slots - 1)];

		if (p->arrival_ns > now_ns)
			break;
		bytes += p->size_bytes;
		pkts[n] = p;
	}
	pkt_ring_skip(&s->out, n, bytes);
	return n;
}

// Whether none of the packets that come finds a longer queue than there has been. Packets leave the
// queue at s->free and then at least one per time of the longest frame.
static bool below_peak(const struct serialiser *s, struct pkt *const *pkts, uint32_t n) {
	const struct stage_stats *st = &s->stats;
	uint64_t longest = s->env->mtu_bytes + s->framing.extra_bytes;
	uint64_t i = st->queue_pkts < st->peak_pkts ? st->peak_pkts - st->queue_pkts : 0;
	serial_u128 frame = serial_end(0, longest, s->byte_ns);
	serial_u128 left = s->free + frame * (st->queue_pkts + i - st->peak_pkts);

	for (; i < n; i++, left += frame) {
		if (serial_at(pkts[i]->arrival_ns) < left)
			return false;
	}
	return true;
}

bool serialiser_defer(struct serialiser *s, void *q,
	bool (*enqueue)(void *q, struct pkt *const *pkts, uint32_t n), struct pkt *const *pkts,
	uint32_t n) {
	struct stage_stats *st = &s->stats;
	uint64_t waiting = st->queue_bytes + st->queue_pkts * s->framing.extra_bytes;
	serial_u128 busy = serial_end(s->free, waiting, s->byte_ns);

	if (s->sending == NULL || serial_ns(busy) <= pkts[n - 1]->arrival_ns
		|| !below_peak(s, pkts, n) || !enqueue(q, pkts, n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		stats_arrived(st, pkts[i]->arrival_ns, 1, pkts[i]->size_bytes);
	return true;
}

void serialiser_dropped(
	struct serialiser *s, uint64_t t_ns, uint64_t given_bytes, struct pkt_list *drops) {
	uint64_t queue_bytes = s->stats.queue_bytes - given_bytes;

	for (const struct pkt *p = s->fresh.head; p != NULL; p = p->next) {
		queue_bytes -= p->size_bytes;
		stage_trace(s->env, TEL_DROP, p, t_ns, queue_bytes);
	}
	stats_dropped(&s->stats, t_ns, s->fresh.count, s->fresh.bytes);
	pkt_list_join(drops, &s->fresh);
}
