// SPDX-License-Identifier: BSD-3-Clause
// A link that follows a file of rate, delay, loss and queue limit (trace_file.c has the columns),
// as TheaterQ does (arXiv 2510.27057). The file begins with the run. At its end it begins again
// (`end: loop`) or its last line stays (`end: hold`).
//
//	arrival -> lost with the step's probability? -> limit reached? -> queue
//	        -> wire at the step's rate -> delay
//
// A change of rate applies at once, also to the unsent part of the frame on the wire; a rate of 0
// is an outage. The delay is that of the step in which the frame has been sent.
//
// Where we differ from TheaterQ, and why: its delay comes before its rate limit, so that no queue
// discipline sees the queue; here the queue is the link's, and the delay is behind it. The step's
// limit is one of the queue in packets, on top of the discipline's own. Packets never overtake one
// another when the delay falls: reordering has stages of its own. A wire keeps its exact time from
// frame to frame, where TheaterQ begins each at the time its timer ran.
#include "switch/stage/stepped.h"
#include "switch/stage/trace_file.h"

#include "common/base/rng.h"
#include "common/base/u64.h"

enum end { END_LOOP, END_HOLD };
static const char *const end_names[] = {"loop", "hold", NULL};

struct replay {
	struct stepped stepped;
	int end;

	struct trace_file trace;
	size_t next; // index of the step that begins at change_ns
	uint64_t round_ns; // start of the present round
	const struct trace_step *now;
	bool checks; // some step has a loss or a limit
	bool random; // a packet was subject to a draw
	struct rng rng;
	// Of a whole round.
	stats_u128 capacity;
	uint64_t down_ns;
};

static const struct param params[] = {
	{"end", "loop", "at the end of the file: from its start, or its last line for ever",
		UNIT_NONE, PARAM_ENUM(struct replay, end, end_names)},
	FRAMING_PARAM(struct replay, stepped.link.serialiser.framing, "ethernet",
		"what a frame is carried in"),
	PARAM_END,
};

static const struct param also[] = {
	CONFIG_FILE_PARAMS(
		"a header at_us,rate_bps,delay_us,loss,limit_pkts or TheaterQ's, and lines"),
	LINK_QUEUE_PARAM,
	FRAMING_OVERHEAD_PARAM,
	PARAM_END,
};

static uint64_t step_ns(const struct replay *l, size_t i) {
	return l->trace.step[i].at_ns - (i > 0 ? l->trace.step[i - 1].at_ns : 0);
}

static int replay_configure(void *self, struct config_node *node, struct err *err) {
	struct replay *l = self;
	const struct config_file *file;
	struct err why = {""};
	int rc = config_read_file(node, "file", &file, err);

	if (rc == 0
		&& (rc = trace_file_read(&l->trace, TRACE_STEPS, 1, file->path, file->text, &why))
			< 0)
		return config_err(file->named, rc, err, "file: %s", why.msg);
	for (size_t i = 0; rc == 0 && i < l->trace.count; i++) {
		const struct trace_step *step = &l->trace.step[i];

		l->capacity += (stats_u128)step->rate_bps * step_ns(l, i);
		l->down_ns += step->rate_bps == 0 ? step_ns(l, i) : 0;
		l->checks |= step->loss > 0 || step->limit_pkts > 0;
	}
	return rc == 0 ? link_configure(self, node, err) : rc;
}

static void replay_step(struct stepped *s, uint64_t now_ns) {
	struct replay *l = (struct replay *)s;

	l->now = &l->trace.step[l->next];
	s->rate_bps = l->now->rate_bps;
	s->delay_ns = l->now->delay_ns;
	s->change_ns = l->round_ns + l->now->at_ns;
	if (++l->next < l->trace.count)
		return;
	l->next = 0;
	l->round_ns = s->change_ns;
	if (l->end == END_HOLD)
		s->change_ns = NEVER_NS;
}

// At the end of a round: passes over whole rounds but the last, which the statistics see step by
// step.
static void replay_skip(struct stepped *s, uint64_t now_ns) {
	struct replay *l = (struct replay *)s;
	uint64_t rounds = time_since(now_ns, s->change_ns) / l->trace.period_ns;

	if (l->next != 0 || rounds < 2)
		return;
	uint64_t ns = --rounds * l->trace.period_ns;

	stats_skip(&s->link.serialiser.stats, ns, l->capacity * rounds, l->down_ns * rounds);
	l->round_ns += ns;
	s->change_ns += ns;
}

