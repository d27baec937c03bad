// SPDX-License-Identifier: BSD-3-Clause
// Moves due packets from their path into the queue of their port. Each departure may be recorded,
// with its due time and its lateness.
#include "switch/live/lcore.h"

#include "common/base/rng.h"
#include "common/net/clear.h"
#include "common/net/corrupt.h"
#include "common/net/super_frame.h"
#include "common/net/wire.h"
#include "switch/serialiser/trace.h"

#include <string.h>

// Packets taken off a path at a time, while the next ones are prefetched. A whole burst would be
// more cache misses than the processor can have outstanding.
#define COLLECT_MAX 16

// Records a burst that the port has taken.
static void trace(struct egress *e, uint32_t slot, uint32_t n, uint64_t sent_ns) {
	struct tel *tel = &e->lcore->tel[TEL_STREAM_PACKETS];
	const struct switch_port *out = &switch_lcore(e->lcore)->port[e->index];
	const struct tel_run *run = out->path->tel_run;
	uint8_t link = out->last_link, path = out->path->index;

	for (uint32_t i = slot; i < slot + n; i++) {
		const struct switch_trace *t = &out->trace[i];
		struct tel_packets *r;

		if (!tel_flow_sampled(run, t->flow_id) || (r = tel_put(tel)) == NULL)
			continue;
		*r = (struct tel_packets){
			.ts_ns = e->due_ns[i],
			.flow_id = t->flow_id,
			.pkt_id = t->id,
			.queue_bytes = 0,
			.sojourn_ns = time_since(sent_ns, e->due_ns[i]),
			.size_bytes = t->size_bytes,
			.event = TEL_DEPART,
			.reason = DROP_NONE,
			.link = link,
			.ecn = t->ecn,
			.path = path,
			.stage = UINT8_MAX,
		};
	}
}

void switch_trace_departures(struct switch_lcore *s) {
	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		if (s->port[i].path != NULL && s->routes == NULL
			&& s->lcore.tel[TEL_STREAM_PACKETS].ring != NULL)
			s->port[i].egress.trace = trace;
	}
}

// Fills the cache with up to `n` mbufs for small frames; returns the number available.
static uint32_t fill_mbuf_cache(struct switch_lcore *s, uint32_t n) {
	if (s->nb_cached < n
		&& rte_pktmbuf_alloc_bulk(s->pool, s->mbuf_cache + s->nb_cached, s->burst) == 0)
		s->nb_cached += s->burst;
	return s->nb_cached < n ? s->nb_cached : n;
}

// Writes into a frame what its path changed.
__attribute__((noinline)) static void change_frame(
	struct rte_mbuf *m, const struct pkt *p, uint8_t ecn) {
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (p->ecn != ecn)
		wire_set_ecn(frame, m->data_len, p->ecn);
	// A receiver believes a partial sum: what is changed gets its whole sum first.
	if ((m->ol_flags & KERNEL_PARTIAL) != 0 && (p->flags & (PKT_CLEARED | PKT_CORRUPT)) != 0) {
		super_frame_fill_sum(frame, m->data_len);
		m->ol_flags &= ~KERNEL_PARTIAL;
	}
	if ((p->flags & PKT_CLEARED) != 0)
		clear_frame(frame, m->data_len, p->flags);
	if ((p->flags & PKT_CORRUPT) != 0)
		corrupt_frame(frame, m->data_len, rng_mix(p->id));
}

