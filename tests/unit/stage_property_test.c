// SPDX-License-Identifier: BSD-3-Clause
// What every stage keeps to, over random arrivals. The stages and their parameters are those of the
// registry.
//
// The ledger balances after each call; packets leave in order of departure, not before their time,
// and those of a flow in order of arrival unless the stage reorders; a link never sends more in any
// time T than rate * T and a frame, and is never idle before a packet that waits; none leaves
// before the time that next_ns gave; the result does not depend on when and how often the stage is
// called; a call may repeat a time, come ages later or have room for no packet; the same seed gives
// the same packets.
#include "switch_test.h"

#include <unistd.h>

#define PKTS 6000
#define FLOWS 5
#define BURST 8
#define AGE (UINT64_C(1) << 50) // 13 days

// A file for each stage that reads one.
static const struct {
	const char *stage, *text;
} files[] = {
	{"loss_trace", "000100\n"},
	{"mahimahi_link", "1\n2\n2\n3\n7\n9\n"},
	{"replay", "10ms,1ms,20Mbit,1%,50\n5ms,1ms,0,0,50\n7ms,1ms,3Mbit,0,0\n"},
};
// Stages that reorder by default.
static const char *const unordered[] = {"jitter", NULL};

static char file_name[64];

static const char *file_for(const char *stage) {
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(files[i].stage, stage) != 0)
			continue;
		snprintf(file_name, sizeof(file_name), "/tmp/weir-stage-XXXXXX");
		FILE *f = fdopen(mkstemp(file_name), "w");
		NEED(f != NULL);
		fputs(files[i].text, f);
		fclose(f);
		return file_name;
	}
	ck_abort_msg("%s needs a row in `files`", stage);
	return NULL;
}

// A value of a parameter that must be given.
static const char *given(const char *stage, const struct param *p) {
	if (strcmp(p->name, "file") == 0)
		return file_for(stage);
	if (strcmp(p->name, "delays") == 0)
		return "3ms 0ms 5ms";
	if (p->type == PARAM_TYPE_TEXT)
		return "0x5";
	switch (p->unit) {
	case UNIT_RATE_BPS:
		return "20Mbit";
	case UNIT_TIME_NS:
		return "3ms";
	case UNIT_RATIO:
		return "10%";
	default:
		return "3";
	}
}

static void add_given(
	char *text, size_t size, const char *stage, const struct param *table, const char *but) {
	for (const struct param *p = table; p != NULL && p->name != NULL; p++) {
		size_t len = strlen(text);

		if (p->def == NULL && strcmp(p->name, but) != 0)
			snprintf(text + len, size - len, "%s: %s, ", p->name, given(stage, p));
	}
}

// "{loss: {rate: 10%, KEY: VALUE}}". False: the stage does not take it.
static bool open_stage(
	struct stage_bench *b, const struct stage_ops *ops, const char *key, const char *value) {
	char text[512];

	*b = (struct stage_bench){.env = {.base_rtt_ns = 20 * MS, .run_seed = 3}};
	file_name[0] = '\0';
	snprintf(text, sizeof(text), "{%s: {", ops->name);
	add_given(text, sizeof(text), ops->name, ops->params, key);
	add_given(text, sizeof(text), ops->name, stage_also(ops), key);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s}}", key,
		key[0] != '\0' ? ": " : "", value);
	int rc = stage_open(b, text);
	if (file_name[0] != '\0')
		unlink(file_name);
	if (rc < 0 && key[0] == '\0')
		ck_abort_msg("%s: %s", text, b->err.msg);
	return rc == 0;
}

struct player {
	struct stage_bench b;
	const struct stage_stats *stats; // NULL: not a link of a rate
	bool ordered;
	uint64_t rate_bps;
	uint64_t min_delay_ns;
	struct pkt *pkts;
	uint64_t *in_ns;
	uint64_t now_ns, out_ns;
	double bits; // sent, above the rate
	uint32_t last[FLOWS];
	uint64_t hash;
};