static uint64_t replay_min_delay_ns(const void *self) {
	const struct replay *l = self;
	uint64_t delay_ns = NEVER_NS;

	for (size_t i = 0; i < l->trace.count; i++)
		delay_ns = time_min(delay_ns, l->trace.step[i].delay_ns);
	return delay_ns;
}

static int replay_init(void *self, const struct stage_env *env, struct err *err) {
	struct replay *l = self;

	rng_init(&l->rng, env->run_seed, env->name);
	l->stepped.step = replay_step;
	l->stepped.skip = replay_skip;
	l->stepped.min_delay_ns = replay_min_delay_ns(l);
	return stepped_begin(
		&l->stepped, env, max_u64((uint64_t)(l->capacity / l->trace.period_ns), 1000), err);
}

static void replay_fini(void *self) {
	struct replay *l = self;

	trace_file_free(&l->trace);
	link_fini(self);
}

// Whether the step's limit refuses a packet; the queue's own comes after it.
static bool replay_full(struct replay *l, struct pkt *p, struct pkt_list *drops) {
	struct stage_stats *stats = &l->stepped.link.serialiser.stats;

	if (l->now->limit_pkts == 0)
		return false;
	stepped_serve(&l->stepped, p->arrival_ns, drops);
	if (stats->queue_pkts < l->now->limit_pkts)
		return false;
	stats->count.drops++;
	pkt_drop(drops, p, DROP_QUEUE_FULL);
	stage_trace(l->stepped.link.serialiser.env, TEL_DROP, p, p->arrival_ns, stats->queue_bytes);
	return true;
}

static bool replay_lost(struct replay *l, struct pkt *p, struct pkt_list *drops) {
	if (l->now->loss == 0)
		return false;
	l->random = true;
	if (!rng_below(&l->rng, l->now->loss))
		return false;
	stage_drop(l->stepped.link.serialiser.env, drops, p, DROP_LOSS);
	return true;
}

static void replay_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct replay *l = self;

	if (!l->checks) {
		stepped_push(self, pkts, n, drops);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		stepped_follow(&l->stepped, pkts[i]->arrival_ns, drops);
		if (!replay_lost(l, pkts[i], drops) && !replay_full(l, pkts[i], drops))
			stepped_push(self, &pkts[i], 1, drops);
	}
}

static bool replay_random(const void *self) {
	const struct replay *l = self;

	return l->random || link_random(self);
}

static uint64_t replay_rate_bps(const void *self) {
	const struct replay *l = self;
	uint64_t rate_bps = 0;

	for (size_t i = 0; i < l->trace.count; i++)
		rate_bps = max_u64(rate_bps, l->trace.step[i].rate_bps);
	return rate_bps;
}

static uint64_t replay_max_delay_ns(const void *self) {
	const struct replay *l = self;
	uint64_t delay_ns = 0;

	for (size_t i = 0; i < l->trace.count; i++)
		delay_ns = time_max(delay_ns, l->trace.step[i].delay_ns);
	return delay_ns;
}

const struct stage_ops stage_replay = {
	.name = "replay",
	.alias = "theaterq_link", // before files had columns with names
	.summary = "a queue and a wire whose rate, delay, loss and limit a file has",
	.reference = "TheaterQ, arXiv 2510.27057",
	.params = params,
	.state_size = sizeof(struct replay),
	.init = replay_init,
	.fini = replay_fini,
	.push = replay_push,
	.pop = stepped_pop,
	.next_ns = stepped_next_ns,
	.backlog = link_backlog,
	.config =
		&(const struct stage_config){
			.also = also, .configure = replay_configure, .queue = link_part},
	.delay = &(const struct stage_delay){.min_ns = replay_min_delay_ns,
		.max_ns = replay_max_delay_ns},
	.capacity =
		&(const struct stage_capacity){.limit = link_limit, .rate_bps = replay_rate_bps},
	.figures = &(const struct stage_figures){.serve = stepped_serve, .read = link_figures},
	.observer = &link_observer,
	.needs = &(const struct stage_needs){.random = replay_random,
		.rng = offsetof(struct replay, rng),
		.flows = link_flows,
		.headers = link_headers},
};
