// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRETCH_NS (50 * NS_PER_MS) // at least, between two samples
#define APART_NS NS_PER_S // findings closer than this are one episode
#define STALL_NS_MAX NS_PER_MS // one that is longer is always told
#define LATE_PKTS_MIN 10
#define CLOCK_NS_MAX (10 * NS_PER_US)
#define WORK_PKTS_MIN 4096 // to know what one takes

static_assert(sizeof(struct watch_count) % sizeof(uint64_t) == 0, "words");

void watch_lcore_init(
	struct watch_lcore *w, uint32_t ports, uint64_t pkt_ns_max, uint64_t late_ns) {
	memset(w, 0, sizeof(*w));
	w->ports = ports;
	w->pkt_ns = w->pkt_ns_max = pkt_ns_max;
	w->late_ns = late_ns;
	w->turn_ns = NEVER_NS; // the first turn has none before it
	w->count.begun_ns = NEVER_NS;
	for (uint32_t i = 0; i < LIVE_PORTS_MAX; i++)
		w->full_since_ns[i] = NEVER_NS;
	watch_show(w, 0);
}

void watch_stall(struct watch_lcore *w, uint64_t from_ns, uint64_t to_ns) {
	uint64_t took_ns = to_ns - from_ns;

	w->count.stalls++;
	w->count.stalled_ns += took_ns;
	w->stalled_until_ns = time_max(w->stalled_until_ns, to_ns + WATCH_BACKLOG * took_ns);
	hist_add(&w->stall, took_ns);
	if (took_ns > atomic_load_explicit(&w->stall_max_ns, memory_order_relaxed))
		atomic_store_explicit(&w->stall_at_ns, from_ns, memory_order_relaxed);
	watch_max(&w->stall_max_ns, took_ns);
}

uint64_t watch_floor_ns(const struct watch_lcore *w, double q) {
	const struct hist *h = &w->idle;
	double all = (double)h->sum, longer = 0, sum = 0;

	if (h->total == 0)
		return 0;
	// A moment is followed by x or more of its turn for sum(length - x) of the time, over longer turns.
	for (uint32_t i = HIST_BUCKETS; i-- > 0;) {
		double low = (double)hist_bucket_low(i), n = (double)h->count[i];

		longer += n;
		sum += n
			* (i + 1 < HIST_BUCKETS ? ((double)hist_bucket_low(i + 1) - 1 + low) / 2
						: (double)h->max);
		if (longer > 0 && sum - longer * low >= (1 - q) * all)
			return (uint64_t)fmin((sum - (1 - q) * all) / longer, (double)h->max);
	}
	return 0;
}

// Twice what packets took lately on average: more is not theirs.
static void learn_work(struct watch_lcore *w) {
	if (w->work_pkts < WORK_PKTS_MIN)
		return;
	w->pkt_ns = time_min(w->pkt_ns_max, 2 * w->work_ns / w->work_pkts);
	w->work_ns /= 2;
	w->work_pkts /= 2;
}

void watch_show(struct watch_lcore *w, uint64_t now_ns) {
	size_t used = offsetof(struct watch_count, port) + w->ports * sizeof(struct watch_port);
	uint64_t word[WATCH_WORDS];

	for (uint32_t i = 0; i < w->ports; i++) {
		if (w->full_since_ns[i] == NEVER_NS)
			continue;
		w->count.port[i].full_ns += time_since(now_ns, w->full_since_ns[i]);
		w->full_since_ns[i] = now_ns;
	}
	learn_work(w);
	w->count.now_ns = now_ns;
	memcpy(word, &w->count, used);
	for (size_t i = 0; i < used / sizeof(word[0]); i++)
		atomic_store_explicit(&w->shown[i], word[i], memory_order_relaxed);
}

void watch_shown(const struct watch_lcore *w, struct watch_count *count) {
	uint64_t word[WATCH_WORDS];

	for (size_t i = 0; i < WATCH_WORDS; i++)
		word[i] = atomic_load_explicit(&w->shown[i], memory_order_relaxed);
	memcpy(count, word, sizeof(*count));
}

