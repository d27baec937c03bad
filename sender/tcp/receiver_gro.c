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

struct gro_count {
	uint64_t segs; // that it was given
	uint64_t handovers; // to TCP, each of one segment or several
};

struct gro_card {
	struct gro_count count, from; // all together, and at receivers_gro_measure
	uint32_t packets; // of this poll, since all were handed over
	uint32_t held; // flows
	uint32_t lists;
	struct {
		uint32_t count;
		uint32_t receiver[LIST_FLOWS]; // the oldest first
	} list[LISTS_MAX];
};

int receivers_gro_init(struct endpoint *e) {
	const struct hosts_side *side = groups_gro_side(e->groups);

	if (side == NULL)
		return 0;
	e->gro_card = mem_map(side->count * sizeof(*e->gro_card));
	if (e->gro_card == NULL)
		return -ENOMEM;
	e->gro_hosts = side;
	for (uint32_t k = 0; k < side->kinds; k++) {
		const struct hosts_kind *kind = &side->kind[k];

		for (uint64_t i = 0; i < kind->count; i++)
			e->gro_card[kind->first + i].lists =
				(uint32_t)(kind->gro_flows + LIST_FLOWS - 1) / LIST_FLOWS;
	}
	return 0;
}

void receivers_gro_fini(struct endpoint *e) {
	if (e->gro_hosts != NULL)
		mem_unmap(e->gro_card, e->gro_hosts->count * sizeof(*e->gro_card));
	e->gro_hosts = NULL;
}

void receivers_gro_measure(struct endpoint *e) {
	for (uint32_t i = 0; e->gro_hosts != NULL && i < e->gro_hosts->count; i++)
		e->gro_card[i].from = e->gro_card[i].count;
}

double receivers_gro_mean(const struct endpoint *e, const struct hosts_kind *kind) {
	uint64_t segs = 0, handovers = 0;

	for (uint64_t i = 0; e->gro_hosts != NULL && i < kind->count; i++) {
		const struct gro_card *card = &e->gro_card[kind->first + i];

		segs += card->count.segs - card->from.segs;
		handovers += card->count.handovers - card->from.handovers;
	}
	return (double)segs / (double)handovers;
}

static struct gro_card *card_of(const struct endpoint *e, const struct receiver *r) {
	return &e->gro_card[hosts_number(e->gro_hosts, r->group_index, r->id)];
}

// Fibonacci hashing of the flow's number on its card.
static uint32_t list_of(
	const struct endpoint *e, const struct gro_card *card, const struct receiver *r) {
	uint32_t count = (uint32_t)hosts_kind(e->gro_hosts, r->group_index)->count;

	return (r->id / count * UINT32_C(2654435769) >> 16) % card->lists;
}

// Takes a flow off its card's list.
static void forget(struct endpoint *e, const struct receiver *r) {
	struct gro_card *card = card_of(e, r);
	uint32_t list = list_of(e, card, r), kept = 0, *of = card->list[list].receiver;

	for (uint32_t i = 0; i < card->list[list].count; i++) {
		if (of[i] != r->id)
			of[kept++] = of[i];
	}
	card->count.handovers++;
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

void receivers_gro_poll_end(struct endpoint *e, uint32_t group, uint32_t flow, uint64_t now_ns) {
	if (e->gro_hosts != NULL)
		flush_card(e, &e->gro_card[hosts_number(e->gro_hosts, group, flow)], now_ns);
}

// From now on the flow's segments are held.
static void hold(struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	if (e->gro_hosts == NULL) {
		r->acks->gro_ns = now_ns + receiver_group(e, r)->gro_ns;
		receiver_acks_arm(e, r);
		return;
	}
	struct gro_card *card = card_of(e, r);
	uint32_t list = list_of(e, card, r);

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

// Not inlined: hosts without cards are the common case.
__attribute__((noinline)) static void count_segment(
	struct endpoint *e, struct gro_card *card, uint64_t now_ns) {
	card->count.segs++;
	if (++card->packets == POLL_PACKETS)
		flush_card(e, card, now_ns);
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
	a->gro_end = end;
	a->gro_bytes += s->len;
	a->gro_now |= now;
	a->gro_pushed |= pushed;
	a->gro_repeated |= repeated;
	// Each duplicate has a report of its own, that of a part too.
	if (repeated || r->dsack || pushed || (s->flags & SEG_FIN) != 0)
		receiver_gro_flush(e, r, now_ns);
	if (e->gro_hosts != NULL)
		count_segment(e, card_of(e, r), now_ns);
}
