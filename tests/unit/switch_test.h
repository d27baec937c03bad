// SPDX-License-Identifier: BSD-3-Clause
// What the switch's tests share: disciplines and stages from config text, packets, conservation.
#pragma once
#include "common/base/rng.h"
#include "switch/path/path.h"
#include "switch/serialiser/stats.h"
#include "test_config.h"

#include <string.h>

#define US NS_PER_US
#define MS NS_PER_MS
#define MTU 1518u

// For loops of millions: a ck_assert writes a message to Check's parent even when it holds.
#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			ck_abort_msg("%s", #cond);                                                 \
	} while (0)

static inline void test_free_paths(void *paths) {
	paths_fini(paths);
	free(paths);
}

static inline struct paths *test_paths(void) {
	struct paths *paths = calloc(1, sizeof(*paths));

	test_closes(test_free_paths, paths);
	return paths;
}

// Memory for the state of a discipline or stage, which fini closes; NULL: nothing does.
static inline void *test_state(size_t size, void (*fini)(void *state)) {
	void *state = calloc(1, size);

	test_closes(free, state);
	if (fini != NULL)
		test_closes(fini, state);
	return state;
}

// One discipline by itself. Params as in a config: "{limit: 10pkt}".
struct aqm_bench {
	struct config *config;
	const struct aqm_ops *ops;
	void *q;
	struct pkt_list drops;
	struct err err;
	uint64_t in_pkts, in_bytes, out_pkts, out_bytes;
};

static inline int aqm_open(
	struct aqm_bench *b, const char *name, const char *params, const struct aqm_env *env) {
	*b = (struct aqm_bench){.ops = aqm_find(name)};
	ck_assert_ptr_nonnull(b->ops);
	b->config = test_config("test", params, &b->err);
	b->q = test_state(b->ops->state_size, b->ops->fini);
	int rc = config_params(config_root(b->config), name, b->ops->params, NULL, b->q, &b->err);
	return rc < 0 ? rc : b->ops->init(b->q, env, &b->err);
}

// Closes it before the test's end.
static inline void aqm_close(struct aqm_bench *b) {
	test_close(b->q);
	test_close(b->config);
}

// in == out + drops + inside, in packets and bytes.
static inline void aqm_conserved(const struct aqm_bench *b) {
	struct backlog in = b->ops->backlog(b->q);

	NEED(b->in_pkts == b->out_pkts + b->drops.count + in.pkts);
	NEED(b->in_bytes == b->out_bytes + b->drops.bytes + in.bytes);
}

static inline void aqm_put(struct aqm_bench *b, struct pkt *p, uint64_t now_ns) {
	b->in_pkts++;
	b->in_bytes += p->size_bytes;
	b->ops->enqueue(b->q, p, now_ns, &b->drops);
	aqm_conserved(b);
}

static inline double aqm_observed(const struct aqm_bench *b, int i) {
	double out[AQM_OBSERVED] = {0};

	b->ops->observe(b->q, out);
	return out[i];
}

static inline struct pkt *aqm_take(struct aqm_bench *b, uint64_t now_ns) {
	struct pkt *p = b->ops->dequeue(b->q, now_ns, &b->drops);

	if (p != NULL) {
		b->out_pkts++;
		b->out_bytes += p->size_bytes;
	}
	aqm_conserved(b);
	return p;
}

// One stage by itself, made as a path makes it from "{link: {rate: 1Gbit}}".
struct stage_bench {
	struct config *config;
	struct stage_env env;
	const struct stage_ops *ops;
	void *st;
	struct pkt_list drops;
	struct err err;
	uint64_t in_pkts, in_bytes, out_pkts, out_bytes;
	struct pkt_owner owner; // given: what it has besides copies
	struct stage_copies copies; // that it made; they live until stage_close
	struct pkt_count no_memory;
	struct stage_made {
		struct stage_made *next;
		struct pkt pkt;
	} * made; // an empty one, then those that it made
	uint32_t copies_max; // 0: no limit
};

#define COPY_BIT (UINT32_C(1) << 31)

static inline struct pkt *stage_make(void *ctx, const struct pkt *p) {
	struct stage_bench *b = ctx;
	struct stage_made *m = calloc(1, sizeof(*m));

	if (b->copies_max > 0 && b->copies.made.pkts >= b->copies_max) {
		free(m);
		return NULL;
	}
	ck_assert_ptr_nonnull(m);
	m->pkt = *p;
	m->next = b->made->next;
	b->made->next = m;
	return &m->pkt;
}

static inline void stage_free_made(void *made) {
	for (struct stage_made *m = made, *next; m != NULL; m = next) {
		next = m->next;
		free(m);
	}
}