static bool same_kind(const struct watch_episode *a, const struct watch_episode *b) {
	return a->cause == b->cause && a->port == b->port;
}

// b, which began later, becomes a part of a.
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

// Makes room: the two neighbours of a kind that lie closest together become one.
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

// There are fewer kinds than room, so when it is full two of a kind are in it.
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

static bool judge_host(struct watch *w, const struct watch_sample *a, const struct watch_sample *b,
	struct watch_episode e) {
	uint64_t stalled_ns = b->count.stalled_ns - a->count.stalled_ns;

	if (b->stall_max_ns < STALL_NS_MAX && stalled_ns * 50 < e.span_ns)
		return false;
	e.cause = WATCH_HOST;
	e.bad_ns = stalled_ns;
	e.worst = b->stall_max_ns;
	e.worst_at_ns = b->stall_at_ns;
	e.count = b->missed - a->missed;
	e.waited_ns = b->waited_ns - a->waited_ns;
	e.steal_ns = b->steal_ns - a->steal_ns;
	// One long stall is known to the nanosecond.
	if (e.worst * 5 >= stalled_ns * 4) {
		e.bad_ns = e.worst;
		e.from_ns = time_max(e.worst_at_ns, b->count.begun_ns);
		e.to_ns = e.worst_at_ns + e.worst;
	}
	found(w, &e);
	return true;
}

// `excuse_ns`: for so long a port may have been full because of a stall.
static void judge_ports(struct watch *w, const struct watch_sample *a, const struct watch_sample *b,
	struct watch_episode e, uint64_t excuse_ns) {
	for (uint32_t i = 0; i < w->ports; i++) {
		const struct watch_port *before = &a->count.port[i], *after = &b->count.port[i];
		uint64_t full_ns = after->full_ns - before->full_ns;

		if (!a->port_up[i] || !b->port_up[i] || full_ns * 10 < e.span_ns
			|| full_ns < 2 * excuse_ns)
			continue;
		e.cause = WATCH_PORT;
		e.port = i;
		e.bad_ns = full_ns;
		e.worst = b->waiting_max[i];
		e.worst_at_ns = e.from_ns;
		e.count = after->dropped - before->dropped;
		found(w, &e);
	}
}

static void judge_lcore(struct watch *w, const struct watch_sample *a, const struct watch_sample *b,
	struct watch_episode e, bool excused) {
	uint64_t late = b->count.late_pkts - a->count.late_pkts;
	uint64_t pkts = b->count.pkts - a->count.pkts;
	uint64_t missed = excused ? 0 : b->missed - a->missed;
	uint64_t stalled_ns = b->count.stalled_ns - a->count.stalled_ns;
	// With stalls beside it, only a lcore without a rest is too slow itself.
	bool full = time_since(e.busy_ns, stalled_ns) * 10 >= time_since(e.span_ns, stalled_ns) * 9;
	bool behind = late >= LATE_PKTS_MIN && late * 100 >= pkts && (full || !excused);

	if (!behind && missed == 0)
		return;
	e.cause = WATCH_LCORE;
	e.bad_ns = e.span_ns;
	e.worst = behind ? b->late_max_ns : 0;
	e.worst_at_ns = e.from_ns;
	e.pkts = behind ? pkts : 0;
	e.late_pkts = behind ? late : 0;
	e.count = missed;
	found(w, &e);
}

static void judge_rest(struct watch *w, const struct watch_sample *a, const struct watch_sample *b,
	struct watch_episode e) {
	e.bad_ns = e.span_ns;
	e.count = b->count.no_buffer - a->count.no_buffer;
	e.cause = WATCH_POOL;
	if (e.count > 0)
		found(w, &e);
	e.cause = WATCH_MISSED;
	for (e.port = 0; e.port < w->ports; e.port++) {
		e.count = b->port_missed[e.port] - a->port_missed[e.port];
		if (e.count > 0)
			found(w, &e);
	}
	e.port = 0;
	e.count = b->count.lost - a->count.lost;
	e.cause = WATCH_TELEMETRY;
	if (e.count > 0)
		found(w, &e);
	e.count = 0;
	e.cause = WATCH_CLOCK;
	e.worst = (uint64_t)llabs(b->clock_offset_ns);
	e.worst_at_ns = e.to_ns;
	if (e.worst > CLOCK_NS_MAX)
		found(w, &e);
}