static void left(struct player *r, const struct pkt *p) {
	bool copy = (p->id & COPY_BIT) != 0;
	uint32_t id = p->id & ~COPY_BIT;

	NEED(copy ? stage_copies_packets(r->b.ops) : p == &r->pkts[id]);
	NEED(p->arrival_ns >= r->out_ns && p->arrival_ns >= r->in_ns[id] + r->min_delay_ns);
	if (r->ordered) {
		NEED(copy ? r->last[p->flow_id] == id + 1 : r->last[p->flow_id] <= id);
		r->last[p->flow_id] = id + 1;
	}
	if (r->stats != NULL && r->ordered) {
		double since = (double)(p->arrival_ns - r->out_ns) * (double)r->rate_bps / 1e9;

		// Times are whole nanoseconds, rounded down.
		r->bits = (r->bits > since ? r->bits - since : 0) + 8.0 * (p->size_bytes + 20);
		NEED(r->bits <= 8.0 * (MTU + 20) + (double)r->rate_bps / 1e9 + 1e-6);
	}
	r->out_ns = p->arrival_ns;
	r->hash = rng_mix(r->hash ^ p->id ^ p->arrival_ns << 16 ^ (uint64_t)p->ecn << 60);
}

static void take_all(struct player *r, uint64_t now_ns) {
	struct stage_bench *b = &r->b;
	struct pkt *none = NULL;

	NEED(b->ops->pop(b->st, now_ns, &none, 0, &b->drops) == 0 && none == NULL);
	for (struct pkt *p;;) {
		uint64_t next_ns = b->ops->next_ns(b->st);

		if ((p = stage_take(b, now_ns)) == NULL)
			break;
		NEED(next_ns <= p->arrival_ns);
		left(r, p);
	}
	if (b->ops->figures != NULL)
		b->ops->figures->serve(b->st, now_ns, &b->drops);
	stage_conserved(b);
	if (r->stats == NULL)
		return;
	b->ops->figures->read(b->st, now_ns);
	NEED(r->stats->queue_pkts == 0 || r->stats->rate_bps == 0 || r->stats->wire_pkts == 1);
}

static uint64_t later(struct rng *rng, uint64_t now_ns) {
	uint64_t draw = rng_u64(rng);

	if (draw % 3 == 0)
		return now_ns;
	return now_ns + (draw % 2000 == 1 ? draw >> 28 : rng_u64(rng) % (800 * US));
}

static void put_some(struct player *r, uint32_t *next, struct rng *rng) {
	uint32_t n = 1 + (uint32_t)(rng_u64(rng) % BURST);
	struct pkt *pkts[BURST];

	for (uint32_t i = 0; i < n; i++) {
		struct pkt *p = &r->pkts[(*next)++];

		r->now_ns = later(rng, r->now_ns);
		p->arrival_ns = r->in_ns[p->id] = r->now_ns;
		p->size_bytes = (uint16_t)(64 + rng_u64(rng) % (MTU - 63));
		p->flow_id = (uint32_t)(rng_u64(rng) % FLOWS);
		p->ecn = rng_u64(rng) & 3;
		r->b.in_pkts++;
		r->b.in_bytes += p->size_bytes;
		pkts[i] = p;
	}
	r->b.ops->push(r->b.st, pkts, n, &r->b.drops);
	stage_conserved(&r->b);
}

// What is inside comes out, each at its time, unless a link is down for ever.
static void drain(struct player *r) {
	const struct stage_ops *ops = r->b.ops;

	for (uint32_t i = 0; ops->backlog(r->b.st).pkts > 0; i++) {
		uint64_t next_ns = ops->next_ns(r->b.st);

		NEED(i < 1000000);
		if (next_ns == NEVER_NS && ops->figures != NULL)
			return;
		NEED(next_ns != NEVER_NS);
		take_all(r, next_ns);
	}
	ck_assert_uint_eq(r->b.in_pkts + r->b.copies.made.pkts, r->b.out_pkts + r->b.drops.count);
}