// Puts packets that have left their path into the port's queue: of the first of `n`, all that are
// small, or all that are not, and at most as many as there are mbufs for. Returns their number.
static inline __attribute__((always_inline)) uint32_t packets_to_mbufs(struct switch_lcore *s,
	struct switch_port *out, struct pkt *const *pkts, uint32_t n, const bool small) {
	struct egress *e = &out->egress;
	size_t slot = egress_slot(e), most = small ? fill_mbuf_cache(s, n) : n, i;
	struct rte_mbuf **m = e->mbuf + slot, **cached = s->mbuf_cache + s->nb_cached;
	uint64_t *due_ns = e->due_ns + slot;
	uint16_t *bytes = e->bytes + slot;

	for (i = 0; i < most; i++) {
		const struct pkt *p = pkts[i];
		const struct packet_metadata *meta = packet_metadata(pkts[i]);

		if ((meta->len > 0) != small)
			break;
		due_ns[i] = p->arrival_ns;
		bytes[i] = p->size_bytes;
		m[i] = small ? *--cached : port_mbuf(pkts[i]);
		if (small) {
			m[i]->ol_flags = 0;
			m[i]->data_off = RTE_PKTMBUF_HEADROOM;
			m[i]->data_len = meta->len;
			m[i]->pkt_len = meta->len;
			memcpy(rte_pktmbuf_mtod(m[i], void *), meta->frame, SWITCH_SMALL_MAX);
		} else { // the driver reads both lines
			rte_prefetch0(m[i]);
			rte_prefetch0((const char *)m[i] + RTE_CACHE_LINE_MIN_SIZE);
		}
		if (unlikely((p->ecn ^ meta->ecn) | p->flags))
			change_frame(m[i], p, meta->ecn);
	}
	for (size_t k = 0; e->trace != NULL && k < i; k++)
		memcpy(&out->trace[slot + k], &pkts[k]->flow_id, sizeof(out->trace[0]));
	if (small) {
		arena_put(&s->small, pkts, (uint32_t)i);
		s->nb_cached -= i;
	} else {
		out->large -= i;
	}
	e->count += i;
	return i;
}

// Takes packets that have left the last path of their route.
static uint32_t take_due(struct switch_port *out, struct pkt **pkts, uint32_t max) {
	uint32_t n = 0;

	while (n < max && out->due.head != NULL)
		pkts[n++] = pkt_list_pop(&out->due);
	return n;
}

// Turns the stages' answers among `n` packets round, as they have come to the end of their path:
// each is relayed as if it had come in where it would have left. Returns the number of the other
// packets.
__attribute__((cold, noinline)) static uint32_t send_back(
	struct switch_lcore *s, struct switch_port *out, struct pkt **pkts, uint32_t n) {
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = pkts[i];

		if ((p->flags & PKT_TOO_BIG) == 0) {
			pkts[kept++] = p;
			continue;
		}
		change_frame(port_mbuf(p), p, packet_metadata(p)->ecn);
		out->inside--;
		out->large--;
		switch_relay_own(s, out->egress.index, port_mbuf(p));
	}
	return kept;
}

// Takes up to `max` due packets off the path, at most COLLECT_MAX.
static uint32_t collect_some(struct switch_lcore *s, struct switch_port *out, uint32_t max) {
	struct pkt *pkts[COLLECT_MAX];
	uint32_t n = unlikely(s->routes != NULL)
		? take_due(out, pkts, max)
		: path_pop(out->path, s->lcore.now_ns + switch_lead_ns(s, out), pkts, max);

	if (unlikely(s->answers))
		n = send_back(s, out, pkts, n);
	for (uint32_t i = 0, k; i < n; i += k) {
		k = packet_metadata(pkts[i])->len > 0
			? packets_to_mbufs(s, out, pkts + i, n - i, true)
			: packets_to_mbufs(s, out, pkts + i, n - i, false);
		if (k == 0) {
			pkt_count_add(&s->drop[DROP_NO_MBUF], 1, pkts[i]->size_bytes);
			arena_put(&s->small, pkts + i, k = 1);
		}
	}
	out->inside -= n;
	return n;
}

// Takes due packets off the path: at most a burst, as far as the queue has room.
static uint32_t collect(struct switch_lcore *s, struct switch_port *out) {
	uint32_t room = egress_room(&out->egress), most = room < s->burst ? room : s->burst;
	uint32_t n = 0, max, got;

	do {
		max = most - n < COLLECT_MAX ? most - n : COLLECT_MAX;
		n += got = collect_some(s, out, max);
	} while (got == max && n < most);
	return n;
}

void switch_serve(struct switch_lcore *s, struct switch_port *out) {
	uint32_t n;

	do {
		n = out->path != NULL || s->routes != NULL ? collect(s, out) : 0;
		if (out->egress.count > 0)
			egress_flush(&out->egress);
	} while (n == s->burst && out->egress.count == 0);
}
