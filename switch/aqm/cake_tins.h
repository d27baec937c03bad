// SPDX-License-Identifier: BSD-3-Clause
// CAKE's tins: which of them a packet's DSCP chooses, and which of them is served. A tin is a
// struct cake with queues, hosts and COBALT of its own; the first is the discipline itself, whose
// limits hold for all together.
//
//	rate      a tin's part of the link's rate (below). It bounds a tin's precedence, not what it
//	          gets
//	next      time at which the tin's rate allows its next packet. A packet that leaves at `now`
//	          and lasts d at that rate: next += d if next < now, else next = max(next, now + d).
//	          A tin without packets that gets one: next = max(next, now)
//	service   of the tins with packets the last whose next has come, else the one whose next
//	          comes first
//	COBALT    target: at least the time of 1.5 full-sized frames at the tin's rate; interval:
//	          longer by as much, and two targets at least
//	overflow  the queue with the most bytes of all tins
//
// `diffserv`, tins from the first on:
//
//	diffserv3    best effort, all of the rate; LE and CS1, 1/16; DSCP 4, VA, EF, CS6, CS7, 1/4
//	diffserv4    best effort; LE, CS1, 1/16; CS2, CS3, AF2x to AF4x, DSCP 4, 1/2; CS4 to CS7,
//	             VA, EF, 1/4
//	diffserv8    LE; CS1, AF1x; best effort; CS3, AF3x, AF4x; AF2x, DSCP 4; CS2; CS4, CS5, VA,
//	             EF; CS6, CS7: each 7/8 of the one before
//	precedence   the upper three bits; each 7/8 of the one before
//
// Source: Linux 6.12, sch_cake (tables, parts, service); LANMAN 2018, section III.A.
#pragma once
#include "common/base/u64.h"
#include "switch/aqm/cake_hosts.h"

#define CAKE_TINS 8
#define CAKE_DSCPS 64
#define CAKE_TIME_SHIFT 20

enum { CAKE_BESTEFFORT, CAKE_PRECEDENCE, CAKE_DIFFSERV3, CAKE_DIFFSERV4, CAKE_DIFFSERV8 };
static const char *const cake_mode_names[] = {
	"besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8", NULL};

// A digit for each DSCP, its tin; a word for each class selector. And how far the rate is shifted
// for each tin; NULL: 7/8 of the one before.
static const struct cake_mode {
	uint32_t tins;
	const char *tin_of_dscp;
	const uint8_t *shift;
} cake_modes[] = {
	[CAKE_PRECEDENCE] = {8,
		"00000000"
		"11111111"
		"22222222"
		"33333333"
		"44444444"
		"55555555"
		"66666666"
		"77777777",
		NULL},
	[CAKE_DIFFSERV3] = {3,
		"01002000"
		"10000000"
		"00000000"
		"00000000"
		"00000000"
		"00002020"
		"20000000"
		"20000000",
		(const uint8_t[]){0, 4, 2}},
	[CAKE_DIFFSERV4] = {4,
		"01002000"
		"10000000"
		"20202020"
		"20202020"
		"30202020"
		"30003030"
		"30000000"
		"30000000",
		(const uint8_t[]){0, 4, 1, 2}},
	[CAKE_DIFFSERV8] = {8,
		"20124222"
		"12121212"
		"52424242"
		"32323232"
		"62323232"
		"62226262"
		"72222222"
		"72222222",
		NULL},
};

struct cake_tins {
	struct cake *tin[CAKE_TINS];
	uint32_t count;
	uint32_t overhead_bytes;
	uint64_t next_ns[CAKE_TINS];
	uint64_t byte_time[CAKE_TINS]; // at the tin's rate, in ns / 2^20
	uint64_t rate_bps[CAKE_TINS];
	uint8_t of_dscp[CAKE_DSCPS];
	struct cake others[CAKE_TINS - 1];
};

