// SPDX-License-Identifier: BSD-3-Clause
// What holds for a host between any two events: the state of its flows and receivers, counted again
// from their records. For the unit tests (link.h) and the fuzz targets, which say what NEED does
// with a condition that does not hold.
#pragma once
#include "sender/host/host.h"

#ifndef NEED
#error "define NEED(condition) first"
#endif

static inline void check_retrans_list(const struct flow *f, uint64_t now_ns) {
	uint64_t i = f->retrans_head, before = UINT64_MAX, sent_ns = 0;

	for (uint32_t n = 0; n < f->retrans; n++) {
		NEED(i >= f->una && i < f->nxt);
		const struct seg_rec *r = flow_seg(f, i);

		NEED((r->flags & SENT_RETRANS) != 0);
		NEED(n == 0 || flow_links(f, i)->prev == (uint32_t)before);
		NEED(n == 0 || flow_sent_ns(r, now_ns) >= sent_ns);
		sent_ns = flow_sent_ns(r, now_ns);
		before = i;
		i = f->una + (uint32_t)(flow_links(f, i)->next - (uint32_t)f->una);
	}
	NEED(f->retrans_tail == before);
	NEED((f->retrans == 0) == (f->retrans_head == UINT64_MAX));
}

// Counts the nodes of relost.c's tree, each of which is a segment that waits, in [low, high).
static inline uint32_t check_relost(
	const struct flow *f, uint32_t link, uint64_t low, uint64_t high) {
	uint64_t i = f->una + (((link >> 1) - (uint32_t)f->una) & (UINT32_MAX >> 1));

	if (link == 0)
		return 0;
	NEED(i >= low && i < high);
	const struct seg_links *r = flow_links(f, i);

	NEED((flow_seg(f, i)->flags & (SENT_LOST | SENT_RETRANS)) == SENT_LOST);
	return 1 + check_relost(f, r->low, low, i) + check_relost(f, r->high, i + 1, high);
}

// Every counter of the scoreboard, counted again from the records.
static inline void check_scoreboard(const struct flow *f, uint64_t now_ns) {
	uint32_t sacked = 0, lost = 0, retrans = 0, unsent = 0, relost = 0;
	uint64_t fack = f->una, sent_ns = 0, sacked_end = f->una;

	NEED(f->nxt >= f->una && f->rack_scan <= f->nxt);
	NEED(!f->buffered || f->nxt <= f->written + (f->nxt > f->data_segs));
	NEED(f->una == f->nxt || f->nxt - f->una <= (uint64_t)f->ring.mask + 1);
	for (uint64_t i = f->una; i < f->nxt; i++) {
		const struct seg_rec *r = flow_seg(f, i);
		bool gone = (r->flags & (SENT_SACKED | SENT_LOST)) != 0;

		NEED((r->flags & SENT_RETRANS) == 0 || (r->flags & SENT_LOST) != 0);
		NEED((r->flags & SENT_SACKED) == 0 || (r->flags & SENT_LOST) == 0);
		sacked += (r->flags & SENT_SACKED) != 0;
		lost += (r->flags & SENT_LOST) != 0;
		retrans += (r->flags & SENT_RETRANS) != 0;
		unsent += (r->flags & (SENT_LOST | SENT_RETRANS)) == SENT_LOST;
		relost += (r->flags & (SENT_LOST | SENT_RETRANS)) == SENT_LOST && i < f->rtx_hint;
		NEED(i >= sacked_end || (r->flags & SENT_SACKED) != 0);
		if ((r->flags & SENT_SACKED) != 0) {
			fack = i + 1;
			uint32_t ahead = flow_links(f, i)->sacked_end - (uint32_t)i;

			NEED((int32_t)ahead > 0);
			sacked_end = max_u64(sacked_end, i + ahead);
		}
		if (f->sack_ok && i < f->rack_scan)
			NEED(gone);
		if (f->sack_ok && !gone) { // the order that the scan for losses relies on
			NEED(flow_sent_ns(r, now_ns) >= sent_ns);
			sent_ns = flow_sent_ns(r, now_ns);
		}
	}
	NEED(sacked_end <= f->nxt);
	NEED(f->sack_ok ? f->sacked == sacked : sacked == 0);
	NEED(f->lost == lost && f->retrans == retrans && f->unsent_lost == unsent);
	NEED(check_relost(f, f->relost, f->una, f->rtx_hint) == relost);
	NEED(max_u64(f->fack, f->una) >= fack);
	// In flight: never negative, never more than there is.
	NEED((uint64_t)f->sacked + f->lost <= f->nxt - f->una + f->retrans);
	NEED(flow_inflight(f) <= f->nxt - f->una);
	check_retrans_list(f, now_ns);
}