static void judge(struct watch *w, const struct watch_sample *a, const struct watch_sample *b) {
	struct watch_episode e = {
		.from_ns = a->count.now_ns,
		.to_ns = b->count.now_ns,
		.span_ns = b->count.now_ns - a->count.now_ns,
		.busy_ns = b->count.busy_ns - a->count.busy_ns,
	};
	uint64_t stalled_ns = b->count.stalled_ns - a->count.stalled_ns;
	uint64_t excuse_ns = stalled_ns + time_since(w->excused_until_ns, a->count.now_ns);
	bool host = judge_host(w, a, b, e);

	judge_ports(w, a, b, e, excuse_ns);
	judge_lcore(w, a, b, e, host || w->excused_until_ns > a->count.now_ns);
	judge_rest(w, a, b, e);
	if (host)
		w->excused_until_ns = b->count.now_ns + stalled_ns;
}

bool watch_add(struct watch *w, const struct watch_sample *s, bool last) {
	if (s->count.begun_ns == NEVER_NS || s->count.now_ns < s->count.begun_ns)
		return true;
	if (w->begun) {
		uint64_t stretch_ns = time_since(s->count.now_ns, w->last.count.now_ns);

		if (stretch_ns == 0 || (stretch_ns < STRETCH_NS && !last))
			return false;
		judge(w, &w->last, s);
	}
	w->begun = true;
	w->last = *s;
	return true;
}

// The run's own course first, then what was only lost or wrong beside it; long ones before short ones.
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

// "12 ms": two digits or three.
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

void watch_sentence(
	const struct watch *w, const struct watch_episode *e, char text[WATCH_SENTENCE_SIZE]) {
	char span[64], a[32], b[32], c[32], d[32], who[32] = "";
	size_t size = WATCH_SENTENCE_SIZE;
	int n = 0;

	when(w, e, span);
	switch (e->cause) {
	case WATCH_HOST:
		n = snprintf(text, size,
			"the host stole %s of lcore %u %s (worst: %s at %.2f s), of which %s was other "
			"programs on its CPU and %s counted as steal",
			percent(e->bad_ns, e->to_ns - e->from_ns, a), w->cpu, span,
			duration(e->worst, b), run_s(w, e->worst_at_ns),
			percent(time_min(e->waited_ns, e->bad_ns), e->bad_ns, c),
			percent(time_min(e->steal_ns, e->bad_ns), e->bad_ns, d));
		break;
	case WATCH_PORT:
		snprintf(text, size,
			"what is behind port %s %s %s: the port was full for %s, up to %llu packets "
			"waited and %llu were dropped",
			w->port_name[e->port],
			e->bad_ns * 2 >= e->to_ns - e->from_ns ? "was the bottleneck"
							       : "held packets up",
			span, duration(e->bad_ns, a), (unsigned long long)e->worst,
			(unsigned long long)e->count);
		return;
	case WATCH_LCORE:
		if (w->several)
			snprintf(who, sizeof(who), "'s lcore %u", w->cpu);
		n = snprintf(text, size, "the %s%s %s %s: %s was %s busy", w->self, who,
			e->busy_ns * 100 >= e->span_ns * 97 ? "was the bottleneck" : "fell behind",
			span, w->several ? "it" : "its lcore", percent(e->busy_ns, e->span_ns, a));
		if (e->late_pkts > 0)
			n += snprintf(text + n, size - (size_t)n,
				" and %s of its %s left late, up to %s",
				percent(e->late_pkts, e->pkts, b), w->packets,
				duration(e->worst, c));
		break;
	case WATCH_POOL:
		snprintf(text, size, "no buffers were left %s: %llu packets were dropped", span,
			(unsigned long long)e->count);
		return;
	case WATCH_MISSED:
		snprintf(text, size,
			"port %s lost %llu frames %s: an lcore that receives there was late",
			w->port_name[e->port], (unsigned long long)e->count, span);
		return;
	case WATCH_TELEMETRY:
		snprintf(text, size,
			"telemetry lost %llu records %s: a larger ring_size or a lower level loses "
			"none",
			(unsigned long long)e->count, span);
		return;
	case WATCH_CLOCK:
		snprintf(text, size, "the clock was up to %s away from the kernel's %s",
			duration(e->worst, a), span);
		return;
	}
	if (e->count > 0)
		snprintf(text + n, size - (size_t)n, ", and %llu frames were not received",
			(unsigned long long)e->count);
}