static inline uint64_t cake_tin_rate(const struct cake_mode *m, uint32_t tin, uint64_t rate_bps) {
	if (m->shift != NULL)
		return rate_bps >> m->shift[tin];
	for (uint32_t i = 0; i < tin; i++)
		rate_bps = rate_bps * 7 / 8;
	return rate_bps;
}

static inline void cake_tins_init(
	struct cake_tins *t, struct cake *first, const struct aqm_env *env) {
	const struct cake_mode *m = &cake_modes[first->diffserv];

	t->count = m->tins;
	t->overhead_bytes = env->overhead_bytes;
	for (uint32_t i = 0; i < CAKE_DSCPS; i++)
		t->of_dscp[i] = (uint8_t)(m->tin_of_dscp[i] - '0');
	for (uint32_t i = 0; i < t->count; i++) {
		t->tin[i] = i == 0 ? first : &t->others[i - 1];
		t->rate_bps[i] = max_u64(cake_tin_rate(m, i, env->rate_bps), 1);
		t->byte_time[i] = (UINT64_C(8000000000) << CAKE_TIME_SHIFT) / t->rate_bps[i];
	}
}

// env: with the tin's rate.
static inline void cake_tin_targets(struct cobalt_law *l, const struct aqm_env *env) {
	double bits = 8.0 * (env->mtu_bytes + env->overhead_bytes);
	uint64_t least_ns = (uint64_t)(1.5 * bits * 1e9 / (double)env->rate_bps);
	uint64_t more_ns = time_since(least_ns, l->target_ns);

	l->target_ns += more_ns;
	l->interval_ns = time_max(l->interval_ns + more_ns, 2 * l->target_ns);
}

static inline struct backlog cake_tins_backlog(const struct cake_tins *t) {
	struct backlog all = {0};

	for (uint32_t i = 0; i < t->count; i++) {
		all.pkts += t->tin[i]->fq.all.pkts;
		all.bytes += t->tin[i]->fq.all.bytes;
	}
	return all;
}

static inline bool cake_tins_fit(const struct cake_tins *t) {
	const struct aqm_limit *max = &t->tin[0]->fq.max;
	struct backlog all = cake_tins_backlog(t);
	uint64_t held = 0;

	for (uint32_t i = 0; i < t->count; i++)
		held += t->tin[i]->held_bytes;
	return all.pkts <= max->pkts && all.bytes + all.pkts * max->overhead_bytes <= max->bytes
		&& held <= t->tin[0]->memory_limit;
}

// The tin that has the fattest queue; there must be a packet.
static inline struct cake *cake_tins_fattest(const struct cake_tins *t) {
	struct cake *found = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		struct cake *c = t->tin[i];
		uint64_t bytes = c->fq.all.pkts > 0 ? flow_queues_fattest(&c->fq)->pkts.bytes : 0;

		if (bytes > most) {
			most = bytes;
			found = c;
		}
	}
	return found;
}

// A packet is about to join it.
static inline void cake_tin_wakes(struct cake_tins *t, uint32_t i, uint64_t now_ns) {
	if (t->tin[i]->fq.all.pkts == 0)
		t->next_ns[i] = time_max(t->next_ns[i], now_ns);
}

// The tin to be served; `count`: there is no packet.
static inline uint32_t cake_tins_next(const struct cake_tins *t, uint64_t now_ns) {
	uint64_t best_ns = UINT64_MAX;
	uint32_t best = t->count;

	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t wait_ns = time_since(t->next_ns[i], now_ns);

		if (t->tin[i]->fq.all.pkts > 0 && wait_ns <= best_ns) {
			best_ns = wait_ns;
			best = i;
		}
	}
	return best;
}

static inline void cake_tin_sent(
	struct cake_tins *t, uint32_t i, const struct pkt *p, uint64_t now_ns) {
	uint64_t bytes = p->size_bytes + t->overhead_bytes;
	uint64_t lasts_ns = bytes * t->byte_time[i] >> CAKE_TIME_SHIFT;

	if (t->next_ns[i] < now_ns)
		t->next_ns[i] += lasts_ns;
	else
		t->next_ns[i] = time_max(t->next_ns[i], now_ns + lasts_ns);
}
