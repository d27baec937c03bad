// SPDX-License-Identifier: BSD-3-Clause
// The network cards of the hosts that a path leads to, with interrupt moderation and a processor
// each. A config does not write this stage; its `hosts` put it behind a path's other stages.
//
//	packets -> ring -> interrupt, at least `coalesce` after the one before
//	                -> processor, `cpu` for each packet, until the ring is empty -> TCP
//
// As Linux's NAPI: an interrupt starts a poll, in which the processor takes packets as long as
// there are some; those that arrive meanwhile join it without an interrupt. The last packet of a
// poll has PKT_POLL_END: the host's GRO then hands over all that it holds. A packet that arrives at
// the very nanosecond of an interrupt comes with the next one. A card holds `ring` packets, with
// the one that the processor works on, and drops others (ring).
//
// A packet's departure is known on its arrival: each card is a FIFO, with a heap over their heads.
#include "switch/stage/card.h"

#include "switch/stage/heads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct card {
	const struct hosts_kind *host;
	struct fifo fifo; // its ring
	uint64_t interrupt_ns; // the last one, which may lie ahead
	uint64_t done_ns; // when the processor has worked on all that has arrived
	struct card_count count, from; // all together, and at card_measure
};

struct cards {
	struct fifos fifos;
	const struct hosts_side *side;
	const struct stage_env *env;
	struct card *card;
	uint64_t measure_ns;
};

void card_configure(void *state, const struct hosts_side *side) {
	((struct cards *)state)->side = side;
}

static int cards_init(void *self, const struct stage_env *env, struct err *err) {
	struct cards *c = self;

	c->env = env;
	c->fifos.heap = calloc(c->side->count, sizeof(*c->fifos.heap));
	c->card = calloc(c->side->count, sizeof(*c->card));
	if (c->fifos.heap == NULL || c->card == NULL)
		return err_set(err, -ENOMEM, "no memory for %u cards", c->side->count);
	for (uint32_t k = 0; k < c->side->kinds; k++) {
		const struct hosts_kind *kind = &c->side->kind[k];

		for (uint64_t i = 0; i < kind->count; i++)
			c->card[kind->first + i].host = kind;
	}
	return 0;
}

static void cards_fini(void *self) {
	struct cards *c = self;

	free(c->fifos.heap);
	free(c->card);
}

// When a packet that arrives at t_ns is handed over. *joins: in the poll of the one before.
static inline uint64_t card_due(struct card *card, uint64_t t_ns, bool *joins) {
	uint64_t start_ns = card->done_ns;

	*joins = t_ns < card->done_ns;
	if (!*joins) {
		uint64_t next_ns = card->interrupt_ns + card->host->coalesce_ns;

		card->interrupt_ns = card->interrupt_ns == 0 ? t_ns : time_max(t_ns, next_ns);
		start_ns = card->interrupt_ns;
		card->count.interrupts++;
	}
	card->done_ns = start_ns + card->host->cpu_ns;
	card->count.pkts++;
	return card->done_ns;
}

// Moves packets that have departed to the list `out`, all of a poll at once if the processor takes
// no time.
static inline void cards_depart(struct cards *c, uint64_t t_ns) {
	while (c->fifos.heads > 0 && c->fifos.heap[0].release_ns <= t_ns)
		fifos_release_all(&c->fifos);
}

static inline void cards_take(struct cards *c, struct pkt *p, struct pkt_list *drops) {
	struct card *card = &c->card[hosts_number(c->side, p->delay_class, p->flow_id)];
	bool joins;

	cards_depart(c, p->arrival_ns);
	if (card->fifo.pkts >= card->host->ring) {
		card->count.drops++;
		stage_drop(c->env, drops, p, DROP_RING);
		return;
	}
	p->release_ns = card_due(card, p->arrival_ns, &joins);
	p->flags |= PKT_POLL_END;
	if (p->release_ns == p->arrival_ns) { // and all that came before it has departed
		pkt_list_push(&c->fifos.out, p);
		return;
	}
	if (joins && card->fifo.head != NULL)
		card->fifo.tail->flags &= (uint8_t)~PKT_POLL_END;
	fifos_push(&c->fifos, &card->fifo, p);
}