static inline void check_flow(const struct flow *f, uint64_t now_ns) {
	if (f->state != FLOW_OPEN) {
		NEED(f->state == FLOW_WAITING || f->state == FLOW_SYN_SENT || f->ring.rec == NULL);
		return;
	}
	check_scoreboard(f, now_ns);
	NEED(f->cwnd_segs >= 1 && f->out.cwnd_segs >= 1);
	NEED(f->una_bytes >= flow_offset(f, f->una));
	NEED(f->una_bytes <= flow_sent_bytes(f));
	// A part of a segment was sent: by a probe, or before segments were cut anew.
	NEED(f->una == f->nxt || f->path_mtu > 0 || f->search.high > 0
		|| f->probe_end <= flow_offset(f, f->nxt));
	// Something will happen: a timer for what is out, a timer for what waits.
	NEED(f->una == f->nxt || (f->rtx_kind != RTX_NONE && f->rtx_kind != RTX_PERSIST));
	NEED(!flow_unsent(f) || f->una < f->nxt || f->pace.armed || f->rtx.armed);
	NEED(f->rtx_kind == RTX_NONE
		|| (f->rtx.armed && f->rtx.t.expires_ns <= f->rtx_deadline_ns));
}

// Out-of-order ranges that a receiver holds.
static inline uint32_t held_ranges(const struct receiver *r) {
	uint32_t n = 0;

	for (const struct range *g = r->head; g != NULL; g = g->next)
		n++;
	return n;
}

static inline void check_receiver(const struct receiver *r) {
	uint64_t end = r->rcv_nxt, held = 0;
	const struct range *last = NULL;

	for (const struct range *g = r->head; g != NULL; g = g->next) {
		NEED(g->start > end && g->end > g->start); // sorted, disjoint, not adjacent
		end = g->end;
		held += g->end - g->start;
		last = g;
	}
	NEED(r->tail == last && r->range_bytes == held && !r->dsack);
	for (uint8_t i = 0; i < r->sack_count; i++) {
		bool found = false;

		for (const struct range *g = r->head; g != NULL; g = g->next)
			found |= r->sack[i].start == r->irs + 1 + (uint32_t)g->start
				&& r->sack[i].end == r->irs + 1 + (uint32_t)g->end;
		NEED(found);
	}
	NEED(r->state != RECEIVER_OPEN || r->delack_ns == NEVER_NS || r->delack.armed);
	NEED(!r->delays || r->delack.armed);
}

// All of a host: each connection, and that the shared pools and the counters add up.
static inline void check_host(const struct host *h, uint64_t now_ns) {
	uint32_t free_ranges = 0, used_ranges = 0, states[FLOW_FAILED + 1] = {0};
	uint64_t used = 0, received = 0;
	bool repeated = false;

	for (uint32_t i = 0; i < h->flows; i++) {
		const struct flow *f = &h->flow[i];

		check_flow(f, now_ns);
		states[f->state]++;
		used += f->ring.rec == NULL ? 0 : (uint64_t)f->ring.mask + 1;
	}
	NEED(h->arena.used == used);
	NEED(h->waiting == states[FLOW_WAITING] && h->done == states[FLOW_DONE]);
	NEED(h->open == states[FLOW_SYN_SENT] + states[FLOW_OPEN]);
	NEED(h->failed == states[FLOW_FAILED]);
	for (uint32_t i = 0; i < h->receivers; i++) {
		const struct receiver *r = &h->receiver[i];

		check_receiver(r);
		used_ranges += held_ranges(r);
		received += r->rcv_nxt;
		// A receiver of a source with a schedule has had connections before.
		repeated |= source_scheduled(h->groups->group[r->group_index].source);
	}
	for (const struct range *g = h->ranges.free; g != NULL; g = g->next)
		free_ranges++;
	NEED(free_ranges + used_ranges == h->ranges.used);
	NEED(repeated ? h->received.bytes >= received : h->received.bytes == received);
}
