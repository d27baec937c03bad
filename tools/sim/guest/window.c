// SPDX-License-Identifier: BSD-3-Clause
// A window of a run with guests. For each side, or for both at once:
//
//	1. what leaves the side's path in the window goes to the guests' inboxes, or is held for our transport
//	2. the guests run through the window
//	3. our transport does, on what was held; the guests' frames are merged into what it sends
//	4. what the guests report is recorded
#include "tools/sim/guest/guests_private.h"

#include "common/net/clear.h"
#include "common/net/wire.h"

#include <string.h>

#define BATCH 64

static void to_guest(struct guests *gs, bool sender, struct guest *g, struct pkt *p) {
	struct sim *s = gs->sim;

	(sender ? &s->sender : &s->receiver)->count.rx_segs++;
	if (!sender && pkt_seg(p)->len > 0)
		s->receiver.receiver[p->flow_id].count.segs++;
	if (!sender && p->ecn == ECN_CE)
		s->receiver.receiver[p->flow_id].count.ce_segs++;
	pkt_list_push(&g->inbox, p);
}

// Step 1.
static void collect(struct guests *gs, enum flows_direction side, uint64_t last_ns) {
	struct path *from = gs->sim->side[side].from;
	struct sim *s = gs->sim;
	bool sender = side == FLOWS_FORWARD;
	struct pkt *batch[BATCH];
	uint32_t n;

	do {
		n = from != NULL
			? path_pop(from, last_ns, batch, BATCH)
			: sim_network_take(s, sender ? NODE_SENDER : NODE_RECEIVER, batch, BATCH);
		for (uint32_t i = 0; i < n; i++) {
			uint16_t g = gs->of_flow[sender][batch[i]->flow_id];

			if (g != NO_GUEST)
				to_guest(gs, sender, &gs->guest[g], batch[i]);
			else
				pkt_list_push(&gs->held[sender], batch[i]);
		}
		s->inside -= n;
	} while (n == BATCH);
}

void guests_emit(struct guests *gs, enum flows_direction side, uint64_t until_ns) {
	bool forward = side == FLOWS_FORWARD;
	struct sim *s = gs->sim;

	for (;;) {
		struct guest *first = NULL;
		uint64_t t_ns = until_ns;

		for (uint32_t i = 0; i < gs->count; i++) {
			struct guest *g = &gs->guest[i];

			if (gs->place[i].sender != forward || g->outbox.head == NULL
				|| g->outbox.head->arrival_ns > t_ns
				|| (first != NULL && g->outbox.head->arrival_ns == t_ns))
				continue;
			first = g;
			t_ns = g->outbox.head->arrival_ns;
		}
		if (first == NULL)
			return;
		(forward ? &s->sender : &s->receiver)->count.tx_segs++;
		sim_send_frame(s, side, pkt_list_pop(&first->outbox));
	}
}

// Step 3, on one packet. Guests' checksums are verified as a card does.
static void to_host(struct sim *s, bool sender, struct pkt *p) {
	struct host *h = sender ? &s->sender : &s->receiver;
	const struct seg *seg = pkt_seg(p);
	uint8_t frame[GUEST_FRAME_ROOM];
	struct wire_info info;
	struct seg decoded;
	uint32_t size = guests_frame(p, frame, sizeof(frame));

	if (size > 0) {
		if (wire_parse(frame, size, &info) != WIRE_OK
			|| wire_parse_tcp(frame, &info, true, &decoded) != WIRE_OK) {
			s->checksum_errors[sender]++;
			return;
		}
		seg = &decoded;
	} else if ((p->flags & PKT_CORRUPT) != 0) {
		s->checksum_errors[sender]++;
		return;
	} else if ((p->flags & PKT_CLEARED) != 0) {
		clear_seg(pkt_seg(p), p->flags);
	}
	if (sender)
		host_rx_flow(h, p->flow_id, seg, p->ecn, p->arrival_ns);
	else
		host_rx_receiver(h, p->flow_id, seg, p->ecn, p->arrival_ns);
}

static void finish(struct guests *gs, enum flows_direction side, uint64_t last_ns) {
	bool sender = side == FLOWS_FORWARD;
	struct sim *s = gs->sim;
	struct host *h = sender ? &s->sender : &s->receiver;
	struct pkt *p;

	while ((p = pkt_list_pop(&gs->held[sender])) != NULL) {
		host_run(h, p->arrival_ns);
		to_host(s, sender, p);
		sim_pool_put(s, p);
	}
	host_run(h, last_ns);
	guests_emit(gs, side, last_ns);
	sim_flush(s, side);
	for (uint32_t i = 0; i < gs->count; i++) {
		struct guest *g = &gs->guest[i];

		if (gs->place[i].sender != sender)
			continue;
		while ((p = pkt_list_pop(&g->delivered)) != NULL)
			sim_pool_put(s, p);
		for (uint32_t k = 0; k < g->nb_samples; k++)
			guests_report(gs, &g->sample[k]);
		g->nb_samples = 0;
	}
}

static void check(struct guests *gs) {
	struct sim *s = gs->sim;

	for (uint32_t i = 0; s->failed == 0 && i < gs->count; i++) {
		if (gs->guest[i].rc < 0)
			s->failed = err_set(&s->err, gs->guest[i].rc, "%s", gs->guest[i].err.msg);
	}
}

void guests_feed(struct guests *gs, enum flows_direction side, uint64_t last_ns) {
	collect(gs, side, last_ns);
	guests_run_sides(gs, side == FLOWS_FORWARD ? 2 : 1, last_ns + 1);
	finish(gs, side, last_ns);
	check(gs);
}

uint64_t guests_both_ns(const struct guests *gs) {
	const struct path *forward = gs->sim->side[FLOWS_FORWARD].to,
			  *reverse = gs->sim->side[FLOWS_REVERSE].to;

	if (forward == NULL || reverse == NULL || gs->sim->side[FLOWS_REVERSE].from != forward
		|| gs->sim->side[FLOWS_FORWARD].from != reverse)
		return 0;
	return time_min(path_min_delay_ns(forward), path_min_delay_ns(reverse));
}

void guests_feed_both(struct guests *gs, uint64_t last_ns) {
	collect(gs, FLOWS_FORWARD, last_ns);
	collect(gs, FLOWS_REVERSE, last_ns);
	guests_run_sides(gs, 3, last_ns + 1);
	finish(gs, FLOWS_FORWARD, last_ns);
	finish(gs, FLOWS_REVERSE, last_ns);
	check(gs);
}

uint64_t guests_next_ns(const struct guests *gs) {
	uint64_t t_ns = NEVER_NS;

	for (uint32_t i = 0; i < gs->count; i++) {
		const struct guest *g = &gs->guest[i];

		t_ns = time_min(t_ns, guest_next_ns(g));
		if (g->outbox.head != NULL)
			t_ns = time_min(t_ns, g->outbox.head->arrival_ns);
	}
	return t_ns;
}