static void cards_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	for (uint32_t i = 0; i < n; i++)
		cards_take(self, pkts[i], drops);
}

static uint32_t cards_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct cards *c = self;

	cards_depart(c, now_ns);
	return fifos_pop(&c->fifos, now_ns, pkts, max, drops);
}

static struct aqm_limit cards_limit(const void *self) {
	const struct cards *c = self;

	struct aqm_limit l = {.bytes = UINT64_MAX};

	for (uint32_t k = 0; k < c->side->kinds; k++)
		l.pkts += c->side->kind[k].count * c->side->kind[k].ring;
	return l;
}

// Of full frames that its processors can take.
static uint64_t cards_rate_bps(const void *self) {
	const struct cards *c = self;
	uint64_t rate_bps = 0;

	for (uint32_t k = 0; k < c->side->kinds; k++) {
		const struct hosts_kind *kind = &c->side->kind[k];

		if (kind->cpu_ns == 0)
			return UINT64_MAX;
		rate_bps += kind->count * c->env->mtu_bytes * 8 * NS_PER_S / kind->cpu_ns;
	}
	return rate_bps;
}

// How long a processor has worked on packets that came since the count `from`.
static uint64_t worked_ns(const struct card *card, const struct card_count *from, uint64_t now_ns) {
	uint64_t all_ns = (card->count.pkts - from->pkts) * card->host->cpu_ns;

	return time_since(all_ns, time_since(card->done_ns, now_ns));
}

// Of the processor that has worked most.
static double cards_busy(const void *self, uint64_t now_ns) {
	static const struct card_count none = {0};
	const struct cards *c = self;
	uint64_t most_ns = 0;

	for (uint32_t i = 0; i < c->side->count; i++)
		most_ns = time_max(most_ns, worked_ns(&c->card[i], &none, now_ns));
	return now_ns == 0 ? 0 : (double)most_ns / (double)now_ns;
}

void card_measure(void *state, uint64_t now_ns) {
	struct cards *c = state;

	c->measure_ns = now_ns;
	for (uint32_t i = 0; i < c->side->count; i++)
		c->card[i].from = c->card[i].count;
}

struct card_figures card_figures(
	const void *state, const struct hosts_kind *kind, uint64_t now_ns) {
	const struct cards *c = state;
	double span_ns = (double)time_since(now_ns, c->measure_ns);
	struct card_figures f = {.busy = (double)NAN, .busy_max = (double)NAN};
	uint64_t sum_ns = 0, most_ns = 0;

	for (uint64_t i = kind->first; i < kind->first + kind->count; i++) {
		const struct card_count *to = &c->card[i].count, *from = &c->card[i].from;
		uint64_t ns = worked_ns(&c->card[i], from, now_ns);

		f.count.pkts += to->pkts - from->pkts;
		f.count.interrupts += to->interrupts - from->interrupts;
		f.count.drops += to->drops - from->drops;
		sum_ns += ns;
		most_ns = time_max(most_ns, ns);
	}
	if (kind->cpu_ns > 0 && span_ns > 0) {
		f.busy = fmin((double)sum_ns / (double)kind->count / span_ns, 1);
		f.busy_max = fmin((double)most_ns / span_ns, 1);
	}
	return f;
}

const struct stage_ops stage_card = {
	.name = "card",
	.summary = "network cards that interrupt a processor",
	.params = (const struct param[]){PARAM_END},
	.state_size = sizeof(struct cards),
	.init = cards_init,
	.fini = cards_fini,
	.push = cards_push,
	.pop = cards_pop,
	.next_ns = fifos_next_ns,
	.backlog = fifos_backlog,
	.capacity =
		&(const struct stage_capacity){
			.limit = cards_limit, .rate_bps = cards_rate_bps, .busy = cards_busy},
	.needs = &(const struct stage_needs){.flows = stage_always},
};