// 0: the stage does not take the value.
static uint64_t play(const struct stage_ops *ops, const char *key, const char *value,
	uint32_t poll_every, uint64_t age_ns) {
	struct player r = {.ordered = key[0] == '\0', .min_delay_ns = 0};
	uint32_t next = 0;
	struct rng rng;

	rng_init(&rng, 9, "arrivals");
	if (!open_stage(&r.b, ops, key, value)) {
		stage_close(&r.b);
		return 0;
	}
	for (int i = 0; unordered[i] != NULL; i++)
		r.ordered &= strcmp(unordered[i], ops->name) != 0;
	r.pkts = pkts_new(PKTS + BURST, 0);
	r.in_ns = calloc(PKTS + BURST, sizeof(*r.in_ns));
	if (ops->delay != NULL)
		r.min_delay_ns = ops->delay->min_ns(r.b.st);
	if (ops->figures != NULL) {
		const struct stage_stats *stats = ops->figures->read(r.b.st, 0);

		r.stats = stats->slots ? NULL : stats;
		r.rate_bps = ops->capacity->rate_bps(r.b.st);
	}
	for (uint32_t i = 0; next < PKTS; i++) {
		put_some(&r, &next, &rng);
		if (i % poll_every != 0)
			continue;
		take_all(&r, r.now_ns);
		take_all(&r, r.now_ns); // no time passes
	}
	drain(&r);
	if (age_ns > 0)
		take_all(&r, r.now_ns + age_ns);
	for (const struct pkt *p = r.b.drops.head; p != NULL; p = p->next) {
		NEED(p->drop_reason > DROP_NONE && p->drop_reason < DROP_REASONS);
		r.hash = rng_mix(r.hash ^ p->id ^ (uint64_t)p->drop_reason << 40);
	}
	NEED(r.b.out_pkts > 0 || key[0] != '\0');
	stage_close(&r.b);
	free(r.in_ns);
	test_close(r.pkts);
	return r.hash;
}

TEST(every_stage_keeps_the_rules) {
	for (const struct stage_ops *const *ops = stage_all; *ops != NULL; ops++) {
		uint64_t hash = play(*ops, "", "", 1, AGE);

		ck_assert_msg(hash == play(*ops, "", "", 1, AGE), "%s: not the same", (*ops)->name);
		ck_assert_msg(hash == play(*ops, "", "", 23, 0),
			"%s: depends on how often it is called", (*ops)->name);
	}
}

static uint32_t values_of(const struct param *p, char text[8][64]) {
	uint32_t n = 0;

	if (p->type == PARAM_TYPE_BOOL) {
		snprintf(text[n++], 64, "yes");
		snprintf(text[n++], 64, "no");
	}
	for (; p->type == PARAM_TYPE_ENUM && n < 8 && p->choices[n] != NULL; n++)
		snprintf(text[n], 64, "%s", p->choices[n]);
	if (p->type != PARAM_TYPE_U64 && p->type != PARAM_TYPE_F64)
		return n;
	unit_format(p->min, p->unit, text[n++], 64);
	unit_format(p->max, p->unit, text[n++], 64);
	if (p->zero)
		snprintf(text[n++], 64, "0");
	return n;
}

TEST(every_value_of_a_parameter_keeps_them_too) {
	for (const struct stage_ops *const *ops = stage_all; *ops != NULL; ops++)
		for (const struct param *p = (*ops)->params; p->name != NULL; p++) {
			char text[8][64];
			uint32_t values = values_of(p, text);

			for (uint32_t i = 0; i < values; i++)
				ck_assert_msg(play(*ops, p->name, text[i], 1, 0)
						== play(*ops, p->name, text[i], 5, 0),
					"%s %s: %s", (*ops)->name, p->name, text[i]);
		}
}
