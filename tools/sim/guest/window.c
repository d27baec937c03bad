// SPDX-License-Identifier: BSD-3-Clause
// A side with guests through a window, or both sides at once:
//
//	1. what leaves the side's path in the window goes to the guests' inboxes, or is held for our
//	   transport
//	2. the guests run through the window
//	3. our transport does, on what was held; the guests' frames are merged into what it sends
//	4. what the guests report is recorded
#include "tools/sim/guest/guests_private.h"

#include "common/net/clear.h"
#include "common/net/wire.h"

#include <string.h>

#define WINDOW_MAX_NS (5 * NS_PER_MS)
#define BATCH 64

static void to_guest(struct guests *gs, struct host *h, bool sender, struct pkt *p) {
	uint32_t guest = gs->of_flow[sender][p->flow_id];

	if (guest == NO_GUEST) {
		pkt_list_push(&gs->held[sender], p);
		return;
	}
	h->count.rx_segs++;
	if (!sender && pkt_seg(p)->len > 0)
		h->received.segs++;
	if (!sender && p->ecn == ECN_CE)
		h->received.ce_segs++;
	pkt_list_push(&gs->guest[guest].inbox, p);
}

// Step 1.
static void begin(struct node *node, uint64_t last_ns) {
	struct guests_node *n = (struct guests_node *)(void *)node;
	struct guests *gs = n->of;
	struct side *x = guests_side(gs, n->sender);
	struct pkt *batch[BATCH];
	uint32_t count;

	do {
		count = side_take(x, last_ns, batch, BATCH);
		for (uint32_t i = 0; i < count; i++) {
			if (!ip_flow_is(batch[i])) {
				to_guest(gs, x->host, n->sender, batch[i]);
				continue;
			}
			x->host->count.rx_segs++;
			pkt_list_push(&gs->guest[guests_ip_received(gs, batch[i])].inbox, batch[i]);
		}
		x->pools->inside -= count;
	} while (count == BATCH);
	n->begun = true;
	gs->begun |= n->sender ? 2 : 1;
}

// Before our transport sends a packet of that time, the guests' earlier frames go.
static void emit(struct guests *gs, bool sender, uint64_t until_ns) {
	struct side *x = guests_side(gs, sender);

	for (;;) {
		struct guest *first = NULL;
		uint64_t t_ns = until_ns;

		for (uint32_t i = 0; i < gs->count; i++) {
			struct guest *g = &gs->guest[i];

			if (gs->place[i].sender != sender || g->outbox.head == NULL
				|| g->outbox.head->arrival_ns > t_ns
				|| (first != NULL && g->outbox.head->arrival_ns == t_ns))
				continue;
			first = g;
			t_ns = g->outbox.head->arrival_ns;
		}
		if (first == NULL)
			return;
		x->host->count.tx_segs++;
		if (ip_flow_is(first->outbox.head))
			guests_ip_sent(gs, first->outbox.head);
		side_send(x, pkt_list_pop(&first->outbox));
	}
}

void guests_sender_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	struct guests *gs = ctx;

	emit(gs, true, t_ns);
	gs->sender_output(guests_side(gs, true), id, seg, n, ecn, t_ns, paced);
}

void guests_receiver_output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t t_ns, bool paced) {
	emit(ctx, false, t_ns);
	side_receiver_output(guests_side(ctx, false), id, seg, n, ecn, t_ns, paced);
}

// Step 3, on one packet. Guests' checksums are verified as a card does.
static void to_host(struct side *x, bool sender, struct pkt *p) {
	const struct seg *seg = pkt_seg(p);
	uint8_t frame[FRAME_ROOM];
	struct wire_info info;
	struct seg decoded;
	uint32_t size;

	if (frame_is_whole(p)) {
		frame_write(
			p, &x->host->groups->group[p->delay_class], frame, sizeof(frame), &size);
		if (wire_parse(frame, size, &info) != WIRE_OK
			|| wire_parse_tcp(frame, &info, true, &decoded) != WIRE_OK) {
			x->checksum_errors++;
			return;
		}
		seg = &decoded;
	} else if ((p->flags & PKT_CORRUPT) != 0) {
		x->checksum_errors++;
		return;
	} else if ((p->flags & PKT_CLEARED) != 0) {
		clear_seg(pkt_seg(p), p->flags);
	}
	if (sender && x->segments != NULL)
		segments_received(
			x->segments, &x->host->flow[p->flow_id], seg, p->ecn, p->arrival_ns);
	if (sender)
		host_rx_flow(x->host, p->flow_id, seg, p->ecn, p->arrival_ns);
	else
		host_rx_receiver(x->host, p->flow_id, seg, p->ecn, p->arrival_ns);
}

static void finish(struct guests *gs, bool sender, uint64_t last_ns) {
	struct side *x = guests_side(gs, sender);
	struct pkt *p;

	while ((p = pkt_list_pop(&gs->held[sender])) != NULL) {
		host_run(x->host, p->arrival_ns);
		to_host(x, sender, p);
		pool_put(x->pools, p);
	}
	host_run(x->host, last_ns);
	emit(gs, sender, last_ns);
	side_flush(x);
	for (uint32_t i = 0; i < gs->count; i++) {
		struct guest *g = &gs->guest[i];

		if (gs->place[i].sender != sender)
			continue;
		while ((p = pkt_list_pop(&g->delivered)) != NULL)
			pool_put(x->pools, p);
		for (uint32_t k = 0; k < g->nb_samples; k++)
			guests_report(gs, &g->sample[k]);
		g->nb_samples = 0;
	}
}

static int outcome(const struct guests *gs, struct err *err) {
	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->guest[i].rc < 0)
			return err_set(err, gs->guest[i].rc, "%s", gs->guest[i].err.msg);
	}
	return 0;
}

static void run_guests(struct guests *gs, uint64_t end_ns) {
	for (int finish = 0; finish < 2; finish++) {
		for (uint32_t i = 0; i < gs->count; i++) {
			struct guest *g = &gs->guest[i];

			if (((gs->place[i].sender ? 2 : 1) & gs->begun) == 0 || g->rc < 0)
				continue;
			if (finish == 0)
				guest_begin(g, end_ns);
			else
				g->rc = guest_finish(g, &gs->folder, &g->err);
		}
	}
}

// The guests of all sides that have begun run together, with the first of these.
static int run_until(struct node *node, uint64_t last_ns, struct err *err) {
	struct guests_node *n = (struct guests_node *)(void *)node;
	struct guests *gs = n->of;

	if (!n->begun)
		begin(node, last_ns);
	run_guests(gs, last_ns + 1);
	gs->begun = 0;
	n->begun = false;
	finish(gs, n->sender, last_ns);
	return outcome(gs, err);
}

static uint64_t next_event_ns(struct node *node, uint64_t limit_ns) {
	const struct guests_node *n = (const struct guests_node *)(const void *)node;
	struct guests *gs = n->of;
	uint64_t t_ns = host_next_ns(guests_side(gs, n->sender)->host, limit_ns);

	for (uint32_t i = 0; i < gs->count; i++) {
		const struct guest *g = &gs->guest[i];

		if (gs->place[i].sender != n->sender)
			continue;
		t_ns = time_min(t_ns, guest_next_ns(g));
		if (g->outbox.head != NULL)
			t_ns = time_min(t_ns, g->outbox.head->arrival_ns);
	}
	return t_ns;
}

const struct node_ops guests_node_ops = {
	.next_event_ns = next_event_ns,
	.run_until = run_until,
	.begin = begin,
	.window_max_ns = WINDOW_MAX_NS,
};
