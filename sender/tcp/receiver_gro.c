// SPDX-License-Identifier: BSD-3-Clause
// GRO: adjacent segments of a flow reach TCP as one of up to 64 KB, so that it decides once about
// the ACK of all of them; as they are more than one full segment, they are acknowledged at once.
// Data is taken when it arrives, only the decision waits.
//
// A segment that does not continue the held ones ends them: after a gap, with another timestamp or
// ECN codepoint (tcp_gro_receive, inet_gro_receive), and itself begins anew; a short one, one with
// PSH or a FIN goes along and ends them. Otherwise they are handed over
//
//	gro: TIME          that long after a flow's first segment, whatever other flows do
//	hosts.receiving    at the end of the poll in which they came (switch/stage/card.c), or after
//	                   64 packets of it (napi_poll with HZ < 1000). Of all flows of a card,
//	                   `gro_flows` are held at a time, in lists of 8 by hash; one more in a list
//	                   makes it hand over its oldest (dev_gro_receive, MAX_GRO_SKBS)
//
// The sources are net/core/gro.c and net/core/dev.c of Linux 6.12. A card's hash is of the flow's
// number, as an even one would be of addresses and ports.
#include "common/base/mem.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/receiver.h"

#include <errno.h>

#define GRO_BYTES_MAX 65535
#define LIST_FLOWS 8 // MAX_GRO_SKBS
#define LISTS_MAX 8 // GRO_HASH_BUCKETS
#define POLL_PACKETS 64 // NAPI_POLL_WEIGHT
#define AT_POLL_END (NEVER_NS - 1) // gro_ns of a card's segments

struct gro_card {
	uint32_t packets; // of this poll, since all were handed over
	uint32_t held; // flows
	struct {
		uint32_t count;
		uint32_t receiver[LIST_FLOWS]; // the oldest first
	} list[LISTS_MAX];
};

int receivers_gro_init(struct endpoint *e) {
	const struct hosts_side *side = groups_gro_side(e->groups);

	if (side == NULL)
		return 0;
	e->gro_cards = (uint32_t)side->count;
	e->gro_lists = (uint32_t)(side->gro_flows + LIST_FLOWS - 1) / LIST_FLOWS;
	e->gro_card = mem_map(e->gro_cards * sizeof(*e->gro_card));
	return e->gro_card == NULL ? -ENOMEM : 0;
}

void receivers_gro_fini(struct endpoint *e) {
	mem_unmap(e->gro_card, e->gro_cards * sizeof(*e->gro_card));
	e->gro_card = NULL;
}

void receivers_gro_measure(struct endpoint *e) {
	e->gro_from = e->gro;
}

double receivers_gro_mean(const struct endpoint *e) {
	uint64_t segs = e->gro.segs - e->gro_from.segs;

	return (double)segs / (double)(e->gro.handovers - e->gro_from.handovers);
}

static struct gro_card *card_of(const struct endpoint *e, const struct receiver *r) {
	return &e->gro_card[r->id % e->gro_cards];
}

// Fibonacci hashing of the flow's number on its card.
static uint32_t list_of(const struct endpoint *e, const struct receiver *r) {
	return (r->id / e->gro_cards * UINT32_C(2654435769) >> 16) % e->gro_lists;
}

// Takes a flow off its card's list.
static void forget(struct endpoint *e, const struct receiver *r) {
	struct gro_card *card = card_of(e, r);
	uint32_t list = list_of(e, r), kept = 0, *of = card->list[list].receiver;

	for (uint32_t i = 0; i < card->list[list].count; i++) {
		if (of[i] != r->id)
			of[kept++] = of[i];
	}
	card->held -= card->list[list].count - kept;
	card->list[list].count = kept;
}

void receiver_gro_flush(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct receiver_acks *a = r->acks;
	uint32_t bytes = a->gro_bytes;

	if (a->gro_ns == AT_POLL_END)
		forget(e, r);
	a->gro_ns = NEVER_NS;
	a->gro_bytes = 0;
	e->gro.handovers++;
	receiver_acks_decide(e, r, bytes, a->gro_now, a->gro_pushed, a->gro_repeated, now_ns);
}

static void flush_oldest(
	struct endpoint *e, struct gro_card *card, uint32_t list, uint64_t now_ns) {
	uint32_t id = card->list[list].receiver[0];

	receiver_gro_flush(e, &e->receiver[endpoint_index(e, id)], now_ns);
}

static void flush_card(struct endpoint *e, struct gro_card *card, uint64_t now_ns) {
	card->packets = 0;
	for (uint32_t i = 0; card->held > 0; i++) {
		while (card->list[i].count > 0)
			flush_oldest(e, card, i, now_ns);
	}
}

void receivers_gro_poll_end(struct endpoint *e, uint32_t flow, uint64_t now_ns) {
	if (e->gro_card != NULL)
		flush_card(e, &e->gro_card[flow % e->gro_cards], now_ns);
}

// From now on the flow's segments are held.
static void hold(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if (e->gro_card == NULL) {
		r->acks->gro_ns = now_ns + receiver_group(e, r)->gro_ns;
		receiver_acks_arm(e, r);
		return;
	}
	struct gro_card *card = card_of(e, r);
	uint32_t list = list_of(e, r);

	if (card->list[list].count == LIST_FLOWS)
		flush_oldest(e, card, list, now_ns);
	card->list[list].receiver[card->list[list].count++] = r->id;
	card->held++;
	r->acks->gro_ns = AT_POLL_END;
}

void receiver_gro_break(struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t start,
	uint8_t ecn, uint64_t now_ns) {
	const struct receiver_acks *a = r->acks;

	if (a->gro_ns != NEVER_NS
		&& (start != a->gro_end || s->tsval != a->gro_tsval || ecn != a->gro_ecn
			|| a->gro_bytes + s->len > GRO_BYTES_MAX))
		receiver_gro_flush(e, r, now_ns);
}

void receiver_gro_take(struct endpoint *e, struct receiver *r, const struct seg *s, uint64_t end,
	uint8_t ecn, bool now, bool pushed, bool repeated, uint64_t now_ns) {
	struct receiver_acks *a = r->acks;

	if (a->gro_ns == NEVER_NS) {
		a->gro_now = a->gro_pushed = a->gro_repeated = false;
		a->gro_tsval = s->tsval;
		a->gro_ecn = ecn;
		hold(e, r, now_ns);
	}
	e->gro.segs++;
	a->gro_end = end;
	a->gro_bytes += s->len;
	a->gro_now |= now;
	a->gro_pushed |= pushed;
	a->gro_repeated |= repeated;
	// Each duplicate has a report of its own.
	if (repeated || pushed || (s->flags & SEG_FIN) != 0)
		receiver_gro_flush(e, r, now_ns);
	if (e->gro_card != NULL && ++card_of(e, r)->packets == POLL_PACKETS)
		flush_card(e, card_of(e, r), now_ns);
}
