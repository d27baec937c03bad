// SPDX-License-Identifier: BSD-3-Clause
#include "common/watch/watch.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRETCH_NS (50 * NS_PER_MS) // minimum time between two samples
#define APART_NS NS_PER_S // findings closer than this are one episode
#define STALL_NS_MAX NS_PER_MS // a longer stall is always an episode
#define LATE_PKTS_MIN 10
#define CLOCK_NS_MAX (10 * NS_PER_US)

static bool same_kind(const struct watch_episode *a, const struct watch_episode *b) {
	return a->cause == b->cause && a->port == b->port;
}

// Merges b, which began later, into a.
static void join(struct watch_episode *a, const struct watch_episode *b) {
	a->to_ns = time_max(a->to_ns, b->to_ns);
	a->bad_ns += b->bad_ns;
	a->span_ns += b->span_ns;
	a->busy_ns += b->busy_ns;
	a->count += b->count;
	a->pkts += b->pkts;
	a->late_pkts += b->late_pkts;
	a->waited_ns += b->waited_ns;
	a->steal_ns += b->steal_ns;
	if (b->worst > a->worst) {
		a->worst = b->worst;
		a->worst_at_ns = b->worst_at_ns;
	}
}

// Makes room: merges the two successive episodes of one kind that are closest in time.
static void join_closest(struct watch *w) {
	uint32_t first = 0, second = 0;
	uint64_t gap_ns = NEVER_NS;

	for (uint32_t i = 0; i < w->episodes; i++) {
		uint32_t k = i + 1;

		while (k < w->episodes && !same_kind(&w->episode[i], &w->episode[k]))
			k++;
		if (k == w->episodes)
			continue;
		uint64_t apart_ns = time_since(w->episode[k].from_ns, w->episode[i].to_ns);
		if (apart_ns < gap_ns) {
			gap_ns = apart_ns;
			first = i;
			second = k;
		}
	}
	join(&w->episode[first], &w->episode[second]);
	w->episodes--;
	memmove(&w->episode[second], &w->episode[second + 1],
		(w->episodes - second) * sizeof(w->episode[0]));
}

// There is room for more episodes than there are kinds, so a full array has two of one kind.
static_assert(WATCH_EPISODES_MAX > 2 * LIVE_PORTS_MAX + 5, "more room than kinds");

static void found(struct watch *w, const struct watch_episode *e) {
	struct watch_episode *last = NULL;

	for (uint32_t i = 0; i < w->episodes; i++) {
		if (same_kind(&w->episode[i], e))
			last = &w->episode[i];
	}
	if (last != NULL && time_since(e->from_ns, last->to_ns) <= APART_NS) {
		join(last, e);
		return;
	}
	if (w->episodes == WATCH_EPISODES_MAX)
		join_closest(w);
	w->episode[w->episodes++] = *e;
}

static bool judge_host(struct watch *w, const struct watch_sample *d, struct watch_episode e) {
	uint64_t stalled_ns = d->count.stalled_ns;

	if (d->stall_max_ns < STALL_NS_MAX && stalled_ns * 50 < e.span_ns)
		return false;
	e.cause = WATCH_HOST;
	e.bad_ns = stalled_ns;
	e.worst = d->stall_max_ns;
	e.worst_at_ns = d->stall_at_ns;
	e.count = d->missed;
	e.waited_ns = d->waited_ns;
	e.steal_ns = d->steal_ns;
	// The times of one long stall are known exactly.
	if (e.worst * 5 >= stalled_ns * 4) {
		e.bad_ns = e.worst;
		e.from_ns = time_max(e.worst_at_ns, w->last.count.begun_ns);
		e.to_ns = e.worst_at_ns + e.worst;
	}
	found(w, &e);
	return true;
}

// `excuse_ns`: the time for which a port may have been full because of a stall.
static void judge_ports(
	struct watch *w, const struct watch_sample *d, struct watch_episode e, uint64_t excuse_ns) {
	e.cause = WATCH_PORT;
	for (e.port = 0; e.port < w->ports; e.port++) {
		e.bad_ns = d->count.port[e.port].full_ns;
		e.worst = d->waiting_max[e.port];
		e.count = d->count.port[e.port].dropped;
		if (d->port_up[e.port] && e.bad_ns * 10 >= e.span_ns && e.bad_ns >= 2 * excuse_ns)
			found(w, &e);
	}
}

