// SPDX-License-Identifier: BSD-3-Clause
// The network cards of the hosts that send, where they are not all alike or have another discipline
// than a pfifo: a link (stage/link.h) for each host, with a queue of its own. (Others are edges,
// stage/edges.c.) A config does not write this stage; its `hosts` put it before a path's other
// stages.
//
// Packets leave in the order of their departures from all cards; of those at one time the host with
// the smallest number is first.
#include "switch/stage/card.h"

#include "switch/stage/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVERHEAD_BYTES 24 // Ethernet's per frame without FCS, as of links and edges

struct cards_out {
	const struct hosts_side *side;
	const struct aqm_ops *const *aqm; // of each kind
	struct link *link; // of each host
	uint64_t *due_ns; // of each host: when the next packet may leave
	// The host whose packet leaves first, of those below each node of a binary tree: the
	// children of node i are 2i and 2i + 1, and from `leaves` on they are hosts.
	uint32_t *first;
	uint32_t leaves;
};

void card_out_configure(
	void *state, const struct hosts_side *side, const struct aqm_ops *const *aqm) {
	struct cards_out *c = state;

	c->side = side;
	c->aqm = aqm;
}

static void due(struct cards_out *c, uint32_t host) {
	c->due_ns[host] = link_next_ns(&c->link[host]);
	for (uint32_t i = (c->leaves + host) / 2; i > 0; i /= 2) {
		uint32_t a = c->first[2 * i], b = c->first[2 * i + 1];

		c->first[i] = c->due_ns[b] < c->due_ns[a] ? b : a;
	}
}

// A discipline with its defaults, but for its limit.
static int queue_init(
	struct link *l, const struct aqm_ops *aqm, const struct hosts_kind *kind, struct err *err) {
	const struct param *limit = param_find(aqm->params, "limit");
	int rc;

	l->aqm = aqm;
	l->q = calloc(1, aqm->state_size);
	if (l->q == NULL)
		return err_set(err, -ENOMEM, "no memory for a queue");
	rc = param_defaults(aqm->params, l->q, err);
	if (limit != NULL && limit->type == PARAM_TYPE_LIMIT)
		memcpy((char *)l->q + limit->offset, &kind->limit, sizeof(kind->limit));
	return rc;
}

// Each has a random stream of its own.
static int host_init(struct cards_out *c, uint32_t host, const struct hosts_kind *kind,
	const struct stage_env *env, struct err *err) {
	const struct aqm_ops *aqm = c->aqm[kind - c->side->kind];
	struct link *l = &c->link[host];
	struct stage_env own = *env;
	char name[64];
	int rc = queue_init(l, aqm, kind, err);

	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "%s.%u", env->name, host);
	own.name = name;
	l->serialiser.framing.extra_bytes = OVERHEAD_BYTES - SERIAL_FCS_BYTES;
	rc = link_begin(l, &own, kind->card_bps, kind->card_bps, err);
	l->serialiser.env = env;
	return rc;
}

static int cards_out_init(void *self, const struct stage_env *env, struct err *err) {
	struct cards_out *c = self;
	uint32_t count = c->side->count;
	int rc = 0;

	for (c->leaves = 1; c->leaves < count; c->leaves *= 2)
		;
	c->link = calloc(count, sizeof(*c->link));
	c->due_ns = malloc(c->leaves * sizeof(*c->due_ns));
	c->first = calloc(2 * (size_t)c->leaves, sizeof(*c->first));
	if (c->link == NULL || c->due_ns == NULL || c->first == NULL)
		return err_set(err, -ENOMEM, "no memory for %u cards", count);
	for (uint32_t k = 0; rc == 0 && k < c->side->kinds; k++) {
		const struct hosts_kind *kind = &c->side->kind[k];

		for (uint32_t i = 0; rc == 0 && i < kind->count; i++)
			rc = host_init(c, kind->first + i, kind, env, err);
	}
	for (uint32_t i = 0; i < c->leaves; i++) {
		c->due_ns[i] = NEVER_NS;
		c->first[c->leaves + i] = i;
	}
	return rc;
}

static void cards_out_fini(void *self) {
	struct cards_out *c = self;

	for (uint32_t i = 0; c->link != NULL && i < c->side->count; i++)
		link_fini(&c->link[i]);
	free(c->link);
	free(c->due_ns);
	free(c->first);
}

static void cards_out_push(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct cards_out *c = self;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t host = hosts_number(c->side, pkts[i]->delay_class, pkts[i]->flow_id);

		link_push(&c->link[host], &pkts[i], 1, drops);
		due(c, host);
	}
}

static uint32_t cards_out_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops) {
	struct cards_out *c = self;
	uint32_t n = 0;

	while (n < max && c->due_ns[c->first[1]] <= now_ns) {
		uint32_t host = c->first[1];

		if (c->due_ns[host] == NEVER_NS)
			break;
		n += link_pop(&c->link[host], c->due_ns[host], &pkts[n], 1, drops);
		due(c, host);
	}
	return n;
}

static uint64_t cards_out_next_ns(const void *self) {
	const struct cards_out *c = self;

	return c->due_ns[c->first[1]];
}

static struct backlog cards_out_backlog(const void *self) {
	const struct cards_out *c = self;
	struct backlog sum = {0};

	for (uint32_t i = 0; i < c->side->count; i++) {
		struct backlog b = link_backlog(&c->link[i]);

		sum.pkts += b.pkts;
		sum.bytes += b.bytes;
	}
	return sum;
}

static uint64_t plus(uint64_t a, uint64_t b) {
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static struct aqm_limit cards_out_limit(const void *self) {
	const struct cards_out *c = self;
	struct aqm_limit sum = {0};

	for (uint32_t i = 0; i < c->side->count; i++) {
		struct aqm_limit l = link_limit(&c->link[i]);

		sum.bytes = plus(sum.bytes, l.bytes);
		sum.pkts = plus(sum.pkts, l.pkts);
		sum.overhead_bytes = l.overhead_bytes;
	}
	return sum;
}

static uint64_t cards_out_rate_bps(const void *self) {
	const struct cards_out *c = self;
	uint64_t rate_bps = 0;

	for (uint32_t k = 0; k < c->side->kinds; k++)
		rate_bps += c->side->kind[k].count * c->side->kind[k].card_bps;
	return rate_bps;
}

static double cards_out_busy(const void *self, uint64_t now_ns) {
	static const struct stats_totals from = {0};
	const struct cards_out *c = self;
	double most = 0;

	for (uint32_t i = 0; i < c->side->count; i++) {
		struct stats_totals to = stats_totals(link_figures(&c->link[i], now_ns), now_ns);
		double used = stats_figures(&from, &to).utilisation;

		most = used > most ? used : most;
	}
	return most;
}

static bool cards_out_random(const void *self) {
	const struct cards_out *c = self;

	for (uint32_t i = 0; i < c->side->count; i++) {
		if (link_random(&c->link[i]))
			return true;
	}
	return false;
}

const struct stage_ops stage_card_out = {
	.name = "card_out",
	.summary = "network cards that send, each with a queue discipline",
	.params = (const struct param[]){PARAM_END},
	.state_size = sizeof(struct cards_out),
	.init = cards_out_init,
	.fini = cards_out_fini,
	.push = cards_out_push,
	.pop = cards_out_pop,
	.next_ns = cards_out_next_ns,
	.backlog = cards_out_backlog,
	.capacity = &(const struct stage_capacity){.limit = cards_out_limit,
		.rate_bps = cards_out_rate_bps,
		.busy = cards_out_busy},
	.needs = &(const struct stage_needs){.random = cards_out_random, .flows = stage_always},
};