// b->env may be filled before; what is missing gets a default.
static inline int stage_open(struct stage_bench *b, const char *text) {
	struct config_node *params;
	const char *name;

	b->env.name = b->env.name != NULL ? b->env.name : "forward.test";
	b->env.mtu_bytes = MTU;
	b->owner.copy = stage_make;
	b->owner.ctx = b;
	b->env.owner = &b->owner;
	b->copies = (struct stage_copies){.no_memory = &b->no_memory};
	b->env.copies = &b->copies;
	b->env.copy_bit = COPY_BIT;
	b->env.max_pkts = b->env.max_pkts > 0 ? b->env.max_pkts : 1u << 24;
	b->config = test_config("test", text, &b->err);
	b->made = calloc(1, sizeof(*b->made));
	test_closes(stage_free_made, b->made);
	ck_assert_int_eq(
		config_plugin(config_root(b->config), "stage", &name, &params, &b->err), 0);
	b->ops = stage_find(name);
	ck_assert_ptr_nonnull(b->ops);
	b->st = test_state(b->ops->state_size, b->ops->fini);
	int rc = config_params(params, name, b->ops->params, stage_also(b->ops), b->st, &b->err);
	if (rc == 0 && b->ops->config != NULL && b->ops->config->configure != NULL)
		rc = b->ops->config->configure(b->st, params, &b->err);
	return rc == 0 ? b->ops->init(b->st, &b->env, &b->err) : rc;
}

// Closes it before the test's end.
static inline void stage_close(struct stage_bench *b) {
	test_close(b->made);
	test_close(b->st);
	test_close(b->config);
}

static inline void stage_live(
	struct stage_bench *b, const char *param, const char *value, uint64_t now_ns) {
	const struct param *p = param_find(b->ops->params, param);

	ck_assert(p != NULL && p->live);
	ck_assert_int_eq(param_set(p, b->st, value, &b->err), 0);
	b->ops->config->update(b->st, now_ns);
}

static inline void stage_conserved(const struct stage_bench *b) {
	struct backlog in = b->ops->backlog(b->st);

	NEED(b->in_pkts + b->copies.made.pkts
		== b->out_pkts + b->drops.count + b->no_memory.pkts + in.pkts);
	NEED(b->in_bytes + b->copies.made.bytes
		== b->out_bytes + b->drops.bytes + b->no_memory.bytes + in.bytes);
}

static inline void stage_put(struct stage_bench *b, struct pkt *p, uint64_t arrival_ns) {
	p->arrival_ns = arrival_ns;
	b->in_pkts++;
	b->in_bytes += p->size_bytes;
	b->ops->push(b->st, &p, 1, &b->drops);
	stage_conserved(b);
}

static inline struct pkt *stage_take(struct stage_bench *b, uint64_t now_ns) {
	struct pkt *p = NULL;

	b->ops->pop(b->st, now_ns, &p, 1, &b->drops);

	if (p != NULL) {
		NEED(p->arrival_ns <= now_ns);
		b->out_pkts++;
		b->out_bytes += p->size_bytes;
	}
	stage_conserved(b);
	return p;
}

// A stream into memory that holds all.
static inline void tel_memory(struct tel *tel, struct tel_packets *records, uint32_t limit) {
	static struct tel_header header;

	atomic_store(&header.tail, limit); // so that it is full at its limit
	*tel = (struct tel){
		.ring = &header,
		.records = (uint8_t *)records,
		.record_size = sizeof(*records),
		.limit = limit,
		.mask = UINT64_MAX,
	};
}

// Of a link's state, as paths reach it.
extern const struct stage_ops stage_link;

static inline void link_serve(void *link, uint64_t now_ns, struct pkt_list *drops) {
	stage_link.figures->serve(link, now_ns, drops);
}

static inline struct stats_totals link_totals(void *link, uint64_t now_ns) {
	return stats_totals(stage_link.figures->read(link, now_ns), now_ns);
}

static inline const struct stats_peak *link_peak(void *link, enum stats_window w) {
	return stats_peak(stage_link.figures->read(link, 0), w);
}

static inline const struct stats_peak *link_run(void *link, uint64_t now_ns) {
	return stats_run(stage_link.figures->read(link, now_ns), now_ns);
}

static inline void link_restart(void *link, enum stats_window w, uint64_t now_ns) {
	stats_restart(stage_link.figures->read(link, now_ns), w, now_ns);
}

static inline const struct hist *link_sojourn(void *link) {
	return stats_sojourn(stage_link.figures->read(link, 0));
}

static inline bool same_totals(const struct stats_totals *x, const struct stats_totals *y) {
	return memcmp(&x->count, &y->count, sizeof(x->count)) == 0 && x->dequeued == y->dequeued
		&& x->sojourn_ns == y->sojourn_ns && x->queue_pkt_ns == y->queue_pkt_ns
		&& x->queue_byte_ns == y->queue_byte_ns && x->capacity == y->capacity
		&& memcmp(&x->wire_bits, &y->wire_bits, 8) == 0;
}

// n packets of one size with ids 0, 1, ... that live until the test's end or test_close.
static inline struct pkt *pkts_new(uint32_t n, uint16_t size_bytes) {
	struct pkt *p = calloc(n, sizeof(*p));

	ck_assert_ptr_nonnull(p);
	test_closes(free, p);
	for (uint32_t i = 0; i < n; i++) {
		p[i].id = i;
		p[i].size_bytes = size_bytes;
	}
	return p;
}

// For oracles: packets as a stage gives them up, by departure, arrival, order into the stage
// (qsort).
struct want {
	uint64_t out_ns, in_ns;
	uint32_t id;
};

static inline int want_order(const void *pa, const void *pb) {
	const struct want *a = pa, *b = pb;

	if (a->out_ns != b->out_ns)
		return a->out_ns < b->out_ns ? -1 : 1;
	if (a->in_ns != b->in_ns)
		return a->in_ns < b->in_ns ? -1 : 1;
	return a->id < b->id ? -1 : 1;
}