static void judge_lcore(
	struct watch *w, const struct watch_sample *d, struct watch_episode e, bool excused) {
	uint64_t stalled_ns = d->count.stalled_ns;
	// If there were stalls too, the lcore itself is too slow only if it was never idle.
	bool saturated =
		time_since(e.busy_ns, stalled_ns) * 10 >= time_since(e.span_ns, stalled_ns) * 9;
	bool behind = d->count.late_pkts >= LATE_PKTS_MIN
		&& d->count.late_pkts * 100 >= d->count.pkts && (saturated || !excused);

	e.cause = WATCH_LCORE;
	e.bad_ns = e.span_ns;
	e.count = excused ? 0 : d->missed;
	if (behind) {
		e.worst = d->late_max_ns;
		e.pkts = d->count.pkts;
		e.late_pkts = d->count.late_pkts;
	}
	if (behind || e.count > 0)
		found(w, &e);
}

// Records a loss of `count` packets, frames or records.
static void judge_loss(struct watch *w, struct watch_episode e, enum watch_cause cause,
	uint32_t port, uint64_t count) {
	e.cause = cause;
	e.port = port;
	e.bad_ns = e.span_ns;
	e.count = count;
	if (count > 0)
		found(w, &e);
}

// Records losses for want of buffers and of room for records.
static void judge_memory(
	struct watch *w, const struct watch_sample *d, const struct watch_episode e) {
	judge_loss(w, e, WATCH_POOL, 0, d->count.no_buffer);
	judge_loss(w, e, WATCH_TELEMETRY, 0, d->count.lost);
}

static void judge_clock(struct watch *w, const struct watch_sample *d, struct watch_episode e) {
	e.cause = WATCH_CLOCK;
	e.bad_ns = e.span_ns;
	e.worst = (uint64_t)llabs(d->clock_offset_ns);
	if (e.worst > CLOCK_NS_MAX)
		found(w, &e);
}

// The interval from a to b: differences of the totals, all else from b. A port counts as up if it
// was up at both.
static struct watch_sample between(const struct watch_sample *a, const struct watch_sample *b) {
	struct watch_sample d = *b;
	const uint64_t *before = (const uint64_t *)(const void *)a;
	uint64_t *total = (uint64_t *)(void *)&d;

	for (size_t i = 0; i < offsetof(struct watch_sample, stall_max_ns) / sizeof(*total); i++)
		total[i] -= before[i];
	for (uint32_t i = 0; i < LIVE_PORTS_MAX; i++)
		d.port_up[i] &= a->port_up[i];
	return d;
}

static void judge(struct watch *w, const struct watch_sample *b) {
	const struct watch_sample *a = &w->last, d = between(a, b);
	struct watch_episode e = {
		.from_ns = a->count.now_ns,
		.to_ns = b->count.now_ns,
		.span_ns = d.count.now_ns,
		.busy_ns = d.count.busy_ns,
		.worst_at_ns = a->count.now_ns,
	};
	uint64_t excuse_ns = d.count.stalled_ns + time_since(w->excused_until_ns, a->count.now_ns);
	bool host;

	for (uint32_t i = 0; i < w->ports; i++)
		judge_loss(w, e, WATCH_MISSED, i, d.port_missed[i]);
	judge_memory(w, &d, e);
	if (w->untimed)
		return;
	host = judge_host(w, &d, e);
	judge_ports(w, &d, e, excuse_ns);
	judge_lcore(w, &d, e, host || w->excused_until_ns > a->count.now_ns);
	judge_clock(w, &d, e);
	if (host)
		w->excused_until_ns = b->count.now_ns + d.count.stalled_ns;
}

// The run began since the last sample. Of that stretch only losses are judged: the lcore's times
// are those of waiting.
static void judge_first(struct watch *w, const struct watch_sample *s) {
	struct watch_sample d = between(&w->last, s);
	uint64_t span_ns = time_since(s->count.now_ns, s->count.begun_ns);
	struct watch_episode e = {
		.from_ns = s->count.begun_ns,
		.to_ns = s->count.now_ns,
		.span_ns = span_ns,
		.worst_at_ns = s->count.begun_ns,
	};

	judge_memory(w, &d, e);
}