// Of the lcores' episodes, which watch_finish has sorted, the next by weight; `taken` so many are gone of
// each. NULL: none is left. Its lcore in *of.
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

const char *watch_verdict(const struct watch *w, uint32_t lcores, const char *outcome,
	char text[WATCH_SENTENCE_SIZE]) {
	uint32_t taken[LIVE_LCORES_MAX] = {0}, of = 0;
	const struct watch_episode *e = next_worst(w, lcores, taken, &of);

	if (strcmp(outcome, "ok") != 0 || e == NULL)
		return outcome;
	watch_sentence(&w[of], e, text);
	return text;
}

const char *watch_cause_name(enum watch_cause cause) {
	static const char *const name[] = {
		"host", "port", "lcore", "pool", "port", "telemetry", "clock"};

	return name[cause];
}

static void write_episode(const struct watch *w, const struct watch_episode *e, struct json *j) {
	char text[WATCH_SENTENCE_SIZE];

	watch_sentence(w, e, text);
	json_object(j, NULL);
	json_f64(j, "from_s", run_s(w, e->from_ns));
	json_f64(j, "to_s", run_s(w, e->to_ns));
	json_text(j, "component", e->cause == WATCH_LCORE ? w->self : watch_cause_name(e->cause));
	if (w->several)
		json_u64(j, "cpu", w->cpu);
	if (e->cause == WATCH_PORT || e->cause == WATCH_MISSED)
		json_text(j, "port", w->port_name[e->port]);
	if (e->cause == WATCH_HOST) {
		json_f64(j, "worst_s", (double)e->worst / 1e9);
		json_f64(j, "worst_at_s", run_s(w, e->worst_at_ns));
	}
	json_text(j, "sentence", text);
	json_close(j, '}');
}

void watch_json(const struct watch *w, uint32_t lcores, struct json *j) {
	uint32_t taken[LIVE_LCORES_MAX] = {0}, of = 0;
	const struct watch_episode *e;

	json_array(j, "verdicts");
	for (; (e = next_worst(w, lcores, taken, &of)) != NULL; taken[of]++)
		write_episode(&w[of], e, j);
	json_close(j, ']');
}

uint64_t watch_parse_steal(const char *stat, uint32_t cpu, uint64_t ticks_per_s) {
	unsigned long long steal = 0;
	char name[16];
	const char *line;

	snprintf(name, sizeof(name), "\ncpu%u ", cpu);
	line = strstr(stat, name);
	if (line == NULL
		|| sscanf(line + strlen(name), "%*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
		return 0;
	return steal * (NS_PER_S / ticks_per_s);
}

uint64_t watch_parse_waited(const char *schedstat) {
	unsigned long long waited = 0;

	return sscanf(schedstat, "%*u %llu", &waited) == 1 ? waited : 0;
}

uint64_t watch_parse_preempted(const char *status) {
	static const char name[] = "\nnonvoluntary_ctxt_switches:";
	unsigned long long n = 0;
	const char *line = strstr(status, name);

	return line != NULL && sscanf(line + strlen(name), "%llu", &n) == 1 ? n : 0;
}