bool watch_add(struct watch *w, const struct watch_sample *s, bool last) {
	if (s->count.begun_ns == NEVER_NS || s->count.now_ns < s->count.begun_ns) {
		w->last = *s;
		return true;
	}
	if (w->begun) {
		uint64_t stretch_ns = time_since(s->count.now_ns, w->last.count.now_ns);

		if (stretch_ns == 0 || (stretch_ns < STRETCH_NS && !last))
			return false;
		judge(w, s);
	} else {
		judge_first(w, s);
	}
	w->begun = true;
	w->last = *s;
	return true;
}

// Sorts delays (host, port, lcore) before losses and the clock, long episodes before short ones.
static int by_weight(const void *left, const void *right) {
	const struct watch_episode *a = left, *b = right;
	bool lesser = a->cause >= WATCH_POOL, other = b->cause >= WATCH_POOL;

	if (lesser != other)
		return lesser - other;
	if (a->bad_ns != b->bad_ns)
		return a->bad_ns < b->bad_ns ? 1 : -1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

void watch_finish(struct watch *w) {
	qsort(w->episode, w->episodes, sizeof(w->episode[0]), by_weight);
}

// "12 ms", with two or three digits.
static const char *duration(uint64_t ns, char text[32]) {
	static const char *const unit[] = {"ns", "us", "ms", "s"};
	double v = (double)ns;
	size_t i = 0;

	for (; i + 1 < sizeof(unit) / sizeof(unit[0]) && v >= 999.5; i++)
		v /= 1000;
	snprintf(text, 32, "%.*f %s", i > 0 && v < 9.95 ? 1 : 0, v, unit[i]);
	return text;
}

static const char *percent(uint64_t part, uint64_t whole, char text[32]) {
	double v = whole == 0 ? 0 : 100.0 * (double)part / (double)whole;

	snprintf(text, 32, "%.*f %%", v < 9.95 ? 1 : 0, v);
	return text;
}

// Seconds since the run's start.
static double run_s(const struct watch *w, uint64_t ns) {
	return (double)time_since(ns, w->last.count.begun_ns) / 1e9;
}

// "from 12.3 s to 14.1 s"
static const char *when(const struct watch *w, const struct watch_episode *e, char text[64]) {
	int digits = e->to_ns - e->from_ns < NS_PER_S ? 2 : 1;

	snprintf(text, 64, "from %.*f s to %.*f s", digits, run_s(w, e->from_ns), digits,
		run_s(w, e->to_ns));
	return text;
}

static void host_fact(const struct watch *w, const struct watch_episode *e, struct fact *f) {
	char span[64], a[32], b[32], c[32], d[32];

	fact_set(f, "host",
		"lcore %u had no CPU for %s of the time %s (worst: %s at %.2f s): other programs "
		"on it had %s of that, the hypervisor's other guests %s, "
		"and the kernel or a stop of the process the rest",
		w->cpu, percent(e->bad_ns, e->to_ns - e->from_ns, a), when(w, e, span),
		duration(e->worst, b), run_s(w, e->worst_at_ns),
		percent(time_min(e->waited_ns, e->bad_ns), e->bad_ns, c),
		percent(time_min(e->steal_ns, e->bad_ns), e->bad_ns, d));
	fact_number(f, "bad_s", (double)e->bad_ns / 1e9);
	fact_number(f, "worst_s", (double)e->worst / 1e9);
	fact_number(f, "worst_at_s", run_s(w, e->worst_at_ns));
}

static void lcore_fact(const struct watch *w, const struct watch_episode *e, struct fact *f) {
	char span[64], a[32], b[32], c[32], lcore[32] = "";

	if (w->several)
		snprintf(lcore, sizeof(lcore), "'s lcore %u", w->cpu);
	fact_set(f, "lcore", "the %s%s %s %s: %s was %s busy", w->self, lcore,
		e->busy_ns * 100 >= e->span_ns * 97 ? "was the bottleneck" : "fell behind",
		when(w, e, span), w->several ? "it" : "its lcore",
		percent(e->busy_ns, e->span_ns, a));
	fact_number(f, "busy", (double)e->busy_ns / (double)e->span_ns);
	if (e->late_pkts == 0)
		return;
	fact_more(f, " and %s of its %s left late, up to %s", percent(e->late_pkts, e->pkts, b),
		w->packets, duration(e->worst, c));
	fact_number(f, "late_pkts", (double)e->late_pkts);
	fact_number(f, "worst_s", (double)e->worst / 1e9);
}

static void port_fact(const struct watch *w, const struct watch_episode *e, struct fact *f) {
	char span[64], a[32];

	fact_set(f, "port",
		"%s %s %s: the port was full for %s, up to %llu packets waited "
		"and %llu were dropped",
		w->port_peer[e->port],
		e->bad_ns * 2 >= e->to_ns - e->from_ns ? "was the bottleneck" : "held packets up",
		when(w, e, span), duration(e->bad_ns, a), (unsigned long long)e->worst,
		(unsigned long long)e->count);
	fact_text(f, "port", w->port_name[e->port]);
	fact_number(f, "bad_s", (double)e->bad_ns / 1e9);
	fact_number(f, "waiting_max", (double)e->worst);
}

void watch_fact(const struct watch *w, const struct watch_episode *e, struct fact *f) {
	unsigned long long count = e->count;
	char span[64], a[32];

	when(w, e, span);
	switch (e->cause) {
	case WATCH_HOST:
		host_fact(w, e, f);
		break;
	case WATCH_PORT:
		port_fact(w, e, f);
		break;
	case WATCH_LCORE:
		lcore_fact(w, e, f);
		break;
	case WATCH_POOL:
		fact_set(f, "pool", "no buffers were left %s: %llu packets were dropped", span,
			count);
		break;
	case WATCH_MISSED:
		fact_set(f, "missed",
			"port %s lost %llu frames %s: an lcore that receives there was late",
			w->port_name[e->port], count, span);
		fact_text(f, "port", w->port_name[e->port]);
		break;
	case WATCH_TELEMETRY:
		fact_set(f, "telemetry",
			"telemetry lost %llu records %s: a larger ring_size or a lower level loses "
			"none",
			count, span);
		break;
	case WATCH_CLOCK:
		fact_set(f, "clock", "the clock was up to %s away from the kernel's %s",
			duration(e->worst, a), span);
		fact_number(f, "worst_s", (double)e->worst / 1e9);
		break;
	}
	if ((e->cause == WATCH_HOST || e->cause == WATCH_LCORE) && count > 0)
		fact_more(f, ", and %llu frames were not received", count);
	fact_number(f, "count", (double)count);
	fact_number(f, "from_s", run_s(w, e->from_ns));
	fact_number(f, "to_s", run_s(w, e->to_ns));
	if (w->several)
		fact_number(f, "cpu", w->cpu);
}

// The next episode by weight over all lcores, whose own episodes watch_finish has sorted; `taken`:
// the number used of each lcore's so far. Sets *of to its lcore. NULL: there are no more.
static const struct watch_episode *next_worst(
	const struct watch *w, uint32_t lcores, const uint32_t *taken, uint32_t *of) {
	const struct watch_episode *worst = NULL;

	for (uint32_t i = 0; i < lcores; i++) {
		const struct watch_episode *e = &w[i].episode[taken[i]];

		if (taken[i] == w[i].episodes || (worst != NULL && by_weight(worst, e) <= 0))
			continue;
		worst = e;
		*of = i;
	}
	return worst;
}

void watch_facts(const struct watch *w, uint32_t lcores, struct facts *all) {
	uint32_t taken[LIVE_LCORES_MAX] = {0}, of;
	const struct watch_episode *e;
	struct fact f;

	for (; (e = next_worst(w, lcores, taken, &of)) != NULL; taken[of]++) {
		watch_fact(&w[of], e, &f);
		facts_add(all, &f);
	}
}

uint64_t watch_number(const char *text, const char *name, uint32_t i) {
	const char *at = strstr(text, name);
	uint64_t number = 0;
	char *end;

	if (at == NULL)
		return 0;
	for (at += strlen(name); i > 0; i--, at = end) {
		number = strtoull(at, &end, 10);
		if (end == at)
			return 0;
	}
	return number;
}
